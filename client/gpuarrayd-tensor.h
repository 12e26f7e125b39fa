/** gpuarrayd: CP and Tucker decompositions of tensors that are read, never held. Included by
 * gpuarrayd-linalg.h.
 *
 *     struct gad_operand x = {.array = array};
 *     struct gad_cp_options options = {.size = sizeof(options), .rank = 10};
 *     struct gad_tensor_result result;
 *     if (gad_cp(client, &x, &options, &result, &error)) ...
 *     result.factors.core.data[r], result.factors.factors[0].data[i * 10 + r]
 *     gad_tensor_result_deinit(&result);
 *
 * A tensor is read in slabs along one axis: the first, or the longest where that is over four times
 * as long. For each slab its own rows of that axis' factor follow at once, and with them the slab's
 * part of what all other factors, and the fit, are made of: alternating least squares in one read
 * an iteration. What it needs of the daemon's pool is twice (elements / that axis) * rank numbers
 * of float64, and some of the slab; where only half of that is to be had, there are two reads, and
 * where there is less, two for each part of the columns. The plan says.
 */
#pragma once

#include "gpuarrayd-linalg.h"
#include "gpuarrayd-move.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gad_move_options; /* where another of the headers was included first */

#define GAD_MAX_FACTORS 8

/** A tensor as factors, one for each axis: of n elements along it and r columns n x r.
 *
 *     CP      sum over r of core[r] * factors[0][i, r] * factors[1][j, r] * ...
 *     Tucker  sum over p, q, ... of core[p, q, ...] * factors[0][i, p] * factors[1][j, q] * ...
 *
 * CP: core has one axis (the weights), all factors as many columns. Tucker: as many axes as there
 * are factors. */
struct gad_factors {
    bool is_tucker;
    int ndim; /**< 3 to GAD_MAX_FACTORS */
    struct gad_dense core;
    struct gad_dense factors[GAD_MAX_FACTORS];
};

/** Frees the elements of all.
 * factors: NULL is allowed. */
void gad_factors_deinit(struct gad_factors *factors);

/** Writes factors into an npz archive, as "weights" (Tucker: "core"), "factor_0", "factor_1" ...
 * path: of the archive, which appears whole or not at all, in the place of what has its name.
 * factors: not NULL.
 * The statuses of gad_dense_save(). */
enum gad_status gad_factors_save(const char *path, const struct gad_factors *factors,
                                 struct gad_error *error);

/** Reads what gad_factors_save() wrote, and checkpoints.
 * path: of the archive.
 * ret_factors: the caller's, ended by gad_factors_deinit().
 * GAD_NOT_FOUND, GAD_BAD_FORMAT; GAD_BAD_SHAPE: they do not fit each other. */
enum gad_status gad_factors_load(const char *path, struct gad_factors *ret_factors,
                                 struct gad_error *error);

/** What a decomposition gives. */
struct gad_tensor_result {
    struct gad_factors factors; /**< CP: columns have norm 1, but where the weight is 0. Tucker:
                                     columns are orthonormal */
    enum gad_dtype dtype;       /**< of the data */
    double norm;                /**< of the data */
    double relative_error;      /**< |data - decomposition| / |data|; below 1e-8 it is noise */
    unsigned n_iterations;      /**< that were done, those before a checkpoint too */
    bool is_converged;          /**< the tolerance ended it */
    bool is_stopped;            /**< the callback did */
    double ridge_added;     /**< the largest that a singular normal matrix got beyond what was asked
                                 for; 0: none did */
    struct gad_reads reads; /**< of this call */
    double seconds;
    char warning[160]; /**< "": none */
};

/** Frees the factors.
 * result: NULL is allowed. */
void gad_tensor_result_deinit(struct gad_tensor_result *result);

/* ---- CP ----------------------------------------------------------------------------------- */

enum gad_cp_init {
    GAD_CP_RANDOM, /**< numbers between 0 and 1, of the seed */
    GAD_CP_SVD     /**< leading singular vectors along each axis, of a sketch: one read more */
};

/** Zeroed but for size and rank: the usual. */
struct gad_cp_options {
    size_t size; /**< of this structure: sizeof */
    struct gad_linalg_run run;
    int64_t rank;     /**< 1 to 512 */
    bool nonnegative; /**< no element is below 0 (hierarchical alternating least squares) */
    double ridge;     /**< added to the diagonal of each normal matrix */
    enum gad_cp_init init;
    uint64_t seed;
    unsigned n_iterations;  /**< at most; 0: 100 */
    double tolerance;       /**< it is done when the relative error changes by less; 0: 1e-8; below
                                 0: all iterations are done */
    const char *checkpoint; /**< an npz archive that is written between iterations, with the factors
                                 as they are; where it is there, the loop goes on from it. It stays
                               at the end. NULL: none */
};

/** Decomposes a tensor into a sum of outer products.
 * client: not NULL.
 * tensor: of 3 to GAD_MAX_FACTORS axes.
 * options: not NULL.
 * ret_result: the caller's, ended by gad_tensor_result_deinit().
 * GAD_BAD_SHAPE: too few or too many axes, or one without elements. GAD_BAD_RANK: more than 512, or
 * than any tensor of this shape needs. GAD_BAD_ARGUMENT: NaN or infinite elements, of which the
 * error names the first. GAD_TOO_LARGE_FOR_POOL: not even reads of a column at a time are to be
 * had; the error says how large the pool must be. GAD_BAD_CHECKPOINT: it is of other data or
 * settings. GAD_CANCELLED. And those of gad_run(). */
enum gad_status gad_cp(struct gad_client *client, const struct gad_operand *tensor,
                       const struct gad_cp_options *options, struct gad_tensor_result *ret_result,
                       struct gad_error *error);

/** Says what gad_cp() would read, and runs nothing. A checkpoint is not looked at.
 * client, tensor, options: as of gad_cp().
 * ret_plan: the caller's.
 * The statuses of gad_cp() that are known before the data is read. */
enum gad_status gad_cp_explain(struct gad_client *client, const struct gad_operand *tensor,
                               const struct gad_cp_options *options,
                               struct gad_linalg_plan *ret_plan, struct gad_error *error);

/* ---- Tucker ------------------------------------------------------------------------------- */

/** Zeroed but for size, and ranks or the tolerance: the usual. */
struct gad_tucker_options {
    size_t size; /**< of this structure: sizeof */
    struct gad_linalg_run run;
    int64_t ranks[GAD_MAX_FACTORS]; /**< of each axis, at most 512; 0: what the tolerance needs */
    double tolerance; /**< relative error that ranks which are not given are chosen for */
    uint64_t seed;    /**< of the sketch */
    unsigned n_reads; /**< of the tensor, at most: 1, a sketch; 2 (0), a better one, mostly as good
                         as can be; more, until the error does not change (HOOI, one read a sweep).
                           Where ranks are not given the sketch itself may need some */
    const char *checkpoint; /**< as of gad_cp(), written after each read but those of a sketch that
                                 grows */
};

/** Decomposes a tensor into a small core and a factor with orthonormal columns for each axis.
 * client: not NULL.
 * tensor: of 3 to GAD_MAX_FACTORS axes.
 * options: not NULL.
 * ret_result: the caller's, ended by gad_tensor_result_deinit(); n_iterations are reads.
 * GAD_BAD_RANK: a rank above the axis or 512, or neither ranks nor tolerance. Else as of gad_cp().
 */
enum gad_status gad_tucker(struct gad_client *client, const struct gad_operand *tensor,
                           const struct gad_tucker_options *options,
                           struct gad_tensor_result *ret_result, struct gad_error *error);

/** Says what gad_tucker() would read, and runs nothing.
 * client, tensor, options: as of gad_tucker().
 * ret_plan: the caller's; where ranks are not given, of a sketch that suffices at once.
 * The statuses of gad_tucker() that are known before the data is read. */
enum gad_status gad_tucker_explain(struct gad_client *client, const struct gad_operand *tensor,
                                   const struct gad_tucker_options *options,
                                   struct gad_linalg_plan *ret_plan, struct gad_error *error);

/* ---- Factors that are there --------------------------------------------------------------- */

/** The tensor times the Khatri-Rao product of all factors but one, in one read: the right side of
 * that one's normal equations, times the weights.
 * client: not NULL.
 * tensor: of as many axes as there are factors, with their lengths.
 * factors: of CP.
 * mode: the axis that is left out; negative: from the end.
 * run: may be NULL.
 * ret_dense: n x rank; the caller's, ended by gad_dense_deinit().
 * GAD_BAD_SHAPE: the factors do not fit the tensor, or the mode is no axis. GAD_BAD_ARGUMENT: of
 * Tucker. And those of gad_run(). */
enum gad_status gad_mttkrp(struct gad_client *client, const struct gad_operand *tensor,
                           const struct gad_factors *factors, int mode,
                           const struct gad_linalg_run *run, struct gad_dense *ret_dense,
                           struct gad_error *error);

/** Measures |tensor - factors| / |tensor| in one read; below 1e-8 it is noise.
 * client, tensor, factors, run: as of gad_mttkrp(); Tucker too.
 * ret_error: of a tensor of zeros 0 or infinity.
 * Likewise. */
enum gad_status gad_relative_error(struct gad_client *client, const struct gad_operand *tensor,
                                   const struct gad_factors *factors,
                                   const struct gad_linalg_run *run, double *ret_error,
                                   struct gad_error *error);

/** Computes the tensor that factors stand for, of any size, with one write.
 * client: not NULL.
 * factors: 2 or more; of CP or Tucker.
 * dtype: GAD_FLOAT32 or GAD_FLOAT64, of a new file.
 * options: where to. As of movements.
 * ret_stats: how it went; may be NULL.
 * GAD_BAD_SHAPE: factors that do not fit each other, or `to`. And those of gad_run(). */
enum gad_status gad_reconstruct(struct gad_client *client, const struct gad_factors *factors,
                                enum gad_dtype dtype, const struct gad_move_options *options,
                                struct gad_job_stats *ret_stats, struct gad_error *error);

#ifdef __cplusplus
}
#endif
