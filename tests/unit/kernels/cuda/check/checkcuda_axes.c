/* Reductions along axes on the device, against plain loops (reference.c): every reduction of every
 * dtype at once, along each choice of axes, in boxes of any shape, walked in any order, in layouts
 * drawn at random.
 *
 * A trial's program reduces its input, a value computed from it, and a constant; some store the
 * value too. Grains of several shapes are in one tile. A cell's bits must be the same when its
 * grain is alone, and when it is cut along a kept axis.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"
#include "tests/unit/kernels/cuda/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 12000
#define MAX_GRAINS   8
#define SPACE        (1 << 14) /* along each axis of the pass */

static const struct axes_shape {
    int ndim;
    int64_t count[3];
} shapes[] = {
    {2, {16, 300}},  {2, {300, 16}},   {2, {1, 70}},     {2, {70, 1}},    {2, {3, 1000}},
    {2, {1000, 3}},  {2, {2, 5000}},   {2, {5000, 2}},   {2, {17, 33}},   {2, {257, 17}},
    {2, {4097, 1}},  {2, {33, 257}},   {3, {4, 5, 6}},   {3, {1, 64, 5}}, {3, {40, 2, 30}},
    {3, {7, 19, 1}}, {3, {2, 300, 3}}, {3, {11, 1, 70}}, {1, {1}},        {1, {4100}},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct axes_trial {
    enum dtype dtype;
    int ndim;
    bool is_moderate, has_store;
    struct built built;
    int64_t starts[MAX_GRAINS][3];
};

static struct grain grains[MAX_GRAINS];
static char values[MAX_GRAINS][MAX_ELEMENTS * 8], computed[MAX_ELEMENTS * 8];
static struct reference_cell cells[MAX_ELEMENTS];
static char *nodes[MAX_GRAINS], *other_node;

static void report(struct checkcuda *c, const struct axes_trial *t, unsigned g, const char *what)
{
    c->check.n_failed++;
    printf("FAILED axes %s, axes %x of %d: %s\n    seed %llu, grain %u, ", dtype_name(t->dtype),
           t->built.program.passes[0].reduced_axes, t->ndim, what,
           (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("input", &grains[g].inputs[0], &grains[g].shape);
}

static void add_reductions(struct built *b, enum dtype dtype, struct operand src)
{
    static const enum op ops[] = {OP_SUM,    OP_PROD,   OP_MIN,           OP_MAX,
                                  OP_ARGMIN, OP_ARGMAX, OP_COUNT_NONZERO, OP_SQUARED_DEVIATIONS};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (ops[i] != OP_SQUARED_DEVIATIONS || dtype_is_float(dtype))
            built_reduction(b, ops[i], reference_result(ops[i], dtype), src);
}

/* Input and its double (of a bool: its opposite); the last reduction counts a constant. */
static void build(struct axes_trial *t, uint32_t reduced_axes)
{
    struct built *b = &t->built;
    struct operand none = {0};
    union scalar one = {.u64 = 1};
    built_init(b);
    struct operand x = built_input(b, t->dtype);
    struct operand y = t->dtype == DTYPE_BOOL
                           ? built_insn(b, OP_INVERT, t->dtype, t->dtype, 0, x, none, none)
                           : built_insn(b, OP_ADD, t->dtype, t->dtype, 0, x, x, none);
    add_reductions(b, t->dtype, x);
    add_reductions(b, t->dtype, y);
    built_reduction(b, OP_COUNT_NONZERO, DTYPE_INT64, built_const(b, DTYPE_UINT8, one));
    if (t->has_store)
        built_store(b, y);
    struct pass *pass = &b->program.passes[0];
    pass->reduced_axes = reduced_axes;
    pass->ndim = t->ndim;
    for (int i = 0; i < t->ndim; i++)
        pass->shape[i] = SPACE;
}

/* What the program computes of `n` items. */
static void compute(enum dtype dtype, const char *x, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == DTYPE_FLOAT32) {
            ((float *)ret)[i] = ((const float *)x)[i] + ((const float *)x)[i];
        } else if (dtype == DTYPE_FLOAT64) {
            ((double *)ret)[i] = ((const double *)x)[i] + ((const double *)x)[i];
        } else {
            uint64_t item = 0;
            memcpy(&item, x + i * dtype_size(dtype), dtype_size(dtype));
            item = dtype == DTYPE_BOOL ? item == 0 : item * 2;
            memcpy(ret + i * dtype_size(dtype), &item, dtype_size(dtype));
        }
    }
}

static void run(struct checkcuda *c, const struct axes_trial *t, struct cuda_tile *tile,
                unsigned first, unsigned n)
{
    rig_begin(c->rig, tile, &t->built.program, 0, NULL, &grains[first], n);
    for (unsigned g = first; g < first + n; g++) {
        grain_place(&grains[g], tile);
        laid_store(&grains[g].inputs[0], &grains[g].shape, t->dtype, values[g]);
        grain_add(&grains[g], tile);
    }
    rig_run(c->rig, tile);
    for (unsigned g = first; t->dtype == DTYPE_BOOL && g < first + n; g++)
        for (size_t i = 0; i < grains[g].shape.n; i++)
            values[g][i] = values[g][i] != 0; /* any other byte than 0 is 1 */
}

static bool compare_cells(struct checkcuda *c, const struct axes_trial *t,
                          const struct reduce_layout *layout, unsigned g, unsigned first,
                          unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        for (uint64_t k = 0; k < layout->n_cells; k++) {
            if (reference_is_right(&cells[k], layout, nodes[g], i, k))
                continue;
            report(c, t, g, op_info((enum op)layout->reductions[i].op)->name);
            printf("    reduction %u, cell %llu of %llu, %llu elements\n", i, (unsigned long long)k,
                   (unsigned long long)layout->n_cells, (unsigned long long)cells[k].n);
            for (unsigned plane = 0; plane < reduce_n_planes(&layout->reductions[i]); plane++) {
                enum dtype dtype = reduce_plane_dtype(&layout->reductions[i], plane);
                check_print("got   ",
                            (char *)reduce_plane(layout, nodes[g], i, plane) +
                                k * dtype_size(dtype),
                            dtype);
            }
            return false;
        }
    }
    return true;
}

static bool is_output_right(struct checkcuda *c, const struct axes_trial *t, unsigned g)
{
    size_t item_bytes = dtype_size(t->dtype);
    for (size_t i = 0; t->has_store && i < grains[g].shape.n; i++) {
        char item[8];
        laid_copy_item(item, laid_item(&grains[g].outputs[0], &grains[g].shape, i), item_bytes,
                       grains[g].outputs[0].view.is_swapped);
        if (check_same(item, computed + i * item_bytes, t->dtype))
            continue;
        report(c, t, g, "another output");
        return false;
    }
    return true;
}

static bool compare_grain(struct checkcuda *c, const struct axes_trial *t,
                          const struct cuda_tile *tile, unsigned g)
{
    struct reference_box box = {&t->built.program.passes[0], &grains[g].shape, t->starts[g]};
    struct reduce_layout layout;
    struct engine_warnings warnings = {0};
    struct reduce_header header;
    unsigned n_each = (unsigned)(t->built.program.n_reductions - 1) / 2;
    grain_layout(&grains[g], tile, &layout);
    c->check.n_run++;
    if (layout.n_bytes > NODE_MAX_BYTES)
        exit(2);
    memset(nodes[g], 0x5a, layout.n_bytes);
    if (cuda_tile_result(tile, g, &layout, nodes[g], &warnings)) {
        report(c, t, g, "another status");
        return false;
    }
    memcpy(&header, nodes[g], sizeof(header));
    if (header.n_elements != grains[g].shape.n / layout.n_cells) {
        report(c, t, g, "another number of elements");
        return false;
    }
    reference_reduce(&box, t->dtype, values[g], cells);
    if (!compare_cells(c, t, &layout, g, 0, n_each))
        return false;
    compute(t->dtype, values[g], grains[g].shape.n, computed);
    reference_reduce(&box, t->dtype, computed, cells);
    if (!compare_cells(c, t, &layout, g, n_each, n_each) || !is_output_right(c, t, g))
        return false;
    for (uint64_t k = 0; k < layout.n_cells; k++)
        cells[k].n_nonzero = cells[k].n;
    return compare_cells(c, t, &layout, g, 2 * n_each, 1);
}

static void draw_grain(struct axes_trial *t, unsigned g, unsigned draw)
{
    const struct axes_shape *from = &shapes[draw % N_SHAPES];
    struct shape *s = &grains[g].shape;
    while (from->ndim != t->ndim)
        from = from + 1 < shapes + N_SHAPES ? from + 1 : shapes;
    *s = (struct shape){.ndim = t->ndim, .n = 1};
    for (int i = 0; i < t->ndim; i++) {
        s->count[i] = from->count[i];
        s->n *= (size_t)from->count[i];
        t->starts[g][i] = (int64_t)check_below(SPACE - 5000);
    }
    bool is_turned = check_below(3) == 0, is_rotated = check_below(4) == 0;
    for (int i = 0; i < t->ndim; i++)
        s->order[i] = is_turned ? t->ndim - 1 - i : is_rotated ? (i + 1) % t->ndim : i;
    grains[g].start = t->starts[g];
    grain_draw(&grains[g].inputs[0], s, t->dtype, false);
    if (check_below(2)) { /* dense in visiting order, native */
        int64_t stride = (int64_t)dtype_size(t->dtype);
        struct laid *l = &grains[g].inputs[0];
        *l = (struct laid){.n_bytes = s->n * (size_t)stride};
        for (int i = t->ndim - 1; i >= 0; i--) {
            l->view.strides[s->order[i]] = stride;
            stride *= s->count[s->order[i]];
        }
    }
    if (t->has_store)
        grain_draw(&grains[g].outputs[0], s, t->dtype, true);
    check_fill(values[g], t->dtype, s->n, t->is_moderate);
}

/* To the bit, but for which NaN it is. */
static bool is_plane_same(const struct reduce_layout *cut, const char *wanted, unsigned i,
                          unsigned plane)
{
    enum dtype dtype = reduce_plane_dtype(&cut->reductions[i], plane);
    const char *got = reduce_plane(cut, other_node, i, plane);
    for (uint64_t k = 0; k < cut->n_cells; k++)
        if (!check_same(got + k * dtype_size(dtype), wanted + k * dtype_size(dtype), dtype))
            return false;
    return true;
}

/* The first cells of the slowest kept axis alone: all of its planes' values as before. */
static bool is_same_cut(struct checkcuda *c, const struct axes_trial *t, unsigned g)
{
    struct grain whole = grains[g];
    struct shape *s = &grains[g].shape;
    struct reduce_layout layout, cut;
    struct cuda_tile tile;
    struct engine_warnings warnings = {0};
    int slowest = 0;
    uint32_t reduced_axes = t->built.program.passes[0].reduced_axes;
    while (slowest < t->ndim && reduced_axes >> s->order[slowest] & 1)
        slowest++;
    if (slowest == t->ndim)
        return true;
    run(c, t, &tile, g, 1);
    grain_layout(&grains[g], &tile, &layout);
    int axis = s->order[slowest];
    s->n /= (size_t)s->count[axis];
    s->count[axis] = (s->count[axis] + 1) / 2;
    s->n *= (size_t)s->count[axis];
    rig_begin(c->rig, &tile, &t->built.program, 0, NULL, &whole, 1);
    grain_place(&whole, &tile);
    laid_store(&whole.inputs[0], &whole.shape, t->dtype, values[g]);
    grains[g].inputs[0].view.base = whole.inputs[0].view.base;
    grains[g].outputs[0].view.base = whole.outputs[0].view.base;
    grain_add(&grains[g], &tile);
    rig_run(c->rig, &tile);
    grain_layout(&grains[g], &tile, &cut);
    bool is_same = !cuda_tile_result(&tile, 0, &cut, other_node, &warnings);
    for (unsigned i = 0; is_same && i < cut.n_reductions; i++) {
        for (unsigned plane = 0; plane < reduce_n_planes(&cut.reductions[i]); plane++)
            is_same &= is_plane_same(&cut, reduce_plane(&layout, nodes[g], i, plane), i, plane);
    }
    if (!is_same)
        report(c, t, g, "other bits alone and cut along a kept axis");
    grains[g] = whole;
    return is_same;
}

static bool run_trial(struct checkcuda *c, struct axes_trial *t, uint32_t reduced_axes,
                      unsigned trial)
{
    struct cuda_tile tile;
    t->is_moderate = trial % 2;
    t->has_store = trial % 3 == 0;
    build(t, reduced_axes);
    for (unsigned g = 0; g < MAX_GRAINS; g++)
        draw_grain(t, g, (unsigned)check_random());
    run(c, t, &tile, 0, MAX_GRAINS);
    for (unsigned g = 0; g < MAX_GRAINS; g++)
        if (!compare_grain(c, t, &tile, g))
            return false;
    if (!rig_is_input_whole(c->rig, &tile)) {
        report(c, t, 0, "wrote to its inputs or to the code");
        return false;
    }
    return is_same_cut(c, t, trial % MAX_GRAINS);
}

void checkcuda_axes(struct checkcuda *c)
{
    static struct axes_trial t;
    for (unsigned g = 0; g < MAX_GRAINS; g++)
        nodes[g] = aligned_alloc(64, NODE_MAX_BYTES);
    other_node = aligned_alloc(64, NODE_MAX_BYTES);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        char name[48];
        snprintf(name, sizeof(name), "axes %s", dtype_name((enum dtype)d));
        if (c->check.filter && !strstr(name, c->check.filter))
            continue;
        check_restart(&c->check, name, 0);
        t.dtype = (enum dtype)d;
        for (t.ndim = 1; t.ndim <= 3; t.ndim++)
            for (uint32_t axes = 1; axes < 1u << t.ndim; axes++)
                for (unsigned i = 0; i < 1 + c->check.n_trials / 4; i++)
                    if (!run_trial(c, &t, axes, i))
                        goto next;
    next:;
    }
    for (unsigned g = 0; g < MAX_GRAINS; g++)
        free(nodes[g]);
    free(other_node);
}
