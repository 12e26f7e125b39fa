/* Kernels that no vector unit helps: 64-bit integer division, powers, float division with floor
 * semantics. Compiled once, as part of the plain level.
 *
 * 64-bit divisors are pinned in a register between the check and the division: a source may be
 * memory that another process writes, and the compiler could read it twice. Float // and % follow
 * NumPy's npy_divmod step by step: the remainder is fmod's with the divisor's sign, the quotient is
 * (a - remainder) / b brought to the nearest whole number, zeros carry the sign of their divisor or
 * quotient. Integer powers wrap; a negative exponent anywhere in the strip is reported.
 */
#include "kernels/cpu/template.h"

#include <math.h>

#define PINNED(x) __asm__("" : "+r"(x))

#define DIVISION_64(T, is_unsafe, is_above)                                                        \
    static inline T divide_##T(T a, T b, T *ret_remainder)                                         \
    {                                                                                              \
        PINNED(a);                                                                                 \
        PINNED(b);                                                                                 \
        T safe = (is_unsafe) ? 1 : b;                                                              \
        T q = a / safe, r = a % safe;                                                              \
        *ret_remainder = (is_above) ? r + safe : r;                                                \
        return b == 0 ? 0 : q - (is_above);                                                        \
    }                                                                                              \
    static void count_zeros_##T(size_t n, const T *x, struct kernel_events *events)                \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            events->n_divide_by_zero += x[i] == 0;                                                 \
    }                                                                                              \
    static void floor_divide_##T(KERNEL_ARGS)                                                      \
    {                                                                                              \
        T *d = dst, unused;                                                                        \
        const T *as = pa, *bs = pb;                                                                \
        count_zeros_##T(n, bs, events);                                                            \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = divide_##T(as[i], bs[i], &unused);                                              \
    }                                                                                              \
    static void remainder_##T(KERNEL_ARGS)                                                         \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *as = pa, *bs = pb;                                                                \
        count_zeros_##T(n, bs, events);                                                            \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            T r;                                                                                   \
            divide_##T(as[i], bs[i], &r);                                                          \
            d[i] = r;                                                                              \
        }                                                                                          \
    }
DIVISION_64(i64, (b == 0) | ((b == -1) & (a == INT64_MIN)), (r != 0) & ((r ^ safe) < 0))
DIVISION_64(u64, b == 0, 0)

#define POWER(T, W)                                                                                \
    static inline T wrapped_power_##T(T a, T exponent)                                             \
    {                                                                                              \
        W base = a, result = 1;                                                                    \
        for (; exponent; exponent >>= 1) {                                                         \
            if (exponent & 1)                                                                      \
                result *= base;                                                                    \
            base *= base;                                                                          \
        }                                                                                          \
        return (T)result;                                                                          \
    }                                                                                              \
    BINARY(power, T, T, wrapped_power_##T(a, b))
POWER(u8, u32)
POWER(u16, u32)
POWER(u32, u32)
POWER(u64, u64)

#define POWER_SIGNED(S, T)                                                                         \
    static void power_##S(KERNEL_ARGS)                                                             \
    {                                                                                              \
        const S *bs = pb;                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            events->has_negative_power |= bs[i] < 0;                                               \
        if (!events->has_negative_power)                                                           \
            power_##T(n, dst, pa, pb, pc, events);                                                 \
    }
POWER_SIGNED(i8, u8)
POWER_SIGNED(i16, u16)
POWER_SIGNED(i32, u32)
POWER_SIGNED(i64, u64)

BINARY(power, f32, f32, powf(a, b))
BINARY(power, f64, f64, pow(a, b))

#define FLOAT_DIVISION(T, f)                                                                       \
    static T divmod_##T(T a, T b, T *ret_modulus)                                                  \
    {                                                                                              \
        T modulus = fmod##f(a, b);                                                                 \
        T quotient = (a - modulus) / b;                                                            \
        if (modulus != 0) { /* also NaN */                                                         \
            if ((b < 0) != (modulus < 0)) {                                                        \
                modulus += b;                                                                      \
                quotient -= 1;                                                                     \
            }                                                                                      \
        } else {                                                                                   \
            modulus = copysign##f(0, b);                                                           \
        }                                                                                          \
        *ret_modulus = modulus;                                                                    \
        if (quotient == 0)                                                                         \
            return copysign##f(0, a / b);                                                          \
        T whole = floor##f(quotient);                                                              \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }                                                                                              \
    static T floor_quotient_##T(T a, T b)                                                          \
    {                                                                                              \
        T modulus;                                                                                 \
        return b == 0 ? a / b : divmod_##T(a, b, &modulus);                                        \
    }                                                                                              \
    static T floor_modulus_##T(T a, T b)                                                           \
    {                                                                                              \
        T modulus;                                                                                 \
        if (b == 0)                                                                                \
            return fmod##f(a, b);                                                                  \
        divmod_##T(a, b, &modulus);                                                                \
        return modulus;                                                                            \
    }                                                                                              \
    BINARY(floor_divide, T, T, floor_quotient_##T(a, b))                                           \
    BINARY(remainder, T, T, floor_modulus_##T(a, b))
FLOAT_DIVISION(f32, f)
FLOAT_DIVISION(f64, )

const kernel_table scalar_kernels = {
    [OP_FLOOR_DIVIDE] = {[DTYPE_INT64] = floor_divide_i64,
                         [DTYPE_UINT64] = floor_divide_u64,
                         ROW_FLOATS(floor_divide)},
    [OP_REMAINDER] =
        {[DTYPE_INT64] = remainder_i64, [DTYPE_UINT64] = remainder_u64, ROW_FLOATS(remainder)},
    [OP_POWER] = {ROW_SIGNED(power), ROW_UNSIGNED(power), ROW_FLOATS(power)},
};
