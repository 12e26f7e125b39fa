/* Sessions: frames in, requests to methods.c, replies out.
 *
 *     readable --> conn --> at most FRAMES_PER_WAKE_UP frames --> methods_handle()
 *                            rest: broker->busy, one such portion in every turn of the loop
 *     replies  --> conn's queue --> broker->dirty --> one flush at the end of the turn
 *
 * A client that sends and does not read is not read from while more than SESSION_CLOG_BYTES of
 * replies wait for it; if that lasts client-timeout, or the queue grows beyond session-replies (by
 * jobs that were under way), it is dropped.
 *
 * What all sessions together hold of large requests that wait, and of replies that were not sent
 * yet, is bounded too: beyond message-memory whoever has more than SESSION_SHARE_BYTES of such
 * requests is paused: not read from until its jobs have ended or others hold less. Its bytes wait
 * in its own socket. Only arrays inside the message make a request large, so these jobs are short,
 * and they end whether their client reads or not. Requests that only name files and regions are
 * never counted: a long queue of long jobs keeps nobody from asking about it.
 *
 * Descriptors that came with a message which is not complete, or not read yet, are their user's as
 * those of jobs are: whoever sends more than user-descriptors so, however many sessions, loses one.
 *
 * A session closes in two steps. session_close() gives back everything that it holds and leaves a
 * husk, so that whoever is up the stack may still look at its state; session_reap() frees it at the
 * end of the turn. Nothing else frees a session.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/session.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/finish.h"
#include "daemon/broker/info.h"
#include "daemon/broker/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/methods.h"
#include "daemon/broker/region.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define FRAMES_PER_WAKE_UP   32u
#define RECEIVES_PER_WAKE_UP 4u
#define UNCLOG_BYTES         (SESSION_CLOG_BYTES / 2)
#define ENDING_NS            UINT64_C(5000000000)

static void on_event(void *userdata, unsigned events);

static bool is_reading(const struct session *s)
{
    return session_is_alive(s) && !s->has_failed && !s->is_clogged && !s->is_paused;
}

static uint64_t held_by_all(const struct broker *broker)
{
    return broker->request_bytes + broker->reply_bytes;
}

static bool holds_too_much(const struct session *s)
{
    return s->request_bytes > SESSION_SHARE_BYTES &&
           held_by_all(s->broker) > s->broker->options.message_memory_bytes;
}

static void count_replies(struct session *s, uint64_t n_bytes)
{
    s->broker->reply_bytes += n_bytes - s->reply_bytes;
    s->reply_bytes = n_bytes;
}

bool session_is_alive(const struct session *s)
{
    return s->state == SESSION_NEW || s->state == SESSION_OPEN;
}

static void on_patience_over(struct deadline *deadline)
{
    struct session *s = list_entry(deadline, struct session, patience);
    if (s->is_clogged)
        log_warn(LOG_UID(s->uid), "client '%s' (pid %d) does not read its replies: dropped",
                 s->client, (int)s->pid);
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
    struct session *s = calloc(1, sizeof(*s));
    if (!s || (refusal && !(s->refusal = malloc(sizeof(*refusal))))) {
        r = -ENOMEM;
        goto fail;
    }
    if (refusal)
        *s->refusal = *refusal;
    *s = (struct session){.broker = broker,
                          .conn = conn,
                          .uid = uid,
                          .pid = pid,
                          .charge = charge,
                          .refusal = s->refusal};
    snprintf(s->client, sizeof(s->client), "?");
    struct list *lists[] = {&s->dirty_link, &s->busy_link,   &s->paused_link, &s->jobs,
                            &s->waiters,    &s->stats_waits, &s->regions};
    for (unsigned i = 0; i < ARRAY_LENGTH(lists); i++)
        list_init(lists[i]);
    r = watch_new(broker->loop, conn_fd(conn), on_event, s, &s->watch);
    if (r == 0)
        r = watch_set(s->watch, WATCH_READ);
    if (r < 0) {
        watch_close(s->watch);
        goto fail;
    }
    list_push_back(&broker->sessions, &s->link);
    broker->n_sessions++;
    metrics_session(&broker->metrics, uid);
    if (refusal)
        broker_set_deadline(broker, &s->patience, ENDING_NS, on_patience_over);
    return 0;
fail:
    charge_release(&charge);
    conn_free(conn);
    if (s)
        free(s->refusal);
    free(s);
    return r;
}

void session_close(struct session *s)
{
    struct list *first;
    if (s->state == SESSION_CLOSED)
        return;
    log_info(LOG_UID(s->uid), "client '%s' (pid %d) leaves", s->client, (int)s->pid);
    s->state = SESSION_CLOSED;
    s->watch = watch_close(s->watch);
    broker_clear_deadline(s->broker, &s->patience);
    list_remove(&s->dirty_link);
    list_remove(&s->busy_link);
    list_remove(&s->paused_link);
    count_replies(s, 0);
    list_remove(&s->link);
    list_push_back(&s->broker->closed, &s->link);
    s->broker->n_sessions--;

    while ((first = list_first(&s->waiters)))
        finish_drop_waiter(list_entry(first, struct waiter, session_link));
    while ((first = list_first(&s->jobs)))
        finish_owner_gone(s->broker, list_entry(first, struct job, owner_link));
    while ((first = list_first(&s->regions)))
        region_session_gone(list_entry(first, struct region, session_link));
    info_session_gone(s);
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
        list_remove(&s->link);
        conn_free(s->conn);
        free(s->refusal);
        free(s);
    }
    broker_check(broker);
}

static void mark_dirty(struct session *s)
{
    if (s->state != SESSION_CLOSED && !list_is_linked(&s->dirty_link))
        list_push_back(&s->broker->dirty, &s->dirty_link);
}

void session_end(struct session *s)
{
    if (!session_is_alive(s))
        return;
    s->state = SESSION_ENDING;
    list_remove(&s->busy_link);
    list_remove(&s->paused_link);
    s->is_clogged = s->is_paused = false;
    broker_set_deadline(s->broker, &s->patience, ENDING_NS, on_patience_over);
    mark_dirty(s);
}

/* Sending ------------------------------------------------------------------------------------- */

void session_send(struct session *s)
{
    session_send_with(s, NULL, 0);
}

void session_send_with(struct session *s, const char *tail, size_t n_tail_bytes)
{
    const msgpack_sbuffer *body = &s->broker->writer.buffer;
    if (s->state == SESSION_CLOSED || s->has_failed)
        return;
    int r = conn_send_with(s->conn, body->data, body->size, tail, n_tail_bytes, NULL, 0);
    if (r == 0 && conn_n_queued_bytes(s->conn) > s->broker->options.session_reply_bytes)
        r = -ENOBUFS;
    if (r < 0) {
        log_warn(LOG_UID(s->uid), "client '%s': cannot reply: %s", s->client, strerror(-r));
        s->has_failed = true;
    }
    count_replies(s, conn_n_queued_bytes(s->conn));
    mark_dirty(s);
}

void session_reply_error(struct session *s, uint32_t id, const struct gad_error *error)
{
    message_error(&s->broker->writer, id, error);
    session_send(s);
}

void session_reply_empty(struct session *s, uint32_t id)
{
    message_begin_result(&s->broker->writer, id);
    msgpack_pack_map(&s->broker->writer.packer, 0);
    session_send(s);
}

static void mark_busy(struct session *s)
{
    if (is_reading(s) && conn_has_frame(s->conn) && !list_is_linked(&s->busy_link)) {
        list_push_back(&s->broker->busy, &s->busy_link);
        loop_set_busy(s->broker->loop, true);
    }
}

static void update_clog(struct session *s)
{
    size_t n_queued = conn_n_queued_bytes(s->conn);
    if (s->state == SESSION_ENDING)
        return;
    if (!s->is_clogged && n_queued > SESSION_CLOG_BYTES) {
        s->is_clogged = true;
        list_remove(&s->busy_link);
        broker_set_deadline(s->broker, &s->patience, s->broker->options.client_timeout_ns,
                            on_patience_over);
    } else if (s->is_clogged && n_queued < UNCLOG_BYTES) {
        s->is_clogged = false;
        broker_clear_deadline(s->broker, &s->patience);
        mark_busy(s);
    }
}

static void flush(struct session *s)
{
    int r = s->has_failed ? -EPIPE : conn_flush(s->conn);
    if ((r < 0 && r != -EAGAIN) || (r == 0 && s->state == SESSION_ENDING)) {
        session_close(s);
        return;
    }
    count_replies(s, conn_n_queued_bytes(s->conn));
    if (held_by_all(s->broker) > s->broker->options.message_memory_bytes / 4 * 3)
        conn_trim(s->conn); /* room that is not used now is wanted elsewhere */
    update_clog(s);
    unsigned events = (is_reading(s) ? WATCH_READ : 0u) | (r == -EAGAIN ? WATCH_WRITE : 0u);
    if (watch_set(s->watch, events) < 0)
        session_close(s);
}

void session_flush_dirty(struct broker *broker)
{
    struct list *first;
    while ((first = list_first(&broker->dirty))) {
        struct session *s = list_entry(first, struct session, dirty_link);
        list_remove(&s->dirty_link);
        flush(s);
    }
}

/* Receiving ----------------------------------------------------------------------------------- */

static void pause_if_needed(struct session *s)
{
    if (!is_reading(s) || !holds_too_much(s))
        return;
    s->is_paused = true;
    list_remove(&s->busy_link);
    list_push_back(&s->broker->paused, &s->paused_link);
    mark_dirty(s); /* there its watch is set */
}

void session_resume_paused(struct broker *broker)
{
    list_for_each_safe (it, next, &broker->paused) {
        struct session *s = list_entry(it, struct session, paused_link);
        if (holds_too_much(s))
            continue;
        list_remove(it);
        s->is_paused = false;
        mark_busy(s);
        mark_dirty(s);
    }
}

static void answer_request(struct session *s, uint32_t id, int r, const struct gad_error *error)
{
    if (r < 0) {
        log_warn(LOG_UID(s->uid), "client '%s': %s", s->client, strerror(-r));
        session_close(s);
        return;
    }
    metrics_refused(&s->broker->metrics, (int)error->status);
    session_reply_error(s, id, error);
    if (s->state == SESSION_NEW) /* it did not get past hello */
        session_end(s);
}

static void handle_message(struct session *s, const struct message *message, struct frame *frame)
{
    struct gad_error error = {0};
    if (message->kind == MESSAGE_RESPONSE) {
        log_warn(LOG_UID(s->uid), "client '%s' answers what was not asked", s->client);
        session_close(s);
        return;
    }
    if (message->kind == MESSAGE_NOTIFICATION) { /* none is known: a later client's is ignored */
        if (s->state == SESSION_NEW)
            session_close(s); /* hello comes first */
        return;
    }
    if (s->refusal) {
        metrics_refused(&s->broker->metrics, (int)s->refusal->status);
        session_reply_error(s, message->id, s->refusal);
        session_end(s);
        return;
    }
    struct request request = {.session = s,
                              .message = message,
                              .params = &message->params,
                              .id = message->id,
                              .frame = frame};
    int r = methods_handle(&request, &error);
    if (r != 0)
        answer_request(s, message->id, r, &error);
}

static void handle_frame(struct session *s, struct frame *frame)
{
    struct message message = {0};
    struct gad_error error = {0};
    bool has_id = false;
    int r = message_decode(frame->body, frame->size_bytes, &message, &has_id, &error);
    if (r == 0) {
        handle_message(s, &message, frame);
        message_deinit(&message);
        return;
    }
    metrics_refused(&s->broker->metrics, GAD_PROTOCOL);
    log_warn(LOG_UID(s->uid), "client '%s' (pid %d): malformed message", s->client, (int)s->pid);
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
        log_warn(LOG_UID(s->uid), "client '%s' (pid %d): %s", s->client, (int)s->pid,
                 r == -EPROTO ? "does not speak the protocol" : "a message over the limit");
    }
    session_close(s);
}

/* 0 or -EAGAIN: nothing more here; other: the session is closed */
static int handle_frames(struct session *s, unsigned *n_left)
{
    int r = 0;
    while (*n_left > 0 && is_reading(s)) {
        struct frame frame = {0};
        r = conn_next(s->conn, &frame);
        if (r < 0)
            break;
        --*n_left;
        handle_frame(s, &frame);
        frame_deinit(&frame, closer_close);
        pause_if_needed(s);
    }
    if (r < 0 && r != -EAGAIN)
        close_on(s, r);
    return r;
}

static void receive_frames(struct session *s)
{
    unsigned n_left = FRAMES_PER_WAKE_UP;
    int r = 0;
    /* Another receive only where no frame was complete: the loop tells when there is more. */
    for (unsigned i = 0; i < RECEIVES_PER_WAKE_UP && n_left == FRAMES_PER_WAKE_UP; i++) {
        if (!conn_has_frame(s->conn)) {
            r = conn_receive(s->conn);
            if (r == -EAGAIN)
                break;
            if (r < 0) {
                close_on(s, r);
                return;
            }
        }
        r = handle_frames(s, &n_left);
        if (!is_reading(s) || (r < 0 && r != -EAGAIN))
            return;
    }
    mark_busy(s);
}

static void charge_waiting(struct session *s)
{
    struct gad_error error;
    unsigned n_fds = conn_n_waiting_fds(s->conn);
    if (n_fds == 0 || s->state == SESSION_CLOSED)
        return;
    int r = account_charge(s->broker->accounts, s->uid, ACCOUNT_DESCRIPTORS, n_fds,
                           &s->waiting_charge, &error);
    if (r == 0)
        return;
    metrics_refused(&s->broker->metrics, r > 0 ? r : GAD_INTERNAL);
    log_warn(LOG_UID(s->uid), "client '%s' (pid %d): in messages that are not complete: %s",
             s->client, (int)s->pid, r > 0 ? error.message : strerror(-r));
    session_close(s);
}

/* What was charged for is given back before the frames are handled: a job is charged for its own.
 */
static void read_frames(struct session *s)
{
    charge_release(&s->waiting_charge);
    receive_frames(s);
    charge_waiting(s);
}

void session_work_busy(struct broker *broker)
{
    struct list portion;
    if (list_is_empty(&broker->busy))
        return;
    list_init(&portion);
    while (!list_is_empty(&broker->busy)) {
        struct list *first = broker->busy.next;
        list_remove(first);
        list_push_back(&portion, first);
    }
    while (!list_is_empty(&portion)) {
        struct session *s = list_entry(portion.next, struct session, busy_link);
        list_remove(&s->busy_link);
        if (is_reading(s))
            read_frames(s);
    }
    loop_set_busy(broker->loop, !list_is_empty(&broker->busy));
}

static void on_event(void *userdata, unsigned events)
{
    struct session *s = userdata;
    if (events & WATCH_WRITE)
        mark_dirty(s);
    if (!(events & WATCH_READ))
        return;
    if (is_reading(s))
        read_frames(s);
    else
        session_close(s); /* nothing was to be read: it has hung up */
}
