/* Reductions of one box: values where they could go wrong, along all axes and along some. */
#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct built b;
static struct engine_warnings warnings;
static enum cpu_level level = CPU_LEVEL_AVX512; /* the best there is */

static union scalar reduce(enum op op, enum dtype dtype, enum dtype result, const void *x, size_t n)
{
    struct built_node node;
    built_init(&b);
    built_reduction(&b, op, result, built_input(&b, dtype));
    int r = run_flat(cpu_engine_get(level), &b, n, (const void *[]){x}, NULL, &node, &warnings);
    cr_assert(zero(int, r));
    return built_value(&b, &node, 0);
}

Test(reductions, wrap_in_64_bits)
{
    int64_t x[] = {INT64_MAX, 1, -5};
    uint8_t bytes[300];
    int8_t negative[300];
    memset(bytes, 255, sizeof(bytes));
    memset(negative, -128, sizeof(negative));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_INT64, DTYPE_INT64, x, 3).i64, INT64_MAX - 4));
    cr_assert(eq(u64, reduce(OP_SUM, DTYPE_UINT8, DTYPE_UINT64, bytes, 300).u64, 76500));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_INT8, DTYPE_INT64, negative, 300).i64, -38400));
    cr_assert(eq(i64, reduce(OP_SUM, DTYPE_BOOL, DTYPE_INT64, bytes, 300).i64, 300));
}

Test(reductions, find_extremes_of_every_sign)
{
    int16_t x[] = {5, -3, 100};
    uint64_t large[] = {UINT64_MAX, UINT64_MAX - 1};
    uint8_t truths[] = {0, 2, 0};
    cr_assert(eq(i64, reduce(OP_MIN, DTYPE_INT16, DTYPE_INT16, x, 3).i64, -3));
    cr_assert(eq(i64, reduce(OP_MAX, DTYPE_INT16, DTYPE_INT16, x, 2).i64, 5));
    cr_assert(eq(u64, reduce(OP_MIN, DTYPE_UINT64, DTYPE_UINT64, large, 2).u64, UINT64_MAX - 1));
    cr_assert(eq(u64, reduce(OP_MAX, DTYPE_BOOL, DTYPE_BOOL, truths, 3).u64, 1));
    cr_assert(eq(u64, reduce(OP_MIN, DTYPE_BOOL, DTYPE_BOOL, truths, 3).u64, 0));
    cr_assert(eq(u64, reduce(OP_MIN, DTYPE_BOOL, DTYPE_BOOL, truths + 1, 1).u64, 1));
}

Test(reductions, propagate_nan_from_anywhere)
{
    static float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    for (int i = 0; i < 1000; i += 37) {
        x[i] = NAN;
        cr_assert(isnan(reduce(OP_MIN, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).f32));
        cr_assert(isnan(reduce(OP_MAX, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).f32));
        x[i] = (float)i;
    }
    cr_assert(eq(flt, reduce(OP_MAX, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 1000).f32, 999));
}

Test(reductions, of_infinities_alone_are_infinite)
{
    double x[] = {INFINITY, INFINITY}, y[] = {-INFINITY};
    cr_assert(eq(dbl, reduce(OP_MIN, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 2).f64, INFINITY));
    cr_assert(eq(dbl, reduce(OP_MAX, DTYPE_FLOAT64, DTYPE_FLOAT64, y, 1).f64, -INFINITY));
}

Test(reductions, keep_the_sign_of_a_negative_zero)
{
    double x[70];
    for (int i = 0; i < 70; i++)
        x[i] = -0.0;
    for (size_t n = 1; n <= 280; n++) {
        level = (enum cpu_level)(n % 4);
        size_t n_zeros = 1 + n / 4 % 70;
        cr_assert(signbit(reduce(OP_SUM, DTYPE_FLOAT64, DTYPE_FLOAT64, x, n_zeros).f64));
    }
}

Test(reductions, count_what_is_not_zero)
{
    float x[] = {0, -0.0f, NAN, 1e-45f, 1};
    cr_assert(eq(i64, reduce(OP_COUNT_NONZERO, DTYPE_FLOAT32, DTYPE_INT64, x, 5).i64, 3));
}

Test(reductions, sum_many_floats_accurately)
{
    size_t n = 10 * 1000 * 1000 + 7;
    float *x = malloc(n * sizeof(*x));
    cr_assert(ne(ptr, x, NULL));
    for (size_t i = 0; i < n; i++)
        x[i] = 0.1f;
    double wanted = (double)0.1f * (double)n;
    double got = reduce(OP_SUM, DTYPE_FLOAT32, DTYPE_FLOAT64, x, n).f64;
    cr_assert(le(dbl, fabs(got - wanted), wanted * 0x1p-50));
    free(x);
}

/* The order of a sum is that of the walk, whatever lies between the elements. */
Test(reductions, do_not_depend_on_strides_or_neighbours)
{
    static double x[3000], spread[6000];
    for (int i = 0; i < 3000; i++)
        x[i] = spread[2 * i] = sin(i) * exp((double)(i % 50));
    double wanted = reduce(OP_SUM, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 3000).f64;
    static const int64_t counts[][2] = {{3000, 1}, {1, 3000}, {60, 50}, {3, 1000}};
    for (int i = 0; i < 4; i++) {
        struct engine_view view = {.base = spread, .strides = {16 * counts[i][1], 16}};
        struct engine_box box = {.ndim = 2, .count = counts[i], .axis_order = (int[]){0, 1}};
        struct built_node node;
        struct reduce_layout layout;
        reduce_layout_init(&layout, &b.program, 0, 1);
        int r = cpu_engine_run(cpu_engine_get((enum cpu_level)i), &b.program, 0, &box, &view, NULL,
                               NULL, &layout, &node, &warnings, test_scratch());
        cr_assert(zero(int, r));
        double got = built_value(&b, &node, 0).f64;
        cr_assert(zero(int, memcmp(&got, &wanted, sizeof(wanted))));
    }
}

/* Sums of rows and of columns of a box, by hand. */
static void reduce_along(uint32_t axes, enum op op, enum dtype result, const int64_t *count,
                         const float *x, void *node)
{
    struct reduce_layout layout;
    uint64_t n_cells = 1;
    built_init(&b);
    built_reduction(&b, op, result, built_input(&b, DTYPE_FLOAT32));
    b.program.passes[0].reduced_axes = axes;
    for (int i = 0; i < 3; i++) {
        b.program.passes[0].shape[i] = count[i];
        n_cells *= axes >> i & 1 ? 1 : (uint64_t)count[i];
    }
    reduce_layout_init(&layout, &b.program, 0, n_cells);
    struct engine_view view = {.base = (void *)(uintptr_t)x,
                               .strides = {4 * count[1] * count[2], 4 * count[2], 4}};
    struct engine_box box = {.ndim = 3, .count = count, .axis_order = (int[]){0, 1, 2}};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(level), &b.program, 0, &box, &view, NULL,
                                       NULL, &layout, node, &warnings, test_scratch())));
    cr_assert(eq(u64, ((struct reduce_header *)node)->n_elements,
                 (uint64_t)(count[0] * count[1] * count[2]) / n_cells));
}

Test(reductions, along_any_axes_take_in_every_element_once)
{
    static const int64_t count[] = {5, 70, 3};
    static float x[5 * 70 * 3];
    static char node[64 + 8 * 5 * 70 * 3 + 64] __attribute__((aligned(64)));
    for (int i = 0; i < 5 * 70 * 3; i++)
        x[i] = (float)(1 + i % 97);
    for (uint32_t axes = 1; axes < 8; axes++) {
        double wanted[5 * 70 * 3] = {0};
        reduce_along(axes, OP_SUM, DTYPE_FLOAT64, count, x, node);
        for (int i = 0; i < 5 * 70 * 3; i++) {
            int at[] = {i / 210, i / 3 % 70, i % 3}, cell = 0;
            for (int k = 0; k < 3; k++)
                cell = axes >> k & 1 ? cell : cell * (int)count[k] + at[k];
            wanted[cell] += (double)x[i];
        }
        int n = (int)(1050 / ((struct reduce_header *)node)->n_elements);
        for (int i = 0; i < n; i++)
            cr_assert(eq(dbl, ((double *)(node + 64))[i], wanted[i]), "axes %u, cell %d", axes, i);
    }
}

Test(reductions, number_positions_in_c_order_of_the_reduced_axes)
{
    static const int64_t count[] = {4, 50, 6};
    static float x[4 * 50 * 6];
    static char node[64 + 2 * 512] __attribute__((aligned(64)));
    x[2 * 300 + 7 * 6 + 4] = 9;
    x[3 * 300 + 1 * 6 + 4] = 9; /* equal, and later */
    reduce_along(3, OP_ARGMAX, DTYPE_INT64, count, x, node);
    const int64_t *index = (const int64_t *)(node + 64 + 64);
    for (int i = 0; i < 6; i++)
        cr_assert(eq(i64, index[i], i == 4 ? 2 * 50 + 7 : 0), "cell %d", i);
}

/* A mean that is large beside the deviations, and a first element that is far from it. */
Test(reductions, square_deviations_from_a_large_mean)
{
    static double x[10000];
    for (int i = 0; i < 10000; i++)
        x[i] = 1e9 + (double)(i % 4);
    for (int level_now = CPU_LEVEL_PLAIN; level_now <= CPU_LEVEL_AVX512; level_now++) {
        level = (enum cpu_level)level_now;
        double got = reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 10000).f64;
        cr_assert(le(dbl, fabs(got - 12500), 12500 * 1e-13), "%.17g", got);
    }
    x[0] = 0;
    long double mean = 0, wanted = 0;
    for (int i = 0; i < 10000; i++)
        mean += (long double)x[i] / 10000;
    for (int i = 0; i < 10000; i++)
        wanted += ((long double)x[i] - mean) * ((long double)x[i] - mean);
    double got = reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 10000).f64;
    cr_assert(le(dbl, fabs(got - (double)wanted), (double)wanted * 1e-11), "%.17g", got);
}

/* Of float32, whose elements are counted from 0 or from the first one: from every mean, and where
 * the first elements are unlike the others. */
Test(reductions, square_deviations_of_float32_from_every_mean)
{
    static float x[5000];
    static const float means[] = {0, 0.5f, 7, -30, 300, -1e5f, 1e7f};
    static const size_t lengths[] = {16, 40, 300, 2048, 5000};
    for (unsigned k = 0; k < 4 * 7 * 5 * 3; k++) {
        float mean = means[k / 4 % 7];
        size_t n = lengths[k / 28 % 5];
        unsigned what = k / 140;
        long double sum = 0, wanted = 0;
        level = (enum cpu_level)(k % 4);
        for (size_t i = 0; i < n; i++)
            x[i] = what > 0 && i < 16 ? (float)(i % 5 + 1) * (what == 1 ? 1 : mean / 6)
                                      : mean + (float)((i * 37 % 101) - 50.0) / 50;
        for (size_t i = 0; i < n; i++)
            sum += x[i];
        for (size_t i = 0; i < n; i++)
            wanted += (x[i] - sum / n) * (x[i] - sum / n);
        double got = reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT32, DTYPE_FLOAT64, x, n).f64;
        cr_assert(le(dbl, fabs(got - (double)wanted), (double)wanted * 1e-11),
                  "mean %g of %zu, case %u: %.17g, not %.17Lg", (double)mean, n, what, got, wanted);
    }
}

/* Of a row of float32 in which only two elements are unlike the others: what is least for 0. */
Test(reductions, square_two_deviations_among_many_equal_elements)
{
    static float x[60000];
    size_t n = 60000;
    for (size_t i = 0; i < n; i++)
        x[i] = i < 2 ? 1 + (i ? 1 : -1) / 200.0f : 1;
    long double sum = 0, wanted = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 0; i < n; i++)
        wanted += (x[i] - sum / n) * (x[i] - sum / n);
    for (int level_now = CPU_LEVEL_PLAIN; level_now <= CPU_LEVEL_AVX512; level_now++) {
        level = (enum cpu_level)level_now;
        double got = reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT32, DTYPE_FLOAT64, x, n).f64;
        cr_assert(le(dbl, fabs(got - (double)wanted), (double)wanted * 60000 * 0x1p-36), "%.17g",
                  got);
    }
}

/* Where nothing varies nothing is left, not even what rounding leaves. */
Test(reductions, square_no_deviations_of_equal_elements)
{
    static float x[3000];
    for (int i = 0; i < 3000; i++)
        x[i] = 0.1f;
    for (size_t n = 1; n <= 3000; n += n < 70 ? 1 : 487)
        cr_assert(zero(dbl, reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT32, DTYPE_FLOAT64, x, n).f64));
}

Test(reductions, square_deviations_of_what_is_infinite_are_nan)
{
    double x[100] = {0};
    x[50] = INFINITY;
    cr_assert(isnan(reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 100).f64));
    x[50] = 1e200;
    cr_assert(
        eq(dbl, reduce(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64, x, 100).f64, INFINITY));
}

Test(reductions, keep_the_first_of_zeros)
{
    float x[300];
    for (int first = 0; first < 300; first += 13) {
        for (int i = 0; i < 300; i++)
            x[i] = i < first ? 1 : i % 2 ? -0.0f : 0.0f;
        float got = reduce(OP_MIN, DTYPE_FLOAT32, DTYPE_FLOAT32, x, 300).f32;
        cr_assert(eq(int, !!signbit(got), first % 2));
    }
}

static union scalar reduce_at(enum cpu_level wanted, enum op op, enum dtype dtype,
                              enum dtype result, const void *x, size_t n)
{
    enum cpu_level before = level;
    level = wanted;
    union scalar value = reduce(op, dtype, result, x, n);
    level = before;
    return value;
}

/* Sums, squared deviations and extrema of the same elements: the bits of each by itself, and of the
 * plain level. */
static void check_together(enum op adding, enum dtype dtype, const void *x, size_t n)
{
    enum op ops[] = {OP_MAX, adding, OP_MIN};
    enum dtype results[] = {dtype, DTYPE_FLOAT64, dtype};
    struct built_node node;
    union scalar together[3];
    built_init(&b);
    struct operand src = built_input(&b, dtype);
    for (int i = 0; i < 3; i++)
        built_reduction(&b, ops[i], results[i], src);
    int r = run_flat(cpu_engine_get(level), &b, n, (const void *[]){x}, NULL, &node, &warnings);
    cr_assert(zero(int, r));
    for (unsigned i = 0; i < 3; i++)
        together[i] = built_value(&b, &node, i);
    for (unsigned i = 0; i < 3; i++) {
        union scalar alone = reduce(ops[i], dtype, results[i], x, n);
        union scalar plain = reduce_at(CPU_LEVEL_PLAIN, ops[i], dtype, results[i], x, n);
        size_t n_bytes = dtype_size(results[i]);
        bool are_nan =
            ops[i] == adding && isnan(together[i].f64) && isnan(alone.f64) && isnan(plain.f64);
        cr_assert(are_nan || (memcmp(&together[i], &alone, n_bytes) == 0 &&
                              memcmp(&plain, &alone, n_bytes) == 0),
                  "level %d, operation %d of %zu elements", (int)level, (int)ops[i], n);
    }
}

Test(reductions, have_the_same_bits_together_as_alone)
{
    static const double specials[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e38, -3};
    static float x[4500];
    static double y[4500];
    static const size_t lengths[] = {15, 16, 63, 64, 65, 255, 256, 320, 2047, 2048, 2305, 4500};
    for (unsigned k = 0; k < 4 * 8 * 12; k++) {
        size_t n = lengths[k / 4 % 12], at = k / 4 * 7 % n;
        level = (enum cpu_level)(k % 4);
        for (size_t i = 0; i < n; i++)
            y[i] = sin((double)i) + (k / 48 % 2 ? 2 : 0);
        for (unsigned i = 0; i < k / 48; i++) {
            y[(at + i * 13) % n] = specials[i % 7];
            y[(at + i * 29) % n] = specials[(i + k) % 7];
        }
        for (size_t i = 0; i < n; i++)
            x[i] = (float)y[i];
        enum op adding = k / 4 % 3 ? OP_SQUARED_DEVIATIONS : OP_SUM;
        check_together(adding, DTYPE_FLOAT32, x, n);
        check_together(adding, DTYPE_FLOAT64, y, n);
    }
    for (unsigned first = 0; first < 300; first += 13) {
        for (unsigned i = 0; i < 300; i++)
            x[i] = i >= first ? (i % 2 ? -0.0f : 0.0f) : first % 3 ? 1 : -1;
        check_together(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT32, x, 300);
    }
}

/* n_rows rows of n elements, each to a cell of its own. */
static void reduce_rows_of(enum cpu_level by, enum dtype dtype, const char *x, int64_t n_rows,
                           int64_t n, void *node)
{
    struct reduce_layout layout;
    const int64_t count[] = {n_rows, n}, item = (int64_t)dtype_size(dtype);
    struct engine_view view = {.base = (void *)(uintptr_t)x, .strides = {n * item, item}};
    struct engine_box box = {.ndim = 2, .count = count, .axis_order = (int[]){0, 1}};
    reduce_layout_init(&layout, &b.program, 0, (uint64_t)n_rows);
    b.program.passes[0].reduced_axes = 2;
    b.program.passes[0].shape[0] = 1000;
    b.program.passes[0].shape[1] = n;
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(by), &b.program, 0, &box, &view, NULL, NULL,
                                       &layout, node, &warnings, test_scratch())));
}

static void check_rows_alone(enum dtype dtype, unsigned n_reductions, const char *x, int64_t n_rows,
                             int64_t n)
{
    static char together[64 * 100] __attribute__((aligned(64)));
    struct built_node alone;
    struct reduce_layout layout;
    reduce_rows_of(level, dtype, x, n_rows, n, together);
    reduce_layout_init(&layout, &b.program, 0, (uint64_t)n_rows);
    for (int64_t row = 0; row < n_rows; row++) {
        const char *at = x + row * n * (int64_t)dtype_size(dtype);
        reduce_rows_of(CPU_LEVEL_PLAIN, dtype, at, 1, n,
                       &alone); /* it has no kernel for short rows */
        struct reduce_layout one;
        reduce_layout_init(&one, &b.program, 0, 1);
        for (unsigned i = 0; i < n_reductions; i++) {
            const struct reduction *reduction = &layout.reductions[i];
            for (unsigned plane = 0; plane < reduce_n_planes(reduction); plane++) {
                size_t item = dtype_size(reduce_plane_dtype(reduction, plane));
                const char *got = reduce_plane(&layout, together, i, plane);
                const void *wanted = reduce_plane(&one, &alone, i, plane);
                double as_doubles[2] = {0};
                memcpy(&as_doubles[0], got + (size_t)row * item, item);
                memcpy(&as_doubles[1], wanted, item);
                bool are_nan = item == 8 && isnan(as_doubles[0]) && isnan(as_doubles[1]);
                cr_assert(are_nan /* whose is not said */ ||
                              memcmp(got + (size_t)row * item, wanted, item) == 0,
                          "level %d, row %d of %d of %d elements, reduction %u", (int)level,
                          (int)row, (int)n_rows, (int)n, i);
            }
        }
    }
}

/* A row that is short goes with others. */
Test(reductions, of_a_row_have_the_same_bits_among_others_as_alone)
{
    static const double specials[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e38, -3};
    static const int64_t rows[] = {7, 8, 31, 64, 65, 77},
                         lengths[] = {1,  2,  8,  15, 16,  17,  20,  23,  31,  32,
                                      40, 63, 64, 65, 100, 127, 128, 129, 256, 257};
    static double y[77 * 257];
    static float x[77 * 257];
    static uint8_t truths[77 * 257];
    for (unsigned k = 0; k < 6 * 20 * 4 * 2; k++) {
        int64_t n_rows = rows[k / 8 % 6], n = lengths[k / 48];
        size_t n_all = (size_t)(n_rows * n);
        level = (enum cpu_level)(k % 4);
        for (size_t i = 0; i < n_all; i++)
            y[i] = ldexp(sin((double)(i + k)), (int)(i * 7 % 13)) + (k / 4 % 2 ? 1e4 : 0);
        for (unsigned i = 0; k / 4 % 2 && i < 8; i++)
            y[i * 977 % n_all] = specials[i % 7];
        for (size_t i = 0; i < n_all; i++) {
            x[i] = (float)y[i];
            truths[i] = i * k % 3 > 0 || k % 5 == 0;
        }
        built_init(&b);
        built_reduction(&b, OP_COUNT_NONZERO, DTYPE_INT64, built_input(&b, DTYPE_BOOL));
        check_rows_alone(DTYPE_BOOL, 1, (const char *)truths, n_rows, n);
        for (int is_wide = 0; is_wide < 2; is_wide++) {
            enum dtype dtype = is_wide ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
            const char *elements = is_wide ? (const char *)y : (const char *)x;
            built_init(&b);
            struct operand src = built_input(&b, dtype);
            built_reduction(&b, OP_MAX, dtype, src);
            built_reduction(&b, k % 3 ? OP_SQUARED_DEVIATIONS : OP_SUM, DTYPE_FLOAT64, src);
            built_reduction(&b, OP_MIN, dtype, src);
            check_rows_alone(dtype, 3, elements, n_rows, n);
            built_init(&b);
            src = built_input(&b, dtype);
            built_reduction(&b, k % 3 ? OP_SUM : OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, src);
            built_reduction(&b, OP_COUNT_NONZERO, DTYPE_INT64, src);
            check_rows_alone(dtype, 2, elements, n_rows, n);
        }
    }
}
