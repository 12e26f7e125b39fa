/* Sessions: frames in, requests to methods.c, replies out.
 *
 *     readable --> broker->busy --> conn --> a portion of frames --> methods_handle()
 *                       ^-- rest: in the next turn of the loop --'
 *     replies  --> conn's queue --> broker->dirty --> one flush at the end of the turn, as there
 *                                                     is time: users take turns there, too
 *
 * Users take turns (fair_share.c), those first that have used the least of the loop: in a turn of
 * it the sessions of one user have SESSION_USER_TURN_NS together, all users TURN_NS. What was begun
 * then is still done, which is one frame; the others are first in the next turn.
 *
 * What waits to be read has bounds of its own (session_send.c).
 *
 * What the sessions of a user hold of large requests is bounded too, by message-memory or the
 * user's share of it: that come, are postponed or planned, or belong to jobs that have not been
 * computed. Beyond it whoever has more than SESSION_SHARE_BYTES is paused, and who begins to send
 * another very large one before that is taken in: not read from until its jobs have ended or others
 * hold less. Its bytes wait in its own socket. Only arrays inside the message make a request large,
 * so these jobs are short, and they end whether their client reads or not. Requests that only name
 * files and regions are never counted: a long queue of long jobs keeps nobody from asking about it.
 *
 * Descriptors that came with a message which is not complete, or not read yet, are their user's as
 * those of jobs are: whoever sends more than user-descriptors so, however many sessions, loses one.
 *
 * A session closes in two steps. session_close() gives back everything that it holds and leaves a
 * husk, so that whoever is up the stack may still look at its state; session_reap() frees it at the
 * end of the turn. Nothing else frees a session.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/sessions/session_impl.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/jobs/finish.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/jobs/planner.h"
#include "daemon/broker/sessions/region.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/jobs/fair_share.h"
#include "daemon/broker/sessions/terms.h"
#include "proto/text.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_PER_PORTION   32u
#define RECEIVES_PER_PORTION 4u
#define TURN_NS              UINT64_C(1000000)
#define ENDING_NS            UINT64_C(5000000000)
#define FREE_BYTES           (128u * 1024u)

static void on_event(void *userdata, unsigned events);

bool session_is_reading(const struct session *s)
{
    return session_is_alive(s) && !s->has_failed && !s->is_clogged && !s->is_paused && !s->held;
}

static bool holds_too_much(const struct session *s)
{
    return closer_is_full(s->uid) ||
           (s->request_bytes > SESSION_SHARE_BYTES &&
            account_is_over(s->broker->accounts, s->uid, ACCOUNT_MESSAGE_BYTES));
}

/* A very large message has begun to come, and its user has no room for it. There always is for one
 * at a time; and for smaller ones, so that halves that never end hold up no ordinary request. */
static bool lacks_room(const struct session *s)
{
    const struct accounts *accounts = s->broker->accounts;
    size_t n_bytes = conn_n_wanted_bytes(s->conn);
    return n_bytes > FREE_BYTES && account_use(accounts, s->uid, ACCOUNT_MESSAGE_BYTES) > 0 &&
           !account_has_room(accounts, s->uid, ACCOUNT_MESSAGE_BYTES, n_bytes);
}

bool session_is_admins(const struct session *s)
{
    return s->uid == 0 || s->uid == geteuid() || s->is_of_admins;
}

bool session_is_alive(const struct session *s)
{
    return s->state == SESSION_NEW || s->state == SESSION_OPEN;
}

void session_patience_over(struct deadline *deadline)
{
    struct session *s = list_entry(deadline, struct session, patience);
    if (session_is_alive(s) && !s->refusal) {
        if (session_may_be_slow(s))
            return;
        log_warn(LOG_UID(s->uid), "client %s (pid %d) does not read its replies: dropped",
                 s->client, (int)s->pid);
    }
    session_close(s);
}

int session_new(struct broker *broker, int fd_take, uid_t uid, pid_t pid,
                const struct charge *charge_take, const struct gad_error *refusal)
{
    struct charge charge = *charge_take;
    struct conn *conn;
    int r = conn_new(fd_take, closer_close, &conn);
    if (r < 0) {
        charge_release(&charge);
        return r;
    }
    struct fair_user *user = NULL;
    uint64_t began_ns = session_began_ns(broker);
    struct session *s = calloc(1, sizeof(*s));
    if (!s || (refusal && !(s->refusal = malloc(sizeof(*refusal))))) {
        r = -ENOMEM;
        goto fail;
    }
    if (refusal)
        *s->refusal = *refusal;
    r = fair_join(&broker->users, uid, &user);
    if (r < 0)
        goto fail;
    *s = (struct session){.broker = broker,
                          .user = user,
                          .conn = conn,
                          .uid = uid,
                          .pid = pid,
                          .is_of_admins = terms_of_user(broker, conn_fd(conn), uid),
                          .charge = charge,
                          .refusal = s->refusal};
    text_quote("?", s->client, sizeof(s->client));
    struct list *lists[] = {&s->dirty_link,   &s->busy_link, &s->paused_link, &s->slow_link,
                            &s->planner_link, &s->jobs,      &s->waiters,     &s->stats_waits,
                            &s->regions,      &s->scans};
    for (unsigned i = 0; i < ARRAY_LENGTH(lists); i++)
        list_init(lists[i]);
    r = loop_watch_new(broker->loop, conn_fd(conn), on_event, s, &s->watch);
    if (r == 0)
        r = loop_watch_set(s->watch, WATCH_READ);
    if (r < 0) {
        loop_watch_close(s->watch);
        goto fail;
    }
    list_push_back(&broker->sessions, &s->link);
    broker->n_sessions++;
    metrics_session(&broker->metrics, uid);
    if (refusal)
        broker_set_deadline(broker, &s->patience, ENDING_NS, session_patience_over);
    session_charge_time(broker, user, began_ns);
    return 0;
fail:
    charge_release(&charge);
    conn_free(conn);
    if (user)
        fair_leave(&broker->users, user);
    if (s)
        free(s->refusal);
    free(s);
    return r;
}

int session_leave_reserve(struct session *s, struct gad_error *error)
{
    struct charge charge = {0};
    if (s->charge.resource != ACCOUNT_RESERVE)
        return 0;
    int r = account_charge(s->broker->accounts, s->uid, ACCOUNT_SESSIONS, 1, &charge, error);
    if (r)
        return r;
    charge_release(&s->charge);
    s->charge = charge;
    return 0;
}

void session_close(struct session *s)
{
    struct list *first;
    if (s->state == SESSION_CLOSED)
        return;
    log_info(LOG_UID(s->uid), "client %s (pid %d) leaves", s->client, (int)s->pid);
    s->state = SESSION_CLOSED;
    closer_set_owner(s->uid);
    s->watch = loop_watch_close(s->watch);
    broker_clear_deadline(s->broker, &s->patience);
    broker_clear_deadline(s->broker, &s->half);
    list_remove(&s->dirty_link);
    list_remove(&s->busy_link);
    list_remove(&s->paused_link);
    list_remove(&s->slow_link);
    charge_release(&s->message_charge);
    charge_release(&s->reply_charge);
    frame_deinit(&s->postponed, closer_close);
    list_remove(&s->link);
    list_push_back(&s->broker->closed, &s->link);
    s->broker->n_sessions--;

    while ((first = list_first(&s->waiters)))
        finish_drop_waiter(list_entry(first, struct waiter, session_link));
    while ((first = list_first(&s->jobs)))
        finish_owner_gone(s->broker, list_entry(first, struct job, owner_link));
    while ((first = list_first(&s->regions)))
        region_session_gone(list_entry(first, struct region, session_link));
    while ((first = list_first(&s->scans)))
        scans_session_gone(scans_reader_of(first));
    info_session_gone(s);
    if (s->held) {
        planner_session_gone(s);
        session_release_held(s);
    }
    charge_release(&s->waiting_charge);
    charge_release(&s->charge);
}

void session_reap(struct broker *broker)
{
    struct list *first;
    if (list_is_empty(&broker->closed))
        return;
    while ((first = list_first(&broker->closed))) {
        struct session *s = list_entry(first, struct session, link);
        uint64_t began_ns = session_began_ns(broker);
        list_remove(&s->link);
        closer_set_owner(s->uid);
        conn_free(s->conn);
        session_charge_time(broker, s->user, began_ns);
        fair_leave(&broker->users, s->user);
        free(s->refusal);
        free(s);
    }
    session_tell_room(broker);
    broker_check(broker);
}

void session_mark_dirty(struct session *s)
{
    if (s->state != SESSION_CLOSED && !list_is_linked(&s->dirty_link))
        fair_wait(&s->broker->dirty, &s->user->at_sending, &s->dirty_link);
}

void session_end(struct session *s)
{
    if (!session_is_alive(s))
        return;
    s->state = SESSION_ENDING;
    list_remove(&s->busy_link);
    list_remove(&s->paused_link);
    list_remove(&s->slow_link);
    s->is_slow = s->is_clogged = s->is_paused = false;
    broker_set_deadline(s->broker, &s->patience, ENDING_NS, session_patience_over);
    session_mark_dirty(s);
}

uint64_t session_began_ns(const struct broker *broker)
{
    return fair_is_shared(&broker->users) ? loop_used_ns() : 0;
}

void session_charge_time(struct broker *broker, struct fair_user *user, uint64_t began_ns)
{
    if (began_ns > 0)
        fair_charge(&broker->users, user, loop_used_ns() - began_ns);
}

/* Receiving ----------------------------------------------------------------------------------- */

void session_wait_for_turn(struct session *s)
{
    if (!list_is_linked(&s->busy_link))
        fair_wait(&s->broker->busy, &s->user->at_reading, &s->busy_link);
    loop_set_busy(s->broker->loop, true);
}

void session_mark_busy(struct session *s)
{
    if (session_is_reading(s) && (s->postponed.body || conn_has_frame(s->conn)))
        session_wait_for_turn(s);
}

static void pause_session(struct session *s)
{
    s->is_paused = s->has_half_waited = true;
    list_remove(&s->busy_link);
    list_push_back(&s->broker->paused, &s->paused_link);
    session_mark_dirty(s); /* there its watch is set */
}

static void pause_if_needed(struct session *s)
{
    if (session_is_reading(s) && holds_too_much(s))
        pause_session(s);
}

/* It is handled again when there is room for the answer. */
static void postpone(struct session *s, struct frame *frame)
{
    s->postponed = *frame;
    s->postponed_bytes = s->asked_bytes;
    *frame = (struct frame){0};
    pause_session(s);
}

static bool stays_paused(struct session *s)
{
    return holds_too_much(s) || lacks_room(s) ||
           (s->postponed.body && session_check_room(s, s->postponed_bytes) != 0);
}

void session_resume_paused(struct broker *broker)
{
    list_for_each_safe (it, next, &broker->slow)
        session_update_slow(list_entry(it, struct session, slow_link));
    list_for_each_safe (it, next, &broker->paused) {
        struct session *s = list_entry(it, struct session, paused_link);
        if (stays_paused(s))
            continue;
        list_remove(it);
        s->is_paused = false;
        session_mark_busy(s);
        session_mark_dirty(s);
    }
}

static void answer_no_memory(struct session *s, uint32_t id)
{
    struct gad_error error = {0};
    error_set(&error, GAD_NO_MEMORY, NULL, "the daemon has no memory left for this request");
    session_answer_failure(s, id, GAD_NO_MEMORY, &error);
}

void session_answer_failure(struct session *s, uint32_t id, int r, const struct gad_error *error)
{
    if (r == -ENOMEM) {
        log_error(LOG_UID(s->uid), "client %s: a request is refused: no memory", s->client);
        answer_no_memory(s, id);
        return;
    }
    if (r < 0) {
        log_warn(LOG_UID(s->uid), "client %s: %s", s->client, strerror(-r));
        session_close(s);
        return;
    }
    metrics_refused(&s->broker->metrics, (int)error->status);
    session_reply_error(s, id, error);
    if (s->state == SESSION_NEW) /* it did not get past hello */
        session_end(s);
}

/* -EBUSY: not now; else it has been answered, or the session is closed. */
static int handle_message(struct session *s, const struct message *message, struct frame *frame)
{
    struct gad_error error = {0};
    if (message->kind == MESSAGE_RESPONSE) {
        log_warn(LOG_UID(s->uid), "client %s answers what was not asked", s->client);
        session_close(s);
        return 0;
    }
    if (message->kind == MESSAGE_NOTIFICATION) { /* none is known: a later client's is ignored */
        if (s->state == SESSION_NEW)
            session_close(s); /* hello comes first */
        return 0;
    }
    if (s->refusal) {
        metrics_refused(&s->broker->metrics, (int)s->refusal->status);
        session_reply_error(s, message->id, s->refusal);
        session_end(s);
        return 0;
    }
    struct request request = {.session = s,
                              .message = message,
                              .params = &message->params,
                              .id = message->id,
                              .frame = frame};
    int r = methods_handle(&request, &error);
    if (r != 0 && r != -EBUSY)
        session_answer_failure(s, message->id, r, &error);
    return r == -EBUSY ? r : 0;
}

static void handle_frame(struct session *s, struct frame *frame)
{
    struct message message = {0};
    struct gad_error error = {0};
    bool has_id = false;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r == 0) {
        r = handle_message(s, &message, frame);
        message_deinit(&message);
        if (r == -EBUSY)
            postpone(s, frame);
        return;
    }
    if (r == -ENOMEM && has_id) {
        session_answer_failure(s, message.id, r, &error);
        return;
    }
    metrics_refused(&s->broker->metrics, GAD_PROTOCOL);
    log_warn(LOG_UID(s->uid), "client %s (pid %d): malformed message", s->client, (int)s->pid);
    if (r < 0 || !has_id) {
        session_close(s);
        return;
    }
    session_reply_error(s, message.id, &error);
    session_end(s);
}

static void close_on(struct session *s, int r)
{
    if (r == -EPROTO || r == -EMSGSIZE) {
        metrics_refused(&s->broker->metrics, GAD_PROTOCOL);
        log_warn(LOG_UID(s->uid), "client %s (pid %d): %s", s->client, (int)s->pid,
                 r == -EPROTO ? "does not speak the protocol" : "a message over the limit");
    }
    session_close(s);
}

/* 0 or -EAGAIN: nothing more here; other: the session is closed */
static int handle_frames(struct session *s, uint64_t until_ns, unsigned *n_left)
{
    int r = 0;
    while (*n_left > 0 && session_is_reading(s)) {
        struct frame frame = s->postponed;
        s->postponed = (struct frame){0};
        r = frame.body ? 0 : conn_next(s->conn, &frame);
        if (r < 0)
            break;
        --*n_left;
        handle_frame(s, &frame);
        closer_set_owner(s->uid);
        frame_deinit(&frame, closer_close);
        pause_if_needed(s);
        if (loop_now_ns() >= until_ns)
            *n_left = 0;
    }
    if (r < 0 && r != -EAGAIN)
        close_on(s, r);
    return r;
}

static void receive_frames(struct session *s, uint64_t until_ns)
{
    unsigned n_left = FRAMES_PER_PORTION;
    int r = 0;
    /* Another receive only where no frame was complete: the loop tells when there is more. */
    for (unsigned i = 0; i < RECEIVES_PER_PORTION && n_left == FRAMES_PER_PORTION; i++) {
        if (!s->postponed.body && !conn_has_frame(s->conn)) {
            if (lacks_room(s)) {
                pause_session(s);
                return;
            }
            r = conn_receive(s->conn);
            if (r == -EAGAIN)
                break;
            if (r < 0) {
                close_on(s, r);
                return;
            }
        }
        r = handle_frames(s, until_ns, &n_left);
        if (!session_is_reading(s) || (r < 0 && r != -EAGAIN))
            return;
    }
    session_mark_busy(s);
}

/* What was charged for is given back before the frames are handled: a job is charged for its own.
 */
static void read_frames(struct session *s, uint64_t until_ns)
{
    charge_release(&s->waiting_charge);
    receive_frames(s, until_ns);
    session_charge_waiting(s);
    session_count_messages(s);
    session_watch_half(s);
}

static void move_all(struct list *from, struct list *to)
{
    struct list *first;
    while ((first = list_first(from))) {
        list_remove(first);
        list_push_back(to, first);
    }
}

static void put_in_front(struct list *from, struct list *to)
{
    while (!list_is_empty(from)) {
        struct list *last = from->prev;
        list_remove(last);
        list_push_front(to, last);
    }
}

/* Each of the user's sessions at most once, while there is time. What is left over of their frames
 * is behind the sessions that were not served. */
static void serve_user(struct broker *broker, struct fair_line *line, uint64_t turn_ends_ns)
{
    uint64_t until_ns = min_u64(loop_now_ns() + SESSION_USER_TURN_NS, turn_ends_ns);
    uint64_t began_ns = session_began_ns(broker);
    struct list portion;
    list_init(&portion);
    move_all(&line->items, &portion);
    do {
        struct session *s = list_entry(list_first(&portion), struct session, busy_link);
        list_remove(&s->busy_link);
        if (session_is_reading(s))
            read_frames(s, until_ns);
    } while (!list_is_empty(&portion) && loop_now_ns() < until_ns);
    if (!list_is_empty(&portion) && !list_is_linked(&line->link))
        list_push_back(&broker->busy, &line->link);
    put_in_front(&portion, &line->items);
    session_charge_time(broker, line->user, began_ns);
}

/* Every user at most once, so that replies are sent in between; and none who has used more than one
 * who was served and still has something: that one comes first in the next turn. */
void session_work_busy(struct broker *broker)
{
    uint64_t until_ns = loop_now_ns() + TURN_NS;
    struct list waiting;
    struct fair_line *line;
    if (list_is_empty(&broker->busy)) {
        loop_set_busy(broker->loop, false); /* others of this turn say so if they go on */
        return;
    }
    list_init(&waiting);
    move_all(&broker->busy, &waiting);
    while ((line = fair_least(&waiting)) && loop_now_ns() < until_ns) {
        const struct fair_line *served = fair_least(&broker->busy);
        if (served && served->user->used_ns < line->user->used_ns)
            break;
        list_remove(&line->link);
        fair_serve(&broker->users, line->user);
        serve_user(broker, line, until_ns);
    }
    put_in_front(&waiting, &broker->busy);
    loop_set_busy(broker->loop, fair_first(&broker->busy) != NULL);
}

static void on_event(void *userdata, unsigned events)
{
    struct session *s = userdata;
    if (events & WATCH_WRITE)
        session_mark_dirty(s);
    if (!(events & WATCH_READ))
        return;
    if (session_is_reading(s))
        session_wait_for_turn(s); /* which comes before the loop waits again */
    else if (!loop_watch_asks_for(s->watch, WATCH_READ))
        session_close(s); /* nothing was to be read: it has hung up */
    /* else it stopped being read from in this round, and what it sent has to wait */
}
