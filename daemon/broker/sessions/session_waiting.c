/* Sessions: messages that came and are not handled yet: incomplete, postponed, or held while they
 * are planned. What they take is charged to their user, and who sends a half and not the rest is
 * dropped.
 *
 * Called by session.c, planner.c and methods.c.
 */
#define LOG_TOPIC "session"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/loop.h"
#include "daemon/broker/sessions/session_impl.h"
#include "proto/util.h"

#include <string.h>

#define LAST_LOOK_NS UINT64_C(1000000000)

/* The jobs' own are charged by them. */
void session_count_messages(struct session *s)
{
    uint64_t n_partial = conn_n_partial_bytes(s->conn);
    uint64_t n_postponed = s->postponed.body ? s->postponed.size_bytes : 0;
    uint64_t amount = s->held_bytes + (n_partial >= SESSION_LARGE_BYTES ? n_partial : 0) +
                      (n_postponed >= SESSION_LARGE_BYTES ? n_postponed : 0);
    if (s->state == SESSION_CLOSED)
        return;
    if (amount != s->message_charge.amount)
        account_set_charge(s->broker->accounts, s->uid, ACCOUNT_MESSAGE_BYTES, amount,
                           &s->message_charge);
}

void session_charge_waiting(struct session *s)
{
    struct gad_error error;
    unsigned n_fds = conn_n_waiting_fds(s->conn) + s->n_held_fds + s->postponed.n_fds;
    charge_release(&s->waiting_charge);
    if (n_fds == 0 || s->state == SESSION_CLOSED)
        return;
    int r = account_charge(s->broker->accounts, s->uid, ACCOUNT_DESCRIPTORS, n_fds,
                           &s->waiting_charge, &error);
    if (r == 0)
        return;
    metrics_refused(&s->broker->metrics, r > 0 ? r : GAD_INTERNAL);
    log_warn(LOG_UID(s->uid), "client %s (pid %d): in messages that are not complete: %s",
             s->client, (int)s->pid, r > 0 ? error.message : strerror(-r));
    session_close(s);
}

static void on_half_over(struct deadline *deadline);

/* Who sends a part of a message holds memory for it, and may not for ever. The time begins anew
 * with another message, and where it was us who did not read for a part of it: then the rest may
 * lie in the socket. */
void session_watch_half(struct session *s)
{
    if (!session_is_alive(s) || deadline_is_set(&s->half) ||
        !conn_is_inside_frame(s->conn, &s->half_position))
        return;
    s->has_half_waited = !session_is_reading(s);
    s->is_half_last_look = false;
    broker_set_deadline(s->broker, &s->half, s->broker->options.client_timeout_ns, on_half_over);
}

/* A daemon that stood still finds the time over before it has looked at what came. */
static void look_once_more(struct session *s)
{
    s->is_half_last_look = true;
    session_wait_for_turn(s);
    broker_set_deadline(s->broker, &s->half, LAST_LOOK_NS, on_half_over);
}

static void on_half_over(struct deadline *deadline)
{
    struct session *s = list_entry(deadline, struct session, half);
    uint64_t position;
    bool is_same = conn_is_inside_frame(s->conn, &position) && position == s->half_position;
    if (!is_same || s->has_half_waited || !session_is_reading(s)) {
        session_watch_half(s);
        return;
    }
    if (!s->is_half_last_look) {
        look_once_more(s);
        return;
    }
    log_warn(LOG_UID(s->uid), "client %s (pid %d) does not send the rest of a message: dropped",
             s->client, (int)s->pid);
    session_close(s);
}

bool session_hold(struct session *s, uint32_t id, struct frame *frame, unsigned kind)
{
    s->held = malloc(sizeof(*s->held));
    if (!s->held)
        return false;
    *s->held = *frame;
    frame->body = NULL;
    frame->n_fds = 0;
    s->held_id = id;
    s->held_as = kind;
    s->n_held_fds = s->held->n_fds;
    s->held_bytes = s->held->size_bytes >= SESSION_LARGE_BYTES ? s->held->size_bytes : 0;
    s->request_bytes += s->held_bytes;
    s->n_held_again = 0;
    s->has_half_waited = true;
    session_count_messages(s);
    session_mark_dirty(s); /* there its watch is set */
    return true;
}

void session_release_held(struct session *s)
{
    charge_release(&s->waiting_charge);
    s->n_held_fds = 0;
    s->request_bytes -= s->held_bytes;
    s->held_bytes = 0;
    session_count_messages(s);
    closer_set_owner(s->uid);
    frame_deinit(s->held, closer_close);
    free(steal_ptr(s->held));
}

void session_go_on(struct session *s)
{
    session_charge_waiting(s);
    session_mark_busy(s);
    session_mark_dirty(s);
}
