/* gamma and lgamma (SciPy's gammaln) of float64, in pairs of float64 where digits would be lost.
 * CUDA's own are 10 and 4 ulp off, lgamma's far more below -2.26.
 *
 * With n the integer nearest to x, t = x - n and R(t) = 1 / gamma(1 + t):
 *     |x| <= 30    gamma(x) is a product over R(t), as in math_gamma.h, in pairs: good to 2^-95
 *     x > 30       gamma(x) = exp((x - 1/2) log(x) - x + log(2 pi) / 2 + 1 / (12 x) - ..)
 *     x < -30      gamma(-y) = -pi / (y sin(pi y) gamma(y))
 * lgamma is the logarithm of the first, the exponent of the second, and log(pi / (y |sin(pi t)|)) -
 * lgamma(y) (A&S 6.1.17). Where it is nearly 0 it keeps its digits:
 *     1/2 to 5/2   -log1p(R(t) - 1) and log1p((1 + t - R(t)) / R(t)): the 1 is left out of the sums
 *     below 0      log1p(|gamma(x)| - 1); next to the zeros above -4.5 even a pair is too short,
 * and lgamma is its Taylor series there. The other zeros are so steep that the float64 next to one
 * is far from it.
 *
 * Special values are those of math_gamma.h; gamma's last results below zero are denormals at -184.
 */
#pragma once

#include "kernels/cuda/device/math_double.h"
#include "kernels/cuda/device/math_elementary.h"
#include "kernels/cuda/device/math_gamma.h"

#define GAMMA_N_PAIRS      18 /* terms of R(t), from t's on, that are pairs; then */
#define GAMMA_N_SINGLES    9  /* these are float64 */
#define GAMMA_PRODUCT_MOST 30.0
#define GAMMA_TINY         0x1p-60 /* gamma(x) is 1 / x */
#define GAMMA_N_ZEROS      5

DEVICE_TABLE f64 gamma_pairs[GAMMA_N_PAIRS][2] = {
    {0x1.2788cfc6fb619p-1, -0x1.6cb90701fbfabp-58},
    {-0x1.4fcf4026afa2ep-1, 0x1.8a3db7a90c42ap-56},
    {-0x1.5815e8fa27048p-5, 0x1.b85ea59bc3638p-60},
    {0x1.5512320b43fbep-3, 0x1.77e9bfd84d0f8p-57},
    {-0x1.59af103c34092p-5, -0x1.ef8da0241c465p-59},
    {-0x1.3b4af28483e21p-7, -0x1.38dbcf40c139bp-61},
    {0x1.d919c527f60b2p-8, -0x1.a91714b11611fp-62},
    {-0x1.317112ce3a2a8p-10, 0x1.0b48922be53b9p-64},
    {-0x1.c364fe6f1563dp-13, 0x1.6707f71f86f2ep-69},
    {0x1.0c8a78cd9f9d2p-13, -0x1.6193e5e682992p-67},
    {-0x1.51ce8af47eabep-16, 0x1.26de8c501cb48p-75},
    {-0x1.4fad41fc34fbbp-20, -0x1.01776ab160dc8p-75},
    {0x1.302509dbc0de3p-20, -0x1.bf09003481b1ap-75},
    {-0x1.b9986666c225dp-23, -0x1.d12e45de59d01p-79},
    {0x1.a44b7ba22d629p-28, -0x1.4d6f19c81365fp-82},
    {0x1.57bc3fc384334p-28, -0x1.30a82205f48c5p-86},
    {-0x1.44b4cedca388fp-30, -0x1.f1c4c0ce1c9c5p-84},
    {0x1.cae7675c18607p-34, -0x1.d04082c7c66aap-89},
};
DEVICE_TABLE f64 gamma_singles[GAMMA_N_SINGLES] = {
    0x1.11d065bfaf067p-37,  -0x1.0423bac8ca3fbp-38, 0x1.1f20151323cd0p-41,
    -0x1.72cb88ea5ae6ep-46, -0x1.815f72a05f16fp-48, 0x1.6198491a83bcdp-50,
    -0x1.10613dde57a89p-53, 0x1.5e3fee81de0eap-60,  0x1.a0dc770fb8a4ap-60,
};
/* The zero as a pair, the first three derivatives there over 1, 2 and 6. */
DEVICE_TABLE f64 lgamma_zeros[GAMMA_N_ZEROS][5] = {
    {-0x1.3a7fc9600f86cp+1, -0x1.55f64f98af8d0p-55, 0x1.83fe966af535fp+0, 0x1.36eebb002f55dp+2,
     0x1.694a6058a7858p+0},
    {-0x1.5fb410a1bd901p+1, 0x1.a19a96d2e6f85p-54, -0x1.ea12da904b18cp+0, 0x1.3267f3c265a52p+3,
     -0x1.4185ac30c8bf2p+4},
    {-0x1.9260dbc9e59afp+1, -0x1.f717cd335a7b3p-53, 0x1.f20a65f2fac55p+2, 0x1.9d4d2977150efp+4,
     0x1.c1137124d5c5bp+6},
    {-0x1.fa471547c2fe5p+1, -0x1.70d4561291237p-56, -0x1.4b99d966c5647p+4, 0x1.f76deae0436bep+7,
     -0x1.d25359d4b2f38p+11},
    {-0x1.0284e78599581p+2, 0x1.e78c1e9e43cfep-53, 0x1.aca5cf4921642p+4, 0x1.44415cd813f8ep+8,
     0x1.559b11b2a9c7cp+12},
};

/* R(t) - 1, |t| <= 1/2, to the last digits of a pair also where it is small. */
DEVICE struct pair reciprocal_gamma_less_1(f64 t)
{
    f64 single = gamma_singles[GAMMA_N_SINGLES - 1];
    for (int i = GAMMA_N_SINGLES - 2; i >= 0; i--)
        single = single * t + gamma_singles[i];
    struct pair sum = pair_of(single, 0);
    for (int i = GAMMA_N_PAIRS - 1; i >= 0; i--)
        sum = pair_add(pair_of(gamma_pairs[i][0], gamma_pairs[i][1]), pair_scaled(sum, t));
    return pair_scaled(sum, t);
}

/* gamma(x), GAMMA_TINY <= |x| <= GAMMA_PRODUCT_MOST, x no pole. */
DEVICE struct pair gamma_of_pair(f64 x)
{
    f64 n = rint(x), t = x - n, u = n > 0 ? t : -t, last = n > 0 ? n - 1 : -n;
    struct pair r = reciprocal_gamma_less_1(t);
    r = pair_add(pair_of(1, 0), r);
    struct pair product = pair_of(1, 0);
    for (f64 k = 1; k <= last; k += 1)
        product = pair_multiply(product, fast_sum(k, u));
    if (n > 0)
        return pair_divide(product, r);
    f64 sign = is_even_f64(n) ? -1.0 : 1.0;
    return pair_divide(pair_of(sign, 0), pair_scaled(pair_multiply(product, r), u));
}

/* log(gamma(y)), y > GAMMA_PRODUCT_MOST; an infinity in hi where it overflows. Written so that
 * it does not overflow before: (y - 1/2) (log(y) - 1) + (log(2 pi) - 1) / 2 + series. */
DEVICE struct pair lgamma_of_large(f64 y)
{
    f64 z = 1 / (y * y);
    f64 series = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / y;
    struct pair log_less_1 = pair_add(pair_log(y), pair_of(-1, 0));
    struct pair less = exact_sum(y, -0.5);
    f64 near = less.hi * log_less_1.hi;
    if (is_infinite_f64(near))
        return pair_of(near, 0);
    struct pair rest = pair_of(0x1.acfe390c97d69p-2, 0x1.3494bc9001442p-56);
    rest = pair_add(rest, pair_of(series, 0));
    return pair_add(pair_multiply(less, log_less_1), rest);
}

/* sin(pi t), |t| <= 1/2: its Taylor series, of which the terms of t and t^3 are pairs. */
DEVICE struct pair sine_of_pi_times(f64 t)
{
    struct pair square = exact_product(t, t);
    f64 z = square.hi, sum = -0x1.7215f879e1ac9p-37;
    sum = sum * z + 0x1.2877020d52cf0p-31;
    sum = sum * z - 0x1.8a404211f9547p-26;
    sum = sum * z + 0x1.aaec32af93359p-21;
    sum = sum * z - 0x1.6fadb9f155744p-16;
    sum = sum * z + 0x1.e8f434d018d63p-12;
    sum = sum * z - 0x1.e3074fde8871fp-8;
    sum = sum * z + 0x1.50783487ee782p-4;
    sum = sum * z - 0x1.32d2cce62bd86p-1;
    sum = (sum * z + 0x1.466bc6775aae2p+1) * z;
    struct pair series =
        pair_add(pair_of(-0x1.4abbce625be53p+2, 0x1.05511c68476a8p-52), pair_of(sum, 0));
    series = pair_multiply(series, square);
    series = pair_add(pair_of(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), series);
    return pair_scaled(series, t);
}

/* pi / (y |sin(pi y)|), y = -x and t = x - rint(x), not 0. */
DEVICE struct pair reflected_f64(f64 y, f64 t)
{
    struct pair pi = pair_of(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53);
    return pair_divide(pi, pair_scaled(sine_of_pi_times(fn_absolute_f64(t)), y));
}

DEVICE f64 gamma_of_far(f64 x)
{
    f64 y = fn_absolute_f64(x), t = x - rint(x);
    if (y > 200)
        y = 200; /* infinite, 0 */
    i64 exponent;
    f64 mantissa = pair_exp(lgamma_of_large(y), &exponent);
    if (x > 0)
        return fn_ldexp_f64(mantissa, exponent);
    f64 result = fn_ldexp_f64(reflected_f64(y, t).hi / mantissa, -exponent);
    return is_even_f64(floor(x)) ? result : -result;
}

DEVICE_CALL f64 fn_gamma_f64(f64 a)
{
    f64 size = fn_absolute_f64(a);
    if (is_nan_f64(a))
        return a;
    if (size < GAMMA_TINY)
        return 1 / a;
    if (a < 0 && floor(a) == a)
        return from_bits_f64(INFINITE_f64 | (u64)1 << 51); /* NaN */
    if (size > GAMMA_PRODUCT_MOST)
        return gamma_of_far(a);
    return gamma_of_pair(a).hi;
}

/* Next to a zero that is not that at 1 or 2. */
DEVICE bool lgamma_is_near_zero(f64 x, f64 *ret_result)
{
    for (int i = 0; i < GAMMA_N_ZEROS; i++) {
        f64 d = (x - lgamma_zeros[i][0]) - lgamma_zeros[i][1];
        if (fn_absolute_f64(d) < 0x1p-24) {
            f64 slope = lgamma_zeros[i][2];
            *ret_result = d * (slope + d * (lgamma_zeros[i][3] + d * lgamma_zeros[i][4]));
            return true;
        }
    }
    return false;
}

/* GAMMA_TINY <= |x| <= GAMMA_PRODUCT_MOST, no pole. */
DEVICE f64 lgamma_of_near(f64 x)
{
    f64 n = rint(x), t = x - n, result;
    if (n == 1)
        return 0 - fn_log1p_f64(reciprocal_gamma_less_1(t).hi);
    if (n == 2) {
        struct pair r = reciprocal_gamma_less_1(t);
        struct pair more = pair_add(pair_of(t, 0), pair_of(-r.hi, -r.lo));
        return fn_log1p_f64(pair_divide(more, pair_add(pair_of(1, 0), r)).hi);
    }
    if (lgamma_is_near_zero(x, &result))
        return result;
    struct pair gamma = gamma_of_pair(x);
    if (gamma.hi < 0)
        gamma = pair_of(-gamma.hi, -gamma.lo);
    if (gamma.hi > 0.5 && gamma.hi < 2)
        return fn_log1p_f64((gamma.hi - 1) + gamma.lo);
    return fn_log_f64(gamma.hi) + gamma.lo / gamma.hi;
}

DEVICE_CALL f64 fn_lgamma_f64(f64 a)
{
    f64 y = fn_absolute_f64(a), t = a - rint(a);
    if (!is_finite_f64(a))
        return a;
    if (y < GAMMA_TINY)
        return -fn_log_f64(y);
    if (a < 0 && t == 0)
        return from_bits_f64(INFINITE_f64);
    if (y <= GAMMA_PRODUCT_MOST)
        return lgamma_of_near(a);
    struct pair far = lgamma_of_large(y);
    if (a > 0)
        return far.hi;
    struct pair mirror = reflected_f64(y, t);
    return (fn_log_f64(mirror.hi) - far.hi) + (mirror.lo / mirror.hi - far.lo);
}
