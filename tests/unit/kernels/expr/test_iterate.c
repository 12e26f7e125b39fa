/* iterate: the loop that a text comes to, its dtypes, and what is refused, with its column. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <time.h>

Test(expr_iterate, states_change_together_at_the_end_of_a_step)
{
    check_text("iterate(9, f8 = f8*f8 + row, until = f8*f8 > 2)",
               "in0 = argument 10: float64 (3, 4)\n"
               "in1 = argument 11: float64 (4,)\n"
               "pass 0 over (3, 4): 3 registers\n"
               "  r0 = minimum.float64 in0 in0\n"
               "  at most 9 times, 4 instructions:\n"
               "  r1 = multiply.float64 r0 r0\n"
               "  r2 = greater.float64 r1 2\n"
               "  unless r2:\n"
               "  r1 = add.float64 r1 in1\n"
               "  r0 = where.float64 r2 r0 r1\n"
               "  out0 = r0 (float64)\n");
    /* What each had before the step; without a condition they are copied. */
    check_text("iterate(3, f8 = row, row = f8)", "in0 = argument 10: float64 (3, 4)\n"
                                                 "in1 = argument 11: float64 (4,)\n"
                                                 "pass 0 over (3, 4): 4 registers\n"
                                                 "  r0 = minimum.float64 in1 in1\n"
                                                 "  r1 = minimum.float64 in0 in0\n"
                                                 "  at most 3 times, 4 instructions:\n"
                                                 "  r2 = minimum.float64 r1 r1\n"
                                                 "  r3 = minimum.float64 r0 r0\n"
                                                 "  r0 = minimum.float64 r2 r2\n"
                                                 "  r1 = minimum.float64 r3 r3\n"
                                                 "  out0 = r1 (float64)\n");
}

Test(expr_iterate, what_is_the_same_at_every_step_is_computed_before)
{
    check_text("iterate(9, f8 = f8 + sqrt(row) * sum(row))", "in0 = argument 10: float64 (3, 4)\n"
                                                             "in1 = argument 11: float64 (4,)\n"
                                                             "pass 0 over (4,): 0 registers\n"
                                                             "  red0 = sum.float64 in1 (float64)\n"
                                                             "pass 1 over (3, 4): 3 registers\n"
                                                             "  r0 = sqrt.float64 in1\n"
                                                             "  r0 = multiply.float64 r0 red0\n"
                                                             "  r1 = minimum.float64 in0 in0\n"
                                                             "  at most 9 times, 2 instructions:\n"
                                                             "  r2 = add.float64 r1 r0\n"
                                                             "  r1 = minimum.float64 r2 r2\n"
                                                             "  out0 = r1 (float64)\n");
}

Test(expr_iterate, calls_that_differ_in_their_order_are_one_loop)
{
    struct fixture *f = fixture_new();
    cr_assert(zero(int, fixture_compile(f, "iterate(9, f8 = f8*2, f4 = f4 + f8, until = f4 > 3);"
                                           "iterate(9, f4 = f4 + f8, f8 = f8*2, until = f4 > 3)")));
    cr_expect(eq(int, f->program->n_loops, 1));
    fixture_free(f);
    f = fixture_new();
    /* They share what their bodies have in common, not the steps. */
    cr_assert(zero(int, fixture_compile(f, "iterate(9, f8 = f8*f8 + 1) + iterate(8, f8 = f8*f8 + 1)"
                                           " * iterate(9, f8 = f8*f8 + 1, until = f8*f8 > 2)")));
    cr_expect(eq(int, f->program->n_loops, 3));
    fixture_free(f);
}

Test(expr_iterate, a_state_has_the_dtype_of_all_that_it_is_given)
{
    static const struct expected cases[] = {
        {"iterate(5, f4 = f4*2)", "float32 (3, 4)"},
        {"iterate(5, i2 = i2 + 1)", "int16 (3, 4)"},
        {"iterate(5, i2 = i2/2)", "float64 (3, 4)"},
        {"iterate(5, i1 = i1 + i2)", "int16 (3, 4)"},
        {"iterate(5, b = b | (f4 > 1), until = b)", "bool (3, 4)"},
        {"iterate(5, i1 = i2, i2 = i4, i4 = f4)", "float64 (3, 4)"},
        {"iterate(5, row = row + 1, column = row)", "float64 (3, 4)"},
        {"iterate(5, row = row + 1)", "float64 (4,)"},
        {"iterate(5, k = k + 1, until = f4 > 3)", "int64 (3, 4)"},
        {"iterate(5, k = k + 1)", "int64 ()"},
        {"z = 0.5; iterate(k, z = z + f4)", "float64 (3, 4)"},
        {"f(x, n) = iterate(5, x = x*2, until = x > n); f(f4, 3) + f(row, f8)", "float64 (3, 4)"},
        {"iterate(5, f8 = f8 + index(0))", "float64 (3, 4)"},
        {"iterate(5, f8 = f8 + 1, until = False)", "float64 (3, 4)"},
        {"iterate(5, f8 = f8 + 1, until = True)", "float64 (3, 4)"},
        {"iterate(5, row = row, until = b)", "float64 (3, 4)"}, /* nothing changes */
        {"iterate(5, f4 = f4, f8 = f8, until = f4 > f8)", "float32 (3, 4)"},
        {"iterate(5, f8 = f8)", "float64 (3, 4)"},
        {"sum(iterate(5, f8 = f8 + mean(row)), axis=0)", "float64 (4,)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_iterate, refusals_say_where)
{
    static const struct expected cases[] = {
        {"iterate(5, f8 = f8 + sum(f8))",
         "bad-expression: column 22: sum of what changes in iterate: a step has one element at a "
         "time"},
        {"iterate(5, f8 = near(f8, 1, 0))",
         "bad-expression: column 17: near of what changes in iterate: a step has one element at a "
         "time"},
        {"iterate(5, f8 = take(row, i8, mode=clip) + f8, i8 = take(row, i8, mode=clip))",
         "bad-expression: column 17: take of what changes in iterate: a step has one element at a "
         "time"},
        {"iterate(0, f8 = f8)",
         "limit-exceeded: column 9: iterate: the number of steps must be an integer that is known "
         "here, from 1 to 1000000"},
        {"iterate(1000001, f8 = f8)",
         "limit-exceeded: column 9: iterate: the number of steps must be an integer that is known "
         "here, from 1 to 1000000"},
        {"iterate(f8, f8 = f8)",
         "bad-expression: column 9: iterate: the number of steps must be an integer that is known "
         "here, from 1 to 1000000"},
        {"1 + iterate()",
         "bad-arity: column 5: iterate takes a number of steps and what changes in each: "
         "iterate(100, z = z*z + c, until = abs(z) > 2)"},
        {"iterate(f8 = f8 * f8)",
         "bad-arity: column 1: iterate takes a number of steps and what changes in each: "
         "iterate(100, z = z*z + c, until = abs(z) > 2)"},
        {"iterate(5, until = f8 > 1)",
         "bad-arity: column 1: iterate takes a number of steps and what changes in each: "
         "iterate(100, z = z*z + c, until = abs(z) > 2)"},
        {"iterate(5, f8)", "bad-expression: column 12: NAME = EXPRESSION expected, not 'f8'"},
        {"iterate(5, f8 = 1, f8 = 2)", "bad-expression: column 20: iterate: 'f8' is there twice"},
        {"iterate(5, f8 = 1, until = b, until = b)",
         "bad-expression: column 31: iterate: 'until' is there twice"},
        {"iterate(5, z = z + 1)", "bad-expression: column 12: iterate: 'z' has no value to begin "
                                  "with: NAME = ...; before it gives one"},
        {"iterate(5, pi = 3)", "bad-expression: column 12: iterate: 'pi' is a constant"},
        {"iterate(5, sum = 3)",
         "bad-expression: column 12: iterate: 'sum' is a function's or a dtype's name"},
        {"iterate(5, f8 = f8(1))",
         "bad-expression: column 17: 'f8' is a name bound here and cannot be called; np.f8 is the "
         "function"},
        {"f(x) = iterate(5, x = f(x)); f(f8)", "bad-expression: column 23: 'f' calls itself"},
        {"iterate(5, f8 = iterate(4, f8 = f8))",
         "bad-expression: column 17: iterate inside of iterate is not supported; what does not "
         "change from step to step can be given a name before"},
        {"f(x) = iterate(4, x = x/2); iterate(5, f8 = f(f8))",
         "bad-expression: column 8: iterate inside of iterate is not supported; what does not "
         "change from step to step can be given a name before"},
        {"iterate(5, f8 = f8 + normal(seed=1))",
         "bad-expression: column 22: normal inside of iterate would give the same numbers at every "
         "step; give them a name before it"},
        {"iterate(5, f8 = f8, until = f8)",
         "bad-dtype: column 29: iterate: until must be bool, not float64; write x != 0"},
        {"iterate(5, f8 = f8 + small)",
         "bad-shape: column 20: shapes (3, 4) and (5,) do not broadcast together"},
        {"iterate(5, f8 = f8", "bad-expression: column 8: this parenthesis is not closed"},
        {"iterate(5, f8 = f8; 3", "bad-expression: column 8: this parenthesis is not closed"},
        {"iterate = 3; iterate",
         "bad-expression: column 1: 'iterate' is a function and cannot be bound to another value"},
        {"near(iterate(5, f8 = f8 + 1), 0, 1)",
         "bad-expression: column 1: near of iterate: each element has its own steps"},
        {"cumsum(iterate(5, f8 = cumsum(f8)))",
         "bad-expression: column 24: cumsum of what changes in iterate: a step has one element at "
         "a time"},
    };
    EXPECT_RESULTS(cases);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *append(char *text, size_t n_times, const char *format)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n_times && n + 100 < REQUEST_MAX_EXPR_CHARS; i++)
        n += (size_t)sprintf(text + n, format, (int)i, (int)i, (int)i, (int)i);
    return text;
}

/* Texts as long as may be: they end soon, whatever they end with. */
Test(expr_iterate, hostile_texts_are_compiled_soon)
{
    static char texts[6][REQUEST_MAX_EXPR_CHARS + 1];
    strcpy(texts[0], "iterate(1000000, f8 = f8");
    append(texts[0], SIZE_MAX, "+sqrt(f8*%d)");
    strcpy(texts[1], "y0 = f8;");
    append(texts[1], SIZE_MAX, "y%d1 = iterate(1000000, f8 = f8 + %d, until = f8 > %d);");
    strcpy(texts[2], "iterate(9, f8 = f8, until = ");
    append(texts[2], SIZE_MAX, "(");
    /* Dtypes that rise by one state a round. */
    strcpy(texts[3], "a0=b;a1=b;a2=b;a3=b;a4=b;a5=b;a6=b;a7=b;a8=b;a9=b;aa=b;ab=b;ac=b;ad=b;"
                     "iterate(9,a0=a1,a1=a2,a2=a3,a3=a4,a4=a5,a5=a6,a6=a7,a7=a8,a8=a9,a9=aa,aa=ab,"
                     "ab=ac,ac=ad,ad=where(ad,ad,f8)");
    append(texts[3], SIZE_MAX, "+a0");
    strcpy(texts[4], "f(x) = x*x + 1; iterate(9, f8 = f8");
    append(texts[4], SIZE_MAX, "+f(f(f(f8)))");
    strcpy(texts[5], "f(x) = iterate(9, x = x + 1, until = x > 2); f(f8)");
    append(texts[5], SIZE_MAX, "+f(f8*%d)");
    strcat(texts[0], ")");
    strcat(texts[1], "y01");
    strcat(texts[3], ")");
    strcat(texts[4], ")");
    for (unsigned i = 0; i < 6; i++) {
        struct fixture *f = fixture_new();
        double begun = seconds();
        int r = fixture_compile(f, "f8");
        f->request.outputs[0].expr = texts[i];
        f->request.outputs[0].n_expr_chars = strlen(texts[i]);
        program_free(f->program);
        f->program = NULL;
        if (r == 0)
            r = program_compile(&f->request, &f->program, &f->error);
        cr_expect(lt(dbl, seconds() - begun, 1.0), "text %u: %d, %s", i, r, f->error.message);
        if (r != 0)
            f->program = NULL;
        fixture_free(f);
    }
}
