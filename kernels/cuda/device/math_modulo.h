/* floor_divide, remainder and fmod of floats: exact remainders, NumPy's quotients, the bits of the
 * CPU engine (kernels/cpu/modulo.c says why the near case is exact).
 *
 * Near: a / b is below 2^50 (float32: 2^21), so that the rounded ratio is off by 1/8 at most. With
 * q the whole number next to it, a - q * b is representable and fma() gives it. Far: the library's
 * fmod, which is exact and walks through the quotient's bits. Zero, infinite and NaN operands are
 * far, but for an infinite b.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"

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
    DEVICE_CALL F far_fmod_##F(F a, F b)                                                           \
    {                                                                                              \
        return fmod##f(a, b);                                                                      \
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
