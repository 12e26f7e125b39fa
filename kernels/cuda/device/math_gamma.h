/* gamma and lgamma (SciPy's gammaln) of float32, computed in float64. CUDA's own are 5 and 6 ulp
 * off, and more near lgamma's zeros.
 *
 * With n the integer nearest to x and t = x - n:
 *     gamma(x) = (t + 1) (t + 2) .. (t + n - 1) / R(t)                      n > 0
 *     gamma(x) = 1 / (t (t - 1) .. (t - |n|) R(t))                          n <= 0
 * where R(t) = 1 / gamma(1 + t) is its Taylor series (Abramowitz & Stegun 6.1.34), exact to float64
 * for |t| <= 1/2. lgamma is the logarithm of that up to |x| = 6 and beyond it Stirling's series
 * (A&S 6.1.41), with the reflection lgamma(-y) = log(pi / (y |sin(pi t)|)) - lgamma(y) (6.1.17)
 * below zero. The same formulas as the CPU engine's (kernels/cpu/levels/gamma.c).
 *
 * Special values: gamma(+-0) is +-inf, of negative integers and -inf NaN, below -47 a zero with the
 * sign; lgamma(-inf) is -inf, as SciPy has it, of 0 and negative integers inf.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"
#include "kernels/cuda/device/math_elementary.h"

#define GAMMA_N_TERMS         20
#define GAMMA_LARGEST_PRODUCT 6.0
#define GAMMA_LEAST           -47.0 /* from here on float32 results are zeros */
#define GAMMA_MOST            36.0  /* infinite */
#define MATH_PI               3.14159265358979323846

DEVICE_TABLE f64 gamma_series[GAMMA_N_TERMS] = {
#define TERM(value) value,
#include "kernels/common/gamma_series.def"
#undef TERM
};

DEVICE bool is_even_f64(f64 n)
{
    return rint(n * 0.5) == n * 0.5;
}

/* Of finite numbers no larger than a few hundred. Infinite at poles. */
DEVICE f64 gamma_product(f64 x)
{
    f64 n = rint(x), t = x - n, u = n > 0 ? t : -t, last = n > 0 ? n - 1 : -n;
    f64 product = 1, r = gamma_series[GAMMA_N_TERMS - 1];
    for (f64 k = 1; k <= last; k += 1)
        product *= u + k;
    for (int i = GAMMA_N_TERMS - 2; i >= 0; i--)
        r = r * t + gamma_series[i];
    if (n > 0)
        return product / r;
    return (is_even_f64(n) ? -1.0 : 1.0) / (u * product * r);
}

DEVICE_CALL f32 fn_gamma_f32(f32 a)
{
    f64 x = (f64)a;
    if (x == 0)
        return from_bits_f32(INFINITE_f32 | (bits_of_f32(a) & SIGN_MASK_f32));
    if (is_nan_f32(a))
        return a;
    if (x < 0 && floor(x) == x)
        return from_bits_f32(INFINITE_f32 | 1u << 22); /* NaN */
    if (x < GAMMA_LEAST)
        return is_even_f64(floor(x)) ? 0.0f : -0.0f;
    return (f32)gamma_product(x < GAMMA_MOST ? x : GAMMA_MOST);
}

/* log(gamma(y)), y above GAMMA_LARGEST_PRODUCT. */
DEVICE f64 lgamma_by_stirling(f64 y)
{
    f64 z = 1 / (y * y);
    f64 series = 1.0 / 156 - z * (3617.0 / 122400);
    series = -1.0 / 1680 + z * (1.0 / 1188 - z * (691.0 / 360360 - z * series));
    series = 1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 + z * series));
    return (y - 0.5) * fn_log_f64(y) - y + 0.91893853320467274178 + series / y;
}

DEVICE_CALL f32 fn_lgamma_f32(f32 a)
{
    f64 x = (f64)a, y = fn_absolute_f64(x);
    if (!is_finite_f32(a))
        return a;
    if (y <= GAMMA_LARGEST_PRODUCT)
        return (f32)fn_log_f64(fn_absolute_f64(gamma_product(x)));
    f64 stirling = lgamma_by_stirling(y);
    if (x > 0)
        return (f32)stirling;
    f64 sine = fn_absolute_f64(fn_sin_f64(MATH_PI * (x - rint(x))));
    return (f32)(fn_log_f64(MATH_PI / (y * sine)) - stirling);
}
