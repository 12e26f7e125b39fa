/* One connected client. */
#pragma once

#include "daemon/broker/account.h"
#include "daemon/broker/deadline.h"
#include "daemon/broker/list.h"
#include "proto/conn.h"
#include "proto/message.h"

#include <stdbool.h>
#include <sys/types.h>

#define SESSION_CLIENT_SIZE 64
#define SESSION_CLOG_BYTES  (4u * 1024u * 1024u) /* of replies: then it is not read from */
#define SESSION_LARGE_BYTES 4096u         /* a request from this size on counts as message-memory */
#define SESSION_SHARE_BYTES (32u * 1024u) /* of requests, whatever others hold */

struct broker;
struct watch;

enum session_state {
    SESSION_NEW, /* nothing but hello is understood */
    SESSION_OPEN,
    SESSION_ENDING, /* what is queued is sent, then it closes */
    SESSION_CLOSED, /* waits to be freed at the end of the turn */
};

struct session {
    struct broker *broker;
    struct list link, dirty_link, busy_link, paused_link;
    enum session_state state;
    struct conn *conn;
    struct watch *watch;
    uid_t uid;
    pid_t pid;
    char client[SESSION_CLIENT_SIZE];
    struct charge charge;
    struct charge waiting_charge; /* descriptors of messages that were not read yet */
    struct gad_error *refusal;    /* the answer to its first request, if it may not stay */
    struct list jobs;             /* of owner_link */
    struct list waiters;          /* of session_link */
    struct list stats_waits;      /* of session_link */
    struct list regions;          /* of session_link */
    unsigned n_pending;
    uint64_t request_bytes; /* large ones, of its jobs that have not been computed */
    uint64_t reply_bytes;   /* that wait for it, as last counted */
    bool has_failed;        /* it cannot be answered: closes at the end of the turn */
    bool is_clogged;        /* it does not read: it is not read from */
    bool is_paused;         /* the broker holds too much, much of it for this one: neither */
    struct deadline patience;
};

/* refusal: NULL, or why its first request will be refused (copied). */
int session_new(struct broker *broker, int fd_take, uid_t uid, pid_t pid,
                const struct charge *charge_take, const struct gad_error *refusal) GAD_MUST_CHECK;

/* Begins the end: jobs are cancelled, regions go, nothing is sent any more. session_reap() frees.
 */
void session_close(struct session *session);
void session_end(struct session *session); /* closes once all was sent */

/* Replies go out at the end of the turn, and nothing is closed before: callers may go on with what
 * they hold. The writer is the broker's, already filled. */
void session_send(struct session *session);
/* The same with bytes behind what was packed. */
void session_send_with(struct session *session, const char *tail, size_t n_tail_bytes);
void session_reply_error(struct session *session, uint32_t id, const struct gad_error *error);
void session_reply_empty(struct session *session, uint32_t id);
bool session_is_alive(const struct session *session); /* not ending, not closed */

/* The loop's turn. */
void session_flush_dirty(struct broker *broker);
void session_work_busy(struct broker *broker);
void session_resume_paused(struct broker *broker);
void session_reap(struct broker *broker);
