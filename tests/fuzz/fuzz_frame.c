/* Any bytes, with some descriptors, through a connection.
 *
 * The input's first byte says how many descriptors come with which part of the rest; the rest is
 * written to a socket in parts, and read by conn as a daemon does. Checked: every body that is
 * handed out is one that msgpack-c decodes, every descriptor that arrived is either in a frame or
 * closed through the callback, once.
 */
#include "proto/wire/conn.h"
#include "proto/packet.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <msgpack.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned n_closed;

static void count_close(int fd)
{
    int r = close(fd);
    assert(r == 0);
    n_closed++;
}

static unsigned count_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 128; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static bool send_part(int socket_fd, const uint8_t *bytes, size_t n_bytes, unsigned n_fds)
{
    int fds[3];
    for (unsigned i = 0; i < n_fds; i++)
        fds[i] = eventfd(0, EFD_CLOEXEC);
    ssize_t n = packet_send(socket_fd, bytes, n_bytes, fds, n_fds, MSG_DONTWAIT);
    for (unsigned i = 0; i < n_fds; i++)
        close(fds[i]);
    return n == (ssize_t)n_bytes;
}

static void check_body(const struct frame *frame)
{
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t n_used = 0;
    msgpack_unpack_return r =
        msgpack_unpack_next(&unpacked, frame->body, frame->size_bytes, &n_used);
    assert(r == MSGPACK_UNPACK_SUCCESS);
    assert(n_used == frame->size_bytes);
    msgpack_unpacked_destroy(&unpacked);
}

/* False when the connection is to be closed. */
static bool drain(struct conn *conn)
{
    for (;;) {
        int r = conn_receive(conn);
        if (r != 0 && r != -EAGAIN)
            return false;
        struct frame frame;
        int next;
        while ((next = conn_next(conn, &frame)) == 0) {
            check_body(&frame);
            frame_deinit(&frame, count_close);
        }
        if (next != -EAGAIN)
            return false;
        assert(!conn_has_frame(conn));
        if (r == -EAGAIN)
            return true;
    }
}

static void feed(const uint8_t *data, size_t n_bytes, uint8_t plan)
{
    int sockets[2];
    struct conn *conn;
    int r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
    assert(r == 0);
    r = conn_new(sockets[0], count_close, &conn);
    assert(r == 0);
    size_t part_bytes = 1 + n_bytes / (1 + (plan & 3));
    for (size_t at = 0; at < n_bytes; at += part_bytes) {
        size_t n = n_bytes - at < part_bytes ? n_bytes - at : part_bytes;
        unsigned n_fds = at == 0 ? plan >> 2 & 3 : plan >> 4 & 3;
        if (!send_part(sockets[1], data + at, n, n_fds) || !drain(conn))
            break;
    }
    close(sockets[1]);
    conn_free(conn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes > 128 * 1024)
        return 0;
    unsigned n_before = count_fds();
    feed(data + 1, n_bytes - 1, data[0]);
    assert(count_fds() == n_before);

    if (frame_body_check(data, n_bytes) == 0)
        check_body(&(struct frame){.body = (char *)data, .size_bytes = n_bytes});
    return 0;
}
