/* The worker's insides, shared by worker.c (its life), worker_messages.c (what it says) and
 * worker_requests.c (what it is told). */
#pragma once

#include "daemon/broker/broker.h"
#include "daemon/broker/pending.h"
#include "daemon/broker/worker.h"
#include "proto/conn.h"

struct worker {
    struct broker *broker;
    struct worker_info info;
    struct child *child;
    struct conn *conn;
    struct watch *watch;
    struct crashpage *page;
    struct pending pending;
    struct deadline restart, hang_check, kill;
    struct hang_limits hang_limits;
    uint64_t started_ns;
    unsigned n_deaths; /* in a row */
    bool has_served, was_hanging, was_bad_peer, was_started;
    bool was_ready; /* one of them, ever */
};

/* One worker's life is over for us: its socket is no use any more, its exit is still to come. */
void worker_lose_connection(struct worker *w, int r);

/* Reads and handles what it said, at most n_receives times (UINT_MAX: to its end). 0: there may be
 * more; -EAGAIN; other: the connection is of no use. */
int worker_read(struct worker *w, unsigned n_receives) GAD_MUST_CHECK;
