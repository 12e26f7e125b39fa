/* Deadlines: order, moving, clearing from the middle, and that a function may set and clear. */
#include "daemon/broker/deadlines.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct deadlines all;
static struct deadline many[500];
static uint64_t last_ns;
static unsigned n_calls;

static void count(struct deadline *deadline)
{
    cr_assert(ge(u64, deadline->at_ns, last_ns));
    cr_assert(not(deadline_is_set(deadline)));
    last_ns = deadline->at_ns;
    n_calls++;
}

Test(deadline, none_is_for_ever)
{
    cr_assert(eq(u64, deadlines_next_ns(&all), UINT64_MAX));
    deadlines_run(&all, UINT64_MAX);
    struct deadline never = {0};
    deadline_clear(&all, &never);
}

Test(deadline, runs_in_order_whatever_was_set_moved_and_cleared)
{
    unsigned n_cleared = 0;

    srand(1);
    for (unsigned i = 0; i < 500; i++)
        deadline_set(&all, &many[i], (uint64_t)(rand() % 1000), count);
    for (unsigned i = 0; i < 500; i += 3)
        deadline_set(&all, &many[i], (uint64_t)(rand() % 1000), count);
    for (unsigned i = 0; i < 500; i += 7, n_cleared++)
        deadline_clear(&all, &many[i]);
    deadlines_run(&all, 499);
    cr_assert(lt(u64, 499, deadlines_next_ns(&all)));
    cr_assert(le(u64, last_ns, 499));
    deadlines_run(&all, 1000);
    cr_assert(eq(uint, n_calls, 500 - n_cleared));
    cr_assert(eq(u64, deadlines_next_ns(&all), UINT64_MAX));
}

static void clear_the_next_and_set_itself(struct deadline *deadline)
{
    n_calls++;
    deadline_clear(&all, &many[1]);
    deadline_set(&all, deadline, 100, clear_the_next_and_set_itself);
}

Test(deadline, a_function_may_clear_others_and_set_itself_again)
{
    deadline_set(&all, &many[0], 1, clear_the_next_and_set_itself);
    deadline_set(&all, &many[1], 1, clear_the_next_and_set_itself);
    deadlines_run(&all, 50);
    cr_assert(eq(uint, n_calls, 1));
    cr_assert(eq(u64, deadlines_next_ns(&all), 100));
}
