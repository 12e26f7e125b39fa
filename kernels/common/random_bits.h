/* Random bits of numbered elements, for both engines: draws of 32 bits (of 64: proto/philox.h), and
 * permutations (proto/permutation.h). The common subset of C11 and CUDA C++.
 */
#pragma once

#include "proto/permutation.h"

RANDOM_INLINE u32 random_u32(u64 index, u64 seed, u64 stream)
{
    struct philox_block block = philox(seed, index >> 2, (u32)stream, 0);
    return block.word[index & 3];
}
