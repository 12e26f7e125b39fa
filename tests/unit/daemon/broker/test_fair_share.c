/* Users take turns, however many sessions each has, and leave nothing behind. */
#include "daemon/broker/jobs/fair_share.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

struct item {
    struct list link;
    struct fair_user *user;
};

static struct fair_users users;
static struct list ring;

static void join(struct item *items, unsigned n, uid_t uid)
{
    for (unsigned i = 0; i < n; i++) {
        list_init(&items[i].link);
        cr_assert(eq(int, fair_join(&users, uid, &items[i].user), 0));
    }
}

static void wait_all(struct item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fair_wait(&ring, &items[i].user->at_reading, &items[i].link);
}

static void leave(struct item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        list_remove(&items[i].link);
        fair_leave(&users, items[i].user);
    }
}

static void init(void)
{
    fair_init(&users);
    list_init(&ring);
}

TestSuite(fair_share, .init = init);

Test(fair_share, one_user_with_many_sessions_gets_every_second_turn)
{
    struct item many[10], few[3];
    join(many, 10, 1000);
    join(few, 3, 1001);
    wait_all(many, 10);
    wait_all(few, 3);
    for (unsigned i = 0; i < 6; i++) {
        const struct list *want = i % 2 ? &few[i / 2].link : &many[i / 2].link;
        cr_expect(eq(ptr, (void *)fair_next(&ring), (void *)want), "turn %u", i);
    }
    for (unsigned i = 3; i < 10; i++)
        cr_expect(eq(ptr, (void *)fair_next(&ring), (void *)&many[i].link));
    cr_assert(eq(ptr, (void *)fair_next(&ring), NULL));
    leave(many, 10);
    leave(few, 3);
    cr_assert(list_is_empty(&users.all) && list_is_empty(&ring));
}

Test(fair_share, who_comes_while_others_wait_is_next_but_one)
{
    struct item many[5], one[1];
    join(many, 5, 1000);
    join(one, 1, 1001);
    wait_all(many, 5);
    cr_assert(eq(ptr, (void *)fair_next(&ring), (void *)&many[0].link));
    wait_all(one, 1);
    cr_assert(eq(ptr, (void *)fair_next(&ring), (void *)&many[1].link));
    cr_assert(eq(ptr, (void *)fair_next(&ring), (void *)&one[0].link));
    leave(many, 5);
    leave(one, 1);
}

Test(fair_share, who_leaves_while_waiting_is_passed_over)
{
    struct item gone[2], there[1];
    join(gone, 2, 1000);
    join(there, 1, 1001);
    wait_all(gone, 2);
    wait_all(there, 1);
    list_remove(&gone[0].link);
    list_remove(&gone[1].link);
    cr_assert(eq(ptr, (void *)fair_first(&ring), (void *)&there[0].user->at_reading));
    wait_all(gone, 1);
    leave(gone, 2);
    cr_assert(eq(ptr, (void *)fair_next(&ring), (void *)&there[0].link));
    leave(there, 1);
    cr_assert(list_is_empty(&users.all));
}

static struct fair_user *serve(uint64_t used_ns)
{
    struct fair_line *line = fair_least(&ring);
    cr_assert(line != NULL);
    fair_serve(&users, line->user);
    fair_charge(&users, line->user, used_ns);
    return line->user;
}

Test(fair_share, who_has_used_much_waits_until_others_have_too)
{
    struct item greedy[2], small[1];
    join(greedy, 2, 1000);
    join(small, 1, 1001);
    wait_all(greedy, 2);
    wait_all(small, 1);
    cr_assert(eq(ptr, serve(500), greedy[0].user)); /* of equals the first */
    for (unsigned i = 0; i < 5; i++)
        cr_expect(eq(ptr, serve(100), small[0].user), "time %u", i);
    cr_assert(eq(ptr, serve(100), greedy[0].user));
    cr_assert(eq(ptr, serve(100), small[0].user));
    leave(greedy, 2);
    leave(small, 1);
    fair_deinit(&users);
    cr_assert(list_is_empty(&users.all) && list_is_empty(&ring));
}

Test(fair_share, time_that_was_not_wanted_is_not_saved_up)
{
    struct item busy[1], late[1];
    join(busy, 1, 1000);
    join(late, 1, 1001);
    wait_all(busy, 1);
    for (unsigned i = 0; i < 100; i++)
        serve(100);
    wait_all(late, 1);
    cr_assert(eq(ptr, serve(300), late[0].user));
    for (unsigned i = 0; i < 2; i++) /* it is 200 ahead, not 9600 behind */
        cr_expect(eq(ptr, serve(150), busy[0].user), "time %u", i);
    cr_assert(eq(ptr, serve(100), late[0].user));
    leave(busy, 1);
    leave(late, 1);
    fair_deinit(&users);
}

Test(fair_share, who_leaves_and_comes_again_has_used_what_it_had)
{
    struct item greedy[1], other[1];
    join(greedy, 1, 1000);
    join(other, 1, 1001);
    cr_assert(fair_is_shared(&users));
    wait_all(greedy, 1);
    serve(500);
    leave(greedy, 1);
    cr_assert(list_is_empty(&ring)); /* which may be gone before what is remembered of the user */
    join(greedy, 1, 1000);
    cr_assert(eq(u64, greedy[0].user->used_ns, 500));
    wait_all(greedy, 1);
    wait_all(other, 1);
    cr_assert(eq(ptr, serve(600), other[0].user));
    cr_assert(eq(ptr, serve(0), greedy[0].user)); /* now it has no more than others */
    leave(greedy, 1);
    leave(other, 1);
    join(other, 1, 1002);
    leave(other, 1);
    fair_deinit(&users);
    cr_assert(list_is_empty(&users.all));
}
