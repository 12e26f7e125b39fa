/* Planning is bounded: steps are counted, for requests that are small and as costly as they can be.
 * What would exceed the bound all the same is refused. Compiling is bounded by its limits: texts
 * that are as deep, wide or often read as these allow take a moment. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXPR_BYTES 16384

static struct request_arg args[REQUEST_MAX_ARGS];
static struct request_output outputs[REQUEST_MAX_OUTPUTS];
static struct job_request request;
static struct program *program;
static struct plan plan;
static char exprs[REQUEST_MAX_OUTPUTS][EXPR_BYTES];

static const struct plan_limits cpu = {.engine = &plan_cpu,
                                       .pool_bytes = 32u << 20,
                                       .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                       .carry_limit_bytes = 16u << 20,
                                       .n_threads = 2,
                                       .memory_bytes = UINT64_C(8) << 30};
static const struct plan_limits device = {.engine = &plan_cuda,
                                          .pool_bytes = 512u << 20,
                                          .slot_bytes = 8u << 20,
                                          .carry_limit_bytes = 256u << 20,
                                          .n_threads = 2,
                                          .memory_bytes = UINT64_C(8) << 30};

/* Of float32, each axis as long; chunk: of 1 along some axes, 0: none. */
static void set_args(unsigned n, int ndim, int64_t length, bool has_chunks)
{
    memset(args, 0, sizeof(args));
    for (unsigned i = 0; i < n; i++) {
        struct array *a = &args[i].array;
        snprintf(args[i].name, sizeof(args[i].name), "x%u", i);
        *a = (struct array){.dtype = DTYPE_FLOAT32, .ndim = ndim, .at.kind = LOCATION_REGION};
        for (int k = 0; k < ndim; k++)
            a->shape[k] = length;
        array_c_strides(ndim, a->shape, 4, a->strides);
        if (!has_chunks)
            continue;
        a->at = (struct location){.kind = LOCATION_FILE, .file.is_grid = true};
        for (int k = 0; k < ndim; k++)
            a->at.file.chunk_shape[k] = 1 + ((int)i + k) % length;
    }
}

/* `function` of the sum of the first n_args, along each of n_axes axes; summed up. */
static void write_reductions(char *expr, const char *function, unsigned n_args, int n_axes)
{
    size_t n = 0;
    for (int axis = 0; axis < n_axes; axis++) {
        n += (size_t)snprintf(expr + n, EXPR_BYTES - n, "%s%s(", axis ? "+" : "", function);
        for (unsigned i = 0; i < n_args; i++)
            n += (size_t)snprintf(expr + n, EXPR_BYTES - n, "%sx%u", i ? "+" : "", i);
        n += (size_t)snprintf(expr + n, EXPR_BYTES - n, ",axis=%d,keepdims=True)", axis);
        cr_assert(lt(sz, n, EXPR_BYTES - 64));
    }
}

static uint64_t steps_with(const struct plan_limits *limits)
{
    struct gad_error error = {.status = GAD_OK};
    int r = plan_make(&request, program, false, limits, &plan, &error);
    cr_assert(r == 0 || r == GAD_TOO_LARGE_FOR_POOL, "%d: %s", r, error.message);
    return plan.n_steps;
}

/* The most of both engines. */
static uint64_t steps_of(unsigned n_args, unsigned n_outputs)
{
    struct gad_error error = {.status = GAD_OK};
    memset(outputs, 0, sizeof(outputs));
    for (unsigned i = 0; i < n_outputs; i++) {
        outputs[i].expr = exprs[i];
        outputs[i].n_expr_chars = strlen(exprs[i]);
    }
    request = (struct job_request){.n_args = n_args,
                                   .n_outputs = n_outputs,
                                   .args = args,
                                   .outputs = outputs,
                                   .engine_index = -1};
    cr_assert(eq(int, program_compile(&request, &program, &error), 0), "%s", error.message);
    uint64_t n = max_u64(steps_with(&cpu), steps_with(&device));
    program = program_free(program);
    return n;
}

/* What the passes read and write has passes x axes axes here, and each is looked at so often. */
Test(steps, grow_as_the_axes_of_what_the_passes_read)
{
    static const char *const functions[] = {"sum", "mean", "var", "std", "max"};
    for (unsigned f = 0; f < ARRAY_LENGTH(functions); f++) {
        for (int ndim = 2; ndim < ARRAY_MAX_NDIM; ndim++) {
            set_args(1, ndim, 2, false);
            write_reductions(exprs[0], functions[f], 1, ndim);
            uint64_t n_axes = (uint64_t)(ndim + 1) * (uint64_t)ndim;
            cr_expect(le(u64, steps_of(1, 1), 64 * n_axes), "%s of %d axes", functions[f], ndim);
        }
    }
}

Test(steps, of_the_most_arrays_with_the_most_axes_are_far_from_the_bound)
{
    for (int has_chunks = 0; has_chunks < 2; has_chunks++) {
        set_args(REQUEST_MAX_ARGS, ARRAY_MAX_NDIM, 2, has_chunks);
        write_reductions(exprs[0], "sum", REQUEST_MAX_ARGS, 15);
        cr_expect(le(u64, steps_of(REQUEST_MAX_ARGS, 1), PLAN_MAX_STEPS / 4));
    }
    set_args(32, 31, 2, true);
    write_reductions(exprs[0], "sum", 32, 31);
    cr_expect(le(u64, steps_of(32, 1), PLAN_MAX_STEPS / 4));
}

Test(steps, of_the_most_outputs_are_far_from_the_bound)
{
    set_args(30, 31, 2, false);
    for (unsigned i = 0; i < REQUEST_MAX_OUTPUTS; i++)
        write_reductions(exprs[i], i % 2 ? "sum" : "max", 30, 2);
    cr_expect(le(u64, steps_of(30, REQUEST_MAX_OUTPUTS), PLAN_MAX_STEPS / 4));
}

Test(steps, of_quantiles_are_far_from_the_bound)
{
    set_args(1, 2, 1000000, false);
    args[0].array.dtype = DTYPE_FLOAT64;
    args[0].array.strides[0] = 8000000;
    args[0].array.strides[1] = 8;
    strcpy(exprs[0], "quantile(x0,.1,axis=0)+quantile(x0,.2,axis=0)+quantile(x0,.3,axis=0)");
    cr_expect(le(u64, steps_of(1, 1), PLAN_MAX_STEPS / 4));
    set_args(1, 31, 2, false);
    exprs[0][0] = '\0';
    for (int i = 1; i < 11; i++)
        sprintf(exprs[0] + strlen(exprs[0]), "%smedian(x0,axis=(0,%d),keepdims=True)",
                i > 1 ? "+" : "", i);
    cr_expect(le(u64, steps_of(1, 1), PLAN_MAX_STEPS / 4));
}

Test(steps, beyond_the_bound_are_refused)
{
    struct gad_error error = {.status = GAD_OK};
    set_args(1, 2, 100, false);
    strcpy(exprs[0], "sum(x0)");
    (void)steps_of(1, 1);
    cr_assert(eq(int, program_compile(&request, &program, &error), 0));
    struct planner planner = {
        .request = &request, .program = program, .limits = &cpu, .plan = &plan, .error = &error};
    bool fits;
    plan.n_steps = PLAN_MAX_STEPS;
    cr_expect(eq(int, planner_cut_pass(&planner, 0, &fits), 0));
    cr_expect(eq(int, planner_cut_pass(&planner, 0, &fits), GAD_LIMIT_EXCEEDED));
    cr_expect(eq(str, error.argument, (char *)"outputs"));
    cr_expect(ne(str, error.expected, (char *)""));
    program = program_free(program);
}

/* Steps that choosing rounds takes, of which none fit. */
static uint64_t rounds_steps(struct planner *planner, uint64_t from)
{
    plan.n_steps = from;
    cr_expect(not(planner_choose_rounds(planner, 0)));
    return plan.n_steps - from;
}

Test(steps, that_are_used_up_end_the_search_for_rounds)
{
    struct gad_error error = {.status = GAD_OK};
    set_args(1, 16, 2, false);
    write_reductions(exprs[0], "sum", 1, 16);
    (void)steps_of(1, 1);
    cr_assert(eq(int, program_compile(&request, &program, &error), 0));
    struct planner planner = {
        .request = &request, .program = program, .limits = &cpu, .plan = &plan, .error = &error};
    bool fits;
    plan.n_steps = 0;
    for (unsigned i = 0; i < program->n_passes; i++)
        cr_assert(zero(int, planner_cut_pass(&planner, i, &fits)));
    cr_expect(lt(u64, 1000, rounds_steps(&planner, 0)));
    uint64_t n_of_one_axis = rounds_steps(&planner, PLAN_MAX_STEPS);
    cr_expect(lt(u64, n_of_one_axis, rounds_steps(&planner, 0) / 16));
    cr_expect(zero(u64, rounds_steps(&planner, PLAN_MAX_STEPS + 1)));
    program = program_free(program);
}

/* ---- texts of neighbours, windows and steps of time ---- */

/* `begin`, n times `open` with the number of each, `middle`, n times `close`, `end`. */
static const struct text {
    const char *begin, *open, *middle, *close, *end;
    unsigned n;
    int status; /* of compiling or planning */
} texts[] = {
    {"x0", "+near(x0,%u,%u)", "", "", "", 500, 0},
    {"", "near(", "x0", ",1,1,mode=wrap)", "", 190, 0},
    {"", "near(", "(x0+1)", ",1,1,mode=constant)", "", 190, GAD_LIMIT_EXCEEDED},
    {"g0(x)=x+near(x,1,0,mode=wrap);", "g%u(x)=g%u(x)+g%u(x+1);", "g9(x0)", "", "", 9, 0},
    {"g0(x)=x+1;", "g%u(x)=g%u(x)+g%u(x+1);", "g40(x0)", "", "", 40, GAD_LIMIT_EXCEEDED},
    {"t0=x0;", "t%u=iterate(1000000,t%u=t%u*1.5+x0);", "t32", "", "", 32, 0},
    {"", "t%u=iterate(9,x0=x0*%u);", "0", "+t%u", "", 200, GAD_LIMIT_EXCEEDED},
    {"x0", "+repeat(%u,x0=x0+near(x0,%u,0))", "", "", "", 8, 0},
    {"x0", "+repeat(%u,x0=x0+near(x0,%u,0))", "", "", "", 300, GAD_LIMIT_EXCEEDED},
    {"x0", "+repeat(3,x0=x0+near(x0,1,0))", "", "", "", 400, 0},
    {"x0", "+repeat(3,x0=x0+%u)", "", "", "", 600, GAD_LIMIT_EXCEEDED},
    {"repeat(2,x0=x0", "+near(x0,%u,%u)", "", "", ")", 20, 0},
    {"", "window_max(", "x0", ",3)", "", 16, 0},
    {"", "window_max(x0,%u)+", "0", "", "", 16, 0},
    {"", "(window_max(", "x0", ",2)+window_min(x0,2))", "", 90, GAD_LIMIT_EXCEEDED},
    {"correlate(x0,[[0", ",1", "]])", "", "", 254, 0},
    {"correlate(x0,[[0", ",1", "]])", "", "", 255, GAD_LIMIT_EXCEEDED},
};

static void write_text(char *expr, const struct text *t)
{
    size_t n = (size_t)snprintf(expr, EXPR_BYTES, "%s", t->begin);
    for (unsigned part = 0; part < 2; part++) {
        for (unsigned i = 1; i <= t->n && n < EXPR_BYTES; i++)
            n += (size_t)snprintf(expr + n, EXPR_BYTES - n, part ? t->close : t->open,
                                  part ? t->n + 1 - i : i, t->open[0] == '+' ? i : i - 1, i - 1);
        if (n < EXPR_BYTES)
            n += (size_t)snprintf(expr + n, EXPR_BYTES - n, "%s", part ? t->end : t->middle);
    }
    cr_assert(lt(sz, n, EXPR_BYTES), "%s", t->open);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

Test(steps, of_texts_that_ask_for_the_most_take_a_moment)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct gad_error error = {.status = GAD_OK};
        set_args(1, 2, 3000, false);
        write_text(exprs[0], &texts[i]);
        outputs[0] = (struct request_output){.expr = exprs[0], .n_expr_chars = strlen(exprs[0])};
        request = (struct job_request){
            .n_args = 1, .n_outputs = 1, .args = args, .outputs = outputs, .engine_index = -1};
        double began = cpu_seconds();
        plan.n_steps = 0;
        int r = program_compile(&request, &program, &error);
        if (r == 0) {
            r = plan_make(&request, program, false, &cpu, &plan, &error);
            program = program_free(program);
        }
        cr_expect(lt(dbl, cpu_seconds() - began, 1), "%u of %s", texts[i].n, texts[i].open);
        cr_expect(le(u64, plan.n_steps, PLAN_MAX_STEPS / 4), "%s", texts[i].open);
        cr_expect(eq(int, r, texts[i].status), "%u of %s: %s", texts[i].n, texts[i].open,
                  error.message);
    }
}
