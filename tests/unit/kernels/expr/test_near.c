/* near: which inputs an expression comes to, and what is refused, with its column. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(expr_near, of_an_expression_is_the_expression_of_what_is_near)
{
    check_text("f8 + near(f8 * row, 1, -1, mode=wrap)", "in0 = argument 10: float64 (3, 4)\n"
                                                        "in1 = argument 11: float64 (4,)\n"
                                                        "pass 0 over (3, 4): 1 register\n"
                                                        "  near0 = in0 at 1 wrap, -1 wrap\n"
                                                        "  near1 = in1 at -1 wrap\n"
                                                        "  r0 = multiply.float64 near0 near1\n"
                                                        "  r0 = add.float64 in0 r0\n"
                                                        "  out0 = r0 (float64)\n");
    check_text("near(f8 - max(f8), 0, 1) + near(near(f8, 0, 1), 1, 0)",
               "in0 = argument 10: float64 (3, 4)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  red0 = max.float64 in0 (float64)\n"
               "pass 1 over (3, 4): 1 register\n"
               "  near0 = in0 at 0, 1 edge\n"
               "  near1 = in0 at 1 edge, 1 edge\n"
               "  r0 = subtract.float64 near0 red0\n"
               "  r0 = add.float64 r0 near1\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_near, passes_have_nears_of_their_own_and_one_box_where_that_is_not_much_larger)
{
    check_text("near(f8, 1, 0) + sum(near(f8, 1, 0)) + near(f8, 0, -1, mode=reflect)",
               "in0 = argument 10: float64 (3, 4)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  near0 = in0 at 1 edge, 0\n"
               "  red0 = sum.float64 near0 (float64)\n"
               "pass 1 over (3, 4): 1 register\n"
               "  near1 = in0 at 1 edge, 0\n"
               "  near2 = in0 at 0, -1 reflect\n"
               "  r0 = add.float64 near1 red0\n"
               "  r0 = add.float64 r0 near2\n"
               "  out0 = r0 (float64)\n");
    check_text("near(f8, 1, 0) + near(f8, -1, 0, mode=reflect)", /* two ways of going on */
               "in0 = argument 10: float64 (3, 4)\n"
               "in1 = argument 10: float64 (3, 4)\n"
               "pass 0 over (3, 4): 1 register\n"
               "  near0 = in0 at 1 edge, 0\n"
               "  near1 = in1 at -1 reflect, 0\n"
               "  r0 = add.float64 near0 near1\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_near, what_is_beyond_a_constant_is_the_expressions)
{
    check_text("near(f8, 0, -1, mode=constant, value=2)", "in0 = argument 10: float64 (3, 4)\n"
                                                          "pass 0 over (3, 4): 0 registers\n"
                                                          "  near0 = in0 at 0, -1 constant\n"
                                                          "  out0 = near0 (float64)\n");
    check_text("near(-f8, 0, -1, mode=constant, value=2)", "in0 = argument 10: float64 (3, 4)\n"
                                                           "pass 0 over (3, 4): 2 registers\n"
                                                           "  near0 = in0 at 0, -1 edge\n"
                                                           "  r0 = greater_equal.int64 index1 1\n"
                                                           "  r1 = negative.float64 near0\n"
                                                           "  r1 = where.float64 r0 r1 2\n"
                                                           "  out0 = r1 (float64)\n");
    check_text("f8 + near(row * 2, 4, mode=constant)", "in0 = argument 10: float64 (3, 4)\n"
                                                       "pass 0 over (3, 4): 1 register\n"
                                                       "  r0 = add.float64 in0 0\n"
                                                       "  out0 = r0 (float64)\n");
}

Test(expr_near, offsets_are_as_short_as_they_can_be)
{
    check_text("near(f8, -5, 0) + near(f8, 0, -3, mode=wrap)", "in0 = argument 10: float64 (3, 4)\n"
                                                               "pass 0 over (3, 4): 1 register\n"
                                                               "  near0 = in0 at -2 edge, 0\n"
                                                               "  near1 = in0 at 0, 1 wrap\n"
                                                               "  r0 = add.float64 near0 near1\n"
                                                               "  out0 = r0 (float64)\n");
    check_text("near(column, 0, 7) + near(f8, 3, 4, mode=wrap)",
               "in0 = argument 10: float64 (3, 4)\n"
               "in1 = argument 12: float64 (3, 1)\n"
               "pass 0 over (3, 4): 1 register\n"
               "  r0 = add.float64 in1 in0\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_near, refusals_say_what_to_write)
{
    static const struct expected cases[] = {
        {"f8 + near(f8, 1)",
         "bad-arity: column 6: near takes an offset for each axis of its array, "
         "which has 2; 1 given"},
        {"near(f8, 1, 0.5)", "bad-expression: column 13: near: an offset must be an integer that "
                             "is known here, as in near(x, -1, 0)"},
        {"near(f8, 3, 0, mode=reflect)",
         "bad-shape: column 10: near: axis 0 has length 3, and mode 'reflect' says nothing of what "
         "is so far beyond its ends"},
        {"near(f8, 0, -5, mode=symmetric)",
         "bad-shape: column 13: near: axis 1 has length 4, and mode 'symmetric' says nothing of "
         "what is so far beyond its ends"},
        {"near(f8, 0, 1, mode=wrop)",
         "bad-expression: column 21: near: unknown mode 'wrop', did you mean 'wrap'?"},
        {"near(f8, 0, 1, value=1)", "bad-expression: column 22: near: 'value' is what lies beyond "
                                    "the ends with mode 'constant'"},
        {"near(i1, 0, 1, mode=constant, value=1.5)",
         "bad-dtype: column 37: near: 'value' is no int8, which the elements are"},
        {"near(mean(f8, axis=0), 1) + f8",
         "bad-expression: column 1: near of a reduction: that is made by another pass"},
        {"near(near(f8, 1, 0), -1, 0)",
         "bad-expression: column 1: near of near: both go beyond the ends of one axis"},
        {"near(f8 + normal(seed=1), 1, 0)",
         "bad-expression: column 1: near of random numbers: how many there are follows from what "
         "they meet"},
        {"near(f8 + normal(0, 1, size=(4,), seed=1), 1, 0)",
         "bad-expression: column 1: near of random numbers: they are fewer than the elements of "
         "the array"},
        {"near(f8, 1, 0) @ f8.T", "bad-expression: column 1: near in one pass with a matrix "
                                  "product: store one of the two first"},
        {"median(\n near(f8, 1, 0))", "bad-expression: line 2, column 2: near in one pass with a "
                                      "quantile: store one of the two first"},
        {"near(f8, 1, 0, mode=reflect)", "float64 (3, 4)"},
        {"near(normal(size=(3, 5), seed=1), 1, 0)", "float64 (3, 5)"},
    };
    EXPECT_RESULTS(cases);
}

/* Of several outputs it is told whose, behind the first line with the line. */
Test(expr_near, what_is_refused_when_all_texts_are_read_is_told_with_its_place)
{
    struct fixture *f = fixture_new();
    cr_assert(
        eq(int, fixture_compile(f, "f8; median(\n\n near(f8, 1, 0)); f4"), GAD_BAD_EXPRESSION));
    cr_expect(eq(str, f->error.argument, (char *)"outputs[1]"));
    cr_expect(strncmp(f->error.message, "line 3, column 2: near in one pass", 34) == 0, "%s",
              f->error.message);
    fixture_free(f);
}

Test(expr_near, a_request_may_say_what_is_beyond_the_ends)
{
    struct fixture *f = fixture_new();
    f->request.beyond.mode = NEAR_WRAP;
    cr_assert(eq(int,
                 fixture_compile(f, "near(f8, 1, 0) + near(f8, 0, 1, mode=reflect) + "
                                    "window_max(f8, 3)"),
                 0));
    cr_expect(strstr(f->text, "at 1 wrap, 0\n") != NULL, "%s", f->text);
    cr_expect(strstr(f->text, "at 0, 1 reflect\n") != NULL, "%s", f->text);
    cr_expect(eq(int, f->program->windows[0].modes[1], NEAR_WRAP));
    fixture_free(f);
    f = fixture_new();
    f->request.beyond = (struct request_beyond){
        .mode = NEAR_CONSTANT, .dtype = DTYPE_FLOAT64, .value = {.f64 = 2.5}};
    cr_assert(eq(int, fixture_compile(f, "near(f8, 1, 0) + near(f8, 0, 1, mode=constant)"), 0));
    cr_expect(eq(dbl, f->program->nears[0].beyond.f64, 2.5));
    cr_expect(eq(dbl, f->program->nears[1].beyond.f64, 0)); /* the call's own mode has its own */
    expect_result(f, "near(i4, 1, 0)",
                  "bad-dtype: column 1: near: 'value' is no int32, which the elements are");
    expect_result(f, "near(i4, 1, 0, value=3)", "int32 (3, 4)");
    fixture_free(f);
}

/* near(big, ...) + near(big, ...), each with another offset. */
static char *sum_of_offsets(unsigned n)
{
    char *text = calloc(n, 40), *at = text;
    for (unsigned i = 0; i < n; i++)
        at += sprintf(at, "%snear(big,%u,%u)", i > 0 ? "+" : "", i / 20, i % 20 + 1);
    return text;
}

Test(expr_near, offsets_share_a_box_and_only_very_many_are_refused)
{
    char *text = sum_of_offsets(PASS_MAX_NEARS);
    struct fixture *f = fixture_new();
    fixture_add_array(f, "big", DTYPE_FLOAT32, 2, (int64_t[]){60, 40});
    cr_assert(eq(int, fixture_compile(f, text), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->n_inputs, 1));
    cr_expect(eq(int, f->program->n_nears, PASS_MAX_NEARS));
    cr_expect(f->program->passes[0].n_registers <= 2);
    free(text);
    text = sum_of_offsets(PASS_MAX_NEARS + 1);
    cr_expect(eq(int, fixture_compile(f, text), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 512 offsets of near() in one pass"));
    fixture_free(f);
    free(text);
}
