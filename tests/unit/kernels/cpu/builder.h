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
void built_reduction(struct built *b, enum op op, enum dtype result, struct operand src);
void built_store(struct built *b, struct operand src);

/* 64-byte aligned CPU_SCRATCH_BYTES, one for the process. */
void *test_scratch(void);

/* Runs pass 0 over contiguous native arrays of n elements (inputs and outputs in program order). */
int run_flat(const struct cpu_engine *engine, const struct built *b, size_t n,
             const void *const *inputs, void *const *outputs, struct partial *ret_partials,
             struct cpu_warnings *ret_warnings);
