/** gpuarrayd: what a job would do, before it is run. Included by gpuarrayd.h.
 *
 * The daemon's own plan of a job: where it would go, in which passes over the arrays, how much it
 * would move, how long it might take.
 *
 * All of it is the plan's and ends with it. The library alone makes the structures of this header,
 * and later versions may have more members at their ends: take them by pointer, do not copy them.
 * A struct gad_plan_output stays as it is: gad_job_result() fills one that is the caller's.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What one engine would take for a job. */
struct gad_plan_engine {
    char engine[16]; /**< "cpu", "cuda:0" */
    bool is_chosen;
    bool has_estimate;     /**< false: it cannot be used for this job; the numbers are 0 */
    double seconds;        /**< by itself */
    double behind_seconds; /**< what it has to do already */
    /** What the time goes to: "start" "memory" "file" "disk" "link" "work". */
    char bound[16];
    char why_not[256]; /**< of one that was not chosen */
};

/** One pass of a job over an array. */
struct gad_plan_pass {
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    uint32_t reduced_axes;      /**< bit i: axis i is reduced */
    uint32_t scanned_axes;      /**< bit i: results run along axis i; one at most */
    unsigned n_reads, n_writes; /**< arguments that it reads, outputs that it writes */
    /** Of one with a length in `shape` that nobody knows (GAD_UNKNOWN_LENGTH): 0. */
    uint64_t n_tiles, read_bytes, write_bytes;
};

/** A matrix product: C is computed in tiles, which stay in the daemon's pool while the operands are
 * read along the depth, step by step. */
struct gad_plan_product {
    char precision[16]; /**< the dtype in which it is computed, or "tf32" */
    /** Matrices, rows and columns of C that are computed at a time: with which it would take least
     * time, as the engine's rates are. */
    int64_t tile[3];
    int64_t block[3];   /**< and of what one thread multiplies at a time */
    uint64_t n_tiles;   /**< of C */
    uint64_t n_steps;   /**< of each tile, along the depth */
    int64_t step_depth; /**< of a step */
    /** Of a panel, what is read of the operands at a time along the depth: whole steps; but the
     * last panel may have less. */
    int64_t panel_depth;
    /** Of the operand that tiles share which follow each other: they stay in the pool for them, and
     * are read once. */
    uint64_t n_kept_panels;
    unsigned n_buffers; /**< 2: a panel is read while one is multiplied; 1: then reading waits */
    bool is_symmetric;  /**< an operand times itself, transposed: computed once */
    bool has_journal;   /**< tiles go to a journal first */
    uint64_t left_bytes, right_bytes; /**< read for each operand, in all tiles */
    double n_operations;              /**< multiplications and additions */
};

/** What a job would do. */
struct gad_plan {
    char engine[16]; /**< that would compute it */
    unsigned n_outputs;
    const struct gad_plan_output *const
        *outputs; /**< n_outputs of them, in the order of the job's */
    uint64_t n_tiles, read_bytes, write_bytes, carry_bytes;
    double seconds; /**< estimate */
    bool is_restartable;
    char *text;           /**< the whole plan for a reader, several lines */
    char engine_why[256]; /**< why that engine */
    unsigned n_engines;
    /** n_engines of them: all that the daemon has, or would have. */
    const struct gad_plan_engine *const *engines;
    unsigned n_passes;
    const struct gad_plan_pass *const *passes; /**< n_passes of them, one after the other */
    /** All passes for one part of the arrays, then all for the next: 1, or more where the results
     * of reductions would not fit the daemon's pool together. */
    uint64_t n_rounds;
    /** A matrix product, or NULL: the three passes are then the left operand, the right one, and C;
     * they go on tile by tile, and n_tiles counts turns. */
    const struct gad_plan_product *product;
};

/** Says what a job would do, and runs nothing: no output is created.
 * client: not NULL.
 * options: the job, as for gad_submit().
 * ret_plan: the caller's, ended by gad_plan_free().
 * The statuses of gad_submit() and those that gad_job_wait() has for a job that cannot be run.
 * Connection statuses. */
enum gad_status gad_plan(struct gad_client *client, const struct gad_job_options *options,
                         struct gad_plan **ret_plan, struct gad_error *error);

/** Frees a plan and all that it points to.
 * plan: of gad_plan(); NULL is allowed. */
void gad_plan_free(struct gad_plan *plan);

#ifdef __cplusplus
}
#endif
