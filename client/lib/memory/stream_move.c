/* Moving a stream's elements through its ring.
 *
 *     elements, in C order     ...|=====at==>.......
 *     blocks of the worker        [  slot 3  ][  slot 4  ][ 5 ]       each part of the array once
 *
 * A block is a box of the array. Its bytes lie in its slot in C order, and so the place in the
 * array of its next byte only grows: the element that comes next belongs to the one block whose
 * next byte is there. Blocks may share rows; they become whole one after the other. A block is
 * copied straight from or to the caller's memory, in runs that are dense on both sides, and
 * answered when it is whole.
 *
 * The last block of a source is answered when the producer has said that nothing follows, so a job
 * whose producer makes too much does not end well.
 *
 * Called by stream.c, under the stream's lock.
 */
#include "client/lib/memory/stream_impl.h"
#include "proto/util.h"

#include <string.h>

/* The worker is told when this part of the ring was answered, or a call has moved all that it can:
 * a signal costs both sides about as much as copying a block does. */
#define TELL_PART 4

/* The place in the array, in bytes, of a block's byte; the byte begins a run or is in one. */
static uint64_t place_of(const struct gad_stream *stream, const struct stream_slot *slot,
                         uint64_t in_block)
{
    const struct gad_array_info *info = &stream->array->info;
    uint64_t element = in_block / stream->item_bytes, place = 0, step = 1;
    for (int i = info->ndim - 1; i >= 0; i--) {
        uint64_t count = (uint64_t)slot->count[i];
        place += ((uint64_t)slot->start[i] + element % count) * step;
        element /= count;
        step *= (uint64_t)info->shape[i];
    }
    return place * stream->item_bytes + in_block % stream->item_bytes;
}

static void measure(const struct gad_stream *stream, struct stream_slot *slot)
{
    const struct gad_array_info *info = &stream->array->info;
    bool is_dense = true;
    slot->n_bytes = slot->run_bytes = stream->item_bytes;
    for (int i = info->ndim - 1; i >= 0; i--) {
        slot->n_bytes *= (uint64_t)slot->count[i];
        slot->run_bytes *= is_dense ? (uint64_t)slot->count[i] : 1;
        is_dense = is_dense && slot->count[i] == info->shape[i];
    }
    slot->n_moved = 0;
    slot->next = slot->n_bytes > 0 ? place_of(stream, slot, 0) : UINT64_MAX;
}

static void tell(struct gad_stream *stream)
{
    if (stream->n_untold > 0)
        feed_tell(stream->feed);
    stream->n_untold = 0;
}

static void answer(struct gad_stream *stream, uint32_t index, int status)
{
    struct stream_slot *slot = &stream->slots[index];
    slot->next = UINT64_MAX;
    feed_answer(stream->feed, index, status);
    if (++stream->n_untold > stream->feed->ring.n_slots / TELL_PART)
        tell(stream);
}

/* Whether the worker asks for the slot's block. */
static bool look_at(struct gad_stream *stream, uint32_t index)
{
    struct stream_slot *slot = &stream->slots[index];
    uint64_t request;
    if (!feed_has_request(stream->feed, index))
        return false;
    request = feed_request(stream->feed, index);
    if (request == slot->request)
        return true;
    slot->request = request;
    slot->next = UINT64_MAX;
    int status = feed_take_box(stream->feed, index, slot->start, slot->count);
    if (status) {
        answer(stream, index, status);
        return false;
    }
    measure(stream, slot);
    return true;
}

static bool find_next(struct gad_stream *stream, bool *ret_is_stuck)
{
    uint32_t n_slots = stream->feed->ring.n_slots, n_asked = 0;
    *ret_is_stuck = false;
    for (uint32_t i = 0; i < n_slots; i++) {
        uint32_t index = (stream->current + i) % n_slots;
        if (!look_at(stream, index))
            continue;
        if (stream->slots[index].next == stream->at) {
            stream->current = index;
            return true;
        }
        n_asked++;
    }
    *ret_is_stuck = n_asked == n_slots;
    return false;
}

/* Of the current block. */
static char *place_in_slot(const struct gad_stream *stream, uint64_t *ret_n_bytes)
{
    const struct stream_slot *slot = &stream->slots[stream->current];
    *ret_n_bytes = slot->run_bytes - slot->n_moved % slot->run_bytes;
    return feed_slot_memory(stream->feed, stream->current) + slot->n_moved;
}

static void advance(struct gad_stream *stream, uint64_t n_bytes)
{
    struct stream_slot *slot = &stream->slots[stream->current];
    slot->n_moved += n_bytes;
    stream->at += n_bytes;
    if (slot->n_moved < slot->n_bytes)
        slot->next = place_of(stream, slot, slot->n_moved);
    else if (stream->is_output || stream->at < stream->total_bytes)
        answer(stream, stream->current, 0);
    else
        slot->next = UINT64_MAX;
}

void stream_advance(struct gad_stream *stream, uint64_t n_bytes)
{
    advance(stream, n_bytes);
    tell(stream);
}

/* The next part of one block. */
static uint64_t move_part(struct gad_stream *stream, char *bytes, uint64_t n_bytes)
{
    uint64_t n_there;
    char *in_slot = place_in_slot(stream, &n_there);
    uint64_t n = min_u64(n_bytes, n_there);
    memcpy(stream->is_output ? bytes : in_slot, stream->is_output ? in_slot : bytes, n);
    advance(stream, n);
    return n;
}

static bool has_next(struct gad_stream *stream, bool *ret_is_stuck)
{
    *ret_is_stuck = false;
    return stream->slots[stream->current].next == stream->at || find_next(stream, ret_is_stuck);
}

uint64_t stream_move(struct gad_stream *stream, char *bytes, uint64_t n_bytes, bool *ret_is_stuck)
{
    uint64_t n_moved = 0;
    *ret_is_stuck = false;
    while (n_moved < n_bytes) {
        if (!has_next(stream, ret_is_stuck))
            break;
        n_moved += move_part(stream, bytes + n_moved, n_bytes - n_moved);
    }
    tell(stream);
    return n_moved;
}

char *stream_place(struct gad_stream *stream, uint64_t *ret_n_bytes)
{
    bool is_stuck;
    if (!stream->feed)
        return NULL;
    bool is_there = has_next(stream, &is_stuck);
    if (!is_there) {
        feed_wish(stream->feed, RING_TELL_ONCE); /* what came since is not signalled */
        is_there = has_next(stream, &is_stuck);
    }
    tell(stream);
    if (is_there)
        return place_in_slot(stream, ret_n_bytes);
    if (is_stuck)
        stream_fail_stuck(stream);
    return NULL;
}

void stream_answer_last(struct gad_stream *stream)
{
    if (feed_has_request(stream->feed, stream->current))
        answer(stream, stream->current, 0);
    tell(stream);
}

void stream_forget_slots(struct gad_stream *stream)
{
    for (uint32_t i = 0; i < RING_MAX_SLOTS; i++)
        stream->slots[i] = (struct stream_slot){.next = UINT64_MAX};
    stream->current = stream->n_untold = 0;
}
