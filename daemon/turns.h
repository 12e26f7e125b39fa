/* Who is next: a pure function over what is active. Round robin over users (weighted: a user with
 * weight 2 gets two turns where another gets one), inside a user by priority, then by kind, smaller
 * jobs first, then in the order of arrival: one of two equal jobs ends early, instead of both late.
 * However many smaller ones come, a larger kind has a part of the user's time. A job that cannot
 * use a turn (blocked on its client, window full, all tiles handed out) is passed over without
 * losing its place, and the one behind it has the turn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TURN_N_KINDS 6u

struct turn_job {
    uint32_t user;   /* uid */
    uint32_t weight; /* of the user, at least 1 */
    int priority;
    bool is_ready;  /* a tile of it could start now */
    unsigned kind;  /* 0: the smallest jobs, to TURN_N_KINDS - 1 */
    uint64_t order; /* among the user's jobs of one priority and kind: the least goes first */
};

struct turn_user { /* kept by the caller, one per user that has jobs */
    uint32_t user;
    double virtual_time; /* seconds of service divided by weight */
    bool is_away;        /* has nothing but paused jobs: nobody's time is compared with its own */
    double ahead;        /* while away: of the others, when it went */
    double
        kind_times[TURN_N_KINDS]; /* seconds of each, times TURN_KIND_SHARE for each larger kind */
};

/* Picks among n jobs; ready users with the least virtual_time first (ties: least uid), then the
 * highest priority, then the kind that has had the least of its part (ties: the smaller one), then
 * the least order (ties: least index). -1: nobody is ready. */
int turns_next(const struct turn_job *jobs, unsigned n_jobs, const struct turn_user *users,
               unsigned n_users);

/* Charges seconds of service to a user. */
void turns_charge(struct turn_user *user, uint32_t weight, double seconds);

/* The same inside the user: a kind has TURN_KIND_SHARE times the part of the next larger one. */
#define TURN_KIND_SHARE 4.0
void turns_charge_kind(struct turn_user *user, unsigned kind, double seconds);

/* The job is next: kinds of its user that have none ready beside it, at its priority, become level
 * with its own. So nobody saves up turns here either: a small job that comes beside a large one
 * that has run for long goes first, and not for ever. */
void turns_level_kinds(struct turn_user *user, const struct turn_job *jobs, unsigned n_jobs,
                       const struct turn_job *next);

/* A user's last job that was not paused is: what it is ahead of the others, it still is when it
 * comes back; what it is behind them it has lost, as somebody who leaves. `active`: all, itself
 * too. */
void turns_go_away(struct turn_user *user, const struct turn_user *active, unsigned n_active);
void turns_come_back(struct turn_user *user, const struct turn_user *active, unsigned n_active);

/* A user that becomes active starts at the least virtual time of the active ones, so that nobody
 * saves up turns. */
void turns_enter(struct turn_user *user, const struct turn_user *active, unsigned n_active);
