/* Bytes of items gathered by their place in the item, and back. The two memories do not overlap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHUFFLE_MAX_PLANES 16

void shuffle_join(const void *planes, void *items, size_t n_items, size_t item_bytes);
void shuffle_split(const void *items, void *planes, size_t n_items, size_t item_bytes);
/* Planes that lie apart: item_bytes of them, at most SHUFFLE_MAX_PLANES. */
void shuffle_join_planes(const uint8_t *const *planes, void *items, size_t n_items,
                         size_t item_bytes);
