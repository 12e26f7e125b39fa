/* Points in time at which a function is to be called: a heap of objects embedded in their owners,
 * so that an owner can be freed at once (a uv_timer_t could be freed only in its close callback),
 * and nothing is allocated: what has to end in time ends in time without memory too.
 * Pure code; the loop asks for the next one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    bool is_set;
    struct deadline *child, *next; /* in the heap: the first child, the next sibling */
    struct deadline *before;       /* the sibling before, or the parent of a first child */
    void (*func)(struct deadline *deadline);
};

struct deadlines {
    struct deadline *first; /* NULL: there is none */
};

/* Sets or moves. The deadline is cleared before its function is called. */
void deadline_set(struct deadlines *d, struct deadline *deadline, uint64_t at_ns,
                  void (*func)(struct deadline *deadline));
void deadline_clear(struct deadlines *d, struct deadline *deadline); /* also when not set */

static inline bool deadline_is_set(const struct deadline *deadline)
{
    return deadline->is_set;
}

uint64_t deadlines_next_ns(const struct deadlines *d); /* UINT64_MAX: none */
void deadlines_run(struct deadlines *d, uint64_t now_ns);
