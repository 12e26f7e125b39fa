/* Accounts: what each user holds, against what a user may hold. A charge is an object inside the
 * resource it pays for; releasing it gives the amount back, whatever way the resource goes. */
#pragma once

#include "proto/error.h"

#include <stdint.h>
#include <sys/types.h>

enum account_resource {
    ACCOUNT_SESSIONS,
    ACCOUNT_JOBS, /* queued, running, settling */
    ACCOUNT_REGION_BYTES,
    ACCOUNT_DESCRIPTORS,   /* kept for jobs and regions, and of messages not read yet */
    ACCOUNT_REQUEST_BYTES, /* messages kept for jobs */
    ACCOUNT_N_RESOURCES
};

struct accounts;
struct account;

struct charge { /* zeroed: none */
    struct account *account;
    enum account_resource resource;
    uint64_t amount;
};

/* limits: ACCOUNT_N_RESOURCES numbers, for each user. */
int accounts_new(const uint64_t *limits, struct accounts **ret_accounts) GAD_MUST_CHECK;
struct accounts *accounts_free(struct accounts *accounts); /* NULL; all charges were released */

/* From now on. Who has more keeps it, and gets no more. */
void accounts_set_limits(struct accounts *accounts, const uint64_t *limits);

/* 0, quota-exceeded (with limit and use), -ENOMEM. The charge must be none before. */
int account_charge(struct accounts *accounts, uid_t uid, enum account_resource resource,
                   uint64_t amount, struct charge *ret_charge,
                   struct gad_error *error) GAD_MUST_CHECK;
void charge_release(struct charge *charge); /* also none */

uint64_t account_use(const struct accounts *accounts, uid_t uid, enum account_resource resource);
uint64_t accounts_total(const struct accounts *accounts, enum account_resource resource);
