/* Boxes of arrays as memories have them: axes merged, walked and copied.
 *
 * A box is axes, each with a number of elements and its strides in two memories: a file and a
 * buffer, a caller's array and a packed block, a source and a destination. Who has one memory alone
 * leaves the second strides 0.
 *
 *     struct box box;
 *     box.n = 0;                       (it is large: axes behind n are never written)
 *     for (each axis, the fastest first)
 *         box_add(&box, count, stride, other_stride);
 *     struct box_place place = {.index = {0}};
 *     do
 *         ... place.offset[0], place.offset[1] ...
 *     while (box_next(box.axes, box.n, &place));
 */
#pragma once

#include "proto/array.h"

#include <stddef.h>

#define BOX_MAX_AXES (ARRAY_MAX_NDIM + 1)

struct box_axis {
    int64_t count;      /* > 0 */
    int64_t strides[2]; /* bytes, of any sign */
};

struct box {
    int n;
    struct box_axis axes[BOX_MAX_AXES]; /* fastest first */
};

/* Whether an axis goes on where one that is faster ends, in both memories: they are one. */
static inline bool box_goes_on(const struct box_axis *faster, const struct box_axis *axis)
{
    uint64_t count = (uint64_t)faster->count; /* what lies behind its end may be beyond 63 bits */
    return (uint64_t)axis->strides[0] == (uint64_t)faster->strides[0] * count &&
           (uint64_t)axis->strides[1] == (uint64_t)faster->strides[1] * count;
}

/* One axis more, slower than those that are there: merged with the last of them where it goes on
 * there, left out where it has one element. count: above 0. */
static inline void box_add(struct box *box, int64_t count, int64_t stride, int64_t other_stride)
{
    const struct box_axis axis = {count, {stride, other_stride}};
    struct box_axis *last = box->n > 0 ? &box->axes[box->n - 1] : NULL;
    if (count == 1)
        return;
    if (last && box_goes_on(last, &axis))
        last->count *= count;
    else
        box->axes[box->n++] = axis;
}

/* For walks whose innermost loop is an axis: a box of one element has these strides. */
static inline void box_need_axis(struct box *box, int64_t stride, int64_t other_stride)
{
    if (box->n == 0)
        box->axes[box->n++] = (struct box_axis){1, {stride, other_stride}};
}

/* The two memories change places. */
static inline void box_exchange(struct box *box)
{
    for (int i = 0; i < box->n; i++) {
        int64_t stride = box->axes[i].strides[0];
        box->axes[i].strides[0] = box->axes[i].strides[1];
        box->axes[i].strides[1] = stride;
    }
}

/* Takes the fastest axis off where it is a run in both memories: its elements, of item_bytes, lie
 * side by side. Returns the bytes of a run, or of an element. */
int64_t box_take_run(struct box *box, int64_t item_bytes);

/* Where a walk through a box is. */
struct box_place {
    int64_t index[BOX_MAX_AXES];
    int64_t offset[2]; /* bytes from the box's first element, in both memories */
};

/* Steps along axes[i] of axes[0 .. n), at most to its end, and on along the slower ones; false
 * after the last place, and the walk stands at the first one of these axes again. */
static inline bool box_advance(const struct box_axis *axes, int n, int i, int64_t n_steps,
                               struct box_place *place)
{
    for (; i < n; i++, n_steps = 1) {
        const struct box_axis *axis = &axes[i];
        int64_t before = place->index[i];
        if (n_steps < axis->count - before) {
            place->offset[0] += n_steps * axis->strides[0];
            place->offset[1] += n_steps * axis->strides[1];
            place->index[i] += n_steps;
            return true;
        }
        place->offset[0] -= before * axis->strides[0];
        place->offset[1] -= before * axis->strides[1];
        place->index[i] = 0;
    }
    return false;
}

/* One step through axes[0 .. n), the first one fastest. */
static inline bool box_next(const struct box_axis *axes, int n, struct box_place *place)
{
    return box_advance(axes, n, 0, 1, place);
}

/* The place of an element; they are numbered as they are walked. */
static inline void box_locate(const struct box *box, uint64_t element, struct box_place *ret_place)
{
    ret_place->offset[0] = ret_place->offset[1] = 0;
    for (int i = 0; i < box->n; i++) {
        const struct box_axis *axis = &box->axes[i];
        int64_t index = (int64_t)(element % (uint64_t)axis->count);
        element /= (uint64_t)axis->count;
        ret_place->index[i] = index;
        ret_place->offset[0] += index * axis->strides[0];
        ret_place->offset[1] += index * axis->strides[1];
    }
}

/* n elements of item_bytes (any number) from one line to another, which do not overlap. */
void box_copy_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n,
                   size_t item_bytes);

/* All of a box whose strides are those of `to`, then those of `from`. The box is used up.
 * is_past_cache: long runs, see below. */
void box_copy(struct box *box, void *to, const void *from, size_t item_bytes, bool is_past_cache);

/* Past the cache: what is written is not read soon, and lines that are overwritten whole are not
 * read before. It comes before whatever the calling thread writes after box_fence(). next (may be
 * NULL): n_next bytes that are read next, and fetched meanwhile. */
void box_copy_past_cache(void *to, const void *from, size_t n_bytes, const void *next,
                         size_t n_next);
void box_fence(void);
