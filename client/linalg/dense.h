/* Linear algebra of small matrices in this process. All are float64 and in C order without gaps;
 * sizes are below 2^31 (limit-exceeded). not-found: there is no OpenBLAS. no-memory. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

/* c = alpha * op(a) @ op(b) + beta * c, of m x n, where op(a) has k columns. With beta 0 c is not
 * read. */
struct dense_product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    double alpha, beta;
};
int dense_multiply(const struct dense_product *product, const double *a, const double *b, double *c,
                   struct gad_error *error) GAD_MUST_CHECK;

/* The lower half of a @ a.T of n x k, or with is_transposed of a.T @ a of k x n, and of beta times
 * what ret has, added. */
int dense_gram(bool is_transposed, int64_t n, int64_t k, const double *a, double beta, double *ret,
               struct gad_error *error) GAD_MUST_CHECK;

/* Solves g @ x = row for each row of `rows`, in place: rows = rows @ inv(g). g is symmetric and
 * positive semidefinite, and stays. `ridge` is added to its diagonal; where that is singular to
 * working precision the least ridge that works is (a power of ten times that precision).
 * *ret_added: so much more than was asked for; 0: nothing was wrong. */
int dense_solve_rows(int64_t n, const double *g, double ridge, int64_t n_rows, double *rows,
                     double *ret_added, struct gad_error *error) GAD_MUST_CHECK;

/* a, of m >= n, becomes Q of a = Q @ R; ret_r, n x n: R, whose diagonal has any sign. May be NULL.
 */
int dense_qr(int64_t m, int64_t n, double *a, double *ret_r,
             struct gad_error *error) GAD_MUST_CHECK;

/* R of [r; rows], of n columns, in the place of r, which is upper triangular: its diagonal has any
 * sign. `rows`, m of them, are spoilt. */
int dense_qr_update(int64_t m, int64_t n, double *r, double *rows,
                    struct gad_error *error) GAD_MUST_CHECK;

/* a = u @ diag(s) @ vt, thin: with k = min(m, n) u is m x k, vt k x n, s falls. `a` is spoilt.
 * ret_u, ret_vt: may both be NULL. */
int dense_svd(int64_t m, int64_t n, double *a, double *ret_u, double *ret_s, double *ret_vt,
              struct gad_error *error) GAD_MUST_CHECK;

/* Of a symmetric matrix, of which the lower half is read, in place: row i becomes the eigenvector
 * of ret_values[i], which fall. Of the k largest of n; other rows are spoilt. ret_values: n. */
int dense_eigh(int64_t n, int64_t k, double *a, double *ret_values,
               struct gad_error *error) GAD_MUST_CHECK;
