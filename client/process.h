/* Which process a number means: numbers are given again, starts are not. And this process. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When it started, in ticks since the machine did; 0: it is not there, or has ended and nobody has
 * asked how. */
uint64_t process_start(pid_t pid);
/* Whether the process that started then has ended for sure: what cannot be seen may live. */
bool process_has_ended(pid_t pid, uint64_t start);

/* How many threads of this process can run at a time. */
static inline unsigned n_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : (unsigned)n;
}
