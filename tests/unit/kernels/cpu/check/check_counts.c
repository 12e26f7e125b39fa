/* BINCOUNT over random boxes, axes, orders of walking and memory layouts, against one element after
 * the other: how many there are of each number, of numbers many of which are outside of the bins,
 * and the sums of weights, which must have the bits of adding them in visiting order.
 */
#include "tests/unit/kernels/cpu/check/laid.h"

#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 20000
#define MAX_VALUES   40000 /* cells times bins */
#define ARENA_BYTES  (MAX_ELEMENTS * 8 * 16 + 4096)

struct trial {
    struct shape shape;
    bool has_weights, is_beside; /* a sum of the same elements stands beside */
    uint32_t n_bins, axes;
    size_t n_cells;
    struct built b;
};

static struct trial t;
static int64_t bins[MAX_ELEMENTS];
static double weights[MAX_ELEMENTS];
static union scalar wanted[MAX_VALUES];
static char node[64 + MAX_VALUES * 8 + 64 + MAX_ELEMENTS * 8 + 64] __attribute__((aligned(64)));

static void build(void)
{
    struct built *b = &t.b;
    built_init(b);
    struct operand x = built_input(b, DTYPE_INT64), w = {0};
    if (t.has_weights)
        w = built_input(b, DTYPE_FLOAT64);
    built_reduction(b, OP_BINCOUNT, t.has_weights ? DTYPE_FLOAT64 : DTYPE_INT64, x);
    b->program.reductions[0].n_bins = t.n_bins;
    b->program.reductions[0].weights = w;
    if (t.is_beside)
        built_reduction(b, OP_SUM, DTYPE_INT64, x);
    struct pass *pass = &b->program.passes[0];
    pass->ndim = t.shape.ndim;
    pass->reduced_axes = t.axes;
    for (int i = 0; i < t.shape.ndim; i++)
        pass->shape[i] = t.shape.count[i] + (check_below(4) == 0);
}

static void draw(unsigned trial)
{
    static const uint32_t numbers[] = {1, 2, 3, 10, 100, 257, 1000, 4000};
    do {
        shape_draw(&t.shape, trial, MAX_ELEMENTS);
        t.axes = 1 + (uint32_t)check_below((1u << t.shape.ndim) - 1);
        t.n_bins = numbers[check_below(8)];
        t.n_cells = 1;
        for (int i = 0; i < t.shape.ndim; i++)
            t.n_cells *= t.axes >> i & 1 ? 1 : (size_t)t.shape.count[i];
    } while (t.n_cells * t.n_bins > MAX_VALUES);
    t.has_weights = check_below(2);
    t.is_beside = check_below(3) == 0;
    build();
    bool is_one_bin = check_below(4) == 0;
    for (size_t i = 0; i < t.shape.n; i++) {
        bins[i] = (int64_t)check_below(is_one_bin ? 1 : t.n_bins + t.n_bins / 8 + 1);
        if (check_below(20) == 0)
            bins[i] = check_below(2) ? -1 - (int64_t)check_below(3) : (int64_t)check_random();
        weights[i] = check_below(9) ? (double)(int64_t)check_random() * 0x1p-62 : -0.0;
    }
}

/* From bins and weights in C order. */
static void count_one_by_one(void)
{
    const struct shape *s = &t.shape;
    memset(wanted, 0, sizeof(wanted));
    for (size_t k = 0; k < s->n; k++) {
        int64_t at[3];
        size_t rest = k, e = 0, cell = 0;
        for (int i = s->ndim - 1; i >= 0; i--) {
            at[s->order[i]] = (int64_t)(rest % (size_t)s->count[s->order[i]]);
            rest /= (size_t)s->count[s->order[i]];
        }
        for (int i = 0; i < s->ndim; i++) {
            int axis = s->order[i];
            e = e * (size_t)s->count[i] + (size_t)at[i];
            if (!(t.axes >> axis & 1))
                cell = cell * (size_t)s->count[axis] + (size_t)at[axis];
        }
        if (bins[e] < 0 || bins[e] >= t.n_bins)
            continue;
        union scalar *value = &wanted[cell * t.n_bins + (size_t)bins[e]];
        if (t.has_weights)
            value->f64 += weights[e];
        else
            value->i64++;
    }
}

static void report(struct check *c, int level, const char *what)
{
    c->n_failed++;
    printf("FAILED bincount, level %s: %s\n    seed %llu, ", cpu_level_name((enum cpu_level)level),
           what, (unsigned long long)c->seed);
    shape_print(&t.shape);
    printf(", reduced axes %x, %zu cells, %u bins%s\n", t.axes, t.n_cells, t.n_bins,
           t.has_weights ? ", weights" : "");
}

static bool run(struct check *c, int level, const struct engine_view *views)
{
    struct reduce_layout layout;
    struct engine_warnings warnings = {0};
    struct engine_box box = {
        .ndim = t.shape.ndim, .count = t.shape.count, .axis_order = t.shape.order};
    reduce_layout_init(&layout, &t.b.program, 0, t.n_cells);
    memset(node, 0x5a, layout.n_bytes);
    int r = cpu_engine_run(cpu_engine_get((enum cpu_level)level), &t.b.program, 0, &box, views,
                           NULL, NULL, &layout, node, &warnings, test_scratch());
    if (r) {
        report(c, level, "status");
        return false;
    }
    const char *values = reduce_values(&layout, node, 0);
    if (memcmp(values, wanted, t.n_cells * t.n_bins * sizeof(union scalar)) != 0) {
        report(c, level, "not what one element after the other gives");
        return false;
    }
    return true;
}

static bool run_trial(struct check *c, unsigned trial, struct laid *laid)
{
    struct engine_view views[2];
    draw(trial);
    laid_draw(&laid[0], &t.shape, DTYPE_INT64, false);
    laid_draw(&laid[1], &t.shape, DTYPE_FLOAT64, false);
    laid_store(&laid[0], &t.shape, DTYPE_INT64, (char *)bins);
    laid_store(&laid[1], &t.shape, DTYPE_FLOAT64, (char *)weights);
    for (int i = 0; i < 2; i++)
        views[i] = laid[i].view;
    count_one_by_one();
    c->n_run++;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        if (check_has_level(level) && !run(c, level, views))
            return false;
    return true;
}

void check_counts(struct check *c)
{
    struct laid laid[2];
    if (c->filter && !strstr("bincount", c->filter))
        return;
    for (int i = 0; i < 2; i++)
        laid[i].arena = aligned_alloc(64, (ARENA_BYTES + 63) & ~63);
    check_restart(c, "bincount", 0);
    for (unsigned k = 0; k < 8 * c->n_trials; k++)
        if (!run_trial(c, k, laid))
            break;
    for (int i = 0; i < 2; i++)
        free(laid[i].arena);
}
