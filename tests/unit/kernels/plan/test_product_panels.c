/* Matrix products whose panels are several steps deep, and whose left panels stay in memory for a
 * row of tiles: C is right, what is moved is what the plan says, and less than without. */
#include "tests/unit/kernels/plan/product_run.h"

enum {
    DEEP = 1,        /* panels of several steps */
    UNEVEN = 2,      /* of which the last has fewer, but several */
    SOME_KEPT = 4,   /* of the panels */
    ALL_KEPT = 8,    /* all, in memory of their own */
    ONE_KEPT = 16,   /* there is one, which stays in its buffer */
    RIGHT_KEPT = 32, /* one column of tiles */
    ONE_BUFFER = 64, /* for each operand, beside what is kept */
    ALL_KINDS = 128 - 1
};

static unsigned kinds_of(const struct plan_product *p)
{
    bool is_deep = p->panel_depth > p->step_depth && p->n_panels > 1;

    return (is_deep ? DEEP : 0) |
           (is_deep && p->depth % p->panel_depth > p->step_depth ? UNEVEN : 0) |
           (p->n_kept > 0 && p->n_kept < p->n_panels ? SOME_KEPT : 0) |
           (p->n_kept > 1 && p->n_kept == p->n_panels ? ALL_KEPT : 0) |
           (p->n_kept == 1 && p->n_panels == 1 ? ONE_KEPT : 0) |
           (p->n_kept > 0 && p->kept_pass == PRODUCT_RIGHT ? RIGHT_KEPT : 0) |
           (p->n_kept > 0 && !p->has_two_buffers ? ONE_BUFFER : 0);
}

/* 0: it does not fit. */
static unsigned kinds_with(const struct job *job, uint64_t carry_bytes)
{
    const struct plan_limits limits = limits_of(carry_bytes);
    struct gad_error error = {.message = ""};
    struct plan *plan = malloc(sizeof(*plan));
    unsigned kinds = 0;

    if (plan_make(&job->request, &job->program, false, &limits, plan, &error) == 0)
        kinds = kinds_of(&plan->products[0]);
    free(plan);
    return kinds;
}

/* Of all carries, the first ones that give a plan of each kind are used, one for each shape. */
Test(product, panels_are_deep_and_kept_as_the_carry_has_room)
{
    static const struct shape shapes[] = {
        {.rows = 350, .columns = 450, .depth = 1500, .is_float = true},
        {.rows = 512, .columns = 400, .depth = 1300},
        {.rows = 450, .columns = 150, .depth = 1500, .is_fortran = {false, true}},
        {.rows = 280, .columns = 300, .depth = 200, .is_result_fortran = true},
        {.rows = 150, .columns = 260, .depth = 800, .n_batch = 1, .batch = {2}, .right_has = 1},
        {.rows = 260, .columns = 140, .depth = 600, .n_batch = 2, .batch = {2, 3}, .left_has = 3},
    };
    struct job *job = malloc(sizeof(*job));
    unsigned seen = 0, n_runs = 0;

    srand(11);
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        bool is_run = false;
        job_init(job, &shapes[i]);
        for (uint64_t kib = 1500; kib <= 24000; kib += kib / 16) {
            unsigned kinds = kinds_with(job, kib << 10);
            if (kinds == 0 || (is_run && (kinds & ~seen) == 0))
                continue;
            check_shape(&shapes[i], kib << 10, n_runs++ % 3 == 1);
            is_run = true;
            seen |= kinds;
        }
        job_deinit(job);
    }
    free(job);
    cr_assert(eq(u32, seen, ALL_KINDS));
}

/* A journal's resume: what was kept is lost. */
static void check_resumed_within_a_row(const struct shape *s, uint64_t carry_bytes,
                                       unsigned *ret_n_within)
{
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    const struct plan_limits limits = limits_of(carry_bytes);

    job_init(job, s);
    job->request.has_journal = true;
    run_init(run, job, &limits);
    uint64_t n_tiles = run->plan.products[0].n_tiles,
             n_columns = run->plan.products[0].n_column_tiles;
    bool keeps = run->plan.products[0].n_kept > 0;
    run_deinit(run);
    job_deinit(job);
    for (uint64_t tile = 1; tile < n_tiles; tile++) {
        *ret_n_within += keeps && tile % n_columns > 0;
        for (int is_redone = 0; is_redone < 2; is_redone++)
            check_resumed(s, carry_bytes, tile, is_redone);
    }
    free(run);
    free(job);
}

Test(product, that_is_resumed_within_a_row_of_tiles_loads_what_was_kept)
{
    const struct shape shapes[] = {{.rows = 200, .columns = 300, .depth = 600},
                                   {.rows = 300, .columns = 300, .depth = 250}};
    unsigned n_within = 0;

    for (int i = 0; i < 2; i++)
        for (uint64_t kib = 1800; kib <= 5000; kib = kib * 3 / 2)
            check_resumed_within_a_row(&shapes[i], kib << 10, &n_within);
    cr_assert(lt(u32, 0, n_within));
}

/* What is kept is loaded once for the tiles that share it, in both directions. */
static void check_shared(int64_t rows, int64_t columns, enum product_pass pass)
{
    const struct shape s = {.rows = rows, .columns = columns, .depth = 1024};
    struct job *job = malloc(sizeof(*job));
    struct run *run = malloc(sizeof(*run));
    const struct plan_limits limits = limits_of(7 * MIB / 2);

    job_init(job, &s);
    run_init(run, job, &limits);
    const struct plan_product *p = &run->plan.products[0];
    uint64_t once = 8 * 1024 * (uint64_t)(pass == PRODUCT_LEFT ? rows : columns);
    uint64_t n_loaded = p->n_kept + (p->n_panels - p->n_kept) * p->n_sharing;
    cr_assert(eq(int, (int)p->kept_pass, (int)pass));
    cr_assert(lt(u64, 1, p->n_sharing));
    cr_assert(lt(u64, 0, p->n_kept));
    cr_assert(eq(u64, 1024 % p->panel_depth, 0));
    cr_assert(eq(u64, (pass == PRODUCT_LEFT ? p->left_bytes : p->right_bytes) * p->n_panels,
                 once * n_loaded));
    run_deinit(run);
    job_deinit(job);
    free(run);
    free(job);
}

Test(product, loads_what_tiles_share_and_has_room_once)
{
    check_shared(256, 1024, PRODUCT_LEFT);
    check_shared(1024, 200, PRODUCT_RIGHT);
}
