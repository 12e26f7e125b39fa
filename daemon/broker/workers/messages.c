/* What the worker says: that it is ready or cannot be, how far jobs are, and the answers to
 * requests.
 *
 * The worker is ours, but a fault in it must not become ours: an answer to nothing, a message of
 * another form or an unknown notification is -EPROTO, and the worker is then replaced. An answer
 * finds its object through the table of open requests; whoever asked may be gone (NULL).
 *
 * Called by worker.c.
 */
#define LOG_TOPIC "worker"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/workers/worker_impl.h"
#include "daemon/broker/workers/workers.h"
#include "daemon/crashpage.h"
#include "daemon/rates.h"
#include "kernels/plan/plan_engine.h"
#include "proto/text.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define MAX_MEMORY_PAIRS 64u
#define MAX_MEMORY_BYTES 4096u
#define MAX_POOL_BYTES   (UINT64_C(1) << 41) /* the settings end at half of that */

static int read_limits(const msgpack_object *map, unsigned n_threads, struct plan_limits *ret,
                       struct gad_error *error)
{
    uint64_t n = n_threads;
    bool is_device = ret->engine->has_link;
    int r = map_require_u64(map, "pool_bytes", &ret->pool_bytes, error);
    if (r == 0)
        r = map_require_u64(map, "slot_bytes", &ret->slot_bytes, error);
    if (r == 0)
        r = map_u64(map, "threads", &n, error);
    if (r == 0)
        r = map_bool(map, "is_device", &is_device, error);
    ret->engine = is_device ? &plan_cuda : &plan_cpu;
    if (r == 0)
        r = map_bool(map, "has_tf32", &ret->has_tf32, error);
    if (r == 0)
        r = rates_read(map, &ret->rates, error);
    if (r == 0)
        r = map_u64(map, "device_carry_bytes", &ret->device_carry_bytes, error);
    if (r == 0 && ret->pool_bytes > MAX_POOL_BYTES)
        r = error_set(error, GAD_INTERNAL, "pool_bytes", "it says a pool of %" PRIu64 " bytes",
                      ret->pool_bytes);
    if (r == 0 && ret->device_carry_bytes > (is_device ? MAX_POOL_BYTES : 0))
        r = error_set(error, GAD_INTERNAL, "device_carry_bytes",
                      "it says %" PRIu64 " bytes of a device for carries", ret->device_carry_bytes);
    ret->n_threads = (unsigned)min_u64(n, CRASHPAGE_MAX_THREADS);
    return r;
}

static int read_blas(const msgpack_object *map, struct worker_info *info, struct gad_error *error)
{
    const msgpack_object *blas = map_find(map, "blas");
    info->blas[0] = info->why_no_blas[0] = '\0';
    int r = map_copy_str(map, "why_no_blas", info->why_no_blas, sizeof(info->why_no_blas), error);
    if (r == 0 && blas && blas->type != MSGPACK_OBJECT_NIL)
        r = map_copy_str(map, "blas", info->blas, sizeof(info->blas), error);
    return r;
}

static int read_info(const msgpack_object *map, struct worker_info *info, struct gad_error *error)
{
    uint64_t n_devices = 0;
    char engine[sizeof(info->engine)] = "";
    int r = map_copy_str(map, "engine", engine, sizeof(engine), error);
    if (r == 0 && strncmp(engine, info->index < 0 ? "cpu" : "cuda", 3) != 0)
        r = error_set(error, GAD_INTERNAL, "engine", "it is a worker of %s", engine);
    if (r == 0)
        r = map_copy_str(map, "device", info->device, sizeof(info->device), error);
    if (r == 0)
        r = map_copy_str(map, "level", info->level, sizeof(info->level), error);
    if (r == 0)
        r = read_blas(map, info, error);
    if (r == 0)
        r = map_u64(map, "overhead_bytes", &info->overhead_bytes, error);
    if (r == 0)
        r = map_u64(map, "devices", &n_devices, error);
    info->private_bytes = info->overhead_bytes;
    info->n_devices = (unsigned)min_u64(n_devices, ENGINES_MAX - 1);
    return r;
}

/* What the device's memory is made of is passed on as it is, within bounds. */
static int keep_memory(struct worker_info *info, const msgpack_object *map)
{
    const msgpack_object *memory = map_find(map, "memory");
    msgpack_sbuffer buffer;
    if (!memory || memory->type != MSGPACK_OBJECT_MAP || memory->via.map.size > MAX_MEMORY_PAIRS)
        return 0;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer packer;
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    if (msgpack_pack_object(&packer, *memory) != 0) {
        msgpack_sbuffer_destroy(&buffer);
        return -ENOMEM;
    }
    if (buffer.size > MAX_MEMORY_BYTES) {
        log_warn(NULL, "what %s says of its memory is too long", info->engine);
        msgpack_sbuffer_destroy(&buffer);
        return 0;
    }
    free(info->memory);
    info->n_memory_bytes = buffer.size;
    info->memory = msgpack_sbuffer_release(&buffer);
    return 0;
}

static int become_ready(struct worker *w, const msgpack_object *map, struct gad_error *error)
{
    struct worker_info *info = &w->info;
    struct plan_limits limits = {.engine = info->index >= 0 ? &plan_cuda : &plan_cpu};
    int r = read_info(map, info, error);
    if (r == 0)
        r = read_limits(map, info->n_threads, &limits, error);
    if (r == 0)
        r = keep_memory(info, map);
    if (r)
        return r;
    info->n_threads = limits.n_threads;
    limits.has_blas = info->blas[0] != '\0';
    limits.why_no_blas = info->why_no_blas;
    return worker_set_limits(w, &limits);
}

static int on_ready(struct worker *w, const struct message *message)
{
    struct gad_error error = {0};
    if (w->info.state != WORKER_STARTING)
        return -EPROTO;
    int r = become_ready(w, &message->params, &error);
    if (r == -ENOMEM)
        return r;
    if (r) {
        log_error(NULL, "worker.ready of %s cannot be used: %s", w->info.engine, error.message);
        return -EPROTO;
    }
    w->info.state = WORKER_READY;
    w->was_ready = true;
    w->waited_as = WORKER_STARTING;
    broker_clear_deadline(w->broker, &w->kill);
    w->info.n_failed_starts = 0;
    w->info.why[0] = '\0';
    log_info(NULL, "worker of %s ready after %.1f ms: %s, %u threads, pool of %" PRIu64 " bytes",
             w->info.engine, (double)(loop_now_ns() - w->started_ns) / 1e6, w->info.level,
             w->info.n_threads, w->limits.pool_bytes);
    regions_worker_ready(w->broker, w);
    workers_found_devices(w->broker, w->info.n_devices);
    broker_started_one(w->broker, w);
    return 0;
}

/* Its last words, for people: why it cannot start. */
static int on_failed(struct worker *w, const struct message *message)
{
    struct gad_error error = {0};
    if (message->params.type != MSGPACK_OBJECT_MAP)
        return -EPROTO;
    map_error(&message->params, &error);
    int n = snprintf(w->failure, sizeof(w->failure), "%s", error.message);
    if (error.expected[0] || error.found[0])
        snprintf(w->failure + n, sizeof(w->failure) - (size_t)n, " (expected %s; found %s)",
                 error.expected, error.found);
    text_make_printable(w->failure);
    return 0;
}

/* What it has measured since. */
static int on_rates(struct worker *w, const struct message *message)
{
    double disk = 0;
    if (map_f64(&message->params, "disk", &disk, NULL) != 0)
        return -EPROTO;
    worker_set_disk_rate(w, rates_or_none(disk));
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
            region_answered(object, w, message);
        return 0;
    case PENDING_STATS:
        if (map_u64(&message->result, "private_bytes", &w->info.private_bytes, NULL) != 0)
            return -EPROTO;
        if (object)
            info_stats_arrived(object, w, message);
        return 0;
    case PENDING_TRACE:
        if (object)
            info_stats_arrived(object, w, message);
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
    if (r)
        return r < 0 ? r : -EPROTO;
    if (message.kind == MESSAGE_RESPONSE)
        r = on_response(w, &message, frame);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "worker.ready"))
        r = on_ready(w, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "worker.rates"))
        r = on_rates(w, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "worker.failed"))
        r = on_failed(w, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "job.progress"))
        dispatch_progress(w->broker, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "job.moved"))
        dispatch_moved(w->broker, &message);
    else if (message.kind == MESSAGE_NOTIFICATION && message_is(&message, "job.parked"))
        dispatch_parked(w->broker, w, &message);
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
        struct frame frame = w->unread;
        w->unread = (struct frame){0};
        r = frame.body ? 0 : conn_next(w->conn, &frame);
        if (r == 0)
            r = handle(w, &frame);
        if (r == -ENOMEM && frame.body)
            w->unread = frame;
        else
            frame_deinit(&frame, closer_close);
    }
    return r;
}

static int try_later(struct worker *w)
{
    if (!w->lacks_memory)
        log_error(NULL, "no memory to read what the worker of %s says: it is tried again",
                  w->info.engine);
    w->lacks_memory = true;
    return -EAGAIN;
}

int worker_read(struct worker *w, unsigned n_receives)
{
    bool is_to_the_end = n_receives == UINT_MAX;
    int r = 0;
    for (unsigned i = 0; i < n_receives && w->conn; i++) {
        r = w->lacks_memory ? 0 : conn_receive(w->conn);
        if (r == 0) {
            w->lacks_memory = false;
            r = handle_frames(w);
            if (r == -EAGAIN)
                r = 0;
        }
        if (r < 0)
            return r == -ENOMEM ? try_later(w) : r;
        if (!is_to_the_end && w->conn && !conn_may_have_more(w->conn))
            break; /* the loop tells when there is more */
    }
    return 0;
}
