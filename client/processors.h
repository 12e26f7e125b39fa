/* How many threads of this process can run at a time. */
#pragma once

#include <sched.h>

static inline unsigned n_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : (unsigned)n;
}
