/* Requests for the tests, and what came of compiling them, as text. */
#include "tests/unit/kernels/expr/support.h"

#include "tests/unit/kernels/expr/validate.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array *fixture_add_array(struct fixture *f, const char *name, enum dtype dtype, int ndim,
                                const int64_t *shape)
{
    struct request_arg *arg = &f->args[f->request.n_args++];
    *arg = (struct request_arg){.array = {.dtype = dtype, .ndim = ndim}};
    snprintf(arg->name, sizeof(arg->name), "%s", name);
    for (int i = 0; i < ndim; i++)
        arg->array.shape[i] = shape[i];
    array_c_strides(ndim, arg->array.shape, (int64_t)dtype_size(dtype), arg->array.strides);
    return &arg->array;
}

void fixture_add_scalar(struct fixture *f, const char *name, enum dtype dtype, union scalar value)
{
    struct request_arg *arg = &f->args[f->request.n_args++];
    *arg = (struct request_arg){.is_scalar = true, .scalar_dtype = dtype, .scalar = value};
    snprintf(arg->name, sizeof(arg->name), "%s", name);
}

struct fixture *fixture_new(void)
{
    static const char *const names[] = {"b",  "i1", "i2", "i4", "i8", "u1",
                                        "u2", "u4", "u8", "f4", "f8"};
    struct fixture *f = calloc(1, sizeof(*f));
    cr_assert(ne(ptr, f, NULL));
    f->request.args = f->args;
    f->request.outputs = f->outputs;
    for (int i = 0; i < DTYPE_COUNT; i++)
        fixture_add_array(f, names[i], (enum dtype)i, 2, (int64_t[]){3, 4});
    fixture_add_array(f, "row", DTYPE_FLOAT64, 1, (int64_t[]){4});
    fixture_add_array(f, "column", DTYPE_FLOAT64, 2, (int64_t[]){3, 1});
    fixture_add_array(f, "small", DTYPE_INT32, 1, (int64_t[]){5});
    fixture_add_array(f, "empty", DTYPE_INT32, 1, (int64_t[]){0});
    fixture_add_array(f, "point", DTYPE_FLOAT32, 0, NULL);
    fixture_add_scalar(f, "k", DTYPE_INT64, (union scalar){.i64 = 3});
    return f;
}

void fixture_free(struct fixture *f)
{
    f->program = program_free(f->program);
    free(f);
}

int fixture_compile_request(struct fixture *f)
{
    f->program = program_free(f->program);
    memset(&f->error, 0, sizeof(f->error));
    f->text[0] = '\0';
    int r = program_compile(&f->request, &f->program, &f->error);
    if (r) {
        cr_assert(eq(int, (int)f->error.status, r));
        cr_assert(ne(str, f->error.message, (char *)""));
        cr_assert(ne(str, f->error.argument, (char *)""));
        cr_assert(eq(ptr, f->program, NULL));
        return r;
    }
    const char *fault = program_validate(&f->request, f->program);
    program_print(f->program, f->text, sizeof(f->text));
    cr_assert(eq(ptr, (void *)fault, NULL), "%s\n%s", fault, f->text);
    return 0;
}

int fixture_compile(struct fixture *f, const char *exprs)
{
    f->request.n_outputs = 0;
    for (const char *at = exprs;; at++) {
        size_t n = strcspn(at, ";");
        struct request_output *output = &f->outputs[f->request.n_outputs++];
        output->expr = at;
        output->n_expr_chars = n;
        at += n;
        if (*at == '\0')
            break;
    }
    return fixture_compile_request(f);
}

void expect_result(struct fixture *f, const char *expr, const char *result)
{
    char got[512], shape[128];
    f->request.n_outputs = 1;
    f->outputs[0] = (struct request_output){.expr = expr, .n_expr_chars = strlen(expr)};
    int r = fixture_compile_request(f);
    if (r) {
        snprintf(got, sizeof(got), "%s: %s", error_word(r), f->error.message);
    } else {
        const struct program_output *output = &f->program->outputs[0];
        snprintf(got, sizeof(got), "%s %s", dtype_name(output->dtype),
                 array_format_shape(output->ndim, output->shape, shape, sizeof(shape)));
    }
    cr_expect(eq(str, got, (char *)result), "%s", expr);
}

void expect_results(const struct expected *cases, size_t n)
{
    struct fixture *f = fixture_new();
    for (size_t i = 0; i < n; i++)
        expect_result(f, cases[i].expr, cases[i].result);
    fixture_free(f);
}

void check_text(const char *exprs, const char *text)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    cr_expect(eq(str, f->text, (char *)text), "%s", exprs);
    fixture_free(f);
}

void check_contains(const char *expr, const char *part)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(int, fixture_compile(f, expr), 0), "%s: %s", expr, f->error.message);
    cr_expect(ne(ptr, strstr(f->text, part), NULL), "%s: no '%s' in\n%s", expr, part, f->text);
    fixture_free(f);
}
