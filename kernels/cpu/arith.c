/* Arithmetic on floats and integers, and what selects or copies.
 *
 * Integers wrap around; where the sign does not matter one kernel serves both of a width. MINIMUM
 * and MAXIMUM propagate NaN, FMIN and FMAX prefer a number; of equal ones the second is taken.
 * Each kernel reads its sources once and writes once; all operations are exactly rounded, so that
 * every level gives the same bits. Reached through the tables of kernels.h.
 */
#include "kernels/cpu/template.h"

FOR_WIDTHS(BINARY, add, a + b)
FOR_FLOATS(BINARY, add, a + b)
FOR_WIDTHS(BINARY, subtract, a - b)
FOR_FLOATS(BINARY, subtract, a - b)
FOR_WIDTHS(BINARY, multiply, a *b)
FOR_FLOATS(BINARY, multiply, a *b)
FOR_FLOATS(BINARY, divide, a / b)

FOR_WIDTHS(UNARY, negative, -a)
FOR_FLOATS(UNARY, negative, -a)
FOR_WIDTHS(UNARY, square, a *a)
FOR_FLOATS(UNARY, square, a *a)
FOR_WIDTHS(UNARY, copy, a)

/* -a in unsigned arithmetic: the least integer stays what it is. */
UNARY(absolute, i8, u8, a < 0 ? -(u8)a : (u8)a)
UNARY(absolute, i16, u16, a < 0 ? -(u16)a : (u16)a)
UNARY(absolute, i32, u32, a < 0 ? -(u32)a : (u32)a)
UNARY(absolute, i64, u64, a < 0 ? -(u64)a : (u64)a)
UNARY(absolute, f32, f32, __builtin_fabsf(a))
UNARY(absolute, f64, f64, __builtin_fabs(a))

UNARY(sqrt, f32, f32, __builtin_sqrtf(a))
UNARY(sqrt, f64, f64, __builtin_sqrt(a))

FOR_WIDTHS(BINARY, minimum, a < b ? a : b)
FOR_SIGNED(BINARY, minimum, a < b ? a : b)
FOR_FLOATS(BINARY, minimum, ((a < b) | (a != a)) ? a : b)
FOR_WIDTHS(BINARY, maximum, a > b ? a : b)
FOR_SIGNED(BINARY, maximum, a > b ? a : b)
FOR_FLOATS(BINARY, maximum, ((a > b) | (a != a)) ? a : b)
FOR_FLOATS(BINARY, fmin, ((a < b) | (b != b)) ? a : b)
FOR_FLOATS(BINARY, fmax, ((a > b) | (b != b)) ? a : b)

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
WHERE(u8)
WHERE(u16)
WHERE(u32)
WHERE(u64)

/* clang-format off */
const kernel_table KERNEL_SYMBOL(arith) = {
    [OP_ADD] = {ROW_WIDTHS(add), ROW_FLOATS(add)},
    [OP_SUBTRACT] = {ROW_WIDTHS(subtract), ROW_FLOATS(subtract)},
    [OP_MULTIPLY] = {ROW_WIDTHS(multiply), ROW_FLOATS(multiply)},
    [OP_DIVIDE] = {ROW_FLOATS(divide)},
    [OP_NEGATIVE] = {ROW_WIDTHS(negative), ROW_FLOATS(negative)},
    [OP_SQUARE] = {ROW_WIDTHS(square), ROW_FLOATS(square)},
    [OP_ABSOLUTE] = {ROW_SIGNED(absolute), ROW_UNSIGNED(copy), ROW_FLOATS(absolute)},
    [OP_SQRT] = {ROW_FLOATS(sqrt)},
    [OP_MINIMUM] = {ROW_SIGNED(minimum), ROW_UNSIGNED(minimum), ROW_FLOATS(minimum)},
    [OP_MAXIMUM] = {ROW_SIGNED(maximum), ROW_UNSIGNED(maximum), ROW_FLOATS(maximum)},
    [OP_FMIN] = {ROW_FLOATS(fmin)},
    [OP_FMAX] = {ROW_FLOATS(fmax)},
    [OP_WHERE] = {[DTYPE_BOOL] = where_u8, ROW_WIDTHS(where), [DTYPE_FLOAT32] = where_u32,
                  [DTYPE_FLOAT64] = where_u64},
};
/* clang-format on */
