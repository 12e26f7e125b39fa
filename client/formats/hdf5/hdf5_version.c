/* Which HDF5 library is loaded, for whoever asks what this library runs with.
 *
 * Its own version function, rather than the header's macros: the package may have been updated
 * since this was built. Called by versions.c, once.
 */
#include "client/formats/hdf5/hdf5_version.h"
#include "client/formats/hdf5/hdf5_file.h"

#include <stdio.h>

void hdf5_version(char *buffer, size_t n_bytes)
{
    unsigned major = 0, minor = 0, release = 0;
    HDF5_SCOPE(scope);
    if (H5get_libversion(&major, &minor, &release) < 0)
        snprintf(buffer, n_bytes, "unknown");
    else
        snprintf(buffer, n_bytes, "%u.%u.%u", major, minor, release);
}

bool hdf5_has_filter(uint32_t id)
{
    HDF5_SCOPE(scope);
    return H5Zfilter_avail((H5Z_filter_t)id) > 0;
}
