/* A feed: one array of one job, served block by block through a ring (proto/wire/ring.h). */
#pragma once

#include "client/array.h"
#include "client/lib/memory/rings.h"
#include "proto/wire/ring.h"

#include <stdint.h>

#define FEED_N_SLOTS    16u /* used in turn, so that a slot has left the other side's own cache */
#define FEED_SLOT_BYTES (256u * 1024u)

struct feed {
    struct feed *next; /* of the job */

    /* The pump's, under its lock. */
    struct feed *pump_next;
    bool is_in_pump;
    bool is_in_hand[RING_MAX_SLOTS];
    unsigned n_in_hand, n_away; /* the latter: of those, in a function that may take for ever */
    uint32_t newest;            /* the slot that was taken last */
    unsigned n_untold;          /* blocks that the worker was not told of */
    uint64_t told_ns, took_ns;  /* the latter: a provider for the last block */

    struct gad_array *array; /* the job's; the pump's own reference once it keeps the feed */
    bool may_hang, is_in_order;
    unsigned most_in_hand;   /* 0: any number */
    struct client_ring ring; /* owned */
    struct rings *kept;      /* where it goes when the job was done; NULL: nowhere */

    /* What is served: the array's own axes. Blocks go to and from memory at `data`, or through the
     * provider. Everything here is the caller's until the feed is freed. */
    bool is_sink;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM]; /* of data */
    size_t item_bytes;
    bool is_large; /* larger than a cache */
    char *data;    /* NULL: provider */
    const struct provider *provider;
    void *provider_state;
    bool is_open;
    int64_t end_row;           /* of an open source: where it has ended; -1: it goes on */
    struct gad_stream *stream; /* who serves it instead of the pump; NULL: the pump does */
};

/* Serves `array` (ACCESS_MEMORY, or one with a provider). The ring comes from those that the
 * array's client has kept, if there is one. no-memory, io-error. */
int feed_new(struct gad_array *array, bool is_sink, struct feed **ret_feed,
             struct gad_error *error) GAD_MUST_CHECK;
struct feed *feed_free(struct feed *feed); /* NULL; it is in no pump */
/* Instead, after the daemon has said that the job is done: its client keeps the ring. NULL:
 * nothing.
 */
void feed_free_done(struct feed *feed);

/* Whether the worker asks for the block of a slot. */
bool feed_has_request(const struct feed *feed, uint32_t slot);
/* Answers it. No two threads at one slot at a time, nor in one provider. next_feed (may be NULL),
 * of an array in memory: its slot next_slot is served next by this thread. */
void feed_serve(struct feed *feed, uint32_t slot, const struct feed *next_feed, uint32_t next_slot);
/* Parts of it, for a stream, which answers when it has the block: the number of the request, where
 * its box is (a positive errno for one that is not the array's), the slot, the answer. */
uint64_t feed_request(const struct feed *feed, uint32_t slot);
int feed_take_box(const struct feed *feed, uint32_t slot, int64_t *ret_start, int64_t *ret_count);
char *feed_slot_memory(const struct feed *feed, uint32_t slot);
void feed_answer(struct feed *feed, uint32_t slot, int status);
/* Whether the worker waits for a signal: what it could do is done. */
bool feed_is_waited_for(const struct feed *feed);
/* Signals what was answered, if the worker wishes to know. */
void feed_tell(struct feed *feed);
/* What the client wants to be told of the worker's requests from now on. */
void feed_wish(struct feed *feed, enum ring_wish wish);
