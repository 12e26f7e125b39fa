/* Cholesky factorisation, left-looking: a panel of columns is made of the matrix and of all columns
 * to its left, its rows a part at a time where memory does not hold them all.
 *
 *     panel = A - L @ (its rows of the panel's diagonal tile) transposed     a job
 *     tile  = cholesky(tile)                                                 here
 *     rows below = rows @ inv(tile transposed)                               here
 */
#include "client/linalg/solve/solve.h"
#include "proto/util.h"

#include <string.h>

#define TILE_STRIPS 4   /* of the diagonal tile: what is above the diagonal is mostly left out */
#define LEAST_STRIP 256 /* rows */

/* Rows of a part of a panel, as they are before the panel's own factorisation; `at`: of the part.
 */
static int make_rows(struct solve *s, int64_t at, int64_t row, int64_t n_rows, int64_t column,
                     int64_t k, struct gad_error *error)
{
    struct solve_job job = {.expr = column > 0 ? "c - l @ r" : "float64(c)",
                            .c = {s->a, row, n_rows, column, k, false},
                            .to = solve_of_panel(s, at, n_rows, k)};
    if (n_rows == 0)
        return 0;
    if (column > 0) {
        job.l = solve_of_factor(s, row, n_rows, 0, column);
        job.r = solve_of_factor(s, column, k, 0, column);
        job.r.is_transposed = true;
    }
    int r = solve_run(s, &job, error);
    return r ? r : solve_check_finite(s, at, row, n_rows, column, k, error);
}

/* Of the diagonal tile each strip up to its own last column. */
static int make_tile(struct solve *s, int64_t column, int64_t k, struct gad_error *error)
{
    int64_t strip = column > 0 ? max_i64(divide_up_i64(k, TILE_STRIPS), LEAST_STRIP) : k;
    int r = 0;
    for (int64_t at = 0; at < k && r == 0; at += strip) {
        int64_t n = min_i64(strip, k - at);
        r = make_rows(s, at, column + at, n, column, at + n, error);
    }
    return r;
}

/* The diagonal tile is the first of the panel, and is kept for the parts to come. */
static int factor_tile(struct solve *s, int64_t column, int64_t k, double *kept,
                       struct gad_error *error)
{
    struct solve_tile tile = {k, k, s->width, s->data};
    int64_t bad = -1;
    if (s->only_plans)
        return 0;
    int r = solve_tile_cholesky(&tile, &bad, error);
    if (r)
        return r;
    if (bad >= 0) {
        s->solved.place = column + bad;
        error_set(error, GAD_SINGULAR, "a",
                  "the matrix is not positive definite: its leading minor of order %lld is not "
                  "positive",
                  (long long)(column + bad + 1));
        error_expected(error, "a positive definite matrix");
        error_found(error, "%lld", (long long)(column + bad));
        return GAD_SINGULAR;
    }
    for (int64_t i = 0; i < k; i++)
        memcpy(kept + i * k, s->data + i * s->width, (size_t)k * sizeof(*kept));
    return 0;
}

static int finish_rows(struct solve *s, int64_t row, int64_t n_rows, int64_t column, int64_t k,
                       double *kept, struct gad_error *error)
{
    int64_t n_above = row == column ? k : 0;
    struct solve_tile l = {k, k, k, kept};
    struct solve_tile rows = {n_rows - n_above, k, s->width, s->data + n_above * s->width};
    s->reads.write_bytes += (uint64_t)(n_rows * k) * sizeof(*kept);
    if (s->only_plans)
        return 0;
    int r = rows.n_rows > 0 ? solve_tile_rows(&l, &rows, error) : 0;
    return r ? r : solve_work_write(&s->work, row, n_rows, column, k, s->data, s->width, error);
}

static int factor_panel(struct solve *s, int64_t column, double *kept, struct gad_error *error)
{
    int64_t k = min_i64(s->width, s->n - column);
    int r = 0;
    for (int64_t row = column; row < s->n && r == 0; row += s->n_rows) {
        int64_t n_rows = min_i64(s->n_rows, s->n - row);
        int64_t n_above = row == column ? k : 0;
        r = n_above > 0 ? make_tile(s, column, k, error) : 0;
        if (r == 0)
            r = make_rows(s, n_above, row + n_above, n_rows - n_above, column, k, error);
        if (r == 0 && row == column)
            r = factor_tile(s, column, k, kept, error);
        if (r == 0)
            r = finish_rows(s, row, n_rows, column, k, kept, error);
    }
    return r ? r : solve_work_done(&s->work, column + k, s->is_upper ? 'U' : 'C', error);
}

int solve_factor_cholesky(struct solve *s, struct gad_error *error)
{
    _cleanup_free_ double *kept = malloc((size_t)(s->width * s->width + 1) * sizeof(*kept));
    int r = kept ? 0 : -ENOMEM;
    while (r == 0 && s->work.n_done < s->n) {
        r = factor_panel(s, s->work.n_done, kept, error);
        if (r == 0)
            r = solve_tell(s, error);
    }
    return r;
}
