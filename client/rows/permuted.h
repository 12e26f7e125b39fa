/* The order of rows: in which row is at which position, and at which position a row. */
#pragma once

#include "proto/philox.h"

struct permuted {
    uint64_t n, seed; /* the latter of the epoch */
    bool is_shuffled; /* false: every row is at its own position */
    uint32_t n_bits;
    struct philox_block keys[12]; /* of the rounds; of few rows: none */
};

/* Epoch 0 of a seed is the order of permutation(n, seed); every other has a seed of its own. */
void permuted_init(struct permuted *ret_permuted, uint64_t n, uint64_t seed, uint64_t epoch,
                   bool is_shuffled);
/* The rows at positions first to first + n. */
void permuted_rows(const struct permuted *permuted, uint64_t first, uint64_t n, int64_t *ret_rows);
/* The position of a row; both are below n. */
uint64_t permuted_position(const struct permuted *permuted, uint64_t row);
