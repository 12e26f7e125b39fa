/* How an iteration space is cut into grains. Pure code; called by plan_make() for every pass, and
 * by the worker for every grain.
 *
 * Steps, all functions of shapes, dtypes and layouts only, but where kept extents are limited,
 * which changes no bit:
 *
 * 1. The walking order (order.c).
 * 2. The smallest piece: one element, or a chunk (units.c).
 * 3. Growth. Where some operand lies against the walking order, first every such layout gets runs
 *    of about CUTTER_RUN_BYTES, shortest first. Then axes are taken from the fastest on, whole
 *    while they fit; the first that does not fit is split into nearly equal parts whose byte runs
 *    are multiples of a page where that costs little. Where axes are reduced: kept.c.
 * 4. Rounds: a grain's extent along the round axis becomes a divisor of the round's length.
 *
 * Invariant of step 3: the current extents always fit (fit.c says what that means).
 *
 * Grains are numbered in the order of grid_order, its last axis running fastest: that of the
 * rounds, then the kept axes, then the reduced ones, each in walking order; last those along which
 * a chunk is in parts, so that its parts are neighbours.
 */
#include "kernels/grains/cutter.h"
#include "proto/util.h"

#include <assert.h>

#define ENDLESS             (INT64_C(1) << 40)
#define RESULT_RUN_ELEMENTS 8192
#define MAX_DIVISOR_SEARCH  4096
#define GATHERED_RUN_BYTES  (32 * 1024)
#define GATHERED_TIMES      16  /* of what lies around it, a grain should be longer */
#define STEPS_RUN           256 /* elements, as if they were around it along the fastest axis */
#define STEPS_LEAST_RUN     16  /* likewise, where as many lie around it along others */
#define WINDOWS_ALIGN       64  /* elements of windows' rows, that their results begin at lines */

/* Layouts contradict: a block with runs of a useful length for each. */
static void balance(struct cutter *c)
{
    struct geometry *g = c->g;
    bool is_done[CUTTER_MAX_OPERANDS] = {false};

    for (;;) {
        int best_axis = -1;
        unsigned best = 0;
        int64_t best_run = CUTTER_RUN_BYTES;
        for (unsigned n = 0; n < c->n_operands; n++) {
            int axis = -1;
            bool is_asked = !is_done[n] && !c->operands[n].is_internal;
            int64_t run =
                is_asked ? cutter_run_bytes(c, &c->operands[n], &axis) : (int64_t)CUTTER_RUN_BYTES;
            if (run >= best_run || axis < 0)
                continue;
            best = n;
            best_run = run;
            best_axis = axis;
        }
        if (best_axis < 0)
            return;
        int64_t wanted = mul_saturating_i64(g->grain_shape[best_axis], 2);
        if (wanted > g->shape[best_axis])
            wanted = g->shape[best_axis];
        int64_t extent = cutter_largest_extent(c, best_axis, wanted);
        if (extent < wanted) {
            is_done[best] = true;
            if (c->unit[best_axis] == 1 && extent >= 2 * CUTTER_MIN_ALIGN)
                extent -= extent % CUTTER_MIN_ALIGN;
            if (extent < g->grain_shape[best_axis])
                continue;
        }
        g->grain_shape[best_axis] = extent;
    }
}

/* How far an axis may grow: to its end, or to that of a round. */
static int64_t limit_of(const struct cutter *c, int axis)
{
    int64_t length = c->g->shape[axis];

    if (axis == c->rules->round_axis && c->rules->round_length < length)
        return c->rules->round_length;
    return length;
}

/* Whether a result of an earlier pass has other values along this axis. */
static bool results_move(const struct cutter *c, int axis)
{
    for (unsigned n = 0; n < c->n_operands; n++)
        if (c->operands[n].is_internal && cutter_has_axis(c->g, &c->operands[n], axis))
            return true;
    return false;
}

/* Whether results that move along the fastest axes stand still along another: then the same values
 * are read many times, if only a grain is not too long. */
static bool repeats_results(const struct cutter *c)
{
    const struct geometry *g = c->g;
    bool does_move = false;

    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        if (g->shape[axis] == 1)
            continue;
        if (!results_move(c, axis))
            return does_move;
        does_move = true;
    }
    return false;
}

/* Axes from the fastest on: whole while they fit; the first that does not is split. Where results
 * repeat, the axes along which they move end after a run of a useful length, and others go on. */
static void fill(struct cutter *c)
{
    struct geometry *g = c->g;
    int64_t n_left = repeats_results(c) ? RESULT_RUN_ELEMENTS : 0; /* of the run; 0: no matter */

    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        int64_t limit = limit_of(c, axis), wanted = limit;
        if (n_left >= c->unit[axis] && n_left < limit && results_move(c, axis))
            wanted = n_left - n_left % c->unit[axis];
        if (wanted > g->grain_shape[axis]) {
            int64_t extent = cutter_largest_extent(c, axis, wanted);
            g->grain_shape[axis] =
                extent < limit ? cutter_even_out(c, axis, g->shape[axis], extent) : extent;
            if (extent < wanted)
                return;
        }
        n_left = wanted < limit ? 0 : n_left / g->grain_shape[axis];
    }
}

/* The most elements that operands' boxes have more along this axis. */
static int64_t reach_of(const struct cutter *c, int axis)
{
    int64_t reach = 0;

    for (unsigned n = 0; n < c->n_operands; n++) {
        const struct geometry_operand *operand = &c->operands[n];
        int own = axis - (c->g->ndim - operand->ndim);
        if (operand->reach && own >= 0 && operand->reach[own] > reach)
            reach = operand->reach[own];
    }
    return reach;
}

/* The less lies around a grain the better: runs are no longer than is useful, and grains as long
 * along the other axes as there is room for. */
static void gather(struct cutter *c)
{
    struct geometry *g = c->g;
    int64_t run = GATHERED_RUN_BYTES;

    for (unsigned n = 0; n < c->n_operands; n++)
        if (c->operands[n].reach)
            run = min_i64(run, GATHERED_RUN_BYTES / (int64_t)dtype_size(c->operands[n].dtype));
    c->has_long_runs = c->rules->long_bytes > 0;
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        int64_t wanted = run > 1 ? run : mul_saturating_i64(reach_of(c, axis), GATHERED_TIMES);
        wanted = min_i64(wanted - wanted % c->unit[axis], limit_of(c, axis));
        if (wanted > g->grain_shape[axis])
            g->grain_shape[axis] = cutter_largest_extent(c, axis, wanted);
        run /= g->grain_shape[axis];
    }
}

static bool has_windows(const struct cutter *c)
{
    for (unsigned n = 0; n < c->n_operands; n++)
        if (c->operands[n].is_window)
            return true;
    return false;
}

/* Rows with what lies around them begin where lines of the cache do, if they follow each other;
 * rows of windows have lines of their own, and those of their results begin there. What that takes
 * from rows the other axes may have. */
static void align_steps(struct cutter *c)
{
    struct geometry *g = c->g;
    int axis = g->axis_order[g->ndim - 1];
    int64_t extent = g->grain_shape[axis];
    int64_t n_more =
        has_windows(c) ? extent % WINDOWS_ALIGN : (extent + reach_of(c, axis)) % CUTTER_MIN_ALIGN;
    int64_t least = has_windows(c) ? WINDOWS_ALIGN : STEPS_RUN;
    if (n_more == 0 || c->unit[axis] != 1 || extent == limit_of(c, axis) || extent - n_more < least)
        return;
    g->grain_shape[axis] = extent - n_more;
    for (int i = 0; i < g->ndim - 1; i++) {
        int other = g->axis_order[i];
        g->grain_shape[other] = cutter_largest_extent(c, other, limit_of(c, other));
    }
}

/* How much a short run costs, as elements around it. The more there is along another axis the less
 * does that matter. */
static double run_weight(const struct cutter *c)
{
    int64_t most = 0;
    for (int i = 0; i < c->g->ndim - 1; i++)
        most = max_i64(most, reach_of(c, c->g->axis_order[i]));
    return (double)max_i64(STEPS_RUN - most, STEPS_LEAST_RUN);
}

/* What lies around a grain is computed with it, again and again: grains are such that it is little
 * beside them along each axis. Along the fastest one it counts for more, so that runs do not become
 * too short. */
static void take_steps(struct cutter *c)
{
    struct geometry *g = c->g;
    uint32_t ended_axes = 0;
    double run = run_weight(c);

    for (;;) {
        int best = -1;
        double most = 0;
        for (int i = 0; i < g->ndim; i++) {
            int axis = g->axis_order[i];
            double around = 1 + (double)reach_of(c, axis) + (i == g->ndim - 1 ? run : 0);
            double share = around / (double)g->grain_shape[axis];
            if (share < most || ended_axes >> axis & 1)
                continue;
            most = share;
            best = axis;
        }
        if (best < 0)
            return;
        int64_t limit = limit_of(c, best), extent = g->grain_shape[best];
        int64_t wanted = min_i64(mul_saturating_i64(extent, 2), limit);
        g->grain_shape[best] = cutter_largest_extent(c, best, wanted);
        if (g->grain_shape[best] < wanted || wanted == limit)
            ended_axes |= UINT32_C(1) << best;
    }
}

/* Whether the axis is cut as if it had no end: then the grains of an array are those of a longer
 * one, but for where it ends. */
static bool is_endless(const struct cutter *c, int axis)
{
    return (c->rules->open_axes >> axis & 1) && c->g->shape[axis] > 1 &&
           (c->rules->whole_elements == 0 || !cutter_is_reduced(c, axis));
}

/* Whole rows, those of a chunk together as far as they fit. */
static void choose_rows(struct cutter *c)
{
    struct geometry *g = c->g;
    int64_t chunk = 0, limit = c->rules->most_rows;

    assert(g->ndim == 2);
    for (unsigned n = 0; n < c->n_operands && chunk == 0; n++)
        if (c->operands[n].chunk_shape && cutter_has_axis(g, &c->operands[n], 0))
            chunk = c->operands[n].chunk_shape[c->operands[n].ndim - 2];
    g->grain_shape[0] = 1;
    g->grain_shape[1] = g->shape[1];
    for (int i = 0; i < g->ndim; i++)
        c->unit[i] = 1;
    g->grain_shape[0] = cutter_largest_extent(c, 0, g->shape[0] < limit ? g->shape[0] : limit);
    if (chunk > 0 && chunk <= g->grain_shape[0])
        g->grain_shape[0] -= g->grain_shape[0] % chunk;
    else if (chunk > 0)
        g->grain_shape[0] = cutter_near_divisor(chunk, g->grain_shape[0]);
}

static void choose_grain_shape(struct cutter *c)
{
    if (c->rules->most_rows > 0) {
        choose_rows(c);
        return;
    }
    c->has_long_runs = c->rules->takes_steps && !c->rules->reduced_axes && c->rules->long_bytes > 0;
    if (!cutter_set_units(c)) {
        cutter_limit_cells(c);
        return;
    }
    if (c->rules->takes_steps) {
        take_steps(c);
        align_steps(c);
        cutter_limit_cells(c);
        return;
    }
    if (cutter_has_contrary_layout(c) && c->rules->whole_elements == 0)
        balance(c);
    if (c->rules->reduced_axes) {
        cutter_fill_reducing(c);
        return;
    }
    if (c->rules->gathers)
        gather(c);
    fill(c);
}

/* The largest divisor of n that is at most `limit`, or one that is found soon. */
static int64_t divisor_of(int64_t n, int64_t limit)
{
    int64_t i = limit;

    while (i > 1 && limit - i < MAX_DIVISOR_SEARCH && n % i != 0)
        i--;
    if (n % i == 0)
        return i;
    for (i = (int64_t)min_u64((uint64_t)i, MAX_DIVISOR_SEARCH); n % i != 0; i--)
        ;
    return i;
}

static bool has_rounds(const struct geometry *g, const struct geometry_rules *rules)
{
    return rules->round_axis >= 0 && rules->round_length < g->shape[rules->round_axis];
}

static void set_rounds(struct geometry *g, const struct geometry_rules *rules)
{
    int axis = rules->round_axis;
    int64_t *extent = has_rounds(g, rules) ? &g->grain_shape[axis] : NULL;

    g->round_axis = -1;
    g->n_rounds = 1;
    if (!extent)
        return;
    assert(!(rules->reduced_axes >> axis & 1) && rules->round_length > 0);
    g->round_axis = axis;
    g->round_length = rules->round_length;
    g->n_rounds = (uint64_t)divide_up_i64(g->shape[axis], g->round_length);
    *extent = divisor_of(g->round_length, *extent < g->round_length ? *extent : g->round_length);
}

/* Rounds, kept axes, reduced axes, those of them along which chunks are in parts; of a scan the
 * scanned axis before those that are kept. */
static void set_grid_order(struct geometry *g, uint32_t divided_axes)
{
    uint32_t round_axes = g->round_axis >= 0 ? UINT32_C(1) << g->round_axis : 0;
    uint32_t scanned_axes = g->n_steps > 0 ? g->reduced_axes : 0;
    uint32_t kept_axes = ~(g->reduced_axes | round_axes);
    const uint32_t groups[] = {round_axes,
                               scanned_axes,
                               kept_axes & ~divided_axes,
                               kept_axes & divided_axes,
                               g->reduced_axes & ~divided_axes & ~scanned_axes,
                               g->reduced_axes & divided_axes & ~scanned_axes};
    int n = 0;

    for (unsigned group = 0; group < sizeof(groups) / sizeof(groups[0]); group++) {
        for (int i = 0; i < g->ndim; i++)
            if (groups[group] >> g->axis_order[i] & 1)
                g->grid_order[n++] = g->axis_order[i];
    }
    assert(n == g->ndim);
}

static void set_swaths(struct geometry *g, const struct geometry_rules *rules)
{
    for (int i = 0; i < g->ndim; i++)
        g->grain_shape[i] = 1;
    for (int i = 0; i < 2; i++) {
        int axis = rules->swath_axes[i];
        g->grain_shape[axis] =
            (int64_t)min_u64((uint64_t)rules->swath_extents[i], (uint64_t)g->shape[axis]);
    }
}

/* The second axis of swaths is the fastest in numbering, the first the one before it. */
static void set_swath_order(struct geometry *g, const struct geometry_rules *rules)
{
    int n = 0;

    for (int i = 0; i < g->ndim; i++) {
        int axis = g->axis_order[i];
        if (axis != rules->swath_axes[0] && axis != rules->swath_axes[1])
            g->grid_order[n++] = axis;
    }
    g->grid_order[n++] = rules->swath_axes[0];
    g->grid_order[n] = rules->swath_axes[1];
    g->chain_grains = (uint64_t)g->grid[rules->swath_axes[1]];
}

static void set_grid(struct geometry *g, const struct geometry_rules *rules)
{
    g->n_grains = g->chain_grains = 1;
    for (int i = 0; i < g->ndim; i++) {
        g->grid[i] = divide_up_i64(g->shape[i], g->grain_shape[i]);
        bool overflows = __builtin_mul_overflow(g->n_grains, (uint64_t)g->grid[i], &g->n_grains);
        assert(!overflows);
        (void)overflows;
        if (g->reduced_axes >> i & 1)
            g->chain_grains *= (uint64_t)g->grid[i];
    }
    if (rules->is_scan) {
        g->n_steps = g->chain_grains;
        g->chain_grains = 1;
    }
    g->round_grains = g->n_grains;
    if (g->round_axis >= 0)
        g->round_grains = g->n_grains / (uint64_t)g->grid[g->round_axis] *
                          (uint64_t)(g->round_length / g->grain_shape[g->round_axis]);
}

/* Grains of an empty space: none, in as many rounds. */
static void set_empty(struct geometry *g)
{
    for (int i = 0; i < g->ndim; i++) {
        g->axis_order[i] = i;
        g->grid[i] = g->shape[i] > 0;
    }
    g->chain_grains = 1;
    g->n_grains = g->round_grains = 0;
}

void geometry_init(struct geometry *g, int ndim, const int64_t *shape, unsigned n_operands,
                   const struct geometry_operand *operands, const struct geometry_rules *rules)
{
    struct cutter c = {.g = g, .rules = rules, .n_operands = n_operands, .operands = operands};
    bool is_empty = false;

    assert(ndim >= 0 && ndim <= ARRAY_MAX_NDIM);
    assert(n_operands <= CUTTER_MAX_OPERANDS);
    *g = (struct geometry){.ndim = ndim, .reduced_axes = rules->reduced_axes};
    for (int i = 0; i < ndim; i++) {
        assert(shape[i] >= 0);
        g->shape[i] = shape[i];
        g->grain_shape[i] = shape[i] > 0 ? shape[i] : 1;
        is_empty |= shape[i] == 0;
    }
    if (!is_empty) {
        cutter_choose_order(&c);
        for (int i = 0; i < ndim; i++)
            if (is_endless(&c, i))
                g->shape[i] = ENDLESS;
        choose_grain_shape(&c);
        for (int i = 0; i < ndim; i++) {
            g->shape[i] = shape[i];
            g->grain_shape[i] = g->grain_shape[i] < shape[i] ? g->grain_shape[i] : shape[i];
        }
    }
    bool has_swaths = !is_empty && rules->swath_extents[0] > 0;
    if (has_swaths)
        set_swaths(g, rules);
    set_rounds(g, rules);
    if (is_empty)
        set_empty(g);
    else
        set_grid(g, rules);
    set_grid_order(g, c.divided_axes);
    if (has_swaths)
        set_swath_order(g, rules);
}

void geometry_round(const struct geometry *g, uint64_t round, uint64_t *ret_first, uint64_t *ret_n)
{
    *ret_first = round < g->n_rounds ? round * g->round_grains : g->n_grains;
    *ret_n = min_u64(g->round_grains, g->n_grains - *ret_first);
}

uint64_t geometry_step_grains(const struct geometry *g)
{
    uint64_t n_places = g->round_axis >= 0 ? (uint64_t)g->grid[g->round_axis] : 1;

    return g->n_grains / (g->n_steps * n_places);
}

uint64_t geometry_n_cells(const struct geometry *g, const int64_t *count)
{
    uint64_t n = 1;

    for (int i = 0; i < g->ndim; i++)
        n *= g->reduced_axes >> i & 1 ? 1 : (uint64_t)count[i];
    return n;
}

void geometry_grain(const struct geometry *g, uint64_t grain, int64_t *ret_start,
                    int64_t *ret_count)
{
    assert(grain < g->n_grains);
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->grid_order[i];
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
