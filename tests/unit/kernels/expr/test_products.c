/* Matrix products: shapes, dtypes, the three passes, symmetry, and what is refused. */
#include "proto/error.h"
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static void add(struct fixture *f, const char *name, int ndim, const int64_t *shape)
{
    fixture_add_array(f, name, DTYPE_FLOAT32, ndim, shape);
}

/* Arrays of all numbers of axes: v (4,), m (3, 4), n (4, 5), s (2, 3, 4), t (6, 1, 4, 5). */
static struct fixture *new_matrices(void)
{
    struct fixture *f = fixture_new();
    add(f, "v", 1, (int64_t[]){4});
    add(f, "m", 2, (int64_t[]){3, 4});
    add(f, "n", 2, (int64_t[]){4, 5});
    add(f, "s", 3, (int64_t[]){2, 3, 4});
    add(f, "t", 4, (int64_t[]){6, 1, 4, 5});
    add(f, "none", 2, (int64_t[]){3, 0});
    return f;
}

static void expect_compiled(const char *expr, const char *expected)
{
    struct fixture *f = new_matrices();
    char found[512], shape[128];
    f->request.n_outputs = 1;
    f->outputs[0].expr = expr;
    f->outputs[0].n_expr_chars = strlen(expr);
    if (fixture_compile_request(f) != 0)
        snprintf(found, sizeof(found), "%s: %s", error_word((int)f->error.status),
                 f->error.message);
    else
        snprintf(found, sizeof(found), "%s %s%s", dtype_name(f->program->outputs[0].dtype),
                 array_format_shape(f->program->outputs[0].ndim, f->program->outputs[0].shape,
                                    shape, sizeof(shape)),
                 f->program->n_products > 0 && f->program->products[0].is_symmetric ? " symmetric"
                                                                                    : "");
    cr_expect(eq(str, found, (char *)expected), "%s", expr);
    fixture_free(f);
}

static void expect_all(const struct expected *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_compiled(cases[i].expr, cases[i].result);
}

#define EXPECT_ALL(cases) expect_all(cases, sizeof(cases) / sizeof((cases)[0]))

Test(expr_products, are_three_passes)
{
    check_text("maximum((f4 / 2) @ f8.T - k, 0)",
               "in0 = argument 9: float32 (3, 4)\n"
               "in1 = argument 10 transposed: float64 (4, 3)\n"
               "pass 0 over (3, 4): 2 registers\n"
               "  r0 = divide.float32 in0 2\n"
               "  r1 = float64.float32 r0\n"
               "  out1 = r1 (float64)\n"
               "pass 1 over (4, 3): 0 registers\n"
               "  out2 = in1 (float64)\n"
               "product red0 = out1 @ out2: 3 rows, 3 columns, depth 4 (float64)\n"
               "pass 2 over (3, 3): 1 register\n"
               "  r0 = subtract.float64 red0 3\n"
               "  r0 = maximum.float64 r0 0\n"
               "  out0 = r0 (float64)\n");
}

Test(expr_products, have_the_shapes_of_numpy)
{
    static const struct expected cases[] = {
        {"m @ n", "float32 (3, 5)"},
        {"matmul(m, n)", "float32 (3, 5)"},
        {"np.matmul(m, n)", "float32 (3, 5)"},
        {"v @ v", "float32 ()"},
        {"v @ n", "float32 (5,)"},
        {"m @ v", "float32 (3,)"},
        {"s @ n", "float32 (2, 3, 5)"},
        {"s @ t", "float32 (6, 2, 3, 5)"},
        {"m @ t", "float32 (6, 1, 3, 5)"},
        {"v @ t", "float32 (6, 1, 5)"},
        {"s @ v", "float32 (2, 3)"},
        {"t.mT @ s.mT", "float32 (6, 2, 5, 3)"},
        {"none @ none.T", "float32 (3, 3) symmetric"},
        {"none.T @ m", "float32 (0, 4)"},
        {"v.T @ v", "float32 ()"},
    };
    EXPECT_ALL(cases);
}

Test(expr_products, have_the_common_dtype)
{
    static const struct expected cases[] = {
        {"i1 @ i1.T", "int8 (3, 3)"},
        {"u1 @ i1.T", "int16 (3, 3)"},
        {"b @ b.T", "bool (3, 3)"},
        {"b @ u2.T", "uint16 (3, 3)"},
        {"i8 @ u8.T", "float64 (3, 3)"},
        {"f4 @ i2.T", "float32 (3, 3)"},
        {"f4 @ i4.T", "float64 (3, 3)"},
        {"f4 @ row", "float64 (3,)"},
        {"f4 @ f4.T + f8[0]", "bad-expression: column 15: unexpected '['; only an "
                              "argument takes an index, which is an argument too: a[i], a[:, i], "
                              "a[mask]; of what is computed pick before, as in a[i] + 1, or make "
                              "it an argument of its own, and select all else before, as in "
                              "NAME=FILE[:, 0]"},
        {"int8(f4 @ f4.T)", "int8 (3, 3)"},
        {"(i1 < 300) @ b.T", "bool (3, 3)"},
        {"i1 @ i1.T > 3", "bool (3, 3)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_products, bind_as_multiplications_do)
{
    static const struct expected cases[] = {
        {"2 * m @ n", "float32 (3, 5)"},
        {"m @ n * 2 + 1", "float32 (3, 5)"},
        {"-m @ n", "float32 (3, 5)"},
        {"(m + 1) @ n ** 2", "float32 (3, 5)"},
        {"p = m @ n; p * p", "float32 (3, 5)"},
        {"m @ n - m @ n", "float32 (3, 5)"},
        {"m @ (n + index(0))", "float64 (3, 5)"},
        {"unused = m @ n; m + 1", "float32 (3, 4)"},
        {"unused = m.T + 1; m + 1", "float32 (3, 4)"},
        {"normal(size=(2, 3), seed=1) @ m", "float64 (2, 4)"},
    };
    EXPECT_ALL(cases);
}

Test(expr_products, know_when_one_operand_is_the_other_transposed)
{
    static const struct expected cases[] = {
        {"m @ m.T", "float32 (3, 3) symmetric"},
        {"m.T @ m", "float32 (4, 4) symmetric"},
        {"s @ s.mT", "float32 (2, 3, 3) symmetric"},
        {"sqrt(m / 255 - k) @ sqrt(m.T / 255 - k)", "float32 (3, 3) symmetric"},
        {"(m + f4) @ (m.T + f4.T)", "float32 (3, 3) symmetric"},
        {"2 * (m @ m.T) + m @ m.T", "float32 (3, 3) symmetric"},
        {"(point * m) @ (point * m.T)", "float32 (3, 3) symmetric"},
        {"(m + 1) @ (m.T + 2)", "float32 (3, 3)"},
        {"(m + v) @ (n + column.T)",
         "bad-shape: column 14: shapes (4, 5) and (1, 3) do not broadcast together"},
        {"m @ f4.T", "float32 (3, 3)"},
        {"(m + index(0)) @ (m.T + index(0))", "float64 (3, 3)"},
        {"sqrt(m) @ exp(m.T)", "float32 (3, 3)"},
        {"(m - 1) @ (1 - m.T)", "float32 (3, 3)"},
        {"v @ v.T", "float32 ()"},
        {"(m.T @ m).T", "float32 (4, 4) symmetric"},
        {"p = m + 1; p @ p.T", "float32 (3, 3) symmetric"},
    };
    EXPECT_ALL(cases);
}

Test(expr_products, turn_what_is_transposed)
{
    static const struct expected cases[] = {
        {"(m @ n).T @ m", "float32 (5, 4)"},
        {"((m @ n).T + 1).T", "float32 (3, 5)"},
        {"(m @ n - sum(n, axis=0)).T",
         "bad-expression: column 25: .T of what is spread along rows; write the vector as a matrix "
         "of one row"},
        {"(f4 - mean(f4, axis=0)).T @ f4", "float32 (4, 4)"},
        {"(f4 - mean(f4, axis=0)).T @ (f4 - mean(f4, axis=0))", "float32 (4, 4)"},
        {"p = (f4 - mean(f4, axis=0)).T; p @ f4",
         "bad-expression: column 28: .T of what is spread along rows; write the vector as a matrix "
         "of one row"},
        {"f4 @ (f4 - mean(f4, axis=0)).T",
         "bad-expression: column 29: .T of what is spread along rows; write the vector as a matrix "
         "of one row"},
        {"(m - sum(m, axis=0)).T @ m", "float32 (4, 4)"},
        {"(f4 - mean(f4, axis=0)).T @ f4.T",
         "bad-shape: column 27: tensordot: axes that are summed together differ in length"},
        {"(m @ n).sum()", "bad-expression: column 9: there are no methods, write sum(x)"},
        {"(s @ s.mT).T",
         "bad-shape: column 11: .T of 3 axes: write .mT, which exchanges the last two axes"},
    };
    EXPECT_ALL(cases);
}

Test(expr_products, read_an_argument_plain_and_transposed)
{
    check_text("f4 @ f4.T",
               "in0 = argument 9: float32 (3, 4)\n"
               "in1 = argument 9 transposed: float32 (4, 3)\n"
               "pass 0 over (3, 4): 0 registers\n"
               "  out1 = in0 (float32)\n"
               "pass 1 over (4, 3): 0 registers\n"
               "  out2 = in1 (float32)\n"
               "product red0 = out1 @ out2: 3 rows, 3 columns, depth 4, symmetric (float32)\n"
               "pass 2 over (3, 3): 0 registers\n"
               "  out0 = red0 (float32)\n");
}

Test(expr_products, refuse_shapes_that_do_not_fit)
{
    static const struct expected cases[] = {
        {"m @ m", "bad-shape: column 3: matmul: inner dimensions differ: (3, 4) @ (3, 4)"},
        {"n @ v", "bad-shape: column 3: matmul: inner dimensions differ: (4, 5) @ (4,)"},
        {"v + v @ s", "bad-shape: column 7: matmul: inner dimensions differ: (4,) @ (2, 3, 4)"},
        {"m @ 2", "bad-shape: column 5: matmul: the right operand has no axes; numbers are "
                  "multiplied with *"},
        {"2 @ 3", "bad-shape: column 1: matmul: the left operand has no axes; numbers are "
                  "multiplied with *"},
        {"point @ m", "bad-shape: column 1: matmul: the left operand has no axes; numbers are "
                      "multiplied with *"},
        {"m @ n + s", "bad-shape: column 7: shapes (3, 5) and (2, 3, 4) do not broadcast together"},
        {"cumsum(m, axis=0) @ n", "bad-expression: column 19: cumsum can only be a whole output: "
                                  "store it, then compute with what is stored"},
        {"t @ s.mT", "bad-shape: column 3: matmul: inner dimensions differ: (6, 1, 4, 5) @ "
                     "(2, 4, 3)"},
    };
    EXPECT_ALL(cases);
    struct fixture *f = new_matrices();
    add(f, "three", 3, (int64_t[]){3, 4, 5});
    cr_expect(ne(int, fixture_compile(f, "s @ three"), 0));
    cr_expect(
        eq(str, f->error.message,
           (char *)"column 3: matmul: the axes in front of the matrices do not broadcast together: "
                   "(2, 3, 4) @ (3, 4, 5)"));
    fixture_free(f);
}

/* "left right result | pass ...": the stages of a program, each product with a star where it is
 * kept, behind it how many outputs of the job its result's pass stores. */
static void list_stages(const struct program *p, char *text, size_t n_bytes)
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < p->n_stages; i++) {
        const struct stage *stage = &p->stages[i];
        const char *space = i > 0 ? " " : "";
        if (stage->kind == STAGE_PASS) {
            n += (size_t)snprintf(text + n, n_bytes - n, "%spass", space);
            continue;
        }
        const struct program_product *product = &p->products[stage->product];
        unsigned n_stores = p->passes[stage->first_pass + PRODUCT_RESULT].n_stores;
        n += (size_t)snprintf(text + n, n_bytes - n, "%sproduct%s%u", space,
                              product->is_kept ? "*" : "", n_stores - product->is_kept);
    }
}

static void expect_stages(const char *exprs, const char *expected)
{
    struct fixture *f = new_matrices();
    char found[512];
    if (fixture_compile(f, exprs) != 0)
        snprintf(found, sizeof(found), "%s", f->error.message);
    else
        list_stages(f->program, found, sizeof(found));
    cr_expect(eq(str, found, (char *)expected), "%s", exprs);
    fixture_free(f);
}

Test(expr_products, are_kept_for_others_alone)
{
    static const struct expected cases[] = {
        {"m @ n", "product1"},
        {"m @ n; m @ n + 1", "product2"},
        {"m @ n; m + 1", "product1 pass"},
        {"sum(m @ n)", "product*0 pass pass"},
        {"m @ n; sum(m @ n)", "product*1 pass pass"},
        {"m @ n / max(m)", "pass product1"},
        {"(m - mean(m)) @ n", "pass product1"},
        {"m @ n - mean(m @ n)", "product*0 pass pass"},
        {"m @ n @ n.T", "product*0 product1"},
        {"m @ (n @ n.T)", "product*0 product1"},
        {"m @ n + f4 @ n", "product*0 product1"},
        {"m @ n @ n.T - max(m @ n)", "product*0 pass product1"},
        {"m @ v + column", "product*0 pass"},
        {"cumsum(m @ n, axis=0)", "product*0 pass"},
        {"take(v @ n, small)", "product*0 pass pass pass"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_stages(cases[i].expr, cases[i].result);
}

Test(expr_products, are_as_many_as_passes_allow)
{
    char text[256] = "w";
    struct fixture *f = new_matrices();
    add(f, "w", 2, (int64_t[]){3, 3});
    for (unsigned i = 0; i < PROGRAM_MAX_PRODUCTS; i++)
        strcat(text, " @ w");
    cr_expect(eq(int, fixture_compile(f, text), 0), "%s", f->error.message);
    strcat(text, " @ w");
    cr_expect(eq(int, fixture_compile(f, text), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 13"));
    fixture_free(f);
}

Test(expr_products, transpose_what_they_multiply_alone)
{
    static const struct expected cases[] = {
        {"m.T + 1", "bad-expression: column 1: 'm' is transposed outside of an operand of @; store "
                    "it transposed first, or give the argument with its strides exchanged"},
        {"m.T", "bad-expression: column 1: 'm' is transposed outside of an operand of @; store "
                "it transposed first, or give the argument with its strides exchanged"},
        {"m @ m.T + m.T @ m", "bad-shape: column 9: shapes (3, 3) and (4, 4) do not broadcast "
                              "together"},
        {"m.T @ none + n.T", "bad-shape: column 12: shapes (4, 0) and (5, 4) do not broadcast "
                             "together"},
        {"sum(m.T)", "bad-expression: column 5: 'm' is transposed outside of an operand of @; "
                     "store it transposed first, or give the argument with its strides exchanged"},
        {"s @ s.T", "bad-shape: column 5: 's.T': 's' is of shape (2, 3, 4); write .mT, which "
                    "exchanges the last two axes"},
        {"v @ v.mT", "bad-shape: column 5: 'v.mT': 'v' is of shape (4,); there are no two axes to "
                     "exchange"},
        {"m @ k.T", "bad-shape: column 5: 'k.T': 'k' is a number; there are no two axes to "
                    "exchange"},
        {"m @ (n + 1).T", "bad-shape: column 3: matmul: inner dimensions differ: (3, 4) @ (5, 4)"},
        {"(m + 1).T",
         "bad-expression: column 8: 'm' is transposed outside of an operand of @; store "
         "it transposed first, or give the argument with its strides exchanged"},
        {"m.shape", "bad-expression: column 3: T or mT expected, not 'shape'"},
        {"v.T + 1", "float32 (4,)"},
    };
    EXPECT_ALL(cases);
}

Test(expr_products, count_an_argument_twice_that_is_read_both_ways)
{
    struct fixture *f = fixture_new();
    char text[4096] = "(0";
    size_t n = 2;
    f->request.n_args = 0;
    for (int i = 0; i < 33; i++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", i);
        add(f, name, 2, (int64_t[]){3, 3});
        n += (size_t)snprintf(text + n, sizeof(text) - n, " + %s", name);
    }
    n += (size_t)snprintf(text + n, sizeof(text) - n, ") @ (0");
    for (int i = 0; i < 33; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " + x%d.T", i);
    snprintf(text + n, sizeof(text) - n, ")");
    cr_expect(eq(int, fixture_compile(f, text), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.found, (char *)"66"));
    fixture_free(f);
}

Test(expr_products, are_cast_to_the_output_that_is_there)
{
    struct fixture *f = new_matrices();
    const char *text = "2 * (m @ n) + 1";
    f->request.n_outputs = 1;
    f->outputs[0].expr = text;
    f->outputs[0].n_expr_chars = strlen(text);
    f->outputs[0].has_to = true;
    f->outputs[0].to = (struct array){.dtype = DTYPE_FLOAT64, .ndim = 2, .shape = {3, 5}};
    cr_assert(eq(int, fixture_compile_request(f), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->products[0].dtype, DTYPE_FLOAT32));
    cr_expect(eq(int, f->program->outputs[0].dtype, DTYPE_FLOAT64));
    cr_expect(eq(int, f->program->outputs[1].dtype, DTYPE_FLOAT32));
    fixture_free(f);
}
