#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

/* Their size makes the ring short, so readers wait for it and are waited for. */
#define N_CHUNKS    24u
#define CHUNK_BYTES (2u << 20)
#define N_READERS   3u
#include "described.h"

struct whole {
    struct described of;
    struct scan_server *server;
};

static void make(struct whole *whole)
{
    describe(&whole->of);
    cr_assert(eq(int, scan_server_new(&head, &whole->of.description, 2, &whole->server), 0));
}

struct reader {
    struct whole *whole;
    pthread_t thread;
    unsigned place;
    int socket, ring_fd;
    uint64_t next;
    struct scan_layout layout;
    const char *ring;
    unsigned n_seen[N_CHUNKS], n_lost;
};

static void welcome(struct reader *reader)
{
    struct scan_welcome welcome;
    unsigned n_fds;
    cr_assert(eq(
        long,
        packet_receive(reader->socket, &welcome, sizeof(welcome), &reader->ring_fd, 1, &n_fds, 0),
        sizeof(welcome)));
    cr_assert(eq(uint, n_fds, 1));
    reader->next = welcome.first;
    scan_layout(CHUNK_BYTES, &reader->layout);
    reader->ring = mmap(NULL, reader->layout.size_bytes, PROT_READ, MAP_SHARED, reader->ring_fd, 0);
    cr_assert(ne(ptr, (void *)reader->ring, MAP_FAILED));
}

static void show(struct reader *reader, struct scan_show show, int fd)
{
    cr_assert(eq(long, packet_send(reader->socket, &show, sizeof(show), &fd, 1, 0), sizeof(show)));
}

static void join(struct whole *whole, struct reader *reader)
{
    int pair[2];
    *reader = (struct reader){.whole = whole};
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
    reader->socket = pair[0];
    cr_assert(eq(int, scan_server_join(whole->server, pair[1], &reader->place), 0));
    show(reader, (struct scan_show){SCAN_MAGIC, 0, 1}, whole->of.file_fd);
    cr_assert(eq(int, scan_server_hear(whole->server, reader->place), 0));
    welcome(reader);
}

static void say(struct reader *reader, bool wants_more)
{
    const struct scan_ack ack = {.done = reader->next, .wants_more = wants_more};
    cr_assert(eq(long, send(reader->socket, &ack, sizeof(ack), 0), sizeof(ack)));
    cr_assert(eq(int, scan_server_hear(reader->whole->server, reader->place), 0));
}

static void take(struct reader *reader)
{
    const struct scan_slot *slot =
        (const struct scan_slot *)reader->ring + reader->next % reader->layout.n_slots;
    const char *elements = reader->ring + reader->layout.data_offset_bytes +
                           reader->next % reader->layout.n_slots * reader->layout.slot_bytes;
    uint64_t stamp = 2 * reader->next + 2, nothing;
    _cleanup_free_ char *copy = malloc(CHUNK_BYTES);
    while (atomic_load_explicit(&slot->stamp, memory_order_acquire) < stamp) {
        say(reader, true);
        cr_assert(eq(long, recv(reader->socket, &nothing, sizeof(nothing), 0), sizeof(nothing)));
    }
    memcpy(copy, elements, CHUNK_BYTES);
    atomic_thread_fence(memory_order_acquire);
    bool is_whole = atomic_load_explicit(&slot->stamp, memory_order_relaxed) == stamp;
    unsigned chunk = (unsigned)(reader->next++ % N_CHUNKS);
    if (is_whole) {
        reader->n_seen[chunk]++;
        cr_assert(eq(int, copy[0], (char)(chunk + 1)));
        cr_assert(eq(int, memcmp(copy, copy + 1, CHUNK_BYTES - 1), 0));
    }
    reader->n_lost += !is_whole;
    say(reader, false);
}

static void *read_circle(void *argument)
{
    struct reader *reader = argument;
    for (unsigned i = 0; i < N_CHUNKS; i++)
        take(reader);
    return NULL;
}

static void part(struct reader *reader)
{
    scan_server_leave(reader->whole->server, reader->place);
    munmap((void *)reader->ring, reader->layout.size_bytes);
    close(reader->ring_fd);
    close(reader->socket);
}

static void end(struct whole *whole)
{
    scan_server_free(whole->server);
    close(whole->of.file_fd);
}

Test(scan_server, readers_at_once_each_get_a_circle)
{
    static struct reader readers[N_READERS];
    struct scan_numbers numbers;
    struct whole whole;
    make(&whole);
    for (unsigned i = 0; i < N_READERS; i++)
        join(&whole, &readers[i]);
    for (unsigned i = 0; i < N_READERS; i++)
        cr_assert(eq(int, pthread_create(&readers[i].thread, NULL, read_circle, &readers[i]), 0));
    for (unsigned i = 0; i < N_READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        for (unsigned k = 0; k < N_CHUNKS; k++)
            cr_assert(le(uint, readers[i].n_seen[k], 1));
    }
    scan_server_count(whole.server, &numbers);
    cr_assert(eq(u64, numbers.n_taken, N_READERS * N_CHUNKS));
    cr_assert(eq(u64, numbers.n_failed, 0));
    for (unsigned i = 0; i < N_READERS; i++)
        part(&readers[i]);
    end(&whole);
}

Test(scan_server, one_reader_loses_nothing_and_is_waited_for)
{
    struct scan_numbers numbers;
    struct reader reader;
    struct whole whole;
    make(&whole);
    join(&whole, &reader);
    read_circle(&reader);
    read_circle(&reader);
    for (unsigned k = 0; k < N_CHUNKS; k++)
        cr_assert(eq(uint, reader.n_seen[k], 2));
    cr_assert(eq(uint, reader.n_lost, 0));
    scan_server_count(whole.server, &numbers);
    cr_assert(le(u64, numbers.n_decoded, 2 * N_CHUNKS + reader.layout.n_slots));
    part(&reader);
    end(&whole);
}

Test(scan_server, has_so_many_places)
{
    struct whole whole;
    unsigned place;
    make(&whole);
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        cr_assert(eq(int, scan_server_join(whole.server, dup(0), &place), 0));
    cr_assert(eq(int, scan_server_join(whole.server, dup(0), &place), -ENOSPC));
    scan_server_leave(whole.server, 77);
    cr_assert(eq(int, scan_server_join(whole.server, dup(0), &place), 0));
    cr_assert(eq(uint, place, 77));
    end(&whole);
}

Test(scan_server, what_no_reader_sends)
{
    const struct scan_ack lie = {.done = 1u << 30};
    struct reader reader;
    struct whole whole;
    char large[100] = "";
    make(&whole);
    join(&whole, &reader);
    cr_assert(eq(int, scan_server_hear(whole.server, reader.place), 0)); /* it said nothing */
    cr_assert(eq(long, send(reader.socket, large, 3, 0), 3));
    cr_assert(eq(int, scan_server_hear(whole.server, reader.place), -EPROTO));
    cr_assert(eq(long, send(reader.socket, large, sizeof(large), 0), sizeof(large)));
    cr_assert(eq(int, scan_server_hear(whole.server, reader.place), -EPROTO));
    cr_assert(eq(long, send(reader.socket, &lie, sizeof(lie), 0), sizeof(lie)));
    cr_assert(eq(int, scan_server_hear(whole.server, reader.place), -EPROTO));
    shutdown(reader.socket, SHUT_WR);
    cr_assert(eq(int, scan_server_hear(whole.server, reader.place), -EPIPE));
    part(&reader);
    end(&whole);
}

/* What is shown by one who has not opened the file to read it, or is another one. */
Test(scan_server, who_has_not_opened_the_file_sees_nothing)
{
    const struct scan_show good = {SCAN_MAGIC, 0, 1}, later = {SCAN_MAGIC, 1, 1};
    struct whole whole;
    char path[64], byte;
    make(&whole);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", whole.of.file_fd);
    int other = memfd_create("other", MFD_CLOEXEC), pipes[2];
    int as_path = open(path, O_PATH | O_CLOEXEC), for_writing = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert(eq(int, pipe(pipes), 0));
    const struct {
        struct scan_show show;
        int fd;
    } cases[] = {{good, other},
                 {good, as_path},
                 {good, for_writing},
                 {good, pipes[0]},
                 {later, whole.of.file_fd},
                 {{SCAN_MAGIC, 0, 2}, whole.of.file_fd},
                 {{7, 0, 1}, whole.of.file_fd}};
    for (unsigned i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct reader reader = {.whole = &whole};
        int pair[2];
        cr_assert(eq(int, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0));
        reader.socket = pair[0];
        cr_assert(eq(int, scan_server_join(whole.server, pair[1], &reader.place), 0));
        show(&reader, cases[i].show, cases[i].fd);
        cr_assert(eq(int, scan_server_hear(whole.server, reader.place), -EPROTO), "case %u", i);
        cr_assert(eq(long, recv(pair[0], &byte, 1, MSG_DONTWAIT), -1));
        scan_server_leave(whole.server, reader.place);
        close(pair[0]);
    }
    close(other);
    close(as_path);
    close(for_writing);
    close(pipes[0]);
    close(pipes[1]);
    end(&whole);
}
