/* Factors that are there already, and data: right sides, errors, the tensor itself.
 *
 * The error is made of norms, |x - y|^2 = |x|^2 - 2 <x, y> + |y|^2, of which only the first two
 * terms need the data: one read, and nothing of the tensor's size.
 *
 * A tensor is written as products of matrices of its last two axes: what the last factor is not
 * part of, times that one. Of CP the left sides are made on the way, of factors that are broadcast.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/linalg/tensor/contract.h"
#include "client/linalg/dense.h"
#include "client/linalg/tensor/modes.h"
#include "client/linalg/tensor/slabs.h"
#include "client/linalg/tensor/tensor_result.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct gad_linalg_run usual_run;

struct given {
    const struct gad_factors *factors;
    struct passes passes;
    struct slabs slabs;
};

static double *new_elements(int64_t n, struct gad_error *error)
{
    double *elements = calloc((size_t)max_i64(n, 1), sizeof(*elements));
    if (!elements)
        (void)error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    return elements;
}

/* Checking, and bringing to the slabs ------------------------------------------------------------
 */

static int check_fit(const struct passes *p, const struct gad_factors *factors,
                     struct gad_error *error)
{
    int r = factors_check(factors, error);
    if (r == 0 && factors->ndim != p->ndim) {
        r = error_set(error, GAD_BAD_SHAPE, "factors", "%d factors for a tensor of %d axes",
                      factors->ndim, p->ndim);
        error_expected(error, "%d", p->ndim);
        error_found(error, "%d", factors->ndim);
    }
    for (int i = 0; i < p->ndim && r == 0; i++) {
        int64_t n = factors->factors[i].shape[0];
        if (n == p->shape[i])
            continue;
        r = error_set(error, GAD_BAD_SHAPE, "factors",
                      "factor %d has %lld rows, axis %d of the tensor %lld elements", i,
                      (long long)n, i, (long long)p->shape[i]);
        error_expected(error, "%lld rows", (long long)p->shape[i]);
        error_found(error, "%lld", (long long)n);
    }
    return r;
}

/* The columns that a read needs: CP all, Tucker those of the slabs' axis. */
static int given_init(struct given *g, struct gad_client *client, const struct gad_operand *tensor,
                      const struct gad_factors *factors, const struct gad_linalg_run *run,
                      struct gad_error *error)
{
    *g = (struct given){.factors = factors};
    if (!tensor || !factors)
        return refuse_argument(tensor ? "factors" : "tensor", "is NULL", error);
    int r = passes_init(&g->passes, client, tensor, run ? run : &usual_run, false, error);
    if (r == 0)
        r = slabs_check_shape(&g->passes, error);
    if (r == 0)
        r = check_fit(&g->passes, factors, error);
    if (r)
        return r;
    int axis = slabs_axis(&g->passes);
    r = slabs_init(&g->slabs, &g->passes, factors->factors[axis].shape[1], error);
    for (int i = 0; i < factors->ndim && r == 0; i++) {
        const struct gad_dense *factor = &factors->factors[i];
        size_t n_bytes = sizeof(double) * (size_t)(factor->shape[0] * factor->shape[1]);
        if (!factors->is_tucker || i == axis)
            memcpy(slabs_factor(&g->slabs, i), factor->data, n_bytes);
    }
    return r;
}

static void given_deinit(struct given *g)
{
    slabs_deinit(&g->slabs);
    passes_deinit(&g->passes);
}

/* Right sides ---------------------------------------------------------------------------------- */

/* rest, summed over all axes but one. */
static int contract_rest(const struct given *g, int mode, double *ret, struct gad_error *error)
{
    const struct slabs *s = &g->slabs;
    int64_t sizes[2][SLABS_MAX_NDIM], n_left = 1, n_right = 1, n = g->passes.shape[mode];
    const double *factors[2][SLABS_MAX_NDIM];
    int n_sides[2] = {0, 0};
    for (int i = 0; i < s->n_others; i++) {
        int axis = s->others[i], side = axis > mode;
        if (axis == mode)
            continue;
        sizes[side][n_sides[side]] = g->passes.shape[axis];
        factors[side][n_sides[side]++] = slabs_factor(s, axis);
        *(side ? &n_right : &n_left) *= g->passes.shape[axis];
    }
    const double *rest = gad_array_data(s->rest);
    _cleanup_free_ double *weights = new_elements(max_i64(n_left, n_right) * s->rank, error);
    _cleanup_free_ double *half = new_elements(n_left * n * s->rank, error);
    if (!weights || !half)
        return GAD_NO_MEMORY;
    if (n_sides[1] > 0) {
        contract_weights(n_sides[1], sizes[1], factors[1], s->rank, weights);
        contract_right(n_left * n, n_right, s->rank, rest, weights, half);
    } else {
        memcpy(half, rest, sizeof(*half) * (size_t)(n_left * n * s->rank));
    }
    if (n_sides[0] > 0) {
        contract_weights(n_sides[0], sizes[0], factors[0], s->rank, weights);
        contract_left(n_left, n, s->rank, half, weights, ret);
    } else {
        memcpy(ret, half, sizeof(*half) * (size_t)(n * s->rank));
    }
    return 0;
}

static int read_right_side(struct given *g, int mode, struct gad_dense *dense,
                           struct gad_error *error)
{
    struct slabs *s = &g->slabs;
    int64_t n = g->passes.shape[mode], rank = s->rank;
    *dense =
        (struct gad_dense){.ndim = 2, .shape = {n, rank}, .data = new_elements(n * rank, error)};
    if (!dense->data)
        return GAD_NO_MEMORY;
    int r = mode == s->axis ? slabs_read_rows(s, false, error) : slabs_read_rest(s, false, error);
    if (r)
        return r;
    if (mode == s->axis)
        memcpy(dense->data, slabs_factor(s, mode), sizeof(double) * (size_t)(n * rank));
    else
        r = contract_rest(g, mode, dense->data, error);
    for (int64_t i = 0; i < n * rank; i++)
        dense->data[i] *= g->factors->core.data[i % rank];
    return r;
}

static bool is_finite(const struct gad_dense *dense)
{
    for (int64_t i = 0; i < dense->shape[0] * dense->shape[1]; i++)
        if (!isfinite(dense->data[i]))
            return false;
    return true;
}

enum gad_status gad_mttkrp(struct gad_client *client, const struct gad_operand *tensor,
                           const struct gad_factors *factors, int mode,
                           const struct gad_linalg_run *run, struct gad_dense *ret_dense,
                           struct gad_error *error)
{
    struct gad_dense dense = {.ndim = 0};
    struct given g;
    if (!ret_dense)
        return (enum gad_status)refuse_argument("ret_dense", "is NULL", error);
    if (factors && factors->is_tucker) {
        error_set(error, GAD_BAD_ARGUMENT, "factors", "factors: they are not of CP");
        error_expected(error, "weights, and a factor for each axis");
        error_found(error, "a core of %d axes", factors->core.ndim);
        return GAD_BAD_ARGUMENT;
    }
    int r = given_init(&g, client, tensor, factors, run, error);
    if (r == 0 && (mode < -g.passes.ndim || mode >= g.passes.ndim)) {
        r = error_set(error, GAD_BAD_SHAPE, "mode", "the tensor has no axis %d", mode);
        error_expected(error, "%d to %d", -g.passes.ndim, g.passes.ndim - 1);
        error_found(error, "%d", mode);
    }
    if (r == 0)
        r = read_right_side(&g, mode < 0 ? mode + g.passes.ndim : mode, &dense, error);
    if (r == 0 && !is_finite(&dense))
        r = passes_refuse_not_finite(&g.passes, "tensor", error);
    given_deinit(&g);
    if (r)
        gad_dense_deinit(&dense);
    else
        *ret_dense = dense;
    return client_status(r, error);
}

/* Errors --------------------------------------------------------------------------------------- */

static int gram_of(const struct gad_dense *factor, double *ret_gram, struct gad_error *error)
{
    int64_t rank = factor->shape[1];
    const struct dense_product product = {
        .transpose_a = true, .m = rank, .n = rank, .k = factor->shape[0], .alpha = 1};
    return dense_multiply(&product, factor->data, factor->data, ret_gram, error);
}

/* <x, y> of the rows, and |y|^2 of the grams. */
static int measure_cp(struct given *g, double *ret_inner, double *ret_squares,
                      struct gad_error *error)
{
    const struct gad_factors *f = g->factors;
    int64_t rank = g->slabs.rank, n = g->passes.shape[g->slabs.axis];
    const double *weights = f->core.data, *given = f->factors[g->slabs.axis].data;
    _cleanup_free_ double *gram = new_elements(rank * rank, error);
    _cleanup_free_ double *product = new_elements(rank * rank, error);
    if (!gram || !product)
        return GAD_NO_MEMORY;
    int r = slabs_read_rows(&g->slabs, true, error);
    if (r)
        return r;
    const double *rows = slabs_factor(&g->slabs, g->slabs.axis);
    *ret_inner = *ret_squares = 0;
    for (int64_t i = 0; i < n * rank; i++)
        *ret_inner += rows[i] * given[i] * weights[i % rank];
    for (int64_t i = 0; i < rank * rank; i++)
        product[i] = weights[i / rank] * weights[i % rank];
    for (int k = 0; k < f->ndim && r == 0; k++) {
        r = gram_of(&f->factors[k], gram, error);
        for (int64_t i = 0; i < rank * rank; i++)
            product[i] *= gram[i];
    }
    for (int64_t i = 0; i < rank * rank; i++)
        *ret_squares += product[i];
    return r;
}

/* A tensor with its axes in the data's order, or with the slabs' axis last, times one matrix for
 * each axis: the first n rows of it by its columns, or of its gram. Replaces *tensor. */
static int multiply_axis(double **tensor, int64_t left, int64_t n, int64_t right, int64_t m,
                         const double *matrix, struct gad_error *error)
{
    _cleanup_free_ double *next = new_elements(left * m * right, error);
    if (!next)
        return GAD_NO_MEMORY;
    int r = modes_multiply(left, n, right, *tensor, m, matrix, false, next, error);
    if (r)
        return r;
    free(*tensor);
    *tensor = steal_ptr(next);
    return 0;
}

/* |y|^2 = <core, core times all grams>. */
static int squares_of_tucker(const struct gad_factors *f, double *ret_squares,
                             struct gad_error *error)
{
    int64_t left = 1, n_core = 1;
    for (int i = 0; i < f->ndim; i++)
        n_core *= f->core.shape[i];
    int64_t right = n_core;
    _cleanup_free_ double *now = new_elements(n_core, error);
    if (!now)
        return GAD_NO_MEMORY;
    memcpy(now, f->core.data, sizeof(*now) * (size_t)n_core);
    for (int i = 0; i < f->ndim; i++) {
        int64_t rank = f->core.shape[i];
        _cleanup_free_ double *gram = new_elements(rank * rank, error);
        if (!gram)
            return GAD_NO_MEMORY;
        right /= rank;
        int r = gram_of(&f->factors[i], gram, error);
        if (r == 0)
            r = multiply_axis(&now, left, rank, right, rank, gram, error);
        if (r)
            return r;
        left *= rank;
    }
    *ret_squares = 0;
    for (int64_t i = 0; i < n_core; i++)
        *ret_squares += now[i] * f->core.data[i];
    return 0;
}

/* <x, y> = <x times all factors, core>: of the rest, which has the slabs' axis last. */
static int inner_of_tucker(const struct given *g, double *ret_inner, struct gad_error *error)
{
    const struct gad_factors *f = g->factors;
    const struct slabs *s = &g->slabs;
    int64_t left = 1, right = slabs_n_rest(s) * s->rank, before = 1, after = 1;
    _cleanup_free_ double *now = new_elements(right, error);
    if (!now)
        return GAD_NO_MEMORY;
    memcpy(now, gad_array_data(s->rest), sizeof(*now) * (size_t)right);
    for (int i = 0; i < s->n_others; i++) {
        const struct gad_dense *factor = &f->factors[s->others[i]];
        right /= factor->shape[0];
        int r = multiply_axis(&now, left, factor->shape[0], right, factor->shape[1], factor->data,
                              error);
        if (r)
            return r;
        left *= factor->shape[1];
        *(s->others[i] < s->axis ? &before : &after) *= factor->shape[1];
    }
    *ret_inner = 0;
    for (int64_t i = 0; i < before; i++)
        for (int64_t j = 0; j < after; j++)
            for (int64_t q = 0; q < s->rank; q++)
                *ret_inner += now[(i * after + j) * s->rank + q] *
                              f->core.data[(i * s->rank + q) * after + j];
    return 0;
}

static int measure_tucker(struct given *g, double *ret_inner, double *ret_squares,
                          struct gad_error *error)
{
    int r = slabs_read_rest(&g->slabs, true, error);
    if (r == 0)
        r = inner_of_tucker(g, ret_inner, error);
    return r ? r : squares_of_tucker(g->factors, ret_squares, error);
}

enum gad_status gad_relative_error(struct gad_client *client, const struct gad_operand *tensor,
                                   const struct gad_factors *factors,
                                   const struct gad_linalg_run *run, double *ret_error,
                                   struct gad_error *error)
{
    double inner = 0, squares = 0;
    struct given g;
    if (!ret_error)
        return (enum gad_status)refuse_argument("ret_error", "is NULL", error);
    int r = given_init(&g, client, tensor, factors, run, error);
    if (r == 0)
        r = factors->is_tucker ? measure_tucker(&g, &inner, &squares, error)
                               : measure_cp(&g, &inner, &squares, error);
    if (r == 0)
        r = slabs_check_finite(&g.slabs, error);
    if (r == 0) {
        double of_data = *(const double *)gad_array_data(g.slabs.squares);
        double distance = max_f64(of_data - 2 * inner + squares, 0);
        *ret_error = of_data > 0 ? sqrt(distance / of_data) : squares > 0 ? INFINITY : 0;
    }
    given_deinit(&g);
    return client_status(r, error);
}
