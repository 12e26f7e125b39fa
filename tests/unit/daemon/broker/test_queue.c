/* The queue: turns of users, priorities, suspects, limits, what is paused. */
#include "queue_rig.h"

Test(queue, first_come_first_served, .init = set_up, .fini = tear_down)
{
    cr_assert(eq(int, admit(), -EAGAIN));
    for (unsigned i = 0; i < 5; i++)
        push(i, 1, 0, 0);
    cr_assert(eq(uint, queue_n_waiting(queue), 5));
    for (int i = 0; i < 5; i++)
        cr_assert(eq(int, admit(), i));
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(eq(uint, queue_n_active(queue), 5));
}

Test(queue, users_take_turns, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 4; i++)
        push(i, 1, 0, 0);
    push(4, 2, 0, 0);
    push(5, 3, 0, 0);
    push(6, 2, 0, 0);
    static const int want[] = {0, 4, 5, 1, 6, 2, 3};
    for (unsigned i = 0; i < 7; i++)
        cr_assert(eq(int, admit(), want[i]));
}

Test(queue, a_higher_priority_goes_first_inside_its_user_only, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, 0);
    push(1, 1, 5, 0);
    push(2, 1, -5, 0);
    push(3, 1, 5, 4096);
    push(4, 2, 100, 0);
    static const int want[] = {1, 4, 3, 0, 2};
    for (unsigned i = 0; i < 5; i++)
        cr_assert(eq(int, admit(), want[i]));
}

Test(queue, who_comes_in_front_of_a_starving_job_of_its_user_does_not_block_both, .init = set_up,
     .fini = tear_down)
{
    push(0, 9, 0, POOL_BYTES / 4);
    push(1, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN)); /* 1 starves */
    push(2, 1, 10, LARGEST);
    push(3, 2, 0, 4096);
    cr_assert(eq(int, admit(), -EAGAIN)); /* 2 starves in its place, 3 must wait */
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 2));
    queue_remove(queue, &maps, &items[2]);
    cr_assert(eq(int, admit(), 3)); /* its user's turn */
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[3]);
    cr_assert(eq(int, admit(), 1));
}

Test(queue, is_full_with_limit_and_use)
{
    struct gad_error error = {0};

    set_up_with(2, 100, 2);
    push(0, 1, 0, 0);
    push(1, 2, 0, 0);
    cr_assert(eq(int, queue_push(queue, 1, &items[2], &error), GAD_QUEUE_FULL));
    cr_assert(ne(ptr, strstr(error.expected, "2"), NULL));
    cr_assert(ne(ptr, strstr(error.found, "2"), NULL));
    cr_assert(eq(int, admit(), 0));
    push(2, 1, 0, 0);
    tear_down();
}

Test(queue, so_many_are_active_and_each_user_has_a_guarantee)
{
    set_up_with(100, 3, 2);
    for (unsigned i = 0; i < 6; i++)
        push(i, 1, 0, 0);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, admit(), i));
    cr_assert(eq(int, admit(), -EAGAIN));
    for (unsigned i = 6; i < 9; i++)
        push(i, 2, 0, 0);
    cr_assert(eq(int, admit(), 6));
    cr_assert(eq(int, admit(), 7));
    cr_assert(eq(int, admit(), -EAGAIN));
    tear_down();
}

Test(queue, guarantees_end_somewhere)
{
    set_up_with(100, 2, 1);
    for (unsigned i = 0; i < 20; i++)
        push(i, i, 0, 0);
    for (int i = 0; i < 8; i++)
        cr_assert(eq(int, admit(), i));
    cr_assert(eq(int, admit(), -EAGAIN));
    tear_down();
}

Test(queue, what_goes_back_is_first_again_in_the_old_order, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 5; i++)
        push(i, 1, 0, i == 1 ? 4096 : 0);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, admit(), i));
    while (!list_is_empty(queue_active(queue)))
        queue_push_back_to_front(queue, &maps,
                                 list_entry(queue_active(queue)->prev, struct queue_item, link));
    cr_assert(eq(u64, used(CARRY_IN_POOL), 0));
    for (int i = 0; i < 5; i++)
        cr_assert(eq(int, admit(), i));
}

Test(queue, a_suspect_goes_first_and_alone, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 4; i++)
        push(i, 1, 0, 4096);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, admit(), i));
    items[2].is_suspect = items[1].is_suspect = true;
    while (!list_is_empty(queue_active(queue)))
        queue_push_back_to_front(queue, &maps,
                                 list_entry(queue_active(queue)->prev, struct queue_item, link));
    cr_assert(eq(int, admit(), 1));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[2]);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 3));
}

Test(queue, a_suspect_waits_for_those_that_run, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, 0);
    push(1, 1, 0, 0);
    push(2, 1, 0, 0);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 1));
    items[0].is_suspect = true;
    queue_push_back_to_front(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 0));
}

Test(queue, somebody_who_waits_can_be_found, .init = set_up, .fini = tear_down)
{
    cr_assert(eq(ptr, queue_any_waiting(queue), NULL));
    push(0, 1, 0, 4096);
    cr_assert(eq(ptr, queue_any_waiting(queue), &items[0]));
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(ptr, queue_any_waiting(queue), NULL));
    push(1, 1, 0, 0);
    cr_assert(eq(ptr, queue_any_waiting(queue), &items[1]));
    queue_remove(queue, &maps, &items[1]);
    queue_remove(queue, &maps, &items[1]);
}

Test(queue, limits_can_change, .init = set_up, .fini = tear_down)
{
    const struct queue_limits lower = {.max_waiting = 2, .max_active = 1, .user_guarantee = 1};
    const struct queue_limits higher = {.max_waiting = 4, .max_active = 3, .user_guarantee = 1};
    struct gad_error error = {0};

    for (unsigned i = 0; i < 3; i++)
        push(i, 1, 0, 0);
    queue_set_limits(queue, &lower);
    cr_assert(eq(uint, queue_n_waiting(queue), 3)); /* who waits stays */
    cr_assert(eq(int, queue_push(queue, 1, &items[3], &error), GAD_QUEUE_FULL));
    cr_assert(eq(str, error.expected, "at most 2"));
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_set_limits(queue, &higher);
    cr_assert(eq(int, admit(), 1));
    push(3, 1, 0, 0);
}

Test(queue, all_that_wait_are_listed_by_user_with_suspects_first, .init = set_up, .fini = tear_down)
{
    struct queue_item *found[8];

    cr_assert(eq(uint, queue_list_waiting(queue, found, 8), 0));
    for (unsigned i = 0; i < 4; i++)
        push(i, i % 2, 0, i == 2 ? 4096 : 0);
    cr_assert(eq(int, admit(), 0));
    items[0].is_suspect = true;
    queue_push_back_to_front(queue, &maps, &items[0]);
    cr_assert(eq(uint, queue_list_waiting(queue, found, 8), 4));
    cr_assert(eq(ptr, found[0], &items[0]));
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < i; k++)
            cr_assert(ne(ptr, found[i], found[k]));
    cr_assert(eq(uint, queue_list_waiting(queue, found, 2), 2));
}

Test(queue, what_comes_from_another_queue_is_not_refused)
{
    struct gad_error error = {0};

    set_up_with(1, 1, 1);
    push(0, 1, 0, 0);
    cr_assert(eq(int, queue_push(queue, 1, &items[1], &error), GAD_QUEUE_FULL));
    cr_assert(eq(int, queue_push_again(queue, 1, &items[1]), 0));
    cr_assert(eq(uint, queue_n_waiting(queue), 2));
    cr_assert(eq(int, admit(), 0));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 1));
    tear_down();
}

Test(queue, several_queues_are_full_together_with_limit_and_use)
{
    struct gad_error error = {0};

    cr_assert(eq(int, queue_refuse(7, 6, &error), GAD_QUEUE_FULL));
    cr_assert(eq(str, error.expected, "at most 6"));
    cr_assert(eq(str, error.found, "7 waiting"));
}

Test(queue, a_suspect_does_not_wait_for_what_is_parked, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, 4096);
    cr_assert(eq(int, admit(), 0));
    items[1].is_suspect = true;
    push(1, 2, 0, 0);
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(queue_is_short(queue));
    queue_park(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 1));
    push(2, 3, 0, 0);
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(queue_is_short(queue), "it waits for the suspect's end");
}

Test(queue, a_paused_item_is_passed_over_and_keeps_its_place, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 3; i++)
        push(i, 1, 0, i == 0 ? 4096 : 0);
    queue_set_paused(queue, &items[0], true);
    queue_set_paused(queue, &items[0], true);
    cr_assert(eq(uint, queue_n_waiting(queue), 3));
    cr_assert(eq(uint, queue_n_paused(queue), 1));
    cr_assert(eq(ptr, queue_any_waiting(queue), &items[0]), "whoever ends all finds it");
    cr_assert(eq(int, admit(), 1));
    queue_set_paused(queue, &items[0], false);
    cr_assert(eq(int, admit(), 0), "it came before");
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(uint, queue_n_paused(queue), 0));
}

Test(queue, an_active_item_that_is_paused_waits_when_it_goes_back, .init = set_up,
     .fini = tear_down)
{
    struct queue_item *listed[4];
    push(0, 1, 0, 4096);
    cr_assert(eq(int, admit(), 0));
    queue_set_paused(queue, &items[0], true);
    cr_assert(eq(uint, queue_n_paused(queue), 0));
    cr_assert(eq(uint, queue_n_carries(queue), 1), "it keeps its carry");
    items[0].is_suspect = true;
    queue_push_back_to_front(queue, &maps, &items[0]);
    push(1, 2, 0, 0);
    cr_assert(eq(uint, queue_n_carries(queue), 0));
    cr_assert(eq(uint, queue_list_waiting(queue, listed, 4), 2));
    cr_assert(eq(int, admit(), 1), "a suspect that is paused holds up nobody");
    cr_assert(not(queue_is_short(queue)));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_set_paused(queue, &items[0], false);
    cr_assert(eq(int, admit(), -EAGAIN), "it runs alone");
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 0));
}

Test(queue, paused_ones_leave_their_places_to_others_once, .fini = tear_down)
{
    set_up_with(10, 2, 0);
    for (unsigned i = 0; i < 8; i++)
        push(i, 1, 0, 0);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 1));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_set_paused(queue, &items[0], true);
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_set_paused(queue, &items[1], true);
    queue_set_paused(queue, &items[2], true); /* a third: there are two places */
    cr_assert(eq(int, admit(), 3));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_set_paused(queue, &items[0], false);
    queue_set_paused(queue, &items[1], false);
    cr_assert(eq(int, admit(), -EAGAIN), "they have theirs again");
    queue_remove(queue, &maps, &items[0]);
    queue_remove(queue, &maps, &items[2]);
    cr_assert(eq(int, admit(), -EAGAIN), "1 and 3");
    queue_remove(queue, &maps, &items[3]);
    cr_assert(eq(int, admit(), 4));
    cr_assert(eq(int, admit(), -EAGAIN));
}

Test(queue, who_starves_and_is_paused_holds_up_nobody, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), 0));
    push(1, 2, 0, LARGEST);
    push(2, 3, 0, 4096);
    cr_assert(eq(int, admit(), -EAGAIN), "2 waits behind 1");
    queue_remove(queue, &maps, &items[0]);
    queue_set_paused(queue, &items[1], true);
    cr_assert(eq(int, admit(), 2));
}

/* Whatever was put in before, and however many are not paused. */
Test(queue, items_that_go_on_are_where_they_were, .init = set_up, .fini = tear_down)
{
    enum { N = 40 };
    int want[N], random = 1;
    for (unsigned i = 0; i < N; i++)
        push(i, 1, (int)(i * 7 % 5), i % 11 == 0 ? 16 : 0);
    for (int n = 0, priority = 4; priority >= 0; priority--)
        for (int i = 0; i < N; i++)
            if (items[i].priority == priority)
                want[n++] = i;
    for (unsigned round = 0; round < 200; round++) {
        random = (int)((unsigned)random * 1103515245u + 12345u);
        unsigned i = ((unsigned)random >> 16) % N;
        queue_set_paused(queue, &items[i], !items[i].is_paused);
    }
    for (unsigned i = 0; i < N; i++) /* as an admin lets all of them go on */
        queue_set_paused(queue, &items[want[i]], false);
    cr_assert(eq(uint, queue_n_paused(queue), 0));
    for (unsigned i = 0; i < N; i++)
        cr_assert(eq(int, admit(), want[i]), "%u", i);
}
