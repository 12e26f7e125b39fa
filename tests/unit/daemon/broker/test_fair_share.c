/* Users take turns, however many sessions each has, and leave nothing behind. */
#include "daemon/broker/jobs/fair_share.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

struct item {
    struct list link;
    struct fair_user *user;
};

static struct list users, ring;

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
        fair_wait(&ring, &items[i].user->at_loop, &items[i].link);
}

static void leave(struct item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        list_remove(&items[i].link);
        fair_leave(items[i].user);
    }
}

static void init(void)
{
    list_init(&users);
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
    cr_assert(list_is_empty(&users) && list_is_empty(&ring));
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
    cr_assert(eq(ptr, (void *)fair_first(&ring), (void *)&there[0].user->at_loop));
    wait_all(gone, 1);
    leave(gone, 2);
    cr_assert(eq(ptr, (void *)fair_next(&ring), (void *)&there[0].link));
    leave(there, 1);
    cr_assert(list_is_empty(&users));
}
