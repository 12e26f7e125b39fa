/* What jobs are planned and queued with, one of each for a worker: its queue, the map of its pool,
 * its limits, and how long what it has in hand will take.
 *
 * Before a worker has said how large its pool is, jobs are planned with what the settings say it
 * will be; a job remembers the serial number of the limits that it was planned with and is planned
 * again, before it starts, where they are others by then. The pool's map is replaced while no carry
 * is lent: when a worker says that it is ready nothing is active there.
 *
 * busy_seconds is a sum of estimates; paused jobs are left out. It is set to 0 whenever nothing is
 * left, so that errors of rounding do not add up.
 *
 * Called by worker.c, messages.c, submit.c and finish.c.
 */
#include "daemon/broker/workers/worker_impl.h"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/memory.h"
#include "daemon/poolmap.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#define DEVICE_BYTES       (1600u * 1024u * 1024u)
#define DEVICE_POOL_BYTES  (512u * 1024u * 1024u)
#define DEVICE_SLOT_BYTES  (8u * 1024u * 1024u)
#define DEVICE_CARRY_SHARE 3 /* at least */

static bool is_same(const struct plan_limits *a, const struct plan_limits *b)
{
    return a->pool_bytes == b->pool_bytes && a->slot_bytes == b->slot_bytes &&
           a->carry_limit_bytes == b->carry_limit_bytes &&
           a->device_carry_bytes == b->device_carry_bytes && a->n_threads == b->n_threads &&
           a->memory_bytes == b->memory_bytes && a->engine == b->engine &&
           a->has_blas == b->has_blas && a->has_tf32 == b->has_tf32;
}

static int set_maps(struct worker *w, const struct plan_limits *now)
{
    bool is_device = now->engine->has_link;
    const uint64_t parts[CARRY_N] = {
        [CARRY_IN_POOL] = poolmap_part_bytes(now->pool_bytes, is_device),
        [CARRY_ON_DEVICE] = now->device_carry_bytes,
    };
    struct carry_maps maps = {{NULL}};
    int r = 0;
    for (unsigned i = 0; i < CARRY_N && r == 0; i++)
        r = poolmap_new(parts[i], &maps.of[i]);
    for (unsigned i = 0; i < CARRY_N; i++)
        poolmap_free(r ? maps.of[i] : w->carries.of[i]);
    if (r == 0)
        w->carries = maps;
    return r;
}

int worker_set_limits(struct worker *w, const struct plan_limits *limits)
{
    struct plan_limits now = *limits;
    if (!w->carries.of[0] || w->limits.pool_bytes != now.pool_bytes ||
        w->limits.device_carry_bytes != now.device_carry_bytes) {
        int r = set_maps(w, &now);
        if (r)
            return r;
    }
    now.carry_limit_bytes = poolmap_carry_limit_bytes(now.pool_bytes);
    now.product_carry_bytes = now.engine->has_link
                                  ? poolmap_device_limit_bytes(now.device_carry_bytes)
                                  : poolmap_product_limit_bytes(now.pool_bytes);
    now.memory_bytes = memory_bytes();
    if (!(now.rates.disk > 0)) /* a worker that comes again does not know it yet */
        now.rates.disk = w->limits.rates.disk;
    if (!is_same(&now, &w->limits))
        w->limits_serial = ++w->broker->last_limits_serial;
    w->limits = now;
    return 0;
}

/* They read from the same disks: one that has not waited for them yet would only seem faster. */
void worker_set_disk_rate(struct worker *w, double rate)
{
    const struct broker *broker = w->broker;

    w->limits.rates.disk = rate;
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (!(broker->workers[i]->limits.rates.disk > 0))
            broker->workers[i]->limits.rates.disk = rate;
}

static struct plan_limits limits_of_settings(const struct worker *w)
{
    const struct options *o = &w->broker->options;
    struct plan_limits limits = {.engine = &plan_cpu, .n_threads = o->n_threads};
    if (w->info.index < 0) {
        limits.pool_bytes = o->pool_bytes;
        limits.slot_bytes =
            poolmap_cpu_slot_bytes(o->pool_bytes, o->n_threads, GRAIN_MAX_TOTAL_BYTES);
        return limits;
    }
    limits.engine = &plan_cuda;
    limits.has_blas = limits.has_tf32 = true; /* as if it were so */
    uint64_t device_bytes = o->device_bytes == OPTIONS_AUTO ? DEVICE_BYTES : o->device_bytes;
    uint64_t pinned_bytes = o->pinned_bytes == OPTIONS_AUTO ? DEVICE_POOL_BYTES : o->pinned_bytes;
    limits.pool_bytes = min_u64(pinned_bytes, device_bytes - device_bytes / DEVICE_CARRY_SHARE);
    limits.device_carry_bytes = device_bytes - limits.pool_bytes;
    limits.slot_bytes = o->chunk_bytes == OPTIONS_AUTO ? DEVICE_SLOT_BYTES : o->chunk_bytes;
    return limits;
}

static struct queue_limits queue_limits_of(const struct options *o)
{
    return (struct queue_limits){
        .max_waiting = o->max_queue,
        .max_active = o->max_active,
        .user_guarantee = o->user_active,
    };
}

int worker_limits_init(struct worker *w)
{
    const struct queue_limits queue_limits = queue_limits_of(&w->broker->options);
    const struct plan_limits limits = limits_of_settings(w);
    int r = queue_new(&queue_limits, &w->queue);
    if (r == 0)
        queue_set_gate(w->queue, dispatch_may_reply, w->broker);
    return r == 0 ? worker_set_limits(w, &limits) : r;
}

void worker_limits_deinit(struct worker *w)
{
    w->queue = queue_free(w->queue);
    for (unsigned i = 0; i < CARRY_N; i++)
        w->carries.of[i] = poolmap_free(w->carries.of[i]);
}

void worker_apply_limits(struct worker *w)
{
    const struct queue_limits limits = queue_limits_of(&w->broker->options);
    queue_set_limits(w->queue, &limits);
    worker_set_hang_timeout(w, w->broker->options.hang_timeout_ns);
}

struct queue *worker_queue(const struct worker *w)
{
    return w->queue;
}

const struct carry_maps *worker_carries(const struct worker *w)
{
    return &w->carries;
}

const struct plan_limits *worker_limits(const struct worker *w)
{
    return &w->limits;
}

uint32_t worker_limits_serial(const struct worker *w)
{
    return w->limits_serial;
}

double worker_busy_seconds(const struct worker *w)
{
    return w->busy_seconds;
}

void worker_count_ended(struct worker *w)
{
    w->info.n_jobs_ended++;
}

void worker_count_seconds(struct job *job)
{
    if (!job->item.is_paused)
        job->worker->busy_seconds += job->planned_seconds;
}

void worker_forget_seconds(struct job *job)
{
    struct worker *w = job->worker;
    if (!job->item.is_paused)
        w->busy_seconds -= job->planned_seconds;
    if (queue_n_active(w->queue) + queue_n_waiting(w->queue) == 0 || w->busy_seconds < 0)
        w->busy_seconds = 0;
}

int worker_enqueue(struct worker *w, struct job *job, bool is_again, struct gad_error *error)
{
    int r = is_again ? queue_push_again(w->queue, job_uid(job), &job->item)
                     : queue_push(w->queue, job_uid(job), &job->item, error);
    if (r)
        return r;
    job->worker = w;
    worker_count_seconds(job);
    return 0;
}

void worker_dequeue(struct job *job)
{
    struct worker *w = job->worker;
    if (!w || job->item.place == QUEUE_OUT)
        return;
    queue_remove(w->queue, &w->carries, &job->item);
    worker_forget_seconds(job);
}
