/* Names given to parts of an expression: what they mean, what may be one, and that no text of them
 * takes long. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both give the same program. */
static void expect_same(struct fixture *f, const char *text, const char *plain)
{
    char got[sizeof(f->text)];
    expect_result(f, text, "float64 (3, 4)");
    strcpy(got, f->text);
    expect_result(f, plain, "float64 (3, 4)");
    cr_expect(eq(str, got, f->text), "%s", text);
}

Test(expr_bindings, stand_for_what_they_name)
{
    struct fixture *f = fixture_new();
    expect_same(f, "t = f8; t + 1", "f8 + 1");
    expect_same(f, "t = f8*f8; t + t", "f8*f8 + f8*f8");
    expect_same(f, "d = f8 - mean(f8); s = mean(d*d); d / sqrt(s)",
                "(f8 - mean(f8)) / sqrt(mean((f8 - mean(f8))*(f8 - mean(f8))))");
    expect_same(f, "s = row + column; a_1 = s; _ = a_1*2; _ - s", "(row+column)*2 - (row+column)");
    expect_same(f, "q = divmod(f8, 3)[0]; r = divmod(f8, 3)[1]; q*3 + r",
                "divmod(f8, 3)[0]*3 + divmod(f8, 3)[1]");
    expect_same(f, "i = index(0); where(i > 1, f8, i)", "where(index(0) > 1, f8, index(0))");
    expect_same(f, "c = f8 > 2; select([c, ~c], [f8, -f8])",
                "select([f8 > 2, ~(f8 > 2)], [f8, -f8])");
    expect_same(f, "t = f8*row;\n t2 = sin(t);\r\n\tt2 + t ; \n", "sin(f8*row) + f8*row");
    expect_same(f, "f8 + 1;", "f8 + 1");
    fixture_free(f);
}

Test(expr_bindings, compute_nothing_twice_and_nothing_unused)
{
    struct fixture *f = fixture_new();
    expect_result(f, "t = sin(f8); t*t + t", "float64 (3, 4)");
    cr_expect(eq(int, f->program->n_insns, 3));
    expect_result(f, "m = mean(f4); t = exp(i4); u = sum(t); f8 + 1", "float64 (3, 4)");
    cr_expect(eq(int, f->program->n_insns, 1));
    cr_expect(eq(int, f->program->n_passes, 1));
    cr_expect(eq(int, f->program->n_inputs, 1));
    fixture_free(f);
}

Test(expr_bindings, keep_numbers_weak)
{
    static const struct expected cases[] = {
        {"n = 3; i1 * n", "int8 (3, 4)"},
        {"n = 3; n2 = n*0.5; f4 * n2", "float32 (3, 4)"},
        {"n = 0.5; i1 * n", "float64 (3, 4)"},
        {"n = k; i1 * n", "int8 (3, 4)"},
        {"n = +True; i1 + n", "int8 (3, 4)"},
        {"n = 2; round(f4, n)", "float32 (3, 4)"},
        {"n = 1; index(n) + i4", "int64 (3, 4)"},
        {"n = 2**-1; n", "float64 ()"},
        {"n = float32(3); i1 * n", "float32 (3, 4)"},
        {"n = 300; i1 * n", "bad-expression: column 15: the number 300 is out of bounds for int8 "
                            "(-128 to 127)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_bindings, have_one_meaning_in_a_text)
{
    static const struct expected cases[] = {
        {"t = f8; t = f4; t",
         "bad-expression: column 9: 't' is bound already and cannot be bound to another value"},
        {"f8 = 3; f8", "bad-expression: column 1: 'f8' is an argument (== compares) and cannot be "
                       "bound to another value"},
        {"pi = 3; pi",
         "bad-expression: column 1: 'pi' is a constant and cannot be bound to another value"},
        {"e = 3; e",
         "bad-expression: column 1: 'e' is a constant and cannot be bound to another value"},
        {"True = 3; 1",
         "bad-expression: column 1: 'True' is a constant and cannot be bound to another value"},
        {"np = 3; 1",
         "bad-expression: column 1: 'np' is NumPy's own name and cannot be bound to another value"},
        {"numpy = 3; 1",
         "bad-expression: column 1: 'numpy' is NumPy's own name and cannot be bound "
         "to another value"},
        {"mod = 3; 1",
         "bad-expression: column 1: 'mod' is a function and cannot be bound to another value"},
        {"astype = 3; 1",
         "bad-expression: column 1: 'astype' is a function and cannot be bound to another value"},
        {"float32 = 3; 1",
         "bad-expression: column 1: 'float32' is a dtype and cannot be bound to another value"},
        {"b1 = 3; 1",
         "bad-expression: column 1: 'b1' is a dtype and cannot be bound to another value"},
        {"lambda = 3; 1", "bad-expression: column 1: 'lambda' is a word of Python and cannot be "
                          "bound to another value"},
        {"None = 3; 1", "bad-expression: column 1: 'None' is a word of Python and cannot be bound "
                        "to another value"},
        {"t = f8; t(3)", "bad-expression: column 9: 't' is a name bound here and cannot be called"},
        {"t = f8; np.t", "unknown-name: column 12: unknown name 't'"},
        {"t = f8;\nu = 2*t;\r\n t + v", "unknown-name: line 3, column 6: unknown name 'v'"},
        {"v = f8 +\n;\nv", "bad-expression: line 2, column 1: an operand expected, not ';'"},
        {"\n f8 + (3", "bad-expression: line 2, column 7: this parenthesis is not closed"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_bindings, are_known_behind_their_semicolon)
{
    static const struct expected cases[] = {
        {"t = t + 1; t", "unknown-name: column 5: unknown name 't'"},
        {"a = bb; bb = f8; a", "unknown-name: column 5: unknown name 'bb', did you mean 'b'?"},
        {"speed = f8; sped + 1",
         "unknown-name: column 13: unknown name 'sped', did you mean 'speed'?"},
        {"speed = f8; sqr(speed)", "unknown-name: column 13: unknown name 'sqr', did you mean "
                                   "'sqrt'?"},
        {"speed = f8; speeed(1)", "unknown-name: column 13: unknown function 'speeed'"},
    };
    EXPECT_RESULTS(cases);
    struct fixture *f = fixture_new();
    f->request.n_outputs = 2;
    f->outputs[0] = (struct request_output){.expr = "t = f8; t", .n_expr_chars = 9};
    f->outputs[1] = (struct request_output){.expr = "t", .n_expr_chars = 1};
    cr_expect(eq(int, fixture_compile_request(f), GAD_UNKNOWN_NAME));
    cr_expect(eq(str, f->error.argument, (char *)"outputs[1]"));
    f->outputs[1] = (struct request_output){.expr = "t = f4; t", .n_expr_chars = 9};
    cr_expect(eq(int, fixture_compile_request(f), 0));
    cr_expect(eq(int, f->program->outputs[1].dtype, DTYPE_FLOAT32));
    fixture_free(f);
}

Test(expr_bindings, are_checked_also_where_they_are_not_used)
{
    static const struct expected cases[] = {
        {"t = f8 + small; f8",
         "bad-shape: column 8: shapes (3, 4) and (5,) do not broadcast together"},
        {"t = ~f8; f8", "bad-dtype: column 5: invert needs integers or bools"},
        {"t = 1 // 0; f8", "bad-expression: column 7: integer division by zero"},
        {"t = sqrt(; f8", "bad-expression: column 10: an operand expected, not ';'"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_bindings, come_before_one_result)
{
    static const struct expected cases[] = {
        {"t = f8", "bad-expression: column 7: the expression ends where ';' and the result should "
                   "be"},
        {"t = f8;", "bad-expression: column 8: the expression ends where the result should be"},
        {"t = ; f8", "bad-expression: column 5: an operand expected, not ';'"},
        {"t = f8 3; t", "bad-expression: column 8: an operator expected, not '3'"},
        {"t = f8); t", "bad-expression: column 7: this parenthesis was never opened"},
        {"t = (f8; t", "bad-expression: column 5: this parenthesis is not closed"},
        {"t = select([b; t", "bad-expression: column 12: this bracket is not closed"},
        {"(t = f8; t)", "bad-expression: column 2: 't=' has no place here: == compares, named "
                        "arguments stand in calls"},
        {"t = u = f8; t", "bad-expression: column 5: 'u=' has no place here: == compares, named "
                          "arguments stand in calls"},
        {"f8; f4", "bad-expression: column 1: only the last expression is the result; this one "
                   "needs a name: NAME = ...;"},
        {"f8; t = f4; t", "bad-expression: column 1: only the last expression is the result; this "
                          "one needs a name: NAME = ...;"},
        {"f8;;", "bad-expression: column 4: the end expected, not ';'"},
        {";f8", "bad-expression: column 1: an operand expected, not ';'"},
        {";", "bad-expression: column 1: an operand expected, not ';'"},
        {"q, r = divmod(f8, 3); q", "bad-expression: column 1: one name at a time: q = divmod(a, "
                                    "b)[0]; r = divmod(a, b)[1]; ..."},
        {"t == f8; t", "unknown-name: column 1: unknown name 't'"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_bindings, have_names_as_arguments_have)
{
    struct fixture *f = fixture_new();
    char text[200];
    for (int n = ARRAY_NAME_SIZE - 1; n <= ARRAY_NAME_SIZE; n++) {
        char name[ARRAY_NAME_SIZE + 1];
        memset(name, 'x', (size_t)n);
        name[n] = '\0';
        snprintf(text, sizeof(text), "%s = f8; %s*2", name, name);
        expect_result(f, text,
                      n < ARRAY_NAME_SIZE
                          ? "float64 (3, 4)"
                          : "bad-expression: column 1: a name of 64 characters is too long");
    }
    cr_expect(eq(str, f->error.expected, (char *)"at most 63 characters"));
    fixture_free(f);
}

/* first, then `part` n times with the numbers i + 1 and i, then last with n. */
static char *chain(const char *first, const char *part, unsigned n, const char *last)
{
    char *text = malloc(64 * (size_t)n + 256), *at = stpcpy(text, first);
    for (unsigned i = 0; i < n; i++) {
        for (const char *p = part; *p != '\0'; p++)
            at += *p == '>'   ? sprintf(at, "%x", i + 1)
                  : *p == '<' ? sprintf(at, "%x", i)
                              : sprintf(at, "%c", *p);
    }
    at = stpcpy(at, last);
    sprintf(at, "%x", n);
    return text;
}

static void expect_chain(struct fixture *f, const char *first, const char *part, unsigned n,
                         const char *last, unsigned n_insns)
{
    char *text = chain(first, part, n, last);
    expect_result(f, text, "float64 (3, 4)");
    cr_expect(eq(int, f->program->n_insns, n_insns), "%s", part);
    cr_expect(le(int, f->program->passes[0].n_registers, 3), "%s", part);
    free(text);
}

/* Each of these stands for an expression of 2^200 terms or more. */
Test(expr_bindings, take_work_in_proportion_to_the_text, .timeout = 10)
{
    struct fixture *f = fixture_new();
    expect_chain(f, "t0=f8*k;", "t>=t<+t<;", 200, "t", 201);
    expect_chain(f, "t0=f8*k;", "t>=sin(t<)*t<;", 200, "t", 401);
    expect_chain(f, "t0=f8*k;", "t>=(t<*f8-t<)*(t<+f8);", 200, "t", 801);
    expect_chain(f, "t0=f8;", "t>=t<+row;", 1000, "t", 1000);
    expect_chain(f, "", "t>=f8;", 1500, "t", 0);
    fixture_free(f);
}

/* ---- functions ---- */

Test(expr_bindings, a_function_is_what_its_text_would_be)
{
    struct fixture *f = fixture_new();
    expect_same(f, "sq(x) = x*x; sq(f8) + sq(f8 - 1)", "f8*f8 + (f8 - 1)*(f8 - 1)");
    expect_same(f, "g(x, y) = x + 2*y; h(x) = g(x, row) - g(1, x); t = h(f8); h(t)",
                "t = (f8 + 2*row) - (1 + 2*f8); (t + 2*row) - (1 + 2*t)");
    expect_same(f, "d(x) = near(x, 0, 1) - x; d(d(f8) * 0 + f4)",
                "near((near(f8, 0, 1) - f8) * 0 + f4, 0, 1) - ((near(f8, 0, 1) - f8) * 0 + f4)");
    expect_same(f, "f(row) = row + 1; f(f8) * row", "(f8 + 1) * row");
    expect_same(f, "f() = f8 * 2; f()", "f8 * 2");
    fixture_free(f);
}

Test(expr_bindings, what_functions_refuse)
{
    static const struct expected cases[] = {
        {"f(x) = x + f(x); f(f8)", "bad-expression: column 12: 'f' calls itself"},
        {"f(x) = g(x); g(x) = x; f(f8)", "unknown-name: column 8: unknown function 'g'"},
        {"f(x) = x + ; f8", "bad-expression: column 12: an operand expected, not ';'"},
        {"f(x, x) = x; f8", "bad-expression: column 6: parameter 'x' is there twice"},
        {"f(x) = x + y; f8", "unknown-name: column 12: unknown name 'y'"},
        {"f(x) = x; f(f8, 1)", "bad-arity: column 11: f takes 1 argument, 2 given"},
        {"sqrt(x) = x; f8", "bad-expression: column 1: 'sqrt' is a function and cannot be bound to "
                            "another value"},
        {"f(x) = x; f = 3; f8",
         "bad-expression: column 11: 'f' is a function of this text and cannot be bound to another "
         "value"},
        {"f(x) = x @ x; f(row) + f(f8)",
         "bad-shape: column 10: matmul: inner dimensions differ: (3, 4) @ (3, 4)"},
    };
    EXPECT_RESULTS(cases);
    char text[400];
    int n = snprintf(text, sizeof(text), "g0(x) = x + x; ");
    for (int i = 1; i < 16; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "g%d(x)=g%d(x)+g%d(x);", i, i - 1, i - 1);
    snprintf(text + n, sizeof(text) - (size_t)n, "g15(f8)");
    struct fixture *f = fixture_new();
    expect_result(f, text,
                  "limit-exceeded: column 28: functions that call each other make the "
                  "expression too long");
    fixture_free(f);
}
