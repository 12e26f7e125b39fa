/* The R of a QR decomposition of the data, and what else all that read matrices need.
 */
#include "client/linalg/matrix/matrix.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct gad_linalg_run usual_run;

int matrix_init(struct passes *p, const char *argument, struct gad_client *client,
                const struct gad_operand *operand, const struct gad_linalg_run *run,
                struct gad_error *error)
{
    *p = (struct passes){.client = client};
    if (!operand)
        return error_set(error, GAD_BAD_ARGUMENT, argument, "%s is NULL", argument);
    if (!run)
        run = &usual_run;
    int r = passes_init(p, client, operand, run, run->plan != NULL, error);
    if (r)
        return r;
    if (p->ndim == 2 && p->shape[0] > 0 && p->shape[1] > 0)
        return 0;
    error_set(error, GAD_BAD_SHAPE, argument, "%s is no matrix with elements", argument);
    error_expected(error, "two axes, with elements");
    error_found(error, p->ndim == 2 ? "(%lld, %lld)" : "%lld axes",
                (long long)(p->ndim == 2 ? p->shape[0] : p->ndim), (long long)p->shape[1]);
    return GAD_BAD_SHAPE;
}

int matrix_check_columns(const struct passes *p, const char *argument, int64_t most,
                         struct gad_error *error)
{
    if (p->shape[1] <= most)
        return 0;
    error_set(error, GAD_LIMIT_EXCEEDED, argument,
              "%s: of %lld columns no QR decomposition is made in one read", argument,
              (long long)p->shape[1]);
    error_expected(error, "at most %lld columns", (long long)most);
    error_found(error, "(%lld, %lld)", (long long)p->shape[0], (long long)p->shape[1]);
    return GAD_LIMIT_EXCEEDED;
}

bool matrix_turns(const struct passes *p, const struct gad_operand *operand, int64_t most)
{
    int64_t rows = p->shape[0], columns = p->shape[1];
    return !operand->expr && columns > GAD_SVD_MOST && rows < columns && rows <= most;
}

double *matrix_new(int64_t rows, int64_t columns, struct gad_error *error)
{
    int64_t n = max_i64(mul_saturating_i64(rows, columns), 1);
    double *matrix = n > INT64_MAX / 16 ? NULL : calloc((size_t)n, sizeof(*matrix));
    if (!matrix)
        (void)error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    return matrix;
}

void matrix_turn_signs(int64_t n, int64_t n_elements, int64_t step, int64_t element_step,
                       double *vectors)
{
    for (int64_t i = 0; i < n; i++) {
        double *one = vectors + i * step, largest = 0;
        for (int64_t j = 0; j < n_elements; j++)
            if (fabs(one[j * element_step]) > fabs(largest))
                largest = one[j * element_step];
        for (int64_t j = 0; largest < 0 && j < n_elements; j++)
            one[j * element_step] = -one[j * element_step];
    }
}

int matrix_share(struct passes *p, int ndim, const int64_t *shape, const double *elements,
                 struct gad_array **ret, struct gad_error *error)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    int r = passes_new_matrix(p, ndim, shape, ret, error);
    if (r == 0 && elements)
        memcpy(gad_array_data(*ret), elements, sizeof(*elements) * (size_t)n);
    return r;
}

/* R -------------------------------------------------------------------------------------------- */

/* A row whose diagonal element is negative is turned. Whether all are finite. */
static bool finish(int64_t n, unsigned n_columns, double *r_of, double *behind)
{
    bool is_finite = true;
    for (int64_t i = 0; i < n; i++) {
        double sign = r_of[i * n + i] < 0 ? -1 : 1;
        for (int64_t j = 0; j < n; j++) {
            r_of[i * n + j] = j < i ? 0 : sign * r_of[i * n + j];
            is_finite &= isfinite(r_of[i * n + j]) != 0;
        }
        for (unsigned j = 0; j < n_columns; j++)
            behind[j * (n + 1) + i] *= sign;
    }
    for (int64_t i = 0; i < n_columns * (n + 1); i++)
        is_finite &= isfinite(behind[i]) != 0;
    return is_finite;
}

/* Texts of columns, or of the data for a job that makes R of both. */
#define MOST_TEXTS 16

struct texts {
    unsigned n;
    char *texts[MOST_TEXTS];
};

static void texts_deinit(struct texts *texts)
{
    for (unsigned i = 0; i < texts->n; i++)
        free(texts->texts[i]);
}

static int add_text(struct texts *texts, const char *parts, const char *before, const char *data,
                    const char *between, const char *column, const char *behind)
{
    char *text;
    if (texts->n == MOST_TEXTS ||
        asprintf(&text, "%s%s%s%s%s%s", parts, before, data, between, column, behind) < 0)
        return -ENOMEM;
    texts->texts[texts->n++] = text;
    return 0;
}

static void take_triangle(int64_t n, int64_t width, const double *found, double *ret_r,
                          double *ret_behind)
{
    for (int64_t i = 0; i < n; i++) {
        if (ret_r)
            memcpy(ret_r + i * n, found + i * width, sizeof(*ret_r) * (size_t)n);
        if (width > n)
            ret_behind[i] = found[i * width + n];
    }
    if (width > n)
        ret_behind[n] = fabs(found[n * width + n]);
}

/* Each R is one result of a job: in its carry. */
static int make_by_job(struct passes *p, const char *data, unsigned n_columns,
                       const struct matrix_column *columns, unsigned n_inputs,
                       const struct gad_argument *inputs, double *ret_r, double *ret_behind,
                       struct gad_error *error)
{
    struct texts texts = {.n = 0};
    struct gad_array *to[MOST_TEXTS];
    struct gad_output outputs[MOST_TEXTS];
    int64_t n = p->shape[1], width = n + (n_columns > 0);
    const int64_t shape[] = {width, width};
    unsigned n_before = p->n_matrices, n_texts = n_columns > 0 ? n_columns : 1;
    int r = 0;
    for (unsigned i = 0; i < n_texts && r == 0; i++) {
        r = passes_new_matrix(p, 2, shape, &to[i], error);
        if (r == 0)
            r = n_columns == 0 ? add_text(&texts, "", "qr_r(", data, ")", "", "")
                               : add_text(&texts, columns[i].parts, "qr_r(", data, ", b=float64(",
                                          columns[i].expr, "))");
        if (r == 0)
            outputs[i] = (struct gad_output){.expr = texts.texts[i], .to = to[i]};
    }
    const struct pass pass = {
        .n_inputs = n_inputs, .inputs = inputs, .n_outputs = n_texts, .outputs = outputs};
    if (r == 0)
        r = passes_run(p, &pass, error);
    for (unsigned i = 0; i < n_texts && r == 0 && !p->only_plans; i++)
        take_triangle(n, width, gad_array_data(to[i]), i == 0 ? ret_r : NULL,
                      ret_behind + i * (n + 1));
    texts_deinit(&texts);
    passes_release_matrices(p, n_before);
    return r;
}

static int make_of_rows(struct passes *p, const char *data, unsigned n_columns,
                        const struct matrix_column *columns, unsigned n_inputs,
                        const struct gad_argument *inputs, double *ret_r, double *ret_behind,
                        bool *ret_is_finite, struct gad_error *error)
{
    struct texts texts = {.n = 0};
    int r = add_text(&texts, "", "", data, "", "", "");
    for (unsigned i = 0; i < n_columns && r == 0; i++)
        r = add_text(&texts, columns[i].parts, "float64(", columns[i].expr, ")", "", "");
    if (r == 0)
        r = matrix_triangles_of_rows(p, n_columns, n_inputs, inputs, texts.texts, ret_r, ret_behind,
                                     ret_is_finite, error);
    texts_deinit(&texts);
    return r;
}

int matrix_triangles(struct passes *p, struct gad_array *centre, unsigned n,
                     const struct matrix_column *columns, unsigned n_inputs,
                     const struct gad_argument *inputs, double *ret_r, double *ret_behind,
                     bool *ret_is_finite, struct gad_error *error)
{
    struct gad_argument all[PASSES_MATRICES];
    const char *data = centre ? "float64(_x) - _m" : "float64(_x)";
    *ret_is_finite = true;
    if (n_inputs >= PASSES_MATRICES || n >= MOST_TEXTS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "args", "an expression with %u arguments",
                         n_inputs);
    for (unsigned i = 0; i < n_inputs; i++)
        all[i] = inputs[i];
    if (centre)
        all[n_inputs++] = (struct gad_argument){.name = "_m", .array = centre};
    int r = GAD_TOO_LARGE_FOR_POOL;
    if (p->shape[1] <= MATRIX_QUICK_COLUMNS)
        r = make_by_job(p, data, n, columns, n_inputs, all, ret_r, ret_behind, error);
    if (r == GAD_TOO_LARGE_FOR_POOL)
        r = make_of_rows(p, data, n, columns, n_inputs, all, ret_r, ret_behind, ret_is_finite,
                         error);
    if (r == 0 && *ret_is_finite && !p->only_plans)
        *ret_is_finite = finish(p->shape[1], n, ret_r, ret_behind);
    return r;
}

int matrix_triangle(struct passes *p, const char *argument, struct gad_array *centre, double *ret_r,
                    struct gad_error *error)
{
    bool is_finite;
    int r = matrix_triangles(p, centre, 0, NULL, 0, NULL, ret_r, NULL, &is_finite, error);
    return r || is_finite ? r : passes_refuse_not_finite(p, argument, error);
}

void matrix_tell_plan(const struct passes *p, const struct gad_reads *start, unsigned n_iterations,
                      const struct gad_reads *iteration, const struct gad_reads *finish_reads,
                      double seconds, const char *method)
{
    struct gad_linalg_plan *plan = p->run.plan;
    if (!plan)
        return;
    *plan = (struct gad_linalg_plan){.start = *start,
                                     .iteration = *iteration,
                                     .finish = *finish_reads,
                                     .n_iterations = n_iterations,
                                     .carry_bytes = p->carry_bytes,
                                     .seconds = seconds};
    plan->total = reads_sum(start, n_iterations, iteration);
    plan->total = reads_sum(&plan->total, 1, finish_reads);
    snprintf(plan->method, sizeof(plan->method), "%s", method);
}
