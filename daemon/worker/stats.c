/* What the worker tells about itself: once when it is ready, later when it is asked. The numbers
 * are what a test compares before and after it was bad to a worker; descriptors are counted by the
 * kernel, memory by the kernel too, the rest by whoever owns it.
 *
 * Private memory is what nobody else has: anonymous pages of the process, the touched part of the
 * pool included. Mappings of clients' memory are theirs.
 */
#include "daemon/rates.h"
#include "daemon/worker/procfiles.h"
#include "daemon/worker/worker.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#define MOVED_NS   UINT64_C(50000000)
#define TOLD_SHARE 10 /* of a rate: so much more or less is news */

/* What multiplies matrices of floats, or why nothing does. */
static void pack_blas(msgpack_packer *p, const struct engine *e)
{
    pack_str(p, "blas");
    if (e->blas)
        pack_str(p, e->blas);
    else
        msgpack_pack_nil(p);
    if (e->why_no_blas)
        pack_key_str(p, "why_no_blas", e->why_no_blas);
    pack_key_bool(p, "has_tf32", e->limits.has_tf32);
}

int worker_send_ready(struct worker *w)
{
    const struct engine *e = w->engine;
    unsigned n_pairs = e->ops->n_ready_pairs ? e->ops->n_ready_pairs(e) : 0;
    message_writer_clear(&w->writer);
    message_begin_notification(&w->writer, "worker.ready");
    msgpack_packer *p = &w->writer.packer;
    msgpack_pack_map(p, 14 + (e->why_no_blas != NULL) + n_pairs);
    pack_key_str(p, "engine", e->kind);
    pack_key_str(p, "device", e->device);
    pack_key_str(p, "level", e->level);
    pack_key_u64(p, "pool_bytes", e->limits.pool_bytes);
    pack_key_u64(p, "slot_bytes", e->limits.slot_bytes);
    pack_key_u64(p, "carry_limit", e->limits.carry_limit_bytes);
    pack_key_u64(p, "device_carry_bytes", e->limits.device_carry_bytes);
    pack_key_bool(p, "is_device", e->limits.engine->has_link);
    pack_blas(p, e);
    rates_pack(p, &e->limits.rates);
    pack_key_u64(p, "threads", e->limits.n_threads);
    pack_key_u64(p, "overhead_bytes", procfiles_private_bytes());
    pack_key_str(p, "version", GPUARRAYD_VERSION);
    if (n_pairs > 0)
        e->ops->pack_ready(e, p);
    return worker_send(w);
}

/* Before the answers of jobs that have ended, so that the next one is planned with it. */
int worker_send_rates(struct worker *w)
{
    double rate = sched_stats(w->sched).disk_rate;
    double change = rate > w->told_disk ? rate - w->told_disk : w->told_disk - rate;
    if (change <= w->told_disk / TOLD_SHARE)
        return 0;
    message_writer_clear(&w->writer);
    message_begin_notification(&w->writer, "worker.rates");
    msgpack_packer *p = &w->writer.packer;
    msgpack_pack_map(p, 1);
    pack_key_f64(p, "disk", rate);
    int r = worker_send(w);
    if (r != -ENOMEM) /* they are told with the next job otherwise */
        w->told_disk = rate;
    return r == -ENOMEM ? 0 : r;
}

/* What all jobs have moved; whoever asks more often gets what is at most so old. */
static void report_jobs(struct worker *w)
{
    uint64_t now = clock_ns();
    if (w->moved_ns && now - w->moved_ns < MOVED_NS)
        return;
    w->moved_ns = now;
    sched_each(w->sched, worker_report_moved, w);
}

/* What the kernel must look through its tables for. */
static void pack_costly(msgpack_packer *p, struct worker *w, const struct sched_stats *stats)
{
    pack_key_u64(p, "descriptors", procfiles_n_descriptors());
    pack_key_u64(p, "mappings", regions_n_mappings(w->regions) + stats->n_rings);
}

/* Whoever wants to know of jobs asks often: all that is then told is at hand. */
int worker_send_stats(struct worker *w, uint32_t message_id, bool with_jobs)
{
    const struct engine *e = w->engine;
    unsigned n_pairs = !with_jobs && e->ops->n_stats_pairs ? e->ops->n_stats_pairs(e) : 0;
    if (with_jobs)
        report_jobs(w);
    struct sched_stats stats = sched_stats(w->sched);
    message_writer_clear(&w->writer);
    message_begin_result(&w->writer, message_id);
    msgpack_packer *p = &w->writer.packer;
    msgpack_pack_map(p, (with_jobs ? 7 : 9) + n_pairs);
    pack_key_u64(p, "slots_lent", stats.slots.n_lent);
    pack_key_u64(p, "slots", stats.slots.n_slots);
    pack_key_u64(p, "carries", stats.slots.n_carries);
    pack_key_u64(p, "carry_bytes", stats.slots.carry_bytes);
    pack_key_u64(p, "jobs", stats.n_jobs);
    pack_key_u64(p, "threads_busy", stats.n_busy);
    pack_key_u64(p, "private_bytes", procfiles_private_bytes());
    if (!with_jobs)
        pack_costly(p, w, &stats);
    if (n_pairs > 0)
        e->ops->pack_stats(e, p);
    return worker_send(w);
}
