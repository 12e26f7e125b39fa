/* Regions and the arena: blocks, their zeroes, reuse, and when regions stay or go. */
#include "client/lib/memory/arena.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static uint64_t lend(struct arena *arena, uint64_t n_bytes, struct region **ret_region)
{
    uint64_t offset;
    bool is_new;
    struct gad_error error;
    cr_assert(zero(int, arena_lend(arena, n_bytes, true, ret_region, &offset, &is_new, &error)));
    return offset;
}

static bool is_zero(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

Test(region, is_sealed_and_has_no_holes)
{
    struct region *region;
    cr_assert(zero(int, region_new(10000, &region, NULL)));
    cr_assert(eq(u64, region->size_bytes, 12288));
    int seals = fcntl(region->fd, F_GET_SEALS);
    cr_assert(eq(int, seals &(F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW));
    struct stat st;
    cr_assert(zero(int, fstat(region->fd, &st)));
    cr_assert(eq(long, (long)st.st_blocks * 512, 12288));
    cr_assert(eq(int, fcntl(region->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC));
    region_free(region);
}

Test(region, refuses_sizes_beyond_all_memory)
{
    struct region *region = NULL;
    struct gad_error error;
    cr_assert(eq(int, region_new(UINT64_MAX, &region, &error), GAD_NO_MEMORY));
    cr_assert(eq(int, region_new((uint64_t)INT64_MAX, &region, &error), GAD_NO_MEMORY));
    cr_assert(eq(int, region_new(UINT64_C(1) << 60, &region, &error), GAD_NO_MEMORY));
    cr_assert(zero(ptr, region));
}

Test(region, respects_the_limit_on_file_sizes)
{
    struct region *region = NULL;
    struct gad_error error;
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
    cr_assert(eq(int, region_new(2 << 20, &region, &error), GAD_NO_MEMORY)); /* and no SIGXFSZ */
    cr_assert(zero(int, region_new(1 << 20, &region, &error)));
    region_free(region);
}

Test(region, lends_blocks_of_whole_pages_first_fit)
{
    struct region *region;
    uint64_t a, b, c, d;
    cr_assert(zero(int, region_new(16 * 4096, &region, NULL)));
    cr_assert(zero(int, region_lend(region, 1, true, &a)));
    cr_assert(zero(int, region_lend(region, 4097, true, &b)));
    cr_assert(zero(int, region_lend(region, 0, true, &c)));
    cr_assert(eq(u64, a, 0));
    cr_assert(eq(u64, b, 4096));
    cr_assert(eq(u64, c, 3 * 4096));
    cr_assert(eq(u64, region->used_bytes, 4 * 4096));
    region_give_back(region, b);
    cr_assert(zero(int, region_lend(region, 4096, true, &d)));
    cr_assert(eq(u64, d, b));
    cr_assert(eq(int, region_lend(region, 13 * 4096, true, &d), -ENOSPC));
    cr_assert(zero(int, region_lend(region, 12 * 4096, true, &d)));
    region_free(region);
}

Test(region, joins_free_neighbours_on_both_sides)
{
    struct region *region;
    uint64_t blocks[4], all;
    cr_assert(zero(int, region_new(4 * 4096, &region, NULL)));
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 2, 0}, {0, 2, 1, 3}};
    for (size_t order = 0; order < ARRAY_LENGTH(orders); order++) {
        for (int i = 0; i < 4; i++)
            cr_assert(zero(int, region_lend(region, 4096, true, &blocks[i])));
        cr_assert(eq(int, region_lend(region, 1, true, &all), -ENOSPC));
        for (int i = 0; i < 4; i++)
            region_give_back(region, blocks[orders[order][i]]);
        cr_assert(zero(u64, region->used_bytes));
        cr_assert(zero(int, region_lend(region, 4 * 4096, true, &all)), "one block again");
        region_give_back(region, all);
    }
    region_free(region);
}

Test(region, lends_zeroes_again_after_use)
{
    struct region *region;
    uint64_t a, b;
    cr_assert(zero(int, region_new(4 * 4096, &region, NULL)));
    cr_assert(zero(int, region_lend(region, 2 * 4096, true, &a)));
    memset(region->map + a, 0xaa, 2 * 4096);
    region_give_back(region, a);
    cr_assert(zero(int, region_lend(region, 3 * 4096, true, &b)));
    cr_assert(is_zero(region->map + b, 3 * 4096));
    region_free(region);
}

Test(arena, starts_small_and_doubles)
{
    struct arena arena = {0};
    struct region *first, *second, *third;
    lend(&arena, 100, &first);
    cr_assert(eq(u64, first->size_bytes, ARENA_MIN_REGION_BYTES));
    lend(&arena, ARENA_MIN_REGION_BYTES, &second);
    cr_assert(ne(ptr, second, first));
    lend(&arena, ARENA_MIN_REGION_BYTES + 1, &third);
    cr_assert(eq(u64, third->size_bytes, 2 * ARENA_MIN_REGION_BYTES));
    arena_deinit(&arena);
}

Test(arena, gives_a_large_array_a_region_of_its_size)
{
    struct arena arena = {0};
    struct region *region;
    lend(&arena, ARENA_MAX_REGION_BYTES + 4096, &region);
    cr_assert(eq(u64, region->size_bytes, ARENA_MAX_REGION_BYTES + 4096));
    arena_deinit(&arena);
}

Test(arena, reuses_the_pages_of_a_released_array)
{
    struct arena arena = {0};
    struct region *first, *second;
    uint64_t a = lend(&arena, 5 << 20, &first);
    arena_give_back(&arena, first, a, 0);
    uint64_t b = lend(&arena, 5 << 20, &second);
    cr_assert(eq(ptr, first, second));
    cr_assert(eq(u64, a, b));
    cr_assert(zero(u64, arena.empty_bytes));
    arena_deinit(&arena);
}

Test(arena, keeps_large_regions_for_the_next_array_while_they_are_young)
{
    struct arena arena = {.cache_bytes = 3 * ARENA_CACHE_BYTES};
    struct region *small, *large, *next;
    uint64_t a = lend(&arena, 1 << 20, &small);
    uint64_t b = lend(&arena, ARENA_CACHE_BYTES + 4096, &large);
    arena_give_back(&arena, small, a, 1000);
    arena_give_back(&arena, large, b, 2000);
    cr_assert(zero(ptr, arena_take_surplus(&arena, false, 1000 + ARENA_CACHE_AGE_MS)));
    cr_assert(zero(u64, lend(&arena, ARENA_CACHE_BYTES + 1, &next)));
    cr_assert(eq(ptr, next, large), "the same pages again");
    cr_assert(zero(ptr, arena_take_surplus(&arena, false, 100000)), "few bytes may be old");
    arena_give_back(&arena, large, b, 100000);
    struct region *gone = arena_take_surplus(&arena, false, 100001);
    cr_assert(eq(ptr, gone, small), "the oldest first");
    region_free(gone);
    cr_assert(zero(ptr, arena_take_surplus(&arena, false, 100001)));
    gone = arena_take_surplus(&arena, false, 100001 + ARENA_CACHE_AGE_MS);
    cr_assert(eq(ptr, gone, large));
    region_free(gone);
    cr_assert(zero(u64, arena.total_bytes));
    cr_assert(zero(u64, arena.empty_bytes));
    cr_assert(zero(ptr, arena.regions));
    arena_deinit(&arena);
}

Test(arena, keeps_no_more_empty_regions_than_its_bound)
{
    struct arena arena = {.cache_bytes = 3 * ARENA_CACHE_BYTES};
    struct region *regions[3];
    uint64_t offsets[3];
    for (int i = 0; i < 3; i++)
        offsets[i] = lend(&arena, ARENA_CACHE_BYTES + 4096, &regions[i]);
    for (int i = 0; i < 3; i++)
        arena_give_back(&arena, regions[i], offsets[i], i);
    struct region *gone = arena_take_surplus(&arena, false, 3);
    cr_assert(eq(ptr, gone, regions[0]));
    region_free(gone);
    cr_assert(zero(ptr, arena_take_surplus(&arena, false, 3)));
    for (int i = 0; i < 2; i++) /* who needs the room takes all */
        region_free(arena_take_surplus(&arena, true, 3));
    cr_assert(zero(ptr, arena_take_surplus(&arena, true, 3)));
    cr_assert(zero(u64, arena.total_bytes));
    arena.cache_bytes = ARENA_CACHE_BYTES;
    offsets[0] = lend(&arena, 1 << 20, &regions[0]);
    offsets[1] = lend(&arena, ARENA_CACHE_BYTES + 4096, &regions[1]);
    arena_give_back(&arena, regions[0], offsets[0], 0);
    arena_give_back(&arena, regions[1], offsets[1], 0);
    gone = arena_take_surplus(&arena, false, 0);
    cr_assert(eq(ptr, gone, regions[1]), "what alone is too much goes before the oldest");
    region_free(gone);
    cr_assert(zero(ptr, arena_take_surplus(&arena, false, 0)));
    arena_deinit(&arena);
}

Test(arena, knows_the_machines_memory)
{
    struct arena arena = {0};
    struct region *region;
    uint64_t offset = lend(&arena, ARENA_CACHE_BYTES + 4096, &region);
    arena_give_back(&arena, region, offset, 0);
    region_free(arena_take_surplus(&arena, false, 0));
    cr_assert(ge(u64, arena.cache_bytes, ARENA_CACHE_BYTES));
    cr_assert(lt(u64, arena.cache_bytes, UINT64_C(1) << 50));
    arena_deinit(&arena);
}

Test(arena, lends_large_regions_whole_and_to_large_arrays)
{
    struct arena arena = {0};
    struct region *large, *small, *half, *less;
    uint64_t offset = lend(&arena, 3 * ARENA_MAX_REGION_BYTES, &large);
    arena_give_back(&arena, large, offset, 0);
    lend(&arena, 4096, &small);
    cr_assert(ne(ptr, small, large));
    lend(&arena, ARENA_MAX_REGION_BYTES + 4096, &less);
    cr_assert(ne(ptr, less, large), "it would use less than half");
    lend(&arena, 2 * ARENA_MAX_REGION_BYTES, &half);
    cr_assert(eq(ptr, half, large));
    arena_deinit(&arena);
}

Test(arena, finds_the_region_of_an_address)
{
    enum { N = 300, SIZE = 1 << 20 };
    struct arena arena = {0};
    struct region *regions[N];
    uint64_t offsets[N];
    for (int i = 0; i < N; i++) {
        offsets[i] = lend(&arena, SIZE, &regions[i]);
        arena.total_bytes = 0; /* the next one is as small as the first */
    }
    for (int i = 0; i < N; i += 3) {
        arena_give_back(&arena, regions[i], offsets[i], 0);
        arena_remove(&arena, regions[i]);
        region_free(regions[i]);
    }
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0)
            continue;
        uintptr_t begin = (uintptr_t)regions[i]->map;
        cr_assert(eq(ptr, arena_find(&arena, begin, SIZE), regions[i]));
        cr_assert(eq(ptr, arena_find(&arena, begin + SIZE - 1, 1), regions[i]));
        cr_assert(zero(ptr, arena_find(&arena, begin + 1, SIZE)));
    }
    double outside;
    cr_assert(zero(ptr, arena_find(&arena, (uintptr_t)&outside, 8)));
    cr_assert(zero(ptr, arena_find(&arena, 0, 8)));
    cr_assert(zero(ptr, arena_find(&arena, UINTPTR_MAX - 8, 8)));
    arena_deinit(&arena);
}

Test(arena, shows_old_bytes_only_to_who_asks_for_uncleared_memory)
{
    struct arena arena = {0};
    struct region *region;
    uint64_t offset;
    bool is_new;
    cr_assert(zero(int, arena_lend(&arena, 8192, false, &region, &offset, &is_new, NULL)));
    cr_assert(is_zero(region->map + offset, 8192), "fresh pages are zero");
    memset(region->map + offset, 7, 8192);
    arena_give_back(&arena, region, offset, 0);
    cr_assert(zero(int, arena_lend(&arena, 4096, false, &region, &offset, &is_new, NULL)));
    cr_assert(eq(int, region->map[offset], 7), "not cleared");
    offset = lend(&arena, 4096, &region);
    cr_assert(is_zero(region->map + offset, 4096), "written, never cleared since");
    arena_deinit(&arena);
}

Test(arena, keeps_its_numbers_over_many_random_arrays)
{
    struct arena arena = {0};
    struct region *regions[32] = {NULL};
    uint64_t offsets[32], sizes[32];
    unsigned seed = 1;
    for (int round = 0; round < 4000; round++) {
        int i = rand_r(&seed) % 32;
        if (regions[i]) {
            char *block = regions[i]->map + offsets[i];
            cr_assert(block[0] == (char)i && block[sizes[i] - 1] == (char)i);
            arena_give_back(&arena, regions[i], offsets[i], 0);
            regions[i] = NULL;
            continue;
        }
        sizes[i] = 1 + (uint64_t)rand_r(&seed) % 60000;
        offsets[i] = lend(&arena, sizes[i], &regions[i]);
        char *block = regions[i]->map + offsets[i];
        cr_assert(is_zero(block, sizes[i]));
        memset(block, i, sizes[i]);
    }
    for (int i = 0; i < 32; i++)
        if (regions[i])
            arena_give_back(&arena, regions[i], offsets[i], 0);
    cr_assert(eq(u64, arena.empty_bytes, arena.total_bytes));
    arena_deinit(&arena);
}
