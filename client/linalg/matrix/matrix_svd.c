/* Singular values, principal components and eigenvalues.
 *
 *     few columns        the SVD of R is that of the matrix, but for U             one read
 *     few rows           likewise, of an array that is seen turned: U and Vh change places
 *     many of both       k directions, see matrix_directions.c                     a read each
 *     vectors with       x @ Vh.T / s, by one job into their destination           one more
 *     a row for each row
 *
 * Components are of the matrix less its columns' mean: see matrix_cov.c for few columns, where they
 * are mostly those of sums of products; of others
 * the mean is read first, and taken out on the way in each read.
 */
#include "client/clock.h"
#include "client/gpuarrayd-matrix.h"
#include "client/gpuarrayd-move.h"
#include "client/lib/connection/client.h"
#include "client/linalg/checkpoint.h"
#include "client/linalg/dense.h"
#include "client/linalg/matrix/matrix.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_OFF 0.01 /* of a value: what is told */
#define FAR       1e-9 /* of a variance: the square of what a mean is off by */
/* The least tolerance that float32 reaches. */
#define LEAST_TOLERANCE 1e-5

enum kind { SVD, PCA, EIGH };

struct svd {
    enum kind kind;
    struct gad_svd_options options;
    const struct gad_operand *operand;
    struct gad_operand turned; /* its array is a reference */
    struct passes passes;      /* of the operand, or turned */
    int64_t n_rows, n_columns; /* of the operand */
    bool is_turned, is_by_directions;
    bool is_single;             /* directions were found in float32 */
    bool is_far;                /* float32's mean is not near enough to the mean */
    struct gad_array *centre;   /* in passes' matrices: what is taken out of the data; NULL */
    struct gad_reads iteration; /* as planned */
    double iteration_s;
    struct gad_svd_result result;
};

/* Options -------------------------------------------------------------------------------------- */

static int take_options(struct svd *s, const struct gad_svd_options *options,
                        struct gad_error *error)
{
    if (!options)
        return refuse_argument("options", "is NULL", error);
    if (options->size < offsetof(struct gad_svd_options, storage) + sizeof(void *))
        return refuse_argument("options", "its size is not that of a struct gad_svd_options",
                               error);
    s->options = *options;
    if (!(options->tolerance >= 0) || isinf(options->tolerance))
        return refuse_number("tolerance", options->tolerance, "a number from 0 on", error);
    if (options->to && options->to_path)
        return refuse_argument("options", "has one destination, an array or a path", error);
    if (s->options.n_iterations == 0)
        s->options.n_iterations = s->kind == EIGH ? 8 : 3;
    if (s->options.n_oversamples == 0)
        s->options.n_oversamples = 10;
    s->options.n_oversamples = max_i64(s->options.n_oversamples, 0);
    return 0;
}

static int check_k(struct svd *s, struct gad_error *error)
{
    int64_t most = min_i64(s->n_rows, s->n_columns), k = s->options.k;
    if (k >= 0 && k <= most && (k > 0 || !s->is_by_directions)) {
        s->options.k = k > 0 ? k : most;
        s->options.n_oversamples = min_i64(s->options.n_oversamples, most - s->options.k);
        return 0;
    }
    if (k == 0)
        error_set(error, GAD_BAD_RANK, "k",
                  "all %lld values of %lld columns are not found by reads", (long long)most,
                  (long long)s->n_columns);
    else
        error_set(error, GAD_BAD_RANK, "k", "k is %lld", (long long)k);
    error_expected(error, "1 to %lld", (long long)most);
    error_found(error, k == 0 ? "none" : "%lld", (long long)k);
    return GAD_BAD_RANK;
}

static int turn(struct svd *s, struct gad_client *client, struct gad_error *error)
{
    int r = (int)gad_array_transpose(s->operand->array, NULL, &s->turned.array, error);
    if (r)
        return r;
    s->is_turned = true;
    passes_deinit(&s->passes);
    r = matrix_init(&s->passes, "x", client, &s->turned, &s->options.run, error);
    s->passes.is_turned = true;
    return r;
}

static int svd_init(struct svd *s, struct gad_client *client, const struct gad_operand *operand,
                    const struct gad_svd_options *options, struct gad_error *error)
{
    int r = take_options(s, options, error);
    s->operand = operand;
    if (r == 0)
        r = matrix_init(&s->passes, "x", client, operand, &s->options.run, error);
    if (r)
        return r;
    s->n_rows = s->passes.shape[0];
    s->n_columns = s->passes.shape[1];
    if (s->kind == EIGH && s->n_rows != s->n_columns) {
        error_set(error, GAD_BAD_SHAPE, "x", "a symmetric matrix has as many rows as columns");
        error_expected(error, "(%lld, %lld)", (long long)s->n_rows, (long long)s->n_rows);
        error_found(error, "(%lld, %lld)", (long long)s->n_rows, (long long)s->n_columns);
        return GAD_BAD_SHAPE;
    }
    int64_t most = options->k == 0 ? GAD_SVD_MOST_ALL : GAD_SVD_MOST;
    bool turns = s->kind != EIGH && matrix_turns(&s->passes, operand, most);
    s->is_by_directions = s->kind == EIGH || (s->n_columns > most && !turns);
    r = check_k(s, error);
    if (r == 0 && turns)
        r = turn(s, client, error);
    return r;
}

static void svd_deinit(struct svd *s)
{
    passes_deinit(&s->passes);
    gad_array_release(s->turned.array);
}

/* Few columns ---------------------------------------------------------------------------------- */

static int set_vectors(struct svd *s, const char *name, int64_t rows, int64_t columns,
                       struct gad_error *error)
{
    const int64_t shape[] = {rows, columns};
    return dense_init(&s->result.vectors, name, 2, shape, error);
}

/* Of the mean of turned data, by columns of them: read into the centre. */
static int read_mean(struct svd *s, struct gad_error *error)
{
    struct passes *p = &s->passes;
    const int64_t shape[] = {p->shape[s->is_turned ? 0 : 1], 1};
    int r = passes_new_matrix(p, s->is_turned ? 2 : 1, shape, &s->centre, error);
    const struct gad_output output = {.expr = s->is_turned
                                                  ? "mean(float64(_x), axis=1, keepdims=True)"
                                                  : "mean(float64(_x), axis=0)",
                                      .to = s->centre};
    const struct pass pass = {.n_outputs = 1, .outputs = &output};
    return r ? r : passes_run(p, &pass, error);
}

/* R, or of components the factor whose square are the sums of products. */
static int read_factor(struct svd *s, double *factor, struct gad_error *error)
{
    struct passes *p = &s->passes;
    if (s->kind != PCA)
        return matrix_triangle(p, "x", NULL, factor, error);
    int r = dense_init(&s->result.mean, "mean", 1, &s->n_columns, error);
    if (r == 0 && !s->is_turned)
        return matrix_spread(p, s->operand, s->options.k, s->result.mean.data, factor, error);
    if (r == 0)
        r = read_mean(s, error);
    if (r == 0)
        memcpy(s->result.mean.data, gad_array_data(s->centre),
               sizeof(double) * (size_t)s->n_columns);
    return r ? r : matrix_triangle(p, "x", s->centre, factor, error);
}

/* The first k of what an SVD of n x n gives; turned, its rows are U's columns. */
static int take_first(struct svd *s, int64_t n, const double *values, const double *vt,
                      struct gad_error *error)
{
    int64_t k = s->options.k;
    memcpy(s->result.s.data, values, sizeof(*values) * (size_t)k);
    if (s->options.values_only)
        return 0;
    s->result.has_u = s->is_turned;
    int r = s->is_turned ? set_vectors(s, "u", n, k, error) : set_vectors(s, "vh", k, n, error);
    if (r)
        return r;
    double *vectors = s->result.vectors.data;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++)
            vectors[s->is_turned ? j * k + i : i * n + j] = vt[i * n + j];
    matrix_turn_signs(k, n, s->is_turned ? 1 : n, s->is_turned ? k : 1, vectors);
    return 0;
}

static int find_of_few(struct svd *s, struct gad_error *error)
{
    int64_t n = s->passes.shape[1];
    int64_t n_vectors = s->options.values_only || s->passes.only_plans ? 0 : n;
    _cleanup_free_ double *factor = matrix_new(n, n, error), *values = matrix_new(n, 1, error);
    _cleanup_free_ double *u = matrix_new(n_vectors, n, error);
    _cleanup_free_ double *vt = matrix_new(n_vectors, n, error);
    if (!factor || !u || !vt || !values)
        return GAD_NO_MEMORY;
    int r = read_factor(s, factor, error);
    if (r || s->passes.only_plans)
        return r;
    r = dense_svd(n, n, factor, n_vectors > 0 ? u : NULL, values, n_vectors > 0 ? vt : NULL, error);
    for (int64_t i = 0; i < n; i++)
        s->result.squares += values[i] * values[i];
    if (r == 0 && s->kind == PCA)
        r = passes_check_squares(&s->passes, "x", s->is_turned, s->result.squares, error);
    s->result.is_converged = true;
    return r ? r : take_first(s, n, values, vt, error);
}

/* Many columns --------------------------------------------------------------------------------- */

static int read_spread(struct svd *s, struct gad_error *error)
{
    struct passes *p = &s->passes;
    struct gad_array *variance;
    int r = passes_new_matrix(p, 1, &s->n_columns, &s->centre, error);
    if (r == 0)
        r = passes_new_matrix(p, 1, &s->n_columns, &variance, error);
    if (r)
        return r;
    const struct gad_output outputs[] = {{.expr = "mean(float64(_x), axis=0)", .to = s->centre},
                                         {.expr = "var(float64(_x), axis=0)", .to = variance}};
    const struct pass pass = {.n_outputs = 2, .outputs = outputs};
    r = passes_run(p, &pass, error);
    if (r || p->only_plans)
        return r;
    const double *variances = gad_array_data(variance);
    const double *mean = gad_array_data(s->centre);
    for (int64_t i = 0; i < s->n_columns; i++) {
        double off = mean[i] - (float)mean[i];
        s->result.squares += variances[i] * (double)s->n_rows;
        s->is_far |= off * off > FAR * variances[i];
    }
    r = passes_check_squares(p, "x", 0, s->result.squares, error);
    if (r == 0)
        r = dense_init(&s->result.mean, "mean", 1, &s->n_columns, error);
    if (r == 0)
        memcpy(s->result.mean.data, gad_array_data(s->centre),
               sizeof(double) * (size_t)s->n_columns);
    return r;
}

static void mark_settings(const struct svd *s, struct checkpoint *c)
{
    const struct gad_svd_options *o = &s->options;
    const double settings[] = {(double)s->kind, (double)o->k, (double)o->n_oversamples,
                               (double)(o->seed >> 32), (double)(o->seed & UINT32_MAX)};
    checkpoint_init(c, o->checkpoint, s->operand, s->passes.dtype, 2, s->passes.shape);
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        checkpoint_mark(c, settings[i]);
}

static int take_directions(struct svd *s, struct directions *d, struct gad_error *error)
{
    struct gad_svd_result *result = &s->result;
    int64_t k = d->k;
    for (int64_t i = 0; i < k; i++) /* eigenvalues are sorted by sort_values() */
        result->s.data[i] = s->kind == EIGH ? d->values[i] : sqrt(max_f64(d->values[i], 0));
    result->n_iterations = d->n_done;
    result->is_converged = d->is_converged;
    result->is_stopped = d->is_stopped;
    double off = s->kind == EIGH ? d->off : d->off / 2; /* others are roots */
    if (!d->is_converged && s->options.tolerance == 0 && !d->is_stopped && off > LEAST_OFF)
        snprintf(result->warning, sizeof(result->warning),
                 "values may be over 1 %% too small after %u reads, as they do not stand out: more "
                 "iterations come closer",
                 d->n_done);
    if (!d->is_converged && s->options.tolerance > 0 && !d->is_stopped)
        snprintf(result->warning, sizeof(result->warning),
                 "the tolerance is not reached after %u reads: values are lower bounds", d->n_done);
    if (s->options.values_only)
        return 0;
    int r = set_vectors(s, "vh", k, s->n_columns, error);
    if (r)
        return r;
    memcpy(result->vectors.data, d->vectors, sizeof(double) * (size_t)(k * s->n_columns));
    matrix_turn_signs(k, s->n_columns, s->n_columns, 1, result->vectors.data);
    return 0;
}

/* In float32, where the data are and it says as much. */
static const char *single_expr(const struct svd *s)
{
    double tolerance = s->options.tolerance;
    if (s->kind == EIGH || s->passes.dtype != GAD_FLOAT32 || s->is_far ||
        (tolerance > 0 && tolerance < LEAST_TOLERANCE))
        return NULL;
    return s->kind == PCA ? "_z = _x - float32(_m); tensordot(_z, _z @ float32(_w), (0, 0))"
                          : "tensordot(_x, _x @ float32(_w), (0, 0))";
}

static int find_by_directions(struct svd *s, struct gad_error *error)
{
    struct checkpoint checkpoint;
    struct directions d = {
        .p = &s->passes,
        .argument = "x",
        .expr = s->kind == EIGH  ? "_x @ _w"
                : s->kind == PCA ? "tensordot(_x - _m, (_x - _m) @ _w, (0, 0))"
                                 : "tensordot(_x, _x @ _w, (0, 0))",
        .n = s->n_columns,
        .k = s->options.k,
        .n_iterations = s->options.n_iterations,
        .n_oversamples = s->options.n_oversamples,
        .seed = s->options.seed,
        .tolerance = s->options.tolerance,
        .is_of_squares = s->kind != EIGH,
        .checkpoint = &checkpoint,
    };
    mark_settings(s, &checkpoint);
    int r = s->kind == PCA ? read_spread(s, error) : 0;
    d.centre = s->centre;
    d.single_expr = single_expr(s);
    if (r == 0)
        r = directions_find(&d, error);
    if (r == 0 && !s->passes.only_plans)
        r = take_directions(s, &d, error);
    s->is_single = d.is_single;
    s->iteration = d.planned;
    s->iteration_s = d.planned_s;
    directions_deinit(&d);
    return r;
}

/* Eigenvalues rise; those of largest magnitude came first. */
static void sort_values(struct gad_svd_result *result, int64_t n)
{
    double *values = result->s.data, *vectors = result->vectors.data;
    for (int64_t i = 1; i < result->s.shape[0]; i++)
        for (int64_t j = i; j > 0 && values[j - 1] > values[j]; j--) {
            double kept = values[j];
            values[j] = values[j - 1];
            values[j - 1] = kept;
            for (int64_t c = 0; vectors && c < n; c++) {
                kept = vectors[j * n + c];
                vectors[j * n + c] = vectors[(j - 1) * n + c];
                vectors[(j - 1) * n + c] = kept;
            }
        }
}

/* Vectors with a row for each row -------------------------------------------------------------- */

/* Columns of the vectors in memory, each divided by its value, but where that is zero; of scores as
 * they are. */
static int make_columns(struct svd *s, struct gad_array **ret, struct gad_error *error)
{
    const struct gad_svd_result *result = &s->result;
    int64_t k = s->options.k, n = s->is_turned ? s->n_rows : s->n_columns;
    const int64_t shape[] = {n, k};
    int r = passes_new_matrix(&s->passes, 2, shape, ret, error);
    if (r || s->passes.only_plans)
        return r;
    double *columns = gad_array_data(*ret);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            double value = result->s.data[j];
            double element = result->vectors.data[s->is_turned ? i * k + j : j * n + i];
            bool divides = s->kind == SVD || s->is_turned;
            columns[i * k + j] = !divides ? element : value > 0 ? element / value : 0;
        }
    return 0;
}

/* Into the destination, or of components of turned data into `to`. */
static int write_vectors(struct svd *s, const char *expr, struct gad_array *columns,
                         struct gad_array *to, struct gad_error *error)
{
    const struct gad_argument inputs[] = {{.name = "_w", .array = columns},
                                          {.name = "_y", .array = s->operand->array},
                                          {.name = "_m", .array = s->centre}};
    const struct gad_svd_options *o = &s->options;
    const struct gad_output output = {.expr = expr,
                                      .to = to ? to : o->to,
                                      .to_path = to ? NULL : o->to_path,
                                      .storage = to ? NULL : o->storage};
    struct gad_argument used[3];
    unsigned n = 0;
    for (unsigned i = 0; i < ARRAY_LENGTH(inputs); i++)
        if (strstr(expr, inputs[i].name))
            used[n++] = inputs[i];
    const struct pass pass = {.has_no_data = strstr(expr, "_x") == NULL,
                              .n_inputs = n,
                              .inputs = used,
                              .n_outputs = 1,
                              .outputs = &output};
    int r = passes_run(&s->passes, &pass, error);
    s->passes.reads.n_reads += r == 0 && pass.has_no_data && strstr(expr, "_y");
    return r;
}

/* Of turned data the components themselves have a row for each of them. */
static int read_components(struct svd *s, struct gad_array *columns, struct gad_error *error)
{
    struct gad_array *made, *mean;
    const int64_t shape[] = {s->options.k, s->n_columns};
    int r = passes_new_matrix(&s->passes, 2, shape, &made, error);
    if (r == 0)
        r = (int)gad_array_reshape(s->centre, 1, &s->n_columns, &mean, error);
    if (r)
        return r;
    s->centre = mean;
    r = write_vectors(s, "_w.T @ (_y - _m)", columns, made, error);
    s->centre = NULL;
    gad_array_release(mean);
    if (r || s->passes.only_plans)
        return r;
    gad_dense_deinit(&s->result.vectors);
    r = set_vectors(s, "vh", shape[0], shape[1], error);
    if (r)
        return r;
    memcpy(s->result.vectors.data, gad_array_data(made),
           sizeof(double) * (size_t)(shape[0] * shape[1]));
    s->result.has_u = false;
    return 0;
}

/* Scores of turned data are U times s, which are small. */
static int scale_scores(struct svd *s, struct gad_array *columns)
{
    int64_t k = s->options.k;
    double *elements = gad_array_data(columns);
    for (int64_t i = 0; i < s->n_rows && !s->passes.only_plans; i++)
        for (int64_t j = 0; j < k; j++)
            elements[i * k + j] *= s->result.s.data[j] * s->result.s.data[j];
    return 0;
}

static int finish_vectors(struct svd *s, struct gad_error *error)
{
    struct gad_array *columns;
    bool is_wanted = s->options.to || s->options.to_path;
    bool has_components = s->kind == PCA && s->is_turned;
    if (s->options.values_only || s->kind == EIGH || (!is_wanted && !has_components))
        return 0;
    int r = make_columns(s, &columns, error);
    if (r == 0 && has_components)
        r = read_components(s, columns, error);
    if (r || !is_wanted)
        return r;
    if (has_components)
        return scale_scores(s, columns), write_vectors(s, "_w * 1", columns, NULL, error);
    if (s->is_turned)
        return write_vectors(s, "_w.T @ _y", columns, NULL, error);
    if (s->kind == SVD)
        return write_vectors(s, s->is_single ? "float64(_x @ float32(_w))" : "_x @ _w", columns,
                             NULL, error);
    if (!s->centre)
        r = matrix_share(&s->passes, 1, &s->n_columns, s->result.mean.data, &s->centre, error);
    return r ? r : write_vectors(s, "(_x - _m) @ _w", columns, NULL, error);
}

/* Programs' ------------------------------------------------------------------------------------ */

static void tell_plan(const struct svd *s, const struct gad_reads *before_finish)
{
    const struct passes *p = &s->passes;
    static const struct gad_reads nothing;
    struct gad_reads finish = passes_since(p, before_finish), start = *before_finish;
    char method[96];
    if (!s->is_by_directions) {
        snprintf(method, sizeof(method), "by %s%s",
                 s->kind == PCA && !s->is_turned
                     ? "products of differences from a guess of the mean"
                     : "a QR decomposition",
                 s->is_turned ? " of the matrix turned" : "");
        matrix_tell_plan(p, &start, 0, &nothing, &finish, p->planned_s, method);
        return;
    }
    unsigned n = s->options.n_iterations;
    start = reads_sum(before_finish, -1, &s->iteration);
    snprintf(method, sizeof(method), "by %lld directions, %llu read%s an iteration",
             (long long)(s->options.k + s->options.n_oversamples),
             (unsigned long long)s->iteration.n_reads, s->iteration.n_reads == 1 ? "" : "s");
    matrix_tell_plan(p, &start, n, &s->iteration, &finish, p->planned_s + s->iteration_s * (n - 1),
                     method);
}

static int decompose(struct svd *s, struct gad_error *error)
{
    int r = dense_init(&s->result.s, "s", 1, &s->options.k, error);
    if (r)
        return r;
    r = s->is_by_directions ? find_by_directions(s, error) : find_of_few(s, error);
    struct gad_reads found = s->passes.reads;
    if (r == 0 && s->kind == EIGH)
        sort_values(&s->result, s->n_columns);
    if (r == 0)
        r = finish_vectors(s, error);
    if (r == 0 && s->passes.only_plans)
        tell_plan(s, &found);
    s->result.dtype = s->passes.dtype;
    s->result.n_rows = s->n_rows;
    s->result.n_columns = s->n_columns;
    s->result.reads = s->passes.reads;
    s->result.seconds = (double)(clock_now_ms() - s->passes.started_ms) / 1000;
    return r;
}

static enum gad_status run(enum kind kind, struct gad_client *client, const struct gad_operand *x,
                           const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                           struct gad_error *error)
{
    struct svd s = {.kind = kind};
    if (!ret_result)
        return (enum gad_status)refuse_argument("ret_result", "is NULL", error);
    int r = svd_init(&s, client, x, options, error);
    if (r == 0)
        r = decompose(&s, error);
    svd_deinit(&s);
    if (r)
        gad_svd_result_deinit(&s.result);
    else
        *ret_result = s.result;
    return client_status(r, error);
}

void gad_svd_result_deinit(struct gad_svd_result *result)
{
    if (!result)
        return;
    gad_dense_deinit(&result->s);
    gad_dense_deinit(&result->vectors);
    gad_dense_deinit(&result->mean);
}

enum gad_status gad_svd(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                        struct gad_error *error)
{
    return run(SVD, client, x, options, ret_result, error);
}

enum gad_status gad_pca(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                        struct gad_error *error)
{
    return run(PCA, client, x, options, ret_result, error);
}

enum gad_status gad_eigh(struct gad_client *client, const struct gad_operand *x,
                         const struct gad_svd_options *options, struct gad_svd_result *ret_result,
                         struct gad_error *error)
{
    return run(EIGH, client, x, options, ret_result, error);
}
