/* Programs of one pass built by hand, and boxes to run them over. */
#pragma once

#include "kernels/cpu/engine.h"

#define BUILT_MAX_INSNS 1024

struct built {
    struct program program;
    struct insn insns[BUILT_MAX_INSNS];
    struct program_input inputs[REQUEST_MAX_ARGS];
    struct program_output outputs[REQUEST_MAX_OUTPUTS];
    struct program_const consts[PROGRAM_MAX_CONSTS];
};

void built_init(struct built *b);
struct operand built_input(struct built *b, enum dtype dtype);
struct operand built_const(struct built *b, enum dtype dtype, union scalar value);
/* Into register `reg`; unused sources: (struct operand){0}. */
struct operand built_insn(struct built *b, enum op op, enum dtype compute, enum dtype result,
                          unsigned reg, struct operand x, struct operand y, struct operand z);
/* Over all axes; set passes[0].reduced_axes for others. */
void built_reduction(struct built *b, enum op op, enum dtype result, struct operand src);
void built_store(struct built *b, struct operand src);

/* A node of one cell, and a reduction's value in it (integers widened). */
struct built_node {
    _Alignas(64) char bytes[64 * (1 + PROGRAM_MAX_REDUCTIONS * REDUCE_MAX_PLANES)];
};
union scalar built_value(const struct built *b, const struct built_node *node, unsigned i);

/* 64-byte aligned CPU_SCRATCH_BYTES, one for the process. */
void *test_scratch(void); /* and CPU_WINDOW_BYTES behind it */

/* Runs pass 0 over contiguous native arrays of n elements (inputs and outputs in program order).
 * ret_node: of a layout of one cell; NULL without reductions. */
int run_flat(const struct cpu_engine *engine, const struct built *b, size_t n,
             const void *const *inputs, void *const *outputs, void *ret_node,
             struct engine_warnings *ret_warnings);
