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
 * The planner serves them in this order. The loop charges each with the time that it takes of it,
 * in whatever way (a message that is no message, a connection, a reply), and serves whoever has
 * used the least: who has used more than others waits until they have, too. Time that somebody did
 * not use while not waiting cannot be saved up: such a user is charged from where the others are.
 *
 * Called by session.c, session_send.c and planner.c.
 */
#include "daemon/broker/jobs/fair_share.h"
#include "proto/util.h"

#include <assert.h>
#include <stdlib.h>

static void line_init(struct fair_line *line, struct fair_user *user)
{
    list_init(&line->link);
    list_init(&line->items);
    line->user = user;
}

static void line_deinit(struct fair_line *line)
{
    assert(list_is_empty(&line->items));
    list_remove(&line->link);
}

void fair_init(struct fair_users *users)
{
    *users = (struct fair_users){.clock_ns = 0};
    list_init(&users->all);
}

/* Who has gone and has used more than others is remembered: whoever comes again at once has it
 * still.
 */
static void forget_gone(const struct fair_users *users, struct fair_user *user)
{
    if (user->n_sessions > 0 || user->used_ns > users->clock_ns)
        return;
    list_remove(&user->link);
    free(user);
}

/* As many users as are connected: a list is enough. All are looked at, so that nobody is remembered
 * for longer than it matters. */
static struct fair_user *find(const struct fair_users *users, uid_t uid)
{
    struct fair_user *found = NULL;
    list_for_each_safe (it, next, &users->all) {
        struct fair_user *user = list_entry(it, struct fair_user, link);
        if (user->uid == uid)
            found = user;
        else
            forget_gone(users, user);
    }
    return found;
}

int fair_join(struct fair_users *users, uid_t uid, struct fair_user **ret_user)
{
    struct fair_user *user = find(users, uid);
    if (!user) {
        user = calloc(1, sizeof(*user));
        if (!user)
            return -ENOMEM;
        user->uid = uid;
        line_init(&user->at_reading, user);
        line_init(&user->at_sending, user);
        line_init(&user->at_planner, user);
        list_push_back(&users->all, &user->link);
    }
    user->n_sessions++;
    *ret_user = user;
    return 0;
}

void fair_leave(struct fair_users *users, struct fair_user *user)
{
    if (--user->n_sessions > 0)
        return;
    line_deinit(&user->at_reading); /* the rings may go before who is remembered */
    line_deinit(&user->at_sending);
    line_deinit(&user->at_planner);
    forget_gone(users, user);
}

void fair_deinit(struct fair_users *users)
{
    users->clock_ns = UINT64_MAX;
    list_for_each_safe (it, next, &users->all)
        forget_gone(users, list_entry(it, struct fair_user, link));
}

bool fair_is_shared(const struct fair_users *users)
{
    return !list_is_empty(&users->all) && users->all.next != users->all.prev;
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

struct fair_line *fair_least(struct list *ring)
{
    struct fair_line *least = NULL;
    list_for_each_safe (it, next, ring) {
        struct fair_line *line = list_entry(it, struct fair_line, link);
        if (list_is_empty(&line->items))
            list_remove(&line->link);
        else if (!least || line->user->used_ns < least->user->used_ns)
            least = line;
    }
    return least;
}

void fair_serve(struct fair_users *users, const struct fair_user *user)
{
    users->clock_ns = max_u64(users->clock_ns, user->used_ns);
}

void fair_charge(const struct fair_users *users, struct fair_user *user, uint64_t used_ns)
{
    user->used_ns = max_u64(users->clock_ns, user->used_ns) + used_ns;
}
