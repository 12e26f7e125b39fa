/* Every reduction of all axes on the device, against plain loops (reference.c).
 *
 * Lengths around everything that blocks count by, contiguous, in two rows, every other element, and
 * in the other byte order; all of them together in one tile. The bits of a sum must be the same in
 * every layout, and the same when a grain is alone in its tile.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"
#include "tests/unit/kernels/cuda/reference.h"

#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS 20001
#define N_LAYOUTS    3
#define NODE_BYTES   256

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
static char nodes[N_GRAINS][NODE_BYTES] __attribute__((aligned(64)));
static struct cuda_tile tile;

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

static void *value_of(const struct reduced *r, unsigned g, unsigned plane)
{
    struct reduce_layout layout;
    reduce_layout_init(&layout, &r->built.program, 0, 1);
    return reduce_plane(&layout, nodes[g], 0, plane);
}

static void report(struct checkcuda *c, const struct reduced *r, unsigned g, const char *what)
{
    const struct reduction *reduction = &r->built.program.reductions[0];
    c->check.n_failed++;
    printf("FAILED %s %s: %s\n    seed %llu, grain %u, ", op_info(r->op)->name,
           dtype_name(r->dtype), what, (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("input", &grains[g].inputs[0], &grains[g].shape);
    for (unsigned plane = 0; plane < reduce_n_planes(reduction); plane++)
        check_print("got   ", value_of(r, g, plane), reduce_plane_dtype(reduction, plane));
}

/* ARGMIN's and ARGMAX's indices say where the element is in the pass, hence the layout. */
static bool is_as_flat(const struct reduced *r, unsigned g)
{
    const struct reduction *reduction = &r->built.program.reductions[0];
    unsigned flat = g / N_LAYOUTS * N_LAYOUTS, n_planes = reduce_n_planes(reduction);
    bool has_index = r->op == OP_ARGMIN || r->op == OP_ARGMAX, is_same = true;
    for (unsigned plane = 0; plane < (has_index ? 1 : n_planes); plane++)
        is_same &= check_same(value_of(r, g, plane), value_of(r, flat, plane),
                              reduce_plane_dtype(reduction, plane));
    return is_same;
}

static bool compare(struct checkcuda *c, const struct reduced *r, unsigned g)
{
    struct reference_box box = {&r->built.program.passes[0], &grains[g].shape, NULL};
    struct reference_cell wanted;
    struct reduce_layout layout;
    reduce_layout_init(&layout, &r->built.program, 0, 1);
    reference_reduce(&box, r->dtype, values, &wanted);
    c->check.n_run++;
    if (!reference_is_right(&wanted, &layout, nodes[g], 0, 0)) {
        report(c, r, g, "not the loop's result");
        return false;
    }
    if (is_as_flat(r, g))
        return true;
    report(c, r, g, "another result in another layout");
    return false;
}

static void run_grains(struct checkcuda *c, const struct reduced *r, unsigned first, unsigned n)
{
    struct engine_warnings warnings = {0};
    struct reduce_layout layout;
    rig_begin(c->rig, &tile, &r->built.program, 0, NULL, &grains[first], n);
    for (unsigned g = first; g < first + n; g++) {
        grain_place(&grains[g], &tile);
        laid_store(&grains[g].inputs[0], &grains[g].shape, r->dtype, values);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = first; g < first + n; g++) {
        grain_layout(&grains[g], &tile, &layout);
        if (cuda_tile_result(&tile, g - first, &layout, nodes[g], &warnings))
            report(c, r, g, "another status");
    }
}

static void check_reduction(struct checkcuda *c, struct reduced *r)
{
    check_fill(values, r->dtype, MAX_ELEMENTS, r->is_moderate);
    for (unsigned g = 0; g < N_GRAINS; g++)
        lay_out(&grains[g], lengths[g / N_LAYOUTS], g % N_LAYOUTS, r->dtype);
    built_init(&r->built);
    built_reduction(&r->built, r->op, r->result, built_input(&r->built, r->dtype));
    grain_space(&r->built);
    run_grains(c, r, 0, N_GRAINS);
    for (size_t i = 0; r->dtype == DTYPE_BOOL && i < MAX_ELEMENTS; i++)
        values[i] = values[i] != 0; /* any other byte than 0 is 1 */
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare(c, r, g))
            return;
    for (unsigned g = 5; g < N_GRAINS; g += 12) {
        char among_others[NODE_BYTES];
        memcpy(among_others, nodes[g], NODE_BYTES);
        run_grains(c, r, g, 1);
        if (memcmp(among_others, nodes[g], NODE_BYTES) != 0)
            report(c, r, g, "another result alone");
    }
}

void checkcuda_reductions(struct checkcuda *c)
{
    static const enum op ops[] = {OP_SUM,    OP_PROD,   OP_MIN,           OP_MAX,
                                  OP_ARGMIN, OP_ARGMAX, OP_COUNT_NONZERO, OP_SQUARED_DEVIATIONS};
    static struct reduced r;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            char name[48];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name((enum dtype)d));
            if (ops[i] == OP_SQUARED_DEVIATIONS && !dtype_is_float((enum dtype)d))
                continue;
            if (c->check.filter && !strstr(name, c->check.filter))
                continue;
            r.op = ops[i];
            r.dtype = (enum dtype)d;
            r.result = reference_result(r.op, r.dtype);
            for (int is_moderate = 0; is_moderate < 2; is_moderate++) {
                check_restart(&c->check, name, is_moderate);
                r.is_moderate = is_moderate;
                check_reduction(c, &r);
            }
        }
    }
}
