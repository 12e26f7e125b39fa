/* Grids of chunks: how many, where each begins, and whether a table of them can be true.
 *
 * The numbers come from a file that somebody else wrote: a chunk may be larger than the array, the
 * table may point behind the end of the file. Chunks may share bytes or lie in any order; the
 * worker checks the table again, since it does not trust us.
 *
 * Called by hdf5_chunks.c and hdf5_provider.c, and by the fuzz target.
 */
#include "client/formats/chunk_grid.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>

bool chunk_grid_init(struct chunk_grid *ret_grid, int ndim, const int64_t *shape,
                     const int64_t *chunk_shape, int64_t item_bytes)
{
    struct chunk_grid grid = {.ndim = ndim};
    int64_t n_chunks = 1, n_bytes = item_bytes;
    if (ndim < 1 || ndim > ARRAY_MAX_NDIM)
        return false;
    for (int i = 0; i < ndim; i++) {
        if (chunk_shape[i] < 1 || shape[i] < 1)
            return false;
        grid.chunk_shape[i] = chunk_shape[i];
        grid.n_chunks_of[i] = (shape[i] - 1) / chunk_shape[i] + 1;
        if (mul_overflows_i64(n_chunks, grid.n_chunks_of[i], &n_chunks) ||
            mul_overflows_i64(n_bytes, chunk_shape[i], &n_bytes))
            return false;
    }
    grid.n_chunks = (uint64_t)n_chunks;
    grid.chunk_bytes = (uint64_t)n_bytes;
    *ret_grid = grid;
    return true;
}

void chunk_grid_start(const struct chunk_grid *grid, uint64_t index, int64_t *ret_start)
{
    for (int i = grid->ndim - 1; i >= 0; i--) {
        uint64_t n = (uint64_t)grid->n_chunks_of[i];
        ret_start[i] = (int64_t)(index % n) * grid->chunk_shape[i];
        index /= n;
    }
}

const char *chunk_place_text(const struct chunk_grid *grid, uint64_t index, char *buffer,
                             size_t n_bytes)
{
    int64_t place[ARRAY_MAX_NDIM];
    size_t used = 0;
    chunk_grid_start(grid, index, place);
    for (int i = 0; i < grid->ndim && used < n_bytes; i++)
        used +=
            (size_t)snprintf(buffer + used, n_bytes - used, "%s%" PRId64, i ? ", " : "(", place[i]);
    if (used < n_bytes)
        snprintf(buffer + used, n_bytes - used, ")");
    return buffer;
}

int chunk_table_check(const struct chunk_grid *grid, const struct chunk_entry *entries,
                      uint64_t n_entries, uint64_t file_bytes, const char *name,
                      uint64_t *ret_n_absent, struct gad_error *error)
{
    uint64_t n_absent = 0, end;
    if (n_entries != grid->n_chunks)
        return error_set(error, GAD_BAD_CHUNK_TABLE, name,
                         "%" PRIu64 " chunks for a grid of %" PRIu64, n_entries, grid->n_chunks);
    for (uint64_t i = 0; i < n_entries; i++) {
        if (entries[i].offset_bytes == CHUNK_ABSENT) {
            n_absent++;
            continue;
        }
        if (entries[i].size_bytes != grid->chunk_bytes ||
            __builtin_add_overflow(entries[i].offset_bytes, grid->chunk_bytes, &end)) {
            error_set(error, GAD_BAD_CHUNK_TABLE, name, "chunk %" PRIu64 " is not whole", i);
            error_expected(error, "%" PRIu64 " bytes", grid->chunk_bytes);
            error_found(error, "%" PRIu64 " bytes at %" PRIu64, entries[i].size_bytes,
                        entries[i].offset_bytes);
            return GAD_BAD_CHUNK_TABLE;
        }
        if (end > file_bytes) {
            error_set(error, GAD_SHORT_READ, name,
                      "chunk %" PRIu64 " ends at byte %" PRIu64 ", the file at %" PRIu64, i, end,
                      file_bytes);
            error_expected(error, "%" PRIu64 " bytes", end);
            error_found(error, "%" PRIu64 " bytes", file_bytes);
            return GAD_SHORT_READ;
        }
    }
    *ret_n_absent = n_absent;
    return 0;
}
