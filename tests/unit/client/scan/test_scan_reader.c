#include "client/scan/scan_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#define N_CHUNKS    40u
#define CHUNK_BYTES (1u << 20)
#define ABSENT      3u
#define DAMAGED     5u

#include "described.h"

struct whole {
    struct described of;
    struct scan_server *server;
    unsigned place;
    struct scan_reader *reader;
    pthread_t ear;
    bool is_deaf; /* the thread that hears the reader is to end */
};

static void *hear(void *argument)
{
    struct whole *whole = argument;
    struct pollfd ready = {.fd = scan_server_socket(whole->server, whole->place), .events = POLLIN};
    while (!__atomic_load_n(&whole->is_deaf, __ATOMIC_ACQUIRE)) {
        poll(&ready, 1, 10);
        if (scan_server_hear(whole->server, whole->place) < 0)
            break;
    }
    return NULL;
}

/* One was never written, and one is too short. */
static void describe_whole(struct whole *whole)
{
    *whole = (struct whole){.server = NULL};
    describe(&whole->of);
    whole->of.entries[ABSENT].offset_bytes = SCAN_ABSENT;
    whole->of.entries[DAMAGED].size_bytes /= 2;
}

static int open_again(void *state, uint32_t file)
{
    const struct whole *whole = state;
    cr_assert(eq(uint, file, 0));
    return fcntl(whole->of.file_fd, F_DUPFD_CLOEXEC, 3);
}

static struct scan_access access_to(struct whole *whole)
{
    return (struct scan_access){.open = open_again, .state = whole};
}

static int new_reader(struct whole *whole, int socket_take, int timeout_ms,
                      struct scan_reader **ret)
{
    const struct scan_access access = access_to(whole);
    return scan_reader_new(socket_take, &whole->of.description, &access, timeout_ms, ret);
}

static void make(struct whole *whole)
{
    int pair[2];
    describe_whole(whole);
    cr_assert(eq(int, scan_server_new(&head, &whole->of.description, 2, &whole->server), 0));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(int, scan_server_join(whole->server, pair[1], &whole->place), 0));
    cr_assert(eq(int, pthread_create(&whole->ear, NULL, hear, whole), 0));
    cr_assert(eq(int, new_reader(whole, pair[0], 1000, &whole->reader), 0));
}

static void end_server(struct whole *whole)
{
    __atomic_store_n(&whole->is_deaf, true, __ATOMIC_RELEASE);
    pthread_join(whole->ear, NULL);
    whole->server = scan_server_free(whole->server);
}

static void end(struct whole *whole)
{
    scan_reader_free(whole->reader);
    if (whole->server)
        end_server(whole);
    close(whole->of.file_fd);
}

struct seen {
    unsigned n[N_CHUNKS], n_all;
    struct whole *kill_at_10; /* NULL: nobody */
    bool cancel_at_10;
    atomic_bool is_cancelled;
};

static int use(void *state, uint64_t index, const void *elements)
{
    struct seen *seen = state;
    const char *bytes = elements;
    cr_assert(lt(u64, index, N_CHUNKS));
    seen->n[index]++;
    if (index == DAMAGED || index == ABSENT) {
        cr_assert(eq(ptr, (void *)bytes, NULL));
    } else if (bytes) {
        cr_assert(eq(int, bytes[0], (int)index + 1));
        cr_assert(eq(int, memcmp(bytes, bytes + 1, CHUNK_BYTES - 1), 0));
    }
    if (++seen->n_all == 10 && seen->kill_at_10)
        end_server(seen->kill_at_10);
    atomic_store(&seen->is_cancelled, seen->cancel_at_10 && seen->n_all >= 10);
    return 0;
}

static void check_seen(const struct seen *seen, unsigned times)
{
    for (unsigned i = 0; i < N_CHUNKS; i++)
        cr_assert(eq(uint, seen->n[i], times));
}

/* As a child of fork() has one. */
Test(scan_reader, leaves_also_where_somebody_has_a_copy_of_its_socket)
{
    struct whole whole;
    int pair[2], copy;
    describe_whole(&whole);
    cr_assert(eq(int, scan_server_new(&head, &whole.of.description, 1, &whole.server), 0));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(int, scan_server_join(whole.server, pair[1], &whole.place), 0));
    cr_assert(eq(int, pthread_create(&whole.ear, NULL, hear, &whole), 0));
    cr_assert(eq(int, new_reader(&whole, pair[0], 1000, &whole.reader), 0));
    copy = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    scan_reader_free(whole.reader);
    __atomic_store_n(&whole.is_deaf, true, __ATOMIC_RELEASE);
    pthread_join(whole.ear, NULL);
    cr_assert(eq(int, scan_server_hear(whole.server, whole.place), -EPIPE));
    scan_server_free(whole.server);
    close(copy);
    close(whole.of.file_fd);
}

Test(scan_reader, files_that_are_others_are_not_shown)
{
    struct scan_reader *reader;
    struct whole whole;
    int pair[2];
    char byte;
    describe_whole(&whole);
    whole.of.file.inode++;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(int, new_reader(&whole, pair[0], 1000, &reader), -ESTALE));
    cr_assert(eq(long, recv(pair[1], &byte, 1, 0), 0));
    close(pair[1]);
    close(whole.of.file_fd);
}

Test(scan_reader, a_circle_has_every_chunk_once)
{
    struct seen seen = {.n_all = 0};
    struct scan_circle circle;
    struct whole whole;
    make(&whole);
    for (unsigned round = 1; round <= 3; round++) {
        cr_assert(eq(int, scan_reader_circle(whole.reader, use, &seen, NULL, &circle), 0));
        check_seen(&seen, round);
        cr_assert(eq(u64, circle.n_shared, N_CHUNKS - 2));
        cr_assert(eq(u64, circle.n_own, 2)); /* the damaged one and the one that is not there */
    }
    end(&whole);
}

/* Until nothing more is decoded: then nothing is overwritten while it is used. */
static void await_rest(const struct whole *whole)
{
    struct scan_numbers before, now = {.n_decoded = 0};
    for (unsigned n_same = 0; n_same < 20;) {
        before = now;
        poll(NULL, 0, 10);
        scan_server_count(whole->server, &now);
        n_same =
            now.n_decoded == before.n_decoded && now.n_failed == before.n_failed ? n_same + 1 : 0;
    }
}

Test(scan_reader, who_was_away_while_others_went_on_has_every_chunk_once)
{
    struct seen away = {.n_all = 0}, busy = {.n_all = 0};
    struct scan_reader *reader;
    struct scan_circle circle;
    struct whole whole, other;
    int pair[2];
    make(&whole);
    other = whole;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(int, scan_server_join(whole.server, pair[1], &other.place), 0));
    cr_assert(eq(int, pthread_create(&other.ear, NULL, hear, &other), 0));
    cr_assert(eq(int, new_reader(&whole, pair[0], 1000, &reader), 0));
    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 1; i <= 3; i++)
            cr_assert(eq(int, scan_reader_circle(whole.reader, use, &busy, NULL, &circle), 0));
        await_rest(&whole);
        cr_assert(eq(int, scan_reader_circle(reader, use, &away, NULL, &circle), 0));
        check_seen(&away, round);
        cr_assert(eq(u64, circle.n_own, 2));
    }
    scan_reader_free(reader);
    __atomic_store_n(&other.is_deaf, true, __ATOMIC_RELEASE);
    pthread_join(other.ear, NULL);
    end(&whole);
}

Test(scan_reader, goes_on_by_itself_when_the_process_is_gone)
{
    struct whole whole;
    struct seen seen = {.kill_at_10 = &whole};
    struct scan_circle circle;
    make(&whole);
    cr_assert(eq(int, scan_reader_circle(whole.reader, use, &seen, NULL, &circle), 0));
    check_seen(&seen, 1);
    cr_assert(le(u64, 1, circle.n_own));
    seen = (struct seen){.n_all = 0};
    cr_assert(eq(int, scan_reader_circle(whole.reader, use, &seen, NULL, &circle), 0));
    check_seen(&seen, 1);
    cr_assert(eq(u64, circle.n_own, N_CHUNKS));
    end(&whole);
}

Test(scan_reader, can_be_cancelled)
{
    struct seen seen = {.cancel_at_10 = true};
    struct scan_circle circle;
    struct whole whole;
    make(&whole);
    cr_assert(eq(int, scan_reader_circle(whole.reader, use, &seen, &seen.is_cancelled, &circle),
                 -ECANCELED));
    seen = (struct seen){.n_all = 0};
    cr_assert(eq(int, scan_reader_circle(whole.reader, use, &seen, NULL, &circle), 0));
    check_seen(&seen, 1);
    end(&whole);
}

static int stop(void *state, uint64_t index, const void *elements)
{
    (void)index, (void)elements;
    return ++*(unsigned *)state == 4 ? 77 : 0;
}

Test(scan_reader, ends_with_what_is_said)
{
    struct scan_circle circle;
    struct whole whole;
    unsigned n = 0;
    make(&whole);
    cr_assert(eq(int, scan_reader_circle(whole.reader, stop, &n, NULL, &circle), 77));
    cr_assert(eq(uint, n, 4));
    end(&whole);
}

/* A process that is none. ring_fd -1: no descriptor. */
static int greeted(uint64_t magic, int ring_fd, size_t n_bytes)
{
    struct scan_welcome welcome = {.magic = magic};
    struct scan_reader *reader = NULL;
    struct whole whole;
    int pair[2];
    describe_whole(&whole);
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(long, packet_send(pair[1], &welcome, n_bytes, &ring_fd, ring_fd >= 0, 0),
                 (long)n_bytes));
    int r = new_reader(&whole, pair[0], 1000, &reader);
    cr_assert(eq(ptr, reader, NULL));
    close(pair[1]);
    close(whole.of.file_fd);
    return r;
}

Test(scan_reader, greetings_that_are_none)
{
    struct scan_layout layout;
    scan_layout(CHUNK_BYTES, &layout);
    int unsealed = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int short_one = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(eq(int, ftruncate(unsealed, (off_t)layout.size_bytes), 0));
    cr_assert(eq(int, ftruncate(short_one, (off_t)layout.size_bytes - 1), 0));
    cr_assert(eq(int, fcntl(short_one, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0));
    cr_assert(eq(int, greeted(SCAN_MAGIC, unsealed, 16), -EPROTO));
    cr_assert(eq(int, greeted(SCAN_MAGIC, short_one, 16), -EPROTO));
    cr_assert(eq(int, greeted(SCAN_MAGIC, -1, 16), -EPROTO));
    cr_assert(eq(int, fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0));
    cr_assert(eq(int, greeted(SCAN_MAGIC + 1, unsealed, 16), -EPROTO));
    cr_assert(eq(int, greeted(SCAN_MAGIC, unsealed, 8), -EPROTO));
    close(unsealed);
    close(short_one);
}

Test(scan_reader, nobody_greets)
{
    struct scan_reader *reader;
    struct whole whole;
    int pair[2];
    describe_whole(&whole);
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    cr_assert(eq(int, new_reader(&whole, pair[0], 1, &reader), -ETIMEDOUT));
    close(pair[1]);
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    close(pair[1]);
    cr_assert(eq(int, new_reader(&whole, pair[0], 1000, &reader), -EPIPE));
    close(whole.of.file_fd);
}
