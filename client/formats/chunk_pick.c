/* Selections of whole chunks, or of the same part of each.
 *
 * Chunks 4 x 3 of an array 8 x 9, and what can be had without a copy:
 *
 *     [4:8, 3:]   the box of chunks below right: rows and columns begin where chunks do
 *     [2, :]      one row of the upper chunks: in each it is adjacent, 3 elements behind 6 others
 *     [1:3, 3:6]  rows 1 and 2 of one chunk, for the same reason
 *     [:, 1]      not: a column is scattered over its chunk
 *
 * So an axis may be cut inside a chunk only when all axes before it contribute one element of each
 * chunk, since a chunk is stored in C order.
 *
 * Called by hdf5.c.
 */
#include "client/formats/chunk_pick.h"
#include "proto/util.h"

/* How much of a chunk an axis takes, and from where in the chunk. False: not the same of each. */
static bool cut_axis(const struct selection_axis *axis, int64_t chunk, bool may_cut,
                     int64_t *ret_first, int64_t *ret_extent)
{
    int64_t first = axis->start % chunk;
    bool is_inside = first + axis->count <= chunk;
    *ret_first = 0;
    *ret_extent = chunk;
    if (axis->step != 1)
        return false;
    if (chunk == 1 || (first == 0 && !axis->is_dropped && axis->count > 1))
        return true;
    if (may_cut && is_inside) {
        *ret_first = first;
        *ret_extent = axis->count;
        return true;
    }
    return first == 0 && !axis->is_dropped;
}

bool chunk_pick_init(struct chunk_pick *ret_pick, const struct chunk_grid *grid,
                     const struct selection *selection, int64_t item_bytes)
{
    struct chunk_pick pick = {.box = *grid};
    int64_t extents[ARRAY_MAX_NDIM], shape[ARRAY_MAX_NDIM], chunk_shape[ARRAY_MAX_NDIM];
    int64_t inner_bytes = (int64_t)grid->chunk_bytes;
    bool may_cut = true;
    if (selection_is_empty(selection))
        return false;
    pick.box.n_chunks = 1;
    for (int i = 0; i < grid->ndim; i++) {
        const struct selection_axis *axis = &selection->axes[i];
        int64_t chunk = grid->chunk_shape[i], first;
        if (!cut_axis(axis, chunk, may_cut, &first, &extents[i]))
            return false;
        inner_bytes /= chunk;
        pick.skip_bytes += (uint64_t)(first * inner_bytes);
        pick.origin[i] = axis->start - axis->start % chunk;
        pick.box.n_chunks_of[i] = (axis->start + axis->count - 1) / chunk - axis->start / chunk + 1;
        pick.box.n_chunks *= (uint64_t)pick.box.n_chunks_of[i];
        may_cut = may_cut && extents[i] == 1;
    }
    for (int i = 0; i < selection->ndim; i++) {
        int axis = selection->axis_of[i];
        shape[i] = selection_size(selection, i);
        chunk_shape[i] = axis == SELECTION_NEW_AXIS ? 1 : extents[axis];
    }
    if (!chunk_grid_init(&pick.grid, selection->ndim, shape, chunk_shape, item_bytes) ||
        pick.grid.n_chunks != pick.box.n_chunks)
        return false;
    *ret_pick = pick;
    return true;
}
