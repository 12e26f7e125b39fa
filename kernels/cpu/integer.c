/* Integers only: bitwise operations, shifts, division with floor semantics.
 *
 * Division never traps: by zero it gives 0 and counts the element; the least integer by -1 gives
 * itself, remainder 0. Up to 32 bits it is done in floating point, which vectorises: the quotient
 * of two such integers, rounded to a double (to a float for 16 bits), truncates to the integer
 * quotient exactly, because a quotient that is not whole is further from the next whole number
 * than the rounding reaches. 64-bit division is in scalar.c. Shifts by the width or more, or by a
 * negative count, give 0, or -1 for negative values moved down.
 */
#include "kernels/cpu/template.h"

FOR_WIDTHS(BINARY, bit_and, a &b)
FOR_WIDTHS(BINARY, bit_or, a | b)
FOR_WIDTHS(BINARY, bit_xor, a ^ b)
FOR_WIDTHS(UNARY, invert, ~a)
UNARY(bool_not, u8, u8, a ^ 1)

/* The count is masked for the shift itself, so that it is defined; the selection comes after. */
#define SHIFT_LEFT(T, bits) BINARY(left_shift, T, T, b < bits ? (T)(a << (b & (bits - 1))) : (T)0)
SHIFT_LEFT(u8, 8)
SHIFT_LEFT(u16, 16)
SHIFT_LEFT(u32, 32)
SHIFT_LEFT(u64, 64)

#define SHIFT_RIGHT(S, T, bits)                                                                    \
    BINARY(right_shift, T, T, b < bits ? (T)(a >> (b & (bits - 1))) : (T)0)                        \
    BINARY(right_shift, S, S, a >> ((T)b < bits ? b : bits - 1))
SHIFT_RIGHT(i8, u8, 8)
SHIFT_RIGHT(i16, u16, 16)
SHIFT_RIGHT(i32, u32, 32)
SHIFT_RIGHT(i64, u64, 64)

#define COUNT_ZEROS(T)                                                                             \
    static u64 count_zeros_##T(size_t n, const T *x)                                               \
    {                                                                                              \
        u64 n_zeros = 0;                                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            n_zeros += x[i] == 0;                                                                  \
        return n_zeros;                                                                            \
    }
COUNT_ZEROS(u8)
COUNT_ZEROS(u16)
COUNT_ZEROS(u32)

/* F holds quotients of T well enough (see above), W is the integer that F converts to. `safe` is a
 * divisor that gives a defined result; is_above: the truncated quotient is one above the floor. */
#define DIVISION(T, U, F, W, is_unsafe, is_above)                                                  \
    static inline T divide_##T(T a, T b, T *ret_remainder)                                         \
    {                                                                                              \
        T safe = (is_unsafe) ? 1 : b;                                                              \
        T q = (T)(W)((F)a / (F)safe);                                                              \
        T r = (T)(a - (T)(q * safe));                                                              \
        *ret_remainder = (T)((is_above) ? r + safe : r);                                           \
        T below = (T)(q - 1);                                                                      \
        q = (is_above) ? below : q;                                                                \
        return b == 0 ? 0 : q;                                                                     \
    }                                                                                              \
    static void floor_divide_##T(KERNEL_ARGS)                                                      \
    {                                                                                              \
        T *d = dst, unused;                                                                        \
        const T *as = pa, *bs = pb;                                                                \
        events->n_divide_by_zero += count_zeros_##U(n, pb);                                        \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = divide_##T(as[i], bs[i], &unused);                                              \
    }                                                                                              \
    static void remainder_##T(KERNEL_ARGS)                                                         \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *as = pa, *bs = pb;                                                                \
        events->n_divide_by_zero += count_zeros_##U(n, pb);                                        \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T r;                                                                                   \
            divide_##T(as[i], bs[i], &r);                                                          \
            d[i] = r;                                                                              \
        }                                                                                          \
    }
#define DIVISION_SIGNED(T, U, F, least)                                                            \
    DIVISION(T, U, F, i32, (b == 0) | ((b == -1) & (a == least)), (r != 0) & ((r ^ safe) < 0))
DIVISION_SIGNED(i8, u8, f32, INT8_MIN)
DIVISION_SIGNED(i16, u16, f32, INT16_MIN)
DIVISION_SIGNED(i32, u32, f64, INT32_MIN)
DIVISION(u8, u8, f32, i32, b == 0, 0)
DIVISION(u16, u16, f32, i32, b == 0, 0)
DIVISION(u32, u32, f64, i64, b == 0, 0)

#define ROW_DIVISION(name)                                                                         \
    [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16, [DTYPE_INT32] = name##_i32,              \
    [DTYPE_UINT8] = name##_u8, [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32

/* clang-format off */
const kernel_table KERNEL_SYMBOL(integer) = {
    [OP_BITWISE_AND] = {[DTYPE_BOOL] = bit_and_u8, ROW_WIDTHS(bit_and)},
    [OP_BITWISE_OR] = {[DTYPE_BOOL] = bit_or_u8, ROW_WIDTHS(bit_or)},
    [OP_BITWISE_XOR] = {[DTYPE_BOOL] = bit_xor_u8, ROW_WIDTHS(bit_xor)},
    [OP_INVERT] = {[DTYPE_BOOL] = bool_not_u8, ROW_WIDTHS(invert)},
    [OP_LEFT_SHIFT] = {ROW_WIDTHS(left_shift)},
    [OP_RIGHT_SHIFT] = {ROW_SIGNED(right_shift), ROW_UNSIGNED(right_shift)},
    [OP_FLOOR_DIVIDE] = {ROW_DIVISION(floor_divide)},
    [OP_REMAINDER] = {ROW_DIVISION(remainder)},
};
/* clang-format on */
