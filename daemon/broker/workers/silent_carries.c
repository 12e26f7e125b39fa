/* Carries that come back from silent clients.
 *
 * A job with providers waits for its client without limit, and its carry with it. As long as nobody
 * needs that, nobody minds. Where somebody waits for a carry, or for a suspect that runs alone, the
 * worker is asked from time to time to take it from jobs whose clients have said nothing for
 * provider-timeout. The worker alone knows that (it reads the rings) and decides:
 *
 *     job.yield -->  silent for so long?  --> job.parked: the carry is ours; the job's answer comes
 *                                             when the client is back, and then it is queued again
 *                                         --> provider-failed, where it cannot begin again
 *
 * A job that is paused waits for a person, and its carry with it: it is asked in the same way
 * (jobs/pause.c).
 *
 * So a client that never comes back keeps its descriptors and its place among the active jobs of
 * its user, but none of the pool.
 *
 * Called by dispatch.c.
 */
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/workers/worker_impl.h"
#include "proto/util.h"

#define CHECK_NS UINT64_C(1000000000)

static bool can_yield(const struct worker *w, const struct job *job)
{
    const struct queue_item *item = &job->item;
    return job->has_provider && !job->is_cancelling && !item->is_parked && !item->is_paused &&
           (queue_has_carry(item) || item->is_suspect || queue_has_suspects(w->queue));
}

static void on_yield_time(struct deadline *deadline)
{
    struct worker *w = list_entry(deadline, struct worker, yield_check);
    uint64_t silent_ns = w->broker->options.provider_timeout_ns;
    if (!worker_is_ready(w) || !queue_is_short(w->queue) || w->broker->is_closed)
        return;
    list_for_each (it, queue_active(w->queue)) {
        struct queue_item *item = list_entry(it, struct queue_item, link);
        struct job *job = list_entry(item, struct job, item);
        if (item->is_paused)
            pause_yield(job, silent_ns);
        /* A suspect is tried alone once: others do not wait for it again. */
        if (can_yield(w, job))
            worker_yield(w, job->id, silent_ns, job->is_restartable && !item->is_suspect);
    }
    worker_watch_carries(w);
}

void worker_watch_carries(struct worker *w)
{
    uint64_t timeout_ns = w->broker->options.provider_timeout_ns;
    if (queue_is_short(w->queue) && !deadline_is_set(&w->yield_check))
        broker_set_deadline(w->broker, &w->yield_check, min_u64(timeout_ns / 4 + 1, CHECK_NS),
                            on_yield_time);
}
