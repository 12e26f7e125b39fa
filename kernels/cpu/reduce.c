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
#if defined(__AVX__)
#include <immintrin.h>
#endif

#define BLOCK KERNEL_GRANULE

/* The sum of 2^level blocks that begin at a multiple of 2^level blocks. */
static inline void push_blocks(struct reduce_state *state, f64 sum, unsigned level)
{
    u64 n = state->n_blocks >> level;
    state->n_blocks += (u64)1 << level;
    for (; (n & 1) && level < REDUCE_LEVELS - 1; n >>= 1)
        sum = state->stack[level++] + sum;
    /* The top level takes what a longer counter would carry further. */
    if (level == REDUCE_LEVELS - 1 && state->n_blocks > (u64)1 << level)
        sum = state->stack[level] + sum;
    state->stack[level] = sum;
}

#define SUM_BLOCK(T)                                                                               \
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
    }
SUM_BLOCK(f32)
SUM_BLOCK(f64)

/* Four blocks at a time, in registers: their lanes are folded side by side, so that no step but the
 * last works on single numbers. The same additions as above, hence the same bits. Vectors of 4
 * doubles also at AVX-512: conversions to wider ones cost twice as much for each element. */
#if defined(KERNEL_IS_VECTORISED)
#if defined(__AVX__)
typedef f64 addends __attribute__((vector_size(32)));
#define LANES 4

static inline addends load_f32(const f32 *x)
{
    return (addends)_mm256_cvtps_pd(_mm_loadu_ps(x));
}

static inline addends load_f64(const f64 *x)
{
    return (addends)_mm256_loadu_pd(x);
}

static inline addends fold_to_2(addends a, addends b)
{
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

static inline f64 fold_blocks(addends a, addends b, addends c, addends d)
{
    addends ab = fold_to_2(a, b), cd = fold_to_2(c, d);
    addends sums =
        __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
#else
typedef f64 addends __attribute__((vector_size(16)));
#define LANES 2

static inline addends load_f32(const f32 *x)
{
    return (addends){x[0], x[1]};
}

static inline addends load_f64(const f64 *x)
{
    return (addends){x[0], x[1]};
}

static inline addends fold_to_1(addends a, addends b)
{
    return __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
}

static inline f64 fold_blocks(addends a, addends b, addends c, addends d)
{
    addends ab = fold_to_1(a, b), cd = fold_to_1(c, d);
    return (ab[0] + ab[1]) + (cd[0] + cd[1]);
}
#endif

/* Column: lanes j..j+LANES of a block's 16; eighth: of its 8; block: what is left of it in one
 * vector, 4 lanes or 2. */
#define SUM_FOUR_BLOCKS(T)                                                                         \
    static inline addends load_column_##T(const T *x)                                              \
    {                                                                                              \
        return (load_##T(x) + load_##T(x + 16)) + (load_##T(x + 32) + load_##T(x + 48));           \
    }                                                                                              \
    static inline addends load_eighth_##T(const T *x)                                              \
    {                                                                                              \
        return load_column_##T(x) + load_column_##T(x + 8);                                        \
    }                                                                                              \
    static inline addends load_block_##T(const T *x)                                               \
    {                                                                                              \
        if (LANES == 4)                                                                            \
            return load_eighth_##T(x) + load_eighth_##T(x + 4);                                    \
        return (load_eighth_##T(x) + load_eighth_##T(x + 4)) +                                     \
               (load_eighth_##T(x + 2) + load_eighth_##T(x + 6));                                  \
    }                                                                                              \
    static inline f64 sum_four_blocks_##T(const T *x)                                              \
    {                                                                                              \
        return fold_blocks(load_block_##T(x), load_block_##T(x + BLOCK),                           \
                           load_block_##T(x + 2 * BLOCK), load_block_##T(x + 3 * BLOCK));          \
    }
#else
#define SUM_FOUR_BLOCKS(T)                                                                         \
    static inline f64 sum_four_blocks_##T(const T *x)                                              \
    {                                                                                              \
        return (sum_block_##T(x) + sum_block_##T(x + BLOCK)) +                                     \
               (sum_block_##T(x + 2 * BLOCK) + sum_block_##T(x + 3 * BLOCK));                      \
    }
#endif
SUM_FOUR_BLOCKS(f32)
SUM_FOUR_BLOCKS(f64)

#define SUM_FLOATS(T)                                                                              \
    static void sum_##T(size_t n, const void *src, struct reduce_state *state)                     \
    {                                                                                              \
        const T *as = src;                                                                         \
        for (; n >= BLOCK && state->n_blocks % 4; n -= BLOCK, as += BLOCK)                         \
            push_blocks(state, sum_block_##T(as), 0);                                              \
        for (; n >= 4 * BLOCK; n -= 4 * BLOCK, as += 4 * BLOCK)                                    \
            push_blocks(state, sum_four_blocks_##T(as), 2);                                        \
        for (; n >= BLOCK; n -= BLOCK, as += BLOCK)                                                \
            push_blocks(state, sum_block_##T(as), 0);                                              \
        if (n) {                                                                                   \
            T last[BLOCK];                                                                         \
            for (size_t i = 0; i < BLOCK; i++)                                                     \
                last[i] = i < n ? as[i] : (T)-0.0;                                                 \
            push_blocks(state, sum_block_##T(last), 0);                                            \
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
