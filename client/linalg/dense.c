/* Linear algebra of small matrices, by LAPACK.
 *
 * A matrix in C order is its transpose to LAPACK, so that products are taken the other way round, a
 * QR decomposition is LAPACK's LQ, and of a singular value decomposition u and v change places.
 * Nothing is copied for that.
 */
#include "client/linalg/dense.h"
#include "client/linalg/lapack.h"
#include "proto/util.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define LONG     256
#define QR_BLOCK 32
#define SOME     4 /* eigenvectors of fewer than that part are found one by one */

static int check_sizes(unsigned n, const int64_t *sizes, struct gad_error *error)
{
    for (unsigned i = 0; i < n; i++)
        if (sizes[i] > INT_MAX)
            return error_set(error, GAD_LIMIT_EXCEEDED, NULL,
                             "a matrix has %lld rows or columns, LAPACK counts to %d",
                             (long long)sizes[i], INT_MAX);
    return 0;
}

static int no_memory(struct gad_error *error)
{
    return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
}

/* Of LAPACK's own troubles: arguments are ours, and what does not converge has NaN or infinities.
 */
static int trouble(const char *function, int info, struct gad_error *error)
{
    return error_set(error, GAD_INTERNAL, NULL, "LAPACK's %s says %d", function, info);
}

static int least_one(int64_t size)
{
    return size > 1 ? (int)size : 1;
}

/* Whether threads are worth while. */
static bool is_long(int64_t m, int64_t n)
{
    return m >= LONG && n >= LONG;
}

static double *new_work(double size, struct gad_error *error)
{
    double *work = malloc(sizeof(double) * (size_t)(size < 1 ? 1 : size));
    if (!work)
        (void)no_memory(error);
    return work;
}

/* Products ------------------------------------------------------------------------------------- */

int dense_multiply(const struct dense_product *product, const double *a, const double *b, double *c,
                   struct gad_error *error)
{
    const int64_t sizes[] = {product->m, product->n, product->k};
    int r = check_sizes(3, sizes, error);
    if (r || product->m == 0 || product->n == 0)
        return r;
    const struct lapack *lapack;
    r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    int m = (int)product->m, n = (int)product->n, k = (int)product->k;
    int a_width = least_one(product->transpose_a ? m : k);
    int b_width = least_one(product->transpose_b ? k : n);
    lapack->dgemm_(product->transpose_b ? "T" : "N", product->transpose_a ? "T" : "N", &n, &m, &k,
                   &product->alpha, b, &b_width, a, &a_width, &product->beta, c, &n, 1, 1);
    lapack_end(lapack);
    return 0;
}

int dense_gram(bool is_transposed, int64_t n, int64_t k, const double *a, double beta, double *ret,
               struct gad_error *error)
{
    const int64_t sizes[] = {n, k};
    int r = check_sizes(2, sizes, error);
    if (r || n == 0)
        return r;
    const struct lapack *lapack;
    r = lapack_begin(is_long(n, k), &lapack, error);
    if (r)
        return r;
    const double one = 1;
    int n_int = (int)n, k_int = (int)k, width = least_one(is_transposed ? n : k);
    lapack->dsyrk_("U", is_transposed ? "N" : "T", &n_int, &k_int, &one, a, &width, &beta, ret,
                   &n_int, 1, 1);
    lapack_end(lapack);
    return 0;
}

/* Positive definite matrices ------------------------------------------------------------------- */

static int factorise(const struct lapack *lapack, int n, double *a)
{
    int info, width = least_one(n);
    lapack->dpotrf_("U", &n, a, &width, &info, 1); /* to us the lower half */
    return info;
}

static double largest_diagonal(int64_t n, const double *g)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = max_f64(largest, fabs(g[i * n + i]));
    return largest;
}

/* Largest sum of a column's magnitudes. */
static double norm_of_columns(int64_t n, const double *g)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(g[i * n + j]);
        largest = max_f64(largest, sum);
    }
    return largest;
}

/* Whether g + ridge has a factor that is of use, which is then in `factor`. */
static bool try_ridge(const struct lapack *lapack, int64_t n, const double *g, double ridge,
                      double *factor, double *work)
{
    memcpy(factor, g, sizeof(*g) * (size_t)(n * n));
    for (int64_t i = 0; i < n; i++)
        factor[i * n + i] += ridge;
    double norm = norm_of_columns(n, factor), reciprocal = 0;
    int n_int = (int)n, width = least_one(n), info = factorise(lapack, n_int, factor);
    if (info)
        return false;
    lapack->dpocon_("U", &n_int, factor, &width, &norm, &reciprocal, work, (int *)(work + 3 * n),
                    &info, 1);
    return info == 0 && reciprocal > DBL_EPSILON;
}

#define RIDGE_TRIES 20

static int find_ridge(const struct lapack *lapack, int64_t n, const double *g, double ridge,
                      double *factor, double *ret_added, struct gad_error *error)
{
    _cleanup_free_ double *work = new_work(4 * (double)n, error);
    if (!work)
        return GAD_NO_MEMORY;
    double largest = largest_diagonal(n, g);
    double added = (largest > 0 ? largest : 1) * DBL_EPSILON;
    *ret_added = 0;
    for (int i = 0; i < RIDGE_TRIES; i++, added *= 10) {
        if (try_ridge(lapack, n, g, ridge + *ret_added, factor, work))
            return 0;
        *ret_added = added;
    }
    error_set(error, GAD_BAD_ARGUMENT, "ridge", "a normal matrix is singular with any ridge");
    error_expected(error, "finite elements, and squares of them within float64");
    error_found(error, "%.3g as the largest of its diagonal", largest);
    return GAD_BAD_ARGUMENT;
}

int dense_solve_rows(int64_t n, const double *g, double ridge, int64_t n_rows, double *rows,
                     double *ret_added, struct gad_error *error)
{
    const int64_t sizes[] = {n, n_rows};
    *ret_added = 0;
    int r = check_sizes(2, sizes, error);
    if (r || n == 0)
        return r;
    _cleanup_free_ double *factor = new_work((double)n * (double)n, error);
    if (!factor)
        return GAD_NO_MEMORY;
    const struct lapack *lapack;
    r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    r = find_ridge(lapack, n, g, ridge, factor, ret_added, error);
    int n_int = (int)n, n_rhs = (int)n_rows, info = 0;
    if (r == 0)
        lapack->dpotrs_("U", &n_int, &n_rhs, factor, &n_int, rows, &n_int, &info, 1);
    lapack_end(lapack);
    return r ? r : info ? trouble("dpotrs", info, error) : 0;
}

/* Orthogonal decompositions -------------------------------------------------------------------- */

static int qr_with(const struct lapack *lapack, int m, int n, double *a, double *ret_r, double *tau,
                   struct gad_error *error)
{
    int ask = -1, info, width = least_one(n);
    double sizes[2];
    lapack->dgelqf_(&n, &m, a, &width, tau, &sizes[0], &ask, &info);
    lapack->dorglq_(&n, &m, &n, a, &width, tau, &sizes[1], &ask, &info);
    double size = sizes[0] > sizes[1] ? sizes[0] : sizes[1];
    _cleanup_free_ double *work = new_work(size, error);
    if (!work)
        return GAD_NO_MEMORY;
    int n_work = (int)size;
    lapack->dgelqf_(&n, &m, a, &width, tau, work, &n_work, &info);
    if (info)
        return trouble("dgelqf", info, error);
    for (int i = 0; ret_r && i < n; i++)
        for (int j = 0; j < n; j++)
            ret_r[i * (int64_t)n + j] = j < i ? 0 : a[i * (int64_t)n + j];
    lapack->dorglq_(&n, &m, &n, a, &width, tau, work, &n_work, &info);
    return info ? trouble("dorglq", info, error) : 0;
}

int dense_qr(int64_t m, int64_t n, double *a, double *ret_r, struct gad_error *error)
{
    const int64_t sizes[] = {m, n};
    int r = check_sizes(2, sizes, error);
    if (r || n == 0)
        return r;
    _cleanup_free_ double *tau = new_work((double)n, error);
    if (!tau)
        return GAD_NO_MEMORY;
    const struct lapack *lapack;
    r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    r = qr_with(lapack, (int)m, (int)n, a, ret_r, tau, error);
    lapack_end(lapack);
    return r;
}

int dense_qr_update(int64_t m, int64_t n, double *r_of, double *rows, struct gad_error *error)
{
    const int64_t sizes[] = {m, n};
    int r = check_sizes(2, sizes, error);
    if (r || m == 0 || n == 0)
        return r;
    int m_int = (int)m, n_int = (int)n, none = 0, info;
    int block = n_int < QR_BLOCK ? n_int : QR_BLOCK;
    _cleanup_free_ double *work = new_work(2 * (double)block * (double)n, error);
    const struct lapack *lapack;
    if (!work)
        return GAD_NO_MEMORY;
    r = lapack_begin(is_long(m, n), &lapack, error);
    if (r)
        return r;
    lapack->dtplqt_(&n_int, &m_int, &none, &block, r_of, &n_int, rows, &n_int, work, &block,
                    work + block * n, &info);
    lapack_end(lapack);
    return info ? trouble("dtplqt", info, error) : 0;
}

static int svd_with(const struct lapack *lapack, int m, int n, double *a, double *u, double *s,
                    double *vt, struct gad_error *error)
{
    int k = m < n ? m : n, ask = -1, info;
    const char *which = u ? "S" : "N";
    double size;
    _cleanup_free_ int *integers = malloc(sizeof(int) * 8 * (size_t)k);
    if (!integers)
        return no_memory(error);
    lapack->dgesdd_(which, &n, &m, a, &n, s, vt, &n, u, &k, &size, &ask, integers, &info, 1);
    _cleanup_free_ double *work = new_work(size, error);
    if (!work)
        return GAD_NO_MEMORY;
    int n_work = (int)size;
    lapack->dgesdd_(which, &n, &m, a, &n, s, vt, &n, u, &k, work, &n_work, integers, &info, 1);
    return info ? trouble("dgesdd", info, error) : 0;
}

int dense_svd(int64_t m, int64_t n, double *a, double *ret_u, double *ret_s, double *ret_vt,
              struct gad_error *error)
{
    const int64_t sizes[] = {m, n};
    int r = check_sizes(2, sizes, error);
    if (r || m == 0 || n == 0)
        return r;
    const struct lapack *lapack;
    r = lapack_begin(is_long(m, n), &lapack, error);
    if (r)
        return r;
    r = svd_with(lapack, (int)m, (int)n, a, ret_u, ret_s, ret_vt, error);
    lapack_end(lapack);
    return r;
}

static int eigh_with(const struct lapack *lapack, int n, double *a, double *values,
                     struct gad_error *error)
{
    int ask = -1, info, n_integers;
    double size;
    lapack->dsyevd_("V", "U", &n, a, &n, values, &size, &ask, &n_integers, &ask, &info, 1, 1);
    _cleanup_free_ int *integers = malloc(sizeof(int) * (size_t)n_integers);
    _cleanup_free_ double *work = new_work(size, error);
    if (!integers || !work)
        return no_memory(error);
    int n_work = (int)size;
    lapack->dsyevd_("V", "U", &n, a, &n, values, work, &n_work, integers, &n_integers, &info, 1, 1);
    return info ? trouble("dsyevd", info, error) : 0;
}

static void swap_rows(int64_t n, double *one, double *other)
{
    for (int64_t i = 0; i < n; i++) {
        double kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

/* Some of the largest: half of the work and less. */
static int eigh_some_with(const struct lapack *lapack, int n, int k, double *a, double *values,
                          struct gad_error *error)
{
    int ask = -1, info, n_integers, n_found, first = n - k + 1;
    double size, none = 0;
    _cleanup_free_ double *vectors = new_work((double)n * k, error);
    _cleanup_free_ int *support = malloc(sizeof(int) * 2 * (size_t)k);
    if (!vectors || !support)
        return no_memory(error);
    lapack->dsyevr_("V", "I", "U", &n, a, &n, &none, &none, &first, &n, &none, &n_found, values,
                    vectors, &n, support, &size, &ask, &n_integers, &ask, &info, 1, 1, 1);
    _cleanup_free_ int *integers = malloc(sizeof(int) * (size_t)n_integers);
    _cleanup_free_ double *work = new_work(size, error);
    if (!integers || !work)
        return no_memory(error);
    int n_work = (int)size;
    lapack->dsyevr_("V", "I", "U", &n, a, &n, &none, &none, &first, &n, &none, &n_found, values,
                    vectors, &n, support, work, &n_work, integers, &n_integers, &info, 1, 1, 1);
    if (info)
        return trouble("dsyevr", info, error);
    memcpy(a, vectors, sizeof(*a) * (size_t)n * (size_t)k);
    return 0;
}

int dense_eigh(int64_t n, int64_t k, double *a, double *ret_values, struct gad_error *error)
{
    int r = check_sizes(1, &n, error);
    if (r || n == 0 || k == 0)
        return r;
    const struct lapack *lapack;
    r = lapack_begin(is_long(n, n), &lapack, error);
    if (r)
        return r;
    r = k < n / SOME ? eigh_some_with(lapack, (int)n, (int)k, a, ret_values, error)
                     : eigh_with(lapack, (int)n, a, ret_values, error);
    lapack_end(lapack);
    int64_t n_found = k < n / SOME ? k : n;
    for (int64_t i = 0; r == 0 && i < n_found / 2; i++) { /* LAPACK's values rise */
        swap_rows(1, &ret_values[i], &ret_values[n_found - 1 - i]);
        swap_rows(n, a + i * n, a + (n_found - 1 - i) * n);
    }
    return r;
}
