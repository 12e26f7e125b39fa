/* Elements that are not finite: which is the first one.
 *
 * Nobody looks for them before something has come out that is not finite: then one pass more does.
 */
#include "client/linalg/passes.h"
#include "proto/util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_FINDS 4

static int refuse(const struct pass_finite *what, int64_t at, const char *kind,
                  struct gad_error *error)
{
    int64_t index[ARRAY_MAX_NDIM];
    char text[200] = "";
    for (int i = what->ndim; i-- > 0; at /= what->shape[i])
        index[i] = at % what->shape[i];
    for (int i = 0; i < what->ndim; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%lld", i ? ", " : "",
                 (long long)index[what->is_turned ? what->ndim - 1 - i : i]);
    }
    error_set(error, GAD_BAD_ARGUMENT, what->argument, "%s: element [%s] is %s: nothing fits it",
              what->argument, text, kind);
    error_expected(error, "finite numbers; where(isfinite(x), x, 0) takes others as 0");
    error_found(error, "%s at [%s]", kind, text);
    return GAD_BAD_ARGUMENT;
}

static int find(struct passes *p, const struct pass_finite *what, const char *expr,
                double *ret_values, struct gad_error *error)
{
    static const char *const functions[N_FINDS] = {"argmax(isnan", "any(isnan", "argmax(isinf",
                                                   "any(isinf"};
    struct gad_output outputs[N_FINDS];
    struct gad_array *found[N_FINDS] = {NULL};
    char *texts[N_FINDS] = {NULL};
    int r = 0;
    for (int i = 0; i < N_FINDS && r == 0; i++) {
        r = passes_new_matrix(p, 0, NULL, &found[i], error);
        if (r == 0 && asprintf(&texts[i], "float64(%s(%s)))", functions[i], expr) < 0) {
            texts[i] = NULL;
            r = -ENOMEM;
        }
        outputs[i] = (struct gad_output){.expr = texts[i], .to = found[i]};
    }
    const struct pass pass = {.has_no_data = what->expr != NULL,
                              .n_inputs = what->n_inputs,
                              .inputs = what->inputs,
                              .n_outputs = N_FINDS,
                              .outputs = outputs};
    if (r == 0)
        r = passes_run(p, &pass, error);
    for (int i = 0; i < N_FINDS && r == 0; i++)
        ret_values[i] = *(const double *)gad_array_data(found[i]);
    for (int i = 0; i < N_FINDS; i++)
        free(texts[i]);
    return r;
}

int passes_find_not_finite(struct passes *p, const struct pass_finite *what,
                           struct gad_error *error)
{
    double values[N_FINDS];
    int r = find(p, what, what->expr ? what->expr : "_x", values, error);
    if (r)
        return r;
    if (values[1] != 0 && (values[3] == 0 || values[0] < values[2]))
        return refuse(what, (int64_t)values[0], "nan", error);
    return values[3] != 0 ? refuse(what, (int64_t)values[2], "infinite", error) : 0;
}

int passes_refuse_not_finite(struct passes *p, const char *argument, struct gad_error *error)
{
    const struct pass_finite what = {
        .argument = argument, .ndim = p->ndim, .shape = p->shape, .is_turned = p->is_turned};
    int r = passes_find_not_finite(p, &what, error);
    if (r)
        return r;
    error_set(error, GAD_BAD_ARGUMENT, argument,
              "%s: the sum of its elements' squares is beyond float64: divide it by a number",
              argument);
    error_expected(error, "a sum of squares up to %.2g", DBL_MAX);
    error_found(error, "an infinite one of finite elements");
    return GAD_BAD_ARGUMENT;
}

int passes_check_squares(struct passes *p, const char *argument, int mean_axis, double squares,
                         struct gad_error *error)
{
    struct gad_array *found;
    if (p->only_plans || (squares >= PASSES_LEAST_SQUARES && isfinite(squares)))
        return 0;
    if (!isfinite(squares))
        return passes_refuse_not_finite(p, argument, error);
    int r = passes_new_matrix(p, 0, NULL, &found, error);
    if (r)
        return r;
    static const char *const differs[] = {"float64(any(max(_x, axis=0) != min(_x, axis=0)))",
                                          "float64(any(max(_x, axis=1) != min(_x, axis=1)))"};
    const struct gad_output output = {
        .expr = mean_axis < 0 ? "float64(any(_x != 0))" : differs[mean_axis], .to = found};
    const struct pass pass = {.n_outputs = 1, .outputs = &output};
    r = passes_run(p, &pass, error);
    if (r || *(const double *)gad_array_data(found) == 0)
        return r;
    error_set(error, GAD_BAD_ARGUMENT, argument,
              "%s: squares of its elements%s are below float64: multiply it by a number", argument,
              mean_axis < 0 ? "" : " less their mean");
    error_expected(error, "%s, or a sum of squares from %.2g on",
                   mean_axis < 0 ? "zeros" : "the same elements", PASSES_LEAST_SQUARES);
    error_found(error, "one of %.3g", squares);
    return GAD_BAD_ARGUMENT;
}
