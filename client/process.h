/* Which process a number means: numbers are given again, starts are not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When it started, in ticks since the machine did; 0: it is not there, or has ended and nobody has
 * asked how. */
uint64_t process_start(pid_t pid);
/* Whether the process that started then has ended for sure: what cannot be seen may live. */
bool process_has_ended(pid_t pid, uint64_t start);
