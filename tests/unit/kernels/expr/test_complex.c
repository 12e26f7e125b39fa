/* Complex numbers: what is left of them in programs, and what is refused, with its column. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void check_same(const char *expr, const char *other)
{
    struct fixture *a = fixture_new(), *b = fixture_new();
    cr_assert(eq(int, fixture_compile(a, expr), 0), "%s: %s", expr, a->error.message);
    cr_assert(eq(int, fixture_compile(b, other), 0), "%s: %s", other, b->error.message);
    cr_expect(eq(str, a->text, b->text), "%s", expr);
    fixture_free(a);
    fixture_free(b);
}

Test(expr_complex, numbers_are_real_arithmetic_of_their_parts)
{
    check_same("abs2(complex(f8, row))", "f8*f8 + row*row");
    check_same("abs2(complex(f8, row) * complex(f8, row))",
               "(f8*f8 - row*row)*(f8*f8 - row*row) + (f8*row + f8*row)*(f8*row + f8*row)");
    check_same("real(complex(f4, 2) * 3)", "f4 * 3");
    check_same("abs(3 + 4j) * f8", "hypot(3, 4) * f8");
    check_same("iterate(9, f8 = f8 + abs2(1j))", "iterate(9, f8 = f8 + 1.0)");
}

Test(expr_complex, parts_have_the_dtypes_and_shapes_of_both)
{
    static const struct expected cases[] = {
        {"real(complex(f4, 1))", "float32 (3, 4)"},
        {"abs(f4 * 2j)", "float32 (3, 4)"},
        {"abs(i1 * 2j)", "float64 (3, 4)"},
        {"imag(complex(f4, f8))", "float64 (3, 4)"},
        {"imag(complex(f8, 0))", "float64 (3, 4)"},
        {"real(complex(row, column))", "float64 (3, 4)"},
        {"imag(complex(index(0), 0)) + f8", "float64 (3, 4)"},
        {"imag(i1)", "int8 (3, 4)"},
        {"real(b)", "bool (3, 4)"},
        {"sum(imag(complex(f8, 1)))", "float64 ()"},
        {"2j == 2j", "bool ()"},
        {"q = 0j; abs(iterate(3, q = q + 1))", "float64 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_complex, what_is_not_computed_is_refused_where_it_stands)
{
    static const struct expected cases[] = {
        {"2j", "bad-dtype: column 1: the result is complex; write an output for each part, "
               "real(z) and imag(z)"},
        {"f8 < 2j", "bad-dtype: column 4: complex numbers have no order; write abs2(a) < abs2(b), "
                    "or real(a) < real(b)"},
        {"prod(f8 + 1j)", "bad-dtype: column 1: prod of complex numbers is not computed; write "
                          "exp(sum(log(z)))"},
        {"where(1j, f8, 2)", "bad-dtype: column 7: a complex number has no place here; write "
                             "z != 0, or a part of it"},
        {"complex(1j, 2)", "bad-dtype: column 1: complex() of complex numbers; write x + 1j*y, "
                           "which may be"},
        {"complex(f8)", "bad-arity: column 1: complex takes 2 arguments, 1 given"},
        {"real(f8, 1)", "bad-arity: column 1: real takes 1 argument, 2 given"},
        {"repeat(2, f8 = f8 * 1j)", "bad-dtype: column 19: repeat of complex arrays is not "
                                    "computed; write two arrays, of the real parts and the "
                                    "imaginary ones"},
        {"q = i4; p = 1j; repeat(2, i4 = i4, i1 = i1) + repeat(2, q = q, p = p)",
         "bad-dtype: column 64: repeat of complex arrays is not computed; write two arrays, of the "
         "real parts and the imaginary ones"},
        {"iterate(3, f8 = f8 + 1, until = 1j)", "bad-dtype: column 33: iterate: until is complex; "
                                                "write z != 0, or abs2(z) > 4"},
        {"sum(f8, axis=(1j, 0))", "bad-dtype: column 14: a complex number in a list; write real "
                                  "numbers there"},
        {"z = f8 + 1j; abs(iterate(3, z = z + sum(z)))",
         "bad-expression: column 37: sum of what changes in iterate: a step has one element at a "
         "time"},
        {"2jj", "bad-expression: column 3: 'j' right after a number; is an operator missing?"},
        {"0x2j", "bad-expression: column 4: 'j' right after a number; is an operator missing?"},
    };
    EXPECT_RESULTS(cases);
}
