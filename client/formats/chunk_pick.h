/* The chunks that a selection needs, where what is selected is a grid of chunks itself. Pure. */
#pragma once

#include "client/formats/chunk_grid.h"
#include "client/formats/selection.h"

struct chunk_pick {
    struct chunk_grid box;          /* of the source's chunks: those that are needed */
    int64_t origin[ARRAY_MAX_NDIM]; /* the first element of the first of them, in the source */
    uint64_t skip_bytes;            /* from a chunk's beginning to the part that is needed */
    struct chunk_grid grid;         /* of what is selected */
};

/* grid: the source's. False: what is selected is no such grid (steps, cuts through chunks), or has
 * no dimensions or no elements. */
bool chunk_pick_init(struct chunk_pick *ret_pick, const struct chunk_grid *grid,
                     const struct selection *selection, int64_t item_bytes);
