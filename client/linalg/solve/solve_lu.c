/* LU factorisation with partial pivoting, left-looking, and systems of triangles.
 *
 *     panel = A, its rows as the pivots so far say             a job
 *     U     = inv(L) @ U, a tile after the other               jobs, and triangles here
 *     below = below - L @ U                                    a job
 *     below = its own LU, with pivots                          here, all of it in memory
 *
 * A panel has all rows, since any may be a pivot. Rows of columns to its left are exchanged in the
 * file at once, so that no later panel needs to know of it.
 */
#include "client/linalg/solve/solve.h"
#include "proto/util.h"

/* The tile at `row` on the diagonal, for a triangle. */
static int solve_diagonal(struct solve *s, enum solve_triangle kind, int64_t row, int64_t k,
                          int64_t n_columns, double *buffer, struct gad_error *error)
{
    struct solve_tile t = {k, k, k, buffer};
    struct solve_tile x = {k, n_columns, s->width, s->data + row * s->width};
    s->reads.read_bytes += (uint64_t)(k * k) * sizeof(*buffer);
    if (s->only_plans)
        return 0;
    int r = solve_work_read(&s->work, row, k, row, k, buffer, k, error);
    return r ? r : solve_tile_triangle(&t, kind, &x, error);
}

/* Tiles of a triangle on the diagonal are as wide as this, whatever the panel's width is. */
static int64_t tile_size(const struct solve *s)
{
    return min_i64(s->tile, max_i64(s->n, 1));
}

static double *new_tile(const struct solve *s)
{
    int64_t k = tile_size(s);
    return malloc((size_t)(k * k) * sizeof(double));
}

/* Rows of the panel lose what `l` times other rows of it are. */
static int subtract(struct solve *s, int64_t row, int64_t n_rows, const struct solve_box *l,
                    int64_t from, int64_t n_columns, struct gad_error *error)
{
    int64_t depth = l->is_transposed ? l->n_rows : l->n_columns;
    const struct solve_job job = {.expr = "c - l @ r",
                                  .c = solve_of_panel(s, row, n_rows, n_columns),
                                  .l = *l,
                                  .r = solve_of_panel(s, from, depth, n_columns),
                                  .to = solve_of_panel(s, row, n_rows, n_columns)};
    return depth > 0 ? solve_run(s, &job, error) : 0;
}

int solve_forward(struct solve *s, enum solve_triangle kind, int64_t first, int64_t end,
                  int64_t n_columns, struct gad_error *error)
{
    _cleanup_free_ double *buffer = new_tile(s);
    int r = buffer ? 0 : -ENOMEM;
    for (int64_t row = first, k; row < end && r == 0; row += k) {
        k = min_i64(tile_size(s), end - row);
        struct solve_box l = solve_of_factor(s, row, k, first, row - first);
        r = subtract(s, row, k, &l, first, n_columns, error);
        if (r == 0)
            r = solve_diagonal(s, kind, row, k, n_columns, buffer, error);
    }
    return r;
}

int solve_backward(struct solve *s, enum solve_triangle kind, int64_t n_columns,
                   struct gad_error *error)
{
    _cleanup_free_ double *buffer = new_tile(s);
    int64_t tile = tile_size(s);
    int r = buffer ? 0 : -ENOMEM;
    for (int64_t i = divide_up_i64(s->n, tile); i-- > 0 && r == 0;) {
        int64_t row = i * tile, k = min_i64(tile, s->n - row), end = row + k;
        struct solve_box l = solve_of_factor(s, row, k, end, s->n - end);
        if (kind == SOLVE_LOWER_TURNED) {
            l = solve_of_factor(s, end, s->n - end, row, k);
            l.is_transposed = true;
        }
        r = subtract(s, row, k, &l, end, n_columns, error);
        if (r == 0)
            r = solve_diagonal(s, kind, row, k, n_columns, buffer, error);
    }
    return r;
}

/* ---- factoring ---- */

static int make_panel(struct solve *s, int64_t column, int64_t k, struct gad_error *error)
{
    const struct solve_tile all = {s->n, k, s->width, s->data};
    const struct solve_job load = {.expr = "float64(c)",
                                   .c = {s->a, 0, s->n, column, k, false},
                                   .to = solve_of_panel(s, 0, s->n, k)};
    int r = solve_run(s, &load, error);
    if (r == 0)
        r = solve_check_finite(s, 0, 0, s->n, column, k, error);
    if (r == 0 && !s->only_plans)
        solve_tile_swap(&all, s->work.pivots, 0, column);
    if (r == 0)
        r = solve_forward(s, SOLVE_UNIT_LOWER, 0, column, k, error);
    if (r)
        return r;
    struct solve_box l = solve_of_factor(s, column, s->n - column, 0, column);
    return subtract(s, column, s->n - column, &l, 0, k, error);
}

static int factor_below(struct solve *s, int64_t column, int64_t k, struct gad_error *error)
{
    const struct solve_tile below = {s->n - column, k, s->width, s->data + column * s->width};
    int64_t *pivots = s->work.pivots + column, bad;
    int r = solve_tile_lu(&below, pivots, &bad, error);
    if (r)
        return r;
    for (int64_t i = 0; i < k && bad < 0; i++)
        pivots[i] += column;
    if (bad < 0)
        return 0;
    s->solved.place = column + bad;
    error_set(error, GAD_SINGULAR, "a",
              "the matrix is singular: column %lld depends on those before it",
              (long long)(column + bad));
    error_expected(error, "a matrix with an inverse");
    error_found(error, "%lld", (long long)(column + bad));
    return GAD_SINGULAR;
}

static int factor_panel(struct solve *s, int64_t column, struct gad_error *error)
{
    int64_t k = min_i64(s->width, s->n - column);
    int r = make_panel(s, column, k, error);
    s->reads.write_bytes += (uint64_t)(s->n * k) * sizeof(double);
    if (s->only_plans)
        s->work.n_done += k;
    if (r || s->only_plans)
        return r;
    r = factor_below(s, column, k, error);
    if (r == 0)
        r = solve_work_write(&s->work, 0, s->n, column, k, s->data, s->width, error);
    return r ? r : solve_work_swap(&s->work, column + k, error);
}

int solve_factor_lu(struct solve *s, struct gad_error *error)
{
    int r = 0;
    while (r == 0 && s->work.n_done < s->n) {
        r = factor_panel(s, s->work.n_done, error);
        if (r == 0)
            r = solve_tell(s, error);
    }
    return r;
}
