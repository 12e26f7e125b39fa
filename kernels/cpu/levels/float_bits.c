/* What works on the bits of floats: rounding to whole numbers, signs, exponents, neighbours.
 *
 * All results are exact (LDEXP: rounded once), so that every level gives the same bits; names and
 * special values are NumPy's. Each kernel reads its sources once and writes once. Written without
 * branches, with both cases computed and one selected: no case traps.
 *
 * Processors without an instruction for rounding (SSE2) round to even by adding and taking away
 * 2^52 (2^23 for float32), where the sum has no room for a fraction; larger numbers are whole. The
 * other directions correct that by one.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#if defined(KERNEL_IS_VECTORISED) && defined(__SSE2__) && !defined(__SSE4_1__)
#define ROUNDS_BY_ADDING 1
#else
#define ROUNDS_BY_ADDING 0
#endif

/* U: an integer of F's size; the exponent field of 1 is BIAS. */
#define FLOAT_PARTS(F, f, U, mantissa_bits, bias)                                                  \
    enum { MANTISSA_##F = mantissa_bits, BIAS_##F = bias };                                        \
    static inline U bits_of_##F(F a)                                                               \
    {                                                                                              \
        U bits;                                                                                    \
        memcpy(&bits, &a, sizeof(bits));                                                           \
        return bits;                                                                               \
    }                                                                                              \
    static inline F from_bits_##F(U bits)                                                          \
    {                                                                                              \
        F a;                                                                                       \
        memcpy(&a, &bits, sizeof(a));                                                              \
        return a;                                                                                  \
    }                                                                                              \
    static inline F magnitude_##F(F a)                                                             \
    {                                                                                              \
        return __builtin_fabs##f(a);                                                               \
    }                                                                                              \
    static inline F with_sign_##F(F a, F sign)                                                     \
    {                                                                                              \
        const U mask = (U)1 << (sizeof(U) * 8 - 1);                                                \
        return from_bits_##F((bits_of_##F(a) & ~mask) | (bits_of_##F(sign) & mask));               \
    }
FLOAT_PARTS(f32, f, u32, 23, 127)
FLOAT_PARTS(f64, , u64, 52, 1023)

#define ROUNDING(F, f)                                                                             \
    static inline F even_##F(F a)                                                                  \
    {                                                                                              \
        const F large = (F)((u64)1 << MANTISSA_##F);                                               \
        F x = magnitude_##F(a);                                                                    \
        F whole = (x + large) - large;                                                             \
        return with_sign_##F(x < large ? whole : x, a);                                            \
    }                                                                                              \
    static inline F down_##F(F a)                                                                  \
    {                                                                                              \
        F r = even_##F(a), below = r - 1;                                                          \
        return with_sign_##F(r > a ? below : r, a);                                                \
    }                                                                                              \
    static inline F up_##F(F a)                                                                    \
    {                                                                                              \
        F r = even_##F(a), above = r + 1;                                                          \
        return with_sign_##F(r < a ? above : r, a);                                                \
    }                                                                                              \
    static inline F to_zero_##F(F a)                                                               \
    {                                                                                              \
        return ROUNDS_BY_ADDING ? with_sign_##F(down_##F(magnitude_##F(a)), a)                     \
                                : __builtin_trunc##f(a);                                           \
    }                                                                                              \
    UNARY(floor, F, F, ROUNDS_BY_ADDING ? down_##F(a) : __builtin_floor##f(a))                     \
    UNARY(ceil, F, F, ROUNDS_BY_ADDING ? up_##F(a) : __builtin_ceil##f(a))                         \
    UNARY(trunc, F, F, to_zero_##F(a))                                                             \
    UNARY(rint, F, F, ROUNDS_BY_ADDING ? even_##F(a) : __builtin_rint##f(a))
ROUNDING(f32, f)
ROUNDING(f64, )

/* The fraction of an infinity is 0. */
#define FRACTION(F)                                                                                \
    static inline F fraction_##F(F a)                                                              \
    {                                                                                              \
        F whole = to_zero_##F(a), rest = a - whole;                                                \
        return with_sign_##F(whole == a ? 0 : rest, a);                                            \
    }                                                                                              \
    UNARY(modf, F, F, fraction_##F(a))
FRACTION(f32)
FRACTION(f64)

UNARY(signbit, u32, u8, a >> 31)
UNARY(signbit, u64, u8, a >> 63)
BINARY(copysign, u32, u32, (a & 0x7fffffffu) | (b & 0x80000000u))
BINARY(copysign, u64, u64, (a & ~((u64)1 << 63)) | (b & ((u64)1 << 63)))

#define SIGN(F)                                                                                    \
    UNARY(sign, F, F, a != a ? a : (F)(a > 0) - (F)(a < 0))                                        \
    BINARY(heaviside, F, F, a != a ? a : (a == 0 ? b : (F)(a > 0)))
SIGN(f32)
SIGN(f64)

/* Beyond the largest float come infinity's bits, beyond those NaN's: SPACING of them follows. */
#define NEIGHBOURS(F, U)                                                                           \
    static inline F spacing_of_##F(F a)                                                            \
    {                                                                                              \
        U next = bits_of_##F(a) + 1;                                                               \
        return from_bits_##F(a == 0 ? (U)1 : next) - a;                                            \
    }                                                                                              \
    static inline F next_##F(F a, F b)                                                             \
    {                                                                                              \
        U bits = bits_of_##F(a), outer = bits + 1, inner = bits - 1;                               \
        F stepped = from_bits_##F((b > a) == (a > 0) ? outer : inner);                             \
        stepped = a == 0 ? with_sign_##F(from_bits_##F(1), b) : stepped;                           \
        stepped = a == b ? b : stepped;                                                            \
        F sum = a + b;                                                                             \
        return ((a != a) | (b != b)) ? sum : stepped;                                              \
    }                                                                                              \
    UNARY(spacing, F, F, spacing_of_##F(a))                                                        \
    BINARY(nextafter, F, F, next_##F(a, b))
NEIGHBOURS(f32, u32)
NEIGHBOURS(f64, u64)

/* Denormals are made normal by a power of two first. 0, infinities and NaN: mantissa is the number
 * itself, exponent 0. LDEXP scales the mantissa twice by about half the power: the first product is
 * always normal and exact, the second rounds once, as if it had been the only one. The power is
 * limited to what leads beyond the smallest and the largest number from any mantissa. */
#define EXPONENTS(F, U, I, least, most, limit)                                                     \
    static inline bool has_exponent_##F(F a)                                                       \
    {                                                                                              \
        F x = magnitude_##F(a);                                                                    \
        return (x > 0) & (x <= most);                                                              \
    }                                                                                              \
    static inline F mantissa_of_##F(F a, I *ret_exponent)                                          \
    {                                                                                              \
        const U field = (U)(2 * BIAS_##F + 1) << MANTISSA_##F;                                     \
        bool is_small = magnitude_##F(a) < least;                                                  \
        F scaled = a * (F)((u64)4 << MANTISSA_##F);                                                \
        U bits = bits_of_##F(is_small ? scaled : a);                                               \
        I shift = is_small ? BIAS_##F + 1 + MANTISSA_##F : BIAS_##F - 1;                           \
        *ret_exponent = (I)((bits & field) >> MANTISSA_##F) - shift;                               \
        return from_bits_##F((bits & ~field) | (U)(BIAS_##F - 1) << MANTISSA_##F);                 \
    }                                                                                              \
    static inline F frexp_of_##F(F a)                                                              \
    {                                                                                              \
        I exponent;                                                                                \
        F mantissa = mantissa_of_##F(a, &exponent);                                                \
        return has_exponent_##F(a) ? mantissa : a;                                                 \
    }                                                                                              \
    static inline i32 exponent_of_##F(F a)                                                         \
    {                                                                                              \
        I exponent;                                                                                \
        mantissa_of_##F(a, &exponent);                                                             \
        return (i32)(has_exponent_##F(a) ? exponent : 0);                                          \
    }                                                                                              \
    static inline F power_of_two_##F(I exponent)                                                   \
    {                                                                                              \
        return from_bits_##F((U)(exponent + BIAS_##F) << MANTISSA_##F);                            \
    }                                                                                              \
    static inline F scaled_##F(F a, I power)                                                       \
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
    }                                                                                              \
    UNARY(frexp, F, F, frexp_of_##F(a))                                                            \
    UNARY(frexp_exponent, F, i32, exponent_of_##F(a))                                              \
    static void ldexp_##F(KERNEL_ARGS)                                                             \
    {                                                                                              \
        F *d = dst;                                                                                \
        const F *as = pa;                                                                          \
        const I *powers = pb;                                                                      \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = scaled_##F(as[i], powers[i]);                                                   \
    }
EXPONENTS(f32, u32, i32, __FLT_MIN__, __FLT_MAX__, 160)
EXPONENTS(f64, u64, i64, __DBL_MIN__, __DBL_MAX__, 1100)

/* clang-format off */
const kernel_table KERNEL_SYMBOL(bits) = {
    [OP_FLOOR] = {ROW_FLOATS(floor)},
    [OP_CEIL] = {ROW_FLOATS(ceil)},
    [OP_TRUNC] = {ROW_FLOATS(trunc)},
    [OP_RINT] = {ROW_FLOATS(rint)},
    [OP_MODF] = {ROW_FLOATS(modf)},
    [OP_SIGN] = {ROW_FLOATS(sign)},
    [OP_SIGNBIT] = {[DTYPE_FLOAT32] = signbit_u32, [DTYPE_FLOAT64] = signbit_u64},
    [OP_COPYSIGN] = {[DTYPE_FLOAT32] = copysign_u32, [DTYPE_FLOAT64] = copysign_u64},
    [OP_HEAVISIDE] = {ROW_FLOATS(heaviside)},
    [OP_SPACING] = {ROW_FLOATS(spacing)},
    [OP_NEXTAFTER] = {ROW_FLOATS(nextafter)},
    [OP_FREXP] = {ROW_FLOATS(frexp)},
    [OP_FREXP_EXPONENT] = {ROW_FLOATS(frexp_exponent)},
    [OP_LDEXP] = {ROW_FLOATS(ldexp)},
};
/* clang-format on */
