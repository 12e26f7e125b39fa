/* Limits that no text can pass, each refused with its number. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compile_text(struct fixture *f, const char *text, size_t n_chars)
{
    f->request.n_outputs = 1;
    f->outputs[0] = (struct request_output){.expr = text, .n_expr_chars = n_chars};
    return fixture_compile_request(f);
}

/* `part` n times, between two others. */
static char *repeat(const char *before, const char *part, unsigned n, const char *middle,
                    const char *after_part, const char *after)
{
    char *text = malloc(strlen(before) + n * (strlen(part) + strlen(after_part)) + strlen(middle) +
                        strlen(after) + 1);
    char *at = stpcpy(text, before);
    for (unsigned i = 0; i < n; i++)
        at = stpcpy(at, part);
    at = stpcpy(at, middle);
    for (unsigned i = 0; i < n; i++)
        at = stpcpy(at, after_part);
    strcpy(at, after);
    return text;
}

static int compile_repeated(struct fixture *f, const char *before, const char *part, unsigned n,
                            const char *middle, const char *after_part, const char *after)
{
    char *text = repeat(before, part, n, middle, after_part, after);
    int r = compile_text(f, text, strlen(text));
    free(text);
    return r;
}

Test(expr_limits, bounds_the_length_of_the_text)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS + 1);
    memset(text, ' ', REQUEST_MAX_EXPR_CHARS + 1);
    memcpy(text, "f4", 2);
    cr_expect(eq(int, compile_text(f, text, REQUEST_MAX_EXPR_CHARS), 0));
    cr_expect(eq(int, compile_text(f, text, REQUEST_MAX_EXPR_CHARS + 1), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 16384 characters"));
    cr_expect(eq(str, f->error.found, (char *)"16385"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_the_nesting)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_repeated(f, "", "(", 199, "f4", ")", ""), 0));
    cr_expect(eq(int, compile_repeated(f, "", "(", 200, "f4", ")", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 200 levels"));
    cr_expect(eq(int, compile_repeated(f, "", "(", 8000, "f4", ")", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(int, compile_repeated(f, "", "-", 16000, "f4", "", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(int, compile_repeated(f, "", "f4**", 4000, "f4", "", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(int, compile_repeated(f, "", "sqrt(", 3000, "f4", ")", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(int, compile_repeated(f, "", "1|1^1&1+1*-(", 99, "1", ")", ""), 0));
    cr_expect(
        eq(int, compile_repeated(f, "", "1|1^1&1+1*-(", 100, "1", ")", ""), GAD_LIMIT_EXCEEDED));
    fixture_free(f);
}

Test(expr_limits, takes_long_flat_expressions)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_repeated(f, "f8", "+f8", 1000, "", "", ""), 0));
    cr_expect(eq(int, f->program->n_insns, 1000));
    cr_expect(eq(int, f->program->passes[0].n_registers, 1));
    cr_expect(eq(int, compile_repeated(f, "f8", "+f8", 1024, "", "", ""), 0));
    cr_expect(eq(int, compile_repeated(f, "f8", "+f8", 1025, "", "", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 1024 instructions"));
    cr_expect(eq(int, compile_repeated(f, "f8", "+f8", 5400, "", "", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(int, compile_repeated(f, "1", "+1", 8000, "", "", ""), 0));
    cr_expect(eq(int, f->program->n_insns, 0));
    fixture_free(f);
}

/* 2^n leaves, all different and all loaded before anything can be combined. */
static char *add_tree(char *at, unsigned depth, unsigned *leaf)
{
    if (depth == 0)
        return at + sprintf(at, "f8*%u", ++*leaf);
    at = stpcpy(at, "(");
    at = add_tree(at, depth - 1, leaf);
    at = stpcpy(at, "+");
    at = add_tree(at, depth - 1, leaf);
    return stpcpy(at, ")");
}

Test(expr_limits, bounds_constants)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS);
    unsigned leaf = 0;
    add_tree(text, 8, &leaf);
    cr_expect(eq(int, compile_text(f, text, strlen(text)), 0));
    cr_expect(eq(int, f->program->n_consts, 256));
    cr_expect(eq(int, f->program->passes[0].n_registers, 9));
    leaf = 0;
    char *at = add_tree(text, 8, &leaf);
    strcpy(at, "+f8*257");
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 256 constants"));
    free(text);
    fixture_free(f);
}

/* All of n values are needed twice, the second time in reverse order. */
static char *many_live_values(unsigned n)
{
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "(0");
    for (unsigned i = 1; i <= n; i++)
        at += sprintf(at, "+sin(f8*%u)", i);
    at = stpcpy(at, ")*(0");
    for (unsigned i = n; i >= 1; i--)
        at += sprintf(at, "-sin(f8*%u)", i);
    strcpy(at, ")");
    return text;
}

Test(expr_limits, bounds_registers)
{
    struct fixture *f = fixture_new();
    char *text = many_live_values(29);
    cr_expect(eq(int, compile_text(f, text, strlen(text)), 0));
    free(text);
    text = many_live_values(40);
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 32 registers"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_passes_and_reductions)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_repeated(f, "", "sum(f8-", 39, "f8", ")", ""), 0));
    cr_expect(eq(int, f->program->n_passes, PROGRAM_MAX_PASSES));
    cr_expect(eq(int, compile_repeated(f, "", "sum(f8-", 40, "f8", ")", ""), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 40 passes"));
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "s = 0");
    for (unsigned i = 0; i < PASS_MAX_REDUCTIONS; i++)
        at += sprintf(at, "+max(f8+%u)", i);
    at = stpcpy(at, "; 0");
    for (unsigned i = 0; i < PASS_MAX_REDUCTIONS; i++)
        at += sprintf(at, "+max(f8+s+%u)", i);
    cr_assert(eq(int, compile_text(f, text, strlen(text)), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->n_reductions, PROGRAM_MAX_REDUCTIONS));
    strcpy(at, "+max(row)");
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 64"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, blames_the_output_that_needs_most_passes)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "max(f8);");
    for (unsigned i = 0; i < PROGRAM_MAX_PASSES; i++)
        at = stpcpy(at, "sum(f8-");
    at = stpcpy(at, "f8");
    for (unsigned i = 0; i < PROGRAM_MAX_PASSES; i++)
        at = stpcpy(at, ")");
    strcpy(at, ";min(f8)");
    cr_expect(eq(int, fixture_compile(f, text), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.argument, (char *)"outputs[1]"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_results_that_one_pass_reads)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "0");
    for (unsigned i = 0; i < PASS_MAX_RESULTS; i++)
        at += sprintf(at, "+max(f8+%u)", i);
    cr_expect(eq(int, compile_text(f, text, strlen(text)), 0), "%s", f->error.message);
    strcpy(at, "+max(row)");
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 32 results of reductions in one pass"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_reductions_of_one_pass)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = text;
    for (unsigned i = 0; i < 40; i++) /* read by two later passes */
        at += sprintf(at, "%smax(f8+%u)", i == 0 ? "" : i == 20 ? ";row+" : "+", i);
    cr_assert(eq(int, fixture_compile(f, text), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->n_passes, 4));
    cr_expect(eq(int, f->program->passes[0].n_reductions, PASS_MAX_REDUCTIONS));
    cr_expect(eq(int, f->program->passes[1].n_reductions, 40 - PASS_MAX_REDUCTIONS));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_tables_and_checks)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "0");
    fixture_add_array(f, "most", DTYPE_FLOAT64, 1, (int64_t[]){65536});
    fixture_add_array(f, "more", DTYPE_FLOAT64, 1, (int64_t[]){65537});
    cr_expect(eq(int, fixture_compile(f, "searchsorted(most, f8)"), 0), "%s", f->error.message);
    cr_expect(eq(int, fixture_compile(f, "searchsorted(more, f8)"), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 524288 bytes"));
    cr_expect(eq(str, f->error.found, (char *)"524296"));
    for (unsigned i = 0; i < PROGRAM_MAX_CHECKS; i++)
        at += sprintf(at, "+take(row, small+%u)", i);
    cr_expect(eq(int, compile_text(f, text, strlen(text)), 0), "%s", f->error.message);
    cr_expect(eq(int, f->program->n_checks, PROGRAM_MAX_CHECKS));
    strcpy(at, "+take(row, small+99)");
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_shapes)
{
    struct fixture *f = fixture_new();
    static char text[REQUEST_MAX_EXPR_CHARS];
    char *at = text;
    f->request.n_args = 0;
    for (unsigned i = 0; i < 9; i++) { /* every subset of 9 axes is another shape */
        int64_t shape[9];
        for (unsigned k = 0; k < 9; k++)
            shape[k] = k == i ? 2 : 1;
        char name[3] = {'d', (char)('0' + i), '\0'};
        fixture_add_array(f, name, DTYPE_INT8, 9, shape);
    }
    for (unsigned set = 1; set < 512; set++) {
        at = stpcpy(at, set == 1 ? "sum(0" : "+sum(0");
        for (unsigned i = 0; i < 9; i++)
            if (set >> i & 1)
                at += sprintf(at, "+d%u", i);
        at = stpcpy(at, ")");
    }
    cr_assert(lt(sz, strlen(text), sizeof(text)));
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    fixture_free(f);
}

/* n times `part`, which may have the number of each in it. */
static char *append(char *at, unsigned n, const char *part)
{
    for (unsigned i = 0; i < n; i++)
        at += sprintf(at, part, i, i);
    return at;
}

static void expect_too_long(struct fixture *f, const char *text)
{
    cr_assert(lt(sz, strlen(text), REQUEST_MAX_EXPR_CHARS));
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED), "%s", text);
    cr_expect(eq(str, f->error.expected, (char *)"at most 2097152 steps"), "%s", f->error.message);
    cr_expect(ne(ptr, strstr(f->error.message, "column "), NULL), "%s", f->error.message);
}

Test(expr_limits, bounds_the_steps_of_finding_out_what_a_program_means)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS), *at;
    /* Long loops, of which one dtype after the other rises. */
    at = append(stpcpy(text, "f(x)=x"), 600, "-x*2");
    at = append(stpcpy(at, ";"), 16, "s%u=i1;");
    at = stpcpy(at, "iterate(9,s15=s0+i4,s0=s1+i2");
    for (unsigned i = 1; i < 15; i++)
        at += sprintf(at, ",s%u=s%u", i, i + 1);
    append(at, 26, "+f(s0)");
    strcat(text, ")");
    expect_too_long(f, text);
    /* Functions, of which the first one is looked for last. */
    at = append(stpcpy(text, "f(x)=x;"), 600, "g%u(x)=x;");
    at = append(stpcpy(at, "h(x)=x"), 1300, "+f(x)");
    append(stpcpy(at, ";f4"), 3, "+h(f4)");
    expect_too_long(f, text);
    /* Neighbours of what stands behind much else. */
    at = append(stpcpy(text, "j=f4"), 800, "+f4*%u");
    at = append(stpcpy(at, ";p=f4+7;h(x)=p"), 500, "+near(p,1,0)");
    append(stpcpy(at, ";j"), 10, "+h(1)");
    expect_too_long(f, text);
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_subexpressions_and_says_where)
{
    struct fixture *f = fixture_new();
    char *text = malloc(REQUEST_MAX_EXPR_CHARS);
    append(stpcpy(text, "f8+\n "), 1500, "+f8*%u");
    cr_expect(eq(int, compile_text(f, text, strlen(text)), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 4096"));
    cr_expect(eq(ptr, strstr(f->error.message, "line 2, column "), f->error.message), "%s",
              f->error.message);
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_what_calls_of_all_texts_read_together)
{
    struct fixture *f = fixture_new();
    char *text = repeat("f(x)=x", "+x", 2000, ";f(f4)", "+f(f4)", "");
    text[strlen("f(x)=x") + 2 * 2000 + strlen(";f(f4)") + 8 * strlen("+f(f4)")] = '\0';
    f->request.n_outputs = 2;
    for (unsigned i = 0; i < 2; i++)
        f->outputs[i] = (struct request_output){.expr = text, .n_expr_chars = strlen(text)};
    cr_expect(eq(int, fixture_compile_request(f), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, f->error.expected, (char *)"at most 65536 characters of all calls"));
    cr_expect(eq(str, f->error.argument, (char *)"outputs[1]"));
    free(text);
    fixture_free(f);
}

Test(expr_limits, bounds_digits_of_a_number)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, compile_repeated(f, "0.", "1", 255, "", "", ""), 0));
    cr_expect(eq(int, compile_repeated(f, "0.", "1", 256, "", "", ""), GAD_LIMIT_EXCEEDED));
    fixture_free(f);
}

Test(expr_limits, refuses_requests_beyond_the_protocols)
{
    struct fixture *f = fixture_new();
    f->request.n_outputs = 0;
    cr_expect(eq(int, fixture_compile_request(f), GAD_BAD_REQUEST));
    f->request.n_outputs = REQUEST_MAX_OUTPUTS + 1;
    cr_expect(eq(int, fixture_compile_request(f), GAD_LIMIT_EXCEEDED));
    fixture_free(f);
}
