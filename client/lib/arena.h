/* The arena: blocks of shared memory out of a few large regions. */
#pragma once

#include "client/lib/region.h"

#define ARENA_MIN_REGION_BYTES (UINT64_C(1) << 20)
#define ARENA_MAX_REGION_BYTES (UINT64_C(64) << 20) /* but for a single larger array */
#define ARENA_CACHE_BYTES      (UINT64_C(64) << 20) /* of empty regions kept for the next array */

struct arena { /* zeroed: empty */
    struct region *regions;
    uint64_t total_bytes, empty_bytes;
};

void arena_deinit(struct arena *arena); /* all regions, whatever is lent */

/* A zeroed block. *ret_is_new: the region was made for it. no-memory. */
int arena_lend(struct arena *arena, uint64_t size_bytes, struct region **ret_region,
               uint64_t *ret_offset_bytes, bool *ret_is_new,
               struct gad_error *error) GAD_MUST_CHECK;

/* Returns the region when it is empty and not worth keeping: it is out of the arena then, and the
 * caller's to detach and free. Else NULL. */
struct region *arena_give_back(struct arena *arena, struct region *region,
                               uint64_t offset_bytes) GAD_MUST_CHECK;

/* Takes an empty region out, for one that the daemon refused. */
void arena_remove(struct arena *arena, struct region *region);
