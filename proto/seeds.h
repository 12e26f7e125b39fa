/* Seeds of their own for many draws that are made with one seed. */
#pragma once

#include <stdint.h>

/* The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators; 2014): 64 bits to 64 bits, one to one. */
static inline uint64_t seed_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The seed of draw k: different for each k. It is call_seed() of Python's random numbers. */
static inline uint64_t seed_of_draw(uint64_t seed, uint64_t k)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    return seed_mix(seed_mix(seed + step) + (k + 1) * step);
}
