/* The device's interpreter, compiled for the host, against the CPU engine: random programs over
 * random boxes and layouts. Exact operations give the same bits, the same warnings, the same
 * refusals; sums of floats are near. */
#include "kernels/cuda/tile.h"
#include "proto/util.h"
#include "tests/unit/kernels/cuda/random_program.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (24u * 1024 * 1024)
#define NODE_BYTES (4u * 1024 * 1024)
#define PATTERN    0x77

struct side {
    struct engine_view outputs[REQUEST_MAX_OUTPUTS];
    void *node;
    struct engine_warnings warnings;
    int r;
};

struct comparison {
    struct built program;
    struct random_box box;
    struct engine_view inputs[REQUEST_MAX_ARGS];
    uint64_t n_input_bytes[REQUEST_MAX_ARGS], n_output_bytes[REQUEST_MAX_OUTPUTS];
    int64_t input_base[REQUEST_MAX_ARGS], output_base[REQUEST_MAX_OUTPUTS];
    struct reduce_layout layout;
    struct side cpu, device;
};

/* A slot, and a node each. */
static char *memory[3];

static void make_memory(void)
{
    static const size_t sizes[] = {SLOT_BYTES, NODE_BYTES, NODE_BYTES};
    for (unsigned i = 0; i < 3 && !memory[i]; i++) {
        memory[i] = aligned_alloc(ENGINE_SLOT_ALIGN, sizes[i]);
        cr_assert(ne(ptr, memory[i], NULL));
        memset(memory[i], 0, sizes[i]);
    }
}

/* Bytes of all operands' boxes. */
static void choose_views(struct comparison *c, uint64_t *ret_input_bytes,
                         uint64_t *ret_output_bytes)
{
    const struct program *p = &c->program.program;
    *ret_input_bytes = *ret_output_bytes = 0;
    for (unsigned i = 0; i < p->n_inputs; i++) {
        c->n_input_bytes[i] =
            random_view(&c->box, p->inputs[i].dtype, false, &c->inputs[i], &c->input_base[i]);
        *ret_input_bytes += round_up_u64(c->n_input_bytes[i], ENGINE_SLOT_ALIGN);
    }
    for (unsigned i = 0; i < p->n_outputs; i++) {
        c->n_output_bytes[i] = random_view(&c->box, p->outputs[i].dtype, true,
                                           &c->device.outputs[i], &c->output_base[i]);
        *ret_output_bytes += round_up_u64(c->n_output_bytes[i], ENGINE_SLOT_ALIGN);
    }
}

/* Random operands in the slot, outputs for both sides. */
static void place_operands(struct comparison *c, struct cuda_tile *t)
{
    const struct program *p = &c->program.program;
    for (unsigned i = 0; i < p->n_inputs; i++) {
        enum dtype dtype = p->inputs[i].dtype;
        char *box = cuda_tile_place_input(t, c->n_input_bytes[i]);
        check_fill(box, dtype, c->n_input_bytes[i] / dtype_size(dtype), true);
        c->inputs[i].base = box + c->input_base[i];
    }
    for (unsigned i = 0; i < p->n_outputs; i++) {
        uint64_t n_bytes = c->n_output_bytes[i];
        char *box = cuda_tile_place_output(t, n_bytes), *other = malloc(n_bytes);
        cr_assert(ne(ptr, other, NULL));
        memset(box, PATTERN, n_bytes);
        memset(other, PATTERN, n_bytes);
        c->cpu.outputs[i] = c->device.outputs[i];
        c->device.outputs[i].base = box + c->output_base[i];
        c->cpu.outputs[i].base = other + c->output_base[i];
    }
}

static uint64_t n_cells_of(const struct comparison *c)
{
    uint64_t n = 1;
    for (int i = 0; i < c->box.box.ndim; i++)
        n *= c->program.program.passes[0].reduced_axes >> i & 1 ? 1 : (uint64_t)c->box.count[i];
    return n;
}

static void run_device(struct comparison *c)
{
    struct cuda_tile t;
    struct engine_room room = {.n_elements = c->box.n_elements, .n_cells = n_cells_of(c)};
    choose_views(c, &room.input_bytes, &room.output_bytes);
    int r = cuda_tile_begin(&t, &c->program.program, 0, NULL, 1, &room, memory[0], SLOT_BYTES);
    cr_assert(eq(i32, r, 0));
    place_operands(c, &t);
    cuda_tile_add(&t, &c->box.box, c->inputs, c->device.outputs, NULL);
    struct interpreter_launch launch = cuda_tile_describe(&t);
    cr_assert(eq(i32, cuda_interpreter_run_on_host(&launch, memory[0]), 0));
    reduce_layout_init(&c->layout, &c->program.program, 0, room.n_cells);
    cr_assert(le(u64, c->layout.n_bytes, NODE_BYTES));
    c->device.node = memory[1];
    c->device.r = cuda_tile_result(&t, 0, &c->layout, c->device.node, &c->device.warnings);
}

static void run_cpu(struct comparison *c)
{
    bool has_node = c->layout.n_reductions > 0;
    c->cpu.node = memory[2];
    c->cpu.r = cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), &c->program.program, 0, &c->box.box,
                              c->inputs, c->cpu.outputs, NULL, has_node ? &c->layout : NULL,
                              has_node ? c->cpu.node : NULL, &c->cpu.warnings, test_scratch());
}

static char *item_at_element(const struct engine_view *view, const struct random_box *box,
                             uint64_t element)
{
    char *at = view->base;
    for (int i = box->box.ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        at += (int64_t)(element % (uint64_t)box->count[axis]) * view->strides[axis];
        element /= (uint64_t)box->count[axis];
    }
    return at;
}

static void read_item(const struct engine_view *view, const struct random_box *box,
                      uint64_t element, size_t item_bytes, unsigned char *ret_item)
{
    const char *at = item_at_element(view, box, element);
    for (size_t i = 0; i < item_bytes; i++)
        ret_item[i] = (unsigned char)at[view->is_swapped ? item_bytes - 1 - i : i];
}

static void compare_output(const struct comparison *c, unsigned i, unsigned seed)
{
    enum dtype dtype = c->program.program.outputs[i].dtype;
    unsigned char got[8], wanted[8];
    for (uint64_t k = 0; k < c->box.n_elements; k++) {
        read_item(&c->device.outputs[i], &c->box, k, dtype_size(dtype), got);
        read_item(&c->cpu.outputs[i], &c->box, k, dtype_size(dtype), wanted);
        cr_assert(check_same(got, wanted, dtype), "program %u, output %u (%s), element %lu of %lu",
                  seed, i, dtype_name(dtype), (unsigned long)k, (unsigned long)c->box.n_elements);
        memset(item_at_element(&c->device.outputs[i], &c->box, k), PATTERN, dtype_size(dtype));
    }
    /* Nothing else was written. */
    const char *box = (char *)c->device.outputs[i].base - c->output_base[i];
    for (uint64_t k = 0; k < c->n_output_bytes[i]; k++)
        cr_assert(box[k] == PATTERN, "program %u, output %u: byte %lu", seed, i, (unsigned long)k);
}

/* What overflows in one order may not in another. */
static bool is_near(double a, double b, double tolerance)
{
    if (!isfinite(a) || !isfinite(b))
        return isnan(a) == isnan(b) || !isfinite(a) || fabs(a) > 1e300;
    return a == b || fabs(a - b) <= tolerance;
}

static double number_at(const char *item, enum dtype dtype)
{
    double wide;
    float narrow;
    memcpy(&narrow, item, sizeof(narrow));
    if (dtype == DTYPE_FLOAT32)
        return (double)narrow;
    memcpy(&wide, item, sizeof(wide));
    return wide;
}

/* Sums, products and squared deviations are rounded, these as the sum's square is. */
static bool is_cell_right(const struct reduction *reduction, enum dtype dtype, const char *got,
                          const char *wanted, double sum)
{
    if (!dtype_is_float(dtype))
        return memcmp(got, wanted, dtype_size(dtype)) == 0;
    double a = number_at(got, dtype), b = number_at(wanted, dtype);
    if (reduction->op == OP_SUM || reduction->op == OP_PROD)
        return is_near(a, b, fmax(fabs(b), 1e300) * 1e-9);
    if (reduction->op == OP_SQUARED_DEVIATIONS)
        return is_near(a, b, fabs(b) * 1e-9 + sum * 1e-13 * (sum * 1e-13));
    return a == b || (isnan(a) && isnan(b));
}

static void compare_reduction(const struct comparison *c, unsigned i, unsigned seed)
{
    const struct reduction *reduction = &c->layout.reductions[i];
    bool is_deviations = reduction->op == OP_SQUARED_DEVIATIONS; /* whose sum is its own affair */
    for (unsigned plane = is_deviations; plane < reduce_n_planes(reduction); plane++) {
        enum dtype dtype = reduce_plane_dtype(reduction, plane);
        const char *got = reduce_plane(&c->layout, c->device.node, i, plane);
        const char *wanted = reduce_plane(&c->layout, c->cpu.node, i, plane);
        for (uint64_t k = 0; k < c->layout.n_cells; k++) {
            size_t at = k * dtype_size(dtype);
            const double *sums = reduce_plane(&c->layout, c->cpu.node, i, 0);
            double sum = is_deviations ? sums[k] : 0;
            cr_assert(
                is_cell_right(reduction, dtype, got + at, wanted + at, sum),
                "program %u, reduction %u (%s of %s) along %x, cell %lu, plane %u: %g, not %g",
                seed, i, op_info((enum op)reduction->op)->name,
                dtype_name((enum dtype)reduction->src.dtype),
                c->program.program.passes[0].reduced_axes, (unsigned long)k, plane,
                number_at(got + at, dtype), number_at(wanted + at, dtype));
        }
    }
}

static void compare(struct comparison *c, unsigned seed)
{
    const struct program *p = &c->program.program;
    run_device(c);
    run_cpu(c);
    cr_assert(c->device.r == c->cpu.r, "program %u: %d, not %d", seed, c->device.r, c->cpu.r);
    for (unsigned i = 0; i < p->n_outputs; i++) {
        if (c->cpu.r == 0)
            compare_output(c, i, seed);
        free((char *)c->cpu.outputs[i].base - c->output_base[i]);
    }
    for (unsigned i = 0; c->cpu.r == 0 && i < p->n_reductions; i++)
        compare_reduction(c, i, seed);
    if (c->cpu.r == 0) {
        cr_assert(c->device.warnings.n_divide_by_zero == c->cpu.warnings.n_divide_by_zero,
                  "program %u", seed);
        cr_assert(c->device.warnings.n_invalid_casts == c->cpu.warnings.n_invalid_casts,
                  "program %u", seed);
    }
}

static void compare_random(unsigned seed, unsigned n_registers, unsigned n_insns, unsigned n_inputs,
                           uint64_t max_elements)
{
    static struct comparison c;
    struct check start = {.seed = seed};
    make_memory();
    memset(&c, 0, sizeof(c));
    check_restart(&start, "interpreter", 0);
    int ndim = (int)check_below(5);
    random_program(&c.program, n_registers, n_insns, n_inputs, ndim);
    random_box(&c.box, ndim, max_elements);
    struct pass *pass = &c.program.program.passes[0];
    pass->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        pass->shape[i] = c.box.start[i] + c.box.count[i];
    compare(&c, seed);
}

Test(interpreter, agrees_with_the_cpu_engine_on_short_programs)
{
    for (unsigned seed = 0; seed < 3000; seed++)
        compare_random(seed, 3, 1 + seed % 3, 3, 600);
}

Test(interpreter, agrees_with_the_cpu_engine_on_long_programs)
{
    for (unsigned seed = 0; seed < 80; seed++)
        compare_random(seed, PROGRAM_MAX_REGISTERS, 200, 30, 900);
}

Test(interpreter, agrees_with_the_cpu_engine_on_many_blocks)
{
    for (unsigned seed = 0; seed < 20; seed++)
        compare_random(seed, 4, 4, 3, 40000);
}
