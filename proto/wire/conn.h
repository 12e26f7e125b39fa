/* Bytes and descriptors in, frames out. Knows no loop and never blocks: the caller says when the
 * socket is readable or writable. Used by broker, worker and client alike. */
#pragma once

#include "proto/wire/frame.h"

#include <stdbool.h>

struct conn;
struct shared;

/* Takes a connected Unix stream socket and makes it non-blocking (MSG_DONTWAIT is used as well, so
 * that a shared file description cannot undo it). close_fd (NULL: close) is called for every
 * descriptor that was received and not taken, and for the socket: closing may block. */
int conn_new(int fd_take, void (*close_fd)(int fd), struct conn **ret_conn) GAD_MUST_CHECK;
struct conn *conn_free(struct conn *conn); /* NULL */

/* In a child of fork(): closes its copies of the socket and of all descriptors that wait in here,
 * and does nothing else: the memory stays. */
void conn_forget(struct conn *conn);

int conn_fd(const struct conn *conn);

/* One recvmsg() into the buffer. 0: something came; -EAGAIN (also when received frames have to be
 * taken with conn_next() first: see conn_has_frame()); -EPIPE: end of file (between frames);
 * -ECONNRESET: end inside a frame; -EPROTO: malformed, MSG_CTRUNC, descriptors without a message;
 * -EMSGSIZE: over a limit; other errno of the system. After anything but 0, -EAGAIN and
 * -ENOMEM, which changes nothing and can be tried again, the connection is to be closed. */
int conn_receive(struct conn *conn) GAD_MUST_CHECK;

/* Whether the last conn_receive() filled all the room that it had, so that more may be there. */
bool conn_may_have_more(const struct conn *conn);

/* The next complete frame that was received. 0; -EAGAIN: none yet; -ENOMEM: it is still there;
 * -EPROTO, -EMSGSIZE. The body has passed frame_body_check(). The frame is the caller's. */
int conn_next(struct conn *conn, struct frame *ret_frame) GAD_MUST_CHECK;

/* Queues a frame: copies the body, takes the descriptors (also on failure). -EMSGSIZE, -ENOMEM;
 * -EINVAL: an empty body (what a message_writer without memory leaves). */
int conn_send(struct conn *conn, const void *body, size_t size_bytes, const int *fds_take,
              unsigned n_fds) GAD_MUST_CHECK;

/* The same for a body that is in two pieces, `tail` behind `body`: large bytes go to the queue from
 * where they are. */
int conn_send_with(struct conn *conn, const void *body, size_t size_bytes, const void *tail,
                   size_t n_tail_bytes, const int *fds_take, unsigned n_fds) GAD_MUST_CHECK;

/* So much memory is held for what is to be sent, whatever else is: 0 or -ENOMEM. Of it takes
 * conn_send_urgent() alone, which is conn_send() without descriptors. */
int conn_keep_room(struct conn *conn, size_t n_bytes) GAD_MUST_CHECK;
int conn_send_urgent(struct conn *conn, const void *body, size_t size_bytes) GAD_MUST_CHECK;

/* The same without a copy of the bytes behind the body: the queue holds a reference until they are
 * sent, or the connection is freed. */
int conn_send_shared(struct conn *conn, const void *body, size_t size_bytes, struct shared *shared,
                     const void *bytes, size_t n_bytes) GAD_MUST_CHECK;

/* Writes as much as goes (several frames in one sendmsg where no descriptors are between them), up
 * to about 1 MiB. 0: all written; -EAGAIN: more is queued, to be sent when the socket is writable;
 * -EPIPE and others: close. */
int conn_flush(struct conn *conn) GAD_MUST_CHECK;

size_t conn_n_queued_bytes(const struct conn *conn);
size_t conn_n_copied_bytes(const struct conn *conn); /* of them: without shared ones */
uint64_t conn_n_sent_bytes(const struct conn *conn); /* since it was made */
bool conn_has_frame(const struct conn *conn);        /* conn_next() would not say -EAGAIN */
/* Whether a frame has begun to come that is not complete, and where in the stream it begins. */
bool conn_is_inside_frame(const struct conn *conn, uint64_t *ret_position);
/* Memory of the frame that has begun to come, and what the next conn_receive() will take of it for
 * one that has come into the buffer; 0: none. */
size_t conn_n_partial_bytes(const struct conn *conn);
size_t conn_n_wanted_bytes(const struct conn *conn);
unsigned conn_n_waiting_fds(const struct conn *conn); /* received, of frames not taken yet */

/* Gives back the memory of empty buffers; for a connection that has been quiet for a while. */
void conn_trim(struct conn *conn);
