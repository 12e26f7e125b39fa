/* Where arrays lie relative to each other. Valid only after array_check(). An offset is that of
 * element 0 in what both arrays are in: a file, a region, the address space. */
#pragma once

#include "proto/array.h"

/* Whether both put every index at the same byte: offset, shape, strides (of axes longer than 1) and
 * item size are equal. */
bool array_is_same_mapping(const struct array *a, int64_t a_offset, const struct array *b,
                           int64_t b_offset);

/* Whether they have no byte in common. Sound, not complete: false also for some strange layouts
 * that do not meet. Arrays without elements meet nothing. */
bool array_is_apart(const struct array *a, int64_t a_offset, const struct array *b,
                    int64_t b_offset);

/* Whether elements of an array may lie over each other (a stride of 0, crossing strides); then the
 * axis that steps over too little, and the bytes that it would have to step over. Sound as well:
 * true also for some strange layouts where none do. */
bool array_covers_itself(const struct array *array, int *ret_axis, uint64_t *ret_covered);
