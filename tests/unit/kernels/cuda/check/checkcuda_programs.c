/* Programs drawn at random on the device, against the plain level: what single ops do not show.
 *
 * Up to all registers and hundreds of instructions of exact ops in all dtypes; constants, indices
 * of axes and of elements in boxes that begin anywhere, values and arrays reduced in earlier
 * passes, inputs that several instructions read, several stores and reductions at once, along all
 * axes or some. Each program runs over several grains of different boxes and layouts in one tile.
 * Values are compared to the bit; sums, products and squared deviations of floats only with the
 * same grain alone in its tile, where the bits must be the same too.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"
#include "tests/unit/kernels/cuda/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_GRAINS     5
#define MAX_ELEMENTS 1100
#define MAX_INPUTS   6
#define MAX_OUTPUTS  4
#define N_UNIFORM    3 /* results of reductions: of one element */
#define N_REDUCED    4 /* and of more */
#define N_CONSTS     4
#define PASS         2 /* that is drawn */
#define NODE_BYTES   (256u * 1024)

struct drawn {
    struct built built;
    struct operand registers[PROGRAM_MAX_REGISTERS];  /* OPERAND_NONE: not written yet */
    struct operand uniform[N_CONSTS + N_REDUCED + 4]; /* not all of them are */
    unsigned n_registers, n_uniform, ndim;
    union scalar reduced[N_UNIFORM];
    struct engine_view reduced_views[N_UNIFORM];
    int64_t starts[N_GRAINS][3];
};

static struct grain grains[N_GRAINS];
static char *flat[N_GRAINS][MAX_INPUTS], *expected[N_GRAINS][MAX_OUTPUTS];
static char reduced[N_GRAINS][MAX_ELEMENTS * 8];
static char nodes[N_GRAINS][NODE_BYTES] __attribute__((aligned(64)));
static char other_node[NODE_BYTES] __attribute__((aligned(64)));

static enum dtype any_dtype(void)
{
    return (enum dtype)check_below(DTYPE_COUNT);
}

static union scalar any_scalar(enum dtype dtype)
{
    union scalar value = {0};
    check_fill(&value, dtype, 1, check_below(2));
    if (dtype == DTYPE_BOOL)
        value.u64 = value.u64 != 0;
    return value;
}

static struct operand any_operand(const struct drawn *d)
{
    unsigned i = (unsigned)check_below(d->n_registers + d->built.program.n_inputs + d->n_uniform);
    if (i < d->n_registers && d->registers[i].kind != OPERAND_NONE)
        return d->registers[i];
    if (check_below(3) == 0)
        return d->uniform[check_below(d->n_uniform)];
    i = (unsigned)check_below(d->built.program.n_inputs);
    return (struct operand){OPERAND_INPUT, (uint8_t)d->built.inputs[i].dtype, (uint16_t)i};
}

static struct operand add_insn(struct drawn *d, enum op op, enum dtype compute, enum dtype result,
                               struct operand x, struct operand y, struct operand z)
{
    unsigned reg = (unsigned)check_below(d->n_registers);
    d->registers[reg] = built_insn(&d->built, op, compute, result, reg, x, y, z);
    return d->registers[reg];
}

/* An operand of the dtype: one that is there, or a cast of one. `kept` is not overwritten. */
static struct operand operand_of(struct drawn *d, enum dtype dtype, const struct operand *kept)
{
    struct operand none = {0}, o = none;
    for (int i = 0; i < 12; i++) {
        o = any_operand(d);
        if (o.dtype == dtype)
            return o;
    }
    unsigned reg = (unsigned)check_below(d->n_registers);
    for (int i = 0; i < 2; i++)
        if (kept && kept[i].kind == OPERAND_REGISTER && kept[i].index == reg)
            return d->registers[reg].dtype == dtype ? d->registers[reg]
                                                    : operand_of(d, dtype, kept);
    d->registers[reg] =
        built_insn(&d->built, OP_CAST, (enum dtype)o.dtype, dtype, reg, o, none, none);
    return d->registers[reg];
}

static void draw_insn(struct drawn *d)
{
    static const enum op numbers[] = {OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_MINIMUM, OP_MAXIMUM};
    static const enum op whole[] = {OP_BITWISE_AND, OP_BITWISE_XOR, OP_FLOOR_DIVIDE, OP_REMAINDER,
                                    OP_LEFT_SHIFT};
    static const enum op compared[] = {OP_LESS, OP_EQUAL, OP_GREATER_EQUAL};
    enum dtype t = any_dtype();
    struct operand none = {0}, kept[2] = {none, none};
    kept[0] = operand_of(d, t, kept);
    if (check_below(8) == 0) {
        add_insn(d, OP_CAST, t, any_dtype(), kept[0], none, none);
        return;
    }
    kept[1] = operand_of(d, t, kept);
    if (check_below(4) == 0) {
        add_insn(d, compared[check_below(3)], t, DTYPE_BOOL, kept[0], kept[1], none);
    } else if (check_below(4) == 0) {
        struct operand condition = operand_of(d, DTYPE_BOOL, kept);
        add_insn(d, OP_WHERE, t, t, condition, kept[0], kept[1]);
    } else if (t == DTYPE_BOOL) {
        add_insn(d, whole[check_below(2)], t, t, kept[0], kept[1], none);
    } else if (!dtype_is_float(t) && check_below(2)) {
        add_insn(d, whole[check_below(5)], t, t, kept[0], kept[1], none);
    } else if (check_below(6) == 0) {
        add_insn(d, OP_ABSOLUTE, t, t, kept[0], none, none);
    } else {
        add_insn(d, numbers[check_below(5)], t, t, kept[0], kept[1], none);
    }
}

static void draw_operands(struct drawn *d)
{
    struct built *b = &d->built;
    unsigned n_inputs = 1 + (unsigned)check_below(MAX_INPUTS);
    for (unsigned i = 0; i < n_inputs; i++)
        built_input(b, any_dtype());
    for (int i = 0; i < N_CONSTS; i++) {
        enum dtype t = any_dtype();
        d->uniform[d->n_uniform++] = built_const(b, t, any_scalar(t));
    }
    for (uint16_t i = 0; i < N_REDUCED; i++) {
        static const enum dtype results[] = {DTYPE_FLOAT64, DTYPE_INT64, DTYPE_UINT8,
                                             DTYPE_FLOAT64};
        b->program.reductions[i] =
            (struct reduction){.op = i == 2 ? OP_MAX : OP_SUM,
                               .result = (uint8_t)results[i],
                               .keeps_dims = true,
                               .pass = i < N_UNIFORM ? 0 : 1,
                               .src = {OPERAND_INPUT, (uint8_t)b->inputs[0].dtype, 0}};
        d->uniform[d->n_uniform++] = (struct operand){OPERAND_REDUCED, (uint8_t)results[i], i};
        if (i >= N_UNIFORM)
            continue;
        d->reduced[i] = any_scalar(results[i]);
        d->reduced_views[i].base = &d->reduced[i];
    }
    b->program.n_reductions = b->program.passes[0].first_reduction = N_REDUCED;
    for (unsigned i = 0; i < d->ndim; i++)
        d->uniform[d->n_uniform++] = (struct operand){OPERAND_INDEX, DTYPE_INT64, (uint16_t)i};
    d->uniform[d->n_uniform++] = (struct operand){OPERAND_INDEX, DTYPE_UINT64, OPERAND_INDEX_FLAT};
}

static void draw_reduction(struct drawn *d)
{
    static const enum op ops[] = {OP_SUM,    OP_PROD,   OP_MIN,           OP_MAX,
                                  OP_ARGMIN, OP_ARGMAX, OP_COUNT_NONZERO, OP_SQUARED_DEVIATIONS};
    struct operand src = any_operand(d);
    enum dtype dtype = (enum dtype)src.dtype;
    enum op op = ops[check_below(dtype_is_float(dtype) ? 8 : 7)];
    built_reduction(&d->built, op, reference_result(op, dtype), src);
}

/* The drawn pass is the third: results of reductions are those of earlier ones. */
static void make_third_pass(struct drawn *d)
{
    struct program *p = &d->built.program;
    uint32_t all = (1u << d->ndim) - 1;
    p->passes[PASS] = p->passes[0];
    p->passes[PASS].reduced_axes =
        p->passes[PASS].n_reductions > 0 ? 1 + (uint32_t)check_below(all) : 0;
    p->passes[0] = (struct pass){.n_reductions = N_UNIFORM, .inputs_used = 1, .scanned_axis = -1};
    p->n_passes = PASS + 1;
    grain_space(&d->built);
    p->passes[PASS].ndim = (int)d->ndim;
    p->passes[1] = (struct pass){.ndim = (int)d->ndim,
                                 .first_reduction = N_UNIFORM,
                                 .n_reductions = N_REDUCED - N_UNIFORM,
                                 .inputs_used = 1,
                                 .reduced_axes = (uint32_t)check_below(all),
                                 .scanned_axis = -1};
    memcpy(p->passes[1].shape, p->passes[PASS].shape, sizeof(p->passes[1].shape));
    for (unsigned i = N_REDUCED; i < p->n_reductions; i++)
        p->reductions[i].pass = PASS;
    for (unsigned i = 0; i < p->n_outputs; i++)
        p->outputs[i].pass = PASS;
    p->passes[PASS].reduced_used = (1u << N_REDUCED) - 1;
}

static void draw_program(struct drawn *d, unsigned trial)
{
    memset(d, 0, sizeof(*d));
    built_init(&d->built);
    d->n_registers = trial % 4 == 0 ? PROGRAM_MAX_REGISTERS : 4 + (unsigned)check_below(12);
    d->ndim = 1 + trial % 3;
    draw_operands(d);
    unsigned n_insns = trial % 8 == 0 ? 300 : 1 + (unsigned)check_below(40);
    for (unsigned i = 0; i < n_insns && d->built.program.n_insns < BUILT_MAX_INSNS - 64; i++)
        draw_insn(d);
    unsigned n_outputs = (unsigned)check_below(MAX_OUTPUTS + 1);
    unsigned n_reductions = (unsigned)check_below(4) + (n_outputs == 0);
    for (unsigned i = 0; i < n_outputs; i++)
        built_store(&d->built, any_operand(d));
    for (unsigned i = 0; i < n_reductions; i++)
        draw_reduction(d);
    make_third_pass(d);
}

static void draw_grain(struct drawn *d, unsigned g)
{
    const struct program *p = &d->built.program;
    struct grain *grain = &grains[g];
    shape_draw(&grain->shape, d->ndim - 1 + 3 * (unsigned)check_below(11), MAX_ELEMENTS);
    for (unsigned i = 0; i < d->ndim; i++)
        d->starts[g][i] = (int64_t)check_below(1000);
    grain->start = check_below(3) ? d->starts[g] : NULL;
    bool is_flat = check_below(3) == 0 && d->ndim == 1;
    for (unsigned i = 0; i < p->n_inputs; i++) {
        if (is_flat)
            laid_flat(&grain->inputs[i], &grain->shape, p->inputs[i].dtype);
        else
            grain_draw(&grain->inputs[i], &grain->shape, p->inputs[i].dtype, false);
    }
    grain_draw(&grain->reduced[N_UNIFORM], &grain->shape, DTYPE_FLOAT64, false);
    for (unsigned i = 0; i < p->n_outputs; i++) {
        if (is_flat)
            laid_flat(&grain->outputs[i], &grain->shape, p->outputs[i].dtype);
        else
            grain_draw(&grain->outputs[i], &grain->shape, p->outputs[i].dtype, true);
    }
}

static int run_plain(const struct drawn *d, unsigned g, const struct reduce_layout *layout,
                     void *ret_node, struct engine_warnings *ret_warnings)
{
    const struct program *p = &d->built.program;
    const struct shape *s = &grains[g].shape;
    struct engine_view in[MAX_INPUTS] = {{0}}, out[MAX_OUTPUTS] = {{0}};
    struct engine_view views[PROGRAM_MAX_REDUCTIONS] = {{0}};
    int64_t step = 1, steps[3] = {0};
    for (int i = s->ndim - 1; i >= 0; i--) {
        steps[i] = step;
        step *= s->count[i];
    }
    memcpy(views, d->reduced_views, sizeof(d->reduced_views));
    views[N_UNIFORM].base = reduced[g];
    for (int a = 0; a < s->ndim; a++)
        views[N_UNIFORM].strides[a] = steps[a] * (int64_t)sizeof(double);
    for (unsigned i = 0; i < p->n_inputs; i++) {
        in[i].base = flat[g][i];
        for (int a = 0; a < s->ndim; a++)
            in[i].strides[a] = steps[a] * (int64_t)dtype_size(p->inputs[i].dtype);
    }
    for (unsigned i = 0; i < p->n_outputs; i++) {
        out[i].base = expected[g][i];
        for (int a = 0; a < s->ndim; a++)
            out[i].strides[a] = steps[a] * (int64_t)dtype_size(p->outputs[i].dtype);
    }
    struct engine_box box = {
        .ndim = s->ndim, .count = s->count, .axis_order = s->order, .start = grains[g].start};
    *ret_warnings = (struct engine_warnings){0};
    bool has_node = layout->n_reductions > 0;
    return cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), p, PASS, &box, in, out, views,
                          has_node ? layout : NULL, has_node ? ret_node : NULL, ret_warnings,
                          test_scratch());
}

static void report(struct checkcuda *c, const struct drawn *d, unsigned trial, unsigned g,
                   const char *what)
{
    static char text[65536];
    c->check.n_failed++;
    printf("FAILED programs, trial %u: %s\n    seed %llu, grain %u, ", trial, what,
           (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    if (!c->check.filter)
        return;
    program_print(&d->built.program, text, sizeof(text));
    printf("%s\n", text);
}

static bool compare_outputs(struct checkcuda *c, const struct drawn *d, unsigned trial, unsigned g)
{
    const struct program *p = &d->built.program;
    for (unsigned o = 0; o < p->n_outputs; o++) {
        const struct laid *l = &grains[g].outputs[o];
        enum dtype dtype = p->outputs[o].dtype;
        for (size_t i = 0; i < grains[g].shape.n; i++) {
            char item[8];
            const char *want = expected[g][o] + i * dtype_size(dtype);
            laid_copy_item(item, laid_item(l, &grains[g].shape, i), dtype_size(dtype),
                           l->view.is_swapped);
            if (check_same(item, want, dtype))
                continue;
            report(c, d, trial, g, "not the plain level's result");
            printf("    output %u, element %zu\n", o, i);
            check_print("wanted", want, dtype);
            check_print("got   ", item, dtype);
            return false;
        }
        if (!grain_is_margin_whole(&grains[g], o, dtype)) {
            report(c, d, trial, g, "wrote beside an output");
            return false;
        }
    }
    return true;
}

static bool is_rounded(const struct reduction *r)
{
    return r->op == OP_SQUARED_DEVIATIONS ||
           ((r->op == OP_SUM || r->op == OP_PROD) && r->result == DTYPE_FLOAT64);
}

/* Zeros are equal. */
static bool is_same_number(const void *a, const void *b, enum dtype dtype)
{
    uint64_t x = 0, y = 0, unsign = UINT64_MAX >> (65 - 8 * dtype_size(dtype));
    memcpy(&x, a, dtype_size(dtype));
    memcpy(&y, b, dtype_size(dtype));
    return check_same(a, b, dtype) || (dtype_is_float(dtype) && !(x & unsign) && !(y & unsign));
}

static bool compare_cells(const struct reduce_layout *layout, const void *a, const void *b,
                          bool is_same_engine)
{
    for (unsigned i = 0; i < layout->n_reductions; i++) {
        const struct reduction *r = &layout->reductions[i];
        for (unsigned plane = 0; plane < reduce_n_planes(r); plane++) {
            enum dtype dtype = reduce_plane_dtype(r, plane);
            const char *x = reduce_plane(layout, a, i, plane),
                       *y = reduce_plane(layout, b, i, plane);
            for (uint64_t k = 0; k < layout->n_cells;
                 k++, x += dtype_size(dtype), y += dtype_size(dtype)) {
                if (is_same_engine ? check_same(x, y, dtype)
                                   : is_rounded(r) || is_same_number(x, y, dtype))
                    continue;
                printf("%s, cell %llu of %llu, plane %u\n", op_info((enum op)r->op)->name,
                       (unsigned long long)k, (unsigned long long)layout->n_cells, plane);
                check_print("wanted", y, dtype);
                check_print("got   ", x, dtype);
                return false;
            }
        }
    }
    return true;
}

static bool compare_grain(struct checkcuda *c, const struct drawn *d, unsigned trial,
                          const struct cuda_tile *tile, unsigned g)
{
    struct reduce_layout layout;
    struct engine_warnings got = {0}, counted;
    grain_layout(&grains[g], tile, &layout);
    if (layout.n_bytes > NODE_BYTES)
        exit(2);
    int wanted_r = run_plain(d, g, &layout, other_node, &counted);
    int r = cuda_tile_result(tile, g, &layout, nodes[g], &got);
    c->check.n_run++;
    if (r != wanted_r || (!r && (got.n_divide_by_zero != counted.n_divide_by_zero ||
                                 got.n_invalid_casts != counted.n_invalid_casts))) {
        report(c, d, trial, g, "another status or number of warnings");
        return false;
    }
    if (!compare_cells(&layout, nodes[g], other_node, false)) {
        report(c, d, trial, g, "another result of a reduction");
        return false;
    }
    return compare_outputs(c, d, trial, g);
}

static void run_grains(struct checkcuda *c, const struct drawn *d, struct cuda_tile *tile,
                       unsigned first, unsigned n)
{
    const struct program *p = &d->built.program;
    rig_begin(c->rig, tile, p, PASS, d->reduced_views, &grains[first], n);
    for (unsigned g = first; g < first + n; g++) {
        grain_place(&grains[g], tile);
        for (unsigned i = 0; i < p->n_inputs; i++)
            laid_store(&grains[g].inputs[i], &grains[g].shape, p->inputs[i].dtype, flat[g][i]);
        laid_store(&grains[g].reduced[N_UNIFORM], &grains[g].shape, DTYPE_FLOAT64, reduced[g]);
        grain_add(&grains[g], tile);
    }
    rig_run(c->rig, tile);
}

static bool is_same_alone(struct checkcuda *c, const struct drawn *d, unsigned trial, unsigned g)
{
    struct engine_warnings warnings = {0};
    struct reduce_layout layout;
    struct cuda_tile tile;
    run_grains(c, d, &tile, g, 1);
    grain_layout(&grains[g], &tile, &layout);
    if (cuda_tile_result(&tile, 0, &layout, other_node, &warnings) ||
        compare_cells(&layout, other_node, nodes[g], true))
        return true; /* the same status was compared before */
    report(c, d, trial, g, "another result alone in its tile");
    return false;
}

static bool run_trial(struct checkcuda *c, struct drawn *d, unsigned trial)
{
    const struct program *p = &d->built.program;
    struct cuda_tile tile;
    draw_program(d, trial);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        draw_grain(d, g);
        for (unsigned i = 0; i < p->n_inputs; i++)
            check_fill(flat[g][i], p->inputs[i].dtype, grains[g].shape.n, check_below(3) == 0);
        check_fill(reduced[g], DTYPE_FLOAT64, grains[g].shape.n, check_below(3) == 0);
    }
    run_grains(c, d, &tile, 0, N_GRAINS);
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare_grain(c, d, trial, &tile, g))
            return false;
    if (!rig_is_input_whole(c->rig, &tile)) {
        report(c, d, trial, 0, "wrote to its inputs or to the code");
        return false;
    }
    return p->passes[PASS].n_reductions == 0 || is_same_alone(c, d, trial, trial % N_GRAINS);
}

void checkcuda_programs(struct checkcuda *c)
{
    static struct drawn d;
    if (c->check.filter && !strstr("programs", c->check.filter))
        return;
    char *memory = malloc((size_t)N_GRAINS * (MAX_INPUTS + MAX_OUTPUTS) * MAX_ELEMENTS * 8);
    if (!memory)
        exit(2);
    char *next = memory;
    for (unsigned g = 0; g < N_GRAINS; g++) {
        for (unsigned i = 0; i < MAX_INPUTS; i++, next += MAX_ELEMENTS * 8)
            flat[g][i] = next;
        for (unsigned i = 0; i < MAX_OUTPUTS; i++, next += MAX_ELEMENTS * 8)
            expected[g][i] = next;
    }
    check_restart(&c->check, "programs", 0);
    for (unsigned trial = 0; trial < 40 * c->check.n_trials; trial++)
        if (!run_trial(c, &d, trial))
            break;
    free(memory);
}
