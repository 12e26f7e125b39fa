/* The worker's supervision and the wire to it. */
#pragma once

#include "daemon/broker/job.h"
#include "daemon/broker/strikes.h"
#include "proto/message.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct region;
struct stats_wait;
struct worker;

enum worker_state {
    WORKER_STARTING,
    WORKER_READY,
    WORKER_RESTARTING, /* waits before it is started again */
    WORKER_STOPPING,
    WORKER_STOPPED,
};

struct worker_info { /* what it said when it was ready, and its supervision */
    enum worker_state state;
    unsigned n_restarts, n_failed_starts, n_threads;
    char engine[16], device[64], level[16];
    uint64_t pool_bytes, slot_bytes, overhead_bytes;
    pid_t pid; /* 0: none */
};

int worker_new(struct broker *broker, struct worker **ret_worker) GAD_MUST_CHECK;
struct worker *worker_free(struct worker *worker); /* NULL; kills what still runs */
void worker_begin(struct worker *worker);          /* starts it, and again when it ends */
void worker_stop(struct worker *worker);           /* asks it to leave; broker_check() follows */

const struct worker_info *worker_info(const struct worker *worker);
bool worker_is_ready(const struct worker *worker);
/* Ready, and what was sent before has mostly been taken. */
bool worker_has_room(const struct worker *worker);

/* 0: sent with the next flush; the answer comes to the object's module. */
int worker_send_job(struct worker *worker, struct job *job) GAD_MUST_CHECK;
int worker_send_region(struct worker *worker, struct region *region) GAD_MUST_CHECK;
/* no-engine when it does not come up, and never did. */
int worker_check(const struct worker *worker, struct gad_error *error) GAD_MUST_CHECK;
/* with_jobs: it tells before the answer what its jobs have moved. */
int worker_ask_stats(struct worker *worker, struct stats_wait *wait, bool with_jobs,
                     uint32_t *ret_pending_id) GAD_MUST_CHECK;
void worker_cancel(struct worker *worker, uint64_t job_id);
void worker_detach_region(struct worker *worker, uint64_t region_id);
void worker_forget(struct worker *worker, uint32_t pending_id);

void worker_flush(struct worker *worker);
void worker_trim(struct worker *worker); /* gives back room that was used for messages */
/* How long a tile may take from now on. */
void worker_set_hang_timeout(struct worker *worker, uint64_t timeout_ns);
/* Jobs are active: look at the crash page from time to time. */
void worker_watch_hangs(struct worker *worker);
