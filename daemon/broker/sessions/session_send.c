/* Sessions: what waits to be read by clients.
 *
 * Four rules bound what clients leave unread:
 *
 * 1. A connection is not read from (it is clogged) while more than SESSION_CLOG_BYTES of replies
 *    wait on it, or more than SESSION_SHARE_BYTES while its user has about user-replies over all
 *    connections. In the second case results of jobs do not count: each is in memory once
 *    (result.c), and no such job starts then (dispatch.c); and a client that has sent many requests
 *    before reading must not be waited for while it waits for us.
 * 2. A connection that leaves so much unread, of any kind, is slow: it is dropped if it reads
 *    nothing for client-timeout.
 * 3. It is dropped at once when its queue grows beyond session-replies, by jobs that were under
 *    way.
 * 4. A long answer is held until its user has room; but a connection with nothing unread gets it up
 *    to twice user-replies, so that a user who looks from another connection is answered.
 *
 * Called by session.c, and by whoever answers.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/sessions/session_impl.h"
#include "proto/util.h"

#include <string.h>

#define UNCLOG_BYTES (SESSION_CLOG_BYTES / 2)

/* Its user has so much to read that one more reply of any length may be too much. */
static bool session_is_behind(const struct session *s)
{
    const struct accounts *accounts = s->broker->accounts;
    uint64_t limit = account_limit(accounts, s->uid, ACCOUNT_REPLY_BYTES);
    return account_use(accounts, s->uid, ACCOUNT_REPLY_BYTES) +
               min_u64(FRAME_MAX_BODY_BYTES, limit / 2) >
           limit;
}

/* A connection with nothing unread gets a long answer up to twice the limit. */
int session_check_room(struct session *s, uint64_t n_bytes)
{
    const struct accounts *accounts = s->broker->accounts;
    s->asked_bytes = n_bytes;
    if (n_bytes <= SESSION_SHARE_BYTES || !session_is_behind(s))
        return 0;
    uint64_t limit = account_limit(accounts, s->uid, ACCOUNT_REPLY_BYTES);
    return conn_n_queued_bytes(s->conn) == 0 &&
                   account_use(accounts, s->uid, ACCOUNT_REPLY_BYTES) + n_bytes <= 2 * limit
               ? 0
               : -EBUSY;
}

/* Of a few copied bytes nobody keeps account. */
static void count_replies(struct session *s)
{
    struct broker *broker = s->broker;
    size_t n_copied = conn_n_copied_bytes(s->conn);
    uint64_t amount = n_copied < SESSION_LARGE_BYTES ? 0 : n_copied;
    if (amount != s->reply_charge.amount)
        account_set_charge(broker->accounts, s->uid, ACCOUNT_REPLY_BYTES, amount, &s->reply_charge);
}

/* Bytes were sent or dropped: who waits for that may go on. */
void session_tell_room(struct broker *broker)
{
    if (broker->has_held_back || !list_is_empty(&broker->paused) || !list_is_empty(&broker->slow))
        broker->has_room_again = true;
}

void session_send(struct session *s)
{
    session_send_with(s, NULL, 0);
}

/* r: of queueing it. */
static void after_queueing(struct session *s, int r)
{
    if (r == 0 && conn_n_copied_bytes(s->conn) > s->broker->options.session_reply_bytes)
        r = -ENOBUFS;
    if (r < 0) {
        log_warn(LOG_UID(s->uid), "client %s: cannot reply: %s", s->client, strerror(-r));
        s->has_failed = true;
    }
    count_replies(s);
    session_update_slow(s); /* before the next of its requests */
    session_mark_dirty(s);
}

void session_send_with(struct session *s, const char *tail, size_t n_tail_bytes)
{
    const msgpack_sbuffer *body = &s->broker->writer.buffer;
    if (s->state != SESSION_CLOSED && !s->has_failed)
        after_queueing(
            s, conn_send_with(s->conn, body->data, body->size, tail, n_tail_bytes, NULL, 0));
}

void session_send_shared(struct session *s, struct shared *shared, const char *bytes,
                         size_t n_bytes)
{
    const msgpack_sbuffer *body = &s->broker->writer.buffer;
    if (s->state != SESSION_CLOSED && !s->has_failed)
        after_queueing(s,
                       conn_send_shared(s->conn, body->data, body->size, shared, bytes, n_bytes));
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

static bool has_too_many_replies(const struct session *s)
{
    return conn_n_queued_bytes(s->conn) > (s->is_clogged ? UNCLOG_BYTES : SESSION_CLOG_BYTES) ||
           (conn_n_copied_bytes(s->conn) > SESSION_SHARE_BYTES && session_is_behind(s));
}

static bool leaves_much(const struct session *s)
{
    return has_too_many_replies(s) ||
           (conn_n_queued_bytes(s->conn) > SESSION_SHARE_BYTES && session_is_behind(s));
}

static void begin_patience(struct session *s)
{
    s->slow_position = conn_n_sent_bytes(s->conn);
    broker_set_deadline(s->broker, &s->patience, s->broker->options.client_timeout_ns,
                        session_patience_over);
}

static void set_slow(struct session *s, bool is_slow)
{
    s->is_slow = is_slow;
    if (is_slow) {
        list_push_back(&s->broker->slow, &s->slow_link);
        begin_patience(s);
    } else {
        list_remove(&s->slow_link);
        broker_clear_deadline(s->broker, &s->patience);
    }
}

static void set_clogged(struct session *s, bool is_clogged)
{
    s->is_clogged = is_clogged;
    if (is_clogged) {
        s->has_half_waited = true;
        list_remove(&s->busy_link);
    } else {
        session_mark_busy(s);
    }
    session_mark_dirty(s); /* flush() sets its watch */
}

static void update(struct session *s)
{
    bool is_slow = leaves_much(s), is_clogged = has_too_many_replies(s);
    if (is_slow != s->is_slow)
        set_slow(s, is_slow);
    if (is_clogged != s->is_clogged)
        set_clogged(s, is_clogged);
}

void session_update_slow(struct session *s)
{
    bool was_slow = s->is_slow;
    if (!session_is_alive(s) || s->refusal)
        return;
    update(s);
    if (was_slow || !s->is_slow || !session_is_behind(s))
        return;
    /* Its other connections that leave much unread are as slow as this one. */
    list_for_each (it, &s->broker->sessions) {
        struct session *other = list_entry(it, struct session, link);
        if (other->uid == s->uid && session_is_alive(other) && !other->refusal)
            update(other);
    }
}

bool session_may_be_slow(struct session *s)
{
    (void)!conn_flush(s->conn); /* it may have read while the daemon stood still */
    session_update_slow(s);
    if (s->is_slow && conn_n_sent_bytes(s->conn) == s->slow_position)
        return false;
    if (s->is_slow)
        begin_patience(s);
    return true;
}

static void flush(struct session *s)
{
    int r = s->has_failed ? -EPIPE : conn_flush(s->conn);
    if ((r < 0 && r != -EAGAIN) || (r == 0 && s->state == SESSION_ENDING)) {
        session_close(s);
        return;
    }
    count_replies(s);
    session_tell_room(s->broker);
    if (accounts_total(s->broker->accounts, ACCOUNT_MESSAGE_BYTES) >
        s->broker->options.message_memory_bytes / 4 * 3)
        conn_trim(s->conn); /* room that is not used now is wanted elsewhere */
    session_update_slow(s);
    unsigned events = (session_is_reading(s) ? WATCH_READ : 0u) | (r == -EAGAIN ? WATCH_WRITE : 0u);
    if (loop_watch_set(s->watch, events) < 0)
        session_close(s);
}

/* What is left over goes on in the next turn, behind the other users. */
static void flush_user(struct broker *broker, struct fair_line *line)
{
    uint64_t until_ns = loop_now_ns() + SESSION_USER_TURN_NS;
    uint64_t began_ns = session_began_ns(broker);
    struct list *first;
    list_remove(&line->link);
    while ((first = list_first(&line->items)) && loop_now_ns() < until_ns) {
        list_remove(first);
        flush(list_entry(first, struct session, dirty_link));
    }
    if (!list_is_empty(&line->items) && !list_is_linked(&line->link))
        list_push_back(&broker->dirty, &line->link);
    session_charge_time(broker, line->user, began_ns);
}

void session_flush_dirty(struct broker *broker, uint64_t until_ns)
{
    struct fair_line *line;
    bool is_first = true;
    while ((line = fair_least(&broker->dirty)) && (is_first || loop_now_ns() < until_ns)) {
        is_first = false;
        flush_user(broker, line);
    }
}
