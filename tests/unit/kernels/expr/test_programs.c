/* Programs that are kept: the same request finds its own again, every other one does not. */
#include "kernels/expr/programs.h"
#include "tests/unit/kernels/expr/support.h"
#include "tests/unit/kernels/expr/validate.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked {
    struct fixture *f;
    struct programs *programs;
};

static struct asked begin(const char *exprs)
{
    struct asked a = {.f = fixture_new()};
    cr_assert(eq(int, fixture_compile(a.f, exprs), 0));
    cr_assert(eq(int, programs_new(&a.programs), 0));
    return a;
}

static void end(struct asked *a)
{
    a->programs = programs_free(a->programs);
    fixture_free(a->f);
}

/* The caller's reference. */
static struct program *ask(struct asked *a, uint32_t owner)
{
    struct program *program;
    cr_assert(
        eq(int, programs_compile(a->programs, owner, &a->f->request, &program, &a->f->error), 0),
        "%s", a->f->error.message);
    return program;
}

/* Whatever the table does, it is what compiling gives. */
static void expect_right(struct asked *a, uint32_t owner)
{
    static char got[65536], want[65536];
    struct program *kept = ask(a, owner), *fresh;
    cr_assert(eq(int, program_compile(&a->f->request, &fresh, &a->f->error), 0));
    program_print(kept, got, sizeof(got));
    program_print(fresh, want, sizeof(want));
    cr_expect(eq(str, got, want));
    cr_expect(eq(ptr, (void *)program_validate(&a->f->request, kept), NULL));
    program_free(fresh);
    program_free(kept);
}

static bool is_kept(struct asked *a, const struct program *before)
{
    struct program *now = ask(a, 1);
    program_free(now);
    return now == before;
}

Test(programs, gives_the_same_request_the_same_program)
{
    struct asked a = begin("sqrt(f8) + k;f4*2");
    struct program *first = ask(&a, 1), *second = ask(&a, 1);
    cr_expect(eq(ptr, first, second));
    expect_right(&a, 1);
    a.programs = programs_free(a.programs);
    cr_expect(eq(int, first->n_outputs, 2)); /* still ours */
    program_free(first);
    cr_expect(eq(int, second->n_refs, 1));
    program_free(second);
    fixture_free(a.f);
}

Test(programs, keeps_users_apart)
{
    struct asked a = begin("sqrt(f8)");
    struct program *first = ask(&a, 1), *second = ask(&a, 2);
    cr_expect(ne(ptr, first, second));
    program_free(first);
    program_free(second);
    end(&a);
}

/* What is no part of a program may change. */
Test(programs, looks_past_places)
{
    struct asked a = begin("sqrt(f8)");
    struct request_arg *arg = &a.f->request.args[a.f->request.n_args - 1];
    struct program *first = ask(&a, 1);
    snprintf(a.f->outputs[0].name, sizeof(a.f->outputs[0].name), "r");
    cr_expect(is_kept(&a, first));
    for (unsigned i = 0; i < a.f->request.n_args; i++)
        if (!a.f->args[i].is_scalar) {
            arg = &a.f->args[i];
            arg->array.at.region.offset_bytes += 4096;
            arg->array.strides[0] = 1 << 20;
        }
    cr_expect(is_kept(&a, first));
    expect_right(&a, 1);
    program_free(first);
    end(&a);
}

static struct request_arg *named(struct asked *a, const char *name)
{
    for (unsigned i = 0; i < a->f->request.n_args; i++)
        if (strcmp(a->f->args[i].name, name) == 0)
            return &a->f->args[i];
    cr_assert(false, "no argument %s", name);
    return NULL;
}

enum change {
    CHANGE_TEXT,
    CHANGE_NAMES,
    CHANGE_DTYPE,
    CHANGE_SHAPE,
    CHANGE_NDIM,
    CHANGE_KIND,
    CHANGE_SCALAR,
    CHANGE_SCALAR_DTYPE,
    CHANGE_TO_SCALAR,
    CHANGE_FEWER_ARGS,
    CHANGE_FEWER_OUTPUTS,
    CHANGE_DRAWS_SEED,
    CHANGE_DRAWS_SIZE,
    CHANGE_DRAWS_ROWS,
    CHANGE_BEYOND,
    CHANGE_BEYOND_VALUE,
    CHANGE_BEYOND_DTYPE,
    CHANGE_TO,
    CHANGE_TO_DTYPE,
    CHANGE_TO_KIND,
    CHANGE_TO_OTHER_MEMORY,
    CHANGE_TO_APART,
    N_CHANGES,
};

static void change(struct asked *a, enum change what)
{
    struct request_arg *f8 = named(a, "f8"), *f4 = named(a, "f4"), *k = named(a, "k");
    struct request_output *output = &a->f->outputs[0];
    switch (what) {
    case CHANGE_TEXT: output->expr = "f8 - k"; break;
    case CHANGE_NAMES:
        strcpy(f8->name, "f4");
        strcpy(f4->name, "f8");
        break;
    case CHANGE_DTYPE: f8->array.dtype = DTYPE_INT64; break;
    case CHANGE_SHAPE: f8->array.shape[1] = 1; break;
    case CHANGE_NDIM: f8->array.ndim = 1; break;
    case CHANGE_KIND: f8->array.at.kind = LOCATION_INLINE; break;
    case CHANGE_SCALAR: k->scalar.i64++; break;
    case CHANGE_SCALAR_DTYPE: k->scalar_dtype = DTYPE_UINT64; break;
    case CHANGE_TO_SCALAR: f8->is_scalar = true; break;
    case CHANGE_FEWER_ARGS:
        a->f->request.args++;
        a->f->request.n_args--;
        break;
    case CHANGE_FEWER_OUTPUTS: a->f->request.n_outputs--; break;
    case CHANGE_DRAWS_SEED: a->f->request.draws.has_seed = true; break;
    case CHANGE_DRAWS_SIZE: a->f->request.draws.ndim = 1; break;
    case CHANGE_DRAWS_ROWS: a->f->request.draws.rows = 1; break;
    case CHANGE_BEYOND: a->f->request.beyond.mode = NEAR_WRAP; break;
    case CHANGE_BEYOND_VALUE: a->f->request.beyond.value.i64 = 3; break;
    case CHANGE_BEYOND_DTYPE: a->f->request.beyond.dtype = DTYPE_FLOAT64; break;
    case CHANGE_TO:
        output->has_to = true;
        output->to = f8->array;
        break;
    case CHANGE_TO_DTYPE:
        change(a, CHANGE_TO);
        output->to.dtype = DTYPE_FLOAT32;
        break;
    case CHANGE_TO_OTHER_MEMORY: output->to.at.region.offset_bytes += 4096; break;
    case CHANGE_TO_APART: a->f->request.is_apart = true; break;
    default:
        change(a, CHANGE_TO);
        output->to.at.kind = LOCATION_PROVIDER;
        break;
    }
}

Test(programs, tells_apart_whatever_the_compiler_reads)
{
    for (int i = 0; i < N_CHANGES; i++) {
        struct asked a = begin("f8 + k;f8*2");
        named(&a, "f8")->array.at.kind = LOCATION_REGION;
        if (i >= CHANGE_TO_DTYPE)
            change(&a, CHANGE_TO);
        struct program *first = ask(&a, 1);
        cr_expect(is_kept(&a, first));
        change(&a, (enum change)i);
        cr_expect(not(is_kept(&a, first)), "change %d", i);
        expect_right(&a, 1);
        program_free(first);
        end(&a);
    }
}

Test(programs, tells_chunks_apart)
{
    struct asked a = begin("f8");
    struct location *at = &named(&a, "f8")->array.at;
    at->kind = LOCATION_FILE;
    struct program *first = ask(&a, 1);
    cr_expect(is_kept(&a, first));
    at->file.is_grid = true;
    cr_expect(not(is_kept(&a, first)));
    program_free(first);
    end(&a);
}

Test(programs, tells_streams_apart)
{
    struct asked a = begin("f8");
    struct location *at = &named(&a, "f8")->array.at;
    at->kind = LOCATION_PROVIDER;
    struct program *first = ask(&a, 1);
    cr_expect(is_kept(&a, first));
    at->provider.is_stream = true;
    cr_expect(not(is_kept(&a, first)));
    program_free(first);
    end(&a);
}

Test(programs, keeps_no_errors)
{
    struct asked a = begin("f8");
    struct program *program = NULL;
    a.f->outputs[0].expr = "f9";
    for (int i = 0; i < 2; i++) {
        memset(&a.f->error, 0, sizeof(a.f->error));
        cr_expect(eq(int, programs_compile(a.programs, 1, &a.f->request, &program, &a.f->error),
                     GAD_UNKNOWN_NAME));
        cr_expect(ne(str, a.f->error.message, (char *)""));
    }
    cr_expect(eq(ptr, program, NULL));
    end(&a);
}

Test(programs, forgets_what_was_not_used_for_long)
{
    struct asked a = begin("f8");
    char text[32];
    struct program *first = ask(&a, 1);
    for (int i = 0; i < 1000; i++) {
        a.f->outputs[0].n_expr_chars = (size_t)snprintf(text, sizeof(text), "f8*%d", i % 300);
        a.f->outputs[0].expr = text;
        expect_right(&a, 1);
    }
    a.f->outputs[0] = (struct request_output){.expr = "f8", .n_expr_chars = 2};
    cr_expect(eq(int, first->n_refs, 1)); /* ours alone */
    cr_expect(not(is_kept(&a, first)));
    program_free(first);
    end(&a);
}

Test(programs, keeps_what_is_used_again_and_again)
{
    struct asked a = begin("f8");
    char text[32];
    struct program *first = ask(&a, 1);
    for (int i = 0; i < 1000; i++) {
        a.f->outputs[0].n_expr_chars = (size_t)snprintf(text, sizeof(text), "f8*%d", i);
        a.f->outputs[0].expr = text;
        program_free(ask(&a, 1));
        a.f->outputs[0] = (struct request_output){.expr = "f8", .n_expr_chars = 2};
        cr_assert(is_kept(&a, first));
    }
    program_free(first);
    end(&a);
}

Test(programs, compiles_what_is_large_each_time)
{
    struct asked a = begin("f8");
    char *text = calloc(1, REQUEST_MAX_EXPR_CHARS), *at = stpcpy(text, "f8");
    for (int i = 0; i < 900; i++)
        at = stpcpy(at, "+f8");
    a.f->outputs[0] = (struct request_output){.expr = text, .n_expr_chars = strlen(text)};
    struct program *first = ask(&a, 1);
    cr_expect(eq(int, first->n_refs, 1));
    expect_right(&a, 1);
    program_free(first);
    strcpy(text, "t0=f8+1;t1=t0*t0+t0*f8;t2=t1*t1+t1*f8;t3=t2*t2+t2*f8;t3");
    a.f->outputs[0].n_expr_chars = strlen(text);
    first = ask(&a, 1);
    cr_expect(eq(int, first->n_refs, 2));
    program_free(first);
    free(text);
    end(&a);
}
