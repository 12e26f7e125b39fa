/* The queue of starts: a list a user, and for each user the time that his have taken.
 *
 * Users are next as in turns.h: the least time so far, divided by the weight, is next. Who comes
 * new begins at the least of those who are there, and who has nothing left is forgotten; so nobody
 * saves time up, and one job beside any number of another user's waits for one of them.
 *
 * How many there are is the broker's to limit: it admits jobs. Called by the main thread.
 */
#include "daemon/worker/starts.h"
#include "daemon/turns.h"
#include "proto/util.h"

#include <string.h>

struct starts {
    /* users[i] and first[i], which is never NULL, belong together. */
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

/* Behind those of its priority and above. */
static void insert(struct starts *s, struct start *start)
{
    unsigned i = find_user(s, start->identity.user);
    if (i == s->n_users) {
        s->users[i] = (struct turn_user){.user = start->identity.user};
        turns_enter(&s->users[i], s->users, s->n_users);
        s->first[i] = NULL;
        s->n_users++;
    }
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
    return s->n_users == 0;
}

/* Out of user i's list, and he with his last. */
static struct start *unlink_start(struct starts *s, unsigned i, struct start **p)
{
    struct start *start = *p;
    *p = start->next;
    start->next = NULL;
    if (!s->first[i]) {
        s->n_users--;
        s->users[i] = s->users[s->n_users];
        s->first[i] = s->first[s->n_users];
    }
    return start;
}

struct start *starts_next(struct starts *s)
{
    unsigned best = 0;
    if (s->n_users == 0)
        return NULL;
    for (unsigned i = 1; i < s->n_users; i++)
        if (s->users[i].virtual_time < s->users[best].virtual_time)
            best = i;
    return unlink_start(s, best, &s->first[best]);
}

void starts_charge(struct starts *s, const struct wjob_identity *identity, double seconds)
{
    unsigned i = find_user(s, identity->user);
    if (i < s->n_users)
        turns_charge(&s->users[i], identity->weight, seconds);
}

struct start *starts_take(struct starts *s, uint64_t job_id)
{
    for (unsigned i = 0; i < s->n_users; i++)
        for (struct start **p = &s->first[i]; *p; p = &(*p)->next)
            if ((*p)->identity.id == job_id)
                return unlink_start(s, i, p);
    return NULL;
}
