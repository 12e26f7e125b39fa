/* Connections: bytes and descriptors in, frames out, and the other way.
 *
 * Receiving. One recvmsg() reads into the rest of a frame's body, if one is under way, and behind
 * it into the buffer:
 *
 *     buffer:   [ frame ][ frame ][ fra           a frame that is not complete is moved out into
 *                                  |              its own body, allocated at its declared size;
 *                                  v              the next recvmsg() continues there
 *     partial:                    [ frame's body .............. ]
 *
 * So a small frame costs one copy, a large one none beyond its beginning, and no memory grows
 * beyond what a frame declared.
 *
 * Received descriptors wait in a queue, each with the position in the stream where its recvmsg()
 * ended. A frame that announces n of them takes the next n when its body is complete; none there:
 * -EPROTO. Descriptors come with the first byte of their frame, so one that still waits when the
 * next frame begins at or behind its position belongs to no message: -EPROTO.
 *
 * Sending. Frames are appended to one buffer; a frame with descriptors leaves a batch with the
 * position of its first byte. A sendmsg() never crosses the beginning of a batch, and carries the
 * batch's descriptors when it starts there. The kernel attaches them to the first byte it takes,
 * so whatever was written, they are gone: never twice.
 *
 * Once anything failed, the connection stays failed; but when sending failed, because the peer has
 * gone, what it sent before can still be received. Called by broker, worker and client.
 */
#include "proto/conn.h"

#include "proto/buffer.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define READ_MIN_BYTES  (16u * 1024u)
#define READ_MAX_BYTES  (64u * 1024u)
#define MAX_WAITING_FDS (2 * FRAME_MAX_FDS)

struct waiting_fd {
    int fd;
    uint64_t end; /* position in the stream */
};

struct fd_batch {
    struct fd_batch *next;
    uint64_t position; /* of the frame's first byte in the stream */
    unsigned n_fds;
    int fds[];
};

struct conn {
    int fd;
    int failed;     /* 0 or negative errno: of both ways */
    int out_failed; /* of sending alone: what the peer said before it went can still be read */
    void (*close_fd)(int fd);

    struct buffer in;
    size_t read_bytes;       /* how much one recvmsg() asks for */
    struct frame partial;    /* body NULL: none */
    unsigned partial_n_fds;  /* announced */
    size_t partial_received; /* of partial.size_bytes */
    uint64_t in_position;    /* in the stream: where the next frame to be taken begins */
    uint64_t in_received;    /* in the stream: received so far */
    bool was_filled;         /* by the last recvmsg(): all the room that it had */
    struct waiting_fd waiting[MAX_WAITING_FDS];
    unsigned n_waiting;

    struct buffer out;
    uint64_t out_position; /* in the stream, of out.start */
    struct fd_batch *batches, **batches_end;
};

static void close_plainly(int fd)
{
    close(fd);
}

int conn_new(int fd_take, void (*close_fd_)(int fd), struct conn **ret_conn)
{
    _cleanup_fd_ int fd = fd_take;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    struct conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL)
        return -ENOMEM;
    conn->fd = steal_fd(&fd);
    conn->close_fd = close_fd_ != NULL ? close_fd_ : close_plainly;
    conn->read_bytes = READ_MIN_BYTES;
    conn->batches_end = &conn->batches;
    *ret_conn = conn;
    return 0;
}

static void close_fds(struct conn *conn, const int *fds, unsigned n_fds)
{
    for (unsigned i = 0; i < n_fds; i++)
        conn->close_fd(fds[i]);
}

static void drop_first_batch(struct conn *conn)
{
    struct fd_batch *batch = conn->batches;
    conn->batches = batch->next;
    if (conn->batches == NULL)
        conn->batches_end = &conn->batches;
    close_fds(conn, batch->fds, batch->n_fds);
    free(batch);
}

void conn_forget(struct conn *conn)
{
    for (struct fd_batch *batch = conn->batches; batch != NULL; batch = batch->next)
        for (unsigned i = 0; i < batch->n_fds; i++)
            close_fd(&batch->fds[i]);
    for (unsigned i = 0; i < conn->n_waiting; i++)
        close_fd(&conn->waiting[i].fd);
    close_fd(&conn->fd);
}

struct conn *conn_free(struct conn *conn)
{
    if (conn == NULL)
        return NULL;
    while (conn->batches != NULL)
        drop_first_batch(conn);
    for (unsigned i = 0; i < conn->n_waiting; i++)
        conn->close_fd(conn->waiting[i].fd);
    frame_deinit(&conn->partial, conn->close_fd);
    buffer_deinit(&conn->in);
    buffer_deinit(&conn->out);
    conn->close_fd(conn->fd); /* descriptors that were never received are closed with it */
    free(conn);
    return NULL;
}

int conn_fd(const struct conn *conn)
{
    return conn->fd;
}

static int fail(struct conn *conn, int r)
{
    conn->failed = r;
    return r;
}

/* Receiving ---------------------------------------------------------------------------------- */

/* What the buffer begins with. */
enum front { FRONT_NOTHING, FRONT_BEGUN, FRONT_COMPLETE, FRONT_BAD };

static enum front look_at_front(const struct conn *conn, unsigned *ret_n_fds,
                                size_t *ret_body_bytes, int *ret_error)
{
    size_t n_held = buffer_n_bytes(&conn->in);
    if (n_held < FRAME_HEADER_BYTES)
        return FRONT_NOTHING;
    const uint8_t *header = conn->in.bytes + conn->in.start;
    *ret_error = frame_header_decode(header, ret_n_fds, ret_body_bytes);
    if (*ret_error != 0)
        return FRONT_BAD;
    return n_held - FRAME_HEADER_BYTES < *ret_body_bytes ? FRONT_BEGUN : FRONT_COMPLETE;
}

/* At the beginning of a frame: a descriptor that came with earlier bytes belongs to none. */
static bool has_stray_fd(const struct conn *conn)
{
    return conn->partial.body == NULL && conn->n_waiting > 0 &&
           conn->waiting[0].end <= conn->in_position;
}

static bool is_partial_complete(const struct conn *conn)
{
    return conn->partial.body != NULL && conn->partial_received == conn->partial.size_bytes;
}

bool conn_has_frame(const struct conn *conn)
{
    if (conn->failed != 0 || is_partial_complete(conn) || has_stray_fd(conn))
        return true;
    if (conn->partial.body != NULL)
        return false;
    unsigned n_fds;
    size_t body_bytes;
    int error;
    enum front front = look_at_front(conn, &n_fds, &body_bytes, &error);
    return front == FRONT_COMPLETE || front == FRONT_BAD;
}

/* Moves the beginning of an incomplete frame out of the buffer, into its own body. */
static int begin_partial(struct conn *conn, unsigned n_fds, size_t body_bytes)
{
    char *body = malloc(body_bytes > 0 ? body_bytes : 1);
    if (body == NULL)
        return -ENOMEM;
    size_t n_here = buffer_n_bytes(&conn->in) - FRAME_HEADER_BYTES;
    memcpy(body, conn->in.bytes + conn->in.start + FRAME_HEADER_BYTES, n_here);
    buffer_consumed(&conn->in, FRAME_HEADER_BYTES + n_here);
    conn->partial.body = body;
    conn->partial.size_bytes = body_bytes;
    conn->partial_n_fds = n_fds;
    conn->partial_received = n_here;
    return 0;
}

/* 0: there is room for a recvmsg(); -EAGAIN: frames have to be taken first. */
static int prepare_receive(struct conn *conn)
{
    if (conn->partial.body == NULL) {
        unsigned n_fds;
        size_t body_bytes;
        int error;
        enum front front = look_at_front(conn, &n_fds, &body_bytes, &error);
        int r = front == FRONT_BAD     ? error
                : front == FRONT_BEGUN ? begin_partial(conn, n_fds, body_bytes)
                                       : 0;
        if (r != 0)
            return r;
    }
    bool is_in_frame = conn->partial.body != NULL && !is_partial_complete(conn);
    if (is_in_frame && conn->n_waiting > conn->partial_n_fds)
        return -EPROTO; /* all bytes so far are this frame's: nobody will take the rest */
    if (conn->n_waiting > MAX_WAITING_FDS - FRAME_MAX_FDS)
        return conn_has_frame(conn) ? -EAGAIN : -EPROTO;
    if (conn_has_frame(conn) && buffer_n_bytes(&conn->in) >= conn->read_bytes)
        return -EAGAIN;
    return buffer_reserve(&conn->in, conn->read_bytes);
}

/* A control buffer with room for the most that a frame may carry: more is MSG_CTRUNC. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(FRAME_MAX_FDS * sizeof(int))];
};

/* Every descriptor that came is put into the queue (there is room for FRAME_MAX_FDS) or, where
 * that cannot be, closed. */
static int take_fds(struct conn *conn, struct msghdr *message)
{
    int r = message->msg_flags & MSG_CTRUNC ? -EPROTO : 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n_fds; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (r == 0 && conn->n_waiting == MAX_WAITING_FDS)
                r = -EPROTO;
            if (r != 0)
                conn->close_fd(fd);
            else
                conn->waiting[conn->n_waiting++] = (struct waiting_fd){.fd = fd};
        }
    }
    return r;
}

static void take_bytes(struct conn *conn, size_t n_bytes, unsigned n_waiting_before)
{
    size_t n_partial = 0;
    if (conn->partial.body != NULL)
        n_partial = min_u64(n_bytes, conn->partial.size_bytes - conn->partial_received);
    conn->partial_received += n_partial;
    buffer_produced(&conn->in, n_bytes - n_partial);
    conn->in_received += n_bytes;
    for (unsigned i = n_waiting_before; i < conn->n_waiting; i++)
        conn->waiting[i].end = conn->in_received;
}

/* What is left when the peer has gone: whole frames only, or the beginning of one? */
static int end_of_file(const struct conn *conn)
{
    if (conn->partial.body != NULL && !is_partial_complete(conn))
        return -ECONNRESET;
    size_t at = conn->in.start;
    while (at < conn->in.end) {
        unsigned n_fds;
        size_t body_bytes;
        size_t n_left = conn->in.end - at;
        if (n_left < FRAME_HEADER_BYTES ||
            frame_header_decode(conn->in.bytes + at, &n_fds, &body_bytes) != 0 ||
            n_left - FRAME_HEADER_BYTES < body_bytes)
            return -ECONNRESET;
        at += FRAME_HEADER_BYTES + body_bytes;
    }
    return -EPIPE;
}

static ssize_t receive_once(struct conn *conn, struct msghdr *message)
{
    ssize_t n;
    do {
        n = recvmsg(conn->fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    return n;
}

int conn_receive(struct conn *conn)
{
    if (conn->failed != 0)
        return conn->failed;
    int r = prepare_receive(conn);
    if (r != 0)
        return r == -EAGAIN ? r : fail(conn, r);

    struct iovec parts[2];
    unsigned n_parts = 0;
    if (conn->partial.body != NULL && !is_partial_complete(conn))
        parts[n_parts++] = (struct iovec){conn->partial.body + conn->partial_received,
                                          conn->partial.size_bytes - conn->partial_received};
    parts[n_parts++] = (struct iovec){conn->in.bytes + conn->in.end, conn->read_bytes};
    size_t n_room = parts[0].iov_len + (n_parts > 1 ? parts[1].iov_len : 0);
    union control control;
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = n_parts,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t n = receive_once(conn, &message);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : fail(conn, -errno);
    unsigned n_waiting_before = conn->n_waiting;
    r = take_fds(conn, &message);
    if (r != 0)
        return fail(conn, r);
    if (n == 0)
        return end_of_file(conn);
    take_bytes(conn, (size_t)n, n_waiting_before);
    conn->was_filled = (size_t)n == n_room;
    if ((size_t)n >= conn->read_bytes && conn->read_bytes < READ_MAX_BYTES)
        conn->read_bytes *= 2;
    else if ((size_t)n < conn->read_bytes / 8 && conn->read_bytes > READ_MIN_BYTES)
        conn->read_bytes /= 2;
    return 0;
}

unsigned conn_n_waiting_fds(const struct conn *conn)
{
    return conn->n_waiting;
}

bool conn_may_have_more(const struct conn *conn)
{
    return conn->was_filled;
}

/* The next n waiting descriptors become the frame's. */
static int claim_fds(struct conn *conn, unsigned n_fds, struct frame *frame)
{
    if (n_fds > conn->n_waiting)
        return -EPROTO;
    for (unsigned i = 0; i < n_fds; i++)
        frame->fds[i] = conn->waiting[i].fd;
    frame->n_fds = n_fds;
    conn->n_waiting -= n_fds;
    memmove(conn->waiting, conn->waiting + n_fds, conn->n_waiting * sizeof(conn->waiting[0]));
    return 0;
}

/* Checks a complete body and hands the frame out; `body` is owned here until then. */
static int hand_out(struct conn *conn, char *body, size_t body_bytes, unsigned n_fds,
                    struct frame *ret_frame)
{
    int r = frame_body_check(body, body_bytes);
    if (r == 0)
        r = claim_fds(conn, n_fds, ret_frame);
    if (r != 0) {
        free(body);
        return fail(conn, r);
    }
    ret_frame->body = body;
    ret_frame->size_bytes = body_bytes;
    conn->in_position += FRAME_HEADER_BYTES + body_bytes;
    return 0;
}

static int next_from_buffer(struct conn *conn, struct frame *ret_frame)
{
    unsigned n_fds;
    size_t body_bytes;
    int error;
    enum front front = look_at_front(conn, &n_fds, &body_bytes, &error);
    if (front == FRONT_BAD)
        return fail(conn, error);
    if (front != FRONT_COMPLETE)
        return -EAGAIN;
    char *body = malloc(body_bytes > 0 ? body_bytes : 1);
    if (body == NULL)
        return fail(conn, -ENOMEM);
    memcpy(body, conn->in.bytes + conn->in.start + FRAME_HEADER_BYTES, body_bytes);
    buffer_consumed(&conn->in, FRAME_HEADER_BYTES + body_bytes);
    return hand_out(conn, body, body_bytes, n_fds, ret_frame);
}

int conn_next(struct conn *conn, struct frame *ret_frame)
{
    if (conn->failed != 0)
        return conn->failed;
    if (is_partial_complete(conn))
        return hand_out(conn, steal_ptr(conn->partial.body), conn->partial.size_bytes,
                        conn->partial_n_fds, ret_frame);
    if (conn->partial.body != NULL)
        return -EAGAIN;
    if (has_stray_fd(conn))
        return fail(conn, -EPROTO);
    return next_from_buffer(conn, ret_frame);
}

/* Sending ------------------------------------------------------------------------------------ */

static int queue_fds(struct conn *conn, const int *fds, unsigned n_fds)
{
    struct fd_batch *batch = malloc(sizeof(*batch) + n_fds * sizeof(int));
    if (batch == NULL)
        return -ENOMEM;
    batch->next = NULL;
    batch->position = conn->out_position + buffer_n_bytes(&conn->out);
    batch->n_fds = n_fds;
    memcpy(batch->fds, fds, n_fds * sizeof(int));
    *conn->batches_end = batch;
    conn->batches_end = &batch->next;
    return 0;
}

static int queue_frame(struct conn *conn, const void *body, size_t size_bytes, const void *tail,
                       size_t n_tail_bytes, const int *fds, unsigned n_fds)
{
    int failed = conn->failed != 0 ? conn->failed : conn->out_failed;
    if (failed != 0)
        return failed;
    if (size_bytes == 0)
        return -EINVAL;
    if (size_bytes > FRAME_MAX_BODY_BYTES || n_tail_bytes > FRAME_MAX_BODY_BYTES - size_bytes ||
        n_fds > FRAME_MAX_FDS)
        return -EMSGSIZE;
    size_t n_bytes = size_bytes + n_tail_bytes;
    int r = buffer_reserve(&conn->out, FRAME_HEADER_BYTES + n_bytes);
    if (r == 0 && n_fds > 0)
        r = queue_fds(conn, fds, n_fds);
    if (r != 0)
        return r;
    uint8_t *to = conn->out.bytes + conn->out.end;
    frame_header_encode(n_fds, n_bytes, to);
    memcpy(to + FRAME_HEADER_BYTES, body, size_bytes);
    if (n_tail_bytes > 0)
        memcpy(to + FRAME_HEADER_BYTES + size_bytes, tail, n_tail_bytes);
    buffer_produced(&conn->out, FRAME_HEADER_BYTES + n_bytes);
    return 0;
}

int conn_send_with(struct conn *conn, const void *body, size_t size_bytes, const void *tail,
                   size_t n_tail_bytes, const int *fds_take, unsigned n_fds)
{
    int r = queue_frame(conn, body, size_bytes, tail, n_tail_bytes, fds_take, n_fds);
    if (r != 0)
        close_fds(conn, fds_take, n_fds);
    return r;
}

int conn_send(struct conn *conn, const void *body, size_t size_bytes, const int *fds_take,
              unsigned n_fds)
{
    return conn_send_with(conn, body, size_bytes, NULL, 0, fds_take, n_fds);
}

/* The bytes up to the next batch of descriptors, with the one that begins here. */
static ssize_t send_once(struct conn *conn)
{
    struct fd_batch *batch = conn->batches;
    struct iovec part = {conn->out.bytes + conn->out.start, buffer_n_bytes(&conn->out)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    if (batch != NULL && batch->position == conn->out_position) {
        size_t n_bytes = batch->n_fds * sizeof(int);
        memset(&control, 0, sizeof(control));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(n_bytes);
        memcpy(CMSG_DATA(&control.header), batch->fds, n_bytes);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n_bytes);
        batch = batch->next;
    }
    if (batch != NULL)
        part.iov_len = batch->position - conn->out_position;
    ssize_t n;
    do {
        n = sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n;
}

int conn_flush(struct conn *conn)
{
    if (conn->failed != 0 || conn->out_failed != 0)
        return conn->failed != 0 ? conn->failed : conn->out_failed;
    while (buffer_n_bytes(&conn->out) > 0) {
        ssize_t n = send_once(conn);
        /* ETOOMANYREFS: too many of the user's descriptors are under way, until the peer reads. */
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ETOOMANYREFS))
            return -EAGAIN;
        if (n < 0)
            return conn->out_failed = -errno;
        if (n > 0 && conn->batches != NULL && conn->batches->position == conn->out_position)
            drop_first_batch(conn);
        conn->out_position += (uint64_t)n;
        buffer_consumed(&conn->out, (size_t)n);
    }
    return 0;
}

size_t conn_n_queued_bytes(const struct conn *conn)
{
    return buffer_n_bytes(&conn->out);
}

void conn_trim(struct conn *conn)
{
    buffer_trim(&conn->in);
    buffer_trim(&conn->out);
    conn->read_bytes = READ_MIN_BYTES;
}
