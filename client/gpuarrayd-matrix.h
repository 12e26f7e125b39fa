/** gpuarrayd: singular values, principal components, least squares and covariances of matrices that
 * are read, never held. Included by gpuarrayd-linalg.h.
 *
 *     struct gad_operand x = {.array = array};
 *     struct gad_svd_options options = {.size = sizeof(options), .k = 20, .to_path = "u.npy"};
 *     struct gad_svd_result result;
 *     if (gad_svd(client, &x, &options, &result, &error)) ...
 *     result.s.data[i], result.vectors.data[i * n_columns + j]
 *     gad_svd_result_deinit(&result);
 *
 * Of matrices with at most GAD_SVD_MOST columns, and where all values are wanted with at most
 * GAD_SVD_MOST_ALL, one read has the R of a QR decomposition, which is
 * all that singular values and least squares need to know of the rows, without squares: as close to
 * exact as LAPACK's in float64. Covariances and components are of sums of products of differences
 * from the mean in one read, which is faster; where a component's variance is below 1e-5 of the
 * largest (of float32 1e-9), R is read too. Of others the largest k are found by reads that each
 * improve a block of directions, x.T @ (x @ w): a block Krylov method (Musco and Musco, 2015).
 *
 * Components and directions of float32 data, and U with these, are of products in float32 whose
 * sums are float64: squares of values are within some 5e-8 of the largest one (seen: 1e-9 to 4e-8,
 * of data 10,000 deviations from zero 4e-7) of what float64 gives. Where the k-th square is below
 * 1e-4 of the largest, it is done in float64: components by one read more. Covariances are always
 * in float64, and so is all of float64(x).
 */
#pragma once

#include "gpuarrayd-linalg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GAD_SVD_MOST     1023
#define GAD_SVD_MOST_ALL 4096

/* ---- Singular values and their like ------------------------------------------------------- */

/** Zeroed but for size: all, of few columns or rows. */
struct gad_svd_options {
    size_t size;               /**< of this structure: sizeof */
    struct gad_linalg_run run; /**< an iteration is a read that improves directions */
    int64_t k;                 /**< how many, the largest; 0: all, which only matrices with at most
                                    GAD_SVD_MOST_ALL columns, or arrays of so many rows, have */
    bool values_only;          /**< no vectors */
    unsigned n_iterations;     /**< at most, of many columns; 0: 3, of gad_eigh() 8 */
    int64_t n_oversamples;     /**< directions beside the k; 0: 10; below 0: none */
    uint64_t seed;             /**< of the first directions */
    double tolerance;          /**< it is done when what is left of each is at most this part of the
                                    largest singular value's square; 0: after all iterations, and
                                    where values seem to be over 1 % off, that is the warning */
    const char *checkpoint; /**< an npz archive with the directions, written after each iteration;
                                 where it is there, the loop goes on from it. It stays. NULL:
                               none. Of matrices that are done in one read nothing is kept */
    struct gad_array *to;   /**< the vectors that have a row for each of the matrix, in float64:
                                 U, or the principal components' scores; where the result has
                                 has_u, Vh. One read more */
    const char *to_path;    /**< or a new file. Neither: they are not computed */
    const struct gad_storage *storage; /**< of `to_path`; may be NULL */
};

/** What a decomposition of a matrix gives. */
struct gad_svd_result {
    struct gad_dense s;       /**< k singular values, falling; of gad_eigh() eigenvalues, rising */
    struct gad_dense vectors; /**< Vh, components or eigenvectors: k x columns. Of gad_svd() with
                                 has_u U: rows x k. The largest element of each is positive */
    bool has_u; /**< the matrix has more than GAD_SVD_MOST columns, and not so many rows */
    struct gad_dense mean;     /**< of gad_pca(): of each column */
    double squares;            /**< of gad_pca(): sum of squared differences from the mean */
    int64_t n_rows, n_columns; /**< of the matrix */
    enum gad_dtype dtype;      /**< likewise */
    unsigned n_iterations;     /**< that were done, before a checkpoint too; 0: in one read */
    bool is_converged;         /**< the tolerance is reached, or it was done in one read */
    bool is_stopped;           /**< the callback did */
    struct gad_reads reads;    /**< of this call */
    double seconds;
    char warning[160]; /**< "": none */
};

/** Frees the elements.
 * result: NULL is allowed. */
void gad_svd_result_deinit(struct gad_svd_result *result);

/** Singular values and vectors: x = U @ diag(s) @ Vh.
 * client: not NULL.
 * x: of two axes, with elements.
 * options: not NULL.
 * ret_result: the caller's, ended by gad_svd_result_deinit().
 * GAD_BAD_SHAPE. GAD_BAD_RANK: k is more than the shorter side; or all are wanted of a matrix with
 * many columns. GAD_BAD_ARGUMENT: NaN or infinite elements, of which the error names the first.
 * GAD_TOO_LARGE_FOR_POOL. GAD_BAD_CHECKPOINT: it is of other data or settings. GAD_CANCELLED. And
 * those of gad_run(). */
enum gad_status gad_svd(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                        struct gad_error *error);

/** Principal components: the directions in which rows differ most from their mean, which is taken
 * out before anything is squared. The same parameters and statuses. s are the singular values of
 * the differences; s * s / (rows - 1) is the variance that a component explains.
 * client, x, options, ret_result: as of gad_svd(). */
enum gad_status gad_pca(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                        struct gad_error *error);

/** Eigenvalues of largest magnitude of a symmetric matrix, all of which is read.
 * client, x, ret_result: as of gad_svd().
 * options: with k; nothing is written.
 * The statuses of gad_svd(). */
enum gad_status gad_eigh(struct gad_client *client, const struct gad_operand *x,
                         const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                         struct gad_error *error);

/* ---- Least squares ------------------------------------------------------------------------ */

/** Zeroed but for size: as numpy.linalg.lstsq(). */
struct gad_lstsq_options {
    size_t size;               /**< of this structure: sizeof */
    struct gad_linalg_run run; /**< an iteration is a read of `a`; `fit` and `change` are NaN. What
                                    stops it before the last one ends with GAD_CANCELLED */
    double rcond;      /**< singular values up to this part of the largest are taken as zero; 0: the
                            precision of a's dtype times the longer side; below 0: none are */
    unsigned n_ridges; /**< 0: none */
    const double *ridges; /**< for each the x with least |a @ x - b|^2 + ridge * |x|^2, instead, of
                               the same read; 0 or more */
};

struct gad_lstsq_result {
    struct gad_dense x;         /**< n x m; of ridges n_ridges x n x m */
    struct gad_dense residuals; /**< m, or n_ridges x m: |a @ x - b|^2 */
    struct gad_dense s;         /**< n singular values of a, falling */
    int64_t rank;
    struct gad_reads reads; /**< a read of `a` has as many columns of b as fit one pass: 15, or
                               fewer where n is up to 192 and (n + 1) * m over 1024 */
    double seconds;
    char warning[160]; /**< of columns that depend on each other; "": none */
};

/** Frees the elements.
 * result: NULL is allowed. */
void gad_lstsq_result_deinit(struct gad_lstsq_result *result);

/** The x with least |a @ x - b|, in one read; of several the shortest one.
 * client: not NULL.
 * a: rows x n, of at most GAD_SVD_MOST_ALL columns; or an array of at most so many rows, which is
 * read twice, and has s for its rows.
 * b: an array of rows, or rows x m; or an expression of shape (rows, 1). Arguments with the names
 * of those of `a` are the same arrays.
 * options: not NULL.
 * ret_result: the caller's, ended by gad_lstsq_result_deinit().
 * GAD_BAD_SHAPE, GAD_LIMIT_EXCEEDED: too many columns. GAD_BAD_ARGUMENT: NaN or infinite elements;
 * a ridge below 0. And those of gad_run(). */
enum gad_status gad_lstsq(struct gad_client *client, const struct gad_operand *a,
                          const struct gad_operand *b, const struct gad_lstsq_options *options,
                          struct gad_lstsq_result *ret_result, struct gad_error *error);

/* ---- What they are made of ---------------------------------------------------------------- */

/** The R of x = Q @ R, with a diagonal that is not negative, in one read.
 * client: not NULL.
 * x: of at most GAD_SVD_MOST_ALL columns. Of over 192, or where the daemon's pool has no room for
 * R, LAPACK makes it in this process, of rows as they come from one job: R and a slab of rows.
 * run: may be NULL.
 * ret_r: columns x columns; the caller's, ended by gad_dense_deinit().
 * The statuses of gad_lstsq(). */
enum gad_status gad_qr_r(struct gad_client *client, const struct gad_operand *x,
                         const struct gad_linalg_run *run, struct gad_dense *ret_r,
                         struct gad_error *error);

/** How columns vary together, in one read; of data very far from zero in two.
 * client, x, run: as of gad_qr_r(), but of at most GAD_SVD_MOST columns.
 * ret_products: columns x columns: sums of products of differences from the mean. Divided by rows -
 * 1 they are numpy.cov(x, rowvar=False). The caller's.
 * ret_mean: of each column; the caller's; may be NULL.
 * The statuses of gad_lstsq(). */
enum gad_status gad_cov(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_linalg_run *run, struct gad_dense *ret_products,
                        struct gad_dense *ret_mean, struct gad_error *error);

#ifdef __cplusplus
}
#endif
