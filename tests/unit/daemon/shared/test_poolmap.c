/* The pool's map: sizes of all kinds, what fits and what never will, and random lending against a
 * plain map of bytes. */
#include "daemon/poolmap.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static struct poolmap *new_map(uint64_t pool_bytes)
{
    struct poolmap *map = NULL;

    cr_assert(eq(int, poolmap_new(poolmap_part_bytes(pool_bytes, false), &map), 0));
    return map;
}

Test(poolmap, a_pool_without_room_lends_nothing_but_nothing)
{
    static const uint64_t sizes[] = {0, 1, 4096, 8191};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct poolmap *map = new_map(sizes[i]);
        struct extent extent;
        cr_assert(eq(u64, poolmap_carry_limit_bytes(sizes[i]), 0));
        cr_assert(eq(int, poolmap_lend(map, 1, &extent), -E2BIG));
        cr_assert(eq(int, poolmap_lend(map, 0, &extent), 0));
        cr_assert(eq(u64, extent.size_bytes, 0));
        poolmap_return(map, &extent);
        poolmap_free(map);
    }
    cr_assert(eq(ptr, poolmap_free(NULL), NULL));
}

Test(poolmap, the_limit_can_be_lent_and_no_more_than_the_part)
{
    static const uint64_t sizes[] = {8 * KIB, 64 * KIB, 2 * MIB, 3 * MIB, 32 * MIB, 100 * MIB + 77};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct poolmap *map = new_map(sizes[i]);
        uint64_t limit = poolmap_carry_limit_bytes(sizes[i]);
        struct extent extent, other = {.size_bytes = 99};
        uint64_t part = poolmap_part_bytes(sizes[i], false);
        cr_assert(le(u64, limit, sizes[i] / 2));
        cr_assert(lt(u64, sizes[i] / 8, limit));
        cr_assert(eq(int, poolmap_lend(map, part + 1, &other), -E2BIG));
        cr_assert(eq(int, poolmap_lend(map, UINT64_MAX, &other), -E2BIG));
        cr_assert(eq(int, poolmap_lend(map, limit, &extent), 0));
        cr_assert(eq(u64, poolmap_carry_used_bytes(map), limit));
        cr_assert(le(u64, extent.offset_bytes + extent.size_bytes, part));
        cr_assert(eq(int, poolmap_lend(map, part - limit + 4096, &other), -EAGAIN));
        cr_assert(eq(u64, other.size_bytes, 99)); /* set only on success */
        poolmap_return(map, &extent);
        cr_assert(eq(int, poolmap_lend(map, limit, &extent), 0));
        poolmap_return(map, &extent);
        cr_assert(eq(u64, poolmap_carry_used_bytes(map), 0));
        poolmap_free(map);
    }
}

Test(poolmap, an_extent_is_its_size_rounded_up_to_blocks)
{
    struct poolmap *map = new_map(2 * MIB);
    struct extent extents[85];

    for (unsigned i = 0; i < 85; i++) { /* 85 x 3 blocks of the 256 */
        cr_assert(eq(int, poolmap_lend(map, 2 * 4096 + 1, &extents[i]), i < 64 ? 0 : -EAGAIN));
        if (i >= 64)
            break;
        cr_assert(eq(u64, extents[i].size_bytes, 3 * 4096));
    }
    struct extent one; /* what was left over beside each is still there */
    for (unsigned i = 0; i < 64; i++)
        cr_assert(eq(int, poolmap_lend(map, 4096, &one), 0));
    cr_assert(eq(int, poolmap_lend(map, 1, &one), -EAGAIN));
    cr_assert(eq(u64, poolmap_carry_used_bytes(map), MIB));
    poolmap_free(map);
}

#define MAX_BLOCKS 700
#define MAX_LENT   64

/* Random lending and returning; `owner` says for each block who has it. */
static void play(uint64_t pool_bytes, unsigned seed)
{
    static unsigned char owner[MAX_BLOCKS];
    struct extent lent[MAX_LENT] = {{0}};
    struct poolmap *map = new_map(pool_bytes);
    uint64_t used = 0, part = poolmap_part_bytes(pool_bytes, false);
    uint64_t limit = poolmap_product_limit_bytes(pool_bytes);

    memset(owner, 0, sizeof(owner));
    srand(seed);
    for (int step = 0; step < 4000; step++) {
        unsigned who = (unsigned)rand() % MAX_LENT;
        struct extent *e = &lent[who];
        uint64_t size = (uint64_t)rand() % (rand() % 8 ? 40 * KIB : limit + 8192);
        bool is_return = e->size_bytes > 0;
        int r = 0;
        if (is_return)
            poolmap_return(map, e);
        else
            r = poolmap_lend(map, size, e);
        cr_assert(eq(int, r == -E2BIG, !is_return && size > part / 4096 * 4096));
        for (uint64_t i = 0; r == 0 && i < e->size_bytes / 4096; i++) {
            unsigned char *block = &owner[e->offset_bytes / 4096 + i];
            cr_assert(eq(uint, *block, is_return ? who + 1 : 0));
            *block = is_return ? 0 : (unsigned char)(who + 1);
        }
        if (r == 0)
            used += is_return ? -e->size_bytes : e->size_bytes;
        if (r == 0 && !is_return)
            cr_assert(le(u64, e->offset_bytes + e->size_bytes, part));
        if (is_return)
            *e = (struct extent){.size_bytes = 0};
        cr_assert(eq(u64, poolmap_carry_used_bytes(map), used));
    }
    for (unsigned i = 0; i < MAX_LENT; i++)
        poolmap_return(map, &lent[i]);
    struct extent all;
    cr_assert(eq(int, poolmap_lend(map, limit, &all), 0)); /* everything merged again */
    poolmap_free(map);
}

Test(poolmap, lent_extents_never_meet_and_all_merge_again)
{
    for (uint64_t n_blocks = 1; n_blocks <= MAX_BLOCKS; n_blocks += 1 + n_blocks / 5)
        play(n_blocks * 8192 + 4000, (unsigned)n_blocks);
}

Test(poolmap, a_large_pool_lends_most_of_itself_to_a_product_and_leaves_room_for_others)
{
    static const uint64_t sizes[] = {20 * MIB, 32 * MIB, 64 * MIB, 256 * MIB, 300 * MIB + 12345};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct poolmap *map = new_map(sizes[i]);
        uint64_t limit = poolmap_product_limit_bytes(sizes[i]);
        struct extent product, other, one;
        cr_assert(ge(u64, limit, poolmap_carry_limit_bytes(sizes[i])));
        cr_assert(le(u64, limit, sizes[i] - max_u64(sizes[i] / 16, 8 * MIB)));
        cr_assert(eq(int, poolmap_lend(map, MIB / 2, &other), 0));
        cr_assert(eq(int, poolmap_lend(map, limit, &product), 0)); /* that one is out of its way */
        cr_assert(eq(u64, product.offset_bytes, 0));
        cr_assert(eq(int, poolmap_lend(map, limit, &one), -EAGAIN));
        cr_assert(eq(int, poolmap_lend(map, 64 * KIB, &one), 0));
        poolmap_return(map, &product);
        poolmap_return(map, &one);
        cr_assert(eq(int, poolmap_lend(map, limit, &product), 0));
        poolmap_return(map, &product);
        poolmap_return(map, &other);
        cr_assert(eq(u64, poolmap_carry_used_bytes(map), 0));
        poolmap_free(map);
    }
    cr_assert(ge(u64, poolmap_product_limit_bytes(64 * MIB), 51 * MIB));
}

Test(poolmap, a_small_pool_lends_a_product_what_it_lends_others)
{
    for (uint64_t n = 1; n <= 16; n++)
        cr_assert(
            eq(u64, poolmap_product_limit_bytes(n * MIB), poolmap_carry_limit_bytes(n * MIB)));
    cr_assert(eq(u64, poolmap_part_bytes(512 * MIB, true), 256 * MIB));
}

/* All of which is for carries: no power of two has a say in how much that is. */
Test(poolmap, a_devices_memory_is_lent_to_products_but_for_a_thirty_second)
{
    for (uint64_t n_bytes = 4096; n_bytes <= 1024 * MIB;
         n_bytes += n_bytes / 3 / 4096 * 4096 + 4096) {
        struct poolmap *map;
        uint64_t limit = poolmap_device_limit_bytes(n_bytes), rest = n_bytes - limit;
        struct extent product, other;
        cr_assert(eq(int, poolmap_new(n_bytes, &map), 0));
        cr_assert(le(u64, rest, n_bytes / 16));
        cr_assert(ge(u64, rest + 4096, n_bytes / 32));
        cr_assert(eq(int, poolmap_lend(map, limit, &product), 0));
        cr_assert(eq(int, poolmap_lend(map, limit, &other), -EAGAIN));
        bool is_small = n_bytes < 16 * POOLMAP_MIN_EXTENT_BYTES;
        cr_assert(eq(int, poolmap_lend(map, 1, &other), is_small ? -EAGAIN : 0));
        if (!is_small)
            poolmap_return(map, &other);
        poolmap_return(map, &product);
        poolmap_free(map);
    }
    cr_assert(eq(u64, poolmap_device_limit_bytes(0), 0));
}

static struct extent lend(struct poolmap *map, uint64_t size_bytes)
{
    struct extent extent = {.size_bytes = 0};

    cr_assert(eq(int, poolmap_lend(map, size_bytes, &extent), 0));
    return extent;
}

Test(poolmap, a_return_of_what_was_not_lent_is_a_fault, .signal = SIGABRT)
{
    poolmap_return(new_map(2 * MIB), &(struct extent){.offset_bytes = 0, .size_bytes = 4096});
}

Test(poolmap, a_return_twice_is_a_fault, .signal = SIGABRT)
{
    struct poolmap *map = new_map(2 * MIB);
    struct extent extent = lend(map, 12288);

    poolmap_return(map, &extent);
    poolmap_return(map, &extent);
}

Test(poolmap, a_return_of_a_part_is_a_fault, .signal = SIGABRT)
{
    struct poolmap *map = new_map(2 * MIB);
    struct extent extent = lend(map, 12288);

    extent.size_bytes -= 4096;
    poolmap_return(map, &extent);
}

Test(poolmap, a_return_of_two_at_once_is_a_fault, .signal = SIGABRT)
{
    struct poolmap *map = new_map(2 * MIB);
    struct extent extent = lend(map, 4096);
    (void)lend(map, 4096);

    extent.size_bytes += 4096;
    poolmap_return(map, &extent);
}

Test(poolmap, a_return_of_more_than_was_lent_is_a_fault, .signal = SIGABRT)
{
    struct poolmap *map = new_map(2 * MIB);
    struct extent extent = lend(map, 4096);

    extent.size_bytes += 4096;
    poolmap_return(map, &extent);
}

Test(poolmap, a_return_beyond_the_pool_is_a_fault, .signal = SIGABRT)
{
    poolmap_return(new_map(2 * MIB),
                   &(struct extent){.offset_bytes = UINT64_MAX - 4095, .size_bytes = 4096});
}

Test(poolmap, slots_are_larger_where_all_threads_have_enough_of_them)
{
    const uint64_t mib = 1024 * 1024, least = mib / 2;
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(32 * mib, 2, least), mib));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(32 * mib, 4, least), mib));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(32 * mib, 5, least), least));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(512 * mib, 16, least), mib));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(16 * mib, 1, least), mib));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(8 * mib, 1, least), least));
    cr_expect(eq(u64, poolmap_cpu_slot_bytes(mib, 1, least), least));
}
