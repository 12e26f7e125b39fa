/* Paused jobs.
 *
 *     QUEUED   stays in the queue, where it is passed over (queue.c)
 *     RUNNING  the worker begins no tile of it any more; those that it has begun go on to
 *              their end, and give their slots back
 *
 * A paused job that runs keeps its carry, with what it has computed so far. As long as nobody needs
 * that, nobody minds. Where others wait for a carry, or for a suspect that has to run alone, it may
 * keep it as long as a silent client's job (provider-timeout). Then one that can begin again goes
 * back to the queue, paused, and begins anew when it is let go on; one that cannot is let go on at
 * once: others must not wait for a person.
 *
 * A daemon that is leaving waits for all that run, so it pauses none, and lets those that are go
 * on. Whoever asks which engine would end a job first is not told of paused ones: they take no
 * time.
 *
 * Queue time-outs and deadlines go on. Called by methods_jobs.c, silent_carries.c and broker.c.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/workers/worker.h"
#include "proto/util.h"

bool pause_is_on(const struct job *job)
{
    return job->item.is_paused && job->state <= JOB_RUNNING;
}

/* Who lets a job go on for a moment, and pauses it again, has not begun anew. */
static void count_time(struct job *job, bool is_paused, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - max_u64(job->paused_ns, job->submitted_ns);
    job->idle_ns =
        is_paused ? job->idle_ns - min_u64(job->idle_ns, since_ns) : job->idle_ns + since_ns;
    job->paused_ns = now_ns;
}

void pause_set(struct job *job, bool is_paused)
{
    if (job->state > JOB_RUNNING || job->is_cancelling || job->item.is_paused == is_paused ||
        (is_paused && job->times.broker->is_draining))
        return;
    if (is_paused)
        worker_forget_seconds(job);
    queue_set_paused(worker_queue(job->worker), &job->item, is_paused);
    if (!is_paused)
        worker_count_seconds(job);
    count_time(job, is_paused, loop_now_ns());
    if (job->state == JOB_RUNNING)
        worker_pause(job->worker, job->id, is_paused);
}

void pause_end_all(struct broker *broker)
{
    for (unsigned i = 0; i < broker->n_workers; i++)
        list_for_each (it, queue_active(worker_queue(broker->workers[i])))
            pause_set(list_entry(list_entry(it, struct queue_item, link), struct job, item), false);
}

static bool holds_up_others(const struct job *job)
{
    return queue_has_carry(&job->item) || job->item.is_suspect ||
           queue_has_suspects(worker_queue(job->worker));
}

void pause_yield(struct job *job, uint64_t allowed_ns)
{
    if (job->is_put_back || job->is_cancelling || !holds_up_others(job) ||
        job->idle_ns + loop_now_ns() - job->paused_ns < allowed_ns)
        return;
    if (!job->is_restartable) {
        log_info(LOG_JOB(job->id, job_uid(job)),
                 "goes on: others wait for what it holds, and it cannot begin again");
        pause_set(job, false);
        return;
    }
    job->is_put_back = true;
    worker_cancel(job->worker, job->id);
}
