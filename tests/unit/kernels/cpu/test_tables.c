/* Looking values up in tables, and floats as ordered keys, at all levels. */
#include "tests/unit/kernels/cpu/check/check.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N         1000
#define MAX_TABLE 300

static struct built b;
static char sources[N * 8], table[MAX_TABLE * 8];

/* dst = op(x, table) over n elements, beside them a margin that must stay. */
static void look_up(int level, enum op op, enum dtype x, enum dtype entry, size_t length,
                    enum dtype result, size_t n, bool is_past_cache, char *ret_values)
{
    static char to[N * 8 + 128] __attribute__((aligned(64)));
    struct engine_warnings warnings = {0};
    struct operand looked_up = {OPERAND_TABLE, (uint8_t)entry, 0}, none = {0};
    built_init(&b);
    struct operand source = built_input(&b, x);
    built_store(&b, built_insn(&b, op, x, result, 0, source, looked_up, none));
    /* The table is the result of a pass that this program does not run. */
    b.program.n_reductions = 1;
    b.program.reductions[0] = (struct reduction){.op = OP_MAX, .result = (uint8_t)entry, .pass = 1};
    b.program.passes[1] = (struct pass){
        .ndim = 2, .shape = {1, (int64_t)length}, .reduced_axes = 1, .scanned_axis = -1};
    b.program.passes[0].tables_used = 1;
    struct engine_view input = {.base = sources, .strides = {(int64_t)dtype_size(x)}};
    struct engine_view output = {
        .base = to, .strides = {(int64_t)dtype_size(result)}, .bypasses_cache = is_past_cache};
    struct engine_view reduced = {.base = table};
    int64_t count = (int64_t)n;
    struct engine_box box = {.ndim = 1, .count = &count, .axis_order = (const int[]){0}};
    memset(to, 0x5a, sizeof(to));
    cr_assert(
        zero(int, cpu_engine_run(cpu_engine_get((enum cpu_level)level), &b.program, 0, &box, &input,
                                 &output, &reduced, NULL, NULL, &warnings, test_scratch())));
    cpu_engine_fence();
    size_t n_bytes = n * dtype_size(result);
    for (size_t i = n_bytes; i < sizeof(to); i++)
        cr_assert(eq(int, to[i], 0x5a), "byte %zu behind the output", i - n_bytes);
    memcpy(ret_values, to, n_bytes);
}

/* NumPy's order: NaN is the largest. */
static int compare_f64(const void *a, const void *b_)
{
    double x = *(const double *)a, y = *(const double *)b_;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

static int compare_i64(const void *a, const void *b_)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b_;
    return (x > y) - (x < y);
}

static int compare_u64(const void *a, const void *b_)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b_;
    return (x > y) - (x < y);
}

typedef int compare_fn(const void *, const void *);

static compare_fn *comparison_of(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT64 ? compare_f64 : dtype == DTYPE_INT64 ? compare_i64 : compare_u64;
}

static void check_search(enum op op, enum dtype dtype, size_t length)
{
    static int64_t found[N];
    compare_fn *compare = comparison_of(dtype);
    check_fill(table, dtype, length, check_below(2));
    for (size_t i = 0; i < length / 3; i++) /* equal ones */
        memcpy(table + 8 * check_below(length), table + 8 * check_below(length), 8);
    qsort(table, length, 8, compare);
    check_fill(sources, dtype, N, check_below(2));
    for (size_t i = 0; i < N && length > 0; i += 2)
        memcpy(sources + 8 * i, table + 8 * check_below(length), 8);
    size_t n = N - check_below(100);
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        look_up(level, op, dtype, dtype, length, DTYPE_INT64, n, level % 2, (char *)found);
        for (size_t i = 0; i < n; i++) {
            int64_t wanted = 0;
            for (size_t k = 0; k < length; k++) {
                int order = compare(table + 8 * k, sources + 8 * i);
                wanted += op == OP_SEARCH_LEFT ? order < 0 : order <= 0;
            }
            cr_assert(eq(i64, found[i], wanted), "%s of %s, %zu elements, level %d, element %zu",
                      op_info(op)->name, dtype_name(dtype), length, level, i);
        }
    }
}

Test(tables, are_searched_as_numpy_does)
{
    static const enum dtype dtypes[] = {DTYPE_FLOAT64, DTYPE_INT64, DTYPE_UINT64};
    static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 100, 255, 256, 257, MAX_TABLE};
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < 11; i++)
            for (int side = 0; side < 2; side++)
                check_search(side ? OP_SEARCH_RIGHT : OP_SEARCH_LEFT, dtypes[d], lengths[i]);
}

Test(tables, that_are_in_no_order_give_some_number_in_range)
{
    static int64_t found[N];
    check_fill(table, DTYPE_FLOAT64, MAX_TABLE, false);
    check_fill(sources, DTYPE_FLOAT64, N, false);
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        look_up(level, OP_SEARCH_RIGHT, DTYPE_FLOAT64, DTYPE_FLOAT64, 77, DTYPE_INT64, N, false,
                (char *)found);
        for (int i = 0; i < N; i++)
            cr_assert(all(ge(i64, found[i], 0), le(i64, found[i], 77)));
    }
}

Test(tables, are_taken_from_and_indices_outside_take_the_nearest)
{
    static char taken[N * 8];
    static const size_t lengths[] = {1, 2, 100, MAX_TABLE};
    int64_t *indices = (int64_t *)sources;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        size_t item_bytes = dtype_size((enum dtype)d), length = lengths[d % 4];
        check_fill(table, (enum dtype)d, length, false);
        for (int i = 0; i < N; i++)
            indices[i] = i % 5 ? (int64_t)check_below(length) : (int64_t)check_random() >> (i % 60);
        for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
            look_up(level, OP_TAKE, DTYPE_INT64, (enum dtype)d, length, (enum dtype)d, N - 9 * 7,
                    level % 2, taken);
            for (int i = 0; i < N - 9 * 7; i++) {
                int64_t k = indices[i] < 0                  ? 0
                            : indices[i] >= (int64_t)length ? (int64_t)length - 1
                                                            : indices[i];
                cr_assert(zero(int, memcmp(taken + (size_t)i * item_bytes,
                                           table + (size_t)k * item_bytes, item_bytes)),
                          "%s, level %d, index %lld", dtype_name((enum dtype)d), level,
                          (long long)indices[i]);
            }
        }
    }
}

static void run_unary(int level, enum op op, enum dtype from, enum dtype to, const void *x, void *y)
{
    struct engine_warnings warnings;
    struct operand none = {0};
    built_init(&b);
    struct operand source = built_input(&b, from);
    built_store(&b, built_insn(&b, op, from, to, 0, source, none, none));
    cr_assert(zero(int, run_flat(cpu_engine_get((enum cpu_level)level), &b, N, (const void *[]){x},
                                 (void *[]){y}, NULL, &warnings)));
}

static double float_at(const void *x, enum dtype dtype, int i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static uint64_t key_at(const void *keys, enum dtype dtype, int i)
{
    return dtype == DTYPE_FLOAT32 ? ((const uint32_t *)keys)[i] : ((const uint64_t *)keys)[i];
}

Test(tables, keys_have_the_order_of_their_floats)
{
    static char keys[N * 8], back[N * 8];
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        for (int is_double = 0; is_double < 2; is_double++) {
            enum dtype dtype = is_double ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
            enum dtype key = is_double ? DTYPE_UINT64 : DTYPE_UINT32;
            check_fill(sources, dtype, N, false);
            run_unary(level, OP_ORDERED_KEY, dtype, key, sources, keys);
            run_unary(level, OP_FROM_ORDERED_KEY, key, dtype, keys, back);
            for (int i = 0; i < N; i++) {
                double x = float_at(sources, dtype, i), z = float_at(back, dtype, i);
                cr_assert(isnan(x) ? isnan(z) && !signbit(z) : x == z && !(x == 0 && signbit(z)));
                for (int k = 0; k < i; k += 1 + i / 50) {
                    double y = float_at(sources, dtype, k);
                    uint64_t p = key_at(keys, dtype, i), q = key_at(keys, dtype, k);
                    cr_assert(eq(int, (p > q) - (p < q), compare_f64(&x, &y)), "%.17g and %.17g", x,
                              y);
                }
            }
        }
    }
}

Test(tables, keys_of_nan_are_the_largest_number)
{
    static float nans[N];
    static uint32_t keys[N];
    for (int i = 0; i < N; i++)
        nans[i] = i % 2 ? NAN : -NAN;
    run_unary(CPU_LEVEL_AVX512, OP_ORDERED_KEY, DTYPE_FLOAT32, DTYPE_UINT32, nans, keys);
    for (int i = 0; i < N; i++)
        cr_assert(eq(u32, keys[i], UINT32_MAX));
}
