/* A pass as the device's interpreter reads it: kernels/cuda/code.h. Pure code. */
#pragma once

#include "kernels/cuda/code.h"
#include "kernels/program.h"

/* What of a pass has a place in a grain's record, in this order: inputs by their index, axes whose
 * coordinates are read, stores in the pass's order. */
struct encode_places {
    uint64_t inputs; /* bit i: input i */
    uint32_t axes;
    unsigned n_loads, n_stores;
};

/* -EINVAL for a program that the compiler cannot have made. */
int encode_places_of(const struct program *program, unsigned pass,
                     struct encode_places *ret_places) GAD_MUST_CHECK;

/* Writes cells, instructions and operands to `code`, which is the slot's beginning; NULL: only
 * counts. The header lacks what the grains decide: place and grain sizes, results. reduced: results
 * of earlier passes' reductions, may be NULL where code is. -EINVAL as above. */
int encode_pass(const struct program *program, unsigned pass, const union scalar *reduced,
                char *code, struct code_header *ret_header, uint64_t *ret_n_bytes) GAD_MUST_CHECK;
