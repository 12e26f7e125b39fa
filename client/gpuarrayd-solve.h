/** gpuarrayd: systems of equations and factors of dense matrices that do not fit memory. Included
 * by gpuarrayd-linalg.h.
 *
 * A matrix of n x n is factored from left to right, a panel of columns at a time: what all columns
 * before it subtract from the panel is one matrix product, a job of the daemon, and the panel's own
 * small factorisation is LAPACK's in this process. The factor lies in a file. About n^3 / (3 w)
 * elements are read, where w is the width of a panel, which the memory decides.
 *
 *     struct gad_solve_options options = {.size = sizeof(options), .to_path = "l.npy"};
 *     gad_cholesky(client, a, &options, NULL, &error)
 *
 * Everything is computed in float64; results of float32 matrices are rounded to float32, those of
 * all others are float64.
 */
#pragma once

#include "gpuarrayd-linalg.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where to, and how. Zeroed but for `size`: what can be. */
struct gad_solve_options {
    size_t size;               /**< sizeof(struct gad_solve_options) */
    struct gad_linalg_run run; /**< an iteration is a panel of columns; `fit` is NaN. What stops it
                                    ends with GAD_CANCELLED */
    struct gad_array *to;      /**< of exactly the result's shape; shares nothing with a source */
    const char *to_path;       /**< or a new file, committed at the end */
    const struct gad_storage *storage; /**< of `to_path`; may be NULL */
    uint64_t memory_bytes;  /**< of a panel: n rows of it, or of a Cholesky factor some of them. 0:
                               256  MiB. As much again is used beside it at most */
    const char *scratch;    /**< a folder for the factor, of n * n * 8 bytes, where it is not the
                               result    itself; NULL: $TMPDIR, else /var/tmp */
    const char *checkpoint; /**< the factor is in this file instead, with how far it is: the same
                                 call goes on from there. Removed at the end. Safe against the end
                                 of processes, not against loss of power; NULL: none */
    bool is_upper;          /**< of gad_cholesky(): the upper half is read, and the result is the
                                 upper factor of it */
    bool is_positive;       /**< of gad_solve(): the matrix is symmetric and positive definite, and
                                 only its lower half is read: half of the work */
};

/** What came of it. */
struct gad_solved {
    double sign, log_abs; /**< of the determinant, as numpy.linalg.slogdet(); of gad_cholesky(),
                               too */
    int64_t place; /**< from 0: the column at which the matrix is singular, or has an element that
                        is not finite, or the first leading minor that is not positive; -1: there is
                        none */
    struct gad_reads reads;
    int64_t width;       /**< of a panel */
    int64_t n_continued; /**< columns that an earlier call had done */
    double seconds;
};

enum gad_solve_kind { GAD_CHOLESKY, GAD_SOLVE, GAD_INV, GAD_SLOGDET };

/** The lower (or upper) factor of a symmetric positive definite matrix, as numpy.linalg.cholesky():
 * a = L @ L transposed, or U transposed @ U.
 * client: not NULL.
 * a: n x n numbers, of which only the lower half is read; with is_upper only the upper. No stream.
 * options: not NULL, with one destination of n x n. The half that the factor has not is zeros.
 * ret_solved: how it went, also where the matrix is none such; may be NULL.
 * GAD_SINGULAR: it is not positive definite; `found` has the place. GAD_BAD_ARGUMENT: NaN or
 * infinite elements, of which the error names one, as soon as it is read. GAD_BAD_SHAPE: a matrix
 * that is not square, or a destination of another shape. GAD_BAD_DTYPE. GAD_NO_SPACE,
 * GAD_OVERLAPPING_OUTPUT. GAD_CANCELLED: it was stopped; a checkpoint stays. GAD_BAD_CHECKPOINT:
 * the checkpoint is of something else. GAD_BUSY: another process uses it. GAD_NOT_FOUND: OpenBLAS
 * is not installed. GAD_LIMIT_EXCEEDED: n is beyond 2^30. And those of gad_run(). There is no
 * result after any of these; one that was given in `to` may be written in part. */
enum gad_status gad_cholesky(struct gad_client *client, struct gad_array *a,
                             const struct gad_solve_options *options, struct gad_solved *ret_solved,
                             struct gad_error *error);

/** The solution of a @ x = b, as numpy.linalg.solve(), by LU with partial pivoting.
 * client, a, options, ret_solved: as of gad_cholesky(), but all of `a` is read unless is_positive.
 * b: of n, or n x m; what is not finite is in the solution of its column. The destination has its
 * shape.
 * The statuses of gad_cholesky(); GAD_SINGULAR: a pivot is exactly zero. GAD_LIMIT_EXCEEDED:
 * memory_bytes does not hold n rows of 64 columns. */
enum gad_status gad_solve(struct gad_client *client, struct gad_array *a, struct gad_array *b,
                          const struct gad_solve_options *options, struct gad_solved *ret_solved,
                          struct gad_error *error);

/** The inverse, as numpy.linalg.inv(): for a few columns of it solve instead.
 * client, a, options, ret_solved, statuses: as of gad_solve(). */
enum gad_status gad_inv(struct gad_client *client, struct gad_array *a,
                        const struct gad_solve_options *options, struct gad_solved *ret_solved,
                        struct gad_error *error);

/** Sign and logarithm of the determinant, as numpy.linalg.slogdet(). The determinant is sign *
 * exp(log_abs).
 * client, a: as of gad_solve().
 * options: without a destination.
 * ret_solved: not NULL. A singular matrix has sign 0 and log_abs minus infinity.
 * The statuses of gad_solve() but GAD_SINGULAR. */
enum gad_status gad_slogdet(struct gad_client *client, struct gad_array *a,
                            const struct gad_solve_options *options, struct gad_solved *ret_solved,
                            struct gad_error *error);

/** Says what one of these would read, and runs nothing.
 * kind: which of them.
 * client, a, b, options: as theirs; b NULL where there is none. A destination is not looked at.
 * ret_plan: the caller's structure; an iteration is a panel.
 * Their statuses as far as they are known before. */
enum gad_status gad_solve_plan(struct gad_client *client, enum gad_solve_kind kind,
                               struct gad_array *a, struct gad_array *b,
                               const struct gad_solve_options *options,
                               struct gad_linalg_plan *ret_plan, struct gad_error *error);

#ifdef __cplusplus
}
#endif
