/* float32 functions that are the project's own: CUDA's are made of the device's approximate
 * exponential and reciprocal, and at the errors that PTX allows these would be up to 6 ulp off
 * (exp 3.9, tan 4.5, sinh and cosh 5.1, arctanh 4.3, erfc 6.2).
 *
 * exp and exp2: n whole and r in [-ln(2) / 2, ln(2) / 2] with the result 2^n exp(r), exp(r) by its
 * Taylor series; the power of two is multiplied in two steps, of which the second rounds once.
 * sinh and cosh: h -+ 1 / (4 h), h = exp(|x|) / 2; sinh below 1 by its Taylor series.
 * arctanh = log1p(2 x / (1 - x)) / 2. tan = sin / cos. erfc: math_erfc.h.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"

#define FLOAT32_LOG2E  1.44269504f
#define FLOAT32_LN2    0.693147181f
#define FLOAT32_LN2_HI 0x1.62e4p-1f /* 15 bits: its product with n is exact */
#define FLOAT32_LN2_LO 0x1.7f7d1c00p-20f

/* exp(r) * 2^n, n from -250 to 250. */
DEVICE f32 scaled_exp_f32(f32 r, f32 n)
{
    f32 sum = 1.0f / 5040;
    sum = fmaf(sum, r, 1.0f / 720);
    sum = fmaf(sum, r, 1.0f / 120);
    sum = fmaf(sum, r, 1.0f / 24);
    sum = fmaf(sum, r, 1.0f / 6);
    sum = fmaf(sum, r, 0.5f);
    sum = 1 + fmaf(sum, r * r, r);
    i32 whole = (i32)n, half = whole / 2;
    return sum * power_of_two_f32(half) * power_of_two_f32(whole - half);
}

/* exp(a) * 2^power, power from -2 to 2. */
DEVICE f32 exp_times_power_f32(f32 a, f32 power)
{
    if (is_nan_f32(a))
        return a;
    a = a > 150 ? 150 : a < -150 ? -150 : a;
    f32 n = rintf(a * FLOAT32_LOG2E);
    f32 r = fmaf(-n, FLOAT32_LN2_LO, fmaf(-n, FLOAT32_LN2_HI, a));
    return scaled_exp_f32(r, n + power);
}

DEVICE_CALL f32 fn_exp_f32(f32 a)
{
    return exp_times_power_f32(a, 0);
}

DEVICE_CALL f32 fn_exp2_f32(f32 a)
{
    if (is_nan_f32(a))
        return a;
    a = a > 200 ? 200 : a < -200 ? -200 : a;
    f32 n = rintf(a);
    return scaled_exp_f32((a - n) * FLOAT32_LN2, n);
}

DEVICE_CALL f32 fn_sinh_f32(f32 a)
{
    f32 y = fn_absolute_f32(a), z = a * a;
    if (y < 1) {
        f32 sum = 1.0f / 39916800;
        sum = fmaf(sum, z, 1.0f / 362880);
        sum = fmaf(sum, z, 1.0f / 5040);
        sum = fmaf(sum, z, 1.0f / 120);
        sum = fmaf(sum, z, 1.0f / 6);
        return fmaf(sum * z, a, a);
    }
    f32 h = exp_times_power_f32(y, -1);
    return fn_copysign_f32(h - 0.25f / h, a);
}

DEVICE_CALL f32 fn_cosh_f32(f32 a)
{
    f32 h = exp_times_power_f32(fn_absolute_f32(a), -1);
    return h + 0.25f / h;
}

DEVICE_CALL f32 fn_arctanh_f32(f32 a)
{
    f32 y = fn_absolute_f32(a);
    return fn_copysign_f32(0.5f * log1pf(2 * y / (1 - y)), a);
}

DEVICE_CALL f32 fn_tan_f32(f32 a)
{
    f32 sine, cosine;
    sincosf(a, &sine, &cosine);
    return sine / cosine;
}
