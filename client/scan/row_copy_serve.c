/* gpuarrayd-scan copy: rows of files into shared memory, for one loader.
 *
 * Its threads wait for packets on one socket, of which the kernel gives each to one of them, and
 * take pieces of the list until there are none. Whoever has copied the last row says so. Nothing is
 * locked: the list's numbers are all that threads have in common.
 *
 * The main thread waits for the end of who has started it. The end of the socket would do, but for
 * children of that program that have a copy of its descriptors.
 *
 * What the list says is checked against the sizes that were told in the beginning. A file that has
 * become shorter than that ends the process (SIGBUS), by which the starter learns that it has to
 * read by itself. The same is true of everything else that goes wrong.
 *
 * Rows lie anywhere, so the processor cannot guess where the next one is, and each would begin with
 * a wait for memory: a row that comes AHEAD_BYTES later is asked for while one is copied. Rows that
 * are longer than that are their own reading ahead. Stores that go around the caches have been
 * measured to be slower.
 */
#include "client/scan/row_copy_serve.h"
#include "client/scan/row_copy.h"
#include "client/scan/scan_confine.h"
#include "proto/util.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define SOCKET_FD   3
#define DATA_BYTES  (UINT64_C(192) << 20) /* stacks of threads, and what the C library has */
#define STACK_BYTES (256 * 1024)
#define AHEAD_BYTES 8192u
#define AHEAD_ROWS  32u
#define LINE_BYTES  64u
#define LONG_BYTES  512u
#define PART_BYTES  256u
#define N_OWN_FDS   2u /* the list's and the target's come before those of the files */

struct copier {
    struct row_copy_begin begin;
    struct row_copy_list *list;
    char *target;
    const char *files[ROW_COPY_MAX_FILES];
    int starter_fd;
};

/* Nothing but the end of the process helps: the starter reads by itself then. */
static void give_up(const char *what, int error_number)
{
    fprintf(stderr, "<3>%s: %s: %s\n", program_invocation_short_name, what,
            strerrordesc_np(error_number));
    _exit(1);
}

static void say(uint64_t turn)
{
    const struct row_copy_word word = {.turn = turn};
    if (send(SOCKET_FD, &word, sizeof(word), MSG_NOSIGNAL) != sizeof(word))
        _exit(0); /* nobody is there any more */
}

/* Copying -------------------------------------------------------------------------------------- */

/* False: there is nothing left of this turn. */
static bool take_piece(struct row_copy_list *list, const struct row_copy_order *order,
                       uint64_t *ret_from, uint64_t *ret_to)
{
    uint64_t next = atomic_load(&list->next), from, to;
    do {
        from = next % ROW_COPY_MAX_ROWS;
        if (next >> ROW_COPY_TURN_SHIFT != order->turn || from >= order->n_rows)
            return false;
        to = min_u64(from + order->piece_rows, order->n_rows);
    } while (!atomic_compare_exchange_weak(&list->next, &next, next - from + to));
    *ret_from = from;
    *ret_to = to;
    return true;
}

/* ahead: a later row, which is asked for meanwhile; NULL: none. A short one has few lines: they are
 * asked for at once, into the nearest cache. Those of a longer one would be more than the processor
 * waits for at a time, and hold up the copying: a few between the parts of this row, to the second
 * cache. */
static void copy_row(char *to, const char *from, uint64_t n_bytes, const char *ahead)
{
    uint64_t i = 0;
    if (ahead && n_bytes < LONG_BYTES)
        for (uint64_t k = 0; k < n_bytes; k += LINE_BYTES)
            __builtin_prefetch(ahead + k);
    for (; ahead && n_bytes >= LONG_BYTES && i + PART_BYTES <= n_bytes; i += PART_BYTES) {
        for (uint64_t k = i; k < i + PART_BYTES; k += LINE_BYTES)
            __builtin_prefetch(ahead + k, 0, 2);
        memcpy(to + i, from + i, PART_BYTES);
    }
    if (i > 0)
        __builtin_prefetch(ahead + n_bytes - 1, 0, 2);
    memcpy(to + i, from + i, n_bytes - i);
}

static void copy_piece(const struct copier *copier, const struct row_copy_order *order,
                       uint64_t from, uint64_t to)
{
    const char *file = copier->files[order->file];
    uint64_t n_ahead = min_u64(AHEAD_BYTES / order->row_bytes, AHEAD_ROWS);
    uint64_t last_from = copier->begin.file_bytes[order->file] - order->row_bytes;
    uint64_t last_to = copier->begin.target_bytes - order->row_bytes;
    for (uint64_t i = from; i < to; i++) {
        const struct row_copy_row row = copier->list->rows[i];
        const char *ahead = NULL;
        if (row.from > last_from || row.to > last_to)
            give_up("a row lies outside of its file or target", EPROTO);
        if (n_ahead > 0 && i + n_ahead < order->n_rows)
            ahead = file + copier->list->rows[i + n_ahead].from;
        copy_row(copier->target + row.to, file + row.from, order->row_bytes, ahead);
    }
}

static void check_order(const struct copier *copier, const struct row_copy_order *order)
{
    uint64_t room = copier->begin.list_bytes - sizeof(struct row_copy_list);
    if (order->file >= copier->begin.n_files || order->piece_rows == 0 || order->row_bytes == 0 ||
        order->n_rows > room / sizeof(struct row_copy_row) ||
        order->row_bytes > copier->begin.target_bytes ||
        order->row_bytes > copier->begin.file_bytes[order->file])
        give_up("an order", EPROTO);
}

static void *run(void *userdata)
{
    const struct copier *copier = userdata;
    struct row_copy_order order;
    uint64_t from, to;
    for (;;) {
        ssize_t n = recv(SOCKET_FD, &order, sizeof(order), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof(order))
            _exit(0);
        check_order(copier, &order);
        while (take_piece(copier->list, &order, &from, &to)) {
            copy_piece(copier, &order, from, to);
            if (atomic_fetch_add(&copier->list->done, to - from) + to - from == order.n_rows)
                say(order.turn);
        }
    }
    return NULL;
}

/* Setting up ----------------------------------------------------------------------------------- */

static int receive_begin(struct row_copy_begin *ret_begin, int *ret_fds)
{
    unsigned n_fds;
    ssize_t n = packet_receive(SOCKET_FD, ret_begin, sizeof(*ret_begin), ret_fds,
                               N_OWN_FDS + ROW_COPY_MAX_FILES, &n_fds, 0);
    return n == sizeof(*ret_begin) && ret_begin->magic == ROW_COPY_MAGIC &&
                   ret_begin->n_files <= ROW_COPY_MAX_FILES &&
                   n_fds == N_OWN_FDS + ret_begin->n_files && ret_begin->n_threads > 0 &&
                   ret_begin->n_threads <= ROW_COPY_MAX_THREADS &&
                   ret_begin->list_bytes >= sizeof(struct row_copy_list)
               ? 0
               : -EPROTO;
}

static int map(int fd_take, uint64_t n_bytes, int protection, void *ret_map)
{
    void *mapped = mmap(NULL, n_bytes, protection, MAP_SHARED, fd_take, 0);
    close(fd_take);
    if (mapped == MAP_FAILED)
        return -errno;
    memcpy(ret_map, &mapped, sizeof(mapped));
    return 0;
}

static int map_all(struct copier *copier)
{
    const struct row_copy_begin *begin = &copier->begin;
    int fds[N_OWN_FDS + ROW_COPY_MAX_FILES];
    int r = receive_begin(&copier->begin, fds);
    if (r == 0)
        r = map(fds[0], begin->list_bytes, PROT_READ | PROT_WRITE, &copier->list);
    if (r == 0)
        r = map(fds[1], begin->target_bytes, PROT_READ | PROT_WRITE, &copier->target);
    for (uint32_t i = 0; i < begin->n_files && r == 0; i++) {
        r = map(fds[N_OWN_FDS + i], begin->file_bytes[i], PROT_READ, &copier->files[i]);
        if (r == 0) /* what is not in memory after all: no more of it than is wanted */
            (void)madvise((void *)copier->files[i], begin->file_bytes[i], MADV_RANDOM);
    }
    return r;
}

static int find_starter(struct copier *copier)
{
    struct ucred starter;
    socklen_t n_bytes = sizeof(starter);
    if (getsockopt(SOCKET_FD, SOL_SOCKET, SO_PEERCRED, &starter, &n_bytes) < 0)
        return -errno;
    copier->starter_fd = (int)syscall(SYS_pidfd_open, starter.pid, 0);
    return copier->starter_fd < 0 ? -errno : 0;
}

static int start_threads(struct copier *copier)
{
    pthread_attr_t attributes;
    int r = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint32_t i = 0; i < copier->begin.n_threads && r == 0; i++) {
        pthread_t thread;
        r = -pthread_create(&thread, &attributes, run, copier);
    }
    pthread_attr_destroy(&attributes);
    return r;
}

static void give_up_rights(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)setrlimit(RLIMIT_DATA, &(struct rlimit){DATA_BYTES, DATA_BYTES});
#endif
    int r = scan_confine(NULL);
    if (r)
        give_up("system calls", -r);
}

static void on_bus(int number)
{
    (void)number;
    _exit(1); /* quietly: a file that was cut is nothing to keep a core of */
}

int row_copy_serve(void)
{
    static struct copier copier;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGBUS, on_bus);
    int r = find_starter(&copier);
    if (r == 0)
        r = map_all(&copier);
    if (r == 0)
        r = start_threads(&copier);
    if (r)
        give_up("start", -r);
    give_up_rights();
    say(0);
    struct pollfd starter = {.fd = copier.starter_fd, .events = POLLIN};
    while (poll(&starter, 1, -1) < 0 && errno == EINTR)
        ;
    _exit(0);
}
