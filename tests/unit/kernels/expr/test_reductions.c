/* Reductions along axes: shapes, dtypes, what passes they take and what is refused. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void check_passes(const char *exprs, unsigned n_passes, unsigned n_reductions)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    cr_expect(eq(u32, f->program->n_passes, n_passes), "%s:\n%s", exprs, f->text);
    cr_expect(eq(u32, f->program->n_reductions, n_reductions), "%s:\n%s", exprs, f->text);
    fixture_free(f);
}

Test(expr_reductions, keep_the_axes_that_are_not_named)
{
    static const struct expected cases[] = {
        {"sum(f8, axis=0)", "float64 (4,)"},
        {"sum(f8, axis=-1)", "float64 (3,)"},
        {"sum(f8, axis=None)", "float64 ()"},
        {"sum(f8, axis=(0, 1))", "float64 ()"},
        {"sum(f8, axis=[1], keepdims=True)", "float64 (3, 1)"},
        {"sum(f8, (0,), None, None, True)", "float64 (1, 4)"},
        {"sum(f8, keepdims=1)", "float64 (1, 1)"},
        {"sum(f8, axis=())", "float64 (3, 4)"},
        {"sum(f8, axis=k - 3)", "float64 (4,)"},
        {"sum(f8, axis=(0)) + row", "float64 (4,)"},
        {"f8 - mean(f8, axis=1, keepdims=True)", "float64 (3, 4)"},
        {"f8 - mean(f8, axis=1)",
         "bad-shape: column 4: shapes (3, 4) and (3,) do not broadcast together"},
        {"sum(point)", "float32 ()"},
        {"mean(3, axis=0)", "float64 ()"},
        {"argmin(f4, axis=0)", "int64 (4,)"},
        {"any(empty)", "bool ()"},
        {"min(empty, initial=3)", "int32 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_reductions, have_numpys_dtypes)
{
    static const struct expected cases[] = {
        {"sum(i1)", "int64 ()"},
        {"prod(u2)", "uint64 ()"},
        {"sum(b)", "int64 ()"},
        {"nansum(f4)", "float32 ()"},
        {"sum(i1, dtype=int8)", "int8 ()"},
        {"sum(f8, dtype=np.float32)", "float32 ()"},
        {"prod(i4, dtype=bool)", "bool ()"},
        {"mean(i1)", "float64 ()"},
        {"mean(f4, axis=0)", "float32 (4,)"},
        {"mean(f4, dtype=float64)", "float64 ()"},
        {"mean(f4, dtype=int16)", "int16 ()"},
        {"var(f4)", "float32 ()"},
        {"nanstd(i8, axis=0)", "float64 (4,)"},
        {"std(f8, dtype=float32)", "float32 ()"},
        {"ptp(i2, axis=0)", "int16 (4,)"},
        {"nanmax(u1)", "uint8 ()"},
        {"all(f8, axis=1)", "bool (3,)"},
        {"count_nonzero(f8, axis=1)", "int64 (3,)"},
        {"argmax(b)", "int64 ()"},
        {"norm(f4)", "float32 ()"},
        {"norm(i1, ord=1, axis=0)", "float64 (4,)"},
        {"logsumexp(f4)", "float32 ()"},
        {"logsumexp(u1, axis=1)", "float64 (3,)"},
        {"logsumexp(f4, b=f8)", "float64 ()"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_reductions, of_one_source_and_axes_share_a_pass)
{
    check_text("(f8 - mean(f8, axis=0)) / std(f8, axis=0)",
               "in0 = argument 10: float64 (3, 4)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  red0 = squared deviations.float64 in0 over axes 0: (4,) (float64)\n"
               "  red1 = sum.float64 in0 over axes 0: (4,) (float64)\n"
               "pass 1 over (3, 4): 2 registers\n"
               "  r0 = divide.float64 red1 3\n"
               "  r0 = subtract.float64 in0 r0\n"
               "  r1 = divide.float64 red0 3\n"
               "  r1 = sqrt.float64 r1\n"
               "  r0 = divide.float64 r0 r1\n"
               "  out0 = r0 (float64)\n");
    check_passes("mean(f8, axis=0);std(f8, axis=0);min(f8, axis=0);max(f8, axis=0)", 2, 4);
    check_passes("sum(f8, axis=0);sum(f8, axis=1)", 4, 2);
    check_passes("sum(f8, axis=(0, 1));mean(f8);std(f8)", 2, 2);
    check_passes("mean((f8 - row)**2, axis=0)", 2, 1);
    check_passes("f8 * 2;sum(f8, axis=0)", 2, 1); /* the store in the reduction's pass */
    check_passes("sum(point) + mean(k)", 1, 0);
    check_passes("var(f8, where=b)", 3, 3);
}

Test(expr_reductions, are_done_in_the_dtype_that_is_there)
{
    /* sums are in double in any case */
    check_text("mean(f4, dtype=float64)", "in0 = argument 9: float32 (3, 4)\n"
                                          "pass 0 over (3, 4): 0 registers\n"
                                          "  red0 = sum.float32 in0 (float64)\n"
                                          "pass 1 over (): 1 register\n"
                                          "  r0 = divide.float64 red0 12\n"
                                          "  out0 = r0 (float64)\n");
    check_text("sum(i1, dtype=int64)", "in0 = argument 1: int8 (3, 4)\n"
                                       "pass 0 over (3, 4): 0 registers\n"
                                       "  red0 = sum.int8 in0 (int64)\n"
                                       "pass 1 over (): 0 registers\n"
                                       "  out0 = red0 (int64)\n");
}

/* The output may lie over f8. */
static void put_over_f8(struct fixture *f, unsigned output)
{
    f->args[10].array.at.kind = LOCATION_REGION;
    f->outputs[output].has_to = true;
    f->outputs[output].to = f->args[10].array;
}

Test(expr_reductions, read_an_array_before_a_store_over_it)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8 * 2;sum(f8, axis=0);sum(f8, axis=1)"), 0));
    put_over_f8(f, 0);
    cr_assert(eq(int, fixture_compile_request(f), 0));
    unsigned stored = f->program->outputs[0].pass;
    for (unsigned i = stored + 1; i < f->program->n_passes; i++)
        cr_expect(eq(u64, f->program->passes[i].inputs_used, 0), "%s", f->text);
    cr_expect(eq(u32, f->program->n_passes, 4), "%s", f->text);

    cr_assert(eq(int, fixture_compile(f, "f8 * 2;f8 - mean(f8, axis=0);sum(f8, axis=1)"), 0));
    put_over_f8(f, 0);
    cr_assert(eq(int, fixture_compile_request(f), 0));
    stored = f->program->outputs[0].pass;
    for (unsigned i = stored + 1; i < f->program->n_passes; i++)
        cr_expect(eq(u64, f->program->passes[i].inputs_used, 0), "%s", f->text);
    fixture_free(f);
}

Test(expr_reductions, say_what_is_wrong)
{
    static const struct expected cases[] = {
        {"sum(f8, axis=2)", "bad-shape: column 14: sum: axis 2 is out of range for shape (3, 4)"},
        {"sum(f8, axis=(0, -3))",
         "bad-shape: column 14: sum: axis -3 is out of range for shape (3, 4)"},
        {"sum(f8, axis=(1, -1))", "bad-shape: column 14: sum: axis 1 is given twice"},
        {"max(empty)", "bad-shape: column 1: zero-size array to reduction operation max which has "
                       "no identity"},
        {"argmin(f8, axis=(0, 1))", "bad-expression: column 17: argmin: 'axis' must be one "
                                    "integer, or None for all axes"},
        {"sum(f8, axis=f8)", "bad-expression: column 14: sum: 'axis' must be an integer, or a "
                             "tuple of integers, that is known here"},
        {"mean(f8, axis=time)",
         "bad-expression: column 15: mean: an axis is a number from 0 on, or "
         "from -1 at the end, not 'time'"},
        {"mean(f8, axis='time')", "bad-expression: column 15: mean: an axis is a number from 0 on, "
                                  "or from -1 at the end, not 'time'"},
        {"sum(f8, axis=(0, \"lat\"))", "bad-expression: column 14: sum: an axis is a number from 0 "
                                       "on, or from -1 at the end, not \"lat\""},
        {"sum(f8, lat)", "bad-expression: column 9: sum: an axis is a number from 0 on, or from -1 "
                         "at the end, not 'lat'"},
        {"normal(size=time, seed=1)", "unknown-name: column 13: unknown name 'time', did you mean "
                                      "'take'?"},
        {"sum(f8, axis=((0, 1), 1))", "bad-expression: column 17: ')' expected, not ','"},
        {"sum(f8, axis=(0, 1)", "bad-expression: column 4: this parenthesis is not closed"},
        {"sum(f8, axis=(0, 1", "bad-expression: column 14: this parenthesis is not closed"},
        {"sum(f8, axis=[0", "bad-expression: column 14: this bracket is not closed"},
        {"sum(f8, axis=(0, 1]", "bad-expression: column 19: ')' expected, not ']'"},
        {"sum(f8, where=f8)",
         "bad-dtype: column 15: sum: 'where' must be bool, not float64; write x != 0"},
        {"sum(row, where=b)",
         "bad-shape: column 16: sum: 'where' of shape (3, 4) does not broadcast to (4,)"},
        {"min(f8, where=b)",
         "bad-expression: column 1: min has no identity: with 'where', write 'initial' too"},
        {"sum(f8, out=f8)", "bad-expression: column 13: sum: 'out' can only be None here; where "
                            "results go is said with the outputs"},
        {"std(f8, dtype=int8)", "bad-dtype: column 1: std is computed in floats"},
        {"sum(f8, dtype=floa32)",
         "unknown-name: column 15: unknown name 'floa32', did you mean 'float32'?"},
        {"mean(f8, 0, None, None, False, b)",
         "bad-arity: column 1: mean takes 1 argument, then axis=None, dtype=None, out=None, "
         "keepdims=False, *, where=True; 6 given"},
        {"norm(f8, 2)", "bad-expression: column 10: norm: orders 2 and -2 of matrices need "
                        "singular values, which are not here"},
        {"sum(index(0))", "bad-shape: column 5: index(0): there is no array that gives the shape; "
                          "one must take part, or the output be there"},
    };
    EXPECT_RESULTS(cases);
}
