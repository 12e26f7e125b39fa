/* How columns vary together, and R.
 *
 * One read gives the sums of products of differences from a guess of the mean, and the sums of the
 * differences, which say what the mean is: S - n d d.T are the sums of products about it. The guess
 * is the first rows' mean, of an expression zero; where it was so far off that digits are lost, the
 * read is made again with what it has found. So data far from zero lose nothing.
 *
 * Components of float32 data are of differences and products in float32, of which some rows make a
 * sum that is added in float64: half the time, and an error of some 5e-8 of the largest variance.
 * Where a variance is wanted that would show it, or differences are so large or small that squares
 * leave float32, the read is made again in float64.
 *
 * A factor of these sums has lost what is below the square root of the precision. Where such a
 * small value is wanted, or the pool has no room for the sums, R is read: of the differences, with
 * a column of ones behind them, which says what the mean of all rows is; taking it out of R leaves
 * the factor, and nothing is squared before the end.
 */
#include "client/lib/connection/client.h"
#include "client/linalg/dense.h"
#include "client/linalg/matrix/matrix.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIRST_ROWS 4096
#define LEAST_LEFT 1e-6 /* of squares about the guess, else it is made again */
#define ROUNDED    1e-14
/* Of the largest eigenvalue: what values of sums of products must be above. */
#define LEAST_OF_FLOAT64 1e-5
#define LEAST_OF_FLOAT32 1e-9
/* With products in float32. */
#define LEAST_OF_SINGLES      1e-4
#define LEAST_LEFT_OF_SINGLES 0.05
#define LEAST_SINGLE          1e-26 /* mean squares of differences, of which most have all digits */
#define MOST_SINGLE           1e30

/* The mean of the first rows, with what is not finite as 0. */
static int guess(struct passes *p, struct gad_array *array, struct gad_array *centre,
                 struct gad_error *error)
{
    struct gad_array *first;
    const struct gad_view_axis axes[] = {{0, min_i64(FIRST_ROWS, p->shape[0]), 1},
                                         {1, p->shape[1], 1}};
    int r = (int)gad_array_view(array, NULL, 2, axes, &first, error);
    if (r)
        return r;
    const struct gad_argument input = {.name = "_y", .array = first};
    const struct gad_output output = {.expr = "mean(float64(_y), axis=0)", .to = centre};
    const struct pass pass = {
        .has_no_data = true, .n_inputs = 1, .inputs = &input, .n_outputs = 1, .outputs = &output};
    r = passes_run(p, &pass, error);
    gad_array_release(first);
    double *mean = gad_array_data(centre);
    for (int64_t i = 0; r == 0 && i < p->shape[1]; i++)
        mean[i] = isfinite(mean[i]) ? mean[i] : 0;
    return r;
}

/* Rows of ones, which are one number. */
static int make_ones(struct passes *p, struct gad_array **ret_view, struct gad_error *error)
{
    static const double one = 1;
    struct gad_array *number;
    const struct gad_view_axis axes[] = {{-1, p->shape[0], 0}, {-1, 1, 0}};
    int r = matrix_share(p, 0, NULL, &one, &number, error);
    return r ? r : (int)gad_array_view(number, NULL, 2, axes, ret_view, error);
}

/* along: what of the ones is along each row of r. Returns which part of them the columns have. */
static double take_mean(int64_t n, int64_t n_rows, const double *r, const double *along,
                        double *centre)
{
    double part = 0;
    for (int64_t i = 0; i < n; i++) {
        part += along[i] * along[i] / (double)n_rows;
        for (int64_t j = i; j < n; j++)
            centre[j] += r[i * n + j] * along[i] / (double)n_rows;
    }
    return part;
}

/* r becomes F = r - factor * along (along r). */
static void make_factor(int64_t n, int64_t n_rows, double part, const double *along, double *sums,
                        double *r)
{
    double factor = part > 0 ? (1 - sqrt(max_f64(1 - part, 0))) / (part * (double)n_rows) : 0;
    memset(sums, 0, sizeof(*sums) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            sums[j] += along[i] * r[i * n + j];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            r[i * n + j] -= factor * along[i] * sums[j];
}

/* The factor by R; centre: a guess, the mean then. */
static int spread_by_triangle(struct passes *p, struct gad_array *centre, double *ret_factor,
                              struct gad_error *error)
{
    int64_t n = p->shape[1];
    _cleanup_free_ double *along = matrix_new(n + 1, 1, error), *sums = matrix_new(n, 1, error);
    struct gad_array *ones = NULL;
    double part = 1;
    int r = along && sums ? make_ones(p, &ones, error) : GAD_NO_MEMORY;
    const struct matrix_column column = {.parts = "", .expr = "_o"};
    const struct gad_argument input = {.name = "_o", .array = ones};
    for (int i = 0; r == 0 && i < 2 && !(1 - part > LEAST_LEFT); i++) {
        bool is_finite;
        r = matrix_triangles(p, centre, 1, &column, 1, &input, ret_factor, along, &is_finite,
                             error);
        if (r == 0 && !is_finite)
            r = passes_refuse_not_finite(p, "x", error);
        if (r || p->only_plans)
            break;
        part = take_mean(n, p->shape[0], ret_factor, along, gad_array_data(centre));
    }
    gad_array_release(ones);
    if (r == 0 && !p->only_plans)
        make_factor(n, p->shape[0], part, along, sums, ret_factor);
    return r;
}

/* Products --------------------------------------------------------------------------------------
 */

struct products {
    struct gad_array *centre, *sums, *products; /* in shared memory */
    bool is_single;                             /* products are in float32 */
};

static int read_products(struct passes *p, const struct products *s, struct gad_error *error)
{
    static const char *const texts[][2] = {
        {"tensordot(float64(_x) - _m, float64(_x) - _m, (0, 0))", "sum(float64(_x) - _m, axis=0)"},
        {"_z = _x - float32(_m); tensordot(_z, _z, (0, 0))",
         "_z = _x - float32(_m); sum(float64(_z), axis=0)"}};
    const struct gad_argument input = {.name = "_m", .array = s->centre};
    const struct gad_output outputs[] = {{.expr = texts[s->is_single][0], .to = s->products},
                                         {.expr = texts[s->is_single][1], .to = s->sums}};
    const struct pass pass = {.n_inputs = 1, .inputs = &input, .n_outputs = 2, .outputs = outputs};
    double *centre = gad_array_data(s->centre);
    for (int64_t i = 0; s->is_single && i < p->shape[1]; i++) /* what the differences are from */
        centre[i] = (float)centre[i];
    return passes_run(p, &pass, error);
}

/* Whether squares of differences stayed in float32's range; columns may be constant. */
static bool are_single(const struct passes *p, const struct products *s)
{
    const double *products = gad_array_data(s->products), *sums = gad_array_data(s->sums);
    int64_t n = p->shape[1];
    double n_rows = (double)p->shape[0];
    bool varies = false;
    for (int64_t i = 0; i < n; i++) {
        double mean = products[i * n + i] / n_rows;
        bool is_zero = mean == 0 && sums[i] == 0;
        if (!is_zero && !(mean > LEAST_SINGLE && mean < MOST_SINGLE))
            return false;
        varies |= !is_zero;
    }
    return varies;
}

/* The mean is taken out, and into the guess; whether so much was left that it counts. */
static bool take_out(struct passes *p, const struct products *s)
{
    double *centre = gad_array_data(s->centre), *products = gad_array_data(s->products);
    const double *sums = gad_array_data(s->sums);
    int64_t n = p->shape[1];
    double n_rows = (double)p->shape[0];
    double least = s->is_single ? LEAST_LEFT_OF_SINGLES : LEAST_LEFT;
    bool is_precise = true;
    for (int64_t i = 0; i < n; i++) {
        double squares = products[i * n + i], own = sums[i] * sums[i] / n_rows;
        double rounded = ROUNDED * centre[i]; /* what a constant differs by */
        is_precise &= squares - own > least * squares || squares <= rounded * rounded * n_rows;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            products[i * n + j] -= sums[i] * sums[j] / n_rows;
        products[i * n + i] = max_f64(products[i * n + i], 0);
    }
    for (int64_t i = 0; i < n; i++)
        centre[i] += sums[i] / n_rows;
    return is_precise;
}

static bool are_finite(struct gad_array *array, int64_t n)
{
    const double *elements = gad_array_data(array);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(elements[i]))
            return false;
    return true;
}

/* operand: of the passes; an array tells its first rows' mean. */
static int make_products(struct passes *p, const struct gad_operand *operand, struct products *ret,
                         struct gad_error *error)
{
    int64_t n = p->shape[1];
    const int64_t shape[] = {n, n};
    int r = matrix_share(p, 1, &n, NULL, &ret->centre, error);
    if (r == 0)
        r = passes_new_matrix(p, 1, &n, &ret->sums, error);
    if (r == 0)
        r = passes_new_matrix(p, 2, shape, &ret->products, error);
    return r || operand->expr ? r : guess(p, operand->array, ret->centre, error);
}

/* About the centre, which becomes the mean. */
static int find_products(struct passes *p, struct products *s, struct gad_error *error)
{
    int64_t n = p->shape[1];
    for (int i = 0; i < 2; i++) {
        int r = read_products(p, s, error);
        if (r || p->only_plans)
            return r;
        if (s->is_single && !are_single(p, s)) {
            s->is_single = false;
            r = read_products(p, s, error);
        }
        if (r)
            return r;
        if (!are_finite(s->products, n * n))
            return passes_refuse_not_finite(p, "x", error);
        if (take_out(p, s))
            return 0;
    }
    return 0;
}

/* Rows of F are eigenvectors times the roots of their values. Whether the k-th value has its
 * digits. */
static int make_root(const struct passes *p, int64_t k, const struct products *s,
                     double *ret_factor, bool *ret_is_precise, struct gad_error *error)
{
    int64_t n = p->shape[1];
    double *sums = gad_array_data(s->products);
    _cleanup_free_ double *values = matrix_new(n, 1, error);
    if (!values)
        return GAD_NO_MEMORY;
    int r = dense_eigh(n, n, sums, values, error);
    double least = s->is_single              ? LEAST_OF_SINGLES
                   : p->dtype == GAD_FLOAT32 ? LEAST_OF_FLOAT32
                                             : LEAST_OF_FLOAT64;
    *ret_is_precise = values[k - 1] > least * values[0] || values[0] <= 0;
    for (int64_t i = 0; r == 0 && i < n; i++)
        for (int64_t j = 0; j < n; j++)
            ret_factor[i * n + j] = sqrt(max_f64(values[i], 0)) * sums[i * n + j];
    return r;
}

/* By sums of products, in float32 first where the data are. too-large-for-pool */
static int spread_by_products(struct passes *p, int64_t k, struct products *s, double *ret_factor,
                              bool *ret_is_precise, struct gad_error *error)
{
    *ret_is_precise = false;
    for (;;) {
        int r = find_products(p, s, error);
        if (r || p->only_plans)
            return r;
        r = make_root(p, k, s, ret_factor, ret_is_precise, error);
        if (r || *ret_is_precise || !s->is_single)
            return r;
        s->is_single = false;
    }
}

int matrix_spread(struct passes *p, const struct gad_operand *operand, int64_t k, double *ret_mean,
                  double *ret_factor, struct gad_error *error)
{
    struct products s = {.is_single = p->dtype == GAD_FLOAT32};
    bool is_precise = false;
    int r = make_products(p, operand, &s, error);
    if (r == 0)
        r = spread_by_products(p, k, &s, ret_factor, &is_precise, error);
    if (r == GAD_TOO_LARGE_FOR_POOL || (r == 0 && !p->only_plans && !is_precise))
        r = spread_by_triangle(p, s.centre, ret_factor, error);
    if (r == 0 && !p->only_plans)
        memcpy(ret_mean, gad_array_data(s.centre), sizeof(*ret_mean) * (size_t)p->shape[1]);
    return r;
}

/* Programs' ------------------------------------------------------------------------------------ */

static const struct gad_reads nothing;

enum gad_status gad_qr_r(struct gad_client *client, const struct gad_operand *x,
                         const struct gad_linalg_run *run, struct gad_dense *ret_r,
                         struct gad_error *error)
{
    struct gad_dense made = {.ndim = 0};
    struct passes p;
    if (!ret_r)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_r", "ret_r is NULL");
    int r = matrix_init(&p, "x", client, x, run, error);
    if (r == 0)
        r = matrix_check_columns(&p, "x", GAD_SVD_MOST_ALL, error);
    if (r == 0) {
        const int64_t shape[] = {p.shape[1], p.shape[1]};
        r = dense_init(&made, "r", 2, shape, error);
    }
    if (r == 0)
        r = matrix_triangle(&p, "x", NULL, made.data, error);
    if (r == 0)
        matrix_tell_plan(&p, &p.reads, 0, &nothing, &nothing, p.planned_s, "by a QR decomposition");
    passes_deinit(&p);
    if (r)
        gad_dense_deinit(&made);
    else
        *ret_r = made;
    return client_status(r, error);
}

static int multiply_factor(struct passes *p, struct gad_array *centre, double *ret_products,
                           struct gad_error *error)
{
    int64_t n = p->shape[1];
    const struct dense_product square = {.transpose_a = true, .m = n, .n = n, .k = n, .alpha = 1};
    _cleanup_free_ double *factor = matrix_new(n, n, error);
    int r = factor ? spread_by_triangle(p, centre, factor, error) : GAD_NO_MEMORY;
    return r || p->only_plans ? r : dense_multiply(&square, factor, factor, ret_products, error);
}

static int give_products(struct passes *p, const struct gad_operand *x, struct gad_dense *products,
                         struct gad_dense *mean, struct gad_error *error)
{
    int64_t n = p->shape[1];
    const int64_t shape[] = {n, n};
    struct products s = {NULL};
    int r = dense_init(products, "products", 2, shape, error);
    if (r == 0)
        r = dense_init(mean, "mean", 1, &n, error);
    if (r)
        return r;
    r = make_products(p, x, &s, error);
    if (r == 0)
        r = find_products(p, &s, error);
    bool is_too_large = r == GAD_TOO_LARGE_FOR_POOL;
    if (is_too_large)
        r = multiply_factor(p, s.centre, products->data, error);
    if (r)
        return r;
    matrix_tell_plan(p, &p->reads, 0, &nothing, &nothing, p->planned_s,
                     is_too_large ? "by a QR decomposition of differences from a guess of the mean"
                                  : "by products of differences from a guess of the mean");
    if (!is_too_large)
        memcpy(products->data, gad_array_data(s.products), sizeof(double) * (size_t)(n * n));
    memcpy(mean->data, gad_array_data(s.centre), sizeof(double) * (size_t)n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += products->data[i * n + i];
    return passes_check_squares(p, "x", 0, squares, error);
}

enum gad_status gad_cov(struct gad_client *client, const struct gad_operand *x,
                        const struct gad_linalg_run *run, struct gad_dense *ret_products,
                        struct gad_dense *ret_mean, struct gad_error *error)
{
    struct gad_dense products = {.ndim = 0}, mean = {.ndim = 0};
    struct passes p;
    if (!ret_products)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_products", "ret_products is NULL");
    int r = matrix_init(&p, "x", client, x, run, error);
    if (r == 0)
        r = matrix_check_columns(&p, "x", GAD_SVD_MOST, error);
    if (r == 0)
        r = give_products(&p, x, &products, &mean, error);
    passes_deinit(&p);
    if (r == 0)
        *ret_products = products, products.data = NULL;
    if (r == 0 && ret_mean)
        *ret_mean = mean, mean.data = NULL;
    gad_dense_deinit(&products);
    gad_dense_deinit(&mean);
    return client_status(r, error);
}
