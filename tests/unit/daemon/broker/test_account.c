/* Accounts: limits, refusals with their numbers, and that releasing gives everything back. */
#include "daemon/broker/account.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const uint64_t limits[ACCOUNT_N_RESOURCES] = {
    [ACCOUNT_SESSIONS] = 2,
    [ACCOUNT_JOBS] = 3,
    [ACCOUNT_REGION_BYTES] = UINT64_MAX,
    [ACCOUNT_DESCRIPTORS] = 10,
    [ACCOUNT_REQUEST_BYTES] = 1000,
};

static struct accounts *new_accounts(void)
{
    struct accounts *accounts = NULL;
    cr_assert(eq(int, accounts_new(limits, &accounts), 0));
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

    cr_assert(
        eq(int, account_charge(accounts, 1, ACCOUNT_REGION_BYTES, UINT64_MAX, &first, NULL), 0));
    cr_assert(eq(int, account_charge(accounts, 1, ACCOUNT_REGION_BYTES, 1, &second, NULL),
                 GAD_QUOTA_EXCEEDED));
    charge_release(&first);
    accounts_free(accounts);
}

Test(account, a_limit_that_became_lower_takes_nothing_and_gives_nothing)
{
    static const uint64_t lower[ACCOUNT_N_RESOURCES] = {[ACCOUNT_DESCRIPTORS] = 3};
    struct accounts *accounts = new_accounts();
    struct charge first = {0}, second = {0};
    struct gad_error error = {0};

    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 8, &first, NULL), 0));
    accounts_set_limits(accounts, lower);
    cr_assert(eq(u64, account_use(accounts, 7, ACCOUNT_DESCRIPTORS), 8));
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 1, &second, &error),
                 GAD_QUOTA_EXCEEDED));
    cr_assert(ne(ptr, strstr(error.expected, "3"), NULL));
    charge_release(&first);
    cr_assert(eq(int, account_charge(accounts, 7, ACCOUNT_DESCRIPTORS, 3, &second, NULL), 0));
    charge_release(&second);
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
