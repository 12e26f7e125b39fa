/* Factors, solutions, inverses and determinants of matrices that do not fit memory: the public
 * functions.
 *
 *     x = inv(U) @ inv(L) @ (b, its rows as the pivots say)
 *
 * some columns of b at a time, as many as memory has: n * n elements of the factor are read for
 * each. The inverse is the solution of the identity.
 */
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/linalg/solve/solve.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the right side ---- */

/* Columns of the identity; *ret_first: the first row that is not zero, as a multiple of a tile. */
static void fill_identity(const struct solve *s, int64_t column, int64_t k)
{
    memset(s->data, 0, (size_t)(s->n * s->width) * sizeof(*s->data));
    for (int64_t i = 0; i < k; i++)
        s->data[(column + i) * s->width + i] = 1;
}

static int64_t first_row(const struct solve *s, int64_t k)
{
    int64_t row = 0;
    for (; row < s->n; row++)
        for (int64_t i = 0; i < k; i++)
            if (s->data[row * s->width + i] != 0)
                return row / s->tile * s->tile;
    return row;
}

static int load_right(struct solve *s, int64_t column, int64_t k, int64_t *ret_first,
                      struct gad_error *error)
{
    const struct solve_tile all = {s->n, k, s->width, s->data};
    const struct solve_job load = {.expr = "float64(c)",
                                   .c = {s->b, 0, s->n, column, k, false},
                                   .to = solve_of_panel(s, 0, s->n, k)};
    int r = s->b ? solve_run(s, &load, error) : 0;
    *ret_first = 0;
    if (r || s->only_plans)
        return r;
    if (!s->b)
        fill_identity(s, column, k);
    if (!s->is_cholesky)
        solve_tile_swap(&all, s->work.pivots, 0, s->n);
    if (!s->b)
        *ret_first = first_row(s, k);
    return 0;
}

static int solve_columns(struct solve *s, struct gad_array *to, int64_t column,
                         struct gad_error *error)
{
    int64_t k = min_i64(s->width, s->n_right - column), first;
    int r = load_right(s, column, k, &first, error);
    if (r == 0)
        r = solve_forward(s, s->is_cholesky ? SOLVE_LOWER : SOLVE_UNIT_LOWER, first, s->n, k,
                          error);
    if (r == 0)
        r = solve_backward(s, s->is_cholesky ? SOLVE_LOWER_TURNED : SOLVE_UPPER, k, error);
    struct solve_job store = {
        .expr = "c", .c = solve_of_panel(s, 0, s->n, k), .to = {to, 0, s->n, column, k, false}};
    if (s->only_plans)
        store.to = store.c;
    if (s->result == GAD_FLOAT32)
        store.expr = "float32(c)";
    return r ? r : solve_run(s, &store, error);
}

static int solve_all(struct solve *s, struct gad_array *to, struct gad_error *error)
{
    int64_t wide = s->width * s->n_rows / max_i64(s->n, 1);
    int r = solve_new_panel(s, s->n, max_i64(min_i64(s->n_right, wide), 1), error);
    for (int64_t column = 0; column < s->n_right && r == 0; column += s->width) {
        r = solve_columns(s, to, column, error);
        if (r == 0)
            r = solve_tell(s, error);
    }
    return r;
}

/* ---- results ---- */

/* Whether a new array can be the file of the factor, so that it need not be copied. */
static bool is_own_file(const struct solve *s, const struct move *move)
{
    const struct gad_array *to = move->to;
    bool is_plain = s->kind == GAD_CHOLESKY && s->result == GAD_FLOAT64 && !s->is_upper &&
                    !s->options->checkpoint;
    return is_plain && move->is_created && to->access == ACCESS_FILE && !to->is_write_only;
}

static int copy_factor(struct solve *s, struct gad_array *to, struct gad_error *error)
{
    struct solve_job copy = {.expr = s->result == GAD_FLOAT32 ? "float32(c)" : "c",
                             .c = solve_of_factor(s, 0, s->n, 0, s->n),
                             .to = {to, 0, s->n, 0, s->n, false}};
    copy.c.is_transposed = s->is_upper;
    return solve_run(s, &copy, error);
}

static int take_determinant(struct solve *s, struct gad_error *error)
{
    double sign = 1, log_abs = 0, value;
    for (int64_t i = 0; i < s->n; i++) {
        int r = solve_work_read(&s->work, i, 1, i, 1, &value, 1, error);
        if (r)
            return r;
        log_abs += log(fabs(value));
        sign = isnan(value) ? NAN : value < 0 ? -sign : sign;
        if (!s->is_cholesky && s->work.pivots[i] != i)
            sign = -sign;
    }
    s->solved.sign = sign;
    s->solved.log_abs = s->is_cholesky ? 2 * log_abs : log_abs;
    return 0;
}

/* Factors, and does what is asked for with that; `to` NULL: only the determinant. */
static int factor(struct solve *s, struct gad_array *to, bool is_own, struct gad_error *error)
{
    char work = s->is_upper ? 'U' : s->is_cholesky ? 'C' : 'L';
    int r = solve_work_open(s, work, is_own ? to : NULL, error);
    if (s->kind == GAD_SOLVE || s->kind == GAD_INV)
        s->n_steps += (unsigned)divide_up_i64(s->n_right, s->width);
    if (r == 0)
        r = solve_new_panel(s, s->n_rows, s->width, error);
    if (r == 0)
        r = s->is_cholesky ? solve_factor_cholesky(s, error) : solve_factor_lu(s, error);
    if (r == 0 && !s->only_plans)
        r = take_determinant(s, error);
    if (r == 0 && to && s->kind == GAD_CHOLESKY && !is_own)
        r = copy_factor(s, to, error);
    if (r == 0 && (to || s->only_plans) && s->kind != GAD_CHOLESKY && s->kind != GAD_SLOGDET)
        r = solve_all(s, to, error);
    return r;
}

static int into_destination(struct solve *s, struct gad_error *error)
{
    struct gad_array *const sources[] = {s->a, s->b};
    const struct gad_solve_options *options = s->options;
    const struct gad_move_options where = {
        .to = options->to, .to_path = options->to_path, .storage = options->storage};
    struct move_result result = {.dtype = s->result, .ndim = 2, .shape = {s->n, s->n_right}};
    struct move move = {.to = NULL};
    if (s->b)
        result.ndim = s->b->info.ndim;
    int r = move_check(s->client, s->b ? 2 : 1, sources, &where, error);
    if (r == 0)
        r = move_init(&move, s->client, &where, &result, s->b ? 2 : 1, sources, error);
    if (r == 0)
        r = factor(s, move.to, is_own_file(s, &move), error);
    if (r == 0)
        r = move_finish(&move, NULL, error);
    solve_work_close(s, r == 0 || s->solved.place >= 0);
    move_deinit(&move);
    return r;
}

/* ---- public ---- */

static enum gad_status finish(struct solve *s, int r, struct gad_solved *ret_solved,
                              struct gad_error *error)
{
    s->solved.reads = s->reads;
    s->solved.seconds = (double)(clock_now_ms() - s->started_ms) / 1000;
    if (ret_solved && (r == 0 || s->solved.place >= 0))
        *ret_solved = s->solved;
    solve_deinit(s);
    return client_status(r, error);
}

static enum gad_status solve(struct gad_client *client, enum gad_solve_kind kind,
                             struct gad_array *a, struct gad_array *b,
                             const struct gad_solve_options *options, struct gad_solved *ret_solved,
                             struct gad_error *error)
{
    struct solve s;
    int r = solve_init(&s, client, kind, a, b, options, false, error);
    if (r == 0)
        r = into_destination(&s, error);
    return finish(&s, r, ret_solved, error);
}

enum gad_status gad_cholesky(struct gad_client *client, struct gad_array *a,
                             const struct gad_solve_options *options, struct gad_solved *ret_solved,
                             struct gad_error *error)
{
    return solve(client, GAD_CHOLESKY, a, NULL, options, ret_solved, error);
}

enum gad_status gad_solve(struct gad_client *client, struct gad_array *a, struct gad_array *b,
                          const struct gad_solve_options *options, struct gad_solved *ret_solved,
                          struct gad_error *error)
{
    return solve(client, GAD_SOLVE, a, b, options, ret_solved, error);
}

enum gad_status gad_inv(struct gad_client *client, struct gad_array *a,
                        const struct gad_solve_options *options, struct gad_solved *ret_solved,
                        struct gad_error *error)
{
    return solve(client, GAD_INV, a, NULL, options, ret_solved, error);
}

enum gad_status gad_slogdet(struct gad_client *client, struct gad_array *a,
                            const struct gad_solve_options *options, struct gad_solved *ret_solved,
                            struct gad_error *error)
{
    struct solve s;
    if (!ret_solved)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_solved", "is NULL");
    int r = solve_init(&s, client, GAD_SLOGDET, a, NULL, options, false, error);
    if (r == 0)
        r = factor(&s, NULL, false, error);
    if (r == GAD_SINGULAR) {
        s.solved.log_abs = -INFINITY;
        r = 0;
    }
    solve_work_close(&s, r == 0 || s.solved.place >= 0);
    return finish(&s, r, ret_solved, error);
}

/* A new npy or raw file is the factor's own: see is_own_file(). */
static bool will_be_own_file(const struct solve *s)
{
    const struct gad_solve_options *options = s->options;
    const char *end = options->to_path ? strrchr(options->to_path, '.') : NULL;
    return end && (strcmp(end, ".npy") == 0 || strcmp(end, ".raw") == 0) &&
           s->result == GAD_FLOAT64 && !s->is_upper && !options->checkpoint;
}

static int plan(struct solve *s, struct gad_linalg_plan *ret_plan, struct gad_error *error)
{
    int r = factor(s, NULL, false, error);
    if (r)
        return r;
    if (s->kind == GAD_CHOLESKY && !will_be_own_file(s)) {
        s->reads.n_jobs++;
        s->reads.read_bytes += (uint64_t)(s->n * s->n) * sizeof(double);
        s->reads.write_bytes += (uint64_t)(s->n * s->n) * gad_dtype_size(s->result);
    }
    s->reads.n_reads = 1;
    *ret_plan = (struct gad_linalg_plan){.total = s->reads,
                                         .n_iterations = s->n_steps,
                                         .carry_bytes = s->carry_bytes,
                                         .seconds = s->planned_s};
    snprintf(ret_plan->method, sizeof(ret_plan->method),
             "%s, left-looking, by panels of %lld columns", s->is_cholesky ? "Cholesky" : "LU",
             (long long)s->solved.width);
    return 0;
}

enum gad_status gad_solve_plan(struct gad_client *client, enum gad_solve_kind kind,
                               struct gad_array *a, struct gad_array *b,
                               const struct gad_solve_options *options,
                               struct gad_linalg_plan *ret_plan, struct gad_error *error)
{
    struct solve s;
    if (!ret_plan)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_plan", "is NULL");
    int r = solve_init(&s, client, kind, a, b, options, true, error);
    if (r == 0)
        r = plan(&s, ret_plan, error);
    solve_work_close(&s, false);
    solve_deinit(&s);
    return client_status(r, error);
}
