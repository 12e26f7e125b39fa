/* The elements at some places of the sorted order, of each cell of a box. */
#pragma once

#include "kernels/cpu/run/reducer.h"

/* All KTHs of a pass. */
struct kth {
    const struct rank_kernels *kernels;
    transpose_fn *turn; /* of keys */
    unsigned item_log2; /* of a key */
    unsigned n_places;
    bool has_counts;
    struct ranked_place places[PASS_MAX_REDUCTIONS]; /* neighbours follow each other */
    char *planes[PASS_MAX_REDUCTIONS];               /* in the node: of each place */
    char *keys;                                      /* of the box, in visiting order */
    char *some;                                      /* of some cells, KTH_SOME_BYTES */
};

/* A row of the longest keys; so of the shorter ones some columns. */
#define KTH_SOME_BYTES (PROGRAM_MAX_KTH_ELEMENTS * sizeof(uint64_t))

/* Of the pass's KTH, whose plane it is; then which ones are near each other. */
void kth_add_place(struct kth *k, const struct kth_rank *place, void *plane);
void kth_find_near(struct kth *k);
/* Elements [first, first + n) of the box. */
void kth_take(struct kth *k, uint64_t first, size_t n, const void *src);
void kth_finish(const struct reducer *r, struct kth *k);
