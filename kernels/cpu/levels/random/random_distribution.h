/* Blocks of KERNEL_GRANULE random numbers as numbers of a distribution.
 *
 * The formulas are kernels/common/random_math.h's: no operation of theirs differs between levels,
 * so all levels give the same bits. Of the normal distribution's ranges the common one is computed
 * for the whole block; a rare one, for the whole block too, only where some element is in it, and
 * each element takes the value of its own range. Included by random.c and random_draws.c.
 */
#pragma once

#include "kernels/cpu/levels/random/random.h"
#include "kernels/common/random_math.h"

#define BLOCK KERNEL_GRANULE

/* An element's operations wait for each other, all the way: in three short stretches of them the
 * processor sees more elements ahead. */
static inline void normal_block_f32(f32 *d, const u32 *bits)
{
    f32 product[BLOCK], w[BLOCK];
    u32 least = RANDOM_FAR_FOLDED;
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++) {
        u32 folded = random_folded_u32(bits[i]);
        least = folded < least ? folded : least;
        product[i] = random_normal_product_f32(bits[i]);
    }
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++)
        w[i] = random_minus_log_f32(random_split_f32(product[i]));
    if (least < RANDOM_FAR_FOLDED) {
        KERNEL_LOOP
        for (unsigned i = 0; i < BLOCK; i++) {
            f32 near = random_normal_near_f32(w[i]), far = random_normal_far_f32(w[i]);
            d[i] = random_normal_signed_f32(bits[i], w[i] < RANDOM_TAIL_F32 ? near : far);
        }
        return;
    }
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = random_normal_signed_f32(bits[i], random_normal_near_f32(w[i]));
}

static inline void normal_farthest_f64(const f64 *distance, f64 *value)
{
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 farthest = random_normal_farthest_f64(distance[i]);
        value[i] = distance[i] <= 5.0 ? value[i] : farthest;
    }
}

static inline void normal_block_f64(f64 *d, const u64 *bits)
{
    f64 distance[BLOCK], value[BLOCK];
    i64 n_farthest = 0;
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++) {
        distance[i] = random_normal_r_f64(bits[i]);
        value[i] = random_normal_far_f64(distance[i]);
        n_farthest |= !(distance[i] <= 5.0);
    }
    if (n_farthest)
        normal_farthest_f64(distance, value);
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 q = random_normal_q_f64(bits[i]), near = random_normal_near_f64(q);
        d[i] = random_normal_signed_f64(bits[i], q <= 0.425 ? near : value[i]);
    }
}
