/* Random numbers: their instructions, their shapes, and what is refused. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(expr_random, numbers_are_functions_of_number_seed_and_stream)
{
    check_text("f8 + 0.5 * normal(seed=3)", "in0 = argument 10: float64 (3, 4)\n"
                                            "pass 0 over (3, 4): 1 register\n"
                                            "  r0 = random u64.uint64 index 3 2\n"
                                            "  r0 = standard normal.uint64 r0\n"
                                            "  r0 = multiply.float64 0.5 r0\n"
                                            "  r0 = add.float64 in0 r0\n"
                                            "  out0 = r0 (float64)\n");
    check_text("uniform(2, 5, size=(2, 3), seed=1, dtype=float32)",
               "pass 0 over (2, 3): 1 register\n"
               "  r0 = random u32.uint64 index 1 1\n"
               "  r0 = standard uniform.uint32 r0\n"
               "  r0 = multiply.float32 3 r0\n"
               "  r0 = add.float32 2 r0\n"
               "  out0 = r0 (float32)\n");
    check_text("integers(-3, 7, seed=1, size=5, dtype=int8)",
               "pass 0 over (5,): 2 registers\n"
               "  r0 = random u64.uint64 index 1 4\n"
               "  r0 = multiply high.uint64 r0 10\n"
               "  r0 = add.uint64 18446744073709551613 r0\n"
               "  r1 = int8.uint64 r0\n"
               "  out0 = r1 (int8)\n");
    check_text("permutation(9, seed=7)", "pass 0 over (9,): 1 register\n"
                                         "  r0 = random permuted.uint64 index 7 9\n"
                                         "  r0 = int64.uint64 r0\n"
                                         "  out0 = r0 (int64)\n");
    check_text("poisson(row, seed=k)", "in0 = argument 11: float64 (4,)\n"
                                       "pass 0 over (4,): 1 register\n"
                                       "  r0 = random poisson.float64 index uint64:3 in0\n"
                                       "  out0 = r0 (int64)\n");
}

Test(expr_random, numbers_have_the_size_or_the_shape_of_what_they_meet)
{
    static const struct expected cases[] = {
        {"normal(size=(2, 3), seed=1)", "float64 (2, 3)"},
        {"normal(size=[], seed=1)", "float64 ()"},
        {"normal(size=7, seed=1, dtype=float32)", "float32 (7,)"},
        {"normal(f4, seed=1)", "float64 (3, 4)"},
        {"normal(f4, seed=1, dtype=float32)", "float32 (3, 4)"},
        {"row + (column + normal(seed=1))", "float64 (3, 4)"},
        {"bernoulli(f8, seed=1)", "bool (3, 4)"},
        {"integers(i1, seed=1)", "int64 (3, 4)"},
        {"integers(200, dtype=uint8, size=(), seed=1)", "uint8 ()"},
        {"choice(5, 3, False, seed=1)", "int64 (3,)"},
        {"sum(f8 + normal(size=(3, 4), seed=1), axis=0)", "float64 (4,)"},
        {"mean(f8, where=bernoulli(0.5, seed=1))", "float64 ()"},
        {"f8 + normal(size=12, seed=1)",
         "bad-shape: column 4: shapes (3, 4) and (12,) do not broadcast together"},
        {"f8 + normal(size=4, seed=1)",
         "bad-shape: column 6: random numbers of size (4,) would repeat in an array of shape "
         "(3, 4); leave 'size' out for one of each element"},
        {"sum(f8, where=bernoulli(0.5, size=4, seed=1))",
         "bad-shape: column 15: random numbers of size (4,) would repeat in an array of shape "
         "(3, 4); leave 'size' out for one of each element"},
        {"normal(seed=1)", "bad-shape: column 1: random numbers of no shape: write size=(...), or "
                           "let an array take part, or the output be there"},
        {"sum(normal(seed=1))", "bad-shape: column 5: random numbers of no shape: write "
                                "size=(...), or let an array take part, or the output be there"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_random, equal_calls_are_one_value)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "normal(f8, seed=1);normal(f8, seed=1) + 1"), 0));
    cr_expect(eq(int, f->program->n_insns, 4), "%s", f->text);
    cr_assert(eq(int, fixture_compile(f, "normal(size=3, seed=1);normal(size=4, seed=1)"), 0));
    cr_expect(eq(int, f->program->n_passes, 2), "%s", f->text);
    fixture_free(f);
}

Test(expr_random, an_output_gives_the_shape)
{
    struct fixture *f = fixture_new();
    const char *expr = "normal(seed=1)";
    f->request.n_outputs = 1;
    f->outputs[0] = (struct request_output){
        .expr = expr,
        .n_expr_chars = strlen(expr),
        .has_to = true,
        .to = {.dtype = DTYPE_FLOAT32, .ndim = 2, .shape = {30, 40}},
    };
    cr_assert(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    cr_expect(eq(int, (int)f->program->outputs[0].shape[1], 40));
    fixture_free(f);
}

Test(expr_random, says_what_is_wrong)
{
    static const struct expected cases[] = {
        {"normal()", "bad-arity: column 1: normal: 'seed' must be given"},
        {"normal(0, 1, 3, 4)", "bad-arity: column 1: normal takes 0 arguments, then loc=0.0, "
                               "scale=1.0, size=None, *, seed, dtype=float64; 4 given"},
        {"normal(seed=-1, size=3)", "bad-expression: column 13: normal: 'seed' must be an integer "
                                    "of 64 bits without a sign"},
        {"normal(seed=f8)", "bad-expression: column 13: normal: 'seed' must be an integer that is "
                            "known here"},
        {"normal(scale=-2, seed=1, size=3)",
         "bad-expression: column 14: normal: 'scale' must be 0 or more, not -2"},
        {"bernoulli(2, seed=1, size=3)",
         "bad-expression: column 11: bernoulli: 'p' must be 0 to 1, not 2"},
        {"normal(size=(3, -1), seed=1)",
         "bad-shape: column 13: normal: 'size' has an axis of length -1"},
        {"normal(size=(9223372036854775807, 9), seed=1)",
         "bad-shape: column 13: an array of shape (9223372036854775807, 9) is too large"},
        {"normal(dtype=int8, size=3, seed=1)", "bad-dtype: column 1: normal gives floats"},
        {"integers(3, 3, seed=1, size=3)",
         "bad-expression: column 1: integers: there is nothing from 3 to below 3"},
        {"integers(200, seed=1, size=3, dtype=int8)",
         "bad-expression: column 1: integers: 0 to below 200 does not fit int8"},
        {"integers(f8, seed=1)", "bad-dtype: column 1: integers needs integers as its bounds"},
        {"choice(3, 4, False, seed=1)", "bad-expression: column 1: choice: more numbers are taken "
                                        "than there are, without replacement"},
        {"choice(i1, seed=1)",
         "bad-shape: column 1: choice: 'a' must have one axis, not shape (3, 4)"},
        {"choice(2.5, seed=1)", "bad-expression: column 8: choice of n: n must be an integer of 1 "
                                "or more that is known here, or an array"},
    };
    EXPECT_RESULTS(cases);
}

/* rows is (3, 1) of int64. */
static struct fixture *by_rows(void)
{
    struct fixture *f = fixture_new();
    f->request.draws = (struct request_draws){
        .has_seed = true,
        .seed = 9,
        .has_rows = true,
        .rows = f->request.n_args,
        .has_size = true,
        .ndim = 2,
        .size = {3, 4},
    };
    fixture_add_array(f, "rows", DTYPE_INT64, 2, (int64_t[]){3, 1});
    return f;
}

Test(expr_random, numbers_are_counted_from_their_rows)
{
    struct fixture *f = by_rows();
    cr_assert(eq(int, fixture_compile(f, "f8 + normal()"), 0), "%s", f->error.message);
    cr_expect(eq(str, f->text,
                 (char *)"in0 = argument 10: float64 (3, 4)\n"
                         "in1 = argument 17: int64 (3, 1)\n"
                         "pass 0 over (3, 4): 2 registers\n"
                         "  r0 = uint64.int64 in1\n"
                         "  r1 = uint64.int64 index0\n"
                         "  r0 = subtract.uint64 r0 r1\n"
                         "  r0 = multiply.uint64 r0 4\n"
                         "  r0 = add.uint64 r0 index\n"
                         "  r0 = random u64.uint64 r0 9 2\n"
                         "  r0 = standard normal.uint64 r0\n"
                         "  r0 = add.float64 in0 r0\n"
                         "  out0 = r0 (float64)\n"));
    cr_assert(eq(int, fixture_compile(f, "f8 * uniform(size=(-1, 1))"), 0), "%s", f->error.message);
    cr_expect(eq(str, f->text,
                 (char *)"in0 = argument 10: float64 (3, 4)\n"
                         "in1 = argument 17: int64 (3, 1)\n"
                         "pass 0 over (3, 4): 1 register\n"
                         "  r0 = uint64.int64 in1\n"
                         "  r0 = random u64.uint64 r0 9 1\n"
                         "  r0 = standard uniform.uint64 r0\n"
                         "  r0 = multiply.float64 in0 r0\n"
                         "  out0 = r0 (float64)\n"));
    cr_assert(eq(int, fixture_compile(f, "normal(seed=1)"), 0));
    cr_expect(ne(ptr, strstr(f->text, " 1650229905798425133 2\n"), NULL), "%s", f->text);
    fixture_free(f);
}

Test(expr_random, rows_that_do_not_fit_are_refused)
{
    static const struct expected cases[] = {
        {"row + sum(normal(size=(3, 4)), axis=0)", "float64 (4,)"},
        {"normal(size=(-1, 7))", "float64 (3, 7)"},
        {"normal(size=(4, 4))",
         "bad-shape: column 1: random numbers of size (4, 4) for rows of shape (3, 1)"},
        {"row + normal(size=3)",
         "bad-shape: column 7: random numbers of size (3,) for rows of shape (3, 1)"},
        {"permutation(9)",
         "bad-expression: column 1: permutation: an order of all elements has no rows"},
        {"choice(9, (3, 1), False)",
         "bad-expression: column 1: choice: an order of all elements has no rows"},
        {"choice(9)", "int64 (3, 4)"},
    };
    static const struct expected unsized = {
        "f8 + normal()",
        "bad-shape: column 6: random numbers of rows: write size=(-1, ...)",
    };
    static const struct expected others[] = {
        {"normal()", "bad-dtype: column 1: random numbers of rows: 'f8' must be an array of int64"},
        {"normal()",
         "bad-shape: column 1: random numbers of rows: 'i8' must have the shape (n, 1, ..., 1)"},
        {"normal(size=(-1, 2))",
         "bad-dtype: column 1: random numbers of rows: 'k' must be an array of int64"},
    };
    static const unsigned wrong[] = {10, 4, 16};
    struct fixture *f = by_rows();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect_result(f, cases[i].expr, cases[i].result);
    for (size_t i = 0; i < 3; i++) {
        f->request.draws.rows = wrong[i];
        expect_result(f, others[i].expr, others[i].result);
    }
    f->request.draws.rows = 17;
    f->request.draws.has_size = false;
    expect_result(f, unsized.expr, unsized.result);
    fixture_free(f);
}
