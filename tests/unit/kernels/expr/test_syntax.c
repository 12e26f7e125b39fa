/* Grammar, numbers, names: what is read as what, and what every mistake is answered with. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

/* The value of an expression of numbers alone. */
static double value_of(const char *expr)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, expr), 0), "%s: %s", expr, f->error.message);
    cr_assert(eq(int, f->program->n_consts, 1), "%s", expr);
    const struct program_const c = f->program->consts[0];
    fixture_free(f);
    switch (c.dtype) {
    case DTYPE_FLOAT64: return c.value.f64;
    case DTYPE_FLOAT32: return (double)c.value.f32;
    case DTYPE_UINT64: return (double)c.value.u64;
    default: return (double)c.value.i64;
    }
}

#define NO_INDEX                                                                                   \
    "only an argument takes an index, which is an argument too: a[i], a[:, i], a[mask]; of what "  \
    "is computed pick before, as in a[i] + 1, or make it an argument of its own, and select all "  \
    "else before, as in NAME=FILE[:, 0]"

Test(expr_syntax, gives_operators_the_precedence_of_python)
{
    static const struct {
        const char *expr;
        double value;
    } cases[] = {
        {"1 + 2*3", 7},
        {"(1 + 2)*3", 9},
        {"-2**2", -4},
        {"2**-1", 0.5},
        {"2**3**2", 512},
        {"-2**-2", -0.25},
        {"10 - 3 - 2", 5},
        {"100 / 10 / 2", 5},
        {"7 // 2 * 2", 6},
        {"1 << 2 + 1", 8},
        {"6 & 3 | 8", 10},
        {"1 | 2 ^ 3 & 2", 1},
        {"~1 + 2", 0},
        {"1 + 1 == 2", 1},
        {"2 | 1 == 3", 1},
        {"--3", 3},
        {"+-+3", -3},
        {"2 * -3", -6},
        {"~-1", 0},
        {"-7 // 2", -4},
        {"-7 % 3", 2},
        {"7 % -3", -2},
        {"7.5 // -2", -4},
        {"-7.5 % 2", 0.5},
        {"True + True", 2},
        {"~True", -2},
        {"True & 3", 1},
        {"1 / 4", 0.25},
        {"(-2)**3", -8},
        {"5 >> 1", 2},
        {"-1 >> 100", -1},
        {"0 << 1000", 0},
        {"(-1)**1000001", -1},
        {"2.0**0.5", M_SQRT2},
        {"3 < 4", 1},
        {"2**63 > 2.0**63", 0},
        {"9007199254740993 == 9007199254740992.0", 0},
        {"18446744073709551615", 0x1p64},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(dbl, value_of(cases[i].expr), cases[i].value), "%s", cases[i].expr);
}

Test(expr_syntax, reads_numbers_as_python_does)
{
    static const struct {
        const char *expr;
        double value;
    } cases[] = {
        {"0", 0},
        {"00", 0},
        {"1_000", 1000},
        {"0x1F", 31},
        {"0x_ff", 255},
        {"0o17", 15},
        {"0b1_01", 5},
        {"1.", 1},
        {".5", 0.5},
        {"1e3", 1000},
        {"1E-3", 0.001},
        {"1_0.2_5e1_0", 10.25e10},
        {"0.1", 0.1},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"123456789012345678", 123456789012345678.0},
        {"3.141592653589793238462643383279", M_PI},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9406564584124654e-324", 4.9406564584124654e-324},
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
        {"1e400", INFINITY},
        {"1e-99999999999999999999", 0},
        {"1e99999999999999999999", INFINITY},
        {"pi", M_PI},
        {"np.e", M_E},
        {"-inf", -INFINITY},
        {"True", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(dbl, value_of(cases[i].expr), cases[i].value), "%s", cases[i].expr);
    cr_expect(isnan(value_of("nan")));
}

Test(expr_syntax, accepts_numpy_names_aliases_prefixes_and_casts)
{
    static const struct expected cases[] = {
        {"np.sqrt(f4)", "float32 (3, 4)"},
        {"numpy.abs(i1)", "int8 (3, 4)"},
        {"absolute(i1)", "int8 (3, 4)"},
        {"true_divide(i1, 2)", "float64 (3, 4)"},
        {"mod(i1, 2)", "int8 (3, 4)"},
        {"amax(f4)", "float32 ()"},
        {"float32(f8)", "float32 (3, 4)"},
        {"np.uint8(f8)", "uint8 (3, 4)"},
        {"astype(f8, int16)", "int16 (3, 4)"},
        {"np.astype(f8, np.bool)", "bool (3, 4)"},
        {"minimum(f4, f8,)", "float64 (3, 4)"},
        {" \t\r\n f4\n", "float32 (3, 4)"},
        {"((((f4))))", "float32 (3, 4)"},
        {"k", "int64 ()"},
        {"f4*k", "float32 (3, 4)"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_syntax, lets_arguments_win_over_constants_and_functions)
{
    struct fixture *f = fixture_new();
    fixture_add_array(f, "e", DTYPE_INT16, 1, (int64_t[]){7});
    fixture_add_array(f, "sqrt", DTYPE_INT8, 1, (int64_t[]){7});
    expect_result(f, "e + sqrt", "int16 (7,)");
    expect_result(f, "np.e", "float64 ()");
    expect_result(f, "np.sqrt(e)", "float32 (7,)");
    expect_result(
        f, "sqrt(e)",
        "bad-expression: column 1: 'sqrt' is an argument and cannot be called; np.sqrt is "
        "the function");
    fixture_free(f);
}

Test(expr_syntax, says_where_and_what_is_wrong)
{
    static const struct expected cases[] = {
        {"", "bad-expression: column 1: the expression is empty"},
        {"   ", "bad-expression: column 1: the expression is empty"},
        {"f4 +", "bad-expression: column 5: the expression ends where an operand should be"},
        {"f4 + * f8", "bad-expression: column 6: an operand expected, not '*'"},
        {"(f4 + 1", "bad-expression: column 1: this parenthesis is not closed"},
        {"sqrt(f4", "bad-expression: column 5: this parenthesis is not closed"},
        {"f4 + 1)", "bad-expression: column 7: this parenthesis was never opened"},
        {"()", "bad-expression: column 2: an operand expected, not ')'"},
        {"f4 f8", "bad-expression: column 4: an operator expected, not 'f8'"},
        {"f4, f8", "bad-expression: column 3: an operator expected, not ','"},
        {"row(1)", "bad-expression: column 1: 'row' is an argument and cannot be called"},
        {"f4(1)", "bad-expression: column 1: 'f4' is an argument and cannot be called; np.f4 is "
                  "the function"},
        {"0 < f4 < 1", "bad-expression: column 8: chained comparisons are not supported, write "
                       "(a < b) & (b < c)"},
        {"f4 and f8", "bad-expression: column 4: 'and' is not supported, write (a) & (b)"},
        {"f4 or f8", "bad-expression: column 4: 'or' is not supported, write (a) | (b)"},
        {"not f4", "bad-expression: column 1: 'not' is not supported, write ~(a)"},
        {"not(f4)", "bad-expression: column 1: 'not' is not supported, write ~(a)"},
        {"f4 if b else f8",
         "bad-expression: column 4: 'if' is not supported, write where(cond, a, b)"},
        {"f4 && f8", "bad-expression: column 4: '&&' is not an operator; write &"},
        {"!b", "bad-expression: column 1: unexpected '!'; write ~x for not"},
        {"f4[0]", "bad-expression: column 3: unexpected '['; " NO_INDEX},
        {"f4.mean()", "bad-expression: column 4: there are no methods, write mean(f4)"},
        {"average(f4)", "unknown-name: column 1: unknown name 'average', did you mean 'mean'?"},
        {"ln(f4)", "unknown-name: column 1: unknown name 'ln', did you mean 'log'?"},
        {"'f4'", "bad-expression: column 1: unexpected 'f4'; there are no strings"},
        {"f4 \xc3\x97 2", "bad-expression: column 4: unexpected byte 0xc3"},
        {"f4.real", "bad-expression: column 4: there are no methods, write real(f4)"},
        {"f4.T.imag", "bad-expression: column 6: there are no methods, write imag(x)"},
        {"np.", "bad-expression: column 4: the expression ends where a name should be"},
        {"f4 = 3", "bad-expression: column 1: 'f4' is an argument (== compares) and cannot be "
                   "bound to another value"},
        {"f4 + 1 = 3", "bad-expression: column 8: '=' is not an operator, write == to compare"},
        {"sqrt(f4, axis=0)", "bad-expression: column 10: 'axis=' is not supported: sqrt has no "
                             "named arguments, == compares"},
        {"sqrt", "bad-expression: column 1: 'sqrt' is a function, write sqrt(...)"},
        {"float32 + 1", "bad-expression: column 1: 'float32' is a function, write float32(...)"},
        {"2f4", "bad-expression: column 2: 'f' right after a number; is an operator missing?"},
        {"1.5.2", "bad-expression: column 4: '.' right after a number; is an operator missing?"},
        {"1__0", "bad-expression: column 2: '_' right after a number; is an operator missing?"},
        {"012", "bad-expression: column 1: an integer with leading zeros; write 0o17 if it is "
                "octal"},
        {"0x", "bad-expression: column 1: digits expected after '0x'"},
        {"18446744073709551616", "bad-expression: column 1: an integer that does not fit 64 bits; "
                                 "write it as a float (1e30)"},
        {"sqrt(f4, 2)", "bad-arity: column 1: sqrt takes 1 argument, 2 given"},
        {"f4 + where(b, 1)", "bad-arity: column 6: where takes 3 arguments, 2 given"},
        {"minimum()", "bad-arity: column 1: minimum takes 2 arguments, 0 given"},
        {"float32()", "bad-arity: column 1: float32 takes 1 argument, 0 given"},
        {"astype(f4)", "bad-arity: column 1: astype takes 2 arguments, 1 given"},
        {"astype()", "bad-arity: column 1: astype takes 2 arguments, 0 given"},
        {"astype(f4, 3)", "bad-expression: column 12: a dtype's name expected, not '3'"},
        {"where(1,2,3,4,5)", "bad-arity: column 1: where takes 3 arguments, 5 given"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_syntax, suggests_what_was_probably_meant)
{
    static const struct expected cases[] = {
        {"1 + 2* sqr(f4)", "unknown-name: column 8: unknown name 'sqr', did you mean 'sqrt'?"},
        {"sqrt(colum)", "unknown-name: column 6: unknown name 'colum', did you mean 'column'?"},
        {"true", "unknown-name: column 1: unknown name 'true', did you mean 'True'?"},
        {"np.maximun(f4, 1)",
         "unknown-name: column 4: unknown name 'maximun', did you mean 'maximum'?"},
        {"flaot32(f8)", "unknown-name: column 1: unknown name 'flaot32', did you mean 'float32'?"},
        {"astype(f8, flot32)",
         "unknown-name: column 12: unknown name 'flot32', did you mean 'float32'?"},
        {"x", "unknown-name: column 1: unknown name 'x'"},
        {"qqqqqqqq(1)", "unknown-name: column 1: unknown function 'qqqqqqqq'"},
    };
    EXPECT_RESULTS(cases);
}

Test(expr_syntax, fills_expected_found_and_the_outputs_name)
{
    struct fixture *f = fixture_new();
    expect_result(f, "sqrt(f4, 2)", "bad-arity: column 1: sqrt takes 1 argument, 2 given");
    cr_expect(eq(str, f->error.argument, (char *)"outputs[0]"));
    cr_expect(eq(str, f->error.expected, (char *)"1 argument"));
    cr_expect(eq(str, f->error.found, (char *)"2"));
    cr_assert(ne(int, fixture_compile(f, "f4;i1 + 300"), 0));
    strcpy(f->outputs[1].name, "speed");
    cr_assert(eq(int, fixture_compile_request(f), GAD_BAD_EXPRESSION));
    cr_expect(eq(str, f->error.argument, (char *)"speed"));
    cr_expect(eq(str, f->error.expected, (char *)"-128 to 127"));
    cr_expect(eq(str, f->error.found, (char *)"300"));
    cr_assert(eq(int, program_compile(&f->request, &f->program, NULL), GAD_BAD_EXPRESSION));
    fixture_free(f);
}

Test(expr_syntax, survives_any_single_byte_and_any_pair)
{
    struct fixture *f = fixture_new();
    char text[3] = "";
    f->request.n_outputs = 1;
    for (unsigned i = 0; i < 65536; i++) {
        text[0] = (char)(i >> 8);
        text[1] = (char)i;
        f->outputs[0] = (struct request_output){.expr = text, .n_expr_chars = 2};
        (void)!fixture_compile_request(f);
    }
    fixture_free(f);
}

Test(expr_syntax, reads_no_byte_behind_the_text)
{
    struct fixture *f = fixture_new();
    static const char *const texts[] = {"f4*",  "1e",  "1_", "0x", "1.",   "np.", "f4<",
                                        "f4**", "1e-", ".",  "(",  "f4//", "f4!"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t n = strlen(texts[i]);
        char *copy = malloc(n); /* no NUL: the address sanitizer watches the end */
        memcpy(copy, texts[i], n);
        f->request.n_outputs = 1;
        f->outputs[0] = (struct request_output){.expr = copy, .n_expr_chars = n};
        (void)!fixture_compile_request(f);
        free(copy);
    }
    fixture_free(f);
}
