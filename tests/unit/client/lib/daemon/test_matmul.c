/* Products by BLAS's words, of memory and of files, and what of them is refused, with a real
 * daemon.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <unistd.h>

TestSuite(matmul, .init = set_up, .fini = tear_down, .timeout = 60);

static const int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2}, c_shape[] = {2, 2};
static double a_data[] = {1, 2, 3, 4, 5, 6}, b_data[] = {1, 0, 2, 1, 0, 3};

static void check(const double *c, double c00, double c01, double c10, double c11)
{
    cr_assert(eq(dbl, c[0], c00));
    cr_assert(eq(dbl, c[1], c01));
    cr_assert(eq(dbl, c[2], c10));
    cr_assert(eq(dbl, c[3], c11));
}

static int multiply(struct gad_product product, struct gad_array *to, struct gad_job_stats *stats,
                    struct gad_error *error)
{
    struct gad_move_options options = {.to = to};
    *error = (struct gad_error){0};
    return (int)gad_matmul(client, &product, &options, stats, error);
}

Test(matmul, is_blas_gemm)
{
    double c[4] = {100, 200, 300, 400};
    struct gad_array *a = wrap(a_data, 2, a_shape, NULL), *b = wrap(b_data, 2, b_shape, NULL),
                     *to = wrap(c, 2, c_shape, NULL);
    struct gad_error error;
    struct gad_job_stats stats;
    cr_assert(zero(int, multiply((struct gad_product){.left = a, .right = b, .alpha = 1}, to,
                                 &stats, &error)),
              "%s", error.message);
    check(c, 5, 11, 14, 23);
    cr_assert(eq(str, stats.engine, "cpu"));
    cr_assert(
        zero(int, multiply((struct gad_product){.left = a, .right = b, .alpha = 2, .beta = 0.5}, to,
                           NULL, &error)),
        "%s", error.message);
    check(c, 12.5, 27.5, 35, 57.5);
    gad_array_release(a);
    gad_array_release(b);
    gad_array_release(to);
}

Test(matmul, transposes_and_sees_that_both_are_one)
{
    double c[9], d[4];
    static const int64_t square[] = {3, 3};
    struct gad_array *a = wrap(a_data, 2, a_shape, NULL), *to = wrap(c, 2, square, NULL),
                     *small = wrap(d, 2, c_shape, NULL);
    struct gad_error error;
    struct gad_move_options options = {.to = small};
    struct gad_plan *plan;
    struct gad_product gram = {.left = a, .right = a, .transpose_right = true, .alpha = 1};
    cr_assert(zero(int, multiply(gram, small, NULL, &error)), "%s", error.message);
    check(d, 14, 32, 32, 77);
    cr_assert(zero(int, (int)gad_matmul_plan(client, &gram, &options, &plan, &error)), "%s",
              error.message);
    cr_assert(ne(ptr, strstr(plan->text, "symmetric"), NULL), "%s", plan->text);
    gad_plan_free(plan);
    gram = (struct gad_product){.left = a, .right = a, .transpose_left = true, .alpha = 1};
    cr_assert(zero(int, multiply(gram, to, NULL, &error)), "%s", error.message);
    cr_assert(eq(dbl, c[0], 17));
    cr_assert(eq(dbl, c[8], 45));
    cr_assert(eq(dbl, c[2], c[6]));
    gad_array_release(a);
    gad_array_release(to);
    gad_array_release(small);
}

Test(matmul, adds_into_files_and_leaves_no_journal)
{
    const char *path = path_in("c.npy");
    struct gad_array *a = wrap(a_data, 2, a_shape, NULL), *b = wrap(b_data, 2, b_shape, NULL), *to,
                     *back;
    struct gad_error error = {0};
    struct gad_product product = {.left = a, .right = b, .alpha = 1};
    struct gad_move_options options = {.to_path = path};
    cr_assert(zero(int, (int)gad_matmul(client, &product, &options, NULL, &error)), "%s",
              error.message);
    cr_assert(zero(int, (int)gad_array_open_in_place(client, path, &to, &error)));
    product.beta = 1;
    for (int i = 0; i < 3; i++)
        cr_assert(zero(int, multiply(product, to, NULL, &error)), "%s", error.message);
    int n = n_files();
    product.journal_path = path_in("j");
    cr_assert(zero(int, multiply(product, to, NULL, &error)), "%s", error.message);
    cr_assert(eq(int, n_files(), n));
    cr_assert(ne(int, access(product.journal_path, F_OK), 0));
    back = open_npy(path);
    cr_assert(eq(dbl, ask("sum(a)", back), 5.0 * (5 + 11 + 14 + 23)));
    gad_array_release(back);
    gad_array_release(to);
    gad_array_release(a);
    gad_array_release(b);
}

Test(matmul, refuses_what_makes_no_sense)
{
    double c[4] = {0};
    struct gad_array *a = wrap(a_data, 2, a_shape, NULL), *b = wrap(b_data, 2, b_shape, NULL),
                     *to = wrap(c, 2, c_shape, NULL);
    struct gad_error error = {0};
    struct gad_move_options options = {.to_path = path_in("new.npy")};
    struct gad_product product = {.left = a, .right = b, .alpha = 1, .beta = 1};
    cr_assert(eq(int, (int)gad_matmul(client, &product, &options, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "beta"));
    cr_assert(eq(int, (int)gad_matmul(client, NULL, &options, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, multiply((struct gad_product){.left = a, .alpha = 1}, to, NULL, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(
        eq(int, multiply((struct gad_product){.left = a, .right = a, .alpha = 1}, to, NULL, &error),
           GAD_BAD_SHAPE));
    product = (struct gad_product){.left = a, .right = b, .alpha = 1, .journal_path = "j"};
    cr_assert(eq(int, multiply(product, to, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "journal_path"));
    product.beta = 1; /* into memory */
    cr_assert(eq(int, multiply(product, to, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(
        eq(int, multiply((struct gad_product){.left = b, .right = a, .alpha = 1}, to, NULL, &error),
           GAD_BAD_SHAPE));
    cr_assert(zero(dbl, c[0] + c[1] + c[2] + c[3]));
    gad_array_release(a);
    gad_array_release(b);
    gad_array_release(to);
}

Test(matmul, factors_are_exact)
{
    static const int64_t shape[] = {1, 1};
    struct gad_array *one, *to;
    struct gad_error error;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_UINT64, 2, shape, &one, &error)));
    cr_assert(zero(int, (int)gad_array_new(client, GAD_UINT64, 2, shape, &to, &error)));
    uint64_t *in = gad_array_data(one), *out = gad_array_data(to);
    *in = 1;
    struct gad_product product = {
        .left = one, .right = one, .exact_alpha = {GAD_SCALAR_UINT, {.uint_value = UINT64_MAX}}};
    cr_assert(zero(int, multiply(product, to, NULL, &error)), "%s", error.message);
    cr_assert(eq(u64, *out, UINT64_MAX));
    product.exact_alpha = (struct gad_scalar){GAD_SCALAR_INT, {.int_value = -1}};
    cr_assert(eq(int, multiply(product, to, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "alpha"));
    cr_assert(eq(str, error.expected, "0 to 18446744073709551615"));
    cr_assert(eq(str, error.found, "-1"));
    product.exact_alpha = (struct gad_scalar){GAD_SCALAR_FLOAT, {.float_value = 1}};
    cr_assert(eq(int, multiply(product, to, NULL, &error), GAD_BAD_DTYPE)); /* a weak float */
    cr_assert(eq(u64, *out, UINT64_MAX));
    gad_array_release(one);
    gad_array_release(to);
}
