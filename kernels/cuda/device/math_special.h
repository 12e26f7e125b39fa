/* expit, logit, logaddexp, logaddexp2: composed, with the formulas of kernels/cpu/levels/special.c,
 * which says why they lose so little.
 *
 * expit(x) is 1 / (1 + e) above zero, e = exp(-|x|), and below zero e / (1 + e), written as
 * e - e e / (1 + e). logit(x) = sign(x - 1/2) log1p(|2x - 1| / min(x, 1 - x)); arguments whose
 * reciprocal overflows are log(x). logaddexp(x, y) = m + log1p(exp(-d)), m the larger, d the
 * distance, whose rounding error is known exactly and put back to first order. logaddexp2 is the
 * same to base 2, with log2(1 + e) = log2(s) + c / s log2(e), s = 1 + e rounded, c what that lost.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"
#include "kernels/cuda/device/math_elementary.h"

#define MATH_LN2   0.69314718055994530942
#define MATH_LOG2E 1.44269504088896340736

#define SPECIAL(F, least)                                                                          \
    DEVICE_CALL F fn_expit_##F(F a)                                                                \
    {                                                                                              \
        F e = fn_exp_##F(-fn_absolute_##F(a)), r = 1 / (1 + e);                                    \
        return a < 0 ? e - e * (e * r) : r;                                                        \
    }                                                                                              \
    /* x + 0 below 1/2: log1p(-1 / -0) would be NaN. */                                            \
    DEVICE_CALL F fn_logit_##F(F a)                                                                \
    {                                                                                              \
        if (a > 0 && a < least)                                                                    \
            return fn_log_##F(a);                                                                  \
        F smaller = a < (F)0.5 ? a + 0 : 1 - a;                                                    \
        F t = fn_log1p_##F(fn_absolute_##F(2 * a - 1) / smaller);                                  \
        return a < (F)0.5 ? -t : t;                                                                \
    }                                                                                              \
    /* log2(1 + e) for e from 0 to 1; 1 - e + e^2 / 2 is near enough to 1 / s for what s lost. */  \
    DEVICE F log2_of_more_##F(F e)                                                                 \
    {                                                                                              \
        F lost = e - ((1 + e) - 1);                                                                \
        return fn_log2_##F(1 + e) + lost * (F)MATH_LOG2E * (1 - e * (1 - e * (F)0.5));             \
    }                                                                                              \
    /* What rounding of more - less to `distance` has lost, to be multiplied by exp(-distance). */ \
    DEVICE F lost_of_##F(F more, F less, F distance)                                               \
    {                                                                                              \
        F back = more - distance;                                                                  \
        F lost = (more - (distance + back)) + (back - less);                                       \
        return distance < (F)1e4 ? lost : 0;                                                       \
    }                                                                                              \
    DEVICE_CALL F fn_logaddexp_##F(F a, F b)                                                       \
    {                                                                                              \
        if (a == b)                                                                                \
            return a + (F)MATH_LN2;                                                                \
        F more = a > b ? a : b, less = a > b ? b : a, distance = more - less;                      \
        F e = fn_exp_##F(-distance);                                                               \
        e -= e * lost_of_##F(more, less, distance);                                                \
        return more + fn_log1p_##F(e);                                                             \
    }                                                                                              \
    DEVICE_CALL F fn_logaddexp2_##F(F a, F b)                                                      \
    {                                                                                              \
        if (a == b)                                                                                \
            return a + 1;                                                                          \
        F more = a > b ? a : b, less = a > b ? b : a, distance = more - less;                      \
        F e = fn_exp2_##F(-distance);                                                              \
        e -= e * (lost_of_##F(more, less, distance) * (F)MATH_LN2);                                \
        return more + log2_of_more_##F(e);                                                         \
    }
SPECIAL(f32, 0x1p-126f)
SPECIAL(f64, 0x1p-1022)
#undef SPECIAL
