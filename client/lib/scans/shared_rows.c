/* Rows from a shared scan.
 *
 * A gather that wants rows of most rows of chunks takes a circle of the scan: each chunk comes
 * once, in the order in which it is decoded, and its wanted rows go to their places. What is wanted
 * of a chunk that was never written, or cannot be decoded, is gathered by the source itself: so
 * fill values and errors are those of one who reads alone. Gathers of few rows go past the scan.
 *
 * A chunk may come twice, where it was overwritten while it was copied: the second time replaces
 * what the first one left.
 *
 * One thread at a time has the reader; others read by themselves meanwhile. Where the scan's
 * process has gone, that thread asks for another one, by a connection of its own, as the client is
 * its program's. A child of fork() leaves all of it alone. Called by gather().
 */
#include "client/lib/scans/shared_rows.h"
#include "client/formats/chunked/chunk_source.h"
#include "client/lib/connection/client.h"
#include "client/lib/scans/scan_join.h"
#include "client/rows/gather.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define REJOIN_MS        2000 /* to connect, and for the answer: else rows are read without a scan */
#define MIN_WANTED_SHARE 2u   /* rows of chunks that are wanted: one in so many at least */

struct shared_rows {
    pthread_mutex_t lock;
    struct row_source *source;
    struct chunk_file file;
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
    struct row_source alone; /* the source without the scan */
    const struct row_order *order;
    const struct row_target *target;
    const struct gather_options *options;
    struct row_failure *failure;
};

/* A part of each row, where the grid has several chunks side by side. */
static void scatter_parts(const struct bringing *b, const int64_t *start, const char *elements,
                          uint64_t from, uint64_t to)
{
    const struct chunk_grid *grid = &b->shared->file.grid;
    const int64_t *shape = b->alone.array->info.shape;
    int64_t stride = (int64_t)b->alone.item_bytes, in_row = stride, offset = 0;
    struct box box = {.n = 0};
    for (int i = grid->ndim - 1; i > 0; i--) {
        box_add(&box, min_i64(grid->chunk_shape[i], shape[i] - start[i]), in_row, stride);
        offset += start[i] * in_row;
        in_row *= shape[i];
        stride *= grid->chunk_shape[i];
    }
    size_t run_bytes = (size_t)box_take_run(&box, (int64_t)b->alone.item_bytes);
    for (uint64_t i = from; i < to; i++) {
        const struct wanted_row *wanted = &b->order->wanted[i];
        char *part = row_target_place(b->target, wanted->place) + offset;
        const char *row = elements + (wanted->row - start[0]) * stride;
        if (box.n == 0) {
            memcpy(part, row, run_bytes);
            continue;
        }
        struct box lines = box; /* copying uses it up */
        box_copy(&lines, part, row, run_bytes, false);
    }
}

static int use(void *state, uint64_t index, const void *elements, const struct scan_fault *fault)
{
    struct bringing *b = state;
    int64_t start[ARRAY_MAX_NDIM];
    (void)fault; /* who reads alone finds the same */
    chunk_grid_start(&b->shared->file.grid, index, start);
    int64_t end = start[0] + b->shared->file.grid.chunk_shape[0];
    uint64_t from = row_order_find(b->order, 0, start[0]);
    uint64_t to = row_order_find(b->order, from, end);
    if (from == to)
        return 0;
    if (elements) {
        scatter_parts(b, start, elements, from, to);
        return 0;
    }
    const struct row_order some = {.n = to - from, .wanted = b->order->wanted + from};
    struct row_failure failure = {0};
    int r = gather(&b->alone, &some, b->target, b->options, &failure);
    if (b->failure->n == 0)
        *b->failure = failure;
    return r;
}

static bool wants_most(const struct shared_rows *shared, const struct row_order *order)
{
    int64_t n_rows = shared->file.grid.chunk_shape[0];
    uint64_t n = 0, n_all = (uint64_t)shared->file.grid.n_chunks_of[0];
    for (uint64_t i = 0; i < order->n; n++)
        i = row_order_find(order, i, (order->wanted[i].row / n_rows + 1) * n_rows);
    return n >= n_all / MIN_WANTED_SHARE;
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
    return client_ask_scan(shared->later, &shared->description, shared->file.fd, ret_socket,
                           &error);
}

static int bring(void *state, struct row_source *source, const struct row_order *order,
                 const struct row_target *target, const struct gather_options *options,
                 struct row_failure *ret_failure)
{
    struct shared_rows *shared = state;
    struct bringing b = {.shared = shared,
                         .alone = *source,
                         .order = order,
                         .target = target,
                         .options = options,
                         .failure = ret_failure};
    struct scan_circle circle;
    b.alone.bring = NULL;
    if (!wants_most(shared, order) || pthread_mutex_trylock(&shared->lock) != 0)
        return gather(&b.alone, order, target, options, ret_failure);
    *ret_failure = (struct row_failure){0};
    int r = scan_reader_circle(shared->reader, use, &b, options->is_cancelled, &circle);
    pthread_mutex_unlock(&shared->lock);
    return r < 0 ? -r : r;
}

/* Making --------------------------------------------------------------------------------------- */

static bool describe(struct shared_rows *shared)
{
    const struct chunk_file *file = &shared->file;
    shared->entries = calloc(file->grid.n_chunks, sizeof(*shared->entries));
    if (!shared->entries)
        return false;
    for (uint64_t i = 0; i < file->grid.n_chunks; i++) {
        const struct chunk_place *place = &file->places[i];
        if (place->size_bytes > SCAN_MAX_STORED_BYTES)
            return false;
        shared->entries[i] =
            (struct scan_entry){place->offset_bytes, (uint32_t)place->size_bytes, place->skipped};
    }
    shared->description = (struct scan_description){.n_chunks = file->grid.n_chunks,
                                                    .chunk_bytes = file->grid.chunk_bytes,
                                                    .pipeline = file->pipeline,
                                                    .entries = shared->entries};
    return true;
}

struct shared_rows *shared_rows_new(struct gad_client *client, struct row_source *source)
{
    struct gad_array *array = source->array;
    struct gad_error error;
    if (!client || !client->conn || source->bring || array->access != ACCESS_PROVIDER ||
        array->provider != &chunk_source_provider)
        return NULL;
    struct shared_rows *shared = calloc(1, sizeof(*shared));
    if (!shared)
        return NULL;
    pthread_mutex_init(&shared->lock, NULL);
    shared->source = source;
    shared->process = getpid();
    shared->socket = client->socket ? strdup(client->socket) : NULL;
    if ((client->socket && !shared->socket) ||
        chunk_source_locate(array->provider_state, &shared->file) != 0 || !describe(shared) ||
        client_join_scan(client, &shared->description, shared->file.fd, &shared->reader, &error))
        return shared_rows_free(shared);
    scan_reader_set_rejoin(shared->reader, rejoin, shared);
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
    chunk_file_deinit(&shared->file);
    free(shared->entries);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
    return NULL;
}
