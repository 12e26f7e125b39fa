/* Plans: bytes moved, tiles, what is needed of the pool, refusals with their numbers. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/reductions/reduce.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define MIB (1024 * 1024)

static const struct plan_limits default_limits = {.engine = &plan_cpu,
                                                  .pool_bytes = 32 * MIB,
                                                  .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                                  .carry_limit_bytes = 16 * MIB,
                                                  .n_threads = 2};

/* A job of one pass, "a+b": sources of the output's shape unless a test changes them. */
struct job {
    struct request_arg args[2];
    struct request_output outputs[1];
    struct insn insns[PROGRAM_MAX_INSNS]; /* additions of one byte: of the least weight */
    struct program_input inputs[2];
    struct program_output program_outputs[1];
    struct job_request request;
    struct program program;
};

static void set_array(struct array *array, enum dtype dtype, int ndim, const int64_t *shape,
                      enum location_kind kind)
{
    *array = (struct array){.dtype = dtype, .ndim = ndim, .at.kind = kind};
    memcpy(array->shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, (int64_t)dtype_size(dtype), array->strides);
}

static void set_input(struct job *job, unsigned i, enum dtype dtype, int ndim, const int64_t *shape,
                      enum location_kind kind)
{
    set_array(&job->args[i].array, dtype, ndim, shape, kind);
    job->inputs[i] = (struct program_input){.arg = (uint16_t)i, .dtype = dtype, .ndim = ndim};
    memcpy(job->inputs[i].shape, shape, (size_t)ndim * sizeof(*shape));
    job->program.passes[0].inputs_used |= UINT64_C(1) << i;
    if (job->program.n_inputs <= i)
        job->request.n_args = job->program.n_inputs = (uint16_t)(i + 1);
}

static void job_init(struct job *job, enum dtype dtype, int ndim, const int64_t *shape,
                     enum location_kind kind)
{
    *job = (struct job){.request.n_outputs = 1};
    job->request.args = job->args;
    job->request.outputs = job->outputs;
    job->program = (struct program){.n_passes = 1,
                                    .n_stores = 1,
                                    .n_outputs = 1,
                                    .insns = job->insns,
                                    .inputs = job->inputs,
                                    .outputs = job->program_outputs};
    program_list_stages(&job->program);
    struct pass *pass = &job->program.passes[0];
    *pass = (struct pass){.ndim = ndim, .n_insns = 1, .n_stores = 1, .scanned_axis = -1};
    memcpy(pass->shape, shape, (size_t)ndim * sizeof(*shape));
    job->outputs[0].has_to = kind != LOCATION_NONE;
    set_array(&job->outputs[0].to, dtype, ndim, shape, kind);
    job->program_outputs[0] = (struct program_output){.dtype = dtype, .ndim = ndim};
    memcpy(job->program_outputs[0].shape, shape, (size_t)ndim * sizeof(*shape));
    set_input(job, 0, dtype, ndim, shape, kind == LOCATION_NONE ? LOCATION_INLINE : kind);
}

/* The same source summed: no output but a second pass of shape () that stores the result. */
static void make_sum(struct job *job, unsigned n_reductions)
{
    job->program.n_passes = 2;
    program_list_stages(&job->program);
    job->program.n_reductions = (uint16_t)n_reductions;
    job->program.passes[0].n_reductions = (uint16_t)n_reductions;
    job->program.passes[0].reduced_axes = (UINT32_C(1) << job->program.passes[0].ndim) - 1;
    job->program.passes[0].n_stores = 0;
    for (unsigned i = 0; i < n_reductions; i++)
        job->program.reductions[i] =
            (struct reduction){.op = OP_SUM, .result = DTYPE_FLOAT64, .src.dtype = DTYPE_FLOAT64};
    job->program.passes[1] = (struct pass){.n_stores = 1, .scanned_axis = -1};
    job->program_outputs[0].ndim = 0;
    job->program_outputs[0].pass = 1;
    job->outputs[0].has_to = false;
}

/* Of the source's columns, stored by the second pass. */
static void make_column_sums(struct job *job)
{
    int64_t n_columns = job->program.passes[0].shape[1];

    make_sum(job, 1);
    job->program.passes[0].n_insns = 0;
    job->program.passes[0].reduced_axes = 1;
    job->program.reductions[0].src.dtype = DTYPE_FLOAT32;
    job->program.passes[1].ndim = job->program_outputs[0].ndim = 1;
    job->program.passes[1].shape[0] = job->program_outputs[0].shape[0] = n_columns;
}

static int make_with(const struct job *job, const struct plan_limits *limits, struct plan *ret_plan,
                     struct gad_error *error)
{
    return plan_make(&job->request, &job->program, false, limits, ret_plan, error);
}

static void make(const struct job *job, struct plan *ret_plan)
{
    struct gad_error error = {.status = GAD_OK};

    cr_assert(eq(int, make_with(job, &default_limits, ret_plan, &error), 0), "%s", error.message);
}

Test(plan, a_file_is_read_and_written_once_in_tiles_of_some_mib)
{
    const int64_t shape[] = {64 * MIB};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 1, shape, LOCATION_FILE);
    make(&job, &plan);
    cr_assert(eq(u64, plan.read_bytes, 256 * MIB));
    cr_assert(eq(u64, plan.write_bytes, 256 * MIB));
    cr_assert(eq(u64, plan.passes[0].geometry.n_grains, 1024));
    cr_assert(eq(uint, plan.passes[0].tile_log2, 2));
    cr_assert(eq(u64, plan.n_tiles, 256));
    cr_assert(plan.passes[0].needs_slot);
    cr_assert(eq(u64, plan.carry_bytes, 0));
    cr_assert(not(plan.is_small));
    cr_assert(plan.is_restartable);
    cr_assert(lt(dbl, 0.1, plan.seconds));
}

Test(plan, tiles_shrink_until_every_thread_has_some)
{
    const int64_t shape[] = {2 * MIB};
    struct plan_limits limits = default_limits;
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 1, shape, LOCATION_FILE);
    for (limits.n_threads = 0; limits.n_threads <= 64; limits.n_threads++) {
        cr_assert(eq(int, make_with(&job, &limits, &plan, &error), 0));
        uint64_t n_wanted = 4 * (limits.n_threads > 0 ? limits.n_threads : 1);
        cr_assert(plan.n_tiles >= n_wanted || plan.passes[0].tile_log2 == 0);
    }
}

Test(plan, tiles_cover_the_grains_exactly)
{
    struct plan_pass pass = {.tile_log2 = 3,
                             .n_tiles = 13,
                             .round_tiles = 13,
                             .geometry = {.n_grains = 101,
                                          .chain_grains = 1,
                                          .n_rounds = 1,
                                          .round_grains = 101,
                                          .round_axis = -1}};
    uint64_t next = 0, first, n;

    for (uint64_t tile = 0; tile < pass.n_tiles; tile++) {
        plan_tile_grains(&pass, tile, &first, &n);
        cr_assert(eq(u64, first, next));
        cr_assert(le(u64, n, 8));
        next += n;
    }
    cr_assert(eq(u64, next, 101));
}

/* Bits follow from it: so it depends neither on the pool nor on threads, and a tile has whole ones.
 */
static void check_leaves(const struct job *job, unsigned n_leaf_grains, unsigned which)
{
    static const struct plan_limits small = {.engine = &plan_cpu,
                                             .pool_bytes = 4 * MIB,
                                             .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                             .carry_limit_bytes = 3 * MIB / 2};
    struct plan plan;
    struct gad_error error;

    for (unsigned n_threads = 1; n_threads <= 64; n_threads *= 4) {
        for (int is_small = 0; is_small < 2; is_small++) {
            struct plan_limits limits = is_small ? small : default_limits;
            limits.n_threads = n_threads;
            cr_assert(zero(int, make_with(job, &limits, &plan, &error)), "%s", error.message);
            const struct plan_pass *pass = &plan.passes[0];
            cr_assert(eq(uint, 1U << pass->leaf_log2, n_leaf_grains), "case %u", which);
            cr_assert(ge(uint, pass->tile_log2, pass->leaf_log2), "case %u", which);
        }
    }
}

Test(plan, large_sums_of_columns_put_some_grains_into_one_node)
{
    static const struct {
        int64_t shape[2];
        unsigned n_insns, n_leaf_grains;
        enum op op;
    } cases[] = {
        {{4096, 131072}, 0, 8, OP_SUM},
        {{4096, 4097}, 6, 4, OP_MAX},
        {{4096, 4095}, 0, 1, OP_SUM},   /* there would be few tiles */
        {{4096, 131072}, 7, 1, OP_SUM}, /* they would take long */
        {{4096, 131072}, 0, 1, OP_SQUARED_DEVIATIONS},
        {{1 << 25, 1}, 0, 1, OP_SUM},  /* a grain is one row */
        {{1 << 20, 17}, 0, 1, OP_SUM}, /* has more rows than a leaf may */
    };
    struct job job;

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job_init(&job, DTYPE_FLOAT32, 2, cases[i].shape, LOCATION_FILE);
        make_column_sums(&job);
        job.program.passes[0].n_insns = (uint16_t)cases[i].n_insns;
        job.program.reductions[0].op = (uint16_t)cases[i].op;
        check_leaves(&job, cases[i].n_leaf_grains, i);
    }
}

Test(plan, heavy_arithmetic_makes_smaller_tiles)
{
    const int64_t shape[] = {64 * MIB};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_INT8, 1, shape, LOCATION_REGION);
    job.program.passes[0].n_insns = 500;
    make(&job, &plan);
    cr_assert(eq(uint, plan.passes[0].tile_log2, 0));
}

Test(plan, a_broadcast_file_is_counted_once_a_grain_and_a_small_region_once)
{
    const int64_t shape[] = {4096, 8192}, row[] = {8192};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 2, shape, LOCATION_FILE);
    set_input(&job, 1, DTYPE_FLOAT32, 1, row, LOCATION_FILE);
    make(&job, &plan);
    uint64_t n_grains = plan.passes[0].geometry.n_grains;
    cr_assert(lt(u64, 100, n_grains));
    cr_assert(eq(u64, plan.read_bytes, 128 * MIB + n_grains * 32768));
    set_input(&job, 1, DTYPE_FLOAT32, 1, row, LOCATION_REGION);
    make(&job, &plan);
    cr_assert(eq(u64, plan.read_bytes, 128 * MIB + 32768));
}

Test(plan, bytes_are_the_sum_over_the_grains_boxes)
{
    const int64_t shape[] = {37, 1000, 129}, partly[] = {1, 1000, 1};
    int64_t start[3], count[3], own_start[3], own_count[3];
    uint64_t sum = 0;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 3, shape, LOCATION_FILE);
    set_input(&job, 1, DTYPE_INT16, 3, partly, LOCATION_PROVIDER);
    make(&job, &plan);
    const struct geometry *g = &plan.passes[0].geometry;
    for (uint64_t grain = 0; grain < g->n_grains; grain++) {
        geometry_grain(g, grain, start, count);
        geometry_operand_box(3, start, count, 3, partly, own_start, own_count);
        sum += (uint64_t)(count[0] * count[1] * count[2]) * 8;
        sum += (uint64_t)(own_count[0] * own_count[1] * own_count[2]) * 2;
    }
    cr_assert(eq(u64, plan.read_bytes, sum));
}

Test(plan, a_thousand_inline_numbers_are_small)
{
    const int64_t shape[] = {1000};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 1, shape, LOCATION_NONE);
    make(&job, &plan);
    cr_assert(plan.is_small);
    cr_assert(not(plan.passes[0].needs_slot));
    cr_assert(eq(u64, plan.n_tiles, 1));
    set_input(&job, 0, DTYPE_FLOAT64, 1, shape, LOCATION_PROVIDER);
    make(&job, &plan);
    cr_assert(not(plan.is_small));
    cr_assert(not(plan.passes[0].needs_slot));
    set_input(&job, 0, DTYPE_FLOAT64, 1, shape, LOCATION_INLINE);
    job.program.passes[0].n_insns = 300;
    make(&job, &plan);
    cr_assert(plan.is_small);
    job.program.passes[0].n_insns = 1023; /* others would wait for that */
    make(&job, &plan);
    cr_assert(not(plan.is_small));
}

Test(plan, much_arithmetic_on_few_bytes_is_not_small)
{
    const int64_t shape[] = {500, 1}, row[] = {500}, both[] = {500, 500};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 2, shape, LOCATION_REGION);
    set_input(&job, 1, DTYPE_FLOAT64, 1, row, LOCATION_REGION);
    memcpy(job.program.passes[0].shape, both, sizeof(both));
    job.program.passes[0].n_insns = 30;
    make_sum(&job, 1);
    make(&job, &plan);
    cr_assert(eq(u64, plan.n_tiles, 2));
    cr_assert(not(plan.is_small));
}

Test(plan, an_empty_array_needs_nothing)
{
    const int64_t shape[] = {INT64_C(1) << 40, 0, 1000};
    struct plan_limits limits = {.engine = &plan_cpu, .pool_bytes = 0};
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 3, shape, LOCATION_FILE);
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), 0));
    cr_assert(eq(u64, plan.n_tiles, 0));
    cr_assert(eq(u64, plan.read_bytes + plan.write_bytes, 0));
}

Test(plan, a_staged_job_is_refused_by_a_pool_without_a_slot)
{
    const int64_t shape[] = {10};
    struct plan_limits limits = default_limits;
    struct plan plan;
    struct gad_error error;
    struct job job;

    limits.pool_bytes = 65536;
    job_init(&job, DTYPE_FLOAT64, 1, shape, LOCATION_FILE);
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(int, error.status, GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.argument, (char *)"pool"));
    cr_assert(eq(str, error.expected, (char *)"524288 bytes"));
    cr_assert(eq(str, error.found, (char *)"65536 bytes"));
    cr_assert(strstr(error.message, "524288") && strstr(error.message, "65536"));
    job_init(&job, DTYPE_FLOAT64, 1, shape, LOCATION_REGION);
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), 0));
}

Test(plan, carries_hold_the_largest_tree_and_the_results)
{
    const int64_t shape[] = {64 * MIB};
    struct plan_limits limits = default_limits;
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 1, shape, LOCATION_REGION);
    make_sum(&job, 5);
    make(&job, &plan);
    const struct plan_pass *pass = &plan.passes[0];
    cr_assert(pass->has_tree);
    cr_assert(eq(u64, plan.tree_offset_bytes, 0));
    cr_assert(ge(u64, plan.results[0].offset_bytes, reduce_tree_size_bytes(&pass->tree)));
    for (unsigned i = 0; i < 5; i++) {
        cr_assert(eq(u64, plan.results[i].offset_bytes % 64, 0));
        cr_assert(eq(int, plan.results[i].round_axis, -1));
    }
    cr_assert(eq(u64, plan.carry_bytes, plan.results[4].offset_bytes + 64));
    cr_assert(eq(u64, plan.write_bytes, 4));
    limits.carry_limit_bytes = plan.carry_bytes - 1; /* then with fewer tiles at a time */
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), 0));
    cr_assert(le(u64, plan.carry_bytes, limits.carry_limit_bytes));
    limits.carry_limit_bytes = 1024;
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.argument, (char *)"pool"));
    cr_assert(eq(str, error.found, (char *)"1024 bytes"));
}

Test(plan, a_slot_and_a_carry_need_a_pool_of_two_slots)
{
    const int64_t shape[] = {MIB};
    struct plan_limits limits = default_limits;
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 1, shape, LOCATION_FILE);
    make_sum(&job, 1);
    limits.pool_bytes = 2 * limits.slot_bytes;
    limits.carry_limit_bytes = limits.pool_bytes / 2;
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), 0));
    limits.pool_bytes--;
    cr_assert(eq(int, make_with(&job, &limits, &plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(str, error.argument, (char *)"pool"));
    cr_assert(eq(str, error.expected, (char *)"1048576 bytes"));
    cr_assert(eq(str, error.found, (char *)"1048575 bytes"));
}

Test(plan, a_space_beyond_63_bits_is_a_bad_shape)
{
    const int64_t shape[] = {INT64_C(1) << 32, 1}, row[] = {INT64_C(1) << 32};
    const int64_t both[] = {INT64_C(1) << 32, INT64_C(1) << 32};
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_INT8, 2, shape, LOCATION_FILE);
    set_input(&job, 1, DTYPE_INT8, 1, row, LOCATION_FILE);
    memcpy(job.program.passes[0].shape, both, sizeof(both));
    make_sum(&job, 1);
    cr_assert(eq(int, make_with(&job, &default_limits, &plan, &error), GAD_BAD_SHAPE));
    cr_assert(strstr(error.message, "4294967296") != NULL);
}

Test(plan, more_bytes_than_63_bits_are_a_limit)
{
    const int64_t shape[] = {INT64_C(1) << 31, 1}, row[] = {INT64_C(1) << 31};
    const int64_t both[] = {INT64_C(1) << 31, INT64_C(1) << 31};
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 2, shape, LOCATION_NONE);
    set_input(&job, 1, DTYPE_FLOAT64, 1, row, LOCATION_FILE);
    memcpy(job.program.passes[0].shape, both, sizeof(both));
    memcpy(job.program_outputs[0].shape, both, sizeof(both));
    cr_assert(eq(int, make_with(&job, &default_limits, &plan, &error), GAD_LIMIT_EXCEEDED));
}

Test(plan, fortran_order_is_proposed_when_all_sources_have_it)
{
    const int64_t shape[] = {30, 20}, column[] = {30, 1};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 2, shape, LOCATION_NONE);
    make(&job, &plan);
    cr_assert(not(plan.is_fortran_order));
    job.args[0].array.strides[0] = 8;
    job.args[0].array.strides[1] = 240;
    make(&job, &plan);
    cr_assert(plan.is_fortran_order);
    set_input(&job, 1, DTYPE_FLOAT64, 2, column, LOCATION_INLINE); /* both orders: no say */
    make(&job, &plan);
    cr_assert(plan.is_fortran_order);
    set_input(&job, 1, DTYPE_FLOAT64, 2, shape, LOCATION_INLINE);
    make(&job, &plan);
    cr_assert(not(plan.is_fortran_order));
}

Test(plan, in_place_is_not_restartable)
{
    const int64_t shape[] = {10};
    struct gad_error error;
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT64, 1, shape, LOCATION_FILE);
    cr_assert(
        eq(int, plan_make(&job.request, &job.program, true, &default_limits, &plan, &error), 0));
    cr_assert(not(plan.is_restartable));
}

Test(plan, pool_and_threads_never_change_the_grains)
{
    const int64_t shape[] = {5000, 777};
    struct plan_limits limits = default_limits;
    struct gad_error error;
    struct job job;
    struct plan plan, other;

    job_init(&job, DTYPE_FLOAT64, 2, shape, LOCATION_FILE);
    make(&job, &plan);
    limits.pool_bytes = 2 * MIB;
    limits.n_threads = 96;
    cr_assert(eq(int, make_with(&job, &limits, &other, &error), 0));
    cr_assert(eq(
        int, memcmp(&plan.passes[0].geometry, &other.passes[0].geometry, sizeof(struct geometry)),
        0));
}

Test(plan, chunks_of_a_file_shape_the_grains)
{
    const int64_t shape[] = {132, 73, 144};
    struct job job;
    struct plan plan;

    job_init(&job, DTYPE_FLOAT32, 3, shape, LOCATION_FILE);
    job.args[0].array.at.file.is_grid = true;
    job.args[0].array.at.file.chunk_shape[0] = 5;
    job.args[0].array.at.file.chunk_shape[1] = 73;
    job.args[0].array.at.file.chunk_shape[2] = 144;
    make(&job, &plan);
    cr_assert(eq(i64, plan.passes[0].geometry.grain_shape[0], 5));
}
