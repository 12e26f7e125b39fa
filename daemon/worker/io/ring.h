/* A provider's ring in the worker: which blocks are asked for, there, lent or being drained.
 *
 * One ring is one array, a source or a sink. A block is the part of the array that one position of
 * the job's walk needs: a grain (or several in a row, when they need the same part, or the parts of
 * a chunk). Positions are numbers; what they stand for is the caller's business. Not thread-safe:
 * the scheduler's lock is held around every call but ring_signal(), ring_slot_memory() and
 * ring_source_box().
 */
#pragma once

#include "daemon/worker/io/port.h"
#include "proto/wire/ring.h"

/* The positions that need something of an array, and which box of it. */
struct ring_walk {
    /* The first of them from *position on; false: there is none. */
    bool (*find)(const struct ring_walk *walk, uint64_t *position);
    void (*box)(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                int64_t *ret_count);
    const void *job, *port; /* for these two: they outlive the walk */
    uint32_t n_ahead;       /* blocks that are enough at a time; 0: as many as there are slots */
};

/* Maps the memfd after checking its seals and size; the descriptors stay the caller's. `array` must
 * outlive the ring. bad-descriptor, -errno. */
int ring_new(const struct array *array, const char *name, int ring_fd, int request_fd, int done_fd,
             bool is_output, struct ring **ret_ring, struct gad_error *error) GAD_MUST_CHECK;
struct ring *ring_free(struct ring *ring); /* NULL */

struct guard_range ring_range(const struct ring *ring);
int ring_done_fd(const struct ring *ring);

/* A walk begins, which is copied: no block is in use. */
void ring_begin(struct ring *ring, const struct ring_walk *walk);

/* Sources: asks for as many blocks ahead as there are free slots, or as are enough. 0, or
 * region-fault. Afterwards the client must be told, see below. */
int ring_ask(struct ring *ring, struct gad_error *error) GAD_MUST_CHECK;

/* Reads what the client answered. *ret_has_news: a block came or a slot was drained.
 * provider-failed, region-fault. */
int ring_collect(struct ring *ring, bool *ret_has_news, struct gad_error *error) GAD_MUST_CHECK;

/* Sources: blocks that are there. Sinks: free slots. */
unsigned ring_n_ready(const struct ring *ring);

/* Sources: the slot with the block of a position. Sinks: a free slot, whatever the position (of a
 * stream: one of the oldest that are not drained). false: not now. ring_has() only asks. */
bool ring_has(const struct ring *ring, uint64_t position);
bool ring_take(struct ring *ring, uint64_t position, uint32_t *ret_slot);
/* The position was computed. Sources: its claim on the block ends. Sinks: the client is asked to
 * drain the slot. 0, or region-fault. */
int ring_give(struct ring *ring, uint64_t position, uint32_t slot,
              struct gad_error *error) GAD_MUST_CHECK;
/* The tile is given up: a sink's slot is free again. */
void ring_drop(struct ring *ring, uint32_t slot);

/* Of an open source, what its client has said of its first axis: it has so many rows at least, and
 * at most; INT64_MAX: it has not ended yet. ring_is_over(): it has, and nothing is asked of it any
 * more. Other rings have 0, INT64_MAX and false. */
void ring_length(const struct ring *ring, int64_t *ret_least, int64_t *ret_most);
bool ring_is_over(const struct ring *ring);

bool ring_is_awaited(const struct ring *ring); /* the client has not answered all that was asked */
bool ring_is_idle(const struct ring *ring);    /* no sink slot is lent or being drained */

/* Tells the client, once for all that was asked since. ring_wants_signal(): whether there is
 * anything that the client is not told yet and wishes to be; what was asked counts as told then.
 * After it ring_signal() may be called without the lock. A client that has filled its eventfd gets
 * provider-failed. One that fills it at this very moment can make the call block: the caller
 * arranges for a signal; then provider-failed. */
bool ring_has_asked(const struct ring *ring);
bool ring_wants_signal(struct ring *ring);
int ring_signal(const struct ring *ring, struct gad_error *error) GAD_MUST_CHECK;

/* The client is to signal its next answer. Answers that came before may not have been signalled:
 * look at them afterwards. region-fault. */
int ring_wish_signal(struct ring *ring, struct gad_error *error) GAD_MUST_CHECK;

void *ring_slot_memory(const struct ring *ring, uint32_t slot);
/* Sources: of which box the block is that lies, dense, in a slot's memory; of a slot that was
 * taken. Sinks: NULL, it is the position's. */
const struct port_box *ring_source_box(const struct ring *ring, const void *memory);
