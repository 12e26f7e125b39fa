/* How an iteration space is cut into grains. Pure code; called by plan_make() for every pass, and
 * by the worker for every grain.
 *
 * Three steps, all functions of shapes, dtypes and layouts only:
 *
 * 1. The walking order. Every source says, for each two axes that it really has (longer than 1,
 * with different strides), which is the slower. Where no two sources contradict each other, that is
 *    the order; where no source has an opinion the outputs are asked; else it is C order.
 * 2. The smallest piece: one element, or one chunk where a source is a grid of chunks. A chunk that
 *    does not fit is divided along its slowest axes, by a divisor of its length where there is one
 *    near (else a grain may meet two chunks along that axis).
 * 3. Growth. Where some operand lies against the walking order, first every such layout gets runs
 * of about RUN_TARGET_BYTES, shortest first. Then axes are taken from the fastest on, whole while
 *    they fit; the first that does not fit is split into nearly equal parts whose byte runs are
 *    multiples of a page where that costs little.
 *
 * Invariant of step 3: the current extents always fit. "Fits" means: every operand's packed box is
 * within GRAIN_MAX_OPERAND_BYTES, all boxes, each rounded up to the alignment inside a slot, are
 * within GRAIN_MAX_TOTAL_BYTES, and there are not more elements than bytes of one operand (so that
 * broadcasting small operands against each other does not make grains of endless work).
 */
#include "kernels/geometry.h"
#include "proto/request.h"
#include "proto/util.h"

#include <assert.h>

#define SLOT_ALIGN_BYTES   64
#define RUN_TARGET_BYTES   1024
#define MAX_ELEMENTS       ((int64_t)GRAIN_MAX_OPERAND_BYTES)
#define MAX_DIVISOR_SEARCH 4096
#define MAX_OPERANDS       (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS)
#define MAX_ALIGN_ELEMENTS 4096 /* a page of the smallest element */
#define MIN_ALIGN_ELEMENTS 16
#define BROADCAST_STRIDE   0

struct cutter {
    struct geometry *g;
    unsigned n_operands;
    const struct geometry_operand *operands;
    int64_t unit[ARRAY_MAX_NDIM]; /* extents are multiples of it, or the whole axis */
};

struct votes {
    uint32_t before[ARRAY_MAX_NDIM]; /* bit i of before[j]: axis i is slower than axis j */
    bool has_any, has_conflict;
};

_Static_assert(ARRAY_MAX_NDIM <= 32, "a set of axes is a uint32_t");
_Static_assert(MAX_OPERANDS *SLOT_ALIGN_BYTES <= GRAIN_MAX_TOTAL_BYTES, "one element always fits");

static int64_t multiply_saturating(int64_t a, int64_t b)
{
    int64_t product;

    assert(a >= 0 && b >= 0);
    return mul_overflows_i64(a, b, &product) ? INT64_MAX : product;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    assert(a >= 0 && b > 0);
    return a / b + (a % b != 0);
}

/* Whether the operand has this axis of the space, and it is no broadcast one. */
static bool has_axis(const struct geometry *g, const struct geometry_operand *operand, int axis)
{
    int own = axis - (g->ndim - operand->ndim);

    return own >= 0 && operand->shape[own] > 1;
}

/* Step between neighbours along each axis of the space, without sign; BROADCAST_STRIDE where the
 * operand does not move. */
static void get_strides(const struct geometry *g, const struct geometry_operand *operand,
                        uint64_t *ret_strides)
{
    int n_missing = g->ndim - operand->ndim;
    uint64_t c_stride = dtype_size(operand->dtype);

    for (int axis = g->ndim - 1; axis >= 0; axis--) {
        if (!has_axis(g, operand, axis)) {
            ret_strides[axis] = BROADCAST_STRIDE;
            continue;
        }
        int64_t stride = operand->strides ? operand->strides[axis - n_missing] : 0;
        if (!operand->strides || operand->chunk_shape)
            ret_strides[axis] = c_stride;
        else
            ret_strides[axis] = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
        if (__builtin_mul_overflow(c_stride, (uint64_t)operand->shape[axis - n_missing], &c_stride))
            c_stride = UINT64_MAX;
    }
}

static void vote(const struct geometry *g, const struct geometry_operand *operand,
                 struct votes *votes)
{
    uint64_t strides[ARRAY_MAX_NDIM];

    get_strides(g, operand, strides);
    for (int i = 0; i < g->ndim; i++) {
        for (int j = i + 1; j < g->ndim; j++) {
            if (strides[i] == BROADCAST_STRIDE || strides[j] == BROADCAST_STRIDE ||
                strides[i] == strides[j])
                continue;
            int slow = strides[i] > strides[j] ? i : j, fast = slow == i ? j : i;
            votes->before[fast] |= UINT32_C(1) << slow;
            votes->has_any = true;
            if (votes->before[slow] >> fast & 1)
                votes->has_conflict = true;
        }
    }
}

static void set_c_order(struct geometry *g)
{
    for (int i = 0; i < g->ndim; i++)
        g->axis_order[i] = i;
}

/* The order that the votes ask for, free choices in C order; false if they go round in a circle. */
static bool set_voted_order(struct geometry *g, const struct votes *votes)
{
    uint32_t placed = 0;

    for (int position = 0; position < g->ndim; position++) {
        int axis = 0;
        while (axis < g->ndim && ((placed >> axis & 1) || (votes->before[axis] & ~placed)))
            axis++;
        if (axis == g->ndim)
            return false;
        g->axis_order[position] = axis;
        placed |= UINT32_C(1) << axis;
    }
    return true;
}

static void choose_order(struct cutter *c)
{
    struct votes votes = {.has_any = false};

    for (int round = 0; round < 2 && !votes.has_any; round++) {
        for (unsigned i = 0; i < c->n_operands; i++) {
            if (c->operands[i].is_output == (round == 1))
                vote(c->g, &c->operands[i], &votes);
        }
    }
    if (votes.has_conflict || !set_voted_order(c->g, &votes))
        set_c_order(c->g);
}

/* Whether some operand is slower along an axis that is walked faster. */
static bool has_contrary_layout(const struct cutter *c)
{
    const struct geometry *g = c->g;

    for (unsigned n = 0; n < c->n_operands; n++) {
        uint64_t strides[ARRAY_MAX_NDIM];
        uint64_t least = UINT64_MAX;
        get_strides(g, &c->operands[n], strides);
        for (int i = 0; i < g->ndim; i++) {
            uint64_t stride = strides[g->axis_order[i]];
            if (stride == BROADCAST_STRIDE)
                continue;
            if (stride > least)
                return true;
            least = stride;
        }
    }
    return false;
}

/* Whether the current extents fit when `axis` had this one (axis -1: as they are). */
static bool fits(const struct cutter *c, int axis, int64_t extent)
{
    const struct geometry *g = c->g;
    int64_t n_elements = 1, n_total = 0;

    for (int i = 0; i < g->ndim; i++)
        n_elements = multiply_saturating(n_elements, i == axis ? extent : g->grain_shape[i]);
    if (n_elements > MAX_ELEMENTS)
        return false;
    for (unsigned n = 0; n < c->n_operands; n++) {
        int64_t n_bytes = (int64_t)dtype_size(c->operands[n].dtype);
        for (int i = 0; i < g->ndim; i++) {
            if (has_axis(g, &c->operands[n], i))
                n_bytes *= i == axis ? extent : g->grain_shape[i]; /* <= 8 x MAX_ELEMENTS */
        }
        if (n_bytes > GRAIN_MAX_OPERAND_BYTES)
            return false;
        n_total += (int64_t)round_up_u64((uint64_t)n_bytes, SLOT_ALIGN_BYTES);
    }
    return n_total <= GRAIN_MAX_TOTAL_BYTES;
}

/* The largest extent up to `limit` that fits and keeps to the units; at least the current one. */
static int64_t largest_extent(const struct cutter *c, int axis, int64_t limit)
{
    int64_t unit = c->unit[axis];

    if (fits(c, axis, limit))
        return limit;
    int64_t good = divide_up(c->g->grain_shape[axis], unit), bad = divide_up(limit, unit);
    if (bad > MAX_ELEMENTS / unit + 1)
        bad = MAX_ELEMENTS / unit + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (fits(c, axis, middle * unit))
            good = middle;
        else
            bad = middle;
    }
    int64_t extent = good * unit;
    return extent < c->g->grain_shape[axis] ? c->g->grain_shape[axis] : extent;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Puts the chunks of the first grid (or the common multiple of all grids' chunks) into the units
 * and the extents; all ones without a grid. */
static void set_chunk_units(struct cutter *c, bool is_common)
{
    struct geometry *g = c->g;
    bool is_first = true;

    for (int i = 0; i < g->ndim; i++)
        g->grain_shape[i] = c->unit[i] = 1;
    for (unsigned n = 0; n < c->n_operands && (is_first || is_common); n++) {
        const struct geometry_operand *operand = &c->operands[n];
        if (!operand->chunk_shape)
            continue;
        is_first = false;
        for (int i = 0; i < g->ndim; i++) {
            if (!has_axis(g, operand, i))
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

/* The largest divisor of a chunk's length between a quarter of `extent` and `extent`, or extent. */
static int64_t near_divisor(int64_t chunk, int64_t extent)
{
    int64_t last = extent / 4;

    if (last < extent - MAX_DIVISOR_SEARCH)
        last = extent - MAX_DIVISOR_SEARCH;
    for (int64_t i = extent; i > last; i--) {
        if (chunk % i == 0)
            return i;
    }
    return extent;
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
        if (!fits(c, -1, 0))
            continue;
        g->grain_shape[axis] = near_divisor(chunk, largest_extent(c, axis, chunk));
        return;
    }
    assert(!"one element of each operand fits a slot");
}

/* Rounds an extent down so that it and the faster axes make runs of whole pages, or of smaller
 * powers of two, where that loses at most a quarter. */
static int64_t align_step(int64_t extent, int64_t n_inner)
{
    for (int64_t align = MAX_ALIGN_ELEMENTS; align >= MIN_ALIGN_ELEMENTS; align /= 2) {
        int64_t step = align / greatest_common_divisor(align, n_inner);
        if (extent >= step && extent % step <= extent / 4)
            return step;
    }
    return 1;
}

/* The extent of the axis that is split: nearly equal parts, none larger than `extent`. */
static int64_t even_out(const struct cutter *c, int axis, int64_t extent)
{
    const struct geometry *g = c->g;
    int64_t step = c->unit[axis], n_inner = 1;

    for (int i = 0; i < g->ndim; i++)
        n_inner *= i == axis ? 1 : g->grain_shape[i];
    if (step == 1)
        step = align_step(extent, n_inner);
    extent -= extent % step;
    int64_t n_parts = divide_up(g->shape[axis], extent);
    int64_t even = multiply_saturating(divide_up(divide_up(g->shape[axis], n_parts), step), step);
    assert(even <= extent);
    return even;
}

/* How long an operand's runs of neighbouring bytes are in a grain, and along which axis growth
 * would make them longer (-1: it is whole). */
static int64_t run_bytes(const struct cutter *c, const struct geometry_operand *operand,
                         int *ret_axis)
{
    const struct geometry *g = c->g;
    uint64_t strides[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    get_strides(g, operand, strides);
    for (;;) {
        int fastest = -1;
        for (int i = 0; i < g->ndim; i++) {
            if (strides[i] != BROADCAST_STRIDE && (fastest < 0 || strides[i] <= strides[fastest]))
                fastest = i;
        }
        *ret_axis = fastest;
        if (fastest < 0)
            return n_bytes;
        n_bytes *= g->grain_shape[fastest];
        if (g->grain_shape[fastest] < g->shape[fastest])
            return n_bytes;
        strides[fastest] = BROADCAST_STRIDE;
    }
}

/* Layouts contradict: a block with runs of a useful length for each. */
static void balance(struct cutter *c)
{
    struct geometry *g = c->g;
    bool is_done[MAX_OPERANDS] = {false};

    for (;;) {
        int best_axis = -1;
        unsigned best = 0;
        int64_t best_run = RUN_TARGET_BYTES;
        for (unsigned n = 0; n < c->n_operands; n++) {
            int axis = -1;
            int64_t run = is_done[n] ? RUN_TARGET_BYTES : run_bytes(c, &c->operands[n], &axis);
            if (run >= best_run || axis < 0)
                continue;
            best = n;
            best_run = run;
            best_axis = axis;
        }
        if (best_axis < 0)
            return;
        int64_t wanted = multiply_saturating(g->grain_shape[best_axis], 2);
        if (wanted > g->shape[best_axis])
            wanted = g->shape[best_axis];
        int64_t extent = largest_extent(c, best_axis, wanted);
        if (extent < wanted) {
            is_done[best] = true;
            if (c->unit[best_axis] == 1 && extent >= 2 * MIN_ALIGN_ELEMENTS)
                extent -= extent % MIN_ALIGN_ELEMENTS;
            if (extent < g->grain_shape[best_axis])
                continue;
        }
        g->grain_shape[best_axis] = extent;
    }
}

/* Axes from the fastest on: whole while they fit; the first that does not is split. */
static void fill(struct cutter *c)
{
    struct geometry *g = c->g;

    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        int64_t extent = largest_extent(c, axis, g->shape[axis]);
        if (extent < g->shape[axis]) {
            g->grain_shape[axis] = even_out(c, axis, extent);
            return;
        }
        g->grain_shape[axis] = extent;
    }
}

static void choose_grain_shape(struct cutter *c)
{
    set_chunk_units(c, true);
    if (!fits(c, -1, 0))
        set_chunk_units(c, false);
    if (!fits(c, -1, 0)) {
        divide_chunk(c);
        return;
    }
    if (has_contrary_layout(c))
        balance(c);
    fill(c);
}

static void set_grid(struct geometry *g)
{
    g->n_grains = 1;
    for (int i = 0; i < g->ndim; i++) {
        g->grid[i] = divide_up(g->shape[i], g->grain_shape[i]);
        bool overflows = __builtin_mul_overflow(g->n_grains, (uint64_t)g->grid[i], &g->n_grains);
        assert(!overflows);
        (void)overflows;
    }
}

void geometry_init(struct geometry *g, int ndim, const int64_t *shape, unsigned n_operands,
                   const struct geometry_operand *operands)
{
    struct cutter c = {.g = g, .n_operands = n_operands, .operands = operands};
    bool is_empty = false;

    assert(ndim >= 0 && ndim <= ARRAY_MAX_NDIM);
    assert(n_operands <= MAX_OPERANDS);
    *g = (struct geometry){.ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        assert(shape[i] >= 0);
        g->shape[i] = shape[i];
        g->grain_shape[i] = shape[i] > 0 ? shape[i] : 1;
        is_empty |= shape[i] == 0;
    }
    if (is_empty) {
        set_c_order(g);
        for (int i = 0; i < ndim; i++)
            g->grid[i] = shape[i] > 0;
        return;
    }
    choose_order(&c);
    choose_grain_shape(&c);
    set_grid(g);
}

void geometry_grain(const struct geometry *g, uint64_t grain, int64_t *ret_start,
                    int64_t *ret_count)
{
    assert(grain < g->n_grains);
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        int64_t index = (int64_t)(grain % (uint64_t)g->grid[axis]);
        int64_t start = index * g->grain_shape[axis], left = g->shape[axis] - start;
        grain /= (uint64_t)g->grid[axis];
        ret_start[axis] = start;
        ret_count[axis] = left < g->grain_shape[axis] ? left : g->grain_shape[axis];
    }
}

void geometry_operand_box(int ndim, const int64_t *start, const int64_t *count, int operand_ndim,
                          const int64_t *operand_shape, int64_t *ret_start, int64_t *ret_count)
{
    int n_missing = ndim - operand_ndim;

    assert(n_missing >= 0);
    for (int i = 0; i < operand_ndim; i++) {
        bool is_broadcast = operand_shape[i] == 1;
        ret_start[i] = is_broadcast ? 0 : start[n_missing + i];
        ret_count[i] = is_broadcast ? 1 : count[n_missing + i];
    }
}
