/* sqrt of float64 with AVX-512: every other vector by multiplications.
 *
 * The divider of a core takes one root after the other and is slower than memory (17 cycles a
 * vector on Zen 4), while the multipliers beside it have nothing to do. So one vector goes to the
 * divider, and the next is computed from the processor's estimate of 1/sqrt(a) in the meantime.
 *
 * Both are the exactly rounded root. With s = sqrt(a), an estimate (1 + e)/s, |e| <= 2^-14, and
 * h = 1/(2s) within 2^-26 and always too small (the factor 1 - 2^-25 on its way sees to that, and
 * the quadratic error has the same sign):
 *
 *     h 2s  lies in [1 - 1.4 * 2^-26, 1 - 0.99 * 2^-26]                after one step of Newton's
 *     g     is s within 2^-50                                          after two
 *     s - g = (a - g g) / (s + g)   lies between (a - g g) h and (a - g g) h (1 + 2^-25)
 *
 * where 2^-50 is the most that all the roundings add to those bounds. When g plus the one and g
 * plus the other round to the same number, then so does s. It is not so for about one element in
 * 2^24, and never for infinities, NaN and numbers below 0: a vector that has any of them is left to
 * the divider, and one with numbers below 2^-960 too, whose a - g g has bits that are lost.
 */
#pragma once

#include "kernels/cpu/levels/template.h"

#include <immintrin.h>

#define ROOT_ALL_LANES 0xff

static inline __m512d root_by_multiplying(__m512d a)
{
    const __m512d half = _mm512_set1_pd(0.5), least = _mm512_set1_pd(0x1p-960);
    __m512d estimate = _mm512_rsqrt14_pd(a);
    __m512d g = _mm512_mul_pd(estimate, a);
    __m512d h = _mm512_mul_pd(estimate, _mm512_set1_pd(0.5 * (1 - 0x1p-25)));
    __m512d error = _mm512_fnmadd_pd(g, h, half);
    g = _mm512_fmadd_pd(g, error, g);
    h = _mm512_fmadd_pd(h, error, h);
    g = _mm512_fmadd_pd(_mm512_fnmadd_pd(g, g, a), h, g);
    __m512d near = _mm512_mul_pd(_mm512_fnmadd_pd(g, g, a), h);
    __m512d far = _mm512_mul_pd(near, _mm512_set1_pd(1 + 0x1p-25));
    __m512d root = _mm512_add_pd(g, near);
    __mmask8 is_sure = _mm512_cmp_pd_mask(a, least, _CMP_GE_OQ);
    is_sure = _mm512_mask_cmp_pd_mask(is_sure, root, _mm512_add_pd(g, far), _CMP_EQ_OQ);
    if (__builtin_expect(is_sure != ROOT_ALL_LANES, 0))
        return _mm512_sqrt_pd(a);
    return root;
}

#define SQRT(name, store)                                                                          \
    static void name##_f64(KERNEL_ARGS)                                                            \
    {                                                                                              \
        f64 *d = dst;                                                                              \
        const f64 *as = pa;                                                                        \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i += 16) {                                                       \
            __m512d one = _mm512_sqrt_pd(_mm512_loadu_pd(as + i));                                 \
            __m512d other = root_by_multiplying(_mm512_loadu_pd(as + i + 8));                      \
            store(d + i, one);                                                                     \
            store(d + i + 8, other);                                                               \
        }                                                                                          \
    }
SQRT(sqrt, _mm512_storeu_pd)
SQRT(past_sqrt, _mm512_stream_pd)
