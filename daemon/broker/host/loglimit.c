/* A bucket of tokens for each user and kind of line: full at first, filled at a steady rate.
 *
 *     faults   errors and warnings: what a client did wrong, as often as it likes
 *     notes    sessions and ended jobs, at info: an honest user has many of them
 *
 * The rates leave room below what journald takes of one service (10000 lines in 30 s) for several
 * users at once: otherwise one user's lines would make it drop everybody's.
 *
 * There is a place for the users that were seen lately. Who loses it, because so many others came,
 * has full buckets when it comes again, and what was not told of it yet stays counted in the sum.
 *
 * Called by log.c.
 */
#include "daemon/broker/host/loglimit.h"

#include <stddef.h>

static const struct {
    double n_at_once, n_a_second;
} rates[LOG_LIMIT_N_KINDS] = {
    [LOG_LIMIT_FAULTS] = {50, 1},
    [LOG_LIMIT_NOTES] = {500, 40},
};

static struct log_limit_user *user_of(struct log_limit *limit, uint32_t uid, uint64_t now_ns)
{
    struct log_limit_user *oldest = &limit->users[0];
    for (unsigned i = 0; i < LOG_LIMIT_USERS; i++) {
        struct log_limit_user *user = &limit->users[i];
        if (user->used_ns > 0 && user->uid == uid)
            return user;
        if (user->used_ns < oldest->used_ns)
            oldest = user;
    }
    limit->n_untold -= oldest->n_left_out;
    *oldest = (struct log_limit_user){.uid = uid};
    for (unsigned i = 0; i < LOG_LIMIT_N_KINDS; i++) {
        oldest->n_more[i] = rates[i].n_at_once;
        oldest->filled_ns[i] = now_ns;
    }
    return oldest;
}

bool log_limit_allows(struct log_limit *limit, uint32_t uid, bool has_room,
                      enum log_limit_kind kind, uint64_t now_ns)
{
    struct log_limit_user *user = user_of(limit, uid, now_ns);
    double *n_more = &user->n_more[kind];
    user->used_ns = now_ns > 0 ? now_ns : 1;
    *n_more += (double)(now_ns - user->filled_ns[kind]) / 1e9 * rates[kind].n_a_second;
    if (*n_more > rates[kind].n_at_once)
        *n_more = rates[kind].n_at_once;
    user->filled_ns[kind] = now_ns;
    if (has_room && *n_more >= 1) {
        *n_more -= 1;
        return true;
    }
    user->n_left_out++;
    limit->n_left_out++;
    limit->n_untold++;
    return false;
}

bool log_limit_untold(struct log_limit *limit, uint32_t *ret_uid, uint64_t *ret_n)
{
    for (unsigned i = 0; i < LOG_LIMIT_USERS && limit->n_untold > 0; i++) {
        struct log_limit_user *user = &limit->users[i];
        if (user->n_left_out == 0)
            continue;
        *ret_uid = user->uid;
        *ret_n = user->n_left_out;
        limit->n_untold -= user->n_left_out;
        user->n_left_out = 0;
        return true;
    }
    return false;
}
