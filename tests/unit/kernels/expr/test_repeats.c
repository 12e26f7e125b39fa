/* repeat: what its passes come to, which dtypes its arrays get, and what is refused. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(expr_repeats, steps_are_a_pass_between_the_arguments_and_what_reads_them)
{
    check_text("repeat(8, f4 = f4 + k*near(f4, 1, 0) - 1) * 2",
               "in0 = argument 9: float32 (3, 4)\n"
               "in1 = out1: float32 (3, 4)\n"
               "repeat 0 begins over (3, 4): 0 registers\n"
               "  out1 = in0 (float32)\n"
               "repeat 0, 8 steps over (3, 4): 1 register\n"
               "  near0 = in1 at 1 edge, 0\n"
               "  r0 = multiply.float32 3 near0\n"
               "  r0 = add.float32 in1 r0\n"
               "  r0 = subtract.float32 r0 1\n"
               "  out1 = r0 (float32)\n"
               "pass 0 over (3, 4): 1 register\n"
               "  r0 = multiply.float32 in1 2\n"
               "  out0 = r0 (float32)\n");
}

Test(expr_repeats, of_two_outputs_the_steps_are_taken_once)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int,
                 fixture_compile(f, "repeat(3, f8 = f8 + f4, f4 = f4 / 2);"
                                    "repeat(3, f8 = f8 + f4, f4 = f4 / 2)[1];"
                                    "repeat(4, f8 = f8 + f4, f4 = f4 / 2)"),
                 0));
    cr_expect(eq(int, f->program->n_repeats, 2));
    cr_expect(eq(int, f->program->n_passes, 1));
    fixture_free(f);
}

Test(expr_repeats, dtypes_grow_until_they_stay)
{
    static const struct expected cases[] = {
        {"repeat(2, i1 = i1 + 1)", "int8 (3, 4)"},
        {"repeat(2, i1 = i1 * 0.5)", "float64 (3, 4)"},
        {"repeat(2, f4 = f4 * 0.5)", "float32 (3, 4)"},
        {"repeat(2, i1 = i1 + i2, i2 = i2 + f4)", "float32 (3, 4)"},
        {"repeat(2, b = b & near(b, 1, 0))", "bool (3, 4)"},
        {"z = 0; repeat(2, z = z + f4)", "float32 (3, 4)"},
        {"z = 0; repeat(2, f4 = f4 + z, z = z + abs(f4))[1]", "float32 (3, 4)"},
        {"z = 0; repeat(2, z = z + 1.5)", "float64 ()"},
        {"repeat(2, f4 = 7)", "float32 (3, 4)"},
        {"repeat(2, f4 = f4 - mean(f8))", "float64 (3, 4)"},
        {"repeat(2, f4 = f4 - mean(row))", "float64 (3, 4)"},
        {"step(u) = repeat(2, u = u + near(u, 1, 0)); step(f4) - step(f8)", "float64 (3, 4)"},
        {"lap(u) = near(u, 1, 0) - u; repeat(2, f4 = f4 + lap(f4))", "float32 (3, 4)"},
        {"near(repeat(2, f4 = f4 + 1), 1, 0) + mean(repeat(2, f4 = f4 + 1))", "float32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

/* Another one that begins with as many numbers and arrays, but not of the same dtypes. */
Test(expr_repeats, several_that_begin_differently)
{
    static const struct expected cases[] = {
        {"t = repeat(3, i1 = i1, u8 = u8); h = 0.5; t + repeat(2, h = h + f4, f4 = f4)",
         "float32 (3, 4)"},
        {"t = repeat(3, b = b, u8 = u8); t + repeat(2, k = k + i4, i4 = i4)", "int32 (3, 4)"},
        {"t = repeat(3, i1 = i1, u8 = u8); h = 200; t + repeat(2, h = h + i4, i4 = i4)",
         "int32 (3, 4)"},
        {"h = 1.0; repeat(2, h = h*2)", "float64 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_repeats, refusals_say_what_to_write)
{
    static const struct expected cases[] = {
        {"repeat()", "bad-expression: column 8: repeat takes how often, then what a step makes of "
                     "each array, as in repeat(8, u = u + v, v = v - u)"},
        {"repeat(3)", "bad-expression: column 9: repeat takes how often, then what a step makes of "
                      "each array, as in repeat(8, u = u + v, v = v - u)"},
        {"repeat(f4 = f4 + 1)", "bad-expression: column 8: repeat takes how often, then what a "
                                "step makes of each array, as in repeat(8, u = u + v, v = v - u)"},
        {"repeat(3, f4)", "bad-expression: column 11: repeat takes how often, then what a step "
                          "makes of each array, as in repeat(8, u = u + v, v = v - u)"},
        {"repeat(3, f4 = f4 + 1, 7)", "bad-expression: column 24: ')' expected, not '7'"},
        {"repeat(3, f4 = f4, f4 = f4)", "bad-expression: column 20: repeat: 'f4' is there twice"},
        {"repeat(3, w = w + 1)",
         "bad-expression: column 11: repeat: 'w' has no value to begin with"},
        {"repeat(0, f4 = f4 + 1)",
         "bad-expression: column 8: repeat: how often must be an integer that is known here"},
        {"repeat(2.5, f4 = f4 + 1)",
         "bad-expression: column 8: repeat: how often must be an integer that is known here"},
        {"repeat(f4, f4 = f4 + 1)",
         "bad-expression: column 8: repeat: how often must be an integer that is known here"},
        {"repeat(65536, f4 = f4 + 1)", "limit-exceeded: column 8: repeat: too many steps at once"},
        {"repeat(2, f4 = f4 + 1)[1]",
         "bad-expression: column 24: repeat has 1 array: behind it may stand [0] to [0]"},
        {"repeat(2, f4 = sum(f4))",
         "bad-expression: column 1: repeat: a step cannot have a reduction, product or scan of the "
         "arrays that it changes, which needs all of them"},
        {"repeat(2, f4 = f4 - mean(f4, axis=0))",
         "bad-expression: column 1: repeat: a step cannot have a reduction, product or scan of the "
         "arrays that it changes, which needs all of them"},
        {"repeat(2, f4 = f4 - mean(f8, axis=0))",
         "bad-expression: column 1: repeat: a step can have one number that another pass makes, "
         "not an array of them"},
        {"repeat(2, f8 = cumsum(row))",
         "bad-expression: column 16: cumsum can only be a whole output: store it, then compute "
         "with what is stored"},
        {"w = cumsum(row); repeat(2, w = row)",
         "bad-expression: column 28: cumsum can only be a whole output: store it, then compute "
         "with what is stored"},
        {"repeat(2, row = row + f8)",
         "bad-shape: column 21: repeat: this step has shape (3, 4), and the arrays (4,)"},
        {"repeat(2, f8 = f8 + row, row = row)",
         "bad-shape: column 26: repeat: this one has shape (4,), and the arrays (3, 4)"},
        {"repeat(2, f4 = repeat(2, f4 = f4 + 1))",
         "bad-expression: column 16: repeat: 'repeat' stands in the steps of another"},
        {"a = repeat(2, f4 = f4 + 1); repeat(2, a = a + 1)",
         "bad-expression: column 29: repeat: a step cannot have what another repeat gives"},
        {"repeat(2, f4 = near(f4, 1, 0) + near(f4, 1, 0, mode=wrap))",
         "bad-expression: column 1: repeat: along axis 0 one near() has mode 'wrap', another "
         "another one"},
        {"repeat(2, f4 = f4 @ f4.T)", "bad-expression: column 23: .T of near() or a repeat's "
                                      "array; write it stored first"},
        {"0*f8 +\n window_max(f8, 3) + repeat(2, f8 = f8 + 1)",
         "bad-expression: line 2, column 2: a window in one pass with a repeat: store one of the "
         "two first"},
        {"t = repeat(2, k = k); window_max(iterate(2, f8 = f8 + t), 1)",
         "bad-expression: column 23: a window in one pass with a repeat: store one of the two "
         "first"},
        {"t = window_max(f8, 3); repeat(2, f4 = f4, t = 0.5)",
         "bad-expression: column 5: a window in the steps of a repeat: take one step at a time"},
        {"median(repeat(2, f4 = f4 + 1))",
         "bad-expression: near in one pass with a quantile: store one of the two first"},
        {"repeat = 3; repeat + f4",
         "bad-expression: column 1: 'repeat' is a function and cannot be bound to another value"},
    };
    EXPECT_RESULTS(cases);
}
