/* What each operation gives where C, processors and NumPy could differ, at every level. */
#include "tests/unit/kernels/cpu/builder.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#define EACH_LEVEL(level)                                                                          \
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)                          \
        if (cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level)

static struct built b;
static struct engine_warnings warnings;

/* out[i] = op(x[i], y[i]), all of one computing dtype; y may be NULL. */
static int apply(int level, enum op op, enum dtype compute, enum dtype result, size_t n,
                 const void *x, const void *y, void *out)
{
    struct operand none = {0};
    built_init(&b);
    struct operand a = built_input(&b, compute);
    struct operand c = y ? built_input(&b, compute) : none;
    built_store(&b, built_insn(&b, op, compute, result, 0, a, c, none));
    return run_flat(cpu_engine_get((enum cpu_level)level), &b, n, (const void *[]){x, y},
                    (void *[]){out}, NULL, &warnings);
}

Test(engine, never_gives_a_higher_level_than_asked_for)
{
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        cr_assert(le(int, cpu_engine_level(cpu_engine_get((enum cpu_level)level)), level));
    cr_assert(eq(int, cpu_engine_level(cpu_engine_get(CPU_LEVEL_PLAIN)), CPU_LEVEL_PLAIN));
#if !defined(__SANITIZE_ADDRESS__) /* which builds fewer levels */
    cr_assert(eq(int, cpu_engine_level(cpu_engine_get(CPU_LEVEL_BASELINE)), CPU_LEVEL_BASELINE));
#endif
}

Test(engine, names_its_levels)
{
    cr_assert(zero(int, strcmp(cpu_level_name(CPU_LEVEL_PLAIN), "plain")));
    cr_assert(zero(int, strcmp(cpu_level_name(CPU_LEVEL_BASELINE), "baseline")));
    cr_assert(zero(int, strcmp(cpu_level_name(CPU_LEVEL_AVX2), "avx2")));
    cr_assert(zero(int, strcmp(cpu_level_name(CPU_LEVEL_AVX512), "avx512")));
    cr_assert(zero(int, strcmp(cpu_level_name((enum cpu_level)9), "unknown")));
}

#define DIVISION_TEST(name, T, id, type, least)                                                    \
    Test(engine, divides_##name##_by_zero_and_by_minus_one)                                        \
    {                                                                                              \
        T x[] = {7, -7, 7, -7, 0, least, least, 5, least};                                         \
        T y[] = {2, 2, -2, -2, 3, -1, 0, 0, 1};                                                    \
        T quotients[] = {3, -4, -4, 3, 0, least, 0, 0, least};                                     \
        T remainders[] = {1, 1, -1, -1, 0, 0, 0, 0, 0};                                            \
        EACH_LEVEL(level)                                                                          \
        {                                                                                          \
            T out[9];                                                                              \
            cr_assert(zero(int, apply(level, OP_FLOOR_DIVIDE, id, id, 9, x, y, out)));             \
            for (int i = 0; i < 9; i++)                                                            \
                cr_assert(eq(type, out[i], quotients[i]), "element %d", i);                        \
            cr_assert(eq(u64, warnings.n_divide_by_zero, 2));                                      \
            cr_assert(zero(int, apply(level, OP_REMAINDER, id, id, 9, x, y, out)));                \
            for (int i = 0; i < 9; i++)                                                            \
                cr_assert(eq(type, out[i], remainders[i]), "element %d", i);                       \
            cr_assert(eq(u64, warnings.n_divide_by_zero, 2));                                      \
        }                                                                                          \
    }
DIVISION_TEST(int8, int8_t, DTYPE_INT8, i8, INT8_MIN)
DIVISION_TEST(int16, int16_t, DTYPE_INT16, i16, INT16_MIN)
DIVISION_TEST(int32, int32_t, DTYPE_INT32, i32, INT32_MIN)
DIVISION_TEST(int64, int64_t, DTYPE_INT64, i64, INT64_MIN)

/* All pairs of 8 bits, and pairs around every power of two of wider types. */
Test(engine, divides_every_pair_of_small_integers_exactly)
{
    static int8_t x[65536], y[65536], q[65536], r[65536];
    for (int i = 0; i < 65536; i++) {
        x[i] = (int8_t)(i & 0xff);
        y[i] = (int8_t)(i >> 8);
    }
    EACH_LEVEL(level)
    {
        cr_assert(zero(int, apply(level, OP_FLOOR_DIVIDE, DTYPE_INT8, DTYPE_INT8, 65536, x, y, q)));
        cr_assert(zero(int, apply(level, OP_REMAINDER, DTYPE_INT8, DTYPE_INT8, 65536, x, y, r)));
        for (int i = 0; i < 65536; i++) {
            int floored = y[i] ? (int)floor((double)x[i] / y[i]) : 0;
            cr_assert(eq(i8, q[i], (int8_t)floored), "%d // %d", x[i], y[i]);
            cr_assert(eq(i8, r[i], (int8_t)(y[i] ? x[i] - floored * y[i] : 0)));
        }
    }
}

Test(engine, divides_integers_at_the_edge_of_a_double_exactly)
{
    static uint32_t x[33 * 32 * 9], y[33 * 32 * 9], out[33 * 32 * 9];
    size_t n = 0;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++)
            for (int d = 0; d < 9; d++, n++) {
                x[n] = (1u << i) - 1 + (unsigned)(d % 3);
                y[n] = (1u << j) - 1 + (unsigned)(d / 3);
            }
    EACH_LEVEL(level)
    {
        cr_assert(
            zero(int, apply(level, OP_FLOOR_DIVIDE, DTYPE_UINT32, DTYPE_UINT32, n, x, y, out)));
        for (size_t i = 0; i < n; i++)
            cr_assert(eq(u32, out[i], y[i] ? x[i] / y[i] : 0), "%u // %u", x[i], y[i]);
    }
}

Test(engine, counts_warnings_over_the_elements_alone)
{
    uint8_t x[100], y[100] = {0}, out[128];
    memset(x, 1, sizeof(x));
    EACH_LEVEL(level)
    for (size_t n = 1; n <= 100; n++) {
        cr_assert(zero(int, apply(level, OP_REMAINDER, DTYPE_UINT8, DTYPE_UINT8, n, x, y, out)));
        cr_assert(eq(u64, warnings.n_divide_by_zero, n));
    }
}

Test(engine, floor_divides_floats_as_numpy)
{
    double x[] = {7, -7, 7, -7, -0.0, 0.0, 5, -5, 0, INFINITY, -1, 1, 1, NAN, -1, 0.3};
    double y[] = {2, 2, -2, -2, 1, -1, 0, 0, 0, 1, INFINITY, INFINITY, NAN, 1, -INFINITY, 0.1};
    double q[] = {3, -4, -4, 3, -0.0, -0.0, INFINITY, -INFINITY, NAN, NAN, -1, 0, NAN, NAN, 0, 2};
    double r[] = {1,   1,   -1,       -1, 0.0, -0.0, NAN, NAN,
                  NAN, NAN, INFINITY, 1,  NAN, NAN,  -1,  0.3 - 2 * 0.1};
    r[15] = fmod(0.3, 0.1);
    double out[16];
    EACH_LEVEL(level)
    {
        cr_assert(
            zero(int, apply(level, OP_FLOOR_DIVIDE, DTYPE_FLOAT64, DTYPE_FLOAT64, 16, x, y, out)));
        for (int i = 0; i < 16; i++) {
            bool is_same =
                isnan(q[i]) ? isnan(out[i]) : out[i] == q[i] && !signbit(out[i]) == !signbit(q[i]);
            cr_assert(is_same, "%g // %g is %g", x[i], y[i], out[i]);
        }
        cr_assert(
            zero(int, apply(level, OP_REMAINDER, DTYPE_FLOAT64, DTYPE_FLOAT64, 16, x, y, out)));
        for (int i = 0; i < 16; i++) {
            bool is_same =
                isnan(r[i]) ? isnan(out[i]) : out[i] == r[i] && !signbit(out[i]) == !signbit(r[i]);
            cr_assert(is_same, "%g %% %g is %g", x[i], y[i], out[i]);
        }
        cr_assert(zero(u64, warnings.n_divide_by_zero));
    }
}

Test(engine, shifts_beyond_the_width_give_zero_or_the_sign)
{
    int32_t x[] = {1, -8, -8, 5, -1, 1, -8};
    int32_t y[] = {31, 1, 32, 33, -1, INT32_MIN, 31};
    int32_t left[] = {INT32_MIN, -16, 0, 0, 0, 0, 0};
    int32_t right[] = {0, -4, -1, 0, -1, 0, -1};
    int32_t out[7];
    EACH_LEVEL(level)
    {
        cr_assert(zero(int, apply(level, OP_LEFT_SHIFT, DTYPE_INT32, DTYPE_INT32, 7, x, y, out)));
        cr_assert(zero(int, memcmp(out, left, sizeof(out))));
        cr_assert(zero(int, apply(level, OP_RIGHT_SHIFT, DTYPE_INT32, DTYPE_INT32, 7, x, y, out)));
        cr_assert(zero(int, memcmp(out, right, sizeof(out))));
    }
}

Test(engine, integer_powers_wrap_and_refuse_negative_exponents)
{
    int16_t x[] = {2, 3, 0, -2, 7, 300}, y[] = {15, 9, 0, 3, 1, 2}, out[6];
    int16_t wanted[] = {INT16_MIN, 19683, 1, -8, 7, (int16_t)90000};
    cr_assert(zero(int, apply(CPU_LEVEL_PLAIN, OP_POWER, DTYPE_INT16, DTYPE_INT16, 6, x, y, out)));
    cr_assert(zero(int, memcmp(out, wanted, sizeof(out))));
    y[5] = -1;
    cr_assert(eq(int, apply(CPU_LEVEL_PLAIN, OP_POWER, DTYPE_INT16, DTYPE_INT16, 6, x, y, out),
                 GAD_NEGATIVE_POWER));
    cr_assert(zero(int, apply(CPU_LEVEL_PLAIN, OP_POWER, DTYPE_INT16, DTYPE_INT16, 5, x, y, out)));
}

Test(engine, casts_floats_by_one_rule)
{
    double x[] = {1.9,  -1.9,   NAN,      INFINITY, -INFINITY, 300.5,
                  -0.5, 0x1p63, 0x1.8p63, 0x1p64,   -0x1p63,   -1};
    int8_t bytes[] = {1, -1, 0, 0, 0, 44, 0, 0, 0, 0, 0, -1};
    uint64_t words[] = {
        1, UINT64_MAX,        (uint64_t)1 << 63, (uint64_t)1 << 63, (uint64_t)1 << 63, 300,
        0, (uint64_t)1 << 63, (uint64_t)3 << 62, (uint64_t)1 << 63, (uint64_t)1 << 63, UINT64_MAX};
    bool truths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    EACH_LEVEL(level)
    {
        int8_t got_bytes[12];
        uint64_t got_words[12];
        bool got_truths[12];
        cr_assert(
            zero(int, apply(level, OP_CAST, DTYPE_FLOAT64, DTYPE_INT8, 12, x, NULL, got_bytes)));
        cr_assert(zero(int, memcmp(got_bytes, bytes, sizeof(bytes))));
        cr_assert(eq(u64, warnings.n_invalid_casts, 8));
        cr_assert(
            zero(int, apply(level, OP_CAST, DTYPE_FLOAT64, DTYPE_UINT64, 12, x, NULL, got_words)));
        for (int i = 0; i < 12; i++)
            cr_assert(eq(u64, got_words[i], words[i]), "%g", x[i]);
        cr_assert(eq(u64, warnings.n_invalid_casts, 7));
        cr_assert(
            zero(int, apply(level, OP_CAST, DTYPE_FLOAT64, DTYPE_BOOL, 12, x, NULL, got_truths)));
        cr_assert(zero(int, memcmp(got_truths, truths, sizeof(truths))));
        cr_assert(zero(u64, warnings.n_invalid_casts));
    }
}

Test(engine, compares_int64_with_uint64_by_value)
{
    int64_t x[] = {-1, 5, INT64_MAX, 0};
    uint64_t y[] = {UINT64_MAX, 5, (uint64_t)1 << 63, 0};
    struct operand none = {0};
    EACH_LEVEL(level)
    for (int is_mirrored = 0; is_mirrored < 2; is_mirrored++) {
        uint8_t out[4], less[] = {1, 0, 1, 0}, none_less[] = {0, 0, 0, 0};
        built_init(&b);
        struct operand i = built_input(&b, DTYPE_INT64), u = built_input(&b, DTYPE_UINT64);
        built_store(&b, built_insn(&b, OP_LESS, DTYPE_INT64, DTYPE_BOOL, 0, is_mirrored ? u : i,
                                   is_mirrored ? i : u, none));
        cr_assert(zero(int, run_flat(cpu_engine_get((enum cpu_level)level), &b, 4,
                                     (const void *[]){x, y}, (void *[]){out}, NULL, &warnings)));
        cr_assert(zero(int, memcmp(out, is_mirrored ? none_less : less, 4)));
    }
}

Test(engine, extremes_propagate_nan)
{
    float x[] = {NAN, 1, 2, NAN}, y[] = {1, NAN, 3, NAN}, out[4];
    EACH_LEVEL(level)
    {
        cr_assert(zero(int, apply(level, OP_MINIMUM, DTYPE_FLOAT32, DTYPE_FLOAT32, 4, x, y, out)));
        cr_assert(isnan(out[0]) && isnan(out[1]) && isnan(out[3]));
        cr_assert(eq(flt, out[2], 2));
        cr_assert(zero(int, apply(level, OP_MAXIMUM, DTYPE_FLOAT32, DTYPE_FLOAT32, 4, x, y, out)));
        cr_assert(isnan(out[0]) && isnan(out[1]) && isnan(out[3]));
        cr_assert(eq(flt, out[2], 3));
    }
}

Test(engine, reads_any_byte_but_zero_as_true)
{
    uint8_t x[] = {0, 1, 2, 255, 2}, y[] = {0, 2, 1, 4, 0}, out[5];
    struct {
        enum op op;
        uint8_t wanted[5];
    } cases[] = {{OP_BITWISE_AND, {0, 1, 1, 1, 0}}, {OP_BITWISE_XOR, {0, 0, 0, 0, 1}},
                 {OP_BITWISE_OR, {0, 1, 1, 1, 1}},  {OP_EQUAL, {1, 1, 1, 1, 0}},
                 {OP_INVERT, {1, 0, 0, 0, 0}},      {OP_CAST, {0, 1, 1, 1, 1}}};
    EACH_LEVEL(level)
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        bool is_unary = cases[i].op == OP_INVERT || cases[i].op == OP_CAST;
        cr_assert(zero(int, apply(level, cases[i].op, DTYPE_BOOL, DTYPE_BOOL, 5, x,
                                  is_unary ? NULL : y, out)));
        cr_assert(zero(int, memcmp(out, cases[i].wanted, 5)), "case %zu", i);
    }
}

Test(engine, least_integers_stay_what_they_are)
{
    int8_t x[] = {INT8_MIN, -5, 5}, out[3];
    int8_t absolute[] = {INT8_MIN, 5, 5}, negative[] = {INT8_MIN, 5, -5};
    EACH_LEVEL(level)
    {
        cr_assert(zero(int, apply(level, OP_ABSOLUTE, DTYPE_INT8, DTYPE_INT8, 3, x, NULL, out)));
        cr_assert(zero(int, memcmp(out, absolute, 3)));
        cr_assert(zero(int, apply(level, OP_NEGATIVE, DTYPE_INT8, DTYPE_INT8, 3, x, NULL, out)));
        cr_assert(zero(int, memcmp(out, negative, 3)));
    }
}

Test(engine, refuses_what_no_compiler_makes)
{
    double x[] = {1}, out[1];
    cr_assert(
        eq(int, apply(CPU_LEVEL_PLAIN, OP_SQRT, DTYPE_INT8, DTYPE_INT8, 1, x, NULL, out), -EINVAL));
    cr_assert(eq(int, apply(CPU_LEVEL_AVX2, OP_MEAN, DTYPE_FLOAT64, DTYPE_FLOAT64, 1, x, NULL, out),
                 -EINVAL));
    struct operand none = {0}, missing = {OPERAND_CONST, DTYPE_INT8, 3};
    built_init(&b);
    built_store(&b, built_insn(&b, OP_NEGATIVE, DTYPE_INT8, DTYPE_INT8, 0, missing, none, none));
    cr_assert(
        eq(int,
           run_flat(cpu_engine_get(CPU_LEVEL_PLAIN), &b, 1, NULL, (void *[]){out}, NULL, &warnings),
           -EINVAL));
}
