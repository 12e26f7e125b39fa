/* Finding stored chunks, for who reads them without HDF5.
 *
 * HDF5 reads a chunk under its lock, one after the other, and so fast codecs wait for each other's
 * copies. Where a chunk lies it says after a walk through the whole index, though it finds one that
 * it is to read in a few steps. So files are opened with a copy of its own driver that, where that
 * is wanted, notes what is to be read of elements and reads nothing. The bytes come later, by
 * whoever wants them, outside of the lock.
 *
 * Called by hdf5_provider.c and hdf5_file.c.
 */
#include "client/formats/hdf5/reading/hdf5_stored.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define OWN_NUMBER       601 /* beside the one that writes */
#define MAX_STORED_CHUNK (UINT64_C(4) << 30)

/* HDF5's own driver, and a copy of it that can look. Under HDF5's lock. */
static H5FD_class_t own, looking;
static struct {
    bool is_on;
    unsigned n_reads;
    haddr_t address;
    size_t n_bytes;
} look;

static herr_t read_or_note(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address,
                           size_t n_bytes, void *buffer)
{
    if (!look.is_on || type != H5FD_MEM_DRAW)
        return own.read(file, type, dxpl, address, n_bytes, buffer);
    look.n_reads++;
    look.address = address;
    look.n_bytes = n_bytes;
    return 0;
}

/* Of the driver that HDF5 opens files with, if it is the usual one; a file that is always there
 * shows it. */
static bool copy_own(void)
{
    _cleanup_hid_ hid_t usual = H5Pcreate(H5P_FILE_ACCESS);
    if (usual <= 0 || H5Pget_driver(usual) != H5FD_SEC2)
        return false;
    H5FD_t *file = H5FDopen("/dev/null", H5F_ACC_RDONLY, usual, INT64_MAX);
    if (!file)
        return false;
    own = looking = *file->cls;
    H5FDclose(file);
    looking.name = "gpuarrayd-looking";
    looking.terminate = NULL; /* the other's */
    looking.read = read_or_note;
#if H5_VERSION_GE(1, 14, 0)
    looking.value = OWN_NUMBER;
#endif
    return true;
}

herr_t hdf5_stored_use(hid_t access_plist)
{
    static hid_t id;
    if (id <= 0 || H5Iis_valid(id) <= 0) /* the program may have ended HDF5 */
        id = copy_own() ? H5FDregister(&looking) : H5I_INVALID_HID;
    return id > 0 ? H5Pset_driver(access_plist, id, NULL) : 0; /* without it HDF5 reads */
}

/* HDF5 1.10 fails for a chunk that was never written too: only its own words tell, or a walk
 * through the whole index, which a damaged one does not survive. */
static bool is_never_written(hid_t dataset, const hsize_t *offsets, const char *reason)
{
    hsize_t n_bytes = 0;
    haddr_t address = 0;
    unsigned mask;
    if (strstr(reason, "storage is not allocated"))
        return true;
    return H5Dget_chunk_info_by_coord(dataset, offsets, &mask, &address, &n_bytes) >= 0 &&
           address == HADDR_UNDEF;
}

/* Into its room, or only noted. */
static int read_bytes(hid_t dataset, const hsize_t *offsets, bool is_noted, struct chunk_bytes *ret)
{
    look.n_reads = 0;
    look.is_on = is_noted;
    herr_t r = H5Dread_chunk(dataset, H5P_DEFAULT, offsets, &ret->skipped, ret->data);
    look.is_on = false;
    if (r < 0)
        hdf5_reason(ret->reason, sizeof(ret->reason));
    return r < 0 ? EIO : 0;
}

int hdf5_stored_fetch(hid_t dataset, const hsize_t *offsets, const struct hdf5_beside *beside,
                      struct chunk_bytes *ret_bytes, struct hdf5_where *ret_where)
{
    hsize_t n_bytes = 0;
    ret_where->address = HADDR_UNDEF;
    ret_where->n_closed = beside ? beside->n_closed : 0;
    H5Eclear2(H5E_DEFAULT);
    if (H5Dget_chunk_storage_size(dataset, offsets, &n_bytes) < 0) {
        hdf5_reason(ret_bytes->reason, sizeof(ret_bytes->reason));
        if (!is_never_written(dataset, offsets, ret_bytes->reason))
            return EIO;
        n_bytes = 0;
    }
    ret_bytes->is_absent = n_bytes == 0;
    if (n_bytes == 0)
        return 0;
    if (n_bytes > MAX_STORED_CHUNK)
        return EFBIG;
    if (chunk_bytes_reserve(ret_bytes, (size_t)n_bytes) < 0)
        return ENOMEM;
    int r = read_bytes(dataset, offsets, beside && beside->is_it, ret_bytes);
    if (r || look.n_reads == 0)
        return r;
    if (look.n_reads > 1 || look.n_bytes != n_bytes) /* not in one piece */
        return read_bytes(dataset, offsets, false, ret_bytes);
    ret_where->address = look.address;
    return 0;
}

/* Beside HDF5 ---------------------------------------------------------------------------------- */

void hdf5_beside_open(struct hdf5_beside *beside, int fd, const struct stat *st)
{
    char path[64];
    struct stat own_st;
    if (beside->fd < 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        beside->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    }
    beside->is_it = fstat(beside->fd, &own_st) == 0 && own_st.st_dev == st->st_dev &&
                    own_st.st_ino == st->st_ino;
}

void hdf5_beside_close(struct hdf5_beside *beside)
{
    beside->n_closed++;
}

bool hdf5_beside_read(const struct hdf5_beside *beside, const struct hdf5_where *where,
                      struct chunk_bytes *bytes)
{
    size_t n;
    if (where->address == HADDR_UNDEF)
        return true;
    return file_read(beside->fd, bytes->data, bytes->n_bytes, where->address, &n) == 0 &&
           n == bytes->n_bytes && where->n_closed == beside->n_closed;
}
