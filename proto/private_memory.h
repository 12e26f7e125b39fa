/* The private memory of a process: its anonymous pages, which the kernel counts as they come and
 * go. (smaps_rollup says the same, but looks at every page for it.) */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define PRIVATE_MEMORY_FILE "/proc/self/statm"

/* statm_fd: of the process's statm; may be -1. 0: not known. */
static inline uint64_t private_memory_bytes(int statm_fd)
{
    char text[128];
    unsigned long long n_resident = 0, n_shared = 0;
    long page_bytes = sysconf(_SC_PAGESIZE);
    ssize_t n = statm_fd >= 0 ? pread(statm_fd, text, sizeof(text) - 1, 0) : -1;
    if (n <= 0 || page_bytes <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%*u %llu %llu", &n_resident, &n_shared) != 2 || n_resident < n_shared)
        return 0;
    return (n_resident - n_shared) * (unsigned long long)page_bytes;
}
