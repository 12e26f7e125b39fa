/* Exponentials, logarithms, trigonometric and hyperbolic functions, erf, erfc, pow, hypot.
 *
 * Each is a vector function of libmvec or SLEEF, as math_table.h says, or libm's. Errors are within
 * 4 ulp of exact (kernels/ACCURACY.md has what was measured), special values are C's Annex F, and a
 * lane does not depend on its neighbours. Bits may differ between levels.
 *
 * sin, cos and tan: libmvec reduces arguments of any size but calls libm for each that is large.
 * From about there on a block is computed by SLEEF as well and each element takes the one that its
 * own size says.
 */
#include "kernels/cpu/levels/vector_math.h"

ROWS_UNARY(BLOCK1_ROW)
ROWS_UNARY(KERNEL1_ROW)
ROWS_BINARY(BLOCK2_ROW)
ROWS_BINARY(KERNEL2_ROW)

#if defined(KERNEL_HAS_SLEEF) && defined(KERNEL_HAS_MVEC_2_35)
#define SOURCE_PERIODIC(op, ...) [OP_##op] = {"libmvec, SLEEF", "libmvec, SLEEF"},

/* clang-format off */
#define PERIODIC(name, near, T, is_near)                                                           \
    KERNEL_PASTE(BLOCK1, near)(name##_near, name, T)                                               \
    BLOCK1_SAME(name##_far, name, T)                                                               \
    ALL_OF(name##_all_near, T, is_near)                                                            \
    static inline void name##_split_##T(T *d, const T *as)                                         \
    {                                                                                              \
        T near_ones[BLOCK], far_ones[BLOCK];                                                       \
        name##_far_##T(far_ones, as);                                                              \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i];                                                                           \
            near_ones[i] = (is_near) ? a : 0;                                                      \
        }                                                                                          \
        name##_near_##T(near_ones, near_ones);                                                     \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i];                                                                           \
            d[i] = (is_near) ? near_ones[i] : far_ones[i];                                         \
        }                                                                                          \
    }                                                                                              \
    static inline void name##_block_##T(T *d, const T *as)                                         \
    {                                                                                              \
        if (name##_all_near_##T(as))                                                               \
            name##_near_##T(d, as);                                                                \
        else                                                                                       \
            name##_split_##T(d, as);                                                               \
    }
/* Where libmvec 2.36 begins to call libm: 10^4 and 8256, 2^23 and 128000. */
PERIODIC(sin, M, f32, __builtin_fabsf(a) < 8192)
PERIODIC(cos, M, f32, __builtin_fabsf(a) < 8192)
PERIODIC(tan, N, f32, __builtin_fabsf(a) < 8192)
PERIODIC(sin, M, f64, __builtin_fabs(a) < 0x1.fp22)
PERIODIC(cos, M, f64, __builtin_fabs(a) < 0x1.fp22)
PERIODIC(tan, N, f64, __builtin_fabs(a) < 0x1.fp16)
/* clang-format on */

#else
#define SOURCE_PERIODIC SOURCE_ROW
ROWS_PERIODIC(BLOCK1_ROW)
#endif
ROWS_PERIODIC(KERNEL1_ROW)

/* clang-format off */
const kernel_table KERNEL_SYMBOL(math) = {
    ROWS_UNARY(TABLE_ROW)
    ROWS_PERIODIC(TABLE_ROW)
    ROWS_BINARY(TABLE_ROW)
};
const math_sources KERNEL_SYMBOL(math_sources) = {
    ROWS_UNARY(SOURCE_ROW)
    ROWS_PERIODIC(SOURCE_PERIODIC)
    ROWS_BINARY(SOURCE_ROW)
};
/* clang-format on */
