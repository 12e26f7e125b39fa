/* The client's end of a ring: blocks of an array are filled or stored as the worker asks for them.
 *
 *     worker                                                client
 *     start, count, request = n    --request eventfd-->    reads them once, checks them
 *     reads done, status           <----done eventfd---    fills or stores; status, done = n
 *
 * A slot has work when its `request` is not its `done`: both are in the ring, so that a worker that
 * takes the place of one that is gone may begin counting anew. Which thread serves which slot is
 * the pump's business. The worker is trusted with the array's data, but what it writes is still
 * checked against the array before memory is touched. A provider's failure is that block's status;
 * the worker fails the job with it.
 */
#include "client/lib/memory/feed.h"
#include "client/lib/memory/block.h"
#include "client/lib/memory/stream.h"
#include "client/lib/connection/client.h"
#include "client/process.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>
#include <sys/eventfd.h>

#define LARGE_BYTES     (UINT64_C(16) << 20)
#define MAX_CHUNK_BYTES (UINT64_C(2) << 20) /* in a slot */
#define RING_BYTES      (UINT64_C(4) << 20)
#define MAX_RING_BYTES  (UINT64_C(16) << 20)

/* Of a source in chunks that are not too large for it, each is a block: it is decoded into its
 * slot.
 */
static uint64_t slot_bytes_of(const struct gad_array *array, bool is_sink)
{
    uint64_t n_bytes = gad_dtype_size(array->info.dtype);
    for (int i = 0; i < array->info.ndim && n_bytes <= MAX_CHUNK_BYTES; i++)
        n_bytes *= min_u64((uint64_t)array->chunk_shape[i], MAX_CHUNK_BYTES + 1);
    if (is_sink || array->n_chunks == 0 || n_bytes > MAX_CHUNK_BYTES)
        return FEED_SLOT_BYTES;
    return max_u64(round_up_u64(n_bytes, 4096), FEED_SLOT_BYTES);
}

/* A ring for each array is as large as the processors' own caches are about. With large slots that
 * are few, but two for each processor: one is filled while the other is read. A chunk that is
 * decoded into a ring of 16 MiB and read from there costs up to half as much again, since it goes
 * through memory both times. */
static uint64_t n_slots_of(uint64_t slot_bytes)
{
    uint64_t n = max_u64(RING_BYTES / slot_bytes, UINT64_C(2) * n_processors());
    return min_u64(min_u64(n, FEED_N_SLOTS), MAX_RING_BYTES / slot_bytes);
}

static int open_ring(struct feed *feed, uint64_t array_bytes, uint64_t slot_bytes,
                     struct gad_error *error)
{
    uint64_t most = feed->stream ? stream_n_slots(feed->stream) : n_slots_of(slot_bytes);
    uint64_t n_slots = min_u64(array_bytes / slot_bytes + 1, most);
    return rings_take(feed->kept, (uint32_t)n_slots, slot_bytes, feed->ndim, &feed->ring, error);
}

int feed_new(struct gad_array *array, bool is_sink, struct feed **ret_feed, struct gad_error *error)
{
    struct feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return error_from_errno(error, ENOMEM, NULL, "a ring");
    const struct gad_array_info *info = &array->info;
    uint64_t array_bytes = gad_dtype_size(info->dtype);
    feed->kept = array->client ? &array->client->rings : NULL;
    feed->array = array;
    feed->may_hang = array->may_hang;
    feed->is_in_order = array->is_in_order;
    feed->most_in_hand = array->n_threads;
    feed->is_sink = is_sink;
    feed->ndim = info->ndim;
    feed->item_bytes = gad_dtype_size(info->dtype);
    feed->is_open = array_is_open(array);
    feed->end_row = -1;
    for (int i = 0; i < info->ndim; i++) {
        feed->shape[i] = i == 0 && feed->is_open ? array_open_rows(array) : info->shape[i];
        feed->strides[i] = info->strides[i];
        array_bytes *= (uint64_t)feed->shape[i]; /* was checked when the array was made */
    }
    feed->is_large = array_bytes >= LARGE_BYTES;
    feed->data = array->access == ACCESS_MEMORY ? array->data : NULL;
    feed->provider = array->provider;
    feed->provider_state = array->provider_state;
    feed->stream = stream_of(array);
    int r = open_ring(feed, array_bytes, slot_bytes_of(array, is_sink), error);
    if (r) {
        free(feed);
        return r;
    }
    feed->newest = feed->ring.n_slots - 1;
    *ret_feed = feed;
    return 0;
}

struct feed *feed_free(struct feed *feed)
{
    if (!feed)
        return NULL;
    client_ring_close(&feed->ring);
    free(feed);
    return NULL;
}

void feed_free_done(struct feed *feed)
{
    if (!feed)
        return;
    if (feed->kept)
        rings_keep(feed->kept, &feed->ring);
    else
        client_ring_close(&feed->ring);
    free(feed);
}

struct wanted_box {
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
};

/* A source's block may go on beyond the end of an axis, with what is at its beginning. */
static bool is_in(const struct feed *feed, int axis, int64_t start, int64_t count)
{
    int64_t length = feed->shape[axis];
    if (start < 0 || count < 0 || start > length)
        return false;
    bool may_wrap = !feed->is_sink && !feed->stream && start < length;
    return count <= (may_wrap ? length : length - start);
}

int feed_take_box(const struct feed *feed, uint32_t slot, int64_t *ret_start, int64_t *ret_count)
{
    const struct ring_entry *entry = ring_entry_at(feed->ring.memory, slot);
    uint64_t n_bytes = feed->item_bytes;
    for (int i = 0; i < feed->ndim; i++) {
        int64_t start = *(const volatile int64_t *)&entry->start[i];
        int64_t count = *(const volatile int64_t *)&entry->count[i];
        if (!is_in(feed, i, start, count))
            return EINVAL;
        if (__builtin_mul_overflow(n_bytes, (uint64_t)count, &n_bytes))
            return EINVAL;
        ret_start[i] = start;
        ret_count[i] = count;
    }
    return n_bytes > feed->ring.slot_bytes ? EINVAL : 0;
}

struct run { /* of memory */
    char *first;
    size_t n_bytes; /* 0: the box is not one */
};

static uint32_t wrapped_axes(const struct feed *feed, const struct wanted_box *box)
{
    uint32_t axes = 0;
    for (int i = 0; i < feed->ndim; i++)
        axes |= (uint32_t)(box->count[i] > feed->shape[i] - box->start[i]) << i;
    return axes;
}

static struct run run_of(const struct feed *feed, const struct wanted_box *box)
{
    struct run run = {.first = feed->data};
    for (int i = 0; i < feed->ndim; i++)
        run.first += box->start[i] * feed->strides[i];
    if (wrapped_axes(feed, box) != 0 ||
        !block_is_run(feed->ndim, box->count, feed->strides, feed->item_bytes))
        return run;
    run.n_bytes = feed->item_bytes;
    for (int i = 0; i < feed->ndim; i++)
        run.n_bytes *= (size_t)box->count[i];
    return run;
}

/* A slot of a source, to be fetched into the cache: nothing where that cannot be said. */
static struct run next_run(const struct feed *feed, uint32_t slot)
{
    struct wanted_box box;
    if (!feed || feed_take_box(feed, slot, box.start, box.count))
        return (struct run){.first = NULL};
    return run_of(feed, &box);
}

static void copy_memory(const struct feed *feed, const struct wanted_box *box, char *slot,
                        const struct run *next)
{
    struct run run = run_of(feed, box);
    if (feed->is_sink && feed->is_large && run.n_bytes > 0) {
        box_copy_past_cache(run.first, slot, run.n_bytes, next->first, next->n_bytes);
        box_fence();
    } else if (feed->is_sink) {
        block_scatter(run.first, slot, feed->ndim, box->count, feed->strides, feed->item_bytes,
                      feed->is_large);
    } else {
        block_gather(slot, run.first, feed->ndim, box->count, feed->strides, feed->item_bytes);
    }
}

char *feed_slot_memory(const struct feed *feed, uint32_t slot)
{
    return (char *)feed->ring.memory +
           ring_slot_offset_bytes(feed->ring.n_slots, feed->ring.slot_bytes, slot);
}

/* The part of a wrapped block that is before the end of each of its wrapped axes, or, where
 * `behind` has the axis, behind it; to its place in the slot, by way of `packed`. */
static int serve_part(struct feed *feed, const struct wanted_box *box, uint32_t wrapped,
                      uint32_t behind, char *slot, char *packed)
{
    struct wanted_box part = *box;
    int64_t strides[ARRAY_MAX_NDIM], stride = (int64_t)feed->item_bytes;
    for (int i = feed->ndim - 1; i >= 0; stride *= box->count[i--]) {
        int64_t n_before = feed->shape[i] - box->start[i];
        strides[i] = stride;
        if (wrapped >> i & 1)
            part.count[i] = n_before;
        if (behind >> i & 1) {
            part.start[i] = 0;
            part.count[i] = box->count[i] - n_before;
            slot += n_before * stride;
        }
    }
    int status = 0;
    if (feed->data)
        block_gather(packed, run_of(feed, &part).first, feed->ndim, part.count, feed->strides,
                     feed->item_bytes);
    else
        status = feed->provider->fill(feed->provider_state, part.start, part.count, packed);
    if (status == 0)
        block_scatter(slot, packed, feed->ndim, part.count, strides, feed->item_bytes, false);
    return status;
}

static int serve_wrapped(struct feed *feed, const struct wanted_box *box, uint32_t wrapped,
                         char *slot)
{
    char *packed = malloc(feed->ring.slot_bytes);
    int status = packed ? 0 : ENOMEM;
    for (uint32_t behind = wrapped; status == 0; behind = (behind - 1) & wrapped) {
        status = serve_part(feed, box, wrapped, behind, slot, packed);
        if (behind == 0) /* all sets of these axes were there */
            break;
    }
    free(packed);
    return status;
}

/* Returns 0 or a positive errno. */
static int serve_slot(struct feed *feed, uint32_t index, const struct run *next)
{
    struct wanted_box box;
    char *slot = feed_slot_memory(feed, index);
    int status = feed_take_box(feed, index, box.start, box.count);
    if (status)
        return status;
    if (wrapped_axes(feed, &box) != 0)
        return serve_wrapped(feed, &box, wrapped_axes(feed, &box), slot);
    if (feed->data) {
        copy_memory(feed, &box, slot, next);
        return 0;
    }
    if (feed->end_row >= 0) /* what is there of it was put there before */
        return 0;
    if (feed->is_sink)
        return feed->provider->drain(feed->provider_state, box.start, box.count, slot);
    return feed->provider->fill(feed->provider_state, box.start, box.count, slot);
}

bool feed_has_request(const struct feed *feed, uint32_t slot)
{
    struct ring_entry *entry = ring_entry_at(feed->ring.memory, slot);
    return atomic_load_explicit(&entry->request, memory_order_acquire) !=
           atomic_load_explicit(&entry->done, memory_order_relaxed);
}

uint64_t feed_request(const struct feed *feed, uint32_t slot)
{
    return atomic_load_explicit(&ring_entry_at(feed->ring.memory, slot)->request,
                                memory_order_acquire);
}

/* Of the block that is asked for in the slot. */
static uint64_t rows_there(const struct feed *feed, const struct ring_entry *entry)
{
    int64_t start = *(const volatile int64_t *)&entry->start[0];
    int64_t count = *(const volatile int64_t *)&entry->count[0];
    if (feed->end_row < 0 || feed->end_row >= start + count)
        return (uint64_t)count;
    return feed->end_row > start ? (uint64_t)(feed->end_row - start) : 0;
}

void feed_answer(struct feed *feed, uint32_t slot, int status)
{
    struct ring_entry *entry = ring_entry_at(feed->ring.memory, slot);
    entry->status = (uint32_t)status;
    if (feed->is_open)
        entry->n_rows = rows_there(feed, entry);
    atomic_store_explicit(&entry->done, feed_request(feed, slot), memory_order_release);
}

void feed_serve(struct feed *feed, uint32_t slot, const struct feed *next_feed, uint32_t next_slot)
{
    struct run next = next_run(next_feed, next_slot);
    feed_answer(feed, slot, serve_slot(feed, slot, &next));
}

static struct ring_head *head_of(const struct feed *feed)
{
    return feed->ring.memory;
}

bool feed_is_waited_for(const struct feed *feed)
{
    return atomic_load_explicit(&head_of(feed)->worker_wish, memory_order_relaxed) !=
           RING_TELL_NOTHING;
}

void feed_tell(struct feed *feed)
{
    if (ring_take_wish(&head_of(feed)->worker_wish))
        eventfd_write(feed->ring.done_fd,
                      1); /* fails only when full: then it is signalled anyway */
}

void feed_wish(struct feed *feed, enum ring_wish wish)
{
    ring_set_wish(&head_of(feed)->client_wish, wish);
}
