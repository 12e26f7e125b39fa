/* A job as the connection's machinery sees it: what waiting, progress and freeing need. Lives until
 * the library's job is freed, which may be after the Python object has gone. */
#pragma once

#include "gpuarrayd.h"

#include <stdatomic.h>

struct work;

/* What is given up while somebody else has the connection's lock. */
struct release {
    struct release *next;
    struct gad_array *array; /* NULL: it is a job */
    struct work *work;
};

typedef _Atomic(struct release *) release_list;

struct work {
    struct release release;
    struct gad_job *job;
    struct work *previous, *next; /* in link->running until it is done */
    atomic_bool is_done;          /* set under the lock; job is constant from then on */
    bool is_orphan;               /* the Python object has gone */
    uint64_t connection;          /* in which it is known to be served: see link.h */
    uint64_t attempt;             /* of making the connection anew for it */
    _Atomic(uint64_t) progress[5];
    void *keeps[2]; /* Python objects that hold its arrays and texts; given back with the GIL */
};

struct release *link_push_release(release_list *list, struct release *node);
struct release *link_take_releases(release_list *list);
