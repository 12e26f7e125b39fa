/* Connections over a real socket pair: frames, descriptors, partial writes, every way to end. */
#include "proto/wire/conn.h"
#include "proto/packet.h"
#include "proto/util.h"
#include "tests/unit/proto/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

static unsigned n_given_back;

static void give_back(int fd)
{
    cr_assert(eq(int, close(fd), 0));
    n_given_back++;
}

/* A connection and the plain socket at its other end. */
struct pair {
    struct conn *conn;
    int peer;
};

static struct pair pair_new(void)
{
    int sockets[2];
    struct pair pair;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0));
    cr_assert(eq(int, conn_new(sockets[0], give_back, &pair.conn), 0));
    pair.peer = sockets[1];
    return pair;
}

static void pair_free(struct pair *pair)
{
    conn_free(pair->conn);
    n_given_back--; /* the socket itself */
    close_fd(&pair->peer);
}

static void put(int socket_fd, const void *bytes, size_t n_bytes, const int *fds, unsigned n_fds)
{
    cr_assert(eq(i64, packet_send(socket_fd, bytes, n_bytes, fds, n_fds, 0), (ssize_t)n_bytes));
}

/* A frame whose body is a binary of n zero bytes behind a one-byte tag. */
static size_t make_frame(uint8_t *to, uint8_t tag, uint16_t n, unsigned n_fds)
{
    uint8_t head[] = {0x92, tag, 0xc5, (uint8_t)(n >> 8), (uint8_t)n};
    frame_header_encode(n_fds, sizeof(head) + n, to);
    memcpy(to + 8, head, sizeof(head));
    memset(to + 8 + sizeof(head), 0, n);
    return 8 + sizeof(head) + n;
}

static uint8_t tag_of(const struct frame *frame)
{
    return (uint8_t)frame->body[1];
}

/* Reads what is there and expects one frame with this tag. */
static void expect_frame(struct conn *conn, uint8_t tag, unsigned n_fds)
{
    struct frame frame;
    int r = conn_next(conn, &frame);
    while (r == -EAGAIN && conn_receive(conn) == 0)
        r = conn_next(conn, &frame);
    cr_assert(eq(int, r, 0));
    cr_assert(eq(u8, tag_of(&frame), tag));
    cr_assert(eq(uint, frame.n_fds, n_fds));
    frame_deinit(&frame, give_back);
}

static void expect_end(struct pair *pair, int want)
{
    struct frame frame;
    int r;
    while ((r = conn_receive(pair->conn)) == 0 || r == -EAGAIN) {
        int next;
        while ((next = conn_next(pair->conn, &frame)) == 0)
            frame_deinit(&frame, give_back);
        if (next != -EAGAIN) {
            r = next;
            break;
        }
        if (r == -EAGAIN)
            break;
    }
    cr_assert(eq(int, r, want));
}

static void make_fds(int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fds[i] = eventfd(i, EFD_CLOEXEC);
}

static void close_all(int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
}

Test(conn, a_frame_goes_across_both_ways)
{
    int sockets[2];
    struct conn *a, *b;
    struct frame frame;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0));
    cr_assert(eq(int, conn_new(sockets[0], NULL, &a), 0));
    cr_assert(eq(int, conn_new(sockets[1], NULL, &b), 0));
    cr_assert(eq(int, conn_send(a, "\xa4ping", 5, NULL, 0), 0));
    cr_assert(eq(sz, conn_n_queued_bytes(a), 13));
    cr_assert(eq(int, conn_flush(a), 0));
    cr_assert(eq(sz, conn_n_queued_bytes(a), 0));
    cr_assert(not(conn_has_frame(b)));
    cr_assert(eq(int, conn_receive(b), 0));
    cr_assert(conn_has_frame(b));
    cr_assert(eq(int, conn_next(b, &frame), 0));
    cr_assert(eq(sz, frame.size_bytes, 5));
    cr_assert(eq(int, memcmp(frame.body, "\xa4ping", 5), 0));
    frame_deinit(&frame, NULL);
    cr_assert(eq(int, conn_next(b, &frame), -EAGAIN));
    cr_assert(eq(int, conn_receive(b), -EAGAIN));
    cr_assert(eq(int, conn_receive(a), -EAGAIN));
    cr_assert(conn_free(a) == NULL);
    cr_assert(eq(int, conn_receive(b), -EPIPE));
    conn_free(b);
    conn_free(NULL);
}

Test(conn, a_body_in_two_pieces_is_one_body)
{
    struct pair pair = pair_new();
    char got[32];
    cr_assert(eq(int, conn_send_with(pair.conn, "\xa4pi", 3, "ng", 2, NULL, 0), 0));
    cr_expect(eq(int, conn_send_with(pair.conn, "", 0, "ng", 2, NULL, 0), -EINVAL));
    cr_expect(
        eq(int, conn_send_with(pair.conn, "a", 1, "", FRAME_MAX_BODY_BYTES, NULL, 0), -EMSGSIZE));
    cr_assert(eq(int, conn_flush(pair.conn), 0));
    cr_assert(eq(i64, read(pair.peer, got, sizeof(got)), 13));
    cr_expect(eq(int, memcmp(got, "GA\0\0\5\0\0\0\xa4ping", 13), 0));
    pair_free(&pair);
}

Test(conn, tells_when_more_may_be_there)
{
    struct pair pair = pair_new();
    struct frame frame;
    static uint8_t bytes[8 + 5 + 40000];
    size_t n_bytes = make_frame(bytes, 1, 40000, 0);
    put(pair.peer, bytes, n_bytes, NULL, 0);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    cr_expect(conn_may_have_more(pair.conn));
    while (conn_next(pair.conn, &frame) == -EAGAIN)
        cr_assert(eq(int, conn_receive(pair.conn), 0));
    cr_expect(not(conn_may_have_more(pair.conn)));
    frame_deinit(&frame, NULL);
    pair_free(&pair);
}

Test(conn, the_socket_is_made_non_blocking)
{
    struct pair pair = pair_new();
    cr_assert(ne(int, fcntl(conn_fd(pair.conn), F_GETFL) & O_NONBLOCK, 0));
    pair_free(&pair);
}

Test(conn, a_bad_descriptor_is_refused)
{
    struct conn *conn;
    cr_assert(eq(int, conn_new(999, NULL, &conn), -EBADF));
}

Test(conn, frames_in_pieces_of_every_size_come_out_whole)
{
    static uint8_t bytes[64 * 1024];
    size_t n_bytes = 0;
    for (uint8_t tag = 0; tag < 40; tag++)
        n_bytes += make_frame(bytes + n_bytes, tag, (uint16_t)(tag * 29), 0);
    for (size_t piece = 1; piece < 3000; piece = piece * 3 + 1) {
        struct pair pair = pair_new();
        uint8_t tag = 0;
        for (size_t at = 0; at < n_bytes; at += piece) {
            put(pair.peer, bytes + at, min_u64(piece, n_bytes - at), NULL, 0);
            cr_assert(eq(int, conn_receive(pair.conn), 0));
            struct frame frame;
            while (conn_next(pair.conn, &frame) == 0) {
                cr_assert(eq(u8, tag_of(&frame), tag++));
                frame_deinit(&frame, NULL);
            }
        }
        cr_assert(eq(u8, tag, 40));
        pair_free(&pair);
    }
}

/* Moves frames from one connection to the other until all came, never more at once than goes. */
static void exchange(struct conn *from, struct conn *to, unsigned n_frames, size_t body_bytes)
{
    for (unsigned n = 0; n < n_frames;) {
        int r = conn_flush(from);
        cr_assert(r == 0 || r == -EAGAIN);
        r = conn_receive(to);
        cr_assert(r == 0 || r == -EAGAIN);
        struct frame frame;
        while (conn_next(to, &frame) == 0) {
            cr_assert(eq(sz, frame.size_bytes, body_bytes));
            uint32_t number;
            memcpy(&number, frame.body + 6, sizeof(number));
            cr_assert(eq(u32, number, n));
            frame_deinit(&frame, NULL);
            n++;
        }
    }
}

static void send_numbered(struct conn *conn, unsigned n_frames, size_t body_bytes)
{
    char *body = calloc(1, body_bytes);
    for (uint32_t n = 0; n < n_frames; n++) {
        uint32_t n_bin = (uint32_t)body_bytes - 6;
        uint8_t head[6] = {0x91,
                           0xc6,
                           (uint8_t)(n_bin >> 24),
                           (uint8_t)(n_bin >> 16),
                           (uint8_t)(n_bin >> 8),
                           (uint8_t)n_bin};
        memcpy(body, head, sizeof(head));
        memcpy(body + 6, &n, sizeof(n));
        cr_assert(eq(int, conn_send(conn, body, body_bytes, NULL, 0), 0));
    }
    free(body);
}

Test(conn, many_and_large_frames_survive_partial_writes)
{
    static const size_t sizes[] = {10, 8000, 70000, FRAME_MAX_BODY_BYTES};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        int sockets[2];
        struct conn *a, *b;
        cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0));
        cr_assert(eq(int, conn_new(sockets[0], NULL, &a), 0));
        cr_assert(eq(int, conn_new(sockets[1], NULL, &b), 0));
        unsigned n_frames = (unsigned)(4 * 1024 * 1024 / sizes[i]) % 5000 + 3;
        send_numbered(a, n_frames, sizes[i]);
        exchange(a, b, n_frames, sizes[i]);
        conn_trim(a);
        conn_trim(b);
        send_numbered(a, 2, sizes[i]);
        exchange(a, b, 2, sizes[i]);
        conn_free(a);
        conn_free(b);
    }
}

Test(conn, a_receiver_that_does_not_take_frames_stops_reading)
{
    struct pair pair = pair_new();
    static uint8_t bytes[16 * 1024];
    size_t n_bytes = make_frame(bytes, 7, 8000, 0);
    unsigned n_sent = 0, n_taken = 0;
    while (send(pair.peer, bytes, n_bytes, MSG_DONTWAIT) == (ssize_t)n_bytes)
        n_sent++;
    int r;
    while ((r = conn_receive(pair.conn)) == 0)
        ;
    cr_assert(eq(int, r, -EAGAIN));
    cr_assert(conn_has_frame(pair.conn));
    struct frame frame;
    do {
        while (conn_next(pair.conn, &frame) == 0) {
            frame_deinit(&frame, NULL);
            n_taken++;
        }
    } while (conn_receive(pair.conn) == 0);
    cr_assert(ge(uint, n_taken, n_sent));
    pair_free(&pair);
}

Test(conn, descriptors_arrive_with_their_frames_in_order)
{
    int sockets[2];
    struct conn *a, *b;
    unsigned n_before = count_open_fds();
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0));
    cr_assert(eq(int, conn_new(sockets[0], NULL, &a), 0));
    cr_assert(eq(int, conn_new(sockets[1], NULL, &b), 0));
    struct stat want[12], got;
    unsigned n_of[] = {0, 2, 0, 0, 3, 1, 0, 6};
    unsigned n_sent = 0, n_received = 0;
    for (uint8_t i = 0; i < ARRAY_LENGTH(n_of); i++) {
        int fds[6];
        for (unsigned k = 0; k < n_of[i]; k++) {
            int ends[2]; /* a pipe has an inode of its own */
            cr_assert(eq(int, pipe2(ends, O_CLOEXEC), 0));
            close(ends[1]);
            fds[k] = ends[0];
            cr_assert(eq(int, fstat(fds[k], &want[n_sent++]), 0));
        }
        uint8_t body[] = {0x92, i, 0xc0};
        cr_assert(eq(int, conn_send(a, body, sizeof(body), fds, n_of[i]), 0));
    }
    cr_assert(eq(int, conn_flush(a), 0));
    for (uint8_t i = 0; i < ARRAY_LENGTH(n_of); i++) {
        struct frame frame;
        int r;
        while ((r = conn_next(b, &frame)) == -EAGAIN)
            cr_assert(eq(int, conn_receive(b), 0));
        cr_assert(eq(int, r, 0));
        cr_assert(eq(u8, tag_of(&frame), i));
        cr_assert(eq(uint, frame.n_fds, n_of[i]));
        for (unsigned k = 0; k < frame.n_fds; k++) {
            cr_assert(eq(int, fstat(frame.fds[k], &got), 0));
            cr_assert(eq(u64, got.st_ino, want[n_received++].st_ino));
            cr_assert(ne(int, fcntl(frame.fds[k], F_GETFD) & FD_CLOEXEC, 0));
        }
        frame_deinit(&frame, NULL);
    }
    conn_free(a);
    conn_free(b);
    cr_assert(eq(uint, count_open_fds(), n_before));
}

Test(conn, a_full_socket_never_sends_descriptors_twice)
{
    int sockets[2], small = 8192;
    struct conn *a, *b;
    unsigned n_before = count_open_fds(), n_frames = 60, n_taken = 0;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0));
    setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    cr_assert(eq(int, conn_new(sockets[0], NULL, &a), 0));
    cr_assert(eq(int, conn_new(sockets[1], give_back, &b), 0));
    for (unsigned i = 0; i < n_frames; i++) {
        static uint8_t bytes[16 * 1024];
        int fds[3];
        make_fds(fds, i % 4);
        size_t n_bytes = make_frame(bytes, (uint8_t)i, (uint16_t)(i * 200), i % 4);
        cr_assert(eq(int, conn_send(a, bytes + 8, n_bytes - 8, fds, i % 4), 0));
    }
    unsigned n_stuck = 0;
    while (n_taken < n_frames) {
        n_stuck += conn_flush(a) == -EAGAIN;
        int r = conn_receive(b);
        cr_assert(r == 0 || r == -EAGAIN);
        struct frame frame;
        while ((r = conn_next(b, &frame)) == 0) {
            cr_assert(eq(u8, tag_of(&frame), n_taken));
            cr_assert(eq(uint, frame.n_fds, n_taken % 4));
            frame_deinit(&frame, NULL);
            n_taken++;
        }
        cr_assert(eq(int, r, -EAGAIN));
    }
    cr_assert(lt(uint, 0, n_stuck));
    conn_free(a);
    conn_free(b);
    cr_assert(eq(uint, n_given_back, 1)); /* the socket of b */
    cr_assert(eq(uint, count_open_fds(), n_before));
}

Test(conn, descriptors_without_a_message_end_the_connection)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fd = eventfd(0, EFD_CLOEXEC);
    size_t n_bytes = make_frame(bytes, 1, 4, 0);
    put(pair.peer, bytes, n_bytes, &fd, 1);
    expect_end(&pair, -EPROTO);
    cr_assert(conn_has_frame(pair.conn));
    struct frame frame;
    cr_assert(eq(int, conn_next(pair.conn, &frame), -EPROTO));
    cr_assert(eq(int, conn_receive(pair.conn), -EPROTO));
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, NULL, 0), -EPROTO));
    cr_assert(eq(int, conn_flush(pair.conn), -EPROTO));
    pair_free(&pair);
    cr_assert(eq(uint, n_given_back, 1));
    close(fd);
}

Test(conn, a_stray_descriptor_cannot_serve_a_later_frame)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fd = eventfd(0, EFD_CLOEXEC);
    put(pair.peer, bytes, make_frame(bytes, 1, 4, 0), &fd, 1);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    put(pair.peer, bytes, make_frame(bytes, 2, 4, 1), NULL, 0);
    expect_end(&pair, -EPROTO);
    pair_free(&pair);
    cr_assert(eq(uint, n_given_back, 1));
    close(fd);
}

Test(conn, a_message_without_its_descriptors_ends_the_connection)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fd = eventfd(0, EFD_CLOEXEC);
    put(pair.peer, bytes, make_frame(bytes, 1, 4, 2), &fd, 1);
    expect_end(&pair, -EPROTO);
    pair_free(&pair);
    cr_assert(eq(uint, n_given_back, 1));
    close(fd);
}

Test(conn, more_descriptors_than_a_frame_announces_are_all_closed)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fds[20];
    make_fds(fds, ARRAY_LENGTH(fds));
    unsigned n_before = count_open_fds();
    make_frame(bytes, 1, 40, 3);
    put(pair.peer, bytes, 12, fds, ARRAY_LENGTH(fds));
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    cr_assert(eq(int, conn_receive(pair.conn), -EPROTO)); /* does not wait for the frame's end */
    conn_free(pair.conn);
    cr_assert(eq(uint, count_open_fds(), n_before - 1));
    pair.conn = NULL;
    pair_free(&pair);
    close_all(fds, ARRAY_LENGTH(fds));
}

Test(conn, as_many_descriptors_as_a_frame_may_have_arrive)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fds[FRAME_MAX_FDS];
    make_fds(fds, FRAME_MAX_FDS);
    put(pair.peer, bytes, make_frame(bytes, 9, 4, FRAME_MAX_FDS), fds, FRAME_MAX_FDS);
    put(pair.peer, bytes, make_frame(bytes, 10, 4, FRAME_MAX_FDS), fds, FRAME_MAX_FDS);
    expect_frame(pair.conn, 9, FRAME_MAX_FDS);
    expect_frame(pair.conn, 10, FRAME_MAX_FDS);
    cr_assert(eq(uint, n_given_back, 2 * FRAME_MAX_FDS));
    pair_free(&pair);
    close_all(fds, FRAME_MAX_FDS);
}

Test(conn, descriptors_without_end_are_stopped)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    int fds[40];
    make_fds(fds, ARRAY_LENGTH(fds));
    unsigned n_before = count_open_fds();
    size_t n_bytes = make_frame(bytes, 1, 40, 0);
    int r = 0;
    for (size_t i = 0; i < n_bytes && (r == 0 || r == -EAGAIN); i++) {
        put(pair.peer, bytes + i, 1, fds, ARRAY_LENGTH(fds)); /* each byte brings 40 more */
        r = conn_receive(pair.conn);
        cr_assert(le(uint, count_open_fds(), n_before + 2 * FRAME_MAX_FDS));
    }
    cr_assert(eq(int, r, -EPROTO));
    pair_free(&pair);
    cr_assert(eq(uint, count_open_fds(), n_before - 2));
    close_all(fds, ARRAY_LENGTH(fds));
}

Test(conn, descriptors_of_a_large_frame_wait_for_its_end)
{
    struct pair pair = pair_new();
    static uint8_t bytes[70000];
    int fds[2];
    make_fds(fds, 2);
    size_t n_bytes = make_frame(bytes, 3, 60000, 2);
    put(pair.peer, bytes, 20, fds, 2);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    put(pair.peer, bytes + 20, 30000, NULL, 0);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    cr_assert(not(conn_has_frame(pair.conn)));
    put(pair.peer, bytes + 30020, n_bytes - 30020, NULL, 0);
    expect_frame(pair.conn, 3, 2);
    pair_free(&pair);
    close_all(fds, 2);
}

Test(conn, free_closes_descriptors_that_wait_on_either_side)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    unsigned n_before = count_open_fds();
    int fds[3];
    make_fds(fds, 3);
    put(pair.peer, bytes, make_frame(bytes, 1, 4, 3) - 1, fds, 3); /* never complete */
    close_all(fds, 3);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    make_fds(fds, 3);
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, fds, 3), 0)); /* never flushed */
    cr_assert(eq(uint, count_open_fds(), n_before + 6));
    pair_free(&pair);
    cr_assert(eq(uint, n_given_back, 6));
    cr_assert(eq(uint, count_open_fds(), n_before - 2));
}

Test(conn, malformed_bytes_end_the_connection)
{
    static const struct {
        const char *bytes;
        size_t n_bytes;
        int want;
    } rows[] = {
        {"GET / HTTP/1.1\r\n", 16, -EPROTO},     {"GA\0\0\5\0\0\0\xdd\xff\0\0\0", 13, -EPROTO},
        {"GA\0\0\0\0\0\0", 8, -EPROTO}, /* a body without an object */
        {"GA\0\0\1\0\x10\0", 8, -EMSGSIZE},      {"GA\xfe\0\1\0\0\0\xc0", 9, -EMSGSIZE},
        {"GA\0\0\2\0\0\0\xc0\xc0", 10, -EPROTO}, {"GA\0\0\3\0\0\0\xd4\1\1", 11, -EPROTO},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct pair pair = pair_new();
        put(pair.peer, rows[i].bytes, rows[i].n_bytes, NULL, 0);
        expect_end(&pair, rows[i].want);
        pair_free(&pair);
    }
}

Test(conn, end_of_file_is_told_from_an_end_inside_a_frame)
{
    uint8_t bytes[256];
    size_t n_bytes = make_frame(bytes, 1, 100, 0);
    for (size_t n = 0; n <= n_bytes; n++) {
        struct pair pair = pair_new();
        if (n > 0)
            put(pair.peer, bytes, n, NULL, 0);
        close_fd(&pair.peer);
        expect_end(&pair, n == 0 || n == n_bytes ? -EPIPE : -ECONNRESET);
        pair_free(&pair);
    }
}

Test(conn, frames_before_the_end_of_file_can_still_be_taken)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    size_t n_bytes = make_frame(bytes, 5, 10, 0);
    put(pair.peer, bytes, n_bytes, NULL, 0);
    put(pair.peer, bytes, n_bytes, NULL, 0);
    close_fd(&pair.peer);
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    cr_assert(eq(int, conn_receive(pair.conn), -EPIPE));
    expect_frame(pair.conn, 5, 0);
    expect_frame(pair.conn, 5, 0);
    pair_free(&pair);
}

Test(conn, a_peer_that_is_gone_is_an_error_and_no_signal)
{
    struct pair pair = pair_new();
    close_fd(&pair.peer);
    int fd = eventfd(0, EFD_CLOEXEC);
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, &fd, 1), 0));
    cr_assert(eq(int, conn_flush(pair.conn), -EPIPE));
    pair_free(&pair);
    cr_assert(eq(uint, n_given_back, 1));
}

Test(conn, what_a_peer_said_before_it_went_can_be_taken_after_sending_failed)
{
    struct pair pair = pair_new();
    uint8_t bytes[64];
    put(pair.peer, bytes, make_frame(bytes, 5, 10, 0), NULL, 0);
    close_fd(&pair.peer);
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, NULL, 0), 0));
    cr_assert(eq(int, conn_flush(pair.conn), -EPIPE));
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, NULL, 0), -EPIPE));
    cr_assert(eq(int, conn_flush(pair.conn), -EPIPE));
    cr_assert(eq(int, conn_receive(pair.conn), 0));
    expect_frame(pair.conn, 5, 0);
    cr_assert(eq(int, conn_receive(pair.conn), -EPIPE));
    pair_free(&pair);
}

Test(conn, what_cannot_be_sent_gives_its_descriptors_back)
{
    struct pair pair = pair_new();
    int fds[FRAME_MAX_FDS + 1];
    char *large = calloc(1, FRAME_MAX_BODY_BYTES + 1);
    make_fds(fds, 1);
    cr_assert(eq(int, conn_send(pair.conn, large, FRAME_MAX_BODY_BYTES + 1, fds, 1), -EMSGSIZE));
    make_fds(fds, FRAME_MAX_FDS + 1);
    cr_assert(eq(int, conn_send(pair.conn, "\xc0", 1, fds, FRAME_MAX_FDS + 1), -EMSGSIZE));
    cr_assert(eq(int, conn_send(pair.conn, "", 0, NULL, 0), -EINVAL));
    cr_assert(eq(uint, n_given_back, FRAME_MAX_FDS + 2));
    cr_assert(eq(sz, conn_n_queued_bytes(pair.conn), 0));
    free(large);
    pair_free(&pair);
}
