/* Sessions: what waits to be read by clients.
 *
 * A client that sends and does not read is not read from while more than SESSION_CLOG_BYTES of
 * replies wait for it; if that lasts client-timeout, or the queue grows beyond session-replies (by
 * jobs that were under way), it is dropped. The same from SESSION_SHARE_BYTES on while its user has
 * about user-replies, over all connections. Then jobs with results to be read do not start
 * (dispatch.c), and what would be answered at length is held until there is room, but on
 * connections that have read all, as long as there is not twice as much: so the user's whole has a
 * bound, and who looks from another connection is still answered.
 *
 * Called by session.c, and by whoever answers.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/broker.h"
#include "daemon/broker/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/session_impl.h"
#include "proto/util.h"

#include <string.h>

#define UNCLOG_BYTES (SESSION_CLOG_BYTES / 2)

/* Its user has so much to read that one more reply of any length may be too much. */
bool session_is_behind(const struct session *s)
{
    const struct accounts *accounts = s->broker->accounts;
    return account_use(accounts, s->uid, ACCOUNT_REPLY_BYTES) > 0 &&
           !account_has_room(accounts, s->uid, ACCOUNT_REPLY_BYTES, FRAME_MAX_BODY_BYTES);
}

/* Who has nothing to read is answered at length too, until that is as much again. */
int session_check_room(const struct session *s, uint64_t n_bytes)
{
    const struct accounts *accounts = s->broker->accounts;
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
    if (broker->has_held_back || !list_is_empty(&broker->paused))
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
    session_update_clog(s); /* before the next of its requests */
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
    size_t n_queued = conn_n_queued_bytes(s->conn);
    return n_queued > (s->is_clogged ? UNCLOG_BYTES : SESSION_CLOG_BYTES) ||
           (n_queued > SESSION_SHARE_BYTES && session_is_behind(s));
}

static void set_clogged(struct session *s)
{
    s->is_clogged = true;
    list_remove(&s->busy_link);
    broker_set_deadline(s->broker, &s->patience, s->broker->options.client_timeout_ns,
                        session_patience_over);
    session_mark_dirty(s); /* there its watch is set */
}

/* The others that do not read have as much part in it. */
static void clog_user(const struct session *s)
{
    list_for_each (it, &s->broker->sessions) {
        struct session *other = list_entry(it, struct session, link);
        if (other->uid == s->uid && session_is_alive(other) && !other->is_clogged &&
            has_too_many_replies(other))
            set_clogged(other);
    }
}

void session_update_clog(struct session *s)
{
    bool has_too_many = has_too_many_replies(s);
    if (!session_is_alive(s))
        return;
    if (!s->is_clogged && has_too_many) {
        set_clogged(s);
        if (session_is_behind(s))
            clog_user(s);
    } else if (s->is_clogged && !has_too_many) {
        s->is_clogged = false;
        broker_clear_deadline(s->broker, &s->patience);
        session_mark_busy(s);
        session_mark_dirty(s); /* there its watch is set */
    }
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
    if (s->broker->request_bytes + accounts_total(s->broker->accounts, ACCOUNT_REPLY_BYTES) >
        s->broker->options.message_memory_bytes / 4 * 3)
        conn_trim(s->conn); /* room that is not used now is wanted elsewhere */
    session_update_clog(s);
    unsigned events = (session_is_reading(s) ? WATCH_READ : 0u) | (r == -EAGAIN ? WATCH_WRITE : 0u);
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
