/* Random programs of one pass, and random boxes and layouts to run them over, for comparisons of
 * engines. */
#pragma once

#include "tests/unit/kernels/cpu/check/check.h"

/* Of exact operations, with inputs, constants and coordinates as sources, and stores and reductions
 * at the end. n_inputs: about how many inputs there will be. */
void random_program(struct built *b, unsigned n_registers, unsigned n_insns, unsigned n_inputs,
                    int ndim);

struct random_box {
    struct engine_box box;
    int64_t count[ARRAY_MAX_NDIM], start[ARRAY_MAX_NDIM];
    int axis_order[ARRAY_MAX_NDIM];
    uint64_t n_elements;
};
void random_box(struct random_box *r, int ndim, uint64_t max_elements);

/* Strides of an operand; base: bytes from its memory's beginning; returns the bytes it needs.
 * Outputs are not broadcast. */
uint64_t random_view(const struct random_box *r, enum dtype dtype, bool is_output,
                     struct engine_view *ret_view, int64_t *ret_base);
