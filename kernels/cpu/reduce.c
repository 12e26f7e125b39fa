/* Reductions of strips: sum, least, greatest, number of elements that are not zero.
 *
 * The order of every sum is fixed and the same at all levels; strips do not show in it. Floats are
 * added in double: a block of 64 elements x[0..63] becomes
 *
 *     lane[j] = (x[j] + x[16+j]) + (x[32+j] + x[48+j])           j = 0..15
 *     lane[j] = lane[j] + lane[j+w]        j < w, for w = 8, 4, 2, 1;     block = lane[0]
 *
 * and blocks are added pairwise as a binary counter counts: stack[i] holds the sum of 2^i blocks.
 * A last block that is not full is filled up with -0.0, which changes no sum. The error grows with
 * the logarithm of the number of elements, as with NumPy's pairwise sum.
 *
 * MIN and MAX of floats keep 16 lanes, element i in lane i % 16, and fold them in the same way at
 * the end; NaN propagates. Integer sums wrap in 64 bits. One pass over memory each.
 */
#include "kernels/cpu/template.h"

#include <string.h>

#define BLOCK KERNEL_GRANULE

static inline void push_block(struct reduce_state *state, f64 sum)
{
    unsigned level = 0;
    u64 n = state->n_blocks++;
    for (; (n & 1) && level < REDUCE_LEVELS - 1; n >>= 1)
        sum = state->stack[level++] + sum;
    /* The top level takes what a longer counter would carry further. */
    if (level == REDUCE_LEVELS - 1 && state->n_blocks > (u64)1 << level)
        sum = state->stack[level] + sum;
    state->stack[level] = sum;
}

#define SUM_FLOATS(T)                                                                              \
    static inline f64 sum_block_##T(const T *x)                                                    \
    {                                                                                              \
        f64 lane[16];                                                                              \
        KERNEL_LOOP                                                                                \
        for (int j = 0; j < 16; j++)                                                               \
            lane[j] = ((f64)x[j] + (f64)x[16 + j]) + ((f64)x[32 + j] + (f64)x[48 + j]);            \
        for (int j = 0; j < 8; j++)                                                                \
            lane[j] += lane[j + 8];                                                                \
        for (int j = 0; j < 4; j++)                                                                \
            lane[j] += lane[j + 4];                                                                \
        return (lane[0] + lane[2]) + (lane[1] + lane[3]);                                          \
    }                                                                                              \
    static void sum_##T(size_t n, const void *src, struct reduce_state *state)                     \
    {                                                                                              \
        const T *as = src;                                                                         \
        for (; n >= BLOCK; n -= BLOCK, as += BLOCK)                                                \
            push_block(state, sum_block_##T(as));                                                  \
        if (n) {                                                                                   \
            T last[BLOCK];                                                                         \
            for (size_t i = 0; i < BLOCK; i++)                                                     \
                last[i] = i < n ? as[i] : (T)-0.0;                                                 \
            push_block(state, sum_block_##T(last));                                                \
        }                                                                                          \
    }
SUM_FLOATS(f32)
SUM_FLOATS(f64)

#define SUM_INTEGERS(T, W)                                                                         \
    static void sum_##T(size_t n, const void *src, struct reduce_state *state)                     \
    {                                                                                              \
        const T *as = src;                                                                         \
        u64 sum = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            sum += (u64)(W)as[i];                                                                  \
        state->u64 += sum;                                                                         \
    }
SUM_INTEGERS(i8, i64)
SUM_INTEGERS(i16, i64)
SUM_INTEGERS(i32, i64)
SUM_INTEGERS(u8, u64)
SUM_INTEGERS(u16, u64)
SUM_INTEGERS(u32, u64)
SUM_INTEGERS(u64, u64)

#define COUNT(T)                                                                                   \
    static void count_##T(size_t n, const void *src, struct reduce_state *state)                   \
    {                                                                                              \
        const T *as = src;                                                                         \
        u64 n_nonzero = 0;                                                                         \
        for (size_t i = 0; i < n; i++)                                                             \
            n_nonzero += as[i] != 0;                                                               \
        state->u64 += n_nonzero;                                                                   \
    }
COUNT(u8)
COUNT(u16)
COUNT(u32)
COUNT(u64)
COUNT(f32)
COUNT(f64)

#define EXTREMUM_INTEGERS(name, T, member, is_better)                                              \
    static void name##_##T(size_t n, const void *src, struct reduce_state *state)                  \
    {                                                                                              \
        const T *as = src;                                                                         \
        T best = (T)state->member;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = as[i];                                                                           \
            best = a is_better best ? a : best;                                                    \
        }                                                                                          \
        state->member = best;                                                                      \
    }
#define EXTREMA_INTEGERS(T, member)                                                                \
    EXTREMUM_INTEGERS(min, T, member, <) EXTREMUM_INTEGERS(max, T, member, >)
EXTREMA_INTEGERS(i8, i64)
EXTREMA_INTEGERS(i16, i64)
EXTREMA_INTEGERS(i32, i64)
EXTREMA_INTEGERS(i64, i64)
EXTREMA_INTEGERS(u8, u64)
EXTREMA_INTEGERS(u16, u64)
EXTREMA_INTEGERS(u32, u64)
EXTREMA_INTEGERS(u64, u64)

/* The lanes begin as the identity (an infinity), which also fills a last block that is not full. */
#define EXTREMUM_FLOATS(name, T, is_better, identity)                                              \
    static inline void name##_block_##T(T *lanes, const T *x)                                      \
    {                                                                                              \
        for (int k = 0; k < BLOCK; k += REDUCE_LANES) {                                            \
            KERNEL_LOOP                                                                            \
            for (int j = 0; j < REDUCE_LANES; j++) {                                               \
                T best = lanes[j], a = x[k + j];                                                   \
                lanes[j] = ((best is_better a) | (best != best)) ? best : a;                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_##T(size_t n, const void *src, struct reduce_state *state)                  \
    {                                                                                              \
        const T *as = src;                                                                         \
        T lanes[REDUCE_LANES];                                                                     \
        memcpy(lanes, state->lanes_##T, sizeof(lanes));                                            \
        for (; n >= BLOCK; n -= BLOCK, as += BLOCK)                                                \
            name##_block_##T(lanes, as);                                                           \
        if (n) {                                                                                   \
            T last[BLOCK];                                                                         \
            for (size_t i = 0; i < BLOCK; i++)                                                     \
                last[i] = i < n ? as[i] : (T)identity;                                             \
            name##_block_##T(lanes, last);                                                         \
        }                                                                                          \
        memcpy(state->lanes_##T, lanes, sizeof(lanes));                                            \
    }
#define EXTREMA_FLOATS(T)                                                                          \
    EXTREMUM_FLOATS(min, T, <, __builtin_inf()) EXTREMUM_FLOATS(max, T, >, -__builtin_inf())
EXTREMA_FLOATS(f32)
EXTREMA_FLOATS(f64)

/* clang-format off */
const reduce_table KERNEL_SYMBOL(reduce) = {
    [OP_SUM] = {[DTYPE_BOOL] = sum_u8, [DTYPE_INT8] = sum_i8, [DTYPE_INT16] = sum_i16,
                [DTYPE_INT32] = sum_i32, [DTYPE_INT64] = sum_u64, ROW_UNSIGNED(sum),
                ROW_FLOATS(sum)},
    [OP_MIN] = {[DTYPE_BOOL] = min_u8, ROW_SIGNED(min), ROW_UNSIGNED(min), ROW_FLOATS(min)},
    [OP_MAX] = {[DTYPE_BOOL] = max_u8, ROW_SIGNED(max), ROW_UNSIGNED(max), ROW_FLOATS(max)},
    [OP_COUNT_NONZERO] = {[DTYPE_BOOL] = count_u8, ROW_WIDTHS(count), ROW_FLOATS(count)},
};
/* clang-format on */
