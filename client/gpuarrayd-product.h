/** gpuarrayd: matrix products of arrays of any size. Included by gpuarrayd.h.
 *
 *     C = alpha * op(A) @ op(B) + beta * C        as numpy.matmul, and as BLAS's gemm
 *
 *     struct gad_product product = {.left = a, .right = b, .alpha = 1};
 *     struct gad_move_options options = {.to_path = "c.npy"};
 *     gad_matmul(client, &product, &options, NULL, &error)
 *
 * Products with more than this around them (`maximum(a @ b + bias, 0)`) are expressions of a job.
 */
#pragma once

#include "gpuarrayd-move.h"
#include "gpuarrayd-plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gad_move_options; /* where another of the headers was included first */
struct gad_plan;

/** A product: what is multiplied, and what becomes of it. */
struct gad_product {
    struct gad_array *left, *right; /**< may be one array: then left @ right transposed is computed
                                         once for both of its halves */
    bool transpose_left, transpose_right; /**< with the last two axes exchanged; of a vector nothing
                                               changes */
    double alpha; /**< 1: the product as it is. Whole numbers below 2^63 are weak integers, as in
                       NumPy, others weak floats */
    double beta;  /**< what is in `to` before is multiplied by this and added; 0: it is not read.
                       Else `to` is in a file that was opened in place, or in memory */
    struct gad_scalar exact_alpha, exact_beta; /**< instead of alpha and beta, where the kind is not
                       GAD_SCALAR_NONE: every 64-bit integer as it is. A whole one of kind
                       GAD_SCALAR_FLOAT is a weak float */
    bool no_journal; /**< with beta: a job that ends too early leaves its output added to in part,
                          and nobody knows where. Else see has_journal of struct gad_job_options:
                          the same call goes on from its journal */
    const char *journal_path; /**< likewise; NULL: beside the output */
    bool tf32;                /**< a device may multiply float32 with TF32: see struct
                                   gad_job_options */
};

/** Multiplies, and waits for the end.
 * client: not NULL.
 * product: not NULL; its arrays are of the same client, with at least one axis each.
 * options: where to, and how. As of movements.
 * ret_stats: how it went; may be NULL.
 * GAD_BAD_ARGUMENT: no destination or two, beta with a new file, or an integer for alpha or beta
 * that is out of bounds for what it multiplies, which is of integers. GAD_BAD_SHAPE: inner sizes
 * that differ, or `to` is not of the product's shape. GAD_BAD_DTYPE. GAD_OVERLAPPING_OUTPUT: `to`
 * shares shared memory or a file's bytes with an operand. GAD_TOO_LARGE_FOR_POOL: the pool does not
 * hold one block of each; the message says how large it must be. GAD_BAD_JOURNAL: the journal
 * belongs to another job, or is damaged. GAD_BUSY: another job uses the journal. And those of
 * gad_run(). */
enum gad_status gad_matmul(struct gad_client *client, const struct gad_product *product,
                           const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                           struct gad_error *error);

/** Says what gad_matmul() would do, and runs nothing.
 * client, product, options: as of gad_matmul().
 * ret_plan: the caller's, ended by gad_plan_free().
 * The statuses of gad_plan(), and GAD_BAD_ARGUMENT as of gad_matmul(). */
enum gad_status gad_matmul_plan(struct gad_client *client, const struct gad_product *product,
                                const struct gad_move_options *options, struct gad_plan **ret_plan,
                                struct gad_error *error);

#ifdef __cplusplus
}
#endif
