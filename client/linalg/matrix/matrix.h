/* Matrices that are read, never held: what singular values, least squares and covariances share.
 *
 * The data of `passes` is a matrix of many rows here; one with few rows and many columns is read
 * through a view that is turned.
 */
#pragma once

#include "client/linalg/dense_files.h"
#include "client/linalg/passes.h"
#include "client/gpuarrayd-matrix.h"

#define MATRIX_QUICK_COLUMNS 192 /* up to which a job is no slower than LAPACK in this process */

/* passes_init(), of two axes with elements. run: may be NULL; its plan makes passes that only plan.
 * bad-shape. */
int matrix_init(struct passes *p, const char *argument, struct gad_client *client,
                const struct gad_operand *operand, const struct gad_linalg_run *run,
                struct gad_error *error) GAD_MUST_CHECK;
/* bad-shape, limit-exceeded: more columns than `most`. */
int matrix_check_columns(const struct passes *p, const char *argument, int64_t most,
                         struct gad_error *error) GAD_MUST_CHECK;

/* Whether R is of an array turned, which has at most `most` rows. */
bool matrix_turns(const struct passes *p, const struct gad_operand *operand, int64_t most);

double *matrix_new(int64_t rows, int64_t columns, struct gad_error *error);
/* Each row gets the sign that makes its largest element positive. Columns alike: of a matrix that
 * is seen as (rows, columns) by its steps. */
void matrix_turn_signs(int64_t n, int64_t n_elements, int64_t step, int64_t element_step,
                       double *vectors);

/* An array of float64 in shared memory with these elements, as passes_new_matrix(). */
int matrix_share(struct passes *p, int ndim, const int64_t *shape, const double *elements,
                 struct gad_array **ret, struct gad_error *error) GAD_MUST_CHECK;

/* matrix_triangle.c. A column behind the matrix. */
struct matrix_column {
    const char *parts, *expr; /* of shape (rows, 1); parts: "m = ..;", or "" */
};
/* Of [data - centre | column] R in float64 for each column, of one read, whose diagonals are not
 * negative: [R, c; 0, rest], where R is the same for all.
 * centre: for each column a number, or NULL.
 * n: of columns; 0: R of the data alone.
 * inputs: of the columns.
 * ret_r: n x n. ret_behind: for each column c and rest, n + 1 numbers. Not written where passes
 * only plan. Where they are not finite, that is for the caller to find: *ret_is_finite. */
int matrix_triangles(struct passes *p, struct gad_array *centre, unsigned n,
                     const struct matrix_column *columns, unsigned n_inputs,
                     const struct gad_argument *inputs, double *ret_r, double *ret_behind,
                     bool *ret_is_finite, struct gad_error *error) GAD_MUST_CHECK;
/* The same of the data alone. bad-argument: not finite. */
int matrix_triangle(struct passes *p, const char *argument, struct gad_array *centre, double *ret_r,
                    struct gad_error *error) GAD_MUST_CHECK;

/* matrix_rows.c. The same, with diagonals of any sign, where no job makes them.
 * texts: of the data and each column.
 * *ret_is_finite: of all elements that were read; without it nothing is written. */
int matrix_triangles_of_rows(struct passes *p, unsigned n_columns, unsigned n_inputs,
                             const struct gad_argument *inputs, char *const *texts, double *ret_r,
                             double *ret_behind, bool *ret_is_finite,
                             struct gad_error *error) GAD_MUST_CHECK;

/* matrix_cov.c. The mean, of columns, and a factor F: F.T @ F are the sums of products about it.
 * operand: of the passes; an array tells its first rows' mean. k: of F's singular values the k-th
 * and those before it are as close to exact as R's; of float32 data their squares to some 5e-8 of
 * the largest one's. */
int matrix_spread(struct passes *p, const struct gad_operand *operand, int64_t k, double *ret_mean,
                  double *ret_factor, struct gad_error *error) GAD_MUST_CHECK;

/* matrix_directions.c. */
struct checkpoint;
struct directions {
    struct passes *p;
    const char *argument;
    const char *expr;        /* of `_x`, `_m` and `_w`: what the operator makes of n x width `_w` */
    const char *single_expr; /* the same in float32; NULL: never */
    struct gad_array *centre; /* `_m`; NULL: none */
    int64_t n, k;
    unsigned n_iterations;
    int64_t n_oversamples;
    uint64_t seed;
    double tolerance;
    bool is_of_squares; /* values are squares of the data's */
    struct checkpoint *checkpoint;
    /* What comes out. vectors: k x n. */
    double *values, *vectors;
    double off; /* an estimate of what part a value is too small by, at most */
    unsigned n_done;
    bool is_converged, is_stopped;
    bool is_single;           /* to the end; while passes only plan, at the beginning */
    struct gad_reads planned; /* of one iteration, where passes only plan */
    double planned_s;
};
/* Values of largest magnitude of a symmetric operator, falling, and their vectors.
 * directions_deinit() whatever the outcome. */
int directions_find(struct directions *d, struct gad_error *error) GAD_MUST_CHECK;
void directions_deinit(struct directions *d);

/* The end of a plan: what was planned before and within an iteration, and at the end. */
void matrix_tell_plan(const struct passes *p, const struct gad_reads *start, unsigned n_iterations,
                      const struct gad_reads *iteration, const struct gad_reads *finish,
                      double seconds, const char *method);
