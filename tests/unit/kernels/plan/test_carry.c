/* Carries and rounds: jobs are carried out here as a worker does, tiles in random order, with the
 * plain engine; whatever the limits say, the bytes are the same. Then what is refused, and how. */
#include "kernels/cuda/tile.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/cpu/engine.h"
#include "kernels/plan/plan.h"
#include "proto/wire/ring.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1024 * 1024
#define KIB 1024

static const struct plan_limits roomy = {.engine = &plan_cpu,
                                         .pool_bytes = 32 * MIB,
                                         .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                         .carry_limit_bytes = 16 * MIB,
                                         .n_threads = 2};

struct job {
    struct request_arg args[2];
    struct request_output output;
    struct job_request request;
    struct program *program;
    char *memory[2], *result; /* of the arguments, of the output */
    size_t result_bytes;
};

static void *take(size_t n_bytes)
{
    void *memory = NULL;
    cr_assert(eq(int, posix_memalign(&memory, 64, n_bytes + 64), 0));
    memset(memory, 0xa5, n_bytes + 64);
    return memory;
}

static void set_array(struct array *array, enum dtype dtype, int ndim, const int64_t *shape)
{
    *array = (struct array){.dtype = dtype, .ndim = ndim, .at.kind = LOCATION_REGION};
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, (int64_t)dtype_size(dtype), array->strides);
}

/* expr of a and b, float32 of this shape. */
static void job_init(struct job *job, const char *expr, int ndim, const int64_t *shape)
{
    struct gad_error error = {.status = GAD_OK};
    *job = (struct job){.args = {{.name = "a"}, {.name = "b"}},
                        .output = {.expr = expr, .n_expr_chars = strlen(expr)}};
    job->request = (struct job_request){.n_args = 2, .n_outputs = 1, .engine_index = -1};
    job->request.args = job->args;
    job->request.outputs = &job->output;
    for (int i = 0; i < 2; i++)
        set_array(&job->args[i].array, DTYPE_FLOAT32, ndim, shape);
    cr_assert(eq(int, program_compile(&job->request, &job->program, &error), 0), "%s: %s", expr,
              error.message);
    const struct program_output *output = &job->program->outputs[0];
    set_array(&job->output.to, output->dtype, output->ndim, output->shape);
    job->output.has_to = true;
}

static void job_fill(struct job *job)
{
    srand(5);
    for (int i = 0; i < 2; i++) {
        size_t n = (size_t)array_n_bytes(&job->args[i].array) / 4;
        float *values = take(n * 4);
        for (size_t k = 0; k < n; k++)
            values[k] = (float)rand() / 1e6f - 900;
        job->memory[i] = (char *)values;
    }
    job->result_bytes = (size_t)array_n_bytes(&job->output.to);
    job->result = take(job->result_bytes);
}

static void job_deinit(struct job *job)
{
    program_free(job->program);
    free(job->memory[0]);
    free(job->memory[1]);
    free(job->result);
}

static int plan_job(const struct job *job, const struct plan_limits *limits, bool in_place,
                    struct plan *ret_plan, struct gad_error *error)
{
    *error = (struct gad_error){.status = GAD_OK};
    return plan_make(&job->request, job->program, in_place, limits, ret_plan, error);
}

static void must_plan(const struct job *job, const struct plan_limits *limits,
                      struct plan *ret_plan)
{
    struct gad_error error;
    cr_assert(eq(int, plan_job(job, limits, false, ret_plan, &error), 0), "%s", error.message);
}

/* A job of two axes, and its plan. */
static void job_plan(struct job *job, const char *expr, const int64_t *shape,
                     const struct plan_limits *limits, struct plan *ret_plan)
{
    job_init(job, expr, 2, shape);
    must_plan(job, limits, ret_plan);
}

/* A worker ----------------------------------------------------------------------------------- */

struct work {
    struct job *job;
    const struct plan *plan;
    unsigned pass;
    uint64_t first_tile, n_tiles, first_grain;
    struct reduce_tree *tree;
    char *carry;
    void *scratch;
};

static struct engine_view view_of(const struct array *array, char *memory, int ndim,
                                  const int64_t *start)
{
    struct engine_view view = {.base = memory};
    int n_missing = ndim - array->ndim;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 1)
            continue;
        view.strides[n_missing + i] = array->strides[i];
        view.base = (char *)view.base + start[n_missing + i] * array->strides[i];
    }
    return view;
}

static void run_grain(const struct work *w, uint64_t grain, struct reduce_stack *stack, void *nodes)
{
    const struct program *program = w->job->program;
    const struct geometry *g = &w->plan->passes[w->pass].geometry;
    int64_t start[ARRAY_MAX_NDIM] = {0}, count[ARRAY_MAX_NDIM] = {0};
    struct engine_view inputs[2], output, reduced[PROGRAM_MAX_REDUCTIONS];
    struct engine_warnings warnings = {0};
    struct reduce_layout layout;
    bool is_reducing = program->passes[w->pass].n_reductions > 0;
    geometry_grain(g, grain, start, count);
    for (unsigned i = 0; i < program->n_inputs; i++) {
        unsigned arg = program->inputs[i].arg;
        if (program->passes[w->pass].inputs_used >> i & 1)
            inputs[i] = view_of(&w->job->args[arg].array, w->job->memory[arg], g->ndim, start);
    }
    if (program->passes[w->pass].n_stores > 0)
        output = view_of(&w->job->output.to, w->job->result, g->ndim, start);
    for (unsigned i = 0; i < program->n_reductions; i++)
        if (program->passes[w->pass].reduced_used >> i & 1)
            plan_result_view(w->plan, program, i, w->pass, start, w->carry, &reduced[i]);
    if (is_reducing && (stack->n_leaves == 0 || g->chain_grains == 1)) {
        reduce_layout_init(&layout, program, w->pass, geometry_n_cells(g, count));
        reduce_stack_init(stack, &layout, nodes);
    }
    const struct engine_box box = {
        .ndim = g->ndim, .count = count, .axis_order = g->axis_order, .start = start};
    cr_assert(
        eq(int,
           cpu_engine_run(cpu_engine_get(CPU_LEVEL_PLAIN), program, w->pass, &box, inputs, &output,
                          reduced, is_reducing ? &stack->layout : NULL,
                          is_reducing ? reduce_stack_next(stack) : NULL, &warnings, w->scratch),
           0));
    if (is_reducing)
        reduce_stack_push(stack);
    if (is_reducing && g->chain_grains == 1)
        plan_keep_results(w->plan, program, w->pass, grain, INT64_MAX, &stack->layout,
                          reduce_stack_finish(stack), w->carry);
}

static void keep_chain(void *argument, uint64_t chain, const struct reduce_layout *layout,
                       const void *node)
{
    const struct work *w = argument;
    const struct geometry *g = &w->plan->passes[w->pass].geometry;
    plan_keep_results(w->plan, w->job->program, w->pass, w->first_grain + chain * g->chain_grains,
                      INT64_MAX, layout, node, w->carry);
}

static void run_tile(struct work *w, uint64_t tile)
{
    const struct plan_pass *planned = &w->plan->passes[w->pass];
    struct reduce_stack stack = {.n_leaves = 0};
    uint64_t first, n;
    void *nodes = w->carry + w->plan->tree_offset_bytes;
    if (w->tree)
        nodes = reduce_tree_place(w->tree, tile);
    plan_tile_grains(planned, w->first_tile + tile, &first, &n);
    for (uint64_t i = 0; i < n; i++)
        run_grain(w, first + i, &stack, nodes);
    if (stack.n_leaves == 0 || planned->geometry.chain_grains == 1)
        return;
    const void *node = reduce_stack_finish(&stack);
    if (w->tree)
        reduce_tree_add(w->tree, tile, &stack.layout, keep_chain, w);
    else
        plan_keep_results(w->plan, w->job->program, w->pass, first, INT64_MAX, &stack.layout, node,
                          w->carry);
}

/* Tiles of one pass in one round, in any order that the window allows. */
static void run_tiles(struct work *w)
{
    bool *is_done = calloc(w->n_tiles + 1, sizeof(*is_done));
    uint64_t oldest = 0;
    while (oldest < w->n_tiles) {
        unsigned window = w->tree ? w->plan->passes[w->pass].tree.window : 8;
        uint64_t tile = oldest + (uint64_t)rand() % window;
        if (tile >= w->n_tiles || is_done[tile])
            continue;
        run_tile(w, tile);
        is_done[tile] = true;
        while (oldest < w->n_tiles && is_done[oldest])
            oldest++;
    }
    free(is_done);
}

static void run_pass(struct work *w, uint64_t round)
{
    const struct plan_pass *planned = &w->plan->passes[w->pass];
    uint64_t n;
    plan_round_tiles(planned, round, &w->first_tile, &w->n_tiles);
    geometry_round(&planned->geometry, round, &w->first_grain, &n);
    w->tree = NULL;
    if (planned->has_tree && w->n_tiles > 0) {
        struct reduce_tree_shape shape = planned->tree;
        shape.n_tiles = w->n_tiles;
        w->tree = reduce_tree_init(w->carry + w->plan->tree_offset_bytes, &shape);
    }
    run_tiles(w);
    if (w->n_tiles == 0)
        plan_keep_identities(w->plan, w->job->program, w->pass, round, w->carry);
}

static void run_job(struct job *job, const struct plan *plan)
{
    struct work w = {.job = job,
                     .plan = plan,
                     .carry = take(plan->carry_bytes),
                     .scratch = take(CPU_SCRATCH_BYTES)};
    memset(job->result, 0x5a, job->result_bytes);
    for (uint64_t round = 0; round < plan->n_rounds; round++)
        for (w.pass = 0; w.pass < plan->n_passes; w.pass++)
            run_pass(&w, round);
    for (size_t i = 0; i < 64; i++)
        cr_assert(eq(int, (unsigned char)w.carry[plan->carry_bytes + i], 0xa5));
    free(w.carry);
    free(w.scratch);
}

/* The same bytes ----------------------------------------------------------------------------- */

static const struct {
    const char *expr;
    int ndim;
    int64_t shape[3];
    bool has_rounds; /* in the smallest pool */
} jobs[] = {
    {"sum(a)", 1, {300000}, false},
    {"(a - mean(a)) / std(b)", 2, {300, 1000}, false},
    {"mean(a, axis=0)", 2, {50, 9000}, true},
    {"mean(a, axis=1)", 2, {9000, 50}, true},
    {"mean(a, axis=1)", 2, {3, 200000}, false},
    {"(a - mean(a, axis=0)) / std(a, axis=0)", 2, {70, 7001}, true},
    {"(a - mean(a, axis=1, keepdims=True)) / std(a)", 2, {20011, 9}, true},
    {"a - var(b, axis=(0, 1))", 3, {300, 200, 3}, false},
    {"max(a, axis=1) - min(b, axis=1)", 3, {20, 30, 500}, true},
    {"argmin(a, axis=0) + argmax(b, axis=0)", 2, {40, 5000}, true},
    {"sum(sum(a, axis=0), axis=0)", 3, {17, 40, 100}, true},
    {"mean(a, axis=0) + std(b, axis=0)", 2, {66, 70001}, true},
    {"prod(a, axis=2, keepdims=True) + count_nonzero(b, axis=(0, 1), keepdims=True)",
     3,
     {30, 40, 50},
     false},
};

static struct plan_limits small_limits(uint64_t carry_bytes, unsigned n_threads)
{
    struct plan_limits limits = roomy;
    limits.carry_limit_bytes = carry_bytes;
    limits.pool_bytes = 4 * MIB;
    limits.n_threads = n_threads;
    return limits;
}

static void check_job(struct job *job, bool has_rounds)
{
    static const uint64_t carries[] = {4 * MIB, 256 * KIB, 64 * KIB, 32 * KIB};
    struct plan plan;
    job_fill(job);
    must_plan(job, &roomy, &plan);
    cr_assert(eq(u64, plan.n_rounds, 1));
    run_job(job, &plan);
    char *want = take(job->result_bytes);
    memcpy(want, job->result, job->result_bytes);
    for (size_t i = 0; i < sizeof(carries) / sizeof(carries[0]); i++) {
        for (unsigned n_threads = 1; n_threads <= 64; n_threads *= 8) {
            const struct plan_limits limits = small_limits(carries[i], n_threads);
            must_plan(job, &limits, &plan);
            cr_assert(le(u64, plan.carry_bytes, carries[i]));
            run_job(job, &plan);
            cr_assert(eq(int, memcmp(job->result, want, job->result_bytes), 0),
                      "carry %lu, %u threads", (unsigned long)carries[i], n_threads);
        }
    }
    cr_assert(eq(int, plan.n_rounds > 1, has_rounds));
    const struct plan_limits large_slots = {.engine = &plan_cpu,
                                            .pool_bytes = 64 * MIB,
                                            .slot_bytes = 2 * GRAIN_MAX_TOTAL_BYTES,
                                            .carry_limit_bytes = 24 * MIB,
                                            .n_threads = 2};
    must_plan(job, &large_slots, &plan);
    run_job(job, &plan);
    cr_assert(eq(int, memcmp(job->result, want, job->result_bytes), 0), "large slots");
    free(want);
    job_deinit(job);
}

Test(carry, pool_threads_and_order_of_tiles_change_no_bit, .timeout = 60)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct job job;
        job_init(&job, jobs[i].expr, jobs[i].ndim, jobs[i].shape);
        check_job(&job, jobs[i].has_rounds);
    }
}

Test(carry, fortran_order_and_chunks_too)
{
    const int64_t shape[] = {70, 60, 90}, chunk[] = {24, 7, 50};
    struct job job;
    job_init(&job, "mean(a, axis=1) / max(b)", 3, shape);
    for (int i = 0, stride = 4; i < 3; i++, stride *= (int)shape[i - 1])
        job.args[0].array.strides[i] = stride;
    check_job(&job, true);
    job_init(&job, "a - mean(a, axis=0)", 3, shape);
    job.args[0].array.at = (struct location){.kind = LOCATION_PROVIDER};
    job.args[0].array.at.provider.has_chunks = true;
    memcpy(job.args[0].array.at.provider.chunk_shape, chunk, sizeof(chunk));
    check_job(&job, true);
}

/* The largest of the operand's boxes. */
static uint64_t box_bytes(const struct geometry *g, const struct array *array)
{
    uint64_t n_bytes = dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++)
        n_bytes *=
            min_u64((uint64_t)array->shape[i], (uint64_t)g->grain_shape[g->ndim - array->ndim + i]);
    return n_bytes;
}

/* Returns whether an operand is larger than a provider's may be. */
static bool check_boxes(const struct job *job, const struct plan *plan,
                        const struct plan_limits *limits)
{
    const struct program *program = job->program;
    bool is_large = false;
    for (unsigned pass = 0; pass < program->n_passes; pass++) {
        const struct geometry *g = &plan->passes[pass].geometry;
        uint64_t n_bytes = 0, slot_bytes = limits->slot_bytes;
        bool has_provider = false;
        for (unsigned i = 0; i < program->n_inputs + 1u; i++) {
            bool is_input = i < program->n_inputs;
            const struct array *array =
                is_input ? &job->args[program->inputs[i].arg].array : &job->output.to;
            if (is_input ? !(program->passes[pass].inputs_used >> i & 1)
                         : program->passes[pass].n_stores == 0)
                continue;
            uint64_t own_bytes = box_bytes(g, array);
            n_bytes += round_up_u64(own_bytes, 64);
            has_provider |= array->at.kind == LOCATION_PROVIDER;
            if (array->at.kind == LOCATION_PROVIDER)
                cr_assert(le(u64, own_bytes, RING_MIN_SLOT_BYTES));
            is_large |= own_bytes > RING_MIN_SLOT_BYTES;
        }
        if (has_provider)
            slot_bytes = GRAIN_MAX_TOTAL_BYTES;
        cr_assert(le(u64, n_bytes, slot_bytes));
    }
    return is_large;
}

Test(carry, slots_and_those_of_providers_hold_every_block)
{
    static const char *const exprs[] = {"mean(a, axis=0)",
                                        "a - mean(a, axis=0)",
                                        "sum(a*b, axis=0) / std(b, axis=0)",
                                        "max(a, axis=1) + min(b)",
                                        "(a - mean(b, axis=1, keepdims=True)) * a",
                                        "a + b"};
    static const enum location_kind kinds[] = {LOCATION_PROVIDER, LOCATION_REGION, LOCATION_FILE};
    unsigned n_large = 0;
    srand(7);
    for (int i = 0; i < 3000; i++) {
        const int64_t shape[] = {1 + rand() % 300, 1 + rand() % 40000, 1 + rand() % 3};
        const struct plan_limits limits = {.engine = &plan_cpu,
                                           .pool_bytes = 64 * MIB,
                                           .slot_bytes =
                                               (uint64_t)(1 + rand() % 2) * GRAIN_MAX_TOTAL_BYTES,
                                           .carry_limit_bytes = 24 * MIB,
                                           .n_threads = 2};
        struct plan plan;
        struct job job;
        job_init(&job, exprs[i % 6], 2 + rand() % 2, shape);
        job.args[0].array.at.kind = kinds[rand() % 3];
        job.args[1].array.at.kind = kinds[rand() % 3];
        job.output.to.at.kind = kinds[rand() % 3];
        must_plan(&job, &limits, &plan);
        n_large += check_boxes(&job, &plan, &limits);
        job_deinit(&job);
    }
    cr_assert(lt(u32, 100, n_large)); /* long runs, that is */
}

Test(carry, the_values_are_right)
{
    const int64_t shape[] = {40, 30000};
    const struct plan_limits limits = small_limits(64 * KIB, 2);
    struct plan plan;
    struct job job;
    job_plan(&job, "sum(a, axis=0, dtype=float64)", shape, &limits, &plan);
    job_fill(&job);
    cr_assert(lt(u64, 1, plan.n_rounds));
    run_job(&job, &plan);
    for (int64_t column = 0; column < shape[1]; column++) {
        double sum = 0;
        for (int64_t row = 0; row < shape[0]; row++)
            sum += ((const float *)job.memory[0])[row * shape[1] + column];
        double got = ((const double *)job.result)[column];
        cr_assert(lt(dbl, got > sum ? got - sum : sum - got, 1e-8));
    }
    job_deinit(&job);
}

Test(carry, an_empty_axis_gives_identities_in_rounds_too)
{
    const int64_t shape[] = {0, 30000};
    const struct plan_limits limits = small_limits(32 * KIB, 2);
    struct plan plan;
    struct job job;
    job_plan(&job, "prod(a, axis=0)", shape, &limits, &plan);
    job_fill(&job);
    cr_assert(lt(u64, 1, plan.n_rounds));
    run_job(&job, &plan);
    for (int64_t i = 0; i < shape[1]; i++)
        cr_assert(eq(flt, ((const float *)job.result)[i], 1));
    job_deinit(&job);
}

/* Rounds ------------------------------------------------------------------------------------- */

Test(carry, rounds_cut_each_pass_along_the_axis_of_the_results)
{
    const int64_t shape[] = {100, 200000};
    const struct plan_limits limits = small_limits(512 * KIB, 2);
    struct plan plan;
    struct job job;
    job_plan(&job, "(a - mean(a, axis=0)) / std(a, axis=0)", shape, &limits, &plan);
    cr_assert(lt(u64, 4, plan.n_rounds));
    for (unsigned i = 0; i < plan.n_passes; i++) {
        const struct geometry *g = &plan.passes[i].geometry;
        cr_assert(eq(int, g->round_axis, 1));
        cr_assert(eq(u64, g->n_rounds, plan.n_rounds));
        cr_assert(eq(i64, g->round_length % g->grain_shape[1], 0));
    }
    cr_assert(eq(int, plan.results[0].round_axis, 0));
    /* Every byte is read once a pass, as without rounds. */
    cr_assert(eq(u64, plan.read_bytes, 2 * 100 * 200000 * 4));
    program_free(job.program);
}

Test(carry, rounds_are_whole_chunks)
{
    const int64_t shape[] = {100, 200000}, chunk[] = {10, 1000};
    const struct plan_limits limits = small_limits(512 * KIB, 2);
    struct plan plan;
    struct job job;
    job_init(&job, "a - mean(a, axis=0)", 2, shape);
    job.args[0].array.at = (struct location){.kind = LOCATION_FILE, .file.is_grid = true};
    memcpy(job.args[0].array.at.file.chunk_shape, chunk, sizeof(chunk));
    must_plan(&job, &limits, &plan);
    cr_assert(lt(u64, 1, plan.n_rounds));
    cr_assert(eq(i64, plan.passes[0].geometry.round_length % 1000, 0));
    program_free(job.program);
}

Test(carry, a_pass_that_rounds_do_not_reach_is_done_once)
{
    const int64_t shape[] = {200000, 100};
    const struct plan_limits limits = small_limits(512 * KIB, 2);
    struct plan plan;
    struct job job;
    uint64_t first, n, n_once = 0;
    job_plan(&job, "(a - mean(a, axis=1, keepdims=True)) / std(a)", shape, &limits, &plan);
    cr_assert(lt(u64, 1, plan.n_rounds));
    for (unsigned i = 0; i < plan.n_passes; i++) {
        plan_round_tiles(&plan.passes[i], 1, &first, &n);
        n_once += n == 0;
    }
    cr_assert(eq(u64, n_once, 1));
    program_free(job.program);
}

Test(carry, what_no_rounds_make_smaller_is_refused_with_the_numbers)
{
    const int64_t shape[] = {4, 1000000};
    const struct plan_limits limits = small_limits(512 * KIB, 2);
    struct gad_error error;
    struct plan plan;
    struct job job;
    job_init(&job, "max(sum(a, axis=0))", 2, shape); /* all columns meet again */
    cr_assert(eq(int, plan_job(&job, &limits, false, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.argument, (char *)"pool"));
    cr_assert(eq(str, error.found, (char *)"524288 bytes"));
    uint64_t needed = strtoull(error.expected, NULL, 10);
    cr_assert(ge(u64, needed, 8000000));
    cr_assert(strstr(error.message, "larger pool") != NULL);
    struct plan_limits enough = limits; /* as many as it says are enough */
    enough.carry_limit_bytes = needed;
    must_plan(&job, &enough, &plan);
    enough.carry_limit_bytes = needed - 64;
    cr_assert(eq(int, plan_job(&job, &enough, false, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    program_free(job.program);
}

Test(carry, rounds_in_which_there_is_nothing_to_do_are_none)
{
    const int64_t shape[] = {0, INT64_C(1) << 44};
    struct plan plan;
    struct job job;
    /* No element, and results without end. */
    job_plan(&job, "b * sum(a, axis=0)", shape, &roomy, &plan);
    cr_assert(eq(u64, plan.n_tiles, 0));
    cr_assert(eq(u64, plan.n_rounds, 1));
    program_free(job.program);
}

Test(carry, in_place_there_are_no_rounds)
{
    const int64_t shape[] = {100, 200000};
    const struct plan_limits limits = small_limits(512 * KIB, 2);
    struct gad_error error;
    struct plan plan;
    struct job job;
    job_init(&job, "a - mean(a, axis=0)", 2, shape);
    cr_assert(eq(int, plan_job(&job, &limits, true, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(strstr(error.message, "another array") != NULL);
    cr_assert(eq(int, plan_job(&job, &roomy, true, &plan, &error), 0));
    program_free(job.program);
}

Test(carry, a_grain_of_any_job_fits_the_least_slot_of_a_device)
{
    static const char *const wide[] = {
        "mean(a, axis=0)",
        "mean(a*b, axis=0) + std(a*b + 1, axis=0) + max(a/b, axis=0) - argmin(sqrt(a), axis=0)",
        "(a - mean(a, axis=0)) / std(a, axis=0) + logsumexp(b, axis=0) * var(a, axis=0)",
        "var(a + b, axis=(0, 1))",
        "sum(exp(a), axis=1) / prod(1 + b, axis=1) + ptp(a - b, axis=1)",
    };
    const int64_t shape[] = {3000, 70000};
    struct plan_limits device = roomy;
    struct gad_error error;
    struct plan plan;
    device.engine = &plan_cuda;
    device.slot_bytes = CUDA_SLOT_MIN_BYTES;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        struct job job;
        job_init(&job, wide[i], 2, shape);
        cr_assert(eq(int, plan_job(&job, &device, false, &plan, &error), 0), "%s: %s", wide[i],
                  error.message);
        for (unsigned k = 0; k < plan.n_passes; k++)
            cr_assert(le(u64, cuda_tile_need_bytes(job.program, k, 1, &plan.passes[k].room),
                         device.slot_bytes));
        program_free(job.program);
    }
}

Test(carry, a_small_job_has_a_small_carry)
{
    const int64_t shape[] = {20, 1000};
    struct plan plan;
    struct job job;
    job_plan(&job, "mean(a, axis=0)", shape, &roomy, &plan);
    cr_assert(plan.is_small);
    cr_assert(le(u64, plan.carry_bytes, 20 * KIB));
    program_free(job.program);
}
