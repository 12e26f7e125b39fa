/* index(axis): which axis of which array it counts along, and where there is none. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void compile_into(struct fixture *f, const char *expr, enum dtype dtype, int want)
{
    f->request.n_outputs = 1;
    f->outputs[0] = (struct request_output){
        .expr = expr,
        .n_expr_chars = strlen(expr),
        .has_to = true,
        .to = {.dtype = dtype, .ndim = 2, .shape = {30, 40}},
    };
    cr_expect(eq(int, fixture_compile_request(f), want), "%s: %s", expr, f->error.message);
}

Test(expr_axes, are_int64_and_have_the_shape_of_what_they_meet)
{
    static const struct expected cases[] = {
        {"i1 + index(0)", "int64 (3, 4)"},
        {"f4 * index(-1)", "float64 (3, 4)"},
        {"index(k - 2) * row + column", "float64 (3, 4)"},
        {"where(index(0) < 2, f4, 0)", "float32 (3, 4)"},
        {"sum(f8 * index(1))", "float64 ()"},
        {"max(where(f8 > 0, index(0), -1))", "int64 ()"},
        {"f8 > 0", "bool (3, 4)"},
    };
    EXPECT_RESULTS(cases);
    check_contains("f4 * index(-1)", "r1 = float64.int64 index1");
    check_contains("f4 * index(-2)", "r1 = float64.int64 index0");
}

Test(expr_axes, are_those_of_the_whole_output)
{
    /* `row` has one axis, the sum two */
    check_contains("column + row * index(0)", "float64.int64 index0");
    check_contains("column + row * index(-1)", "float64.int64 index1");
    check_contains("column + row * index(1)", "float64.int64 index1");
    /* what is reduced is a whole of its own */
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8 * index(1) + sum(row * index(0))"), 0));
    cr_expect(eq(int, f->program->n_passes, 2));
    cr_expect(eq(int, f->program->passes[0].ndim, 1));
    fixture_free(f);
}

Test(expr_axes, are_refused_where_there_are_none)
{
    static const struct expected cases[] = {
        {"row * index(1)",
         "bad-shape: column 7: index(1): the array that is computed has 1 axis, shape (4,)"},
        {"f8 + index(-3)",
         "bad-shape: column 6: index(-3): the array that is computed has 2 axes, shape (3, 4)"},
        {"f8 + sum(row * index(1))",
         "bad-shape: column 16: index(1): the array that is computed has 1 axis, shape (4,)"},
        {"sum(f8, where=index(2) > 1)",
         "bad-shape: column 15: index(2): the array that is computed has 2 axes, shape (3, 4)"},
        {"var(f8, axis=0, where=index(-3) > 1)",
         "bad-shape: column 23: index(-3): the array that is computed has 2 axes, shape (3, 4)"},
        {"logsumexp(f8, b=index(31))",
         "bad-shape: column 17: index(31): the array that is computed has 2 axes, shape (3, 4)"},
        {"sum(f8, axis=0, initial=index(0))",
         "bad-shape: column 25: sum: 'initial' must be one number"},
        {"point * index(0)",
         "bad-shape: column 9: index(0): the array that is computed has 0 axes, shape ()"},
        {"index(0) * 1000 + index(1)",
         "bad-shape: column 1: index(0): there is no array that gives the shape; one must take "
         "part, or the output be there"},
        {"sum(index(0)) * f8",
         "bad-shape: column 5: index(0): there is no array that gives the shape; one must take "
         "part, or the output be there"},
        {"index(0) * sum(f8)",
         "bad-shape: column 1: index(0): there is no array that gives the shape; one must take "
         "part, or the output be there"},
        {"index(f8)", "bad-expression: column 1: index: the axis must be an integer that is known "
                      "here, as in index(0)"},
        {"index(0.0)", "bad-expression: column 1: index: the axis must be an integer that is known "
                       "here, as in index(0)"},
        {"index(True)", "bad-expression: column 1: index: the axis must be an integer that is "
                        "known here, as in index(0)"},
        {"f8 + index(32)", "bad-shape: column 6: index: arrays have at most 32 axes"},
        {"f8 + index(-33)", "bad-shape: column 6: index: arrays have at most 32 axes"},
        {"f8 + index(2**63)", "bad-shape: column 6: index: arrays have at most 32 axes"},
        {"index()", "bad-arity: column 1: index takes 1 argument, 0 given"},
    };
    EXPECT_RESULTS(cases);
    struct fixture *f = fixture_new();
    cr_expect(eq(int, fixture_compile(f, "f8 + index(2)"), GAD_BAD_SHAPE));
    cr_expect(eq(str, f->error.expected, (char *)"-2 to 1"));
    cr_expect(eq(str, f->error.found, (char *)"2"));
    /* the column is that of the output at hand, though the value is one */
    cr_expect(eq(int, fixture_compile(f, "f8 + index(1);        row + index(1)"), GAD_BAD_SHAPE));
    cr_expect(eq(str, f->error.message,
                 (char *)"column 15: index(1): the array that is computed has 1 axis, shape (4,)"));
    fixture_free(f);
}

Test(expr_axes, take_the_shape_of_an_output_that_is_there)
{
    struct fixture *f = fixture_new();
    compile_into(f, "index(0)*1000 + index(1)", DTYPE_INT32, 0);
    cr_expect(eq(int, (int)f->program->passes[0].shape[0], 30));
    cr_expect(eq(int, f->program->n_inputs, 0));
    cr_expect(ne(ptr, strstr(f->text, "multiply.int64 index0 1000"), NULL));
    compile_into(f, "index(-1)", DTYPE_INT64, 0);
    cr_expect(eq(int, f->program->stores[0].src.kind, OPERAND_REGISTER));
    cr_expect(eq(int, f->program->passes[0].ndim, 2));
    compile_into(f, "index(0) * sum(f8) + point", DTYPE_FLOAT64, 0);
    cr_expect(eq(int, f->program->n_passes, 2));
    cr_expect(eq(int, (int)f->program->passes[1].shape[1], 40));
    compile_into(f, "index(2)", DTYPE_INT64, GAD_BAD_SHAPE);
    compile_into(f, "f8 * index(0)", DTYPE_FLOAT64, GAD_BAD_SHAPE);
    compile_into(f, "sum(index(0))", DTYPE_INT64, GAD_BAD_SHAPE);
    compile_into(f, "index(0)", DTYPE_UINT8, GAD_BAD_DTYPE);
    compile_into(f, "2.5", DTYPE_FLOAT64, GAD_BAD_SHAPE); /* numbers alone have a shape: () */
    fixture_free(f);
}

Test(expr_axes, share_a_pass_and_their_values)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8 + sin(index(0));i8 * sin(index(0))"), 0));
    cr_expect(eq(int, f->program->n_passes, 1));
    cr_expect(eq(int, f->program->n_insns, 5));
    /* the same value of another pass is another array */
    cr_assert(eq(int, fixture_compile(f, "f8 + sin(index(0));row * sin(index(0))"), 0));
    cr_expect(eq(int, f->program->n_passes, 2));
    cr_expect(eq(int, f->program->passes[1].n_insns, 3));
    fixture_free(f);
}

Test(expr_axes, have_the_square_root_of_arrays)
{
    check_contains("f8 + index(0) ** 0.5", "sqrt.float64");
    static const struct expected cases[] = {
        {"f8 + index(0) ** -1", "negative-integer-power: column 15: integers to negative integer "
                                "powers are not allowed, write x ** -1.0"},
    };
    EXPECT_RESULTS(cases);
}
