/* What the sources of random numbers share: kernels by name, blocks of random bits. */
#pragma once

#include "kernels/cpu/levels/template.h"
#include "kernels/common/random_bits.h"

/* For random.c's table. */
kernel_fn KERNEL_SYMBOL(random_bits_u32), KERNEL_SYMBOL(random_bits_u64),
    KERNEL_SYMBOL(random_poisson), KERNEL_SYMBOL(random_permuted);

/* KERNEL_GRANULE blocks of Philox as their lower and upper halves. */
void KERNEL_SYMBOL(random_blocks)(const u64 *numbers, u64 seed, u32 stream, u64 *ret_low,
                                  u64 *ret_high);
