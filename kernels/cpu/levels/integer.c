/* Integers only: bits, shifts, division, divisors, powers.
 *
 * Division never traps: by zero it gives 0 and counts the element; the least integer by -1 gives
 * itself, remainder 0. Up to 32 bits it is done in floating point, which vectorises: the quotient
 * of two such integers, rounded to a double (to a float for 16 bits), truncates to the integer
 * quotient exactly, because a quotient that is not whole is further from the next whole number
 * than the rounding reaches. 64-bit division is in modulo.c. Shifts by the width or more, or by a
 * negative count, give 0, or -1 for negative values moved down.
 *
 * GCD, LCM and POWER take as many rounds as the hardest of KERNEL_GRANULE elements needs, each
 * round over all of them. GCD is Stein's binary algorithm ("Computational problems associated with
 * Racah algebra", 1967) on magnitudes. The plain level has Euclid's and simple loops
 * (arith_plain.c).
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

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

/* Sums of neighbouring fields, from single bits upwards, in every lane. */
static inline u8 count_bits_u8(u8 x)
{
    x = (u8)(x - ((x >> 1) & 0x55));
    x = (u8)((x & 0x33) + ((x >> 2) & 0x33));
    return (u8)((x + (x >> 4)) & 0x0f);
}
static inline u16 count_bits_u16(u16 x)
{
    x = (u16)(x - ((x >> 1) & 0x5555));
    x = (u16)((x & 0x3333) + ((x >> 2) & 0x3333));
    x = (u16)((x + (x >> 4)) & 0x0f0f);
    return (u16)((x + (x >> 8)) & 0x1f);
}
static inline u32 count_bits_u32(u32 x)
{
    x = x - ((x >> 1) & 0x55555555u);
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    x += x >> 8;
    return (x + (x >> 16)) & 0x3f;
}
static inline u64 count_bits_u64(u64 x)
{
    x = x - ((x >> 1) & 0x5555555555555555u);
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    x += x >> 8;
    x += x >> 16;
    return (x + (x >> 32)) & 0x7f;
}

#define MAGNITUDE(U, a) (a < 0 ? (U)(0 - (U)a) : (U)a)
#define SMALL_KERNELS(S, U)                                                                        \
    UNARY(bit_count, S, u8, count_bits_##U(MAGNITUDE(U, a)))                                       \
    UNARY(bit_count, U, u8, count_bits_##U(a))                                                     \
    UNARY(sign, S, S, (a > 0) - (a < 0))                                                           \
    UNARY(sign, U, U, a != 0)                                                                      \
    static u64 count_zeros_##U(size_t n, const U *x)                                               \
    {                                                                                              \
        u64 n_zeros = 0;                                                                           \
        size_t n_whole = n & ~(size_t)(KERNEL_GRANULE - 1);                                        \
        for (size_t first = 0; first < n_whole; first += KERNEL_GRANULE) {                         \
            U n_block = 0; /* a sum in U stays in the same lanes */                                \
            for (size_t i = 0; i < KERNEL_GRANULE; i++)                                            \
                n_block = (U)(n_block + (x[first + i] == 0));                                      \
            n_zeros += n_block;                                                                    \
        }                                                                                          \
        for (size_t i = n_whole; i < n; i++)                                                       \
            n_zeros += x[i] == 0;                                                                  \
        return n_zeros;                                                                            \
    }                                                                                              \
    UNARY(inverse, S, S, (a == 1) - (a == -1))                                                     \
    UNARY(inverse, U, U, a == 1)                                                                   \
    static void reciprocal_##S(KERNEL_ARGS)                                                        \
    {                                                                                              \
        events->n_divide_by_zero += count_zeros_##U(n, pa);                                        \
        inverse_##S(n, dst, pa, pb, pc, events);                                                   \
    }                                                                                              \
    static void reciprocal_##U(KERNEL_ARGS)                                                        \
    {                                                                                              \
        events->n_divide_by_zero += count_zeros_##U(n, pa);                                        \
        inverse_##U(n, dst, pa, pb, pc, events);                                                   \
    }
SMALL_KERNELS(i8, u8)
SMALL_KERNELS(i16, u16)
SMALL_KERNELS(i32, u32)
SMALL_KERNELS(i64, u64)

#define whole_i32(x) ((i32)(x))

/* AVX2 converts to signed 32 bits only: the lowest bits of 2^52 and the whole number are its own.
 */
static inline u32 whole_u32(f64 x)
{
#if defined(__AVX2__) && !defined(__AVX512DQ__)
    u64 bits;
    x = __builtin_trunc(x) + 0x1p52;
    memcpy(&bits, &x, sizeof(bits));
    return (u32)bits;
#else
    return (u32)(i64)x;
#endif
}

/* F holds quotients of T well enough (see above), `whole` cuts off their fractions. `safe` is a
 * divisor that gives a defined result; is_above: the truncated quotient is one above the floor. */
#define DIVISION(T, U, F, whole, is_unsafe, is_above)                                              \
    static inline T truncated_##T(T a, T b, T *ret_divisor, T *ret_remainder)                      \
    {                                                                                              \
        T safe = (is_unsafe) ? 1 : b;                                                              \
        T q = (T)whole((F)a / (F)safe);                                                            \
        *ret_divisor = safe;                                                                       \
        *ret_remainder = (T)(a - (T)(q * safe));                                                   \
        return q;                                                                                  \
    }                                                                                              \
    static inline T floor_quotient_##T(T a, T b)                                                   \
    {                                                                                              \
        T safe, r, q = truncated_##T(a, b, &safe, &r);                                             \
        T below = (T)(q - 1);                                                                      \
        q = (is_above) ? below : q;                                                                \
        return b == 0 ? 0 : q;                                                                     \
    }                                                                                              \
    static inline T floor_remainder_##T(T a, T b)                                                  \
    {                                                                                              \
        T safe, r;                                                                                 \
        truncated_##T(a, b, &safe, &r);                                                            \
        return (T)((is_above) ? r + safe : r);                                                     \
    }                                                                                              \
    static inline T remainder_of_##T(T a, T b)                                                     \
    {                                                                                              \
        T safe, r;                                                                                 \
        truncated_##T(a, b, &safe, &r);                                                            \
        return r;                                                                                  \
    }                                                                                              \
    DIVISION_KERNEL(floor_divide, T, U, floor_quotient)                                            \
    DIVISION_KERNEL(remainder, T, U, floor_remainder)                                              \
    DIVISION_KERNEL(fmod, T, U, remainder_of)
#define DIVISION_KERNEL(name, T, U, function)                                                      \
    BINARY(name##_uncounted, T, T, function##_##T(a, b))                                           \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        events->n_divide_by_zero += count_zeros_##U(n, pb);                                        \
        name##_uncounted_##T(n, dst, pa, pb, pc, events);                                          \
    }
#define DIVISION_SIGNED(T, U, F, least)                                                            \
    DIVISION(T, U, F, whole_i32, (b == 0) | ((b == -1) & (a == least)), (r != 0) & ((r ^ safe) < 0))
DIVISION_SIGNED(i8, u8, f32, INT8_MIN)
DIVISION_SIGNED(i16, u16, f32, INT16_MIN)
DIVISION_SIGNED(i32, u32, f64, INT32_MIN)
DIVISION(u8, u8, f32, whole_i32, b == 0, 0)
DIVISION(u16, u16, f32, whole_i32, b == 0, 0)
DIVISION(u32, u32, f64, whole_u32, b == 0, 0)

#if defined(KERNEL_IS_VECTORISED)

/* One step for u odd: an even v is halved; of an odd one and u, the smaller becomes u and half the
 * difference v. "Odd" is meant in units of `low`, the lowest bit that is set in either number, so
 * that the common power of two needs no shifting out and in. Ends when all v are 0. */
#define GCD_STEP(U, u, v, low)                                                                     \
    do {                                                                                           \
        bool is_odd = (v & low) != 0, is_less = v < u;                                             \
        U difference = (U)(v - u), opposite = (U)(u - v);                                          \
        difference = is_less ? opposite : difference;                                              \
        u = (is_odd & is_less) ? v : u;                                                            \
        v = (U)((is_odd ? difference : v) >> 1);                                                   \
    } while (0)

/* Divides by 1 where the divisor is 0. */
#define DIVISORS(T, U, magnitude, exact_quotient)                                                  \
    static void gcd_block_##T(const T *as, const T *bs, U *us)                                     \
    {                                                                                              \
        U vs[KERNEL_GRANULE], lows[KERNEL_GRANULE], left;                                          \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                              \
            T x = as[i], y = bs[i];                                                                \
            U a = magnitude(U, x), b = magnitude(U, y);                                            \
            U low = (U)((a | b) & (U)(0 - (U)(a | b)));                                            \
            bool is_odd = (a & low) != 0;                                                          \
            us[i] = is_odd ? a : b;                                                                \
            vs[i] = is_odd ? b : a;                                                                \
            lows[i] = low;                                                                         \
        }                                                                                          \
        do {                                                                                       \
            left = 0;                                                                              \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                U u = us[i], v = vs[i], low = lows[i];                                             \
                GCD_STEP(U, u, v, low);                                                            \
                GCD_STEP(U, u, v, low);                                                            \
                us[i] = u;                                                                         \
                vs[i] = v;                                                                         \
                left |= v;                                                                         \
            }                                                                                      \
        } while (left);                                                                            \
    }                                                                                              \
    static void gcd_##T(KERNEL_ARGS)                                                               \
    {                                                                                              \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i += KERNEL_GRANULE) {                                           \
            U block[KERNEL_GRANULE];                                                               \
            gcd_block_##T((const T *)pa + i, (const T *)pb + i, block);                            \
            memcpy((U *)dst + i, block, sizeof(block));                                            \
        }                                                                                          \
    }                                                                                              \
    static void lcm_##T(KERNEL_ARGS)                                                               \
    {                                                                                              \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t first = 0; first < n; first += KERNEL_GRANULE) {                               \
            const T *as = (const T *)pa + first, *bs = (const T *)pb + first;                      \
            U block[KERNEL_GRANULE];                                                               \
            gcd_block_##T(as, bs, block);                                                          \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                T x = as[i], y = bs[i];                                                            \
                U a = magnitude(U, x), b = magnitude(U, y);                                        \
                U divisor = block[i] ? block[i] : 1;                                               \
                block[i] = (U)((U)(exact_quotient)*b);                                             \
            }                                                                                      \
            memcpy((U *)dst + first, block, sizeof(block));                                        \
        }                                                                                          \
    }
#define UNCHANGED(U, x) x

/* SSE2 has no comparison of 64 bits: Euclid's is faster. */
#if defined(__x86_64__) && !defined(__AVX2__)
#define GCD_HAS_64 0
#else
#define GCD_HAS_64 1
#endif
DIVISORS(i8, u8, MAGNITUDE, whole_i32((f32)a / (f32)divisor))
DIVISORS(i16, u16, MAGNITUDE, whole_i32((f32)a / (f32)divisor))
DIVISORS(i32, u32, MAGNITUDE, whole_u32((f64)a / (f64)divisor))
DIVISORS(u8, u8, UNCHANGED, whole_i32((f32)a / (f32)divisor))
DIVISORS(u16, u16, UNCHANGED, whole_i32((f32)a / (f32)divisor))
DIVISORS(u32, u32, UNCHANGED, whole_u32((f64)a / (f64)divisor))
#if GCD_HAS_64
DIVISORS(i64, u64, MAGNITUDE, a / divisor)
DIVISORS(u64, u64, UNCHANGED, a / divisor)
#endif

/* Squares and multiplies; a negative exponent is reported, and the result does not matter then. */
#define POWER(S, U)                                                                                \
    static void power_##U(KERNEL_ARGS)                                                             \
    {                                                                                              \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t first = 0; first < n; first += KERNEL_GRANULE) {                               \
            U bases[KERNEL_GRANULE], exponents[KERNEL_GRANULE], block[KERNEL_GRANULE], left = 1;   \
            memcpy(bases, (const U *)pa + first, sizeof(bases));                                   \
            memcpy(exponents, (const U *)pb + first, sizeof(exponents));                           \
            for (size_t i = 0; i < KERNEL_GRANULE; i++)                                            \
                block[i] = 1;                                                                      \
            while (left) {                                                                         \
                left = 0;                                                                          \
                KERNEL_LOOP                                                                        \
                for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                      \
                    U base = bases[i], exponent = exponents[i];                                    \
                    U product = (U)(block[i] * base), square = (U)(base * base);                   \
                    block[i] = exponent & 1 ? product : block[i];                                  \
                    bases[i] = square;                                                             \
                    exponents[i] = (U)(exponent >> 1);                                             \
                    left |= exponents[i];                                                          \
                }                                                                                  \
            }                                                                                      \
            memcpy((U *)dst + first, block, sizeof(block));                                        \
        }                                                                                          \
    }                                                                                              \
    static void power_##S(KERNEL_ARGS)                                                             \
    {                                                                                              \
        const S *bs = pb;                                                                          \
        S signs = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            signs |= bs[i];                                                                        \
        events->has_negative_power |= signs < 0;                                                   \
        if (!events->has_negative_power)                                                           \
            power_##U(n, dst, pa, pb, pc, events);                                                 \
    }
POWER(i8, u8)
POWER(i16, u16)
POWER(i32, u32)
POWER(i64, u64)

#endif

#define ROW_TO_32(name)                                                                            \
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
    [OP_BITWISE_COUNT] = {ROW_SIGNED(bit_count), ROW_UNSIGNED(bit_count)},
    [OP_SIGN] = {ROW_SIGNED(sign), ROW_UNSIGNED(sign)},
    [OP_RECIPROCAL] = {ROW_SIGNED(reciprocal), ROW_UNSIGNED(reciprocal)},
    [OP_FLOOR_DIVIDE] = {ROW_TO_32(floor_divide)},
    [OP_REMAINDER] = {ROW_TO_32(remainder)},
    [OP_FMOD] = {ROW_TO_32(fmod)},
#if defined(KERNEL_IS_VECTORISED)
    [OP_GCD] = {ROW_TO_32(gcd),
#if GCD_HAS_64
                [DTYPE_INT64] = gcd_i64, [DTYPE_UINT64] = gcd_u64,
#endif
    },
    [OP_LCM] = {ROW_TO_32(lcm),
#if GCD_HAS_64
                [DTYPE_INT64] = lcm_i64, [DTYPE_UINT64] = lcm_u64,
#endif
    },
    [OP_POWER] = {ROW_SIGNED(power), ROW_UNSIGNED(power)},
#endif
};
/* clang-format on */
