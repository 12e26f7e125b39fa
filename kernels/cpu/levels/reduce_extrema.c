/* The least and the greatest element of one row.
 *
 * Of equal elements (0.0 and -0.0 are equal) the first one is the result, and of NaNs the first
 * NaN: so the bits do not depend on how the elements are taken in. For floats, lanes find which
 * value it is and whether there is a NaN; where several bit patterns are that value, the first is
 * looked for. One pass over memory, but for the part before a first zero or NaN. Elements that
 * somebody changes meanwhile may not be found again: whatever is there is the result then.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/template.h"

#define LANES 32

#define EXTREMUM_INTEGERS(name, T, member, is_better)                                              \
    static void name##_##T(size_t n, const void *src, struct reduce_state *state)                  \
    {                                                                                              \
        const T *as = src;                                                                         \
        T best = state->has_value ? (T)state->member : as[0];                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = as[i];                                                                           \
            best = a is_better best ? a : best;                                                    \
        }                                                                                          \
        state->member = best;                                                                      \
        state->has_value = true;                                                                   \
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

/* lanes[j] = the better of lanes[j] and elements j, j + LANES, ..., NaNs left out; returns whether
 * there are any. n: a multiple of LANES. */
#define LANES_FLOATS(name, T, U, is_better)                                                        \
    static inline bool name##_lanes_##T(T *lanes, const T *x, size_t n)                            \
    {                                                                                              \
        T best[LANES];                                                                             \
        U nans[LANES] = {0};                                                                       \
        for (int j = 0; j < LANES; j++)                                                            \
            best[j] = lanes[j];                                                                    \
        for (size_t i = 0; i < n; i += LANES) {                                                    \
            lines_fetch_ahead(x + i, LANES * sizeof(T));                                           \
            KERNEL_LOOP                                                                            \
            for (int j = 0; j < LANES; j++) {                                                      \
                T a = x[i + (size_t)j];                                                            \
                best[j] = a is_better best[j] ? a : best[j];                                       \
                nans[j] |= (U)(a != a);                                                            \
            }                                                                                      \
        }                                                                                          \
        U has_nan = 0;                                                                             \
        for (int j = 0; j < LANES; j++) {                                                          \
            lanes[j] = best[j];                                                                    \
            has_nan |= nans[j];                                                                    \
        }                                                                                          \
        return has_nan != 0;                                                                       \
    }
LANES_FLOATS(min, f32, u32, <)
LANES_FLOATS(max, f32, u32, >)
LANES_FLOATS(min, f64, u64, <)
LANES_FLOATS(max, f64, u64, >)

#define EXTREMUM_FLOATS(name, T, is_better, identity)                                              \
    static T name##_of_##T(size_t n, const T *as)                                                  \
    {                                                                                              \
        T lanes[LANES], best = (T)identity;                                                        \
        for (int j = 0; j < LANES; j++)                                                            \
            lanes[j] = (T)identity;                                                                \
        size_t n_lanes = n & ~(size_t)(LANES - 1);                                                 \
        bool has_nan = name##_lanes_##T(lanes, as, n_lanes);                                       \
        if (n_lanes)                                                                               \
            for (int j = 0; j < LANES; j++)                                                        \
                best = lanes[j] is_better best ? lanes[j] : best;                                  \
        for (size_t i = n_lanes; i < n; i++) {                                                     \
            best = as[i] is_better best ? as[i] : best;                                            \
            has_nan |= as[i] != as[i];                                                             \
        }                                                                                          \
        size_t i = 0;                                                                              \
        if (has_nan)                                                                               \
            while (i + 1 < n && as[i] == as[i])                                                    \
                i++;                                                                               \
        else if (best == 0)                                                                        \
            while (i + 1 < n && as[i] != best)                                                     \
                i++;                                                                               \
        else                                                                                       \
            return best;                                                                           \
        return as[i];                                                                              \
    }                                                                                              \
    static void name##_##T(size_t n, const void *src, struct reduce_state *state)                  \
    {                                                                                              \
        T a = name##_of_##T(n, src), best = state->T;                                              \
        if (!state->has_value || (best == best && (a is_better best || a != a)))                   \
            state->T = a;                                                                          \
        state->has_value = true;                                                                   \
    }
#define EXTREMA_FLOATS(T)                                                                          \
    EXTREMUM_FLOATS(min, T, <, __builtin_inf()) EXTREMUM_FLOATS(max, T, >, -__builtin_inf())
EXTREMA_FLOATS(f32)
EXTREMA_FLOATS(f64)

/* clang-format off */
const reduce_table KERNEL_SYMBOL(extrema) = {
    [OP_MIN] = {[DTYPE_BOOL] = min_u8, ROW_SIGNED(min), ROW_UNSIGNED(min), ROW_FLOATS(min)},
    [OP_MAX] = {[DTYPE_BOOL] = max_u8, ROW_SIGNED(max), ROW_UNSIGNED(max), ROW_FLOATS(max)},
};
/* clang-format on */
