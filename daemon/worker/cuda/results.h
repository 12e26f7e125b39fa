/* Results of earlier passes' reductions and states of scans, as operands of a tile for the device.
 */
#pragma once

#include "daemon/worker/jobs/tile.h"
#include "kernels/cuda/tile.h"

struct cuda_result {
    unsigned reduction; /* among the program's */
    const void *home;   /* of the part that the slot holds; NULL: none yet */
    struct engine_view copy;
};

/* Those that the pass reads and that are not uniform (program_is_uniform()); its own states. */
struct cuda_results {
    unsigned n;
    struct cuda_result items[PROGRAM_MAX_REDUCTIONS];
};

/* A tile begins. Gives th->results with the results of one element and the tables. */
void cuda_results_begin(struct cuda_results *results, const struct tile *t,
                        struct thread_context *th);
/* What the grain in hand reads of them is copied to the slot, where that is not there already, and
 * th->results are views of it. */
void cuda_results_stage(struct cuda_results *results, struct cuda_tile *code, const struct tile *t,
                        struct thread_context *th);
/* The states that the grain in hand, `grain` of the tile, has left go to the carry. */
void cuda_results_keep_states(const struct cuda_tile *code, unsigned grain, const struct tile *t,
                              struct thread_context *th);
