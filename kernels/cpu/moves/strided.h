/* Copies of elements between strided memory and strips. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* dst[r * dst_row + i * dst_stride] = src[r * src_row + i * src_stride], strides in bytes, elements
 * of 1 << item_log2 bytes, any alignment. The two sides do not overlap. */
struct strided_block {
    size_t n_rows, n;
    char *dst;
    int64_t dst_row, dst_stride;
    const char *src;
    int64_t src_row, src_stride;
};
void strided_copy(unsigned item_log2, const struct strided_block *block);
