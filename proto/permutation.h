/* A permutation of 0 to n - 1, keyed by the seed, and its inverse. Common subset of C11 and CUDA
 * C++.
 *
 * Up to RANDOM_FEW it is Fisher and Yates' shuffle
 * with 64-bit draws, of which only the way of the one element is followed: all n! permutations are
 * equally likely but for 2^-58. Beyond that it is a Feistel network (Luby, Rackoff: How to
 * construct pseudorandom permutations, 1988) on the fewest bits that hold n - 1, repeated until the
 * result is below n (cycle walking; Black, Rogaway: Ciphers with arbitrary finite domains, CT-RSA
 * 2002), less than twice on average; with 24 rounds, as Mitchell, Stokes, Frank, Holmes:
 * Bandwidth-optimal random shuffling for GPUs, 2021.
 */
#pragma once

#include "proto/philox.h"

#define RANDOM_FEW         64u
#define RANDOM_PERMUTATION 7u /* RANDOM_STREAM_PERMUTATION: what follows also runs on devices */
#define RANDOM_ROUNDS      24u
#define RANDOM_KEY_BLOCKS  12u /* two rounds' keys in each */

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

/* What random_feistel_rounds() took there. */
RANDOM_INLINE u64 random_feistel_back(u64 x, u32 n_bits, const struct philox_block *keys)
{
    u32 n_low = n_bits / 2;
    u64 low = x & (((u64)1 << n_low) - 1), high = x >> n_low;
    u64 high_mask = ((u64)1 << (n_bits - n_low)) - 1, low_mask = ((u64)1 << n_low) - 1;
    low ^= random_mixed(high, philox_u64(keys, 1)) & low_mask;
    high ^= random_mixed(low, philox_u64(keys, 0)) & high_mask;
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

/* What random_permuted() takes to x: the inverse. The walk's last step below n is undone by walking
 * back to the first number below n. */
RANDOM_INLINE u64 random_unpermuted(u64 x, u64 seed, u64 n)
{
    x = x < n ? x : 0;
    if (n <= RANDOM_FEW) {
        for (u64 k = 1; k < n; k++) {
            u64 other = random_exchange(seed, k);
            x = x == k ? other : x == other ? k : x;
        }
        return x;
    }
    u32 n_bits = random_bits_of(n);
    do {
        for (u32 i = RANDOM_KEY_BLOCKS; i-- > 0;) {
            struct philox_block keys = random_round_keys(seed, i);
            x = random_feistel_back(x, n_bits, &keys);
        }
    } while (x >= n);
    return x;
}
