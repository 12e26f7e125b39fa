/* Random bits as numbers of a distribution, for both engines: the common subset of C11 and CUDA
 * C++.
 *
 * All of it is additions, products, quotients and square roots, each rounded once as IEEE 754 says
 * (nothing may be fused), conversions that are exact or rounded once, and selections: every level
 * of the CPU engine and every device gives the same bits, and a compiler can make vectors of it.
 *
 * uniform: 24 (53) of the bits, times 2^-24 (2^-53): from 0 to below 1.
 * The others are inverses of the distribution function at u = (bits + 1/2) / 2^32 (2^64), which is
 * neither 0 nor 1; what lies near 0 and near 1 is computed from the distance, so that the tails are
 * as dense as the bits allow: float32 normals reach 6.3 and exponentials 22.9, float64 ones 9.1 and
 * 45.1.
 *
 * normal, float32: with p the smaller of u and 1 - u, x = 1 - 2 p and w = -log(4 p (1 - p)) it is
 * -+x P(w), where P is one polynomial in w up to 6.5 and one in sqrt(w) beyond (the variables are
 * those of Giles, Approximating the erfinv function, 2010; minimax polynomials of our own).
 * float64: PPND16 of Wichura, Algorithm AS 241: The percentage points of the normal distribution,
 * Applied Statistics 37, 1988. exponential: -log(1 - u), by log1p where u is small.
 * log: f in [sqrt(1/2) - 1, sqrt(2) - 1]; float32 a polynomial in f, float64 in s = f / (2 + f).
 */
#pragma once

#include "kernels/common/random_bits.h"

#if defined(__CUDACC__)
#define RANDOM_SQRT_f32(a) __fsqrt_rn(a)
#define RANDOM_SQRT_f64(a) __dsqrt_rn(a)
RANDOM_INLINE u32 random_bits_of_f32(f32 a)
{
    return __float_as_uint(a);
}
RANDOM_INLINE f32 random_from_bits_f32(u32 bits)
{
    return __uint_as_float(bits);
}
RANDOM_INLINE u64 random_bits_of_f64(f64 a)
{
    return (u64)__double_as_longlong(a);
}
RANDOM_INLINE f64 random_from_bits_f64(u64 bits)
{
    return __longlong_as_double((long long)bits);
}
#else
#define RANDOM_SQRT_f32(a) __builtin_sqrtf(a)
#define RANDOM_SQRT_f64(a) __builtin_sqrt(a)
RANDOM_INLINE u32 random_bits_of_f32(f32 a)
{
    u32 bits;
    __builtin_memcpy(&bits, &a, sizeof(bits));
    return bits;
}
RANDOM_INLINE f32 random_from_bits_f32(u32 bits)
{
    f32 a;
    __builtin_memcpy(&a, &bits, sizeof(a));
    return a;
}
RANDOM_INLINE u64 random_bits_of_f64(f64 a)
{
    u64 bits;
    __builtin_memcpy(&bits, &a, sizeof(bits));
    return bits;
}
RANDOM_INLINE f64 random_from_bits_f64(u64 bits)
{
    f64 a;
    __builtin_memcpy(&a, &bits, sizeof(a));
    return a;
}
#endif

/* Exact: numbers below 2^52 are the fraction of 2^52. */
RANDOM_INLINE f64 random_f64_of_u32(u64 low_32_bits)
{
    return random_from_bits_f64(0x4330000000000000u | low_32_bits) - 0x1p52;
}

/* bits + 1/2, rounded once. */
RANDOM_INLINE f32 random_midpoint_f32(u32 bits)
{
    return (f32)(i32)(bits >> 16) * 65536.0f + ((f32)(i32)(bits & 0xffff) + 0.5f);
}

RANDOM_INLINE f64 random_midpoint_f64(u64 bits)
{
    return random_f64_of_u32(bits >> 32) * 0x1p32 + (random_f64_of_u32(bits & 0xffffffff) + 0.5);
}

/* 2^32 (2^64) less that, rounded once. */
RANDOM_INLINE f32 random_distance_f32(u32 bits)
{
    return (65535.0f - (f32)(i32)(bits >> 16)) * 65536.0f + (65535.5f - (f32)(i32)(bits & 0xffff));
}

RANDOM_INLINE f64 random_distance_f64(u64 bits)
{
    return (4294967295.0 - random_f64_of_u32(bits >> 32)) * 0x1p32 +
           (4294967295.5 - random_f64_of_u32(bits & 0xffffffff));
}

RANDOM_INLINE f32 random_uniform_f32(u32 bits)
{
    return (f32)(i32)(bits >> 8) * 0x1p-24f;
}

RANDOM_INLINE f64 random_uniform_f64(u64 bits)
{
    bits >>= 11;
    return (random_f64_of_u32(bits >> 32) * 0x1p32 + random_f64_of_u32(bits & 0xffffffff)) *
           0x1p-53;
}

/* Polynomials in pairs (Estrin's scheme): short chains of operations. */
#define RANDOM_PAIR(c0, c1, x)             ((c1) * (x) + (c0))
#define RANDOM_FOUR(c0, c1, c2, c3, x, x2) (RANDOM_PAIR(c2, c3, x) * (x2) + RANDOM_PAIR(c0, c1, x))

/* A number a > 0, not denormal, as 2^exponent (1 + f). */
struct random_parts_f32 {
    f32 exponent, f;
};
struct random_parts_f64 {
    f64 exponent, f;
};

RANDOM_INLINE struct random_parts_f32 random_split_f32(f32 a)
{
    const u32 root_half = 0x3f3504f3u;
    u32 shifted = random_bits_of_f32(a) + (0x3f800000u - root_half);
    struct random_parts_f32 parts;
    parts.exponent = (f32)((i32)(shifted >> 23) - 127);
    parts.f = random_from_bits_f32((shifted & 0x007fffffu) + root_half) - 1.0f;
    return parts;
}

RANDOM_INLINE struct random_parts_f64 random_split_f64(f64 a)
{
    const u64 root_half = 0x3fe6a09e667f3bcdu;
    u64 shifted = random_bits_of_f64(a) + (0x3ff0000000000000u - root_half);
    struct random_parts_f64 parts;
    parts.exponent = random_f64_of_u32(shifted >> 52) - 1023.0;
    parts.f = random_from_bits_f64((shifted & 0x000fffffffffffffu) + root_half) - 1.0;
    return parts;
}

/* The logarithm of such a number (float32: its negative). ln 2 is a sum whose first part times an
 * exponent is exact. */
RANDOM_INLINE f32 random_minus_log_f32(struct random_parts_f32 a)
{
    f32 f = a.f, f2 = f * f, f4 = f2 * f2;
    f32 low = RANDOM_FOUR(0.333333313f, -0.250008225f, 0.200012267f, -0.166233554f, f, f2);
    f32 high = RANDOM_FOUR(0.142017677f, -0.131602123f, 0.127615184f, -0.0763434544f, f, f2);
    f32 rest = f2 * f * (high * f4 + low) + a.exponent * 0x1.7f7d1cp-20f;
    return ((0.5f * f2 - rest) - f) - a.exponent * 0x1.62e4p-1f;
}

RANDOM_INLINE f64 random_log_f64(struct random_parts_f64 a)
{
    f64 f = a.f, s = f / (2.0 + f), z = s * s, z2 = z * z, half = 0.5 * f * f;
    f64 low = RANDOM_FOUR(0.6666666666667346, 0.3999999999554498, 0.28571429547271177,
                          0.22222121570046427, z, z2);
    f64 high = RANDOM_PAIR(0.1818731011312739, 0.15223849042780346, z) + 0.1564993645874097 * z2;
    f64 sum = (high * (z2 * z2) + low) * z;
    f64 rest = s * (half + sum) + a.exponent * 0x1.a39ef35793c76p-33;
    return a.exponent * 0x1.62e42feep-1 + (f - (half - rest));
}

RANDOM_INLINE f32 random_exponential_f32(u32 bits)
{
    f32 u = random_midpoint_f32(bits) * 0x1p-32f, left = random_distance_f32(bits) * 0x1p-32f;
    struct random_parts_f32 parts = random_split_f32(left);
    parts.f = parts.exponent == 0.0f ? -u : parts.f;
    return random_minus_log_f32(parts);
}

RANDOM_INLINE f64 random_exponential_f64(u64 bits)
{
    f64 u = random_midpoint_f64(bits) * 0x1p-64, left = random_distance_f64(bits) * 0x1p-64;
    struct random_parts_f64 parts = random_split_f64(left);
    parts.f = parts.exponent == 0.0 ? -u : parts.f;
    return 0.0 - random_log_f64(parts);
}

/* normal, float32: in steps, so that the rare tail may be left out where nobody is in it. */
#define RANDOM_TAIL_F32   6.5f
#define RANDOM_FAR_FOLDED (1u << 21) /* all in the tail are folded to less */

/* The bits' distance from the middle: 31 of them, 0 the farthest. */
RANDOM_INLINE u32 random_folded_u32(u32 bits)
{
    return bits ^ (0u - (bits >> 31));
}

RANDOM_INLINE f32 random_normal_x_f32(u32 bits)
{
    return ((f32)(i32)(0x7fffffffu - random_folded_u32(bits)) + 0.5f) * 0x1p-31f;
}

/* 4 p (1 - p) */
RANDOM_INLINE f32 random_normal_product_f32(u32 bits)
{
    f32 twice_p = ((f32)(i32)random_folded_u32(bits) + 0.5f) * 0x1p-31f;
    f32 other = 1.0f + random_normal_x_f32(bits); /* twice 1 - p */
    return twice_p * other;
}

RANDOM_INLINE f32 random_normal_w_f32(u32 bits)
{
    return random_minus_log_f32(random_split_f32(random_normal_product_f32(bits)));
}

RANDOM_INLINE f32 random_normal_near_f32(f32 w)
{
    f32 t = w - 2.5f, t2 = t * t, t4 = t2 * t2;
    f32 low = RANDOM_FOUR(2.12331343f, 0.34880206f, -0.00590757513f, -0.00177168916f, t, t2);
    f32 middle =
        RANDOM_FOUR(0.000308604067f, -6.99803377e-06f, -4.81682218e-06f, 6.55489089e-07f, t, t2);
    f32 high = RANDOM_PAIR(1.84653075e-08f, -1.22033272e-08f, t) + 9.04637365e-10f * t2;
    return (high * t4 + middle) * t4 + low;
}

RANDOM_INLINE f32 random_normal_far_f32(f32 w)
{
    f32 t = RANDOM_SQRT_f32(w) - 3.5f, t2 = t * t, t4 = t2 * t2;
    f32 low = RANDOM_FOUR(4.71708918f, 1.42463398f, 0.00463685626f, -0.00290947803f, t, t2);
    f32 high =
        RANDOM_FOUR(0.0015280532f, -0.000987857115f, 0.000657510537f, -0.000294962956f, t, t2);
    return (5.66777890e-05f * t4 + high) * t4 + low;
}

/* From the polynomial's value. */
RANDOM_INLINE f32 random_normal_signed_f32(u32 bits, f32 polynomial)
{
    f32 value = random_normal_x_f32(bits) * polynomial;
    return random_from_bits_f32(random_bits_of_f32(value) ^ (~bits & 0x80000000u));
}

RANDOM_INLINE f32 random_normal_f32(u32 bits)
{
    f32 w = random_normal_w_f32(bits);
    return random_normal_signed_f32(bits, w < RANDOM_TAIL_F32 ? random_normal_near_f32(w)
                                                              : random_normal_far_f32(w));
}

/* normal, float64: AS 241, with its three ranges. */
#define RANDOM_EIGHT(a0, a1, a2, a3, a4, a5, a6, a7, x, x2)                                        \
    (RANDOM_FOUR(a4, a5, a6, a7, x, x2) * ((x2) * (x2)) + RANDOM_FOUR(a0, a1, a2, a3, x, x2))

RANDOM_INLINE u64 random_folded_u64(u64 bits)
{
    return bits ^ (0u - (bits >> 63));
}

/* 1/2 - p, and p itself. */
RANDOM_INLINE f64 random_normal_q_f64(u64 bits)
{
    return random_midpoint_f64(0x7fffffffffffffffu - random_folded_u64(bits)) * 0x1p-64;
}

RANDOM_INLINE f64 random_normal_r_f64(u64 bits)
{
    f64 p = random_midpoint_f64(random_folded_u64(bits)) * 0x1p-64;
    return RANDOM_SQRT_f64(0.0 - random_log_f64(random_split_f64(p)));
}

RANDOM_INLINE f64 random_normal_near_f64(f64 q)
{
    f64 r = 0.180625 - q * q, r2 = r * r;
    f64 above =
        RANDOM_EIGHT(3.3871328727963666080, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                     3.3430575583588128105e+4, 2.5090809287301226727e+3, r, r2);
    f64 below =
        RANDOM_EIGHT(1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
                     5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
                     2.8729085735721942674e+4, 5.2264952788528545610e+3, r, r2);
    return q * above / below;
}

RANDOM_INLINE f64 random_normal_far_f64(f64 distance)
{
    f64 r = distance - 1.6, r2 = r * r;
    f64 above =
        RANDOM_EIGHT(1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
                     3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1,
                     2.27238449892691845833e-2, 7.74545014278341407640e-4, r, r2);
    f64 below =
        RANDOM_EIGHT(1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
                     1.48103976427480074590e-1, 1.51986665636164571966e-2,
                     5.47593808499534494600e-4, 1.05075007164441684324e-9, r, r2);
    return above / below;
}

RANDOM_INLINE f64 random_normal_farthest_f64(f64 distance)
{
    f64 r = distance - 5.0, r2 = r * r;
    f64 above = RANDOM_EIGHT(6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
                             2.96560571828504891230e-1, 2.65321895265761230930e-2,
                             1.24266094738807843860e-3, 2.71155556874348757815e-5,
                             2.01033439929228813265e-7, r, r2);
    f64 below = RANDOM_EIGHT(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                             1.48753612908506148525e-2, 7.86869131145613259100e-4,
                             1.84631831751005468180e-5, 1.42151175831644588870e-7,
                             2.04426310338993978564e-15, r, r2);
    return above / below;
}

RANDOM_INLINE f64 random_normal_signed_f64(u64 bits, f64 value)
{
    return random_from_bits_f64(random_bits_of_f64(value) ^ (~bits & 0x8000000000000000u));
}

RANDOM_INLINE f64 random_normal_f64(u64 bits)
{
    f64 q = random_normal_q_f64(bits);
    if (q <= 0.425)
        return random_normal_signed_f64(bits, random_normal_near_f64(q));
    f64 r = random_normal_r_f64(bits);
    return random_normal_signed_f64(bits, r <= 5.0 ? random_normal_far_f64(r)
                                                   : random_normal_farthest_f64(r));
}
