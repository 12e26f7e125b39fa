/* The updates of an iteration that need no data.
 *
 * What a read leaves is `rest`: the tensor times the slabs' new factor, j x k x .. x rank. The
 * right side of an axis is rest summed over the other axes with their factors as weights. Axes are
 * updated in order, each with the newest factors of the others, as in textbooks; sums are shared by
 * halves: over the right half of the axes for all of the left half, then the other way round.
 */
#include "client/linalg/tensor/contract.h"
#include "client/linalg/tensor/cp_state.h"
#include "client/linalg/dense.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

static size_t matrix_bytes(int64_t rows, int64_t columns)
{
    return sizeof(double) * (size_t)(rows * columns);
}

/* The product of all grams but that of `axis`, into cp->normal. */
static void cp_make_normal(struct cp *cp, int axis)
{
    int64_t n = cp->slabs.rank * cp->slabs.rank;
    for (int64_t i = 0; i < n; i++)
        cp->normal[i] = 1;
    for (int k = 0; k < cp->passes.ndim; k++)
        for (int64_t i = 0; k != axis && i < n; i++)
            cp->normal[i] *= cp->grams[k][i];
}

int cp_make_gram(struct cp *cp, int axis, struct gad_error *error)
{
    int64_t rank = cp->slabs.rank;
    const double *factor = slabs_factor(&cp->slabs, axis);
    const struct dense_product product = {
        .transpose_a = true, .m = rank, .n = rank, .k = cp->passes.shape[axis], .alpha = 1};
    return dense_multiply(&product, factor, factor, cp->grams[axis], error);
}

int cp_make_solver(struct cp *cp, struct gad_error *error)
{
    int64_t rank = cp->slabs.rank;
    double *g = gad_array_data(cp->slabs.g), added;
    memset(g, 0, matrix_bytes(rank, rank));
    for (int64_t i = 0; i < rank; i++)
        g[i * rank + i] = 1;
    cp_make_normal(cp, cp->slabs.axis);
    int r = dense_solve_rows(rank, cp->normal, cp->options.ridge, rank, g, &added, error);
    cp->ridge_added = max_f64(added, cp->ridge_added);
    return r;
}

int cp_make_descent(struct cp *cp, struct gad_error *error)
{
    const struct slabs *s = &cp->slabs;
    int64_t rank = s->rank, n = cp->passes.shape[s->axis];
    double *parts[SLABS_N_DESCENT];
    for (int i = 0; i < SLABS_N_DESCENT; i++)
        parts[i] = gad_array_data(s->descent[i]);
    memcpy(parts[SLABS_BEFORE], slabs_factor(s, s->axis), matrix_bytes(n, rank));
    memcpy(parts[SLABS_REDUCED], parts[SLABS_BEFORE], matrix_bytes(n, rank));
    memset(parts[SLABS_INVERSE], 0, matrix_bytes(rank, rank));
    memset(parts[SLABS_ONES], 0, matrix_bytes(rank, rank));
    cp_make_normal(cp, s->axis);
    for (int64_t q = 0; q < rank; q++) {
        double curvature = cp->normal[q * rank + q] + cp->options.ridge;
        double inverse = curvature > 0 ? 1 / curvature : 0;
        parts[SLABS_INVERSE][q * rank + q] = inverse;
        parts[SLABS_ONES][q * rank + q] = 1;
        for (int64_t r = 0; r < rank; r++)
            parts[SLABS_SCALED][r * rank + q] = cp->normal[r * rank + q] * inverse;
        parts[SLABS_SCALED][q * rank + q] = curvature > 0 ? 1 : 0;
    }
    const struct dense_product reduce = {.m = n, .n = rank, .k = rank, .alpha = -1, .beta = 1};
    return dense_multiply(&reduce, parts[SLABS_BEFORE], parts[SLABS_SCALED], parts[SLABS_REDUCED],
                          error);
}

/* One sweep of coordinate descent over the columns of a factor. */
static void improve_nonnegative(const struct cp *cp, int64_t n, const double *right_side,
                                double *factor)
{
    int64_t rank = cp->slabs.rank;
    const double *normal = cp->normal;
    double ridge = cp->options.ridge;
    for (int64_t i = 0; i < n; i++, factor += rank, right_side += rank)
        for (int64_t q = 0; q < rank; q++) {
            double gradient = right_side[q] - ridge * factor[q];
            double curvature = normal[q * rank + q] + ridge;
            for (int64_t r = 0; r < rank; r++)
                gradient -= factor[r] * normal[q * rank + r];
            double better = curvature > 0 ? factor[q] + gradient / curvature : factor[q];
            factor[q] = better > 0 ? better : 0;
        }
}

int cp_update(struct cp *cp, int axis, double *right_side, struct gad_error *error)
{
    int64_t n = cp->passes.shape[axis], rank = cp->slabs.rank;
    double *factor = slabs_factor(&cp->slabs, axis), added;
    cp_make_normal(cp, axis);
    if (cp->options.nonnegative) {
        improve_nonnegative(cp, n, right_side, factor);
        return cp_make_gram(cp, axis, error);
    }
    int r = dense_solve_rows(rank, cp->normal, cp->options.ridge, n, right_side, &added, error);
    if (r)
        return r;
    cp->ridge_added = max_f64(added, cp->ridge_added);
    memcpy(factor, right_side, matrix_bytes(n, rank));
    return cp_make_gram(cp, axis, error);
}

/* |x - y|^2 = |x|^2 - 2 <x, y> + |y|^2 with the right side of the axis that was updated last. */
static void measure(struct cp *cp, int axis, const double *right_side)
{
    int64_t rank = cp->slabs.rank, n = cp->passes.shape[axis] * rank;
    const double *factor = slabs_factor(&cp->slabs, axis);
    double inner = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        inner += right_side[i] * factor[i];
    for (int64_t i = 0; i < rank * rank; i++)
        squares += cp->normal[i] * cp->grams[axis][i];
    double distance = cp->squares - 2 * inner + squares;
    cp->previous_error = cp->relative_error;
    cp->relative_error = cp->squares > 0 ? sqrt(max_f64(distance, 0) / cp->squares)
                         : squares > 0   ? INFINITY
                                         : 0;
}

static int64_t count(const struct cp *cp, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= cp->passes.shape[cp->slabs.others[i]];
    return n;
}

static int no_memory(struct gad_error *error)
{
    return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
}

static int sweep(struct cp *cp, int from, int to, double *t, struct gad_error *error);

/* Sweeps [from, to) with t summed over [over_from, over_to), which is right or left of it. */
static int sweep_part(struct cp *cp, int from, int to, int over_from, int over_to, const double *t,
                      struct gad_error *error)
{
    int64_t rank = cp->slabs.rank, n = count(cp, from, to), n_over = count(cp, over_from, over_to);
    int64_t sizes[SLABS_MAX_NDIM];
    const double *factors[SLABS_MAX_NDIM];
    for (int i = over_from; i < over_to; i++) {
        sizes[i - over_from] = cp->passes.shape[cp->slabs.others[i]];
        factors[i - over_from] = slabs_factor(&cp->slabs, cp->slabs.others[i]);
    }
    _cleanup_free_ double *weights = malloc(matrix_bytes(n_over, rank));
    _cleanup_free_ double *part = malloc(matrix_bytes(n, rank));
    if (!weights || !part)
        return no_memory(error);
    contract_weights(over_to - over_from, sizes, factors, rank, weights);
    if (over_from >= to)
        contract_right(n, n_over, rank, t, weights, part);
    else
        contract_left(n_over, n, rank, t, weights, part);
    return sweep(cp, from, to, part, error);
}

/* Updates the other axes [from, to); t: of those axes and columns, summed over all others. */
static int sweep(struct cp *cp, int from, int to, double *t, struct gad_error *error)
{
    if (to - from > 1) {
        int middle = (from + to) / 2;
        int r = sweep_part(cp, from, middle, middle, to, t, error);
        return r ? r : sweep_part(cp, middle, to, from, middle, t, error);
    }
    int axis = cp->slabs.others[from];
    int64_t n = cp->passes.shape[axis] * cp->slabs.rank;
    bool is_last = to == cp->slabs.n_others;
    _cleanup_free_ double *kept = is_last ? malloc(matrix_bytes(n, 1)) : NULL;
    if (is_last && !kept)
        return no_memory(error);
    if (is_last)
        memcpy(kept, t, matrix_bytes(n, 1));
    int r = cp_update(cp, axis, t, error);
    if (r == 0 && is_last)
        measure(cp, axis, kept);
    return r;
}

int cp_update_others(struct cp *cp, struct gad_error *error)
{
    return sweep(cp, 0, cp->slabs.n_others, gad_array_data(cp->slabs.rest), error);
}
