/* Accounts: one per user that holds anything, with a sum per resource.
 *
 * A user is a uid as SO_PEERCRED said it. An account lives as long as one charge on it, and until
 * what was spent is forgotten, which nobody escapes by leaving; a charge points at its account, so
 * giving back needs no look-up and cannot fail. Limits are the same for
 * every user but those who have terms of their own. There are as many accounts as users that are
 * connected: a list is enough.
 *
 * The share of a total is of what the others leave, so it shrinks as they come, but never to
 * nothing: alone a user may hold a half, then the next a third of what is left, then a quarter.
 * Who holds more than the share has become keeps it.
 *
 * Invariants: use[r] is the sum of the amounts of the charges on r, or what was spent of it,
 * total[r] that of all uses, and n_users[r] counts the users whose use is not 0. Called by server.c
 * and session.c (sessions, messages), submit.c and dispatch.c (jobs), finish.c (replies) and
 * region.c.
 */
#include "daemon/broker/sessions/account.h"
#include "daemon/broker/list.h"
#include "proto/util.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_HOLDERS  3u
#define FORGET_NS     UINT64_C(1000000000)
#define FORGET_PART   8u /* of what was spent */
#define FORGET_ALL_NS (256 * FORGET_NS)

struct said_weight { /* by an admin */
    struct list link;
    uid_t uid;
    uint32_t weight;
};

struct terms {
    uint64_t limits[ACCOUNT_N_RESOURCES];
    uint32_t weight;
};

struct account {
    struct accounts *accounts;
    struct terms *terms; /* NULL: as everybody */
    struct list link;
    uid_t uid;
    uint64_t n_charges;
    uint64_t use[ACCOUNT_N_RESOURCES];
};

struct accounts {
    struct list all;
    struct list weights; /* few */
    unsigned n, n_weights;
    struct account_limits limits;
    uint64_t total[ACCOUNT_N_RESOURCES];
    unsigned n_users[ACCOUNT_N_RESOURCES];
    uint64_t forgot_ns; /* when last */
};

static const char *const resource_names[ACCOUNT_N_RESOURCES] = {
    [ACCOUNT_SESSIONS] = "sessions",
    [ACCOUNT_RESERVE] = "sessions in reserve",
    [ACCOUNT_REFUSED] = "sessions that are refused",
    [ACCOUNT_JOBS] = "jobs queued or running",
    [ACCOUNT_SCANS] = "readers of shared scans",
    [ACCOUNT_WAITS] = "requests that wait",
    [ACCOUNT_REGION_BYTES] = "bytes of regions",
    [ACCOUNT_DESCRIPTORS] = "descriptors",
    [ACCOUNT_REQUEST_BYTES] = "bytes of requests",
    [ACCOUNT_MESSAGE_BYTES] = "bytes of large messages",
    [ACCOUNT_REPLY_BYTES] = "bytes of unread replies",
    [ACCOUNT_COMING_BYTES] = "bytes of replies under way",
    [ACCOUNT_PLAN_NS] = "nanoseconds of planning lately",
    [ACCOUNT_LOG_LINES] = "lines of the log lately",
};

static const char *const resource_keys[ACCOUNT_N_RESOURCES] = {
    [ACCOUNT_SESSIONS] = "sessions",
    [ACCOUNT_RESERVE] = "reserve",
    [ACCOUNT_REFUSED] = "refused",
    [ACCOUNT_JOBS] = "jobs",
    [ACCOUNT_SCANS] = "scans",
    [ACCOUNT_WAITS] = "waits",
    [ACCOUNT_REGION_BYTES] = "region_bytes",
    [ACCOUNT_DESCRIPTORS] = "descriptors",
    [ACCOUNT_REQUEST_BYTES] = "request_bytes",
    [ACCOUNT_MESSAGE_BYTES] = "message_bytes",
    [ACCOUNT_REPLY_BYTES] = "reply_bytes",
    [ACCOUNT_COMING_BYTES] = "coming_bytes",
    [ACCOUNT_PLAN_NS] = "plan_ns",
    [ACCOUNT_LOG_LINES] = "log_lines",
};

const char *account_resource_key(enum account_resource resource)
{
    return resource_keys[resource];
}

int accounts_new(const struct account_limits *limits, struct accounts **ret_accounts)
{
    struct accounts *accounts = calloc(1, sizeof(*accounts));
    if (!accounts)
        return -ENOMEM;
    list_init(&accounts->all);
    list_init(&accounts->weights);
    accounts->limits = *limits;
    *ret_accounts = accounts;
    return 0;
}

void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits)
{
    accounts->limits = *limits;
}

static void add(struct account *account, enum account_resource resource, uint64_t amount)
{
    struct accounts *accounts = account->accounts;
    accounts->n_users[resource] += account->use[resource] == 0 && amount > 0;
    account->use[resource] += amount;
    accounts->total[resource] += amount;
}

static void subtract(struct account *account, enum account_resource resource, uint64_t amount)
{
    struct accounts *accounts = account->accounts;
    account->use[resource] -= amount;
    accounts->total[resource] -= amount;
    accounts->n_users[resource] -= account->use[resource] == 0 && amount > 0;
}

static bool has_spent(const struct account *account)
{
    for (unsigned i = ACCOUNT_FIRST_SPENT; i < ACCOUNT_N_RESOURCES; i++)
        if (account->use[i] > 0)
            return true;
    return false;
}

static void drop_if_unused(struct account *account)
{
    if (account->n_charges == 0 && !has_spent(account)) {
        list_remove(&account->link);
        account->accounts->n--;
        free(account->terms);
        free(account);
    }
}

/* Whether there was any. */
static bool forget_some(struct accounts *accounts)
{
    bool has_any = false;
    list_for_each_safe (it, next, &accounts->all) {
        struct account *account = list_entry(it, struct account, link);
        for (unsigned i = ACCOUNT_FIRST_SPENT; i < ACCOUNT_N_RESOURCES; i++) {
            has_any |= account->use[i] > 0;
            subtract(account, (enum account_resource)i,
                     (account->use[i] + FORGET_PART - 1) / FORGET_PART);
        }
        drop_if_unused(account);
    }
    return has_any;
}

struct accounts *accounts_free(struct accounts *accounts)
{
    if (!accounts)
        return NULL;
    while (forget_some(accounts))
        ;
    assert(list_is_empty(&accounts->all));
    accounts_forget_weights(accounts);
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
    accounts->n++;
    return account;
}

static uint64_t use_of(const struct account *account, enum account_resource resource)
{
    return account ? account->use[resource] : 0;
}

void accounts_set_terms(struct accounts *accounts, uid_t uid,
                        const uint64_t limits[ACCOUNT_N_RESOURCES], uint32_t weight)
{
    struct account *account = find(accounts, uid);
    if (account && !account->terms)
        account->terms = calloc(1, sizeof(*account->terms));
    if (!account || !account->terms)
        return;
    memcpy(account->terms->limits, limits, sizeof(account->terms->limits));
    account->terms->weight = weight;
}

void accounts_forget_terms(struct accounts *accounts, uid_t uid)
{
    struct account *account = find(accounts, uid);
    if (account)
        free(steal_ptr(account->terms));
}

static struct said_weight *find_said(const struct accounts *accounts, uid_t uid)
{
    list_for_each (it, &accounts->weights) {
        struct said_weight *said = list_entry(it, struct said_weight, link);
        if (said->uid == uid)
            return said;
    }
    return NULL;
}

static void forget_said(struct accounts *accounts, struct said_weight *said)
{
    list_remove(&said->link);
    accounts->n_weights--;
    free(said);
}

static int add_said(struct accounts *accounts, uid_t uid, struct said_weight **ret_said,
                    struct gad_error *error)
{
    if (accounts->n_weights == ACCOUNT_MAX_WEIGHTS) {
        error_set(error, GAD_LIMIT_EXCEEDED, "weight", "weights of %u users were said already",
                  ACCOUNT_MAX_WEIGHTS);
        error_expected(error, "at most %u", ACCOUNT_MAX_WEIGHTS);
        return GAD_LIMIT_EXCEEDED;
    }
    struct said_weight *said = calloc(1, sizeof(*said));
    if (!said)
        return -ENOMEM;
    said->uid = uid;
    list_push_back(&accounts->weights, &said->link);
    accounts->n_weights++;
    *ret_said = said;
    return 0;
}

int accounts_set_weight(struct accounts *accounts, uid_t uid, uint32_t weight,
                        struct gad_error *error)
{
    struct said_weight *said = find_said(accounts, uid);
    if (weight == 0) {
        if (said)
            forget_said(accounts, said);
        return 0;
    }
    int r = said ? 0 : add_said(accounts, uid, &said, error);
    if (r == 0)
        said->weight = weight;
    return r;
}

void accounts_forget_weights(struct accounts *accounts)
{
    struct list *first;
    while ((first = list_first(&accounts->weights)))
        forget_said(accounts, list_entry(first, struct said_weight, link));
}

static uint32_t own_weight_of(const struct accounts *accounts, const struct account *account)
{
    return account && account->terms ? account->terms->weight : accounts->limits.weight;
}

uint32_t account_weight(const struct accounts *accounts, uid_t uid)
{
    const struct said_weight *said = find_said(accounts, uid);
    return said ? said->weight : own_weight_of(accounts, find(accounts, uid));
}

/* account NULL: of a user who holds nothing at all. */
static uint64_t own_limit_of(const struct accounts *accounts, const struct account *account,
                             enum account_resource resource)
{
    return account && account->terms ? account->terms->limits[resource]
                                     : accounts->limits.user[resource];
}

/* As above, and of what the others leave. */
static uint64_t limit_of(const struct accounts *accounts, const struct account *account,
                         enum account_resource resource)
{
    uint64_t use = use_of(account, resource), total = accounts->limits.total[resource];
    uint64_t of_others = accounts->total[resource] - use;
    uint64_t n_others = accounts->n_users[resource] - (use > 0 ? 1u : 0u);
    uint64_t left = total > of_others ? total - of_others : 0;
    return min_u64(own_limit_of(accounts, account, resource), left / (n_others + 2));
}

static bool has_room(const struct accounts *accounts, const struct account *account,
                     enum account_resource resource, uint64_t amount)
{
    uint64_t limit = limit_of(accounts, account, resource), use = use_of(account, resource);
    return use <= limit && amount <= limit - use;
}

uint64_t account_limit(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return limit_of(accounts, find(accounts, uid), resource);
}

bool account_has_room(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                      uint64_t amount)
{
    return has_room(accounts, find(accounts, uid), resource, amount);
}

bool account_is_over(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return !account_has_room(accounts, uid, resource, 0);
}

/* The others who hold most of it. */
static void describe_holders(const struct accounts *accounts, uid_t uid,
                             enum account_resource resource, char *text, size_t n_bytes)
{
    const struct account *told[TOLD_HOLDERS] = {NULL};
    size_t n = 0;
    list_for_each (it, &accounts->all) {
        const struct account *account = list_entry(it, struct account, link);
        if (account->uid == uid || account->use[resource] == 0)
            continue;
        for (unsigned i = 0; i < TOLD_HOLDERS && account; i++)
            if (!told[i] || account->use[resource] > told[i]->use[resource]) {
                const struct account *smaller = told[i];
                told[i] = account;
                account = smaller;
            }
    }
    for (unsigned i = 0; i < TOLD_HOLDERS && told[i] && n < n_bytes; i++)
        n += (size_t)snprintf(text + n, n_bytes - n, "%s uid %lu has %llu", n > 0 ? "," : ":",
                              (unsigned long)told[i]->uid,
                              (unsigned long long)told[i]->use[resource]);
}

/* The error of a charge that is refused, with the numbers of this moment. Returns its code. */
static int account_refuse(const struct accounts *accounts, uid_t uid,
                          enum account_resource resource, uint64_t amount, struct gad_error *error)
{
    const struct account *account = find(accounts, uid);
    const char *name = resource_names[resource];
    unsigned long long limit = limit_of(accounts, account, resource), wanted = amount;
    unsigned long long use = use_of(account, resource);
    char holders[128] = "";
    bool is_share = limit < own_limit_of(accounts, account, resource);
    if (is_share)
        describe_holders(accounts, uid, resource, holders, sizeof(holders));
    error_set(error, GAD_QUOTA_EXCEEDED, name,
              "quota: %s: %llu more wanted, %llu of %llu are in use%s%s%s", name, wanted, use,
              limit, is_share ? " (a share of what other users leave" : "", holders,
              is_share ? ")" : "");
    error_expected(error, "at most %llu", limit);
    error_found(error, "%llu in use, %llu more wanted", use, wanted);
    return GAD_QUOTA_EXCEEDED;
}

static void make_charge(struct account *account, enum account_resource resource, uint64_t amount,
                        struct charge *ret_charge)
{
    add(account, resource, amount);
    account->n_charges++;
    *ret_charge = (struct charge){.account = account, .resource = resource, .amount = amount};
}

int account_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount, struct charge *ret_charge, struct gad_error *error)
{
    assert(!ret_charge->account);
    struct account *account = find_or_add(accounts, uid);
    if (!account)
        return -ENOMEM;
    if (!has_room(accounts, account, resource, amount)) {
        drop_if_unused(account);
        return account_refuse(accounts, uid, resource, amount, error);
    }
    make_charge(account, resource, amount, ret_charge);
    return 0;
}

void account_set_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                        uint64_t amount, struct charge *charge)
{
    struct account *account = charge->account;
    if (account) {
        assert(charge->resource == resource && account->uid == uid);
        subtract(account, resource, charge->amount);
        add(account, resource, amount);
        charge->amount = amount;
    } else if ((account = find_or_add(accounts, uid))) {
        make_charge(account, resource, amount, charge);
    }
}

void charge_release(struct charge *charge)
{
    struct account *account = steal_ptr(charge->account);
    if (!account)
        return;
    subtract(account, charge->resource, charge->amount);
    account->n_charges--;
    charge->amount = 0;
    drop_if_unused(account);
}

void account_spend(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount)
{
    struct account *account = amount > 0 ? find_or_add(accounts, uid) : NULL;
    assert(resource >= ACCOUNT_FIRST_SPENT);
    if (account)
        add(account, resource, amount);
}

int account_check(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                  struct gad_error *error)
{
    return account_has_room(accounts, uid, resource, 1)
               ? 0
               : account_refuse(accounts, uid, resource, 1, error);
}

void accounts_forget(struct accounts *accounts, uint64_t now_ns)
{
    if (now_ns - accounts->forgot_ns > FORGET_ALL_NS)
        accounts->forgot_ns = now_ns - FORGET_ALL_NS;
    while (now_ns - accounts->forgot_ns >= FORGET_NS) {
        accounts->forgot_ns += FORGET_NS;
        forget_some(accounts);
    }
}

uint64_t account_use(const struct accounts *accounts, uid_t uid, enum account_resource resource)
{
    return use_of(find(accounts, uid), resource);
}

uint64_t accounts_total(const struct accounts *accounts, enum account_resource resource)
{
    return accounts->total[resource];
}

static struct account_state state_of(const struct accounts *accounts, const struct account *account)
{
    const struct said_weight *said = find_said(accounts, account->uid);
    struct account_state state = {.uid = account->uid,
                                  .weight = said ? said->weight : own_weight_of(accounts, account),
                                  .is_weight_said = said != NULL};
    for (unsigned i = 0; i < ACCOUNT_N_RESOURCES; i++) {
        enum account_resource resource = (enum account_resource)i;
        state.use[i] = account->use[i];
        state.limit[i] = own_limit_of(accounts, account, resource);
        state.share[i] = limit_of(accounts, account, resource);
    }
    return state;
}

void accounts_for_each(const struct accounts *accounts,
                       bool (*func)(void *userdata, const struct account_state *state),
                       void *userdata)
{
    list_for_each (it, &accounts->all) {
        if (list_entry(it, struct account, link)->n_charges == 0)
            continue;
        struct account_state state = state_of(accounts, list_entry(it, struct account, link));
        if (!func(userdata, &state))
            return;
    }
}

unsigned accounts_n(const struct accounts *accounts)
{
    return accounts->n;
}
