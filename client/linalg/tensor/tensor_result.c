/* Results of tensors' decompositions, and factors in files. Called by cp.c, tucker.c and programs.
 */
#include "client/linalg/tensor/tensor_result.h"
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "client/linalg/dense_files.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int tensor_result_init(struct gad_tensor_result *result, bool is_tucker, const struct passes *p,
                       const int64_t *core_shape, int core_ndim, struct gad_error *error)
{
    *result = (struct gad_tensor_result){
        .factors = {.is_tucker = is_tucker, .ndim = p->ndim},
        .dtype = p->dtype,
        .reads = p->reads,
        .seconds = (double)(clock_now_ms() - p->started_ms) / 1000,
    };
    return dense_init(&result->factors.core, is_tucker ? "core" : "weights", core_ndim, core_shape,
                      error);
}

int tensor_result_factor(struct gad_tensor_result *result, int axis, const int64_t *shape,
                         const double *elements, struct gad_error *error)
{
    char name[32];
    struct gad_dense *factor = &result->factors.factors[axis];
    snprintf(name, sizeof(name), "factor_%d", axis);
    int r = dense_init(factor, name, 2, shape, error);
    if (r == 0)
        memcpy(factor->data, elements, sizeof(*elements) * (size_t)(shape[0] * shape[1]));
    return r;
}

void gad_factors_deinit(struct gad_factors *factors)
{
    if (!factors)
        return;
    gad_dense_deinit(&factors->core);
    for (int i = 0; i < GAD_MAX_FACTORS; i++)
        gad_dense_deinit(&factors->factors[i]);
}

void gad_tensor_result_deinit(struct gad_tensor_result *result)
{
    if (result)
        gad_factors_deinit(&result->factors);
}

/* Files ---------------------------------------------------------------------------------------- */

enum gad_status gad_factors_save(const char *path, const struct gad_factors *factors,
                                 struct gad_error *error)
{
    struct gad_dense arrays[1 + GAD_MAX_FACTORS];
    if (!path || !factors)
        return error_set(error, GAD_BAD_ARGUMENT, path ? "factors" : "path", "is NULL");
    arrays[0] = factors->core;
    snprintf(arrays[0].name, sizeof(arrays[0].name), factors->is_tucker ? "core" : "weights");
    for (int i = 0; i < factors->ndim; i++) {
        arrays[1 + i] = factors->factors[i];
        snprintf(arrays[1 + i].name, sizeof(arrays[1 + i].name), "factor_%d", i);
    }
    return client_status(dense_replace(path, 1 + (unsigned)factors->ndim, arrays, error), error);
}

static int load(const char *path, const char *name, struct gad_dense *ret, struct gad_error *error)
{
    _cleanup_free_ char *spec = NULL;
    if (asprintf(&spec, "%s:%s", path, name) < 0) {
        spec = NULL;
        return -ENOMEM;
    }
    int r = dense_load(spec, ret, error);
    if (r == 0)
        snprintf(ret->name, sizeof(ret->name), "%s", name);
    return r;
}

static int load_factors(const char *path, struct gad_factors *factors, struct gad_error *error)
{
    size_t n_path = strlen(path);
    if (n_path < 4 || strcasecmp(path + n_path - 4, ".npz") != 0) {
        error_set(error, GAD_BAD_FORMAT, path, "%s is no archive of factors", path);
        error_expected(error, "FILE.npz, of gad_factors_save() or a checkpoint");
        error_found(error, "another kind of file");
        return GAD_BAD_FORMAT;
    }
    int r = load(path, "weights", &factors->core, error);
    if (r == GAD_NOT_FOUND) {
        factors->is_tucker = true;
        r = load(path, "core", &factors->core, error);
    }
    for (int i = 0; i < GAD_MAX_FACTORS && r == 0; i++) {
        char name[32];
        snprintf(name, sizeof(name), "factor_%d", i);
        r = load(path, name, &factors->factors[i], error);
        if (r == 0)
            factors->ndim++;
        else if (r == GAD_NOT_FOUND && i > 0)
            break;
    }
    return r == GAD_NOT_FOUND && factors->ndim > 0 ? 0 : r;
}

/* NaN in a factor would be lost in sums. */
static int check_finite(const struct gad_dense *dense, const char *argument,
                        struct gad_error *error)
{
    int64_t n = 1;
    for (int i = 0; i < dense->ndim; i++)
        n *= dense->shape[i];
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(dense->data[i]))
            continue;
        error_set(error, GAD_BAD_ARGUMENT, argument, "%s: its element %lld in C order is %g",
                  argument, (long long)i, dense->data[i]);
        error_expected(error, "finite numbers");
        error_found(error, "%g", dense->data[i]);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

int factors_check(const struct gad_factors *factors, struct gad_error *error)
{
    int wanted = factors->is_tucker ? factors->ndim : 1;
    if (factors->ndim < 1 || factors->ndim > GAD_MAX_FACTORS) {
        error_set(error, GAD_BAD_SHAPE, "factors", "%d factors are no decomposition",
                  factors->ndim);
        error_expected(error, "1 to %d factors", GAD_MAX_FACTORS);
        error_found(error, "%d", factors->ndim);
        return GAD_BAD_SHAPE;
    }
    if (factors->core.ndim != wanted) {
        error_set(error, GAD_BAD_SHAPE, "core", "%s of %d axes for %d factors",
                  factors->is_tucker ? "a core" : "weights", factors->core.ndim, factors->ndim);
        error_expected(error, "%d axes", wanted);
        error_found(error, "%d", factors->core.ndim);
        return GAD_BAD_SHAPE;
    }
    for (int i = 0; i < factors->ndim; i++) {
        const struct gad_dense *factor = &factors->factors[i];
        int64_t rank = factors->core.shape[factors->is_tucker ? i : 0];
        char name[32];
        snprintf(name, sizeof(name), "factor_%d", i);
        int r = check_finite(factor, name, error);
        if (r)
            return r;
        if (factor->ndim == 2 && factor->shape[1] == rank)
            continue;
        error_set(error, GAD_BAD_SHAPE, "factors", "factor %d does not fit the %s", i,
                  factors->is_tucker ? "core" : "weights");
        error_expected(error, "(n, %lld)", (long long)rank);
        error_found(error, "%d axes, the last of %lld", factor->ndim,
                    factor->ndim > 0 ? (long long)factor->shape[factor->ndim - 1] : 0);
        return GAD_BAD_SHAPE;
    }
    return check_finite(&factors->core, factors->is_tucker ? "core" : "weights", error);
}

enum gad_status gad_factors_load(const char *path, struct gad_factors *ret_factors,
                                 struct gad_error *error)
{
    struct gad_factors factors = {.ndim = 0};
    if (!path || !ret_factors)
        return error_set(error, GAD_BAD_ARGUMENT, path ? "ret_factors" : "path", "is NULL");
    int r = load_factors(path, &factors, error);
    if (r == 0)
        r = factors_check(&factors, error);
    if (r)
        gad_factors_deinit(&factors);
    else
        *ret_factors = factors;
    return client_status(r, error);
}
