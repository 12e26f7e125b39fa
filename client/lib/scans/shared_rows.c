/* Rows from a shared scan.
 *
 * A gather that wants rows of most chunks takes a circle of the scan: each chunk comes once, in the
 * order in which it is decoded, and its wanted rows go to their places. What is wanted of chunks
 * that are not brought (they were never written, cannot be decoded, or were missed) is gathered by
 * the source itself afterwards: so fill values and errors are those of one who reads alone. Gathers
 * of few rows go past the scan.
 *
 * A chunk may come twice, where it was overwritten while it was copied: the second time replaces
 * what the first one left.
 *
 * Where the chunks lie is the array's format's to say (packed_chunks.h); here it becomes the
 * description that all readers of the same files make alike.
 *
 * One thread at a time has the reader; others read by themselves meanwhile. Where the scan's
 * process has gone, that thread asks for another one, by a connection of its own, as the client is
 * its program's. A child of fork() leaves all of it alone. Called by gather().
 */
#include "client/lib/scans/shared_rows.h"
#include "client/formats/chunked/packed_chunks.h"
#include "client/formats/files/file_mark.h"
#include "client/lib/connection/client.h"
#include "client/lib/scans/scan_join.h"
#include "client/rows/gather.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REJOIN_MS        2000 /* to connect, and for the answer: else rows are read without a scan */
#define PAGE_BYTES       4096u
#define MIN_WANTED_SHARE 2u /* chunks that have wanted rows: one in so many at least */

struct shared_rows {
    pthread_mutex_t lock;
    struct row_source *source;
    struct packed_chunks packed;
    struct scan_file *files;
    struct scan_entry *entries;
    struct scan_description description;
    struct scan_reader *reader;
    char *socket;             /* of the client; NULL: where it is by default */
    struct gad_client *later; /* asked for scans by who reads; NULL: was not needed */
    pid_t process;
};

/* Of a gather. */
struct bringing {
    const struct shared_rows *shared;
    const struct row_order *order;
    const struct row_target *target;
    uint8_t *is_missing; /* by wanted row; NULL: none is */
    uint64_t n_missing;
};

/* The wanted rows that a chunk has something of. */
static void find_wanted(const struct bringing *b, const struct packed_piece *piece,
                        uint64_t *ret_from, uint64_t *ret_to)
{
    *ret_from = row_order_find(b->order, 0, piece->first_row);
    *ret_to = row_order_find(b->order, *ret_from, piece->end_row);
}

static int note_missing(struct bringing *b, uint64_t from, uint64_t to)
{
    if (!b->is_missing && from < to)
        b->is_missing = calloc(b->order->n, 1);
    if (!b->is_missing && from < to)
        return ENOMEM;
    for (uint64_t i = from; i < to; i++) {
        b->n_missing += !b->is_missing[i];
        b->is_missing[i] = 1;
    }
    return 0;
}

static int use(void *state, uint64_t index, const void *elements)
{
    struct bringing *b = state;
    struct packed_piece piece;
    uint64_t from, to;
    packed_piece_of(&b->shared->packed, index, &piece);
    find_wanted(b, &piece, &from, &to);
    if (!elements && piece.part->is_stream) { /* it may be found broken at its end */
        from = row_order_find(b->order, 0, piece.part->first_row);
        to = row_order_find(b->order, from, piece.part->first_row + piece.part->n_rows);
    }
    if (!elements)
        return note_missing(b, from, to);
    for (uint64_t i = from; i < to; i++)
        packed_copy(&piece, elements, b->order->wanted[i].row,
                    row_target_place(b->target, b->order->wanted[i].place));
    return 0;
}

static bool wants_most(const struct bringing *b)
{
    uint64_t n = 0, n_all = b->shared->packed.n_chunks;
    for (uint64_t i = 0; i < n_all; i++) {
        struct packed_piece piece;
        uint64_t from, to;
        packed_piece_of(&b->shared->packed, i, &piece);
        find_wanted(b, &piece, &from, &to);
        n += from < to;
    }
    return n >= n_all / MIN_WANTED_SHARE;
}

static int gather_missing(const struct bringing *b, struct row_source *alone,
                          const struct gather_options *options, struct row_failure *ret_failure)
{
    if (b->n_missing == 0)
        return 0;
    struct wanted_row *wanted = malloc(b->n_missing * sizeof(*wanted));
    if (!wanted)
        return ENOMEM;
    struct row_order some = {.n = 0, .wanted = wanted};
    for (uint64_t i = 0; i < b->order->n; i++)
        if (b->is_missing[i])
            wanted[some.n++] = b->order->wanted[i];
    int r = gather(alone, &some, b->target, options, ret_failure);
    free(wanted);
    return r;
}

/* As blocks do that are read from files which are not what they were (array.h: watch). */
static int check_files(const struct shared_rows *shared, struct row_failure *ret_failure)
{
    const struct packed_chunks *packed = &shared->packed;
    for (uint32_t i = 0; i < packed->n_files; i++) {
        const struct packed_file *file = &packed->files[i];
        struct file_mark was, is;
        struct stat st;
        file_mark_of(&file->st, &was);
        if (fstatat(file->folder_fd, file->path, &st, 0) == 0) {
            file_mark_of(&st, &is);
            if (file_mark_is_same(&was, &is))
                continue;
        }
        struct packed_piece piece = {.first_row = 0};
        for (uint64_t k = 0; k < packed->n_chunks; k++)
            if (packed->chunks[k].file == i && packed->chunks[k].offset_bytes != SCAN_ABSENT) {
                packed_piece_of(packed, k, &piece);
                break;
            }
        *ret_failure = (struct row_failure){piece.first_row, 1, ESTALE};
        return ESTALE;
    }
    return 0;
}

static int rejoin(void *state, int *ret_socket)
{
    struct shared_rows *shared = state;
    struct gad_error error;
    const struct gad_connect_options options = {
        .socket = shared->socket,
        .client_name = "gpuarrayd scan",
        .no_private_daemon = true,
        .timeout_ms = REJOIN_MS,
        .restart_ms = -1,
    };
    if (shared->process != getpid())
        return GAD_DISCONNECTED;
    if (!shared->later && gad_connect(&options, &shared->later, &error) != GAD_OK)
        return (int)error.status;
    return client_ask_scan(shared->later, &shared->description, ret_socket, &error);
}

static int open_file(void *state, uint32_t number)
{
    const struct shared_rows *shared = state;
    const struct packed_file *file = &shared->packed.files[number];
    int fd = openat(file->folder_fd, file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

/* Before the circle, in which others wait a moment for this reader and then do no more: rows of its
 * first chunks alone touch nearly all pages of a window, and making those takes longer. */
static void make_pages(const struct row_target *target, uint64_t n_rows)
{
    uint64_t n_base = min_u64(target->rows_per_base, n_rows);
    for (uint64_t first = 0; first < n_rows; first += n_base) {
        char *begin = row_target_place(target, first);
        size_t before = (uintptr_t)begin % PAGE_BYTES;
        uint64_t n_bytes = min_u64(n_rows - first, n_base) * target->stride_bytes;
        (void)madvise(begin - before, before + n_bytes, MADV_POPULATE_WRITE);
    }
}

static int bring(void *state, struct row_source *source, const struct row_order *order,
                 const struct row_target *target, const struct gather_options *options,
                 struct row_failure *ret_failure)
{
    struct shared_rows *shared = state;
    struct bringing b = {.shared = shared, .order = order, .target = target};
    struct row_source alone = *source;
    struct scan_circle circle;
    alone.bring = NULL;
    if (!wants_most(&b) || pthread_mutex_trylock(&shared->lock) != 0)
        return gather(&alone, order, target, options, ret_failure);
    *ret_failure = (struct row_failure){0};
    make_pages(target, order->n);
    int r = scan_reader_circle(shared->reader, use, &b, options->is_cancelled, &circle);
    pthread_mutex_unlock(&shared->lock);
    if (r == 0)
        r = gather_missing(&b, &alone, options, ret_failure);
    if (r == 0)
        r = check_files(shared, ret_failure);
    free(b.is_missing);
    return r < 0 ? -r : r;
}

/* Making --------------------------------------------------------------------------------------- */

static bool describe(struct shared_rows *shared)
{
    const struct packed_chunks *packed = &shared->packed;
    uint64_t chunk_bytes = 0;
    shared->files = calloc(packed->n_files, sizeof(*shared->files));
    shared->entries = calloc(packed->n_chunks, sizeof(*shared->entries));
    if (!shared->files || !shared->entries)
        return false;
    for (uint32_t i = 0; i < packed->n_files; i++)
        scan_file_of(&packed->files[i].st, &shared->files[i]);
    for (uint64_t i = 0; i < packed->n_chunks; i++) {
        const struct packed_chunk *chunk = &packed->chunks[i];
        chunk_bytes = max_u64(chunk_bytes, chunk->n_bytes);
        if (chunk->size_bytes > SCAN_MAX_STORED_BYTES && !packed->kinds[chunk->kind].is_stream)
            return false;
        shared->entries[i] = (struct scan_entry){.offset_bytes = chunk->offset_bytes,
                                                 .size_bytes = chunk->size_bytes,
                                                 .file = chunk->file,
                                                 .kind = chunk->kind,
                                                 .n_bytes = chunk->n_bytes,
                                                 .skipped = chunk->skipped};
    }
    shared->description = (struct scan_description){.n_chunks = packed->n_chunks,
                                                    .chunk_bytes = chunk_bytes,
                                                    .n_files = packed->n_files,
                                                    .n_kinds = packed->n_kinds,
                                                    .files = shared->files,
                                                    .kinds = packed->kinds,
                                                    .entries = shared->entries};
    return true;
}

static bool join(struct shared_rows *shared, struct gad_client *client)
{
    const struct gad_array *array = shared->source->array;
    const struct scan_access access = {open_file, rejoin, shared};
    struct gad_error error;
    return array->provider->locate(array->provider_state, &shared->packed) == 0 &&
           packed_lay(&shared->packed, array->info.ndim, array->info.shape,
                      shared->source->item_bytes) == 0 &&
           describe(shared) &&
           client_join_scan(client, &shared->description, &access, &shared->reader, &error) == 0;
}

struct shared_rows *shared_rows_new(struct gad_client *client, struct row_source *source)
{
    const struct gad_array *array = source->array;
    if (!client || !client->conn || source->bring || array->access != ACCESS_PROVIDER ||
        !array->provider->locate)
        return NULL;
    struct shared_rows *shared = calloc(1, sizeof(*shared));
    if (!shared)
        return NULL;
    pthread_mutex_init(&shared->lock, NULL);
    shared->source = source;
    shared->process = getpid();
    shared->socket = client->socket ? strdup(client->socket) : NULL;
    if ((client->socket && !shared->socket) || !join(shared, client))
        return shared_rows_free(shared);
    source->bring_state = shared;
    source->bring = bring;
    return shared;
}

struct shared_rows *shared_rows_free(struct shared_rows *shared)
{
    if (!shared)
        return NULL;
    if (shared->source->bring == bring)
        shared->source->bring = NULL;
    scan_reader_free(shared->reader);
    if (shared->later && shared->process != getpid())
        gad_forget(shared->later);
    else
        gad_close(shared->later);
    free(shared->socket);
    packed_chunks_deinit(&shared->packed);
    free(shared->files);
    free(shared->entries);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
    return NULL;
}
