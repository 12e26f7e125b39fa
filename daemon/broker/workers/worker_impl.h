/* The worker's insides, shared by worker.c (its life), start.c, limits.c (what jobs are planned and
 * queued with), messages.c (what it says) and requests.c (what it is told). */
#pragma once

#include "daemon/broker/broker.h"
#include "daemon/broker/workers/pending.h"
#include "daemon/broker/workers/worker.h"
#include "proto/wire/conn.h"

#define MAX_FAILED_STARTS 5u /* in a row: then the program is not believed in, see worker.c */

struct worker {
    struct broker *broker;
    unsigned place;
    struct worker_info info;
    struct child *child;
    struct conn *conn;
    struct loop_watch *watch;
    struct crashpage *page;
    struct pending pending;
    struct frame unread; /* of it, for which there was no memory; body NULL: none */
    bool lacks_memory;   /* to read on: it is tried again in the next turn */
    bool is_untold;      /* there was none for what it must know: it is replaced */
    struct deadline restart, hang_check, kill, sleep, yield_check;
    struct hang_limits hang_limits;
    uint64_t started_ns;
    unsigned n_deaths; /* in a row */
    bool has_served, was_hanging, was_bad_peer, was_started;
    bool was_ready;                /* one of them, ever */
    enum worker_state waited_as;   /* ABSENT or SHORT: so its last start ended; else STARTING */
    char failure[WORKER_WHY_SIZE]; /* worker.failed of the one that lives; "": it said none */

    struct queue *queue;
    struct carry_maps carries;
    struct plan_limits limits;
    uint32_t limits_serial;
    double busy_seconds;
};

/* A process of it is started: its connection, its crash page, w->child. -errno. */
int worker_start_process(struct worker *w, exit_func on_exit_status) GAD_MUST_CHECK;

/* One worker's life is over for us: its socket is no use any more, its exit is still to come. */
void worker_lose_connection(struct worker *w, int r);

/* Reads and handles what it said, at most n_receives times (UINT_MAX: to its end). 0: there may be
 * more; -EAGAIN, also without memory: worker_flush() then goes on; other: the connection is of no
 * use. */
int worker_read(struct worker *w, unsigned n_receives) GAD_MUST_CHECK;

/* The queue, and limits to plan with before it said its own. */
int worker_limits_init(struct worker *w) GAD_MUST_CHECK;
void worker_limits_deinit(struct worker *w);
/* The pool, and the device's memory for carries, are of this size from now on (no carry is lent).
 * What one carry may have is found out. */
int worker_set_limits(struct worker *w, const struct plan_limits *limits) GAD_MUST_CHECK;
/* From now on, for workers that know none too; jobs that are planned already keep theirs. */
void worker_set_disk_rate(struct worker *w, double rate);
