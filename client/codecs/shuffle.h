/* Bytes of items gathered by their place in the item, and back. The two memories do not overlap. */
#pragma once

#include <stddef.h>

void shuffle_join(const void *planes, void *items, size_t n_items, size_t item_bytes);
void shuffle_split(const void *items, void *planes, size_t n_items, size_t item_bytes);
