/* The queue and admission. Pure code but for the maps of the carries, which are only numbers.
 *
 *     queue.ring --> user --> user --> ...        the user at the head is asked first and
 *                     |                           goes to the tail when it got something
 *                     +-- plain:   items without a carry     both sorted by priority, then
 *                     +-- carrying: items with one           by sequence
 *     queue.suspects: items that may have stopped a worker; before everybody, alone
 *     queue.paused:   items that wait for somebody's word, in no order
 *     queue.active:   items at the worker
 *
 * Invariants: an item is in exactly one list, the one that its place and kind say; a user exists
 * while it has an item that is not out; n_active of the users sums up to the queue's; `starving` is
 * the item that was first refused a carry and still waits: no other carry is lent meanwhile, but to
 * those of the same user that have come in front of it, and what is out of its way where it wants
 * most of the pool. While its own user holds a carry, which may be what it waits for, it holds
 * nobody up.
 *
 * Where an item belongs is looked for from the end, where most belong, and at the same time behind
 * the one that was put in before it: so many that are put in in their order, as of paused ones that
 * go on, are at once where they belong.
 *
 * Called by submit.c (push), dispatch.c (admit, back to front) and finish.c (remove).
 */
#include "daemon/broker/jobs/queue.h"
#include "proto/util.h"

#include <assert.h>

#define HARD_MAX_ACTIVE_FACTOR 4 /* the guarantees of all users end here */

struct queue_user {
    struct list link; /* in the ring */
    uid_t uid;
    struct list plain, carrying;
    unsigned n_items, n_active, n_carries;
    struct carry_sizes held; /* of those */
};

struct queue {
    struct queue_limits limits;
    queue_gate *gate; /* NULL: always open */
    void *gate_userdata;
    struct list ring, suspects, paused, active;
    struct queue_item *starving;
    struct queue_item *last_put; /* into a user's list; NULL: it has left it */
    unsigned n_waiting, n_active, n_carries, n_parked;
    unsigned n_paused; /* of those that wait */
    unsigned n_idle;   /* paused, of those that are active */
    bool is_short;
    bool is_alone; /* the active item is a suspect */
    int64_t last_sequence, first_sequence;
};

int queue_new(const struct queue_limits *limits, struct queue **ret_queue)
{
    struct queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return -ENOMEM;
    queue->limits = *limits;
    list_init(&queue->ring);
    list_init(&queue->suspects);
    list_init(&queue->paused);
    list_init(&queue->active);
    *ret_queue = queue;
    return 0;
}

void queue_set_limits(struct queue *queue, const struct queue_limits *limits)
{
    queue->limits = *limits;
}

void queue_set_gate(struct queue *queue, queue_gate *gate, void *userdata)
{
    queue->gate = gate;
    queue->gate_userdata = userdata;
}

struct queue *queue_free(struct queue *queue)
{
    if (queue)
        assert(list_is_empty(&queue->ring));
    free(queue);
    return NULL;
}

static struct queue_user *user_find_or_add(struct queue *queue, uid_t uid)
{
    list_for_each (it, &queue->ring) {
        struct queue_user *user = list_entry(it, struct queue_user, link);
        if (user->uid == uid)
            return user;
    }
    struct queue_user *user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    list_init(&user->plain);
    list_init(&user->carrying);
    list_push_back(&queue->ring, &user->link);
    return user;
}

static bool goes_before(const struct queue_item *a, const struct queue_item *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->sequence < b->sequence;
}

static bool wants_carry(const struct queue_item *item)
{
    return (item->sizes.of[CARRY_IN_POOL] | item->sizes.of[CARRY_ON_DEVICE]) != 0;
}

/* Behind all that go before it. */
static struct list *find_place(const struct queue *queue, struct list *head,
                               const struct list *of_last, const struct queue_item *item)
{
    struct list *where = head, *behind = NULL;
    if (head == of_last && goes_before(queue->last_put, item))
        behind = queue->last_put->link.next;
    while (where->prev != head &&
           goes_before(item, list_entry(where->prev, struct queue_item, link))) {
        where = where->prev;
        if (behind == where ||
            (behind && goes_before(item, list_entry(behind, struct queue_item, link))))
            return behind;
        behind = behind ? behind->next : NULL;
    }
    return where;
}

static struct list *list_of(struct queue *queue, const struct queue_item *item)
{
    if (item->is_paused)
        return &queue->paused;
    if (item->is_suspect)
        return &queue->suspects;
    return wants_carry(item) ? &item->user->carrying : &item->user->plain;
}

static void insert(struct queue *queue, struct queue_item *item)
{
    struct list *head = list_of(queue, item);
    const struct list *of_last = queue->last_put ? list_of(queue, queue->last_put) : NULL;
    list_insert_before(item->is_paused ? head : find_place(queue, head, of_last, item),
                       &item->link);
    queue->last_put = item;
    item->place = QUEUE_WAITING;
    queue->n_waiting++;
    queue->n_paused += item->is_paused;
}

int queue_refuse(unsigned n_waiting, unsigned most, struct gad_error *error)
{
    error_set(error, GAD_QUEUE_FULL, NULL, "the queue is full: %u of %u jobs wait", n_waiting,
              most);
    error_expected(error, "at most %u", most);
    error_found(error, "%u waiting", n_waiting);
    return GAD_QUEUE_FULL;
}

int queue_push_again(struct queue *queue, uid_t uid, struct queue_item *item)
{
    assert(item->place == QUEUE_OUT);
    struct queue_user *user = user_find_or_add(queue, uid);
    if (!user)
        return -ENOMEM;
    user->n_items++;
    item->user = user;
    item->sequence = ++queue->last_sequence;
    insert(queue, item);
    return 0;
}

int queue_push(struct queue *queue, uid_t uid, struct queue_item *item, struct gad_error *error)
{
    if (queue->n_waiting >= queue->limits.max_waiting)
        return queue_refuse(queue->n_waiting, queue->limits.max_waiting, error);
    return queue_push_again(queue, uid, item);
}

static void return_carry(struct queue *queue, const struct carry_maps *maps,
                         struct queue_item *item)
{
    if (!queue_has_carry(item))
        return;
    item->user->n_carries--;
    queue->n_carries--;
    for (unsigned i = 0; i < CARRY_N; i++) {
        item->user->held.of[i] -= item->carries[i].size_bytes;
        poolmap_return(maps->of[i], &item->carries[i]);
        item->carries[i] = (struct extent){0};
    }
}

static void leave_active(struct queue *queue, const struct carry_maps *maps,
                         struct queue_item *item)
{
    list_remove(&item->link);
    queue->n_active--;
    item->user->n_active--;
    if (item->is_suspect)
        queue->is_alone = false;
    queue->n_parked -= item->is_parked;
    queue->n_idle -= item->is_paused;
    item->is_parked = false;
    return_carry(queue, maps, item);
}

void queue_park(struct queue *queue, const struct carry_maps *maps, struct queue_item *item)
{
    assert(item->place == QUEUE_ACTIVE && !item->is_suspect && !item->is_parked);
    return_carry(queue, maps, item);
    item->is_parked = true;
    queue->n_parked++;
}

bool queue_is_short(const struct queue *queue)
{
    return queue->is_short;
}

bool queue_has_suspects(const struct queue *queue)
{
    return !list_is_empty(&queue->suspects);
}

static void leave_waiting(struct queue *queue, struct queue_item *item)
{
    list_remove(&item->link);
    queue->n_waiting--;
    queue->n_paused -= item->is_paused;
    if (queue->starving == item)
        queue->starving = NULL;
    if (queue->last_put == item)
        queue->last_put = NULL;
}

static void go_out(struct queue_item *item)
{
    struct queue_user *user = steal_ptr(item->user);
    item->place = QUEUE_OUT;
    if (--user->n_items == 0) {
        list_remove(&user->link);
        free(user);
    }
}

void queue_push_back_to_front(struct queue *queue, const struct carry_maps *maps,
                              struct queue_item *item)
{
    assert(item->place == QUEUE_ACTIVE);
    leave_active(queue, maps, item);
    item->sequence = --queue->first_sequence;
    insert(queue, item);
}

void queue_set_paused(struct queue *queue, struct queue_item *item, bool is_paused)
{
    bool is_waiting = item->place == QUEUE_WAITING;
    if (item->is_paused == is_paused)
        return;
    if (is_waiting)
        leave_waiting(queue, item);
    item->is_paused = is_paused;
    if (is_waiting)
        insert(queue, item);
    else if (item->place == QUEUE_ACTIVE)
        queue->n_idle += is_paused ? 1 : -1u;
}

void queue_remove(struct queue *queue, const struct carry_maps *maps, struct queue_item *item)
{
    if (item->place == QUEUE_OUT)
        return;
    if (item->place == QUEUE_ACTIVE)
        leave_active(queue, maps, item);
    else
        leave_waiting(queue, item);
    go_out(item);
}

/* Only the first of a user's is ever asked: one that came in front of the starving item starves in
 * its place, or both would wait for ever. */
static bool overtakes(const struct queue_item *item, const struct queue_item *starving)
{
    return item->user == starving->user && goes_before(item, starving);
}

static bool must_wait(const struct queue *queue, const struct queue_item *item)
{
    const struct queue_item *starving = queue->starving;
    return starving && starving != item && starving->user->n_carries == 0 &&
           !overtakes(item, starving);
}

static uint64_t largest_carry_of(const struct queue *queue, const struct queue_user *user,
                                 enum carry_memory memory)
{
    uint64_t largest_bytes = 0;
    list_for_each (it, &queue->active) {
        const struct queue_item *item = list_entry(it, struct queue_item, link);
        if (item->user == user)
            largest_bytes = max_u64(largest_bytes, item->carries[memory].size_bytes);
    }
    return largest_bytes;
}

/* Of each memory of which it wants some and has some. */
static bool is_within_share(const struct queue *queue, const struct carry_maps *maps,
                            const struct queue_item *item)
{
    const struct queue_user *user = item->user;
    for (unsigned i = 0; i < CARRY_N; i++)
        if (item->sizes.of[i] > 0 && user->held.of[i] > 0 &&
            !poolmap_is_within_share(maps->of[i], user->held.of[i],
                                     largest_carry_of(queue, user, (enum carry_memory)i),
                                     item->sizes.of[i]))
            return false;
    return true;
}

/* All of them or none. */
static int lend_all(const struct queue *queue, const struct carry_maps *maps,
                    struct queue_item *item, bool is_beside)
{
    int r = 0;
    unsigned n = 0;
    for (; n < CARRY_N && r == 0; n++) {
        uint64_t waiting_bytes = is_beside ? queue->starving->sizes.of[n] : 0;
        r = poolmap_lend_beside(maps->of[n], item->sizes.of[n], waiting_bytes, &item->carries[n]);
    }
    for (unsigned i = 0; r && i < CARRY_N; i++) {
        if (i + 1 < n)
            poolmap_return(maps->of[i], &item->carries[i]);
        item->carries[i] = (struct extent){0};
    }
    return r;
}

/* 0, -EAGAIN, -E2BIG */
static int lend_carry(struct queue *queue, const struct carry_maps *maps, struct queue_item *item)
{
    if (!wants_carry(item))
        return 0;
    if (!is_within_share(queue, maps, item)) {
        queue->is_short = item->lacked_room = true;
        return -EAGAIN;
    }
    bool is_beside = must_wait(queue, item);
    int r = lend_all(queue, maps, item, is_beside);
    if (r == -EAGAIN && !is_beside)
        queue->starving = item;
    queue->is_short |= r == -EAGAIN;
    item->lacked_room |= r == -EAGAIN;
    if (r)
        return r;
    for (unsigned i = 0; i < CARRY_N; i++)
        item->user->held.of[i] += item->carries[i].size_bytes;
    item->user->n_carries++;
    queue->n_carries++;
    return 0;
}

static void activate(struct queue *queue, struct queue_item *item)
{
    struct queue_user *user = item->user;
    leave_waiting(queue, item);
    list_push_back(&queue->active, &item->link);
    item->place = QUEUE_ACTIVE;
    queue->n_active++;
    queue->is_alone = item->is_suspect;
    user->n_active++;
    list_remove(&user->link);
    list_push_back(&queue->ring, &user->link);
}

/* 0: active; -EAGAIN; -E2BIG: out */
static int try_item(struct queue *queue, const struct carry_maps *maps, struct queue_item *item)
{
    int r = lend_carry(queue, maps, item);
    if (r == 0) {
        activate(queue, item);
    } else if (r != -EAGAIN) {
        leave_waiting(queue, item);
        go_out(item);
    }
    return r;
}

/* Paused ones leave their places to others; as many as there are places, so that whoever pauses and
 * begins again and again comes to an end. */
static bool has_room(const struct queue *queue, const struct queue_user *user)
{
    unsigned n_idle = (unsigned)min_u64(queue->n_idle, queue->limits.max_active);
    unsigned n_active = queue->n_active - n_idle;
    if (n_active < queue->limits.max_active)
        return true;
    return user->n_active < queue->limits.user_guarantee &&
           n_active < HARD_MAX_ACTIVE_FACTOR * queue->limits.max_active;
}

static struct queue_item *head_of(const struct list *items)
{
    struct list *first = list_first(items);
    return first ? list_entry(first, struct queue_item, link) : NULL;
}

static int try_in_turn(struct queue *queue, const struct carry_maps *maps, struct queue_item *item)
{
    if (!queue->gate || queue->gate(queue->gate_userdata, item->user->uid, item->reply_bytes))
        return try_item(queue, maps, item);
    if (queue->starving == item)
        queue->starving = NULL; /* what it waits for is its own client */
    return -EAGAIN;
}

static int try_user(struct queue *queue, const struct carry_maps *maps, struct queue_user *user,
                    struct queue_item **ret_item)
{
    struct queue_item *plain = head_of(&user->plain), *carrying = head_of(&user->carrying);
    if (carrying && (!plain || goes_before(carrying, plain))) {
        *ret_item = carrying;
        int r = try_in_turn(queue, maps, carrying);
        if (r != -EAGAIN)
            return r;
        carrying = NULL; /* a plain one may pass it */
    }
    *ret_item = plain ? plain : carrying;
    return *ret_item ? try_in_turn(queue, maps, *ret_item) : -EAGAIN;
}

int queue_admit(struct queue *queue, const struct carry_maps *maps, struct queue_item **ret_item)
{
    bool has_any = queue->n_waiting > queue->n_paused;
    queue->is_short = has_any && queue->is_alone;
    if (!has_any || queue->is_alone)
        return -EAGAIN;
    struct queue_item *item = head_of(&queue->suspects);
    if (item) {
        queue->is_short = queue->n_active > queue->n_parked;
        if (queue->is_short)
            return -EAGAIN;
        *ret_item = item;
        queue->starving = NULL; /* everything is free: nobody starves */
        return try_item(queue, maps, item);
    }
    list_for_each (it, &queue->ring) {
        struct queue_user *user = list_entry(it, struct queue_user, link);
        if (!has_room(queue, user))
            continue;
        int r = try_user(queue, maps, user, &item);
        if (r != -EAGAIN) {
            *ret_item = item;
            return r;
        }
    }
    return -EAGAIN;
}

struct list *queue_active(struct queue *queue)
{
    return &queue->active;
}

unsigned queue_n_waiting(const struct queue *queue)
{
    return queue->n_waiting;
}

unsigned queue_n_paused(const struct queue *queue)
{
    return queue->n_paused;
}

unsigned queue_n_active(const struct queue *queue)
{
    return queue->n_active;
}

unsigned queue_n_carries(const struct queue *queue)
{
    return queue->n_carries;
}

static unsigned list_items(const struct list *items, struct queue_item **ret, unsigned n,
                           unsigned max)
{
    list_for_each (it, items)
        if (n < max)
            ret[n++] = list_entry(it, struct queue_item, link);
    return n;
}

unsigned queue_list_waiting(const struct queue *queue, struct queue_item **ret_items, unsigned max)
{
    unsigned n = list_items(&queue->suspects, ret_items, 0, max);
    n = list_items(&queue->paused, ret_items, n, max);
    list_for_each (it, &queue->ring) {
        const struct queue_user *user = list_entry(it, struct queue_user, link);
        n = list_items(&user->plain, ret_items, n, max);
        n = list_items(&user->carrying, ret_items, n, max);
    }
    return n;
}

struct queue_item *queue_any_waiting(const struct queue *queue)
{
    struct queue_item *item = head_of(&queue->suspects);
    item = item ? item : head_of(&queue->paused);
    list_for_each (it, &queue->ring) {
        const struct queue_user *user = list_entry(it, struct queue_user, link);
        item = item ? item : head_of(&user->plain);
        item = item ? item : head_of(&user->carrying);
    }
    return item;
}
