/* The device's functions of mathematics, each behind a symbol of its own: entry_NAME_DTYPE.
 *
 * Compiled in two ways: by the host's compiler, where CUDA's functions are libm's, and by nvcc to
 * PTX, which ptx_to_c.py turns into C, so that CUDA's functions run on the host. The programs that
 * call them (math_catalogue.h) are linked with the one or the other.
 */
#include "kernels/cuda/device/math.h"

#if defined(__CUDACC__)
#define ENTRY extern "C" __device__
#else
#include "tests/unit/kernels/cuda/math/math_entries.h"
#define ENTRY
#endif

#define ONE(op, name)                                                                              \
    ENTRY f32 entry_##name##_f32(f32 a)                                                            \
    {                                                                                              \
        return fn_##name##_f32(a);                                                                 \
    }                                                                                              \
    ENTRY f64 entry_##name##_f64(f64 a)                                                            \
    {                                                                                              \
        return fn_##name##_f64(a);                                                                 \
    }
#define TWO(op, name)                                                                              \
    ENTRY f32 entry_##name##_f32(f32 a, f32 b)                                                     \
    {                                                                                              \
        return fn_##name##_f32(a, b);                                                              \
    }                                                                                              \
    ENTRY f64 entry_##name##_f64(f64 a, f64 b)                                                     \
    {                                                                                              \
        return fn_##name##_f64(a, b);                                                              \
    }
#include "tests/unit/kernels/cuda/math/math_list.def"

ENTRY f32 entry_ldexp_f32(f32 a, i32 power)
{
    return fn_ldexp_f32(a, power);
}

ENTRY f64 entry_ldexp_f64(f64 a, i64 power)
{
    return fn_ldexp_f64(a, power);
}

ENTRY i32 entry_frexp_exponent_f32(f32 a)
{
    return fn_frexp_exponent_f32(a);
}

ENTRY i32 entry_frexp_exponent_f64(f64 a)
{
    return fn_frexp_exponent_f64(a);
}
