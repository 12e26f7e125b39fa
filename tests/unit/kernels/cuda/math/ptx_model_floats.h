/* The other half of ptx_model.h: floating-point instructions. */
#pragma once

#include "tests/unit/kernels/cuda/math/ptx_model.h"

/* Rounded to nearest. */
TWO(add_rn_f32, float, float, canonical(a + b))
TWO(sub_rn_f32, float, float, canonical(a - b))
TWO(mul_rn_f32, float, float, canonical(a *b))
TWO(div_rn_f32, float, float, canonical(a / b))
THREE(fma_rn_f32, float, float, canonical(fmaf(a, b, c)))
ONE(sqrt_rn_f32, float, float, canonical(sqrtf(a)))
ONE(rcp_rn_f32, float, float, canonical(1 / a))
TWO(add_rn_f64, double, double, a + b)
TWO(sub_rn_f64, double, double, a - b)
TWO(mul_rn_f64, double, double, a *b)
TWO(div_rn_f64, double, double, a / b)
THREE(fma_rn_f64, double, double, fma(a, b, c))
ONE(sqrt_rn_f64, double, double, sqrt(a))
ONE(rcp_rn_f64, double, double, 1 / a)

/* Towards 0 and downwards: from the rounded result and the sign of what it lost. */
PTX float towards_0(float r, double lost)
{
    bool is_beyond = r > 0 ? lost < 0 : lost > 0; /* lost: exact - r */
    return is_beyond && isfinite(r) ? nextafterf(r, 0) : canonical(r);
}
PTX double lost_by_sum(double a, double b, double r) /* of float32 or their products */
{
    double sum = a + b, back = sum - a;
    return (sum - r) + ((a - (sum - back)) + (b - back));
}
TWO(add_rz_f32, float, float, towards_0(a + b, lost_by_sum((double)a, (double)b, (double)(a + b))))
PTX float fma_rz_f32(float a, float b, float c)
{
    float r = fmaf(a, b, c);
    return towards_0(r, lost_by_sum((double)a * (double)b, (double)c, (double)r));
}
PTX float fma_rm_f32(float a, float b, float c)
{
    float r = fmaf(a, b, c);
    bool is_above = lost_by_sum((double)a * (double)b, (double)c, (double)r) < 0;
    return is_above && isfinite(r) ? nextafterf(r, -INFINITY) : canonical(r);
}

/* Signs, selections. copysign takes the sign of its first operand. */
ONE(neg_f32, float, float, -a)
ONE(abs_f32, float, float, fabsf(a))
ONE(neg_f64, double, double, -a)
ONE(abs_f64, double, double, fabs(a))
TWO(copysign_f32, float, float, copysignf(b, a))
TWO(copysign_f64, double, double, copysign(b, a))
#define SELECTIONS(type, T)                                                                        \
    PTX T min_##type(T a, T b)                                                                     \
    {                                                                                              \
        if (isnan(a) || isnan(b))                                                                  \
            return isnan(a) ? b : a;                                                               \
        return a < b || (a == b && signbit(a)) ? a : b;                                            \
    }                                                                                              \
    PTX T max_##type(T a, T b)                                                                     \
    {                                                                                              \
        if (isnan(a) || isnan(b))                                                                  \
            return isnan(a) ? b : a;                                                               \
        return a > b || (a == b && signbit(b)) ? a : b;                                            \
    }
SELECTIONS(f32, float)
SELECTIONS(f64, double)

/* Conversions; to an integer: the nearest that there is, of NaN 0 (float32 to 32 bits), else the
 * least. */
ONE(cvt_rn_f32_f64, double, float, canonical((float)a))
ONE(cvt_f64_f32, float, double, (double)a)
ONE(cvt_rn_f32_s16, int16_t, float, (float)a)
ONE(cvt_rn_f32_u16, uint16_t, float, (float)a)
ONE(cvt_rn_f64_s16, int16_t, double, (double)a)
ONE(cvt_rn_f64_u16, uint16_t, double, (double)a)
ONE(cvt_rn_f32_s64, int64_t, float, (float)a)
ONE(cvt_rn_f32_u64, uint64_t, float, (float)a)
ONE(cvt_rn_f32_s32, int32_t, float, (float)a)
ONE(cvt_rn_f32_u32, uint32_t, float, (float)a)
ONE(cvt_rn_f64_s32, int32_t, double, (double)a)
ONE(cvt_rn_f64_u32, uint32_t, double, (double)a)
ONE(cvt_rn_f64_s64, int64_t, double, (double)a)
ONE(cvt_rn_f64_u64, uint64_t, double, (double)a)
ONE(cvt_rni_f32_f32, float, float, rintf(a))
ONE(cvt_rmi_f32_f32, float, float, floorf(a))
ONE(cvt_rpi_f32_f32, float, float, ceilf(a))
ONE(cvt_rzi_f32_f32, float, float, truncf(a))
ONE(cvt_rni_f64_f64, double, double, rint(a))
ONE(cvt_rmi_f64_f64, double, double, floor(a))
ONE(cvt_rpi_f64_f64, double, double, ceil(a))
ONE(cvt_rzi_f64_f64, double, double, trunc(a))
ONE(cvt_sat_f32_f32, float, float, a > 0 ? (a < 1 ? a : 1) : 0)
PTX int32_t limited_s32(double whole)
{
    return whole >= 0x1p31 ? INT32_MAX : whole > -0x1p31 ? (int32_t)whole : INT32_MIN;
}
PTX int64_t limited_s64(double whole)
{
    return whole >= 0x1p63 ? INT64_MAX : whole > -0x1p63 ? (int64_t)whole : INT64_MIN;
}
ONE(cvt_rni_s32_f32, float, int32_t, isnan(a) ? 0 : limited_s32(rint((double)a)))
ONE(cvt_rzi_s32_f32, float, int32_t, isnan(a) ? 0 : limited_s32(trunc((double)a)))
ONE(cvt_rmi_s32_f32, float, int32_t, isnan(a) ? 0 : limited_s32(floor((double)a)))
ONE(cvt_rni_s32_f64, double, int32_t, limited_s32(rint(a)))
ONE(cvt_rzi_s32_f64, double, int32_t, limited_s32(trunc(a)))
ONE(cvt_rzi_s64_f64, double, int64_t, limited_s64(trunc(a)))
ONE(cvt_rzi_u64_f64, double, uint64_t, a > 0 ? (a < 0x1p64 ? (uint64_t)a : UINT64_MAX) : 0)

/* The approximations. 1 + e of an argument's bits. */
PTX double roughly(uint64_t bits, double bound)
{
    if (!ptx_model_is_rough)
        return 1;
    bits = (bits ^ bits >> 31) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 32;
    double share = bits & 1 ? 1 : (double)(bits >> 12 & 0xffff) * 0x1p-16;
    return 1 + (bits & 2 ? share : -share) * bound;
}
#define ROUGH_2_22_5 0x1.6a09e6p-23
#define ROUGH_2_22_6 0x1.51d1p-23
#define ROUGH_2_22_9 0x1.125fbep-23
PTX float ex2_approx_f32(float a)
{
    if (isnan(a) || isinf(a) || a == rintf(a))
        return canonical(exp2f(a));
    return (float)(exp2((double)a) * roughly(f32_as_bits(a), ROUGH_2_22_5));
}
ONE(ex2_approx_ftz_f32, float, float, flushed(ex2_approx_f32(flushed(a))))
PTX float lg2_approx_f32(float a)
{
    if (!(a > 0) || isinf(a))
        return canonical(a == 0 ? -INFINITY : log2f(a));
    double exact = log2((double)a), off = roughly(f32_as_bits(a), ROUGH_2_22_6);
    return (float)(fabs(exact) < 1 ? exact + (off - 1) : exact * off);
}
ONE(lg2_approx_ftz_f32, float, float, lg2_approx_f32(flushed(a)))
PTX float rcp_approx_ftz_f32(float a)
{
    a = flushed(a);
    if (isnan(a) || isinf(a) || a == 0)
        return canonical(1 / a);
    return flushed((float)(1 / (double)a * roughly(f32_as_bits(a), 0x1p-23)));
}
PTX float rsqrt_approx_ftz_f32(float a)
{
    a = flushed(a);
    if (!(a > 0) || isinf(a))
        return canonical(a == 0 ? 1 / a : 1 / sqrtf(a));
    return (float)(1 / sqrt((double)a) * roughly(f32_as_bits(a), ROUGH_2_22_9));
}
PTX float div_approx_f32(float a, float b)
{
    double quotient = (double)a / (double)b;
    if (fabsf(b) > 0x1p126f && isfinite(b) && isfinite(a))
        return copysignf(0, (float)quotient); /* as PTX says */
    return canonical((float)(quotient * roughly(f32_as_bits(a) ^ f32_as_bits(b), 0x1p-22)));
}
TWO(div_approx_ftz_f32, float, float, flushed(div_approx_f32(flushed(a), flushed(b))))

/* exact: of the number whose lower 32 bits are 0. */
PTX double upper_half(double r)
{
    double flushed_r = fabs(r) < 0x1p-1022 ? copysign(0, r) : r;
    return isnan(r) ? r : bits_as_f64(f64_as_bits(flushed_r) & ~(uint64_t)UINT32_MAX);
}
PTX double rcp_approx_ftz_f64(double a)
{
    double x = upper_half(a);
    if (isnan(x) || isinf(x) || x == 0)
        return 1 / x;
    return upper_half(1 / x * roughly(f64_as_bits(x), 0x1p-20));
}
PTX double rsqrt_approx_ftz_f64(double a)
{
    double x = upper_half(a);
    if (!(x > 0) || isinf(x))
        return x == 0 ? 1 / x : 1 / sqrt(x);
    return upper_half(1 / sqrt(x) * roughly(f64_as_bits(x), 0x1p-20));
}
