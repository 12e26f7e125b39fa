/* Accounts: limits, refusals with their numbers, and that releasing gives everything back. */
#include "daemon/broker/sessions/account.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const struct account_limits limits = {
    .user =
        {
            [ACCOUNT_SESSIONS] = 2,
            [ACCOUNT_JOBS] = 3,
            [ACCOUNT_REGION_BYTES] = UINT64_MAX,
            [ACCOUNT_DESCRIPTORS] = 10,
            [ACCOUNT_REQUEST_BYTES] = 1000,
            [ACCOUNT_REPLY_BYTES] = 100,
            [ACCOUNT_PLAN_NS] = 800,
        },
    .total =
        {
            [ACCOUNT_SESSIONS] = 100,
            [ACCOUNT_JOBS] = 100,
            [ACCOUNT_REGION_BYTES] = UINT64_MAX,
            [ACCOUNT_DESCRIPTORS] = 40,
            [ACCOUNT_REQUEST_BYTES] = 2000,
            [ACCOUNT_REPLY_BYTES] = 200,
            [ACCOUNT_PLAN_NS] = 1600,
        },
};

static struct accounts *new_accounts(void)
{
    struct accounts *accounts = NULL;
    cr_assert(eq(int, accounts_new(&limits, &accounts), 0));
    return accounts;
}

Test(account, a_charge_counts_until_it_is_released)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0};

    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 4, &charge, NULL), 0));
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_DESCRIPTORS), 4));
    cr_assert(eq(u64, account_use(accounts, 8, ACCOUNT_DESCRIPTORS), 0));
    cr_assert(eq(u64, accounts_total(accounts, ACCOUNT_DESCRIPTORS), 4));
    charge_release(&charge);
    charge_release(&charge);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_DESCRIPTORS), 0));
    cr_assert(eq(u64, accounts_total(accounts, ACCOUNT_DESCRIPTORS), 0));
    accounts_free(accounts);
}

/* Terms are of one user, as long as anything is held. */
Test(account, a_user_may_have_other_terms_than_the_others)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0}, second = {0};
    uint64_t own[ACCOUNT_N_RESOURCES] = {[ACCOUNT_SESSIONS] = 1, [ACCOUNT_DESCRIPTORS] = 20};

    accounts_set_terms(accounts, 7, own, 5); /* who holds nothing has no account */
    cr_expect(eq(u32, account_weight(accounts, 7), 0));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_SESSIONS, 1, &charge, NULL), 0));
    accounts_set_terms(accounts, 7, own, 5);
    cr_expect(eq(u32, account_weight(accounts, 7), 5));
    cr_expect(eq(u32, account_weight(accounts, 8), 0));
    cr_expect(eq(u64, account_limit(accounts, 7, ACCOUNT_DESCRIPTORS), 20));
    cr_expect(eq(u64, account_limit(accounts, 8, ACCOUNT_DESCRIPTORS), 10));
    cr_expect(not(account_has_room(accounts, 7, ACCOUNT_SESSIONS, 1)));
    accounts_forget_terms(accounts, 7);
    cr_expect(account_has_room(accounts, 7, ACCOUNT_SESSIONS, 1));
    accounts_set_terms(accounts, 7, own, 5);
    charge_release(&charge);
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_SESSIONS, 2, &second, NULL), 0));
    charge_release(&second);
    accounts_free(accounts);
}

Test(account, refuses_what_is_over_the_limit_with_limit_and_use)
{
    struct accounts *accounts = new_accounts();
    struct charge first = {0}, second = {0};
    struct gad_error error = {0};

    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 8, &first, NULL), 0));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 3, &second, &error),
                 GAD_QUOTA_EXCEEDED));
    cr_assert(eq(ptr, second.account, NULL));
    cr_assert(ne(ptr, strstr(error.expected, "10"), NULL));
    cr_assert(ne(ptr, strstr(error.found, "8"), NULL));
    cr_assert(ne(ptr, strstr(error.found, "3"), NULL));
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_DESCRIPTORS), 8));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 2, &second, NULL), 0));
    charge_release(&first);
    charge_release(&second);
    accounts_free(accounts);
}

Test(account, users_do_not_share_a_limit)
{
    struct accounts *accounts = new_accounts();
    struct charge charges[4] = {0}, refused = {0};

    for (unsigned i = 0; i < 4; i++)
        cr_assert(
            eq(int, account_charge(accounts, i / 2, ACCOUNT_SESSIONS, 1, &charges[i], NULL), 0));
    cr_assert(eq(int, account_charge(accounts, 0, ACCOUNT_SESSIONS, 1, &refused, NULL),
                 GAD_QUOTA_EXCEEDED));
    for (unsigned i = 0; i < 4; i++)
        charge_release(&charges[i]);
    accounts_free(accounts);
}

Test(account, sums_do_not_wrap_around)
{
    struct accounts *accounts = new_accounts();
    struct charge first = {0}, second = {0};
    struct gad_error error;

    cr_assert(eq(
        int, account_charge(accounts, 1, ACCOUNT_REGION_BYTES, UINT64_MAX / 2, &first, NULL), 0));
    cr_assert(eq(int,
                 account_charge(accounts, 1, ACCOUNT_REGION_BYTES, UINT64_MAX, &second, &error),
                 GAD_QUOTA_EXCEEDED));
    cr_assert(eq(int,
                 account_charge(accounts, 2, ACCOUNT_REGION_BYTES, UINT64_MAX, &second, &error),
                 GAD_QUOTA_EXCEEDED));
    charge_release(&first);
    accounts_free(accounts);
}

Test(account, a_limit_that_became_lower_takes_nothing_and_gives_nothing)
{
    static const struct account_limits lower = {.user = {[ACCOUNT_DESCRIPTORS] = 3},
                                                .total = {[ACCOUNT_DESCRIPTORS] = 40}};
    struct accounts *accounts = new_accounts();
    struct charge first = {0}, second = {0};
    struct gad_error error = {0};

    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 8, &first, NULL), 0));
    accounts_set_limits(accounts, &lower);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_DESCRIPTORS), 8));
    cr_assert(account_is_over(accounts, 7, ACCOUNT_DESCRIPTORS));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 1, &second, &error),
                 GAD_QUOTA_EXCEEDED));
    cr_assert(ne(ptr, strstr(error.expected, "3"), NULL));
    charge_release(&first);
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 3, &second, NULL), 0));
    charge_release(&second);
    accounts_free(accounts);
}

/* As much as there is, one piece after the other; how much that was. */
static uint64_t take_all(struct accounts *accounts, uid_t uid, struct charge *charge,
                         struct gad_error *error)
{
    uint64_t amount = account_limit(accounts, uid, ACCOUNT_DESCRIPTORS);
    cr_assert(
        eq(int, account_charge(accounts, uid, ACCOUNT_DESCRIPTORS, amount, charge, error), 0));
    cr_assert(not(account_has_room(accounts, uid, ACCOUNT_DESCRIPTORS, 1)));
    return amount;
}

Test(account, whatever_others_took_a_newcomer_gets_a_share_of_what_is_left)
{
    static const uint64_t want[] = {10, 10, 5, 3, 2, 1, 1};
    enum { N_USERS = ARRAY_LENGTH(want) };
    struct accounts *accounts = new_accounts();
    struct charge charges[N_USERS] = {0}, more = {0};
    struct gad_error error = {0};

    for (unsigned i = 0; i < N_USERS; i++)
        cr_expect(eq(u64, take_all(accounts, 100 + i, &charges[i], &error), want[i]));
    cr_assert(le(u64, accounts_total(accounts, ACCOUNT_DESCRIPTORS), 40));
    int r = account_charge(accounts, 104, ACCOUNT_DESCRIPTORS, 5, &more, &error);
    cr_assert(eq(int, r, GAD_QUOTA_EXCEEDED));
    cr_assert(ne(ptr, strstr(error.message, "5 more wanted, 2 of 1 are in use"), NULL));
    cr_assert(ne(ptr,
                 strstr(error.message, "(a share of what other users leave: uid 100 has 10, uid "
                                       "101 has 10, uid 102 has 5)"),
                 NULL),
              "%s", error.message);
    for (unsigned i = 0; i < N_USERS; i++)
        charge_release(&charges[i]);
    cr_assert(eq(u64, account_limit(accounts, 1, ACCOUNT_DESCRIPTORS), 10));
    accounts_free(accounts);
}

Test(account, a_share_grows_again_when_others_leave)
{
    struct accounts *accounts = new_accounts();
    struct charge first = {0}, second = {0}, third = {0};

    cr_assert(eq(int, account_charge(accounts, 1, ACCOUNT_DESCRIPTORS, 10, &first, NULL), 0));
    cr_assert(eq(int, account_charge(accounts, 2, ACCOUNT_DESCRIPTORS, 10, &second, NULL), 0));
    cr_assert(eq(u64, account_limit(accounts, 3, ACCOUNT_DESCRIPTORS), 5));
    charge_release(&first);
    cr_assert(eq(u64, account_limit(accounts, 3, ACCOUNT_DESCRIPTORS), 10));
    cr_assert(eq(int, account_charge(accounts, 3, ACCOUNT_DESCRIPTORS, 0, &third, NULL), 0));
    cr_assert(eq(u64, account_limit(accounts, 2, ACCOUNT_DESCRIPTORS), 10)); /* 0 is none */
    charge_release(&second);
    charge_release(&third);
    accounts_free(accounts);
}

Test(account, what_is_there_is_counted_over_the_limit_too)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0}, other = {0};

    account_set_charge(accounts, 7, ACCOUNT_REPLY_BYTES, 90, &charge);
    cr_assert(not(account_is_over(accounts, 7, ACCOUNT_REPLY_BYTES)));
    account_set_charge(accounts, 7, ACCOUNT_REPLY_BYTES, 300, &charge);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_REPLY_BYTES), 300));
    cr_assert(account_is_over(accounts, 7, ACCOUNT_REPLY_BYTES));
    cr_assert(zero(u64, account_limit(accounts, 8, ACCOUNT_REPLY_BYTES)));
    account_set_charge(accounts, 7, ACCOUNT_REPLY_BYTES, 0, &charge);
    cr_assert(not(account_is_over(accounts, 7, ACCOUNT_REPLY_BYTES)));
    cr_assert(eq(int, account_charge(accounts, 8, ACCOUNT_REPLY_BYTES, 100, &other, NULL), 0));
    charge_release(&charge);
    charge_release(&other);
    accounts_free(accounts);
}

Test(account, a_refused_first_charge_leaves_no_account)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0};

    cr_assert(
        eq(int, account_charge(accounts, 1, ACCOUNT_JOBS, 4, &charge, NULL), GAD_QUOTA_EXCEEDED));
    accounts_free(accounts); /* asserts that there is none */
    cr_assert(eq(ptr, accounts_free(NULL), NULL));
}

struct seen {
    unsigned n;
    struct account_state last;
};

static bool see(void *userdata, const struct account_state *state)
{
    struct seen *seen = userdata;
    seen->n++;
    seen->last = *state;
    return true;
}

Test(account, says_what_each_user_holds_and_may_hold)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0}, other = {0};
    struct seen seen = {0};

    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 4, &charge, NULL), 0));
    accounts_for_each(accounts, see, &seen);
    cr_assert(eq(uint, seen.n, 1));
    cr_assert(eq(uint, seen.last.uid, 7));
    cr_assert(eq(u64, seen.last.use[ACCOUNT_DESCRIPTORS], 4));
    cr_assert(eq(u64, seen.last.limit[ACCOUNT_DESCRIPTORS], 10));
    cr_assert(eq(u64, seen.last.share[ACCOUNT_DESCRIPTORS], 10));
    cr_assert(eq(int, account_charge(accounts, 8, ACCOUNT_DESCRIPTORS, 10, &other, NULL), 0));
    cr_assert(eq(uint, accounts_n(accounts), 2));
    charge_release(&charge);
    seen.n = 0;
    accounts_for_each(accounts, see, &seen);
    cr_assert(eq(uint, seen.n, 1));
    cr_assert(eq(uint, seen.last.uid, 8));
    charge_release(&other);
    cr_assert(eq(uint, accounts_n(accounts), 0));
    accounts_free(accounts);
}

/* Before terms, and whether the user holds anything or not. */
Test(account, an_admins_word_on_a_weight_comes_first_until_it_is_taken_back)
{
    struct accounts *accounts = new_accounts();
    struct charge charge = {0};
    const uint64_t own[ACCOUNT_N_RESOURCES] = {[ACCOUNT_SESSIONS] = 1};
    struct seen seen = {0};
    struct gad_error error;

    cr_assert(eq(int, accounts_set_weight(accounts, 7, 40, NULL), 0));
    cr_assert(eq(uint, account_weight(accounts, 7), 40));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_SESSIONS, 1, &charge, NULL), 0));
    accounts_set_terms(accounts, 7, own, 5);
    cr_assert(eq(uint, account_weight(accounts, 7), 40));
    accounts_for_each(accounts, see, &seen);
    cr_assert(seen.last.is_weight_said && seen.last.weight == 40);
    cr_assert(eq(int, accounts_set_weight(accounts, 7, 30, NULL), 0));
    cr_assert(eq(uint, account_weight(accounts, 7), 30));
    cr_assert(eq(int, accounts_set_weight(accounts, 7, 0, NULL), 0));
    cr_assert(eq(uint, account_weight(accounts, 7), 5));
    cr_assert(eq(int, accounts_set_weight(accounts, 7, 0, NULL), 0)); /* nothing was said */
    for (uid_t uid = 0; uid < ACCOUNT_MAX_WEIGHTS; uid++)
        cr_assert(eq(int, accounts_set_weight(accounts, 1000 + uid, 2, NULL), 0));
    cr_assert(eq(int, accounts_set_weight(accounts, 7, 2, &error), GAD_LIMIT_EXCEEDED));
    cr_assert(eq(int, accounts_set_weight(accounts, 1000, 3, &error), 0)); /* instead of another */
    accounts_forget_weights(accounts);
    cr_assert(eq(uint, account_weight(accounts, 1000), account_weight(accounts, 9)));
    charge_release(&charge);
    accounts_free(accounts);
}

static bool count_told(void *userdata, const struct account_state *state)
{
    (void)state;
    ++*(unsigned *)userdata;
    return true;
}

Test(account, what_is_spent_is_forgotten_in_time_and_not_by_leaving)
{
    const uint64_t second = UINT64_C(1000000000);
    struct accounts *accounts = new_accounts();
    struct charge charge = {0};
    struct gad_error error;
    unsigned n_told = 0;

    accounts_forget(accounts, 1000 * second);
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_SESSIONS, 1, &charge, &error), 0));
    account_spend(accounts, 7, ACCOUNT_PLAN_NS, 790);
    cr_assert(eq(int, account_check(accounts, 7, ACCOUNT_PLAN_NS, &error), 0));
    account_spend(accounts, 7, ACCOUNT_PLAN_NS, 90); /* it was begun, and is done */
    cr_assert(eq(int, account_check(accounts, 7, ACCOUNT_PLAN_NS, &error), GAD_QUOTA_EXCEEDED));
    charge_release(&charge);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_PLAN_NS), 880));
    accounts_for_each(accounts, count_told, &n_told);
    cr_assert(eq(uint, n_told, 0)); /* nobody is there */
    cr_assert(eq(int, account_check(accounts, 8, ACCOUNT_PLAN_NS, &error), 0));
    account_spend(accounts, 8, ACCOUNT_PLAN_NS, 300); /* a third of what 7 leaves is 240 */
    cr_assert(eq(int, account_check(accounts, 8, ACCOUNT_PLAN_NS, &error), GAD_QUOTA_EXCEEDED));
    cr_assert(ne(ptr, strstr(error.message, "uid 7 has 880"), NULL), "%s", error.message);
    accounts_forget(accounts, 1001 * second);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_PLAN_NS), 770));
    cr_assert(eq(u64, accounts_total(accounts, ACCOUNT_PLAN_NS), 770 + 262));
    accounts_forget(accounts, 5000 * second);
    cr_assert(eq(uint, accounts_n(accounts), 0));
    account_spend(accounts, 9, ACCOUNT_PLAN_NS, 1);
    accounts_free(accounts);
}
