/* The map of the pool's lower half: which extents are lent as carries. The broker lends one at
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

#define MAX_ORDERS    52 /* 2^52 blocks of 4096 bytes */
#define BITS_PER_WORD 64

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

int poolmap_new(uint64_t pool_bytes, struct poolmap **ret_map)
{
    uint64_t n_blocks = pool_bytes / 2 / POOLMAP_MIN_EXTENT_BYTES;
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

static uint64_t largest_run_bytes(unsigned n_orders)
{
    return n_orders == 0 ? 0 : (UINT64_C(1) << (n_orders - 1)) * POOLMAP_MIN_EXTENT_BYTES;
}

/* A quarter of it is left to others. */
static uint64_t limit_bytes(unsigned n_orders)
{
    uint64_t run_bytes = largest_run_bytes(n_orders);
    return run_bytes < 4 * POOLMAP_MIN_EXTENT_BYTES ? run_bytes : run_bytes - run_bytes / 4;
}

uint64_t poolmap_carry_limit_bytes(uint64_t pool_bytes)
{
    uint64_t n_blocks = pool_bytes / 2 / POOLMAP_MIN_EXTENT_BYTES;
    return limit_bytes(n_blocks == 0 ? 0 : BITS_PER_WORD - (unsigned)__builtin_clzll(n_blocks));
}

uint64_t poolmap_carry_used_bytes(const struct poolmap *map)
{
    return map->n_used * POOLMAP_MIN_EXTENT_BYTES;
}

int poolmap_lend(struct poolmap *map, uint64_t size_bytes, struct extent *ret_extent)
{
    uint64_t n = n_blocks_for(size_bytes);

    if (n == 0) {
        *ret_extent = (struct extent){.size_bytes = 0};
        return 0;
    }
    if (size_bytes > limit_bytes(map->n_orders))
        return -E2BIG;
    unsigned order = order_for(n);
    while (order < map->n_orders && map->n_free[order] == 0)
        order++;
    if (order == map->n_orders)
        return -EAGAIN;
    uint64_t run = bit_find(map->is_free[order]), first = run << order;
    run_set_free(map, order, run, false);
    blocks_release(map, first + n, (UINT64_C(1) << order) - n);
    bit_flip(map->is_start, first);
    map->n_used += n;
    *ret_extent = (struct extent){.offset_bytes = first * POOLMAP_MIN_EXTENT_BYTES,
                                  .size_bytes = n * POOLMAP_MIN_EXTENT_BYTES};
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

/* Exactly one lent extent: it begins here, nothing else begins inside, something begins behind. */
static bool is_lent(const struct poolmap *map, uint64_t first, uint64_t n)
{
    if (first >= map->n_blocks || n > map->n_blocks - first || !bit_get(map->is_start, first))
        return false;
    for (uint64_t i = 1; i < n; i++) {
        if (is_boundary(map, first + i))
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
