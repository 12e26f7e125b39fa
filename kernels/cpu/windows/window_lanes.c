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
        for (size_t i = 0, n; i < w->n; i += n) {                                                  \
            size_t at = (w->phase + i) % w->size, left = w->size - at, k = 0;                      \
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

#define SUMMING(T, from)                                                                           \
    static inline struct T##_lanes load_sum_##from(const struct window_lanes *w, size_t row)       \
    {                                                                                              \
        return load_##T##_of_##from(w->src + (int64_t)row * w->src_row);                           \
    }                                                                                              \
    SLIDING(sum_##from, T##_lanes, load_sum_##from, add_##T, store_row_##T)

#define STORE_ROW(T)                                                                               \
    static inline void store_row_##T(const struct window_lanes *w, size_t row, struct T##_lanes v) \
    {                                                                                              \
        memcpy(w->dst + (int64_t)row * w->dst_row, &v, sizeof(v));                                 \
    }
STORE_ROW(f64)
STORE_ROW(u64)
SUMMING(f64, f64)
SUMMING(f64, f32)
SUMMING(u64, u64)

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

#define SPREADING(from)                                                                            \
    static inline struct spread_lanes load_spread_##from(const struct window_lanes *w, size_t row) \
    {                                                                                              \
        struct spread_lanes v = {.n = 1};                                                          \
        v.mean = load_f64_of_##from(w->src + (int64_t)row * w->src_row);                           \
        memset(&v.squares, 0, sizeof(v.squares));                                                  \
        return v;                                                                                  \
    }                                                                                              \
    SLIDING(spread_##from, spread_lanes, load_spread_##from, join_spreads, store_spread)
SPREADING(f64)
SPREADING(f32)
SLIDING(spread_again, spread_lanes, load_spread, join_spreads, store_spread)

/* Results ---------------------------------------------------------------------------------- */

#define FINISH(name, T, skipped, expression)                                                       \
    static void name##_##T(size_t n_rows, double n, const char *src, int64_t src_row, char *dst,   \
                           int64_t dst_row)                                                        \
    {                                                                                              \
        for (size_t i = 0; i < n_rows; i++) {                                                      \
            const f64 *from = (const f64 *)(const void *)(src + (int64_t)i * src_row) + (skipped); \
            T row[WINDOW_LANES];                                                                   \
            for (int k = 0; k < WINDOW_LANES; k++) {                                               \
                f64 v = from[k];                                                                   \
                row[k] = (T)(expression);                                                          \
            }                                                                                      \
            memcpy(dst + (int64_t)i * dst_row, row, sizeof(row));                                  \
        }                                                                                          \
    }
FINISH(finish_sum, f32, 0, v)
FINISH(finish_mean, f32, 0, v / n)
FINISH(finish_mean, f64, 0, v / n)
/* NumPy's has no mean that is infinite to deviate from. */
#define MEAN_IS_FINITE (from[k - WINDOW_LANES] - from[k - WINDOW_LANES])
FINISH(finish_std, f32, WINDOW_LANES, sqrt(v / n) + MEAN_IS_FINITE)
FINISH(finish_std, f64, WINDOW_LANES, sqrt(v / n) + MEAN_IS_FINITE)

#define EXTREMUM(name)                                                                             \
    {                                                                                              \
        [DTYPE_BOOL] = name##_u8, [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16,            \
        [DTYPE_INT32] = name##_i32, [DTYPE_INT64] = name##_i64, [DTYPE_UINT8] = name##_u8,         \
        [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32, [DTYPE_UINT64] = name##_u64,     \
        [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64                                 \
    }
const struct window_kernels KERNEL_SYMBOL(windows) = {
    .first = {[OP_WINDOW_SUM] = {[DTYPE_FLOAT32] = sum_f32,
                                 [DTYPE_FLOAT64] = sum_f64,
                                 [DTYPE_INT64] = sum_u64,
                                 [DTYPE_UINT64] = sum_u64},
              [OP_WINDOW_MEAN] = {[DTYPE_FLOAT32] = sum_f32, [DTYPE_FLOAT64] = sum_f64},
              [OP_WINDOW_STD] = {[DTYPE_FLOAT32] = spread_f32, [DTYPE_FLOAT64] = spread_f64},
              [OP_WINDOW_MIN] = EXTREMUM(min),
              [OP_WINDOW_MAX] = EXTREMUM(max)},
    .again = {[OP_WINDOW_SUM] = {[DTYPE_FLOAT32] = sum_f64,
                                 [DTYPE_FLOAT64] = sum_f64,
                                 [DTYPE_INT64] = sum_u64,
                                 [DTYPE_UINT64] = sum_u64},
              [OP_WINDOW_MEAN] = {[DTYPE_FLOAT32] = sum_f64, [DTYPE_FLOAT64] = sum_f64},
              [OP_WINDOW_STD] = {[DTYPE_FLOAT32] = spread_again, [DTYPE_FLOAT64] = spread_again},
              [OP_WINDOW_MIN] = EXTREMUM(min),
              [OP_WINDOW_MAX] = EXTREMUM(max)},
    .finish =
        {[OP_WINDOW_SUM] = {[DTYPE_FLOAT32] = finish_sum_f32},
         [OP_WINDOW_MEAN] = {[DTYPE_FLOAT32] = finish_mean_f32, [DTYPE_FLOAT64] = finish_mean_f64},
         [OP_WINDOW_STD] = {[DTYPE_FLOAT32] = finish_std_f32, [DTYPE_FLOAT64] = finish_std_f64}},
    .taps = {[OP_CORRELATE] = {[DTYPE_FLOAT32] = KERNEL_SYMBOL(window_correlate_f32),
                               [DTYPE_FLOAT64] = KERNEL_SYMBOL(window_correlate_f64),
                               [DTYPE_INT64] = KERNEL_SYMBOL(window_correlate_u64),
                               [DTYPE_UINT64] = KERNEL_SYMBOL(window_correlate_u64)},
             [OP_WINDOW_RANK] = WINDOW_RANKS},
};
