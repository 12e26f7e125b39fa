/* Copying between a strided array in memory and a packed block (C order, no gaps). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The box of `count` elements along each axis whose first element is at `first`, strides in bytes
 * (any sign, zero too for gathering). item_bytes is 1, 2, 4 or 8. Packed and strided memory do not
 * overlap. */
void block_gather(void *packed, const void *first, int ndim, const int64_t *count,
                  const int64_t *strides, size_t item_bytes);
void block_scatter(void *first, const void *packed, int ndim, const int64_t *count,
                   const int64_t *strides, size_t item_bytes);
