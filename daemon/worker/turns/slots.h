/* The pool in the worker: one slab, the engine's, lent as slots (to a tile) and as carries (to a
 * job, for its life). The broker keeps the map of the carries; here it is only carried out. Not
 * thread-safe: the scheduler's lock is held around every call. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct slots;

/* The memory stays the caller's and outlives the slots. slot_bytes: a multiple of 4096. -errno. */
int slots_new(void *pool, uint64_t pool_bytes, uint64_t slot_bytes,
              struct slots **ret_slots) GAD_MUST_CHECK;
struct slots *slots_free(struct slots *s); /* NULL */

/* The highest slot that is free and under no claim. The last one is kept for express jobs. NULL:
 * none now. Nothing is promised about what it holds. */
void *slots_lend(struct slots *s, bool is_express);
bool slots_can_lend(const struct slots *s, bool is_express);
void slots_return(struct slots *s, void *slot);

/* A carry. The claim is made at once, so that no slot in its way is lent any more; the memory can
 * be taken when slots_claim_is_clear(). -EINVAL: not inside the pool. */
int slots_claim(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes) GAD_MUST_CHECK;
bool slots_claim_is_clear(const struct slots *s, uint64_t offset_bytes, uint64_t size_bytes);
void *slots_carry(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes);
void slots_unclaim(struct slots *s, uint64_t offset_bytes, uint64_t size_bytes);

/* Memory that is lent, in builds that look for what was not written: filled with a pattern. */
void *slots_poison(void *memory, uint64_t n_bytes);

struct slots_use {
    unsigned n_slots, n_lent, n_carries;
    uint64_t carry_bytes;
};
struct slots_use slots_use(const struct slots *s);
