/* Operations that engines do not have, written with those that they have; what is folded; and casts
 * at their latest place.
 */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

struct lowering {
    const char *expr, *program; /* without its inputs and the heading of its pass */
};

static void check_all(const struct lowering *cases, size_t n)
{
    struct fixture *f = fixture_new();
    for (size_t i = 0; i < n; i++) {
        cr_expect(eq(int, fixture_compile(f, cases[i].expr), 0), "%s: %s", cases[i].expr,
                  f->error.message);
        const char *pass = strstr(f->text, "register"), *body = pass ? strchr(pass, '\n') : NULL;
        cr_expect(eq(str, (char *)(body ? body + 1 : "none"), (char *)cases[i].program), "%s",
                  cases[i].expr);
    }
    fixture_free(f);
}

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof((cases)[0]))

Test(expr_lowering, of_arithmetic)
{
    static const struct lowering cases[] = {
        {"positive(f4)", "  out0 = in0 (float32)\n"},
        {"+i1", "  out0 = in0 (int8)\n"},
        {"reciprocal(f4)", "  r0 = divide.float32 1 in0\n  out0 = r0 (float32)\n"},
        {"reciprocal(i4)", "  r0 = reciprocal.int32 in0\n  out0 = r0 (int32)\n"},
        {"reciprocal(b)", "  r0 = int8.bool in0\n  r0 = reciprocal.int8 r0\n  out0 = r0 (int8)\n"},
        {"sign(u2)", "  r0 = sign.uint16 in0\n  out0 = r0 (uint16)\n"},
        {"fmin(i1, i1 + 1)", "  r0 = add.int8 in0 1\n  r0 = minimum.int8 in0 r0\n"
                             "  out0 = r0 (int8)\n"},
        {"fmax(b, b)", "  r0 = bitwise_or.bool in0 in0\n  out0 = r0 (bool)\n"},
        {"fmax(f4, 0)", "  r0 = fmax.float32 in0 0\n  out0 = r0 (float32)\n"},
        {"fmod(b, b)", "  r0 = int8.bool in0\n  r0 = fmod.int8 r0 r0\n  out0 = r0 (int8)\n"},
        {"fabs(u1)", "  r0 = float32.uint8 in0\n  out0 = r0 (float32)\n"},
        {"fabs(i4)",
         "  r0 = float64.int32 in0\n  r0 = absolute.float64 r0\n  out0 = r0 (float64)\n"},
        {"float_power(f4, 2)",
         "  r0 = float64.float32 in0\n  r0 = square.float64 r0\n  out0 = r0 (float64)\n"},
        {"float_power(f8, 0.5)", "  r0 = power.float64 in0 0.5\n  out0 = r0 (float64)\n"},
        {"deg2rad(f8)",
         "  r0 = multiply.float64 in0 0.017453292519943295\n  out0 = r0 (float64)\n"},
        {"rad2deg(f4)", "  r0 = multiply.float32 in0 57.2957764\n  out0 = r0 (float32)\n"},
        {"logical_and(i1, f4)", "  r0 = bool.int8 in0\n  r1 = bool.float32 in1\n"
                                "  r0 = bitwise_and.bool r0 r1\n  out0 = r0 (bool)\n"},
        {"logical_xor(b, 1)", "  r0 = bitwise_xor.bool in0 True\n  out0 = r0 (bool)\n"},
        {"logical_not(u8)", "  r0 = bool.uint64 in0\n  r0 = invert.bool r0\n  out0 = r0 (bool)\n"},
        {"bitwise_count(i4)", "  r0 = bitwise_count.int32 in0\n  out0 = r0 (uint8)\n"},
        {"bitwise_count(b)", "  r0 = uint8.bool in0\n  out0 = r0 (uint8)\n"},
        {"signbit(i2)", "  r0 = less.int16 in0 0\n  out0 = r0 (bool)\n"},
        {"signbit(u2)", "  out0 = False (bool)\n"},
        {"signbit(f4)", "  r0 = signbit.float32 in0\n  out0 = r0 (bool)\n"},
        {"isposinf(i8)", "  out0 = False (bool)\n"},
        {"frexp(f4)[0]", "  r0 = frexp.float32 in0\n  out0 = r0 (float32)\n"},
        {"frexp(f4)[1]", "  r0 = frexp exponent.float32 in0\n  out0 = r0 (int32)\n"},
        {"modf(i2)[0]", "  r0 = float32.int16 in0\n  r0 = modf.float32 r0\n"
                        "  out0 = r0 (float32)\n"},
        {"modf(i2)[1]", "  r0 = float32.int16 in0\n  out0 = r0 (float32)\n"},
    };
    CHECK_ALL(cases);
}

Test(expr_lowering, of_rounding)
{
    static const struct lowering cases[] = {
        {"round(f8)", "  r0 = rint.float64 in0\n  out0 = r0 (float64)\n"},
        {"round(f4, 2)", "  r0 = multiply.float32 in0 100\n  r0 = rint.float32 r0\n"
                         "  r0 = divide.float32 r0 100\n  out0 = r0 (float32)\n"},
        {"round(f8, -1)", "  r0 = divide.float64 in0 10\n  r0 = rint.float64 r0\n"
                          "  r0 = multiply.float64 r0 10\n  out0 = r0 (float64)\n"},
        {"round(f8, 30)",
         "  r0 = multiply.float64 in0 9.9999999999999988e+29\n  r0 = rint.float64 r0\n"
         "  r0 = divide.float64 r0 9.9999999999999988e+29\n  out0 = r0 (float64)\n"},
        {"round(f8, -2000000000)", "  r0 = divide.float64 in0 inf\n  r0 = rint.float64 r0\n"
                                   "  r0 = multiply.float64 r0 inf\n  out0 = r0 (float64)\n"},
        {"round(i1, 3)", "  out0 = in0 (int8)\n"},
        {"round(i1, -1)", "  r0 = float64.int8 in0\n  r0 = divide.float64 r0 10\n"
                          "  r0 = rint.float64 r0\n  r0 = multiply.float64 r0 10\n"
                          "  r1 = int8.float64 r0\n  out0 = r1 (int8)\n"},
        {"round(b)", "  r0 = float32.bool in0\n  out0 = r0 (float32)\n"},
        {"rint(i4)", "  r0 = float64.int32 in0\n  out0 = r0 (float64)\n"},
        {"ceil(b)", "  out0 = in0 (bool)\n"},
        {"fix(f4)", "  r0 = trunc.float32 in0\n  out0 = r0 (float32)\n"},
    };
    CHECK_ALL(cases);
}

Test(expr_lowering, of_exponents_that_are_narrowed_without_changing_the_result)
{
    static const struct lowering cases[] = {
        {"ldexp(f4, i4)", "  r0 = ldexp.float32 in1 in0\n  out0 = r0 (float32)\n"},
        {"ldexp(f4, b)", "  r0 = int32.bool in0\n  r0 = ldexp.float32 in1 r0\n"
                         "  out0 = r0 (float32)\n"},
        {"ldexp(f4, i8)", "  r0 = minimum.int64 in0 2147483647\n"
                          "  r0 = maximum.int64 r0 -2147483648\n  r1 = int32.int64 r0\n"
                          "  r0 = ldexp.float32 in1 r1\n  out0 = r0 (float32)\n"},
        {"ldexp(f4, u4)", "  r0 = minimum.uint32 in0 2147483647\n  r0 = int32.uint32 r0\n"
                          "  r0 = ldexp.float32 in1 r0\n  out0 = r0 (float32)\n"},
        {"ldexp(f8, u4)", "  r0 = int64.uint32 in0\n  r0 = ldexp.float64 in1 r0\n"
                          "  out0 = r0 (float64)\n"},
        {"ldexp(f4, 2**40)", "  r0 = ldexp.float32 in0 int32:2147483647\n"
                             "  out0 = r0 (float32)\n"},
        {"ldexp(f8, -2**40)", "  r0 = ldexp.float64 in0 int64:-1099511627776\n"
                              "  out0 = r0 (float64)\n"},
    };
    CHECK_ALL(cases);
}

Test(expr_lowering, of_choices)
{
    static const struct lowering cases[] = {
        {"select([f4 < 0, b], [f4, i1], default=2)",
         "  r0 = less.float32 in2 0\n  r1 = where.int8 in0 in1 2\n  r2 = float32.int8 r1\n"
         "  r1 = where.float32 r0 in2 r2\n  out0 = r1 (float32)\n"},
        {"clip(f4, 1, 2)", "  r0 = maximum.float32 1 in0\n  r0 = minimum.float32 2 r0\n"
                           "  out0 = r0 (float32)\n"},
        {"clip(u1, 0, 9)", "  r0 = minimum.uint8 in0 9\n  out0 = r0 (uint8)\n"},
        {"clip(i1, -128, 127)", "  out0 = in0 (int8)\n"},
        {"clip(i1, -127, 1000)", "  r0 = maximum.int8 in0 -127\n  out0 = r0 (int8)\n"},
        {"clip(b, False, b)", "  r0 = bitwise_or.bool in0 False\n"
                              "  r0 = bitwise_and.bool r0 in0\n  out0 = r0 (bool)\n"},
        {"nan_to_num(f4)",
         "  r0 = isnan.float32 in0\n  r1 = minimum.float32 in0 3.40282347e+38\n"
         "  r1 = maximum.float32 r1 -3.40282347e+38\n  r1 = where.float32 r0 0 r1\n"
         "  out0 = r1 (float32)\n"},
        {"nan_to_num(f8, nan=k, posinf=1, neginf=i1)",
         "  r0 = isneginf.float64 in1\n  r1 = float64.int8 in0\n"
         "  r2 = isposinf.float64 in1\n  r3 = where.float64 r2 1 in1\n"
         "  r1 = where.float64 r0 r1 r3\n  r0 = isnan.float64 in1\n"
         "  r1 = where.float64 r0 3 r1\n  out0 = r1 (float64)\n"},
        {"nan_to_num(i4, nan=f8)", "  out0 = in0 (int32)\n"},
        {"sinc(f4)", "  r0 = multiply.float32 3.14159274 in0\n  r1 = bool.float32 r0\n"
                     "  r0 = where.float32 r1 r0 1.1920929e-07\n  r1 = sin.float32 r0\n"
                     "  r0 = divide.float32 r1 r0\n  out0 = r0 (float32)\n"},
        {"isclose(i4, i4)", /* no NaN, no infinities */
         "  r0 = float64.int32 in0\n  r1 = subtract.float64 r0 r0\n"
         "  r1 = absolute.float64 r1\n  r0 = absolute.float64 r0\n"
         "  r0 = multiply.float64 1.0000000000000001e-05 r0\n  r0 = add.float64 1e-08 r0\n"
         "  r2 = less_equal.float64 r1 r0\n  r0 = equal.int32 in0 in0\n"
         "  r0 = bitwise_or.bool r2 r0\n  out0 = r0 (bool)\n"},
        {"isclose(f4, 2, atol=1, rtol=0)",
         "  r0 = subtract.float32 in0 2\n  r0 = absolute.float32 r0\n"
         "  r1 = less_equal.float32 r0 1\n  r0 = equal.float32 in0 2\n"
         "  r0 = bitwise_or.bool r1 r0\n  out0 = r0 (bool)\n"},
    };
    CHECK_ALL(cases);
}

Test(expr_lowering, folds_what_is_certain)
{
    static const struct lowering cases[] = {
        {"round(2.675, 2)", "  out0 = 2.6800000000000002 (float64)\n"},
        {"divmod(7, 2)[0] * 0.0 + ceil(1.5) + trunc(-1.5)",
         "  r0 = floor_divide.int64 7 2\n  r0 = float64.int64 r0\n"
         "  r0 = multiply.float64 r0 0\n  r0 = add.float64 r0 2\n  r0 = add.float64 r0 -1\n"
         "  out0 = r0 (float64)\n"},
        {"clip(7.5, 1, 2)", "  out0 = 2 (float64)\n"},
        {"select([True, False], [1, 2])", "  out0 = 1 (int64)\n"},
        {"isclose(1, 1 + 1e-9)", "  out0 = True (bool)\n"},
        {"isclose(nan, nan)", "  out0 = False (bool)\n"},
        {"isclose(nan, nan, equal_nan=True)", "  out0 = True (bool)\n"},
        {"isclose(inf, inf)", "  out0 = True (bool)\n"},
        {"isclose(-inf, inf)", "  out0 = False (bool)\n"},
        {"nan_to_num(nan, nan=3)", "  r0 = minimum.float64 nan 1.7976931348623157e+308\n"
                                   "  r0 = maximum.float64 r0 -1.7976931348623157e+308\n"
                                   "  r0 = where.float64 bool:True 3 r0\n  out0 = r0 (float64)\n"},
        {"nan_to_num(inf)", "  out0 = 1.7976931348623157e+308 (float64)\n"},
        {"bitwise_count(-255)", "  out0 = 8 (uint8)\n"},
        {"sign(-3) + sign(uint8(4))", "  out0 = 0 (int64)\n"},
        {"sign(-0.0)", "  out0 = 0 (float64)\n"},
        {"copysign(3, -0.0)", "  out0 = -3 (float64)\n"},
        {"isneginf(-inf) & isinf(inf) & signbit(-0.0)", "  out0 = True (bool)\n"},
        {"logical_or(0.0, nan)", "  out0 = True (bool)\n"},
        {"rint(2.5)", "  out0 = 2 (float64)\n"},
        {"minimum(1.0, 2)", "  out0 = 1 (float64)\n"},
        {"minimum(0.0, -0.0)", "  r0 = minimum.float64 0 -0\n  out0 = r0 (float64)\n"},
        {"gcd(12, 18)", "  r0 = gcd.int64 12 18\n  out0 = r0 (int64)\n"},
    };
    CHECK_ALL(cases);
}

Test(expr_lowering, widens_as_late_as_possible)
{
    static const struct lowering cases[] = {
        {"float64(where(b, i1, i1))", "  r0 = where.int8 in0 in1 in1\n"
                                      "  r1 = float64.int8 r0\n  out0 = r1 (float64)\n"},
        {"where(b, float64(f4), float64(f4) )", "  r0 = where.float32 in0 in1 in1\n"
                                                "  r1 = float64.float32 r0\n"
                                                "  out0 = r1 (float64)\n"},
        {"where(b, float64(i1), 3.0)", "  r0 = where.int8 in0 in1 3\n  r1 = float64.int8 r0\n"
                                       "  out0 = r1 (float64)\n"},
        {"where(b, float64(f4), nan)", "  r0 = where.float32 in0 in1 nan\n"
                                       "  r1 = float64.float32 r0\n  out0 = r1 (float64)\n"},
        {"where(b, float64(i1), -0.0)", "  r0 = float64.int8 in1\n"
                                        "  r0 = where.float64 in0 r0 -0\n"
                                        "  out0 = r0 (float64)\n"},
        {"where(b, float64(f4), 0.1)", "  r0 = float64.float32 in1\n"
                                       "  r0 = where.float64 in0 r0 0.10000000000000001\n"
                                       "  out0 = r0 (float64)\n"},
        {"where(b, float64(i8), float64(i8))", "  r0 = float64.int64 in1\n"
                                               "  r0 = where.float64 in0 r0 r0\n"
                                               "  out0 = r0 (float64)\n"},
        {"maximum(float64(i1), 7)", "  r0 = maximum.int8 in0 7\n  r1 = float64.int8 r0\n"
                                    "  out0 = r1 (float64)\n"},
        {"fmin(float64(i1), float64(i1)) < float64(i1)",
         "  r0 = minimum.int8 in0 in0\n  r0 = less.int8 r0 in0\n"
         "  out0 = r0 (bool)\n"},
        {"float64(f4) < 0.5", "  r0 = less.float32 in0 0.5\n  out0 = r0 (bool)\n"},
        {"float64(f4) < 0.1", "  r0 = float64.float32 in0\n"
                              "  r1 = less.float64 r0 0.10000000000000001\n"
                              "  out0 = r1 (bool)\n"},
        {"float64(float32(i1))", "  r0 = float64.int8 in0\n  out0 = r0 (float64)\n"},
        {"float32(float64(f4))", "  out0 = in0 (float32)\n"},
        {"int8(int64(i1))", "  out0 = in0 (int8)\n"},
        {"int64(float64(i4))", "  r0 = int64.int32 in0\n  out0 = r0 (int64)\n"},
        {"int8(float64(i4))", "  r0 = float64.int32 in0\n  r1 = int8.float64 r0\n"
                              "  out0 = r1 (int8)\n"},
        {"int8(float64(f4))", "  r0 = float64.float32 in0\n  r1 = int8.float64 r0\n"
                              "  out0 = r1 (int8)\n"},
        {"float64(float32(i4))", "  r0 = float32.int32 in0\n  r1 = float64.float32 r0\n"
                                 "  out0 = r1 (float64)\n"},
        {"int64(i1) == int64(u8)", "  r0 = int64.int8 in0\n  r1 = int64.uint64 in1\n"
                                   "  r2 = equal.int64 r0 r1\n  out0 = r2 (bool)\n"},
    };
    CHECK_ALL(cases);
}
