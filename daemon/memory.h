/* The machine's memory, as far as plans depend on it. */
#pragma once

#include <stdint.h>

/* All of it, in bytes; 0: the system does not say. The same as long as the machine runs: broker and
 * worker plan with it. */
uint64_t memory_bytes(void);
