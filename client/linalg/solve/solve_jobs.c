/* Jobs of a factorisation: boxes of matrices go in, one box comes out.
 *
 * The same code plans and runs: with only_plans the daemon is asked what a job would read.
 */
#include "client/clock.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/linalg/solve/solve.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

struct solve_box solve_of_panel(const struct solve *s, int64_t row, int64_t n_rows,
                                int64_t n_columns)
{
    return (struct solve_box){s->panel, row, n_rows, 0, n_columns, false};
}

struct solve_box solve_of_factor(const struct solve *s, int64_t row, int64_t n_rows, int64_t column,
                                 int64_t n_columns)
{
    return (struct solve_box){s->work.array, row, n_rows, column, n_columns, false};
}

/* A vector is a matrix of one column. */
static int view_box(const struct solve_box *box, struct gad_array **ret, struct gad_error *error)
{
    bool is_vector = box->array->info.ndim == 1;
    const int64_t start[] = {box->row, box->column};
    const struct gad_view_axis rows = {0, box->n_rows, 1},
                               columns = {is_vector ? -1 : 1, box->n_columns, 1};
    const struct gad_view_axis axes[] = {box->is_transposed ? columns : rows,
                                         box->is_transposed ? rows : columns};
    return view_new(box->array, start, 2, axes, ret, error);
}

static int plan(struct solve *s, const struct gad_job_options *options, struct gad_error *error)
{
    struct gad_plan *plan;
    int r = (int)gad_plan(s->client, options, &plan, error);
    if (r)
        return r;
    s->reads.read_bytes += plan->read_bytes;
    s->reads.write_bytes += plan->write_bytes;
    s->carry_bytes = max_u64(s->carry_bytes, plan->carry_bytes);
    s->planned_s += plan->seconds;
    gad_plan_free(plan);
    return 0;
}

static int run(struct solve *s, struct gad_job_options *options, struct gad_error *error)
{
    const struct gad_move_options waiting = {.is_cancelled = s->options->run.is_cancelled,
                                             .progress_data = s->options->run.data};
    struct gad_job *job;
    int r = loop_times_give(&s->times, options, error);
    if (r == 0)
        r = (int)gad_submit(s->client, options, &job, error);
    if (r)
        return r;
    r = move_wait(&waiting, job, error);
    if (r == 0) {
        s->reads.read_bytes += gad_job_stats(job)->read_bytes;
        s->reads.write_bytes += gad_job_stats(job)->write_bytes;
    }
    gad_job_free(job);
    return loop_times_tell(&s->times, r, error);
}

int solve_run(struct solve *s, const struct solve_job *job, struct gad_error *error)
{
    const struct solve_box *boxes[] = {&job->c, &job->l, &job->r, &job->to};
    static const char *const names[] = {"c", "l", "r"};
    struct gad_array *views[4] = {NULL};
    struct gad_argument args[3];
    unsigned n_args = 0;
    int r = 0;
    for (unsigned i = 0; i < 4 && r == 0; i++)
        if (boxes[i]->array)
            r = view_box(boxes[i], &views[i], error);
    for (unsigned i = 0; i < 3; i++)
        if (views[i])
            args[n_args++] = (struct gad_argument){.name = names[i], .array = views[i]};
    const struct gad_output output = {.expr = job->expr, .to = views[3]};
    const struct gad_linalg_run *how = &s->options->run;
    struct gad_job_options options = {.n_args = n_args,
                                      .args = args,
                                      .n_outputs = 1,
                                      .outputs = &output,
                                      .engine = how->engine,
                                      .priority = how->priority,
                                      .label = how->label,
                                      .progress = how->progress,
                                      .progress_data = how->data,
                                      .exclusive = true};
    if (r == 0)
        r = s->only_plans ? plan(s, &options, error) : run(s, &options, error);
    s->reads.n_jobs += r == 0;
    for (unsigned i = 0; i < 4; i++)
        gad_array_release(views[i]);
    return r;
}

/* ---- what is not finite ---- */

#define LANES         8
#define KEPT_ELEMENTS (1 << 17) /* of a panel, while the matrix's are looked at in their place */

/* n, or the first that is not finite. */
static int64_t n_finite(const double *row, int64_t n)
{
    double differences[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            differences[lane] += row[i + lane] - row[i + lane];
    for (int lane = 0; lane < LANES; lane++)
        sum += differences[lane];
    if (isnan(sum))
        i = 0;
    while (i < n && isfinite(row[i]))
        i++;
    return i;
}

/* Columns of a row that are the factor's. */
static int64_t n_wanted(const struct solve *s, int64_t row, int64_t column, int64_t k)
{
    return s->is_cholesky ? min_i64(k, row + 1 - column) : k;
}

static int refuse_element(struct solve *s, int64_t row, int64_t column, double value,
                          struct gad_error *error)
{
    int64_t at[] = {s->is_upper ? column : row, s->is_upper ? row : column}; /* the caller's */
    const char *kind = isnan(value) ? "nan" : "infinite";
    s->solved.place = at[1];
    error_set(error, GAD_BAD_ARGUMENT, "a",
              "a: element [%lld, %lld] is %s: such a matrix has no factor", (long long)at[0],
              (long long)at[1], kind);
    error_expected(error, "finite numbers");
    error_found(error, "%s at [%lld, %lld]", kind, (long long)at[0], (long long)at[1]);
    return GAD_BAD_ARGUMENT;
}

/* Finite elements may have made others that are not: only what the matrix has is the caller's. */
static int check_matrix(struct solve *s, int64_t at, int64_t row, int64_t n_rows, int64_t column,
                        int64_t k, struct gad_error *error)
{
    const struct solve_job load = {.expr = "float64(c)",
                                   .c = {s->a, row, n_rows, column, k, false},
                                   .to = solve_of_panel(s, at, n_rows, k)};
    double *made = s->data + at * s->width;
    size_t n_bytes = (size_t)(((n_rows - 1) * s->width + k) * (int64_t)sizeof(*made));
    _cleanup_free_ double *kept = malloc(n_bytes);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, made, n_bytes);
    int r = solve_run(s, &load, error);
    for (int64_t i = 0; i < n_rows && r == 0; i++) {
        const double *values = made + i * s->width;
        int64_t n = n_wanted(s, row + i, column, k), first = n_finite(values, n);
        if (first < n)
            r = refuse_element(s, row + i, column + first, values[first], error);
    }
    memcpy(made, kept, n_bytes);
    return r;
}

int solve_check_finite(struct solve *s, int64_t at, int64_t row, int64_t n_rows, int64_t column,
                       int64_t k, struct gad_error *error)
{
    int64_t most = max_i64(KEPT_ELEMENTS / s->width, 1);
    for (int64_t i = 0, n; i < n_rows && !s->only_plans; i += n) {
        int64_t wanted = n_wanted(s, row + i, column, k);
        bool is_finite = n_finite(s->data + (at + i) * s->width, wanted) == wanted;
        n = is_finite ? 1 : min_i64(most, n_rows - i);
        int r = is_finite ? 0 : check_matrix(s, at + i, row + i, n, column, k, error);
        if (r)
            return r;
    }
    return 0;
}

/* ---- telling ---- */

int solve_tell(struct solve *s, struct gad_error *error)
{
    const struct gad_linalg_run *how = &s->options->run;
    if (s->only_plans)
        return 0;
    double seconds = (double)(clock_now_ms() - s->started_ms) / 1000;
    s->step++;
    const struct gad_iteration now = {
        .iteration = s->step,
        .n_iterations = s->n_steps,
        .fit = NAN,
        .change = NAN,
        .reads = s->reads,
        .seconds = seconds,
        .seconds_left = s->step < s->n_steps ? seconds / s->step * (s->n_steps - s->step) : 0,
    };
    bool stops = (how->iteration && how->iteration(how->data, &now)) ||
                 (how->is_cancelled && how->is_cancelled(how->data));
    return stops ? error_set(error, GAD_CANCELLED, NULL, "stopped after step %u of %u", s->step,
                             s->n_steps)
                 : 0;
}
