/* The arena: which region a block comes from, and which regions stay.
 *
 * Making a region costs page faults and attaching it a round trip, so a few large ones are cut up
 * and empty ones are kept for a while: a loop that makes and releases arrays of the same size works
 * in the same pages all the time. Regions double in size from 1 MiB to 64 MiB, so that a program
 * with one small array is charged for little; an array larger than that has a region of its own.
 * Empty regions are kept up to ARENA_CACHE_BYTES together.
 *
 * Called by memory.c. Knows no connection.
 */
#include "client/lib/arena.h"
#include "proto/util.h"

#include <assert.h>

void arena_deinit(struct arena *arena)
{
    while (arena->regions) {
        struct region *region = arena->regions;
        arena->regions = region->next;
        region_free(region);
    }
    *arena = (struct arena){0};
}

static int lend_from(struct arena *arena, struct region *region, uint64_t size_bytes,
                     uint64_t *ret_offset_bytes)
{
    bool was_empty = region->used_bytes == 0;
    int r = region_lend(region, size_bytes, ret_offset_bytes);
    if (r == 0 && was_empty)
        arena->empty_bytes -= region->size_bytes;
    return r;
}

static int add_region(struct arena *arena, uint64_t size_bytes, struct gad_error *error)
{
    uint64_t wanted = max_u64(ARENA_MIN_REGION_BYTES, arena->total_bytes);
    struct region *region;
    int r =
        region_new(max_u64(size_bytes, min_u64(wanted, ARENA_MAX_REGION_BYTES)), &region, error);
    if (r)
        return r;
    region->next = arena->regions;
    arena->regions = region;
    arena->total_bytes += region->size_bytes;
    arena->empty_bytes += region->size_bytes;
    return 0;
}

int arena_lend(struct arena *arena, uint64_t size_bytes, struct region **ret_region,
               uint64_t *ret_offset_bytes, bool *ret_is_new, struct gad_error *error)
{
    int r = -ENOSPC;
    struct region *region = arena->regions;
    for (; region; region = region->next) {
        r = lend_from(arena, region, size_bytes, ret_offset_bytes);
        if (r != -ENOSPC)
            break;
    }
    *ret_is_new = r == -ENOSPC;
    if (r == -ENOSPC) {
        r = add_region(arena, size_bytes, error);
        if (r)
            return r;
        region = arena->regions;
        r = lend_from(arena, region, size_bytes, ret_offset_bytes);
        assert(r != -ENOSPC);
    }
    if (r)
        return error_from_errno(error, -r, NULL, "a block of shared memory");
    *ret_region = region;
    return 0;
}

struct region *arena_give_back(struct arena *arena, struct region *region, uint64_t offset_bytes)
{
    region_give_back(region, offset_bytes);
    if (region->used_bytes > 0)
        return NULL;
    arena->empty_bytes += region->size_bytes;
    if (arena->empty_bytes <= ARENA_CACHE_BYTES)
        return NULL;
    arena_remove(arena, region);
    return region;
}

void arena_remove(struct arena *arena, struct region *region)
{
    assert(region->used_bytes == 0);
    struct region **link = &arena->regions;
    while (*link != region)
        link = &(*link)->next;
    *link = region->next;
    region->next = NULL;
    arena->total_bytes -= region->size_bytes;
    arena->empty_bytes -= region->size_bytes;
}
