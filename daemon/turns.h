/* Who is next: a pure function over what is active. Round robin over users (weighted: a user with
 * weight 2 gets two turns where another gets one), inside a user by priority, then in the order of
 * arrival: one of two equal jobs ends early, instead of both late. A job that cannot use a turn
 * (blocked on its client, window full, all tiles handed out) is passed over without losing its
 * place, and the one behind it has the turn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct turn_job {
    uint32_t user;   /* uid */
    uint32_t weight; /* of the user, at least 1 */
    int priority;
    bool is_ready;  /* a tile of it could start now */
    uint64_t order; /* among the user's jobs of one priority: the least goes first */
};

struct turn_user { /* kept by the caller, one per user that has jobs */
    uint32_t user;
    double virtual_time; /* seconds of service divided by weight */
};

/* Picks among n jobs; ready users with the least virtual_time first (ties: least uid), then the
 * highest priority, then the least order (ties: least index). -1: nobody is ready. */
int turns_next(const struct turn_job *jobs, unsigned n_jobs, const struct turn_user *users,
               unsigned n_users);

/* Charges seconds of service to a user. */
void turns_charge(struct turn_user *user, uint32_t weight, double seconds);

/* A user that becomes active starts at the least virtual time of the active ones, so that nobody
 * saves up turns. */
void turns_enter(struct turn_user *user, const struct turn_user *active, unsigned n_active);
