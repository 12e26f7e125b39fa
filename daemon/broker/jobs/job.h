/* Jobs and where they are found: states, ids, idempotency keys, and what is kept of those that have
 * ended. Knows no sockets; what a job's end means for its waiters is in finish.c. */
#pragma once

#include "daemon/broker/sessions/account.h"
#include "daemon/broker/deadlines.h"
#include "daemon/broker/workers/engines.h"
#include "daemon/broker/list.h"
#include "daemon/broker/jobs/queue.h"
#include "daemon/traffic.h"
#include "proto/request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JOB_MAX_REGIONS    (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS)
#define JOBS_MAX_KEPT      256u
#define JOBS_UNTOLD_FACTOR 16u /* times that, while nobody has got the outcome of the oldest */
#define JOBS_KEPT_NS       UINT64_C(600000000000) /* ten minutes */
#define JOBS_UNREAD_BYTES  (4u * 1024u * 1024u)   /* of results that nobody has got yet */
#define JOBS_FETCHED_SHARE 8u                     /* a part of that for results that were fetched */
#define JOBS_FETCHED_BYTES (JOBS_UNREAD_BYTES / JOBS_FETCHED_SHARE)

struct broker;
#define JOB_STAGE_SIZE 16

struct metrics_user;
struct region;
struct result;
struct session;
struct worker;

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_SETTLING, /* computed; its owner puts the output in its place */
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_N_STATES
};

/* Somebody who gets a response when the job has ended. */
struct waiter {
    struct list job_link, session_link;
    struct job *job;
    struct session *session;
    uint32_t id; /* of the request */
    bool is_heap;
    struct charge charge;
    struct deadline deadline;
};

/* How long it may wait, and take (job_times.c). */
struct job_times {
    struct broker *broker;
    struct deadline queue, end;
    uint64_t queue_ns, end_ns; /* that are allowed; 0: for ever */
    bool is_over;              /* it is being ended, because its deadline is over */
};

struct job {
    uint64_t id;
    enum job_state state;
    struct job_user *user;
    struct list id_link, key_link, user_link, data_link;
    struct list told_link; /* kept, and somebody has got the outcome */

    struct session *owner; /* NULL: gone, or the job has ended */
    struct list owner_link;
    struct list waiters;
    struct waiter runner; /* of job.run */

    /* What was asked, held until it can no longer be asked of a worker. */
    char *body;
    const char *params;
    size_t n_params_bytes;
    uint64_t held_bytes; /* as counted at its owner */
    int *fds;
    unsigned n_fds;
    struct region **regions; /* a reference each */
    unsigned n_regions;
    char label[REQUEST_LABEL_SIZE], key[REQUEST_LABEL_SIZE];
    int priority;
    uint32_t progress_ms;
    bool needs_settling;
    struct job_times times;
    struct charge job_charge, fd_charge, request_charge, message_charge;
    struct charge reply_charge; /* for its result, while the worker has it */

    /* The plan. */
    uint32_t planned_serial; /* of the limits that it was made with */
    uint32_t decided_serial; /* of the loss of a worker after which it was decided upon last */
    double planned_seconds;
    struct plan_rates planned_rates; /* what a matrix product's tiles follow */
    bool has_product;
    char engine_why[ENGINE_WHY_SIZE];
    bool is_in_place, is_restartable;
    bool makes_again;  /* as its request's, which the worker is told */
    bool has_provider; /* its client answers for blocks of some array */

    /* At the worker. */
    struct worker *worker; /* where it is, waits or was; NULL: it was never queued */
    struct queue_item item;
    bool is_cancelling;
    bool is_put_back;   /* is asked to stop, to begin again when it is no longer paused */
    uint64_t paused_ns; /* since when, if item.is_paused; else when it was let go on last */
    uint64_t idle_ns;   /* for how long it was paused before, less the time in which it went on */
    bool was_deserted;  /* is being cancelled because its owner left */
    unsigned n_attempts, n_losses, n_strikes; /* losses: by deaths that were no other job's */

    bool is_open; /* of a length that is known at its end: so is n_tiles, which is 0 before */
    uint64_t n_tiles, n_tiles_done, read_bytes, write_bytes;
    uint64_t n_slots;                            /* while it runs, as far as it was told */
    uint64_t submitted_ns, started_ns, ended_ns; /* started: of the last attempt */
    uint64_t queued_since_ns;                    /* last */
    struct traffic traffic;                      /* of this attempt, as far as it was told */
    uint64_t queue_wait_ns[TRAFFIC_N_WAITS];     /* of all attempts, in the queue */
    char stage[JOB_STAGE_SIZE];                  /* as its worker told last, of this attempt */
    struct metrics_user *metrics_user;           /* until it ends; NULL: none */
    unsigned counted_as;                         /* an enum metrics_state */

    /* The outcome, once it has ended (the result also while settling). */
    enum gad_status failed_as; /* GAD_OK: it has not failed */
    struct gad_error *error;   /* NULL, though it failed: there was no memory for it */
    struct result *result;
    struct result *room;       /* for the result, until it is there */
    bool is_kept, was_fetched; /* the latter: also of an error */
};

struct jobs;

struct jobs_limits { /* of each user's records; at first those above */
    unsigned max_kept;
    uint64_t kept_ns, unread_bytes;
};

int jobs_new(struct jobs **ret_jobs) GAD_MUST_CHECK;
void jobs_set_limits(struct jobs *jobs, const struct jobs_limits *limits); /* from now on */
struct jobs *jobs_free(struct jobs *jobs);                                 /* NULL; no live jobs */

/* A new job, queued; live until job_keep() or job_discard(). -ENOMEM. */
int jobs_add(struct jobs *jobs, uid_t uid, struct job **ret_job) GAD_MUST_CHECK;
void job_set_key(struct jobs *jobs, struct job *job); /* by job->key, makes it found */

struct job *jobs_find(const struct jobs *jobs, uid_t uid, uint64_t id); /* live or kept, or NULL */
/* Whoever's it is: for what the worker says. */
struct job *jobs_find_any(const struct jobs *jobs, uint64_t id);
/* A job with this key that is alive and not being cancelled, or done; or NULL. */
struct job *jobs_find_key(const struct jobs *jobs, uid_t uid, const char *key);

bool job_can_move(enum job_state from, enum job_state to);
void job_set_state(struct job *job, enum job_state state); /* asserts job_can_move() */
bool job_has_ended(const struct job *job);
const char *job_state_name(enum job_state state);
/* What it waits for in the queue. */
enum traffic_wait job_queue_wait(const struct job *job);
/* Of all waits for that so far, those that its worker told included. */
uint64_t job_wait_ns(const struct job *job, enum traffic_wait wait, uint64_t now_ns);
uid_t job_uid(const struct job *job);

/* A job that has ended becomes a record; older ones may go. */
void job_keep(struct jobs *jobs, struct job *job, uint64_t now_ns);
void job_discard(struct jobs *jobs, struct job *job); /* as if it had never been */
void job_fetched(struct job *job);                    /* somebody has got result or error */
void job_failure(const struct job *job, struct gad_error *ret); /* of one that has failed */

void jobs_expire(struct jobs *jobs, uint64_t now_ns);
unsigned jobs_n_live(const struct jobs *jobs);
unsigned jobs_n_kept(const struct jobs *jobs);

/* Calls func for the user's jobs that have not ended, oldest first, until it returns false; for
 * everybody's where uid is JOBS_OF_EVERYBODY. */
#define JOBS_OF_EVERYBODY ((uid_t)-1)
void jobs_for_each_live(const struct jobs *jobs, uid_t uid,
                        bool (*func)(void *userdata, const struct job *job), void *userdata);
/* The same, latest first, and then for those that are remembered, latest first. */
void jobs_for_each(const struct jobs *jobs, uid_t uid,
                   bool (*func)(void *userdata, const struct job *job), void *userdata);
