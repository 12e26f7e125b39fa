/* Sums of integers, products and counts of one row of elements.
 *
 * Integers wrap in 64 bits. The order of a product of floats is fixed and the same at all levels;
 * pieces of a row do not show in it. Floats are multiplied in double: a block of 64 elements
 * x[0..63] becomes
 *
 *     lane[j] = (x[j] * x[16+j]) * (x[32+j] * x[48+j])           j = 0..15
 *     lane[j] = lane[j] * lane[j+w]        j < w, for w = 8, 4, 2, 1;     block = lane[0]
 *
 * and blocks are multiplied pairwise as a binary counter counts: stack[i] holds the product of 2^i
 * blocks. One pass over memory each. Sums of floats are reduce_sums.c's.
 */
#include "kernels/cpu/levels/template.h"

#define BLOCK KERNEL_GRANULE

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))

static inline void push(f64 *stack, u64 n_blocks, f64 value)
{
    unsigned level = 0;
    for (u64 n = n_blocks; (n & 1) && level < REDUCE_LEVELS - 1; n >>= 1)
        value = stack[level++] * value;
    if (level == REDUCE_LEVELS - 1 && n_blocks >= (u64)1 << level)
        value = stack[level] * value;
    stack[level] = value;
}

#define BLOCK_OF(T)                                                                                \
    static inline f64 prod_block_##T(const T *x)                                                   \
    {                                                                                              \
        f64 lane[16];                                                                              \
        KERNEL_LOOP                                                                                \
        for (int j = 0; j < 16; j++)                                                               \
            lane[j] = ((f64)x[j] * (f64)x[16 + j]) * ((f64)x[32 + j] * (f64)x[48 + j]);            \
        for (int w = 8; w > 0; w /= 2)                                                             \
            for (int j = 0; j < w; j++)                                                            \
                lane[j] = lane[j] * lane[j + w];                                                   \
        return lane[0];                                                                            \
    }
BLOCK_OF(f32)
BLOCK_OF(f64)

/* What is missing of a last block is 1. */
#define PROD_FLOATS(T)                                                                             \
    static void prod_##T(size_t n, const void *src, struct reduce_state *state)                    \
    {                                                                                              \
        const T *as = src;                                                                         \
        for (; n >= BLOCK; n -= BLOCK, as += BLOCK)                                                \
            push(state->stack[0], state->n_blocks++, prod_block_##T(as));                          \
        if (n == 0)                                                                                \
            return;                                                                                \
        T last[BLOCK];                                                                             \
        for (size_t i = 0; i < BLOCK; i++)                                                         \
            last[i] = i < n ? as[i] : (T)1;                                                        \
        push(state->stack[0], state->n_blocks++, prod_block_##T(last));                            \
    }
PROD_FLOATS(f32)
PROD_FLOATS(f64)

#define INTEGERS(name, T, W, JOIN)                                                                 \
    static void name##_##T(size_t n, const void *src, struct reduce_state *state)                  \
    {                                                                                              \
        const T *as = src;                                                                         \
        u64 value = state->u64;                                                                    \
        for (size_t i = 0; i < n; i++)                                                             \
            value = JOIN(value, (u64)(W)as[i]);                                                    \
        state->u64 = value;                                                                        \
    }
#define INTEGERS_OF(name, JOIN)                                                                    \
    INTEGERS(name, i8, i64, JOIN)                                                                  \
    INTEGERS(name, i16, i64, JOIN)                                                                 \
    INTEGERS(name, i32, i64, JOIN)                                                                 \
    INTEGERS(name, u8, u64, JOIN)                                                                  \
    INTEGERS(name, u16, u64, JOIN) INTEGERS(name, u32, u64, JOIN) INTEGERS(name, u64, u64, JOIN)
INTEGERS_OF(sum, PLUS)
INTEGERS_OF(prod, TIMES)

/* In counters as wide as the elements, so often that none is full. */
#define COUNTERS 64
#define COUNT(T, U)                                                                                \
    static void count_##T(size_t n, const void *src, struct reduce_state *state)                   \
    {                                                                                              \
        const T *as = src;                                                                         \
        u64 n_nonzero = 0;                                                                         \
        for (size_t n_steps; n >= COUNTERS; n -= n_steps * COUNTERS) {                             \
            U counters[COUNTERS] = {0};                                                            \
            n_steps = n / COUNTERS < UINT8_MAX ? n / COUNTERS : UINT8_MAX;                         \
            for (size_t i = 0; i < n_steps; i++, as += COUNTERS) {                                 \
                KERNEL_LOOP                                                                        \
                for (size_t j = 0; j < COUNTERS; j++)                                              \
                    counters[j] += (U)(as[j] != 0);                                                \
            }                                                                                      \
            for (size_t j = 0; j < COUNTERS; j++)                                                  \
                n_nonzero += counters[j];                                                          \
        }                                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            n_nonzero += as[i] != 0;                                                               \
        state->u64 += n_nonzero;                                                                   \
    }
COUNT(u8, u8)
COUNT(u16, u16)
COUNT(u32, u32)
COUNT(u64, u64)
COUNT(f32, u32)
COUNT(f64, u64)

/* clang-format off */
const reduce_table KERNEL_SYMBOL(reduce) = {
    [OP_SUM] = {[DTYPE_BOOL] = sum_u8, [DTYPE_INT8] = sum_i8, [DTYPE_INT16] = sum_i16,
                [DTYPE_INT32] = sum_i32, [DTYPE_INT64] = sum_u64, ROW_UNSIGNED(sum)},
    [OP_PROD] = {[DTYPE_BOOL] = prod_u8, [DTYPE_INT8] = prod_i8, [DTYPE_INT16] = prod_i16,
                 [DTYPE_INT32] = prod_i32, [DTYPE_INT64] = prod_u64, ROW_UNSIGNED(prod),
                 ROW_FLOATS(prod)},
    [OP_COUNT_NONZERO] = {[DTYPE_BOOL] = count_u8, ROW_WIDTHS(count), ROW_FLOATS(count)},
};
/* clang-format on */
