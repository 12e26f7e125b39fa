/* Memory that is filled from end to end: in huge pages, where the system has them, as its pages are
 * made when they are first written to, which takes as long as filling them. */
#pragma once

#include "proto/util.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE_BYTES ((size_t)2 << 20)

/* To be given to free(); NULL: no memory. */
static inline void *large_alloc(size_t n_bytes)
{
    if (n_bytes < 2 * LARGE_PAGE_BYTES || n_bytes > SIZE_MAX - LARGE_PAGE_BYTES)
        return malloc(n_bytes);
    void *memory = aligned_alloc(LARGE_PAGE_BYTES, (size_t)round_up_u64(n_bytes, LARGE_PAGE_BYTES));
    if (memory)
        (void)madvise(memory, n_bytes, MADV_HUGEPAGE);
    return memory;
}
