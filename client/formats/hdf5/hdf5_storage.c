/* Storage of contiguous datasets.
 *
 * HDF5 allocates a dataset's storage when it is first written to, unless it was asked to do so at
 * once. Until then it has no place that the daemon could write to, and reads as its fill value. The
 * first write, of one element, allocates all of it. HDF5 then fills it where the maker has given a
 * fill value, and leaves it as it comes where there is only the default, zero, which is what was
 * read so far: so it is made zero here.
 *
 * Elements may also be in other files, found beside the working directory, or in the directory that
 * $HDF5_EXTFILE_PREFIX names. One that is missing would be an input/output error without a name
 * when it is read.
 *
 * Called by hdf5.c.
 */
#include "client/formats/hdf5/hdf5_storage.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_provider.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ZEROS_BYTES (64 * 1024)
#define ORIGIN      "${ORIGIN}"

/* Allocation ----------------------------------------------------------------------------------- */

struct storage {
    haddr_t offset;
    uint64_t n_bytes;
    bool is_zeroed; /* what is there now is not to be kept */
};

/* An element of what the dataset reads as, written where it is. */
static bool write_first(hid_t dataset)
{
    char element[64] = "";
    hsize_t first[H5S_MAX_RANK] = {0}, one[H5S_MAX_RANK];
    _cleanup_hid_ hid_t type = H5Dget_type(dataset);
    _cleanup_hid_ hid_t file = H5Dget_space(dataset);
    _cleanup_hid_ hid_t memory = H5Screate(H5S_SCALAR);
    int ndim = file > 0 ? H5Sget_simple_extent_ndims(file) : -1;
    if (type <= 0 || memory <= 0 || ndim < 0 || H5Tget_size(type) > sizeof(element))
        return false;
    for (int i = 0; i < ndim; i++)
        one[i] = 1;
    if (ndim > 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, first, NULL, one, NULL) < 0)
        return false;
    return H5Dread(dataset, type, memory, file, H5P_DEFAULT, element) >= 0 &&
           H5Dwrite(dataset, type, memory, file, H5P_DEFAULT, element) >= 0;
}

static bool allocate(hid_t dataset, struct storage *ret)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    _cleanup_hid_ hid_t dcpl = H5Dget_create_plist(dataset);
    if (dcpl <= 0 || H5Pfill_value_defined(dcpl, &defined) < 0 || !write_first(dataset))
        return false;
    ret->offset = H5Dget_offset(dataset);
    ret->n_bytes = H5Dget_storage_size(dataset);
    ret->is_zeroed = defined == H5D_FILL_VALUE_DEFAULT;
    return ret->offset != HADDR_UNDEF;
}

static int allocate_in_file(const char *path, const char *dataset, const struct stat *st,
                            const char *name, struct storage *ret, struct gad_error *error)
{
    char reason[160];
    HDF5_SCOPE(scope);
    _cleanup_hid_ hid_t file = H5I_INVALID_HID;
    int r = hdf5_file_open(path, st, true, path, name, &file, error);
    if (r)
        return r;
    hid_t opened = H5Dopen2(file, dataset, H5P_DEFAULT);
    bool is_done = opened > 0 && hdf5_is_in_file(opened, st) && allocate(opened, ret);
    hdf5_close(&opened);
    if (is_done) {
        is_done = H5Fclose(file) >= 0;
        file = H5I_INVALID_HID;
    }
    if (is_done) {
        hdf5_provider_outdate(st, dataset);
        return 0;
    }
    hdf5_reason(reason, sizeof(reason));
    return error_set(error, GAD_IO_ERROR, name,
                     "HDF5 cannot allocate the storage of '%.120s': %.160s", dataset, reason);
}

static int write_zeros(int fd, const struct storage *storage)
{
    static const char zeros[ZEROS_BYTES];
    if (fallocate(fd, FALLOC_FL_ZERO_RANGE, (off_t)storage->offset, (off_t)storage->n_bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        return -errno;
    int r = 0;
    for (uint64_t at = 0; at < storage->n_bytes && r == 0; at += sizeof(zeros))
        r = file_write(fd, zeros, min_u64(sizeof(zeros), storage->n_bytes - at),
                       storage->offset + at);
    return r;
}

int hdf5_allocate(const char *path, const char *dataset, const struct stat *st, int fd,
                  const char *name, struct gad_error *error)
{
    struct storage storage = {.offset = HADDR_UNDEF};
    int r = allocate_in_file(path, dataset, st, name, &storage, error);
    if (r == 0 && storage.is_zeroed) {
        r = write_zeros(fd, &storage);
        if (r < 0)
            r = file_path_error(error, -r, path, name);
    }
    return r;
}

/* Other files ---------------------------------------------------------------------------------- */

static void external_path(const char *prefix, const char *path, const char *file, char *ret)
{
    const char *slash = strrchr(path, '/');
    int n_dir = slash ? (int)(slash - path) : 1;
    if (*file == '/' || !prefix || !*prefix || strcmp(prefix, ".") == 0)
        snprintf(ret, PATH_MAX, "%s", file);
    else if (strncmp(prefix, ORIGIN, strlen(ORIGIN)) == 0)
        snprintf(ret, PATH_MAX, "%.*s%s/%s", n_dir, slash ? path : ".", prefix + strlen(ORIGIN),
                 file);
    else
        snprintf(ret, PATH_MAX, "%s/%s", prefix, file);
}

int hdf5_check_external(hid_t create_plist, const char *path, const char *dataset, const char *name,
                        struct gad_error *error)
{
    int n_files = H5Pget_external_count(create_plist);
    for (int i = 0; i < n_files; i++) {
        char file[PATH_MAX] = "", found[PATH_MAX];
        off_t offset;
        hsize_t n_bytes;
        if (H5Pget_external(create_plist, (unsigned)i, sizeof(file) - 1, file, &offset, &n_bytes) <
            0)
            continue;
        external_path(getenv("HDF5_EXTFILE_PREFIX"), path, file, found);
        if (access(found, R_OK) == 0)
            continue;
        int number = errno, r = error_from_errno(error, number, name, found);
        error_set(error, r, name, "elements of '%.80s' are in another file, '%.160s': %s", dataset,
                  found, strerrordesc_np(number));
        error_expected(error, "that file, or the directory that has it in HDF5_EXTFILE_PREFIX");
        error_found(error, "%.120s", found);
        return r;
    }
    return 0;
}
