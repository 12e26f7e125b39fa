/* What is near, on the device, against the plain level: arrays of one to three axes in both byte
 * orders, broadcast against the pass or not, offsets of every mode, some as far as they may be, few
 * or so many that they are loaded one by one. Each program runs over several grains in one tile,
 * most of them at ends of axes.
 *
 * A grain's slot has the box that the worker would read (kernels/neighbours.h), which goes on
 * beyond the end of an axis where the mode is wrap; the plain level reads the array where it lies.
 * So what differs shows which of the two has taken an element from another place.
 */
#include "proto/util.h"
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_GRAINS     6
#define MAX_ELEMENTS 4100
#define MAX_NEARS    150
#define MAX_STORED   6
#define NODE_BYTES   (256u * 1024)

struct near_trial {
    struct built built;
    struct program_near nears[MAX_NEARS];
    struct operand operands[MAX_NEARS];
    enum dtype dtype;
    int ndim;
    int64_t shape[3]; /* of the pass */
    struct whole_array whole;
    uint64_t n_bytes;
    int64_t starts[N_GRAINS][3];
};

static struct grain grains[N_GRAINS];
static char array[MAX_ELEMENTS * 8], expected[MAX_STORED][MAX_ELEMENTS * 8];
static char nodes[2][NODE_BYTES] __attribute__((aligned(64)));

static void draw_shape(struct near_trial *t, unsigned trial)
{
    struct program_input *input = &t->built.inputs[0];
    struct pass *pass = &t->built.program.passes[0];
    uint64_t n = 1;
    t->ndim = 1 + (int)(trial % 3);
    input->ndim = t->ndim - (check_below(6) == 0 && t->ndim > 1);
    for (int i = 0; i < t->ndim; i++) {
        uint64_t most = t->ndim == 1 ? MAX_ELEMENTS : t->ndim == 2 ? 60 : 15;
        t->shape[i] = 1 + (int64_t)check_below(check_below(3) ? most : 4);
    }
    for (int i = input->ndim - 1; i >= 0; i--) {
        input->shape[i] = check_below(8) ? t->shape[t->ndim - input->ndim + i] : 1;
        t->whole.strides[i] = (int64_t)(n * dtype_size(t->dtype));
        n *= (uint64_t)input->shape[i];
    }
    t->n_bytes = n * dtype_size(t->dtype);
    pass->ndim = t->ndim;
    memcpy(pass->shape, t->shape, (size_t)t->ndim * sizeof(pass->shape[0]));
}

static int64_t farthest(enum near_mode mode, int64_t length)
{
    return mode == NEAR_WRAP ? length / 2 : mode == NEAR_SYMMETRIC ? length : length - 1;
}

/* Along an axis all nears wrap, or none does. False: there is nothing that could be near. */
static bool draw_near(const struct near_trial *t, uint32_t wrapped_axes, struct program_near *near)
{
    const struct program_input *input = &t->built.inputs[0];
    bool is_near = false;
    *near = (struct program_near){.input = 0};
    check_fill(&near->beyond, t->dtype, 1, true);
    near->beyond.u64 &= t->dtype == DTYPE_BOOL ? 1 : UINT64_MAX;
    for (int i = 0; i < input->ndim; i++) {
        enum near_mode mode = (enum near_mode)check_below(NEAR_WRAP);
        mode = wrapped_axes >> i & 1 ? NEAR_WRAP : mode;
        int64_t most = input->shape[i] > 1 ? farthest(mode, input->shape[i]) : 0;
        most = check_below(4) ? min_i64(most, 3) : most;
        near->offsets[i] = (int64_t)check_below(2 * (uint64_t)most + 1) - most;
        near->modes[i] = (uint8_t)mode;
        is_near |= near->offsets[i] != 0;
    }
    return is_near;
}

static void draw_nears(struct near_trial *t, unsigned n)
{
    struct program *p = &t->built.program;
    uint32_t wrapped_axes = (uint32_t)check_below(8);
    for (unsigned i = 0; i < n; i++) {
        if (!draw_near(t, wrapped_axes, &t->nears[p->n_nears]))
            continue;
        t->operands[p->n_nears] = (struct operand){OPERAND_NEAR, (uint8_t)t->dtype, p->n_nears};
        p->passes[0].n_nears = ++p->n_nears;
    }
    p->nears = t->nears;
}

/* All of them together, some as they are, and what all axes or some reduce of one. */
static void build(struct near_trial *t, struct operand own)
{
    struct built *b = &t->built;
    struct program *p = &b->program;
    struct operand sum = t->operands[0], none = {0};
    enum op op = dtype_is_float(t->dtype) ? OP_ADD : OP_BITWISE_XOR;
    for (unsigned i = 1; i < p->n_nears; i++)
        sum = built_insn(b, op, t->dtype, t->dtype, 0, sum, t->operands[i], none);
    b->inputs[0].has_own = check_below(2);
    if (b->inputs[0].has_own)
        sum = built_insn(b, op, t->dtype, t->dtype, 0, own, sum, none);
    built_store(b, sum);
    for (unsigned i = 0; i + 1 < MAX_STORED && i < p->n_nears; i++)
        built_store(b, t->operands[i]);
    if (check_below(2))
        return;
    built_reduction(b, OP_COUNT_NONZERO, DTYPE_INT64, t->operands[p->n_nears - 1u]);
    if (!dtype_is_float(t->dtype))
        built_reduction(b, OP_SUM, dtype_is_unsigned(t->dtype) ? DTYPE_UINT64 : DTYPE_INT64, sum);
    p->passes[0].reduced_axes = 1 + (uint32_t)check_below((UINT64_C(1) << t->ndim) - 1);
}

/* Grains' memory in the slot comes with the tile. */
static void draw_grain(struct near_trial *t, unsigned g)
{
    struct grain *grain = &grains[g];
    struct shape *s = &grain->shape;
    *s = (struct shape){.ndim = t->ndim, .n = 1};
    for (int i = 0; i < t->ndim; i++) {
        uint64_t length = (uint64_t)t->shape[i];
        s->count[i] = check_below(4) ? 1 + (int64_t)check_below(length) : t->shape[i];
        t->starts[g][i] = (int64_t)check_below(length - (uint64_t)s->count[i] + 1);
        if (check_below(3) == 0)
            t->starts[g][i] = check_below(2) ? 0 : t->shape[i] - s->count[i];
        s->order[i] = i;
        s->n *= (size_t)s->count[i];
    }
    for (int i = t->ndim - 1; i > 0 && check_below(3) == 0; i--) {
        int j = (int)check_below((uint64_t)i + 1), swapped = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = swapped;
    }
    grain->start = t->starts[g];
    for (unsigned i = 0; i < t->built.program.n_outputs; i++)
        grain_draw(&grain->outputs[i], s, t->built.outputs[i].dtype, true);
}

static void report(struct checkcuda *c, const struct near_trial *t, unsigned g, const char *what)
{
    c->check.n_failed++;
    printf("FAILED near %s%s: %s\n    seed %llu, %u nears, shape", dtype_name(t->dtype),
           t->whole.is_swapped ? " swapped" : "", what, (unsigned long long)c->check.seed,
           t->built.program.n_nears);
    for (int i = 0; i < t->ndim; i++)
        printf(" %lld", (long long)t->shape[i]);
    printf(", grain %u from", g);
    for (int i = 0; i < t->ndim; i++)
        printf(" %lld", (long long)t->starts[g][i]);
    printf(", ");
    shape_print(&grains[g].shape);
    printf("\n");
    for (unsigned i = 0; i < t->built.program.n_nears && i < MAX_STORED; i++) {
        printf("    near %u:", i);
        for (int k = 0; k < t->built.inputs[0].ndim; k++)
            printf(" %lld mode %u of %lld", (long long)t->nears[i].offsets[k], t->nears[i].modes[k],
                   (long long)t->built.inputs[0].shape[k]);
        printf("\n");
    }
}

static void run_plain(const struct near_trial *t, unsigned g, const struct reduce_layout *layout)
{
    const struct program *p = &t->built.program;
    const struct shape *s = &grains[g].shape;
    struct engine_view in = whole_view(p, 0, &t->whole, &grains[g]), out[MAX_STORED] = {{0}};
    struct engine_warnings warnings = {0};
    struct engine_box box = {
        .ndim = t->ndim, .count = s->count, .axis_order = s->order, .start = t->starts[g]};
    bool has_node = layout->n_reductions > 0;
    for (unsigned o = 0; o < p->n_outputs; o++) {
        int64_t step = (int64_t)dtype_size(p->outputs[o].dtype);
        out[o].base = expected[o];
        for (int i = t->ndim - 1; i >= 0; step *= s->count[i--])
            out[o].strides[i] = step;
    }
    if (cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), p, 0, &box, &in, out, NULL,
                       has_node ? layout : NULL, has_node ? nodes[0] : NULL, &warnings,
                       test_scratch()))
        exit(2);
}

static bool compare_output(struct checkcuda *c, const struct near_trial *t, unsigned g, unsigned o)
{
    const struct laid *l = &grains[g].outputs[o];
    enum dtype dtype = t->built.outputs[o].dtype;
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        char item[8];
        const char *want = expected[o] + i * dtype_size(dtype);
        laid_copy_item(item, laid_item(l, &grains[g].shape, i), dtype_size(dtype),
                       l->view.is_swapped);
        if (check_same(item, want, dtype))
            continue;
        report(c, t, g, "not the plain level's result");
        printf("    output %u, element %zu\n", o, i);
        check_print("wanted", want, dtype);
        check_print("got   ", item, dtype);
        return false;
    }
    return true;
}

static bool compare_grain(struct checkcuda *c, const struct near_trial *t,
                          const struct cuda_tile *tile, unsigned g)
{
    struct reduce_layout layout;
    struct engine_warnings got = {0};
    grain_layout(&grains[g], tile, &layout);
    if (layout.n_bytes > NODE_BYTES)
        exit(2);
    run_plain(t, g, &layout);
    c->check.n_run++;
    if (cuda_tile_result(tile, g, &layout, nodes[1], &got)) {
        report(c, t, g, "another status");
        return false;
    }
    for (unsigned i = 0; i < layout.n_reductions; i++)
        if (memcmp(reduce_values(&layout, nodes[0], i), reduce_values(&layout, nodes[1], i),
                   layout.n_cells * sizeof(uint64_t)) != 0) {
            report(c, t, g, "another result of a reduction");
            return false;
        }
    for (unsigned o = 0; o < t->built.program.n_outputs; o++)
        if (!compare_output(c, t, g, o))
            return false;
    return true;
}

static bool run_trial(struct checkcuda *c, struct near_trial *t, unsigned trial)
{
    struct near_box boxes[N_GRAINS];
    struct cuda_tile tile;
    memset(t, 0, sizeof(*t));
    built_init(&t->built);
    t->dtype = (enum dtype)(trial % DTYPE_COUNT);
    t->whole = (struct whole_array){.memory = array, .is_swapped = check_below(4) == 0};
    struct operand own = built_input(&t->built, t->dtype);
    draw_shape(t, trial);
    check_fill(array, t->dtype, t->n_bytes / dtype_size(t->dtype), true);
    draw_nears(t, trial % 16 == 0 ? MAX_NEARS : 1 + (unsigned)check_below(8));
    if (t->built.program.n_nears == 0)
        return true;
    build(t, own);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        draw_grain(t, g);
        near_box_lay(&t->built.program, 0, &t->whole, &grains[g], &boxes[g]);
    }
    rig_begin(c->rig, &tile, &t->built.program, 0, NULL, grains, N_GRAINS);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        grain_place(&grains[g], &tile);
        near_box_fill(&t->built.program, 0, &t->whole, &grains[g], &boxes[g]);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare_grain(c, t, &tile, g))
            return false;
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, 0, "wrote to its inputs or to the code");
    return false;
}

void checkcuda_near(struct checkcuda *c)
{
    static struct near_trial t;
    if (c->check.filter && !strstr("near", c->check.filter))
        return;
    check_restart(&c->check, "near", 0);
    for (unsigned trial = 0; trial < 40 * c->check.n_trials; trial++)
        if (!run_trial(c, &t, trial))
            break;
}
