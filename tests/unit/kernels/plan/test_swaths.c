/* Files that are transposed: when a pass has blocks of its source in the carry, and how many. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* float32, n by n, of one file into another; the source's first axis is its fastest. */
static int plan_with_memory(int64_t n, unsigned n_threads, uint64_t carry_limit_bytes,
                            uint64_t memory_bytes, struct plan *ret_plan)
{
    struct request_arg arg = {.name = "a"};
    struct request_output output = {.expr = "a", .n_expr_chars = 1, .has_to = true};
    const struct array file = {
        .dtype = DTYPE_FLOAT32, .ndim = 2, .shape = {n, n}, .at.kind = LOCATION_FILE};
    const struct job_request request = {
        .n_args = 1, .args = &arg, .n_outputs = 1, .outputs = &output, .engine_index = -1};
    const struct plan_limits limits = {.engine = &plan_cpu,
                                       .pool_bytes = 4 * carry_limit_bytes,
                                       .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                       .carry_limit_bytes = carry_limit_bytes,
                                       .memory_bytes = memory_bytes,
                                       .n_threads = n_threads};
    struct gad_error error;
    struct program *program;

    arg.array = output.to = file;
    array_c_strides(2, file.shape, 4, output.to.strides);
    arg.array.strides[0] = output.to.strides[1];
    arg.array.strides[1] = output.to.strides[0];
    cr_assert(eq(int, program_compile(&request, &program, &error), 0), "%s", error.message);
    int r = plan_make(&request, program, false, &limits, ret_plan, &error);
    program_free(program);
    return r;
}

static int plan_transpose(int64_t n, unsigned n_threads, uint64_t carry_limit_bytes,
                          struct plan *ret_plan)
{
    return plan_with_memory(n, n_threads, carry_limit_bytes, 0, ret_plan);
}

Test(swaths, each_thread_has_a_block_within_what_the_carry_has_room_for)
{
    struct plan plan;

    cr_assert(eq(int, plan_transpose(8192, 2, 24 * MIB, &plan), 0));
    const struct plan_pass *pass = &plan.passes[0];
    cr_assert(pass->has_swaths && !pass->swaths_are_mapped);
    cr_assert(eq(uint, pass->tree.window, 2));
    cr_assert(eq(u64, plan.carry_bytes, 2 * pass->node_bytes));
    cr_assert(le(u64, plan.carry_bytes, 24 * MIB));
}

Test(swaths, there_are_no_more_blocks_than_a_job_can_count)
{
    struct plan plan;

    cr_assert(eq(int, plan_transpose(16384, 1000, 8192 * MIB, &plan), 0));
    cr_assert(plan.passes[0].has_swaths);
    cr_assert(eq(uint, plan.passes[0].tree.window, PLAN_MAX_WINDOW));
    cr_assert(le(u64, plan.carry_bytes, 8192 * MIB));
}

Test(swaths, where_blocks_have_no_room_there_are_none)
{
    struct plan plan;

    cr_assert(eq(int, plan_transpose(8192, 2, MIB, &plan), 0));
    cr_assert(not(plan.passes[0].has_swaths));
    cr_assert(eq(u64, plan.carry_bytes, 0));
}

Test(swaths, what_memory_can_keep_is_mapped_and_tiles_are_whole_rows)
{
    struct plan plan;
    const int64_t n = 8192;
    const uint64_t source_bytes = (uint64_t)n * (uint64_t)n * 4;

    cr_assert(eq(int, plan_with_memory(n, 2, 24 * MIB, 4 * source_bytes, &plan), 0));
    const struct plan_pass *pass = &plan.passes[0];
    cr_assert(pass->has_swaths && pass->swaths_are_mapped);
    cr_assert(eq(uint, pass->tree.window, 4));
    cr_assert(eq(u64, plan.carry_bytes, 4 * pass->node_bytes));
    for (uint64_t tile = 0; tile < pass->n_tiles; tile++) {
        uint64_t first, n_grains, n_elements = 0;
        int64_t start[2], count[2];
        plan_tile_grains(pass, tile, &first, &n_grains);
        for (uint64_t i = 0; i < n_grains; i++) {
            geometry_grain(&pass->geometry, first + i, start, count);
            n_elements += (uint64_t)(count[0] * count[1]);
        }
        cr_assert(eq(u64, n_elements * 4, pass->node_bytes));
        cr_assert(eq(u64, n_elements, (uint64_t)(count[0] * n)));
    }
}

Test(swaths, what_memory_cannot_keep_is_read)
{
    struct plan plan;
    const uint64_t source_bytes = UINT64_C(8192) * 8192 * 4;

    cr_assert(eq(int, plan_with_memory(8192, 2, 24 * MIB, 4 * source_bytes - 4, &plan), 0));
    cr_assert(plan.passes[0].has_swaths && !plan.passes[0].swaths_are_mapped);
}

Test(swaths, where_mapped_blocks_have_no_room_there_are_none)
{
    struct plan plan;

    cr_assert(eq(int, plan_with_memory(8192, 2, MIB / 2, 1024 * MIB, &plan), 0));
    cr_assert(not(plan.passes[0].has_swaths));
}
