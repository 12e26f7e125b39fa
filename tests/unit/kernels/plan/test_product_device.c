/* Matrix products planned for a device: what a turn stages fits a slot, blocks are such as fill the
 * device, and floats need its library. */
#include "kernels/cuda/tile.h"
#include "kernels/plan/plan_engine.h"
#include "tests/unit/kernels/plan/product_run.h"

#define SLOT_BYTES (2 * MIB)

static struct plan_limits device_limits(uint64_t carry_bytes)
{
    struct plan_limits limits = limits_of(carry_bytes);

    limits.pool_bytes = 8 * carry_bytes;
    limits.slot_bytes = SLOT_BYTES;
    limits.engine = &plan_cuda;
    limits.has_blas = true;
    return limits;
}

static void check_turns(const struct run *run)
{
    const struct plan *plan = &run->plan;

    for (uint64_t i = 0; i < plan->products[0].n_turns; i++) {
        struct product_turn turn;
        product_turn(&plan->products[0], i, &turn);
        bool is_staged = turn.step == PRODUCT_LOAD || turn.step == PRODUCT_STORE;
        if (turn.is_empty || !is_staged)
            continue;
        cr_assert(le(u64, turn.n_grains, CUDA_TILE_MAX_GRAINS));
        cr_assert(le(u64,
                     cuda_tile_need_bytes(&run->job->program, turn.pass, turn.n_grains,
                                          &plan->passes[turn.pass].room),
                     SLOT_BYTES));
    }
}

static void check_device(const struct shape *s, bool has_journal)
{
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    const struct plan_limits limits = device_limits(48 * MIB);

    job_init(job, s);
    job->request.has_journal = has_journal;
    run_init(run, job, &limits);
    check_turns(run);
    cr_assert(lt(u64, s->rows > 1024, run->plan.products[0].n_tiles), "a block has no more rows");
    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++)
        cr_assert(eq(int, run->plan.passes[i].needs_slot, true));
    cr_assert(
        eq(int, run->plan.products[0].is_direct[0] || run->plan.products[0].is_direct[1], false));
    do_all(run);
    check_result(run, s);
    cr_assert(eq(u64, run->moved[0] + run->moved[1], run->plan.read_bytes));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}

Test(product_device, is_carried_out_by_turns_that_fit_slots)
{
    const struct shape shapes[] = {
        {.rows = 700, .columns = 600, .depth = 90},
        {.rows = 1100, .columns = 1050, .depth = 20},
        {.rows = 1100, .columns = 1050, .depth = 20, .is_result_fortran = true},
        {.rows = 1060, .columns = 1060, .depth = 20, .is_symmetric = true},
        {.rows = 90, .columns = 70, .depth = 30, .n_batch = 1, .batch = {40}, .left_has = 1},
        {.rows = 0, .columns = 900, .depth = 3000},
        {.rows = 3000, .columns = 0, .depth = 900, .is_fortran = {true}}};

    for (unsigned i = 0; i < ARRAY_LENGTH(shapes); i++) {
        check_device(&shapes[i], false);
        check_device(&shapes[i], true);
    }
}

static int plan_of(const struct shape *s, const struct plan_limits *limits, struct plan *ret_plan,
                   struct gad_error *error)
{
    struct job *job = malloc(sizeof(*job));

    job_init(job, s);
    int r = plan_make(&job->request, &job->program, false, limits, ret_plan, error);
    job_deinit(job);
    free(job);
    return r;
}

Test(product_device, multiplies_floats_with_its_library_alone)
{
    struct shape s = {.rows = 300, .columns = 200, .depth = 100, .is_float = true};
    struct plan_limits limits = device_limits(16 * MIB);
    struct plan *plan = malloc(sizeof(*plan));
    struct gad_error error;

    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0));
    limits.has_blas = false;
    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), GAD_NO_ENGINE));
    cr_assert(eq(int, strcmp(error.argument, "engine"), 0));
    s.is_float = false;
    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0));
    free(plan);
}

Test(product_device, rounds_to_tf32_where_that_is_allowed_and_there)
{
    const struct shape s = {.rows = 30, .columns = 20, .depth = 10, .is_float = true};
    struct job *job = malloc(sizeof(*job));
    struct plan *plan = malloc(sizeof(*plan));
    struct gad_error error;

    for (unsigned i = 0; i < 8; i++) {
        struct plan_limits limits = device_limits(16 * MIB);
        limits.has_tf32 = i & 1;
        job_init(job, &s);
        job->request.tf32 = i & 2;
        job->product.dtype = i & 4 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        int r = plan_make(&job->request, &job->program, false, &limits, plan, &error);
        cr_assert(eq(int, r, 0));
        cr_assert(eq(int, plan->products[0].is_tf32, i == 7));
        job_deinit(job);
    }
    free(plan);
    free(job);
}

/* Bits follow the blocks. */
Test(product_device, has_blocks_that_do_not_depend_on_the_pool)
{
    const struct shape s = {.rows = 9000, .columns = 5000, .depth = 40, .is_float = true};
    struct plan *plan = malloc(sizeof(*plan));
    struct gad_error error;
    int64_t sizes[3] = {0, 0, 0};
    uint64_t first = 0, n_tiles = 0;

    for (uint64_t carry = 400; carry >= 50; carry /= 2) {
        struct plan_limits limits = device_limits(carry * MIB);
        cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0), "%s", error.message);
        const struct plan_product *p = &plan->products[0];
        if (sizes[0] == 0) {
            sizes[0] = p->block_rows;
            sizes[1] = p->block_columns;
            sizes[2] = p->step_depth;
        }
        cr_assert(eq(i64, p->block_rows, sizes[0]));
        cr_assert(eq(i64, p->block_columns, sizes[1]));
        cr_assert(eq(i64, p->step_depth, sizes[2]));
        cr_assert(eq(i64, p->join_rows, sizes[0]));
        cr_assert(eq(i64, p->join_columns, sizes[1]));
        cr_assert(le(u64, n_tiles, p->n_tiles));
        n_tiles = p->n_tiles;
        first = first > 0 ? first : n_tiles;
    }
    cr_assert(lt(u64, first, n_tiles));
    cr_assert(le(i64, 1024, sizes[0])); /* enough for a device at a time */
    free(plan);
}

/* So do the places of blocks: a library may add in another order where lines are aligned otherwise.
 * The pools are those around the least one, of 12 MiB, too. */
Test(product_device, has_lines_that_are_aligned_for_every_pool)
{
    const struct shape s = {.rows = 2301, .columns = 1501, .depth = 333, .is_float = true};
    struct job *job = malloc(sizeof(*job));
    struct plan *plan = malloc(sizeof(*plan));
    struct gad_error error;
    unsigned n_planned = 0, n_refused = 0;

    job_init(job, &s); /* once: its values are millions */
    for (uint64_t carry = 4 * MIB; carry <= 20 * MIB;
         carry += 1024 * (carry >= 11 * MIB && carry < 13 * MIB ? 64 : 512)) {
        struct plan_limits limits = device_limits(carry);
        if (plan_make(&job->request, &job->program, false, &limits, plan, &error) != 0) {
            cr_assert(eq(u32, n_planned, 0));
            n_refused++;
            continue;
        }
        const struct plan_product *p = &plan->products[0];
        cr_assert(eq(i64, p->result_line_bytes % 64, 0));
        for (unsigned side = 0; side < 2; side++)
            cr_assert(eq(i64, p->panel_line_bytes[side] % 64, 0), "%llu bytes",
                      (unsigned long long)carry);
        n_planned++;
    }
    cr_assert(lt(u32, 0, n_refused));
    cr_assert(lt(u32, 0, n_planned));
    job_deinit(job);
    free(job);
    free(plan);
}
