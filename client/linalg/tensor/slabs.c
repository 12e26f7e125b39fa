/* One read of a tensor by slabs of one axis.
 *
 * The daemon sees `tensordot` with an operand of broadcast factors, makes C of them once, and walks
 * the tensor. That both results come of one read is its doing: they are two outputs of one job.
 */
#include "client/linalg/tensor/slabs_job.h"
#include "client/gpuarrayd-move.h"
#include "client/gpuarrayd-tensor.h"
#include "client/linalg/dense.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Making --------------------------------------------------------------------------------------- */

int slabs_check_shape(const struct passes *p, struct gad_error *error)
{
    if (p->ndim < 3 || p->ndim > SLABS_MAX_NDIM) {
        error_set(error, GAD_BAD_SHAPE, "tensor", "a tensor of %d axes is not decomposed here",
                  p->ndim);
        error_expected(error, "3 to %d axes", SLABS_MAX_NDIM);
        error_found(error, "%d", p->ndim);
        return GAD_BAD_SHAPE;
    }
    for (int i = 0; i < p->ndim; i++)
        if (p->shape[i] == 0) {
            error_set(error, GAD_BAD_SHAPE, "tensor", "axis %d has no elements", i);
            error_expected(error, "1 or more along each axis");
            error_found(error, "0");
            return GAD_BAD_SHAPE;
        }
    return 0;
}

#define MUCH_SHORTER 4 /* an axis that the first one is preferred to is at most so much longer */

int slabs_axis(const struct passes *p)
{
    int axis = 0;
    for (int i = 1; i < p->ndim; i++)
        if (p->shape[i] > p->shape[axis])
            axis = i;
    return p->shape[axis] <= MUCH_SHORTER * p->shape[0] ? 0 : axis;
}

static void choose_axis(struct slabs *s)
{
    s->axis = slabs_axis(s->p);
    for (int i = 0; i < s->p->ndim; i++)
        if (i != s->axis)
            s->others[s->n_others++] = i;
}

int64_t slabs_n_rest(const struct slabs *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_others; i++)
        n = mul_saturating_i64(n, s->p->shape[s->others[i]]);
    return n;
}

/* Any tensor is a sum of so many outer products as it has elements beside its longest axis. */
static int check_rank(const struct slabs *s, int64_t rank, struct gad_error *error)
{
    const struct passes *p = s->p;
    int64_t n = 1, longest = 1;
    for (int i = 0; i < p->ndim; i++) {
        n = mul_saturating_i64(n, p->shape[i]);
        longest = max_i64(longest, p->shape[i]);
    }
    int64_t most = min_i64(SLABS_MAX_RANK, n / longest);
    if (rank >= 1 && rank <= most)
        return 0;
    error_set(error, GAD_BAD_RANK, "rank", "rank %lld is not possible for this tensor",
              (long long)rank);
    error_expected(error, "1 to %lld", (long long)most);
    error_found(error, "%lld", (long long)rank);
    return GAD_BAD_RANK;
}

/* Of the i-th other axis: n x 1 x .. x 1 x rank, as many ones as other axes follow. */
static int make_view(struct slabs *s, int i, struct gad_error *error)
{
    int64_t shape[SLABS_MAX_NDIM + 1];
    int ndim = s->n_others - i + 1, axis = s->others[i];
    shape[0] = s->p->shape[axis];
    for (int j = 1; j < ndim - 1; j++)
        shape[j] = 1;
    shape[ndim - 1] = s->rank;
    return (int)gad_array_reshape(s->factors[axis], ndim, shape, &s->views[axis], error);
}

static int make_matrices(struct slabs *s, struct gad_error *error)
{
    struct passes *p = s->p;
    int64_t rest_shape[SLABS_MAX_NDIM + 1];
    const int64_t g_shape[] = {s->rank, s->rank};
    int r = passes_new_matrix(p, 2, g_shape, &s->g, error);
    if (r == 0)
        r = passes_new_matrix(p, 0, NULL, &s->squares, error);
    for (int i = 0; i < p->ndim && r == 0; i++) {
        const int64_t shape[] = {p->shape[i], s->rank};
        r = passes_new_matrix(p, 2, shape, &s->factors[i], error);
    }
    for (int i = 0; i < s->n_others && r == 0; i++) {
        rest_shape[i] = p->shape[s->others[i]];
        r = make_view(s, i, error);
    }
    rest_shape[s->n_others] = s->rank;
    return r ? r : passes_new_matrix(p, s->n_others + 1, rest_shape, &s->rest, error);
}

static void write_texts(struct slabs *s)
{
    char product[100] = "", from[40] = "", to[40] = "";
    for (int i = 0; i < s->n_others; i++) {
        const char *between = i ? ", " : "";
        size_t at = strlen(product);
        snprintf(product + at, sizeof(product) - at, "%s_f%d", i ? " * " : "", s->others[i]);
        at = strlen(from);
        snprintf(from + at, sizeof(from) - at, "%s%d", between, s->others[i]);
        at = strlen(to);
        snprintf(to + at, sizeof(to) - at, "%s%d", between, i);
    }
    snprintf(s->product, sizeof(s->product), "tensordot(_x, %s, ((%s), (%s)))",
             s->columns ? "_c" : product, from, to);
    snprintf(s->rows_text, sizeof(s->rows_text), "%s @ _g", s->product);
}

static int choose_reads(struct slabs *s, struct gad_error *error);

int slabs_init(struct slabs *s, struct passes *p, int64_t rank, struct gad_error *error)
{
    *s = (struct slabs){.p = p, .rank = rank};
    int r = slabs_check_shape(p, error);
    if (r)
        return r;
    choose_axis(s);
    r = check_rank(s, rank, error);
    if (r == 0)
        r = make_matrices(s, error);
    if (r)
        return r;
    write_texts(s);
    return choose_reads(s, error);
}

void slabs_deinit(struct slabs *s)
{
    for (int i = 0; i < SLABS_MAX_NDIM; i++)
        gad_array_release(s->views[i]);
    *s = (struct slabs){.axis = 0};
}

double *slabs_factor(const struct slabs *s, int axis)
{
    return gad_array_data(s->factors[axis]);
}

/* Reading -------------------------------------------------------------------------------------- */

#define SQUARES_TEXT "sum(square(float64(_x)))"

void slabs_job_add_input(struct slabs_job *job, const char *name, struct gad_array *array)
{
    job->inputs[job->pass.n_inputs++] = (struct gad_argument){.name = name, .array = array};
}

void slabs_job_add_output(struct slabs_job *job, const char *expr, struct gad_array *to)
{
    job->outputs[job->pass.n_outputs++] = (struct gad_output){.expr = expr, .to = to};
}

void slabs_job_add_factors(const struct slabs *s, struct slabs_job *job)
{
    if (s->columns) {
        slabs_job_add_input(job, "_c", s->columns);
        return;
    }
    for (int i = 0; i < s->n_others; i++) {
        int axis = s->others[i];
        snprintf(job->names[i], sizeof(job->names[i]), "_f%d", axis);
        slabs_job_add_input(job, job->names[i], s->views[axis]);
    }
}

static void add_rest(const struct slabs *s, struct slabs_job *job, const char *rows)
{
    snprintf(job->rest_text, sizeof(job->rest_text), "tensordot(_x, %s, (%d, 0))", rows, s->axis);
    slabs_job_add_output(job, job->rest_text, s->rest);
}

int slabs_job_run(struct slabs *s, struct slabs_job *job, bool with_squares, bool only_tries,
                  struct gad_error *error)
{
    if (with_squares)
        slabs_job_add_output(job, SQUARES_TEXT, s->squares);
    job->pass.inputs = job->inputs;
    job->pass.outputs = job->outputs;
    return only_tries ? passes_try(s->p, &job->pass, error) : passes_run(s->p, &job->pass, error);
}

/* Both, of one job: rows as they are, or `@ g`. */
static void describe_both(const struct slabs *s, bool is_solved, struct slabs_job *job)
{
    const char *rows = is_solved ? s->rows_text : s->product;
    slabs_job_add_factors(s, job);
    if (is_solved)
        slabs_job_add_input(job, "_g", s->g);
    slabs_job_add_output(job, rows, s->factors[s->axis]);
    add_rest(s, job, rows);
    job->pass.is_walk = true;
}

/* What either number of reads needs, where there is not room for two of a column. */
static int refuse_reads(const struct slabs *s, struct gad_error *error)
{
    char needs[sizeof(s->one_needs)], there[sizeof(s->one_needs)];
    snprintf(needs, sizeof(needs), "%.39s", error->expected);
    snprintf(there, sizeof(there), "%.39s", error->found);
    error_set(
        error, GAD_TOO_LARGE_FOR_POOL, "pool",
        "rank %lld: one read needs %s of the pool, reads of a column at a time need %s, a job "
        "may have %s: take a larger pool",
        (long long)s->rank, s->one_needs, needs, there);
    error_expected(error, "%s", needs);
    error_found(error, "%s", there);
    return GAD_TOO_LARGE_FOR_POOL;
}

void slabs_describe(const struct slabs *s, const char *what, char *ret, size_t n_bytes)
{
    int n = snprintf(ret, n_bytes, "by slabs of axis %d, %s", s->axis, what);
    if (s->is_split && n > 0 && (size_t)n < n_bytes)
        snprintf(ret + n, n_bytes - (size_t)n, "; one read needs %s of the pool, a job may have %s",
                 s->one_needs, s->one_has);
}

/* Columns of a part: a view of the last axis. */
static int view_columns(struct gad_array *array, const struct slabs_part *part,
                        struct gad_array **ret, struct gad_error *error)
{
    struct gad_view_axis axes[SLABS_MAX_NDIM + 1];
    int64_t start[SLABS_MAX_NDIM + 1] = {0};
    int ndim = array->info.ndim;
    for (int i = 0; i < ndim; i++)
        axes[i] = (struct gad_view_axis){i, array->info.shape[i], 1};
    start[ndim - 1] = part->first;
    axes[ndim - 1].count = part->n;
    return (int)gad_array_view(array, start, ndim, axes, ret, error);
}

/* A job sees a part of the columns of all that has columns. */
static int run_part(struct slabs *s, struct slabs_job *job, const struct slabs_part *part,
                    bool with_squares, struct gad_error *error)
{
    struct gad_array *views[ARRAY_LENGTH(job->inputs) + 1] = {NULL};
    unsigned n = 0;
    int r = 0;
    for (unsigned i = 0; i < job->pass.n_inputs && r == 0 && part->n < s->rank; i++) {
        r = view_columns(job->inputs[i].array, part, &views[n], error);
        job->inputs[i].array = views[n++];
    }
    if (r == 0 && part->n < s->rank) {
        r = view_columns(job->outputs[0].to, part, &views[n], error);
        job->outputs[0].to = views[n++];
    }
    if (r == 0)
        r = slabs_job_run(s, job, with_squares, part->only_tries, error);
    for (unsigned i = 0; i < n; i++)
        gad_array_release(views[i]);
    return r;
}

static int read_rows_part(struct slabs *s, const struct slabs_part *part, bool is_solved,
                          bool with_squares, struct gad_error *error)
{
    struct slabs_job job = {.names = {""}};
    slabs_job_add_factors(s, &job);
    if (is_solved)
        slabs_job_add_input(&job, "_g", s->g);
    slabs_job_add_output(&job, is_solved ? s->rows_text : s->product, s->factors[s->axis]);
    job.pass.is_walk = true;
    return run_part(s, &job, part, with_squares, error);
}

static int read_rest_part(struct slabs *s, const struct slabs_part *part, bool with_squares,
                          struct gad_error *error)
{
    struct slabs_job job = {.names = {""}};
    slabs_job_add_input(&job, "_a", s->factors[s->axis]);
    add_rest(s, &job, "_a");
    return run_part(s, &job, part, with_squares, error);
}

/* rows @ g, where they came column by column. */
static int multiply_rows(struct slabs *s, struct gad_error *error)
{
    int64_t n = s->p->shape[s->axis];
    const struct dense_product product = {.m = n, .n = s->rank, .k = s->rank, .alpha = 1};
    size_t n_bytes = sizeof(double) * (size_t)(n * s->rank);
    _cleanup_free_ double *rows = malloc(n_bytes);
    if (!rows)
        return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    memcpy(rows, slabs_factor(s, s->axis), n_bytes);
    return dense_multiply(&product, rows, gad_array_data(s->g), slabs_factor(s, s->axis), error);
}

/* Their sums take room as a column of the rest does, which parts of columns leave alone. */
static int read_squares(struct slabs *s, struct gad_error *error)
{
    struct slabs_job job = {.names = {""}};
    return slabs_job_run(s, &job, true, false, error);
}

/* Each part of the columns, by a job of its own. */
static int read_parts(struct slabs *s, bool is_of_rows, bool is_solved, bool with_squares,
                      struct gad_error *error)
{
    bool is_whole = s->step == s->rank;
    int r = with_squares && !is_whole ? read_squares(s, error) : 0;
    for (struct slabs_part part = {0}; r == 0 && part.first < s->rank; part.first += part.n) {
        part.n = min_i64(s->step, s->rank - part.first);
        r = is_of_rows
                ? read_rows_part(s, &part, is_solved && is_whole, with_squares && is_whole, error)
                : read_rest_part(s, &part, with_squares && is_whole, error);
    }
    return r || is_whole || !is_solved || s->p->only_plans ? r : multiply_rows(s, error);
}

int slabs_read_rows(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return read_parts(s, true, false, with_squares, error);
}

int slabs_read_rest(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return read_parts(s, false, false, with_squares, error);
}

static int read_both(struct slabs *s, bool is_solved, bool with_squares, struct gad_error *error)
{
    if (s->is_split) {
        int r = read_parts(s, true, is_solved, with_squares, error);
        return r ? r : slabs_read_rest(s, false, error);
    }
    struct slabs_job job = {.names = {""}};
    describe_both(s, is_solved, &job);
    return slabs_job_run(s, &job, with_squares, false, error);
}

int slabs_read_plain(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return read_both(s, false, with_squares, error);
}

int slabs_read(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return read_both(s, true, with_squares, error);
}

/* So many columns at a time as the daemon has room for, in two reads for each. */
static int choose_step(struct slabs *s, struct gad_error *error)
{
    for (;;) {
        struct slabs_part part = {.n = s->step, .only_tries = true};
        bool is_whole = s->step == s->rank;
        int r = read_rows_part(s, &part, is_whole, is_whole, error);
        if (r == 0)
            r = read_rest_part(s, &part, is_whole, error);
        if (r != GAD_TOO_LARGE_FOR_POOL)
            return r;
        if (s->step == 1)
            return refuse_reads(s, error);
        s->step = divide_up_i64(s->step, 2);
    }
}

/* The daemon says whether it has room for both in one read. */
static int choose_reads(struct slabs *s, struct gad_error *error)
{
    struct slabs_job job = {.names = {""}};
    struct gad_error refusal = {.status = GAD_OK};
    describe_both(s, true, &job);
    s->step = s->rank;
    int r = slabs_job_run(s, &job, true, true, &refusal);
    s->is_split = r == GAD_TOO_LARGE_FOR_POOL;
    if (s->is_split) {
        snprintf(s->one_needs, sizeof(s->one_needs), "%.39s", refusal.expected);
        snprintf(s->one_has, sizeof(s->one_has), "%.39s", refusal.found);
        return choose_step(s, error);
    }
    if (r && error)
        *error = refusal;
    return r;
}

/* Factors to begin with ------------------------------------------------------------------------ */

/* An axis' own seed; programs' seeds that are near each other have none in common. */
static uint64_t seed_of(uint64_t seed, int axis)
{
    return ((seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)axis) >> 1;
}

int slabs_draw(struct slabs *s, const char *function, uint64_t seed, struct gad_error *error)
{
    struct gad_output outputs[SLABS_MAX_NDIM];
    char texts[SLABS_MAX_NDIM][120];
    for (int i = 0; i < s->p->ndim; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s(size=(%lld, %lld), seed=%llu)", function,
                 (long long)s->p->shape[i], (long long)s->rank,
                 (unsigned long long)seed_of(seed, i));
        outputs[i] = (struct gad_output){.expr = texts[i], .to = s->factors[i]};
    }
    const struct pass pass = {
        .has_no_data = true, .n_outputs = (unsigned)s->p->ndim, .outputs = outputs};
    return passes_run(s->p, &pass, error);
}

int slabs_use_columns(struct slabs *s, struct gad_error *error)
{
    int64_t shape[SLABS_MAX_NDIM + 1];
    if (s->columns)
        return 0;
    for (int i = 0; i < s->n_others; i++)
        shape[i] = s->p->shape[s->others[i]];
    shape[s->n_others] = s->rank;
    int r = passes_new_matrix(s->p, s->n_others + 1, shape, &s->columns, error);
    if (r == 0)
        write_texts(s);
    return r;
}

int slabs_check_finite(struct slabs *s, struct gad_error *error)
{
    double squares = *(const double *)gad_array_data(s->squares);
    return passes_check_squares(s->p, "tensor", -1, squares, error);
}
