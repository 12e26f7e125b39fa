/* A shared scan's ring and threads, and its files.
 *
 * Nobody is told anything, and nothing is decoded for anybody, before all files were shown: by a
 * descriptor each that can be read from and is of the very file that the description says (device,
 * inode, size, times). The first one that is shown is kept. So who sees what is in them has opened
 * them, and who does not find them as the others did has a scan of its own. Whatever else is shown
 * is closed by a thread that may wait for ever: a file system of somebody's is asked then.
 *
 *     thread:  claim a number --> stamp 2n + 1 --> decode into the slot --> stamp 2n + 2 --> tell
 *     main:    a reader's packet --> its place in the flow --> threads may go on
 *
 * The lock covers the flow alone; decoding is done outside of it. Only this process can write the
 * ring: it is sealed against other writable mappings once ours is there (F_SEAL_FUTURE_WRITE), and
 * against punching holes. Nothing is read from it.
 *
 * Parts of streams are decoded one after the other: who claims one gets a turn with it.
 *
 * Sockets are never waited for: a reader that does not take what it is told has asked for it in
 * vain. Everything that a reader sends is one packet of a fixed size; descriptors that come with
 * one that needs none are dropped by the kernel.
 *
 * Called by scan_main.c.
 */
#include "client/scan/scan_server.h"
#include "client/scan/scan_flow.h"
#include "client/clock.h"
#include "proto/util.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PACKETS_A_TURN 8u
#define NO_TURN        UINT64_MAX
#define MAX_CLOSING    1024u

/* Descriptors that only their thread touches any more. */
struct closing {
    pthread_t thread;
    bool is_there; /* the thread */
    pthread_cond_t changed;
    int fds[MAX_CLOSING];
    unsigned n_fds;
};

struct scan_server {
    const struct scan_description *description;
    uint32_t n_files;
    int *files; /* -1: nobody has shown it */
    int ring_fd;
    struct scan_layout layout;
    char *ring;
    unsigned n_threads;
    pthread_t *threads;
    struct scan_tools *tools;  /* of the threads */
    struct scan_stream stream; /* of whose turn it is */
    pthread_mutex_t lock;      /* of what follows */
    pthread_cond_t changed;
    bool is_ending;
    struct scan_flow flow;
    uint64_t next_turn, turn;
    int sockets[SCAN_MAX_READERS];
    uint32_t n_shown[SCAN_MAX_READERS]; /* files */
    struct scan_numbers numbers;
    struct closing closing;
};

/* Threads -------------------------------------------------------------------------------------- */

static void wait_until(struct scan_server *server, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    if (until_ns == SCAN_NEVER_NS)
        pthread_cond_wait(&server->changed, &server->lock);
    else
        pthread_cond_timedwait(&server->changed, &server->lock, &until);
}

/* False: the end. */
static bool claim(struct scan_server *server, uint64_t *ret_number, uint64_t *ret_turn)
{
    const struct scan_description *description = server->description;
    uint64_t until_ns;
    pthread_mutex_lock(&server->lock);
    while (!server->is_ending &&
           !scan_flow_claim(&server->flow, (uint64_t)clock_now_ns(), ret_number, &until_ns))
        wait_until(server, until_ns);
    bool has_one = !server->is_ending;
    *ret_turn = has_one && scan_goes_on(description, *ret_number % description->n_chunks)
                    ? server->next_turn++
                    : NO_TURN;
    pthread_mutex_unlock(&server->lock);
    return has_one;
}

/* Those before have been claimed, so they come to their end. */
static void await_turn(struct scan_server *server, uint64_t turn)
{
    pthread_mutex_lock(&server->lock);
    while (turn != NO_TURN && server->turn != turn)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static void tell(const struct scan_server *server, unsigned place)
{
    const uint64_t nothing = 0;
    (void)!send(server->sockets[place], &nothing, sizeof(nothing), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A reader may say that it is done with a number as soon as it sees the stamp, so the flow knows
 * of it by then. */
static void publish(struct scan_server *server, struct scan_slot *slot, uint64_t number,
                    uint64_t turn, enum scan_status status)
{
    pthread_mutex_lock(&server->lock);
    server->turn += turn != NO_TURN;
    atomic_store_explicit(&slot->stamp, 2 * number + 2, memory_order_release);
    server->numbers.n_decoded += status == SCAN_THERE;
    server->numbers.n_failed += status == SCAN_FAILED;
    scan_flow_publish(&server->flow, number);
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        if (scan_flow_take_wish(&server->flow, i))
            tell(server, i);
    pthread_cond_broadcast(&server->changed); /* a thread may have waited for this very slot */
    pthread_mutex_unlock(&server->lock);
}

static void decode(struct scan_server *server, struct scan_tools *tools, uint64_t number,
                   uint64_t turn)
{
    const struct scan_layout *layout = &server->layout;
    uint32_t place = (uint32_t)(number % layout->n_slots);
    struct scan_slot *slot = (struct scan_slot *)server->ring + place;
    char *elements = server->ring + layout->data_offset_bytes + place * layout->slot_bytes;
    int fault;
    atomic_store_explicit(&slot->stamp, 2 * number + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    await_turn(server, turn);
    enum scan_status status =
        scan_decode(server->description, server->files, number % server->description->n_chunks,
                    tools, &server->stream, elements, &fault);
    slot->status = status;
    publish(server, slot, number, turn, status);
}

static void *close_all(void *argument)
{
    struct scan_server *server = argument;
    struct closing *closing = &server->closing;
    pthread_mutex_lock(&server->lock);
    for (;;) {
        while (closing->n_fds == 0 && !server->is_ending)
            pthread_cond_wait(&closing->changed, &server->lock);
        if (closing->n_fds == 0)
            break;
        int fd = closing->fds[--closing->n_fds];
        pthread_mutex_unlock(&server->lock);
        close(fd);
        pthread_mutex_lock(&server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* Where the thread waits for so many already, it stays open: then descriptors run out, and who
 * shows files that are not here yet reads by itself. */
static void close_later(struct scan_server *server, int fd)
{
    struct closing *closing = &server->closing;
    pthread_mutex_lock(&server->lock);
    if (closing->n_fds < MAX_CLOSING)
        closing->fds[closing->n_fds++] = fd;
    pthread_cond_signal(&closing->changed);
    pthread_mutex_unlock(&server->lock);
}

struct start {
    struct scan_server *server;
    struct scan_tools *tools;
};

static void *run(void *argument)
{
    struct start start = *(struct start *)argument;
    uint64_t number, turn;
    free(argument);
    while (claim(start.server, &number, &turn))
        decode(start.server, start.tools, number, turn);
    return NULL;
}

static int start_thread(struct scan_server *server)
{
    unsigned i = server->n_threads;
    struct start *start = malloc(sizeof(*start));
    if (!start)
        return -ENOMEM;
    *start = (struct start){server, &server->tools[i]};
    int r = scan_tools_init(start->tools);
    if (r == 0)
        r = -pthread_create(&server->threads[i], NULL, run, start);
    if (r) {
        scan_tools_deinit(&server->tools[i]);
        free(start);
        return r;
    }
    server->n_threads++;
    return 0;
}

/* Making and ending ---------------------------------------------------------------------------- */

static int make_ring(struct scan_server *server)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    size_t n_bytes = server->layout.size_bytes;
    server->ring_fd = memfd_create("gpuarrayd-scan-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (server->ring_fd < 0 || ftruncate(server->ring_fd, (off_t)n_bytes) < 0)
        return -errno;
    void *ring = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, server->ring_fd, 0);
    if (ring == MAP_FAILED)
        return -errno;
    server->ring = ring;
    return fcntl(server->ring_fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

static void init_lock(struct scan_server *server)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&server->closing.changed, NULL);
}

int scan_server_new(const struct scan_head *head, const struct scan_description *description,
                    unsigned n_threads, struct scan_server **ret_server)
{
    struct scan_server *server = calloc(1, sizeof(*server));
    if (!server)
        return -ENOMEM;
    server->description = description;
    server->ring_fd = -1;
    scan_layout(head->chunk_bytes, &server->layout);
    init_lock(server);
    scan_flow_init(&server->flow, server->layout.n_slots, head->n_chunks);
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        server->sockets[i] = -1;
    server->threads = calloc(n_threads, sizeof(*server->threads));
    server->tools = calloc(n_threads, sizeof(*server->tools));
    server->files = malloc(head->n_files * sizeof(*server->files));
    for (; server->files && server->n_files < head->n_files; server->n_files++)
        server->files[server->n_files] = -1;
    int r = server->threads && server->tools && server->files ? make_ring(server) : -ENOMEM;
    for (unsigned i = 0; i < n_threads && r == 0; i++)
        r = start_thread(server);
    if (r == 0)
        r = -pthread_create(&server->closing.thread, NULL, close_all, server);
    server->closing.is_there = r == 0;
    if (r) {
        scan_server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

struct scan_server *scan_server_free(struct scan_server *server)
{
    if (!server)
        return NULL;
    pthread_mutex_lock(&server->lock);
    server->is_ending = true;
    pthread_cond_broadcast(&server->changed);
    pthread_cond_signal(&server->closing.changed);
    pthread_mutex_unlock(&server->lock);
    if (server->closing.is_there)
        pthread_join(server->closing.thread, NULL);
    for (unsigned i = 0; i < server->n_threads; i++) {
        pthread_join(server->threads[i], NULL);
        scan_tools_deinit(&server->tools[i]);
    }
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        close_fd(&server->sockets[i]);
    for (uint32_t i = 0; i < server->n_files; i++)
        close_fd(&server->files[i]);
    scan_stream_deinit(&server->stream);
    if (server->ring)
        munmap(server->ring, server->layout.size_bytes);
    close_fd(&server->ring_fd);
    pthread_cond_destroy(&server->changed);
    pthread_cond_destroy(&server->closing.changed);
    pthread_mutex_destroy(&server->lock);
    free(server->threads);
    free(server->tools);
    free(server->files);
    free(server);
    return NULL;
}

/* Readers -------------------------------------------------------------------------------------- */

static int greet(int fd, uint64_t first, int ring_fd)
{
    const struct scan_welcome welcome = {.magic = SCAN_MAGIC, .first = first};
    ssize_t n = packet_send(fd, &welcome, sizeof(welcome), &ring_fd, 1, MSG_DONTWAIT);
    return n == sizeof(welcome) ? 0 : n < 0 ? (int)n : -EPROTO;
}

int scan_server_join(struct scan_server *server, int socket_take, unsigned *ret_place)
{
    _cleanup_fd_ int fd = socket_take;
    unsigned place = 0;
    while (place < SCAN_MAX_READERS && server->sockets[place] >= 0)
        place++;
    if (place == SCAN_MAX_READERS)
        return -ENOSPC;
    server->sockets[place] = steal_fd(&fd);
    server->n_shown[place] = 0;
    *ret_place = place;
    return 0;
}

void scan_server_leave(struct scan_server *server, unsigned place)
{
    pthread_mutex_lock(&server->lock);
    scan_flow_leave(&server->flow, place);
    close_fd(&server->sockets[place]);
    pthread_cond_broadcast(&server->changed); /* who waited for it goes on */
    pthread_mutex_unlock(&server->lock);
}

int scan_server_socket(const struct scan_server *server, unsigned place)
{
    return server->sockets[place];
}

static int hear_packet(struct scan_server *server, unsigned place, const struct scan_ack *ack)
{
    pthread_mutex_lock(&server->lock);
    int r = scan_flow_ack(&server->flow, place, ack, (uint64_t)clock_now_ns());
    if (r == 0 && scan_flow_take_wish(&server->flow, place))
        tell(server, place);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return r;
}

/* Files ---------------------------------------------------------------------------------------- */

const char scan_server_no_path[1] = "";

static int64_t nanoseconds(const struct statx_timestamp *time)
{
    return (int64_t)((uint64_t)time->tv_sec * 1000000000 + time->tv_nsec);
}

/* Answered from what the kernel knows already: behind a descriptor may be a process of somebody's
 * that never answers, and all who read here would wait. Who shows a file has just looked at it. */
static int check_file(int fd, const struct scan_file *file)
{
    struct statx st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || statx(fd, scan_server_no_path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                           STATX_BASIC_STATS, &st) < 0)
        return -errno;
    const struct scan_file found = {.device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
                                    .inode = st.stx_ino,
                                    .size_bytes = st.stx_size,
                                    .modified_ns = nanoseconds(&st.stx_mtime),
                                    .changed_ns = nanoseconds(&st.stx_ctime)};
    return S_ISREG(st.stx_mode) && !(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY &&
                   scan_file_is_same(&found, file)
               ? 0
               : -EPROTO;
}

/* Takes those that nobody else has shown; the others stay the caller's. */
static int take_files(struct scan_server *server, unsigned place, const struct scan_show *show,
                      int *fds, unsigned n_fds)
{
    const struct scan_description *description = server->description;
    if (show->magic != SCAN_MAGIC || show->n_files != n_fds || n_fds == 0 ||
        show->first != server->n_shown[place] || show->n_files > description->n_files - show->first)
        return -EPROTO;
    for (uint32_t i = 0; i < n_fds; i++) {
        int r = check_file(fds[i], &description->files[show->first + i]);
        if (r)
            return r;
        if (server->files[show->first + i] < 0)
            server->files[show->first + i] = steal_fd(&fds[i]);
    }
    server->n_shown[place] += n_fds;
    return 0;
}

static int let_in(struct scan_server *server, unsigned place)
{
    pthread_mutex_lock(&server->lock);
    int r = greet(server->sockets[place],
                  scan_flow_join(&server->flow, place, (uint64_t)clock_now_ns()), server->ring_fd);
    if (r < 0)
        scan_flow_leave(&server->flow, place);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return r;
}

static int hear_show(struct scan_server *server, unsigned place)
{
    struct scan_show show;
    int fds[SCAN_FILES_AT_A_TIME];
    unsigned n_fds;
    ssize_t n = packet_receive(server->sockets[place], &show, sizeof(show), fds,
                               SCAN_FILES_AT_A_TIME, &n_fds, MSG_DONTWAIT);
    int r = n == sizeof(show) ? take_files(server, place, &show, fds, n_fds)
            : n == 0          ? -EPIPE
            : n == -EAGAIN    ? -EAGAIN
                              : -EPROTO;
    for (unsigned i = 0; i < n_fds; i++)
        if (fds[i] >= 0)
            close_later(server, fds[i]);
    if (r == 0 && server->n_shown[place] == server->n_files)
        r = let_in(server, place);
    return r;
}

static int hear_ack(struct scan_server *server, unsigned place)
{
    struct scan_ack ack;
    ssize_t n = recv(server->sockets[place], &ack, sizeof(ack), MSG_DONTWAIT | MSG_TRUNC);
    if (n <= 0)
        return n == 0 ? -EPIPE : -errno;
    return n == sizeof(ack) ? hear_packet(server, place, &ack) : -EPROTO;
}

int scan_server_hear(struct scan_server *server, unsigned place)
{
    int r = 0;
    for (unsigned i = 0; i < PACKETS_A_TURN && r == 0; i++)
        r = server->n_shown[place] < server->n_files ? hear_show(server, place)
                                                     : hear_ack(server, place);
    return r == -EAGAIN || r == -EINTR ? 0 : r;
}

void scan_server_count(struct scan_server *server, struct scan_numbers *ret)
{
    pthread_mutex_lock(&server->lock);
    *ret = server->numbers;
    ret->n_taken = server->flow.n_taken;
    pthread_mutex_unlock(&server->lock);
}
