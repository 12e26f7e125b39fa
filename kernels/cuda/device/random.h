/* Random numbers on the device: the formulas of kernels/random_*.h, which the CPU engine has too
 * and in which nothing is approximate, so that an element gets the same bits on both.
 *
 * Neighbours share a block of Philox, so all of a thread's elements are drawn in one call.
 * Functions are DEVICE_CALL, as those of math.h.
 */
#pragma once

#include "kernels/cuda/device/lane.h"
#include "kernels/common/random_poisson.h"

DEVICE u32 drawn_u32(const struct philox_block *block, u64 index)
{
    u32 low = index & 1 ? block->word[1] : block->word[0];
    u32 high = index & 1 ? block->word[3] : block->word[2];
    return index & 2 ? high : low;
}

DEVICE u64 drawn_u64(const struct philox_block *block, u64 index)
{
    return index & 1 ? philox_u64(block, 1) : philox_u64(block, 0);
}

/* Of a thread's four elements, whose numbers are x. */
#define DRAWS(R, draws_log2)                                                                       \
    DEVICE_CALL void draw_##R(struct value d, struct value x, u64 seed, u64 stream)                \
    {                                                                                              \
        u64 last = 0;                                                                              \
        struct philox_block block;                                                                 \
        ONE_BY_ONE for (u32 k = 0; k < CODE_THREAD_ELEMENTS; k++)                                  \
        {                                                                                          \
            u64 index = *(const u64 *)item_at(x, sizeof(u64), k);                                  \
            if (k == 0 || index >> draws_log2 != last)                                             \
                block = philox(seed, index >> draws_log2, (u32)stream, 0);                         \
            last = index >> draws_log2;                                                            \
            *(R *)item_at(d, sizeof(R), k) = drawn_##R(&block, index);                             \
        }                                                                                          \
    }
DRAWS(u32, 2)
DRAWS(u64, 1)
#undef DRAWS

DEVICE_CALL f32 fn_standard_uniform_u32(u32 bits)
{
    return random_uniform_f32(bits);
}

DEVICE_CALL f64 fn_standard_uniform_u64(u64 bits)
{
    return random_uniform_f64(bits);
}

DEVICE_CALL f32 fn_standard_normal_u32(u32 bits)
{
    return random_normal_f32(bits);
}

DEVICE_CALL f64 fn_standard_normal_u64(u64 bits)
{
    return random_normal_f64(bits);
}

DEVICE_CALL f32 fn_standard_exponential_u32(u32 bits)
{
    return random_exponential_f32(bits);
}

DEVICE_CALL f64 fn_standard_exponential_u64(u64 bits)
{
    return random_exponential_f64(bits);
}

DEVICE_CALL u64 fn_multiply_high_u64(u64 a, u64 b)
{
    return random_multiply_high(a, b);
}

DEVICE_CALL u64 fn_random_permuted(u64 number, u64 seed, u64 n)
{
    return random_permuted(number, seed, n);
}

DEVICE_CALL i64 fn_random_poisson(u64 number, u64 seed, f64 mean)
{
    return random_poisson(number, seed, mean);
}
