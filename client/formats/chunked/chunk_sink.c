/* Sinks in chunks.
 *
 *     drain      a block of elements, in any order
 *     assembly   the chunks that it has parts of (chunk_assembly.h)
 *     pipeline   a chunk that is whole, encoded by the thread that brought its last element
 *     order      where several chunks go into one file (chunk_order.h)
 *     store      the format
 *
 * A block that has all of a chunk is encoded as it is, without the assembly. Chunks at the array's
 * end are stored whole, with zeros beyond it.
 *
 * Called by the pump's threads (drain), and by formats.
 */
#include "client/formats/chunked/chunk_sink.h"
#include "client/formats/chunked/chunk_assembly.h"
#include "client/formats/chunked/chunk_order.h"
#include "client/formats/chunked/thread_tools.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MAX_ASSEMBLED_BYTES (UINT64_C(36) << 20)
#define MAX_CHUNK_BYTES     (UINT64_C(1) << 30)
#define MAX_REASON          200

struct chunk_sink {
    struct chunk_grid grid;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM]; /* of elements in a chunk, in elements */
    size_t item_bytes;
    struct codec_pipeline pipeline;
    chunk_store_fn *store;
    void *state;
    char *path, *dataset, *folder;
    struct chunk_assembly assembly;
    struct tools_pool tools;
    struct chunk_order *order; /* NULL: each chunk is stored as soon as it can be */
    bool is_member;            /* of the order: all of it is one part */
    unsigned member;
    unsigned n_part_levels; /* else: chunks along each axis of a part, and of parts in it */
    int64_t n_in_part[GAD_MAX_SHARD_LEVELS][ARRAY_MAX_NDIM];
    /* Bit i: chunk i is being stored, or was. NULL: it is open; a job with a stream is not begun
     * again. */
    _Atomic uint64_t *stored;
    _Atomic uint64_t n_stored; /* of an open one */
    pthread_mutex_t lock;      /* of what follows: what failed first */
    int fault;
    uint64_t fault_chunk;
    char reason[MAX_REASON];
};

static int set_fault(struct chunk_sink *sink, uint64_t index, int number, const char *reason)
{
    pthread_mutex_lock(&sink->lock);
    if (!sink->fault) {
        sink->fault = number;
        sink->fault_chunk = index;
        snprintf(sink->reason, sizeof(sink->reason), "%s", reason);
    }
    pthread_mutex_unlock(&sink->lock);
    return number;
}

/* A chunk_out_fn. */
static int put_out(void *state, uint64_t index, const void *bytes, size_t n_bytes, uint32_t skipped)
{
    struct chunk_sink *sink = state;
    int64_t place[ARRAY_MAX_NDIM];
    char reason[MAX_REASON] = "";
    chunk_grid_start(&sink->grid, index, place);
    int r = sink->store(sink->state, index, place, bytes, n_bytes, skipped, reason, sizeof(reason));
    return r ? set_fault(sink, index, r, reason) : 0;
}

/* How many chunks come before one in a box of them, part by part; n: of a part, `at` and `box` then
 * are those in the part that has it. */
static uint64_t turn_in(int ndim, const int64_t *n, int64_t *at, int64_t *box)
{
    uint64_t behind = 1, within = 1, turn = 0;
    for (int k = 0; k < ndim; k++)
        behind *= (uint64_t)box[k];
    for (int k = 0; k < ndim; k++) {
        int64_t before = at[k] / n[k] * n[k];
        behind /= (uint64_t)box[k];
        turn += within * (uint64_t)before * behind;
        box[k] = min_i64(n[k], box[k] - before);
        at[k] -= before;
        within *= (uint64_t)box[k];
    }
    return turn;
}

/* Of the first axis, which may be open, only the parts before a chunk count. */
static struct chunk_turn turn_of(const struct chunk_sink *sink, uint64_t index)
{
    static const int64_t one[ARRAY_MAX_NDIM] = {[0 ... ARRAY_MAX_NDIM - 1] = 1};
    const struct chunk_grid *grid = &sink->grid;
    int64_t at[ARRAY_MAX_NDIM], box[ARRAY_MAX_NDIM];
    struct chunk_turn turn = {.n_turns = 1};
    if (sink->is_member) {
        turn.turn = chunk_order_turn(sink->order, sink->member, index);
        turn.n_turns = UINT64_MAX;
        return turn;
    }
    chunk_grid_start(grid, index, at);
    for (int k = 0; k < grid->ndim; k++) {
        int64_t n = sink->n_in_part[0][k], chunk = at[k] / grid->chunk_shape[k], part = chunk / n;
        turn.part = turn.part * (uint64_t)divide_up_i64(grid->n_chunks_of[k], n) + (uint64_t)part;
        box[k] = min_i64(n, grid->n_chunks_of[k] - part * n);
        at[k] = chunk % n;
        turn.n_turns *= (uint64_t)box[k];
    }
    for (unsigned level = 1; level < sink->n_part_levels; level++)
        turn.turn += turn_in(grid->ndim, sink->n_in_part[level], at, box);
    turn.turn += turn_in(grid->ndim, one, at, box);
    return turn;
}

static int store_with(struct chunk_sink *sink, struct thread_tools *tools, uint64_t index,
                      const void *elements)
{
    const void *bytes;
    size_t n_bytes;
    uint32_t skipped;
    int r = codec_encode(&sink->pipeline, tools->scratch, elements, sink->grid.chunk_bytes, &bytes,
                         &n_bytes, &skipped);
    if (r)
        return set_fault(sink, index, r < 0 ? -r : EINVAL, codec_fault_text(r));
    if (sink->order) {
        const struct chunk_turn turn = turn_of(sink, index);
        r = chunk_order_put(sink->order, &turn, sink, index, bytes, n_bytes, skipped);
        if (r)
            return set_fault(sink, index, r, "");
    } else {
        r = put_out(sink, index, bytes, n_bytes, skipped);
    }
    return r;
}

/* Of a job that was begun again blocks come a second time. */
static bool is_stored(struct chunk_sink *sink, uint64_t index)
{
    return sink->stored && atomic_load(&sink->stored[index / 64]) >> index % 64 & 1;
}

/* False: it was there already. */
static bool note_stored(struct chunk_sink *sink, uint64_t index)
{
    uint64_t bit = UINT64_C(1) << index % 64;
    if (sink->stored)
        return !(atomic_fetch_or(&sink->stored[index / 64], bit) & bit);
    atomic_fetch_add(&sink->n_stored, 1);
    return true;
}

static int store(struct chunk_sink *sink, uint64_t index, const void *elements)
{
    if (!note_stored(sink, index))
        return 0;
    struct thread_tools *tools = tools_take(&sink->tools);
    if (!tools)
        return set_fault(sink, index, ENOMEM, "");
    int r = store_with(sink, tools, index, elements);
    tools_give_back(&sink->tools, tools);
    return r;
}

/* Blocks --------------------------------------------------------------------------------------- */

/* What a block and a chunk have in common. */
struct common {
    int64_t count[ARRAY_MAX_NDIM];
    int64_t in_chunk; /* elements from the chunk's first to the common part's first */
    int64_t in_block; /* bytes, likewise */
};

struct block {
    const uint8_t *bytes;
    const int64_t *start, *count;
    int64_t strides[ARRAY_MAX_NDIM]; /* bytes */
};

/* Returns whether the block has all of the chunk, as it lies there. */
static bool meet(const struct chunk_sink *sink, const struct block *block, const int64_t *chunk,
                 struct common *ret)
{
    bool is_whole = true;
    ret->in_chunk = ret->in_block = 0;
    for (int k = sink->grid.ndim - 1; k >= 0; k--) {
        int64_t length = sink->grid.chunk_shape[k], low = chunk[k] * length;
        int64_t from = low > block->start[k] ? low : block->start[k];
        int64_t end = block->start[k] + block->count[k];
        int64_t to = low + length < end ? low + length : end;
        ret->count[k] = to - from;
        ret->in_chunk += (from - low) * sink->strides[k];
        ret->in_block += (from - block->start[k]) * block->strides[k];
        is_whole &=
            to - from == length &&
            (length == 1 || block->strides[k] == sink->strides[k] * (int64_t)sink->item_bytes);
    }
    return is_whole;
}

static int add_part(struct chunk_sink *sink, const struct block *block, const struct common *common,
                    uint64_t index)
{
    struct assembled_chunk *whole;
    struct box box;
    int64_t item_bytes = (int64_t)sink->item_bytes;
    box.n = 0;
    for (int k = sink->grid.ndim - 1; k >= 0; k--)
        box_add(&box, common->count[k], sink->strides[k] * item_bytes, block->strides[k]);
    int r = chunk_assembly_add(&sink->assembly, index, &box, common->in_chunk * item_bytes,
                               block->bytes + common->in_block, &whole);
    if (r)
        return set_fault(sink, index, r, "");
    if (!whole)
        return 0;
    r = store(sink, index, whole->elements);
    chunk_assembly_end(&sink->assembly, whole);
    return r;
}

static int store_parts(struct chunk_sink *sink, const struct block *block, const int64_t *chunk)
{
    struct common common;
    uint64_t index = 0;
    for (int k = 0; k < sink->grid.ndim; k++)
        index = index * (uint64_t)sink->grid.n_chunks_of[k] + (uint64_t)chunk[k];
    if (is_stored(sink, index))
        return 0;
    return meet(sink, block, chunk, &common) ? store(sink, index, block->bytes + common.in_block)
                                             : add_part(sink, block, &common, index);
}

static int drain(void *state, const int64_t *start, const int64_t *count, const void *bytes)
{
    struct chunk_sink *sink = state;
    struct block block = {.bytes = bytes, .start = start, .count = count};
    int64_t chunk[ARRAY_MAX_NDIM], stride = (int64_t)sink->item_bytes;
    int ndim = sink->grid.ndim, r, k;
    for (k = ndim - 1; k >= 0; stride *= count[k--]) {
        if (start[k] < 0 || count[k] < 0 || start[k] > sink->shape[k] ||
            count[k] > sink->shape[k] - start[k])
            return EINVAL;
        if (count[k] == 0)
            return 0;
        block.strides[k] = stride;
        chunk[k] = start[k] / sink->grid.chunk_shape[k];
    }
    do {
        r = store_parts(sink, &block, chunk);
        for (k = ndim - 1; k >= 0; k--) {
            if (++chunk[k] <= (start[k] + count[k] - 1) / sink->grid.chunk_shape[k])
                break;
            chunk[k] = start[k] / sink->grid.chunk_shape[k];
        }
    } while (r == 0 && k >= 0);
    return r;
}

static void explain(void *state, struct gad_error *error)
{
    struct chunk_sink *sink = state;
    char argument[sizeof(error->argument)], place[96];
    int number = sink->fault;
    if (!number)
        return;
    memcpy(argument, error->argument, sizeof(argument)); /* error_set() begins with an empty one */
    chunk_place_text(&sink->grid, sink->fault_chunk, place, sizeof(place));
    int status = number == ENOSPC ? GAD_NO_SPACE : number == EBUSY ? GAD_BUSY : GAD_PROVIDER_FAILED;
    error_set(error, status, argument, "%.120s%s%.60s: the chunk at %s cannot be written: %.120s",
              sink->path, sink->dataset ? ":" : "", sink->dataset ? sink->dataset : "", place,
              *sink->reason ? sink->reason : strerrordesc_np(number));
    error_expected(error, "a chunk that can be written");
    error_found(error, "%s", strerrordesc_np(number));
    sink->fault = 0;
}

const struct provider chunk_sink_provider = {
    .is_concurrent = true,
    .drain = drain,
    .explain = explain,
};

/* From layouts --------------------------------------------------------------------------------- */

/* The folder of the path, in which files without a name are made. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/")
           : slash       ? strndup(path, (size_t)(slash - path))
                         : strdup(".");
}

static int take_layout(struct chunk_sink *sink, const struct chunk_sink_layout *layout)
{
    int64_t stride = 1;
    int ndim = layout->grid.ndim;
    sink->grid = layout->grid;
    sink->item_bytes = layout->item_bytes;
    sink->pipeline = *layout->pipeline;
    sink->store = layout->store;
    sink->state = layout->state;
    memcpy(sink->shape, layout->shape, (size_t)ndim * sizeof(*sink->shape));
    for (int i = ndim - 1; i >= 0; i--) {
        int k = layout->order ? layout->order[i] : i;
        sink->strides[k] = stride;
        stride *= layout->grid.chunk_shape[k];
    }
    sink->path = strdup(layout->path);
    sink->dataset = layout->dataset ? strdup(layout->dataset) : NULL;
    sink->folder = folder_of(layout->path);
    sink->n_part_levels = layout->n_part_levels;
    for (unsigned level = 0; level < layout->n_part_levels; level++)
        for (int k = 0; k < ndim; k++)
            sink->n_in_part[level][k] = layout->part_shapes[level][k] / layout->grid.chunk_shape[k];
    if (layout->parts != PARTS_OF_CHUNKS && sink->folder)
        sink->order = chunk_order_new(put_out, sink->folder);
    sink->is_member = layout->parts == PARTS_OF_ALL;
    if (sink->order && sink->is_member &&
        chunk_order_join(sink->order, layout->grid.n_chunks, &sink->member))
        return -ENOMEM;
    if (!layout->is_open)
        sink->stored = calloc(layout->grid.n_chunks / 64 + 1, sizeof(*sink->stored));
    if (!sink->path || (layout->dataset && !sink->dataset) || !sink->folder ||
        (!layout->is_open && !sink->stored) || (layout->parts != PARTS_OF_CHUNKS && !sink->order))
        return -ENOMEM;
    int r = chunk_assembly_init(&sink->assembly, &sink->grid, sink->shape, sink->item_bytes,
                                MAX_ASSEMBLED_BYTES, sink->folder);
    sink->assembly.is_open = layout->is_open;
    return r;
}

int chunk_sink_new(const struct chunk_sink_layout *layout, const char *name,
                   struct chunk_sink **ret_sink, struct gad_error *error)
{
    if (layout->grid.chunk_bytes > MAX_CHUNK_BYTES) {
        error_set(error, GAD_BAD_ARGUMENT, name, "a chunk has %" PRIu64 " bytes",
                  layout->grid.chunk_bytes);
        error_expected(error, "at most %" PRIu64 " bytes", MAX_CHUNK_BYTES);
        error_found(error, "%" PRIu64 " bytes", layout->grid.chunk_bytes);
        return GAD_BAD_ARGUMENT;
    }
    struct chunk_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return error_from_errno(error, ENOMEM, name, layout->path);
    pthread_mutex_init(&sink->lock, NULL);
    tools_init(&sink->tools);
    int r = take_layout(sink, layout);
    if (r < 0) {
        chunk_sink_free(sink);
        return error_from_errno(error, -r, name, layout->path);
    }
    *ret_sink = sink;
    return 0;
}

/* Of an open one: so many rows have come. What a chunk has beyond them is zero. */
static int set_length(struct chunk_sink *sink, int64_t n_rows, const char *name,
                      struct gad_error *error)
{
    struct chunk_grid *grid = &sink->grid;
    struct assembled_chunk *cut;
    uint64_t n_across = grid->n_chunks / (uint64_t)grid->n_chunks_of[0];
    sink->shape[0] = n_rows;
    grid->n_chunks_of[0] = divide_up_i64(n_rows, grid->chunk_shape[0]);
    grid->n_chunks = n_across * (uint64_t)grid->n_chunks_of[0];
    for (;;) {
        int r = chunk_assembly_next_cut(&sink->assembly, &cut);
        if (r == 0 && !cut)
            return 0;
        if (r == 0) {
            r = store(sink, cut->index, cut->elements);
            chunk_assembly_end(&sink->assembly, cut);
        }
        if (r) {
            (void)error_from_errno(error, r, name, "writing the last chunks");
            explain(sink, error);
            return (int)error->status;
        }
    }
}

int chunk_sink_finish(struct chunk_sink *sink, const char *name, struct gad_error *error)
{
    uint64_t n_stored = sink->n_stored;
    for (uint64_t i = 0; sink->stored && i <= sink->grid.n_chunks / 64; i++)
        n_stored += (uint64_t)__builtin_popcountll(sink->stored[i]);
    if (n_stored == sink->grid.n_chunks)
        return 0;
    error_set(error, GAD_INTERNAL, name, "'%.160s' is not whole", sink->path);
    error_expected(error, "%" PRIu64 " chunks", sink->grid.n_chunks);
    error_found(error, "%" PRIu64 " chunks", n_stored);
    return GAD_INTERNAL;
}

/* Arrays --------------------------------------------------------------------------------------- */

int chunk_sink_serve(struct gad_array *array, const struct chunk_sink_format *format,
                     const char *name, struct chunk_sink **ret_sink, struct gad_error *error)
{
    int64_t shape[ARRAY_MAX_NDIM];
    struct chunk_sink_layout layout = {
        .shape = shape,
        .is_open = array_is_open(array),
        .item_bytes = gad_dtype_size(array->info.dtype),
        .order = format->order,
        .pipeline = format->pipeline,
        .parts = format->parts,
        .n_part_levels = format->n_part_levels,
        .part_shapes = format->part_shapes,
        .store = format->store,
        .state = format->state,
        .path = array->info.path,
        .dataset = *format->dataset ? format->dataset : NULL,
    };
    memcpy(shape, array->info.shape, sizeof(shape));
    if (layout.is_open)
        shape[0] = array_open_rows(array);
    if (!chunk_grid_init(&layout.grid, array->info.ndim, shape, format->chunk_shape,
                         (int64_t)layout.item_bytes))
        return 0;
    int r = chunk_sink_new(&layout, name, ret_sink, error);
    if (r)
        return r;
    memcpy(array->chunk_shape, layout.grid.chunk_shape, sizeof(array->chunk_shape));
    array->n_chunks = layout.grid.n_chunks;
    array_write_through(array, &chunk_sink_provider, *ret_sink);
    return 0;
}

int chunk_sink_complete(struct chunk_sink *sink, const struct gad_array *array,
                        struct gad_error *error)
{
    const char *name = array->info.path;
    int r = sink->stored ? 0 : set_length(sink, array->info.shape[0], name, error);
    int flushed = r == 0 && sink->order ? chunk_order_flush(sink->order) : 0;
    if (flushed) {
        r = error_from_errno(error, flushed, name, "writing the last chunks");
        explain(sink, error);
        return (int)error->status;
    }
    return r ? r : chunk_sink_finish(sink, name, error);
}

int chunk_sink_join(struct chunk_sink *sink, struct chunk_sink *other, const char *name,
                    struct gad_error *error)
{
    unsigned member;
    if (sink->order == other->order)
        return 0;
    if (chunk_order_join(other->order, sink->grid.n_chunks, &member))
        return error_from_errno(error, ENOMEM, name, "output");
    chunk_order_unref(sink->order);
    sink->order = chunk_order_ref(other->order);
    sink->member = member;
    return 0;
}

struct chunk_sink *chunk_sink_free(struct chunk_sink *sink)
{
    if (!sink)
        return NULL;
    if (sink->assembly.table)
        chunk_assembly_deinit(&sink->assembly);
    tools_deinit(&sink->tools);
    chunk_order_unref(sink->order);
    pthread_mutex_destroy(&sink->lock);
    free(sink->stored);
    free(sink->path);
    free(sink->dataset);
    free(sink->folder);
    free(sink);
    return NULL;
}
