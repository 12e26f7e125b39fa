/* Versions of the library and of what it uses, as one line of text.
 *
 * The text is put together once, from what the loaded libraries say of themselves, and stays: so it
 * can be given out from any thread without an owner. Called by programs that report on themselves.
 */
#include "client/formats/hdf5/hdf5_version.h"
#include "client/gpuarrayd.h"
#include "proto/wire/message.h"

#include <json-c/json.h>
#include <msgpack.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char versions[160];

static void put_together(void)
{
    char hdf5[32];
    hdf5_version(hdf5, sizeof(hdf5));
    snprintf(versions, sizeof(versions),
             "gpuarrayd " GPUARRAYD_VERSION ", protocol %u, HDF5 %s, msgpack %s, json-c %s",
             PROTOCOL_VERSION, hdf5, msgpack_version(), json_c_version());
}

const char *gad_versions(void)
{
    pthread_once(&once, put_together);
    return versions;
}
