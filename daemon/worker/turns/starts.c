/* The queue of starts: a list a user, and for each user the time that his have taken.
 *
 * Users are next as in turns.h: the least time so far, divided by the weight, is next. Who comes
 * new begins at the least of those who wait; so nobody saves time up, and one job beside any number
 * of another user's waits for one of them. Who has nothing left is remembered while he is ahead of
 * somebody who waits, or whoever sends one job after the other would begin at the least each time,
 * however long his jobs take.
 *
 * How many there are is the broker's to limit: it admits jobs. Called by the main thread.
 */
#include "daemon/worker/turns/starts.h"
#include "daemon/turns.h"
#include "proto/util.h"

#include <string.h>

struct starts {
    /* users[i] and first[i] belong together; NULL: he has had more time than somebody who waits. */
    struct turn_user *users;
    struct start **first;
    unsigned n_users, n_room;
};

int starts_new(struct starts **ret_starts)
{
    *ret_starts = calloc(1, sizeof(**ret_starts));
    return *ret_starts ? 0 : -ENOMEM;
}

struct start *start_free(struct start *start)
{
    if (start) {
        message_deinit(&start->message);
        frame_deinit(&start->frame, NULL);
        free(start);
    }
    return NULL;
}

struct starts *starts_free(struct starts *s)
{
    if (!s)
        return NULL;
    for (unsigned i = 0; i < s->n_users; i++)
        for (struct start *start = s->first[i], *next; start; start = next) {
            next = start->next;
            start_free(start);
        }
    free(s->users);
    free(s->first);
    free(s);
    return NULL;
}

static unsigned find_user(const struct starts *s, uint32_t user)
{
    unsigned i = 0;
    while (i < s->n_users && s->users[i].user != user)
        i++;
    return i;
}

static int make_room(struct starts *s)
{
    unsigned n = s->n_room ? 2 * s->n_room : 16;
    if (s->n_users < s->n_room)
        return 0;
    struct turn_user *users = realloc(s->users, n * sizeof(*users));
    if (users)
        s->users = users;
    struct start **first = realloc(s->first, n * sizeof(struct start *));
    if (first)
        s->first = first;
    if (!users || !first)
        return -ENOMEM;
    s->n_room = n;
    return 0;
}

/* Of those who wait the one with the least time; NULL: nobody waits. */
static const struct turn_user *least_who_waits(const struct starts *s)
{
    const struct turn_user *least = NULL;
    for (unsigned i = 0; i < s->n_users; i++)
        if (s->first[i] && (!least || s->users[i].virtual_time < least->virtual_time))
            least = &s->users[i];
    return least;
}

/* Those whom it makes no difference to begin anew: they would begin at the least, too. */
static void forget_users(struct starts *s)
{
    const struct turn_user *found = least_who_waits(s);
    double least = found ? found->virtual_time : 0;
    for (unsigned i = s->n_users; i-- > 0;) {
        if (s->first[i] || (found && s->users[i].virtual_time > least))
            continue;
        s->n_users--;
        s->users[i] = s->users[s->n_users];
        s->first[i] = s->first[s->n_users];
    }
}

static unsigned enter_user(struct starts *s, uint32_t user)
{
    const struct turn_user *least = least_who_waits(s);
    unsigned i = find_user(s, user);
    if (i < s->n_users)
        return i;
    s->users[i] = (struct turn_user){.user = user, .virtual_time = least ? least->virtual_time : 0};
    s->first[i] = NULL;
    s->n_users++;
    return i;
}

/* Behind those of its priority and above. */
static void insert(struct starts *s, struct start *start)
{
    unsigned i = enter_user(s, start->identity.user);
    struct start **p = &s->first[i];
    while (*p && (*p)->identity.priority >= start->identity.priority)
        p = &(*p)->next;
    start->next = *p;
    *p = start;
}

int starts_add(struct starts *s, struct frame *frame, struct message *message,
               struct gad_error *error)
{
    struct wjob_identity identity = {.message_id = message->id};
    int r = wjob_read_identity(&message->params, &identity, error);
    if (!r)
        r = make_room(s);
    if (r)
        return r;
    struct start *start = calloc(1, sizeof(*start));
    if (!start)
        return -ENOMEM;
    *start = (struct start){
        .frame = *frame, .message = *message, .identity = identity, .received_ns = clock_ns()};
    *frame = (struct frame){.body = NULL};
    message->zone = NULL;
    insert(s, start);
    return 0;
}

bool starts_are_empty(const struct starts *s)
{
    return !least_who_waits(s);
}

static struct start *unlink_start(struct start **p)
{
    struct start *start = *p;
    *p = start->next;
    start->next = NULL;
    return start;
}

struct start *starts_next(struct starts *s)
{
    const struct turn_user *least = least_who_waits(s);
    return least ? unlink_start(&s->first[least - s->users]) : NULL;
}

void starts_charge(struct starts *s, const struct wjob_identity *identity, double seconds)
{
    unsigned i = find_user(s, identity->user);
    if (i < s->n_users)
        turns_charge(&s->users[i], identity->weight, seconds);
    forget_users(s);
}

bool starts_pause(struct starts *s, uint64_t job_id, bool is_paused)
{
    for (unsigned i = 0; i < s->n_users; i++)
        for (struct start *start = s->first[i]; start; start = start->next)
            if (start->identity.id == job_id) {
                start->identity.is_paused = is_paused;
                return true;
            }
    return false;
}

void starts_set_weight(struct starts *s, uint32_t user, uint32_t weight)
{
    unsigned i = find_user(s, user);
    for (struct start *start = i < s->n_users ? s->first[i] : NULL; start; start = start->next)
        start->identity.weight = weight;
}

struct start *starts_take(struct starts *s, uint64_t job_id)
{
    for (unsigned i = 0; i < s->n_users; i++)
        for (struct start **p = &s->first[i]; *p; p = &(*p)->next)
            if ((*p)->identity.id == job_id) {
                struct start *start = unlink_start(p);
                forget_users(s);
                return start;
            }
    return NULL;
}
