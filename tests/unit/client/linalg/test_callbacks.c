/* Callbacks of decompositions, with a real daemon: called after each iteration, in order; what they
 * return ends the loop; and errors have their statuses. */
#include "client/gpuarrayd-linalg.h"
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

TestSuite(callbacks, .init = set_up, .fini = tear_down, .timeout = 60);

#define N 12

struct seen {
    unsigned n_calls, stop_at;
    bool is_in_order;
    struct gad_iteration last;
};

static int on_iteration(void *data, const struct gad_iteration *iteration)
{
    struct seen *seen = data;
    seen->is_in_order &= iteration->iteration == ++seen->n_calls &&
                         iteration->iteration <= iteration->n_iterations &&
                         iteration->reads.n_reads > seen->last.reads.n_reads &&
                         iteration->seconds_left >= 0;
    seen->last = *iteration;
    return seen->n_calls == seen->stop_at;
}

static struct gad_linalg_run run_of(struct seen *seen, unsigned stop_at)
{
    *seen = (struct seen){.stop_at = stop_at, .is_in_order = true};
    return (struct gad_linalg_run){.iteration = on_iteration, .data = seen};
}

static struct gad_array *make(int ndim, const int64_t *shape)
{
    struct gad_array *array;
    struct gad_error error = {0};
    int64_t n = 1;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, ndim, shape, &array, &error)));
    double *data = gad_array_data(array);
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    for (int64_t i = 0; i < n; i++)
        data[i] = sin((double)(i * i % 1009)) + (i % 3 == 0);
    return array;
}

static struct gad_array *make_tensor(void)
{
    static const int64_t shape[] = {N, N + 1, N - 1};
    return make(3, shape);
}

Test(callbacks, cp_tells_of_each_iteration_and_stops)
{
    struct gad_operand x = {.array = make_tensor()};
    struct gad_cp_options options = {
        .size = sizeof(options), .rank = 3, .n_iterations = 5, .tolerance = -1};
    struct gad_tensor_result result;
    struct gad_error error = {0};
    struct seen seen;
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_cp(client, &x, &options, &result, &error)), "%s", error.message);
    cr_assert(eq(uint, seen.n_calls, 5));
    cr_assert(seen.is_in_order && !result.is_stopped);
    cr_assert(eq(dbl, seen.last.seconds_left, 0));
    cr_assert(lt(dbl, fabs(seen.last.fit - (1 - result.relative_error)), 1e-15));
    gad_tensor_result_deinit(&result);

    options.run = run_of(&seen, 2);
    cr_assert(zero(int, (int)gad_cp(client, &x, &options, &result, &error)), "%s", error.message);
    cr_assert(eq(uint, seen.n_calls, 2));
    cr_assert(eq(uint, result.n_iterations, 2));
    cr_assert(result.is_stopped && result.factors.factors[2].shape[0] == N - 1);
    gad_tensor_result_deinit(&result);

    options.rank = N * N;
    options.run = run_of(&seen, 0);
    cr_assert(eq(int, (int)gad_cp(client, &x, &options, &result, &error), GAD_BAD_RANK));
    cr_assert(eq(str, error.argument, "rank"));
    cr_assert(eq(str, error.found, "144"));
    cr_assert(zero(uint, seen.n_calls));
    ((double *)gad_array_data(x.array))[7] = NAN;
    options.rank = 3;
    cr_assert(eq(int, (int)gad_cp(client, &x, &options, &result, &error), GAD_BAD_ARGUMENT));
    cr_assert(zero(uint, seen.n_calls)); /* found in the first read */
    gad_array_release(x.array);
}

Test(callbacks, tucker_tells_of_each_read_and_stops)
{
    struct gad_operand x = {.array = make_tensor()};
    struct gad_tucker_options options = {.size = sizeof(options), .ranks = {2, 3, 2}, .n_reads = 3};
    struct gad_tensor_result result;
    struct gad_error error = {0};
    struct seen seen;
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_tucker(client, &x, &options, &result, &error)), "%s",
              error.message);
    cr_assert(seen.n_calls == result.n_iterations && seen.n_calls >= 2 && seen.is_in_order);
    gad_tensor_result_deinit(&result);

    options.run = run_of(&seen, 1);
    cr_assert(zero(int, (int)gad_tucker(client, &x, &options, &result, &error)), "%s",
              error.message);
    cr_assert(seen.n_calls == 1 && result.n_iterations == 1 && result.is_stopped);
    gad_tensor_result_deinit(&result);

    options.ranks[1] = N + 2;
    cr_assert(eq(int, (int)gad_tucker(client, &x, &options, &result, &error), GAD_BAD_RANK));
    cr_assert(eq(str, error.argument, "ranks"));
    gad_array_release(x.array);
}

Test(callbacks, svd_tells_of_each_read_and_stops)
{
    static const int64_t shape[] = {1100,
                                    GAD_SVD_MOST + 1}; /* more columns than one read has R of */
    struct gad_operand x = {.array = make(2, shape)};
    struct gad_svd_options options = {.size = sizeof(options), .k = 3, .n_iterations = 4};
    struct gad_svd_result result;
    struct gad_error error = {0};
    struct seen seen;
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_svd(client, &x, &options, &result, &error)), "%s", error.message);
    cr_assert(eq(uint, seen.n_calls, 4));
    cr_assert(seen.is_in_order && result.reads.n_reads == 4 && isnan(seen.last.fit));
    gad_svd_result_deinit(&result);

    options.run = run_of(&seen, 2);
    cr_assert(zero(int, (int)gad_svd(client, &x, &options, &result, &error)), "%s", error.message);
    cr_assert(seen.n_calls == 2 && result.n_iterations == 2 && result.is_stopped);
    cr_assert(result.s.shape[0] == 3 && result.s.data[0] >= result.s.data[2]);
    gad_svd_result_deinit(&result);

    options.k = 2000;
    cr_assert(eq(int, (int)gad_svd(client, &x, &options, &result, &error), GAD_BAD_RANK));
    gad_array_release(x.array);
}

Test(callbacks, least_squares_tell_of_each_read_and_stop)
{
    static const int64_t shape[] = {300, 4}, sides_shape[] = {300, 40}; /* 15 columns a read */
    struct gad_operand a = {.array = make(2, shape)}, b = {.array = make(2, sides_shape)};
    struct gad_lstsq_options options = {.size = sizeof(options)};
    struct gad_lstsq_result result;
    struct gad_error error = {0};
    struct seen seen;
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_lstsq(client, &a, &b, &options, &result, &error)), "%s",
              error.message);
    cr_assert(eq(uint, seen.n_calls, 3));
    cr_assert(seen.is_in_order && result.reads.n_reads == 3 && result.x.shape[1] == 40);
    gad_lstsq_result_deinit(&result);

    options.run = run_of(&seen, 3); /* when all is there */
    cr_assert(zero(int, (int)gad_lstsq(client, &a, &b, &options, &result, &error)));
    gad_lstsq_result_deinit(&result);
    options.run = run_of(&seen, 2);
    cr_assert(eq(int, (int)gad_lstsq(client, &a, &b, &options, &result, &error), GAD_CANCELLED));
    cr_assert(eq(uint, seen.n_calls, 2));

    struct gad_operand wide = {.array = make(2, (const int64_t[]){4, 5000})};
    struct gad_operand side = {.array = make(1, (const int64_t[]){4})};
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_lstsq(client, &wide, &side, &options, &result, &error)), "%s",
              error.message);
    cr_assert(seen.n_calls == 2 && seen.is_in_order && result.x.shape[0] == 5000);
    gad_lstsq_result_deinit(&result);

    const double below = -1;
    options.n_ridges = 1;
    options.ridges = &below;
    cr_assert(eq(int, (int)gad_lstsq(client, &a, &b, &options, &result, &error), GAD_BAD_ARGUMENT));
    options.n_ridges = 0;
    cr_assert(eq(int, (int)gad_lstsq(client, &a, &side, &options, &result, &error), GAD_BAD_SHAPE));
    gad_array_release(a.array);
    gad_array_release(b.array);
    gad_array_release(wide.array);
    gad_array_release(side.array);
}

#define N_OF_SYSTEM 150 /* three panels, the last narrower */

Test(callbacks, factorisations_tell_of_each_panel_and_refuse_what_is_not_finite)
{
    static const int64_t shape[] = {N_OF_SYSTEM, N_OF_SYSTEM};
    struct gad_array *a = make(2, shape), *to = make(2, shape);
    struct gad_solve_options options = {
        .size = sizeof(options), .to = to, .memory_bytes = N_OF_SYSTEM * 64 * sizeof(double)};
    struct gad_solved solved;
    struct gad_error error = {0};
    struct seen seen;
    double *data = gad_array_data(a);
    for (int i = 0; i < N_OF_SYSTEM; i++)
        data[i * (N_OF_SYSTEM + 1)] += 4 * N_OF_SYSTEM;
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_inv(client, a, &options, &solved, &error)), "%s", error.message);
    cr_assert(eq(uint, seen.n_calls, 6));
    for (int i = 0; i < N_OF_SYSTEM; i++)
        data[140 * N_OF_SYSTEM + i] = data[i * N_OF_SYSTEM + 140] = i; /* still positive definite */
    data[140 * N_OF_SYSTEM + 140] = 1e9;
    data[140 * N_OF_SYSTEM + 70] = NAN;
    options.run = run_of(&seen, 0);
    cr_assert(eq(int, (int)gad_cholesky(client, a, &options, &solved, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "nan at [140, 70]"));
    cr_assert(eq(i64, solved.place, 70));
    cr_assert(eq(uint, seen.n_calls, 1));
    options.is_upper = true; /* whose half is finite */
    options.run = run_of(&seen, 0);
    cr_assert(zero(int, (int)gad_cholesky(client, a, &options, &solved, &error)), "%s",
              error.message);
    const double *factor = gad_array_data(to);
    cr_assert(lt(dbl, fabs(factor[1] - data[1] / sqrt(data[0])), 1e-12));
    cr_assert(zero(dbl, factor[N_OF_SYSTEM]));
    data[70 * N_OF_SYSTEM + 140] = NAN;
    options.run = run_of(&seen, 0);
    cr_assert(eq(int, (int)gad_cholesky(client, a, &options, &solved, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "nan at [70, 140]"));
    cr_assert(eq(i64, solved.place, 140));
    options.is_upper = false;
    data[70 * N_OF_SYSTEM + 140] = 70;
    options.run = run_of(&seen, 0);
    data[140 * N_OF_SYSTEM + 70] = INFINITY;
    cr_assert(eq(int, (int)gad_inv(client, a, &options, &solved, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "infinite at [140, 70]"));
    gad_array_release(to);
    gad_array_release(a);
}
