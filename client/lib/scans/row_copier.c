/* The starter of a process that copies rows (client/scan/row_copy.h).
 *
 * Reading a row with pread() costs about as much as copying it twice, so rows that are in the page
 * cache are better copied from a mapping. This library must not map files: whoever cuts one would
 * kill the program. The process may be killed: then nobody copies any more, and what was wanted is
 * read as if there had never been a process, which finds out what is wrong and with which rows.
 *
 * Rows that are not in memory would be waited for one after the other, with as many in hand as the
 * process has threads. So some of the wanted rows are asked for first, in a way that does not wait;
 * where one of them is missing the source reads all of them, several at a time.
 *
 * The process is nobody's child (spawn.h), runs as the user, and ends with this one. A child of
 * fork() that frees its copy of a loader leaves the process alone.
 *
 * Called by gather(), in one thread at a time.
 */
#include "client/lib/scans/row_copier.h"
#include "client/clock.h"
#include "client/lib/connection/spawn.h"
#include "client/lib/memory/region.h"
#include "client/rows/gather.h"
#include "client/scan/row_copy.h"
#include "proto/system/beside.h"
#include "proto/util.h"
#include "proto/packet.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SCAN_NAME        "gpuarrayd-scan"
#define LIST_ROWS        (UINT64_C(1) << 17)
#define LIST_BYTES       (sizeof(struct row_copy_list) + LIST_ROWS * sizeof(struct row_copy_row))
#define LEAST_BYTES      (UINT64_C(256) << 10) /* less is read in the time of asking for it */
#define PIECE_BYTES      (UINT64_C(128) << 10)
#define N_SAMPLES        16u
#define N_SAMPLES_IN_USE 4u /* each waits for memory while nothing is copied */
#define START_MS         10000
#define MAX_TURN         (UINT64_C(1) << 24)
#define N_OWN_FDS        2u

enum copier_state { COPIER_NOT_STARTED, COPIER_RUNS, COPIER_IS_GONE };

struct copied_file {
    struct row_copier *copier;
    const struct row_source *source;
};

struct row_copier {
    struct copied_memory target;
    struct copied_file files[ROW_COPY_MAX_FILES];
    uint32_t n_files, n_threads;
    enum copier_state state;
    int socket, list_fd;
    struct row_copy_list *list;
    uint64_t turn;
    atomic_bool is_in_use;
};

/* Starting ------------------------------------------------------------------------------------- */

/* Where the array ends in its file. */
static uint64_t end_of(const struct row_source *source)
{
    const struct gad_array *array = source->array;
    return array->offset_bytes + (uint64_t)((source->n_rows - 1) * array->info.strides[0]) +
           source->row_bytes;
}

static int send_begin(const struct row_copier *copier)
{
    struct row_copy_begin begin = {.magic = ROW_COPY_MAGIC,
                                   .list_bytes = LIST_BYTES,
                                   .target_bytes = copier->target.size_bytes,
                                   .n_threads = copier->n_threads,
                                   .n_files = copier->n_files};
    int fds[N_OWN_FDS + ROW_COPY_MAX_FILES] = {copier->list_fd, copier->target.fd};
    for (uint32_t i = 0; i < copier->n_files; i++) {
        begin.file_bytes[i] = end_of(copier->files[i].source);
        fds[N_OWN_FDS + i] = copier->files[i].source->array->fd;
    }
    ssize_t n =
        packet_send(copier->socket, &begin, sizeof(begin), fds, N_OWN_FDS + copier->n_files, 0);
    return n == sizeof(begin) ? 0 : n < 0 ? (int)-n : EPROTO;
}

/* False: the process is gone, or says something else. */
static bool hear(const struct row_copier *copier, uint64_t turn, int timeout_ms)
{
    struct row_copy_word word;
    int64_t deadline = clock_deadline_ms(timeout_ms);
    struct pollfd ready = {.fd = copier->socket, .events = POLLIN};
    int n;
    do
        n = poll(&ready, 1, clock_left_ms(deadline));
    while (n < 0 && errno == EINTR);
    return n == 1 && recv(copier->socket, &word, sizeof(word), 0) == sizeof(word) &&
           word.turn == turn;
}

static bool start(struct row_copier *copier)
{
    char path[PATH_MAX];
    char *const argv[] = {path, (char *)ROW_COPY_WORD, NULL};
    struct gad_error error;
    void *list;
    int pair[2];
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    copier->n_threads = (uint32_t)min_i64(max_i64(n, 1), ROW_COPY_MAX_THREADS);
    if (!beside_find(SCAN_NAME, GAD_LIBEXECDIR "/gpuarrayd/" SCAN_NAME, path, sizeof(path)) ||
        region_map_memfd("gpuarrayd-rows", LIST_BYTES, &copier->list_fd, &list, &error))
        return false;
    copier->list = list;
    _cleanup_fd_ int log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (log < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    copier->socket = pair[0];
    int r = spawn_detached(argv, log, pair[1]);
    close(pair[1]);
    return r == 0 && send_begin(copier) == 0 && hear(copier, 0, START_MS);
}

/* Copying -------------------------------------------------------------------------------------- */

static uint64_t offset_of(const struct row_source *source, int64_t row)
{
    return source->array->offset_bytes + (uint64_t)(row * source->array->info.strides[0]);
}

static bool is_row_in_memory(const struct row_source *source, int64_t row)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    return preadv2(source->array->fd, &part, 1, (off_t)offset_of(source, row), RWF_NOWAIT) == 1;
}

/* Whether n of the rows, all over the wanted ones, are in the page cache. */
static bool are_in_memory(const struct row_source *source, const struct row_order *order,
                          uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!is_row_in_memory(source, order->wanted[i * (order->n - 1) / (n - 1)].row))
            return false;
    return true;
}

/* The n wanted rows whose places are first and those behind it, as a list in the order of places:
 * stores that go on where the last one ended are worth more than rows that are read as they lie,
 * which are far from each other all the same. False: one of them goes elsewhere. */
static bool write_list(struct row_copier *copier, const struct row_source *source,
                       const struct row_order *order, const struct row_target *target,
                       uint64_t first, uint64_t n)
{
    uint64_t last = copier->target.size_bytes - source->row_bytes;
    for (uint64_t i = 0; i < order->n; i++) {
        uint64_t at = order->wanted[i].place - first;
        if (at >= n) /* of another list */
            continue;
        const char *place = row_target_place(target, order->wanted[i].place);
        uint64_t offset = (uint64_t)((uintptr_t)place - (uintptr_t)copier->target.map);
        if (offset > last)
            return false;
        copier->list->rows[at] =
            (struct row_copy_row){offset_of(source, order->wanted[i].row), offset};
    }
    return true;
}

static bool have_copied(struct row_copier *copier, uint32_t file, uint64_t n_rows,
                        const struct gather_options *meanwhile)
{
    size_t row_bytes = copier->files[file].source->row_bytes;
    uint64_t piece_rows = max_u64(PIECE_BYTES / row_bytes, 1);
    uint64_t n_pieces = (n_rows - 1) / piece_rows + 1;
    copier->turn = copier->turn % (MAX_TURN - 1) + 1;
    const struct row_copy_order order = {.turn = copier->turn,
                                         .n_rows = n_rows,
                                         .row_bytes = row_bytes,
                                         .piece_rows = piece_rows,
                                         .file = file};
    atomic_store(&copier->list->done, 0);
    atomic_store(&copier->list->next, copier->turn << ROW_COPY_TURN_SHIFT);
    for (uint64_t i = 0; i < min_u64(copier->n_threads, n_pieces); i++)
        if (send(copier->socket, &order, sizeof(order), MSG_NOSIGNAL) != sizeof(order))
            return false;
    if (meanwhile && meanwhile->meanwhile)
        meanwhile->meanwhile(meanwhile->meanwhile_state);
    return hear(copier, copier->turn, -1);
}

static bool copy(struct row_copier *copier, uint32_t file, const struct row_order *order,
                 const struct row_target *target, const struct gather_options *options)
{
    const struct row_source *source = copier->files[file].source;
    if (copier->state == COPIER_NOT_STARTED)
        copier->state = start(copier) ? COPIER_RUNS : COPIER_IS_GONE;
    for (uint64_t first = 0; first < order->n && copier->state == COPIER_RUNS; first += LIST_ROWS) {
        uint64_t n = min_u64(order->n - first, LIST_ROWS);
        if (!write_list(copier, source, order, target, first, n))
            return false;
        if (!have_copied(copier, file, n, first == 0 ? options : NULL))
            copier->state = COPIER_IS_GONE;
    }
    return copier->state == COPIER_RUNS;
}

static int bring(void *state, struct row_source *source, const struct row_order *order,
                 const struct row_target *target, const struct gather_options *options,
                 struct row_failure *ret_failure)
{
    struct copied_file *file = state;
    struct row_copier *copier = file->copier;
    bool are_many = order->n * source->row_bytes >= LEAST_BYTES && order->n >= N_SAMPLES;
    uint64_t n_samples = copier->state == COPIER_RUNS && atomic_load(&copier->is_in_use)
                             ? N_SAMPLES_IN_USE
                             : N_SAMPLES;
    bool is_copied = are_many && copier->state != COPIER_IS_GONE &&
                     are_in_memory(source, order, n_samples) &&
                     copy(copier, (uint32_t)(file - copier->files), order, target, options);
    if (are_many)
        atomic_store(&copier->is_in_use, is_copied);
    if (is_copied) {
        *ret_failure = (struct row_failure){.n = 0};
        return 0;
    }
    struct row_source alone = *source;
    struct row_order sorted;
    alone.bring = NULL;
    if (row_order_sorted(order, &sorted))
        return ENOMEM;
    int r = gather(&alone, &sorted, target, options, ret_failure);
    row_order_deinit(&sorted);
    return r;
}

/* Making --------------------------------------------------------------------------------------- */

bool row_copier_can_copy(const struct row_source *source)
{
    const struct gad_array *array = source->array;
    struct stat st;
    return source->is_plain && array->access == ACCESS_FILE && source->row_bytes > 0 &&
           source->n_rows > 0 && array->info.strides[0] >= 0 && fstat(array->fd, &st) == 0 &&
           (uint64_t)st.st_size >= end_of(source);
}

bool row_copier_is_in_memory(const struct row_source *source)
{
    for (int64_t i = 0; i < (int64_t)N_SAMPLES; i++)
        if (!is_row_in_memory(source, source->n_rows / (int64_t)N_SAMPLES * i))
            return false;
    return true;
}

bool row_copier_can_go_on(struct row_copier *copier)
{
    if (!copier || copier->state == COPIER_IS_GONE)
        return false;
    for (uint32_t i = 0; i < copier->n_files; i++)
        if (!row_copier_is_in_memory(copier->files[i].source))
            return false;
    atomic_store(&copier->is_in_use, true);
    return true;
}

struct row_copier *row_copier_new(const struct copied_memory *target)
{
    struct row_copier *copier = calloc(1, sizeof(*copier));
    if (!copier)
        return NULL;
    copier->target = *target;
    copier->socket = copier->list_fd = -1;
    atomic_init(&copier->is_in_use, true); /* until the first gather says so */
    return copier;
}

bool row_copier_add(struct row_copier *copier, struct row_source *source)
{
    if (copier->n_files == ROW_COPY_MAX_FILES)
        return false;
    struct copied_file *file = &copier->files[copier->n_files++];
    *file = (struct copied_file){copier, source};
    source->bring_state = file;
    source->bring = bring;
    source->brings_any_order = true;
    return true;
}

struct row_copier *row_copier_free(struct row_copier *copier)
{
    if (!copier)
        return NULL;
    close_fd(&copier->socket);
    if (copier->list)
        munmap(copier->list, LIST_BYTES);
    close_fd(&copier->list_fd);
    free(copier);
    return NULL;
}

bool row_copier_is_in_use(const struct row_copier *copier)
{
    return atomic_load(&copier->is_in_use);
}
