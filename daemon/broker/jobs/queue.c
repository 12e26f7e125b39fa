/* The queue and admission. Pure code but for the pool's map, which is only numbers.
 *
 *     queue.ring --> user --> user --> ...        the user at the head is asked first and
 *                     |                           goes to the tail when it got something
 *                     +-- plain:   items without a carry     both sorted by priority, then
 *                     +-- carrying: items with one           by sequence
 *     queue.suspects: items that may have stopped a worker; before everybody, alone
 *     queue.active:   items at the worker
 *
 * Invariants: an item is in exactly one list, the one that its place and kind say; a user exists
 * while it has an item that is not out; n_active of the users sums up to the queue's; `starving` is
 * the item that was first refused a carry and still waits: no other carry is lent meanwhile, but to
 * those of the same user that have come in front of it, and what is out of its way where it wants
 * most of the pool. While its own user holds a carry, which may be what it waits for, it holds
 * nobody up.
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
    uint64_t carry_bytes; /* of those */
};

struct queue {
    struct queue_limits limits;
    queue_gate *gate; /* NULL: always open */
    void *gate_userdata;
    struct list ring, suspects, active;
    struct queue_item *starving;
    unsigned n_waiting, n_active, n_carries, n_parked;
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

static void insert(struct queue *queue, struct queue_item *item)
{
    struct list *head = item->is_suspect    ? &queue->suspects
                        : item->carry_bytes ? &item->user->carrying
                                            : &item->user->plain;
    struct list *where = head;
    while (where->prev != head &&
           goes_before(item, list_entry(where->prev, struct queue_item, link)))
        where = where->prev;
    list_insert_before(where, &item->link);
    item->place = QUEUE_WAITING;
    queue->n_waiting++;
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

static void return_carry(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    if (item->carry.size_bytes == 0)
        return;
    item->user->n_carries--;
    item->user->carry_bytes -= item->carry.size_bytes;
    queue->n_carries--;
    poolmap_return(map, &item->carry);
    item->carry = (struct extent){0};
}

static void leave_active(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    list_remove(&item->link);
    queue->n_active--;
    item->user->n_active--;
    if (item->is_suspect)
        queue->is_alone = false;
    queue->n_parked -= item->is_parked;
    item->is_parked = false;
    return_carry(queue, map, item);
}

void queue_park(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    assert(item->place == QUEUE_ACTIVE && !item->is_suspect && !item->is_parked);
    return_carry(queue, map, item);
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
    if (queue->starving == item)
        queue->starving = NULL;
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

void queue_push_back_to_front(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    assert(item->place == QUEUE_ACTIVE);
    leave_active(queue, map, item);
    item->sequence = --queue->first_sequence;
    insert(queue, item);
}

void queue_remove(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    if (item->place == QUEUE_OUT)
        return;
    if (item->place == QUEUE_ACTIVE)
        leave_active(queue, map, item);
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

static uint64_t largest_carry_of(const struct queue *queue, const struct queue_user *user)
{
    uint64_t largest_bytes = 0;
    list_for_each (it, &queue->active) {
        const struct queue_item *item = list_entry(it, struct queue_item, link);
        if (item->user == user)
            largest_bytes = max_u64(largest_bytes, item->carry.size_bytes);
    }
    return largest_bytes;
}

/* 0, -EAGAIN, -E2BIG */
static int lend_carry(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    if (item->carry_bytes == 0)
        return 0;
    if (item->user->n_carries > 0 &&
        !poolmap_is_within_share(map, item->user->carry_bytes, largest_carry_of(queue, item->user),
                                 item->carry_bytes)) {
        queue->is_short = true;
        return -EAGAIN;
    }
    bool is_beside = must_wait(queue, item);
    int r = is_beside ? poolmap_lend_beside(map, item->carry_bytes, queue->starving->carry_bytes,
                                            &item->carry)
                      : poolmap_lend(map, item->carry_bytes, &item->carry);
    if (r == -EAGAIN && !is_beside)
        queue->starving = item;
    queue->is_short |= r == -EAGAIN;
    if (r == 0) {
        item->user->carry_bytes += item->carry.size_bytes;
        item->user->n_carries++;
        queue->n_carries++;
    }
    return r;
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
static int try_item(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    int r = lend_carry(queue, map, item);
    if (r == 0) {
        activate(queue, item);
    } else if (r != -EAGAIN) {
        leave_waiting(queue, item);
        go_out(item);
    }
    return r;
}

static bool has_room(const struct queue *queue, const struct queue_user *user)
{
    if (queue->n_active < queue->limits.max_active)
        return true;
    return user->n_active < queue->limits.user_guarantee &&
           queue->n_active < HARD_MAX_ACTIVE_FACTOR * queue->limits.max_active;
}

static struct queue_item *head_of(const struct list *items)
{
    struct list *first = list_first(items);
    return first ? list_entry(first, struct queue_item, link) : NULL;
}

static int try_in_turn(struct queue *queue, struct poolmap *map, struct queue_item *item)
{
    if (!queue->gate || queue->gate(queue->gate_userdata, item->user->uid, item->reply_bytes))
        return try_item(queue, map, item);
    if (queue->starving == item)
        queue->starving = NULL; /* what it waits for is its own client */
    return -EAGAIN;
}

static int try_user(struct queue *queue, struct poolmap *map, struct queue_user *user,
                    struct queue_item **ret_item)
{
    struct queue_item *plain = head_of(&user->plain), *carrying = head_of(&user->carrying);
    if (carrying && (!plain || goes_before(carrying, plain))) {
        *ret_item = carrying;
        int r = try_in_turn(queue, map, carrying);
        if (r != -EAGAIN)
            return r;
        carrying = NULL; /* a plain one may pass it */
    }
    *ret_item = plain ? plain : carrying;
    return *ret_item ? try_in_turn(queue, map, *ret_item) : -EAGAIN;
}

int queue_admit(struct queue *queue, struct poolmap *map, struct queue_item **ret_item)
{
    queue->is_short = queue->n_waiting > 0 && queue->is_alone;
    if (queue->n_waiting == 0 || queue->is_alone)
        return -EAGAIN;
    struct queue_item *item = head_of(&queue->suspects);
    if (item) {
        queue->is_short = queue->n_active > queue->n_parked;
        if (queue->is_short)
            return -EAGAIN;
        *ret_item = item;
        queue->starving = NULL; /* everything is free: nobody starves */
        return try_item(queue, map, item);
    }
    list_for_each (it, &queue->ring) {
        struct queue_user *user = list_entry(it, struct queue_user, link);
        if (!has_room(queue, user))
            continue;
        int r = try_user(queue, map, user, &item);
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
    list_for_each (it, &queue->ring) {
        const struct queue_user *user = list_entry(it, struct queue_user, link);
        item = item ? item : head_of(&user->plain);
        item = item ? item : head_of(&user->carrying);
    }
    return item;
}
