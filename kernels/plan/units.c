/* Chunks as the units of grains: the smallest piece is one element, or one chunk where a source is
 * a grid of chunks; where there are several grids, the common multiple of their chunks if it fits,
 * else the first grid's. A chunk that does not fit is divided along its slowest axes, by a divisor
 * of its length where there is one near (else a grain may meet two chunks along that axis).
 *
 * Where axes are reduced, kept.c divides it first.
 *
 * Called by geometry.c.
 */
#include "kernels/plan/cutter.h"

#include <assert.h>

/* Puts the chunks of the first grid (or the common multiple of all grids' chunks) into the units
 * and the extents; all ones without a grid. */
static void set_chunks(struct cutter *c, bool is_common)
{
    struct geometry *g = c->g;
    bool is_first = true;

    for (int i = 0; i < g->ndim; i++)
        c->unit[i] = 1;
    for (unsigned n = 0; n < c->n_operands && (is_first || is_common); n++) {
        const struct geometry_operand *operand = &c->operands[n];
        if (!operand->chunk_shape)
            continue;
        is_first = false;
        for (int i = 0; i < g->ndim; i++) {
            if (!cutter_has_axis(g, operand, i))
                continue;
            int64_t chunk = operand->chunk_shape[i - (g->ndim - operand->ndim)];
            assert(chunk > 0);
            int64_t common = greatest_common_divisor(c->unit[i], chunk);
            c->unit[i] = multiply_saturating(c->unit[i] / common, chunk);
        }
    }
    for (int i = 0; i < g->ndim; i++) {
        if (c->unit[i] > g->shape[i])
            c->unit[i] = g->shape[i];
        g->grain_shape[i] = c->unit[i];
    }
}

/* A chunk that does not fit: its slowest axes become 1 until what is left of it fits. */
static void divide_chunk(struct cutter *c)
{
    struct geometry *g = c->g;

    for (int i = 0; i < g->ndim; i++) {
        int axis = g->axis_order[i];
        int64_t chunk = c->unit[axis];
        c->unit[axis] = 1;
        g->grain_shape[axis] = 1;
        if (!cutter_fits(c, -1, 0))
            continue;
        g->grain_shape[axis] = cutter_near_divisor(chunk, cutter_largest_extent(c, axis, chunk));
        return;
    }
    assert(!"one element of each operand fits a slot");
}

bool cutter_set_units(struct cutter *c)
{
    set_chunks(c, true);
    if (!cutter_fits(c, -1, 0))
        set_chunks(c, false);
    if (c->rules->reduced_axes)
        cutter_divide_reducing(c);
    if (cutter_fits(c, -1, 0))
        return true;
    divide_chunk(c);
    return false;
}
