/* The plain level of what the vectorised levels do by other means: division of floats and of 64-bit
 * integers, divisors, powers. One element after the other, by libm and the processor's division.
 *
 * 64-bit divisors are pinned in a register between the check and the division: a source may be
 * memory that another process writes, and the compiler could read it twice. Float // and % follow
 * NumPy's npy_divmod step by step: the remainder is fmod's (modulus.h) with the divisor's sign, the
 * quotient is (a - remainder) / b brought to the nearest whole number, zeros carry the sign of
 * their divisor or quotient. Integer powers wrap; a negative exponent anywhere in the strip is
 * reported.
 */
#include "kernels/cpu/levels/modulus.h"
#include "kernels/cpu/levels/template.h"

#include <math.h>

#define PINNED(x) __asm__("" : "+r"(x))

#define DIVISION_KERNEL(name, T, function)                                                         \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *as = pa, *bs = pb;                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            events->n_divide_by_zero += bs[i] == 0;                                                \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = function(as[i], bs[i]);                                                         \
    }

#define DIVISION_64(T, is_unsafe, is_above)                                                        \
    static inline T truncated_##T(T a, T b, T *ret_remainder)                                      \
    {                                                                                              \
        PINNED(a);                                                                                 \
        PINNED(b);                                                                                 \
        T safe = (is_unsafe) ? 1 : b;                                                              \
        *ret_remainder = a % safe;                                                                 \
        return a / safe;                                                                           \
    }                                                                                              \
    static T floor_quotient_##T(T a, T b)                                                          \
    {                                                                                              \
        T r, q = truncated_##T(a, b, &r);                                                          \
        return b == 0 ? 0 : q - (is_above);                                                        \
    }                                                                                              \
    static T floor_remainder_##T(T a, T b)                                                         \
    {                                                                                              \
        T r;                                                                                       \
        truncated_##T(a, b, &r);                                                                   \
        return (is_above) ? r + b : r;                                                             \
    }                                                                                              \
    static T remainder_of_##T(T a, T b)                                                            \
    {                                                                                              \
        T r;                                                                                       \
        truncated_##T(a, b, &r);                                                                   \
        return r;                                                                                  \
    }                                                                                              \
    DIVISION_KERNEL(floor_divide, T, floor_quotient_##T)                                           \
    DIVISION_KERNEL(remainder, T, floor_remainder_##T)                                             \
    DIVISION_KERNEL(fmod, T, remainder_of_##T)
DIVISION_64(i64, (b == 0) | ((b == -1) & (a == INT64_MIN)), (r != 0) & ((r ^ b) < 0))
DIVISION_64(u64, b == 0, 0)

/* Euclid's; the least integer's magnitude wraps. */
static u64 gcd(u64 a, u64 b)
{
    while (b) {
        u64 r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static u64 lcm(u64 a, u64 b)
{
    u64 divisor = gcd(a, b);
    return divisor ? a / divisor * b : 0;
}

#define DIVISORS(S, U)                                                                             \
    static u64 magnitude_##S(S a)                                                                  \
    {                                                                                              \
        return a < 0 ? 0 - (u64)a : (u64)a;                                                        \
    }                                                                                              \
    BINARY(gcd, S, S, gcd(magnitude_##S(a), magnitude_##S(b)))                                     \
    BINARY(gcd, U, U, gcd(a, b))                                                                   \
    BINARY(lcm, S, S, lcm(magnitude_##S(a), magnitude_##S(b)))                                     \
    BINARY(lcm, U, U, lcm(a, b))
DIVISORS(i8, u8)
DIVISORS(i16, u16)
DIVISORS(i32, u32)
DIVISORS(i64, u64)

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

/* libm's, whose time grows with the ratio, only where the answer is known at once. */
#define FLOAT_DIVISION(T, f)                                                                       \
    static T fmod_of_##T(T a, T b)                                                                 \
    {                                                                                              \
        if (!isfinite(a) || !isfinite(b) || b == 0)                                                \
            return fmod##f(a, b);                                                                  \
        return copysign##f((T)modulus_of(fabs##f(a), fabs##f(b)), a);                              \
    }                                                                                              \
    static T divmod_##T(T a, T b, T *ret_modulus)                                                  \
    {                                                                                              \
        T modulus = fmod_of_##T(a, b);                                                             \
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
    BINARY(remainder, T, T, floor_modulus_##T(a, b))                                               \
    BINARY(fmod, T, T, fmod_of_##T(a, b))
FLOAT_DIVISION(f32, f)
FLOAT_DIVISION(f64, )

/* clang-format off */
const kernel_table scalar_kernels = {
    [OP_FLOOR_DIVIDE] = {[DTYPE_INT64] = floor_divide_i64, [DTYPE_UINT64] = floor_divide_u64,
                         ROW_FLOATS(floor_divide)},
    [OP_REMAINDER] = {[DTYPE_INT64] = remainder_i64, [DTYPE_UINT64] = remainder_u64,
                      ROW_FLOATS(remainder)},
    [OP_FMOD] = {[DTYPE_INT64] = fmod_i64, [DTYPE_UINT64] = fmod_u64, ROW_FLOATS(fmod)},
    [OP_GCD] = {ROW_SIGNED(gcd), ROW_UNSIGNED(gcd)},
    [OP_LCM] = {ROW_SIGNED(lcm), ROW_UNSIGNED(lcm)},
    [OP_POWER] = {ROW_SIGNED(power), ROW_UNSIGNED(power)},
};
/* clang-format on */
