/* Philox 4x32-10 over blocks that are neighbours, a granule of draws at a time.
 *
 * A vector holds a word of as many blocks as it has lanes of 64 bits: the multiplication of the
 * lower halves of lanes is the only wide one there is. What it leaves in the upper halves is
 * ignored until the end. Without vectors, or where they are unknown, blocks are computed one by
 * one; the bits are the same.
 *
 * The upper halves of neighbours' numbers are the same but once in 2^32 blocks, and the stream and
 * the try always: one of the two products of the first round and one of the second are the same
 * for all of them and are kept with the keys, 18 multiplications of 20 remain. A granule across
 * such an end is computed in full.
 *
 * Included by random_bits.c and random_draws.c.
 */
#pragma once

#include "kernels/cpu/levels/random/random.h"

#include <string.h>

#define WORDS_U32 4u /* draws of a block */
#define WORDS_U64 2u

#if defined(KERNEL_VECTOR_BYTES)
#include <immintrin.h>
#define LANES  (KERNEL_VECTOR_BYTES / 8)
#define CHAINS (KERNEL_VECTOR_BYTES == 64 ? 4u : 2u) /* what the registers hold */
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

static inline wide xor_of(wide a, wide b, wide c)
{
#if KERNEL_VECTOR_BYTES == 64
    return (wide)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
#else
    return a ^ b ^ c;
#endif
}

/* The keys of all rounds; what the first two are for all blocks with an upper half. */
struct keys {
    u64 seed;
    u32 stream, upper;
    wide round[PHILOX_ROUNDS][2];
    wide second_0, second_2, third_3;
};

static inline void keys_set_upper(struct keys *keys, u32 upper)
{
    const wide zero = {0};
    u64 p1 = (u64)PHILOX_MULTIPLIER_1 * keys->stream;
    u64 p0 = (u64)PHILOX_MULTIPLIER_0 * ((u32)(p1 >> 32) ^ upper ^ (u32)keys->seed);
    keys->upper = upper;
    keys->second_0 = zero + ((u32)p1 ^ (u32)keys->round[1][0][0]);
    keys->second_2 = zero + ((u32)(p0 >> 32) ^ (u32)keys->round[1][1][0]);
    keys->third_3 = zero + (u32)p0;
}

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
    keys_set_upper(keys, 0);
}

/* Words of 32 bits, whatever the upper halves of their lanes. */
static inline wide joined_words(wide low, wide high)
{
#if KERNEL_VECTOR_BYTES == 64
    return (wide)_mm512_mask_shuffle_epi32((__m512i)low, 0xaaaa, (__m512i)high, 0xa0);
#else
    const wide zero = {0};
    return (low & (zero + 0xffffffffu)) | high << 32;
#endif
}

/* CHAINS vectors side by side: a round waits for the one before, and what the processor sees ahead
 * is not much more than all rounds of two vectors. */
struct chains {
    wide word[4][CHAINS];
};

/* Rounds from `first` on. */
static inline __attribute__((always_inline)) void philox_rounds(const struct keys *keys, int first,
                                                                struct chains *c)
{
    const wide zero = {0}, m0 = zero + PHILOX_MULTIPLIER_0, m1 = zero + PHILOX_MULTIPLIER_1;
#pragma GCC unroll 10
    for (int i = first; i < PHILOX_ROUNDS; i++) {
#pragma GCC unroll 4
        for (unsigned k = 0; k < CHAINS; k++) {
            wide p0 = product(c->word[0][k], m0), p1 = product(c->word[2][k], m1);
            c->word[0][k] = xor_of(p1 >> 32, c->word[1][k], keys->round[i][0]);
            c->word[1][k] = p1;
            c->word[2][k] = xor_of(p0 >> 32, c->word[3][k], keys->round[i][1]);
            c->word[3][k] = p0;
        }
    }
}

static inline __attribute__((always_inline)) void philox_lanes(const struct keys *keys,
                                                               const wide *blocks, struct chains *c)
{
    const wide zero = {0};
    for (unsigned k = 0; k < CHAINS; k++) {
        c->word[0][k] = blocks[k];
        c->word[1][k] = blocks[k] >> 32;
        c->word[2][k] = zero + keys->stream;
        c->word[3][k] = zero;
    }
    philox_rounds(keys, 0, c);
}

/* The same of blocks whose upper half is keys->upper. */
static inline __attribute__((always_inline)) void
philox_known_upper(const struct keys *keys, const wide *blocks, struct chains *c)
{
    const wide zero = {0};
#pragma GCC unroll 4
    for (unsigned k = 0; k < CHAINS; k++) {
        wide p0 = product(blocks[k], zero + PHILOX_MULTIPLIER_0);
        c->word[2][k] = p0 ^ keys->second_2;
        wide p1 = product((p0 >> 32) ^ keys->round[0][1], zero + PHILOX_MULTIPLIER_1);
        c->word[0][k] = (p1 >> 32) ^ keys->second_0;
        c->word[1][k] = p1;
        c->word[3][k] = keys->third_3;
    }
    philox_rounds(keys, 2, c);
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
static inline void store_pairs(char *to, wide low, wide high)
{
#if KERNEL_VECTOR_BYTES == 64
    wide first = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
    wide second = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
#elif KERNEL_VECTOR_BYTES == 32
    wide first = __builtin_shufflevector(low, high, 0, 4, 1, 5);
    wide second = __builtin_shufflevector(low, high, 2, 6, 3, 7);
#else
    wide first = __builtin_shufflevector(low, high, 0, 2);
    wide second = __builtin_shufflevector(low, high, 1, 3);
#endif
    memcpy(to, &first, sizeof(first));
    memcpy(to + sizeof(first), &second, sizeof(second));
}

/* is_known: all have the upper half keys->upper. n_blocks: a multiple of CHAINS vectors. */
static inline __attribute__((always_inline)) void
blocks_from(const struct keys *keys, u64 first, unsigned n_blocks, bool is_known, void *dst)
{
    static const u64 counting[] = {0, 1, 2, 3, 4, 5, 6, 7};
    char *to = dst;
    wide next = load(counting) + first;
    /* The keys stay in memory, where instructions take them from: registers are for the chains. */
    __asm__ volatile("" : : "r"(keys) : "memory");
    for (unsigned i = 0; i < n_blocks; i += CHAINS * LANES) {
        wide blocks[CHAINS];
        struct chains c;
#pragma GCC unroll 4
        for (unsigned k = 0; k < CHAINS; k++)
            blocks[k] = next + k * LANES;
        next += CHAINS * LANES;
        if (is_known)
            philox_known_upper(keys, blocks, &c);
        else
            philox_lanes(keys, blocks, &c);
#pragma GCC unroll 4
        for (unsigned k = 0; k < CHAINS; k++, to += 2 * sizeof(wide))
            store_pairs(to, joined_words(c.word[0][k], c.word[1][k]),
                        joined_words(c.word[2][k], c.word[3][k]));
    }
}

static __attribute__((noinline)) void blocks_across(const struct keys *keys, u64 first,
                                                    unsigned n_blocks, void *dst)
{
    blocks_from(keys, first, n_blocks, false, dst);
}

static inline __attribute__((always_inline)) void run_of_blocks(struct keys *keys, u64 first,
                                                                unsigned n_blocks, void *dst)
{
    if ((u32)first + (u64)n_blocks > (u64)1 << 32) {
        blocks_across(keys, first, n_blocks, dst);
        return;
    }
    if (keys->upper != (u32)(first >> 32))
        keys_set_upper(keys, (u32)(first >> 32));
    blocks_from(keys, first, n_blocks, true, dst);
}

static inline void blocks_of(const struct keys *keys, const u64 *numbers, u64 *ret_low,
                             u64 *ret_high)
{
    for (unsigned i = 0; i < KERNEL_GRANULE; i += CHAINS * LANES) {
        wide blocks[CHAINS];
        struct chains c;
        for (unsigned k = 0; k < CHAINS; k++)
            blocks[k] = load(numbers + i + k * LANES);
        philox_lanes(keys, blocks, &c);
        for (unsigned k = 0; k < CHAINS; k++) {
            store(ret_low + i + k * LANES, joined_words(c.word[0][k], c.word[1][k]));
            store(ret_high + i + k * LANES, joined_words(c.word[2][k], c.word[3][k]));
        }
    }
}

#else
struct keys {
    u64 seed;
    u32 stream;
};

static inline void keys_init(struct keys *keys, u64 seed, u32 stream)
{
    *keys = (struct keys){.seed = seed, .stream = stream};
}

static inline void run_of_blocks(struct keys *keys, u64 first, unsigned n_blocks, void *dst)
{
    for (unsigned i = 0; i < n_blocks; i++) {
        struct philox_block block = philox(keys->seed, first + i, keys->stream, 0);
        memcpy((char *)dst + (size_t)i * sizeof(block), &block, sizeof(block));
    }
}

static inline void blocks_of(const struct keys *keys, const u64 *numbers, u64 *ret_low,
                             u64 *ret_high)
{
    for (unsigned i = 0; i < KERNEL_GRANULE; i++) {
        struct philox_block block = philox(keys->seed, numbers[i], keys->stream, 0);
        ret_low[i] = philox_u64(&block, 0);
        ret_high[i] = philox_u64(&block, 1);
    }
}
#endif

/* Draws of neighbours from `first` on, as many as all chains give at once. */
#define STRETCH_WORDS 128u
#define WORDS_ROOM    (STRETCH_WORDS + 4) /* a block more, where the first is not a block's first */

static inline __attribute__((always_inline)) const u32 *words_from(struct keys *keys, u64 block,
                                                                   unsigned n_before, u32 *words)
{
    run_of_blocks(keys, block, STRETCH_WORDS / 4, words);
    if (n_before != 0) {
        struct philox_block last = philox(keys->seed, block + STRETCH_WORDS / 4, keys->stream, 0);
        memcpy(words + STRETCH_WORDS, last.word, sizeof(last.word));
    }
    return words + n_before;
}

static inline __attribute__((always_inline)) const u32 *draws_u32(struct keys *keys, u64 first,
                                                                  u32 *words)
{
    return words_from(keys, first / WORDS_U32, first % WORDS_U32, words);
}

static inline __attribute__((always_inline)) const u64 *draws_u64(struct keys *keys, u64 first,
                                                                  u32 *words)
{
    const u32 *from = words_from(keys, first / WORDS_U64, first % WORDS_U64 * 2, words);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (u32 *pair = words; pair < words + WORDS_ROOM; pair += 2) {
        u32 low = pair[0];
        pair[0] = pair[1];
        pair[1] = low;
    }
#endif
    return (const u64 *)from;
}
