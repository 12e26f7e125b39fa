/* Dispatch: from the workers' queues to the workers and back.
 *
 *     queue_admit --> job.start --> ... --> answer --> finish
 *          ^                          |
 *          +-- back to the front -----+-- the worker ended
 *
 * Admission happens once in every turn of the loop, at each worker as long as it takes what is
 * sent and TURN_NS last. A job whose result comes back in a message waits while its user has not
 * read what came before: so many bytes are charged before it starts, and memory follows what
 * clients read. A job that was planned for other limits than its worker has by then, or a region of
 * which the worker cannot map, is decided upon again first, and may go to another worker. When a
 * worker ends, what was active and can run again goes back to the front of the queue in the old
 * order; what cannot ends `worker-lost`. A job that had a tile in hand when the worker died of its
 * own doing has a strike and is a suspect: it runs next, alone, so a second death is its own:
 * `poisoned`. Where a thread of the worker faulted only the job of its tile is a suspect. Where no
 * tile was in hand (it died as it read a message, say) all that were active are suspects.
 * Deaths from outside count for nobody, but not for ever (MAX_LOSSES); those of which another job
 * is the suspect do not count at all.
 *
 * A job whose client is silent while others wait for its carry is parked (silent_carries.c): it
 * waits at the worker without one, and goes back to the queue when its client is there again.
 *
 * Called by broker.c (turn) and worker.c.
 */
#define LOG_TOPIC "dispatch"
#include "daemon/broker/jobs/dispatch.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/jobs/job_times.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/jobs/submit.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/workers/workers.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <stdio.h>
#include <string.h>

#define MAX_STRIKES          2u
#define MAX_LOSSES           100u
#define TURN_NS              UINT64_C(1000000)
#define PROGRESS_QUEUE_BYTES (256u * 1024u) /* a client that lags gets no more of it */

static struct job *job_of(struct list *link)
{
    return list_entry(list_entry(link, struct queue_item, link), struct job, item);
}

static void fail_start(struct broker *broker, struct job *job, int r, struct gad_error *error)
{
    if (r == -EMSGSIZE)
        error_set(error, GAD_LIMIT_EXCEEDED, NULL,
                  "the request does not fit a message to the worker");
    else if (r < 0)
        error_from_errno(error, -r, NULL, "the job cannot be given to the worker");
    finish_error(broker, job, error);
}

static bool is_as_planned(const struct worker *w, const struct job *job)
{
    for (unsigned i = 0; i < job->n_regions; i++)
        if (region_is_broken_at(job->regions[i], w))
            return false;
    return job->planned_serial == worker_limits_serial(w);
}

/* One at a time it may always be: a share can be less than a result. */
bool dispatch_may_reply(void *userdata, uid_t uid, uint64_t reply_bytes)
{
    struct broker *broker = userdata;
    const struct accounts *accounts = broker->accounts;
    if (reply_bytes == 0)
        return true;
    uint64_t coming = account_use(accounts, uid, ACCOUNT_COMING_BYTES);
    if (coming + account_use(accounts, uid, ACCOUNT_REPLY_BYTES) == 0 ||
        account_has_room(accounts, uid, ACCOUNT_REPLY_BYTES, coming + reply_bytes))
        return true;
    broker->has_held_back = true;
    return false;
}

static void give(struct broker *broker, struct worker *w, struct job *job)
{
    struct gad_error error = {0};
    if (job->item.reply_bytes > 0)
        account_set_charge(broker->accounts, job_uid(job), ACCOUNT_COMING_BYTES,
                           job->item.reply_bytes, &job->reply_charge);
    job_set_state(job, JOB_RUNNING);
    job->n_attempts++;
    job->n_tiles_done = job->read_bytes = job->write_bytes = job->n_slots = 0;
    job->started_ns = loop_now_ns();
    job->stage[0] = '\0';
    job->idle_ns = 0;
    metrics_started(&broker->metrics, job);
    job_times_begun(job);
    int r = worker_send_job(w, job);
    if (r)
        fail_start(broker, job, r, &error);
    else
        log_debug(LOG_JOB(job->id, job_uid(job)), "started at %s, attempt %u",
                  worker_info(w)->engine, job->n_attempts);
}

/* It is active and has its carry. */
static void start(struct broker *broker, struct worker *w, struct job *job)
{
    struct gad_error error = {0};
    const struct carry_sizes sizes = job->item.sizes;
    int r = is_as_planned(w, job) ? 0 : submit_decide_again(broker, job, &error);
    if (r)
        fail_start(broker, job, r, &error);
    else if (job->worker == w && !carry_sizes_are_equal(&job->item.sizes, &sizes))
        queue_push_back_to_front(worker_queue(w), worker_carries(w), &job->item);
    else if (job->worker == w)
        give(broker, w, job);
}

static void refuse_carry(struct broker *broker, const struct worker *w, struct job *job)
{
    struct gad_error error = {0};
    const struct carry_sizes *sizes = &job->item.sizes;
    const struct plan_limits *limits = worker_limits(w);
    bool of_device = sizes->of[CARRY_ON_DEVICE] > limits->device_carry_bytes;
    unsigned long long needed = sizes->of[of_device ? CARRY_ON_DEVICE : CARRY_IN_POOL];
    bool of_products = of_device || !limits->engine->has_link;
    unsigned long long there =
        of_products ? limits->product_carry_bytes : limits->carry_limit_bytes;
    error_set(&error, GAD_TOO_LARGE_FOR_POOL, NULL,
              "the job keeps %llu bytes of the %s, at most %llu can be lent", needed,
              of_device ? "device" : "pool", there);
    error_expected(&error, "at most %llu bytes", there);
    error_found(&error, "%llu bytes", needed);
    worker_forget_seconds(job);
    finish_error(broker, job, &error);
}

static void admit(struct broker *broker, struct worker *w, uint64_t until_ns)
{
    bool has_started = false;
    worker_look_after(w);
    while (!broker->is_closed && worker_has_room(w)) {
        struct queue_item *item;
        if (has_started && loop_now_ns() >= until_ns) { /* some had to be planned again */
            loop_set_busy(broker->loop, true);
            break;
        }
        int r = queue_admit(worker_queue(w), worker_carries(w), &item);
        if (r == -EAGAIN)
            break;
        struct job *job = list_entry(item, struct job, item);
        if (r == 0) {
            start(broker, w, job);
            has_started = true;
        } else {
            refuse_carry(broker, w, job);
        }
    }
    if (has_started)
        worker_watch_hangs(w);
    if (!broker->is_closed)
        worker_watch_carries(w);
}

/* Its client is back, or it was paused for long. */
static bool begins_again(const struct job *job, const struct gad_error *error)
{
    bool is_cancelled = error->status == GAD_CANCELLED;
    return !job->is_cancelling && (is_cancelled ? job->is_put_back : job->item.is_parked);
}

static void send_back(struct broker *broker, struct worker *w, struct job *job);

void dispatch_parked(struct broker *broker, struct worker *w, const struct message *message)
{
    struct gad_error ignored;
    uint64_t id, silent_ms = 0;
    if (map_require_u64(&message->params, "job", &id, &ignored) != 0 ||
        map_u64(&message->params, "silent_ms", &silent_ms, &ignored) != 0)
        return;
    struct job *job = jobs_find_any(broker->jobs, id);
    if (!job || job->state != JOB_RUNNING || job->worker != w || job->item.is_suspect ||
        job->item.is_parked)
        return;
    queue_park(worker_queue(w), worker_carries(w), &job->item);
    log_info(LOG_JOB(job->id, job_uid(job)),
             "waits without its carry: its client has said nothing for %.1f s, and others wait",
             (double)silent_ms / 1e3);
}

void dispatch_answered(struct broker *broker, struct job *job, const struct message *message,
                       struct frame *frame)
{
    struct gad_error error = {0};
    if (message->error.type != MSGPACK_OBJECT_NIL) {
        map_error(&message->error, &error);
        if (error.status == GAD_OK)
            error.status = GAD_INTERNAL;
        if (begins_again(job, &error))
            send_back(broker, job->worker, job);
        else
            finish_error(broker, job, &error);
    } else if (message->result.type != MSGPACK_OBJECT_MAP) {
        error_set(&error, GAD_INTERNAL, NULL, "the worker's result is not a map");
        finish_error(broker, job, &error);
    } else {
        finish_result(broker, job, message, frame);
    }
}

static void tell_progress(struct broker *broker, struct job *job)
{
    struct message_writer *w = &broker->writer;
    struct session *owner = job->owner;
    if (!owner || job->progress_ms == 0 || !session_is_alive(owner) ||
        session_check_room(owner, FRAME_MAX_BODY_BYTES) != 0 ||
        conn_n_queued_bytes(owner->conn) > PROGRESS_QUEUE_BYTES)
        return;
    message_begin_notification(w, "job.progress");
    msgpack_pack_map(&w->packer, 5);
    pack_key_u64(&w->packer, "job", job->id);
    pack_key_u64(&w->packer, "tiles_done", job->n_tiles_done);
    pack_key_u64(&w->packer, "tiles", job->n_tiles);
    pack_key_u64(&w->packer, "read_bytes", job->read_bytes);
    pack_key_u64(&w->packer, "write_bytes", job->write_bytes);
    session_send(owner);
}

/* The job that the worker tells of, with its numbers taken over; NULL: there is nothing to tell. */
static struct job *read_numbers(struct broker *broker, const msgpack_object *map)
{
    struct gad_error ignored;
    uint64_t id, planned = 0;
    if (map_require_u64(map, "job", &id, &ignored) != 0)
        return NULL;
    struct job *job = jobs_find_any(broker->jobs, id);
    if (!job || job->state != JOB_RUNNING)
        return NULL; /* it ended while this was under way */
    if (map_u64(map, "tiles_done", &job->n_tiles_done, &ignored) != 0 ||
        map_u64(map, "tiles", &planned, &ignored) != 0 ||
        map_u64(map, "read_bytes", &job->read_bytes, &ignored) != 0 ||
        map_u64(map, "write_bytes", &job->write_bytes, &ignored) != 0 ||
        map_u64(map, "slots", &job->n_slots, &ignored) != 0)
        return NULL;
    job->n_tiles = job->is_open ? 0 : planned;
    return job;
}

void dispatch_progress(struct broker *broker, const struct message *message)
{
    struct job *job = read_numbers(broker, &message->params);
    if (job)
        tell_progress(broker, job);
}

void dispatch_moved(struct broker *broker, const struct message *message)
{
    struct gad_error ignored;
    struct job *job = read_numbers(broker, &message->params);
    if (!job)
        return;
    if (map_copy_str(&message->params, "stage", job->stage, sizeof(job->stage), &ignored) != 0)
        job->stage[0] = '\0';
    metrics_moved(&broker->metrics, job, &message->params);
}

/* After the worker's end ---------------------------------------------------------------------- */

static bool is_struck(const struct job *job, const uint64_t *struck, unsigned n_struck)
{
    for (unsigned i = 0; i < n_struck; i++)
        if (struck[i] == job->id)
            return true;
    return false;
}

static bool is_any_struck(struct list *active, const uint64_t *struck, unsigned n_struck)
{
    for (struct list *at = active->next; at != active; at = at->next)
        if (is_struck(job_of(at), struck, n_struck))
            return true;
    return false;
}

/* Why it cannot run again, or GAD_OK. */
static enum gad_status judge(const struct job *job)
{
    if (job->is_cancelling)
        return GAD_CANCELLED;
    if (job->n_strikes >= MAX_STRIKES)
        return GAD_POISONED;
    if (!job->is_restartable || job->n_losses >= MAX_LOSSES)
        return GAD_WORKER_LOST;
    return GAD_OK;
}

static void end_lost(struct broker *broker, struct job *job, enum gad_status status,
                     const char *cause)
{
    struct gad_error error = {0};
    char planned[24] = "?";
    if (!job->is_open)
        snprintf(planned, sizeof(planned), "%llu", (unsigned long long)job->n_tiles);
    switch (status) {
    case GAD_POISONED:
        error_set(&error, status, NULL, "the job stopped the worker twice, the second time by %s",
                  cause);
        break;
    case GAD_CANCELLED: error_set(&error, status, NULL, "the job was cancelled"); break;
    default:
        error_set(&error, status, NULL,
                  "the worker ended by %s; the job cannot run again; last heard: %llu of %s "
                  "tiles were done",
                  cause, (unsigned long long)job->n_tiles_done, planned);
        error_found(&error, "%llu of %s tiles", (unsigned long long)job->n_tiles_done, planned);
        break;
    }
    if (status == GAD_POISONED)
        log_warn(LOG_JOB(job->id, job_uid(job)), "poisoned: %s", cause);
    finish_error(broker, job, &error);
}

static void send_back(struct broker *broker, struct worker *w, struct job *job)
{
    charge_release(&job->reply_charge);
    job->is_put_back = false;
    log_info(LOG_JOB(job->id, job_uid(job)), "goes back to the queue of %s, %u strikes",
             worker_info(w)->engine, job->n_strikes);
    job_set_state(job, JOB_QUEUED);
    metrics_requeued(&broker->metrics, job, loop_now_ns());
    job->item.is_suspect = job->n_strikes > 0;
    queue_push_back_to_front(worker_queue(w), worker_carries(w), &job->item);
}

void dispatch_worker_lost(struct broker *broker, struct worker *w, const struct death *death,
                          const uint64_t *struck, unsigned n_struck)
{
    struct list *active = queue_active(worker_queue(w));
    bool is_all = strikes_all(death, n_struck);
    bool is_anyones = is_all || is_any_struck(active, struck, n_struck);
    char cause[64];
    strikes_describe(death, cause, sizeof(cause));
    while (!list_is_empty(active)) {
        struct job *job = job_of(active->prev); /* from the last: each goes to the front */
        bool is_parked = job->item.is_parked;   /* nothing of it was in hand */
        bool is_suspect = is_all || is_struck(job, struck, n_struck);
        job->n_strikes += !is_parked && is_suspect;
        job->n_losses += is_suspect || !is_anyones;
        enum gad_status status = judge(job);
        if (status != GAD_OK)
            end_lost(broker, job, status, cause);
        else
            send_back(broker, w, job);
    }
}

static void decide_again(struct broker *broker, struct worker *w, struct job *job)
{
    struct gad_error error = {0};
    job->decided_serial = broker->losses[worker_place(w)];
    int r = submit_decide_again(broker, job, &error);
    if (r != 0 && !(r == GAD_NO_ENGINE && worker_may_return(w)))
        fail_start(broker, job, r, &error);
}

/* Each takes as long as planning does, so there may be more than one turn has time for. */
static void decide_some(struct broker *broker, struct worker *w, uint64_t until_ns)
{
    uint32_t *loss = &broker->losses[worker_place(w)];
    unsigned n = queue_n_waiting(worker_queue(w));
    _cleanup_free_ struct queue_item **items = calloc(n + 1, sizeof(struct queue_item *));
    if (!items) {
        log_error(NULL, "no memory: the jobs of %s wait for it", worker_info(w)->engine);
        *loss = 0;
        return;
    }
    n = queue_list_waiting(worker_queue(w), items, n);
    for (unsigned i = 0; i < n; i++) {
        struct job *job = list_entry(items[i], struct job, item);
        if (job->decided_serial == *loss)
            continue;
        if (loop_now_ns() >= until_ns) {
            loop_set_busy(broker->loop, true);
            return;
        }
        decide_again(broker, w, job);
    }
    *loss = 0;
}

void dispatch_decide_again(struct broker *broker, struct worker *w)
{
    broker->losses[worker_place(w)] = ++broker->last_limits_serial;
}

void dispatch_turn(struct broker *broker)
{
    uint64_t until_ns = loop_now_ns() + TURN_NS;
    broker->has_held_back = false;
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (broker->losses[i] != 0)
            decide_some(broker, broker->workers[i], until_ns);
    for (unsigned i = 0; i < broker->n_workers; i++)
        admit(broker, broker->workers[i], loop_now_ns() + TURN_NS);
}
