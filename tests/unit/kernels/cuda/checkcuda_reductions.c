/* Every reduction on the device: whole numbers, minima, maxima and counts are the plain level's to
 * the bit, sums of floats near a sum in long double.
 *
 * Lengths around everything that blocks count by, contiguous, in two rows, every other element, and
 * in the other byte order; all of them together in one tile. The bits of a sum must be the same in
 * every layout, and the same when a grain is alone in its tile.
 */
#include "tests/unit/kernels/cuda/checkcuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS 20001
#define N_LAYOUTS    3

static const size_t lengths[] = {1,   2,   5,   15,  31,   32,   33,   64,   65,   100,   127,
                                 128, 255, 256, 257, 1000, 1024, 1025, 2049, 4096, 10000, 20001};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define N_GRAINS  (N_LENGTHS * N_LAYOUTS)

struct reduced {
    enum op op;
    enum dtype dtype, result;
    bool is_moderate;
    struct built built;
};

static struct grain grains[N_GRAINS];
static char values[MAX_ELEMENTS * 8];
static struct partial partials[N_GRAINS];

static double value_of(enum dtype dtype, size_t i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)values)[i]
                                  : ((const double *)values)[i];
}

/* NaN and infinities as they add up. Where finite numbers alone overflow, what they give depends on
 * the order, and anything that is not finite or near will do. */
static bool is_sum_right(enum dtype dtype, size_t n, double got)
{
    long double exact = 0, size = 0;
    bool has_special = false;
    for (size_t i = 0; i < n; i++) {
        double v = value_of(dtype, i);
        has_special |= !isfinite(v);
        exact += (long double)v;
        size += fabsl((long double)v);
    }
    if (has_special)
        return isnan(exact) ? isnan(got) : got == (double)exact;
    if (size > 0x1p1023L)
        return true;
    return fabsl((long double)got - exact) <= size * 20 * 0x1p-53L;
}

static void lay_out(struct grain *g, size_t n, unsigned layout, enum dtype dtype)
{
    struct laid *l = &g->inputs[0];
    int64_t item_bytes = (int64_t)dtype_size(dtype);
    shape_flat(&g->shape, n);
    laid_flat(l, &g->shape, dtype);
    if (layout == 0)
        return;
    if (n % 5 == 0) { /* rows must not show in the result */
        g->shape.ndim = 2;
        g->shape.count[0] = 5;
        g->shape.count[1] = (int64_t)n / 5;
        g->shape.order[1] = 1;
    }
    int last = g->shape.ndim - 1;
    l->view.is_swapped = layout == 2;
    l->view.strides[last] = layout == 1 ? 2 * item_bytes : item_bytes;
    if (last == 1)
        l->view.strides[0] = l->view.strides[1] * g->shape.count[1];
    l->offset_bytes = layout == 1 ? (size_t)item_bytes : 0;
    l->n_bytes = l->offset_bytes + n * (size_t)l->view.strides[last];
}

static void report(struct checkcuda *c, const struct reduced *r, unsigned g, const char *what,
                   const struct partial *wanted)
{
    c->check.n_failed++;
    printf("FAILED %s %s: %s\n    seed %llu, grain %u, ", op_info(r->op)->name,
           dtype_name(r->dtype), what, (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("input", &grains[g].inputs[0], &grains[g].shape);
    if (wanted)
        check_print("wanted", &wanted->value, r->result);
    check_print("got   ", &partials[g].value, r->result);
}

static bool compare(struct checkcuda *c, const struct reduced *r, unsigned g)
{
    struct partial wanted;
    struct cpu_warnings warnings;
    size_t n = grains[g].shape.n;
    int failed = run_flat(cpu_engine_get(CPU_LEVEL_PLAIN), &r->built, n, (const void *[]){values},
                          NULL, &wanted, &warnings);
    c->check.n_run++;
    bool is_float_sum = r->op == OP_SUM && dtype_is_float(r->dtype);
    bool is_right = is_float_sum ? is_sum_right(r->dtype, n, partials[g].value.f64)
                                 : check_same(&partials[g].value, &wanted.value, r->result);
    if (failed || !is_right) {
        report(c, r, g, "not the plain level's result", &wanted);
        return false;
    }
    unsigned flat = g / N_LAYOUTS * N_LAYOUTS;
    if (check_same(&partials[g].value, &partials[flat].value, r->result))
        return true;
    report(c, r, g, "another result in another layout", &partials[flat]);
    return false;
}

static void run_grains(struct checkcuda *c, const struct reduced *r, struct grain *some, unsigned n,
                       struct partial *ret_partials)
{
    struct cuda_tile tile;
    struct cpu_warnings warnings = {0};
    rig_begin(c->rig, &tile, &r->built.program, 0, NULL, some, n);
    for (unsigned g = 0; g < n; g++) {
        grain_place(&some[g], &tile);
        laid_store(&some[g].inputs[0], &some[g].shape, r->dtype, values);
        grain_add(&some[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < n; g++)
        if (cuda_tile_result(&tile, g, &ret_partials[g], &warnings))
            report(c, r, g, "another status", NULL);
}

static void check_reduction(struct checkcuda *c, struct reduced *r)
{
    check_fill(values, r->dtype, MAX_ELEMENTS, r->is_moderate);
    for (unsigned g = 0; g < N_GRAINS; g++)
        lay_out(&grains[g], lengths[g / N_LAYOUTS], g % N_LAYOUTS, r->dtype);
    built_init(&r->built);
    built_reduction(&r->built, r->op, r->result, built_input(&r->built, r->dtype));
    grain_space(&r->built);
    run_grains(c, r, grains, N_GRAINS, partials);
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare(c, r, g))
            return;
    struct partial alone;
    for (unsigned g = 5; g < N_GRAINS; g += 12) {
        run_grains(c, r, &grains[g], 1, &alone);
        if (!check_same(&alone.value, &partials[g].value, r->result))
            report(c, r, g, "another result alone", &alone);
    }
}

static enum dtype result_of(enum op op, enum dtype dtype)
{
    if (op == OP_SUM)
        return dtype_is_float(dtype)      ? DTYPE_FLOAT64
               : dtype_is_unsigned(dtype) ? DTYPE_UINT64
                                          : DTYPE_INT64;
    return op == OP_COUNT_NONZERO ? DTYPE_INT64 : dtype;
}

void checkcuda_reductions(struct checkcuda *c)
{
    static const enum op ops[] = {OP_SUM, OP_MIN, OP_MAX, OP_COUNT_NONZERO};
    static struct reduced r;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            char name[48];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name((enum dtype)d));
            if (c->check.filter && !strstr(name, c->check.filter))
                continue;
            r.op = ops[i];
            r.dtype = (enum dtype)d;
            r.result = result_of(r.op, r.dtype);
            for (int is_moderate = 0; is_moderate < 2; is_moderate++) {
                check_restart(&c->check, name, is_moderate);
                r.is_moderate = is_moderate;
                check_reduction(c, &r);
            }
        }
    }
}
