/* Sources in chunks.
 *
 *     fetch (the format)      stored bytes
 *     pipeline (codecs/)      elements, in the order in which they lie in a chunk
 *     copy                    the part of them that a block has
 *
 * Where a block has all of a chunk in the order in which it lies there, it is decoded straight into
 * the block. Otherwise it is decoded into the cache (chunk_cache.h), from which all blocks that cut
 * it are served. The daemon walks an array roughly in C order along its chunks, of which it is
 * told, so the cache need not hold more than the chunks side by side a few times.
 *
 * Each thread that fills a block has a scratch and a buffer of stored bytes for that time; they are
 * kept for the next.
 *
 * What was wrong first is kept, for the error of the job: which chunk, which step of the pipeline.
 *
 * Called by the pump's threads (fill), and by formats.
 */
#include "client/formats/chunked/chunk_source.h"
#include "client/formats/chunked/chunk_cache.h"
#include "client/formats/chunked/thread_tools.h"
#include "proto/box.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIN_CACHE_BYTES   (UINT64_C(16) << 20)
#define MAX_CACHE_BYTES   (UINT64_C(32) << 20)
#define N_SLABS           3 /* blocks are asked for out of order, across the border of two */
#define MIN_CHUNKS        3 /* one that is copied, two that are decoded */
#define MAX_CHUNKS        (1u << 17)
#define MAX_SLAB_BYTES    (UINT64_C(256) << 20) /* where chunks are across the walk */
#define LARGE_CHUNK_BYTES (UINT64_C(256) << 20)
#define MAX_CHUNK_BYTES   (UINT64_C(4) << 30)
#define MAX_FILL_BYTES    16

struct chunk_fault {
    bool is_set;
    uint64_t chunk;
    int number; /* errno, or a codec_fault of `step` */
    bool is_codec;
    unsigned step;
    char reason[CHUNK_REASON_BYTES]; /* "": the system's words */
};

struct chunk_source {
    struct chunk_grid grid;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM]; /* of elements in a chunk, by axis */
    bool is_c_order;
    size_t item_bytes;
    uint8_t fill[MAX_FILL_BYTES];
    bool has_fill; /* that is not zero */
    struct selection selection;
    int64_t first_chunk[ARRAY_MAX_NDIM], last_chunk[ARRAY_MAX_NDIM]; /* of the selection */
    struct codec_pipeline pipeline;
    chunk_fetch_fn *fetch;
    chunk_make_fn *make;
    chunk_where_fn *where;
    chunk_locate_fn *locate;
    chunk_watch_fn *watch;
    void (*free_state)(void *state);
    void *state;
    char *path, *dataset;
    struct chunk_cache cache;
    struct tools_pool tools;
    pthread_mutex_t lock; /* of what follows */
    struct chunk_fault fault;
};

/* A chunk's elements --------------------------------------------------------------------------- */

static int set_fault(struct chunk_source *source, const struct chunk_fault *fault)
{
    pthread_mutex_lock(&source->lock);
    if (!source->fault.is_set) {
        source->fault = *fault;
        source->fault.is_set = true;
    }
    pthread_mutex_unlock(&source->lock);
    if (!fault->is_codec)
        return fault->number;
    return fault->number == -ENOMEM ? ENOMEM : EBADMSG;
}

static void fill_chunk(const struct chunk_source *source, uint8_t *ret_elements)
{
    size_t item_bytes = source->item_bytes, n_bytes = source->grid.chunk_bytes;
    if (!source->has_fill) {
        memset(ret_elements, 0, n_bytes);
        return;
    }
    memcpy(ret_elements, source->fill, item_bytes);
    for (size_t done = item_bytes; done < n_bytes;) { /* each time twice as much */
        size_t n = done < n_bytes - done ? done : n_bytes - done;
        memcpy(ret_elements + done, ret_elements, n);
        done += n;
    }
}

/* What is damaged stays so while nobody has heard of it: who looks for the rows that it has reads
 * around in it. */
static int known_fault(struct chunk_source *source, uint64_t index)
{
    const struct chunk_fault *fault = &source->fault;
    pthread_mutex_lock(&source->lock);
    bool is_known =
        fault->is_set && fault->is_codec && fault->chunk == index && fault->number != -ENOMEM;
    pthread_mutex_unlock(&source->lock);
    return is_known ? EBADMSG : 0;
}

static int load_with(struct chunk_source *source, struct thread_tools *tools, uint64_t index,
                     void *ret_elements)
{
    struct chunk_fault fault = {.chunk = index};
    int64_t place[ARRAY_MAX_NDIM];
    int known = known_fault(source, index);
    if (known)
        return known;
    chunk_grid_start(&source->grid, index, place);
    tools->bytes.is_absent = false;
    tools->bytes.skipped = 0;
    tools->bytes.reason[0] = '\0';
    fault.number = source->fetch(source->state, index, place, &tools->bytes);
    if (fault.number) {
        memcpy(fault.reason, tools->bytes.reason, sizeof(fault.reason));
        return set_fault(source, &fault);
    }
    if (tools->bytes.is_absent)
        return CHUNK_LOAD_ABSENT;
    fault.is_codec = true;
    fault.number =
        codec_decode(&source->pipeline, tools->bytes.skipped, tools->scratch, tools->bytes.data,
                     tools->bytes.n_bytes, ret_elements, source->grid.chunk_bytes, &fault.step);
    return fault.number ? set_fault(source, &fault) : 0;
}

static int load(void *state, uint64_t index, void *ret_elements)
{
    struct chunk_source *source = state;
    int64_t place[ARRAY_MAX_NDIM];
    if (source->make) {
        chunk_grid_start(&source->grid, index, place);
        return source->make(source->state, place, ret_elements);
    }
    struct thread_tools *tools = tools_take(&source->tools);
    if (!tools)
        return ENOMEM;
    int r = load_with(source, tools, index, ret_elements);
    tools_give_back(&source->tools, tools);
    return r;
}

static int load_into_block(struct chunk_source *source, uint64_t index, void *ret_elements)
{
    int r = load(source, index, ret_elements);
    if (r != CHUNK_LOAD_ABSENT)
        return r;
    fill_chunk(source, ret_elements);
    return 0;
}

static bool is_wanted(const void *state, uint64_t index)
{
    const struct chunk_source *source = state;
    int64_t place[ARRAY_MAX_NDIM];
    if (index >= source->grid.n_chunks)
        return false;
    chunk_grid_start(&source->grid, index, place);
    for (int i = 0; i < source->grid.ndim; i++) {
        int64_t at = place[i] / source->grid.chunk_shape[i];
        if (at < source->first_chunk[i] || at > source->last_chunk[i])
            return false;
    }
    return true;
}

/* Blocks --------------------------------------------------------------------------------------- */

/* What a block and a chunk have in common along an axis of the source. */
struct common {
    int64_t first, count; /* of the block's elements along the axis of the selection */
    int64_t in_chunk;     /* where the first of them is in the chunk, elements */
    int64_t step;         /* in the chunk */
};

/* A block while it is filled: all by axes of the source; an axis that the selection has dropped
 * has one element. */
struct block {
    uint8_t *bytes;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM]; /* in the selection's elements */
    int64_t strides[ARRAY_MAX_NDIM];                      /* in the block */
    int64_t low[ARRAY_MAX_NDIM], high[ARRAY_MAX_NDIM];    /* chunks that it touches */
};

/* The elements i of the selection in [start, start + count) that lie in a chunk. */
static struct common meet(const struct selection_axis *axis, int64_t start, int64_t count,
                          int64_t chunk, int64_t chunk_length)
{
    int64_t low = chunk * chunk_length, from, to; /* of the source's elements; i in [from, to) */
    selection_meet(axis, low, chunk_length, &from, &to);
    if (from < start)
        from = start;
    if (to > start + count)
        to = start + count;
    return (struct common){
        .first = from,
        .count = to > from ? to - from : 0,
        .in_chunk = axis->start + from * axis->step - low,
        .step = axis->step,
    };
}

static void lay_block(const struct chunk_source *source, const int64_t *start, const int64_t *count,
                      void *bytes, struct block *ret)
{
    const struct selection *selection = &source->selection;
    int64_t stride = (int64_t)source->item_bytes;
    ret->bytes = bytes;
    for (int k = 0; k < source->grid.ndim; k++) {
        ret->start[k] = 0;
        ret->count[k] = 1;
        ret->strides[k] = 0;
    }
    for (int i = selection->ndim - 1; i >= 0; stride *= count[i--]) {
        int k = selection->axis_of[i];
        if (k == SELECTION_NEW_AXIS)
            continue;
        ret->start[k] = start[i];
        ret->count[k] = count[i];
        ret->strides[k] = stride;
    }
    for (int k = 0; k < source->grid.ndim; k++) {
        const struct selection_axis *axis = &selection->axes[k];
        int64_t a = (axis->start + ret->start[k] * axis->step) / source->grid.chunk_shape[k];
        int64_t b = (axis->start + (ret->start[k] + ret->count[k] - 1) * axis->step) /
                    source->grid.chunk_shape[k];
        ret->low[k] = a < b ? a : b;
        ret->high[k] = a < b ? b : a;
    }
}

/* Whether the block has all of the chunk, in the chunk's order and without gaps. */
static bool is_whole(const struct chunk_source *source, const struct block *block,
                     const struct common *common)
{
    int64_t stride = (int64_t)source->item_bytes;
    if (!source->is_c_order)
        return false;
    for (int k = source->grid.ndim - 1; k >= 0; k--) {
        int64_t length = source->grid.chunk_shape[k];
        if (common[k].count != length ||
            (length > 1 && (common[k].step != 1 || block->strides[k] != stride)))
            return false;
        stride *= length;
    }
    return true;
}

/* elements NULL: the fill value, again and again. */
static void copy_part(const struct chunk_source *source, const struct block *block,
                      const struct common *common, uint8_t *to, const uint8_t *elements)
{
    const uint8_t *from = elements ? elements : source->fill;
    struct box box;
    box.n = 0;
    for (int k = source->grid.ndim - 1; k >= 0; k--) {
        int64_t stride = elements ? common[k].step * source->strides[k] : 0;
        from += elements ? common[k].in_chunk * source->strides[k] : 0;
        box_add(&box, common[k].count, block->strides[k], stride);
    }
    box_copy(&box, to, from, source->item_bytes, false);
}

static int fill_from_chunk(struct chunk_source *source, const struct block *block,
                           const int64_t *chunk)
{
    struct common common[ARRAY_MAX_NDIM];
    struct cached_chunk *cached;
    const void *elements;
    uint8_t *to = block->bytes;
    uint64_t index = 0;
    for (int k = 0; k < source->grid.ndim; k++) {
        common[k] = meet(&source->selection.axes[k], block->start[k], block->count[k], chunk[k],
                         source->grid.chunk_shape[k]);
        if (common[k].count == 0) /* a step that goes over the chunk */
            return 0;
        to += (common[k].first - block->start[k]) * block->strides[k];
        index = index * (uint64_t)source->grid.n_chunks_of[k] + (uint64_t)chunk[k];
    }
    if (is_whole(source, block, common) && !chunk_cache_has(&source->cache, index))
        return load_into_block(source, index, to);
    int r = chunk_cache_take(&source->cache, index, &elements, &cached);
    if (r)
        return r;
    copy_part(source, block, common, to, elements);
    chunk_cache_give_back(&source->cache, cached);
    return 0;
}

static bool next_chunk(const struct block *block, int ndim, int64_t *chunk)
{
    for (int k = ndim - 1; k >= 0; k--) {
        if (++chunk[k] <= block->high[k])
            return true;
        chunk[k] = block->low[k];
    }
    return false;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct chunk_source *source = state;
    int64_t chunk[ARRAY_MAX_NDIM];
    struct block block;
    for (int i = 0; i < source->selection.ndim; i++) {
        int64_t size = selection_size(&source->selection, i);
        if (start[i] < 0 || count[i] < 0 || start[i] > size || count[i] > size - start[i])
            return EINVAL;
        if (count[i] == 0)
            return 0;
    }
    lay_block(source, start, count, ret_block, &block);
    memcpy(chunk, block.low, sizeof(chunk));
    int r;
    do
        r = fill_from_chunk(source, &block, chunk);
    while (r == 0 && next_chunk(&block, source->grid.ndim, chunk));
    return r;
}

static void explain(void *state, struct gad_error *error)
{
    struct chunk_source *source = state;
    const struct chunk_fault kept = source->fault, *fault = &kept;
    char place[96], where[80] = "", argument[sizeof(error->argument)];
    int64_t first[ARRAY_MAX_NDIM];
    if (!fault->is_set)
        return;
    source->fault.is_set = false;                        /* the next job's is its own */
    memcpy(argument, error->argument, sizeof(argument)); /* error_set() begins with an empty one */
    chunk_place_text(&source->grid, fault->chunk, place, sizeof(place));
    chunk_grid_start(&source->grid, fault->chunk, first);
    if (source->where && !*fault->reason)
        source->where(source->state, first, where, sizeof(where));
    const char *between = source->dataset ? ":" : "";
    const char *dataset = source->dataset ? source->dataset : "";
    if (fault->is_codec) {
        const struct codec *codec = source->pipeline.n_steps > fault->step
                                        ? source->pipeline.steps[fault->step].codec
                                        : NULL;
        error_set(error, GAD_PROVIDER_FAILED, argument, "%.120s%s%.80s: the chunk at %s%s: %s%s%s",
                  source->path, between, dataset, place, where, codec ? codec->name : "",
                  codec ? ": " : "", codec_fault_text(fault->number));
        error_expected(error, "a chunk of %" PRIu64 " bytes", source->grid.chunk_bytes);
        error_found(error, "%s", codec_fault_text(fault->number));
        return;
    }
    const char *reason = *fault->reason ? fault->reason : strerrordesc_np(fault->number);
    error_set(error, GAD_PROVIDER_FAILED, argument, "%.120s%s%.80s: the chunk at %s%s: %.150s",
              source->path, between, dataset, place, where, reason);
    error_expected(error, "a chunk that can be read");
    error_found(error, "%.150s", reason);
}

static int watch(void *state, struct file_sums *sums)
{
    const struct chunk_source *source = state;
    return source->watch ? source->watch(source->state, sums) : 0;
}

/* Elsewhere ------------------------------------------------------------------------------------ */

static int locate(void *state, struct packed_chunks *packed)
{
    const struct chunk_source *source = state;
    const struct selection *selection = &source->selection;
    const struct codec_packing kind = {.pipeline = source->pipeline};
    struct packed_part part = {.first_chunk = packed->n_chunks, .ndim = source->grid.ndim};
    uint32_t number;
    for (int k = 0; k < part.ndim; k++) {
        part.to_axis[k] = -1;
        part.low[k] = source->first_chunk[k];
        part.n_of[k] = source->last_chunk[k] - source->first_chunk[k] + 1;
        part.chunk_shape[k] = source->grid.chunk_shape[k];
        part.strides[k] = source->strides[k];
        part.axes[k] = selection->axes[k];
    }
    for (int i = 0; i < selection->ndim; i++)
        if (selection->axis_of[i] != SELECTION_NEW_AXIS)
            part.to_axis[selection->axis_of[i]] = i;
    int r = packed_add_kind(packed, &kind, &number);
    if (r == 0)
        r = source->locate(source->state, &source->grid, part.low, part.n_of, number, packed);
    return r ? r : packed_add_part(packed, &part);
}

const struct provider chunk_source_provider = {
    .is_concurrent = true,
    .fill = fill,
    .explain = explain,
    .watch = watch,
    .locate = locate,
};

/* From layouts --------------------------------------------------------------------------------- */

static void lay_chunk(struct chunk_source *source, const int *order)
{
    int64_t stride = (int64_t)source->item_bytes;
    source->is_c_order = true;
    for (int i = source->grid.ndim - 1; i >= 0; i--) {
        int axis = order ? order[i] : i;
        source->is_c_order &= axis == i || source->grid.chunk_shape[axis] == 1;
        source->strides[axis] = stride;
        stride *= source->grid.chunk_shape[axis];
    }
}

/* Chunks that blocks of a walk in C order cut at a time: some times over where that is little, once
 * where it is much. Of chunks that are very large there is one, and no other is decoded beside it.
 */
static unsigned n_cached(const struct chunk_source *source)
{
    uint64_t slab = source->grid.chunk_bytes, least = MIN_CHUNKS;
    bool has_walk = false; /* the axis that is walked outermost counts once */
    for (int k = 0; k < source->grid.ndim; k++) {
        uint64_t n = (uint64_t)(source->last_chunk[k] - source->first_chunk[k] + 1);
        if (!has_walk && source->selection.axes[k].count > 1)
            has_walk = true;
        else if (__builtin_mul_overflow(slab, n, &slab))
            slab = MAX_SLAB_BYTES;
    }
    uint64_t bytes = min_u64(max_u64(N_SLABS * min_u64(slab, MAX_CACHE_BYTES), MIN_CACHE_BYTES),
                             MAX_CACHE_BYTES);
    bytes = max_u64(bytes, min_u64(slab + slab / 8, MAX_SLAB_BYTES));
    if (source->grid.chunk_bytes >= LARGE_CHUNK_BYTES)
        least = 1;
    return (unsigned)min_u64(max_u64(bytes / source->grid.chunk_bytes, least), MAX_CHUNKS);
}

static void find_chunks(struct chunk_source *source)
{
    for (int k = 0; k < source->grid.ndim; k++) {
        const struct selection_axis *axis = &source->selection.axes[k];
        int64_t last = axis->start + (axis->count > 0 ? axis->count - 1 : 0) * axis->step;
        int64_t a = axis->start / source->grid.chunk_shape[k];
        int64_t b = last / source->grid.chunk_shape[k];
        source->first_chunk[k] = a < b ? a : b;
        source->last_chunk[k] = a < b ? b : a;
    }
}

static int take_layout(struct chunk_source *source, const struct chunk_layout *layout)
{
    source->grid = layout->grid;
    source->item_bytes = layout->item_bytes;
    source->selection = *layout->selection;
    source->pipeline = *layout->pipeline;
    memcpy(source->shape, layout->shape, (size_t)layout->grid.ndim * sizeof(*layout->shape));
    for (size_t i = 0; layout->fill && i < layout->item_bytes; i++) {
        source->fill[i] = ((const uint8_t *)layout->fill)[i];
        source->has_fill |= source->fill[i] != 0;
    }
    lay_chunk(source, layout->order);
    find_chunks(source);
    source->path = strdup(layout->path);
    source->dataset = layout->dataset ? strdup(layout->dataset) : NULL;
    if (!source->path || (layout->dataset && !source->dataset))
        return -ENOMEM;
    return chunk_cache_init(&source->cache, n_cached(source), source->grid.chunk_bytes, load,
                            is_wanted, source);
}

int chunk_source_new(const struct chunk_layout *layout, const char *name,
                     struct chunk_source **ret_source, struct gad_error *error)
{
    if (layout->grid.chunk_bytes > MAX_CHUNK_BYTES) {
        error_set(error, GAD_BAD_FORMAT, name, "a chunk of '%.160s' has %" PRIu64 " bytes",
                  layout->dataset ? layout->dataset : layout->path, layout->grid.chunk_bytes);
        error_expected(error, "at most %" PRIu64 " bytes", MAX_CHUNK_BYTES);
        error_found(error, "%" PRIu64 " bytes", layout->grid.chunk_bytes);
        return GAD_BAD_FORMAT;
    }
    struct chunk_source *source = calloc(1, sizeof(*source));
    if (!source)
        return error_from_errno(error, ENOMEM, name, layout->path);
    pthread_mutex_init(&source->lock, NULL);
    tools_init(&source->tools);
    int r = take_layout(source, layout);
    if (r < 0) {
        chunk_source_free(source);
        return error_from_errno(error, -r, name, layout->path);
    }
    source->fetch = layout->fetch;
    source->make = layout->make;
    source->where = layout->where;
    source->locate = layout->locate;
    source->watch = layout->watch;
    source->free_state = layout->free_state;
    source->state = layout->state;
    *ret_source = source;
    return 0;
}

struct chunk_source *chunk_source_free(struct chunk_source *source)
{
    if (!source)
        return NULL;
    if (source->cache.chunks)
        chunk_cache_deinit(&source->cache);
    tools_deinit(&source->tools);
    if (source->free_state)
        source->free_state(source->state);
    pthread_mutex_destroy(&source->lock);
    free(source->path);
    free(source->dataset);
    free(source);
    return NULL;
}
