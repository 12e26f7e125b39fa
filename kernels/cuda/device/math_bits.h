/* Arithmetic, selection, rounding to whole numbers, signs, exponents, neighbours: what is exact or
 * correctly rounded. The same bits as the CPU engine (kernels/cpu/levels/arith.c and float_bits.c),
 * but for the payload of a NaN. NaN and signs are seen in the bits, so that no compiler's flag can
 * lose them.
 */
#pragma once

#include "kernels/cuda/device/device.h"

/* U: an integer of F's size; the exponent field of 1 is `bias`. */
#if defined(__CUDACC__)
DEVICE u32 bits_of_f32(f32 a)
{
    return __float_as_uint(a);
}
DEVICE f32 from_bits_f32(u32 bits)
{
    return __uint_as_float(bits);
}
DEVICE u64 bits_of_f64(f64 a)
{
    return (u64)__double_as_longlong(a);
}
DEVICE f64 from_bits_f64(u64 bits)
{
    return __longlong_as_double((long long)bits);
}
#else
#define BITS(F, U)                                                                                 \
    DEVICE U bits_of_##F(F a)                                                                      \
    {                                                                                              \
        U bits;                                                                                    \
        memcpy(&bits, &a, sizeof(bits));                                                           \
        return bits;                                                                               \
    }                                                                                              \
    DEVICE F from_bits_##F(U bits)                                                                 \
    {                                                                                              \
        F a;                                                                                       \
        memcpy(&a, &bits, sizeof(a));                                                              \
        return a;                                                                                  \
    }
BITS(f32, u32)
BITS(f64, u64)
#undef BITS
#endif

#define SIGN_MASK_f32 0x80000000u
#define SIGN_MASK_f64 ((u64)1 << 63)
#define INFINITE_f32  0x7f800000u
#define INFINITE_f64  ((u64)0x7ff << 52)

#define CLASSES(F, U)                                                                              \
    DEVICE bool is_nan_##F(F a)                                                                    \
    {                                                                                              \
        return (bits_of_##F(a) & ~SIGN_MASK_##F) > INFINITE_##F;                                   \
    }                                                                                              \
    DEVICE bool is_infinite_##F(F a)                                                               \
    {                                                                                              \
        return (bits_of_##F(a) & ~SIGN_MASK_##F) == INFINITE_##F;                                  \
    }                                                                                              \
    DEVICE bool is_finite_##F(F a)                                                                 \
    {                                                                                              \
        return (bits_of_##F(a) & ~SIGN_MASK_##F) < INFINITE_##F;                                   \
    }                                                                                              \
    DEVICE bool sign_bit_##F(F a)                                                                  \
    {                                                                                              \
        return (bits_of_##F(a) & SIGN_MASK_##F) != 0;                                              \
    }                                                                                              \
    DEVICE F fn_absolute_##F(F a)                                                                  \
    {                                                                                              \
        return from_bits_##F(bits_of_##F(a) & ~SIGN_MASK_##F);                                     \
    }                                                                                              \
    DEVICE F fn_negative_##F(F a)                                                                  \
    {                                                                                              \
        return from_bits_##F(bits_of_##F(a) ^ SIGN_MASK_##F);                                      \
    }                                                                                              \
    DEVICE F fn_copysign_##F(F a, F b)                                                             \
    {                                                                                              \
        return from_bits_##F((bits_of_##F(a) & ~SIGN_MASK_##F) |                                   \
                             (bits_of_##F(b) & SIGN_MASK_##F));                                    \
    }
CLASSES(f32, u32)
CLASSES(f64, u64)
#undef CLASSES

/* f: the suffix of the library's functions. Of equal ones the second is taken, also of zeros. */
#define ARITHMETIC(F, f)                                                                           \
    DEVICE F fn_add_##F(F a, F b)                                                                  \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    DEVICE F fn_subtract_##F(F a, F b)                                                             \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    DEVICE F fn_multiply_##F(F a, F b)                                                             \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    DEVICE F fn_divide_##F(F a, F b)                                                               \
    {                                                                                              \
        return a / b;                                                                              \
    }                                                                                              \
    DEVICE F fn_square_##F(F a)                                                                    \
    {                                                                                              \
        return a * a;                                                                              \
    }                                                                                              \
    DEVICE F fn_sqrt_##F(F a)                                                                      \
    {                                                                                              \
        return sqrt##f(a);                                                                         \
    }                                                                                              \
    DEVICE F fn_minimum_##F(F a, F b)                                                              \
    {                                                                                              \
        return a < b || is_nan_##F(a) ? a : b;                                                     \
    }                                                                                              \
    DEVICE F fn_maximum_##F(F a, F b)                                                              \
    {                                                                                              \
        return a > b || is_nan_##F(a) ? a : b;                                                     \
    }                                                                                              \
    DEVICE F fn_fmin_##F(F a, F b)                                                                 \
    {                                                                                              \
        return a < b || is_nan_##F(b) ? a : b;                                                     \
    }                                                                                              \
    DEVICE F fn_fmax_##F(F a, F b)                                                                 \
    {                                                                                              \
        return a > b || is_nan_##F(b) ? a : b;                                                     \
    }                                                                                              \
    DEVICE F fn_sign_##F(F a)                                                                      \
    {                                                                                              \
        return is_nan_##F(a) ? a : (F)(a > 0) - (F)(a < 0);                                        \
    }                                                                                              \
    DEVICE F fn_heaviside_##F(F a, F b)                                                            \
    {                                                                                              \
        return is_nan_##F(a) ? a : a == 0 ? b : (F)(a > 0);                                        \
    }
ARITHMETIC(f32, f)
ARITHMETIC(f64, )
#undef ARITHMETIC

/* The fraction of an infinity is 0. */
#define ROUNDING(F, f)                                                                             \
    DEVICE F fn_floor_##F(F a)                                                                     \
    {                                                                                              \
        return floor##f(a);                                                                        \
    }                                                                                              \
    DEVICE F fn_ceil_##F(F a)                                                                      \
    {                                                                                              \
        return ceil##f(a);                                                                         \
    }                                                                                              \
    DEVICE F fn_trunc_##F(F a)                                                                     \
    {                                                                                              \
        return trunc##f(a);                                                                        \
    }                                                                                              \
    DEVICE F fn_rint_##F(F a)                                                                      \
    {                                                                                              \
        return rint##f(a);                                                                         \
    }                                                                                              \
    DEVICE F fn_modf_##F(F a)                                                                      \
    {                                                                                              \
        F whole = trunc##f(a);                                                                     \
        return fn_copysign_##F(whole == a ? 0 : a - whole, a);                                     \
    }
ROUNDING(f32, f)
ROUNDING(f64, )
#undef ROUNDING

/* Beyond the largest float come infinity's bits, beyond those NaN's: SPACING of them follows. */
#define NEIGHBOURS(F, U)                                                                           \
    DEVICE F fn_spacing_##F(F a)                                                                   \
    {                                                                                              \
        U next = a == 0 ? 1 : bits_of_##F(a) + 1;                                                  \
        return from_bits_##F(next) - a;                                                            \
    }                                                                                              \
    DEVICE F fn_nextafter_##F(F a, F b)                                                            \
    {                                                                                              \
        if (is_nan_##F(a) || is_nan_##F(b))                                                        \
            return a + b;                                                                          \
        if (a == b)                                                                                \
            return b;                                                                              \
        if (a == 0)                                                                                \
            return fn_copysign_##F(from_bits_##F(1), b);                                           \
        U bits = bits_of_##F(a);                                                                   \
        return from_bits_##F((b > a) == (a > 0) ? bits + 1 : bits - 1);                            \
    }
NEIGHBOURS(f32, u32)
NEIGHBOURS(f64, u64)
#undef NEIGHBOURS

/* Denormals are made normal by a power of two first. 0, infinities and NaN: mantissa is the number
 * itself, exponent 0. LDEXP scales the mantissa twice by about half the power: the first product is
 * always normal and exact, the second rounds once, as if it had been the only one. The power is
 * limited to what leads beyond the smallest and the largest number from any mantissa. */
#define EXPONENTS(F, U, I, mantissa_bits, bias, limit)                                             \
    DEVICE bool has_exponent_##F(F a)                                                              \
    {                                                                                              \
        return a != 0 && is_finite_##F(a);                                                         \
    }                                                                                              \
    DEVICE F mantissa_of_##F(F a, I *ret_exponent)                                                 \
    {                                                                                              \
        bool is_small = (bits_of_##F(a) & INFINITE_##F) == 0;                                      \
        U bits = bits_of_##F(is_small ? a * (F)((u64)4 << mantissa_bits) : a);                     \
        I shift = is_small ? bias + 1 + mantissa_bits : bias - 1;                                  \
        *ret_exponent = (I)((bits & INFINITE_##F) >> mantissa_bits) - shift;                       \
        return from_bits_##F((bits & ~INFINITE_##F) | (U)(bias - 1) << mantissa_bits);             \
    }                                                                                              \
    DEVICE F fn_frexp_##F(F a)                                                                     \
    {                                                                                              \
        I exponent;                                                                                \
        F mantissa = mantissa_of_##F(a, &exponent);                                                \
        return has_exponent_##F(a) ? mantissa : a;                                                 \
    }                                                                                              \
    DEVICE i32 fn_frexp_exponent_##F(F a)                                                          \
    {                                                                                              \
        I exponent;                                                                                \
        mantissa_of_##F(a, &exponent);                                                             \
        return has_exponent_##F(a) ? (i32)exponent : 0;                                            \
    }                                                                                              \
    DEVICE F power_of_two_##F(I exponent)                                                          \
    {                                                                                              \
        return from_bits_##F((U)(exponent + bias) << mantissa_bits);                               \
    }                                                                                              \
    DEVICE_CALL F fn_ldexp_##F(F a, I power)                                                       \
    {                                                                                              \
        I exponent;                                                                                \
        F mantissa = mantissa_of_##F(a, &exponent);                                                \
        power = power > 4 * limit ? 4 * limit : power;                                             \
        power = (power < -4 * limit ? -4 * limit : power) + exponent;                              \
        power = power > limit ? limit : power;                                                     \
        power = power < -limit ? -limit : power;                                                   \
        I half = (I)((U)(power + limit) >> 1) - limit / 2;                                         \
        F product = mantissa * power_of_two_##F(half) * power_of_two_##F(power - half);            \
        return has_exponent_##F(a) ? product : a;                                                  \
    }
EXPONENTS(f32, u32, i32, 23, 127, 160)
EXPONENTS(f64, u64, i64, 52, 1023, 1100)
#undef EXPONENTS
