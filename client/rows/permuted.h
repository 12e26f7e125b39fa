/* The order of rows: in which row is at which position, and at which position a row. */
#pragma once

#include "proto/philox.h"

/* What the rounds' function gives for every half, so that many rows cost a few reads each. Kept
 * from one order to the next; zeroed at first. */
struct permuted_tables {
    uint64_t n, seed;  /* whose they are */
    uint16_t *entries; /* NULL: none */
};
void permuted_tables_deinit(struct permuted_tables *tables);

struct permuted {
    uint64_t n, seed; /* the latter of the epoch */
    bool is_shuffled; /* false: every row is at its own position */
    uint32_t n_bits;
    struct philox_block keys[12]; /* of the rounds; of few rows: none */
    const uint16_t *tables;       /* NULL: none */
};

/* Epoch 0 of a seed is the order of permutation(n, seed); every other has a seed of its own. */
void permuted_init(struct permuted *ret_permuted, uint64_t n, uint64_t seed, uint64_t epoch,
                   bool is_shuffled);
/* For who asks for most rows of an order. The tables are made or, of the same order, used again;
 * they are needed as long as the order, and for no other. Without effect where they would cost more
 * than they save, or memory is short. */
void permuted_use_tables(struct permuted *permuted, struct permuted_tables *tables);
/* The rows at positions first to first + n. */
void permuted_rows(const struct permuted *permuted, uint64_t first, uint64_t n, int64_t *ret_rows);
/* The position of a row; both are below n. */
uint64_t permuted_position(const struct permuted *permuted, uint64_t row);
