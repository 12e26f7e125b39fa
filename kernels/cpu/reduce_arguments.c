/* Positions of the least and the greatest element: ARGMIN and ARGMAX.
 *
 * Every element comes with its position. Of equal elements the one with the smallest position is
 * the result, of NaNs the NaN with the smallest: so the order in which elements are taken in does
 * not matter. A new best element is rare: blocks in which all are worse are passed over. The same
 * code at all levels.
 */
#include "kernels/cpu/template.h"

#define BLOCK KERNEL_GRANULE

/* Whether element a at `position` takes the place of `best` at `index`. */
#define IS_BETTER(name, T, is_better)                                                              \
    static inline bool name##_is_better_##T(T a, i64 position, T best, i64 index)                  \
    {                                                                                              \
        if (a is_better best)                                                                      \
            return true;                                                                           \
        if (a != a)                                                                                \
            return best == best || position < index;                                               \
        return a == best && position < index;                                                      \
    }

#define ARGUMENT(name, T, member, is_better, is_worse)                                             \
    IS_BETTER(name, T, is_better)                                                                  \
    /* Whether all of BLOCK elements are worse: neither better nor equal, nor NaN. */              \
    static inline bool name##_are_worse_##T(const T *as, T best)                                   \
    {                                                                                              \
        u32 n_worse = 0;                                                                           \
        for (size_t i = 0; i < BLOCK; i++)                                                         \
            n_worse += as[i] is_worse best;                                                        \
        return n_worse == BLOCK;                                                                   \
    }                                                                                              \
    static void name##_##T(size_t n, const void *src, const i64 *indices,                          \
                           struct reduce_state *state)                                             \
    {                                                                                              \
        const T *as = src;                                                                         \
        T best = state->has_value ? (T)state->member : as[0];                                      \
        i64 index = state->has_value ? state->index : indices[0];                                  \
        for (size_t i = 0; i < n; i++) {                                                           \
            while (i % BLOCK == 0 && n - i >= BLOCK && name##_are_worse_##T(as + i, best))         \
                i += BLOCK;                                                                        \
            if (i == n)                                                                            \
                break;                                                                             \
            T a = as[i];                                                                           \
            if (name##_is_better_##T(a, indices[i], best, index)) {                                \
                best = a;                                                                          \
                index = indices[i];                                                                \
            }                                                                                      \
        }                                                                                          \
        state->member = best;                                                                      \
        state->index = index;                                                                      \
        state->has_value = true;                                                                   \
    }                                                                                              \
    static void name##_rows_##T(const struct reduce_rows *rows)                                    \
    {                                                                                              \
        T *value = rows->value;                                                                    \
        i64 *index = rows->second;                                                                 \
        for (size_t r = 0; r < rows->n_rows; r++) {                                                \
            const T *as = (const T *)(rows->src + (i64)r * rows->row_bytes);                       \
            const i64 *positions = rows->indices + r * rows->n_cells;                              \
            bool is_first = r == 0 && rows->is_first;                                              \
            for (size_t i = 0; i < rows->n_cells; i++) {                                           \
                T a = as[i];                                                                       \
                if (is_first || name##_is_better_##T(a, positions[i], value[i], index[i])) {       \
                    value[i] = a;                                                                  \
                    index[i] = positions[i];                                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define ARGUMENTS(T, member) ARGUMENT(min, T, member, <, >) ARGUMENT(max, T, member, >, <)
ARGUMENTS(i8, i64)
ARGUMENTS(i16, i64)
ARGUMENTS(i32, i64)
ARGUMENTS(i64, i64)
ARGUMENTS(u8, u64)
ARGUMENTS(u16, u64)
ARGUMENTS(u32, u64)
ARGUMENTS(u64, u64)
ARGUMENTS(f32, f32)
ARGUMENTS(f64, f64)

#define ROW(name)                                                                                  \
    {                                                                                              \
        [DTYPE_BOOL] = name##_u8, [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16,            \
        [DTYPE_INT32] = name##_i32, [DTYPE_INT64] = name##_i64, [DTYPE_UINT8] = name##_u8,         \
        [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32, [DTYPE_UINT64] = name##_u64,     \
        [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64                                 \
    }

const reduce_table argument_kernels = {[OP_ARGMIN] = ROW(min), [OP_ARGMAX] = ROW(max)};
const rows_table argument_rows = {[OP_ARGMIN] = ROW(min_rows), [OP_ARGMAX] = ROW(max_rows)};
