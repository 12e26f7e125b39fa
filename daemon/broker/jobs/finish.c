/* The end of jobs.
 *
 *     worker's result --+--> DONE --------------------------------+--> waiters answered,
 *                       +--> SETTLING --> job.settle, owner gone -+    record kept
 *     any error ---------------------------> FAILED, CANCELLED ---+
 *
 * A job that needs settling is computed, but its output has still to be put in its place by the
 * owner: the owner is told at once, everybody else when that has happened. What the job took of the
 * broker and the pool goes back as soon as it is computed.
 *
 * Answering closes no session before the end of the turn, so nobody up the stack loses what it
 * holds; a job's outcome is complete before anybody is told.
 *
 * Called by dispatch.c, session.c and the methods.
 */
#define LOG_TOPIC "job"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/jobs/job_times.h"
#include "daemon/broker/jobs/joblog.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/jobs/result.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/sessions/splice.h"
#include "daemon/broker/workers/worker.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <string.h>

/* Waiters ------------------------------------------------------------------------------------- */

static void unlink_waiter(struct waiter *waiter)
{
    broker_clear_deadline(waiter->session->broker, &waiter->deadline);
    list_remove(&waiter->job_link);
    list_remove(&waiter->session_link);
    waiter->session->n_pending--;
}

void finish_drop_waiter(struct waiter *waiter)
{
    unlink_waiter(waiter);
    charge_release(&waiter->charge);
    if (waiter->is_heap)
        free(waiter);
}

/* Of small ones a copy costs less than keeping account. */
static void send_pairs(struct session *session, const struct job *job, const char *pairs,
                       size_t n_bytes)
{
    struct result *result = job->result;
    if (result->n_body_bytes < SESSION_LARGE_BYTES) {
        session_send_with(session, pairs, n_bytes);
        return;
    }
    account_set_charge(session->broker->accounts, job_uid(job), ACCOUNT_REPLY_BYTES,
                       result->n_body_bytes, &result->charge);
    shared_ref(&result->shared); /* it may not be queued: then the charge goes at once */
    session_send_shared(session, &result->shared, pairs, n_bytes);
    shared_unref(&result->shared);
}

/* The worker's result, two keys longer: its pairs go from where they are. */
static void send_result(struct session *session, uint32_t id, const struct job *job)
{
    struct message_writer *w = &session->broker->writer;
    struct gad_error error = {0};
    uint32_t n_pairs;
    const char *pairs;
    size_t n_bytes;
    splice_map(job->result->map, job->result->n_map_bytes, &n_pairs, &pairs, &n_bytes);
    message_begin_result(w, id);
    msgpack_pack_map(&w->packer, n_pairs + 2);
    pack_key_u64(&w->packer, "job", job->id);
    pack_key_str(&w->packer, "engine_why", job->engine_why);
    if (w->buffer.size + n_bytes <= FRAME_MAX_BODY_BYTES) {
        send_pairs(session, job, pairs, n_bytes);
        return;
    }
    error_set(&error, GAD_LIMIT_EXCEEDED, "outputs", "the inline results do not fit a message");
    session_reply_error(session, id, &error);
}

static void answer(struct session *session, uint32_t id, struct job *job)
{
    struct gad_error error = {0};
    if (job->failed_as != GAD_OK) {
        job_failure(job, &error);
        session_reply_error(session, id, &error);
        job_fetched(job);
        return;
    }
    if (!job->result) {
        error_set(&error, GAD_OUTCOME_UNKNOWN, "job",
                  "job %llu is done, its result has been dropped", (unsigned long long)job->id);
        session_reply_error(session, id, &error);
        job_fetched(job);
        return;
    }
    send_result(session, id, job);
    job_fetched(job);
}

static void answer_waiter(struct waiter *waiter)
{
    struct session *session = waiter->session;
    struct job *job = waiter->job;
    uint32_t id = waiter->id;
    finish_drop_waiter(waiter);
    answer(session, id, job);
}

static void answer_waiters(struct job *job, bool owner_only)
{
    list_for_each_safe (it, next, &job->waiters) {
        struct waiter *waiter = list_entry(it, struct waiter, job_link);
        if (!owner_only || waiter->session == waiter->job->owner)
            answer_waiter(waiter);
    }
}

static void link_waiter(struct waiter *waiter, struct session *session, uint32_t id,
                        struct job *job)
{
    waiter->job = job;
    waiter->session = session;
    waiter->id = id;
    list_push_back(&job->waiters, &waiter->job_link);
    list_push_back(&session->waiters, &waiter->session_link);
    session->n_pending++;
}

static void on_timeout(struct deadline *deadline)
{
    struct waiter *waiter = list_entry(deadline, struct waiter, deadline);
    struct session *session = waiter->session;
    uint32_t id = waiter->id;
    struct gad_error error = {0};
    error_set(&error, GAD_TIMEOUT, "timeout_ms", "job %llu is %s",
              (unsigned long long)waiter->job->id, job_state_name(waiter->job->state));
    finish_drop_waiter(waiter);
    session_reply_error(session, id, &error);
}

static bool can_answer(const struct session *session, const struct job *job)
{
    return job_has_ended(job) || (job->state == JOB_SETTLING && job->owner == session);
}

int finish_wait(struct session *session, uint32_t id, struct job *job, uint64_t timeout_ns,
                struct gad_error *error)
{
    struct charge charge = {0};
    if (can_answer(session, job)) {
        answer(session, id, job);
        return 0;
    }
    int r =
        account_charge(session->broker->accounts, session->uid, ACCOUNT_WAITS, 1, &charge, error);
    if (r)
        return r;
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (!waiter) {
        charge_release(&charge);
        return -ENOMEM;
    }
    waiter->is_heap = true;
    waiter->charge = charge;
    link_waiter(waiter, session, id, job);
    if (timeout_ns != UINT64_MAX)
        broker_set_deadline(session->broker, &waiter->deadline, timeout_ns, on_timeout);
    return 0;
}

void finish_wait_run(struct session *session, uint32_t id, struct job *job)
{
    link_waiter(&job->runner, session, id, job);
}

/* Jobs ---------------------------------------------------------------------------------------- */

void finish_release(struct broker *broker, struct job *job)
{
    worker_dequeue(job);
    for (unsigned i = 0; i < job->n_regions; i++)
        region_unref(job->regions[i]);
    free(steal_ptr(job->regions));
    job->n_regions = 0;
    for (unsigned i = 0; i < job->n_fds; i++)
        closer_close(job->fds[i]);
    free(steal_ptr(job->fds));
    job->n_fds = 0;
    free(steal_ptr(job->body));
    job->params = NULL;
    if (job->owner)
        job->owner->request_bytes -= job->held_bytes;
    job->held_bytes = 0;
    charge_release(&job->request_charge);
    charge_release(&job->message_charge);
    charge_release(&job->fd_charge);
    charge_release(&job->reply_charge);
    free(steal_ptr(job->room));
    if (job->state != JOB_SETTLING)
        charge_release(&job->job_charge);
}

static void conclude(struct broker *broker, struct job *job, enum job_state state)
{
    job_set_state(job, state);
    job_times_end(job);
    finish_release(broker, job);
    job->ended_ns = loop_now_ns();
    metrics_ended(&broker->metrics, job, job->ended_ns);
    if (job->started_ns > 0)
        worker_count_ended(job->worker);
    list_remove(&job->owner_link);
    job->owner = NULL;
    answer_waiters(job, false);
    joblog_ended(broker, job);
    job_keep(broker->jobs, job, job->ended_ns);
    broker_check(broker);
}

static void read_numbers(struct job *job, const msgpack_object *result)
{
    struct gad_error ignored;
    if (job->is_open && map_u64(result, "tiles", &job->n_tiles, &ignored) != 0)
        log_warn(LOG_JOB(job->id, job_uid(job)), "the result's tiles cannot be read");
    job->n_tiles_done = job->n_tiles;
    if (map_u64(result, "read_bytes", &job->read_bytes, &ignored) != 0 ||
        map_u64(result, "write_bytes", &job->write_bytes, &ignored) != 0)
        log_warn(LOG_JOB(job->id, job_uid(job)), "the result's numbers cannot be read");
}

void finish_result(struct broker *broker, struct job *job, const struct message *message,
                   struct frame *frame)
{
    read_numbers(job, &message->result);
    metrics_moved(&broker->metrics, job, &message->result);
    job->result = steal_ptr(job->room);
    result_fill(job->result, steal_ptr(frame->body), frame->size_bytes, message->payload,
                message->n_payload_bytes);
    if (!job->needs_settling) {
        conclude(broker, job, JOB_DONE);
        return;
    }
    job_set_state(job, JOB_SETTLING);
    job_times_end(job);
    metrics_settling(&broker->metrics, job);
    finish_release(broker, job);
    if (!job->owner)
        finish_owner_gone(broker, job);
    else
        answer_waiters(job, true);
}

static bool is_late(const struct job *job, const struct gad_error *error)
{
    return error->status == GAD_CANCELLED && job->times.is_over && job->state != JOB_SETTLING;
}

void finish_error(struct broker *broker, struct job *job, const struct gad_error *error)
{
    struct gad_error late = {0};
    if (is_late(job, error)) {
        job_times_explain(job, &late);
        error = &late;
    }
    job->failed_as = error->status;
    job->result = result_drop(job->result); /* of one that was settling: nobody may get it */
    job->error = malloc(sizeof(*job->error));
    if (job->error && error->status == GAD_CANCELLED && job->was_deserted)
        error_set(job->error, GAD_CANCELLED, NULL,
                  "the job was cancelled: the process that submitted it is gone");
    else if (job->error)
        *job->error = *error;
    conclude(broker, job, error->status == GAD_CANCELLED ? JOB_CANCELLED : JOB_FAILED);
}

void finish_settled(struct broker *broker, struct job *job, const struct gad_error *error)
{
    if (error)
        finish_error(broker, job, error);
    else
        conclude(broker, job, JOB_DONE);
}

static void cancel_now(struct broker *broker, struct job *job)
{
    struct gad_error error = {0};
    error_set(&error, GAD_CANCELLED, NULL, "the job was cancelled");
    finish_error(broker, job, &error);
}

void finish_cancel(struct broker *broker, struct job *job)
{
    if (job->state == JOB_QUEUED) {
        cancel_now(broker, job);
    } else if (job->state == JOB_RUNNING && !job->is_cancelling) {
        job->is_cancelling = true;
        worker_cancel(job->worker, job->id);
    }
}

void finish_owner_gone(struct broker *broker, struct job *job)
{
    struct gad_error error = {0};
    list_remove(&job->owner_link);
    job->owner = NULL;
    if (job->state != JOB_SETTLING) {
        job->was_deserted = !job->is_cancelling;
        finish_cancel(broker, job);
        return;
    }
    error_set(&error, GAD_OUTCOME_UNKNOWN, NULL,
              "the job is computed, but its owner left before the output was in its place");
    finish_error(broker, job, &error);
}
