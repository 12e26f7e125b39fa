/* Selections: NumPy's basic indexing behind the name of a source, as in `a.npy[10:20, ::2]`. Pure.
 */
#pragma once

#include "proto/array.h"

#include <stddef.h>

/* What is taken along an axis of the source: start, start + step, ... Every one of them is inside
 * the axis; fewer than two: step is 1, none: start is 0. */
struct selection_axis {
    int64_t start, step, count;
    bool is_dropped; /* an integer: count is 1 and the result has no such axis */
};

struct selection {
    int source_ndim;
    struct selection_axis axes[ARRAY_MAX_NDIM];
    int ndim;                    /* of what is selected */
    int axis_of[ARRAY_MAX_NDIM]; /* the source's axis, SELECTION_NEW_AXIS: newaxis, of size 1 */
};
#define SELECTION_NEW_AXIS (-1)

/* The elements i of an axis' selection, [first, end), that lie in [low, low + length) of what is
 * selected from, were there no end of them: i may be `count` or more. */
void selection_meet(const struct selection_axis *axis, int64_t low, int64_t length,
                    int64_t *ret_first, int64_t *ret_end);

/* Everything. */
void selection_whole(int ndim, const int64_t *shape, struct selection *ret_selection);

/* The selection that begins with the bracket text[at] and ends with the text, of an array of this
 * shape (as of array_check()). `text` is the error's argument; positions in errors count its
 * characters from 1. bad-argument. */
int selection_read(const char *text, size_t at, int ndim, const int64_t *shape,
                   struct selection *ret_selection, struct gad_error *error) GAD_MUST_CHECK;

/* Finds the selection at the end of n_chars of a text: the bracket that the last character (but for
 * blanks) closes. False when there is none, or nothing before it. */
bool selection_find(const char *text, size_t n_chars, size_t *ret_at);

int64_t selection_size(const struct selection *selection, int i); /* of axis i of the result */
bool selection_is_empty(const struct selection *selection);

/* From an array as a whole to what is selected of it: ndim, shape, strides and the offset of
 * element 0. Strides of new axes are the item's size. */
void selection_apply(const struct selection *selection, struct array *array,
                     uint64_t *offset_bytes);
