/* A feed: one array of one job, served block by block through a ring (proto/ring.h). */
#pragma once

#include "client/array.h"

#include <stdint.h>

#define FEED_N_SLOTS    8u
#define FEED_SLOT_BYTES (256u * 1024u)

struct feed {
    struct feed *next;      /* of the job */
    struct feed *pump_next; /* of the pump */
    uint64_t pump_id;       /* 0: not in a pump */

    int ring_fd, request_fd, done_fd; /* owned */
    void *ring;
    uint64_t ring_bytes;
    uint32_t n_slots;
    uint64_t slot_bytes;

    /* What is served: the array's own axes. Blocks go to and from memory at `data`, or through the
     * provider. Everything here is the caller's until the feed is freed. */
    bool is_sink;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM]; /* of data */
    size_t item_bytes;
    char *data; /* NULL: provider */
    const struct provider *provider;
    void *provider_state;
};

/* Serves `array` (ACCESS_MEMORY, or one with a provider). no-memory, io-error. */
int feed_new(struct gad_array *array, bool is_sink, struct feed **ret_feed,
             struct gad_error *error) GAD_MUST_CHECK;
struct feed *feed_free(struct feed *feed); /* NULL; it is in no pump */

/* Answers every request that is there. Called by the pump's thread alone. */
void feed_serve(struct feed *feed);
