/* Who is to blame when a worker ends, and who hangs: pure functions on the crash page. */
#pragma once

#include "daemon/crashpage.h"

#include <stdbool.h>
#include <stdint.h>

struct death {     /* how the worker ended */
    int exit_code; /* when term_signal is 0 */
    int term_signal;
    bool was_hanging;  /* we ended it, because a tile took too long */
    bool was_bad_peer; /* we ended it, because of what it said */
    bool was_sent;     /* term_signal came from another process */
};

struct hang_limits {
    /* The processor's time for a tile's arithmetic; wall time of one that is with a device. */
    uint64_t computing_ns;
    /* Wall time of anything, since others can hold it up: the disk, a loaded machine. */
    uint64_t blocking_ns;
};

/* It died of its own doing: a fault's signal, an exit code that is not 0, or a hang that we ended;
 * not of a signal from outside, whichever, and not because it has no device or memory there. */
bool strikes_count(const struct death *death);

/* It died of its own doing, or of what it said, and no tile was in hand (n_struck is 0): any of its
 * jobs may have done that. A device that faults with no tile at it does so for no job. */
bool strikes_all(const struct death *death, unsigned n_struck);

bool strikes_is_hanging(const struct crashpage_thread *thread, uint64_t now_ns,
                        const struct hang_limits *limits);
bool strikes_any_hanging(const struct crashpage *page, uint64_t now_ns,
                         const struct hang_limits *limits);

/* Whether the signal that ended the worker was sent to it. */
bool strikes_was_sent(const struct crashpage *page, int term_signal);

/* The jobs that get a strike, each once, at most `max`; returns how many. After a hang only those
 * whose tile hung; where threads faulted with a tile in hand only theirs; else all with a tile in
 * hand. */
unsigned strikes_judge(const struct crashpage *page, const struct death *death, uint64_t now_ns,
                       const struct hang_limits *limits, uint64_t *ret_jobs, unsigned max);

/* "signal 11 (Segmentation fault)", "exit status 1", "a tile that hung". */
const char *strikes_describe(const struct death *death, char *buffer, unsigned n_bytes);
