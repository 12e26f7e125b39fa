/* Submission: everything that can be known about a job before it runs.
 *
 *     decode -> same key? -> places (descriptors, regions), offers of the workers
 *     -> overlap -> compile -> plan for each worker, choose one
 *     -> charges -> its queue
 *
 * The middle line is pure and may take long: it is done in the loop or in a thread (planner.c), on
 * what the first line took down. The first fault found is the answer, and then nothing of the
 * request is left. A job that passed holds the message's body (the params go to the worker
 * verbatim), the descriptors (they may have to be sent again to the next worker), a reference to
 * each region, and three charges.
 *
 * job.plan takes the same path up to the plan. Called by planner.c and dispatch.c.
 */
#define LOG_TOPIC "submit"
#include "daemon/broker/jobs/submit.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/jobs/job_times.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/places.h"
#include "daemon/broker/jobs/planner.h"
#include "daemon/broker/jobs/result.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "kernels/expr/programs.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define PROGRAM_CHARS 65536u

static int decide(struct submission *s, struct gad_error *error)
{
    struct choice *choice = s->choice;
    const struct engine_decision *decision = &choice->decision;
    int r = engines_decide(s->request, s->program, s->is_in_place, choice->offers, choice->n_offers,
                           &choice->decision, error);
    if (r == 0)
        s->plan = &engines_estimate_of(decision, decision->offer)->plan;
    return r;
}

void submission_init(struct submission *ret, enum submission_kind kind, uid_t uid)
{
    ret->kind = kind;
    ret->uid = uid;
    ret->request = NULL;
    ret->program = NULL;
    ret->text = NULL;
    ret->is_in_place = false;
    ret->places.n_regions = 0;
}

int submission_decode(const struct session *session, const struct message *message,
                      const struct frame *frame, enum submission_kind kind, struct submission *ret,
                      struct gad_error *error)
{
    bool is_plan = kind == SUBMISSION_PLAN;
    submission_init(ret, kind, session->uid);
    return request_decode(&message->params, frame->n_fds, is_plan, &ret->request, error);
}

int submission_check_open(const struct session *session, const struct submission *s,
                          struct gad_error *error)
{
    const struct broker *broker = session->broker;
    if (s->kind == SUBMISSION_PLAN)
        return 0;
    if (broker->is_draining)
        return error_set(error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    if (!broker->is_closed)
        return 0;
    return error_set(error, GAD_DRAINING, NULL, "the daemon takes no new jobs for now%s%s",
                     broker->notice[0] ? ": " : "", broker->notice);
}

struct job *submission_twin(const struct session *session, const struct submission *s)
{
    if (s->kind == SUBMISSION_PLAN || !s->request || !s->request->key[0])
        return NULL;
    return jobs_find_key(session->broker->jobs, s->uid, s->request->key);
}

void submission_locate(const struct session *session, const struct frame *frame,
                       struct submission *s, struct choice *choice)
{
    struct broker *broker = session->broker;
    if (s->kind != SUBMISSION_PLAN)
        workers_name_device(broker, s->request);
    s->choice = choice;
    s->of_places.status = GAD_OK;
    s->r_places = places_check(broker, s->uid, s->request, frame, &s->places, &s->of_places);
    workers_offer(broker, s->places.regions, s->places.n_regions, choice);
}

static int compile(struct submission *s, struct programs *programs, struct gad_error *error)
{
    return programs ? programs_compile(programs, s->uid, s->request, &s->program, error)
                    : program_compile(s->request, &s->program, error);
}

static int print(struct submission *s)
{
    s->text = malloc(PROGRAM_CHARS);
    if (!s->text)
        return -ENOMEM;
    program_print(s->program, s->text, PROGRAM_CHARS);
    return 0;
}

static int decide_otherwise(struct submission *s, struct programs *programs, bool makes_again,
                            struct gad_error *error)
{
    s->program = program_free(s->program);
    s->request->makes_again = makes_again;
    s->request->has_no_slabs = !makes_again;
    int r = compile(s, programs, error);
    return r ? r : decide(s, error);
}

/* Where the pool has no room for what walks by slabs keep, they make it again. Where the engine
 * that was asked for does not walk by slabs, products become stages of their own. */
static int decide_on_program(struct submission *s, struct programs *programs,
                             struct gad_error *error)
{
    int r = decide(s, error);
    bool has_slabs = s->program->n_slabs > 0;
    if (has_slabs && (r == GAD_TOO_LARGE_FOR_POOL || r == GAD_NO_ENGINE))
        r = decide_otherwise(s, programs, true, error);
    if (!has_slabs || r != GAD_NO_ENGINE)
        return r;
    const struct gad_error first = *error;
    r = decide_otherwise(s, programs, false, error);
    if (r == GAD_NO_ENGINE && !s->program) /* walks by slabs alone compute it */
        *error = first;
    return r;
}

/* The compiler is told whether outputs are stored over arguments. */
int submission_judge(struct submission *s, struct programs *programs, struct gad_error *error)
{
    const struct places *places = &s->places;
    int r_places = s->r_places;
    if (r_places == 0)
        r_places = overlap_check(s->request, places->args, places->outputs, &s->is_in_place,
                                 &s->of_places);
    s->request->is_apart = r_places == 0 && !s->is_in_place;
    int r = compile(s, programs, error);
    if (r == 0 && r_places != 0) {
        *error = s->of_places;
        r = r_places;
    }
    if (r == 0 && s->is_in_place)
        r = overlap_check_passes(s->request, s->program, places->args, places->outputs, error);
    if (r == 0)
        r = decide_on_program(s, programs, error);
    return r == 0 && s->kind == SUBMISSION_PLAN ? print(s) : r;
}

void submission_deinit(struct submission *s)
{
    free(steal_ptr(s->text));
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
    const struct places *places = &s->places;
    if (places->n_regions == 0)
        return 0;
    job->regions = malloc(places->n_regions * sizeof(*job->regions));
    if (!job->regions)
        return -ENOMEM;
    for (unsigned i = 0; i < places->n_regions; i++) {
        job->regions[i] = places->regions[i];
        region_ref(job->regions[i]);
    }
    job->n_regions = places->n_regions;
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

/* What was decided, of the limits that the worker had when it was. */
static void take_plan(struct job *job, const struct submission *s)
{
    const struct plan *plan = s->plan;
    const struct engine_decision *decision = &s->choice->decision;
    const struct engine_offer *offer = &s->choice->offers[decision->offer];
    job->item.sizes = (struct carry_sizes){{
        [CARRY_IN_POOL] = plan->is_small ? 0 : plan->carry_bytes, /* that has its own memory */
        [CARRY_ON_DEVICE] = plan->device_carry_bytes,
    }};
    job->planned_serial = offer->limits_serial;
    job->planned_seconds = plan->seconds;
    job->planned_rates = offer->limits.rates;
    job->has_product = s->program->n_products + s->program->n_slabs > 0;
    job->makes_again = s->request->makes_again;
    job->is_open = s->request->open_length > 0;
    job->n_tiles = job->is_open ? 0 : plan->n_tiles;
    memcpy(job->engine_why, decision->why, sizeof(job->engine_why));
}

/* What its results take in the answer; of small ones nobody keeps account. */
static uint64_t count_reply_bytes(const struct submission *s)
{
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < s->program->n_outputs; i++) {
        const struct program_output *output = &s->program->outputs[i];
        uint64_t n = s->request->outputs[i].has_to ? 0 : dtype_size(output->dtype);
        for (int d = 0; d < output->ndim && n <= FRAME_MAX_BODY_BYTES; d++)
            n *= (uint64_t)output->shape[d];
        n_bytes = min_u64(n_bytes + n, FRAME_MAX_BODY_BYTES); /* a larger one is refused */
    }
    return n_bytes < SESSION_LARGE_BYTES ? 0 : n_bytes;
}

static void describe(struct job *job, const struct submission *s)
{
    const struct job_request *request = s->request;
    memcpy(job->label, request->label, sizeof(job->label));
    memcpy(job->key, request->key, sizeof(job->key));
    job->item.priority = request->priority;
    job->progress_ms = request->progress_ms;
    job->times.queue_ns = request->queue_timeout_ms * UINT64_C(1000000);
    job->times.end_ns = request->deadline_ms * UINT64_C(1000000);
    job->needs_settling = request->settle;
    job->is_in_place = s->is_in_place;
    job->has_provider = s->places.has_provider;
    job->is_restartable = s->plan->is_restartable && (!job->has_provider || request->again) &&
                          (!s->is_in_place || request->has_journal);
    job->submitted_ns = loop_now_ns();
    job->item.reply_bytes = count_reply_bytes(s);
    take_plan(job, s);
}

static struct worker *chosen_worker(const struct broker *broker, const struct submission *s)
{
    return broker->workers[s->choice->decision.offer];
}

/* The limit counts jobs at whatever worker. */
static int enqueue(struct broker *broker, const struct submission *s, struct job *job,
                   struct gad_error *error)
{
    unsigned n_waiting = workers_n_waiting(broker), most = broker->options.max_queue;
    if (n_waiting >= most)
        return queue_refuse(n_waiting, most, error);
    return worker_enqueue(chosen_worker(broker, s), job, false, error);
}

int submission_make_job(struct session *session, const struct message *message, struct frame *frame,
                        const struct submission *s, struct job **ret_job, struct gad_error *error)
{
    struct broker *broker = session->broker;
    struct job *job;
    int r = jobs_add(broker->jobs, session->uid, &job);
    if (r)
        return r;
    describe(job, s);
    r = charge_job(broker, session->uid, frame, job, error);
    if (r == 0 && !(job->room = result_new()))
        r = -ENOMEM;
    if (r == 0)
        r = take_regions(job, s);
    if (r == 0)
        r = enqueue(broker, s, job, error);
    if (r == 0)
        r = take_frame(job, message, frame);
    if (r) {
        finish_release(broker, job);
        job_discard(broker->jobs, job);
        return r;
    }
    job_set_key(broker->jobs, job);
    job->owner = session;
    job->held_bytes =
        job->request_charge.amount >= SESSION_LARGE_BYTES ? job->request_charge.amount : 0;
    session->request_bytes += job->held_bytes;
    if (job->held_bytes > 0)
        account_set_charge(broker->accounts, session->uid, ACCOUNT_MESSAGE_BYTES, job->held_bytes,
                           &job->message_charge);
    list_push_back(&session->jobs, &job->owner_link);
    metrics_submitted(&broker->metrics, job);
    job_times_begin(broker, job);
    workers_wake_for(broker, s->request, s->plan);
    log_debug(LOG_JOB(job->id, session->uid), "queued");
    *ret_job = job;
    return 0;
}

/* The job's request as it came. */
static int decode_again(struct broker *broker, const struct job *job, msgpack_unpacked *unpacked,
                        struct submission *s, struct gad_error *error)
{
    if (msgpack_unpack_next(unpacked, job->params, job->n_params_bytes, NULL) !=
        MSGPACK_UNPACK_SUCCESS)
        return -EPROTO;
    int r = request_decode(&unpacked->data, job->n_fds, false, &s->request, error);
    s->is_in_place = job->is_in_place;
    if (r)
        return r;
    s->request->is_apart = !s->is_in_place;
    return compile(s, broker->programs, error);
}

static int move(struct broker *broker, struct job *job, const struct submission *s,
                struct gad_error *error)
{
    struct worker *worker = chosen_worker(broker, s);
    bool is_here = job->worker == worker;
    if (is_here && job->item.place == QUEUE_WAITING)
        return 0; /* planned again when it is to start */
    if (is_here) {
        worker_forget_seconds(job);
        take_plan(job, s);
        worker_count_seconds(job);
        return 0;
    }
    log_info(LOG_JOB(job->id, job_uid(job)), "goes to %s: %s", worker_info(worker)->engine,
             s->choice->decision.why);
    worker_dequeue(job);
    take_plan(job, s);
    return worker_enqueue(worker, job, true, error);
}

int submit_decide_again(struct broker *broker, struct job *job, struct gad_error *error)
{
    struct submission s;
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    submission_init(&s, SUBMISSION_SUBMIT, job_uid(job));
    s.choice = planner_choice(broker->planner);
    int r = decode_again(broker, job, &unpacked, &s, error);
    workers_offer(broker, job->regions, job->n_regions, s.choice);
    if (r == 0)
        r = decide_on_program(&s, broker->programs, error);
    if (r == 0)
        r = move(broker, job, &s, error);
    submission_deinit(&s);
    msgpack_unpacked_destroy(&unpacked);
    return r;
}
