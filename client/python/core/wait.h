/* Waiting for jobs of a shared connection. Everything under the link's lock; see wait.c. */
#pragma once

#include "core/link.h"

enum wait_end {
    WAIT_DONE,
    WAIT_TIMEOUT,
    WAIT_WOKEN,       /* link_wake(), or the connection was closed */
    WAIT_INTERRUPTED, /* a signal may have come: look, and wait again */
};

#define WAIT_FOR_EVER INT64_MAX

/* The clock of deadlines, nanoseconds. */
int64_t wait_now_ns(void);

/* Waits until one of the works is done. Unlocks meanwhile.
 * is_wakable: link_wake() ends it too.
 * sees_signals: this thread must look for signals again and again. */
enum wait_end link_wait(struct link *link, struct work *const *works, size_t n_works,
                        bool is_wakable, int64_t deadline_ns, bool sees_signals);
/* Ends those waits that are wakable; if there is none, the next one. */
void link_wake(struct link *link);

void wait_rouse_done(struct link *link);
void wait_rouse_all(struct link *link);
/* If there is something else to poll than the poller knows. */
void wait_tell_poller(struct link *link);
