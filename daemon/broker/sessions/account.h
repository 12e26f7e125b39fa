/* Accounts: what each user holds, against what a user may hold. A charge is an object inside the
 * resource it pays for; releasing it gives the amount back, whatever way the resource goes.
 *
 * A user may hold as much as the limit says, and no more than a share of what the others leave of
 * the total: with n users who hold some, one part in n + 1. So whatever the others took, a
 * newcomer gets something. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum account_resource {
    ACCOUNT_SESSIONS,
    ACCOUNT_RESERVE, /* sessions beyond these, which may only look and cancel */
    ACCOUNT_REFUSED, /* and those that are only told why they may not stay */
    ACCOUNT_JOBS,    /* queued, running, settling */
    ACCOUNT_SCANS,   /* shared ones that are read from, or will be */
    ACCOUNT_WAITS,   /* requests that wait for a job's end */
    ACCOUNT_REGION_BYTES,
    ACCOUNT_DESCRIPTORS,   /* kept for jobs and regions, and of messages not read yet */
    ACCOUNT_REQUEST_BYTES, /* messages kept for jobs */
    ACCOUNT_MESSAGE_BYTES, /* large messages: that come, wait, or are of jobs not computed yet */
    ACCOUNT_REPLY_BYTES,   /* that the user's connections have not read */
    ACCOUNT_COMING_BYTES,  /* of replies, of jobs that are under way */
    ACCOUNT_PLAN_NS,       /* of a processor, for planning, lately: see account_spend() */
    ACCOUNT_LOG_LINES,     /* that told of the user, lately */
    ACCOUNT_N_RESOURCES
};

#define ACCOUNT_FIRST_SPENT ACCOUNT_PLAN_NS /* it and those behind it */

/* Users of whom an admin has said the weight. */
#define ACCOUNT_MAX_WEIGHTS 1024u

struct accounts;
struct account;

struct charge { /* zeroed: none */
    struct account *account;
    enum account_resource resource;
    uint64_t amount;
};

struct account_limits {
    uint64_t user[ACCOUNT_N_RESOURCES];  /* of each */
    uint64_t total[ACCOUNT_N_RESOURCES]; /* of all together */
    uint32_t weight;                     /* of each */
};

int accounts_new(const struct account_limits *limits,
                 struct accounts **ret_accounts) GAD_MUST_CHECK;
struct accounts *accounts_free(struct accounts *accounts); /* NULL; all charges were released */

/* The limits hold from now on. Who has more keeps it, and gets no more. */
void accounts_set_limits(struct accounts *accounts, const struct account_limits *limits);

/* Limits and weight of one user, in place of those of each, as long as the user holds anything.
 * Nothing happens where nothing is held, or without memory. */
void accounts_set_terms(struct accounts *accounts, uid_t uid,
                        const uint64_t limits[ACCOUNT_N_RESOURCES], uint32_t weight);
void accounts_forget_terms(struct accounts *accounts, uid_t uid); /* those of each hold again */
uint32_t account_weight(const struct accounts *accounts, uid_t uid);

/* What an admin says of a user, whether it holds anything or not: before all terms. 0: they hold
 * again. limit-exceeded, -ENOMEM. */
int accounts_set_weight(struct accounts *accounts, uid_t uid, uint32_t weight,
                        struct gad_error *error) GAD_MUST_CHECK;
void accounts_forget_weights(struct accounts *accounts);

/* 0, quota-exceeded (with limit and use), -ENOMEM. The charge must be none before. */
int account_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount, struct charge *ret_charge,
                   struct gad_error *error) GAD_MUST_CHECK;
/* What is there already and cannot be refused: the charge, also none, becomes the amount. Without
 * memory for an account it is none. */
void account_set_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                        uint64_t amount, struct charge *charge);
void charge_release(struct charge *charge); /* also none */

/* What cannot be given back, and is forgotten instead: an eighth of it each second. So who spends
 * steadily has eight seconds of it. It is charged in any case; account_check() says beforehand
 * whether more may be spent: 0, quota-exceeded. */
void account_spend(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount);
int account_check(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                  struct gad_error *error) GAD_MUST_CHECK;
void accounts_forget(struct accounts *accounts, uint64_t now_ns); /* as often as one likes */

/* What the user may hold at this moment, with what is held. */
uint64_t account_limit(const struct accounts *accounts, uid_t uid, enum account_resource resource);
bool account_has_room(const struct accounts *accounts, uid_t uid, enum account_resource resource,
                      uint64_t amount);
bool account_is_over(const struct accounts *accounts, uid_t uid, enum account_resource resource);

uint64_t account_use(const struct accounts *accounts, uid_t uid, enum account_resource resource);
uint64_t accounts_total(const struct accounts *accounts, enum account_resource resource);

/* What one user holds and may hold. */
struct account_state {
    uid_t uid;
    uint32_t weight;
    bool is_weight_said;                 /* by an admin */
    uint64_t use[ACCOUNT_N_RESOURCES];   /* what is held */
    uint64_t limit[ACCOUNT_N_RESOURCES]; /* the user's own */
    uint64_t share[ACCOUNT_N_RESOURCES]; /* of what the others leave; at most the limit */
};

/* Calls func for each user who holds anything, and does not only remember, until it returns false.
 */
void accounts_for_each(const struct accounts *accounts,
                       bool (*func)(void *userdata, const struct account_state *state),
                       void *userdata);
unsigned accounts_n(const struct accounts *accounts);             /* users who hold anything */
const char *account_resource_key(enum account_resource resource); /* on the wire */
