/* A reader of a shared scan.
 *
 * A circle is as many numbers as there are chunks, from wherever the scan is. Chunks that could not
 * be had are noted, and told of afterwards: those that were overwritten before or while they were
 * used, those that were never written or that the process could not decode (so that what is wrong
 * is found out by whom it concerns), and all that are left when the process is gone and no other is
 * to be had. So a circle always ends, and who reads the missing chunks by itself has the same bytes
 * as without a scan.
 *
 * Nothing that the process says is believed beyond its elements: the ring has the size that follows
 * from the description, is sealed against shrinking, and a number's place is computed here.
 *
 * Between circles nothing is read, and nobody waits for this reader for long; the next one begins
 * with what is there by then.
 *
 * Called by whoever fills windows of rows, in one thread at a time.
 */
#include "client/scan/scan_reader.h"
#include "client/clock.h"
#include "proto/util.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACKS_A_RING 8u
#define MAX_REJOINS 2u  /* in a circle: a chunk may be what kills processes */
#define LOOK_MS     100 /* how often is_cancelled is looked at while nothing comes */

struct scan_reader {
    const struct scan_description *description;
    struct scan_access access;
    pid_t process;
    int timeout_ms;
    int socket; /* -1: the process is gone */
    struct scan_layout layout;
    const char *ring; /* NULL: none */
    uint64_t next, told;
    uint8_t *is_missing;
};

/* Files ---------------------------------------------------------------------------------------- */

static int open_file(const struct scan_reader *reader, uint32_t file, int *ret_fd)
{
    struct scan_file found;
    struct stat st;
    _cleanup_fd_ int fd = reader->access.open(reader->access.state, file);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    scan_file_of(&st, &found);
    if (!scan_file_is_same(&found, &reader->description->files[file]))
        return -ESTALE;
    *ret_fd = steal_fd(&fd);
    return 0;
}

static int send_files(const struct scan_reader *reader, const struct scan_show *show,
                      const int *fds, int64_t deadline)
{
    struct pollfd ready = {.fd = reader->socket, .events = POLLOUT};
    ssize_t n;
    while ((n = packet_send(reader->socket, show, sizeof(*show), fds, show->n_files,
                            MSG_DONTWAIT)) < 0) {
        if (n != -EAGAIN && n != -ETOOMANYREFS)
            return (int)n;
        int left_ms = clock_left_ms(deadline);
        if (left_ms == 0)
            return -ETIMEDOUT;
        /* Where too many descriptors are on their way there is room, and nothing to wait for. */
        if (n == -ETOOMANYREFS)
            usleep(1000);
        else
            (void)poll(&ready, 1, left_ms);
    }
    return 0;
}

static int show_some(const struct scan_reader *reader, uint32_t first, int64_t deadline)
{
    struct scan_show show = {.magic = SCAN_MAGIC, .first = first};
    int fds[SCAN_FILES_AT_A_TIME], r = 0;
    uint32_t n = (uint32_t)min_u64(reader->description->n_files - first, SCAN_FILES_AT_A_TIME);
    while (show.n_files < n && r == 0) {
        r = open_file(reader, first + show.n_files, &fds[show.n_files]);
        show.n_files += r == 0;
    }
    if (r == 0)
        r = send_files(reader, &show, fds, deadline);
    for (uint32_t i = 0; i < show.n_files; i++)
        close(fds[i]);
    return r;
}

static int show_files(const struct scan_reader *reader, int64_t deadline)
{
    int r = 0;
    for (uint32_t i = 0; i < reader->description->n_files && r == 0; i += SCAN_FILES_AT_A_TIME)
        r = show_some(reader, i, deadline);
    return r;
}

/* Greeting ------------------------------------------------------------------------------------- */

static int receive_welcome(int fd, struct scan_welcome *ret, int *ret_ring_fd)
{
    unsigned n_fds;
    ssize_t n = packet_receive(fd, ret, sizeof(*ret), ret_ring_fd, 1, &n_fds, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 ? (int)n : -EPIPE;
    return n == sizeof(*ret) && n_fds == 1 && ret->magic == SCAN_MAGIC ? 0 : -EPROTO;
}

static int map_ring(struct scan_reader *reader, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || (uint64_t)st.st_size < reader->layout.size_bytes)
        return -EPROTO;
    void *ring = mmap(NULL, reader->layout.size_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return -errno;
    if (reader->ring)
        munmap((void *)reader->ring, reader->layout.size_bytes);
    reader->ring = ring;
    return 0;
}

static int be_greeted(struct scan_reader *reader)
{
    struct pollfd ready = {.fd = reader->socket, .events = POLLIN};
    struct scan_welcome welcome;
    _cleanup_fd_ int ring_fd = -1;
    int64_t deadline = clock_deadline_ms(reader->timeout_ms);
    int n, shown = show_files(reader, deadline);
    if (shown < 0)
        return shown;
    do
        n = poll(&ready, 1, clock_left_ms(deadline));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    int r = receive_welcome(reader->socket, &welcome, &ring_fd);
    if (r == 0)
        r = map_ring(reader, ring_fd);
    reader->next = reader->told = welcome.first;
    return r;
}

int scan_reader_new(int socket_take, const struct scan_description *description,
                    const struct scan_access *access, int timeout_ms,
                    struct scan_reader **ret_reader)
{
    _cleanup_fd_ int fd = socket_take;
    struct scan_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return -ENOMEM;
    reader->description = description;
    reader->access = *access;
    reader->process = getpid();
    reader->timeout_ms = timeout_ms;
    reader->socket = steal_fd(&fd);
    scan_layout(description->chunk_bytes, &reader->layout);
    reader->is_missing = malloc(description->n_chunks);
    int r = reader->is_missing ? be_greeted(reader) : -ENOMEM;
    if (r < 0) {
        scan_reader_free(reader);
        return r;
    }
    *ret_reader = reader;
    return 0;
}

/* Whether there is a process. */
static bool has_process(struct scan_reader *reader)
{
    if (reader->socket >= 0 || !reader->access.rejoin)
        return reader->socket >= 0;
    if (reader->access.rejoin(reader->access.state, &reader->socket) != 0)
        return false;
    if (be_greeted(reader) != 0)
        close_fd(&reader->socket);
    return reader->socket >= 0;
}

struct scan_reader *scan_reader_free(struct scan_reader *reader)
{
    if (!reader)
        return NULL;
    /* A child of fork() may have a copy, by which the scan would wait for nobody. */
    if (reader->socket >= 0 && reader->process == getpid())
        shutdown(reader->socket, SHUT_RDWR);
    close_fd(&reader->socket);
    if (reader->ring)
        munmap((void *)reader->ring, reader->layout.size_bytes);
    free(reader->is_missing);
    free(reader);
    return NULL;
}

/* From the ring -------------------------------------------------------------------------------- */

static const struct scan_slot *slot_of(const struct scan_reader *reader, uint64_t number)
{
    return (const struct scan_slot *)reader->ring + number % reader->layout.n_slots;
}

static uint64_t stamp_of(const struct scan_reader *reader, uint64_t number)
{
    return atomic_load_explicit(&slot_of(reader, number)->stamp, memory_order_acquire);
}

static void tell(struct scan_reader *reader, bool wants_more)
{
    const struct scan_ack ack = {.done = reader->next, .wants_more = wants_more};
    ssize_t n;
    do
        n = send(reader->socket, &ack, sizeof(ack), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    reader->told = reader->next;
    if (n < 0)
        close_fd(&reader->socket);
}

/* One packet, or a moment; the end of the process closes the socket. */
static void listen_once(struct scan_reader *reader)
{
    struct pollfd ready = {.fd = reader->socket, .events = POLLIN};
    uint64_t nothing;
    if (poll(&ready, 1, LOOK_MS) <= 0)
        return;
    ssize_t n = recv(reader->socket, &nothing, sizeof(nothing), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        close_fd(&reader->socket);
}

static bool is_over(const atomic_bool *is_cancelled)
{
    return is_cancelled && atomic_load_explicit(is_cancelled, memory_order_relaxed);
}

/* Until the number is there, was there, or the process is gone. False: cancelled. */
static bool await(struct scan_reader *reader, const atomic_bool *is_cancelled)
{
    uint64_t wanted = 2 * reader->next + 2;
    bool has_asked = false;
    while (stamp_of(reader, reader->next) < wanted && reader->socket >= 0) {
        if (is_over(is_cancelled))
            return false;
        if (!has_asked)
            tell(reader, true);
        has_asked = true;
        if (reader->socket >= 0)
            listen_once(reader);
    }
    return true;
}

/* The next number, used where it lies. Positive or negative: what `use` said. */
static int use_next(struct scan_reader *reader, scan_use_fn *use, void *state)
{
    uint64_t number = reader->next, stamp = 2 * number + 2;
    uint64_t index = number % reader->description->n_chunks;
    const char *elements = reader->ring + reader->layout.data_offset_bytes +
                           number % reader->layout.n_slots * reader->layout.slot_bytes;
    bool is_there =
        stamp_of(reader, number) == stamp && slot_of(reader, number)->status == SCAN_THERE;
    int r = is_there && reader->is_missing[index] ? use(state, index, elements) : 0;
    atomic_thread_fence(memory_order_acquire);
    if (is_there && stamp_of(reader, number) == stamp)
        reader->is_missing[index] = 0;
    reader->next++;
    if (reader->next - reader->told >= reader->layout.n_slots / ACKS_A_RING && reader->socket >= 0)
        tell(reader, false);
    return r;
}

/* Who has missed what comes next begins where the newer half of the ring does: what is older is
 * overwritten before long. */
static void catch_up(struct scan_reader *reader)
{
    uint64_t n_begun = 0;
    for (uint64_t i = 0; i < reader->layout.n_slots; i++)
        n_begun = max_u64(n_begun, (stamp_of(reader, i) + 1) / 2);
    if (n_begun > reader->next + reader->layout.n_slots)
        reader->next = n_begun - reader->layout.n_slots / 2;
}

/* Circles -------------------------------------------------------------------------------------- */

static bool is_complete(const struct scan_reader *reader)
{
    return memchr(reader->is_missing, 1, reader->description->n_chunks) == NULL;
}

/* As many numbers as there are chunks, or until the process is gone. */
static int take_numbers(struct scan_reader *reader, scan_use_fn *use, void *state,
                        const atomic_bool *is_cancelled)
{
    int r = 0;
    catch_up(reader);
    for (uint64_t i = 0; i < reader->description->n_chunks && r == 0 && reader->socket >= 0; i++)
        r = await(reader, is_cancelled) ? use_next(reader, use, state) : -ECANCELED;
    if (reader->socket >= 0)
        tell(reader, false);
    return r;
}

int scan_reader_circle(struct scan_reader *reader, scan_use_fn *use, void *state,
                       const atomic_bool *is_cancelled, struct scan_circle *ret_circle)
{
    uint64_t n_chunks = reader->description->n_chunks;
    int r = 0;
    *ret_circle = (struct scan_circle){0};
    memset(reader->is_missing, 1, n_chunks);
    for (unsigned i = 0; i <= MAX_REJOINS && r == 0 && has_process(reader); i++) {
        r = take_numbers(reader, use, state, is_cancelled);
        if (reader->socket >= 0 || is_complete(reader))
            break;
    }
    for (uint64_t i = 0; i < n_chunks && r == 0; i++) {
        if (!reader->is_missing[i]) {
            ret_circle->n_shared++;
            continue;
        }
        ret_circle->n_own++;
        r = is_over(is_cancelled) ? -ECANCELED : use(state, i, NULL);
    }
    return r;
}
