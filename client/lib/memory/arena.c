/* The arena: which region a block comes from, and which regions stay.
 *
 * Making a region costs page faults, here and in the worker, and attaching it a round trip, so a
 * few large ones are cut up and empty ones are kept for a while: a loop that makes and releases
 * arrays of the same size works in the same pages all the time. Regions double in size from 1 MiB
 * to ARENA_MAX_REGION_BYTES, so that a program with one small array is charged for little. An array
 * larger than that has a region of its own, which is lent again whole, for arrays that fill at
 * least half of it: a small array never holds on to a large region.
 *
 * What a fresh region costs (2 cores, 256 MiB of float64, a + 1 from shared memory): 139 ms a job,
 * of these 59 ms for making and attaching it and 62 ms for the worker's faults, against 15 ms in
 * the pages of an earlier result. At 64 MiB both times are within the
 * scatter that scheduling makes. So ARENA_CACHE_BYTES of empty regions are always kept, and more
 * than these not for long: what is used less
 * often than every few seconds loses little by being made anew, and an idle program should not sit
 * on memory. The oldest go first, when arrays are made or released: there is no timer. Who needs
 * the room, for an array or for the daemon's quota, takes all empty ones.
 *
 * Called by memory.c. Knows no connection.
 */
#include "client/lib/memory/arena.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

void arena_deinit(struct arena *arena)
{
    while (arena->regions) {
        struct region *region = arena->regions;
        arena->regions = region->next;
        region_free(region);
    }
    free(arena->by_address);
    *arena = (struct arena){0};
}

static int lend_from(struct arena *arena, struct region *region, uint64_t size_bytes,
                     bool is_cleared, uint64_t *ret_offset_bytes)
{
    bool was_empty = region->used_bytes == 0;
    int r = region_lend(region, size_bytes, is_cleared, ret_offset_bytes);
    if (r == 0 && was_empty)
        arena->empty_bytes -= region->size_bytes;
    return r;
}

/* The place in by_address of the first region beyond an address. */
static unsigned place_of(const struct arena *arena, uintptr_t address)
{
    unsigned low = 0, high = arena->n_regions;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if ((uintptr_t)arena->by_address[middle]->map <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct region *arena_find(const struct arena *arena, uintptr_t address, uintptr_t n_bytes)
{
    unsigned place = place_of(arena, address);
    if (place == 0)
        return NULL;
    struct region *region = arena->by_address[place - 1];
    uintptr_t offset = address - (uintptr_t)region->map;
    return offset < region->size_bytes && n_bytes <= region->size_bytes - offset ? region : NULL;
}

static int index_region(struct arena *arena, struct region *region)
{
    struct region **grown =
        reallocarray(arena->by_address, arena->n_regions + 1, sizeof(struct region *));
    if (!grown)
        return -ENOMEM;
    arena->by_address = grown;
    unsigned place = place_of(arena, (uintptr_t)region->map);
    memmove(grown + place + 1, grown + place,
            (arena->n_regions++ - place) * sizeof(struct region *));
    grown[place] = region;
    return 0;
}

static int add_region(struct arena *arena, uint64_t size_bytes, struct gad_error *error)
{
    uint64_t wanted = max_u64(ARENA_MIN_REGION_BYTES, arena->total_bytes);
    struct region *region;
    int r =
        region_new(max_u64(size_bytes, min_u64(wanted, ARENA_MAX_REGION_BYTES)), &region, error);
    if (r)
        return r;
    if (index_region(arena, region)) {
        region_free(region);
        return error_from_errno(error, ENOMEM, NULL, "a region");
    }
    region->next = arena->regions;
    arena->regions = region;
    arena->total_bytes += region->size_bytes;
    arena->empty_bytes += region->size_bytes;
    return 0;
}

static bool is_large(uint64_t size_bytes)
{
    return size_bytes > ARENA_MAX_REGION_BYTES;
}

/* Of large arrays: the smallest empty region that is large enough and would be half used. */
static struct region *find_large(const struct arena *arena, uint64_t size_bytes)
{
    struct region *found = NULL;
    for (struct region *region = arena->regions; region; region = region->next)
        if (is_large(region->size_bytes) && region->used_bytes == 0 &&
            region->size_bytes >= size_bytes && region->size_bytes / 2 <= size_bytes &&
            (!found || region->size_bytes < found->size_bytes))
            found = region;
    return found;
}

/* -ENOSPC: there is no room in any region. */
static int lend_from_any(struct arena *arena, uint64_t size_bytes, bool is_cleared,
                         struct region **ret_region, uint64_t *ret_offset_bytes)
{
    int r = -ENOSPC;
    struct region *region = is_large(size_bytes) ? find_large(arena, size_bytes) : arena->regions;
    for (; region && r == -ENOSPC; region = region->next) {
        *ret_region = region;
        if (is_large(region->size_bytes) == is_large(size_bytes))
            r = lend_from(arena, region, size_bytes, is_cleared, ret_offset_bytes);
    }
    return r;
}

int arena_lend(struct arena *arena, uint64_t size_bytes, bool is_cleared,
               struct region **ret_region, uint64_t *ret_offset_bytes, bool *ret_is_new,
               struct gad_error *error)
{
    struct region *region;
    int r = lend_from_any(arena, size_bytes, is_cleared, &region, ret_offset_bytes);
    *ret_is_new = r == -ENOSPC;
    if (r == -ENOSPC) {
        r = add_region(arena, size_bytes, error);
        if (r)
            return r;
        region = arena->regions;
        r = lend_from(arena, region, size_bytes, is_cleared, ret_offset_bytes);
        assert(r != -ENOSPC);
    }
    if (r)
        return error_from_errno(error, -r, NULL, "a block of shared memory");
    *ret_region = region;
    return 0;
}

void arena_give_back(struct arena *arena, struct region *region, uint64_t offset_bytes,
                     int64_t now_ms)
{
    region_give_back(region, offset_bytes);
    region->used_ms = now_ms;
    if (region->used_bytes == 0)
        arena->empty_bytes += region->size_bytes;
}

static uint64_t cache_bytes(struct arena *arena)
{
    if (arena->cache_bytes == 0) {
        long n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
        uint64_t share = n_pages > 0 && page_bytes > 0
                             ? (uint64_t)n_pages / ARENA_CACHE_SHARE * (uint64_t)page_bytes
                             : 0;
        arena->cache_bytes = max_u64(share, ARENA_CACHE_BYTES);
    }
    return arena->cache_bytes;
}

/* The empty region to go next: the first that alone exceeds the bound, else the least recently used
 * one. */
static struct region *find_surplus(struct arena *arena)
{
    struct region *oldest = NULL;
    for (struct region *region = arena->regions; region; region = region->next) {
        if (region->used_bytes > 0)
            continue;
        if (region->size_bytes > cache_bytes(arena))
            return region;
        if (!oldest || region->used_ms <= oldest->used_ms)
            oldest = region;
    }
    return oldest;
}

struct region *arena_take_surplus(struct arena *arena, bool is_all, int64_t now_ms)
{
    if (arena->empty_bytes <= (is_all ? 0 : ARENA_CACHE_BYTES))
        return NULL;
    struct region *region = find_surplus(arena);
    if (!region || !(is_all || arena->empty_bytes > cache_bytes(arena) ||
                     now_ms - region->used_ms > ARENA_CACHE_AGE_MS))
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
    unsigned place = place_of(arena, (uintptr_t)region->map);
    memmove(arena->by_address + place - 1, arena->by_address + place,
            (arena->n_regions-- - place) * sizeof(struct region *));
    arena->total_bytes -= region->size_bytes;
    arena->empty_bytes -= region->size_bytes;
}
