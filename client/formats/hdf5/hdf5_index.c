/* Damaged indexes of chunks.
 *
 * The oldest kind of index, a B-tree, has no checksum, and HDF5 before 2.0 believes the places of
 * chunks that are in it: it rounds one down that is between two, and never asks for one beyond the
 * dataset or a second one of the same place. The places that such chunks have left read as the
 * fill value. So the chunks of the index are counted, and so are those that are found where a chunk
 * can be; where the numbers differ, a walk through the index finds the one that is wrong. A chunk
 * of no bytes is not found either.
 *
 * HDF5 1.10 walks from the start for each chunk that is asked for by its number, so few are.
 *
 * Called by hdf5.c and hdf5_provider.c.
 */
#include "client/formats/hdf5/hdf5_index.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_PLACES 65536
#define MAX_WALKED 4096

static bool count_chunks(hid_t dataset, uint64_t *ret_n)
{
    hsize_t n = 0;
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    if (space <= 0 || H5Dget_num_chunks(dataset, space, &n) < 0)
        return false;
    *ret_n = n;
    return true;
}

/* Looked up one by one, each in the time of a path through the tree. */
static uint64_t count_found(hid_t dataset, const struct chunk_grid *grid)
{
    uint64_t n_found = 0;
    for (uint64_t i = 0; i < grid->n_chunks; i++) {
        int64_t start[ARRAY_MAX_NDIM];
        hsize_t offsets[H5S_MAX_RANK] = {0}, n_bytes = 0;
        chunk_grid_start(grid, i, start);
        for (int k = 0; k < grid->ndim; k++)
            offsets[k] = (hsize_t)start[k];
        n_found += H5Dget_chunk_storage_size(dataset, offsets, &n_bytes) >= 0 && n_bytes > 0;
    }
    return n_found;
}

/* What is wrong with the place; NULL: nothing. ret_index: the chunk's in the grid. */
static const char *wrong_place(const struct chunk_grid *grid, const hsize_t *offsets,
                               const hsize_t *dims, uint64_t *ret_index)
{
    *ret_index = 0;
    for (int k = 0; k < grid->ndim; k++) {
        hsize_t chunk = (hsize_t)grid->chunk_shape[k];
        if (offsets[k] >= dims[k])
            return "is beyond the dataset";
        if (offsets[k] % chunk != 0)
            return "begins between two chunks";
        *ret_index = *ret_index * ((dims[k] - 1) / chunk + 1) + offsets[k] / chunk;
    }
    return NULL;
}

static void say_chunk(const struct chunk_grid *grid, const hsize_t *offsets, haddr_t address,
                      const char *wrong, char *ret_reason)
{
    size_t n = (size_t)snprintf(ret_reason, HDF5_INDEX_REASON, "the chunk at (");
    for (int k = 0; k < grid->ndim && n < HDF5_INDEX_REASON; k++)
        n += (size_t)snprintf(ret_reason + n, HDF5_INDEX_REASON - n, "%s%" PRIu64, k ? ", " : "",
                              (uint64_t)offsets[k]);
    if (n < HDF5_INDEX_REASON)
        snprintf(ret_reason + n, HDF5_INDEX_REASON - n, "%s), at byte %" PRIu64 ", %s",
                 grid->ndim == 1 ? "," : "", (uint64_t)address, wrong);
}

/* True: one of the first n_walked chunks of the index is wrong. */
static bool walk(hid_t dataset, const struct chunk_grid *grid, uint64_t n_walked, char *ret_reason)
{
    uint64_t indices[MAX_WALKED], n_seen = 0;
    hsize_t offsets[H5S_MAX_RANK], dims[H5S_MAX_RANK], n_bytes;
    haddr_t address;
    unsigned mask;
    _cleanup_hid_ hid_t space = H5Dget_space(dataset);
    if (space <= 0 || H5Sget_simple_extent_dims(space, dims, NULL) != grid->ndim)
        return false;
    for (uint64_t i = 0; i < n_walked; i++) {
        if (H5Dget_chunk_info(dataset, space, i, offsets, &mask, &address, &n_bytes) < 0)
            return false;
        const char *wrong = wrong_place(grid, offsets, dims, &indices[n_seen]);
        if (!wrong && n_bytes == 0)
            wrong = "has no bytes";
        for (uint64_t k = n_seen; k-- > 0 && !wrong;)
            if (indices[k] == indices[n_seen])
                wrong = "is there twice";
        n_seen++;
        if (!wrong)
            continue;
        say_chunk(grid, offsets, address, wrong, ret_reason);
        return true;
    }
    return false;
}

bool hdf5_index_is_damaged(hid_t dataset, const struct chunk_grid *grid,
                           char ret_reason[HDF5_INDEX_REASON])
{
    H5D_chunk_index_t kind;
    uint64_t n_stored, n_found;
    if (grid->n_chunks > MAX_PLACES || H5Dget_chunk_index_type(dataset, &kind) < 0 ||
        kind != H5D_CHUNK_IDX_BTREE || !count_chunks(dataset, &n_stored) ||
        (n_found = count_found(dataset, grid)) == n_stored)
        return false;
    if (!walk(dataset, grid, min_u64(n_stored, MAX_WALKED), ret_reason))
        snprintf(ret_reason, HDF5_INDEX_REASON,
                 "of its %" PRIu64 " chunks %" PRIu64 " are where chunks can be", n_stored,
                 n_found);
    return true;
}
