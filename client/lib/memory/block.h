/* Copying between a strided array in memory and a packed block (C order, no gaps). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The box of `count` elements along each axis whose first element is at `first`, strides in bytes
 * (any sign, zero too for gathering). item_bytes is 1, 2, 4 or 8. Packed and strided memory do not
 * overlap. is_streamed: where the array is contiguous it is written past the cache (proto/box.h),
 * as is right for one that is larger than the cache. */
void block_gather(void *packed, const void *first, int ndim, const int64_t *count,
                  const int64_t *strides, size_t item_bytes);
void block_scatter(void *first, const void *packed, int ndim, const int64_t *count,
                   const int64_t *strides, size_t item_bytes, bool is_streamed);

/* Whether the box lies in memory as it does in a block: one copy is enough. */
bool block_is_run(int ndim, const int64_t *count, const int64_t *strides, size_t item_bytes);
