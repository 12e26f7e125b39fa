/* The queue: who waits for memory of the pool or the device, and who passes. */
#include "queue_rig.h"

Test(queue_carries, a_carry_is_lent_and_given_back, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, 5000);
    cr_assert(eq(int, admit(), 0));
    cr_assert(ge(u64, items[0].carries[CARRY_IN_POOL].size_bytes, 5000));
    cr_assert(eq(u64, used(CARRY_IN_POOL), items[0].carries[CARRY_IN_POOL].size_bytes));
    cr_assert(eq(uint, queue_n_carries(queue), 1));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(u64, used(CARRY_IN_POOL), 0));
    cr_assert(eq(uint, queue_n_carries(queue), 0));
}

Test(queue_carries, who_waits_for_a_carry_is_passed_by_those_without, .init = set_up,
     .fini = tear_down)
{
    push(0, 1, 0, LARGEST);
    push(1, 1, 0, LARGEST);
    push(2, 1, 0, 0);
    push(3, 2, 0, 0);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 3));
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 1));
}

Test(queue_carries, who_waits_for_a_large_carry_is_not_starved_by_small_ones, .init = set_up,
     .fini = tear_down)
{
    push(0, 9, 0, POOL_BYTES / 4);
    push(2, 2, 0, 4096);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 2)); /* it came before anybody had to wait */
    push(1, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), -EAGAIN));
    push(3, 2, 0, 4096);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[2]);
    cr_assert(eq(int, admit(), 1));
    cr_assert(eq(int, admit(), 3)); /* beside the largest there is room */
}

Test(queue_carries, who_waits_for_most_of_the_pool_leaves_the_rest_to_others, .init = set_up,
     .fini = tear_down)
{
    uint64_t pool_bytes = 64 * POOL_BYTES, product = poolmap_product_limit_bytes(pool_bytes);
    poolmap_free(maps.of[0]);
    cr_assert(eq(int, poolmap_new(poolmap_part_bytes(pool_bytes, false), &maps.of[0]), 0));
    push(0, 1, 0, product);
    push(1, 2, 0, product);
    push(2, 3, 0, POOL_BYTES);
    push(3, 4, 0, POOL_BYTES);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), 3));
    push(4, 3, 0, 4 * POOL_BYTES);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 1)); /* not 4, which would lie in its way */
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 4));
}

Test(queue_carries, who_was_waiting_for_a_carry_and_leaves_lets_others_have_it, .init = set_up,
     .fini = tear_down)
{
    push(0, 9, 0, POOL_BYTES / 4);
    push(1, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN));
    push(2, 2, 0, 4096);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 2));
}

Test(queue_carries, who_waits_for_a_carry_of_its_own_user_holds_nobody_up, .init = set_up,
     .fini = tear_down)
{
    push(0, 1, 0, LARGEST);
    push(1, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN));
    push(2, 2, 0, 4096);
    cr_assert(eq(int, admit(), 2));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), -EAGAIN)); /* it waits for another's, and starves */
    push(3, 2, 0, 4096);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[2]);
    cr_assert(eq(int, admit(), 1));
    cr_assert(eq(int, admit(), 3)); /* beside the largest there is room */
}

Test(queue_carries, a_carry_that_never_fits_is_said_and_put_out, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, POOL_BYTES);
    push(1, 1, 0, 0);
    cr_assert(eq(int, admit(), -E2BIG));
    cr_assert(eq(int, items[0].place, QUEUE_OUT));
    cr_assert(eq(int, admit(), 1));
}

Test(queue_carries, who_holds_carries_leaves_half_of_the_rest_to_others, .init = set_up,
     .fini = tear_down)
{
    const uint64_t part = poolmap_part_bytes(POOL_BYTES, false);
    for (unsigned i = 0; i < 8; i++)
        push(i, 1, 0, part / 8);
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, admit(), i));
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(queue_is_short(queue));
    for (unsigned i = 8; i < 12; i++)
        push(i, 2, 0, part / 8);
    cr_assert(eq(int, admit(), 8));
    cr_assert(eq(int, admit(), 9));
    cr_assert(eq(int, admit(), -EAGAIN));
    push(12, 3, 0, part / 8); /* a newcomer finds some, too */
    cr_assert(eq(int, admit(), 12));
}

Test(queue_carries, beside_a_large_carry_its_user_has_small_ones, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, LARGEST);
    push(1, 1, 0, 4096);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 1));
    push(2, 1, 0, LARGEST);
    cr_assert(eq(int, admit(), -EAGAIN));
    push(3, 2, 0, 4096);
    cr_assert(eq(int, admit(), 3));
    queue_remove(queue, &maps, &items[0]);
    queue_remove(queue, &maps, &items[1]);
    queue_remove(queue, &maps, &items[3]);
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(not(queue_is_short(queue)), "nobody waits");
}

Test(queue_carries, what_is_parked_gives_its_carry_to_who_waits, .init = set_up, .fini = tear_down)
{
    push(0, 1, 0, LARGEST);
    push(1, 2, 0, LARGEST);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(queue_is_short(queue));
    queue_park(queue, &maps, &items[0]);
    cr_assert(eq(uint, queue_n_carries(queue), 0));
    cr_assert(eq(uint, queue_n_active(queue), 1));
    cr_assert(eq(int, admit(), 1));
    queue_push_back_to_front(queue, &maps, &items[0]); /* its client is back */
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[1]);
    cr_assert(eq(int, admit(), 0));
    cr_assert(not(items[0].is_parked));
}

Test(queue_carries, a_carry_in_both_memories_is_lent_whole_or_not_at_all, .init = set_up,
     .fini = tear_down)
{
    push_product(0, 1, DEVICE_LARGEST, 0);
    push_product(1, 2, 8192, LARGEST);
    push_product(2, 3, DEVICE_LARGEST, 4096);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), 1));
    cr_assert(eq(int, admit(), -EAGAIN));
    cr_assert(eq(u64, used(CARRY_ON_DEVICE), DEVICE_LARGEST + 8192));
    cr_assert(eq(u64, used(CARRY_IN_POOL), LARGEST), "2 has nothing of it while it waits");
    cr_assert(eq(u64, items[2].carries[CARRY_IN_POOL].size_bytes, 0));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(uint, queue_n_carries(queue), 2));
}

Test(queue_carries, who_waits_for_one_memory_does_not_hold_up_the_other, .init = set_up,
     .fini = tear_down)
{
    push_product(0, 1, DEVICE_LARGEST, 0);
    push_product(1, 2, DEVICE_LARGEST, 0);
    cr_assert(eq(int, admit(), 0));
    cr_assert(eq(int, admit(), -EAGAIN)); /* 1 starves */
    push(2, 3, 0, LARGEST);
    push_product(3, 4, 4096, 0);
    cr_assert(eq(int, admit(), 2));
    cr_assert(eq(int, admit(), 3)); /* behind where 1 will lie */
    push_product(4, 5, 5 * 4096, 0);
    cr_assert(eq(int, admit(), -EAGAIN));
    queue_remove(queue, &maps, &items[0]);
    cr_assert(eq(int, admit(), 1));
}

Test(queue_carries, a_users_products_leave_half_of_the_rest_of_the_device, .init = set_up,
     .fini = tear_down)
{
    for (unsigned i = 0; i < 8; i++)
        push_product(i, 1, DEVICE_EIGHT, 0);
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, admit(), i));
    cr_assert(eq(int, admit(), -EAGAIN));
    push_product(8, 2, DEVICE_EIGHT, 0);
    push(9, 3, 0, LARGEST);
    cr_assert(eq(int, admit(), 8));
    cr_assert(eq(int, admit(), 9));
    push_product(10, 1, 0, 4096); /* of the pool it has nothing yet */
    cr_assert(eq(int, admit(), -EAGAIN), "behind those of its user that wait");
}

Test(queue_carries, a_product_that_never_fits_the_device_is_put_out, .init = set_up,
     .fini = tear_down)
{
    push_product(0, 1, DEVICE_BYTES + 1, 4096);
    cr_assert(eq(int, admit(), -E2BIG));
    cr_assert(eq(uint, items[0].place, QUEUE_OUT));
    cr_assert(eq(u64, used(CARRY_IN_POOL), 0));
}

Test(queue_carries, a_product_that_is_parked_gives_both_back, .init = set_up, .fini = tear_down)
{
    push_product(0, 1, DEVICE_LARGEST, LARGEST);
    cr_assert(eq(int, admit(), 0));
    cr_assert(queue_has_carry(&items[0]));
    queue_park(queue, &maps, &items[0]);
    cr_assert(not(queue_has_carry(&items[0])));
    cr_assert(eq(u64, used(CARRY_ON_DEVICE) + used(CARRY_IN_POOL), 0));
}
