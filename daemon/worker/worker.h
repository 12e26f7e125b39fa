/* The worker: owns the pool and the arrays' I/O, computes what the broker sends (daemon/WORKER.md).
 * One main thread with a loop over the broker's socket, compute threads and I/O threads. */
#pragma once

#include "daemon/worker/engine.h"
#include "daemon/worker/turns/scheduler.h"
#include "daemon/worker/turns/starts.h"
#include "proto/wire/conn.h"

struct worker_config {
    int fd_take;       /* connected to the broker */
    int crash_page_fd; /* -1: none; stays the caller's */
    struct engine *engine_take;
};

struct worker {
    struct engine *engine;
    struct conn *conn;
    int epoll_fd, wake_fd;
    bool wants_writable;
    struct crashpage *page; /* NULL: none */
    struct regions *regions;
    struct programs *programs;    /* compiled lately */
    struct write_devices devices; /* what was learnt about writing to them */
    struct sched *sched;
    struct starts *starts;
    struct thread_context *context; /* the main thread's, for small jobs */
    struct tile *tile;              /* of a small job */
    char *small_carry;              /* its carry: PLAN_SMALL_CARRY_BYTES */
    struct message_writer writer;
    struct frame frame; /* that could not be handled for want of memory; .body NULL: none */
    struct wjob *held;  /* ended, with large results that wait for each other; first to last */
    uint32_t held_user; /* whose went last */
    uint64_t held_end;  /* of what the broker is sent: where that one ends */
    uint64_t n_jobs;    /* so far */
    uint64_t moved_ns;  /* when all jobs were last told of with job.moved */
    double told_disk;   /* the disk's rate that the broker knows */
};

/* Takes the engine (also on failure), starts the threads and queues worker.ready. -errno. */
int worker_new(const struct worker_config *config, struct worker **ret_worker) GAD_MUST_CHECK;
/* Waits for what threads have in hand. NULL. */
struct worker *worker_free(struct worker *w);

/* Serves the broker until its end of file: 0; or -errno when the connection fails otherwise. */
int worker_run(struct worker *w) GAD_MUST_CHECK;

/* Parts of it, called by the loop ------------------------------------------------------------- */

/* What is in the writer. Without memory it goes into room that is held for it, and waits until
 * there is some. -ENOMEM: it is too large for all of that, or the writer found none. */
int worker_send(struct worker *w) GAD_MUST_CHECK;

/* handle.c: one frame of the broker's. It is freed, or (.body is there still) nothing was done for
 * want of memory, -ENOMEM. 0; any other -errno: the connection is over. */
int worker_handle(struct worker *w, struct frame *frame_take) GAD_MUST_CHECK;
/* Begins jobs that wait for it, for some time: small ones are over then. */
int worker_begin_jobs(struct worker *w) GAD_MUST_CHECK;
/* The jobs that have ended: their replies. */
int worker_reply_ended(struct worker *w) GAD_MUST_CHECK;

/* reply.c: the job's answer, a result or an error (what it had moved by then goes before). */
int worker_reply(struct worker *w, const struct wjob *job) GAD_MUST_CHECK;
/* Takes a job that has ended, and answers: now, or in its turn where the result is large. */
int worker_end_job(struct worker *w, struct wjob *job_take) GAD_MUST_CHECK;
/* The next of those, if what went before has left for the socket. 0: there is nothing to send; 1;
 * or -errno. */
int worker_reply_held(struct worker *w) GAD_MUST_CHECK;
void worker_report_moved(struct wjob *job, void *worker);
void worker_report_progress(struct wjob *job, void *worker);

/* stats.c */
int worker_send_ready(struct worker *w) GAD_MUST_CHECK;
/* What is known of the disk, if the broker knows something else. */
int worker_send_rates(struct worker *w) GAD_MUST_CHECK;
int worker_send_stats(struct worker *w, uint32_t message_id, bool with_jobs) GAD_MUST_CHECK;

/* traced.c */
int worker_send_trace(struct worker *w, uint32_t message_id, uint64_t job) GAD_MUST_CHECK;
