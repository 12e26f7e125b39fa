/* Turns: who is next in single situations, and fairness over simulated time. */
#include "daemon/turns.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdlib.h>

Test(turns, nobody_when_nobody_is_ready)
{
    const struct turn_user users[] = {{.user = 5}};
    const struct turn_job jobs[] = {{.user = 5, .weight = 1}};

    cr_assert(eq(int, turns_next(jobs, 1, users, 1), -1));
    cr_assert(eq(int, turns_next(NULL, 0, NULL, 0), -1));
}

static const struct {
    const char *what;
    struct turn_user users[3];
    struct turn_job jobs[4];
    unsigned n_users, n_jobs;
    int want;
} table[] = {
    {"the user with the least time",
     {{1, 5.0}, {2, 4.0}, {3, 6.0}},
     {{1, 1, 0, true, 0}, {2, 1, 0, true, 9}, {3, 1, 0, true, 0}},
     3,
     3,
     1},
    {"a tie goes to the least uid",
     {{7, 1.0}, {3, 1.0}},
     {{7, 1, 0, true, 0}, {3, 1, 0, true, 0}},
     2,
     2,
     1},
    {"priority counts inside a user only",
     {{1, 2.0}, {2, 1.0}},
     {{1, 1, 100, true, 0}, {2, 1, -5, true, 3}, {2, 1, 4, true, 8}, {2, 1, 4, true, 9}},
     2,
     4,
     2},
    {"among equals the one that came first",
     {{1, 0.0}},
     {{1, 1, 0, true, 9}, {1, 1, 0, true, 4}, {1, 1, 0, true, 6}},
     1,
     3,
     1},
    {"then the first", {{1, 0.0}}, {{1, 1, 0, true, 0}, {1, 1, 0, true, 0}}, 1, 2, 0},
    {"blocked jobs and users are passed over",
     {{1, 0.0}, {2, 9.0}},
     {{1, 1, 9, false, 0}, {2, 1, 9, false, 0}, {2, 1, 0, true, 77}},
     2,
     3,
     2},
    {"jobs of several users in between",
     {{1, 3.0}, {2, 2.0}},
     {{1, 1, 0, true, 1}, {2, 1, 0, true, 8}, {1, 1, 0, true, 2}, {2, 1, 0, true, 5}},
     2,
     4,
     3},
};

Test(turns, cases)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int got = turns_next(table[i].jobs, table[i].n_jobs, table[i].users, table[i].n_users);
        cr_assert(eq(int, got, table[i].want), "%s", table[i].what);
    }
}

static unsigned n_turns_of[1001];

static int user_of_next(struct turn_job *jobs, unsigned n_jobs, struct turn_user *users,
                        unsigned n_users, double seconds)
{
    int job = turns_next(jobs, n_jobs, users, n_users);

    if (job < 0)
        return -1;
    n_turns_of[job]++;
    for (unsigned i = 0; i < n_users; i++) {
        if (users[i].user == jobs[job].user)
            turns_charge(&users[i], jobs[job].weight, seconds);
    }
    return (int)jobs[job].user;
}

Test(turns, one_job_beside_a_thousand_never_waits_more_than_two_turns)
{
    static struct turn_job jobs[1001];
    struct turn_user users[] = {{.user = 1}, {.user = 2}};
    unsigned wait = 0, n_many = 0;

    for (unsigned i = 0; i < 1001; i++)
        jobs[i] = (struct turn_job){.user = i == 600 ? 2 : 1, .weight = 1, .is_ready = true};
    for (uint64_t turn = 1; turn <= 20000; turn++) {
        if (user_of_next(jobs, 1001, users, 2, 0.01) == 2) {
            wait = 0;
            continue;
        }
        n_many++;
        cr_assert(le(uint, ++wait, 2));
    }
    cr_assert(ge(uint, n_many, 9998));
    cr_assert(eq(uint, n_turns_of[0], n_many), "the first of the thousand had all of their turns");
}

Test(turns, equal_jobs_of_a_user_end_one_after_the_other)
{
    struct turn_user user = {.user = 1};
    struct turn_job jobs[3];
    unsigned n_left[3] = {5, 5, 5}, ended[3], n_ended = 0;

    for (unsigned i = 0; i < 3; i++) /* not in the order of their places */
        jobs[i] =
            (struct turn_job){.user = 1, .weight = 1, .is_ready = true, .order = 10 + (i + 1) % 3};
    for (unsigned turn = 0; n_ended < 3; turn++) {
        jobs[2].is_ready = turn > 2 && n_left[2] > 0; /* it waits for its client at first */
        int job = turns_next(jobs, 3, &user, 1);
        cr_assert(ge(int, job, 0));
        if (--n_left[job] > 0)
            continue;
        jobs[job].is_ready = false;
        ended[n_ended++] = (unsigned)job;
    }
    cr_assert(eq(uint, ended[0], 2), "who was blocked has kept its place");
    cr_assert(eq(uint, ended[1], 0));
    cr_assert(eq(uint, ended[2], 1));
}

/* Turns of the two jobs of one user, each as long as the other's, of n. */
static void count_turns(struct turn_job *jobs, struct turn_user *user, unsigned n, unsigned *ret_n)
{
    ret_n[0] = ret_n[1] = 0;
    for (unsigned turn = 0; turn < n; turn++) {
        int job = turns_next(jobs, 2, user, 1);
        ret_n[job]++;
        turns_charge_kind(user, jobs[job].kind, 0.001);
    }
}

Test(turns, larger_jobs_have_a_part_of_the_time_however_many_smaller_ones_come)
{
    struct turn_user user = {.user = 1};
    struct turn_job jobs[] = {{.user = 1, .weight = 1, .is_ready = true, .kind = 1, .order = 1},
                              {.user = 1, .weight = 1, .is_ready = true, .kind = 0, .order = 2}};
    unsigned n[2];

    count_turns(jobs, &user, 1000, n);
    cr_assert(eq(uint, n[0], 200), "one part in five");
    jobs[0].kind = 2;
    user = (struct turn_user){.user = 1};
    count_turns(jobs, &user, 1700, n);
    cr_assert(eq(uint, n[0], 100), "one in seventeen");
}

/* What is not ready meanwhile, or of a lower priority, saves nothing up. */
Test(turns, a_small_job_goes_first_beside_one_that_has_run_for_long)
{
    for (int lower = 0; lower <= 1; lower++) {
        struct turn_user user = {.user = 1};
        struct turn_job jobs[] = {
            {.user = 1, .weight = 1, .is_ready = true, .kind = 3, .order = 1, .priority = lower},
            {.user = 1, .weight = 1, .is_ready = lower > 0, .kind = 0, .order = 2}};
        unsigned n[2];

        for (unsigned turn = 0; turn < 1000; turn++) {
            cr_assert(eq(int, turns_next(jobs, 2, &user, 1), 0));
            turns_level_kinds(&user, jobs, 2, &jobs[0]);
            turns_charge_kind(&user, 3, 1);
        }
        turns_level_kinds(&user, jobs, 2, &jobs[0]);
        jobs[0].priority = 0;
        jobs[1].is_ready = true;
        cr_assert(eq(int, turns_next(jobs, 2, &user, 1), 1));
        count_turns(jobs, &user, 650, n);
        cr_assert(eq(uint, n[0], 10), "one in sixty-five");
    }
}

Test(turns, time_counts_not_the_number_of_turns)
{
    struct turn_job jobs[] = {{.user = 1, .weight = 1, .is_ready = true},
                              {.user = 2, .weight = 1, .is_ready = true}};
    struct turn_user users[] = {{.user = 1}, {.user = 2}};
    double seconds[3] = {0};

    for (uint64_t turn = 1; turn <= 10000; turn++) {
        int next = turns_next(jobs, 2, users, 2);
        double cost = next == 0 ? 0.05 : 0.002;
        seconds[jobs[next].user] += cost;
        user_of_next(jobs, 2, users, 2, cost);
    }
    cr_assert(lt(dbl, seconds[1] - seconds[2], 0.06));
    cr_assert(lt(dbl, -0.06, seconds[1] - seconds[2]));
}

Test(turns, weight_two_gets_two_turns_where_another_gets_one)
{
    struct turn_job jobs[] = {{.user = 1, .weight = 2, .is_ready = true},
                              {.user = 2, .weight = 1, .is_ready = true}};
    struct turn_user users[] = {{.user = 1}, {.user = 2}};
    unsigned n[3] = {0};

    for (uint64_t turn = 1; turn <= 3000; turn++)
        n[user_of_next(jobs, 2, users, 2, 0.5)]++;
    cr_assert(eq(uint, n[1], 2000));
    cr_assert(eq(uint, n[2], 1000));
}

Test(turns, who_comes_later_starts_level)
{
    const struct turn_user active[] = {{.user = 1, .virtual_time = 90},
                                       {.user = 2, .virtual_time = 70},
                                       {.user = 3, .virtual_time = 1}};
    struct turn_user user = {.user = 3, .virtual_time = 1};

    turns_enter(&user, active, 3); /* itself does not count */
    cr_assert(eq(dbl, user.virtual_time, 70));
    turns_enter(&user, NULL, 0);
    cr_assert(eq(dbl, user.virtual_time, 0));
    turns_charge(&user, 4, 2.0);
    cr_assert(eq(dbl, user.virtual_time, 0.5));
    turns_charge(&user, 4, -1.0); /* a clock that stood still is no gift */
    cr_assert(eq(dbl, user.virtual_time, 0.5));
}

Test(turns, who_is_away_is_no_measure_and_comes_back_as_far_ahead_as_before)
{
    struct turn_user users[] = {{.user = 1, .virtual_time = 90},
                                {.user = 2, .virtual_time = 70},
                                {.user = 3, .virtual_time = 10}};
    struct turn_user newcomer = {.user = 4};

    turns_go_away(&users[2], users, 3); /* behind the others */
    turns_enter(&newcomer, users, 3);
    cr_assert(eq(dbl, newcomer.virtual_time, 70), "time that stands still counts for nobody");
    turns_go_away(&users[0], users, 3); /* ahead by 20 */
    users[1].virtual_time = 500;
    turns_come_back(&users[0], users, 3);
    turns_come_back(&users[2], users, 3);
    cr_assert(eq(dbl, users[0].virtual_time, 520), "a pause pays no debt");
    cr_assert(eq(dbl, users[2].virtual_time, 500), "nor does it save turns up");
    cr_assert(not(users[0].is_away));
    cr_assert(not(users[2].is_away));
    turns_go_away(&users[1], users, 1);
    turns_come_back(&users[1], NULL, 0); /* alone */
    cr_assert(eq(dbl, users[1].virtual_time, 0));
    users[1].virtual_time = 500;
    turns_go_away(&users[2], users, 3); /* level with that, and a tile of it ends meanwhile */
    turns_charge(&users[2], 2, 8);
    users[0].virtual_time = users[1].virtual_time = 900;
    turns_come_back(&users[2], users, 3);
    cr_assert(eq(dbl, users[2].virtual_time, 904), "no tile is free");
}

Test(turns, a_job_of_an_unknown_user_is_a_fault_of_the_caller, .signal = SIGABRT)
{
    const struct turn_job jobs[] = {{.user = 5, .weight = 1, .is_ready = true}};

    (void)turns_next(jobs, 1, NULL, 0);
}
