/* Regions and the arena: blocks, their zeroes, reuse, and when regions stay or go. */
#include "client/lib/arena.h"
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
    cr_assert(zero(int, arena_lend(arena, n_bytes, ret_region, &offset, &is_new, &error)));
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
    cr_assert(zero(int, region_lend(region, 1, &a)));
    cr_assert(zero(int, region_lend(region, 4097, &b)));
    cr_assert(zero(int, region_lend(region, 0, &c)));
    cr_assert(eq(u64, a, 0));
    cr_assert(eq(u64, b, 4096));
    cr_assert(eq(u64, c, 3 * 4096));
    cr_assert(eq(u64, region->used_bytes, 4 * 4096));
    region_give_back(region, b);
    cr_assert(zero(int, region_lend(region, 4096, &d)));
    cr_assert(eq(u64, d, b));
    cr_assert(eq(int, region_lend(region, 13 * 4096, &d), -ENOSPC));
    cr_assert(zero(int, region_lend(region, 12 * 4096, &d)));
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
            cr_assert(zero(int, region_lend(region, 4096, &blocks[i])));
        cr_assert(eq(int, region_lend(region, 1, &all), -ENOSPC));
        for (int i = 0; i < 4; i++)
            region_give_back(region, blocks[orders[order][i]]);
        cr_assert(zero(u64, region->used_bytes));
        cr_assert(zero(int, region_lend(region, 4 * 4096, &all)), "one block again");
        region_give_back(region, all);
    }
    region_free(region);
}

Test(region, lends_zeroes_again_after_use)
{
    struct region *region;
    uint64_t a, b;
    cr_assert(zero(int, region_new(4 * 4096, &region, NULL)));
    cr_assert(zero(int, region_lend(region, 2 * 4096, &a)));
    memset(region->map + a, 0xaa, 2 * 4096);
    region_give_back(region, a);
    cr_assert(zero(int, region_lend(region, 3 * 4096, &b)));
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
    cr_assert(zero(ptr, arena_give_back(&arena, first, a)));
    uint64_t b = lend(&arena, 5 << 20, &second);
    cr_assert(eq(ptr, first, second));
    cr_assert(eq(u64, a, b));
    cr_assert(zero(u64, arena.empty_bytes));
    arena_deinit(&arena);
}

Test(arena, lets_empty_regions_go_beyond_the_cache)
{
    struct arena arena = {0};
    struct region *small, *large;
    uint64_t a = lend(&arena, 1 << 20, &small);
    uint64_t b = lend(&arena, ARENA_CACHE_BYTES + 1, &large);
    struct region *gone = arena_give_back(&arena, large, b);
    cr_assert(eq(ptr, gone, large));
    region_free(gone);
    cr_assert(zero(ptr, arena_give_back(&arena, small, a)));
    cr_assert(eq(u64, arena.total_bytes, 1 << 20));
    cr_assert(eq(u64, arena.empty_bytes, 1 << 20));
    arena_remove(&arena, small);
    region_free(small);
    cr_assert(zero(u64, arena.total_bytes));
    cr_assert(zero(ptr, arena.regions));
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
            region_free(arena_give_back(&arena, regions[i], offsets[i]));
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
            region_free(arena_give_back(&arena, regions[i], offsets[i]));
    cr_assert(eq(u64, arena.empty_bytes, arena.total_bytes));
    arena_deinit(&arena);
}
