/* The broker: what its modules share. One loop, one thread. */
#pragma once

#include "daemon/broker/sessions/account.h"
#include "daemon/broker/workers/engines.h"
#include "daemon/broker/jobs/fair_share.h"
#include "daemon/broker/jobs/job.h"
#include "daemon/broker/list.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/numbers/metrics.h"
#include "daemon/broker/sessions/mounts.h"
#include "daemon/broker/config/options.h"
#include "daemon/broker/jobs/queue.h"
#include "kernels/plan/plan.h"
#include "proto/wire/message.h"

#include <stdbool.h>
#include <stdint.h>

#define BROKER_REGION_BUCKETS 256u
#define BROKER_NOTICE_SIZE    200
#define BROKER_EXIT_NO_ENGINE 4 /* the only engine that may be used is not there */

struct notifier;
struct planner;
struct programs;
struct reload;
struct sampler;
struct server;
struct worker;

struct broker {
    struct options options;
    struct loop *loop;
    struct accounts *accounts;
    struct jobs *jobs;
    struct mounts *mounts;
    struct programs *programs;           /* compiled lately */
    struct worker *workers[ENGINES_MAX]; /* see workers.h */
    unsigned n_workers;
    struct planner *planner;
    uint32_t last_limits_serial;
    uint32_t losses[ENGINES_MAX]; /* for dispatch.c: by places of workers */
    struct server *server;
    struct notifier *notifier; /* NULL: nobody wants to be told */
    struct reload *reload;     /* NULL: there was none yet */
    struct metrics metrics;
    struct sampler *sampler;

    struct fair_users users;
    struct list sessions, regions;
    struct list regions_by_id[BROKER_REGION_BUCKETS];
    struct list dirty;  /* users of whose sessions something is to be sent (fair_share.h) */
    struct list busy;   /* users of whose sessions something is to be read */
    struct list paused; /* sessions that are not read from, because they hold too much */
    struct list slow;   /* sessions that leave much unread */
    struct list closed; /* sessions to be freed */
    struct list scans;
    unsigned n_sessions, n_regions;
    uint64_t last_region_id, last_scan_id;
    uint32_t last_reader_id; /* of a scan */

    struct list stats_waits; /* who waits for workers' numbers */
    struct deadline idle_deadline, drain_deadline, tidy_deadline, log_deadline;

    struct message_writer writer;  /* for one reply at a time */
    struct message_writer scratch; /* for a part of one */
    uint64_t started_ns;
    bool needs_check, is_draining, is_leaving;
    bool is_closed; /* an admin's word: no job is taken, none of the queue begins */
    char notice[BROKER_NOTICE_SIZE]; /* and why, for people */
    bool has_callers;                /* connections to be accepted */
    bool has_held_back;              /* jobs or requests wait until their users have read replies */
    bool has_room_again;             /* some were read, and there were such */
    bool has_told_ready;
    bool is_stuck; /* after broker_deinit(): a thread still waits for a disk or the like */
    int exit_status;
};

/* Returns what server_new() does. */
int broker_init(struct broker *broker, const struct options *options) GAD_MUST_CHECK;
void broker_deinit(struct broker *broker); /* also half-built */

/* Serves until it is told to leave; the process's exit status. */
int broker_run(struct broker *broker);

/* Gives what broker->options says now to the modules that keep a copy. */
void broker_apply_limits(struct broker *broker);

/* A worker became ready, or its start ended otherwise: is the daemon ready, or of no use? */
void broker_started_one(struct broker *broker, const struct worker *worker);

/* From now on no jobs are taken and begun, or are again. */
void broker_close(struct broker *broker, bool is_closed, const char *notice);

/* Something ended: at the end of the turn, look whether the drain is complete or the daemon idle.
 */
void broker_check(struct broker *broker);

/* From now on. */
void broker_set_deadline(struct broker *broker, struct deadline *deadline, uint64_t delay_ns,
                         void (*func)(struct deadline *deadline));
void broker_clear_deadline(struct broker *broker, struct deadline *deadline);
