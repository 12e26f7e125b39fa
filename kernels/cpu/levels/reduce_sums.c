/* Sums and squared deviations of one row of floats.
 *
 * The order of every sum is fixed and the same at all levels; pieces of a row do not show in it.
 * Floats are added in double. A block of 256 elements has 16 lanes, which begin with -0.0, since
 * that changes no sum:
 *
 *     lane[j] = lane[j] + x[16 i + j]            i = 0..15, one after the other; j = 0..15
 *     lane[j] = lane[j] + lane[j + w]            j < w, for w = 8, 4, 2, 1;     block = lane[0]
 *
 * and blocks are added pairwise as a binary counter counts: stack[i] holds the sum of 2^i blocks.
 * What a row has beyond its last whole block stays in the lanes for the next piece, and is folded
 * at the row's end (reduce_state.c). The error grows with the logarithm of the number of elements
 * and has the bound of NumPy's pairwise sum, which adds 16 elements one after the other to each of
 * its 8 lanes.
 *
 * Squared deviations are two such sums in one pass: of d * d, where d = x - shift, and of d, or of
 * x itself where x is float32 (see reduce_state.c for the shift and why that is accurate). MIN and
 * MAX of the same elements may go with either.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/template.h"

#include <string.h>

#define BLOCK ((size_t)REDUCE_SUM_BLOCK)
#define STEP  ((size_t)REDUCE_SUM_LANES)

/* What is added up beside the squares of the differences d: of float32 the elements, which double
 * adds with bits to spare; of float64 the differences. */
#define ADDED_f32(x, d) (x)
#define ADDED_f64(x, d) (d)

/* Steps: n_steps * STEP elements into the lanes of a block. is_begun: these hold sums already.
 * is_square, of float32 with shift 0: the squares are exact. extrema: of the same elements; NULL:
 * none. */
#if defined(KERNEL_IS_VECTORISED)
#include "kernels/cpu/levels/reduce_lanes.h"

#define VECTORS (STEP / LANES)
/* Whole blocks that are added up side by side: an addition waits for the last of its lane. */
#define BESIDE (LANES == 4 ? 2 : 1)

static ALWAYS_INLINE void begin_lanes(addends *s, size_t n, const f64 *lanes, bool is_begun)
{
    for (size_t k = 0; k < n; k++)
        s[k] = is_begun ? load_f64(lanes + k * LANES) : -(addends){0};
}

#define STEPS(T)                                                                                   \
    static ALWAYS_INLINE void sum_steps_##T(const T *x, size_t n_blocks, size_t n_steps,           \
                                            f64 *lanes, bool is_begun,                             \
                                            struct extrema_##T *extrema)                           \
    {                                                                                              \
        addends one = get_one(), s[BESIDE * VECTORS];                                              \
        struct extrema_##T e;                                                                      \
        if (extrema)                                                                               \
            e = *extrema;                                                                          \
        begin_lanes(s, n_blocks *VECTORS, lanes, is_begun);                                        \
        for (size_t i = 0; i < n_steps; i++) {                                                     \
            for (size_t b = 0; b < n_blocks; b++) {                                                \
                const T *at = x + b * BLOCK + i * STEP;                                            \
                lines_fetch_ahead(at, STEP * sizeof(T));                                           \
                for (size_t k = 0; k < VECTORS; k++)                                               \
                    s[b * VECTORS + k] = plus(load_##T(at + k * LANES), s[b * VECTORS + k], one);  \
                if (extrema)                                                                       \
                    extrema_take_##T(at, STEP, &e);                                                \
            }                                                                                      \
        }                                                                                          \
        store_vectors(lanes, s, n_blocks *VECTORS);                                                \
        if (extrema)                                                                               \
            *extrema = e;                                                                          \
    }                                                                                              \
    static ALWAYS_INLINE void deviations_steps_##T(                                                \
        const T *x, size_t n_steps, f64 lanes[2][REDUCE_SUM_LANES], bool is_begun, f64 shift,      \
        bool is_square, struct extrema_##T *extrema)                                               \
    {                                                                                              \
        addends one = get_one(), s[VECTORS], q[VECTORS], minus = (addends){0} - shift;             \
        struct extrema_##T e;                                                                      \
        if (extrema)                                                                               \
            e = *extrema;                                                                          \
        begin_lanes(s, VECTORS, lanes[0], is_begun);                                               \
        begin_lanes(q, VECTORS, lanes[1], is_begun);                                               \
        for (size_t i = 0; i < n_steps; i++) {                                                     \
            const T *at = x + i * STEP;                                                            \
            lines_fetch_ahead(at, STEP * sizeof(T));                                               \
            for (size_t k = 0; k < VECTORS; k++) {                                                 \
                addends a = load_##T(at + k * LANES), d = is_square ? a : plus(a, minus, one);     \
                s[k] = plus(ADDED_##T(a, d), s[k], one);                                           \
                q[k] = is_square ? plus_square(a, q[k]) : q[k] + d * d;                            \
            }                                                                                      \
            if (extrema)                                                                           \
                extrema_take_##T(at, STEP, &e);                                                    \
        }                                                                                          \
        store_vectors(lanes[0], s, VECTORS);                                                       \
        store_vectors(lanes[1], q, VECTORS);                                                       \
        if (extrema)                                                                               \
            *extrema = e;                                                                          \
    }
#else
#define ALWAYS_INLINE inline
#define BESIDE        1
typedef f64 addends;

#define STEPS(T)                                                                                   \
    struct extrema_##T;                                                                            \
    static void sum_steps_##T(const T *x, size_t n_blocks, size_t n_steps, f64 *lanes,             \
                              bool is_begun, struct extrema_##T *extrema)                          \
    {                                                                                              \
        for (size_t j = 0; j < STEP; j++) {                                                        \
            f64 s = is_begun ? lanes[j] : -0.0;                                                    \
            for (size_t i = 0; i < n_steps; i++)                                                   \
                s += (f64)x[i * STEP + j];                                                         \
            lanes[j] = s;                                                                          \
        }                                                                                          \
        (void)n_blocks, (void)extrema;                                                             \
    }                                                                                              \
    static void deviations_steps_##T(const T *x, size_t n_steps, f64 lanes[2][REDUCE_SUM_LANES],   \
                                     bool is_begun, f64 shift, bool is_square,                     \
                                     struct extrema_##T *extrema)                                  \
    {                                                                                              \
        for (size_t j = 0; j < STEP; j++) {                                                        \
            f64 s = is_begun ? lanes[0][j] : -0.0, q = is_begun ? lanes[1][j] : -0.0;              \
            for (size_t i = 0; i < n_steps; i++) {                                                 \
                f64 a = (f64)x[i * STEP + j], d = a - shift;                                       \
                s += ADDED_##T(a, d);                                                              \
                q += d * d;                                                                        \
            }                                                                                      \
            lanes[0][j] = s;                                                                       \
            lanes[1][j] = q;                                                                       \
        }                                                                                          \
        (void)is_square, (void)extrema;                                                            \
    }

static f64 fold_to_vector(const f64 *lanes)
{
    f64 s[STEP];
    memcpy(s, lanes, sizeof(s));
    for (size_t w = STEP / 2; w > 0; w /= 2)
        for (size_t j = 0; j < w; j++)
            s[j] += s[j + w];
    return s[0];
}

static f64 fold_vector(f64 a)
{
    return a;
}

static f64 fold_four(f64 a, f64 b, f64 c, f64 d)
{
    return (a + b) + (c + d);
}
#endif
STEPS(f32)
STEPS(f64)

/* The sum of 2^level blocks that begin at a multiple of 2^level blocks. The top level takes what a
 * longer counter would carry further. */
static inline void push(f64 *stack, u64 n_blocks, f64 value, unsigned level)
{
    for (u64 n = n_blocks >> level; (n & 1) && level < REDUCE_LEVELS - 1; n >>= 1)
        value = stack[level++] + value;
    if (level == REDUCE_LEVELS - 1 && n_blocks >= (u64)1 << level)
        value = stack[level] + value;
    stack[level] = value;
}

/* Eight blocks are pushed at a time where they can be: the processor cannot know how far a number
 * is carried. */
#define LEVEL 3
static inline bool has_level(const struct reduce_state *state, size_t n)
{
    return state->n_blocks % (1 << LEVEL) == 0 && n >= BLOCK << LEVEL;
}

static inline f64 fold_eight(const addends *s)
{
    return fold_four(s[0], s[1], s[2], s[3]) + fold_four(s[4], s[5], s[6], s[7]);
}

/* take: n elements of a row; returns 0, or NaN where not all sums are finite. part: of one block.
 * eight: whole blocks. */
#define SUMS(T)                                                                                    \
    static ALWAYS_INLINE f64 sum_part_##T(size_t n, const T *x, struct reduce_state *state,        \
                                          struct extrema_##T *extrema)                             \
    {                                                                                              \
        size_t n_steps = n / STEP, n_whole = n_steps * STEP;                                       \
        f64 *lanes = state->lanes[0];                                                              \
        sum_steps_##T(x, 1, n_steps, lanes, state->n_taken > 0, extrema);                          \
        for (size_t j = 0; j < n - n_whole; j++)                                                   \
            lanes[j] += (f64)x[n_whole + j];                                                       \
        state->n_taken += (unsigned)n;                                                             \
        if (!extrema && state->n_taken < BLOCK)                                                    \
            return 0;                                                                              \
        f64 s = fold_vector(fold_to_vector(lanes));                                                \
        if (state->n_taken == BLOCK) {                                                             \
            push(state->stack[0], state->n_blocks++, s, 0);                                        \
            state->n_taken = 0;                                                                    \
        }                                                                                          \
        return s - s;                                                                              \
    }                                                                                              \
    static ALWAYS_INLINE f64 sum_eight_##T(const T *x, struct extrema_##T *extrema)                \
    {                                                                                              \
        f64 lanes[BESIDE * REDUCE_SUM_LANES] __attribute__((aligned(64)));                         \
        addends s[8];                                                                              \
        for (size_t b = 0; b < 8; b += BESIDE) {                                                   \
            sum_steps_##T(x + b * BLOCK, BESIDE, BLOCK / STEP, lanes, false, extrema);             \
            for (size_t k = 0; k < BESIDE; k++)                                                    \
                s[b + k] = fold_to_vector(lanes + k * STEP);                                       \
        }                                                                                          \
        return fold_eight(s);                                                                      \
    }                                                                                              \
    static ALWAYS_INLINE f64 sum_take_##T(size_t n, const T *x, struct reduce_state *state,        \
                                          struct extrema_##T *extrema)                             \
    {                                                                                              \
        f64 odd = 0;                                                                               \
        for (size_t n_now; n > 0; n -= n_now, x += n_now) {                                        \
            if (state->n_taken > 0 || !has_level(state, n)) {                                      \
                n_now = BLOCK - state->n_taken < n ? BLOCK - state->n_taken : n;                   \
                odd += sum_part_##T(n_now, x, state, extrema);                                     \
                continue;                                                                          \
            }                                                                                      \
            f64 s = sum_eight_##T(x, extrema);                                                     \
            push(state->stack[0], state->n_blocks, s, LEVEL);                                      \
            state->n_blocks += 1 << LEVEL;                                                         \
            odd += s - s;                                                                          \
            n_now = BLOCK << LEVEL;                                                                \
        }                                                                                          \
        return odd;                                                                                \
    }                                                                                              \
    static void sum_##T(size_t n, const void *src, struct reduce_state *state)                     \
    {                                                                                              \
        (void)sum_take_##T(n, src, state, NULL);                                                   \
    }
SUMS(f32)
SUMS(f64)

#define DEVIATIONS(T)                                                                              \
    static ALWAYS_INLINE f64 deviations_part_##T(size_t n, const T *x, struct reduce_state *state, \
                                                 bool is_square, struct extrema_##T *extrema)      \
    {                                                                                              \
        size_t n_steps = n / STEP, n_whole = n_steps * STEP;                                       \
        deviations_steps_##T(x, n_steps, state->lanes, state->n_taken > 0, state->shift,           \
                             is_square, extrema);                                                  \
        for (size_t j = 0; j < n - n_whole; j++) {                                                 \
            f64 a = (f64)x[n_whole + j], d = a - state->shift;                                     \
            state->lanes[0][j] += ADDED_##T(a, d);                                                 \
            state->lanes[1][j] += d * d;                                                           \
        }                                                                                          \
        state->n_taken += (unsigned)n;                                                             \
        if (!extrema && state->n_taken < BLOCK)                                                    \
            return 0;                                                                              \
        f64 s = fold_vector(fold_to_vector(state->lanes[0]));                                      \
        if (state->n_taken == BLOCK) {                                                             \
            f64 q = fold_vector(fold_to_vector(state->lanes[1]));                                  \
            push(state->stack[0], state->n_blocks, s, 0);                                          \
            push(state->stack[1], state->n_blocks++, q, 0);                                        \
            state->n_taken = 0;                                                                    \
        }                                                                                          \
        return s - s;                                                                              \
    }                                                                                              \
    static ALWAYS_INLINE f64 deviations_eight_##T(const T *x, f64 shift, bool is_square,           \
                                                  struct extrema_##T *extrema, f64 *ret_squares)   \
    {                                                                                              \
        f64 lanes[2][REDUCE_SUM_LANES] __attribute__((aligned(64)));                               \
        addends s[8], q[8];                                                                        \
        for (size_t b = 0; b < 8; b++) {                                                           \
            deviations_steps_##T(x + b * BLOCK, BLOCK / STEP, lanes, false, shift, is_square,      \
                                 extrema);                                                         \
            s[b] = fold_to_vector(lanes[0]);                                                       \
            q[b] = fold_to_vector(lanes[1]);                                                       \
        }                                                                                          \
        *ret_squares = fold_eight(q);                                                              \
        return fold_eight(s);                                                                      \
    }                                                                                              \
    static ALWAYS_INLINE f64 deviations_take_as_##T(size_t n, const T *x,                          \
                                                    struct reduce_state *state, bool is_square,    \
                                                    struct extrema_##T *extrema)                   \
    {                                                                                              \
        f64 odd = 0, s, q;                                                                         \
        for (size_t n_now; n > 0; n -= n_now, x += n_now) {                                        \
            if (state->n_taken > 0 || !has_level(state, n)) {                                      \
                n_now = BLOCK - state->n_taken < n ? BLOCK - state->n_taken : n;                   \
                odd += deviations_part_##T(n_now, x, state, is_square, extrema);                   \
                continue;                                                                          \
            }                                                                                      \
            s = deviations_eight_##T(x, state->shift, is_square, extrema, &q);                     \
            push(state->stack[0], state->n_blocks, s, LEVEL);                                      \
            push(state->stack[1], state->n_blocks, q, LEVEL);                                      \
            state->n_blocks += 1 << LEVEL;                                                         \
            odd += s - s;                                                                          \
            n_now = BLOCK << LEVEL;                                                                \
        }                                                                                          \
        return odd;                                                                                \
    }                                                                                              \
    static ALWAYS_INLINE f64 deviations_take_##T(size_t n, const T *x, struct reduce_state *state, \
                                                 struct extrema_##T *extrema)                      \
    {                                                                                              \
        if (sizeof(T) == sizeof(f32) && state->shift == 0)                                         \
            return deviations_take_as_##T(n, x, state, true, extrema);                             \
        return deviations_take_as_##T(n, x, state, false, extrema);                                \
    }                                                                                              \
    static void deviations_##T(size_t n, const void *src, struct reduce_state *state)              \
    {                                                                                              \
        (void)deviations_take_##T(n, src, state, NULL);                                            \
    }
DEVIATIONS(f32)
DEVIATIONS(f64)

/* Sums or squared deviations with the extrema of the same elements, which take little longer for
 * it. An element that is not finite shows in a sum: then the extrema are found by themselves. */
#if defined(KERNEL_IS_VECTORISED)
#define FUSED_EXTREMUM(name, T, NAME, DTYPE, is_better)                                            \
    static void name##_found_##T(size_t n, const T *as, const T *lanes, bool is_finite,            \
                                 struct reduce_state *state)                                       \
    {                                                                                              \
        T best = lanes[0];                                                                         \
        if (!is_finite)                                                                            \
            KERNEL_SYMBOL(extrema)[NAME][DTYPE](n, as, state);                                     \
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

#define FUSED(name, T)                                                                             \
    static void name##_fused_##T(size_t n, const void *src, struct reduce_state *added,            \
                                 struct reduce_state *min, struct reduce_state *max)               \
    {                                                                                              \
        const T *as = src;                                                                         \
        struct extrema_##T extrema = extrema_none_##T();                                           \
        size_t n_whole = n & ~(STEP - 1);                                                          \
        f64 odd = name##_take_##T(n, as, added, &extrema);                                         \
        extrema_last_##T(as + n_whole, n - n_whole, &extrema, &odd);                               \
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
const reduce_table KERNEL_SYMBOL(sums) = {
    [OP_SUM] = {ROW_FLOATS(sum)},
    [OP_SQUARED_DEVIATIONS] = {ROW_FLOATS(deviations)},
};
/* clang-format on */
