/* floor_divide, remainder and fmod of floats: exact remainders, NumPy's quotients, the bits of the
 * CPU engine (kernels/cpu/levels/modulo.c says why the near case is exact).
 *
 * Near: a / b is below 2^50 (float32: 2^21), so that the rounded ratio is off by 1/8 at most. With
 * q the whole number next to it, a - q * b is representable and fma() gives it. Zero, infinite and
 * NaN operands are far, but for an infinite b.
 *
 * Far: with both mantissas as integers the remainder is r * 2^n modulo the divisor's, n being the
 * difference of the exponents, up to 2045; 2^n itself is made by squaring modulo the divisor. That
 * takes six products at most, whatever the operands are; the library's fmod walks through the
 * quotient bit by bit. Of float32 it is computed in float64, which has all of them: the remainder
 * is a float32 again.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"

#define MANTISSA_BITS_f64 52
#define SHIFT_BITS        64 /* a power of two below 2^this is divided as it is */

DEVICE u64 mantissa_f64(u64 bits)
{
    u64 unit = (u64)1 << MANTISSA_BITS_f64;
    return (bits & (unit - 1)) | (bits < unit ? 0 : unit);
}

/* As if there was no hidden bit: 1 also of the smallest, whose field is 0. */
DEVICE int exponent_f64(u64 bits)
{
    int field = (int)(bits >> MANTISSA_BITS_f64);
    return field > 0 ? field : 1;
}

/* a * b modulo m: a and b below m, m below 2^53. The quotient as floats have it is off by less
 * than 3, so the rest, of which the lowest 64 bits are exact, is between -3 m and 4 m. */
DEVICE u64 multiply_modulo(u64 a, u64 b, u64 m)
{
    u64 quotient = (u64)((f64)a * (f64)b / (f64)m);
    i64 rest = (i64)(a * b - quotient * m);
    while (rest < 0)
        rest += (i64)m;
    while (rest >= (i64)m)
        rest -= (i64)m;
    return (u64)rest;
}

/* 2^n modulo m: the highest digits of n at once, then digit by digit. */
DEVICE u64 power_modulo(int n, u64 m)
{
    int n_digits = 0;
    while (n >> n_digits >= SHIFT_BITS)
        n_digits++;
    u64 power = ((u64)1 << (n >> n_digits)) % m;
    while (n_digits-- > 0) {
        power = multiply_modulo(power, power, m);
        power <<= n >> n_digits & 1;
        power -= power >= m ? m : 0;
    }
    return power;
}

/* 2^(exponent - 1075), which every mantissa may be multiplied with. */
DEVICE f64 unit_of_f64(int exponent)
{
    return from_bits_f64(exponent > MANTISSA_BITS_f64
                             ? (u64)(exponent - MANTISSA_BITS_f64) << MANTISSA_BITS_f64
                             : (u64)1 << (exponent - 1));
}

/* Of finite x >= y > 0. */
DEVICE f64 modulo_f64(f64 x, f64 y)
{
    u64 x_bits = bits_of_f64(x), y_bits = bits_of_f64(y), m = mantissa_f64(y_bits);
    int exponent = exponent_f64(y_bits);
    u64 power = power_modulo(exponent_f64(x_bits) - exponent, m);
    u64 rest = multiply_modulo(mantissa_f64(x_bits) % m, power, m);
    return (f64)rest * unit_of_f64(exponent);
}

DEVICE_CALL f64 far_fmod_f64(f64 a, f64 b)
{
    f64 x = fn_absolute_f64(a), y = fn_absolute_f64(b);
    if (is_nan_f64(a) || is_nan_f64(b) || is_infinite_f64(a) || y == 0)
        return from_bits_f64(INFINITE_f64 | (u64)1 << (MANTISSA_BITS_f64 - 1));
    return fn_copysign_f64(modulo_f64(x, y), a);
}

DEVICE f32 far_fmod_f32(f32 a, f32 b)
{
    return (f32)far_fmod_f64((f64)a, (f64)b);
}

#define FLOAT_DIVISION(F, f, limit)                                                                \
    DEVICE bool is_near_##F(F ratio)                                                               \
    {                                                                                              \
        return fn_absolute_##F(ratio) < limit;                                                     \
    }                                                                                              \
    /* The remainder nearest to 0. */                                                              \
    DEVICE F residue_##F(F a, F b, F q)                                                            \
    {                                                                                              \
        return q == 0 ? a : fma##f(-q, b, a);                                                      \
    }                                                                                              \
    DEVICE_CALL F fn_fmod_##F(F a, F b)                                                            \
    {                                                                                              \
        F ratio = a / b;                                                                           \
        if (!is_near_##F(ratio))                                                                   \
            return far_fmod_##F(a, b);                                                             \
        F r = residue_##F(a, b, rint##f(ratio));                                                   \
        if (r != 0 && (r < 0) != (a < 0))                                                          \
            r += fn_copysign_##F(b, a);                                                            \
        return fn_copysign_##F(r, a);                                                              \
    }                                                                                              \
    /* From fmod's, or one that lies nearer to 0. */                                               \
    DEVICE F floored_##F(F r, F b)                                                                 \
    {                                                                                              \
        if (r == 0)                                                                                \
            return fn_copysign_##F(0, b);                                                          \
        return (b < 0) != (r < 0) ? r + b : r;                                                     \
    }                                                                                              \
    DEVICE_CALL F fn_remainder_##F(F a, F b)                                                       \
    {                                                                                              \
        F ratio = a / b;                                                                           \
        if (is_near_##F(ratio))                                                                    \
            return floored_##F(residue_##F(a, b, rint##f(ratio)), b);                              \
        F r = far_fmod_##F(a, b);                                                                  \
        return b == 0 ? r : floored_##F(r, b);                                                     \
    }                                                                                              \
    /* In NumPy's steps. */                                                                        \
    DEVICE F far_floor_divide_##F(F a, F b)                                                        \
    {                                                                                              \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        F r = far_fmod_##F(a, b);                                                                  \
        F quotient = (a - r) / b;                                                                  \
        if (r != 0 && (b < 0) != (r < 0))                                                          \
            quotient -= 1;                                                                         \
        if (quotient == 0)                                                                         \
            return fn_copysign_##F(0, a / b);                                                      \
        F whole = floor##f(quotient);                                                              \
        return quotient - whole > (F)0.5 ? whole + 1 : whole;                                      \
    }                                                                                              \
    DEVICE_CALL F fn_floor_divide_##F(F a, F b)                                                    \
    {                                                                                              \
        F ratio = a / b;                                                                           \
        if (!is_near_##F(ratio))                                                                   \
            return far_floor_divide_##F(a, b);                                                     \
        F quotient = rint##f(ratio), r = residue_##F(a, b, quotient);                              \
        if (r != 0 && (b < 0) != (r < 0))                                                          \
            quotient -= 1;                                                                         \
        return fn_copysign_##F(quotient, ratio);                                                   \
    }
FLOAT_DIVISION(f32, f, 0x1p21f)
FLOAT_DIVISION(f64, , 0x1p50)
#undef FLOAT_DIVISION
#undef MANTISSA_BITS_f64
#undef SHIFT_BITS
