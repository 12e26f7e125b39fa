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
#define PATTERN    0x77

struct side {
    struct cpu_view outputs[REQUEST_MAX_OUTPUTS];
    struct partial partials[PROGRAM_MAX_REDUCTIONS];
    struct cpu_warnings warnings;
    int r;
};

struct comparison {
    struct built program;
    struct random_box box;
    struct cpu_view inputs[REQUEST_MAX_ARGS];
    uint64_t n_input_bytes[REQUEST_MAX_ARGS], n_output_bytes[REQUEST_MAX_OUTPUTS];
    int64_t input_base[REQUEST_MAX_ARGS], output_base[REQUEST_MAX_OUTPUTS];
    struct side cpu, device;
    char *slot;
};

static char *new_slot(void)
{
    char *slot = aligned_alloc(CUDA_TILE_ALIGN, SLOT_BYTES);
    cr_assert(ne(ptr, slot, NULL));
    memset(slot, 0, SLOT_BYTES);
    return slot;
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
        *ret_input_bytes += round_up_u64(c->n_input_bytes[i], CUDA_TILE_ALIGN);
    }
    for (unsigned i = 0; i < p->n_outputs; i++) {
        c->n_output_bytes[i] = random_view(&c->box, p->outputs[i].dtype, true,
                                           &c->device.outputs[i], &c->output_base[i]);
        *ret_output_bytes += round_up_u64(c->n_output_bytes[i], CUDA_TILE_ALIGN);
    }
}

/* Random operands in the slot, outputs for both sides. */
static void place_operands(struct comparison *c, struct cuda_tile *t)
{
    const struct program *p = &c->program.program;
    for (unsigned i = 0; i < p->n_inputs; i++) {
        enum dtype dtype = p->inputs[i].dtype;
        char *memory = cuda_tile_place_input(t, c->n_input_bytes[i]);
        check_fill(memory, dtype, c->n_input_bytes[i] / dtype_size(dtype), true);
        c->inputs[i].base = memory + c->input_base[i];
    }
    for (unsigned i = 0; i < p->n_outputs; i++) {
        uint64_t n_bytes = c->n_output_bytes[i];
        char *memory = cuda_tile_place_output(t, n_bytes), *other = malloc(n_bytes);
        cr_assert(ne(ptr, other, NULL));
        memset(memory, PATTERN, n_bytes);
        memset(other, PATTERN, n_bytes);
        c->cpu.outputs[i] = c->device.outputs[i];
        c->device.outputs[i].base = memory + c->output_base[i];
        c->cpu.outputs[i].base = other + c->output_base[i];
    }
}

static void run_device(struct comparison *c)
{
    struct cuda_tile t;
    uint64_t input_bytes, output_bytes;
    choose_views(c, &input_bytes, &output_bytes);
    int r = cuda_tile_begin(&t, &c->program.program, 0, NULL, 1, input_bytes, output_bytes, c->slot,
                            SLOT_BYTES);
    cr_assert(eq(i32, r, 0));
    place_operands(c, &t);
    cuda_tile_add(&t, &c->box.box, c->inputs, c->device.outputs);
    struct interpreter_launch launch = cuda_tile_describe(&t);
    cr_assert(eq(i32, cuda_interpreter_run_on_host(&launch, c->slot), 0));
    c->device.r = cuda_tile_result(&t, 0, c->device.partials, &c->device.warnings);
}

static void run_cpu(struct comparison *c)
{
    c->cpu.r = cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), &c->program.program, 0, &c->box.box,
                              c->inputs, c->cpu.outputs, NULL, c->cpu.partials, &c->cpu.warnings,
                              test_scratch());
}

static char *item_at_element(const struct cpu_view *view, const struct random_box *box,
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

static void read_item(const struct cpu_view *view, const struct random_box *box, uint64_t element,
                      size_t item_bytes, unsigned char *ret_item)
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
    const char *memory = (char *)c->device.outputs[i].base - c->output_base[i];
    for (uint64_t k = 0; k < c->n_output_bytes[i]; k++)
        cr_assert(memory[k] == PATTERN, "program %u, output %u: byte %lu", seed, i,
                  (unsigned long)k);
}

static bool is_near(double a, double b, double scale)
{
    if (!isfinite(b))
        return isnan(b) ? isnan(a) || isinf(a) : a == b || isnan(a) || isinf(a);
    return a == b || fabs(a - b) <= scale * 1e-9;
}

static void compare_partial(const struct comparison *c, unsigned i, unsigned seed)
{
    const struct reduction *reduction = &c->program.program.reductions[i];
    union scalar got = c->device.partials[i].value, wanted = c->cpu.partials[i].value;
    bool is_good = got.u64 == wanted.u64;
    if (reduction->result == DTYPE_FLOAT64 && reduction->op == OP_SUM)
        is_good = is_near(got.f64, wanted.f64, fmax(fabs(wanted.f64), 1e300));
    else if (reduction->result == DTYPE_FLOAT64)
        is_good = got.f64 == wanted.f64 || (isnan(got.f64) && isnan(wanted.f64));
    else if (reduction->result == DTYPE_FLOAT32)
        is_good = got.f32 == wanted.f32 || (isnan(got.f32) && isnan(wanted.f32));
    cr_assert(is_good, "program %u, reduction %u (%s of %s): %g, not %g; %lx, not %lx", seed, i,
              op_info((enum op)reduction->op)->name, dtype_name((enum dtype)reduction->src.dtype),
              got.f64, wanted.f64, (unsigned long)got.u64, (unsigned long)wanted.u64);
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
        compare_partial(c, i, seed);
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
    char *slot = c.slot ? c.slot : new_slot();
    memset(&c, 0, sizeof(c));
    c.slot = slot;
    check_restart(&start, "interpreter", 0);
    int ndim = (int)check_below(5);
    random_program(&c.program, n_registers, n_insns, n_inputs, ndim);
    random_box(&c.box, ndim, max_elements);
    struct pass *pass = &c.program.program.passes[0];
    pass->ndim = ndim;
    memcpy(pass->shape, c.box.count, sizeof(pass->shape));
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
