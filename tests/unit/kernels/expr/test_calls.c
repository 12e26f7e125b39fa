/* Calls with named arguments, lists and two results: what is read, and what is refused how. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define SELECT_LIMIT 64

/* Both texts compile to the same program. */
static void expect_same(const char *expr, const char *other)
{
    struct fixture *f = fixture_new(), *g = fixture_new();
    cr_expect(eq(int, fixture_compile(f, expr), 0), "%s: %s", expr, f->error.message);
    cr_expect(eq(int, fixture_compile(g, other), 0), "%s: %s", other, g->error.message);
    cr_expect(eq(str, f->text, g->text), "%s and %s", expr, other);
    fixture_free(f);
    fixture_free(g);
}

#define NO_INDEX                                                                                   \
    "only an argument takes an index, which is an argument too: a[i], a[:, i], a[mask]; of what "  \
    "is computed pick before, as in a[i] + 1, or make it an argument of its own, and select all "  \
    "else before, as in NAME=FILE[:, 0]"

Test(expr_calls, take_optional_arguments_by_position_and_by_name)
{
    expect_same("round(f4, 2)", "round(f4, decimals=2)");
    expect_same("round(f4)", "np.around(f4, decimals = 0,)");
    expect_same("clip(f4, 1, 2)", "clip(f4, a_max=2, a_min=1)");
    expect_same("clip(f4, 1, 2)", "clip(f4, min=1, max=2)");
    expect_same("clip(f4, None, 2)", "minimum(f4, 2)");
    expect_same("clip(f4, max=2)", "clip(f4, a_min=None, a_max=2)");
    expect_same("clip(f4, 1, max=None)", "maximum(f4, 1)");
    expect_same("clip(f4)", "positive(f4)");
    expect_same("clip(f4, None, None)", "f4");
    expect_same("isclose(f4, f8, 1e-05, 1e-08, False)", "isclose(f4, f8)");
    expect_same("isclose(f4, f8, equal_nan=True, rtol=k)", "isclose(f4, f8, 3, equal_nan=1)");
    expect_same("nan_to_num(f4)", "nan_to_num(f4, True, 0.0, None, None)");
    expect_same("nan_to_num(f4, nan=1)", "nan_to_num(f4, copy=False, nan=1, posinf=None)");
    expect_same("select([b], [f4])", "select([b,], [f4,], default=0,)");
    expect_same("select([b], [f4], i1)", "select([b], [f4], default=i1)");
    expect_same("round(f4, 2.0 == 2)", "round(f4, 1)");
}

Test(expr_calls, take_what_must_be_given_by_its_name_in_numpy)
{
    expect_same("quantile(f4, 0.5)", "quantile(f4, q=0.5)");
    expect_same("percentile(f4, [5, 50], 0)", "percentile(q=[5, 50], axis=0, a=f4)");
    expect_same("median(f4, axis=0)", "median(axis=0, a=f4)");
    expect_same("sum(f4, axis=1)", "sum(a=f4, axis=1)");
    expect_same("clip(f4, 1, 2)", "clip(a=f4, min=1, max=2)");
    expect_same("isclose(f4, f8)", "isclose(b=f8, a=f4)");
    expect_same("select([b], [f4], 3)", "select(condlist=[b], choicelist=[f4], default=3)");
    expect_same("select([b], [f4])", "select([b], choicelist=[f4])");
    expect_same("norm(f4, 1, 0)", "np.linalg.norm(x=f4, ord=1, axis=0)");
}

Test(expr_calls, refuse_names_of_what_must_be_given_that_do_not_fit)
{
    static const struct expected cases[] = {
        {"quantile(f4, 0.5, q=0.5)", "bad-expression: column 19: quantile: 'q' is given twice"},
        {"quantile(q=0.5, f4)", "bad-expression: column 17: an argument without a name behind one "
                                "that has a name"},
        {"round(decimals=1, b=f4)",
         "unknown-name: column 19: round has no argument 'b'; there are a, decimals=0"},
        {"isclose(b=f4)", "bad-arity: column 1: isclose takes 2 arguments, then rtol=1e-05, "
                          "atol=1e-08, equal_nan=False; 1 given"},
        {"select([b], [f4], condlist=3)",
         "bad-expression: column 19: select: 'condlist' is given twice"},
        {"select(choicelist=[f4], condlist=[b])",
         "bad-expression: column 8: select takes two lists, as in select([a < 0, a > 9], [-a, 9])"},
        {"add(x1=f4, x2=f4)", "bad-expression: column 5: 'x1=' is not supported: add has no named "
                              "arguments, == compares"},
        {"np.linalg.det(f4)", "unknown-name: column 11: unknown function 'linalg.det'"},
        {"np.linalg.(f4)", "bad-expression: column 11: a name expected, not '('"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_calls, tell_the_names_that_there_are)
{
    static const struct expected cases[] = {
        {"round(f4, decimal=2)", "unknown-name: column 11: round has no argument 'decimal', did "
                                 "you mean 'decimals'?"},
        {"isclose(f4, f8, exact=True)",
         "unknown-name: column 17: isclose has no argument 'exact'; there are a, b, rtol=1e-05, "
         "atol=1e-08, equal_nan=False"},
        {"select([b], [f4], defalt=1)", "unknown-name: column 19: select has no argument 'defalt', "
                                        "did you mean 'default'?"},
        {"sqrt(f4, out=f8)", "bad-expression: column 10: 'out=' is not supported: sqrt has no "
                             "named arguments, == compares"},
        {"float32(x=3)", "bad-expression: column 9: 'x=' is not supported: a cast has no named "
                         "arguments, == compares"},
        {"f4 + row=3", "bad-expression: column 9: '=' is not an operator, write == to compare"},
        {"f4 + x=3", "bad-expression: column 6: 'x=' has no place here: == compares, named "
                     "arguments stand in calls"},
        {"round(f4, 2, decimals=3)", "bad-expression: column 14: round: 'decimals' is given twice"},
        {"clip(f4, a_min=1, a_min=2)", "bad-expression: column 19: clip: 'a_min' is given twice"},
        {"clip(f4, a_min=None, a_min=2)",
         "bad-expression: column 22: clip: 'a_min' is given twice"},
        {"clip(f4, a_min=1, 2)", "bad-expression: column 19: an argument without a name behind "
                                 "one that has a name"},
        {"clip(f4, 1, 2, min=0)",
         "bad-expression: column 1: clip takes a_min and a_max, or min and max, not both"},
        {"round(decimals=2)",
         "bad-arity: column 1: round takes 1 argument, then decimals=0; 0 given"},
        {"round(f4, 1, 2)", "bad-arity: column 1: round takes 1 argument, then decimals=0; 3 "
                            "given"},
        {"isclose(f4)", "bad-arity: column 1: isclose takes 2 arguments, then rtol=1e-05, "
                        "atol=1e-08, equal_nan=False; 1 given"},
        {"round(f4, decimals=)", "bad-expression: column 20: an operand expected, not ')'"},
        {"round(f4, decimals=2", "bad-expression: column 6: this parenthesis is not closed"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_calls, fill_expected_and_found_for_names)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, fixture_compile(f, "round(f4, decimal=2)"), GAD_UNKNOWN_NAME));
    cr_expect(eq(str, f->error.expected, (char *)"a, decimals=0"));
    cr_expect(eq(str, f->error.found, (char *)"'decimal'"));
    cr_expect(eq(int, fixture_compile(f, "round()"), GAD_BAD_ARITY));
    cr_expect(eq(str, f->error.expected, (char *)"1 argument, then decimals=0"));
    cr_expect(eq(str, f->error.found, (char *)"0"));
    fixture_free(f);
}

Test(expr_calls, allow_none_where_the_default_is_none)
{
    struct fixture *f = fixture_new();
    static const struct expected cases[] = {
        {"round(f4, None)", "bad-expression: column 11: round: 'decimals' cannot be None"},
        {"nan_to_num(f4, nan=None)", "bad-expression: column 20: nan_to_num: 'nan' cannot be None"},
        {"None", "bad-expression: column 1: None is no value: it only stands for an optional "
                 "argument that is left out"},
        {"clip(None, 1, 2)", "bad-expression: column 6: None is no value: it only stands for an "
                             "optional argument that is left out"},
        {"clip(f4, None + 1, 2)", "bad-expression: column 15: ')' expected, not '+'"},
        {"nan_to_num(f4, posinf=None, neginf=None)", "float32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
    fixture_add_array(f, "None", DTYPE_INT8, 1, (int64_t[]){4});
    expect_result(f, "clip(f4, None, 2)", "float32 (3, 4)");
    cr_expect(eq(int, f->program->n_inputs, 2)); /* an argument wins */
    fixture_free(f);
}

Test(expr_calls, need_options_that_are_known)
{
    static const struct expected cases[] = {
        {"round(f4, i1)", "bad-expression: column 11: round: 'decimals' must be an integer of 32 "
                          "bits that is known here"},
        {"round(f4, 1.0)", "bad-expression: column 11: round: 'decimals' must be an integer of 32 "
                           "bits that is known here"},
        {"round(f4, decimals=2**40)", "bad-expression: column 21: round: 'decimals' must be an "
                                      "integer of 32 bits that is known here"},
        {"round(b, 1)", "bad-dtype: column 1: round of bools has no decimals, write int8(x)"},
        {"isclose(f4, f4, equal_nan=b)", "bad-expression: column 27: isclose: 'equal_nan' must be "
                                         "True or False, known here"},
        {"nan_to_num(f4, b)",
         "bad-expression: column 16: nan_to_num: 'copy' must be True or False, known here"},
        {"round(f4, k)", "float32 (3, 4)"},
        {"round(f4, True)", "float32 (3, 4)"},
        {"nan_to_num(row, nan=column)",
         "bad-shape: column 21: nan_to_num: a replacement of shape (3, 1) does not fit into (4,)"},
        {"nan_to_num(f4, posinf=column)", "float32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_calls, name_one_of_two_results)
{
    expect_same("divmod(f4, i1)[0]", "f4 // i1");
    expect_same("np.divmod(f4, i1) [ 1 ]", "f4 % i1");
    expect_same("modf(f4)[1]", "trunc(f4)");
    static const struct expected cases[] = {
        {"frexp(f4)[0] * 2.0**0 + frexp(f4)[1]", "float64 (3, 4)"},
        {"divmod(f4, 2)", "bad-expression: column 1: divmod gives two arrays, write divmod(a, "
                          "b)[0] or divmod(a, b)[1]"},
        {"1 + np.frexp(f4)", "bad-expression: column 8: frexp gives two arrays, write frexp(x)[0] "
                             "or frexp(x)[1]"},
        {"modf(f4)[2]", "bad-expression: column 10: modf gives two arrays, write modf(x)[0] or "
                        "modf(x)[1]"},
        {"modf(f4)[-1]", "bad-expression: column 10: modf gives two arrays, write modf(x)[0] or "
                         "modf(x)[1]"},
        {"modf(f4)[k]", "bad-expression: column 10: modf gives two arrays, write modf(x)[0] or "
                        "modf(x)[1]"},
        {"modf(f4)[0.0]", "bad-expression: column 10: modf gives two arrays, write modf(x)[0] or "
                          "modf(x)[1]"},
        {"modf(f4)[0", "bad-expression: column 11: modf gives two arrays, write modf(x)[0] or "
                       "modf(x)[1]"},
        {"modf(f4)[0][0]", "bad-expression: column 12: unexpected '['; " NO_INDEX},
        {"sqrt(f4)[0]", "bad-expression: column 9: unexpected '['; " NO_INDEX},
        {"divmod(f4)[0]", "bad-arity: column 1: divmod takes 2 arguments, 1 given"},
        {"frexp exponent(f4)", "bad-expression: column 1: 'frexp' is a function, write "
                               "frexp(...)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_calls, refuse_lists_that_do_not_fit)
{
    static const struct expected cases[] = {
        {"select([b], [1, 2])", "bad-arity: column 1: select has 1 condition and 2 choices; there "
                                "must be one or more of each, as many of both"},
        {"select([], [])", "bad-arity: column 1: select has 0 conditions and 0 choices; there must "
                           "be one or more of each, as many of both"},
        {"select()", "bad-arity: column 1: select takes 2 arguments, then default=0; 0 given"},
        {"select([b])", "bad-arity: column 1: select takes 2 arguments, then default=0; 1 given"},
        {"select([b], [1], 2, 3)",
         "bad-arity: column 1: select takes 2 arguments, then default=0; 4 given"},
        {"select(b, f4)", "bad-expression: column 8: select takes two lists, as in select([a < 0, "
                          "a > 9], [-a, 9])"},
        {"select([b], f4)", "bad-expression: column 13: select takes two lists, as in select([a < "
                            "0, a > 9], [-a, 9])"},
        {"select([b] [f4])", "bad-expression: column 12: unexpected '['; " NO_INDEX},
        {"select([b], [f4] 3)", "bad-expression: column 18: ')' expected, not '3'"},
        {"select([b], [f4]", "bad-expression: column 7: this parenthesis is not closed"},
        {"select([b, i1", "bad-expression: column 8: this bracket is not closed"},
        {"select([b i1", "bad-expression: column 11: ']' expected, not 'i1'"},
        {"select([b, i1], [1, 2])",
         "bad-dtype: column 12: select: a condition must be bool, not int8; write x != 0"},
        {"select([1], [f4])",
         "bad-dtype: column 9: select: a condition must be bool, not int64; write x != 0"},
        {"select([b], [f4], None)", "bad-expression: column 19: select: 'default' cannot be None"},
        {"select([b], [i1], 300)",
         "bad-expression: column 19: the number 300 is out of bounds for int8 (-128 to 127)"},
        {"select([b], [small])",
         "bad-shape: column 1: shapes (3, 4) and (5,) do not broadcast together"},
        {"[f4]", "bad-expression: column 1: unexpected '['; lists are only for select, q, axis, "
                 "size and range"},
        {"f4]", "bad-expression: column 3: an operator expected, not ']'"},
        {"select", "bad-expression: column 1: 'select' is a function, write select(...)"},
    };
    EXPECT_RESULTS(cases);
}

static char *write_select(char *text, unsigned n)
{
    char *at = stpcpy(text, "select([");
    for (unsigned i = 0; i < n; i++)
        at += sprintf(at, "f8>%u,", i);
    at = stpcpy(at, "],[");
    for (unsigned i = 0; i < n; i++)
        at += sprintf(at, "f4*%u,", i);
    strcpy(at, "])");
    return text;
}

Test(expr_calls, bound_the_conditions_of_a_select)
{
    static char text[8192];
    struct fixture *f = fixture_new();
    cr_expect(eq(int, fixture_compile(f, write_select(text, SELECT_LIMIT)), 0));
    cr_expect(lt(int, f->program->passes[0].n_registers, 6));
    cr_expect(
        eq(int, fixture_compile(f, write_select(text, SELECT_LIMIT + 1)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 64"));
    fixture_free(f);
}

Test(expr_calls, nest)
{
    static const struct expected cases[] = {
        {"select([isclose(f4, f8), b], [select([b], [clip(f4, 1, max(f4))], 1), modf(f4)[0]],"
         " default=round(f4, decimals=1))",
         "float32 (3, 4)"},
        {"clip(clip(f4, 0, 1), min=clip(f8, max=3))", "float64 (3, 4)"},
        {"divmod(divmod(i4, 7)[0], divmod(i4, 3)[1])[1]", "int32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}
