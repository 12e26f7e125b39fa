/* The queue: which job goes to the worker next, and what of the pool it holds there.
 *
 * Users take turns; inside a user the higher priority goes first, then who came first. A job whose
 * carry does not fit now waits; jobs without a carry pass it, other jobs with one do not, so that
 * it cannot starve, unless its own user holds a carry. Beside the largest of
 * a user's carries in a memory the others are at most half of what is left of it. A suspect (see
 * strikes.h) goes first and alone. */
#pragma once

#include "daemon/broker/list.h"
#include "daemon/poolmap.h"
#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct queue;
struct queue_user;

/* What a job keeps for its life, in each kind of memory. */
enum carry_memory {
    CARRY_IN_POOL,
    CARRY_ON_DEVICE, /* of a device: what it has beside its slots */
    CARRY_N,
};

struct carry_sizes {
    uint64_t of[CARRY_N];
};

struct carry_maps {
    struct poolmap *of[CARRY_N];
};

enum queue_place { QUEUE_OUT, QUEUE_WAITING, QUEUE_ACTIVE };

struct queue_item { /* embedded in the job; zeroed at first */
    struct list link;
    enum queue_place place;
    struct queue_user *user; /* while not out */
    int64_t sequence;
    int priority;
    struct carry_sizes sizes;
    uint64_t reply_bytes; /* of its result, which waits for the client */
    bool is_suspect;
    bool is_paused;                 /* is not admitted; see queue_set_paused() */
    bool lacked_room;               /* of the memory that it wants, when it was asked last */
    struct extent carries[CARRY_N]; /* while active, unless parked */
    bool is_parked;                 /* active, but waits for its client without a carry */
};

static inline bool carry_sizes_are_equal(const struct carry_sizes *a, const struct carry_sizes *b)
{
    return a->of[CARRY_IN_POOL] == b->of[CARRY_IN_POOL] &&
           a->of[CARRY_ON_DEVICE] == b->of[CARRY_ON_DEVICE];
}

/* Now; of any memory. */
static inline bool queue_has_carry(const struct queue_item *item)
{
    return item->carries[CARRY_IN_POOL].size_bytes + item->carries[CARRY_ON_DEVICE].size_bytes > 0;
}

struct queue_limits {
    unsigned max_waiting;
    unsigned max_active;     /* at the worker, as long as nobody needs the guarantee */
    unsigned user_guarantee; /* so many of each user may be active whatever others have there */
};

int queue_new(const struct queue_limits *limits, struct queue **ret_queue) GAD_MUST_CHECK;
/* The limits hold from now on; what waits and what is active stays. */
void queue_set_limits(struct queue *queue, const struct queue_limits *limits);
struct queue *queue_free(struct queue *queue); /* NULL; all items are out */

/* Whether a user may get a result of so many bytes now; jobs whose user may not wait, and hold up
 * nobody else. Suspects are not asked for: they hold up everybody. */
typedef bool queue_gate(void *userdata, uid_t uid, uint64_t reply_bytes);
void queue_set_gate(struct queue *queue, queue_gate *gate, void *userdata);

/* 0, queue-full with limit and use, -ENOMEM. */
int queue_push(struct queue *queue, uid_t uid, struct queue_item *item,
               struct gad_error *error) GAD_MUST_CHECK;

/* The item comes from another queue: it is never refused but for -ENOMEM. */
int queue_push_again(struct queue *queue, uid_t uid, struct queue_item *item) GAD_MUST_CHECK;
/* What queue_push() says; `n_waiting` of `most` do, in several queues together. */
int queue_refuse(unsigned n_waiting, unsigned most, struct gad_error *error);

/* An active item goes back, before all others of its user and priority; never refused. */
void queue_push_back_to_front(struct queue *queue, const struct carry_maps *maps,
                              struct queue_item *item);

/* An active item gives up its carry; it stays active, and goes back when its client is there. */
void queue_park(struct queue *queue, const struct carry_maps *maps, struct queue_item *item);

/* A paused item keeps its place in the order, and is passed over; an active one stays active. */
void queue_set_paused(struct queue *queue, struct queue_item *item, bool is_paused);

/* Out of the queue, wherever it is; its carry goes back to the maps. */
void queue_remove(struct queue *queue, const struct carry_maps *maps, struct queue_item *item);

/* The next one to start: it is then active and has its carry. 0; -EAGAIN: nobody now; -E2BIG:
 * *ret_item can never fit this pool and is out of the queue. */
int queue_admit(struct queue *queue, const struct carry_maps *maps,
                struct queue_item **ret_item) GAD_MUST_CHECK;

/* Whether, as the last queue_admit() saw it, somebody waits for what active items hold: a carry, or
 * that they end. */
bool queue_is_short(const struct queue *queue);
/* Suspects wait: nothing else is admitted until what is active has ended or is parked. */
bool queue_has_suspects(const struct queue *queue);

struct list *queue_active(struct queue *queue); /* of queue_item.link */
unsigned queue_n_waiting(const struct queue *queue);
unsigned queue_n_paused(const struct queue *queue); /* of those that wait */
unsigned queue_n_active(const struct queue *queue);
unsigned queue_n_carries(const struct queue *queue);

/* Those that wait, at most `max`; how many. */
unsigned queue_list_waiting(const struct queue *queue, struct queue_item **ret_items, unsigned max);
/* Some item that waits, or NULL. */
struct queue_item *queue_any_waiting(const struct queue *queue);
