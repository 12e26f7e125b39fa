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
 * Sending. Frames wait in an outbox (outbox.c), which knows what one sendmsg() may take. One
 * conn_flush() sends FLUSH_BYTES at most, so that a peer that reads as fast as we write keeps
 * nobody else waiting.
 *
 * Once anything failed, the connection stays failed; but when sending failed, because the peer has
 * gone, what it sent before can still be received, and what failed for want of memory alone can be
 * tried again. Called by broker, worker and client.
 */
#include "proto/wire/conn.h"

#include "proto/wire/buffer.h"
#include "proto/wire/outbox.h"
#include "proto/packet.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define READ_MIN_BYTES  (16u * 1024u)
#define READ_MAX_BYTES  (64u * 1024u)
#define MAX_WAITING_FDS (2 * FRAME_MAX_FDS)
#define FLUSH_BYTES     (1024u * 1024u)
#define FLUSH_PARTS     16u

struct waiting_fd {
    int fd;
    uint64_t end; /* position in the stream */
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

    struct outbox out;
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
    outbox_init(&conn->out);
    *ret_conn = conn;
    return 0;
}

static void close_fds(struct conn *conn, const int *fds, unsigned n_fds)
{
    for (unsigned i = 0; i < n_fds; i++)
        conn->close_fd(fds[i]);
}

void conn_forget(struct conn *conn)
{
    outbox_forget(&conn->out);
    for (unsigned i = 0; i < conn->n_waiting; i++)
        close_fd(&conn->waiting[i].fd);
    close_fd(&conn->fd);
}

struct conn *conn_free(struct conn *conn)
{
    if (conn == NULL)
        return NULL;
    outbox_deinit(&conn->out, conn->close_fd);
    for (unsigned i = 0; i < conn->n_waiting; i++)
        conn->close_fd(conn->waiting[i].fd);
    frame_deinit(&conn->partial, conn->close_fd);
    buffer_deinit(&conn->in);
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

bool conn_is_inside_frame(const struct conn *conn, uint64_t *ret_position)
{
    *ret_position = conn->in_position;
    return !conn_has_frame(conn) && conn->in_received > conn->in_position;
}

size_t conn_n_partial_bytes(const struct conn *conn)
{
    return conn->partial.body != NULL ? conn->partial.size_bytes : 0;
}

size_t conn_n_wanted_bytes(const struct conn *conn)
{
    unsigned n_fds;
    size_t body_bytes;
    int error;
    if (conn->failed != 0 || conn->partial.body != NULL)
        return 0;
    return look_at_front(conn, &n_fds, &body_bytes, &error) == FRONT_BEGUN ? body_bytes : 0;
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
        if (r)
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
            if (r)
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
    if (r)
        return r == -EAGAIN || r == -ENOMEM ? r : fail(conn, r);

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
    if (n < 0 && errno == ENOMEM)
        return -ENOMEM;
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : fail(conn, -errno);
    unsigned n_waiting_before = conn->n_waiting;
    r = take_fds(conn, &message);
    if (r)
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
    if (r) {
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
        return -ENOMEM;
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

/* Bytes behind the body: copied, or sent from where they are. */
struct tail {
    const void *bytes;
    size_t n_bytes;
    struct shared *shared; /* NULL: copied */
    size_t n_left_bytes;   /* of room, that this frame is not to take */
};

static int check_frame(const struct conn *conn, size_t size_bytes, const struct tail *tail,
                       unsigned n_fds)
{
    int failed = conn->failed != 0 ? conn->failed : conn->out_failed;
    if (failed != 0)
        return failed;
    if (size_bytes == 0)
        return -EINVAL;
    if (size_bytes > FRAME_MAX_BODY_BYTES || tail->n_bytes > FRAME_MAX_BODY_BYTES - size_bytes ||
        n_fds > FRAME_MAX_FDS)
        return -EMSGSIZE;
    return 0;
}

static int queue_frame(struct conn *conn, const void *body, size_t size_bytes,
                       const struct tail *tail, const int *fds, unsigned n_fds)
{
    uint8_t header[FRAME_HEADER_BYTES];
    size_t n_copied = size_bytes + (tail->shared ? 0 : tail->n_bytes);
    _cleanup_free_ struct outbox_piece *piece = NULL;
    int r = check_frame(conn, size_bytes, tail, n_fds);
    if (r == 0 && tail->shared && !(piece = outbox_make_piece()))
        r = -ENOMEM;
    if (r == 0)
        r = outbox_reserve(&conn->out, sizeof(header) + n_copied + tail->n_left_bytes);
    if (r == 0 && n_fds > 0)
        r = outbox_add_fds(&conn->out, fds, n_fds);
    if (r)
        return r;
    frame_header_encode(n_fds, size_bytes + tail->n_bytes, header);
    outbox_add(&conn->out, header, sizeof(header));
    outbox_add(&conn->out, body, size_bytes);
    if (!tail->shared)
        outbox_add(&conn->out, tail->bytes, tail->n_bytes);
    else
        outbox_add_shared(&conn->out, steal_ptr(piece), tail->shared, tail->bytes, tail->n_bytes);
    return 0;
}

int conn_send_with(struct conn *conn, const void *body, size_t size_bytes, const void *tail_bytes,
                   size_t n_tail_bytes, const int *fds_take, unsigned n_fds)
{
    const struct tail tail = {
        .bytes = tail_bytes, .n_bytes = n_tail_bytes, .n_left_bytes = conn->out.own.kept_bytes};
    int r = queue_frame(conn, body, size_bytes, &tail, fds_take, n_fds);
    if (r)
        close_fds(conn, fds_take, n_fds);
    return r;
}

int conn_send(struct conn *conn, const void *body, size_t size_bytes, const int *fds_take,
              unsigned n_fds)
{
    return conn_send_with(conn, body, size_bytes, NULL, 0, fds_take, n_fds);
}

int conn_keep_room(struct conn *conn, size_t n_bytes)
{
    int r = outbox_reserve(&conn->out, n_bytes);
    if (r == 0)
        conn->out.own.kept_bytes = n_bytes;
    return r;
}

int conn_send_urgent(struct conn *conn, const void *body, size_t size_bytes)
{
    const struct tail tail = {0};
    return queue_frame(conn, body, size_bytes, &tail, NULL, 0);
}

int conn_send_shared(struct conn *conn, const void *body, size_t size_bytes, struct shared *shared,
                     const void *bytes, size_t n_bytes)
{
    const struct tail tail = {.bytes = bytes, .n_bytes = n_bytes, .shared = shared};
    return queue_frame(conn, body, size_bytes, &tail, NULL, 0);
}

static ssize_t send_once(struct conn *conn)
{
    struct iovec parts[FLUSH_PARTS];
    const int *fds;
    unsigned n_fds;
    size_t n_parts = outbox_gather(&conn->out, parts, FLUSH_PARTS, &fds, &n_fds);
    return packet_send_parts(conn->fd, parts, n_parts, fds, n_fds, MSG_DONTWAIT);
}

int conn_flush(struct conn *conn)
{
    if (conn->failed != 0 || conn->out_failed != 0)
        return conn->failed != 0 ? conn->failed : conn->out_failed;
    size_t n_sent = 0;
    while (outbox_n_bytes(&conn->out) > 0) {
        if (n_sent >= FLUSH_BYTES)
            return -EAGAIN;
        ssize_t n = send_once(conn);
        /* ETOOMANYREFS: too many of the user's descriptors are under way, until the peer reads. */
        if (n == -EAGAIN || n == -ETOOMANYREFS)
            return -EAGAIN;
        if (n < 0)
            return conn->out_failed = (int)n;
        outbox_sent(&conn->out, (size_t)n, conn->close_fd);
        n_sent += (size_t)n;
    }
    return 0;
}

size_t conn_n_queued_bytes(const struct conn *conn)
{
    return outbox_n_bytes(&conn->out);
}

uint64_t conn_n_sent_bytes(const struct conn *conn)
{
    return conn->out.begin;
}

size_t conn_n_copied_bytes(const struct conn *conn)
{
    return outbox_n_own_bytes(&conn->out);
}

void conn_trim(struct conn *conn)
{
    buffer_trim(&conn->in);
    buffer_trim(&conn->out.own);
    conn->read_bytes = READ_MIN_BYTES;
}
