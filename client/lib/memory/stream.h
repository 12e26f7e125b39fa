/* Copying past the cache. */
#pragma once

#include <stddef.h>

/* A copy into memory that nobody reads soon: its lines are written whole, without being read
 * first, and do not push others out of the cache. What is written is there for other threads once
 * this thread has released it to them as usual. No alignment is needed; the two do not overlap.
 *
 * next: n_next bytes that this thread reads right after; they are fetched into the cache meanwhile,
 * as memory can be read while it is written. Only a hint, never touched; 0: nothing. */
void stream_copy(void *to, const void *from, size_t n_bytes, const void *next, size_t n_next);
