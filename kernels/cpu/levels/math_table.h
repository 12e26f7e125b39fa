/* Which library computes which function: chosen by speed among those within 4 ulp everywhere.
 *
 *     L  libm, element by element
 *     M  libmvec, in glibc since 2.22      N  libmvec, in glibc since 2.35
 *     H  N, at avx512 in halves: the AVX2 function, which is faster or closer
 *     S  SLEEF's u35 functions             T  SLEEF's u10 functions
 *
 * Measured with glibc 2.36 and SLEEF 3.5.1 on an AMD EPYC (Zen 4), in 10^9 elements a second from
 * cache: libmvec wins nearly everywhere. SLEEF is taken where it is faster by a sixth or more:
 * arcsin at all levels (float64: 0.34 to 0.22, 0.83 to 0.63, 1.15 to 0.92), log at avx512 (float32
 * 4.5 to 3.3, float64 1.4 to 1.0), tanh float64 at avx512 (0.57 to 0.43), arctan, arccos and
 * arctan2 as said below. Not within 4 ulp, or wrong, over the whole range: SLEEF's exp, sinh and
 * cosh (overflow too early), log1p, arcsinh and arccosh (large arguments), tan u10 (-0); its gamma
 * serves in an interval (gamma.c), its lgamma is no faster than libm's. libmvec's erf at avx512 is
 * 4.0 ulp off, at avx2 1.9. libm's gamma is 5 ulp off, its lgamma below 0 too. gamma and lgamma of
 * float32 come from no library.
 *
 * Results of SLEEF's sin, cos and tan depend on a value's neighbours, which the deterministic entry
 * points (finz, cinz) do not; they serve large arguments, where libmvec falls back to libm.
 */
#pragma once

#define ROW_cbrt(F)      F(CBRT, cbrt, N, N, N, N, N, N)
#define ROW_exp(F)       F(EXP, exp, M, M, M, M, M, M)
#define ROW_exp_down(F)  F(EXP, exp, M, M, M, M, M, T)   /* of numbers below 0, in logaddexp, */
#define ROW_exp2_down(F) F(EXP2, exp2, N, N, N, L, T, N) /* where errors add up */
#define ROW_exp2(F)      F(EXP2, exp2, N, N, N, N, N, N)
#define ROW_expm1(F)     F(EXPM1, expm1, N, N, N, N, N, N)
#define ROW_log(F)       F(LOG, log, M, M, S, M, M, S)
#define ROW_log2(F)      F(LOG2, log2, N, N, N, N, N, N)
#define ROW_log10(F)     F(LOG10, log10, N, N, N, N, N, N)
#define ROW_log1p(F)     F(LOG1P, log1p, N, N, N, N, N, N)
#define ROW_sin(F)       F(SIN, sin, M, M, M, M, M, M)
#define ROW_cos(F)       F(COS, cos, M, M, M, M, M, M)
#define ROW_tan(F)       F(TAN, tan, N, N, N, N, N, N)
#define ROW_asin(F)      F(ARCSIN, asin, S, S, S, S, S, S)
#define ROW_acos(F)      F(ARCCOS, acos, N, N, S, S, N, N)
#define ROW_atan(F)      F(ARCTAN, atan, N, N, S, N, N, N)
#define ROW_sinh(F)      F(SINH, sinh, N, N, N, N, N, N)
#define ROW_cosh(F)      F(COSH, cosh, N, N, N, N, N, N)
#define ROW_tanh(F)      F(TANH, tanh, N, N, N, N, N, S)
#define ROW_asinh(F)     F(ARCSINH, asinh, N, N, N, L, N, N)
#define ROW_acosh(F)     F(ARCCOSH, acosh, N, N, N, N, N, N)
#define ROW_atanh(F)     F(ARCTANH, atanh, N, N, N, N, N, N)
#define ROW_erf(F)       F(ERF, erf, N, N, H, N, N, H)
#define ROW_erfc(F)      F(ERFC, erfc, N, N, H, N, N, H)
#define ROW_atan2(F)     F(ARCTAN2, atan2, N, N, N, S, N, N)
#define ROW_hypot(F)     F(HYPOT, hypot, N, N, N, N, N, N)
#define ROW_pow(F)       F(POWER, pow, M, M, M, M, M, M)
#define ROW_tgamma(F)    F(GAMMA, tgamma, L, L, L, T, T, T)
/*                         float32: baseline, avx2, avx512; float64 */

/* Those that are nothing but the library's function. */
#define ROWS_UNARY(F)                                                                              \
    ROW_cbrt(F) ROW_exp(F) ROW_exp2(F) ROW_expm1(F) ROW_log(F) ROW_log2(F) ROW_log10(F)            \
        ROW_log1p(F) ROW_asin(F) ROW_acos(F) ROW_atan(F) ROW_sinh(F) ROW_cosh(F) ROW_tanh(F)       \
            ROW_asinh(F) ROW_acosh(F) ROW_atanh(F) ROW_erf(F) ROW_erfc(F)
#define ROWS_PERIODIC(F) ROW_sin(F) ROW_cos(F) ROW_tan(F)
#define ROWS_BINARY(F)   ROW_atan2(F) ROW_hypot(F) ROW_pow(F)
