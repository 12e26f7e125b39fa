/* One connected client. */
#pragma once

#include "daemon/broker/sessions/account.h"
#include "daemon/broker/deadlines.h"
#include "daemon/broker/list.h"
#include "proto/wire/conn.h"
#include "proto/wire/message.h"

#include <stdbool.h>
#include <sys/types.h>

#define SESSION_NAME_SIZE   64
#define SESSION_CLIENT_SIZE (2 * SESSION_NAME_SIZE + 3)
#define SESSION_CLOG_BYTES  (4u * 1024u * 1024u) /* of replies: then it is not read from */
#define SESSION_LARGE_BYTES 4096u         /* a request from this size on counts as message-memory */
#define SESSION_SHARE_BYTES (32u * 1024u) /* of requests or replies, whatever others hold */

struct broker;
struct fair_user;
struct loop_watch;

enum session_state {
    SESSION_NEW, /* nothing but hello is understood */
    SESSION_OPEN,
    SESSION_ENDING, /* what is queued is sent, then it closes */
    SESSION_CLOSED, /* waits to be freed at the end of the turn */
};

struct session {
    struct broker *broker;
    struct fair_user *user;
    struct list link, dirty_link, busy_link, paused_link, slow_link, planner_link;
    enum session_state state;
    struct conn *conn;
    struct loop_watch *watch;
    uid_t uid;
    pid_t pid;
    bool is_of_admins;                /* of the group that may see and cancel everybody's jobs */
    char client[SESSION_CLIENT_SIZE]; /* what it calls itself, quoted, for the log */
    struct charge charge;
    struct charge waiting_charge; /* descriptors of messages that were not read yet */
    struct charge message_charge; /* large ones that come, are postponed or held */
    struct charge reply_charge;   /* copied bytes of replies that wait for it */
    struct frame postponed;       /* a request that waits until its user reads; body NULL: none */
    uint64_t postponed_bytes;     /* of its answer */
    uint64_t asked_bytes;         /* of the answer for which room was looked for last */
    struct gad_error *refusal;    /* the answer to its first request, if it may not stay */
    struct list jobs;             /* of owner_link */
    struct list waiters;          /* of session_link */
    struct list stats_waits;      /* of session_link */
    struct list regions;          /* of session_link */
    struct list scans;            /* of session_link */
    unsigned n_pending;
    uint64_t request_bytes; /* large ones, of its jobs that have not been computed */
    bool has_failed;        /* it cannot be answered: closes at the end of the turn */
    bool is_slow;           /* it leaves much unread: dropped if that lasts */
    bool is_clogged;        /* so much that it is not read from */
    bool is_paused;         /* not read from: the broker holds too much of its user's requests */
    struct deadline patience;
    uint64_t slow_position; /* in the stream of replies, when the patience began */
    struct deadline half;   /* a request that has begun is to be complete by then */
    uint64_t half_position; /* where in the stream it begins */
    bool has_half_waited;   /* we did not read meanwhile: the delay is ours */
    bool is_half_last_look; /* what lies in its socket is read once more, then it is closed */
    /* A request that is planned, or waits for it (planner.c): nothing is read meanwhile. */
    struct frame *held; /* NULL: there is none */
    uint32_t held_id;
    unsigned held_as; /* an enum submission_kind */
    unsigned n_held_fds;
    uint64_t held_bytes;   /* as counted in request_bytes */
    unsigned n_held_again; /* times that it was planned in vain */
};

/* refusal: NULL, or why its first request will be refused (copied). */
int session_new(struct broker *broker, int fd_take, uid_t uid, pid_t pid,
                const struct charge *charge_take, const struct gad_error *refusal) GAD_MUST_CHECK;

/* A session of the user's reserve becomes one like others: 0, also where it is one; else what
 * account_charge() says. */
int session_leave_reserve(struct session *session, struct gad_error *error) GAD_MUST_CHECK;

/* Begins the end: jobs are cancelled, regions go, nothing is sent any more. session_reap() frees.
 */
void session_close(struct session *session);
void session_end(struct session *session); /* closes once all was sent */

/* Replies go out at the end of the turn, and nothing is closed before: callers may go on with what
 * they hold. The writer is the broker's, already filled. */
void session_send(struct session *session);
/* The same with bytes behind what was packed. */
void session_send_with(struct session *session, const char *tail, size_t n_tail_bytes);
/* The same with bytes that are sent from where they are. */
void session_send_shared(struct session *session, struct shared *shared, const char *bytes,
                         size_t n_bytes);
/* For a reply of so many bytes: 0, or -EBUSY: it is long and has to wait until what came before it
 * was read. A handler passes that on, and is called again. */
int session_check_room(struct session *session, uint64_t n_bytes) GAD_MUST_CHECK;
void session_reply_error(struct session *session, uint32_t id, const struct gad_error *error);
void session_reply_empty(struct session *session, uint32_t id);
/* Root's, the daemon's own user's, or one of the admins' group: it may see and end everybody's
 * jobs. */
bool session_is_admins(const struct session *session);
bool session_is_alive(const struct session *session); /* not ending, not closed */
/* What a request came to: positive: it is answered with the error; negative: the session is closed.
 */
void session_answer_failure(struct session *session, uint32_t id, int r,
                            const struct gad_error *error);

/* Takes the frame; false without memory. */
bool session_hold(struct session *session, uint32_t id, struct frame *frame,
                  unsigned kind) GAD_MUST_CHECK;
void session_release_held(struct session *session); /* the frame, if it is still there, with it */
void session_go_on(struct session *session);        /* after that, once the request is answered */

/* The loop's turn. */
void session_flush_dirty(struct broker *broker, uint64_t until_ns); /* at least some of one user */
void session_work_busy(struct broker *broker);
void session_resume_paused(struct broker *broker);
void session_reap(struct broker *broker);
