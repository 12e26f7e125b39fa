/* Matrix products: the plan is carried out on integers, turn by turn, in the order in which turns
 * may begin and with random ends, on memory that is filled with rubbish first. C must be right, and
 * what was moved must be what the plan says. */
#include "tests/unit/kernels/plan/product_run.h"

static void random_shape(struct shape *s)
{
    static const int64_t extents[] = {1, 2, 7, 64, 100, 255, 257, 300};

    *s = (struct shape){.rows = extents[rand() % 8],
                        .columns = extents[rand() % 8],
                        .depth = extents[rand() % 8],
                        .n_batch = rand() % 4,
                        .left_has = (unsigned)rand() % 8,
                        .is_fortran = {rand() % 2, rand() % 2},
                        .is_result_fortran = rand() % 3 == 0};
    s->right_has = ~s->left_has | (unsigned)rand() % 8;
    for (int i = 0; i < s->n_batch; i++)
        s->batch[i] = 1 + rand() % 4;
    if (rand() % 5 == 0)
        s->rows = 0;
    if (rand() % 5 == 0)
        s->columns = 0;
    while (s->n_batch > 0 && s->rows * s->columns * s->depth > 100000)
        s->n_batch--;
}

Test(product, is_right_whatever_the_shape_and_the_order_of_ends)
{
    srand(7);
    for (int i = 0; i < 60; i++) {
        struct shape s;
        random_shape(&s);
        check_shape(&s, rand() % 2 ? 3 * MIB : 16 * MIB, rand() % 4 == 0);
    }
}

Test(product, goes_through_many_tiles_and_steps)
{
    const struct shape s = {.rows = 600, .columns = 530, .depth = 270};
    const struct shape fortran = {
        .rows = 600, .columns = 260, .depth = 270, .is_fortran = {true, true}};

    check_shape(&s, 3 * MIB, false);
    check_shape(&fortran, 3 * MIB, true);
}

static void check_joined(const struct shape *s, uint64_t carry_bytes)
{
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    const struct plan_limits limits = limits_of(carry_bytes);

    job_init(job, s);
    run_init(run, job, &limits);
    cr_assert(lt(i64, run->plan.products[0].block_columns, run->plan.products[0].join_columns));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
    check_shape(s, carry_bytes, false);
}

Test(product, of_floats_joins_whole_blocks_and_leaves_cut_ones_alone)
{
    const struct shape s = {.rows = 700, .columns = 1100, .depth = 190, .is_float = true};
    const struct shape symmetric = {
        .rows = 900, .columns = 900, .depth = 190, .is_float = true, .is_symmetric = true};

    check_joined(&s, 4 * MIB);
    check_joined(&symmetric, 16 * MIB);
}

Test(product, goes_on_where_a_journal_says)
{
    const struct shape s = {.rows = 400, .columns = 520, .depth = 260};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    struct plan_limits limits = limits_of(2 * MIB);

    for (uint64_t tile = 1; tile <= 2; tile++)
        for (int is_redone = 0; is_redone < 2; is_redone++)
            check_resumed(&s, 2 * MIB, tile, is_redone);
    job_init(job, &s);
    job->request.has_journal = true;
    run_init(run, job, &limits);
    cr_assert(lt(u64, 2, run->plan.products[0].n_tiles));
    product_resume(&run->plan.products[0], run->plan.products[0].n_tiles, false);
    cr_assert(eq(u64, run->plan.products[0].n_turns, 0));
    run_deinit(run);

    limits = limits_of(3 * MIB);
    limits.product_tile[0] = 1;
    limits.product_tile[1] = run->plan.products[0].block_rows;
    limits.product_tile[2] = run->plan.products[0].block_columns;
    run_init(run, job, &limits);
    cr_assert(eq(i64, run->plan.products[0].tile_rows, run->plan.products[0].block_rows));
    cr_assert(eq(i64, run->plan.products[0].tile_columns, run->plan.products[0].block_columns));
    cr_assert(eq(u64, run->plan.products[0].n_row_tiles * run->plan.products[0].n_column_tiles,
                 run->plan.products[0].n_tiles));
    cr_assert(lt(u64, 6, run->plan.products[0].n_tiles));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}

static int plan_of(const struct shape *s, const struct plan_limits *limits, struct plan *ret_plan,
                   struct gad_error *error)
{
    struct job *job = malloc(sizeof(*job));

    *error = (struct gad_error){.message = ""};
    job_init(job, &(struct shape){.rows = 1, .columns = 1, .depth = 1, .is_float = true});
    for (int i = 0; i < 3; i++) {
        const int64_t shape[2] = {i == 1 ? s->depth : s->rows, i == 0 ? s->depth : s->columns};
        free(job->sides[i].values);
        set_array(&job->sides[i].array, 2, shape, false);
        memcpy(job->program.passes[i].shape, shape, sizeof(shape));
        memcpy(job->outputs[i < 2 ? i + 1 : 0].shape, shape, sizeof(shape));
        if (i == 2)
            break;
        memcpy(job->inputs[i].shape, shape, sizeof(shape));
        job->args[i].array = job->sides[i].array;
    }
    job->output.to = job->sides[2].array;
    job->product.n_rows = s->rows;
    job->product.n_columns = s->columns;
    job->product.depth = s->depth;
    int r = plan_make(&job->request, &job->program, false, limits, ret_plan, error);
    free(job);
    return r;
}

Test(product, moves_at_most_a_third_more_than_the_least_for_the_pool)
{
    static const uint64_t pools[] = {64, 128, 256, 1024};
    static const int64_t extents[] = {8192, 10000, 20000};
    struct plan *plan = malloc(sizeof(*plan));

    for (int i = 0; i < 12; i++) {
        const struct shape s = {
            .rows = extents[i % 3], .columns = extents[i % 3], .depth = extents[i % 3]};
        double pool = (double)(pools[i / 3] * MIB), n = (double)extents[i % 3];
        struct plan_limits limits = limits_of((uint64_t)(pool / 16 * 13)); /* of the carry */
        struct gad_error error;
        limits.pool_bytes = (uint64_t)pool;
        cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0), "%s", error.message);
        double least = 8 * (2 * n * n * n / sqrt(pool / 8) + 3 * n * n);
        double moved = (double)(plan->read_bytes + plan->write_bytes);
        cr_assert(le(dbl, moved, 1.3 * least));
        cr_assert(eq(int, plan->bound == PLAN_BOUND_WORK, true));
    }
    free(plan);
}

Test(product, that_does_not_fit_says_what_would_do)
{
    const struct shape s = {.rows = 3000, .columns = 3000, .depth = 3000};
    struct plan *plan = malloc(sizeof(*plan));
    struct plan_limits limits = limits_of(3 * MIB);
    struct gad_error error;

    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0)); /* a pool of 8 MiB */
    limits.carry_limit_bytes = MIB / 4;
    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), GAD_TOO_LARGE_FOR_POOL));
    cr_assert(eq(int, strcmp(error.argument, "pool"), 0));
    limits.carry_limit_bytes = strtoull(error.expected, NULL, 10);
    cr_assert(lt(u64, MIB / 4, limits.carry_limit_bytes));
    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), 0), "%s", error.message);
    limits.carry_limit_bytes--;
    cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), GAD_TOO_LARGE_FOR_POOL));
    free(plan);
}

Test(product, of_a_journal_with_tiles_that_are_none_is_refused)
{
    static const int64_t tiles[][3] = {{1, 0, 0},     {0, 256, 256},  {1, -256, 256},
                                       {1, 250, 256}, {1, 6400, 256}, {2, 256, 256}};
    const struct shape s = {.rows = 600, .columns = 700, .depth = 300};
    struct plan *plan = malloc(sizeof(*plan));
    struct plan_limits limits = limits_of(16 * MIB);
    struct gad_error error;

    for (int i = 0; i < 6; i++) {
        memcpy(limits.product_tile, tiles[i], sizeof(tiles[i]));
        cr_assert(eq(i32, plan_of(&s, &limits, plan, &error), GAD_BAD_JOURNAL));
    }
    free(plan);
}

Test(product, of_an_array_with_itself_is_computed_once)
{
    static const int64_t extents[] = {1, 40, 300, 521};

    for (int i = 0; i < 4; i++) {
        const struct shape s = {.rows = extents[i],
                                .columns = extents[i],
                                .depth = i < 3 ? 300 : 260,
                                .is_fortran = {false, true},
                                .is_symmetric = true};
        check_shape(&s, 3 * MIB, i % 2);
        check_shape(&s, 64 * MIB, false);
    }
}

Test(product, of_depth_0_is_zeros_and_an_empty_one_has_no_turns)
{
    const struct shape nothing = {.rows = 30, .columns = 20, .depth = 0};
    const struct shape empty = {.rows = 30, .columns = 20, .depth = 5, .n_batch = 1, .batch = {0}};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    const struct plan_limits limits = limits_of(3 * MIB);

    check_shape(&nothing, 3 * MIB, false);
    job_init(job, &empty);
    run_init(run, job, &limits);
    cr_assert(eq(u64, run->plan.products[0].n_turns, 0));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}
