/* What the worker says: that it is ready, how far jobs are, and the answers to requests.
 *
 * The worker is ours, but a fault in it must not become ours: an answer to nothing, a message of
 * another form or an unknown notification is -EPROTO, and the worker is then replaced. An answer
 * finds its object through the table of open requests; whoever asked may be gone (NULL).
 *
 * Called by worker.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/closer.h"
#include "daemon/broker/dispatch.h"
#include "daemon/broker/info.h"
#include "daemon/broker/log.h"
#include "daemon/broker/region.h"
#include "daemon/broker/worker_impl.h"
#include "proto/util.h"

#include <inttypes.h>
#include <limits.h>

static int become_ready(struct worker *w, const msgpack_object *map, struct gad_error *error)
{
    struct worker_info *info = &w->info;
    uint64_t n_threads = info->n_threads;
    int r = map_copy_str(map, "engine", info->engine, sizeof(info->engine), error);
    if (r == 0)
        r = map_copy_str(map, "device", info->device, sizeof(info->device), error);
    if (r == 0)
        r = map_copy_str(map, "level", info->level, sizeof(info->level), error);
    if (r == 0)
        r = map_require_u64(map, "pool_bytes", &info->pool_bytes, error);
    if (r == 0)
        r = map_require_u64(map, "slot_bytes", &info->slot_bytes, error);
    if (r == 0)
        r = map_u64(map, "threads", &n_threads, error);
    if (r == 0)
        r = map_u64(map, "overhead_bytes", &info->overhead_bytes, error);
    if (r != 0)
        return r;
    info->n_threads = (unsigned)min_u64(n_threads, CRASHPAGE_MAX_THREADS);
    return broker_set_pool(w->broker, info->pool_bytes, info->slot_bytes, info->n_threads);
}

static int on_ready(struct worker *w, const struct message *message)
{
    struct gad_error error = {0};
    if (w->info.state != WORKER_STARTING)
        return -EPROTO;
    int r = become_ready(w, &message->params, &error);
    if (r != 0) {
        log_error(NULL, "worker.ready cannot be used: %s", error.message);
        return -EPROTO;
    }
    w->info.state = WORKER_READY;
    w->was_ready = true;
    w->info.n_failed_starts = 0;
    log_info(NULL, "worker ready after %.1f ms: %s, %u threads, pool of %" PRIu64 " bytes",
             (double)(loop_now_ns() - w->started_ns) / 1e6, w->info.level, w->info.n_threads,
             w->info.pool_bytes);
    regions_worker_ready(w->broker);
    return 0;
}

static int on_response(struct worker *w, const struct message *message, struct frame *frame)
{
    void *object = NULL;
    switch (pending_take(&w->pending, message->id, &object)) {
    case PENDING_JOB:
        w->has_served = true;
        dispatch_answered(w->broker, object, message, frame);
        return 0;
    case PENDING_REGION:
        if (object)
            region_answered(object, message);
        return 0;
    case PENDING_STATS:
        if (object)
            info_stats_arrived(object, message);
        return 0;
    case PENDING_NONE: break;
    }
    return -EPROTO;
}

static int handle(struct worker *w, struct frame *frame)
{
    struct message message = {0};
    struct gad_error error = {0};
    bool has_id;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    if (message.kind == MESSAGE_RESPONSE)
        r = on_response(w, &message, frame);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "worker.ready"))
        r = on_ready(w, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "job.progress"))
        dispatch_progress(w->broker, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "job.moved"))
        dispatch_moved(w->broker, &message);
    else
        r = -EPROTO;
    message_deinit(&message);
    return r;
}

/* All that has been received; -EAGAIN: no more. */
static int handle_frames(struct worker *w)
{
    int r = 0;
    while (r == 0 && w->conn) {
        struct frame frame = {0};
        r = conn_next(w->conn, &frame);
        if (r == 0)
            r = handle(w, &frame);
        frame_deinit(&frame, closer_close);
    }
    return r;
}

int worker_read(struct worker *w, unsigned n_receives)
{
    bool is_to_the_end = n_receives == UINT_MAX;
    int r = 0;
    for (unsigned i = 0; i < n_receives && w->conn; i++) {
        r = conn_receive(w->conn);
        if (r < 0)
            return r;
        r = handle_frames(w);
        if (r < 0 && r != -EAGAIN)
            return r;
        if (!is_to_the_end && w->conn && !conn_may_have_more(w->conn))
            break; /* the loop tells when there is more */
    }
    return 0;
}
