/* Positions of the least and the greatest element: ARGMIN and ARGMAX.
 *
 * Of equal elements the one with the smallest position is the result, of NaNs the NaN with the
 * smallest: so the order in which elements are taken in does not matter. Positions along a row go
 * up by the same step. A row's pieces that stay in the first-level cache are looked through for
 * their extremum, with the level's vectors; only where that is a new best element is it looked for
 * where it is. In rows whose elements belong to cells every element comes with its position.
 */
#include "kernels/cpu/levels/template.h"

#define PIECE 1024

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

#define ARGUMENT(name, T, member, is_better)                                                       \
    IS_BETTER(name, T, is_better)                                                                  \
    /* Somebody may change the elements meanwhile: then the last one is it. */                     \
    static inline size_t name##_find_##T(size_t n, const T *as, T a)                               \
    {                                                                                              \
        size_t i = 0;                                                                              \
        if (a != a)                                                                                \
            while (i + 1 < n && as[i] == as[i])                                                    \
                i++;                                                                               \
        else                                                                                       \
            while (i + 1 < n && as[i] != a)                                                        \
                i++;                                                                               \
        return i;                                                                                  \
    }                                                                                              \
    static void name##_##T(size_t n, const void *src, i64 first, i64 step, reduce_fn *extremum,    \
                           struct reduce_state *state)                                             \
    {                                                                                              \
        const T *as = src;                                                                         \
        T best = (T)state->member;                                                                 \
        for (size_t n_now; n > 0; n -= n_now, as += n_now, first += (i64)n_now * step) {           \
            struct reduce_state piece;                                                             \
            piece.has_value = false;                                                               \
            piece.u64 = 0;                                                                         \
            n_now = n < PIECE ? n : PIECE;                                                         \
            extremum(n_now, as, &piece);                                                           \
            T a = (T)piece.member;                                                                 \
            if (state->has_value && !name##_is_better_##T(a, first, best, state->index))           \
                continue;                                                                          \
            i64 position = first + (i64)name##_find_##T(n_now, as, a) * step;                      \
            if (state->has_value && !name##_is_better_##T(a, position, best, state->index))        \
                continue;                                                                          \
            state->has_value = true;                                                               \
            state->member = best = a;                                                              \
            state->index = position;                                                               \
        }                                                                                          \
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
#define ARGUMENTS(T, member) ARGUMENT(min, T, member, <) ARGUMENT(max, T, member, >)
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

const argument_table argument_kernels = {[OP_ARGMIN] = ROW(min), [OP_ARGMAX] = ROW(max)};
const rows_table argument_rows = {[OP_ARGMIN] = ROW(min_rows), [OP_ARGMAX] = ROW(max_rows)};
