/* RANDOM_U32 and RANDOM_U64: Philox 4x32-10 over the numbers of elements.
 *
 * The numbers of the elements are an array (they count up along rows and jump between them). Where
 * a granule's numbers are neighbours, which is nearly always, its blocks are computed once each: 16
 * (32) of them for 64 draws of 32 (64) bits, and one more where the first draw is not a block's
 * first. Anywhere else every element computes its own block and takes its part.
 *
 * A vector holds a word of as many blocks as it has lanes of 64 bits: the multiplication of the
 * lower halves of lanes is the only wide one there is. What it leaves in the upper halves is
 * ignored until the end. Numbers are read before the draws are written: dst may be the numbers.
 * Without vectors, or where they are unknown, blocks are computed one by one; the bits are the
 * same.
 */
#include "kernels/cpu/random.h"

#include <string.h>

#define WORDS_U32 4u /* draws of a block */
#define WORDS_U64 2u

#if defined(KERNEL_VECTOR_BYTES)
#include <immintrin.h>
#define LANES (KERNEL_VECTOR_BYTES / 8)
typedef u64 wide __attribute__((vector_size(KERNEL_VECTOR_BYTES)));

static inline wide product(wide a, wide b)
{
#if KERNEL_VECTOR_BYTES == 64
    return (wide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif KERNEL_VECTOR_BYTES == 32
    return (wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

/* The keys of all rounds. */
struct keys {
    u64 seed;
    u32 stream;
    wide round[PHILOX_ROUNDS][2];
};

static inline void keys_init(struct keys *keys, u64 seed, u32 stream)
{
    const wide zero = {0};
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
    keys->seed = seed;
    keys->stream = stream;
    for (int i = 0; i < PHILOX_ROUNDS; i++) {
        keys->round[i][0] = zero + key0;
        keys->round[i][1] = zero + key1;
        key0 += PHILOX_WEYL_0;
        key1 += PHILOX_WEYL_1;
    }
}

/* ret: the blocks' lower and upper halves. */
static inline __attribute__((always_inline)) void philox_lanes(const struct keys *keys, wide blocks,
                                                               wide *ret)
{
    const wide zero = {0}, mask = zero + 0xffffffffu;
    const wide m0 = zero + PHILOX_MULTIPLIER_0, m1 = zero + PHILOX_MULTIPLIER_1;
    wide c0 = blocks, c1 = blocks >> 32, c2 = zero + keys->stream, c3 = zero;
#pragma GCC unroll 10
    for (int i = 0; i < PHILOX_ROUNDS; i++) {
        wide p0 = product(c0, m0), p1 = product(c2, m1);
        c0 = (p1 >> 32) ^ c1 ^ keys->round[i][0];
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ keys->round[i][1];
        c3 = p0;
    }
    ret[0] = (c0 & mask) | c1 << 32;
    ret[1] = (c2 & mask) | c3 << 32;
}

static inline wide load(const u64 *from)
{
    wide v;
    memcpy(&v, from, sizeof(v));
    return v;
}

static inline void store(u64 *to, wide v)
{
    memcpy(to, &v, sizeof(v));
}

/* Lower and upper halves of blocks, one behind the other in memory. */
static inline void store_pairs(char *to, const wide *halves)
{
#if KERNEL_VECTOR_BYTES == 64
    wide first = __builtin_shufflevector(halves[0], halves[1], 0, 8, 1, 9, 2, 10, 3, 11);
    wide second = __builtin_shufflevector(halves[0], halves[1], 4, 12, 5, 13, 6, 14, 7, 15);
#elif KERNEL_VECTOR_BYTES == 32
    wide first = __builtin_shufflevector(halves[0], halves[1], 0, 4, 1, 5);
    wide second = __builtin_shufflevector(halves[0], halves[1], 2, 6, 3, 7);
#else
    wide first = __builtin_shufflevector(halves[0], halves[1], 0, 2);
    wide second = __builtin_shufflevector(halves[0], halves[1], 1, 3);
#endif
    memcpy(to, &first, sizeof(first));
    memcpy(to + sizeof(first), &second, sizeof(second));
}

static inline void run_of_blocks(const struct keys *keys, u64 first, unsigned n_blocks, void *dst)
{
    static const u64 counting[] = {0, 1, 2, 3, 4, 5, 6, 7};
    wide blocks = load(counting) + first;
    for (unsigned i = 0; i < n_blocks; i += 2 * LANES) {
        wide one[2], other[2];
        philox_lanes(keys, blocks, one);
        philox_lanes(keys, blocks + LANES, other);
        store_pairs((char *)dst + (size_t)i * 16, one);
        store_pairs((char *)dst + (size_t)(i + LANES) * 16, other);
        blocks += 2 * LANES;
    }
}

static inline void blocks_of(const struct keys *keys, const u64 *numbers, u64 *ret_low,
                             u64 *ret_high)
{
    for (unsigned i = 0; i < KERNEL_GRANULE; i += LANES) {
        wide halves[2];
        philox_lanes(keys, load(numbers + i), halves);
        store(ret_low + i, halves[0]);
        store(ret_high + i, halves[1]);
    }
}

#else
struct keys {
    u64 seed;
    u32 stream;
};

static void keys_init(struct keys *keys, u64 seed, u32 stream)
{
    *keys = (struct keys){.seed = seed, .stream = stream};
}

static void run_of_blocks(const struct keys *keys, u64 first, unsigned n_blocks, void *dst)
{
    for (unsigned i = 0; i < n_blocks; i++) {
        struct philox_block block = philox(keys->seed, first + i, keys->stream, 0);
        memcpy((char *)dst + (size_t)i * sizeof(block), &block, sizeof(block));
    }
}

static void blocks_of(const struct keys *keys, const u64 *numbers, u64 *ret_low, u64 *ret_high)
{
    for (unsigned i = 0; i < KERNEL_GRANULE; i++) {
        struct philox_block block = philox(keys->seed, numbers[i], keys->stream, 0);
        ret_low[i] = philox_u64(&block, 0);
        ret_high[i] = philox_u64(&block, 1);
    }
}
#endif

void KERNEL_SYMBOL(random_blocks)(const u64 *numbers, u64 seed, u32 stream, u64 *ret_low,
                                  u64 *ret_high)
{
    struct keys keys;
    keys_init(&keys, seed, stream);
    blocks_of(&keys, numbers, ret_low, ret_high);
}

static inline bool are_neighbours(const u64 *numbers)
{
    u64 first = numbers[0], difference = 0;
    for (unsigned i = 0; i < KERNEL_GRANULE; i++)
        difference |= numbers[i] ^ (first + i);
    return difference == 0;
}

/* A granule of neighbours, the first of which is draw `first`. */
static void neighbours_u32(u64 first, const struct keys *keys, u32 *dst)
{
    unsigned before = first % WORDS_U32, n_blocks = KERNEL_GRANULE / WORDS_U32;
    run_of_blocks(keys, first / WORDS_U32, n_blocks, dst);
    if (before == 0)
        return;
    struct philox_block last = philox(keys->seed, first / WORDS_U32 + n_blocks, keys->stream, 0);
    memmove(dst, dst + before, (KERNEL_GRANULE - before) * sizeof(*dst));
    memcpy(dst + KERNEL_GRANULE - before, last.word, before * sizeof(*dst));
}

static inline u64 joined(const u32 *words)
{
    return words[0] | (u64)words[1] << 32;
}

static void neighbours_u64(u64 first, const struct keys *keys, u64 *dst)
{
    unsigned before = first % WORDS_U64, n_blocks = KERNEL_GRANULE / WORDS_U64;
    u32 words[KERNEL_GRANULE * 2 + 4];
    run_of_blocks(keys, first / WORDS_U64, n_blocks, words);
    if (before != 0) {
        struct philox_block last =
            philox(keys->seed, first / WORDS_U64 + n_blocks, keys->stream, 0);
        memcpy(words + KERNEL_GRANULE * 2, last.word, sizeof(last.word));
    }
    for (unsigned i = 0; i < KERNEL_GRANULE; i++)
        dst[i] = joined(words + (i + before) * 2);
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
        for (size_t i = 0; i < n; i += KERNEL_GRANULE) {                                           \
            if (are_neighbours(numbers + i))                                                       \
                neighbours_##T(numbers[i], &keys, (T *)dst + i);                                   \
            else                                                                                   \
                scattered_##T(numbers + i, &keys, (T *)dst + i);                                   \
        }                                                                                          \
    }
RANDOM_BITS(u32)
RANDOM_BITS(u64)
