/* RANDOM_U32 and RANDOM_U64: Philox 4x32-10 over the numbers of elements.
 *
 * The numbers of the elements are an array (they count up along rows and jump between them). Where
 * those of a granule are neighbours, blocks are computed once each: 32 of them, for 64 draws of 64
 * bits, or for 128 of 32 where the next granule goes on with them, and one more where the first
 * draw is not a block's first. Anywhere else every element computes its own block and takes its
 * part. A strip whose numbers all count up does not come here: see random_draws.c.
 *
 * Numbers are read before the draws are written: dst may be the numbers.
 */
#include "kernels/cpu/levels/random/random_philox.h"

void KERNEL_SYMBOL(random_blocks)(const u64 *numbers, u64 seed, u32 stream, u64 *ret_low,
                                  u64 *ret_high)
{
    struct keys keys;
    keys_init(&keys, seed, stream);
    blocks_of(&keys, numbers, ret_low, ret_high);
}

/* How many of at least a granule are neighbours: n_most, a granule, or none. */
static inline size_t count_neighbours(const u64 *numbers, size_t n, size_t n_most)
{
    u64 first = numbers[0], difference = 0;
    for (size_t i = 0; i < KERNEL_GRANULE; i++)
        difference |= numbers[i] ^ (first + i);
    if (difference != 0)
        return 0;
    if (n < n_most)
        return KERNEL_GRANULE;
    for (size_t i = KERNEL_GRANULE; i < n_most; i++)
        difference |= numbers[i] ^ (first + i);
    return difference == 0 ? n_most : KERNEL_GRANULE;
}

static void scattered_u32(const u64 *numbers, const struct keys *keys, u32 *dst)
{
    u64 blocks[KERNEL_GRANULE], low[KERNEL_GRANULE], high[KERNEL_GRANULE];
    for (unsigned i = 0; i < KERNEL_GRANULE; i++)
        blocks[i] = numbers[i] / WORDS_U32;
    blocks_of(keys, blocks, low, high);
    for (unsigned i = 0; i < KERNEL_GRANULE; i++) {
        u64 half = numbers[i] & 2 ? high[i] : low[i];
        dst[i] = (u32)(numbers[i] & 1 ? half >> 32 : half);
    }
}

static void scattered_u64(const u64 *numbers, const struct keys *keys, u64 *dst)
{
    u64 blocks[KERNEL_GRANULE], low[KERNEL_GRANULE], high[KERNEL_GRANULE];
    for (unsigned i = 0; i < KERNEL_GRANULE; i++)
        blocks[i] = numbers[i] / WORDS_U64;
    blocks_of(keys, blocks, low, high);
    for (unsigned i = 0; i < KERNEL_GRANULE; i++)
        dst[i] = numbers[i] & 1 ? high[i] : low[i];
}

#define RANDOM_BITS(T)                                                                             \
    void KERNEL_SYMBOL(random_bits_##T)(KERNEL_ARGS)                                               \
    {                                                                                              \
        const u64 *numbers = pa;                                                                   \
        struct keys keys;                                                                          \
        keys_init(&keys, *(const u64 *)pb, (u32) * (const u64 *)pc);                               \
        for (size_t i = 0; i < n;) {                                                               \
            size_t n_now =                                                                         \
                count_neighbours(numbers + i, n - i, STRETCH_WORDS * sizeof(u32) / sizeof(T));     \
            if (n_now > 0) {                                                                       \
                u32 words[WORDS_ROOM] __attribute__((aligned(64)));                                \
                memcpy((T *)dst + i, draws_##T(&keys, numbers[i], words), n_now * sizeof(T));      \
            } else {                                                                               \
                scattered_##T(numbers + i, &keys, (T *)dst + i);                                   \
                n_now = KERNEL_GRANULE;                                                            \
            }                                                                                      \
            i += n_now;                                                                            \
        }                                                                                          \
    }
RANDOM_BITS(u32)
RANDOM_BITS(u64)
