/* Metrics: what has happened since the daemon started, counted where it happens. Numbers only rise;
 * server.stats (stats.c) tells them. */
#pragma once

#include "daemon/broker/list.h"
#include "daemon/traffic.h"
#include "proto/error.h"

#include <stdint.h>
#include <sys/types.h>

/* Users that are remembered; beyond, who was idle longest is forgotten. */
#define METRICS_MAX_USERS 4096u

struct job;

enum metrics_state { METRICS_QUEUED, METRICS_RUNNING, METRICS_SETTLING, METRICS_N_STATES };

/* Jobs that have not ended. */
struct metrics_jobs {
    uint64_t n[METRICS_N_STATES];
    uint64_t queued_since_sum_ns; /* of those in the queue; wraps around */
};

struct metrics_user {
    struct list link; /* who did something last comes first */
    uid_t uid;
    uint64_t read_bytes, write_bytes;
    uint64_t waited_ns;                /* jobs in the queue; without those that wait now */
    uint64_t work_ns;                  /* of threads and devices, for its jobs */
    uint64_t wait_ns[TRAFFIC_N_WAITS]; /* of its jobs; in the queue, too, as waited_ns */
    struct metrics_jobs jobs;
};

/* Of shared scans. */
struct metrics_scans {
    uint64_t n_started, n_lost;   /* processes; the latter: that ended of something else than us */
    uint64_t n_joined, n_shared;  /* readers; the latter: to whom a process was there */
    uint64_t n_decoded, n_failed; /* chunks */
    uint64_t n_taken;             /* by all readers */
};

struct metrics {
    uint64_t n_sessions, n_regions, n_submitted, n_requeued, n_failed_starts;
    uint64_t n_ended[GAD_STATUS_COUNT];    /* jobs, by outcome */
    uint64_t n_refusals[GAD_STATUS_COUNT]; /* requests and connections */
    struct metrics_scans scans;
    struct traffic traffic; /* of its waits those in the queue, too, as queue_ns */
    uint64_t queue_ns;      /* jobs in the queue; without those that wait now */
    struct metrics_jobs jobs;
    struct list users;
    unsigned n_users;
};

void metrics_init(struct metrics *metrics);
void metrics_deinit(struct metrics *metrics); /* also zeroed */

void metrics_session(struct metrics *metrics, uid_t uid);
void metrics_refused(struct metrics *metrics, int status); /* with an error to the client */

/* A job's life. */
void metrics_submitted(struct metrics *metrics, struct job *job);
void metrics_started(struct metrics *metrics, struct job *job);
void metrics_requeued(struct metrics *metrics, struct job *job, uint64_t now_ns);
void metrics_settling(struct metrics *metrics, struct job *job);
/* The worker has told of its traffic (traffic_update() reads the map). */
void metrics_moved(struct metrics *metrics, struct job *job, const msgpack_object *map);
void metrics_ended(struct metrics *metrics, struct job *job, uint64_t now_ns);

uint64_t metrics_n_live(const struct metrics_jobs *jobs);
/* How long those that wait in the queue have waited, together. */
uint64_t metrics_waiting_ns(const struct metrics_jobs *jobs, uint64_t now_ns);
