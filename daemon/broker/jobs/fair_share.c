/* Whose turn it is.
 *
 *     ring:   user 1000 ------> user 1001 ------> user 1002
 *             session           session           session
 *             session                             session
 *             session
 *
 * An item may leave its line at any time, so a line in the ring may have become empty: it is put
 * out when its turn comes. A line outside of the ring has no items.
 *
 * Called by session.c and planner.c.
 */
#include "daemon/broker/jobs/fair_share.h"
#include "proto/util.h"

#include <assert.h>
#include <stdlib.h>

static void line_init(struct fair_line *line)
{
    list_init(&line->link);
    list_init(&line->items);
}

/* As many users as are connected: a list is enough. */
static struct fair_user *find(const struct list *users, uid_t uid)
{
    list_for_each (it, users) {
        struct fair_user *user = list_entry(it, struct fair_user, link);
        if (user->uid == uid)
            return user;
    }
    return NULL;
}

int fair_join(struct list *users, uid_t uid, struct fair_user **ret_user)
{
    struct fair_user *user = find(users, uid);
    if (!user) {
        user = calloc(1, sizeof(*user));
        if (!user)
            return -ENOMEM;
        user->uid = uid;
        line_init(&user->at_loop);
        line_init(&user->at_planner);
        list_push_back(users, &user->link);
    }
    user->n_sessions++;
    *ret_user = user;
    return 0;
}

void fair_leave(struct fair_user *user)
{
    if (--user->n_sessions > 0)
        return;
    assert(list_is_empty(&user->at_loop.items) && list_is_empty(&user->at_planner.items));
    list_remove(&user->at_loop.link);
    list_remove(&user->at_planner.link);
    list_remove(&user->link);
    free(user);
}

void fair_wait(struct list *ring, struct fair_line *line, struct list *item)
{
    list_push_back(&line->items, item);
    if (!list_is_linked(&line->link))
        list_push_back(ring, &line->link);
}

struct fair_line *fair_first(struct list *ring)
{
    struct list *first;
    while ((first = list_first(ring))) {
        struct fair_line *line = list_entry(first, struct fair_line, link);
        if (!list_is_empty(&line->items))
            return line;
        list_remove(&line->link);
    }
    return NULL;
}

struct list *fair_next(struct list *ring)
{
    struct fair_line *line = fair_first(ring);
    if (!line)
        return NULL;
    struct list *item = list_first(&line->items);
    list_remove(item);
    list_remove(&line->link);
    if (!list_is_empty(&line->items))
        list_push_back(ring, &line->link);
    return item;
}
