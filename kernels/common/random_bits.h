/* Random bits of numbered elements, for both engines: the common subset of C11 and CUDA C++.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011)
 * is a bijection of 128-bit counters, a different one for each 64-bit key. The key is the seed,
 * word 0 its lower half. A counter is
 *
 *     block's lower half | block's upper half | stream (enum random_stream) | try
 *
 * and gives four words of 32 bits. The 32-bit draw of element i is word i % 4 of block i / 4; the
 * 64-bit draw of element i is words 2 (i % 2), its lower half, and 2 (i % 2) + 1 of block i / 2;
 * the try is 0. Poisson numbers take a block for each element and try. So what an element gets
 * depends on its number, the seed and the stream alone.
 *
 * A permutation of 0 to n - 1, keyed by the seed. Up to RANDOM_FEW it is Fisher and Yates' shuffle
 * with 64-bit draws, of which only the way of the one element is followed: all n! permutations are
 * equally likely but for 2^-58. Beyond that it is a Feistel network (Luby, Rackoff: How to
 * construct pseudorandom permutations, 1988) on the fewest bits that hold n - 1, repeated until the
 * result is below n (cycle walking; Black, Rogaway: Ciphers with arbitrary finite domains, CT-RSA
 * 2002), less than twice on average; with 24 rounds, as Mitchell, Stokes, Frank, Holmes:
 * Bandwidth-optimal random shuffling for GPUs, 2021.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#if defined(__CUDACC__)
#define RANDOM_INLINE static __device__ __forceinline__
#else
#define RANDOM_INLINE static inline __attribute__((always_inline))
#endif

#define PHILOX_MULTIPLIER_0 0xd2511f53u
#define PHILOX_MULTIPLIER_1 0xcd9e8d57u
#define PHILOX_WEYL_0       0x9e3779b9u
#define PHILOX_WEYL_1       0xbb67ae85u
#define PHILOX_ROUNDS       10

#define RANDOM_FEW         64u
#define RANDOM_PERMUTATION 7u /* RANDOM_STREAM_PERMUTATION: what follows also runs on devices */
#define RANDOM_ROUNDS      24u
#define RANDOM_KEY_BLOCKS  12u /* two rounds' keys in each */

struct philox_block {
    u32 word[4];
};

RANDOM_INLINE struct philox_block philox(u64 seed, u64 block, u32 stream, u32 attempt)
{
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
    u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = stream, c3 = attempt;
    struct philox_block r;
    for (int i = 0; i < PHILOX_ROUNDS; i++) {
        u64 p0 = (u64)PHILOX_MULTIPLIER_0 * c0, p1 = (u64)PHILOX_MULTIPLIER_1 * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ key0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ key1;
        c3 = (u32)p0;
        key0 += PHILOX_WEYL_0;
        key1 += PHILOX_WEYL_1;
    }
    r.word[0] = c0;
    r.word[1] = c1;
    r.word[2] = c2;
    r.word[3] = c3;
    return r;
}

/* The lower and the upper half of a block. */
RANDOM_INLINE u64 philox_u64(const struct philox_block *block, unsigned half)
{
    return block->word[2 * half] | (u64)block->word[2 * half + 1] << 32;
}

RANDOM_INLINE u32 random_u32(u64 index, u64 seed, u64 stream)
{
    struct philox_block block = philox(seed, index >> 2, (u32)stream, 0);
    return block.word[index & 3];
}

RANDOM_INLINE u64 random_u64(u64 index, u64 seed, u64 stream)
{
    struct philox_block block = philox(seed, index >> 1, (u32)stream, 0);
    return philox_u64(&block, (unsigned)(index & 1));
}

RANDOM_INLINE u64 random_multiply_high(u64 a, u64 b)
{
    u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    u64 low = al * bl, middle = ah * bl + (low >> 32), other = al * bh + (u32)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

/* What the shuffle of few elements exchanges element k with. */
RANDOM_INLINE u64 random_exchange(u64 seed, u64 k)
{
    return random_multiply_high(random_u64(k, seed, RANDOM_PERMUTATION), k + 1);
}

/* The keys of rounds 2 i and 2 i + 1. */
RANDOM_INLINE struct philox_block random_round_keys(u64 seed, u64 i)
{
    return philox(seed, i, RANDOM_PERMUTATION, 1);
}

/* A Feistel round's function: 64 well-mixed bits of a half (multiplications and shifts of Steele,
 * Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
RANDOM_INLINE u64 random_mixed(u64 half, u64 key)
{
    u64 x = half ^ key;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The fewest bits, at least 2, that hold n - 1. */
RANDOM_INLINE u32 random_bits_of(u64 n)
{
    u32 bits = 2;
    while (bits < 64 && (n - 1) >> bits != 0)
        bits++;
    return bits;
}

/* Rounds 2 i and 2 i + 1: the lower half changes the upper one, then the other way round. */
RANDOM_INLINE u64 random_feistel_rounds(u64 x, u32 n_bits, const struct philox_block *keys)
{
    u32 n_low = n_bits / 2;
    u64 low = x & (((u64)1 << n_low) - 1), high = x >> n_low;
    u64 high_mask = ((u64)1 << (n_bits - n_low)) - 1, low_mask = ((u64)1 << n_low) - 1;
    high ^= random_mixed(low, philox_u64(keys, 0)) & high_mask;
    low ^= random_mixed(high, philox_u64(keys, 1)) & low_mask;
    return high << n_low | low;
}

/* Where the permutation takes x. An x that is not below n, or n = 0, gives some number. */
RANDOM_INLINE u64 random_permuted(u64 x, u64 seed, u64 n)
{
    x = x < n ? x : 0;
    if (n <= RANDOM_FEW) {
        for (u64 k = n; k-- > 1;) {
            u64 other = random_exchange(seed, k);
            x = x == k ? other : x == other ? k : x;
        }
        return x;
    }
    u32 n_bits = random_bits_of(n);
    do {
        for (u32 i = 0; i < RANDOM_KEY_BLOCKS; i++) {
            struct philox_block keys = random_round_keys(seed, i);
            x = random_feistel_rounds(x, n_bits, &keys);
        }
    } while (x >= n);
    return x;
}
