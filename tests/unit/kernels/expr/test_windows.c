/* Windows: what an expression comes to, and what is refused, with its column. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(expr_windows, of_an_expression_are_made_of_a_pass_of_its_own)
{
    check_text("f8 - window_mean(f8 * row, 3, axis=0)",
               "in0 = argument 10: float64 (3, 4) around 1 along 0\n"
               "in1 = argument 11: float64 (4,)\n"
               "win0 = window_mean.float64 out1 of size (3, 1) from -1, 0\n"
               "pass 1 over (3, 4): 1 register\n"
               "  r0 = multiply.float64 in0 in1\n"
               "  out1 = r0 (float64)\n"
               "pass 0 over (3, 4): 1 register\n"
               "  r0 = subtract.float64 in0 win0\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_windows, of_windows_reach_as_far_as_both)
{
    check_text(
        "window_max(window_sum(near(f8, 1, 0), 3, axis=1, mode=wrap), (2, 4), origin=(0, 1))",
        "in0 = argument 10: float64 (3, 4) around 1 along 0 around 4 along 1 wrap\n"
        "win0 = window_sum.float64 out1 of size (1, 3) from 0, -1\n"
        "pass 1 over (3, 4): 0 registers\n"
        "  near0 = in0 at 1 edge, 0\n"
        "  out1 = near0 (float64)\n"
        "win1 = window_max.float64 out2 of size (2, 4) from -1, -3\n"
        "pass 2 over (3, 4): 0 registers\n"
        "  out2 = win0 (float64)\n"
        "pass 0 over (3, 4): 0 registers\n"
        "  out0 = win1 (float64)\n");
}

static const struct refused {
    const char *expr, *message;
    int status;
} refused[] = {
    {"window_mean(f8, 0)", "column 17: window_mean: a window has at least one element",
     GAD_BAD_SHAPE},
    {"window_mean(f8, 9000)", "column 17: window_mean: so large a window", GAD_LIMIT_EXCEEDED},
    {"window_mean(f8, f8)", "column 17: window_mean: 'size' must be an integer",
     GAD_BAD_EXPRESSION},
    {"window_mean(f8, (3, 3, 3))", "column 17: window_mean: 'size' has 3 numbers", GAD_BAD_SHAPE},
    {"window_mean(f8, 3, axis=2)", "column 25: window_mean: axis 2 is out of range", GAD_BAD_SHAPE},
    {"window_mean(f8, 3, axis=(0, -2))", "column 25: window_mean: axis -2 is given twice",
     GAD_BAD_SHAPE},
    {"window_mean(f8, 3, origin=2)", "column 27: window_mean: with this origin",
     GAD_BAD_EXPRESSION},
    {"window_mean(f8, 3, value=2)", "column 26: window_mean: 'value' is what lies beyond",
     GAD_BAD_EXPRESSION},
    {"window_mean(f8, 3, mode=near)", "column 25: window_mean: unknown mode 'near'",
     GAD_BAD_EXPRESSION},
    {"window_mean(2.5, 3)", "column 1: window_mean: a single number has no neighbours",
     GAD_BAD_SHAPE},
    {"window_mean(f8)", "column 1: window_mean: 'size' must be given", GAD_BAD_ARITY},
    {"window_median(f8, (40, 40))", "column 19: window_median: too large a window",
     GAD_LIMIT_EXCEEDED},
    {"window_rank(f8, 9, 3)", "column 17: window_rank: the window has no element",
     GAD_BAD_EXPRESSION},
    {"correlate(f8, f8)", "column 15: correlate: a kernel has numbers that are known here",
     GAD_BAD_EXPRESSION},
    {"correlate(f8, [1, 2])", "column 15: correlate: the kernel has 1 axis, and goes along 2",
     GAD_BAD_SHAPE},
    {"correlate(f8, [[1, 2], [3]])", "column 24: correlate: the lists of a kernel are equally long",
     GAD_BAD_EXPRESSION},
    {"convolve(f8, [])", "column 14: convolve: a kernel has at least one number",
     GAD_BAD_EXPRESSION},
    {"convolve(f8, [[1], 2], axis=0)", "column 20: convolve: a kernel is a list",
     GAD_BAD_EXPRESSION},
    {"window_mean(cumsum(f8, axis=0), 3)", "column 1: cumsum can only be a whole output",
     GAD_BAD_EXPRESSION},
    {"window_mean(f8 - sum(f8, axis=1, keepdims=True), 3)",
     "column 1: window_mean of a reduction: that is made by another pass", GAD_BAD_EXPRESSION},
    {"near(window_mean(f8, 3), 1, 0)", "column 1: near of a window", GAD_BAD_EXPRESSION},
    {"median(window_mean(f8, 3))", "column 8: a window in one pass with a quantile",
     GAD_BAD_EXPRESSION},
    {"correlate(i4, [[1, 9223372036854775808]])",
     "column 20: the number 9223372036854775808 is out of bounds for int64", GAD_BAD_EXPRESSION},
};

Test(expr_windows, what_cannot_be_is_refused_with_its_column)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct fixture *f = fixture_new();
        cr_expect(eq(int, fixture_compile(f, refused[i].expr), refused[i].status), "%s",
                  refused[i].expr);
        cr_expect(strncmp(f->error.message, refused[i].message, strlen(refused[i].message)) == 0,
                  "%s: %s", refused[i].expr, f->error.message);
        fixture_free(f);
    }
}

#define BOTH(x) "(window_max(" x ", 3) + window_min(" x ", 3))"

Test(expr_windows, of_windows_have_a_limit_however_they_are_written)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, fixture_compile(f, BOTH(BOTH(BOTH(BOTH("f8"))))), GAD_LIMIT_EXCEEDED));
    cr_expect(strstr(f->error.message, "too many windows of windows") != NULL, "%s",
              f->error.message);
    cr_expect(strncmp(f->error.message, "column ", 7) == 0, "%s", f->error.message);
    fixture_free(f);
}
