/* Integers: division, divisors, powers, counts of bits, and floats that become integers. The CPU
 * engine's rules (kernels/cpu/levels/integer.c, cast.c): nothing traps and everything is defined,
 * on the host too. Division by zero gives 0; the least integer by -1 gives itself, remainder 0. */
#pragma once

#include "kernels/cuda/device/device.h"

#if defined(__CUDACC__)
#define count_bits_u32(x) ((u32)__popc(x))
#define count_bits_u64(x) ((u32)__popcll(x))
#else
#define count_bits_u32(x) ((u32)__builtin_popcount(x))
#define count_bits_u64(x) ((u32)__builtin_popcountll(x))
#endif

/* W: the type to divide in. A quotient is first the truncated one; is_above: it is above the
 * floor. The remainder of a division by zero is 0 too. */
#define DIVISION(T, W, is_overflow, is_above)                                                      \
    DEVICE T floor_divide_##T(T a, T b)                                                            \
    {                                                                                              \
        bool is_unsafe = b == 0 || (is_overflow);                                                  \
        W safe = is_unsafe ? (W)1 : (W)b, q = (W)a / safe, r = (W)a - q * safe;                    \
        q -= (r != 0) & (is_above);                                                                \
        return b == 0 ? (T)0 : (T)q;                                                               \
    }                                                                                              \
    DEVICE T remainder_##T(T a, T b)                                                               \
    {                                                                                              \
        bool is_unsafe = b == 0 || (is_overflow);                                                  \
        W safe = is_unsafe ? (W)1 : (W)b, r = (W)a % safe;                                         \
        return (T)((r != 0 && (is_above)) ? r + safe : r);                                         \
    }                                                                                              \
    DEVICE T fmod_##T(T a, T b)                                                                    \
    {                                                                                              \
        bool is_unsafe = b == 0 || (is_overflow);                                                  \
        W safe = is_unsafe ? (W)1 : (W)b;                                                          \
        return (T)((W)a % safe);                                                                   \
    }
#define SIGNED_DIVISION(T, W, least)                                                               \
    DIVISION(T, W, b == -1 && a == (least), (r ^ safe) < 0)                                        \
    DEVICE T reciprocal_##T(T unused, T b)                                                         \
    {                                                                                              \
        (void)unused;                                                                              \
        return (T)((b == 1) - (b == -1));                                                          \
    }
#define UNSIGNED_DIVISION(T, W)                                                                    \
    DIVISION(T, W, false, false)                                                                   \
    DEVICE T reciprocal_##T(T unused, T b)                                                         \
    {                                                                                              \
        (void)unused;                                                                              \
        return (T)(b == 1);                                                                        \
    }
SIGNED_DIVISION(i8, i32, INT8_MIN)
SIGNED_DIVISION(i16, i32, INT16_MIN)
SIGNED_DIVISION(i32, i32, INT32_MIN)
SIGNED_DIVISION(i64, i64, INT64_MIN)
UNSIGNED_DIVISION(u8, u32)
UNSIGNED_DIVISION(u16, u32)
UNSIGNED_DIVISION(u32, u32)
UNSIGNED_DIVISION(u64, u64)
#undef DIVISION
#undef SIGNED_DIVISION
#undef UNSIGNED_DIVISION

/* Euclid's; squares and multiplies. In 32 bits for the narrow types. */
#define IN_BITS(U)                                                                                 \
    DEVICE_CALL U gcd_of_##U(U a, U b)                                                             \
    {                                                                                              \
        while (b != 0) {                                                                           \
            U r = a % b;                                                                           \
            a = b;                                                                                 \
            b = r;                                                                                 \
        }                                                                                          \
        return a;                                                                                  \
    }                                                                                              \
    DEVICE_CALL U lcm_of_##U(U a, U b)                                                             \
    {                                                                                              \
        U divisor = gcd_of_##U(a, b);                                                              \
        return divisor != 0 ? a / divisor * b : 0;                                                 \
    }                                                                                              \
    DEVICE_CALL U power_of_##U(U base, U exponent)                                                 \
    {                                                                                              \
        U result = 1;                                                                              \
        for (; exponent != 0; exponent >>= 1) {                                                    \
            result = exponent & 1 ? result * base : result;                                        \
            base *= base;                                                                          \
        }                                                                                          \
        return result;                                                                             \
    }
IN_BITS(u32)
IN_BITS(u64)
#undef IN_BITS

/* A negative exponent is reported, and the result does not matter then. */
#define SIGNED_DIVISORS(S, U, W)                                                                   \
    DEVICE W magnitude_##S(S a)                                                                    \
    {                                                                                              \
        return (W)(U)(a < 0 ? 0 - (W)a : (W)a);                                                    \
    }                                                                                              \
    DEVICE S gcd_##S(S a, S b)                                                                     \
    {                                                                                              \
        return (S)(U)gcd_of_##W(magnitude_##S(a), magnitude_##S(b));                               \
    }                                                                                              \
    DEVICE S lcm_##S(S a, S b)                                                                     \
    {                                                                                              \
        return (S)(U)lcm_of_##W(magnitude_##S(a), magnitude_##S(b));                               \
    }                                                                                              \
    DEVICE S power_##S(S a, S b)                                                                   \
    {                                                                                              \
        return b < 0 ? (S)0 : (S)(U)power_of_##W((W)a, (W)b);                                      \
    }                                                                                              \
    DEVICE U gcd_##U(U a, U b)                                                                     \
    {                                                                                              \
        return (U)gcd_of_##W(a, b);                                                                \
    }                                                                                              \
    DEVICE U lcm_##U(U a, U b)                                                                     \
    {                                                                                              \
        return (U)lcm_of_##W(a, b);                                                                \
    }                                                                                              \
    DEVICE U power_##U(U a, U b)                                                                   \
    {                                                                                              \
        return (U)power_of_##W(a, b);                                                              \
    }
SIGNED_DIVISORS(i8, u8, u32)
SIGNED_DIVISORS(i16, u16, u32)
SIGNED_DIVISORS(i32, u32, u32)
SIGNED_DIVISORS(i64, u64, u64)
#undef SIGNED_DIVISORS

/* Floats to integers: truncated; NaN and what is outside int64 become its least value, which then
 * wraps to the width; to uint64, values from 2^63 up to 2^64 are exact. is_castable: `a` truncates
 * into the type's own range; what does not is counted. The bounds are exact in float64. */
DEVICE i64 wrapped_signed(f64 a)
{
    return a >= -0x1p63 && a < 0x1p63 ? (i64)a : INT64_MIN;
}
DEVICE u64 wrapped_unsigned(f64 a)
{
    return a >= 0x1p63 && a < 0x1p64 ? (u64)a : (u64)wrapped_signed(a);
}
#define CAST_RULE(T, wrapped, is_within)                                                           \
    DEVICE bool is_castable_##T(f64 a)                                                             \
    {                                                                                              \
        return is_within;                                                                          \
    }                                                                                              \
    DEVICE T cast_##T(f64 a)                                                                       \
    {                                                                                              \
        return (T)wrapped(a);                                                                      \
    }
CAST_RULE(i8, wrapped_signed, (a > -129) & (a < 128))
CAST_RULE(i16, wrapped_signed, (a > -32769) & (a < 32768))
CAST_RULE(i32, wrapped_signed, (a > -0x1.00000002p31) & (a < 0x1p31))
CAST_RULE(i64, wrapped_signed, (a >= -0x1p63) & (a < 0x1p63))
CAST_RULE(u8, wrapped_signed, (a > -1) & (a < 256))
CAST_RULE(u16, wrapped_signed, (a > -1) & (a < 65536))
CAST_RULE(u32, wrapped_signed, (a > -1) & (a < 0x1p32))
CAST_RULE(u64, wrapped_unsigned, (a > -1) & (a < 0x1p64))
#undef CAST_RULE
