/* The arena: blocks of shared memory out of a few large regions. */
#pragma once

#include "client/lib/memory/region.h"

#define ARENA_MIN_REGION_BYTES (UINT64_C(1) << 20)
#define ARENA_MAX_REGION_BYTES (UINT64_C(64) << 20) /* but for a single larger array */

/* Of empty regions for the next array: so many bytes always, and more of them while they are
 * young: as far as a 32nd of the machine's memory, for 5 seconds after their last use. */
#define ARENA_CACHE_BYTES  (UINT64_C(64) << 20)
#define ARENA_CACHE_SHARE  32u
#define ARENA_CACHE_AGE_MS 5000

struct arena { /* zeroed: empty */
    struct region *regions;
    struct region **by_address; /* the same ones, n_regions of them */
    unsigned n_regions;
    uint64_t total_bytes, empty_bytes;
    uint64_t cache_bytes; /* the bound of young empty regions; 0: not known yet */
};

void arena_deinit(struct arena *arena); /* all regions, whatever is lent */

/* A block; is_cleared: zeroed. *ret_is_new: the region was made for it. no-memory. */
int arena_lend(struct arena *arena, uint64_t size_bytes, bool is_cleared,
               struct region **ret_region, uint64_t *ret_offset_bytes, bool *ret_is_new,
               struct gad_error *error) GAD_MUST_CHECK;
void arena_give_back(struct arena *arena, struct region *region, uint64_t offset_bytes,
                     int64_t now_ms);

/* An empty region that is not worth keeping, NULL: none. It is out of the arena, and the caller's
 * to detach and free. is_all: no empty region is. */
struct region *arena_take_surplus(struct arena *arena, bool is_all, int64_t now_ms) GAD_MUST_CHECK;

/* The region that has all of these bytes of the address space, or NULL. O(log regions). */
struct region *arena_find(const struct arena *arena, uintptr_t address, uintptr_t n_bytes);

/* Takes an empty region out, for one that the daemon refused. */
void arena_remove(struct arena *arena, struct region *region);
