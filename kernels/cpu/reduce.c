/* Sums, products, counts and squared deviations of one row of elements.
 *
 * The order of every sum is fixed and the same at all levels; strips do not show in it. Floats are
 * added in double: a block of 64 elements x[0..63] becomes
 *
 *     lane[j] = (x[j] + x[16+j]) + (x[32+j] + x[48+j])           j = 0..15
 *     lane[j] = lane[j] + lane[j+w]        j < w, for w = 8, 4, 2, 1;     block = lane[0]
 *
 * and blocks are added pairwise as a binary counter counts: stack[i] holds the sum of 2^i blocks.
 * A last block that is not full is filled up with -0.0, which changes no sum. The error grows with
 * the logarithm of the number of elements, as with NumPy's pairwise sum. Products are multiplied in
 * the same order, with 1 for what is missing.
 *
 * Squared deviations are two such sums in one pass: of d * d, where d = x - shift and shift is a
 * value of the row, and of d, or of x itself where x is float32 (see reduce_state.c for why that is
 * accurate). Integer sums wrap in 64 bits. One pass over memory each; MIN and MAX of the same
 * floats may go with it.
 */
#include "kernels/cpu/template.h"

#if defined(KERNEL_IS_VECTORISED)
#include "kernels/cpu/reduce_lanes.h"
#endif

#define BLOCK KERNEL_GRANULE

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))

/* push: the sum of 2^level blocks that begin at a multiple of 2^level blocks, of which n_blocks
 * came before. The top level takes what a longer counter would carry further. */
#define BLOCKS(name, JOIN, identity)                                                               \
    static inline void name##_push(f64 *stack, u64 n_blocks, f64 value, unsigned level)            \
    {                                                                                              \
        for (u64 n = n_blocks >> level; (n & 1) && level < REDUCE_LEVELS - 1; n >>= 1)             \
            value = JOIN(stack[level++], value);                                                   \
        if (level == REDUCE_LEVELS - 1 && n_blocks >= (u64)1 << level)                             \
            value = JOIN(stack[level], value);                                                     \
        stack[level] = value;                                                                      \
    }                                                                                              \
    static inline f64 name##_fold(f64 *lane)                                                       \
    {                                                                                              \
        for (int j = 0; j < 8; j++)                                                                \
            lane[j] = JOIN(lane[j], lane[j + 8]);                                                  \
        for (int j = 0; j < 4; j++)                                                                \
            lane[j] = JOIN(lane[j], lane[j + 4]);                                                  \
        return JOIN(JOIN(lane[0], lane[2]), JOIN(lane[1], lane[3]));                               \
    }                                                                                              \
    BLOCK_OF(name, JOIN, identity, f32) BLOCK_OF(name, JOIN, identity, f64)
#define BLOCK_OF(name, JOIN, identity, T)                                                          \
    static inline f64 name##_block_##T(const T *x)                                                 \
    {                                                                                              \
        f64 lane[16];                                                                              \
        KERNEL_LOOP                                                                                \
        for (int j = 0; j < 16; j++)                                                               \
            lane[j] = JOIN(JOIN((f64)x[j], (f64)x[16 + j]), JOIN((f64)x[32 + j], (f64)x[48 + j])); \
        return name##_fold(lane);                                                                  \
    }                                                                                              \
    static void name##_last_##T(size_t n, const T *as, struct reduce_state *state)                 \
    {                                                                                              \
        T last[BLOCK];                                                                             \
        for (size_t i = 0; i < BLOCK; i++)                                                         \
            last[i] = i < n ? as[i] : (T)identity;                                                 \
        name##_push(state->stack[0], state->n_blocks++, name##_block_##T(last), 0);                \
    }
BLOCKS(sum, PLUS, -0.0)
BLOCKS(prod, TIMES, 1.0)

/* Four blocks at a time, in registers: their lanes are folded side by side. The same additions as
 * above, hence the same bits. */
#if defined(KERNEL_IS_VECTORISED)
/* Column: lanes j..j+LANES of a block's 16; eighth: of its 8; block: what is left of it in one
 * vector, 4 lanes or 2. */
#define SUM_FOUR_BLOCKS(T)                                                                         \
    static inline addends load_column_##T(const T *x, addends one)                                 \
    {                                                                                              \
        return plus(plus(load_##T(x), load_##T(x + 16), one),                                      \
                    plus(load_##T(x + 32), load_##T(x + 48), one), one);                           \
    }                                                                                              \
    static inline addends load_eighth_##T(const T *x, addends one)                                 \
    {                                                                                              \
        return plus(load_column_##T(x, one), load_column_##T(x + 8, one), one);                    \
    }                                                                                              \
    static inline addends load_block_##T(const T *x, addends one)                                  \
    {                                                                                              \
        if (LANES == 4)                                                                            \
            return plus(load_eighth_##T(x, one), load_eighth_##T(x + 4, one), one);                \
        return plus(plus(load_eighth_##T(x, one), load_eighth_##T(x + 4, one), one),               \
                    plus(load_eighth_##T(x + 2, one), load_eighth_##T(x + 6, one), one), one);     \
    }                                                                                              \
    static inline f64 sum_four_blocks_##T(const T *x)                                              \
    {                                                                                              \
        addends one = get_one();                                                                   \
        return fold_blocks(load_block_##T(x, one), load_block_##T(x + BLOCK, one),                 \
                           load_block_##T(x + 2 * BLOCK, one),                                     \
                           load_block_##T(x + 3 * BLOCK, one));                                    \
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

/* How many blocks are added to a counter at a time, as a power of two: carrying is slow, since the
 * processor cannot know how far it goes. */
static inline unsigned step_level(u64 n_blocks, size_t n)
{
    if (n_blocks % 16 == 0 && n >= 16 * BLOCK)
        return 4;
    return n_blocks % 4 == 0 && n >= 4 * BLOCK ? 2 : 0;
}

#define SUM_FLOATS(T)                                                                              \
    static inline f64 sum_blocks_##T(const T *x, unsigned level)                                   \
    {                                                                                              \
        f64 s[4];                                                                                  \
        if (level < 4)                                                                             \
            return level == 0 ? sum_block_##T(x) : sum_four_blocks_##T(x);                         \
        for (int i = 0; i < 4; i++)                                                                \
            s[i] = sum_four_blocks_##T(x + i * 4 * BLOCK);                                         \
        return (s[0] + s[1]) + (s[2] + s[3]);                                                      \
    }                                                                                              \
    static inline f64 sum_step_##T(const T *x, struct reduce_state *state, unsigned level)         \
    {                                                                                              \
        f64 s = sum_blocks_##T(x, level);                                                          \
        sum_push(state->stack[0], state->n_blocks, s, level);                                      \
        state->n_blocks += (u64)1 << level;                                                        \
        return s;                                                                                  \
    }                                                                                              \
    static void sum_##T(size_t n, const void *src, const i64 *indices, struct reduce_state *state) \
    {                                                                                              \
        const T *as = src;                                                                         \
        while (n >= BLOCK) {                                                                       \
            unsigned level = step_level(state->n_blocks, n);                                       \
            (void)sum_step_##T(as, state, level);                                                  \
            as += (size_t)BLOCK << level;                                                          \
            n -= (size_t)BLOCK << level;                                                           \
        }                                                                                          \
        if (n)                                                                                     \
            sum_last_##T(n, as, state);                                                            \
    }
SUM_FLOATS(f32)
SUM_FLOATS(f64)

#define PROD_FLOATS(T)                                                                             \
    static void prod_##T(size_t n, const void *src, const i64 *indices,                            \
                         struct reduce_state *state)                                               \
    {                                                                                              \
        const T *as = src;                                                                         \
        for (; n >= BLOCK; n -= BLOCK, as += BLOCK)                                                \
            prod_push(state->stack[0], state->n_blocks++, prod_block_##T(as), 0);                  \
        if (n)                                                                                     \
            prod_last_##T(n, as, state);                                                           \
    }
PROD_FLOATS(f32)
PROD_FLOATS(f64)

/* What is added up beside the squares of the differences d: of float32 the elements, which double
 * adds with bits to spare; of float64 the differences. */
#define ADDED_f32(x, d) (x)
#define ADDED_f64(x, d) (d)

#if defined(KERNEL_IS_VECTORISED)
/* Values that are needed late are computed here all the same, while what they are made of is in
 * registers: compilers put it off until there are too many. */
static inline void at_once(addends *s, addends *q)
{
#if defined(__SSE2__)
    __asm__("" : "+x"(*s), "+x"(*q));
#endif
}

/* Column, eighth and block as for sums; two vectors, of what is added up and of the squares. The
 * multipliers make differences, squares and sums, the adders convert and add up the squares: with
 * extrema, which are the multipliers' as well, that is what takes least. */
#define DEVIATIONS_OF_BLOCKS(T)                                                                    \
    static inline void deviations_column_##T(const T *x, addends shift, addends one, addends *s,   \
                                             addends *q)                                           \
    {                                                                                              \
        addends x0 = load_##T(x), x1 = load_##T(x + 16);                                           \
        addends d0 = plus(x0, -shift, one), d1 = plus(x1, -shift, one);                            \
        addends s0 = plus(ADDED_##T(x0, d0), ADDED_##T(x1, d1), one), q0 = d0 * d0 + d1 * d1;      \
        at_once(&s0, &q0);                                                                         \
        addends x2 = load_##T(x + 32), x3 = load_##T(x + 48);                                      \
        addends d2 = plus(x2, -shift, one), d3 = plus(x3, -shift, one);                            \
        *s = plus(s0, plus(ADDED_##T(x2, d2), ADDED_##T(x3, d3), one), one);                       \
        *q = q0 + (d2 * d2 + d3 * d3);                                                             \
        at_once(s, q);                                                                             \
    }                                                                                              \
    static inline void deviations_eighth_##T(const T *x, addends shift, addends one, addends *s,   \
                                             addends *q)                                           \
    {                                                                                              \
        addends s1, q1;                                                                            \
        deviations_column_##T(x, shift, one, s, q);                                                \
        deviations_column_##T(x + 8, shift, one, &s1, &q1);                                        \
        *s = plus(*s, s1, one);                                                                    \
        *q = *q + q1;                                                                              \
    }                                                                                              \
    static inline void deviations_quarter_##T(const T *x, addends shift, addends one, addends *s,  \
                                              addends *q)                                          \
    {                                                                                              \
        addends s1, q1;                                                                            \
        deviations_eighth_##T(x, shift, one, s, q);                                                \
        deviations_eighth_##T(x + 4, shift, one, &s1, &q1);                                        \
        *s = plus(*s, s1, one);                                                                    \
        *q = *q + q1;                                                                              \
    }                                                                                              \
    static inline void deviations_vector_##T(const T *x, addends shift, addends one, addends *s,   \
                                             addends *q)                                           \
    {                                                                                              \
        addends s1, q1;                                                                            \
        deviations_quarter_##T(x, shift, one, s, q);                                               \
        if (LANES == 4)                                                                            \
            return;                                                                                \
        deviations_quarter_##T(x + 2, shift, one, &s1, &q1);                                       \
        *s = plus(*s, s1, one);                                                                    \
        *q = *q + q1;                                                                              \
    }                                                                                              \
    static inline void deviations_of_four_##T(const T *x, f64 shift, f64 *ret_s, f64 *ret_q)       \
    {                                                                                              \
        addends shifts = {0}, one = get_one(), s[4], q[4];                                         \
        shifts = shifts + shift;                                                                   \
        for (int i = 0; i < 4; i++)                                                                \
            deviations_vector_##T(x + i * BLOCK, shifts, one, &s[i], &q[i]);                       \
        *ret_s = fold_blocks(s[0], s[1], s[2], s[3]);                                              \
        *ret_q = fold_blocks(q[0], q[1], q[2], q[3]);                                              \
    }                                                                                              \
    /* extrema: of the same elements, block by block; NULL: none. */                               \
    static ALWAYS_INLINE void deviations_of_sixteen_##T(                                           \
        const T *x, f64 shift, struct extrema_##T *extrema, f64 *ret_s, f64 *ret_q)                \
    {                                                                                              \
        addends shifts = {0}, one = get_one(), s[16], q[16];                                       \
        struct extrema_##T e;                                                                      \
        if (extrema)                                                                               \
            e = *extrema;                                                                          \
        shifts = shifts + shift;                                                                   \
        for (int i = 0; i < 16; i++) {                                                             \
            deviations_vector_##T(x + i * BLOCK, shifts, one, &s[i], &q[i]);                       \
            if (extrema)                                                                           \
                extrema_take_##T(x + i * BLOCK, BLOCK, &e);                                        \
        }                                                                                          \
        if (extrema)                                                                               \
            *extrema = e;                                                                          \
        *ret_s = fold_sixteen(s);                                                                  \
        *ret_q = fold_sixteen(q);                                                                  \
    }                                                                                              \
    static inline void deviations_of_many_##T(const T *x, f64 shift, f64 *ret_s, f64 *ret_q)       \
    {                                                                                              \
        deviations_of_sixteen_##T(x, shift, NULL, ret_s, ret_q);                                   \
    }
#else
#define DEVIATIONS_OF_BLOCKS(T)                                                                    \
    static inline void deviations_of_four_##T(const T *x, f64 shift, f64 *ret_s, f64 *ret_q)       \
    {                                                                                              \
        f64 s[4], q[4];                                                                            \
        for (int i = 0; i < 4; i++)                                                                \
            deviations_of_one_##T(x + i * BLOCK, shift, &s[i], &q[i]);                             \
        *ret_s = (s[0] + s[1]) + (s[2] + s[3]);                                                    \
        *ret_q = (q[0] + q[1]) + (q[2] + q[3]);                                                    \
    }                                                                                              \
    static inline void deviations_of_many_##T(const T *x, f64 shift, f64 *ret_s, f64 *ret_q)       \
    {                                                                                              \
        f64 s[4], q[4];                                                                            \
        for (int i = 0; i < 4; i++)                                                                \
            deviations_of_four_##T(x + i * 4 * BLOCK, shift, &s[i], &q[i]);                        \
        *ret_s = (s[0] + s[1]) + (s[2] + s[3]);                                                    \
        *ret_q = (q[0] + q[1]) + (q[2] + q[3]);                                                    \
    }
#endif

#define DEVIATIONS(T)                                                                              \
    static inline void deviations_of_one_##T(const T *x, f64 shift, f64 *ret_s, f64 *ret_q)        \
    {                                                                                              \
        f64 s[16], q[16];                                                                          \
        KERNEL_LOOP                                                                                \
        for (int j = 0; j < 16; j++) {                                                             \
            f64 x0 = (f64)x[j], x1 = (f64)x[16 + j], x2 = (f64)x[32 + j], x3 = (f64)x[48 + j];     \
            f64 d0 = x0 - shift, d1 = x1 - shift, d2 = x2 - shift, d3 = x3 - shift;                \
            s[j] =                                                                                 \
                (ADDED_##T(x0, d0) + ADDED_##T(x1, d1)) + (ADDED_##T(x2, d2) + ADDED_##T(x3, d3)); \
            q[j] = (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);                                      \
        }                                                                                          \
        *ret_s = sum_fold(s);                                                                      \
        *ret_q = sum_fold(q);                                                                      \
    }                                                                                              \
    DEVIATIONS_OF_BLOCKS(T)                                                                        \
    static inline void deviations_blocks_##T(const T *x, f64 shift, unsigned level, f64 *ret_s,    \
                                             f64 *ret_q)                                           \
    {                                                                                              \
        if (level == 4)                                                                            \
            deviations_of_many_##T(x, shift, ret_s, ret_q);                                        \
        else if (level == 2)                                                                       \
            deviations_of_four_##T(x, shift, ret_s, ret_q);                                        \
        else                                                                                       \
            deviations_of_one_##T(x, shift, ret_s, ret_q);                                         \
    }                                                                                              \
    static inline void deviations_push_##T(struct reduce_state *state, f64 s, f64 q,               \
                                           unsigned level)                                         \
    {                                                                                              \
        sum_push(state->stack[0], state->n_blocks, s, level);                                      \
        sum_push(state->stack[1], state->n_blocks, q, level);                                      \
        state->n_blocks += (u64)1 << level;                                                        \
    }                                                                                              \
    static inline f64 deviations_step_##T(const T *x, struct reduce_state *state, unsigned level)  \
    {                                                                                              \
        f64 s, q;                                                                                  \
        deviations_blocks_##T(x, state->shift, level, &s, &q);                                     \
        deviations_push_##T(state, s, q, level);                                                   \
        return s;                                                                                  \
    }                                                                                              \
    /* What is missing of a last block adds nothing to either sum. */                              \
    static void deviations_last_##T(size_t n, const T *as, struct reduce_state *state)             \
    {                                                                                              \
        f64 s[BLOCK], q[BLOCK];                                                                    \
        for (size_t i = 0; i < BLOCK; i++) {                                                       \
            f64 x = i < n ? (f64)as[i] : 0, d = x - state->shift;                                  \
            s[i] = i < n ? ADDED_##T(x, d) : -0.0;                                                 \
            q[i] = i < n ? d * d : -0.0;                                                           \
        }                                                                                          \
        deviations_push_##T(state, sum_block_f64(s), sum_block_f64(q), 0);                         \
    }                                                                                              \
    static void deviations_##T(size_t n, const void *src, const i64 *indices,                      \
                               struct reduce_state *state)                                         \
    {                                                                                              \
        const T *as = src;                                                                         \
        while (n >= BLOCK) {                                                                       \
            unsigned level = step_level(state->n_blocks, n);                                       \
            (void)deviations_step_##T(as, state, level);                                           \
            as += (size_t)BLOCK << level;                                                          \
            n -= (size_t)BLOCK << level;                                                           \
        }                                                                                          \
        if (n)                                                                                     \
            deviations_last_##T(n, as, state);                                                     \
    }
DEVIATIONS(f32)
DEVIATIONS(f64)

#define INTEGERS(name, T, W, JOIN)                                                                 \
    static void name##_##T(size_t n, const void *src, const i64 *indices,                          \
                           struct reduce_state *state)                                             \
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

#define COUNT(T)                                                                                   \
    static void count_##T(size_t n, const void *src, const i64 *indices,                           \
                          struct reduce_state *state)                                              \
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

/* Sums or squared deviations with the extrema of the same elements: four blocks at a time, which
 * take little longer for it. An element that is not finite shows in a block's sum: then the extrema
 * are found by themselves. */
#if defined(KERNEL_IS_VECTORISED)
#define FUSED_EXTREMUM(name, T, NAME, DTYPE, is_better)                                            \
    static void name##_found_##T(size_t n, const T *as, const T *lanes, bool is_finite,            \
                                 struct reduce_state *state)                                       \
    {                                                                                              \
        T best = lanes[0];                                                                         \
        if (!is_finite)                                                                            \
            KERNEL_SYMBOL(extrema)[NAME][DTYPE](n, as, NULL, state);                               \
        for (size_t j = 1; j < FUSED_LANES(T); j++)                                                \
            best = lanes[j] is_better best ? lanes[j] : best;                                      \
        if (!is_finite || (state->has_value && !(best is_better state->T)))                        \
            return;                                                                                \
        /* Of zeros the first one, whatever its sign. */                                           \
        for (size_t i = 0; best == 0 && i < n; i++)                                                \
            if (as[i] == 0) {                                                                      \
                best = as[i];                                                                      \
                break;                                                                             \
            }                                                                                      \
        state->T = best;                                                                           \
        state->has_value = true;                                                                   \
    }
FUSED_EXTREMUM(min, f32, OP_MIN, DTYPE_FLOAT32, <)
FUSED_EXTREMUM(max, f32, OP_MAX, DTYPE_FLOAT32, >)
FUSED_EXTREMUM(min, f64, OP_MIN, DTYPE_FLOAT64, <)
FUSED_EXTREMUM(max, f64, OP_MAX, DTYPE_FLOAT64, >)

#define WITH_EXTREMA(T)                                                                            \
    static inline f64 sum_with_extrema_##T(const T *x, struct reduce_state *state, unsigned level, \
                                           struct extrema_##T *e)                                  \
    {                                                                                              \
        f64 s = sum_step_##T(x, state, level);                                                     \
        extrema_take_##T(x, (size_t)BLOCK << level, e);                                            \
        return s;                                                                                  \
    }                                                                                              \
    static inline f64 deviations_with_extrema_##T(const T *x, struct reduce_state *state,          \
                                                  unsigned level, struct extrema_##T *e)           \
    {                                                                                              \
        f64 s, q;                                                                                  \
        if (level == 4) {                                                                          \
            deviations_of_sixteen_##T(x, state->shift, e, &s, &q);                                 \
            deviations_push_##T(state, s, q, level);                                               \
            return s;                                                                              \
        }                                                                                          \
        extrema_take_##T(x, (size_t)BLOCK << level, e);                                            \
        return deviations_step_##T(x, state, level);                                               \
    }
WITH_EXTREMA(f32)
WITH_EXTREMA(f64)

/* odd: 0 as long as all sums are finite, then NaN. */
#define FUSED(name, T)                                                                             \
    static void name##_fused_##T(size_t n, const void *src, struct reduce_state *added,            \
                                 struct reduce_state *min, struct reduce_state *max)               \
    {                                                                                              \
        const T *as = src;                                                                         \
        struct extrema_##T extrema = extrema_none_##T();                                           \
        f64 odd = 0;                                                                               \
        size_t i = 0;                                                                              \
        while (n - i >= BLOCK) {                                                                   \
            unsigned level = step_level(added->n_blocks, n - i);                                   \
            f64 s = name##_with_extrema_##T(as + i, added, level, &extrema);                       \
            odd += s - s;                                                                          \
            i += (size_t)BLOCK << level;                                                           \
        }                                                                                          \
        if (i < n)                                                                                 \
            name##_last_##T(n - i, as + i, added);                                                 \
        extrema_last_##T(as + i, n - i, &extrema, &odd);                                           \
        if (min)                                                                                   \
            min_found_##T(n, as, (const T *)extrema.least, odd == 0, min);                         \
        if (max)                                                                                   \
            max_found_##T(n, as, (const T *)extrema.most, odd == 0, max);                          \
    }
FUSED(sum, f32)
FUSED(sum, f64)
FUSED(deviations, f32)
FUSED(deviations, f64)

/* clang-format off */
const reduce_fused_table KERNEL_SYMBOL(fused) = {
    [OP_SUM] = {[DTYPE_FLOAT32] = sum_fused_f32, [DTYPE_FLOAT64] = sum_fused_f64},
    [OP_SQUARED_DEVIATIONS] = {[DTYPE_FLOAT32] = deviations_fused_f32,
                               [DTYPE_FLOAT64] = deviations_fused_f64},
};
/* clang-format on */
#else
const reduce_fused_table KERNEL_SYMBOL(fused) = {{NULL}};
#endif

/* clang-format off */
const reduce_table KERNEL_SYMBOL(reduce) = {
    [OP_SUM] = {[DTYPE_BOOL] = sum_u8, [DTYPE_INT8] = sum_i8, [DTYPE_INT16] = sum_i16,
                [DTYPE_INT32] = sum_i32, [DTYPE_INT64] = sum_u64, ROW_UNSIGNED(sum),
                ROW_FLOATS(sum)},
    [OP_PROD] = {[DTYPE_BOOL] = prod_u8, [DTYPE_INT8] = prod_i8, [DTYPE_INT16] = prod_i16,
                 [DTYPE_INT32] = prod_i32, [DTYPE_INT64] = prod_u64, ROW_UNSIGNED(prod),
                 ROW_FLOATS(prod)},
    [OP_COUNT_NONZERO] = {[DTYPE_BOOL] = count_u8, ROW_WIDTHS(count), ROW_FLOATS(count)},
    [OP_SQUARED_DEVIATIONS] = {ROW_FLOATS(deviations)},
};
/* clang-format on */
