/* Chunks as blocks.
 *
 * A grain is often a part of a chunk, and its neighbours in the walk are the other parts. The chunk
 * is then asked for as a whole: the client decodes it straight into the slot, once, instead of into
 * a cache from which it copies the parts, and there are as many signals less. Where the walk comes
 * to something else before it has all of the chunk, each grain asks for its own box: a chunk would
 * be decoded, and moved, for each of its parts.
 *
 * Called by ring.c for each block.
 */
#include "daemon/worker/io/ring_chunk.h"

bool ring_box_is_inside(int ndim, const struct port_box *box, const struct port_box *outer)
{
    for (int i = 0; i < ndim; i++)
        if (box->start[i] < outer->start[i] ||
            box->start[i] + box->count[i] > outer->start[i] + outer->count[i])
            return false;
    return true;
}

static bool are_equal(int ndim, const struct port_box *a, const struct port_box *b)
{
    return ring_box_is_inside(ndim, a, b) && ring_box_is_inside(ndim, b, a);
}

static int64_t n_elements(int ndim, const struct port_box *box)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= box->count[i];
    return n;
}

/* False: there are none, or the box is in several. */
static bool find_chunk(const struct array *array, const struct port_box *box,
                       struct port_box *ret_chunk)
{
    const int64_t *chunk_shape = array_chunk_shape(array);
    if (!chunk_shape)
        return false;
    for (int i = 0; i < array->ndim; i++) {
        int64_t low = box->start[i] - box->start[i] % chunk_shape[i];
        int64_t left = array->shape[i] - low;
        ret_chunk->start[i] = low;
        ret_chunk->count[i] = chunk_shape[i] < left ? chunk_shape[i] : left;
    }
    return ring_box_is_inside(array->ndim, box, ret_chunk);
}

static bool is_needed_whole(int ndim, const struct port_box *chunk, const struct ring_walk *walk,
                            uint64_t position)
{
    int64_t missing = n_elements(ndim, chunk);
    struct port_box box, before;
    for (unsigned n = 0; missing > 0; n++, position++) {
        if (n == RING_POSITIONS_AHEAD || !walk->find(walk, &position))
            return false;
        walk->box(walk, position, box.start, box.count);
        if (!ring_box_is_inside(ndim, &box, chunk))
            return false;
        if (n == 0 || !are_equal(ndim, &box, &before))
            missing -= n_elements(ndim, &box);
        before = box;
    }
    return true;
}

void ring_widen_to_chunk(const struct array *array, uint64_t slot_bytes,
                         const struct ring_walk *walk, uint64_t position, struct port_box *box)
{
    struct port_box chunk;
    if (find_chunk(array, box, &chunk) &&
        (uint64_t)n_elements(array->ndim, &chunk) * dtype_size(array->dtype) <= slot_bytes &&
        is_needed_whole(array->ndim, &chunk, walk, position))
        *box = chunk;
}
