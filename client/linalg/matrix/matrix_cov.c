/* How columns vary together, and R.
 *
 * One read gives the R of differences from a guess of the mean, with a column of ones behind them:
 * that column says what the mean of all rows is, and taking it out of R leaves a factor whose
 * square are the sums of products about the mean. So data far from zero lose nothing, and nothing
 * is squared before the end. The guess is the first rows' mean, of an expression zero; where it was
 * so far off that digits are lost, the read is made again with what it has found.
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

/* r: (n + 1) x (n + 1). Returns which part of the ones the columns have. */
static double take_mean(int64_t n, int64_t n_rows, const double *r, double *centre)
{
    double part = 0;
    for (int64_t i = 0; i < n; i++) {
        double along = r[i * (n + 1) + n];
        part += along * along / (double)n_rows;
        for (int64_t j = i; j < n; j++)
            centre[j] += r[i * (n + 1) + j] * along / (double)n_rows;
    }
    return part;
}

/* F = S - factor * along (along S), where S is r without its last column. */
static void make_factor(int64_t n, int64_t n_rows, double part, const double *r, double *sums,
                        double *ret_factor)
{
    double factor = part > 0 ? (1 - sqrt(max_f64(1 - part, 0))) / (part * (double)n_rows) : 0;
    memset(sums, 0, sizeof(*sums) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            sums[j] += r[i * (n + 1) + n] * r[i * (n + 1) + j];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            ret_factor[i * n + j] = r[i * (n + 1) + j] - factor * r[i * (n + 1) + n] * sums[j];
}

static int spread(struct passes *p, struct gad_array *ones, struct gad_array *centre, double *r_of,
                  double *sums, double *ret_factor, struct gad_error *error)
{
    const struct matrix_column column = {.parts = "", .expr = "_o"};
    const struct gad_argument input = {.name = "_o", .array = ones};
    int64_t n = p->shape[1];
    double part = 1;
    for (int i = 0; i < 2 && !(1 - part > LEAST_LEFT); i++) {
        bool is_finite;
        int r = matrix_triangles(p, centre, 1, &column, 1, &input, &r_of, &is_finite, error);
        if (r == 0 && !is_finite)
            r = passes_refuse_not_finite(p, "x", error);
        if (r || p->only_plans)
            return r;
        part = take_mean(n, p->shape[0], r_of, gad_array_data(centre));
    }
    make_factor(n, p->shape[0], part, r_of, sums, ret_factor);
    return 0;
}

int matrix_spread(struct passes *p, const struct gad_operand *operand, double *ret_mean,
                  double *ret_factor, struct gad_error *error)
{
    struct gad_array *centre, *ones = NULL;
    int64_t n = p->shape[1];
    int r = matrix_share(p, 1, &n, NULL, &centre, error);
    if (r == 0 && !operand->expr)
        r = guess(p, operand->array, centre, error);
    if (r == 0)
        r = make_ones(p, &ones, error);
    _cleanup_free_ double *r_of = matrix_new(n + 1, n + 1, error);
    _cleanup_free_ double *sums = matrix_new(n, 1, error);
    if (r == 0)
        r = r_of && sums ? spread(p, ones, centre, r_of, sums, ret_factor, error) : GAD_NO_MEMORY;
    gad_array_release(ones);
    if (r == 0)
        memcpy(ret_mean, gad_array_data(centre), sizeof(*ret_mean) * (size_t)n);
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
        r = matrix_check_columns(&p, "x", MATRIX_MOST_COLUMNS, error);
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

static int make_products(struct passes *p, const struct gad_operand *x, struct gad_dense *products,
                         struct gad_dense *mean, struct gad_error *error)
{
    int64_t n = p->shape[1];
    const int64_t shape[] = {n, n};
    const struct dense_product square = {.transpose_a = true, .m = n, .n = n, .k = n, .alpha = 1};
    _cleanup_free_ double *factor = matrix_new(n, n, error);
    int r = factor ? dense_init(products, "products", 2, shape, error) : GAD_NO_MEMORY;
    if (r == 0)
        r = dense_init(mean, "mean", 1, &n, error);
    if (r == 0)
        r = matrix_spread(p, x, mean->data, factor, error);
    if (r == 0)
        matrix_tell_plan(p, &p->reads, 0, &nothing, &nothing, p->planned_s,
                         "by a QR decomposition of differences from a guess of the mean");
    return r || p->only_plans ? r : dense_multiply(&square, factor, factor, products->data, error);
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
        r = make_products(&p, x, &products, &mean, error);
    passes_deinit(&p);
    if (r == 0)
        *ret_products = products, products.data = NULL;
    if (r == 0 && ret_mean)
        *ret_mean = mean, mean.data = NULL;
    gad_dense_deinit(&products);
    gad_dense_deinit(&mean);
    return client_status(r, error);
}
