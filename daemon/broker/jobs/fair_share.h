/* Users take turns: at the loop, and at the planner's thread. What a user's sessions wait for
 * stands in lists of the user; whoever serves takes one user after the other, however many sessions
 * each has. */
#pragma once

#include "daemon/broker/list.h"
#include "proto/error.h"

#include <sys/types.h>

struct fair_line { /* of one user, at one place */
    struct list link, items;
};

struct fair_user {
    struct list link;
    uid_t uid;
    unsigned n_sessions;
    struct fair_line at_loop, at_planner;
};

/* One session more of the user in `users`, who is made if need be. -ENOMEM. */
int fair_join(struct list *users, uid_t uid, struct fair_user **ret_user) GAD_MUST_CHECK;
void fair_leave(struct fair_user *user); /* one less; its item waits nowhere any more */

/* The item waits in the user's line; the user, behind those that wait in `ring`. Taking an item
 * away again is list_remove(). */
void fair_wait(struct list *ring, struct fair_line *line, struct list *item);
/* The first item of the first user, taken out; the user goes behind the others. NULL: none waits.
 */
struct list *fair_next(struct list *ring);
/* The first user with an item; others in front leave the ring. NULL: none waits. */
struct fair_line *fair_first(struct list *ring);
