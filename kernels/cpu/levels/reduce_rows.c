/* Reductions of rows whose elements belong to cells: element i of every row goes into cell i.
 *
 * One row after the other, so that a cell takes in its elements in their order, however many rows
 * are given at a time. Four rows, or eight where vectors are added, are joined in registers before
 * a cell is written; cells are walked in bands that stay in the first-level cache. A few cells
 * (NARROW at most) are kept in registers over all rows. Floats are added and multiplied in double.
 * Of equal elements the first is the least, of NaNs the first NaN. One pass over memory.
 */
#include "kernels/cpu/levels/template.h"

#if defined(KERNEL_IS_VECTORISED)
#include "kernels/cpu/levels/reduce_lanes.h"
#define HAS_WIDE true
#else
#define HAS_WIDE false
#endif

#define BAND   1024
#define NARROW 4

/* FIRST(a, i): a cell's value of its first element; NEXT(v, a, i): of one more. */
#define ROWS_NARROW(name, T, R, FIRST, NEXT)                                                       \
    static inline void name##_narrow_##T(const struct reduce_rows *rows, size_t n)                 \
    {                                                                                              \
        const char *at = rows->src;                                                                \
        const f64 *shift = rows->shift;                                                            \
        R v[NARROW] = {0}, *value = rows->value;                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            v[i] = rows->is_first ? FIRST(((const T *)at)[i], i) : value[i];                       \
        for (size_t r = rows->is_first; r < rows->n_rows; r++) {                                   \
            const T *as = (const T *)(at + (int64_t)r * rows->row_bytes);                          \
            for (size_t i = 0; i < n; i++)                                                         \
                v[i] = NEXT(v[i], as[i], i);                                                       \
        }                                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            value[i] = v[i];                                                                       \
        (void)shift;                                                                               \
    }
/* Several rows; is_first: the first of them begins the cells. DONE: of the first cells in another
 * way, returns how many. */
#define ROWS_BESIDE(name, T, R, FIRST, NEXT, DONE)                                                 \
    static inline void name##_four_##T(R *value, const f64 *shift, const char *at,                 \
                                       int64_t row_bytes, size_t n, bool is_first)                 \
    {                                                                                              \
        const T *as = (const T *)at, *bs = (const T *)(at + row_bytes);                            \
        const T *cs = (const T *)(at + 2 * row_bytes), *ds = (const T *)(at + 3 * row_bytes);      \
        size_t n_done = DONE(T, 4);                                                                \
        KERNEL_LOOP                                                                                \
        for (size_t i = n_done; i < n; i++) {                                                      \
            R v = is_first ? FIRST(as[i], i) : NEXT(value[i], as[i], i);                           \
            v = NEXT(v, bs[i], i);                                                                 \
            v = NEXT(v, cs[i], i);                                                                 \
            v = NEXT(v, ds[i], i);                                                                 \
            value[i] = v;                                                                          \
        }                                                                                          \
        (void)shift;                                                                               \
    }                                                                                              \
    static inline void name##_one_##T(R *value, const f64 *shift, const char *at, size_t n,        \
                                      bool is_first)                                               \
    {                                                                                              \
        const T *as = (const T *)at;                                                               \
        const int64_t row_bytes = 0;                                                               \
        size_t n_done = DONE(T, 1);                                                                \
        KERNEL_LOOP                                                                                \
        for (size_t i = n_done; i < n; i++)                                                        \
            value[i] = is_first ? FIRST(as[i], i) : NEXT(value[i], as[i], i);                      \
        (void)shift, (void)row_bytes;                                                              \
    }
#define ROWS_BANDS(name, T, R, DONE, IS_WIDE)                                                      \
    static inline void name##_band_##T(const struct reduce_rows *rows, size_t begin, size_t n)     \
    {                                                                                              \
        int64_t row_bytes = rows->row_bytes;                                                       \
        const char *at = rows->src + begin * sizeof(T);                                            \
        const f64 *shift = rows->shift ? rows->shift + begin : NULL;                               \
        R *value = (R *)rows->value + begin;                                                       \
        size_t n_left = rows->n_rows;                                                              \
        bool is_first = rows->is_first;                                                            \
        for (; IS_WIDE && n_left >= 8; n_left -= 8, at += 8 * row_bytes, is_first = false) {       \
            size_t n_done = DONE(T, 8);                                                            \
            const f64 *s = shift ? shift + n_done : NULL;                                          \
            const char *from = at + n_done * sizeof(T);                                            \
            name##_four_##T(value + n_done, s, from, row_bytes, n - n_done, is_first);             \
            from += 4 * row_bytes;                                                                 \
            name##_four_##T(value + n_done, s, from, row_bytes, n - n_done, false);                \
        }                                                                                          \
        for (; n_left >= 4; n_left -= 4, at += 4 * row_bytes, is_first = false)                    \
            if (is_first)                                                                          \
                name##_four_##T(value, shift, at, row_bytes, n, true);                             \
            else                                                                                   \
                name##_four_##T(value, shift, at, row_bytes, n, false);                            \
        for (; n_left > 0; n_left--, at += row_bytes, is_first = false)                            \
            if (is_first)                                                                          \
                name##_one_##T(value, shift, at, n, true);                                         \
            else                                                                                   \
                name##_one_##T(value, shift, at, n, false);                                        \
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

#define ROWS(name, T, R, FIRST, NEXT)                                                              \
    ROWS_NARROW(name, T, R, FIRST, NEXT)                                                           \
    ROWS_BESIDE(name, T, R, FIRST, NEXT, NONE_DONE)                                                \
    ROWS_BANDS(name, T, R, NONE_DONE, false)
#define ROWS_ADDED(name, T, FIRST, NEXT, DONE)                                                     \
    ROWS_NARROW(name, T, f64, FIRST, NEXT)                                                         \
    ROWS_BESIDE(name, T, f64, FIRST, NEXT, DONE)                                                   \
    ROWS_BANDS(name, T, f64, DONE, HAS_WIDE)
#define NONE_DONE(T, n_rows) 0

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
#else
#define ELEMENTS_DONE    NONE_DONE
#define DIFFERENCES_DONE NONE_DONE
#define SQUARES_DONE     NONE_DONE
#endif

#define FLOAT_OF(a, i)   ((f64)(a))
#define SUM(v, a, i)     ((v) + (f64)(a))
#define PRODUCT(v, a, i) ((v) * (f64)(a))
ROWS_ADDED(sum, f32, FLOAT_OF, SUM, ELEMENTS_DONE)
ROWS_ADDED(sum, f64, FLOAT_OF, SUM, ELEMENTS_DONE)
ROWS(prod, f32, f64, FLOAT_OF, PRODUCT)
ROWS(prod, f64, f64, FLOAT_OF, PRODUCT)

#define DIFFERENCE(a, i)     ((f64)(a)-shift[i])
#define DIFFERENCES(v, a, i) ((v) + ((f64)(a)-shift[i]))
#define SQUARE(a, i)         (((f64)(a)-shift[i]) * ((f64)(a)-shift[i]))
#define SQUARES(v, a, i)     ((v) + ((f64)(a)-shift[i]) * ((f64)(a)-shift[i]))
ROWS_ADDED(differences, f64, DIFFERENCE, DIFFERENCES, DIFFERENCES_DONE)
ROWS_ADDED(squares, f32, SQUARE, SQUARES, SQUARES_DONE)
ROWS_ADDED(squares, f64, SQUARE, SQUARES, SQUARES_DONE)

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

#define SIGNED_OF(a, i)           ((u64)(i64)(a))
#define UNSIGNED_OF(a, i)         ((u64)(a))
#define SUM_SIGNED(v, a, i)       ((v) + (u64)(i64)(a))
#define SUM_UNSIGNED(v, a, i)     ((v) + (u64)(a))
#define PRODUCT_SIGNED(v, a, i)   ((v) * (u64)(i64)(a))
#define PRODUCT_UNSIGNED(v, a, i) ((v) * (u64)(a))
#define INTEGERS(name, NAME)                                                                       \
    ROWS(name, i8, u64, SIGNED_OF, NAME##_SIGNED)                                                  \
    ROWS(name, i16, u64, SIGNED_OF, NAME##_SIGNED)                                                 \
    ROWS(name, i32, u64, SIGNED_OF, NAME##_SIGNED)                                                 \
    ROWS(name, u8, u64, UNSIGNED_OF, NAME##_UNSIGNED)                                              \
    ROWS(name, u16, u64, UNSIGNED_OF, NAME##_UNSIGNED)                                             \
    ROWS(name, u32, u64, UNSIGNED_OF, NAME##_UNSIGNED)                                             \
    ROWS(name, u64, u64, UNSIGNED_OF, NAME##_UNSIGNED)
INTEGERS(sum, SUM)
INTEGERS(prod, PRODUCT)

#define NONZERO(a, i)  ((u64)((a) != 0))
#define COUNT(v, a, i) ((v) + (u64)((a) != 0))
ROWS(count, u8, u64, NONZERO, COUNT)
ROWS(count, u16, u64, NONZERO, COUNT)
ROWS(count, u32, u64, NONZERO, COUNT)
ROWS(count, u64, u64, NONZERO, COUNT)
ROWS(count, f32, u64, NONZERO, COUNT)
ROWS(count, f64, u64, NONZERO, COUNT)

#define SAME(a, i)     (a)
#define LEAST(v, a, i) ((a) < (v) ? (a) : (v))
#define MOST(v, a, i)  ((a) > (v) ? (a) : (v))
#define EXTREMA(T)                                                                                 \
    ROWS(min, T, T, SAME, LEAST)                                                                   \
    ROWS(max, T, T, SAME, MOST)
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
ROWS(min, f32, f32, SAME, LEAST_FLOAT)
ROWS(min, f64, f64, SAME, LEAST_FLOAT)
ROWS(max, f32, f32, SAME, MOST_FLOAT)
ROWS(max, f64, f64, SAME, MOST_FLOAT)

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
