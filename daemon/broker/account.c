/* Accounts: one per user that holds anything, with a sum per resource.
 *
 * A user is a uid as SO_PEERCRED said it. An account lives as long as one charge on it; a charge
 * points at its account, so giving back needs no look-up and cannot fail. Limits are the same for
 * every user. There are as many accounts as users that are connected: a list is enough.
 *
 * Invariant: use[r] is the sum of the amounts of the charges on r, and never above limits[r] but
 * where that was lowered later.
 * Called by server.c (sessions), session.c (messages), submit.c (jobs) and region.c.
 */
#include "daemon/broker/account.h"
#include "daemon/broker/list.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

struct account {
    struct accounts *accounts;
    struct list link;
    uid_t uid;
    uint64_t n_charges;
    uint64_t use[ACCOUNT_N_RESOURCES];
};

struct accounts {
    struct list all;
    uint64_t limits[ACCOUNT_N_RESOURCES];
    uint64_t total[ACCOUNT_N_RESOURCES];
};

static const char *const resource_names[ACCOUNT_N_RESOURCES] = {
    [ACCOUNT_SESSIONS] = "sessions",
    [ACCOUNT_JOBS] = "jobs queued or running",
    [ACCOUNT_REGION_BYTES] = "bytes of regions",
    [ACCOUNT_DESCRIPTORS] = "descriptors",
    [ACCOUNT_REQUEST_BYTES] = "bytes of requests",
};

int accounts_new(const uint64_t *limits, struct accounts **ret_accounts)
{
    struct accounts *accounts = calloc(1, sizeof(*accounts));
    if (!accounts)
        return -ENOMEM;
    list_init(&accounts->all);
    memcpy(accounts->limits, limits, sizeof(accounts->limits));
    *ret_accounts = accounts;
    return 0;
}

void accounts_set_limits(struct accounts *accounts, const uint64_t *limits)
{
    memcpy(accounts->limits, limits, sizeof(accounts->limits));
}

struct accounts *accounts_free(struct accounts *accounts)
{
    if (accounts)
        assert(list_is_empty(&accounts->all));
    free(accounts);
    return NULL;
}

static struct account *find(const struct accounts *accounts, uid_t uid)
{
    list_for_each (it, &accounts->all) {
        struct account *account = list_entry(it, struct account, link);
        if (account->uid == uid)
            return account;
    }
    return NULL;
}

static struct account *find_or_add(struct accounts *accounts, uid_t uid)
{
    struct account *account = find(accounts, uid);
    if (account)
        return account;
    account = calloc(1, sizeof(*account));
    if (!account)
        return NULL;
    account->accounts = accounts;
    account->uid = uid;
    list_push_back(&accounts->all, &account->link);
    return account;
}

static void drop_if_unused(struct account *account)
{
    if (account->n_charges == 0) {
        list_remove(&account->link);
        free(account);
    }
}

static int refuse(struct gad_error *error, enum account_resource resource, uint64_t limit,
                  uint64_t use, uint64_t amount)
{
    error_set(error, GAD_QUOTA_EXCEEDED, resource_names[resource],
              "quota: %s: %llu more wanted, %llu of %llu are in use", resource_names[resource],
              (unsigned long long)amount, (unsigned long long)use, (unsigned long long)limit);
    error_expected(error, "at most %llu", (unsigned long long)limit);
    error_found(error, "%llu in use, %llu more wanted", (unsigned long long)use,
                (unsigned long long)amount);
    return GAD_QUOTA_EXCEEDED;
}

int account_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount, struct charge *ret_charge, struct gad_error *error)
{
    assert(!ret_charge->account);
    struct account *account = find_or_add(accounts, uid);
    if (!account)
        return -ENOMEM;
    uint64_t limit = accounts->limits[resource], use = account->use[resource];
    if (use > limit || amount > limit - use) {
        drop_if_unused(account);
        return refuse(error, resource, limit, use, amount);
    }
    account->use[resource] += amount;
    accounts->total[resource] += amount;
    account->n_charges++;
    *ret_charge = (struct charge){.account = account, .resource = resource, .amount = amount};
    return 0;
}

void charge_release(struct charge *charge)
{
    struct account *account = steal_ptr(charge->account);
    if (!account)
        return;
    account->use[charge->resource] -= charge->amount;
    account->accounts->total[charge->resource] -= charge->amount;
    account->n_charges--;
    charge->amount = 0;
    drop_if_unused(account);
}

uint64_t account_use(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    const struct account *account = find(accounts, uid);
    return account ? account->use[resource] : 0;
}

uint64_t accounts_total(const struct accounts *accounts, enum account_resource resource)
{
    return accounts->total[resource];
}
