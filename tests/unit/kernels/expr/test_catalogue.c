/* Dtypes of the catalogue's functions, over all dtypes: the tables are what numpy 2.4 answers, and
 * scipy 1.17 for erf, gamma and their like, with float32 where numpy has float16.
 *
 * A letter is the result's dtype as numpy.dtype.char has it, - a refusal; columns are the dtypes of
 * the (second) argument, then the numbers True, 2 and 2.5.
 */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define N_ARGUMENTS (DTYPE_COUNT + 3)

static const char *const arguments[N_ARGUMENTS] = {"b",  "i1", "i2", "i4", "i8",   "u1", "u2",
                                                   "u4", "u8", "f4", "f8", "True", "2",  "2.5"};
static const char letters[] = "?bhilBHILfd";

/* The next of the names that spaces separate; NULL: there is none. */
static const char *next_name(const char *names, int *n_chars)
{
    names += strspn(names, " ");
    *n_chars = (int)strcspn(names, " ");
    return *n_chars > 0 ? names : NULL;
}

static bool has_two_results(const char *name, int n_chars)
{
    return op_info(op_find(name, (size_t)n_chars))->n_results == 2;
}

static void check(struct fixture *f, const char *expr, char want)
{
    char got[2] = "-", wanted[2] = {want};
    if (fixture_compile(f, expr) == 0)
        got[0] = letters[f->program->outputs[0].dtype];
    cr_expect(eq(str, got, wanted), "%s: %s", expr, f->error.message);
}

Test(expr_catalogue, functions_of_one_argument_have_numpys_dtypes)
{
    static const struct {
        const char *names, *results;
    } rows[] = {
        {"abs ceil fix floor nan_to_num trunc clip absolute", "?bhilBHILfd"},
        {"bitwise_count", "BBBBBBBBB--"},
        {"cbrt cos deg2rad exp2 fabs frexp log1p modf rad2deg rint sin spacing sqrt tan exp expm1 "
         "log log2 log10 arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh "
         "radians degrees asin",
         "fffddffddfd"},
        {"isfinite isinf isnan isneginf isposinf logical_not signbit", "???????????"},
        {"positive sign", "-bhilBHILfd"},
        {"reciprocal square", "bbhilBHILfd"},
        {"round around", "fbhilBHILfd"},
        {"sinc erf erfc gamma lgamma gammaln expit logit", "dddddddddfd"},
    };
    struct fixture *f = fixture_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n;
        for (const char *name = next_name(rows[i].names, &n); name; name = next_name(name + n, &n))
            for (int d = 0; d < DTYPE_COUNT; d++) {
                char expr[64];
                snprintf(expr, sizeof(expr), "%.*s(%s)%s", n, name, arguments[d],
                         has_two_results(name, n) ? "[0]" : "");
                bool is_clip_of_bool = memcmp(name, "clip", 4) == 0 && d == DTYPE_BOOL;
                check(f, expr, is_clip_of_bool ? '-' : rows[i].results[d]);
            }
    }
    fixture_free(f);
}

Test(expr_catalogue, functions_of_two_arguments_have_numpys_dtypes)
{
    static const struct {
        const char *names, *results[DTYPE_COUNT];
    } rows[] = {
        {"arctan2 copysign heaviside hypot logaddexp logaddexp2 nextafter atan2",
         {"fffddffddfdfdd", "fffddffddfdffd", "fffddffddfdffd", "dddddddddddddd", "dddddddddddddd",
          "fffddffddfdffd", "fffddffddfdffd", "dddddddddddddd", "dddddddddddddd", "fffddffddfdfff",
          "dddddddddddddd"}},
        {"bitwise_and bitwise_or bitwise_xor",
         {"?bhilBHIL--?l-", "bbhilhil---bb-", "hhhilhil---hh-", "iiiiliil---ii-", "llllllll---ll-",
          "BhhilBHIL--BB-", "HiiilHHIL--HH-", "IllllIIIL--II-", "L----LLLL--LL-", "--------------",
          "--------------"}},
        {"divmod floor_divide fmod power remainder mod",
         {"bbhilBHILfdbld", "bbhilhildfdbbd", "hhhilhildfdhhd", "iiiiliildddiid", "lllllllldddlld",
          "BhhilBHILfdBBd", "HiiilHHILfdHHd", "IllllIIILddIId", "LddddLLLLddLLd", "fffddffddfdfff",
          "dddddddddddddd"}},
        {"equal isclose less logical_and logical_or logical_xor not_equal greater",
         {"??????????????", "??????????????", "??????????????", "??????????????", "??????????????",
          "??????????????", "??????????????", "??????????????", "??????????????", "??????????????",
          "??????????????"}},
        {"float_power",
         {"dddddddddddddd", "dddddddddddddd", "dddddddddddddd", "dddddddddddddd", "dddddddddddddd",
          "dddddddddddddd", "dddddddddddddd", "dddddddddddddd", "dddddddddddddd", "dddddddddddddd",
          "dddddddddddddd"}},
        {"fmax fmin maximum minimum multiply add",
         {"?bhilBHILfd?ld", "bbhilhildfdbbd", "hhhilhildfdhhd", "iiiiliildddiid", "lllllllldddlld",
          "BhhilBHILfdBBd", "HiiilHHILfdHHd", "IllllIIILddIId", "LddddLLLLddLLd", "fffddffddfdfff",
          "dddddddddddddd"}},
        {"gcd lcm",
         {"-bhilBHIL---l-", "bbhilhil---bb-", "hhhilhil---hh-", "iiiiliil---ii-", "llllllll---ll-",
          "BhhilBHIL--BB-", "HiiilHHIL--HH-", "IllllIIIL--II-", "L----LLLL--LL-", "--------------",
          "--------------"}},
        {"ldexp",
         {"ffffffff---ff-", "ffffffff---ff-", "ffffffff---ff-", "dddddddd---dd-", "dddddddd---dd-",
          "ffffffff---ff-", "ffffffff---ff-", "dddddddd---dd-", "dddddddd---dd-", "ffffffff---ff-",
          "dddddddd---dd-"}},
        {"left_shift right_shift",
         {"bbhilBHIL--bl-", "bbhilhil---bb-", "hhhilhil---hh-", "iiiiliil---ii-", "llllllll---ll-",
          "BhhilBHIL--BB-", "HiiilHHIL--HH-", "IllllIIIL--II-", "L----LLLL--LL-", "--------------",
          "--------------"}},
        {"subtract",
         {"-bhilBHILfd-ld", "bbhilhildfdbbd", "hhhilhildfdhhd", "iiiiliildddiid", "lllllllldddlld",
          "BhhilBHILfdBBd", "HiiilHHILfdHHd", "IllllIIILddIId", "LddddLLLLddLLd", "fffddffddfdfff",
          "dddddddddddddd"}},
    };
    struct fixture *f = fixture_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n;
        for (const char *name = next_name(rows[i].names, &n); name; name = next_name(name + n, &n))
            for (int a = 0; a < DTYPE_COUNT; a++)
                for (int b = 0; b < N_ARGUMENTS; b++) {
                    char expr[64];
                    snprintf(expr, sizeof(expr), "%.*s(%s, %s)%s", n, name, arguments[a],
                             arguments[b], has_two_results(name, n) ? "[1]" : "");
                    check(f, expr, rows[i].results[a][b]);
                }
    }
    fixture_free(f);
}

Test(expr_catalogue, numbers_alone_are_arrays_as_in_numpy)
{
    static const struct expected cases[] = {
        {"hypot(2, 3)", "float64 ()"},       {"hypot(True, True)", "float32 ()"},
        {"fabs(2)", "float64 ()"},           {"round(2)", "int64 ()"},
        {"round(2.5)", "float64 ()"},        {"clip(5, f4, f4)", "float64 (3, 4)"},
        {"clip(5, i1, i1)", "int64 (3, 4)"}, {"ldexp(2, i1)", "float32 (3, 4)"},
        {"ldexp(2, b)", "float64 (3, 4)"},   {"ldexp(2.5, i1)", "float64 (3, 4)"},
        {"ldexp(2, 3)", "float64 ()"},       {"nan_to_num(2)", "int64 ()"},
        {"isclose(2, 2.0)", "bool ()"},      {"logical_and(2, 0.5)", "bool ()"},
        {"gcd(12, 18)", "int64 ()"},         {"divmod(7, 2.0)[1]", "float64 ()"},
        {"frexp(8)[1]", "int32 ()"},         {"frexp(f8)[1]", "int32 (3, 4)"},
        {"modf(i4)[1]", "float64 (3, 4)"},   {"sinc(2)", "float64 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_catalogue, choices_and_limits_have_one_dtype_in_common)
{
    static const struct expected cases[] = {
        {"select([b], [i1])", "int8 (3, 4)"},
        {"select([b], [i1], 2.5)", "float64 (3, 4)"},
        {"select([b, ~b], [i1, f4], default=1)", "float32 (3, 4)"},
        {"select([b, ~b], [i2, u2], f4)", "float32 (3, 4)"}, /* not pairwise */
        {"select([b, ~b], [i1, 1.5], f4)", "float32 (3, 4)"},
        {"select([b], [2])", "int64 (3, 4)"},
        {"select([b], [b])", "int64 (3, 4)"},
        {"select([b], [b], False)", "bool (3, 4)"},
        {"select([b], [i8], u8)", "float64 (3, 4)"},
        {"select([True], [row], column)", "float64 (3, 4)"},
        {"clip(i1, i2, f4)", "float32 (3, 4)"},
        {"clip(i2, u2, f4)", "float32 (3, 4)"},
        {"clip(i1, 0.5, 2)", "float64 (3, 4)"},
        {"clip(f4, 0.5, 2)", "float32 (3, 4)"},
        {"clip(b, 0, 1)", "int64 (3, 4)"},
        {"clip(b, True, False)", "bool (3, 4)"},
        {"clip(u1, None, i1)", "int16 (3, 4)"},
        {"clip(i1, -1000, 1000)", "int8 (3, 4)"},
        {"clip(i1, 1000, 2000)",
         "bad-expression: column 10: the number 1000 is out of bounds for int8 (-128 to 127)"},
        {"clip(row, min=column)", "float64 (3, 4)"},
        {"isclose(row, column, atol=f4)", "bool (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}
