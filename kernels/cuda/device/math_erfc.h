/* erfc of float64. CUDA's own is up to 5 ulp off.
 *
 * Below 1/4 it is 1 - erf(x), and erf is small or has the other sign. From there on
 *     erfc(x) = t exp(-x^2 + f(t)),  t = 2 / (2 + x)
 * where f is smooth between -1.27 and 0: one polynomial of degree 15 for each third of t's range,
 * fitted to log(erfc(x)) + x^2 - log(t) at Chebyshev's nodes, within 2^-59. t, x^2 and f's constant
 * term are pairs, so that the exponential's argument is good to the digits that its size costs.
 * float32: the same.
 */
#pragma once

#include "kernels/cuda/device/math_double.h"
#include "kernels/cuda/device/math_elementary.h"

#define ERFC_LEAST   0.25 /* from here on by the formula */
#define ERFC_MOST    28.0 /* 0 */
#define ERFC_N_TERMS 15

/* The middle of the third, f there as a pair, the coefficients of the powers of what t is beyond.
 */
DEVICE_TABLE f64 erfc_thirds[3][3 + ERFC_N_TERMS] = {
    {0x1.76ca6f2fd209dp-3, -0x1.11cf38ceb21acp+0, -0x1.c88a884ccd9d3p-54, 0x1.2482705a4b562p+0,
     0x1.92dcde7573271p-2, -0x1.26a770d7c5ce8p-5, -0x1.f4978409f6384p-3, -0x1.553ed64226964p-3,
     0x1.a7b5e7b33d9a7p-4, 0x1.09dbf37e7359dp-2, 0x1.a608afe47c6b6p-5, -0x1.42554ec3f5927p-2,
     -0x1.0430237bd6db0p-2, 0x1.6468b820cdb2bp-2, 0x1.1c0234d199c02p-1, -0x1.7d0ce260f4a94p-2,
     -0x1.ed7a5aed8f434p-1, 0x1.9a9a5b0e0337ap-2},
    {0x1.ccccccccccccdp-2, -0x1.7a21cdbb52676p-1, 0x1.2174d349a8b13p-58, 0x1.52d8f428ef165p+0,
     0x1.f1897c5adf820p-3, -0x1.58f1635d0ca7fp-2, -0x1.c8d26f2ad7cd5p-3, 0x1.de016e5c894b2p-3,
     0x1.b0d8d6342853fp-3, -0x1.03b13bff4bddep-2, -0x1.900099d9771a9p-3, 0x1.59599f747e39ep-2,
     0x1.1731156852e15p-3, -0x1.d70cb361d3a78p-2, 0x1.ffa3f3c9835dcp-7, 0x1.202fe5b13ca95p-1,
     -0x1.fd0e044935a4fp-3, -0x1.031b75ac2acfap-1},
    {0x1.8000000000000p-1, -0x1.51befc6abbe33p-2, -0x1.78c06e711d822p-59, 0x1.5d8d94fe430fap+0,
     -0x1.b35ef16ae9cffp-4, -0x1.6f696e9a3bf86p-2, 0x1.45879aedbafb4p-3, 0x1.2b6339286a789p-3,
     -0x1.88ebbcb699aefp-3, 0x1.2de2c0872ecd7p-7, 0x1.32fc503fad3c9p-3, -0x1.e9dede00a2c88p-4,
     -0x1.2d1d786d09561p-5, 0x1.171666c09473ap-3, -0x1.4ef9540b43d64p-4, -0x1.ae63201cb6204p-5,
     0x1.d6fa82a84ce33p-4, -0x1.a13c97d598163p-5},
};

DEVICE f64 erfc_by_exp(f64 x)
{
    struct pair t = pair_divide(pair_of(2, 0), exact_sum(2, x)), square = exact_product(x, x);
    const f64 *third = erfc_thirds[t.hi < 0.3 ? 0 : t.hi < 0.6 ? 1 : 2];
    f64 u = (t.hi - third[0]) + t.lo, sum = third[2 + ERFC_N_TERMS];
    for (int i = 1 + ERFC_N_TERMS; i > 2; i--)
        sum = sum * u + third[i];
    struct pair f = pair_add(pair_of(third[1], third[2]), pair_of(sum * u, 0));
    i64 exponent;
    f64 mantissa = pair_exp(pair_add(f, pair_of(-square.hi, -square.lo)), &exponent);
    return fn_ldexp_f64(fma(mantissa, t.lo, mantissa * t.hi), exponent);
}

DEVICE_CALL f64 fn_erfc_f64(f64 a)
{
    if (a > ERFC_MOST)
        return 0;
    return a > ERFC_LEAST ? erfc_by_exp(a) : 1 - fn_erf_f64(a);
}

DEVICE_CALL f32 fn_erfc_f32(f32 a)
{
    return (f32)fn_erfc_f64((f64)a);
}
