/* Counts and sums of weights on the device, against a loop over the elements in visiting order: any
 * choice of axes, boxes of any shape, walked in any order, in layouts drawn at random; few bins and
 * more than a block has counters for; bins and weights that are inputs and that are computed.
 *
 * Everything must be the same to the bit, sums of weights too: their order is that of visiting.
 * Grains of several shapes are in one tile; a plain sum is in the same pass.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 12000
#define MAX_VALUES   60000 /* cells x bins */
#define N_GRAINS     6
#define SPACE        (1 << 14)

enum { COUNTS, SUMS, TOTAL, CONSTANT, N_REDUCTIONS };

struct counts_trial {
    int ndim;
    uint32_t reduced_axes;
    uint32_t n_bins;
    bool is_computed; /* bins are cast from int32, weights are squares */
    bool is_exact;    /* weights whose sums are the same in any order */
    struct built built;
    int64_t starts[N_GRAINS][3];
};

static struct grain grains[N_GRAINS];
static char bins[N_GRAINS][MAX_ELEMENTS * 8], weights[N_GRAINS][MAX_ELEMENTS * 8];
static int64_t counts[MAX_VALUES];
static double sums[MAX_VALUES], totals[MAX_ELEMENTS];
static char *node;

static void report(struct checkcuda *c, const struct counts_trial *t, unsigned g, const char *what)
{
    c->check.n_failed++;
    printf("FAILED counts, axes %x of %d, %u bins%s: %s\n    seed %llu, grain %u, ",
           t->reduced_axes, t->ndim, t->n_bins, t->is_computed ? ", computed" : "", what,
           (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("bins", &grains[g].inputs[0], &grains[g].shape);
    laid_print("weights", &grains[g].inputs[1], &grains[g].shape);
}

static enum dtype bins_dtype(const struct counts_trial *t)
{
    return t->is_computed ? DTYPE_INT32 : DTYPE_INT64;
}

static void add_counts(struct built *b, struct operand src, struct operand weight, uint32_t n_bins)
{
    bool has_weights = weight.kind != OPERAND_NONE;
    built_reduction(b, OP_BINCOUNT, has_weights ? DTYPE_FLOAT64 : DTYPE_INT64, src);
    struct reduction *r = &b->program.reductions[b->program.n_reductions - 1];
    r->weights = weight;
    r->n_bins = n_bins;
}

static void build(struct counts_trial *t)
{
    struct built *b = &t->built;
    struct operand none = {0};
    union scalar two = {.i64 = 2};
    built_init(b);
    struct operand x = built_input(b, bins_dtype(t)), w = built_input(b, DTYPE_FLOAT64);
    if (t->is_computed) {
        x = built_insn(b, OP_CAST, DTYPE_INT32, DTYPE_INT64, 0, x, none, none);
        w = built_insn(b, OP_SQUARE, DTYPE_FLOAT64, DTYPE_FLOAT64, 1, w, none, none);
    }
    add_counts(b, x, none, t->n_bins);
    add_counts(b, x, w, t->n_bins);
    built_reduction(b, OP_SUM, DTYPE_FLOAT64, w);
    add_counts(b, built_const(b, DTYPE_INT64, two), none, 3);
    struct pass *pass = &b->program.passes[0];
    pass->reduced_axes = t->reduced_axes;
    pass->ndim = t->ndim;
    for (int i = 0; i < t->ndim; i++)
        pass->shape[i] = SPACE;
}

static uint64_t n_cells_of(const struct counts_trial *t, const struct shape *s)
{
    uint64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= t->reduced_axes >> i & 1 ? 1 : (uint64_t)s->count[i];
    return n;
}

/* Shapes alone: they say how many bins there may be. */
static uint64_t draw_shape(struct counts_trial *t, unsigned g)
{
    struct shape *s = &grains[g].shape;
    do {
        shape_draw(s, (unsigned)t->ndim - 1 + 3 * (unsigned)check_below(13), MAX_ELEMENTS);
    } while (s->ndim != t->ndim);
    for (int i = 0; i < t->ndim; i++)
        t->starts[g][i] = (int64_t)check_below(SPACE - 5000);
    grains[g].start = t->starts[g];
    return n_cells_of(t, s);
}

static void draw_values(const struct counts_trial *t, unsigned g)
{
    size_t n = grains[g].shape.n;
    bool is_skewed = check_below(3) == 0;
    double *w = (double *)weights[g];
    for (size_t i = 0; i < n; i++) {
        int64_t bin =
            is_skewed && check_below(8) ? t->n_bins / 2 : (int64_t)check_below(t->n_bins + 4) - 2;
        if (check_below(500) == 0)
            bin = t->is_computed ? INT32_MIN : INT64_MIN;
        if (t->is_computed)
            ((int32_t *)bins[g])[i] = (int32_t)bin;
        else
            ((int64_t *)bins[g])[i] = bin;
    }
    check_fill(w, DTYPE_FLOAT64, n, true);
    for (size_t i = 0; t->is_exact && i < n; i++)
        w[i] = (double)((int64_t)check_below(10000) - 5000) / 8;
    grain_draw(&grains[g].inputs[0], &grains[g].shape, bins_dtype(t), false);
    grain_draw(&grains[g].inputs[1], &grains[g].shape, DTYPE_FLOAT64, false);
}

/* Element `visited` of the walk: its number in C order, and its cell. */
static size_t visit(const struct counts_trial *t, const struct shape *s, size_t visited,
                    uint64_t *ret_cell)
{
    int64_t at[3] = {0};
    uint64_t step = 1;
    size_t element = 0;
    *ret_cell = 0;
    for (int i = s->ndim - 1; i >= 0; i--) {
        int axis = s->order[i];
        at[axis] = (int64_t)(visited % (size_t)s->count[axis]);
        visited /= (size_t)s->count[axis];
        if (t->reduced_axes >> axis & 1)
            continue;
        *ret_cell += step * (uint64_t)at[axis];
        step *= (uint64_t)s->count[axis];
    }
    for (int i = 0; i < s->ndim; i++)
        element = element * (size_t)s->count[i] + (size_t)at[i];
    return element;
}

static void count(const struct counts_trial *t, unsigned g)
{
    const struct shape *s = &grains[g].shape;
    uint64_t n_cells = n_cells_of(t, s), cell;
    memset(counts, 0, n_cells * t->n_bins * sizeof(counts[0]));
    memset(sums, 0, n_cells * t->n_bins * sizeof(sums[0]));
    memset(totals, 0, n_cells * sizeof(totals[0]));
    for (size_t i = 0; i < s->n; i++) {
        size_t element = visit(t, s, i, &cell);
        int64_t bin =
            t->is_computed ? ((int32_t *)bins[g])[element] : ((int64_t *)bins[g])[element];
        double w = ((double *)weights[g])[element];
        w = t->is_computed ? w * w : w;
        totals[cell] += w;
        if (bin < 0 || bin >= t->n_bins)
            continue;
        counts[cell * t->n_bins + (uint64_t)bin]++;
        sums[cell * t->n_bins + (uint64_t)bin] += w;
    }
}

static bool are_same(struct checkcuda *c, const struct counts_trial *t, unsigned g, unsigned i,
                     const void *got, const void *wanted, uint64_t n, enum dtype dtype)
{
    for (uint64_t k = 0; k < n; k++) {
        const char *a = (const char *)got + 8 * k, *b = (const char *)wanted + 8 * k;
        if (check_same(a, b, dtype))
            continue;
        report(c, t, g, "another value");
        printf("    reduction %u, value %llu\n", i, (unsigned long long)k);
        check_print("got   ", a, dtype);
        check_print("wanted", b, dtype);
        return false;
    }
    return true;
}

static bool compare(struct checkcuda *c, const struct counts_trial *t,
                    const struct reduce_layout *layout, unsigned g)
{
    uint64_t n = layout->n_cells * t->n_bins, n_reduced = grains[g].shape.n / layout->n_cells;
    count(t, g);
    if (!are_same(c, t, g, COUNTS, reduce_values(layout, node, COUNTS), counts, n, DTYPE_INT64) ||
        !are_same(c, t, g, SUMS, reduce_values(layout, node, SUMS), sums, n, DTYPE_FLOAT64))
        return false;
    if (t->is_exact && !are_same(c, t, g, TOTAL, reduce_values(layout, node, TOTAL), totals,
                                 layout->n_cells, DTYPE_FLOAT64))
        return false;
    const int64_t *of_constant = reduce_values(layout, node, CONSTANT);
    for (uint64_t i = 0; i < 3 * layout->n_cells; i++) {
        if (of_constant[i] == (i % 3 == 2 ? (int64_t)n_reduced : 0))
            continue;
        report(c, t, g, "another number of constants");
        return false;
    }
    return true;
}

static bool run_trial(struct checkcuda *c, struct counts_trial *t)
{
    static const uint32_t numbers[] = {1, 2, 3, 10, 100, 256, 1000, 4096, 5000, 8192, 8193, 30000};
    struct cuda_tile tile;
    uint64_t most = 1;
    t->is_computed = check_below(2);
    t->is_exact = check_below(2);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        uint64_t n = draw_shape(t, g);
        most = n > most ? n : most;
    }
    t->n_bins = numbers[check_below(sizeof(numbers) / sizeof(numbers[0]))];
    if (most * t->n_bins > MAX_VALUES)
        t->n_bins = (uint32_t)(MAX_VALUES / most);
    build(t);
    for (unsigned g = 0; g < N_GRAINS; g++)
        draw_values(t, g);
    rig_begin(c->rig, &tile, &t->built.program, 0, NULL, grains, N_GRAINS);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        grain_place(&grains[g], &tile);
        laid_store(&grains[g].inputs[0], &grains[g].shape, bins_dtype(t), bins[g]);
        laid_store(&grains[g].inputs[1], &grains[g].shape, DTYPE_FLOAT64, weights[g]);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        struct reduce_layout layout;
        struct engine_warnings warnings = {0};
        grain_layout(&grains[g], &tile, &layout);
        c->check.n_run++;
        if (layout.n_bytes > NODE_MAX_BYTES)
            exit(2);
        memset(node, 0x5a, layout.n_bytes);
        if (cuda_tile_result(&tile, g, &layout, node, &warnings)) {
            report(c, t, g, "another status");
            return false;
        }
        if (!compare(c, t, &layout, g))
            return false;
    }
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, 0, "wrote to its inputs or to the code");
    return false;
}

void checkcuda_counts(struct checkcuda *c)
{
    static struct counts_trial t;
    if (c->check.filter && !strstr("counts", c->check.filter))
        return;
    check_restart(&c->check, "counts", 0);
    node = aligned_alloc(64, NODE_MAX_BYTES);
    for (t.ndim = 1; t.ndim <= 3; t.ndim++)
        for (t.reduced_axes = 1; t.reduced_axes < 1u << t.ndim; t.reduced_axes++)
            for (unsigned i = 0; i < c->check.n_trials; i++)
                if (!run_trial(c, &t))
                    goto end;
end:
    free(node);
}
