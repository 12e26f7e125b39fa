/* NumPy 2's dtypes and refusals, as numpy itself answers them. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(expr_types, promotes_arrays_as_numpy_does)
{
    static const struct expected cases[] = {
        {"i1 + u1", "int16 (3, 4)"},    {"i1 + u2", "int32 (3, 4)"},
        {"i8 + u8", "float64 (3, 4)"},  {"i1 + u8", "float64 (3, 4)"},
        {"i2 + f4", "float32 (3, 4)"},  {"i4 + f4", "float64 (3, 4)"},
        {"f4 + f8", "float64 (3, 4)"},  {"b + i1", "int8 (3, 4)"},
        {"b - i1", "int8 (3, 4)"},      {"i8 // u8", "float64 (3, 4)"},
        {"i1 / i1", "float64 (3, 4)"},  {"f4 / i1", "float32 (3, 4)"},
        {"f4 / i8", "float64 (3, 4)"},  {"b / b", "float64 (3, 4)"},
        {"f4 ** i1", "float32 (3, 4)"}, {"i1 ** 0.5", "float64 (3, 4)"},
        {"i1 < f8", "bool (3, 4)"},     {"where(b, i1, f4)", "float32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, lets_numbers_take_the_dtype_of_arrays)
{
    static const struct expected cases[] = {
        {"i1 + 1", "int8 (3, 4)"},
        {"u8 - 1", "uint64 (3, 4)"},
        {"f4 * 2", "float32 (3, 4)"},
        {"f4 * 1.5", "float32 (3, 4)"},
        {"i1 * 1.5", "float64 (3, 4)"},
        {"b + 1", "int64 (3, 4)"},
        {"b + 1.5", "float64 (3, 4)"},
        {"i1 + True", "int8 (3, 4)"},
        {"f4 + k", "float32 (3, 4)"},
        {"i1 + (100 + 27)", "int8 (3, 4)"},
        {"f4 + 2**63", "float32 (3, 4)"},
        {"i1 / 300", "float64 (3, 4)"},
        {"where(b, i1, 2.5)", "float64 (3, 4)"},
        {"where(b, 1, 2)", "int64 (3, 4)"},
        {"where(b, f4, 1)", "float32 (3, 4)"},
        {"minimum(i1, 5)", "int8 (3, 4)"},
        {"i1 + 300", "bad-expression: column 6: the number 300 is out of bounds for int8 (-128 to "
                     "127)"},
        {"u8 + -1", "bad-expression: column 6: the number -1 is out of bounds for uint64 (0 to "
                    "18446744073709551615)"},
        {"b + 2**63", "bad-expression: column 6: the number 9223372036854775808 is out of bounds "
                      "for int64 (-9223372036854775808 to 9223372036854775807)"},
        {"minimum(u1, 256)",
         "bad-expression: column 13: the number 256 is out of bounds for uint8 (0 to 255)"},
        {"where(b, i1, 300)",
         "bad-expression: column 14: the number 300 is out of bounds for int8 (-128 to 127)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, makes_arrays_of_numbers_under_functions)
{
    static const struct expected cases[] = {
        {"sqrt(2) * f4", "float64 (3, 4)"},
        {"abs(-2) * i1", "int64 (3, 4)"},
        {"float32(2) * i1", "float32 (3, 4)"},
        {"add(1, 2)", "int64 ()"},
        {"add(True, True)", "bool ()"},
        {"minimum(1, 2.5)", "float64 ()"},
        {"square(True)", "int8 ()"},
        {"floor(2)", "int64 ()"},
        {"sum(3)", "int64 ()"},
        {"2**63", "uint64 ()"},
        {"1 + 1", "int64 ()"},
        {"True", "bool ()"},
        {"1 == 1.0", "bool ()"},
        {"int8(2.7)", "int8 ()"},
        {"int8(300)", "bad-expression: column 6: the number 300 is out of bounds for int8 (-128 "
                      "to 127)"},
        {"int8(300.5)",
         "bad-expression: column 6: the number 300 is out of bounds for int8 (-128 to 127)"},
        {"int8(nan)",
         "bad-expression: column 6: the number nan is out of bounds for int8 (-128 to 127)"},
        {"uint64(1e19)", "uint64 ()"},
        {"uint64(1.85e19)", "bad-expression: column 8: the number 1.85e+19 is out of bounds for "
                            "uint64 (0 to 18446744073709551615)"},
        {"bool(nan)", "bool ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, treats_bools_as_numpy_does)
{
    static const struct expected cases[] = {
        {"b + b", "bool (3, 4)"},
        {"b * b", "bool (3, 4)"},
        {"maximum(b, b)", "bool (3, 4)"},
        {"b // b", "int8 (3, 4)"},
        {"b % b", "int8 (3, 4)"},
        {"b ** b", "int8 (3, 4)"},
        {"b ** 2", "int8 (3, 4)"},
        {"power(b, 2)", "int64 (3, 4)"},
        {"b << b", "int8 (3, 4)"},
        {"b << 1", "int64 (3, 4)"},
        {"b & 1", "int64 (3, 4)"},
        {"~b", "bool (3, 4)"},
        {"abs(b)", "bool (3, 4)"},
        {"square(b)", "int8 (3, 4)"},
        {"sum(b)", "int64 ()"},
        {"mean(b)", "float64 ()"},
        {"min(b)", "bool ()"},
        {"b - b", "bad-dtype: column 3: subtract is not defined for bools, write a ^ b"},
        {"b - True", "bad-dtype: column 3: subtract is not defined for bools, write a ^ b"},
        {"-b", "bad-dtype: column 1: negative is not defined for bools, write ~x"},
        {"+b", "bad-dtype: column 1: +x is not defined for bools, write int8(x)"},
    };
    EXPECT_RESULTS(cases);
    check_contains("b + b", "r0 = bitwise_or.bool in0 in0");
    check_contains("minimum(b, b)", "r0 = bitwise_and.bool in0 in0");
}

Test(expr_types, gives_floating_functions_the_float_that_holds_the_argument)
{
    static const struct expected cases[] = {
        {"sqrt(b)", "float32 (3, 4)"},  {"sqrt(i1)", "float32 (3, 4)"},
        {"sqrt(u2)", "float32 (3, 4)"}, {"sqrt(i4)", "float64 (3, 4)"},
        {"sqrt(u8)", "float64 (3, 4)"}, {"exp(f4)", "float32 (3, 4)"},
        {"floor(i4)", "int32 (3, 4)"},  {"floor(f4)", "float32 (3, 4)"},
        {"isnan(f4)", "bool (3, 4)"},   {"isfinite(i4)", "bool (3, 4)"},
    };
    EXPECT_RESULTS(cases);
    check_contains("isfinite(i4)", "out0 = True");
    check_contains("isnan(i4)", "out0 = False");
    check_contains("floor(i4)", "out0 = in0");
    check_contains("abs(u4)", "out0 = in0");
}

Test(expr_types, refuses_bits_of_floats)
{
    static const struct expected cases[] = {
        {"f4 | 1", "bad-dtype: column 4: bitwise_or needs integers or bools"},
        {"f4 ^ 2", "bad-dtype: column 4: bitwise_xor needs integers or bools; x**y is the power"},
        {"i1 << 1.0", "bad-dtype: column 4: left_shift needs integers or bools"},
        {"~f4", "bad-dtype: column 1: invert needs integers or bools"},
        {"1.5 & 1", "bad-dtype: column 5: '&' needs integers or bools, not floats"},
        {"~1.5", "bad-dtype: column 1: '~' needs integers or bools, not floats"},
        {"i8 & u8", "bad-dtype: column 4: bitwise_and of uint64 and a signed integer: cast one of "
                    "them"},
        {"i1 >> u8", "bad-dtype: column 4: right_shift of uint64 and a signed integer: cast one of "
                     "them"},
        {"i1 & u4", "int64 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, compares_exactly_what_has_no_common_dtype)
{
    check_contains("i8 < u8", "r0 = less.int64 in0 in1");
    check_contains("u8 < i8", "r0 = less.uint64 in1 in0");
    check_contains("i1 == u8", "equal.int64 r0 in1");
    check_contains("i8 < f8", "less.float64");
}

Test(expr_types, knows_the_answer_for_numbers_that_no_element_can_be)
{
    check_contains("i1 < 300", "out0 = True");
    check_contains("300 < i1", "out0 = False");
    check_contains("i1 >= -1000", "out0 = True");
    check_contains("-1000 >= i1", "out0 = False");
    check_contains("u8 == -1", "out0 = False");
    check_contains("u8 != -1", "out0 = True");
    check_contains("i8 <= 2**63", "out0 = True");
    check_contains("sum(i1 < 300)", "red0 = sum.bool True (int64)");
    static const struct expected cases[] = {{"i1 < 300", "bool (3, 4)"}};
    EXPECT_RESULTS(cases);
}

Test(expr_types, refuses_arithmetic_of_numbers_that_python_refuses)
{
    static const struct expected cases[] = {
        {"1 // 0", "bad-expression: column 3: integer division by zero"},
        {"1 % 0", "bad-expression: column 3: integer division by zero"},
        {"1 / 0", "bad-expression: column 3: integer division by zero"},
        {"0 ** -1", "bad-expression: column 3: 0 to a negative power"},
        {"1 << -1", "bad-expression: column 3: a shift by a negative number"},
        {"(-8) ** 0.5",
         "bad-expression: column 6: a negative number to a fractional power is complex"},
        {"2 ** 64", "bad-expression: column 3: the result does not fit 64 bits; write a float "
                    "(2.0) to compute in float64"},
        {"2 ** 100000000000", "bad-expression: column 3: the result does not fit 64 bits; write a "
                              "float (2.0) to compute in float64"},
        {"1 << 64", "bad-expression: column 3: the result does not fit 64 bits; write a float "
                    "(2.0) to compute in float64"},
        {"18446744073709551615 * 18446744073709551615",
         "bad-expression: column 22: the result does not fit 64 bits; write a float (2.0) to "
         "compute in float64"},
        {"-9223372036854775808 - 1", "bad-expression: column 22: the result does not fit 64 bits; "
                                     "write a float (2.0) to compute in float64"},
        {"1.0 / 0", "float64 ()"},
        {"i1 ** -1", "negative-integer-power: column 4: integers to negative integer powers are "
                     "not allowed, write x ** -1.0"},
        {"power(2, -1)", "negative-integer-power: column 1: integers to negative integer powers "
                         "are not allowed, write x ** -1.0"},
        {"empty ** -1", "int32 (0,)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, shortens_known_powers)
{
    check_contains("f4 ** 2", "r0 = square.float32 in0");
    check_contains("i1 ** 2", "r0 = square.int8 in0");
    check_contains("f4 ** 0.5", "r0 = sqrt.float32 in0");
    check_contains("f4 ** 1", "out0 = in0");
    check_contains("f4 ** -1", "r0 = divide.float32 1 in0");
    check_contains("f4 ** 3", "r0 = power.float32 in0 3");
    check_contains("point ** 0.5", "r0 = power.float32 in0 0.5");
}

Test(expr_types, names_both_shapes_that_do_not_broadcast)
{
    static const struct expected cases[] = {
        {"f4 + small", "bad-shape: column 4: shapes (3, 4) and (5,) do not broadcast together"},
        {"f4*2 + sqrt(small)",
         "bad-shape: column 6: shapes (3, 4) and (5,) do not broadcast together"},
        {"where(b, 1, small)",
         "bad-shape: column 1: shapes (3, 4) and (5,) do not broadcast together"},
        {"row + column", "float64 (3, 4)"},
        {"column + small", "float64 (3, 5)"},
        {"point + empty", "float64 (0,)"},
        {"column + empty", "float64 (3, 0)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_types, refuses_shapes_beyond_63_bits)
{
    struct fixture *f = fixture_new();
    fixture_add_array(f, "tall", DTYPE_INT8, 2, (int64_t[]){INT64_C(1) << 40, 1});
    fixture_add_array(f, "wide", DTYPE_INT8, 1, (int64_t[]){INT64_C(1) << 40});
    expect_result(f, "tall + wide",
                  "bad-shape: column 6: an array of shape (1099511627776, 1099511627776) is too "
                  "large");
    fixture_free(f);
}

Test(expr_types, reduces_to_numpys_dtypes)
{
    static const struct expected cases[] = {
        {"sum(i1)", "int64 ()"},
        {"sum(u1)", "uint64 ()"},
        {"sum(f4)", "float32 ()"},
        {"sum(f8)", "float64 ()"},
        {"min(i1)", "int8 ()"},
        {"max(f4)", "float32 ()"},
        {"mean(f4)", "float32 ()"},
        {"mean(u8)", "float64 ()"},
        {"count_nonzero(f4)", "int64 ()"},
        {"mean(f4) * i1", "float32 (3, 4)"},
        {"sum(empty)", "int64 ()"},
        {"mean(empty)", "float64 ()"},
        {"min(empty)", "bad-shape: column 1: zero-size array to reduction operation min which has "
                       "no identity"},
        {"1 + max(column + empty)", "bad-shape: column 5: zero-size array to reduction operation "
                                    "max which has no identity"},
    };
    EXPECT_RESULTS(cases);
    check_contains("mean(i8)", "r0 = float64.int64 in0");
    check_contains("mean(i1)", "red0 = sum.int8 in0 (int64)");
    check_contains("mean(f4)", "red0 = sum.float32 in0 (float64)");
}

Test(expr_types, takes_scalars_of_the_request_as_python_numbers)
{
    struct fixture *f = fixture_new();
    fixture_add_scalar(f, "yes", DTYPE_BOOL, (union scalar){.u64 = 1});
    fixture_add_scalar(f, "huge", DTYPE_UINT64, (union scalar){.u64 = UINT64_MAX});
    fixture_add_scalar(f, "half", DTYPE_FLOAT64, (union scalar){.f64 = 0.5});
    expect_result(f, "i1 + yes", "int8 (3, 4)");
    expect_result(f, "u8 + huge", "uint64 (3, 4)");
    expect_result(f, "f4 * half", "float32 (3, 4)");
    expect_result(f, "f4 ** half", "float32 (3, 4)");
    expect_result(f, "huge", "uint64 ()");
    expect_result(f, "i8 + huge",
                  "bad-expression: column 6: the number 18446744073709551615 is out of bounds for "
                  "int64 (-9223372036854775808 to 9223372036854775807)");
    cr_expect(eq(int, f->error.status, GAD_BAD_EXPRESSION));
    fixture_free(f);
}
