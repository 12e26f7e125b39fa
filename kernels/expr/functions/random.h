/* What the rules of random numbers share: the call, and its bits. */
#pragma once

#include "kernels/expr/rules/lower.h"

struct draw {
    struct lower l;
    uint16_t seed; /* uint64 constant */
    bool is_sized;
    uint16_t shape; /* of `size`; () without it */
};

/* seed and size. */
int random_begin(struct draw *d, struct compiler *c, const struct ast_node *n) GAD_MUST_CHECK;
uint16_t random_flat_index(struct draw *d);
uint16_t random_u64(struct draw *d, uint64_t value); /* a constant */
/* 32 or 64 bits of each element. */
uint16_t random_bits(struct draw *d, enum random_stream stream, bool is_wide);
/* src of other dtypes than the result. */
uint16_t random_step(struct draw *d, enum op op, enum dtype compute, enum dtype dtype,
                     unsigned n_src, const uint16_t *src);
