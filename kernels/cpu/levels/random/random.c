/* Random bits as numbers of a distribution; the table of all that is random.
 *
 * The formulas are kernels/common/random_math.h's: no operation of theirs differs between levels,
 * so all levels give the same bits. Loops are over blocks of KERNEL_GRANULE elements, read once and
 * written once. Where the numbers of a strip's elements count up, random_draws.c does all of it.
 */
#include "kernels/cpu/levels/random/random_distribution.h"

UNARY(uniform, u32, f32, random_uniform_f32(a))
UNARY(uniform, u64, f64, random_uniform_f64(a))
UNARY(exponential, u32, f32, random_exponential_f32(a))
UNARY(exponential, u64, f64, random_exponential_f64(a))
BINARY(multiply_high, u64, u64, random_multiply_high(a, b))

static void normal_u32(KERNEL_ARGS)
{
    for (size_t i = 0; i < n; i += BLOCK)
        normal_block_f32((f32 *)dst + i, (const u32 *)pa + i);
}

static void normal_u64(KERNEL_ARGS)
{
    for (size_t i = 0; i < n; i += BLOCK)
        normal_block_f64((f64 *)dst + i, (const u64 *)pa + i);
}

/* clang-format off */
const kernel_table KERNEL_SYMBOL(random) = {
    [OP_RANDOM_U32] = {[DTYPE_UINT64] = KERNEL_SYMBOL(random_bits_u32)},
    [OP_RANDOM_U64] = {[DTYPE_UINT64] = KERNEL_SYMBOL(random_bits_u64)},
    [OP_STANDARD_UNIFORM] = {[DTYPE_UINT32] = uniform_u32, [DTYPE_UINT64] = uniform_u64},
    [OP_STANDARD_NORMAL] = {[DTYPE_UINT32] = normal_u32, [DTYPE_UINT64] = normal_u64},
    [OP_STANDARD_EXPONENTIAL] = {[DTYPE_UINT32] = exponential_u32,
                                 [DTYPE_UINT64] = exponential_u64},
    [OP_MULTIPLY_HIGH] = {[DTYPE_UINT64] = multiply_high_u64},
    [OP_RANDOM_POISSON] = {[DTYPE_FLOAT64] = KERNEL_SYMBOL(random_poisson)},
    [OP_RANDOM_PERMUTED] = {[DTYPE_UINT64] = KERNEL_SYMBOL(random_permuted)},
};
/* clang-format on */
