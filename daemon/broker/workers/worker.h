/* One engine's worker: its supervision, the wire to it, and what waits for it. */
#pragma once

#include "daemon/broker/workers/engines.h"
#include "daemon/broker/jobs/job.h"
#include "daemon/broker/workers/strikes.h"
#include "proto/wire/message.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct region;
struct stats_wait;
struct worker;

enum worker_state {
    WORKER_ASLEEP, /* not needed yet, or not needed any more */
    WORKER_STARTING,
    WORKER_READY,
    WORKER_RESTARTING, /* waits before it is started again */
    WORKER_ABSENT,     /* there is no device for it; looked for again from time to time */
    WORKER_SHORT,      /* of the device's memory; tried again */
    WORKER_DOZING,     /* was told to leave, because nobody needs it */
    WORKER_STOPPING,
    WORKER_STOPPED,
};

#define WORKER_WHY_SIZE 512

struct worker_info { /* what it said of itself, and its supervision */
    enum worker_state state;
    unsigned n_restarts, n_threads;
    unsigned n_failed_starts;     /* since it was ready last */
    unsigned n_all_failed_starts; /* ever */
    unsigned n_faults;            /* of the device, in a row */
    unsigned n_all_faults;
    uint64_t n_jobs_ended; /* of those that it was given */
    char engine[ENGINE_NAME_SIZE], device[128], level[32];
    /* What multiplies matrices of floats: "cuBLAS 13.0.2"; "": nothing, and why. */
    char blas[96], why_no_blas[sizeof(((struct gad_error *)NULL)->message)];
    int index;          /* of the device; -1: the CPU */
    unsigned n_devices; /* that it saw; 0: it has not said */
    uint64_t overhead_bytes;
    uint64_t private_bytes;    /* of the process, as it told last; 0: there is none */
    pid_t pid;                 /* 0: none */
    char why[WORKER_WHY_SIZE]; /* it is not ready; "" where there is nothing to say */
    char *memory;              /* what the device's memory is made of: a packed map; NULL: unsaid */
    size_t n_memory_bytes;
};

/* index: of the CUDA device; -1: the CPU. It has `place` among the broker's workers. */
int worker_new(struct broker *broker, int index, unsigned place,
               struct worker **ret_worker) GAD_MUST_CHECK;
struct worker *worker_free(struct worker *worker); /* NULL; kills what still runs */
void worker_begin(struct worker *worker); /* starts it, and again when it ends; or lets it sleep */
void worker_stop(struct worker *worker);  /* asks it to leave; broker_check() follows */
void worker_wake(struct worker *worker);  /* if it sleeps */
void worker_retry(struct worker *worker); /* if it waits for a device or its memory: now */

const struct worker_info *worker_info(const struct worker *worker);
const char *worker_state_name(enum worker_state state);
/* How long until the worker is started again; 0 where nobody waits for that. */
double worker_retry_seconds(const struct worker *worker);
unsigned worker_place(const struct worker *worker);
bool worker_is_device(const struct worker *worker);
bool worker_is_ready(const struct worker *worker);
/* Not ready, but jobs may wait for it. */
bool worker_is_coming(const struct worker *worker);
/* Its device was there before: what waits for it waits on. */
bool worker_may_return(const struct worker *worker);
/* Neither (or coming, and for long): why, for people. */
const char *worker_why(const struct worker *worker);
/* Ready, and what was sent before has mostly been taken. */
bool worker_has_room(const struct worker *worker);

/* What waits for it and what it has in hand. */
struct queue *worker_queue(const struct worker *worker);
const struct carry_maps *worker_carries(const struct worker *worker);
/* The limits of the pool as it is, or as it will be. */
const struct plan_limits *worker_limits(const struct worker *worker);
/* Another number whenever the limits are others; no two workers have the same. */
uint32_t worker_limits_serial(const struct worker *worker);
double worker_busy_seconds(const struct worker *worker);
void worker_count_ended(struct worker *worker); /* a job */

/* Queues the job here, with job->planned_seconds; queue-full unless is_again, -ENOMEM. */
int worker_enqueue(struct worker *worker, struct job *job, bool is_again,
                   struct gad_error *error) GAD_MUST_CHECK;
void worker_dequeue(struct job *job); /* wherever it is; also when it is nowhere */
/* job->planned_seconds counts at its worker, or no more. */
void worker_count_seconds(struct job *job);
void worker_forget_seconds(struct job *job);

/* 0: sent with the next flush; the answer comes to the object's module. */
int worker_send_job(struct worker *worker, struct job *job) GAD_MUST_CHECK;
int worker_send_region(struct worker *worker, struct region *region,
                       uint32_t *ret_pending_id) GAD_MUST_CHECK;
/* What it remembers of the job; 0: its numbers; with_jobs: it tells before the answer what its jobs
 * have moved. */
int worker_ask(struct worker *worker, struct stats_wait *wait, uint64_t job_id, bool with_jobs,
               uint32_t *ret_pending_id) GAD_MUST_CHECK;
void worker_cancel(struct worker *worker, uint64_t job_id);
void worker_pause(struct worker *worker, uint64_t job_id, bool is_paused);
/* If its client was silent for so long: it gives its carry up, to begin again, or fails. */
void worker_yield(struct worker *worker, uint64_t job_id, uint64_t silent_ns, bool again);
void worker_set_weight(struct worker *worker, uid_t uid, uint32_t weight); /* of the user's jobs */
void worker_detach_region(struct worker *worker, uint64_t region_id);
void worker_forget(struct worker *worker, uint32_t pending_id);

void worker_flush(struct worker *worker);
void worker_trim(struct worker *worker); /* gives back room that was used for messages */
/* How long a tile may take from now on. */
void worker_set_hang_timeout(struct worker *worker, uint64_t timeout_ns);
void worker_apply_limits(struct worker *worker); /* what the settings say from now on */
/* Jobs are active: look at the crash page from time to time. */
void worker_watch_hangs(struct worker *worker);
/* Once a turn, after admission: where somebody waits for a carry, those who hold one for clients
 * that are silent are told to yield, from time to time. */
void worker_watch_carries(struct worker *worker);
/* Once a turn: wakes it when something waits for it, lets it sleep when nothing has for a while. */
void worker_look_after(struct worker *worker);
