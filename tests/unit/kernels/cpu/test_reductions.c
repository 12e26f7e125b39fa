/* Partial results over one box. */
#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct built b;
static struct cpu_warnings warnings;
static enum cpu_level level = CPU_LEVEL_AVX512; /* the best there is */

static struct partial reduce(enum op op, enum dtype dtype, enum dtype result, const void *x,
                             size_t n)
{
    struct partial partial;
    built_init(&b);
    built_reduction(&b, op, result, built_input(&b, dtype));
    int r = run_flat(cpu_engine_get(level), &b, n, (const void *[]){x}, NULL, &partial, &warnings);
    cr_assert(zero(int, r));
    return partial;
}

Test(reductions, wrap_in_64_bits)
{
    int64_t x[] = {INT64_MAX, 1, -5};
    uint8_t bytes[300];
    int8_t negative[300];
    memset(bytes, 255, sizeof(bytes));
    memset(negative, -128, sizeof(negative));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_INT64, DTYPE_INT64, x, 3).value.i64, INT64_MAX - 4));
    cr_assert(eq(u64, reduce(OP_SUM, DTYPE_UINT8, DTYPE_UINT64, bytes, 300).value.u64, 76500));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_INT8, DTYPE_INT64, negative, 300).value.i64, -38400));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_BOOL, DTYPE_INT64, bytes, 300).value.i64, 300));
}

Test(reductions, find_extremes_of_every_sign)
{
    int16_t x[] = {5, -3, 100};
    uint64_t large[] = {UINT64_MAX, UINT64_MAX - 1};
    uint8_t truths[] = {0, 2, 0};
    cr_assert(eq(i64, reduce(OP_MIN, DTYPE_INT16, DTYPE_INT16, x, 3).value.i64, -3));
    cr_assert(eq(i64, reduce(OP_MAX, DTYPE_INT16, DTYPE_INT16, x, 2).value.i64, 5));
    cr_assert(
        eq(u64, reduce(OP_MIN, DTYPE_UINT64, DTYPE_UINT64, large, 2).value.u64, UINT64_MAX - 1));
    cr_assert(eq(u64, reduce(OP_MAX, DTYPE_BOOL, DTYPE_BOOL, truths, 3).value.u64, 1));
    cr_assert(eq(u64, reduce(OP_MIN, DTYPE_BOOL, DTYPE_BOOL, truths, 3).value.u64, 0));
    cr_assert(eq(u64, reduce(OP_MIN, DTYPE_BOOL, DTYPE_BOOL, truths + 1, 1).value.u64, 1));
}

Test(reductions, propagate_nan_from_anywhere)
{
    static float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    for (int i = 0; i < 1000; i += 37) {
        x[i] = NAN;
        cr_assert(isnan(reduce(OP_MIN, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).value.f32));
        cr_assert(isnan(reduce(OP_MAX, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).value.f32));
        x[i] = (float)i;
    }
    cr_assert(eq(flt, reduce(OP_MAX, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).value.f32, 999));
}

Test(reductions, of_infinities_alone_are_infinite)
{
    double x[] = {INFINITY, INFINITY}, y[] = {-INFINITY};
    cr_assert(eq(dbl, reduce(OP_MIN, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 2).value.f64, INFINITY));
    cr_assert(eq(dbl, reduce(OP_MAX, DTYPE_FLOAT64, DTYPE_FLOAT64, y, 1).value.f64, -INFINITY));
}

Test(reductions, keep_the_sign_of_a_negative_zero)
{
    double x[70];
    for (int i = 0; i < 70; i++)
        x[i] = -0.0;
    for (size_t n = 1; n <= 280; n++) {
        level = (enum cpu_level)(n % 4);
        size_t n_zeros = 1 + n / 4 % 70;
        cr_assert(signbit(reduce(OP_SUM, DTYPE_FLOAT64, DTYPE_FLOAT64, x, n_zeros).value.f64));
    }
}

Test(reductions, count_what_is_not_zero)
{
    float x[] = {0, -0.0f, NAN, 1e-45f, 1};
    cr_assert(eq(i64, reduce(OP_COUNT_NONZERO, DTYPE_FLOAT32, DTYPE_INT64, x, 5).value.i64, 3));
}

Test(reductions, sum_many_floats_accurately)
{
    size_t n = 10 * 1000 * 1000 + 7;
    float *x = malloc(n * sizeof(*x));
    cr_assert(ne(ptr, x, NULL));
    for (size_t i = 0; i < n; i++)
        x[i] = 0.1f;
    double wanted = (double)0.1f * (double)n;
    double got = reduce(OP_SUM, DTYPE_FLOAT32, DTYPE_FLOAT64, x, n).value.f64;
    cr_assert(le(dbl, fabs(got - wanted), wanted * 0x1p-50));
    free(x);
}

/* The order of a sum is that of the walk, whatever lies between the elements. */
Test(reductions, do_not_depend_on_strides_or_neighbours)
{
    static double x[3000], spread[6000];
    for (int i = 0; i < 3000; i++)
        x[i] = spread[2 * i] = sin(i) * exp((double)(i % 50));
    double wanted = reduce(OP_SUM, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 3000).value.f64;
    static const int64_t counts[][2] = {{3000, 1}, {1, 3000}, {60, 50}, {3, 1000}};
    for (int i = 0; i < 4; i++) {
        struct cpu_view view = {.base = spread, .strides = {16 * counts[i][1], 16}};
        struct cpu_box box = {.ndim = 2, .count = counts[i], .axis_order = (int[]){0, 1}};
        struct partial partial;
        int r = cpu_engine_run(cpu_engine_get((enum cpu_level)i), &b.program, 0, &box, &view, NULL,
                               NULL, &partial, &warnings, test_scratch());
        cr_assert(zero(int, r));
        cr_assert(zero(int, memcmp(&partial.value.f64, &wanted, sizeof(wanted))));
    }
}
