/* Matrix products: threads multiply while others store. That a turn waits for enough is seen by
 * carrying the plan out with random ends; that it does not wait for more, by what it says. */
#include "tests/unit/kernels/plan/product_run.h"

/* A tile's STOREs that need not wait for all of its last step, MULTIPLYs that need not wait for all
 * STOREs of the tile before, and LOADs of the left operand that need not wait for all of the panel
 * that they are loaded over. */
static void check_overlap(const struct plan *plan)
{
    uint64_t n_early_stores = 0, n_early_multiplies = 0, n_early_loads = 0, last_store = 0;
    uint64_t panel = 0, ends[2] = {0, 0}; /* behind the last MULTIPLY of this one, the one before */
    unsigned n_in_step = 0;

    for (uint64_t i = 0; i < plan->products[0].n_turns; i++) {
        struct product_turn turn;
        product_turn(&plan->products[0], i, &turn);
        bool is_first = turn.step == PRODUCT_MULTIPLY && turn.step_index == 0;
        uint64_t own_panel = turn.tile * plan->products[0].n_panels + turn.panel_index;
        if (turn.step == PRODUCT_MULTIPLY && own_panel != panel) {
            panel = own_panel;
            ends[1] = ends[0];
        }
        if (turn.step == PRODUCT_MULTIPLY)
            ends[0] = i + 1;
        bool is_left = turn.step == PRODUCT_LOAD && turn.pass == PRODUCT_LEFT;
        n_early_loads += is_left && !turn.is_empty && ends[1] > 0 &&
                         product_needs(&plan->products[0], i) < ends[1];
        if (turn.step == PRODUCT_MULTIPLY)
            n_in_step = n_in_step % plan->products[0].n_multiplies + 1;
        if (turn.step == PRODUCT_STORE && !turn.is_empty) {
            last_store = i;
            n_early_stores += n_in_step < plan->products[0].n_multiplies &&
                              product_needs(&plan->products[0], i) < i;
        }
        n_early_multiplies += is_first && turn.tile > 0 && !turn.is_empty &&
                              product_needs(&plan->products[0], i) <= last_store;
    }
    cr_assert(lt(u64, 0, n_early_stores));
    cr_assert(lt(u64, 0, n_early_multiplies));
    cr_assert(lt(u64, 0, n_early_loads));
}

Test(product, stores_lines_of_blocks_while_others_are_multiplied)
{
    const struct shape shapes[] = {
        {.rows = 2000, .columns = 1300, .depth = 10},
        {.rows = 1300, .columns = 2000, .depth = 10, .is_result_fortran = true},
        {.rows = 1024, .columns = 768, .depth = 200},
        {.rows = 1100, .columns = 900, .depth = 5, .n_batch = 1, .batch = {3}, .left_has = 1}};

    for (int i = 0; i < 5; i++) {
        const struct shape *s = &shapes[i % 4];
        struct job *job = malloc(sizeof(*job));
        struct run *run = malloc(sizeof(*run));
        struct plan_limits limits = limits_of(6 * MIB);
        limits.n_threads = i == 4 ? 16 : 2; /* too many for the lines there are */
        job_init(job, s);
        run_init(run, job, &limits);
        cr_assert(lt(u64, 1, run->plan.products[0].n_tiles));
        cr_assert(eq(int, run->plan.products[0].is_by_columns, s->is_result_fortran));
        if (i == 2) /* the others have tiles of one line */
            check_overlap(&run->plan);
        do_all(run);
        check_result(run, s);
        run_deinit(run);
        job_deinit(job);
        free(run);
        free(job);
    }
}
