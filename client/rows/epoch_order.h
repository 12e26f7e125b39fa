/* The rows of an epoch by position: as they are, shuffled, or shuffled by blocks. */
#pragma once

#include "client/rows/permuted.h"

enum row_shuffle { ROW_SHUFFLE_NONE, ROW_SHUFFLE_EXACT, ROW_SHUFFLE_BLOCKS };

struct epoch_order {
    enum row_shuffle shuffle;
    uint64_t n_rows, seed, epoch;
    struct permuted permuted;      /* of rows, or of blocks */
    uint64_t block_rows, n_blocks; /* the last one may be shorter: */
    uint64_t last_rows, last_at;   /* its rows, and the how manieth of the epoch it is */
};

void epoch_order_init(struct epoch_order *ret_order, enum row_shuffle shuffle, uint64_t n_rows,
                      uint64_t batch_size, uint64_t seed, uint64_t epoch);
/* The rows at positions first to first + n. */
void epoch_order_rows(const struct epoch_order *order, uint64_t first, uint64_t n,
                      int64_t *ret_rows);
