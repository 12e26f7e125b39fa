/* A box of an array that is made for a box of a pass and is gone behind it, with what lies around
 * that: states of repeats, operands of windows. Dense, in the order in which the pass visits its
 * axes. Along an axis that is wrapped it may go on beyond the end, with what is at the beginning:
 *
 *     array:   a b c d e f g h         box, 5 from f on:   f g h a b
 *
 * Pure; the engines, which have the memory, take it from here. */
#pragma once

#include "kernels/engine.h"

/* Axes are those of the array: the last ones of the pass. start and count are given, the rest
 * follows (made_box_lay_out()), as if the pass's box were in it: where it is not, but in one that
 * is larger, `first` is from there. */
struct made_box {
    int ndim, n_missing; /* n_missing: axes of the pass in front of its own */
    const int64_t *shape;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    int64_t first[ARRAY_MAX_NDIM];   /* elements from the first one of the pass's box to its own */
    int64_t strides[ARRAY_MAX_NDIM]; /* elements */
    int axis_order[ARRAY_MAX_NDIM];
    uint32_t goes_on_axes;
    uint64_t n_elements;
};

/* Of an array with start and count for `of`, a box of the pass. */
void made_box_lay_out(struct made_box *box, int ndim, const int64_t *shape,
                      const struct engine_box *of);

/* A box of an array, which may go on beyond the ends of its axes, as boxes that do not, one after
 * the other: *part is 0 at first. False: it was the last. */
bool made_box_next_part(int ndim, const int64_t *shape, const int64_t *start, const int64_t *count,
                        uint32_t *part, int64_t *ret_start, int64_t *ret_count);

/* How many elements behind the box's first one the element `at` of the array is along an axis. */
static inline int64_t made_box_place(const struct made_box *box, int axis, int64_t at)
{
    return at - box->start[axis] + (at < box->start[axis] ? box->shape[axis] : 0);
}

/* What lies in `memory` from the element `at` on, for a pass that has n_missing axes in front. */
void made_box_view(const struct made_box *box, size_t item_bytes, char *memory, const int64_t *at,
                   int n_missing, struct engine_view *ret_view);

/* Another operand of the pass over `of`, which the view is of: as a pass over the array's own axes
 * reads it from the element `at` on. It has that, too. */
void made_box_move(const struct made_box *box, const struct engine_box *of,
                   const struct engine_view *view, const int64_t *at, struct engine_view *ret_view);
