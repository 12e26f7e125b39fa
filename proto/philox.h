/* Random bits of numbered elements: the common subset of C11 and CUDA C++.
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

RANDOM_INLINE u64 random_u64(u64 index, u64 seed, u64 stream)
{
    struct philox_block block = philox(seed, index >> 1, (u32)stream, 0);
    return philox_u64(&block, (unsigned)(index & 1));
}
