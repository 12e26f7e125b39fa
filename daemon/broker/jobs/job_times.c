/* Queue time-outs and deadlines of jobs.
 *
 *     taken ------------- begun ------------------------ computed
 *       |-- queue_timeout_ms --|: queue-timeout
 *       |------------------------------ deadline_ms --|: deadline-exceeded
 *
 * A job in the queue ends at once. One at a worker is asked to stop, as if it had been cancelled,
 * and ends as soon as the worker says that it has; how far it came by then is in the error. A job
 * that is computed before that is done: its time-outs are over, whatever its owner takes to put the
 * output in its place. The client's clock is not asked: both times are counted here, from when the
 * job was taken.
 *
 * Called by submit.c, dispatch.c and finish.c.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/jobs/job_times.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/workers/worker.h"
#include "daemon/broker/workers/workers.h"

#include <stdio.h>

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void on_queue_timeout(struct deadline *deadline)
{
    struct job *job = list_entry(list_entry(deadline, struct job_times, queue), struct job, times);
    struct gad_error error = {0};
    double allowed_s = seconds(job->times.queue_ns);
    double waited_s = seconds(loop_now_ns() - job->submitted_ns);
    if (job->state != JOB_QUEUED)
        return;
    error_set(&error, GAD_QUEUE_TIMEOUT, NULL,
              "the job had not begun after %.3g s; %u jobs wait, %u are under way", waited_s,
              workers_n_waiting(job->times.broker), workers_n_active(job->times.broker));
    error_expected(&error, "to begin within %.3g s", allowed_s);
    error_found(&error, "%.3g s in the queue%s", waited_s, job->item.is_paused ? ", paused" : "");
    finish_error(job->times.broker, job, &error);
}

static void on_deadline(struct deadline *deadline)
{
    struct job *job = list_entry(list_entry(deadline, struct job_times, end), struct job, times);
    if (job->is_cancelling)
        return; /* it ends as cancelled */
    job->times.is_over = true;
    finish_cancel(job->times.broker, job);
}

void job_times_explain(const struct job *job, struct gad_error *ret)
{
    char planned[24] = "?", how_far[80];
    uint64_t now_ns = loop_now_ns();
    if (!job->is_open)
        snprintf(planned, sizeof(planned), "%llu", (unsigned long long)job->n_tiles);
    if (job->state == JOB_QUEUED)
        snprintf(how_far, sizeof(how_far), "in the queue");
    else
        snprintf(how_far, sizeof(how_far), "%llu of %s tiles done, in %.3g s",
                 (unsigned long long)job->n_tiles_done, planned, seconds(now_ns - job->started_ns));
    error_set(ret, GAD_DEADLINE_EXCEEDED, NULL,
              "the job had not ended at its deadline, %.3g s after it was taken: %s",
              seconds(job->times.end_ns), how_far);
    error_expected(ret, "to end within %.3g s", seconds(job->times.end_ns));
    error_found(ret, "%s", how_far);
}

void job_times_begin(struct broker *broker, struct job *job)
{
    struct job_times *times = &job->times;
    times->broker = broker;
    if (times->queue_ns > 0)
        broker_set_deadline(broker, &times->queue, times->queue_ns, on_queue_timeout);
    if (times->end_ns > 0)
        broker_set_deadline(broker, &times->end, times->end_ns, on_deadline);
}

void job_times_begun(struct job *job)
{
    if (job->times.broker)
        broker_clear_deadline(job->times.broker, &job->times.queue);
}

void job_times_end(struct job *job)
{
    job_times_begun(job);
    if (job->times.broker)
        broker_clear_deadline(job->times.broker, &job->times.end);
}
