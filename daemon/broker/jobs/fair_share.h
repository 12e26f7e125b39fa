/* Users take turns: at the loop, where it reads and where it sends, and at the planner's thread.
 * What a user's sessions wait for stands in lists of the user; whoever serves takes one user after
 * the other, however many sessions each has. */
#pragma once

#include "daemon/broker/list.h"
#include "proto/error.h"

#include <stdint.h>
#include <sys/types.h>

struct fair_user;

struct fair_line { /* of one user, at one place */
    struct list link, items;
    struct fair_user *user;
};

struct fair_users {
    struct list all;
    uint64_t clock_ns; /* what who was served last had used */
};

struct fair_user {
    struct list link;
    uid_t uid;
    unsigned n_sessions;
    uint64_t used_ns; /* of the loop's time, to be compared with that of others who wait */
    struct fair_line at_reading, at_sending, at_planner;
};

void fair_init(struct fair_users *users);
void fair_deinit(struct fair_users *users); /* after all have left */
/* One session more of the user, who is made if need be. -ENOMEM. */
int fair_join(struct fair_users *users, uid_t uid, struct fair_user **ret_user) GAD_MUST_CHECK;
/* One less; its item waits nowhere any more. */
void fair_leave(struct fair_users *users, struct fair_user *user);
/* Whether there are several, so that it matters who uses how much. */
bool fair_is_shared(const struct fair_users *users);

/* The item waits in the user's line; the user, behind those that wait in `ring`. Taking an item
 * away again is list_remove(). */
void fair_wait(struct list *ring, struct fair_line *line, struct list *item);
/* The first item of the first user, taken out; the user goes behind the others. NULL: none waits.
 */
struct list *fair_next(struct list *ring);
/* The first user with an item; others in front leave the ring. NULL: none waits. */
struct fair_line *fair_first(struct list *ring);
/* Of the users with an item, the one that has used the least; of several the first. */
struct fair_line *fair_least(struct list *ring);

/* The user is served, as the one of all that wait to be read from that has used the least: what
 * others, who do not wait, have not used until now is theirs no more. */
void fair_serve(struct fair_users *users, const struct fair_user *user);
void fair_charge(const struct fair_users *users, struct fair_user *user, uint64_t used_ns);
