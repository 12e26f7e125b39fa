/* Batches of matrix products: which matrices a tile has, whatever the lengths of the batch's axes
 * and along which of them an operand is broadcast. */
#include "tests/unit/kernels/plan/product_run.h"

static void init(const struct shape *s, uint64_t carry_bytes, struct job *job, struct run *run)
{
    const struct plan_limits limits = limits_of(carry_bytes);

    job_init(job, s);
    run_init(run, job, &limits);
}

/* What one multiplication of several matrices takes for granted, for all turns. */
static void check_runs(const struct run *run)
{
    const struct plan *plan = &run->plan;
    struct product_turn turn;

    for (uint64_t i = 0; i < plan->products[0].n_turns; i++) {
        product_turn(&plan->products[0], i, &turn);
        for (int64_t m = 0, n; turn.step == PRODUCT_MULTIPLY && m < turn.n_matrices; m += n) {
            struct product_matrix sides[3][3];
            n = product_run(&plan->products[0], &turn, m);
            cr_assert(lt(i64, 0, n));
            cr_assert(le(i64, m + n, turn.n_matrices));
            for (int64_t k = 0; k < n; k++)
                for (int side = 0; side < 3; side++) {
                    struct product_matrix *now = &sides[k < 2 ? k : 2][0];
                    product_block(&plan->products[0], &turn, m + k, run->carry, &now[0], &now[1],
                                  &now[2]);
                    int64_t step = sides[1][side].base - sides[0][side].base;
                    cr_assert(eq(i64, now[side].base - sides[0][side].base, k == 0 ? 0 : k * step));
                }
        }
    }
}

static void check_batch(const struct shape *s, uint64_t carry_bytes, uint64_t most_tiles)
{
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));

    init(s, carry_bytes, job, run);
    cr_assert(le(u64, run->plan.products[0].n_tiles, most_tiles));
    cr_assert(eq(i64, run->plan.products[0].tile_matrices % run->plan.products[0].n_inner, 0));
    check_runs(run);
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
    check_shape(s, carry_bytes, false);
    check_shape(s, carry_bytes, true);
}

Test(product_batch, of_short_last_axes_has_few_tiles_however_it_is_broadcast)
{
    static const int64_t batches[][3] = {{400, 3, 1}, {150, 2, 2}, {7, 60, 1}, {300, 1, 1}};

    for (unsigned i = 0; i < 4 * 8 * 2; i++) {
        unsigned left = i / 4 % 8, right = i / 32 ? 7 : ~left & 7;
        struct shape s = {.rows = 6,
                          .columns = 5,
                          .depth = 4,
                          .n_batch = 3,
                          .left_has = left,
                          .right_has = right,
                          .is_fortran = {i % 2, false}};
        memcpy(s.batch, batches[i % 4], sizeof(s.batch));
        check_batch(&s, MIB, 10);
    }
}

Test(product_batch, of_vectors_and_matrices_is_right_in_parts_of_the_cut_axis)
{
    static const struct shape shapes[] = {
        {.rows = 0, .columns = 40, .depth = 40, .n_batch = 2, .batch = {50, 3}, .right_has = 3},
        {.rows = 40, .columns = 0, .depth = 50, .n_batch = 2, .batch = {50, 4}, .left_has = 3},
        {.rows = 90,
         .columns = 80,
         .depth = 70,
         .n_batch = 2,
         .batch = {9, 2},
         .left_has = 1,
         .right_has = 2},
        {.rows = 40,
         .columns = 30,
         .depth = 50,
         .n_batch = 3,
         .batch = {5, 9, 2},
         .left_has = 5,
         .right_has = 3,
         .is_result_fortran = true},
    };

    for (int i = 0; i < 4; i++)
        check_batch(&shapes[i], MIB, 1000);
}

Test(product_batch, of_large_matrices_takes_none_of_the_other_axes)
{
    const struct shape s = {.rows = 300,
                            .columns = 200,
                            .depth = 100,
                            .n_batch = 2,
                            .batch = {2, 2},
                            .left_has = 3,
                            .right_has = 1};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));

    init(&s, 3 * MIB, job, run);
    cr_assert(eq(i64, run->plan.products[0].n_inner, 1));
    cr_assert(eq(i64, run->plan.products[0].n_outer, 2));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
    check_shape(&s, 3 * MIB, true);
}

Test(product_batch, goes_on_where_a_journal_says)
{
    const struct shape s = {.rows = 30,
                            .columns = 20,
                            .depth = 25,
                            .n_batch = 2,
                            .batch = {100, 3},
                            .left_has = 3,
                            .right_has = 2};

    for (int is_redone = 0; is_redone < 2; is_redone++)
        check_resumed(&s, MIB, 1, is_redone);
}

/* Of each matrix, the first one that is multiplied with it. */
static void list_groups(const struct run *run, int64_t *ret_firsts)
{
    const struct plan_product *p = &run->plan.products[0];
    struct product_turn turn;

    for (uint64_t i = 0; i < run->plan.products[0].n_turns; i++) {
        product_turn(&run->plan.products[0], i, &turn);
        if (turn.step != PRODUCT_MULTIPLY || turn.is_empty)
            continue;
        int64_t first = (int64_t)turn.tile * p->tile_matrices + turn.matrix;
        for (int64_t m = 0; m < turn.n_matrices; m++)
            ret_firsts[first + m] = first;
    }
}

Test(product_batch, multiplies_the_same_matrices_together_in_tiles_of_all_sizes)
{
    const struct shape s = {.rows = 6,
                            .columns = 5,
                            .depth = 4,
                            .n_batch = 2,
                            .batch = {4, 43},
                            .left_has = 3,
                            .right_has = 3};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    int64_t wanted[4 * 43], firsts[4 * 43];

    job_init(job, &s);
    for (int64_t n = 4; n > 0; n /= 2) {
        struct plan_limits limits = limits_of(MIB);
        limits.engine = &plan_cuda;
        limits.product_tile[0] = n * 43;
        limits.product_tile[1] = 6;
        limits.product_tile[2] = 5;
        run_init(run, job, &limits);
        cr_assert(eq(u64, run->plan.products[0].n_tiles, 4 / (uint64_t)n));
        cr_assert(lt(i64, 1, run->plan.products[0].block_matrices));
        cr_assert(lt(i64, run->plan.products[0].block_matrices, 43));
        list_groups(run, n == 4 ? wanted : firsts);
        for (int i = 0; i < 4 * 43 && n < 4; i++)
            cr_assert(eq(i64, firsts[i], wanted[i]));
        do_all(run);
        check_result(run, &s);
        run_deinit(run);
    }
    job_deinit(job);
    free(run);
    free(job);
}

/* All that a device is given in one turn holds others up. */
Test(product_batch, of_uneven_operands_has_few_runs_a_turn)
{
    const struct shape s = {.rows = 2,
                            .columns = 2,
                            .depth = 2,
                            .n_batch = 2,
                            .batch = {5000, 2},
                            .left_has = 3,
                            .right_has = 2};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    struct plan_limits limits = limits_of(MIB);
    uint64_t n_matrices = 0;

    limits.engine = &plan_cuda;
    job_init(job, &s);
    run_init(run, job, &limits);
    check_runs(run);
    for (uint64_t i = 0; i < run->plan.products[0].n_turns; i++) {
        struct product_turn turn;
        unsigned n_runs = 0;
        product_turn(&run->plan.products[0], i, &turn);
        if (turn.step != PRODUCT_MULTIPLY)
            continue;
        for (int64_t m = 0; m < turn.n_matrices; m += product_run(&run->plan.products[0], &turn, m))
            n_runs++;
        cr_assert(le(u32, n_runs, 64));
        n_matrices += (uint64_t)turn.n_matrices;
    }
    cr_assert(eq(u64, n_matrices, 10000));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}

Test(product_batch, without_matrices_has_no_turns)
{
    static const int64_t batches[][3] = {{0, 3, 2}, {4, 0, 2}, {4, 3, 0}};

    for (int i = 0; i < 3; i++) {
        struct shape s = {.rows = 3, .columns = 2, .depth = 5, .n_batch = 3, .right_has = 7};
        struct job *job = malloc(sizeof(*job));
        struct run *run = malloc(sizeof(*run));
        memcpy(s.batch, batches[i], sizeof(s.batch));
        init(&s, MIB, job, run);
        cr_assert(eq(u64, run->plan.products[0].n_turns, 0));
        run_deinit(run);
        job_deinit(job);
        free(run);
        free(job);
    }
}
