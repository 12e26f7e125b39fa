/* What the broker asks for, one function a message.
 *
 * Jobs wait for their users' turns (starts.h); between some of them the loop looks at everything
 * else, so nothing that is asked meanwhile waits for all of them. A job that is small is run here
 * and now when it is next: on the way of a message of a few KiB, waking a thread costs more than
 * computing, which by the table of costs takes 0.5 ms at most, whatever its values are. All others
 * go to the scheduler, and their answer follows when they have ended. Nothing that is begun is cut
 * short: what bounds a turn of the loop is that no other job is begun in it when BEGIN_NS have
 * passed, and what each took counts for its user. The broker is trusted: what it asks must be
 * well-formed, or the connection is over.
 *
 * What a client's request makes the main thread do is done with the job in the crash page, so that
 * a request at which it faults or hangs is known as the one that did it.
 */
#include "daemon/worker/io/ring.h"
#include "daemon/worker/worker.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <string.h>
#include <sys/epoll.h>

/* What others are told, and ask, waits so long, and for one small job more. */
#define BEGIN_NS UINT64_C(500000)

/* The answer to a request that failed: a status in `error`, or -errno. */
static int send_error(struct worker *w, uint32_t message_id, int r, struct gad_error *error)
{
    if (r < 0)
        (void)error_from_errno(error, -r, NULL, "preparing the job");
    message_writer_clear(&w->writer);
    message_error(&w->writer, message_id, error);
    return worker_send(w);
}

static int attach(struct worker *w, const struct message *message, struct frame *frame,
                  struct gad_error *error)
{
    uint64_t id, size_bytes;
    bool is_writable = false;
    int r = map_require_u64(&message->params, "region", &id, error);
    if (!r)
        r = map_require_u64(&message->params, "size", &size_bytes, error);
    if (!r)
        r = map_bool(&message->params, "writable", &is_writable, error);
    if (r)
        return r;
    if (frame->n_fds != 1)
        return error_set(error, GAD_BAD_REQUEST, "region", "a region is one descriptor");
    return region_attach(w->regions, id, size_bytes, is_writable, steal_fd(&frame->fds[0]), error);
}

static int handle_region_attach(struct worker *w, struct message *message, struct frame *frame)
{
    struct gad_error error = {0};
    int r = attach(w, message, frame, &error);
    if (r)
        return send_error(w, message->id, r, &error);
    message_writer_clear(&w->writer);
    message_begin_result(&w->writer, message->id);
    msgpack_pack_map(&w->writer.packer, 0);
    return worker_send(w);
}

static int handle_region_detach(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    uint64_t id;
    if (map_require_u64(&message->params, "region", &id, NULL))
        return -EPROTO;
    region_detach(w->regions, id);
    return 0;
}

/* The main thread is at the job, from now on. The watch may have fallen asleep while it was at
 * none. */
static void take_in_hand(struct worker *w, uint64_t job_id)
{
    if (!w->context->page)
        return;
    crashpage_enter(w->context->page, job_id, 0, clock_ns(), CRASHPAGE_COMPUTING);
    sched_wake_watch(w->sched);
}

static void put_down(struct worker *w)
{
    if (w->context->page)
        crashpage_leave(w->context->page);
}

/* Nothing of a small job needs the scheduler: no slot or carry of the pool, no ring, a single tile
 * a pass. */
static void run_small(struct worker *w, struct wjob *job)
{
    wjob_set_state(job, WJOB_RUNNING);
    char *carry = slots_poison(w->small_carry, job->plan.carry_bytes);
    wjob_begin(job, carry, carry);
    while (!job->is_complete && !job->status) {
        struct tile *tile = w->tile;
        tile_init(tile, job);
        enum tile_outcome outcome = tile_run_small(w->engine, tile, w->context);
        take_in_hand(w, job->identity.id);
        if (outcome != TILE_DONE) {
            wjob_fail(job, w->context->status, &w->context->error);
            break;
        }
        wjob_tile_done(job, tile);
        walk_drop(tile);
        wjob_advance(job);
    }
    job->ended_ns = clock_ns();
}

static int watch_rings(struct worker *w, struct wjob *job, struct gad_error *error)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = job->serial};
    for (unsigned i = 0; i < job->n_ports; i++) {
        const struct port *port = &job->ports[i];
        if (port_owns_ring(port) &&
            epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, ring_done_fd(port->ring), &event) < 0)
            return error_from_errno(error, errno, port->name, "watching the ring");
    }
    return 0;
}

static int end_job(struct worker *w, struct wjob *job)
{
    take_in_hand(w, job->identity.id);
    wjob_check_regions(job);
    int r = worker_end_job(w, job);
    put_down(w);
    return r;
}

static int begin_job(struct worker *w, struct start *start)
{
    const struct message *message = &start->message;
    struct gad_error error = {0};
    struct wjob *job;
    const struct wjob_context context = {.regions = w->regions,
                                         .programs = w->programs,
                                         .devices = &w->devices,
                                         .limits = &w->engine->limits,
                                         .lock = sched_lock(w->sched)};
    int r = wjob_new(&start->frame, message, &start->identity, &context, &job, &error);
    if (r)
        return send_error(w, message->id, r, &error);
    job->serial = ++w->n_jobs;
    job->begun_ns = start->received_ns;
    if (job->plan.is_small) {
        run_small(w, job);
        return end_job(w, job);
    }
    r = watch_rings(w, job, &error);
    if (!r)
        r = sched_add(w->sched, job, &error);
    if (r) {
        wjob_unwatch_rings(job, w->epoll_fd);
        wjob_free(job);
        return send_error(w, message->id, r, &error);
    }
    return 0;
}

int worker_begin_jobs(struct worker *w)
{
    uint64_t begin = clock_ns(), now = begin;
    int r = 0;
    while (!r && now - begin < BEGIN_NS) {
        struct start *start = starts_next(w->starts);
        if (!start)
            break;
        uint64_t begun = now;
        take_in_hand(w, start->identity.id);
        r = begin_job(w, start);
        put_down(w);
        now = clock_ns();
        starts_charge(w->starts, &start->identity, (double)(now - begun) * 1e-9);
        start_free(start);
    }
    return r;
}

static int handle_job_start(struct worker *w, struct message *message, struct frame *frame)
{
    struct gad_error error = {0};
    int r = starts_add(w->starts, frame, message, &error);
    return r ? send_error(w, message->id, r, &error) : 0;
}

static int handle_job_cancel(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    struct gad_error error;
    uint64_t id;
    if (map_require_u64(&message->params, "job", &id, NULL))
        return -EPROTO;
    struct start *start = starts_take(w->starts, id);
    if (!start) {
        sched_cancel(w->sched, id);
        return 0;
    }
    int r = error_set(&error, GAD_CANCELLED, NULL, "the job was cancelled");
    r = send_error(w, start->identity.message_id, r, &error);
    start_free(start);
    return r;
}

static int handle_job_yield(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    uint64_t id, limit_ms = 0, silent_ns;
    bool again = false;
    if (map_require_u64(&message->params, "job", &id, NULL) ||
        map_u64(&message->params, "silent_ms", &limit_ms, NULL) ||
        map_bool(&message->params, "again", &again, NULL) || limit_ms > UINT32_MAX)
        return -EPROTO;
    if (!sched_yield_carry(w->sched, id, limit_ms * UINT64_C(1000000), again, &silent_ns))
        return 0;
    message_writer_clear(&w->writer);
    message_begin_notification(&w->writer, "job.parked");
    msgpack_pack_map(&w->writer.packer, 2);
    pack_key_u64(&w->writer.packer, "job", id);
    pack_key_u64(&w->writer.packer, "silent_ms", silent_ns / 1000000);
    return worker_send(w);
}

/* Small ones are over before anybody could wait for it. */
static int handle_job_pause(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    uint64_t id;
    bool is_paused = false;
    if (map_require_u64(&message->params, "job", &id, NULL) ||
        map_bool(&message->params, "paused", &is_paused, NULL))
        return -EPROTO;
    if (!starts_pause(w->starts, id, is_paused))
        sched_pause(w->sched, id, is_paused);
    return 0;
}

static int handle_user_weight(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    uint64_t user, weight;
    if (map_require_u64(&message->params, "user", &user, NULL) ||
        map_require_u64(&message->params, "weight", &weight, NULL) || user > UINT32_MAX ||
        weight < 1 || weight > UINT32_MAX)
        return -EPROTO;
    starts_set_weight(w->starts, (uint32_t)user, (uint32_t)weight);
    sched_set_weight(w->sched, (uint32_t)user, (uint32_t)weight);
    return 0;
}

static int handle_stats(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    bool with_jobs = false;
    if (map_bool(&message->params, "jobs", &with_jobs, NULL))
        return -EPROTO;
    return worker_send_stats(w, message->id, with_jobs);
}

static int handle_trace(struct worker *w, struct message *message, struct frame *frame)
{
    (void)frame;
    uint64_t id;
    if (map_require_u64(&message->params, "job", &id, NULL))
        return -EPROTO;
    return worker_send_trace(w, message->id, id);
}

static const struct {
    const char *method;
    enum message_kind kind;
    int (*handle)(struct worker *w, struct message *message, struct frame *frame);
} handlers[] = {
    {"job.start", MESSAGE_REQUEST, handle_job_start},
    {"job.cancel", MESSAGE_NOTIFICATION, handle_job_cancel},
    {"job.pause", MESSAGE_NOTIFICATION, handle_job_pause},
    {"job.yield", MESSAGE_NOTIFICATION, handle_job_yield},
    {"region.attach", MESSAGE_REQUEST, handle_region_attach},
    {"region.detach", MESSAGE_NOTIFICATION, handle_region_detach},
    {"user.weight", MESSAGE_NOTIFICATION, handle_user_weight},
    {"stats", MESSAGE_REQUEST, handle_stats},
    {"trace", MESSAGE_REQUEST, handle_trace},
};

static int dispatch(struct worker *w, struct message *message, struct frame *frame)
{
    struct gad_error error;
    int r = error_set(&error, GAD_UNKNOWN_METHOD, NULL, "a worker has no such method");
    for (unsigned i = 0; i < ARRAY_LENGTH(handlers); i++)
        if (message->kind == handlers[i].kind && message_is(message, handlers[i].method))
            r = handlers[i].handle(w, message, frame);
    bool is_answer_missing = r > 0 || r == -ENOMEM;
    if (message->kind != MESSAGE_REQUEST || !is_answer_missing)
        return r > 0 ? 0 : r;
    return send_error(w, message->id, r, &error);
}

int worker_handle(struct worker *w, struct frame *frame_take)
{
    struct message message = {.zone = NULL};
    struct gad_error error;
    bool has_id = false;
    int r = message_decode(frame_take->body, frame_take->size_bytes, &message, &has_id, &error);
    if (r == -ENOMEM)
        return r;
    if (r > 0)
        r = has_id ? send_error(w, message.id, r, &error) : -EPROTO;
    else if (!r)
        r = dispatch(w, &message, frame_take);
    message_deinit(&message);
    frame_deinit(frame_take, NULL);
    return r;
}

int worker_reply_ended(struct worker *w)
{
    struct wjob *job = sched_take_ended(w->sched);
    int r = worker_send_rates(w);
    while (job) {
        struct wjob *next = job->next;
        if (r)
            wjob_free(job);
        else
            r = end_job(w, job);
        job = next;
    }
    return r;
}
