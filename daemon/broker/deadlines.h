/* Points in time at which a function is to be called: a heap of objects embedded in their owners,
 * so that an owner can be freed at once (a uv_timer_t could be freed only in its close callback).
 * Pure code; the loop asks for the next one. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    unsigned place; /* in the heap, from 1; 0: not set */
    void (*func)(struct deadline *deadline);
};

struct deadlines {
    struct deadline **heap;
    unsigned n, capacity;
};

void deadlines_deinit(struct deadlines *d);

/* Sets or moves. The deadline is cleared before its function is called. -ENOMEM. */
int deadline_set(struct deadlines *d, struct deadline *deadline, uint64_t at_ns,
                 void (*func)(struct deadline *deadline)) GAD_MUST_CHECK;
void deadline_clear(struct deadlines *d, struct deadline *deadline); /* also when not set */

static inline bool deadline_is_set(const struct deadline *deadline)
{
    return deadline->place != 0;
}

uint64_t deadlines_next_ns(const struct deadlines *d); /* UINT64_MAX: none */
void deadlines_run(struct deadlines *d, uint64_t now_ns);
