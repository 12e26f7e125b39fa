/* doctor: the libraries that were compiled against, and those that are loaded.
 *
 * HDF5 ends the process when its header and its library differ, unless told not to; so a difference
 * is found here before that. Its functions are looked up by name in what is loaded: this program
 * itself uses none of them. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <dlfcn.h>
#include <json-c/json_c_version.h>
#include <msgpack.h>
#include <msgpack/version_master.h>
#include <stdbool.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#define MSGPACK_COMPILED                                                                           \
    TEXT(MSGPACK_VERSION_MAJOR)                                                                    \
    "." TEXT(MSGPACK_VERSION_MINOR) "." TEXT(MSGPACK_VERSION_REVISION)

/* As H5public.h declares them. */
typedef int version_fn(unsigned *major, unsigned *minor, unsigned *release);
typedef int threadsafe_fn(bool *ret);

/* A function's address through a pointer to an object, as dlsym(3) advises. */
static void find_function(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_function, &found, sizeof(found));
}

static void check_pair(struct doctor *d, const char *name, const char *compiled, const char *loaded)
{
    if (strcmp(compiled, loaded) == 0)
        doctor_say(d, FINDING_OK, NULL, "%s %s", name, loaded);
    else
        doctor_say(d, FINDING_NOTE,
                   "build gpuarrayd anew against the installed library, if it "
                   "misbehaves",
                   "%s %s is loaded, %s was compiled against", name, loaded, compiled);
}

static void check_hdf5(struct doctor *d)
{
    unsigned major = 0, minor = 0, release = 0;
    bool is_threadsafe = false;
    char loaded[48];
    version_fn *version;
    threadsafe_fn *threadsafe;
    find_function("H5get_libversion", &version);
    find_function("H5is_library_threadsafe", &threadsafe);
    if (!version || version(&major, &minor, &release) < 0) {
        doctor_say(d, FINDING_NOTE, "'ldd' of libgpuarrayd.so shows which library it finds",
                   "the HDF5 library does not say its version; compiled against " DOCTOR_HDF5);
        return;
    }
    snprintf(loaded, sizeof(loaded), "%u.%u.%u", major, minor, release);
    if (strcmp(loaded, DOCTOR_HDF5) != 0)
        doctor_say(d, FINDING_PROBLEM,
                   "build gpuarrayd anew, or install the HDF5 that it was built against; "
                   "LD_LIBRARY_PATH may lead to another one",
                   "HDF5 %s is loaded, " DOCTOR_HDF5 " was compiled against: HDF5 ends programs "
                   "where these differ",
                   loaded);
    else
        doctor_say(d, FINDING_OK, NULL, "HDF5 %s, %s", loaded,
                   threadsafe && threadsafe(&is_threadsafe) >= 0 && is_threadsafe
                       ? "thread-safe"
                       : "not thread-safe: calls take turns, decompression does not");
}

void doctor_libraries(struct doctor *d)
{
    check_hdf5(d);
    check_pair(d, "msgpack", MSGPACK_COMPILED, msgpack_version());
    check_pair(d, "json-c", JSON_C_VERSION, json_c_version());
}
