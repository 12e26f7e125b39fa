/* What waits to be sent: copied bytes, shared ones and descriptors keep their order, and everything
 * that is held is given back. */
#include "proto/wire/conn.h"
#include "proto/wire/outbox.h"
#include "proto/util.h"
#include "tests/unit/proto/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct text { /* on the heap, so that a sanitizer sees who uses it too late */
    struct shared shared;
    char bytes[200000];
};

static unsigned n_unused;

static void free_text(struct shared *shared)
{
    n_unused++;
    free(shared); /* its first member */
}

static struct text *text_new(uint8_t seed)
{
    struct text *text = calloc(1, sizeof(*text));
    cr_assert(text != NULL);
    text->shared = (struct shared){.n_refs = 1, .unused = free_text};
    for (unsigned i = 0; i < sizeof(text->bytes); i++)
        text->bytes[i] = (char)(seed + i % 251);
    return text;
}

/* A binary of so many bytes: head in `to`, its bytes follow. */
static size_t make_head(uint8_t *to, uint32_t n)
{
    const uint8_t head[] = {0xc6, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                            (uint8_t)n};
    memcpy(to, head, sizeof(head));
    return sizeof(head);
}

static void connect_pair(struct conn **ret_a, struct conn **ret_b, int send_bytes)
{
    int sockets[2];
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0));
    setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
    cr_assert(eq(int, conn_new(sockets[0], NULL, ret_a), 0));
    cr_assert(eq(int, conn_new(sockets[1], NULL, ret_b), 0));
}

Test(outbox, a_thousand_queues_hold_shared_bytes_once)
{
    struct text *text = text_new(1);
    struct conn *a, *b;
    uint8_t head[8];
    connect_pair(&a, &b, 8192);
    size_t n_head = make_head(head, sizeof(text->bytes));
    for (unsigned i = 0; i < 1000; i++)
        cr_assert(eq(
            int, conn_send_shared(a, head, n_head, &text->shared, text->bytes, sizeof(text->bytes)),
            0));
    cr_assert(eq(sz, text->shared.n_refs, 1001));
    cr_assert(eq(sz, conn_n_queued_bytes(a), 1000 * (8 + n_head + sizeof(text->bytes))));
    cr_assert(eq(sz, conn_n_copied_bytes(a), 1000 * (8 + n_head)));
    cr_assert(eq(int, conn_flush(a), -EAGAIN));
    cr_assert(zero(uint, n_unused));
    conn_free(a);
    cr_assert(eq(sz, text->shared.n_refs, 1));
    shared_unref(&text->shared);
    cr_assert(eq(uint, n_unused, 1));
    conn_free(b);
}

/* Frames of each kind in turn: copied, shared, copied with descriptors. */
static void queue_frames(struct conn *conn, unsigned n_frames)
{
    static uint8_t bytes[3000];
    for (unsigned i = 0; i < n_frames; i++) {
        uint8_t head[8];
        size_t n_head = make_head(head, 1000 * i);
        memset(bytes, (int)i, sizeof(bytes));
        if (i % 3 == 1) {
            struct text *text = text_new((uint8_t)i);
            int r = conn_send_shared(conn, head, n_head, &text->shared, text->bytes, 1000 * i);
            cr_assert(eq(int, r, 0));
            shared_unref(&text->shared);
            continue;
        }
        int fd = i % 3 == 2 ? eventfd(i, EFD_CLOEXEC) : -1;
        n_head = make_head(head, 3000);
        cr_assert(eq(int, conn_send_with(conn, head, n_head, bytes, 3000, &fd, fd >= 0), 0));
    }
}

static void check_frame(struct frame *frame, unsigned i)
{
    if (i % 3 != 1) {
        uint64_t count = 0;
        cr_assert(eq(sz, frame->size_bytes, 3005));
        for (unsigned k = 5; k < 3005; k++)
            cr_assert(eq(u8, (uint8_t)frame->body[k], (uint8_t)i));
        cr_assert(eq(uint, frame->n_fds, i % 3 == 2));
        if (frame->n_fds > 0)
            cr_assert(eq(i64, read(frame->fds[0], &count, sizeof(count)), sizeof(count)));
        cr_assert(frame->n_fds == 0 || count == i);
        return;
    }
    cr_assert(eq(sz, frame->size_bytes, 5 + 1000 * i));
    for (unsigned k = 0; k < 1000 * i; k++)
        cr_assert(eq(u8, (uint8_t)frame->body[5 + k], (uint8_t)(i + k % 251)));
}

Test(outbox, all_kinds_arrive_in_order_whatever_the_socket_takes)
{
    static const int send_bytes[] = {2304, 8192, 1 << 20};
    unsigned n_before = count_open_fds(), n_frames = 60;
    for (unsigned trial = 0; trial < ARRAY_LENGTH(send_bytes); trial++) {
        struct conn *a, *b;
        struct frame frame;
        unsigned n_taken = 0;
        int r;
        n_unused = 0;
        connect_pair(&a, &b, send_bytes[trial]);
        queue_frames(a, n_frames);
        while (n_taken < n_frames) {
            r = conn_flush(a);
            cr_assert(r == 0 || r == -EAGAIN);
            r = conn_receive(b);
            cr_assert(r == 0 || r == -EAGAIN);
            while ((r = conn_next(b, &frame)) == 0) {
                check_frame(&frame, n_taken++);
                frame_deinit(&frame, NULL);
            }
            cr_assert(eq(int, r, -EAGAIN));
        }
        cr_assert(zero(sz, conn_n_queued_bytes(a)));
        cr_assert(eq(uint, n_unused, n_frames / 3));
        conn_free(a);
        conn_free(b);
    }
    cr_assert(eq(uint, count_open_fds(), n_before));
}

Test(outbox, unsent_descriptors_and_shared_bytes_go_with_the_connection)
{
    unsigned n_before = count_open_fds();
    struct conn *a, *b;
    connect_pair(&a, &b, 2304);
    queue_frames(a, 30);
    cr_assert(eq(int, conn_flush(a), -EAGAIN));
    conn_free(a);
    conn_free(b);
    cr_assert(eq(uint, n_unused, 10));
    cr_assert(eq(uint, count_open_fds(), n_before));
}

Test(outbox, shared_bytes_over_the_limit_of_a_frame_are_refused)
{
    struct text *text = text_new(1);
    struct conn *a, *b;
    connect_pair(&a, &b, 8192);
    cr_assert(eq(int,
                 conn_send_shared(a, "\xc0", 1, &text->shared, text->bytes, FRAME_MAX_BODY_BYTES),
                 -EMSGSIZE));
    cr_assert(eq(int, conn_send_shared(a, "", 0, &text->shared, text->bytes, 1), -EINVAL));
    cr_assert(eq(sz, text->shared.n_refs, 1));
    cr_assert(zero(sz, conn_n_queued_bytes(a)));
    cr_assert(eq(int, conn_send_shared(a, "\xc0", 1, &text->shared, text->bytes, 0), 0));
    cr_assert(eq(sz, text->shared.n_refs, 1));
    shared_unref(&text->shared);
    conn_free(a);
    conn_free(b);
}
