/* Sums, means, extrema and standard deviations of windows, at a cost that does not depend on their
 * size (M. van Herk, A fast algorithm for local minimum and maximum filters on rectangular and
 * octagonal kernels, 1992; J. Gil and M. Werman, Computing 2-D min, median, and max filters, 1993).
 *
 * An axis has blocks as long as the window, which begin at multiples of its size. A window is the
 * end of one block and the beginning of the next:
 *
 *     |  .  .  a  b  c | d  e  .  .  . |         window: a b c d e
 *            suffix ^      ^ prefix
 *
 * Suffixes of a block are made backwards and kept; prefixes of the next one go along with the
 * outputs. So a window takes three steps an element. Nothing is ever taken out again: a sum has no
 * more rounding than its own elements cause, infinities and NaNs end with their windows, and the
 * bits follow from the places alone, wherever a box begins.
 *
 * Floats are added in float64. Of a standard deviation a step joins two means and sums of squared
 * deviations (T. Chan, G. Golub, R. LeVeque, 1983), which has no cancellation. Reads each row
 * twice, writes one row each; suffixes stay in the second-level cache for sizes up to some
 * thousands.
 */
#include "kernels/cpu/levels/template.h"
#include "kernels/cpu/windows/window_vectors.h"

#include <math.h>

/* What a row, or several together, come to. `each`: rows' elements. */
#define SLIDING(name, A, LOAD, JOIN, STORE)                                                        \
    static void name(const struct window_lanes *w)                                                 \
    {                                                                                              \
        struct A *suffix = w->suffix;                                                              \
        size_t at = w->phase;                                                                      \
        for (size_t i = 0, n; i < w->n; i += n, at = 0) {                                          \
            size_t left = w->size - at, k = 0;                                                     \
            n = left < w->n - i ? left : w->n - i;                                                 \
            struct A sum = LOAD(w, i + left - 1);                                                  \
            if (left == n)                                                                         \
                suffix[left - 1] = sum;                                                            \
            size_t r = left - 1;                                                                   \
            for (; r > n; r--)                                                                     \
                sum = JOIN(LOAD(w, i + r - 1), sum);                                               \
            for (; r > 0; r--)                                                                     \
                suffix[r - 1] = sum = JOIN(LOAD(w, i + r - 1), sum);                               \
            if (at == 0)                                                                           \
                STORE(w, i + k++, suffix[0]);                                                      \
            if (k == n)                                                                            \
                continue;                                                                          \
            sum = LOAD(w, i + left);                                                               \
            for (r = i + left + 1; r < i + k + w->size; r++)                                       \
                sum = JOIN(sum, LOAD(w, r));                                                       \
            STORE(w, i + k, JOIN(suffix[k], sum));                                                 \
            for (k++; k < n; k++) {                                                                \
                sum = JOIN(sum, LOAD(w, i + k + w->size - 1));                                     \
                STORE(w, i + k, JOIN(suffix[k], sum));                                             \
            }                                                                                      \
        }                                                                                          \
    }

/* Sums ------------------------------------------------------------------------------------- */

#define LOAD_ROW(T, from)                                                                          \
    static inline struct T##_lanes load_sum_##from(const struct window_lanes *w, size_t row)       \
    {                                                                                              \
        return load_##T##_of_##from(w->src + (int64_t)row * w->src_row);                           \
    }
LOAD_ROW(f64, f64)
LOAD_ROW(f64, f32)
LOAD_ROW(u64, u64)

#define STORE_ROW(T)                                                                               \
    static inline void store_row_##T(const struct window_lanes *w, size_t row, struct T##_lanes v) \
    {                                                                                              \
        memcpy(w->dst + (int64_t)row * w->dst_row, &v, sizeof(v));                                 \
    }
STORE_ROW(f64)
STORE_ROW(u64)

/* Results: what n elements come to, as they are stored. */
#define STORE_RESULT(name, T, divided)                                                             \
    static inline void store_##name##_##T(const struct window_lanes *w, size_t row,                \
                                          struct f64_lanes v)                                      \
    {                                                                                              \
        if (divided)                                                                               \
            for (int i = 0; i < VECTORS(f64); i++)                                                 \
                v.v[i] /= w->n_elements;                                                           \
        store_f64_as_##T(w->dst + (int64_t)row * w->dst_row, v);                                   \
    }
STORE_RESULT(sum, f32, false)
STORE_RESULT(mean, f32, true)
STORE_RESULT(mean, f64, true)

SLIDING(sums_f32, f64_lanes, load_sum_f32, add_f64, store_row_f64)
SLIDING(sums_f64, f64_lanes, load_sum_f64, add_f64, store_row_f64)
SLIDING(sums_u64, u64_lanes, load_sum_u64, add_u64, store_row_u64)
SLIDING(sum_f32_f32, f64_lanes, load_sum_f32, add_f64, store_sum_f32)
SLIDING(sum_f64_f32, f64_lanes, load_sum_f64, add_f64, store_sum_f32)
SLIDING(mean_f32_f32, f64_lanes, load_sum_f32, add_f64, store_mean_f32)
SLIDING(mean_f64_f32, f64_lanes, load_sum_f64, add_f64, store_mean_f32)
SLIDING(mean_f64_f64, f64_lanes, load_sum_f64, add_f64, store_mean_f64)

/* Extrema ---------------------------------------------------------------------------------- */

#define EXTREMA(T)                                                                                 \
    static inline struct T##_lanes load_own_##T(const struct window_lanes *w, size_t row) {        \
        return load_##T(w->src + (int64_t)row * w->src_row);                                       \
    } SLIDING(min_##T, T##_lanes, load_own_##T, least_##T, store_row_##T)                          \
        SLIDING(max_##T, T##_lanes, load_own_##T, most_##T, store_row_##T)
STORE_ROW(f32)
STORE_ROW(u8)
STORE_ROW(u16)
STORE_ROW(u32)
STORE_ROW(i8)
STORE_ROW(i16)
STORE_ROW(i32)
STORE_ROW(i64)
EXTREMA(f32)
EXTREMA(f64)
EXTREMA(u8)
EXTREMA(u16)
EXTREMA(u32)
EXTREMA(u64)
EXTREMA(i8)
EXTREMA(i16)
EXTREMA(i32)
EXTREMA(i64)

/* Deviations ------------------------------------------------------------------------------- */

struct spread_lanes {
    struct f64_lanes mean, squares;
    double n;
};

static inline struct spread_lanes join_spreads(struct spread_lanes a, struct spread_lanes b)
{
    struct spread_lanes sum = {.n = a.n + b.n};
    double share = b.n / sum.n, weight = a.n * share;
    for (int i = 0; i < VECTORS(f64); i++) {
        f64_vector d = b.mean.v[i] - a.mean.v[i];
        sum.mean.v[i] = a.mean.v[i] + d * share;
        sum.squares.v[i] = a.squares.v[i] + b.squares.v[i] + d * d * weight;
    }
    return sum;
}

static inline void store_spread(const struct window_lanes *w, size_t row, struct spread_lanes v)
{
    char *dst = w->dst + (int64_t)row * w->dst_row;
    memcpy(dst, &v.mean, sizeof(v.mean));
    memcpy(dst + sizeof(v.mean), &v.squares, sizeof(v.squares));
}

static inline struct spread_lanes load_spread(const struct window_lanes *w, size_t row)
{
    const char *src = w->src + (int64_t)row * w->src_row;
    struct spread_lanes v = {.n = w->each};
    memcpy(&v.mean, src, sizeof(v.mean));
    memcpy(&v.squares, src + sizeof(v.mean), sizeof(v.squares));
    return v;
}

/* NumPy's has no mean that is infinite to deviate from. */
#define STORE_SPREAD(T)                                                                            \
    static inline void store_std_##T(const struct window_lanes *w, size_t row,                     \
                                     struct spread_lanes v)                                        \
    {                                                                                              \
        f64 made[WINDOW_LANES], mean[WINDOW_LANES];                                                \
        memcpy(made, &v.squares, sizeof(made));                                                    \
        memcpy(mean, &v.mean, sizeof(mean));                                                       \
        for (int k = 0; k < WINDOW_LANES; k++)                                                     \
            made[k] = sqrt(made[k] / w->n_elements) + (mean[k] - mean[k]);                         \
        memcpy(&v.squares, made, sizeof(made));                                                    \
        store_f64_as_##T(w->dst + (int64_t)row * w->dst_row, v.squares);                           \
    }
STORE_SPREAD(f32)
STORE_SPREAD(f64)

#define LOAD_SPREAD(from)                                                                          \
    static inline struct spread_lanes load_spread_##from(const struct window_lanes *w, size_t row) \
    {                                                                                              \
        struct spread_lanes v = {.n = 1};                                                          \
        v.mean = load_f64_of_##from(w->src + (int64_t)row * w->src_row);                           \
        memset(&v.squares, 0, sizeof(v.squares));                                                  \
        return v;                                                                                  \
    }
LOAD_SPREAD(f64)
LOAD_SPREAD(f32)

SLIDING(spreads_f32, spread_lanes, load_spread_f32, join_spreads, store_spread)
SLIDING(spreads_f64, spread_lanes, load_spread_f64, join_spreads, store_spread)
SLIDING(spreads_again, spread_lanes, load_spread, join_spreads, store_spread)
SLIDING(std_f32, spread_lanes, load_spread_f32, join_spreads, store_std_f32)
SLIDING(std_f64, spread_lanes, load_spread_f64, join_spreads, store_std_f64)
SLIDING(std_again_f32, spread_lanes, load_spread, join_spreads, store_std_f32)
SLIDING(std_again_f64, spread_lanes, load_spread, join_spreads, store_std_f64)

#define EXTREMUM(name)                                                                             \
    {                                                                                              \
        [DTYPE_BOOL] = name##_u8, [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16,            \
        [DTYPE_INT32] = name##_i32, [DTYPE_INT64] = name##_i64, [DTYPE_UINT8] = name##_u8,         \
        [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32, [DTYPE_UINT64] = name##_u64,     \
        [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64                                 \
    }
#define EXTREMA_ROWS [OP_WINDOW_MIN] = EXTREMUM(min), [OP_WINDOW_MAX] = EXTREMUM(max)
#define SUMS(of_f32, of_f64, of_u64)                                                               \
    {                                                                                              \
        [DTYPE_FLOAT32] = of_f32, [DTYPE_FLOAT64] = of_f64, [DTYPE_INT64] = of_u64,                \
        [DTYPE_UINT64] = of_u64                                                                    \
    }
#define FLOATS(of_f32, of_f64)                                                                     \
    {                                                                                              \
        [DTYPE_FLOAT32] = of_f32, [DTYPE_FLOAT64] = of_f64                                         \
    }
const struct window_kernels KERNEL_SYMBOL(windows) = {
    .steps = {[WINDOW_FIRST] = {[OP_WINDOW_SUM] = SUMS(sums_f32, sums_f64, sums_u64),
                                [OP_WINDOW_MEAN] = FLOATS(sums_f32, sums_f64),
                                [OP_WINDOW_STD] = FLOATS(spreads_f32, spreads_f64),
                                EXTREMA_ROWS},
              [WINDOW_AGAIN] = {[OP_WINDOW_SUM] = SUMS(sums_f64, sums_f64, sums_u64),
                                [OP_WINDOW_MEAN] = FLOATS(sums_f64, sums_f64),
                                [OP_WINDOW_STD] = FLOATS(spreads_again, spreads_again),
                                EXTREMA_ROWS},
              [WINDOW_LAST] = {[OP_WINDOW_SUM] = SUMS(sum_f64_f32, sums_f64, sums_u64),
                               [OP_WINDOW_MEAN] = FLOATS(mean_f64_f32, mean_f64_f64),
                               [OP_WINDOW_STD] = FLOATS(std_again_f32, std_again_f64),
                               EXTREMA_ROWS},
              [WINDOW_ONLY] = {[OP_WINDOW_SUM] = SUMS(sum_f32_f32, sums_f64, sums_u64),
                               [OP_WINDOW_MEAN] = FLOATS(mean_f32_f32, mean_f64_f64),
                               [OP_WINDOW_STD] = FLOATS(std_f32, std_f64),
                               EXTREMA_ROWS}},
    .taps = {[OP_CORRELATE] = {[DTYPE_FLOAT32] = KERNEL_SYMBOL(window_correlate_f32),
                               [DTYPE_FLOAT64] = KERNEL_SYMBOL(window_correlate_f64),
                               [DTYPE_INT64] = KERNEL_SYMBOL(window_correlate_u64),
                               [DTYPE_UINT64] = KERNEL_SYMBOL(window_correlate_u64)},
             [OP_WINDOW_RANK] = WINDOW_RANKS},
};
