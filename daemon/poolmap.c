/* The map of the pool's part for carries: which extents of it are lent. The broker lends one at
 * admission and takes it back when the job has ended; nothing here touches the pool.
 *
 * A buddy allocator over blocks of POOLMAP_MIN_EXTENT_BYTES. Order k is a run of 2^k blocks that
 * begins at a multiple of 2^k; a run of any other number of blocks is several of them. An extent is
 * cut from the smallest free run that is large enough (the lowest of these), and what the rounding
 * up to a power of two leaves over goes back at once: an extent is its size rounded up to blocks.
 *
 *     blocks   0 . . . 4 . . . 8 . 10        11 blocks: free runs 0-7 (order 3), 8-9 (1), 10 (0)
 *              [     3       ][ 1][0]
 *              L L L . [  2  ]  lend 3:      an extent of 3 blocks, block 3 (0) and 4-7 (2) free
 *              . . . . . L L L  if the run were not at 0
 *
 * A carry that is larger than the largest run is one that begins at 0 and spans several runs, when
 * all of them are free. Small carries are cut from small runs, at the upper end, so they leave it
 * room.
 *
 * Metadata is three bits a block at most: `is_free[k]` has a bit per possible run of order k (two
 * bits a block over all orders), `is_start` a bit where each lent extent begins. Free runs and lent
 * extents tile the blocks without gaps, which is how a return is checked against what was lent.
 *
 * Invariants: a run's bit is set in at most one order for any block; two free buddies are merged;
 * the sum of lent blocks is n_used.
 */
#include "daemon/poolmap.h"
#include "proto/util.h"

#include <assert.h>

#define MAX_ORDERS       52 /* 2^52 blocks of 4096 bytes */
#define BITS_PER_WORD    64
#define SLOTS_SHARE      16 /* of a pool */
#define SLOTS_PER_THREAD 2
#define OTHERS_SHARE     8  /* of the part for carries, rounded down to a power of two */
#define OTHERS_ON_DEVICE 16 /* likewise: all of them are products, few of which do with little */

struct poolmap {
    uint64_t n_blocks, n_used;
    unsigned n_orders;
    uint64_t *is_free[MAX_ORDERS]; /* into words */
    uint64_t n_free[MAX_ORDERS];
    uint64_t *is_start;
    uint64_t words[];
};

static uint64_t n_words_for(uint64_t n_bits)
{
    return n_bits / BITS_PER_WORD + 1;
}

static bool bit_get(const uint64_t *words, uint64_t bit)
{
    return words[bit / BITS_PER_WORD] >> (bit % BITS_PER_WORD) & 1;
}

static void bit_flip(uint64_t *words, uint64_t bit)
{
    words[bit / BITS_PER_WORD] ^= UINT64_C(1) << (bit % BITS_PER_WORD);
}

static uint64_t bit_find(const uint64_t *words) /* there is one */
{
    uint64_t word = 0;

    while (words[word] == 0)
        word++;
    return word * BITS_PER_WORD + (uint64_t)__builtin_ctzll(words[word]);
}

static bool run_is_free(const struct poolmap *map, unsigned order, uint64_t run)
{
    return run < map->n_blocks >> order && bit_get(map->is_free[order], run);
}

static void run_set_free(struct poolmap *map, unsigned order, uint64_t run, bool is_free)
{
    assert(run < map->n_blocks >> order);
    assert(bit_get(map->is_free[order], run) != is_free);
    bit_flip(map->is_free[order], run);
    map->n_free[order] += is_free ? 1 : -UINT64_C(1);
}

/* Frees one run and merges it with its buddy as long as that is free too. */
static void run_release(struct poolmap *map, unsigned order, uint64_t run)
{
    while (order + 1 < map->n_orders && run_is_free(map, order, run ^ 1)) {
        run_set_free(map, order, run ^ 1, false);
        run /= 2;
        order++;
    }
    run_set_free(map, order, run, true);
}

/* Frees any blocks, as the largest aligned runs that they are made of. */
static void blocks_release(struct poolmap *map, uint64_t first, uint64_t n)
{
    while (n > 0) {
        unsigned order = 0;
        while (order + 1 < map->n_orders && (first >> order & 1) == 0 && n >> (order + 1) > 0)
            order++;
        run_release(map, order, first >> order);
        first += UINT64_C(1) << order;
        n -= UINT64_C(1) << order;
    }
}

static uint64_t n_blocks_for(uint64_t size_bytes)
{
    return size_bytes / POOLMAP_MIN_EXTENT_BYTES + (size_bytes % POOLMAP_MIN_EXTENT_BYTES != 0);
}

/* The least order whose run holds n blocks (n > 0). */
static unsigned order_for(uint64_t n)
{
    return n == 1 ? 0 : BITS_PER_WORD - (unsigned)__builtin_clzll(n - 1);
}

uint64_t poolmap_part_bytes(uint64_t pool_bytes, bool is_device)
{
    uint64_t slots_bytes = max_u64(pool_bytes / SLOTS_SHARE, POOLMAP_SLOT_BYTES);

    return is_device || pool_bytes < 2 * slots_bytes ? pool_bytes / 2 : pool_bytes - slots_bytes;
}

uint64_t poolmap_cpu_slot_bytes(uint64_t pool_bytes, unsigned n_threads, uint64_t least_bytes)
{
    uint64_t left_bytes = pool_bytes - poolmap_part_bytes(pool_bytes, false);
    uint64_t needed_bytes = SLOTS_PER_THREAD * 2 * least_bytes * n_threads;

    return left_bytes >= max_u64(needed_bytes, POOLMAP_SLOT_BYTES) ? 2 * least_bytes : least_bytes;
}

int poolmap_new(uint64_t part_bytes, struct poolmap **ret_map)
{
    uint64_t n_blocks = part_bytes / POOLMAP_MIN_EXTENT_BYTES;
    uint64_t n_words = n_words_for(n_blocks);
    unsigned n_orders = 0;

    for (; n_blocks >> n_orders > 0; n_orders++)
        n_words += n_words_for(n_blocks >> n_orders);
    assert(n_orders <= MAX_ORDERS);
    struct poolmap *map = calloc(1, sizeof(*map) + n_words * sizeof(uint64_t));
    if (!map)
        return -ENOMEM;
    map->n_blocks = n_blocks;
    map->n_orders = n_orders;
    map->is_start = map->words;
    uint64_t *next = map->words + n_words_for(n_blocks);
    for (unsigned i = 0; i < n_orders; i++) {
        map->is_free[i] = next;
        next += n_words_for(n_blocks >> i);
    }
    blocks_release(map, 0, n_blocks);
    *ret_map = map;
    return 0;
}

struct poolmap *poolmap_free(struct poolmap *map)
{
    free(map);
    return NULL;
}

/* The largest power of two, or 0. */
static uint64_t power_of_two_within(uint64_t n)
{
    return n == 0 ? 0 : UINT64_C(1) << (BITS_PER_WORD - 1 - (unsigned)__builtin_clzll(n));
}

uint64_t poolmap_carry_limit_bytes(uint64_t pool_bytes)
{
    uint64_t n_blocks = power_of_two_within(pool_bytes / 2 / POOLMAP_MIN_EXTENT_BYTES);
    return (n_blocks < 4 ? n_blocks : n_blocks - n_blocks / 4) * POOLMAP_MIN_EXTENT_BYTES;
}

static uint64_t all_but(uint64_t part_bytes, unsigned others_share)
{
    uint64_t n_blocks = part_bytes / POOLMAP_MIN_EXTENT_BYTES;

    return (n_blocks - power_of_two_within(n_blocks / others_share)) * POOLMAP_MIN_EXTENT_BYTES;
}

uint64_t poolmap_device_limit_bytes(uint64_t device_bytes)
{
    return all_but(device_bytes, OTHERS_ON_DEVICE);
}

uint64_t poolmap_product_limit_bytes(uint64_t pool_bytes)
{
    uint64_t part_bytes = poolmap_part_bytes(pool_bytes, false);
    uint64_t limit_bytes = poolmap_carry_limit_bytes(pool_bytes);

    return part_bytes <= pool_bytes / 2 ? limit_bytes
                                        : max_u64(limit_bytes, all_but(part_bytes, OTHERS_SHARE));
}

uint64_t poolmap_carry_used_bytes(const struct poolmap *map)
{
    return map->n_used * POOLMAP_MIN_EXTENT_BYTES;
}

bool poolmap_is_within_share(const struct poolmap *map, uint64_t held_bytes, uint64_t largest_bytes,
                             uint64_t size_bytes)
{
    uint64_t n_held = n_blocks_for(held_bytes) - n_blocks_for(largest_bytes);
    uint64_t n_left = map->n_blocks - (map->n_used - n_held), n = n_blocks_for(size_bytes);

    return n <= map->n_blocks && n_held + n <= n_left / 2;
}

/* n blocks of the lowest of the smallest free runs that are large enough: the first ones of the run
 * at 0, the last ones of others, so that the lower end stays free for large carries. */
static int take_of_run(struct poolmap *map, uint64_t n, uint64_t *ret_first)
{
    unsigned order = order_for(n);

    while (order < map->n_orders && map->n_free[order] == 0)
        order++;
    if (order == map->n_orders)
        return -EAGAIN;
    uint64_t run = bit_find(map->is_free[order]), first = run << order;
    uint64_t n_rest = (UINT64_C(1) << order) - n;
    run_set_free(map, order, run, false);
    blocks_release(map, first > 0 ? first : n, n_rest);
    *ret_first = first > 0 ? first + n_rest : 0;
    return 0;
}

/* The order of the free run that begins here; n_orders: there is none. */
static unsigned run_order_at(const struct poolmap *map, uint64_t block)
{
    unsigned order = 0;

    while (order < map->n_orders && ((block & ((UINT64_C(1) << order) - 1)) != 0 ||
                                     !run_is_free(map, order, block >> order)))
        order++;
    return order;
}

/* Blocks 0 to n - 1, of several runs. */
static int take_lowest(struct poolmap *map, uint64_t n)
{
    uint64_t end = 0;

    while (end < n) {
        unsigned order = run_order_at(map, end);
        if (order == map->n_orders)
            return -EAGAIN;
        end += UINT64_C(1) << order;
    }
    for (uint64_t block = 0; block < end;) {
        unsigned order = run_order_at(map, block);
        run_set_free(map, order, block >> order, false);
        block += UINT64_C(1) << order;
    }
    blocks_release(map, n, end - n);
    return 0;
}

int poolmap_lend(struct poolmap *map, uint64_t size_bytes, struct extent *ret_extent)
{
    uint64_t n = n_blocks_for(size_bytes), first = 0;

    if (n == 0) {
        *ret_extent = (struct extent){.size_bytes = 0};
        return 0;
    }
    if (n > map->n_blocks)
        return -E2BIG;
    int r = order_for(n) < map->n_orders ? take_of_run(map, n, &first) : take_lowest(map, n);
    if (r)
        return r;
    bit_flip(map->is_start, first);
    map->n_used += n;
    *ret_extent = (struct extent){.offset_bytes = first * POOLMAP_MIN_EXTENT_BYTES,
                                  .size_bytes = n * POOLMAP_MIN_EXTENT_BYTES};
    return 0;
}

int poolmap_lend_beside(struct poolmap *map, uint64_t size_bytes, uint64_t waiting_bytes,
                        struct extent *ret_extent)
{
    uint64_t n_waiting = n_blocks_for(waiting_bytes);
    struct extent extent;

    if (n_waiting == 0 || size_bytes == 0)
        return poolmap_lend(map, size_bytes, ret_extent);
    if (order_for(n_waiting) < map->n_orders) /* it may come to lie anywhere */
        return -EAGAIN;
    int r = poolmap_lend(map, size_bytes, &extent);
    if (r)
        return r;
    if (extent.offset_bytes < n_waiting * POOLMAP_MIN_EXTENT_BYTES) {
        poolmap_return(map, &extent);
        return -EAGAIN;
    }
    *ret_extent = extent;
    return 0;
}

/* Whether a free run or a lent extent begins here, or the blocks end. */
static bool is_boundary(const struct poolmap *map, uint64_t block)
{
    if (block == map->n_blocks || bit_get(map->is_start, block))
        return true;
    for (unsigned order = 0; order < map->n_orders; order++) {
        if (run_is_free(map, order, block >> order))
            return block == block >> order << order;
    }
    return false;
}

/* Whether a bit of [first, end) is set. */
static bool has_bit(const uint64_t *words, uint64_t first, uint64_t end)
{
    while (first < end) {
        uint64_t rest = words[first / BITS_PER_WORD] >> (first % BITS_PER_WORD);
        uint64_t n = min_u64(BITS_PER_WORD - first % BITS_PER_WORD, end - first);
        if (n < BITS_PER_WORD)
            rest &= (UINT64_C(1) << n) - 1;
        if (rest != 0)
            return true;
        first += n;
    }
    return false;
}

/* Exactly one lent extent: it begins here, nothing else begins inside, something begins behind. */
static bool is_lent(const struct poolmap *map, uint64_t first, uint64_t n)
{
    if (first >= map->n_blocks || n > map->n_blocks - first || !bit_get(map->is_start, first) ||
        has_bit(map->is_start, first + 1, first + n))
        return false;
    for (unsigned order = 0; order < map->n_orders; order++) {
        uint64_t n_runs = map->n_blocks >> order, end = ((first + n - 1) >> order) + 1;
        if (has_bit(map->is_free[order], (first >> order) + 1, min_u64(end, n_runs)))
            return false;
    }
    return is_boundary(map, first + n);
}

void poolmap_return(struct poolmap *map, const struct extent *extent)
{
    uint64_t first = extent->offset_bytes / POOLMAP_MIN_EXTENT_BYTES;
    uint64_t n = extent->size_bytes / POOLMAP_MIN_EXTENT_BYTES;

    if (extent->size_bytes == 0)
        return;
    assert(extent->offset_bytes % POOLMAP_MIN_EXTENT_BYTES == 0);
    assert(extent->size_bytes % POOLMAP_MIN_EXTENT_BYTES == 0);
    assert(is_lent(map, first, n));
    bit_flip(map->is_start, first);
    map->n_used -= n;
    blocks_release(map, first, n);
}
