/* The machine's memory. What is free of it changes from one moment to the next, but two processes
 * plan each job and must come to the same; so it is all memory that counts, and whoever asks leaves
 * a wide margin. Called by broker and worker when they learn or tell a worker's limits.
 */
#include "daemon/memory.h"

#include <unistd.h>

uint64_t memory_bytes(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && page_bytes > 0 ? (uint64_t)n_pages * (uint64_t)page_bytes : 0;
}
