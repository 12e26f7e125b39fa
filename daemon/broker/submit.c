/* Submission: everything that can be known about a job before it runs.
 *
 *     decode -> same key? -> compile -> places (descriptors, regions) -> overlap
 *     -> plan for each worker, choose one -> charges -> its queue
 *
 * The first fault found is the answer, and then nothing of the request is left. A job that passed
 * holds the message's body (the params go to the worker verbatim), the descriptors (they may have
 * to be sent again to the next worker), a reference to each region, and three charges.
 *
 * job.plan takes the same path up to the plan. Called by methods_job.c and dispatch.c.
 */
#define LOG_TOPIC "submit"
#include "daemon/broker/submit.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/finish.h"
#include "daemon/broker/log.h"
#include "daemon/broker/places.h"
#include "daemon/broker/region.h"
#include "daemon/broker/session.h"
#include "daemon/broker/workers/workers.h"
#include "kernels/programs.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

/* Where its arrays are, and whether outputs are stored over arguments: the compiler is told. */
static int locate(struct session *session, const struct frame *frame, struct submission *s,
                  struct places *ret_places, struct gad_error *error)
{
    int r = places_check(session->broker, session->uid, s->request, frame, ret_places, error);
    if (r == 0)
        r = overlap_check(s->request, ret_places->args, ret_places->outputs, &s->is_in_place,
                          error);
    s->request->is_apart = r == 0 && !s->is_in_place;
    return r;
}

static int decide(struct broker *broker, struct submission *s, struct region *const *regions,
                  unsigned n_regions, struct gad_error *error)
{
    const struct engine_decision *decision = broker->decision;
    int r = workers_decide(broker, s->request, s->program, s->is_in_place, regions, n_regions,
                           &s->worker, error);
    if (r != 0)
        return r;
    s->decision = decision;
    s->offers = broker->offers;
    s->n_offers = broker->n_offers;
    for (unsigned i = 0; i < decision->n_estimates; i++)
        if (decision->estimates[i].offer == decision->offer)
            s->plan = &decision->estimates[i].plan;
    return 0;
}

/* What comes after decoding. */
static int judge(struct session *session, const struct frame *frame, struct submission *s,
                 struct gad_error *error)
{
    struct broker *broker = session->broker;
    struct places places;
    struct gad_error of_places = {0}; /* those of expressions come first */
    int r_places = locate(session, frame, s, &places, &of_places);
    int r = programs_compile(broker->programs, session->uid, s->request, &s->program, error);
    if (r == 0 && r_places != 0) {
        *error = of_places;
        r = r_places;
    }
    if (r == 0 && s->is_in_place)
        r = overlap_check_passes(s->request, s->program, places.args, places.outputs, error);
    if (r == 0)
        r = decide(broker, s, places.regions, places.n_regions, error);
    if (r == 0) {
        s->has_provider = places.has_provider;
        s->n_regions = places.n_regions;
        memcpy(s->regions, places.regions, places.n_regions * sizeof(s->regions[0]));
    }
    return r;
}

static int decode(const struct message *message, const struct frame *frame, bool is_plan,
                  struct submission *ret, struct gad_error *error)
{
    ret->request = NULL;
    ret->program = NULL;
    ret->is_in_place = ret->has_provider = false;
    ret->n_regions = 0;
    return request_decode(&message->params, frame->n_fds, is_plan, &ret->request, error);
}

int submission_make(struct session *session, const struct message *message,
                    const struct frame *frame, bool is_plan, struct submission *ret,
                    struct gad_error *error)
{
    int r = decode(message, frame, is_plan, ret, error);
    return r == 0 ? judge(session, frame, ret, error) : r;
}

void submission_deinit(struct submission *s)
{
    s->program = program_free(s->program);
    s->request = request_free(s->request);
}

static int charge_job(struct broker *broker, uid_t uid, const struct frame *frame, struct job *job,
                      struct gad_error *error)
{
    struct accounts *accounts = broker->accounts;
    int r = account_charge(accounts, uid, ACCOUNT_JOBS, 1, &job->job_charge, error);
    if (r == 0)
        r = account_charge(accounts, uid, ACCOUNT_REQUEST_BYTES, frame->size_bytes,
                           &job->request_charge, error);
    if (r == 0 && frame->n_fds > 0)
        r = account_charge(accounts, uid, ACCOUNT_DESCRIPTORS, frame->n_fds, &job->fd_charge,
                           error);
    return r;
}

static int take_regions(struct job *job, const struct submission *s)
{
    if (s->n_regions == 0)
        return 0;
    job->regions = malloc(s->n_regions * sizeof(*job->regions));
    if (!job->regions)
        return -ENOMEM;
    for (unsigned i = 0; i < s->n_regions; i++) {
        job->regions[i] = s->regions[i];
        region_ref(job->regions[i]);
    }
    job->n_regions = s->n_regions;
    return 0;
}

static int take_frame(struct job *job, const struct message *message, struct frame *frame)
{
    if (frame->n_fds > 0) {
        job->fds = malloc(frame->n_fds * sizeof(*job->fds));
        if (!job->fds)
            return -ENOMEM;
        for (unsigned i = 0; i < frame->n_fds; i++)
            job->fds[i] = steal_fd(&frame->fds[i]);
        job->n_fds = frame->n_fds;
    }
    job->body = steal_ptr(frame->body);
    job->params = message->payload;
    job->n_params_bytes = message->n_payload_bytes;
    return 0;
}

/* What was decided. */
static void take_plan(struct job *job, const struct submission *s)
{
    const struct plan *plan = s->plan;
    job->item.carry_bytes = plan->is_small ? 0 : plan->carry_bytes; /* that has its own memory */
    job->planned_serial = worker_limits_serial(s->worker);
    job->planned_seconds = plan->seconds;
    job->planned_rates = worker_limits(s->worker)->rates;
    job->is_product = s->program->product.is_there;
    job->n_tiles = plan->n_tiles;
    memcpy(job->engine_why, s->decision->why, sizeof(job->engine_why));
}

static void describe(struct job *job, const struct submission *s)
{
    const struct job_request *request = s->request;
    memcpy(job->label, request->label, sizeof(job->label));
    memcpy(job->key, request->key, sizeof(job->key));
    job->item.priority = request->priority;
    job->progress_ms = request->progress_ms;
    job->needs_settling = request->settle;
    job->is_in_place = s->is_in_place;
    job->is_restartable =
        s->plan->is_restartable && !s->has_provider && (!s->is_in_place || request->has_journal);
    job->submitted_ns = loop_now_ns();
    take_plan(job, s);
}

/* The limit counts jobs at whatever worker. */
static int enqueue(struct broker *broker, const struct submission *s, struct job *job,
                   struct gad_error *error)
{
    unsigned n_waiting = workers_n_waiting(broker), most = broker->options.max_queue;
    if (n_waiting >= most)
        return queue_refuse(n_waiting, most, error);
    return worker_enqueue(s->worker, job, false, error);
}

static int make_job(struct session *session, const struct message *message, struct frame *frame,
                    const struct submission *s, struct job **ret_job, struct gad_error *error)
{
    struct broker *broker = session->broker;
    struct job *job;
    int r = jobs_add(broker->jobs, session->uid, &job);
    if (r != 0)
        return r;
    describe(job, s);
    r = charge_job(broker, session->uid, frame, job, error);
    if (r == 0)
        r = take_regions(job, s);
    if (r == 0)
        r = enqueue(broker, s, job, error);
    if (r == 0)
        r = take_frame(job, message, frame);
    if (r != 0) {
        finish_release(broker, job);
        job_discard(broker->jobs, job);
        return r;
    }
    job_set_key(broker->jobs, job);
    job->owner = session;
    job->held_bytes =
        job->request_charge.amount >= SESSION_LARGE_BYTES ? job->request_charge.amount : 0;
    session->request_bytes += job->held_bytes;
    broker->request_bytes += job->held_bytes;
    list_push_back(&session->jobs, &job->owner_link);
    *ret_job = job;
    return 0;
}

int submit(struct session *session, const struct message *message, struct frame *frame,
           struct job **ret_job, bool *ret_is_new, struct gad_error *error)
{
    struct broker *broker = session->broker;
    struct submission s;
    if (broker->is_draining)
        return error_set(error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    int r = decode(message, frame, false, &s, error);
    struct job *twin = r == 0 && s.request->key[0]
                           ? jobs_find_key(broker->jobs, session->uid, s.request->key)
                           : NULL;
    *ret_is_new = !twin;
    if (twin) {
        *ret_job = twin;
    } else {
        if (r == 0)
            workers_name_device(broker, s.request);
        if (r == 0)
            r = judge(session, frame, &s, error);
        if (r == 0)
            r = make_job(session, message, frame, &s, ret_job, error);
        if (r == 0)
            metrics_submitted(&broker->metrics, *ret_job);
        if (r == 0) {
            workers_wake_for(broker, s.request);
            log_debug(LOG_JOB((*ret_job)->id, session->uid), "queued");
        }
    }
    submission_deinit(&s);
    return r;
}

/* The job's request as it came. */
static int decode_again(struct broker *broker, const struct job *job, msgpack_unpacked *unpacked,
                        struct submission *s, struct gad_error *error)
{
    if (msgpack_unpack_next(unpacked, job->params, job->n_params_bytes, NULL) !=
        MSGPACK_UNPACK_SUCCESS)
        return -EPROTO;
    struct message message = {.params = unpacked->data};
    struct frame frame = {.n_fds = job->n_fds};
    int r = decode(&message, &frame, false, s, error);
    s->is_in_place = job->is_in_place;
    if (r != 0)
        return r;
    s->request->is_apart = !s->is_in_place;
    r = programs_compile(broker->programs, job_uid(job), s->request, &s->program, error);
    return r;
}

static int move(struct job *job, const struct submission *s, struct gad_error *error)
{
    bool is_here = job->worker == s->worker;
    if (is_here && job->item.place == QUEUE_WAITING)
        return 0; /* planned again when it is to start */
    if (is_here) {
        worker_forget_seconds(job);
        take_plan(job, s);
        worker_count_seconds(job);
        return 0;
    }
    log_info(LOG_JOB(job->id, job_uid(job)), "goes to %s: %s", worker_info(s->worker)->engine,
             s->decision->why);
    worker_dequeue(job);
    take_plan(job, s);
    return worker_enqueue(s->worker, job, true, error);
}

int submit_decide_again(struct broker *broker, struct job *job, struct gad_error *error)
{
    struct submission s = {.request = NULL};
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    int r = decode_again(broker, job, &unpacked, &s, error);
    if (r == 0)
        r = decide(broker, &s, job->regions, job->n_regions, error);
    if (r == 0)
        r = move(job, &s, error);
    submission_deinit(&s);
    msgpack_unpacked_destroy(&unpacked);
    return r;
}
