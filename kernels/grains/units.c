/* Chunks as the units of grains: the smallest piece is one element, or one chunk where a source is
 * a grid of chunks; where there are several grids, the common multiple of their chunks if it fits,
 * else the first grid's. A chunk that does not fit is divided along its slowest axes, by a divisor
 * of its length where there is one near (else a grain may meet two chunks along that axis).
 *
 * A chunk as narrow as a column would cut the rows of a file that is written to pieces: it is
 * divided until a grain has runs of a useful length of the rows. These are the shorter the more
 * grids there are: their chunks are divided for it, all of them. Parts of a chunk that is decoded
 * are neighbours then.
 *
 * Where axes are reduced, kept.c divides it first.
 *
 * Called by geometry.c.
 */
#include "kernels/grains/cutter.h"
#include "proto/util.h"

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
            int64_t common = common_divisor_i64(c->unit[i], chunk);
            c->unit[i] = mul_saturating_i64(c->unit[i] / common, chunk);
        }
    }
    for (int i = 0; i < g->ndim; i++) {
        if (c->unit[i] > g->shape[i])
            c->unit[i] = g->shape[i];
        g->grain_shape[i] = c->unit[i];
    }
}

/* The chunk is in parts along the axis. kept.c has its own for passes that reduce. */
static void note_parts(struct cutter *c, int axis)
{
    for (unsigned n = 0; n < c->n_operands && !c->rules->reduced_axes; n++)
        if (c->operands[n].chunk_shape && c->operands[n].is_decoded)
            c->divided_axes |= UINT32_C(1) << axis;
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
        if (chunk > 1)
            note_parts(c, axis);
        if (!cutter_fits(c, -1, 0))
            continue;
        g->grain_shape[axis] = cutter_near_divisor(chunk, cutter_largest_extent(c, axis, chunk));
        return;
    }
    g->is_too_large = true;
}

/* Less along the slowest axes that are not kept until `axis` may have this extent; false if it
 * never may. */
static bool make_room(struct cutter *c, uint32_t kept_axes, int axis, int64_t wanted)
{
    struct geometry *g = c->g;

    for (int i = 0; !cutter_fits(c, axis, wanted);) {
        int other = g->axis_order[i];
        if (kept_axes >> other & 1 || g->grain_shape[other] == 1) {
            if (++i == g->ndim)
                return false;
            continue;
        }
        int64_t extent = cutter_near_divisor(c->unit[other], g->grain_shape[other] / 2);
        c->unit[other] = g->grain_shape[other] = extent;
        note_parts(c, other);
    }
    return true;
}

static void part_chunks_for(struct cutter *c, const struct geometry_operand *operand,
                            int64_t wanted_bytes)
{
    struct geometry *g = c->g;
    uint32_t grown_axes = 0; /* they are not made less again, so this ends */
    int axis;

    for (int64_t run; (run = cutter_run_bytes(c, operand, &axis)) < wanted_bytes && axis >= 0;) {
        int64_t n = divide_up_i64(wanted_bytes, run / g->grain_shape[axis]);
        int64_t wanted = mul_saturating_i64(divide_up_i64(n, c->unit[axis]), c->unit[axis]);
        if (wanted > g->shape[axis])
            wanted = g->shape[axis];
        grown_axes |= UINT32_C(1) << axis;
        if (!make_room(c, grown_axes, axis, wanted))
            return;
        g->grain_shape[axis] = wanted;
    }
}

/* What counts is the number of pieces, not their bytes. */
static int64_t run_bytes(const struct geometry_operand *operand, int64_t n_grids)
{
    int64_t n = CUTTER_RUN_BYTES / (int64_t)sizeof(double) / n_grids;

    return (n > 1 ? n : 1) * (int64_t)dtype_size(operand->dtype);
}

static void part_chunks(struct cutter *c)
{
    int64_t n_grids = 0;

    for (unsigned n = 0; n < c->n_operands; n++)
        n_grids += c->operands[n].chunk_shape != NULL;
    for (unsigned n = 0; n_grids > 0 && n < c->n_operands; n++)
        if (c->operands[n].wants_runs)
            part_chunks_for(c, &c->operands[n], run_bytes(&c->operands[n], n_grids));
}

bool cutter_set_units(struct cutter *c)
{
    set_chunks(c, true);
    if (!cutter_fits(c, -1, 0))
        set_chunks(c, false);
    part_chunks(c);
    if (c->rules->reduced_axes)
        cutter_divide_reducing(c);
    if (cutter_fits(c, -1, 0))
        return true;
    divide_chunk(c);
    return false;
}
