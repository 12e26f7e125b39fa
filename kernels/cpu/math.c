/* exp, log, sin, cos and tanh over arrays.
 *
 * On x86-64 with glibc the vector functions of libmvec (vector ABI: _ZGV, b = SSE, d = AVX2,
 * e = AVX-512, N = no mask, lanes, v = one vector) do the work; their results are within 4 ulp of
 * exact, special values are libm's, and a lane does not depend on its neighbours. Their bits may
 * differ between levels. The plain level, and any level without libmvec, is libm in a loop.
 */
#include "kernels/cpu/template.h"

#include <math.h>
#include <string.h>

#if defined(KERNEL_HAS_MVEC)

#define VECTOR_PASTE_(a, b) a##b
#define VECTOR_PASTE(a, b)  VECTOR_PASTE_(a, b)
#if KERNEL_VECTOR_BYTES == 64
#define VECTOR_F64 _ZGVeN8v_
#define VECTOR_F32 _ZGVeN16v_
#elif KERNEL_VECTOR_BYTES == 32
#define VECTOR_F64 _ZGVdN4v_
#define VECTOR_F32 _ZGVdN8v_
#else
#define VECTOR_F64 _ZGVbN2v_
#define VECTOR_F32 _ZGVbN4v_
#endif

typedef f64 vector_f64 __attribute__((vector_size(KERNEL_VECTOR_BYTES)));
typedef f32 vector_f32 __attribute__((vector_size(KERNEL_VECTOR_BYTES)));

#define VECTOR_LOOP(name, T, V, function)                                                          \
    V function(V) __attribute__((const));                                                          \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *as = pa;                                                                          \
        n = KERNEL_ROUND(n);                                                                       \
        for (size_t i = 0; i < n; i += sizeof(V) / sizeof(T)) {                                    \
            V v;                                                                                   \
            memcpy(&v, as + i, sizeof(v));                                                         \
            v = function(v);                                                                       \
            memcpy(d + i, &v, sizeof(v));                                                          \
        }                                                                                          \
    }
#define MATH(name)                                                                                 \
    VECTOR_LOOP(name, f32, vector_f32, VECTOR_PASTE(VECTOR_F32, name##f))                          \
    VECTOR_LOOP(name, f64, vector_f64, VECTOR_PASTE(VECTOR_F64, name))

#endif

#define MATH_LIBM(name)                                                                            \
    UNARY(name, f32, f32, name##f(a))                                                              \
    UNARY(name, f64, f64, name(a))

#if !defined(KERNEL_HAS_MVEC)
#define MATH      MATH_LIBM
#define MATH_TANH MATH_LIBM
#elif !defined(KERNEL_HAS_MVEC_TANH) /* glibc before 2.35 */
#define MATH_TANH MATH_LIBM
#else
#define MATH_TANH MATH
#endif

MATH(exp)
MATH(log)
MATH(sin)
MATH(cos)
MATH_TANH(tanh)

const kernel_table KERNEL_SYMBOL(math) = {
    [OP_EXP] = {ROW_FLOATS(exp)}, [OP_LOG] = {ROW_FLOATS(log)},   [OP_SIN] = {ROW_FLOATS(sin)},
    [OP_COS] = {ROW_FLOATS(cos)}, [OP_TANH] = {ROW_FLOATS(tanh)},
};
