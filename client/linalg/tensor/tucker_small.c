/* What a Tucker decomposition does with the results of one read.
 *
 *     rows t = X C            n x k, X with the slabs' axis first
 *     rest   = X.T t          others x k
 *
 *     t = U S V.T  ->  q = U,  small = rest V / S = X.T q:  exactly the data in q's coordinates
 *
 * where columns with a singular value of no account are left out: they are noise. small is then
 * truncated along the other axes, one after the other, each by the eigenvectors of its gram, and at
 * last along q. All projections are orthogonal, so that the error is what the squares have lost.
 */
#include "client/linalg/dense.h"
#include "client/linalg/tensor/modes.h"
#include "client/linalg/tensor/tucker_state.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

#define LEAST_SHARE 1e-8 /* of the largest singular value: below, columns are rounding errors */

static double *new_matrix(int64_t rows, int64_t columns, struct gad_error *error)
{
    double *matrix = calloc((size_t)max_i64(rows * columns, 1), sizeof(*matrix));
    if (!matrix)
        (void)error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    return matrix;
}

static void take(double **slot, double **from)
{
    free(*slot);
    *slot = steal_ptr(*from);
}

static double sum_of_squares(const double *elements, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += elements[i] * elements[i];
    return sum;
}

/* Compressing ---------------------------------------------------------------------------------- */

/* Of k x k right singular vectors (rows) the first m as columns, divided by their values. */
static void make_inverse(int64_t k, int64_t m, const double *vt, const double *values,
                         double *ret_inverse)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < m; j++)
            ret_inverse[i * m + j] = vt[j * k + i] / values[j];
}

int tucker_compress(struct tucker *t, struct gad_error *error)
{
    const struct slabs *s = &t->slabs;
    int64_t n = t->passes.shape[s->axis], k = s->rank, n_rest = slabs_n_rest(s), m = 0;
    int64_t n_values = min_i64(n, k);
    _cleanup_free_ double *rows = new_matrix(n, k, error);
    _cleanup_free_ double *u = new_matrix(n, n_values, error);
    _cleanup_free_ double *values = new_matrix(n_values, 1, error);
    _cleanup_free_ double *vt = new_matrix(n_values, k, error);
    if (!rows || !u || !values || !vt)
        return GAD_NO_MEMORY;
    memcpy(rows, slabs_factor(s, s->axis), sizeof(*rows) * (size_t)(n * k));
    int r = dense_svd(n, k, rows, u, values, vt, error);
    if (r)
        return r;
    while (m < n_values && values[m] > LEAST_SHARE * values[0])
        m++;
    m = max_i64(m, 1); /* of a tensor of zeros */
    _cleanup_free_ double *inverse = new_matrix(k, m, error);
    _cleanup_free_ double *small = new_matrix(n_rest, m, error);
    _cleanup_free_ double *q = new_matrix(n, m, error);
    if (!inverse || !small || !q)
        return GAD_NO_MEMORY;
    if (values[0] > 0)
        make_inverse(k, m, vt, values, inverse);
    for (int64_t i = 0; i < n; i++)
        memcpy(q + i * m, u + i * n_values, sizeof(*q) * (size_t)m);
    r = modes_multiply(n_rest, k, 1, gad_array_data(s->rest), m, inverse, false, small, error);
    if (r)
        return r;
    t->n_kept = m;
    take(&t->q, &q);
    take(&t->small, &small);
    return 0;
}

double tucker_lost(const struct tucker *t)
{
    double kept = sum_of_squares(t->small, slabs_n_rest(&t->slabs) * t->n_kept);
    return max_f64(t->squares - kept, 0);
}

/* Truncating ----------------------------------------------------------------------------------- */

/* The rank that was asked for; or the least that loses no more squares than `may_lose`. */
static int64_t choose_rank(int64_t asked, int64_t n, const double *squares, double may_lose)
{
    int64_t rank = n;
    double lost = 0;
    if (asked > 0)
        return min_i64(asked, n);
    while (rank > 1 && lost + max_f64(squares[rank - 1], 0) <= may_lose)
        lost += max_f64(squares[--rank], 0);
    return rank;
}

static void copy_vectors(int64_t n, int64_t rank, const double *vectors, double *ret_factor)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t q = 0; q < rank; q++)
            ret_factor[i * rank + q] = vectors[q * n + i];
}

/* Along one of the other axes; *t_small is replaced by what is left of it. */
static int truncate_axis(struct tucker *t, int axis, int64_t left, int64_t right, double may_lose,
                         double **t_small, struct gad_error *error)
{
    int64_t n = t->passes.shape[axis], asked = t->options.ranks[axis];
    _cleanup_free_ double *gram = new_matrix(n, n, error);
    _cleanup_free_ double *values = new_matrix(n, 1, error);
    if (!gram || !values)
        return GAD_NO_MEMORY;
    int r = modes_gram(left, n, right, *t_small, gram, error);
    if (r == 0)
        r = dense_eigh(n, asked > 0 ? asked : n, gram, values, error);
    if (r)
        return r;
    int64_t rank = choose_rank(asked, n, values, may_lose);
    _cleanup_free_ double *factor = new_matrix(n, rank, error);
    _cleanup_free_ double *less = new_matrix(left * right, rank, error);
    if (!factor || !less)
        return GAD_NO_MEMORY;
    copy_vectors(n, rank, gram, factor);
    r = modes_multiply(left, n, right, *t_small, rank, factor, false, less, error);
    if (r)
        return r;
    t->ranks[axis] = rank;
    take(&t->factors[axis], &factor);
    take(t_small, &less);
    return 0;
}

/* Along the slabs' axis: small is n_others x n_kept. */
static int truncate_slabs(struct tucker *t, int64_t n_others, double *small, double may_lose,
                          struct gad_error *error)
{
    int axis = t->slabs.axis;
    int64_t n = t->passes.shape[axis], m = t->n_kept, n_values = min_i64(n_others, m);
    _cleanup_free_ double *u = new_matrix(n_others, n_values, error);
    _cleanup_free_ double *values = new_matrix(n_values, 1, error);
    _cleanup_free_ double *squares = new_matrix(n_values, 1, error);
    _cleanup_free_ double *vt = new_matrix(n_values, m, error);
    if (!u || !values || !squares || !vt)
        return GAD_NO_MEMORY;
    int r = dense_svd(n_others, m, small, u, values, vt, error);
    if (r)
        return r;
    for (int64_t i = 0; i < n_values; i++)
        squares[i] = values[i] * values[i];
    int64_t rank = choose_rank(t->options.ranks[axis], n_values, squares, may_lose);
    _cleanup_free_ double *factor = new_matrix(n, rank, error);
    _cleanup_free_ double *core = new_matrix(n_others, rank, error);
    if (!factor || !core)
        return GAD_NO_MEMORY;
    for (int64_t i = 0; i < n_others; i++)
        for (int64_t q = 0; q < rank; q++)
            core[i * rank + q] = u[i * n_values + q] * values[q];
    r = modes_multiply(n, m, 1, t->q, rank, vt, true, factor, error);
    if (r)
        return r;
    t->ranks[axis] = rank;
    t->n_wide = n_values;
    take(&t->factors[axis], &factor);
    take(&t->core, &core);
    take(&t->wide, &u);
    return 0;
}

int tucker_truncate(struct tucker *t, struct gad_error *error)
{
    const struct slabs *s = &t->slabs;
    double tolerance = t->options.tolerance;
    double may_lose = tolerance * tolerance * t->squares;
    int64_t left = 1, right = slabs_n_rest(s) * t->n_kept, n_small = right;
    _cleanup_free_ double *small = new_matrix(n_small, 1, error);
    if (!small)
        return GAD_NO_MEMORY;
    memcpy(small, t->small, sizeof(*small) * (size_t)n_small);
    int r = 0;
    for (int i = 0; i < s->n_others && r == 0; i++) {
        right /= t->passes.shape[s->others[i]];
        double lost = max_f64(t->squares - sum_of_squares(small, n_small), 0);
        double share = max_f64(may_lose - lost, 0) / (s->n_others + 1 - i);
        r = truncate_axis(t, s->others[i], left, right, share, &small, error);
        left *= t->ranks[s->others[i]];
        n_small = left * right;
    }
    if (r)
        return r;
    double lost = max_f64(t->squares - sum_of_squares(small, n_small), 0);
    r = truncate_slabs(t, left, small, max_f64(may_lose - lost, 0), error);
    if (r)
        return r;
    double kept = sum_of_squares(t->core, left * t->ranks[s->axis]);
    t->relative_error = t->squares > 0 ? sqrt(max_f64(t->squares - kept, 0) / t->squares) : 0;
    return 0;
}

/* Everything that truncating makes, from one to the other. */
static void exchange(struct tucker *one, struct tucker *other)
{
    struct tucker kept = *one;
    for (int i = 0; i < SLABS_MAX_NDIM; i++) {
        one->factors[i] = other->factors[i];
        one->ranks[i] = other->ranks[i];
        other->factors[i] = kept.factors[i];
        other->ranks[i] = kept.ranks[i];
    }
    one->core = other->core;
    one->wide = other->wide;
    one->n_wide = other->n_wide;
    one->relative_error = other->relative_error;
    other->core = kept.core;
    other->wide = kept.wide;
    other->n_wide = kept.n_wide;
    other->relative_error = kept.relative_error;
}

int tucker_improve(struct tucker *t, struct gad_error *error)
{
    struct tucker before = {.relative_error = 0};
    exchange(t, &before);
    int r = tucker_truncate(t, error);
    if (r || !(t->relative_error < before.relative_error))
        exchange(t, &before);
    for (int i = 0; i < SLABS_MAX_NDIM; i++)
        free(before.factors[i]);
    free(before.core);
    free(before.wide);
    return r;
}

/* The next read ----------------------------------------------------------------------------------
 */

/* wide is expanded by the other axes' factors, from the last to the first. */
int tucker_make_columns(struct tucker *t, struct gad_error *error)
{
    const struct slabs *s = &t->slabs;
    int64_t k = s->rank, m = min_i64(t->n_wide, k), left = 1, right = m;
    double *columns = gad_array_data(s->columns);
    for (int i = 0; i < s->n_others; i++)
        left *= t->ranks[s->others[i]];
    _cleanup_free_ double *now = new_matrix(left, m, error);
    if (!now)
        return GAD_NO_MEMORY;
    for (int64_t i = 0; i < left; i++)
        memcpy(now + i * m, t->wide + i * t->n_wide, sizeof(*now) * (size_t)m);
    for (int i = s->n_others; i-- > 0;) {
        int axis = s->others[i];
        int64_t n = t->passes.shape[axis], rank = t->ranks[axis];
        left /= rank;
        _cleanup_free_ double *more = new_matrix(left * right, n, error);
        if (!more)
            return GAD_NO_MEMORY;
        int r = modes_multiply(left, rank, right, now, n, t->factors[axis], true, more, error);
        if (r)
            return r;
        take(&now, &more);
        right *= n;
    }
    memset(columns, 0, sizeof(*columns) * (size_t)(right / m * k));
    for (int64_t i = 0; i < right / m; i++)
        memcpy(columns + i * k, now + i * m, sizeof(*columns) * (size_t)m);
    return 0;
}
