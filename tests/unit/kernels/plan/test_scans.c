/* Scans: how their spaces are cut, in which order tiles may begin, where the states lie. */
#include "kernels/cpu/engine.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/plan.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static const struct plan_limits limits = {.engine = &plan_cpu,
                                          .pool_bytes = 64 * MIB,
                                          .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                          .carry_limit_bytes = 16 * MIB,
                                          .n_threads = 2};
static const struct plan_limits device = {.engine = &plan_cuda,
                                          .pool_bytes = 64 * MIB,
                                          .slot_bytes = 4 * MIB,
                                          .carry_limit_bytes = 16 * MIB,
                                          .n_threads = 2};

struct job {
    struct request_arg arg;
    struct request_output output;
    struct job_request request;
    struct program_input input;
    struct program_output program_output;
    struct program program;
};

static void set_array(struct array *array, enum dtype dtype, int ndim, const int64_t *shape)
{
    *array = (struct array){.dtype = dtype, .ndim = ndim, .at.kind = LOCATION_REGION};
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, (int64_t)dtype_size(dtype), array->strides);
}

/* A running sum of float32 along an axis. */
static void job_init(struct job *job, int ndim, const int64_t *shape, int axis)
{
    *job = (struct job){.arg = {.name = "a"}, .output.has_to = true};
    job->request = (struct job_request){
        .n_args = 1, .n_outputs = 1, .args = &job->arg, .outputs = &job->output};
    job->input = (struct program_input){.dtype = DTYPE_FLOAT32, .ndim = ndim};
    job->program_output = (struct program_output){.dtype = DTYPE_FLOAT32, .ndim = ndim};
    set_array(&job->arg.array, DTYPE_FLOAT32, ndim, shape);
    set_array(&job->output.to, DTYPE_FLOAT32, ndim, shape);
    memcpy(job->input.shape, shape, (size_t)ndim * sizeof(*shape));
    memcpy(job->program_output.shape, shape, (size_t)ndim * sizeof(*shape));
    job->program =
        (struct program){.n_passes = 1,
                         .n_reductions = 1,
                         .n_stores = 1,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = &job->input,
                         .outputs = &job->program_output,
                         .reductions[0] = {.op = OP_CUMSUM,
                                           .result = DTYPE_FLOAT64,
                                           .src = {.kind = OPERAND_INPUT, .dtype = DTYPE_FLOAT32}},
                         .passes[0] = {.ndim = ndim,
                                       .n_reductions = 1,
                                       .n_stores = 1,
                                       .inputs_used = 1,
                                       .reduced_axes = UINT32_C(1) << axis,
                                       .scanned_axis = (int8_t)axis}};
    memcpy(job->program.passes[0].shape, shape, (size_t)ndim * sizeof(*shape));
    program_list_stages(&job->program);
}

static void make(const struct job *job, bool in_place, const struct plan_limits *with,
                 struct plan *ret_plan)
{
    struct gad_error error = {.status = GAD_OK};
    int r = plan_make(&job->request, &job->program, in_place, with, ret_plan, &error);

    cr_assert(eq(int, r, 0), "%s", error.message);
}

/* Whether two boxes share a place along the other axes. */
static bool share_states(const struct geometry *g, uint64_t grain, uint64_t other)
{
    int64_t start[2][ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];

    geometry_grain(g, grain, start[0], count);
    geometry_grain(g, other, start[1], count);
    for (int i = 0; i < g->ndim; i++)
        if (!(g->reduced_axes >> i & 1) && start[0][i] != start[1][i])
            return false;
    return true;
}

static uint64_t tile_of(const struct plan_pass *pass, uint64_t grain)
{
    for (uint64_t tile = 0;; tile++) {
        uint64_t first, n;
        plan_tile_grains(pass, tile, &first, &n);
        if (grain >= first && grain < first + n)
            return tile;
    }
}

/* The grain with the same states that comes before; n_grains: none. */
static uint64_t grain_before(const struct geometry *g, uint64_t grain)
{
    for (uint64_t i = grain; i-- > 0;)
        if (share_states(g, i, grain))
            return i;
    return g->n_grains;
}

/* Every grain once, in order; what a grain continues is done when its tile may begin, and nothing
 * of the tile itself, but where it chains steps: then it is the grain before. */
static void check_tiles(const struct plan_pass *pass)
{
    const struct geometry *g = &pass->geometry;
    uint64_t n_seen = 0;

    for (uint64_t tile = 0; tile < pass->n_tiles; tile++) {
        uint64_t first, n, needed = plan_scan_needs(pass, tile);
        plan_tile_grains(pass, tile, &first, &n);
        cr_assert(eq(u64, first, n_seen));
        cr_assert(lt(u64, 0, n));
        cr_assert(le(u64, needed, tile));
        n_seen += n;
        for (uint64_t grain = first; grain < first + n; grain++) {
            uint64_t before = grain_before(g, grain);
            int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
            geometry_grain(g, grain, start, count);
            bool is_first = start[__builtin_ctz(g->reduced_axes)] == 0;
            cr_assert(eq(int, is_first, before == g->n_grains));
            if (!is_first && pass->chains_steps && grain > first)
                cr_assert(eq(u64, before, grain - 1));
            else if (!is_first)
                cr_assert(lt(u64, tile_of(pass, before), needed));
        }
    }
    cr_assert(eq(u64, n_seen, g->n_grains));
}

static const struct {
    int ndim, axis;
    int64_t shape[3];
} spaces[] = {
    {1, 0, {5000000}},      {1, 0, {1}},           {2, 0, {3000, 9001}},
    {2, 1, {9001, 3000}},   {2, 1, {3, 1000000}},  {2, 0, {1000000, 3}},
    {3, 0, {60, 70, 900}},  {3, 1, {60, 700, 90}}, {3, 2, {600, 70, 90}},
    {3, 1, {1, 100000, 1}}, {2, 0, {1, 1000000}},
};

Test(scans, tiles_begin_when_what_they_continue_is_done)
{
    for (size_t i = 0; i < ARRAY_LENGTH(spaces); i++) {
        struct job job;
        struct plan plan;
        job_init(&job, spaces[i].ndim, spaces[i].shape, spaces[i].axis);
        make(&job, false, &limits, &plan);
        cr_assert(lt(u64, 0, plan.passes[0].geometry.n_steps), "space %zu", i);
        cr_assert(eq(u64, plan.n_rounds, 1));
        cr_assert(eq(u64, plan.passes[0].node_bytes, 0));
        check_tiles(&plan.passes[0]);
    }
}

/* A device looks at all of the program. */
static void make_on_device(int ndim, const int64_t *shape, int axis, const struct plan_limits *with,
                           struct plan *ret_plan)
{
    struct job job;
    struct program *program;
    struct gad_error error = {.status = GAD_OK};
    char expr[32];

    job_init(&job, ndim, shape, axis);
    job.output.to.dtype = DTYPE_FLOAT32;
    job.output.expr = expr;
    job.output.n_expr_chars = (size_t)snprintf(expr, sizeof(expr), "cumsum(a, axis=%d)", axis);
    cr_assert(zero(int, program_compile(&job.request, &program, &error)), "%s", error.message);
    int r = plan_make(&job.request, program, false, with, ret_plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    program_free(program);
}

Test(scans, of_single_grains_a_step_are_chained_by_a_device)
{
    unsigned n_chained = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(spaces); i++) {
        struct plan plan;
        make_on_device(spaces[i].ndim, spaces[i].shape, spaces[i].axis, &device, &plan);
        const struct plan_pass *pass = &plan.passes[0];
        if (pass->geometry.n_steps == 0) /* of one element nothing runs */
            continue;
        bool is_single = pass->geometry.n_steps == pass->geometry.n_grains;
        cr_assert(eq(int, pass->chains_steps, is_single), "space %zu", i);
        if (is_single && pass->geometry.n_grains >= 8)
            cr_assert(lt(uint, 0, pass->tile_log2), "space %zu", i);
        n_chained += pass->tile_log2 > 0 && is_single;
        check_tiles(pass);
    }
    cr_assert(lt(uint, 1, n_chained));
}

Test(scans, along_the_slow_axis_of_rows_have_several_tiles_a_step)
{
    const int64_t shape[] = {100000, 4096};
    struct job job;
    struct plan plan;

    job_init(&job, 2, shape, 0);
    make(&job, false, &limits, &plan);
    const struct plan_pass *pass = &plan.passes[0];
    cr_assert(ge(u64, pass->n_tiles / pass->geometry.n_steps, 4));
    cr_assert(eq(u64, pass->n_tiles % pass->geometry.n_steps, 0));
}

Test(scans, have_one_state_for_each_place_along_the_other_axes)
{
    const int64_t shape[] = {60, 700, 90}, start[] = {3, 40, 20}, first[] = {0, 0, 0};
    struct engine_view view;
    struct job job;
    struct plan plan;
    char carry[1];

    job_init(&job, 3, shape, 1);
    make(&job, false, &limits, &plan);
    cr_assert(eq(u64, plan.carry_bytes, 60 * 90 * 8 + 0));
    plan_state_view(&plan, &job.program, 0, start, carry, &view);
    cr_assert(eq(i64, (char *)view.base - carry, (3 * 90 + 20) * 8));
    cr_assert(eq(i64, view.strides[0], 90 * 8));
    cr_assert(eq(i64, view.strides[1], 0));
    cr_assert(eq(i64, view.strides[2], 8));
    plan_state_view(&plan, &job.program, 0, first, carry, &view);
    cr_assert(view.base == carry);
}

/* States for all rows would not fit. */
Test(scans, go_in_rounds_also_where_they_overwrite_their_source)
{
    static const int64_t shape[] = {40, 50001};
    struct plan_limits tight = limits, tight_device = device;
    struct job job;
    struct plan plan;

    tight.carry_limit_bytes = tight_device.carry_limit_bytes = 300000;
    make_on_device(2, shape, 0, &tight_device, &plan);
    cr_assert(lt(u64, 1, plan.n_rounds));
    check_tiles(&plan.passes[0]);
    job_init(&job, 2, shape, 0);
    for (int in_place = 0; in_place < 2; in_place++) {
        make(&job, in_place, &tight, &plan);
        cr_assert(lt(u64, 1, plan.n_rounds));
        cr_assert(le(u64, plan.carry_bytes, 300000));
        check_tiles(&plan.passes[0]);
        const struct geometry *g = &plan.passes[0].geometry;
        cr_assert(lt(i64, g->grain_shape[1], g->round_length));
        int64_t start[2] = {7, g->round_length + 5};
        struct engine_view view;
        char carry[1];
        plan_state_view(&plan, &job.program, 0, start, carry, &view);
        cr_assert(eq(i64, (char *)view.base - carry, 5 * 8));
    }
}

Test(scans, of_nothing_have_no_tiles)
{
    static const int64_t shapes[][2] = {{0, 5}, {5, 0}};

    for (int i = 0; i < 4; i++) {
        struct job job;
        struct plan plan;
        job_init(&job, 2, shapes[i / 2], i % 2);
        make(&job, false, &limits, &plan);
        cr_assert(eq(u64, plan.n_tiles, 0));
        cr_assert(
            eq(u64, plan.carry_bytes, round_up_u64((uint64_t)shapes[i / 2][1 - i % 2] * 8, 64)));
    }
}
