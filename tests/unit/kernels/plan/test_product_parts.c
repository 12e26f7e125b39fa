/* Matrix products in pools that are smaller than a block: blocks have parts. What is computed there
 * is right, and what of a block decides the bits of floats is the same as in a large pool. */
#include "tests/unit/kernels/plan/product_run.h"

static const struct shape shapes[] = {
    {.rows = 60, .columns = 60, .depth = 3000},
    {.rows = 300, .columns = 300, .depth = 3000},
    {.rows = 1000, .columns = 1000, .depth = 1000},
    {.rows = 2000, .columns = 2000, .depth = 30},
    {.rows = 1500, .columns = 70, .depth = 900, .is_fortran = {true, false}},
    {.rows = 1100, .columns = 2304, .depth = 384},
    {.rows = 3000, .columns = 1536, .depth = 200},
    {.rows = 600, .columns = 600, .depth = 400, .is_symmetric = true, .is_fortran = {false, true}},
};
#define N_SHAPES (sizeof(shapes) / sizeof(*shapes))

static int plan_shape(const struct shape *s, bool is_float, uint64_t carry_bytes,
                      struct plan *ret_plan)
{
    struct shape own = *s;
    struct job *job = malloc(sizeof(*job));
    const struct plan_limits limits = limits_of(carry_bytes);
    struct gad_error error = {.message = ""};

    own.is_float = is_float;
    job_init(job, &own);
    int r = plan_make(&job->request, &job->program, false, &limits, ret_plan, &error);
    job_deinit(job);
    free(job);
    return r;
}

Test(product_parts, of_integers_are_right_in_any_pool)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct shape s = shapes[i];
        s.rows = s.rows / 4 + 1;
        s.columns = s.is_symmetric ? s.rows : s.columns / 4 + 2;
        check_shape(&s, 100 << 10, i % 2);
        check_shape(&s, 20 << 10, false);
    }
    check_shape(&(struct shape){.rows = 0, .columns = 300, .depth = 900}, 100 << 10, true);
    check_shape(&(struct shape){.rows = 400, .columns = 0, .depth = 900}, 100 << 10, false);
}

/* Every block of C, the last ones too, is one for which a library takes the kernels of large ones,
 * and begins at a multiple of its units. */
static void check_library_parts(const struct plan_product *p)
{
    int64_t rows = p->block_rows < p->n_rows ? p->block_rows : p->n_rows;
    int64_t columns = p->block_columns < p->n_columns ? p->block_columns : p->n_columns;
    int64_t last_rows = p->n_rows % rows ? p->n_rows % rows : rows;
    int64_t last_columns = p->n_columns % columns ? p->n_columns % columns : columns;
    int64_t last_depth = p->depth - (int64_t)(p->n_depth_steps - 1) * p->step_depth;

    cr_expect(eq(i64, p->block_rows % 16, 0));
    cr_expect(eq(i64, p->block_columns % 16, 0));
    cr_expect(le(i64, 1 << 22, last_rows * last_columns * last_depth));
}

/* What of a library's calls decides bits is the same in all pools, or there is no room for it. */
Test(product_parts, of_floats_are_a_librarys_units)
{
    struct plan *large = malloc(sizeof(*large)), *tiny = malloc(sizeof(*tiny));
    unsigned n_whole = 0, n_parted = 0;

    for (size_t i = 0; i < N_SHAPES; i++) {
        const struct plan_product *p = &large->products[0], *q = &tiny->products[0];
        cr_assert(eq(int, plan_shape(&shapes[i], true, 64 * MIB, large), 0));
        int r = plan_shape(&shapes[i], true, 3 * MIB / 2, tiny);
        cr_assert(r == 0 || r == GAD_TOO_LARGE_FOR_POOL, "%zu: %d", i, r);
        if (r)
            continue;
        cr_expect(eq(i64, q->step_depth, p->step_depth));
        bool is_whole = q->block_rows == p->block_rows && q->block_columns == p->block_columns;
        n_whole += is_whole;
        n_parted += !is_whole;
        if (!is_whole)
            check_library_parts(q);
    }
    cr_expect(le(u32, 1, n_whole));
    cr_expect(le(u32, 1, n_parted));
    free(large);
    free(tiny);
}

/* Products of columns and rows are one multiplication for each element, and can be parted; blocks
 * that are little work in another way cannot be. */
Test(product_parts, of_floats_of_little_depth_are_there_for_a_depth_of_one)
{
    static const int64_t n_rows[] = {500, 1000, 3000};
    struct plan *plan = malloc(sizeof(*plan));

    for (size_t i = 0; i < 3; i++) {
        struct shape s = {.rows = n_rows[i], .columns = 3000, .depth = 1};
        cr_expect(eq(int, plan_shape(&s, true, 3 * MIB / 2, plan), 0));
        cr_expect(eq(int, plan_shape(&s, true, 3 * MIB / 4, plan), 0));
        s.depth = 7;
        cr_expect(eq(int, plan_shape(&s, true, 3 * MIB / 2, plan), GAD_TOO_LARGE_FOR_POOL));
        cr_expect(eq(int, plan_shape(&s, true, 64 * MIB, plan), 0));
        s.depth = 60;
        cr_expect(eq(int, plan_shape(&s, true, 3 * MIB / 2, plan), 0));
    }
    free(plan);
}

/* Sums of a line are of pieces that begin at the same places. */
Test(product_parts, of_one_row_or_column_are_pieces_of_the_depth)
{
    const struct shape s = {.rows = 1, .columns = 1, .depth = 100000};
    struct plan *plan = malloc(sizeof(*plan));

    cr_assert(eq(int, plan_shape(&s, true, 64 * MIB, plan), 0));
    cr_expect(eq(u64, plan->products[0].n_depth_steps, 1));
    cr_assert(eq(int, plan_shape(&s, true, MIB, plan), 0));
    cr_expect(lt(u64, 1, plan->products[0].n_depth_steps));
    cr_expect(eq(i64, plan->products[0].step_depth % 16384, 0));
    free(plan);
}

Test(product_parts, are_not_smaller_than_a_pool_needs)
{
    struct plan *plan = malloc(sizeof(*plan));

    cr_assert(eq(int, plan_shape(&shapes[2], false, 64 * MIB, plan), 0));
    int64_t n_rows = plan->products[0].block_rows;
    cr_assert(eq(int, plan_shape(&shapes[2], false, MIB, plan), 0));
    cr_expect(lt(i64, n_rows / 8, plan->products[0].block_rows));
    cr_assert(eq(int, plan_shape(&shapes[2], true, 64 << 10, plan), GAD_TOO_LARGE_FOR_POOL));
    free(plan);
}
