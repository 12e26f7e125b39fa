/* Elements that lie apart in memory. item_bytes: 1, 2, 4 or 8. Strides in bytes, of any sign. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* n elements from one line to another. */
void strided_copy(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                  size_t item_bytes);

/* The box of `count` elements along each axis, its first at `from`, packed in C order. */
void strided_gather(char *ret_packed, const char *from, int ndim, const int64_t *count,
                    const int64_t *strides, size_t item_bytes);
