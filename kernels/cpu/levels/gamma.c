/* gamma and lgamma (SciPy's gammaln), float32 by formula, float64 by library.
 *
 * float32 is computed in float64. With n the integer nearest to x and t = x - n:
 *     gamma(x) = (t + 1) (t + 2) .. (t + n - 1) / R(t)                      n > 0
 *     gamma(x) = 1 / (t (t - 1) .. (t - |n|) R(t))                          n <= 0
 * where R(t) = 1 / gamma(1 + t) is its Taylor series (Abramowitz & Stegun 6.1.34), exact to float64
 * for |t| <= 1/2. A block takes as many factors as its largest element needs; the others multiply
 * by 1, so that a value does not depend on its neighbours. lgamma is the logarithm of that up to
 * |x| = 6 and beyond it Stirling's series (A&S 6.1.41), with the reflection
 * lgamma(-y) = log(pi / (y |sin(pi t)|)) - lgamma(y) (6.1.17) below zero.
 *
 * float64: gamma is SLEEF's function, below -169 and without SLEEF glibc's for long double,
 * rounded. lgamma is libm's, below 0, where it has zeros between the poles, also that for long
 * double.
 *
 * Special values: gamma(+-0) is +-inf, of negative integers and -inf NaN, below -180 a zero with
 * the sign; lgamma(-inf) is -inf, as SciPy has it, of 0 and negative integers inf.
 */
#include "kernels/cpu/levels/vector_math.h"

#define LARGEST_PRODUCT 6.0
#define GAMMA_LEAST     -47.0 /* from here on float32 results are zeros */
#define GAMMA_MOST      36.0  /* infinite */

/* The nearest integer, halves to even, of numbers up to 2^51; rint() is a call before SSE4.1. */
static inline f64 nearest(f64 x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

static inline bool is_even(f64 n)
{
    return nearest(n * 0.5) == n * 0.5;
}

static inline f64 reciprocal_gamma(f64 t)
{
    static const f64 series[] = {
#define TERM(value) value,
#include "kernels/common/gamma_series.def"
#undef TERM
    };
    f64 sum = series[19];
#pragma GCC unroll 19
    for (int i = 18; i >= 0; i--)
        sum = sum * t + series[i];
    return sum;
}

/* gamma of each element, which are finite and no larger than a few hundred. Infinite at poles. */
static inline void gamma_product(f64 *d, const f64 *x)
{
    f64 u[BLOCK], n_factors[BLOCK], product[BLOCK];
    i32 most = 0;
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 n = nearest(x[i]), t = x[i] - n;
        u[i] = n > 0 ? t : -t;
        n_factors[i] = n > 0 ? n - 1 : -n;
        product[i] = 1;
        i32 wanted = (i32)n_factors[i];
        most = wanted > most ? wanted : most;
    }
    for (i32 k = 1; k <= most; k++) {
        f64 factor = (f64)k;
        for (unsigned i = 0; i < BLOCK; i++)
            product[i] *= factor <= n_factors[i] ? u[i] + factor : 1;
    }
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 n = nearest(x[i]), r = reciprocal_gamma(x[i] - n), sign = is_even(n) ? -1.0 : 1.0;
        d[i] = (n > 0 ? product[i] : sign) / (n > 0 ? r : u[i] * product[i] * r);
    }
}

static inline f64 limited(f64 x, f64 least, f64 most) /* NaN: least */
{
    f64 limited_below = x > least ? x : least;
    return limited_below < most ? limited_below : most;
}

static inline void gamma_block_f32(f32 *d, const f32 *as)
{
    f64 a[BLOCK], x[BLOCK];
    for (unsigned i = 0; i < BLOCK; i++) {
        a[i] = (f64)as[i];
        x[i] = limited(a[i], GAMMA_LEAST, GAMMA_MOST);
    }
    gamma_product(x, x);
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 within = limited(a[i], -0x1p25, 0x1p25); /* all beyond are integers */
        f64 whole = nearest(within), below = whole > within ? whole - 1 : whole;
        f64 zero = is_even(below) ? 0.0 : -0.0;
        f64 result = a[i] > GAMMA_LEAST ? x[i] : zero;
        result = a[i] == 0 ? __builtin_copysign(INFINITY, a[i]) : result;
        f64 pole = a[i] < 0 ? __builtin_nan("") : result;
        result = whole == within ? pole : result;
        x[i] = a[i] != a[i] ? a[i] : result;
    }
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = (f32)x[i];
}

/* clang-format off */
ROW_log(BLOCK1_ROW_F64)
ROW_sin(BLOCK1_ROW_F64)
    /* clang-format on */

    /* log(pi / (y |sin(pi t)|)) of those that are far below zero, 0 of the others. */
    static inline void reflected(f64 *d, const f32 *as)
{
    f64 angle[BLOCK];
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 a = (f64)as[i];
        a = limited(a, -0x1p25, 0x1p25);
        angle[i] = a < -LARGEST_PRODUCT ? M_PI * (a - nearest(a)) : M_PI_2;
    }
    sin_block_f64(d, angle);
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = (f64)as[i] < -LARGEST_PRODUCT ? M_PI / (-(f64)as[i] * __builtin_fabs(d[i])) : 1;
    log_block_f64(d, d);
}

ALL_OF(is_not_reflected, f32, !(a < (f32)-LARGEST_PRODUCT))

static inline void lgamma_block_f32(f32 *d, const f32 *as)
{
    f64 x[BLOCK], logs[BLOCK], reflections[BLOCK];
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 a = (f64)as[i];
        x[i] = __builtin_fabs(a) <= LARGEST_PRODUCT ? a : 2;
    }
    gamma_product(logs, x);
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 y = __builtin_fabs((f64)as[i]);
        logs[i] = y > LARGEST_PRODUCT ? y : __builtin_fabs(logs[i]);
    }
    log_block_f64(logs, logs);
    bool is_reflected = !is_not_reflected_f32(as);
    if (is_reflected)
        reflected(reflections, as);
    else
        memset(reflections, 0, sizeof(reflections));
    KERNEL_LOOP
    for (unsigned i = 0; i < BLOCK; i++) {
        f64 a = (f64)as[i], y = __builtin_fabs(a), z = 1 / (y * y);
        f64 series = 1.0 / 156 - z * (3617.0 / 122400);
        series = -1.0 / 1680 + z * (1.0 / 1188 - z * (691.0 / 360360 - z * series));
        series = 1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 + z * series));
        f64 stirling = (y - 0.5) * logs[i] - y + 0.91893853320467274178 + series / y;
        f64 result = y > LARGEST_PRODUCT ? a < 0 ? reflections[i] - stirling : stirling : logs[i];
        d[i] = (f32)(y == INFINITY || a != a ? a : result);
    }
}

static inline f64 gamma_exact(f64 a)
{
    return (f64)tgammal((long double)a);
}

#if defined(KERNEL_HAS_SLEEF)
/* SLEEF's results below -169 are not near enough, and its last finite argument is one too low. */
#define GAMMA_IS_COMMON(a) (((a) > -169.0) & !(((a) > 171.6) & ((a) < 171.7)))
/* clang-format off */
ALL_OF(gamma_is_common, f64, GAMMA_IS_COMMON(a))
ROW_tgamma(BLOCK1_ROW_F64)

static inline void gamma_block_f64(f64 *d, const f64 *as)
{
    if (gamma_is_common_f64(as)) {
        tgamma_block_f64(d, as);
        return;
    }
    f64 x[BLOCK];
    for (unsigned i = 0; i < BLOCK; i++)
        x[i] = GAMMA_IS_COMMON(as[i]) ? as[i] : 1;
    tgamma_block_f64(x, x);
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = GAMMA_IS_COMMON(as[i]) ? x[i] : gamma_exact(as[i]);
}
#else
static inline void gamma_block_f64(f64 *d, const f64 *as)
{
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = gamma_exact(as[i]);
}
#endif
/* clang-format on */

static inline f64 lgamma_of(f64 a)
{
    int sign; /* the functions without _r would write a global variable */
    if (a == -INFINITY)
        return a;
    return a < 0 ? (f64)lgammal_r((long double)a, &sign) : lgamma_r(a, &sign);
}

static inline void lgamma_block_f64(f64 *d, const f64 *as)
{
    for (unsigned i = 0; i < BLOCK; i++)
        d[i] = lgamma_of(as[i]);
}

#define KERNEL1_EXTERN(name, T)                                                                    \
    void KERNEL_SYMBOL(name##_##T)(KERNEL_ARGS)                                                    \
    {                                                                                              \
        for (size_t i = 0; i < n; i += BLOCK)                                                      \
            name##_block_##T((T *)dst + i, (const T *)pa + i);                                     \
    }
/* clang-format off */
KERNEL1_EXTERN(gamma, f32)
KERNEL1_EXTERN(gamma, f64)
KERNEL1_EXTERN(lgamma, f32)
KERNEL1_EXTERN(lgamma, f64)
/* clang-format on */
