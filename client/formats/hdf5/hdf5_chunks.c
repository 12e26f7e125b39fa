/* Chunk tables.
 *
 * Unfiltered chunks lie in the file as they are, so the daemon can read them without HDF5 once it
 * knows where they are. Four things stand in the way, and each sends the dataset to the provider:
 *
 * - HDF5 1.10 walks its index from the start for each chunk that is asked for, so a table costs the
 *   square of its length (4096 chunks: an eighth of a second).
 * - Where the file begins with a user block, some versions of HDF5 give addresses relative to its
 *   end and others absolute ones. Which it is, is found out by comparing chunks: as HDF5 reads them
 *   and as they are in the file. Without a decision there is no table.
 * - HDF5 1.10 gives wrong places of chunks where the index is an array (newer file formats) that
 *   leaves room for the dataset to grow along another axis than the first.
 * - A chunk that was never written reads as the fill value, which the table can only say when it is
 *   zero.
 *
 * Called by hdf5.c.
 */
#include "client/formats/hdf5/hdf5_chunks.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_COMPARED       16          /* chunks that are compared to decide about addresses */
#define MAX_COMPARED_BYTES (64u << 20) /* of one of them */

bool hdf5_chunk_grid(hid_t create_plist, int ndim, const int64_t *shape, int64_t item_bytes,
                     struct chunk_grid *ret_grid)
{
    hsize_t dims[H5S_MAX_RANK];
    int64_t chunk_shape[ARRAY_MAX_NDIM];
    if (ndim < 1 || ndim > ARRAY_MAX_NDIM || H5Pget_chunk(create_plist, H5S_MAX_RANK, dims) != ndim)
        return false;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] > INT64_MAX)
            return false;
        chunk_shape[i] = (int64_t)dims[i];
    }
    return chunk_grid_init(ret_grid, ndim, shape, chunk_shape, item_bytes);
}

static bool is_fill_zero(hid_t dataset, hid_t create_plist)
{
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
    uint8_t bytes[16] = {0}, zero[16] = {0};
    if (H5Pfill_value_defined(create_plist, &defined) < 0 ||
        H5Pget_fill_time(create_plist, &when) < 0)
        return false;
    if (defined != H5D_FILL_VALUE_USER_DEFINED || when == H5D_FILL_TIME_NEVER)
        return true; /* the default is zero, and what is never filled reads as zero */
    _cleanup_hid_ hid_t type = H5Dget_type(dataset);
    return type > 0 && H5Tget_size(type) <= sizeof(bytes) &&
           H5Pget_fill_value(create_plist, type, bytes) >= 0 &&
           memcmp(bytes, zero, sizeof(bytes)) == 0;
}

/* Where chunk i of the pick begins in the dataset. */
static void chunk_place(const struct chunk_pick *pick, uint64_t i, hsize_t *ret_offsets)
{
    int64_t start[ARRAY_MAX_NDIM];
    chunk_grid_start(&pick->box, i, start);
    for (int k = 0; k < pick->box.ndim; k++)
        ret_offsets[k] = (hsize_t)(pick->origin[k] + start[k]);
}

static bool look_up(hid_t dataset, const struct chunk_pick *pick, struct chunk_entry *entries)
{
    for (uint64_t i = 0; i < pick->box.n_chunks; i++) {
        hsize_t offsets[H5S_MAX_RANK] = {0}, n_bytes = 0;
        haddr_t address = HADDR_UNDEF;
        unsigned mask;
        chunk_place(pick, i, offsets);
        if (H5Dget_chunk_info_by_coord(dataset, offsets, &mask, &address, &n_bytes) < 0)
            return false;
        bool is_there = address != HADDR_UNDEF;
        entries[i].offset_bytes = is_there ? address : CHUNK_ABSENT;
        entries[i].size_bytes = pick->box.chunk_bytes;
        if (is_there)
            entries[i].size_bytes = n_bytes;
    }
    return true;
}

/* Whether what HDF5 says of places can be believed. */
static bool has_true_index(hid_t dataset, const struct chunk_grid *grid)
{
    H5D_chunk_index_t kind;
    hsize_t dims[H5S_MAX_RANK], max[H5S_MAX_RANK];
    if (H5Dget_chunk_index_type(dataset, &kind) < 0)
        return false;
    if (kind != H5D_CHUNK_IDX_FARRAY && kind != H5D_CHUNK_IDX_EARRAY)
        return true;
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    if (space <= 0 || H5Sget_simple_extent_dims(space, dims, max) != grid->ndim)
        return false;
    for (int i = 1; i < grid->ndim; i++) {
        hsize_t chunk = (hsize_t)grid->chunk_shape[i];
        if (max[i] == H5S_UNLIMITED || (max[i] - 1) / chunk != (dims[i] - 1) / chunk)
            return false;
    }
    return true;
}

static bool holds(int fd, uint64_t offset_bytes, const void *wanted, void *scratch, size_t n_bytes)
{
    size_t n;
    return offset_bytes <= INT64_MAX && file_read(fd, scratch, n_bytes, offset_bytes, &n) == 0 &&
           n == n_bytes && memcmp(wanted, scratch, n_bytes) == 0;
}

/* Whether addresses are relative to the end of the user block. False: it cannot be told. */
static bool find_base(hid_t dataset, const struct chunk_pick *pick,
                      const struct chunk_entry *entries, uint64_t block, int fd, uint64_t *ret_base)
{
    const struct chunk_grid *grid = &pick->box;
    if (grid->chunk_bytes > MAX_COMPARED_BYTES)
        return false;
    size_t n_bytes = (size_t)grid->chunk_bytes;
    _cleanup_free_ char *wanted = malloc(n_bytes), *scratch = malloc(n_bytes);
    if (!wanted || !scratch)
        return false;
    unsigned n_compared = 0;
    for (uint64_t i = 0; i < grid->n_chunks && n_compared < MAX_COMPARED; i++) {
        hsize_t offsets[H5S_MAX_RANK] = {0};
        uint32_t mask;
        if (entries[i].offset_bytes == CHUNK_ABSENT || entries[i].size_bytes != grid->chunk_bytes)
            continue;
        chunk_place(pick, i, offsets);
        if (H5Dread_chunk(dataset, H5P_DEFAULT, offsets, &mask, wanted) < 0)
            return false;
        uint64_t address = entries[i].offset_bytes;
        bool is_absolute = holds(fd, address, wanted, scratch, n_bytes);
        bool is_relative = holds(fd, address + block, wanted, scratch, n_bytes);
        n_compared++;
        if (is_absolute == is_relative)
            continue;
        *ret_base = is_relative ? block : 0;
        return true;
    }
    return false;
}

/* Makes the addresses those of the file. */
static bool add_base(hid_t file, hid_t dataset, const struct chunk_pick *pick,
                     struct chunk_entry *entries, int fd)
{
    hsize_t block = 0;
    uint64_t base;
    _cleanup_hid_ hid_t fcpl = H5Fget_create_plist(file);
    if (fcpl <= 0 || H5Pget_userblock(fcpl, &block) < 0)
        return false;
    if (block == 0)
        return true;
    if (!find_base(dataset, pick, entries, block, fd, &base))
        return false;
    for (uint64_t i = 0; i < pick->box.n_chunks; i++)
        if (entries[i].offset_bytes != CHUNK_ABSENT &&
            __builtin_add_overflow(entries[i].offset_bytes, base, &entries[i].offset_bytes))
            return false;
    return true;
}

static int make_table(const struct chunk_entry *entries, uint64_t n_entries, const char *name,
                      int *ret_table_fd, struct gad_error *error)
{
    _cleanup_fd_ int fd = memfd_create("gpuarrayd-chunks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_from_errno(error, errno, name, "chunk table");
    int r = file_write(fd, entries, (size_t)n_entries * sizeof(*entries), 0);
    if (r < 0)
        return error_from_errno(error, -r, name, "chunk table");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return error_from_errno(error, errno, name, "chunk table");
    *ret_table_fd = steal_fd(&fd);
    return 0;
}

/* Of each chunk only the part that the pick needs. */
static void cut_chunks(const struct chunk_pick *pick, struct chunk_entry *entries)
{
    for (uint64_t i = 0; i < pick->grid.n_chunks; i++) {
        if (entries[i].offset_bytes != CHUNK_ABSENT)
            entries[i].offset_bytes += pick->skip_bytes;
        entries[i].size_bytes = pick->grid.chunk_bytes;
    }
}

int hdf5_chunk_table(hid_t file, hid_t dataset, hid_t create_plist, const struct chunk_pick *pick,
                     uint64_t n_chunks, int fd, const char *name, int *ret_table_fd,
                     struct gad_error *error)
{
    struct stat st;
    uint64_t n_absent, n_entries = pick->box.n_chunks;
    *ret_table_fd = -1;
    if (n_entries > HDF5_MAX_TABLE_CHUNKS || n_chunks > HDF5_MAX_LOOK_UPS / n_entries ||
        H5Pget_nfilters(create_plist) != 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return error_from_errno(error, errno, name, "chunk table");
    _cleanup_free_ struct chunk_entry *entries = calloc(n_entries, sizeof(*entries));
    if (!entries)
        return error_from_errno(error, ENOMEM, name, "chunk table");
    if (!has_true_index(dataset, &pick->box) || !look_up(dataset, pick, entries) ||
        !add_base(file, dataset, pick, entries, fd))
        return 0;
    int r = chunk_table_check(&pick->box, entries, n_entries, (uint64_t)st.st_size, name, &n_absent,
                              error);
    if (r || (n_absent > 0 && !is_fill_zero(dataset, create_plist)))
        return r;
    cut_chunks(pick, entries);
    return make_table(entries, n_entries, name, ret_table_fd, error);
}

static int look_at(hid_t dataset, const hsize_t *offsets, struct packed_chunk *chunk)
{
    haddr_t address = HADDR_UNDEF;
    hsize_t n_bytes = 0;
    if (H5Dget_chunk_info_by_coord(dataset, offsets, &chunk->skipped, &address, &n_bytes) < 0)
        return ENOTSUP;
    bool is_there = address != HADDR_UNDEF; /* of no bytes, too: then the table is damaged */
    chunk->offset_bytes = is_there ? address : CHUNK_ABSENT;
    chunk->size_bytes = is_there ? n_bytes : 0;
    return 0;
}

int hdf5_chunk_places(hid_t file, hid_t dataset, const struct chunk_grid *grid, const int64_t *low,
                      const int64_t *n, struct packed_chunk *ret_chunks)
{
    hsize_t block = 1, offsets[H5S_MAX_RANK];
    int64_t place[ARRAY_MAX_NDIM];
    uint64_t n_all = 1;
    _cleanup_hid_ hid_t fcpl = H5Fget_create_plist(file);
    for (int k = 0; k < grid->ndim; k++)
        n_all *= (uint64_t)n[k];
    if (n_all > HDF5_MAX_TABLE_CHUNKS || grid->n_chunks > HDF5_MAX_LOOK_UPS / n_all || fcpl <= 0 ||
        H5Pget_userblock(fcpl, &block) < 0 || block != 0 || !has_true_index(dataset, grid))
        return ENOTSUP;
    for (uint64_t i = 0; i < n_all; i++) {
        uint64_t rest = i;
        for (int k = grid->ndim - 1; k >= 0; k--) {
            place[k] = low[k] + (int64_t)(rest % (uint64_t)n[k]);
            offsets[k] = (hsize_t)(place[k] * grid->chunk_shape[k]);
            rest /= (uint64_t)n[k];
        }
        int r = look_at(dataset, offsets, &ret_chunks[i]);
        if (r)
            return r;
    }
    return 0;
}
