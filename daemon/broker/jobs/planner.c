/* The planner: requests are judged (compiled, planned, decided upon) without holding up the loop.
 *
 *     light --------------------------------------------------> judged at once
 *     costly --> held by its session --> turn of its user --> located --> thread: judged
 *                     ^                                                      |
 *                     +---- the workers are others by now -------------------+--> answered
 *
 * Nearly all requests are light: planning them takes some microseconds, less than asking a thread.
 * What is costly could take long however small its message is, and the loop must not stand still
 * meanwhile. One thread plans one request at a time, users take turns at it, and a session whose
 * request waits or is planned is not read from: its requests are carried out in their order, and
 * what it sends lies in its own socket. All other sessions go on, also those of the same user.
 *
 * The thread has a copy of everything: the frame and what was decoded of it, identities of files
 * and regions, the workers' offers with their texts. Regions are referenced. What the loop did
 * meanwhile is looked at when it is done: a session that has gone gets nothing, and where a worker
 * came, went or changed its limits the request is planned again. While a frame is held its
 * descriptors are charged to its user and its bytes count as message-memory. The time that planning
 * takes is charged to the user as well, of every request; who has spent all of it lately
 * (user-plan-time) is refused what is costly.
 *
 * Called by methods_job.c, session.c and broker.c.
 */
#define LOG_TOPIC "planner"
#include "daemon/broker/jobs/planner.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/jobs/fair_share.h"
#include "proto/util.h"

#include <string.h>

/* A request is light up to so much. The bounds of planning grow with all three, and with the number
 * of workers that it is planned for; at these ends it takes half a millisecond at most. */
#define LIGHT_EXPR_CHARS 512u /* by the number of workers */
#define LIGHT_ARRAYS     16u
#define LIGHT_NDIM       4
#define LIGHT_NS         UINT64_C(500000) /* whatever else the processor did meanwhile */

/* Where workers come and go all the time, what was planned for those of a moment ago is taken: it
 * is looked at again before it starts (dispatch.c). */
#define MAX_AGAIN 3u

struct planner {
    struct broker *broker;
    struct list waiting; /* users, of whom sessions hold costly requests */
    struct choice *choice;
    bool is_stopped;

    /* In the thread's hands: */
    bool is_busy;
    struct session *session; /* NULL: it has gone */
    uint32_t id;             /* of the request */
    struct frame frame;
    struct message message;
    struct submission submission;
    struct choice *judged; /* the submission's choice */
    int r;
    uint64_t used_ns;
    struct gad_error error;
};

int planner_new(struct broker *broker, struct planner **ret_planner)
{
    struct planner *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->broker = broker;
    list_init(&p->waiting);
    p->choice = malloc(sizeof(*p->choice));
    p->judged = malloc(sizeof(*p->judged));
    if (!p->choice || !p->judged) {
        planner_free(p);
        return -ENOMEM;
    }
    *ret_planner = p;
    return 0;
}

void planner_stop(struct planner *p)
{
    if (p)
        p->is_stopped = true;
}

struct planner *planner_free(struct planner *p)
{
    if (!p || p->is_busy) /* its thread still writes to it: the process ends soon */
        return NULL;
    free(p->choice);
    free(p->judged);
    free(p);
    return NULL;
}

struct choice *planner_choice(struct planner *p)
{
    return p->choice;
}

/* The thread --------------------------------------------------------------------------------- */

static void start_next(struct planner *p);

static void on_work(void *userdata)
{
    struct planner *p = userdata;
    uint64_t began_ns = loop_used_ns();
    p->r = submission_judge(&p->submission, NULL, &p->error);
    p->used_ns = loop_used_ns() - began_ns;
}

static void charge(struct broker *broker, uid_t uid, uint64_t used_ns)
{
    accounts_forget(broker->accounts, loop_now_ns());
    account_spend(broker->accounts, uid, ACCOUNT_PLAN_NS, used_ns);
}

static struct request request_of(struct planner *p, struct session *session)
{
    return (struct request){.session = session,
                            .message = &p->message,
                            .params = &p->message.params,
                            .id = p->id,
                            .frame = &p->frame};
}

/* The jobs of others may have changed what is there, and some job may have the same key by now. */
static int conclude(struct planner *p, struct session *session)
{
    const struct request q = request_of(p, session);
    const struct submission *s = &p->submission;
    struct job *twin = submission_twin(session, s);
    if (twin)
        return methods_job_found(&q, s->kind, twin, &p->error);
    struct gad_error error;
    int r = submission_check_open(session, s, &error);
    if (r)
        p->error = error;
    else
        r = p->r;
    return r ? r : methods_job_judged(&q, s, &p->error);
}

static void clear(struct planner *p)
{
    submission_deinit(&p->submission);
    message_deinit(&p->message);
    frame_deinit(&p->frame, closer_close);
    p->session = NULL;
}

static void release_regions(struct submission *s)
{
    for (unsigned i = 0; i < s->places.n_regions; i++)
        region_unref(s->places.regions[i]);
}

static bool is_outdated(const struct planner *p)
{
    const struct places *places = &p->submission.places;
    return p->r >= 0 && p->session->n_held_again < MAX_AGAIN &&
           !workers_are_as_offered(p->broker, places->regions, places->n_regions, p->judged);
}

/* Waits again. */
static void put_back(struct planner *p, struct session *session)
{
    *session->held = p->frame;
    session->n_held_again++;
    p->frame = (struct frame){.body = NULL};
    fair_wait(&p->waiting, &session->user->at_planner, &session->planner_link);
}

static void answer(struct planner *p, struct session *session)
{
    session_release_held(session);
    int r = conclude(p, session);
    if (r)
        session_answer_failure(session, p->id, r, &p->error);
    session_go_on(session);
}

static void on_done(void *userdata)
{
    struct planner *p = userdata;
    struct session *session = p->session;
    p->is_busy = false;
    charge(p->broker, p->submission.uid, p->used_ns);
    if (session && !p->is_stopped) {
        if (is_outdated(p))
            put_back(p, session);
        else
            answer(p, session);
    }
    release_regions(&p->submission);
    clear(p);
    start_next(p);
}

/* The loop ------------------------------------------------------------------------------------ */

static int locate_and_work(struct planner *p, struct session *session)
{
    struct submission *s = &p->submission;
    submission_locate(session, &p->frame, s, p->judged);
    workers_keep_texts(p->judged);
    for (unsigned i = 0; i < s->places.n_regions; i++)
        region_ref(s->places.regions[i]);
    int r = loop_work(p->broker->loop, on_work, on_done, p);
    p->is_busy = r == 0;
    if (r)
        release_regions(s);
    return r;
}

/* What passed once when it came. */
static int decode(struct planner *p, struct session *session)
{
    bool has_id;
    p->error = (struct gad_error){0};
    int r = message_decode(p->frame.body, p->frame.size_bytes, &p->message, &has_id, &p->error);
    return r ? r
             : submission_decode(session, &p->message, &p->frame, session->held_as, &p->submission,
                                 &p->error);
}

static void begin(struct planner *p, struct session *session)
{
    p->frame = *session->held;
    *session->held = (struct frame){.body = NULL};
    p->session = session;
    p->id = session->held_id;
    p->message = (struct message){.zone = NULL};
    submission_init(&p->submission, session->held_as, session->uid);
    int r = decode(p, session);
    if (r == 0 && !submission_twin(session, &p->submission))
        r = locate_and_work(p, session);
    if (p->is_busy)
        return; /* p->r is the thread's */
    p->r = r;
    answer(p, session);
    clear(p);
}

static void start_next(struct planner *p)
{
    struct list *next;
    while (!p->is_busy && !p->is_stopped && (next = fair_next(&p->waiting)))
        begin(p, list_entry(next, struct session, planner_link));
}

/* Functions that a text defines are read again by each call, and may call each other: its length
 * says little then. */
static size_t chars_of(const struct request_output *output)
{
    bool has_statements = memchr(output->expr, ';', output->n_expr_chars);
    return has_statements ? REQUEST_MAX_EXPR_CHARS : output->n_expr_chars;
}

static bool is_costly(const struct broker *broker, const struct job_request *request)
{
    size_t n_chars = 0;
    int ndim = 0;
    for (unsigned i = 0; i < request->n_outputs; i++) {
        n_chars += chars_of(&request->outputs[i]);
        if (request->outputs[i].has_to && request->outputs[i].to.ndim > ndim)
            ndim = request->outputs[i].to.ndim;
    }
    for (unsigned i = 0; i < request->n_args; i++)
        if (!request->args[i].is_scalar && request->args[i].array.ndim > ndim)
            ndim = request->args[i].array.ndim;
    return n_chars * broker->n_workers > LIGHT_EXPR_CHARS || ndim > LIGHT_NDIM ||
           request->n_args + request->n_outputs > LIGHT_ARRAYS;
}

static int hold(const struct request *q, enum submission_kind kind)
{
    struct session *session = q->session;
    struct planner *p = session->broker->planner;
    if (!session_hold(session, q->id, q->frame, kind))
        return -ENOMEM;
    fair_wait(&p->waiting, &session->user->at_planner, &session->planner_link);
    start_next(p);
    return 0;
}

/* Whether the user has any left of it. */
static int check_time(const struct session *session, struct gad_error *error)
{
    struct accounts *accounts = session->broker->accounts;
    accounts_forget(accounts, loop_now_ns());
    return account_check(accounts, session->uid, ACCOUNT_PLAN_NS, error);
}

static int judge_at_once(const struct request *q, struct submission *s, struct gad_error *error)
{
    struct broker *broker = q->session->broker;
    uint64_t began_ns = loop_now_ns();
    submission_locate(q->session, q->frame, s, broker->planner->choice);
    int r = submission_judge(s, broker->programs, error);
    charge(broker, s->uid, min_u64(loop_now_ns() - began_ns, LIGHT_NS));
    return r ? r : methods_job_judged(q, s, error);
}

int planner_take(const struct request *q, enum submission_kind kind, struct gad_error *error)
{
    struct submission s;
    int r = submission_decode(q->session, q->message, q->frame, kind, &s, error);
    struct job *twin = r == 0 ? submission_twin(q->session, &s) : NULL;
    if (r == 0 && !twin)
        r = submission_check_open(q->session, &s, error);
    bool is_held = r == 0 && !twin && is_costly(q->session->broker, s.request);
    if (twin)
        r = methods_job_found(q, kind, twin, error);
    else if (r == 0 && !is_held)
        r = judge_at_once(q, &s, error);
    submission_deinit(&s); /* it points into the frame */
    if (is_held && (r = check_time(q->session, error)))
        return r;
    return is_held ? hold(q, kind) : r;
}

void planner_session_gone(struct session *session)
{
    struct planner *p = session->broker->planner;
    list_remove(&session->planner_link);
    if (p->session == session)
        p->session = NULL;
}

void planner_refuse_all(struct planner *p, const struct gad_error *error)
{
    list_for_each (it, &p->broker->sessions) {
        struct session *session = list_entry(it, struct session, link);
        if (!session->held)
            continue;
        session_reply_error(session, session->held_id, error);
        planner_session_gone(session);
        session_release_held(session);
    }
}
