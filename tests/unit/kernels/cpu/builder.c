/* Programs of one pass built by hand, for tests of the engine alone. */
#include "tests/unit/kernels/cpu/builder.h"

#include <string.h>

void built_init(struct built *b)
{
    memset(b, 0, sizeof(*b));
    b->program.n_passes = 1;
    b->program.passes[0].scanned_axis = -1;
    b->program.insns = b->insns;
    b->program.inputs = b->inputs;
    b->program.outputs = b->outputs;
    b->program.consts = b->consts;
}

struct operand built_input(struct built *b, enum dtype dtype)
{
    unsigned i = b->program.n_inputs++;
    b->inputs[i] = (struct program_input){.arg = (uint16_t)i, .dtype = dtype};
    b->program.passes[0].inputs_used |= (uint64_t)1 << i;
    return (struct operand){OPERAND_INPUT, (uint8_t)dtype, (uint16_t)i};
}

struct operand built_const(struct built *b, enum dtype dtype, union scalar value)
{
    unsigned i = b->program.n_consts++;
    b->consts[i] = (struct program_const){dtype, value};
    return (struct operand){OPERAND_CONST, (uint8_t)dtype, (uint16_t)i};
}

struct operand built_insn(struct built *b, enum op op, enum dtype compute, enum dtype result,
                          unsigned reg, struct operand x, struct operand y, struct operand z)
{
    struct operand dst = {OPERAND_REGISTER, (uint8_t)result, (uint16_t)reg};
    b->insns[b->program.n_insns++] = (struct insn){
        .op = (uint16_t)op, .compute = (uint8_t)compute, .dst = dst, .src = {x, y, z}};
    struct pass *pass = &b->program.passes[0];
    pass->n_insns++;
    if (reg >= pass->n_registers)
        pass->n_registers = (uint16_t)(reg + 1);
    return dst;
}

void built_reduction(struct built *b, enum op op, enum dtype result, struct operand src)
{
    b->program.reductions[b->program.n_reductions++] =
        (struct reduction){.op = (uint16_t)op, .result = (uint8_t)result, .src = src};
    b->program.passes[0].n_reductions++;
    b->program.passes[0].reduced_axes = UINT32_MAX;
}

void built_store(struct built *b, struct operand src)
{
    unsigned i = b->program.n_outputs++;
    b->program.n_all_outputs++;
    b->outputs[i].dtype = (enum dtype)src.dtype;
    b->program.stores[b->program.n_stores++] = (struct store){.output = (uint16_t)i, .src = src};
    b->program.passes[0].n_stores++;
}

union scalar built_value(const struct built *b, const struct built_node *node, unsigned i)
{
    struct reduce_layout layout;
    reduce_layout_init(&layout, &b->program, 0, 1);
    enum dtype dtype = (enum dtype)layout.reductions[i].result;
    union scalar value = {.u64 = 0};
    memcpy(&value, reduce_values(&layout, node, i), dtype_size(dtype));
    unsigned n_spare = 64 - 8 * (unsigned)dtype_size(dtype);
    if (dtype_is_signed(dtype))
        value.i64 = (int64_t)(value.u64 << n_spare) >> n_spare;
    return value;
}

void *test_scratch(void)
{
    static char scratch[CPU_SCRATCH_BYTES + CPU_WINDOW_BYTES] __attribute__((aligned(64)));
    return scratch;
}

int run_flat(const struct cpu_engine *engine, const struct built *b, size_t n,
             const void *const *inputs, void *const *outputs, void *ret_node,
             struct engine_warnings *ret_warnings)
{
    struct engine_view in[REQUEST_MAX_ARGS] = {0}, out[REQUEST_MAX_OUTPUTS] = {0};
    for (unsigned i = 0; i < b->program.n_inputs; i++) {
        in[i].base = (void *)(uintptr_t)inputs[i];
        in[i].strides[0] = (int64_t)dtype_size(b->inputs[i].dtype);
    }
    for (unsigned i = 0; i < b->program.n_outputs; i++) {
        out[i].base = outputs[i];
        out[i].strides[0] = (int64_t)dtype_size(b->outputs[i].dtype);
    }
    int64_t count = (int64_t)n;
    int axis = 0;
    struct engine_box box = {.ndim = 1, .count = &count, .axis_order = &axis};
    *ret_warnings = (struct engine_warnings){0};
    struct reduce_layout layout;
    reduce_layout_init(&layout, &b->program, 0, 1);
    return cpu_engine_run(engine, &b->program, 0, &box, in, out, NULL,
                          b->program.n_reductions ? &layout : NULL, ret_node, ret_warnings,
                          test_scratch());
}
