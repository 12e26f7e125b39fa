/* Arithmetic on floats and integers, and what selects or copies.
 *
 * Integers wrap around; where the sign does not matter one kernel serves both of a width. MINIMUM
 * and MAXIMUM propagate NaN, FMIN and FMAX prefer a number; of equal ones the second is taken.
 * Each kernel reads its sources once and writes once; all operations are exactly rounded, so that
 * every level gives the same bits. Reached through the tables of kernels.h: these are the functions
 * that are faster than memory, so all of them have a twin that stores past the cache.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/template.h"
#if defined(KERNEL_VECTOR_BYTES) && KERNEL_VECTOR_BYTES == 64
#include "kernels/cpu/levels/root.h"
#endif

#if defined(KERNEL_HAS_LINES)
#define UNARY_BOTH(name, T, R, expression)                                                         \
    UNARY(name, T, R, expression) UNARY_PAST(past_##name, T, R, expression)
#define BINARY_BOTH(name, T, R, expression)                                                        \
    BINARY(name, T, R, expression) BINARY_PAST(past_##name, T, R, expression)
#else
#define UNARY_BOTH  UNARY
#define BINARY_BOTH BINARY
#endif

FOR_WIDTHS(BINARY_BOTH, add, a + b)
FOR_FLOATS(BINARY_BOTH, add, a + b)
FOR_WIDTHS(BINARY_BOTH, subtract, a - b)
FOR_FLOATS(BINARY_BOTH, subtract, a - b)
FOR_WIDTHS(BINARY_BOTH, multiply, a *b)
FOR_FLOATS(BINARY_BOTH, multiply, a *b)
FOR_FLOATS(BINARY_BOTH, divide, a / b)

FOR_WIDTHS(UNARY_BOTH, negative, -a)
FOR_FLOATS(UNARY_BOTH, negative, -a)
FOR_WIDTHS(UNARY_BOTH, square, a *a)
FOR_FLOATS(UNARY_BOTH, square, a *a)
FOR_WIDTHS(UNARY_BOTH, copy, a)

/* -a in unsigned arithmetic: the least integer stays what it is. */
UNARY_BOTH(absolute, i8, u8, a < 0 ? -(u8)a : (u8)a)
UNARY_BOTH(absolute, i16, u16, a < 0 ? -(u16)a : (u16)a)
UNARY_BOTH(absolute, i32, u32, a < 0 ? -(u32)a : (u32)a)
UNARY_BOTH(absolute, i64, u64, a < 0 ? -(u64)a : (u64)a)
UNARY_BOTH(absolute, f32, f32, __builtin_fabsf(a))
UNARY_BOTH(absolute, f64, f64, __builtin_fabs(a))

UNARY_BOTH(sqrt, f32, f32, __builtin_sqrtf(a))
#if !defined(KERNEL_VECTOR_BYTES) || KERNEL_VECTOR_BYTES < 64
UNARY_BOTH(sqrt, f64, f64, __builtin_sqrt(a))
#endif

FOR_WIDTHS(BINARY_BOTH, minimum, a < b ? a : b)
FOR_SIGNED(BINARY_BOTH, minimum, a < b ? a : b)
FOR_FLOATS(BINARY_BOTH, minimum, ((a < b) | (a != a)) ? a : b)
FOR_WIDTHS(BINARY_BOTH, maximum, a > b ? a : b)
FOR_SIGNED(BINARY_BOTH, maximum, a > b ? a : b)
FOR_FLOATS(BINARY_BOTH, maximum, ((a > b) | (a != a)) ? a : b)
FOR_FLOATS(BINARY_BOTH, fmin, ((a < b) | (b != b)) ? a : b)
FOR_FLOATS(BINARY_BOTH, fmax, ((a > b) | (b != b)) ? a : b)

/* pa: bool, pb and pc: the same width. */
#define WHERE(T)                                                                                   \
    static void where_##T(KERNEL_ARGS)                                                             \
    {                                                                                              \
        T *d = dst;                                                                                \
        const u8 *conditions = pa;                                                                 \
        const T *bs = pb, *cs = pc;                                                                \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T b = bs[i], c = cs[i];                                                                \
            d[i] = conditions[i] ? b : c;                                                          \
        }                                                                                          \
    }
#define WHERE_PAST(T)                                                                              \
    static void past_where_##T(KERNEL_ARGS)                                                        \
    {                                                                                              \
        T *d = dst;                                                                                \
        const u8 *conditions = pa;                                                                 \
        const T *bs = pb, *cs = pc;                                                                \
        for (size_t k = 0; k < n; k += KERNEL_GRANULE) {                                           \
            T block[KERNEL_GRANULE] __attribute__((aligned(LINE_BYTES)));                          \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                T b = bs[k + i], c = cs[k + i];                                                    \
                block[i] = conditions[k + i] ? b : c;                                              \
            }                                                                                      \
            lines_stream(d + k, block, sizeof(block));                                             \
        }                                                                                          \
    }
WHERE(u8)
WHERE(u16)
WHERE(u32)
WHERE(u64)
#if defined(KERNEL_HAS_LINES)
WHERE_PAST(u8)
WHERE_PAST(u16)
WHERE_PAST(u32)
WHERE_PAST(u64)
#endif

/* clang-format off */
#define ROWS(prefix) {                                                                             \
    [OP_ADD] = {ROW_WIDTHS(prefix##add), ROW_FLOATS(prefix##add)},                                 \
    [OP_SUBTRACT] = {ROW_WIDTHS(prefix##subtract), ROW_FLOATS(prefix##subtract)},                  \
    [OP_MULTIPLY] = {ROW_WIDTHS(prefix##multiply), ROW_FLOATS(prefix##multiply)},                  \
    [OP_DIVIDE] = {ROW_FLOATS(prefix##divide)},                                                    \
    [OP_NEGATIVE] = {ROW_WIDTHS(prefix##negative), ROW_FLOATS(prefix##negative)},                  \
    [OP_SQUARE] = {ROW_WIDTHS(prefix##square), ROW_FLOATS(prefix##square)},                        \
    [OP_ABSOLUTE] = {ROW_SIGNED(prefix##absolute), ROW_UNSIGNED(prefix##copy),                     \
                     ROW_FLOATS(prefix##absolute)},                                                \
    [OP_SQRT] = {ROW_FLOATS(prefix##sqrt)},                                                        \
    [OP_MINIMUM] = {ROW_SIGNED(prefix##minimum), ROW_UNSIGNED(prefix##minimum),                    \
                    ROW_FLOATS(prefix##minimum)},                                                  \
    [OP_MAXIMUM] = {ROW_SIGNED(prefix##maximum), ROW_UNSIGNED(prefix##maximum),                    \
                    ROW_FLOATS(prefix##maximum)},                                                  \
    [OP_FMIN] = {ROW_FLOATS(prefix##fmin)},                                                        \
    [OP_FMAX] = {ROW_FLOATS(prefix##fmax)},                                                        \
    [OP_WHERE] = {[DTYPE_BOOL] = prefix##where_u8, ROW_WIDTHS(prefix##where),                      \
                  [DTYPE_FLOAT32] = prefix##where_u32, [DTYPE_FLOAT64] = prefix##where_u64},       \
}
const kernel_table KERNEL_SYMBOL(arith) = ROWS();
#if defined(KERNEL_HAS_LINES)
const kernel_table KERNEL_SYMBOL(past) = ROWS(past_);
#else
const kernel_table KERNEL_SYMBOL(past) = {[OP_ADD] = {NULL}};
#endif
/* clang-format on */
