/* Bytes that several connections send from where they are. Whoever queues them holds a reference;
 * when the last one has gone, `unused` is called: the bytes may go then, or belong to somebody who
 * holds no reference. All in one thread. */
#pragma once

#include <stddef.h>

struct shared { /* embedded in what holds the bytes */
    size_t n_refs;
    void (*unused)(struct shared *shared);
};

static inline void shared_ref(struct shared *shared)
{
    shared->n_refs++;
}

static inline void shared_unref(struct shared *shared)
{
    if (--shared->n_refs == 0)
        shared->unused(shared);
}
