/* A connection that many threads share: the lock, what waits to be given up, who waits for what.
 * Knows nothing of Python. See link.c. */
#pragma once

#include "core/work.h"

#include <pthread.h>
#include <stdbool.h>

struct waiter;

struct link {
    pthread_mutex_t mutex;
    int wake_fd;            /* wakes the one who polls */
    release_list released;  /* pushed without the lock */
    release_list garbage;   /* works whose `keeps` are to be given back, with the GIL */
    atomic_bool is_closed;  /* set under the lock */
    atomic_bool wants_wake; /* link_wake() is to be called */
    /* Under the lock. */
    struct gad_client *client; /* NULL once it is closed and nothing is left of it */
    struct work *running;
    struct waiter *waiters, *poller;
    bool is_woken;      /* link_wake() came while nobody waited for it */
    bool is_dirty;      /* the library may have read: jobs may have ended */
    unsigned n_holders; /* arrays and works that the library has */
    unsigned n_orphans; /* of those that run */
    uint64_t recovered; /* the connection in which all waited-for jobs are known to be served */
    uint64_t n_attempts;
    int polled_fd; /* what the poller looks at */
    uint64_t polled_connection;
    bool is_polled_for_writing;
};

/* client_take: connected. Returns a positive errno, and has then taken nothing. */
int link_init(struct link *link, struct gad_client *client_take);
/* Nobody may use it any more. Without the GIL: waits for callbacks. Its garbage remains. */
void link_deinit(struct link *link);

bool link_try_lock(struct link *link);
/* Returns whether it has the lock; waits until then at most. */
bool link_lock_until(struct link *link, int64_t deadline_ns);
void link_lock(struct link *link);
/* Wakes those whose jobs have ended, and does what others left to be done. */
void link_unlock(struct link *link);

/* Without the lock: gives up an array or a job, now if nobody has the lock, else whoever has it
 * does. Never waits. */
void link_release(struct link *link, struct release *node);

/* Without the lock: has link_wake() called, by whoever has the lock. Never waits. */
void link_wake_soon(struct link *link);

/* The rest is done under the lock. */

/* To be called after each call that talks to the daemon, so without the GIL. */
void link_talked(struct link *link);
/* Brings is_done of all works up to date, and wakes who waited for them. */
void link_settle(struct link *link);
/* Whether the job is known to be with the daemon that there is. */
bool link_is_with_daemon(const struct link *link, const struct work *work);
/* A job that was just submitted. */
void link_add(struct link *link, struct work *work);
/* Cancels everything and leaves the daemon; memory of arrays stays until they are released. */
void link_close(struct link *link);
