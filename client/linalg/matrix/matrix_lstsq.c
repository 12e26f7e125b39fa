/* Least squares: of the R of [a | b] all that is asked for follows in memory.
 *
 *         n      1
 *     [  R_a  |  c  ]  n        R_a = P diag(s) Q.T,  along = P.T c,  x = Q (along / s)
 *     [   0   | rest]  1        |a x - b|^2 = rest^2 + what is left of along
 *
 * One read has an R for each of several columns of b. Of an array with few rows and many columns R
 * is of it turned, a.T = Q R, so that a = P diag(s) V.T with R.T = P diag(s) W.T; the shortest x is
 * a.T @ z with z = P (along / s^2), and a second read.
 */
#include "client/clock.h"
#include "client/gpuarrayd-matrix.h"
#include "client/gpuarrayd-move.h"
#include "client/lib/connection/client.h"
#include "client/linalg/dense.h"
#include "client/linalg/matrix/matrix.h"
#include "proto/dtype.h"
#include "proto/util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_TOGETHER 15   /* columns of b in a job */
#define MOST_COLUMNS  1024 /* of all Rs that a job makes */

struct lstsq {
    const struct gad_lstsq_options *options;
    struct passes passes;
    const struct gad_operand *b;
    const char *b_expr; /* of an expression, without its parts before */
    char *b_parts;
    struct gad_argument b_args[PASSES_MATRICES];
    unsigned n_b_args;
    struct gad_operand turned; /* its array is a reference */
    bool is_wide;
    int64_t n_rows, n, m; /* rows of a; its columns, of a wide one rows; columns of b */
    bool is_vector;
    double *s, *u, *vt, *along; /* n, of R n x n, n */
    struct gad_lstsq_result result;
};

/* b -------------------------------------------------------------------------------------------- */

static int refuse_shape(const struct lstsq *l, int ndim, const int64_t *shape,
                        struct gad_error *error)
{
    error_set(error, GAD_BAD_SHAPE, "b", "b does not fit a, which has %lld rows",
              (long long)l->n_rows);
    error_expected(error, "(%lld, m)", (long long)l->n_rows);
    error_found(error, "%d axes, the first of %lld", ndim, ndim > 0 ? (long long)shape[0] : 1);
    return GAD_BAD_SHAPE;
}

/* Arguments that a has, too, are there once. */
static int take_arguments(struct lstsq *l, struct gad_error *error)
{
    const struct passes *a = &l->passes;
    for (unsigned i = 0; i < l->b->n_args; i++) {
        const struct gad_argument *arg = &l->b->args[i];
        unsigned j = 0;
        while (j < a->n_args && strcmp(a->args[j].name, arg->name) != 0)
            j++;
        if (j < a->n_args && a->args[j].array != arg->array)
            return refuse_argument(arg->name, "is something else in a", error);
        if (j == a->n_args && l->n_b_args == ARRAY_LENGTH(l->b_args))
            return refuse_argument("b", "has too many arguments", error);
        if (j == a->n_args)
            l->b_args[l->n_b_args++] = *arg;
    }
    return 0;
}

static int take_expression(struct lstsq *l, struct gad_client *client, struct gad_error *error)
{
    const char *last = strrchr(l->b->expr, ';');
    struct passes b;
    int r = passes_init(&b, client, l->b, &l->options->run, true, error);
    if (r == 0 && (b.ndim != 2 || b.shape[0] != l->n_rows || b.shape[1] != 1))
        r = refuse_shape(l, b.ndim, b.shape, error);
    passes_deinit(&b);
    l->m = 1;
    l->is_vector = true;
    l->b_expr = last ? last + 1 : l->b->expr;
    l->b_parts = last ? strndup(l->b->expr, (size_t)(last + 1 - l->b->expr)) : strdup("");
    return r ? r : l->b_parts ? take_arguments(l, error) : -ENOMEM;
}

static int take_b(struct lstsq *l, struct gad_client *client, struct gad_error *error)
{
    if (!l->b || (!l->b->expr && !l->b->array))
        return refuse_argument("b", "is NULL", error);
    if (l->b->expr)
        return take_expression(l, client, error);
    const struct gad_array_info *info = gad_array_info(l->b->array);
    if (info->ndim < 1 || info->ndim > 2 || info->shape[0] != l->n_rows)
        return refuse_shape(l, info->ndim, info->shape, error);
    l->is_vector = info->ndim == 1;
    l->m = l->is_vector ? 1 : info->shape[1];
    return 0;
}

static int check_options(const struct gad_lstsq_options *options, struct gad_error *error)
{
    if (!options)
        return refuse_argument("options", "is NULL", error);
    if (options->size < offsetof(struct gad_lstsq_options, ridges) + sizeof(double *))
        return refuse_argument("options", "its size is not that of a struct gad_lstsq_options",
                               error);
    for (unsigned i = 0; i < options->n_ridges; i++)
        if (!(options->ridges[i] >= 0) || isinf(options->ridges[i])) {
            error_set(error, GAD_BAD_ARGUMENT, "ridges", "ridge %u is %g", i, options->ridges[i]);
            error_expected(error, "numbers from 0 on");
            error_found(error, "%g", options->ridges[i]);
            return GAD_BAD_ARGUMENT;
        }
    return isnan(options->rcond) ? refuse_number("rcond", options->rcond, "a number", error) : 0;
}

/* Solutions ------------------------------------------------------------------------------------ */

static double least_value(const struct lstsq *l)
{
    double rcond = l->options->rcond,
           precision = l->passes.dtype == GAD_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
    if (rcond == 0)
        rcond = precision * (double)max_i64(l->passes.shape[0], l->n);
    return max_f64(rcond, 0) * l->s[0];
}

/* x of one column, with or without a ridge, and its residual. */
static void solve(struct lstsq *l, int64_t column, int64_t ridge_number, double rest)
{
    double *x = l->result.x.data + (ridge_number * l->n) * l->m + column;
    double ridge = l->options->n_ridges > 0 ? l->options->ridges[ridge_number] : 0;
    double squares = rest * rest;
    bool has_ridge = ridge > 0; /* one of 0 holds nothing back that is noise */
    for (int64_t i = 0; i < l->n; i++) {
        bool counts = has_ridge ? l->s[i] * l->s[i] + ridge > 0 : i < l->result.rank;
        double kept = !counts ? 0 : has_ridge ? l->s[i] * l->s[i] / (l->s[i] * l->s[i] + ridge) : 1;
        double filtered = kept > 0 ? kept * l->along[i] / l->s[i] : 0;
        squares += (1 - kept) * (1 - kept) * l->along[i] * l->along[i];
        for (int64_t j = 0; j < l->n; j++)
            x[j * l->m] += filtered * l->vt[i * l->n + j];
    }
    l->result.residuals.data[ridge_number * l->m + column] = squares;
}

/* Of R, which is the same for all columns of a read, and is spoilt. Another read's may differ by
 * more than roundings where columns depend on each other. */
static int find_values(struct lstsq *l, double *r_of, struct gad_error *error)
{
    int64_t n = l->n;
    int r = dense_svd(n, n, r_of, l->u, l->s, l->vt, error);
    if (r)
        return r;
    double least = least_value(l);
    l->result.rank = 0;
    for (int64_t i = 0; i < n; i++)
        l->result.rank += l->s[i] > least;
    memcpy(l->result.s.data, l->s, sizeof(*l->s) * (size_t)n);
    return 0;
}

/* behind: what R has behind it of this column. */
static void take_column(struct lstsq *l, int64_t column, const double *behind)
{
    int64_t n = l->n;
    memset(l->along, 0, sizeof(*l->along) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            l->along[j] += l->u[i * n + j] * behind[i];
    for (unsigned i = 0; i < (l->options->n_ridges ? l->options->n_ridges : 1); i++)
        solve(l, column, i, behind[n]);
}

/* Reading -------------------------------------------------------------------------------------- */

/* Column j of an array, as (rows, 1). */
static int view_column(const struct lstsq *l, int64_t j, struct gad_array **ret,
                       struct gad_error *error)
{
    const int64_t start[] = {0, j};
    const struct gad_view_axis axes[] = {{0, l->passes.shape[0], 1}, {-1, 1, 0}};
    return (int)gad_array_view(l->b->array, start, 2, axes, ret, error);
}

/* Which of both has what is not finite. */
static int refuse(struct lstsq *l, struct gad_error *error)
{
    const char *expr = l->b->expr ? l->b->expr : "_b";
    const struct gad_argument alone = {.name = "_b", .array = l->b->array};
    const int64_t shape[] = {l->n_rows, l->m};
    const struct pass_finite what = {.argument = "b",
                                     .expr = expr,
                                     .n_inputs = l->b->expr ? l->b->n_args : 1,
                                     .inputs = l->b->expr ? l->b->args : &alone,
                                     .ndim = l->is_vector ? 1 : 2,
                                     .shape = shape};
    int r = strchr(expr, ';') ? 0 : passes_find_not_finite(&l->passes, &what, error);
    return r ? r : passes_refuse_not_finite(&l->passes, "a", error);
}

static int read_columns(struct lstsq *l, int64_t first, unsigned n_now, double *ret_r,
                        double *ret_behind, struct gad_error *error)
{
    struct matrix_column columns[MOST_TOGETHER];
    struct gad_argument inputs[PASSES_MATRICES + MOST_TOGETHER];
    struct gad_array *views[MOST_TOGETHER] = {NULL};
    char names[MOST_TOGETHER][8];
    unsigned n_inputs = l->n_b_args;
    bool is_finite = true;
    int r = 0;
    memcpy(inputs, l->b_args, sizeof(*inputs) * n_inputs);
    for (unsigned i = 0; i < n_now && r == 0; i++) {
        columns[i] = (struct matrix_column){.parts = l->b_parts, .expr = l->b_expr};
        if (l->b->expr)
            continue;
        snprintf(names[i], sizeof(names[i]), "_b%u", i);
        columns[i] = (struct matrix_column){.parts = "", .expr = names[i]};
        r = view_column(l, first + i, &views[i], error);
        inputs[n_inputs++] = (struct gad_argument){.name = names[i], .array = views[i]};
    }
    if (r == 0)
        r = matrix_triangles(&l->passes, NULL, n_now, columns, n_inputs, inputs, ret_r, ret_behind,
                             &is_finite, error);
    for (unsigned i = 0; i < n_now; i++)
        gad_array_release(views[i]);
    passes_release_matrices(&l->passes, 0);
    return r || is_finite ? r : refuse(l, error);
}

/* After a read; what is not solved when the caller stops it never is. */
static int tell(const struct lstsq *l, int64_t n_done, int64_t n_reads, struct gad_error *error)
{
    bool stops = passes_tell(&l->passes, (unsigned)n_done, (unsigned)n_reads, NAN, NAN);
    if (!stops || n_done == n_reads)
        return 0;
    return error_set(error, GAD_CANCELLED, NULL, "stopped after read %lld of %lld",
                     (long long)n_done, (long long)n_reads);
}

static int read_all(struct lstsq *l, struct gad_error *error)
{
    unsigned together = MOST_TOGETHER;
    if (l->n <= MATRIX_QUICK_COLUMNS)
        together = (unsigned)min_i64(together, MOST_COLUMNS / (l->n + 1));
    int64_t n = l->n;
    together = (unsigned)min_i64(together, l->m);
    _cleanup_free_ double *r_of = matrix_new(n, n, error);
    _cleanup_free_ double *behind = matrix_new(together, n + 1, error);
    if (!r_of || !behind)
        return GAD_NO_MEMORY;
    int r = 0;
    for (int64_t first = 0; first < l->m && r == 0; first += together) {
        unsigned n_now = (unsigned)min_i64(together, l->m - first);
        r = read_columns(l, first, n_now, r_of, behind, error);
        if (r || l->passes.only_plans)
            continue;
        r = find_values(l, r_of, error);
        for (unsigned i = 0; i < n_now && r == 0; i++)
            take_column(l, first + i, behind + i * (n + 1));
        if (r == 0)
            r = tell(l, first / together + 1, divide_up_i64(l->m, together), error);
    }
    return r;
}

/* A wide array ---------------------------------------------------------------------------------
 */

/* Read instead of `a`; of an expression nothing is turned. */
static int turn(struct lstsq *l, struct gad_client *client, const struct gad_operand *a,
                struct gad_error *error)
{
    int r = (int)gad_array_transpose(a->array, NULL, &l->turned.array, error);
    if (r)
        return r;
    passes_deinit(&l->passes);
    l->is_wide = true;
    r = matrix_init(&l->passes, "a", client, &l->turned, &l->options->run, error);
    l->passes.is_turned = true;
    return r;
}

/* b in memory, rows x m. */
static int read_b(struct lstsq *l, const double **ret_b, struct gad_error *error)
{
    const struct gad_argument alone = {.name = "_b", .array = l->b->array};
    const int64_t shape[] = {l->n_rows, l->m};
    bool is_expr = l->b->expr != NULL, is_finite = true;
    struct gad_array *b;
    _cleanup_free_ char *text = NULL;
    if (asprintf(&text, "%sfloat64(%s)", is_expr ? l->b_parts : "", is_expr ? l->b_expr : "_b") < 0)
        return text = NULL, -ENOMEM;
    int r = passes_new_matrix(&l->passes, is_expr || !l->is_vector ? 2 : 1, shape, &b, error);
    if (r)
        return r;
    const struct gad_output output = {.expr = text, .to = b};
    const struct pass pass = {.has_no_data = true,
                              .n_inputs = is_expr ? l->b->n_args : 1,
                              .inputs = is_expr ? l->b->args : &alone,
                              .n_outputs = 1,
                              .outputs = &output};
    r = passes_run(&l->passes, &pass, error);
    if (r || l->passes.only_plans)
        return r;
    *ret_b = gad_array_data(b);
    for (int64_t i = 0; i < l->n_rows * l->m; i++)
        is_finite &= isfinite((*ret_b)[i]) != 0;
    return is_finite ? 0 : refuse(l, error);
}

/* z in the place of x; the rows of vt are those of P.T by s. */
static int find_z(struct lstsq *l, double *triangle, const double *b, struct gad_error *error)
{
    int64_t n = l->n;
    int r = find_values(l, triangle, error);
    if (r)
        return r;
    double *p = l->u;
    memcpy(p, l->vt, sizeof(*p) * (size_t)(n * n));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            l->vt[i * n + j] = l->s[i] > 0 ? p[i * n + j] / l->s[i] : 0;
    for (int64_t column = 0; column < l->m; column++) {
        memset(l->along, 0, sizeof(*l->along) * (size_t)n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                l->along[i] += p[i * n + j] * b[j * l->m + column];
        for (unsigned i = 0; i < max_i64(l->options->n_ridges, 1); i++)
            solve(l, column, i, 0);
    }
    return 0;
}

/* x = a.T @ z of all ridges, in one read. */
static int multiply_z(struct lstsq *l, struct gad_error *error)
{
    int64_t n_columns = l->passes.shape[0], n_ridges = max_i64(l->options->n_ridges, 1);
    int64_t width = n_ridges * l->m;
    const int64_t z_shape[] = {l->n, width}, made_shape[] = {n_columns, width};
    const int64_t x_shape[] = {n_ridges, n_columns, l->m};
    bool has_ridges = l->options->n_ridges > 0;
    struct gad_dense x;
    struct gad_array *z, *made;
    int r = passes_new_matrix(&l->passes, 2, z_shape, &z, error);
    if (r == 0)
        r = passes_new_matrix(&l->passes, 2, made_shape, &made, error);
    if (r)
        return r;
    double *elements = gad_array_data(z);
    for (int64_t i = 0; i < n_ridges * l->n; i++)
        for (int64_t j = 0; j < l->m; j++)
            elements[i % l->n * width + i / l->n * l->m + j] = l->result.x.data[i * l->m + j];
    const struct gad_argument input = {.name = "_w", .array = z};
    const struct gad_output output = {.expr = "_x @ _w", .to = made};
    const struct pass pass = {.n_inputs = 1, .inputs = &input, .n_outputs = 1, .outputs = &output};
    r = passes_run(&l->passes, &pass, error);
    if (r == 0)
        r = dense_init(&x, "x", 2 + has_ridges, x_shape + !has_ridges, error);
    if (r)
        return r;
    const double *found = gad_array_data(made);
    for (int64_t i = 0; i < n_ridges * n_columns; i++)
        memcpy(x.data + i * l->m, found + i % n_columns * width + i / n_columns * l->m,
               sizeof(*found) * (size_t)l->m);
    gad_dense_deinit(&l->result.x);
    l->result.x = x;
    return 0;
}

static int read_wide(struct lstsq *l, struct gad_error *error)
{
    const double *b = NULL;
    _cleanup_free_ double *triangle = matrix_new(l->n, l->n, error);
    int r = triangle ? matrix_triangle(&l->passes, "a", NULL, triangle, error) : GAD_NO_MEMORY;
    if (r == 0)
        r = tell(l, 1, 2, error);
    if (r == 0)
        r = read_b(l, &b, error);
    if (r == 0 && !l->passes.only_plans)
        r = find_z(l, triangle, b, error);
    if (r == 0)
        r = multiply_z(l, error);
    return r ? r : tell(l, 2, 2, error);
}

/* All of it ------------------------------------------------------------------------------------ */

static int prepare(struct lstsq *l, struct gad_error *error)
{
    int64_t n = l->n, m = l->m, n_ridges = l->options->n_ridges;
    const int64_t x_shape[] = {n_ridges, n, m}, rest_shape[] = {n_ridges, m};
    bool has_ridges = n_ridges > 0;
    l->s = matrix_new(n, 1, error);
    l->along = matrix_new(n, 1, error);
    l->u = matrix_new(n, n, error);
    l->vt = matrix_new(n, n, error);
    if (!l->s || !l->along || !l->u || !l->vt)
        return GAD_NO_MEMORY;
    int r = dense_init(&l->result.x, "x", 2 + has_ridges, x_shape + !has_ridges, error);
    if (r == 0)
        r = dense_init(&l->result.residuals, "residuals", 1 + has_ridges, rest_shape + !has_ridges,
                       error);
    return r ? r : dense_init(&l->result.s, "s", 1, &n, error);
}

static int run(struct lstsq *l, struct gad_client *client, const struct gad_operand *a,
               struct gad_error *error)
{
    struct gad_lstsq_result *result = &l->result;
    static const struct gad_reads nothing;
    int r = matrix_init(&l->passes, "a", client, a, &l->options->run, error);
    l->n_rows = l->passes.shape[0];
    if (r == 0 && matrix_turns(&l->passes, a, GAD_SVD_MOST_ALL))
        r = turn(l, client, a, error);
    if (r == 0)
        r = matrix_check_columns(&l->passes, "a", GAD_SVD_MOST_ALL, error);
    if (r == 0)
        r = take_b(l, client, error);
    l->n = l->passes.shape[1];
    if (r == 0)
        r = prepare(l, error);
    if (r == 0)
        r = l->is_wide ? read_wide(l, error) : read_all(l, error);
    if (r)
        return r;
    matrix_tell_plan(&l->passes, &l->passes.reads, 0, &nothing, &nothing, l->passes.planned_s,
                     l->is_wide ? "by a QR decomposition of the matrix turned"
                                : "by a QR decomposition with each column of b behind it");
    result->reads = l->passes.reads;
    result->seconds = (double)(clock_now_ms() - l->passes.started_ms) / 1000;
    if (result->rank < l->n && l->options->n_ridges == 0 && !l->passes.only_plans)
        snprintf(result->warning, sizeof(result->warning),
                 "%s of a depend on each other: of its rank %lld, x is the shortest solution",
                 l->is_wide ? "rows" : "columns", (long long)result->rank);
    return 0;
}

void gad_lstsq_result_deinit(struct gad_lstsq_result *result)
{
    if (!result)
        return;
    gad_dense_deinit(&result->x);
    gad_dense_deinit(&result->residuals);
    gad_dense_deinit(&result->s);
}

enum gad_status gad_lstsq(struct gad_client *client, const struct gad_operand *a,
                          const struct gad_operand *b, const struct gad_lstsq_options *options,
                          struct gad_lstsq_result *ret_result, struct gad_error *error)
{
    struct lstsq l = {.options = options, .b = b};
    if (!ret_result)
        return (enum gad_status)refuse_argument("ret_result", "is NULL", error);
    int r = check_options(options, error);
    if (r == 0)
        r = run(&l, client, a, error);
    passes_deinit(&l.passes);
    gad_array_release(l.turned.array);
    free(l.b_parts);
    free(l.s);
    free(l.u);
    free(l.along);
    free(l.vt);
    if (r)
        gad_lstsq_result_deinit(&l.result);
    else
        *ret_result = l.result;
    return client_status(r, error);
}
