/* The instructions of PTX that the functions of mathematics are made of, as C functions of the same
 * names, dots written as underscores. Included by what ptx_to_c.py makes.
 *
 * Exact by PTX's definition, and so here: integers, conversions, comparisons, and floating-point
 * arithmetic that is rounded as IEEE says (add, mul, fma, div.rn, sqrt.rn, rcp.rn). NaN of float32
 * is the device's one pattern.
 *
 * Modelled: the .approx instructions, of which PTX states error bounds only. ptx_model_is_rough
 * false: the rounded exact value. true: the exact value times 1 + e, where e is as large as the
 * bound or anything between, by the bits of the argument, and then rounded, so that it is at times
 * half a unit beyond the bound. No device computes just this; a function that is near enough with
 * both hardly depends on what the device does within its bounds. The bounds, relative:
 *
 *     ex2.approx.f32    2^-22.5                  rcp.approx.f32     2^-23
 *     lg2.approx.f32    2^-22.6, of the result or absolute between 1/2 and 2
 *     rsqrt.approx.f32  2^-22.9                  div.approx.f32     2^-22
 *     rcp.approx.ftz.f64, rsqrt.approx.ftz.f64   the upper 32 bits of the argument, 2^-20, the
 *                                                upper 32 bits of the result
 *
 * ex2.approx of a whole number is exact in both: PTX does not say so, but CUDA's tanh and erf of
 * float64 scale by powers of two that they get from it.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

extern _Thread_local bool ptx_model_is_rough;

#define PTX static inline __attribute__((unused))

PTX float bits_as_f32(uint64_t wide)
{
    uint32_t bits = (uint32_t)wide;
    float a;
    memcpy(&a, &bits, sizeof(a));
    return a;
}
PTX double bits_as_f64(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, sizeof(a));
    return a;
}
PTX uint32_t f32_as_bits(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof(bits));
    return bits;
}
PTX uint64_t f64_as_bits(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof(bits));
    return bits;
}
PTX float canonical(float a)
{
    return isnan(a) ? bits_as_f32(0x7fffffff) : a;
}
PTX float flushed(float a)
{
    return fabsf(a) < 0x1p-126f ? copysignf(0, a) : a;
}

#define MEMORY(type, T)                                                                            \
    PTX T load_##type(uintptr_t address)                                                           \
    {                                                                                              \
        T value;                                                                                   \
        memcpy(&value, (const void *)address, sizeof(value));                                      \
        return value;                                                                              \
    }                                                                                              \
    PTX void store_##type(uintptr_t address, T value)                                              \
    {                                                                                              \
        memcpy((void *)address, &value, sizeof(value));                                            \
    }
MEMORY(f32, float)
MEMORY(f64, double)
MEMORY(b8, uint8_t)
MEMORY(u8, uint8_t)
MEMORY(s8, int8_t)
MEMORY(u16, uint16_t)
MEMORY(s16, int16_t)
MEMORY(u32, uint32_t)
MEMORY(b32, uint32_t)
MEMORY(s32, int32_t)
MEMORY(u64, uint64_t)
MEMORY(b64, uint64_t)
MEMORY(s64, int64_t)

#define ONE(name, T, R, value)                                                                     \
    PTX R name(T a)                                                                                \
    {                                                                                              \
        return value;                                                                              \
    }
#define TWO(name, T, R, value)                                                                     \
    PTX R name(T a, T b)                                                                           \
    {                                                                                              \
        return value;                                                                              \
    }
#define THREE(name, T, R, value)                                                                   \
    PTX R name(T a, T b, T c)                                                                      \
    {                                                                                              \
        return value;                                                                              \
    }

/* Moves, choices, comparisons. */
#define MOVES(type, T)                                                                             \
    ONE(mov_##type, T, T, a)                                                                       \
    PTX T selp_##type(T a, T b, bool p)                                                            \
    {                                                                                              \
        return p ? a : b;                                                                          \
    }
MOVES(pred, bool)
MOVES(b16, uint16_t)
MOVES(u16, uint16_t)
MOVES(b32, uint32_t)
MOVES(u32, uint32_t)
MOVES(s32, int32_t)
MOVES(b64, uint64_t)
MOVES(u64, uint64_t)
MOVES(s64, int64_t)
MOVES(f32, float)
MOVES(f64, double)

#define COMPARISONS(type, T)                                                                       \
    TWO(setp_eq_##type, T, bool, a == b)                                                           \
    TWO(setp_ne_##type, T, bool, a<b || a> b)                                                      \
    TWO(setp_lt_##type, T, bool, a < b)                                                            \
    TWO(setp_le_##type, T, bool, a <= b)                                                           \
    TWO(setp_gt_##type, T, bool, a > b)                                                            \
    TWO(setp_ge_##type, T, bool, a >= b)
COMPARISONS(u16, uint16_t)
COMPARISONS(s16, int16_t)
COMPARISONS(u32, uint32_t)
COMPARISONS(b32, uint32_t)
COMPARISONS(s32, int32_t)
COMPARISONS(u64, uint64_t)
COMPARISONS(b64, uint64_t)
COMPARISONS(s64, int64_t)
COMPARISONS(f32, float)
COMPARISONS(f64, double)
#define UNORDERED(type, T)                                                                         \
    TWO(setp_equ_##type, T, bool, !(a < b || a > b))                                               \
    TWO(setp_neu_##type, T, bool, a != b)                                                          \
    TWO(setp_ltu_##type, T, bool, !(a >= b))                                                       \
    TWO(setp_leu_##type, T, bool, !(a > b))                                                        \
    TWO(setp_gtu_##type, T, bool, !(a <= b))                                                       \
    TWO(setp_geu_##type, T, bool, !(a < b))                                                        \
    TWO(setp_nan_##type, T, bool, isnan(a) || isnan(b))                                            \
    TWO(setp_num_##type, T, bool, !isnan(a) && !isnan(b))
UNORDERED(f32, float)
UNORDERED(f64, double)
TWO(and_pred, bool, bool, a &b)
TWO(or_pred, bool, bool, a | b)
TWO(xor_pred, bool, bool, a ^ b)
ONE(not_pred, bool, bool, !a)

/* Integers. Shifts beyond the width give 0 or the sign. */
#define INTEGERS(U, S, UT, ST, n_bits)                                                             \
    TWO(and_b##n_bits, UT, UT, a &b)                                                               \
    TWO(or_b##n_bits, UT, UT, a | b)                                                               \
    TWO(xor_b##n_bits, UT, UT, a ^ b)                                                              \
    ONE(not_b##n_bits, UT, UT, ~a)                                                                 \
    TWO(add_##U, UT, UT, a + b)                                                                    \
    TWO(add_##S, UT, UT, a + b)                                                                    \
    TWO(sub_##U, UT, UT, a - b)                                                                    \
    TWO(sub_##S, UT, UT, a - b)                                                                    \
    TWO(mul_lo_##U, UT, UT, a *b)                                                                  \
    TWO(mul_lo_##S, UT, UT, a *b)                                                                  \
    TWO(div_##U, UT, UT, b == 0 ? (UT)-1 : a / b)                                                  \
    TWO(rem_##U, UT, UT, b == 0 ? a : a % b)                                                       \
    THREE(mad_lo_##S, UT, UT, a *b + c)                                                            \
    ONE(neg_##S, UT, UT, 0 - a)                                                                    \
    TWO(min_##U, UT, UT, a < b ? a : b)                                                            \
    TWO(max_##U, UT, UT, a > b ? a : b)                                                            \
    TWO(min_##S, ST, ST, a < b ? a : b)                                                            \
    TWO(max_##S, ST, ST, a > b ? a : b)                                                            \
    PTX UT shl_b##n_bits(UT a, uint32_t n)                                                         \
    {                                                                                              \
        return n < n_bits ? a << n : 0;                                                            \
    }                                                                                              \
    PTX UT shr_##U(UT a, uint32_t n)                                                               \
    {                                                                                              \
        return n < n_bits ? a >> n : 0;                                                            \
    }                                                                                              \
    PTX ST shr_##S(ST a, uint32_t n)                                                               \
    {                                                                                              \
        return a >> (n < n_bits ? n : n_bits - 1);                                                 \
    }
INTEGERS(u16, s16, uint16_t, int16_t, 16)
INTEGERS(u32, s32, uint32_t, int32_t, 32)
INTEGERS(u64, s64, uint64_t, int64_t, 64)
#define SIGNED(S, UT, ST)                                                                          \
    TWO(div_##S, ST, ST, b == 0 ? -1 : b == -1 ? (ST)(0 - (UT)a) : a / b)                          \
    TWO(rem_##S, ST, ST, b == 0 ? a : b == -1 ? 0 : a % b)                                         \
    ONE(abs_##S, ST, ST, a < 0 ? (ST)(0 - (UT)a) : a)
SIGNED(s32, uint32_t, int32_t)
SIGNED(s64, uint64_t, int64_t)
TWO(mul_hi_u32, uint32_t, uint32_t, (uint32_t)((uint64_t)a *b >> 32))
TWO(mul_wide_u16, uint16_t, uint32_t, (uint32_t)a *b)
TWO(mul_wide_u32, uint32_t, uint64_t, (uint64_t)a *b)
TWO(mul_wide_s32, int32_t, int64_t, (int64_t)a *b)
THREE(shf_l_wrap_b32, uint32_t, uint32_t, (uint32_t)(((uint64_t)b << 32 | a) << (c & 31) >> 32))
ONE(clz_b64, uint64_t, uint32_t, a ? (uint32_t)__builtin_clzll(a) : 64)
ONE(popc_b32, uint32_t, uint32_t, (uint32_t)__builtin_popcount(a))
ONE(popc_b64, uint64_t, uint32_t, (uint32_t)__builtin_popcountll(a))
PTX uint32_t prmt_b32(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t chosen = selector >> 4 * i & 15, byte = bytes >> 8 * (chosen & 7) & 255;
        byte = chosen & 8 ? (byte >> 7) * 255 : byte; /* its sign */
        result |= byte << 8 * i;
    }
    return result;
}
PTX uint64_t mad_wide_u32(uint32_t a, uint32_t b, uint64_t c)
{
    return (uint64_t)a * b + c;
}
PTX uint64_t bfi_b64(uint64_t a, uint64_t b, uint32_t position, uint32_t n_bits)
{
    uint64_t mask = (((uint64_t)1 << n_bits) - 1) << position; /* n_bits below 64 */
    return (b & ~mask) | (a << position & mask);
}

/* With a carry: what was carried is a 64-bit sum's upper half, or whether a difference is below 0.
 */
PTX uint32_t summed(uint64_t sum, uint32_t *carry)
{
    *carry = (uint32_t)(sum >> 32);
    return (uint32_t)sum;
}
#define CARRIED(name, value)                                                                       \
    PTX uint32_t name##_u32(uint32_t a, uint32_t b, uint32_t c, uint32_t *carry)                   \
    {                                                                                              \
        return summed(value, carry);                                                               \
    }
#define LO ((uint64_t)(uint32_t)(a * b))
#define HI ((uint64_t)a * b >> 32)
CARRIED(mad_lo_cc, LO + c)
CARRIED(mad_hi_cc, HI + c)
CARRIED(madc_lo_cc, LO + c + *carry)
CARRIED(madc_hi_cc, HI + c + *carry)
CARRIED(madc_lo, LO + c + *carry)
CARRIED(madc_hi, HI + c + *carry)
#define CARRIED_SUM(name, value)                                                                   \
    PTX uint32_t name##_u32(uint32_t a, uint32_t b, uint32_t *carry)                               \
    {                                                                                              \
        return summed(value, carry);                                                               \
    }
CARRIED_SUM(add_cc, (uint64_t)a + b)
CARRIED_SUM(addc_cc, (uint64_t)a + b + *carry)
CARRIED_SUM(addc, (uint64_t)a + b + *carry)
#define BORROWED(name, with)                                                                       \
    PTX uint32_t name##_u32(uint32_t a, uint32_t b, uint32_t *carry)                               \
    {                                                                                              \
        uint64_t difference = (uint64_t)a - b - (with);                                            \
        *carry = difference >> 63;                                                                 \
        return (uint32_t)difference;                                                               \
    }
BORROWED(sub_cc, 0)
BORROWED(subc_cc, *carry)
BORROWED(subc, *carry)
