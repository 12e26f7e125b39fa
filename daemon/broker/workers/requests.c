/* What the worker is told: jobs, regions, cancellations, and what it is asked about itself.
 *
 * A job goes as the client packed it, with where it stands and what of the pool is its own in
 * front. Descriptors are copied before they are sent if they may have to be sent again, to the next
 * worker; else they are given away. Everything waits in the connection until the end of the turn.
 *
 * Called by dispatch.c, region.c, info.c and broker.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/sessions/account.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/workers/worker_impl.h"
#include "daemon/rates.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* For which there was no memory before. */
static int read_on(struct worker *w)
{
    int r = w->lacks_memory ? worker_read(w, 1) : 0;
    if (w->lacks_memory)
        loop_set_busy(w->broker->loop, true);
    return r;
}

void worker_flush(struct worker *w)
{
    if (!w->conn)
        return;
    int r = w->is_untold ? -ENOMEM : read_on(w);
    if (r == 0 || r == -EAGAIN)
        r = w->conn ? conn_flush(w->conn) : 0;
    if (!w->conn)
        return;
    if (r == 0 || r == -EAGAIN)
        r = loop_watch_set(w->watch, WATCH_READ | (r == -EAGAIN ? WATCH_WRITE : 0u));
    else if (!w->is_untold)
        r = worker_read(w, UINT_MAX); /* it is gone: what it said before counts */
    if (r < 0 && r != -EAGAIN && w->conn)
        worker_lose_connection(w, r);
}

void worker_trim(struct worker *w)
{
    if (w->conn)
        conn_trim(w->conn);
}

/* What was packed, and the tail behind it. */
static int send_request(struct worker *w, uint32_t pending_id, const char *tail,
                        size_t n_tail_bytes, const int *fds_take, unsigned n_fds)
{
    const msgpack_sbuffer *body = &w->broker->writer.buffer;
    int r = conn_send_with(w->conn, body->data, body->size, tail, n_tail_bytes, fds_take, n_fds);
    void *object;
    if (r < 0)
        pending_take(&w->pending, pending_id, &object);
    return r;
}

static void begin(struct worker *w, enum pending_kind kind, uint32_t id)
{
    static const char *const methods[] = {[PENDING_JOB] = "job.start",
                                          [PENDING_REGION] = "region.attach",
                                          [PENDING_STATS] = "stats",
                                          [PENDING_TRACE] = "trace"};
    message_begin_request(&w->broker->writer, id, methods[kind]);
}

/* The job keeps its descriptors if it may have to be sent again. */
static int copy_fds(struct job *job, int *ret_fds)
{
    for (unsigned i = 0; i < job->n_fds; i++) {
        ret_fds[i] =
            job->is_restartable ? fcntl(job->fds[i], F_DUPFD_CLOEXEC, 3) : steal_fd(&job->fds[i]);
        if (ret_fds[i] < 0) {
            int r = -errno;
            while (i-- > 0)
                closer_close(ret_fds[i]);
            return r;
        }
    }
    return 0;
}

/* All but the request itself, which stands behind it. */
static void pack_job(const struct broker *broker, msgpack_packer *p, const struct job *job)
{
    msgpack_pack_map(p, 12 + job->has_product);
    if (job->has_product) /* others are planned without */
        rates_pack(p, &job->planned_rates);
    pack_key_u64(p, "job", job->id);
    pack_key_u64(p, "user", job_uid(job));
    pack_key_u64(p, "weight", account_weight(broker->accounts, job_uid(job)));
    pack_key_i64(p, "priority", job->item.priority);
    pack_key_u64(p, "attempt", job->n_attempts);
    const struct extent *carries = job->item.carries;
    pack_key_u64(p, "carry_offset", carries[CARRY_IN_POOL].offset_bytes);
    pack_key_u64(p, "carry_size", carries[CARRY_IN_POOL].size_bytes);
    pack_key_u64(p, "device_carry_offset", carries[CARRY_ON_DEVICE].offset_bytes);
    pack_key_u64(p, "device_carry_size", carries[CARRY_ON_DEVICE].size_bytes);
    pack_key_bool(p, "in_place", job->is_in_place);
    pack_key_bool(p, "makes_again", job->makes_again);
    pack_str(p, "request");
}

int worker_send_job(struct worker *w, struct job *job)
{
    int fds[FRAME_MAX_FDS];
    uint32_t id;
    int r = pending_add(&w->pending, PENDING_JOB, job, &id);
    if (r < 0)
        return r;
    begin(w, PENDING_JOB, id);
    pack_job(w->broker, &w->broker->writer.packer, job);
    r = copy_fds(job, fds);
    if (r < 0) {
        void *object;
        pending_take(&w->pending, id, &object);
        return r;
    }
    return send_request(w, id, job->params, job->n_params_bytes, fds, job->n_fds);
}

int worker_send_region(struct worker *w, struct region *region, uint32_t *ret_pending_id)
{
    msgpack_packer *p = &w->broker->writer.packer;
    int fd = fcntl(region->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return -errno;
    int r = pending_add(&w->pending, PENDING_REGION, region, ret_pending_id);
    if (r < 0) {
        closer_close(fd);
        return r;
    }
    begin(w, PENDING_REGION, *ret_pending_id);
    msgpack_pack_map(p, 3);
    pack_key_u64(p, "region", region->id);
    pack_key_u64(p, "size", region->size_bytes);
    pack_key_bool(p, "writable", region->is_writable);
    return send_request(w, *ret_pending_id, NULL, 0, &fd, 1);
}

int worker_ask(struct worker *w, struct stats_wait *wait, uint64_t job_id, bool with_jobs,
               uint32_t *ret_pending_id)
{
    enum pending_kind kind = job_id ? PENDING_TRACE : PENDING_STATS;
    if (!worker_is_ready(w))
        return -EAGAIN;
    int r = pending_add(&w->pending, kind, wait, ret_pending_id);
    if (r < 0)
        return r;
    begin(w, kind, *ret_pending_id);
    msgpack_pack_map(&w->broker->writer.packer, 1);
    if (job_id)
        pack_key_u64(&w->broker->writer.packer, "job", job_id);
    else
        pack_key_bool(&w->broker->writer.packer, "jobs", with_jobs);
    return send_request(w, *ret_pending_id, NULL, 0, NULL, 0);
}

/* There is room for many of them. A worker that has not heard of the end of a job or a region is of
 * no use any more. */
static void send_written(struct worker *w, const char *method)
{
    const msgpack_sbuffer *body = &w->broker->writer.buffer;
    int r = conn_send_urgent(w->conn, body->data, body->size);
    w->is_untold |= r == -ENOMEM || r == -EINVAL;
    if (r < 0)
        log_error(NULL, "%s cannot be sent to the worker of %s: %s", method, w->info.engine,
                  strerrordesc_np(-r));
}

static void notify(struct worker *w, const char *method, const char *key, uint64_t id)
{
    struct message_writer *writer = &w->broker->writer;
    if (!worker_is_ready(w))
        return;
    message_begin_notification(writer, method);
    msgpack_pack_map(&writer->packer, 1);
    pack_key_u64(&writer->packer, key, id);
    send_written(w, method);
}

void worker_cancel(struct worker *w, uint64_t job_id)
{
    notify(w, "job.cancel", "job", job_id);
}

void worker_pause(struct worker *w, uint64_t job_id, bool is_paused)
{
    struct message_writer *writer = &w->broker->writer;
    if (!worker_is_ready(w))
        return;
    message_begin_notification(writer, "job.pause");
    msgpack_pack_map(&writer->packer, 2);
    pack_key_u64(&writer->packer, "job", job_id);
    pack_key_bool(&writer->packer, "paused", is_paused);
    send_written(w, "job.pause");
}

void worker_yield(struct worker *w, uint64_t job_id, uint64_t silent_ns, bool again)
{
    struct message_writer *writer = &w->broker->writer;
    if (!worker_is_ready(w))
        return;
    message_begin_notification(writer, "job.yield");
    msgpack_pack_map(&writer->packer, 3);
    pack_key_u64(&writer->packer, "job", job_id);
    pack_key_u64(&writer->packer, "silent_ms", silent_ns / 1000000);
    pack_key_bool(&writer->packer, "again", again);
    int r = conn_send_urgent(w->conn, writer->buffer.data, writer->buffer.size);
    if (r < 0) /* it is asked again, or is on its way out */
        log_debug(NULL, "job.yield cannot be sent: %s", strerrordesc_np(-r));
}

void worker_set_weight(struct worker *w, uid_t uid, uint32_t weight)
{
    struct message_writer *writer = &w->broker->writer;
    if (!worker_is_ready(w))
        return; /* it has no jobs, and is told with each */
    message_begin_notification(writer, "user.weight");
    msgpack_pack_map(&writer->packer, 2);
    pack_key_u64(&writer->packer, "user", uid);
    pack_key_u64(&writer->packer, "weight", weight);
    send_written(w, "user.weight");
}

void worker_detach_region(struct worker *w, uint64_t region_id)
{
    notify(w, "region.detach", "region", region_id);
}

void worker_forget(struct worker *w, uint32_t pending_id)
{
    pending_forget(&w->pending, pending_id);
}
