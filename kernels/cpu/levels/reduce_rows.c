/* Reductions of rows whose elements belong to cells: element i of every row goes into cell i.
 *
 * One row after the other, so that a cell takes in its elements in their order, however many rows
 * are given at a time. Four rows, or eight where vectors are added, are joined in registers before
 * a cell is written; cells are walked in bands that stay in the first-level cache. A few cells
 * (NARROW at most) are kept in registers over all rows. Floats are added and multiplied in double.
 * Of equal elements the first is the least, of NaNs the first NaN. One pass over memory.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#if defined(KERNEL_IS_VECTORISED)
#include "kernels/cpu/levels/reduce_lanes.h"
#define HAS_WIDE true
#else
#define HAS_WIDE false
#endif

#define BAND   1024
#define NARROW 4

/* A row's type in which two elements are multiplied exactly, and four added. */
#define PART_i8  i16
#define PART_u8  u16
#define PART_i16 i32
#define PART_u16 u32
#define PART_i32 i64
#define PART_u32 u64
#define PART_u64 u64

/* BEGIN: cells before their first row, as what makes no difference to it: for extrema that row,
 * which may be taken in again. Returns how many rows they need not take in. */
#define ZEROS(value, n, at)      (memset(value, 0, (n) * sizeof(*(value))), 0)
#define ONES(value, n, at)       fill_u64(value, n, 1)
#define ONES_F64(value, n, at)   fill_f64(value, n, 1)
#define NO_SUM_YET(value, n, at) fill_f64(value, n, -0.0)
#define FIRST_ROW(value, n, at)  (memcpy(value, at, (n) * sizeof(*(value))), 1)
static inline size_t fill_u64(u64 *value, size_t n, u64 x)
{
    for (size_t i = 0; i < n; i++)
        value[i] = x;
    return 0;
}

static inline size_t fill_f64(f64 *value, size_t n, f64 x)
{
    for (size_t i = 0; i < n; i++)
        value[i] = x;
    return 0;
}

/* NEXT(v, a, i): a cell's value of one element more. Nothing is gained by vectors of so few cells
 * or of elements a stride apart, for which compilers make ten times as much code: so they do not
 * see where the next row is. */
#define ROWS_NARROW(name, T, R, NEXT, BEGIN)                                                       \
    static inline void name##_narrow_##T(const struct reduce_rows *rows, size_t n)                 \
    {                                                                                              \
        const char *at = rows->src;                                                                \
        const f64 *shift = rows->shift;                                                            \
        R v[NARROW] = {0}, *value = rows->value;                                                   \
        if (rows->is_first)                                                                        \
            (void)BEGIN(value, n, at);                                                             \
        memcpy(v, value, n * sizeof(R));                                                           \
        for (size_t r = 0; r < rows->n_rows; r++, at += rows->row_bytes) {                         \
            const T *as = (const T *)at;                                                           \
            __asm__("" : "+r"(as));                                                                \
            for (size_t i = 0; i < n; i++)                                                         \
                v[i] = NEXT(v[i], as[i], i);                                                       \
        }                                                                                          \
        memcpy(value, v, n * sizeof(R));                                                           \
        (void)shift;                                                                               \
    }
/* FOUR: joins elements of four rows in `v`. DONE: of the first cells, N_DONE(n) of them, in another
 * way, in which they begin as well. */
#define ROWS_BESIDE(name, T, R, NEXT, FOUR, DONE)                                                  \
    static inline void name##_four_##T(R *value, const f64 *shift, const char *at,                 \
                                       int64_t row_bytes, size_t n, bool is_first)                 \
    {                                                                                              \
        const T *as = (const T *)at, *bs = (const T *)(at + row_bytes);                            \
        const T *cs = (const T *)(at + 2 * row_bytes), *ds = (const T *)(at + 3 * row_bytes);      \
        size_t n_done = DONE(T, 4);                                                                \
        KERNEL_LOOP                                                                                \
        for (size_t i = n_done; i < n; i++) {                                                      \
            R v = value[i];                                                                        \
            FOUR(T, NEXT, i);                                                                      \
            value[i] = v;                                                                          \
        }                                                                                          \
        (void)shift, (void)is_first;                                                               \
    }                                                                                              \
    static inline void name##_one_##T(R *value, const f64 *shift, const char *at, size_t n,        \
                                      bool is_first)                                               \
    {                                                                                              \
        const T *as = (const T *)at;                                                               \
        const int64_t row_bytes = 0;                                                               \
        size_t n_done = DONE(T, 1);                                                                \
        KERNEL_LOOP                                                                                \
        for (size_t i = n_done; i < n; i++)                                                        \
            value[i] = NEXT(value[i], as[i], i);                                                   \
        (void)shift, (void)row_bytes, (void)is_first;                                              \
    }
#define ROWS_BANDS(name, T, R, BEGIN, DONE, N_DONE, IS_WIDE)                                       \
    static inline void name##_band_##T(const struct reduce_rows *rows, size_t begin, size_t n)     \
    {                                                                                              \
        int64_t row_bytes = rows->row_bytes;                                                       \
        const char *at = rows->src + begin * sizeof(T);                                            \
        const f64 *shift = rows->shift ? rows->shift + begin : NULL;                               \
        R *value = (R *)rows->value + begin;                                                       \
        size_t n_left = rows->n_rows;                                                              \
        bool is_first = rows->is_first;                                                            \
        if (is_first && BEGIN(value + N_DONE(n), n - N_DONE(n), at) && n_left % 4 != 0)            \
            n_left--, at += row_bytes;                                                             \
        for (; IS_WIDE && n_left >= 8; n_left -= 8, at += 8 * row_bytes, is_first = false) {       \
            size_t n_done = DONE(T, 8);                                                            \
            const f64 *s = shift ? shift + n_done : NULL;                                          \
            const char *from = at + n_done * sizeof(T);                                            \
            name##_four_##T(value + n_done, s, from, row_bytes, n - n_done, false);                \
            from += 4 * row_bytes;                                                                 \
            name##_four_##T(value + n_done, s, from, row_bytes, n - n_done, false);                \
        }                                                                                          \
        for (; n_left >= 4; n_left -= 4, at += 4 * row_bytes, is_first = false)                    \
            name##_four_##T(value, shift, at, row_bytes, n, is_first);                             \
        for (; n_left > 0; n_left--, at += row_bytes, is_first = false)                            \
            name##_one_##T(value, shift, at, n, is_first);                                         \
    }                                                                                              \
    static void name##_##T(const struct reduce_rows *rows)                                         \
    {                                                                                              \
        switch (rows->n_cells) {                                                                   \
        case 1: name##_narrow_##T(rows, 1); return;                                                \
        case 2: name##_narrow_##T(rows, 2); return;                                                \
        case 3: name##_narrow_##T(rows, 3); return;                                                \
        case 4: name##_narrow_##T(rows, 4); return;                                                \
        }                                                                                          \
        for (size_t i = 0; i < rows->n_cells; i += BAND)                                           \
            name##_band_##T(rows, i, rows->n_cells - i < BAND ? rows->n_cells - i : BAND);         \
    }

#define ROWS(name, T, R, NEXT, FOUR, BEGIN)                                                        \
    ROWS_NARROW(name, T, R, NEXT, BEGIN)                                                           \
    ROWS_BESIDE(name, T, R, NEXT, FOUR, NONE_DONE)                                                 \
    ROWS_BANDS(name, T, R, BEGIN, NONE_DONE, NONE_OF, false)
#define ROWS_ADDED(name, T, NEXT, DONE)                                                            \
    ROWS_NARROW(name, T, f64, NEXT, NO_SUM_YET)                                                    \
    ROWS_BESIDE(name, T, f64, NEXT, IN_TURN, DONE)                                                 \
    ROWS_BANDS(name, T, f64, NO_SUM_YET, DONE, VECTORS_OF, HAS_WIDE)
#define NONE_DONE(T, n_rows) 0
#define NONE_OF(n)           0

/* Of floats one after the other; of integers, of which any order is the same, narrow ones first. */
#define IN_TURN(T, NEXT, i)                                                                        \
    v = NEXT(v, as[i], i), v = NEXT(v, bs[i], i), v = NEXT(v, cs[i], i), v = NEXT(v, ds[i], i)
#define ADDED_FIRST(T, NEXT, i)                                                                    \
    v = NEXT(v, (PART_##T)((PART_##T)as[i] + bs[i] + (cs[i] + (PART_##T)ds[i])), i)
#define IN_PAIRS(T, NEXT, i)                                                                       \
    v = NEXT(v, (PART_##T)((PART_##T)as[i] * bs[i]), i),                                           \
    v = NEXT(v, (PART_##T)((PART_##T)cs[i] * ds[i]), i)

/* The same additions in vectors that load and convert in one step, which compilers do in two. */
#if defined(KERNEL_IS_VECTORISED)
#define ADD_ROWS(T)                                                                                \
    static ALWAYS_INLINE size_t add_rows_##T(f64 *value, const f64 *shift, const char *at,         \
                                             int64_t row_bytes, size_t n, size_t n_rows,           \
                                             bool is_first, bool is_squared)                       \
    {                                                                                              \
        addends one = get_one(), s[4];                                                             \
        size_t i = 0;                                                                              \
        for (; n - i >= 4 * LANES; i += 4 * LANES) {                                               \
            for (size_t k = 0; k < 4; k++)                                                         \
                s[k] = is_first ? -(addends){0} : load_f64(value + i + k * LANES);                 \
            for (size_t r = 0; r < n_rows; r++) {                                                  \
                const T *x = (const T *)(at + (int64_t)r * row_bytes) + i;                         \
                for (size_t k = 0; k < 4; k++) {                                                   \
                    addends a = load_##T(x + k * LANES);                                           \
                    if (shift)                                                                     \
                        a = a - load_f64(shift + i + k * LANES);                                   \
                    s[k] = is_squared ? s[k] + a * a : plus(a, s[k], one);                         \
                }                                                                                  \
            }                                                                                      \
            store_vectors(value + i, s, 4);                                                        \
        }                                                                                          \
        return i;                                                                                  \
    }
ADD_ROWS(f32)
ADD_ROWS(f64)
#define ELEMENTS_DONE(T, n_rows)                                                                   \
    add_rows_##T(value, NULL, at, row_bytes, n, n_rows, is_first, false)
#define DIFFERENCES_DONE(T, n_rows)                                                                \
    add_rows_##T(value, shift, at, row_bytes, n, n_rows, is_first, false)
#define SQUARES_DONE(T, n_rows) add_rows_##T(value, shift, at, row_bytes, n, n_rows, is_first, true)
#define VECTORS_OF(n)           ((n) - (n) % (4 * LANES))
#else
#define ELEMENTS_DONE    NONE_DONE
#define DIFFERENCES_DONE NONE_DONE
#define SQUARES_DONE     NONE_DONE
#define VECTORS_OF       NONE_OF
#endif

#define SUM(v, a, i)     ((v) + (f64)(a))
#define PRODUCT(v, a, i) ((v) * (f64)(a))
ROWS_ADDED(sum, f32, SUM, ELEMENTS_DONE)
ROWS_ADDED(sum, f64, SUM, ELEMENTS_DONE)
ROWS(prod, f32, f64, PRODUCT, IN_TURN, ONES_F64)
ROWS(prod, f64, f64, PRODUCT, IN_TURN, ONES_F64)

#define DIFFERENCES(v, a, i) ((v) + ((f64)(a)-shift[i]))
#define SQUARES(v, a, i)     ((v) + ((f64)(a)-shift[i]) * ((f64)(a)-shift[i]))
ROWS_ADDED(differences, f64, DIFFERENCES, DIFFERENCES_DONE)
ROWS_ADDED(squares, f32, SQUARES, SQUARES_DONE)
ROWS_ADDED(squares, f64, SQUARES, SQUARES_DONE)

/* Of float32 the elements themselves are added up beside the squares. */
#define DEVIATIONS(T, added)                                                                       \
    static void deviations_##T(const struct reduce_rows *rows)                                     \
    {                                                                                              \
        struct reduce_rows squares = *rows;                                                        \
        squares.value = rows->second;                                                              \
        added##_##T(rows);                                                                         \
        squares_##T(&squares);                                                                     \
    }
DEVIATIONS(f32, sum)
DEVIATIONS(f64, differences)

#define SUM_SIGNED(v, a, i)       ((v) + (u64)(i64)(a))
#define SUM_UNSIGNED(v, a, i)     ((v) + (u64)(a))
#define PRODUCT_SIGNED(v, a, i)   ((v) * (u64)(i64)(a))
#define PRODUCT_UNSIGNED(v, a, i) ((v) * (u64)(a))
#define INTEGERS(name, NAME, FOUR, BEGIN)                                                          \
    ROWS(name, i8, u64, NAME##_SIGNED, FOUR, BEGIN)                                                \
    ROWS(name, i16, u64, NAME##_SIGNED, FOUR, BEGIN)                                               \
    ROWS(name, i32, u64, NAME##_SIGNED, FOUR, BEGIN)                                               \
    ROWS(name, u8, u64, NAME##_UNSIGNED, FOUR, BEGIN)                                              \
    ROWS(name, u16, u64, NAME##_UNSIGNED, FOUR, BEGIN)                                             \
    ROWS(name, u32, u64, NAME##_UNSIGNED, FOUR, BEGIN)                                             \
    ROWS(name, u64, u64, NAME##_UNSIGNED, FOUR, BEGIN)
INTEGERS(sum, SUM, ADDED_FIRST, ZEROS)
INTEGERS(prod, PRODUCT, IN_PAIRS, ONES)

#define COUNT(v, a, i) ((v) + (u64)((a) != 0))
#define COUNTED_FIRST(T, NEXT, i)                                                                  \
    v += (WIDTH_##T)((as[i] != 0) + (bs[i] != 0) + (cs[i] != 0) + (ds[i] != 0))
#define WIDTH_u8  u8
#define WIDTH_u16 u16
#define WIDTH_u32 u32
#define WIDTH_u64 u64
#define WIDTH_f32 u32
#define WIDTH_f64 u64
#define COUNTS(T) ROWS(count, T, u64, COUNT, COUNTED_FIRST, ZEROS)
COUNTS(u8)
COUNTS(u16)
COUNTS(u32)
COUNTS(u64)
COUNTS(f32)
COUNTS(f64)

#define LEAST(v, a, i) ((a) < (v) ? (a) : (v))
#define MOST(v, a, i)  ((a) > (v) ? (a) : (v))
#define EXTREMA(T)                                                                                 \
    ROWS(min, T, T, LEAST, IN_TURN, FIRST_ROW)                                                     \
    ROWS(max, T, T, MOST, IN_TURN, FIRST_ROW)
EXTREMA(i8)
EXTREMA(i16)
EXTREMA(i32)
EXTREMA(i64)
EXTREMA(u8)
EXTREMA(u16)
EXTREMA(u32)
EXTREMA(u64)

#define LEAST_FLOAT(v, a, i) ((v) != (v) ? (v) : (a) >= (v) ? (v) : (a))
#define MOST_FLOAT(v, a, i)  ((v) != (v) ? (v) : (a) <= (v) ? (v) : (a))
ROWS(min, f32, f32, LEAST_FLOAT, IN_TURN, FIRST_ROW)
ROWS(min, f64, f64, LEAST_FLOAT, IN_TURN, FIRST_ROW)
ROWS(max, f32, f32, MOST_FLOAT, IN_TURN, FIRST_ROW)
ROWS(max, f64, f64, MOST_FLOAT, IN_TURN, FIRST_ROW)

/* clang-format off */
const rows_table KERNEL_SYMBOL(rows) = {
    [OP_SUM] = {[DTYPE_BOOL] = sum_u8, [DTYPE_INT8] = sum_i8, [DTYPE_INT16] = sum_i16,
                [DTYPE_INT32] = sum_i32, [DTYPE_INT64] = sum_u64, ROW_UNSIGNED(sum),
                ROW_FLOATS(sum)},
    [OP_PROD] = {[DTYPE_BOOL] = prod_u8, [DTYPE_INT8] = prod_i8, [DTYPE_INT16] = prod_i16,
                 [DTYPE_INT32] = prod_i32, [DTYPE_INT64] = prod_u64, ROW_UNSIGNED(prod),
                 ROW_FLOATS(prod)},
    [OP_MIN] = {[DTYPE_BOOL] = min_u8, ROW_SIGNED(min), ROW_UNSIGNED(min), ROW_FLOATS(min)},
    [OP_MAX] = {[DTYPE_BOOL] = max_u8, ROW_SIGNED(max), ROW_UNSIGNED(max), ROW_FLOATS(max)},
    [OP_COUNT_NONZERO] = {[DTYPE_BOOL] = count_u8, ROW_WIDTHS(count), ROW_FLOATS(count)},
    [OP_SQUARED_DEVIATIONS] = {ROW_FLOATS(deviations)},
};
/* clang-format on */
