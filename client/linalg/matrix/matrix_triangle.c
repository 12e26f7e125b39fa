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

/* A row whose diagonal element is negative is turned. */
static bool finish(int64_t n, const double *found, double *ret_r)
{
    bool is_finite = true;
    for (int64_t i = 0; i < n; i++) {
        double sign = found[i * n + i] < 0 ? -1 : 1;
        for (int64_t j = 0; j < n; j++) {
            ret_r[i * n + j] = sign * found[i * n + j];
            is_finite &= isfinite(found[i * n + j]) != 0;
        }
    }
    return is_finite;
}

static int run(struct passes *p, struct gad_array *centre, unsigned n, char **texts,
               struct gad_array **to, unsigned n_inputs, const struct gad_argument *inputs,
               struct gad_error *error)
{
    struct gad_argument all[PASSES_MATRICES];
    struct gad_output outputs[PASSES_MATRICES];
    unsigned n_all = 0;
    if (n_inputs >= PASSES_MATRICES || n > PASSES_MATRICES)
        return error_set(error, GAD_LIMIT_EXCEEDED, "args", "an expression with %u arguments",
                         n_inputs);
    for (unsigned i = 0; i < n_inputs; i++)
        all[n_all++] = inputs[i];
    if (centre)
        all[n_all++] = (struct gad_argument){.name = "_m", .array = centre};
    for (unsigned i = 0; i < n; i++)
        outputs[i] = (struct gad_output){.expr = texts[i], .to = to[i]};
    const struct pass pass = {.n_inputs = n_all, .inputs = all, .n_outputs = n, .outputs = outputs};
    return passes_run(p, &pass, error);
}

int matrix_triangles(struct passes *p, struct gad_array *centre, unsigned n,
                     const struct matrix_column *columns, unsigned n_inputs,
                     const struct gad_argument *inputs, double *const *ret_rs, bool *ret_is_finite,
                     struct gad_error *error)
{
    char *texts[PASSES_MATRICES] = {NULL};
    struct gad_array *to[PASSES_MATRICES];
    int r = 0;
    *ret_is_finite = true;
    for (unsigned i = 0; i < n && r == 0; i++) {
        int64_t width = p->shape[1] + (columns[i].expr != NULL);
        const int64_t shape[] = {width, width};
        bool has_column = columns[i].expr != NULL;
        r = passes_new_matrix(p, 2, shape, &to[i], error);
        if (r == 0 &&
            asprintf(&texts[i], "%sqr_r(float64(_x)%s%s%s%s)", has_column ? columns[i].parts : "",
                     centre ? " - _m" : "", has_column ? ", b=float64(" : "",
                     has_column ? columns[i].expr : "", has_column ? ")" : "") < 0) {
            texts[i] = NULL;
            r = -ENOMEM;
        }
    }
    if (r == 0)
        r = run(p, centre, n, texts, to, n_inputs, inputs, error);
    for (unsigned i = 0; i < n && r == 0 && !p->only_plans; i++)
        *ret_is_finite &=
            finish(p->shape[1] + (columns[i].expr != NULL), gad_array_data(to[i]), ret_rs[i]);
    for (unsigned i = 0; i < n; i++)
        free(texts[i]);
    return r;
}

int matrix_triangle(struct passes *p, const char *argument, struct gad_array *centre, double *ret_r,
                    struct gad_error *error)
{
    const struct matrix_column none = {.expr = NULL};
    bool is_finite;
    int r = matrix_triangles(p, centre, 1, &none, 0, NULL, &ret_r, &is_finite, error);
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
