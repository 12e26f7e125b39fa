/* Exponentials, logarithms, trigonometric and hyperbolic functions, erf, pow, hypot: CUDA's, or
 * libm's on the host, under the names of the operations; some float32 ones are in math_float32.h.
 *
 * Special values are C's (Annex F) with both. Errors: kernels/cuda/ACCURACY.md.
 */
#pragma once

#include "kernels/cuda/device/math_float32.h"

#define MATH_UNARY_F64(op, function)                                                               \
    DEVICE_CALL f64 fn_##op##_f64(f64 a)                                                           \
    {                                                                                              \
        return function(a);                                                                        \
    }

#define MATH_UNARY(op, function)                                                                   \
    DEVICE_CALL f32 fn_##op##_f32(f32 a)                                                           \
    {                                                                                              \
        return function##f(a);                                                                     \
    }                                                                                              \
    MATH_UNARY_F64(op, function)

#define MATH_BINARY(op, function)                                                                  \
    DEVICE_CALL f32 fn_##op##_f32(f32 a, f32 b)                                                    \
    {                                                                                              \
        return function##f(a, b);                                                                  \
    }                                                                                              \
    DEVICE_CALL f64 fn_##op##_f64(f64 a, f64 b)                                                    \
    {                                                                                              \
        return function(a, b);                                                                     \
    }

#if defined(__CUDACC__)
#define MATH_SIN sin
#define MATH_COS cos
#define MATH_TAN tan
#else /* libm loses digits where a large argument is next to a multiple of pi / 2 */
#define MATH_SIN(a) (f64) sinl((long double)(a))
#define MATH_COS(a) (f64) cosl((long double)(a))
#define MATH_TAN(a) (f64) tanl((long double)(a))
#endif

#define MATH_UNARY_F32(op, function)                                                               \
    DEVICE_CALL f32 fn_##op##_f32(f32 a)                                                           \
    {                                                                                              \
        return function##f(a);                                                                     \
    }

/* clang-format off */
MATH_UNARY(cbrt, cbrt)
MATH_UNARY_F64(exp, exp)
MATH_UNARY_F64(exp2, exp2)
MATH_UNARY(expm1, expm1)
MATH_UNARY(log, log)
MATH_UNARY(log2, log2)
MATH_UNARY(log10, log10)
MATH_UNARY(log1p, log1p)
MATH_UNARY_F32(sin, sin)
MATH_UNARY_F64(sin, MATH_SIN)
MATH_UNARY_F32(cos, cos)
MATH_UNARY_F64(cos, MATH_COS)
MATH_UNARY_F64(tan, MATH_TAN)
MATH_UNARY(arcsin, asin)
MATH_UNARY(arccos, acos)
MATH_UNARY(arctan, atan)
MATH_UNARY_F64(sinh, sinh)
MATH_UNARY_F64(cosh, cosh)
MATH_UNARY(tanh, tanh)
MATH_UNARY(arcsinh, asinh)
MATH_UNARY(arccosh, acosh)
MATH_UNARY_F64(arctanh, atanh)
MATH_UNARY(erf, erf)
MATH_BINARY(arctan2, atan2)
MATH_BINARY(power, pow)
/* clang-format on */

DEVICE_CALL f32 fn_hypot_f32(f32 a, f32 b)
{
    return hypotf(a, b);
}

/* CUDA's is infinite already of the largest number beside one that adds nothing to it. */
DEVICE_CALL f64 fn_hypot_f64(f64 a, f64 b)
{
    f64 large = fmax(fabs(a), fabs(b)), small = fmin(fabs(a), fabs(b));
    bool is_alone = small <= large * 0x1p-28 && a == a && b == b;
    return is_alone ? large : hypot(a, b);
}

#undef MATH_SIN
#undef MATH_COS
#undef MATH_TAN
#undef MATH_UNARY
#undef MATH_UNARY_F32
#undef MATH_UNARY_F64
#undef MATH_BINARY
