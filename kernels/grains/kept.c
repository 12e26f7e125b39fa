/* The grains of a space of which some axes are reduced.
 *
 * A grain gives a node with a cell for each of its kept elements, and nodes are combined once a
 * grain: there should be many elements to a cell, yet the runs of neighbouring bytes should be long
 * enough to be read from a file. So where kept axes are the fast ones a grain takes about
 * RUN_BYTES of them and as much of the reduced axes as fits:
 *
 *     kept -->                                 (rows, columns) reduced along the rows:
 *     +------+------+------+   reduced         blocks of 8 rows of 32 KiB
 *     |  0   |  3   |  6   |      |
 *     +------+------+------+      v
 *     |  1   |  4   |  7   |
 *
 * Or a grain has all of the reduced axes, where what is done with a cell needs all of its elements.
 *
 * Two steps. First the extents of the reduced axes, on which the bits of the results depend: they
 * follow from shapes, dtypes and layouts alone. Axes are walked from the fastest on; a kept one is
 * taken as long as the run is short, a reduced one whole while it fits, and the first that does not
 * is split. Then the kept axes: they shrink until a node is small enough, and grow where the
 * reduced axes have left room. Runs of a file that end before its rows do are read in up to
 * LONG_RUN times the length where the nodes and the slots allow it, though an operand is as large
 * as a slot then: each of them is a system call, and memory where nothing was read before.
 *
 * Called by geometry.c and units.c.
 */
#include "kernels/grains/cutter.h"
#include "proto/util.h"

#include <assert.h>

#define RUN_BYTES       (32 * 1024)
#define LONG_RUN        4
#define MAX_FAST_CELLS  8192  /* of one byte each they would be more */
#define MAX_CHUNK_CELLS 24576 /* that are kept together */
#define SCAN_PARTS      8
#define SCAN_LEAST_RUN  1024
#define MIN_ALIGNED     64 /* extents from here on are rounded down */

/* Only the grains of one step of a scan are independent: there should be some. */
static int64_t scan_elements(const struct cutter *c, int64_t n)
{
    int64_t n_kept = 1;

    for (int axis = 0; axis < c->g->ndim; axis++)
        if (!cutter_is_reduced(c, axis))
            n_kept = mul_saturating_i64(n_kept, c->g->shape[axis]);
    if (n_kept / SCAN_PARTS >= n)
        return n;
    return n_kept / SCAN_PARTS > SCAN_LEAST_RUN ? n_kept / SCAN_PARTS : SCAN_LEAST_RUN;
}

/* As many elements as make a run of the widest source. */
static int64_t run_elements(const struct cutter *c)
{
    size_t item_bytes = 0;

    for (unsigned i = 0; i < c->n_operands; i++) {
        const struct geometry_operand *operand = &c->operands[i];
        bool is_read = !operand->is_output && !operand->is_internal;
        for (int axis = 0; is_read && axis < c->g->ndim; axis++)
            if (cutter_has_axis(c->g, operand, axis))
                item_bytes = max_u64(item_bytes, dtype_size(operand->dtype));
    }
    int64_t n =
        item_bytes == 0 ? MAX_FAST_CELLS : (int64_t)min_u64(RUN_BYTES / item_bytes, MAX_FAST_CELLS);
    return c->rules->is_scan ? scan_elements(c, n) : n;
}

/* The product of the kept axes' extents but one's (-1: of all). */
static int64_t kept_elements(const struct cutter *c, int except)
{
    int64_t n = 1;

    for (int axis = 0; axis < c->g->ndim; axis++)
        if (axis != except && !cutter_is_reduced(c, axis))
            n = mul_saturating_i64(n, c->g->grain_shape[axis]);
    return n;
}

/* Kept extents, from the slowest axis on, become less until their product is at most `limit`. */
static void shrink_kept(struct cutter *c, int64_t limit)
{
    struct geometry *g = c->g;

    for (int i = 0; i < g->ndim && kept_elements(c, -1) > limit; i++) {
        int axis = g->axis_order[i];
        if (cutter_is_reduced(c, axis) || g->grain_shape[axis] == 1)
            continue;
        int64_t others = kept_elements(c, axis), wanted = others < limit ? limit / others : 1;
        if (wanted < c->unit[axis])
            wanted = cutter_near_divisor(c->unit[axis], wanted);
        else if (c->unit[axis] > 1)
            wanted -= wanted % c->unit[axis];
        else if (wanted >= MIN_ALIGNED)
            wanted -= wanted % CUTTER_MIN_ALIGN;
        g->grain_shape[axis] = wanted;
    }
}

static void set_kept_units(struct cutter *c)
{
    for (int axis = 0; axis < c->g->ndim; axis++)
        if (!cutter_is_reduced(c, axis))
            c->unit[axis] = c->g->grain_shape[axis];
}

/* Along its reduced axes, the slowest first, until the part fits. */
static void divide_reduced_units(struct cutter *c)
{
    struct geometry *g = c->g;

    for (int i = 0; i < g->ndim && !cutter_fits(c, -1, 0); i++) {
        int axis = g->axis_order[i];
        int64_t chunk = c->unit[axis];
        if (!cutter_is_reduced(c, axis) || chunk == 1)
            continue;
        c->divided_axes |= UINT32_C(1) << axis;
        c->unit[axis] = g->grain_shape[axis] = 1;
        if (cutter_fits(c, -1, 0))
            g->grain_shape[axis] =
                cutter_near_divisor(chunk, cutter_largest_extent(c, axis, chunk));
        c->unit[axis] = g->grain_shape[axis];
    }
}

/* A chunk is best read whole, once: its kept elements stay together where a node can hold them, and
 * what does not fit a grain is its part along a reduced axis, next to the others in the chain. */
void cutter_divide_reducing(struct cutter *c)
{
    if (kept_elements(c, -1) > MAX_CHUNK_CELLS)
        shrink_kept(c, run_elements(c));
    set_kept_units(c);
    divide_reduced_units(c);
    for (int64_t n = run_elements(c); n > 1 && !cutter_fits(c, -1, 0); n /= 2)
        shrink_kept(c, n);
    set_kept_units(c);
}

static int64_t round_down(int64_t value, int64_t unit)
{
    return value - value % unit;
}

/* What the reduced extents follow from. */
static void choose_reduced(struct cutter *c)
{
    struct geometry *g = c->g;
    int64_t n_run = run_elements(c), n_inner = 1;
    bool is_run_over = false;

    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        int64_t length = g->shape[axis], limit = length;
        if (!cutter_is_reduced(c, axis)) {
            if (n_run / n_inner < length)
                limit = round_down(n_run / n_inner, c->unit[axis]);
            if (!is_run_over && limit > g->grain_shape[axis])
                g->grain_shape[axis] = cutter_largest_extent(c, axis, limit);
            is_run_over |= g->grain_shape[axis] < length;
        } else {
            int64_t extent = cutter_largest_extent(c, axis, length);
            g->grain_shape[axis] =
                extent < length ? cutter_even_out(c, axis, length, extent) : extent;
            if (extent < length)
                return;
        }
        n_inner = mul_saturating_i64(n_inner, g->grain_shape[axis]);
    }
}

/* Where the fastest axis that has several elements is kept, and in parts. */
static int64_t limit_run(struct cutter *c, int axis, int64_t limit)
{
    int64_t n_run = LONG_RUN * run_elements(c);

    if (c->rules->long_bytes == 0 || c->rules->is_scan || c->unit[axis] > 1 ||
        c->g->grain_shape[axis] == 1 || limit == c->g->shape[axis])
        return limit;
    c->has_long_runs = true;
    return limit < n_run ? limit : n_run;
}

static void grow_kept(struct cutter *c)
{
    struct geometry *g = c->g;
    int64_t n_inner = 1;

    for (int i = g->ndim - 1; i >= 0; n_inner *= g->grain_shape[g->axis_order[i--]]) {
        int axis = g->axis_order[i];
        int64_t limit = g->shape[axis], others = kept_elements(c, axis);
        if (cutter_is_reduced(c, axis))
            continue;
        if (axis == c->rules->round_axis)
            limit = (int64_t)min_u64((uint64_t)limit, (uint64_t)c->rules->round_length);
        int64_t room = (int64_t)c->rules->max_cells / others;
        if (room < limit)
            limit = round_down(room, c->unit[axis]);
        int64_t extent = g->grain_shape[axis];
        if (n_inner == 1)
            limit = limit_run(c, axis, limit);
        if (limit > extent)
            extent = cutter_largest_extent(c, axis, limit);
        if (extent < g->shape[axis] && extent >= c->unit[axis])
            extent = cutter_even_out(c, axis, g->shape[axis], extent);
        g->grain_shape[axis] = extent;
        if (extent < g->shape[axis] && axis != c->rules->round_axis)
            return;
    }
}

static void take_reduced_whole(struct cutter *c)
{
    for (int axis = 0; axis < c->g->ndim; axis++)
        if (cutter_is_reduced(c, axis))
            c->g->grain_shape[axis] = c->g->shape[axis];
    assert(cutter_fits(c, -1, 0));
}

void cutter_fill_reducing(struct cutter *c)
{
    if (c->rules->whole_elements > 0)
        take_reduced_whole(c);
    else
        choose_reduced(c);
    cutter_limit_cells(c);
    grow_kept(c);
}

void cutter_limit_cells(struct cutter *c)
{
    uint64_t limit = c->rules->max_cells, n_chunk = 1;

    for (int axis = 0; axis < c->g->ndim; axis++)
        if (!cutter_is_reduced(c, axis))
            n_chunk *= (uint64_t)c->unit[axis]; /* at most 2^18: it fits a grain */
    if (n_chunk <= c->rules->chunk_cells)
        limit = max_u64(limit, n_chunk);
    if (limit > 0)
        shrink_kept(c, (int64_t)limit);
}
