/* The vector functions of libmvec and SLEEF, by name, over blocks of KERNEL_GRANULE elements.
 *
 * A block function `name_block_T(d, a)` computes d[i] = f(a[i]) for one block; `d` may be `a`.
 * Kernels are loops over blocks, so that composed functions (special.c, gamma.c) keep what lies
 * between in the first-level cache. Names: libmvec's follow the vector ABI (_ZGV, b = SSE, d =
 * AVX2, e = AVX-512, N = no mask, lanes, v for each vector), SLEEF's are Sleef_, name, d or f,
 * lanes, bound of the error in tenths of an ulp, processor. Both are declared here rather than by
 * SLEEF's header, which would have every source parse all intrinsics. SLEEF's avx2 functions need
 * FMA as well.
 *
 * The plain level, other processors, and functions that a library lacks use libm.
 */
#pragma once

#include "kernels/cpu/levels/math_sources.h"
#include "kernels/cpu/levels/math_table.h"
#include "kernels/cpu/levels/template.h"

#include <math.h>
#include <string.h>

#define BLOCK KERNEL_GRANULE

/* gamma.c, for special.c's table. */
kernel_fn KERNEL_SYMBOL(gamma_f32), KERNEL_SYMBOL(gamma_f64), KERNEL_SYMBOL(lgamma_f32),
    KERNEL_SYMBOL(lgamma_f64);

#define JOIN5_(a, b, c, d, e) a##b##c##d##e
#define JOIN5(a, b, c, d, e)  JOIN5_(a, b, c, d, e)

#define LIBM_f32(name) name##f
#define LIBM_f64(name) name

#define BLOCK1_L(block, name, T)                                                                   \
    static inline void block##_##T(T *d, const T *a)                                               \
    {                                                                                              \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            d[i] = LIBM_##T(name)(a[i]);                                                           \
    }
#define BLOCK2_L(block, name, T)                                                                   \
    static inline void block##_##T(T *d, const T *a, const T *b)                                   \
    {                                                                                              \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            d[i] = LIBM_##T(name)(a[i], b[i]);                                                     \
    }

#define VECTOR_BLOCK1(block, T, n_bytes, function)                                                 \
    typedef T block##_vector_##T __attribute__((vector_size(n_bytes)));                            \
    block##_vector_##T function(block##_vector_##T) __attribute__((const));                        \
    static inline void block##_##T(T *d, const T *a)                                               \
    {                                                                                              \
        for (unsigned i = 0; i < BLOCK; i += n_bytes / sizeof(T)) {                                \
            block##_vector_##T v;                                                                  \
            memcpy(&v, a + i, sizeof(v));                                                          \
            v = function(v);                                                                       \
            memcpy(d + i, &v, sizeof(v));                                                          \
        }                                                                                          \
    }
#define VECTOR_BLOCK2(block, T, n_bytes, function)                                                 \
    typedef T block##_vector_##T __attribute__((vector_size(n_bytes)));                            \
    block##_vector_##T function(block##_vector_##T, block##_vector_##T) __attribute__((const));    \
    static inline void block##_##T(T *d, const T *a, const T *b)                                   \
    {                                                                                              \
        for (unsigned i = 0; i < BLOCK; i += n_bytes / sizeof(T)) {                                \
            block##_vector_##T v, w;                                                               \
            memcpy(&v, a + i, sizeof(v));                                                          \
            memcpy(&w, b + i, sizeof(w));                                                          \
            v = function(v, w);                                                                    \
            memcpy(d + i, &v, sizeof(v));                                                          \
        }                                                                                          \
    }

#if !defined(KERNEL_VECTOR_BYTES)
#define PICK(baseline, avx2, avx512) L
#elif KERNEL_VECTOR_BYTES == 64
#define PICK(baseline, avx2, avx512) avx512
#define MVEC_f32                     _ZGVeN16
#define MVEC_f64                     _ZGVeN8
#define MVEC_HALF_f32                _ZGVdN8
#define MVEC_HALF_f64                _ZGVdN4
#define SLEEF_LANES_f32              f16
#define SLEEF_LANES_f64              d8
#define SLEEF_ISA                    avx512f
#define SLEEF_SAME                   Sleef_finz_
#elif KERNEL_VECTOR_BYTES == 32
#define PICK(baseline, avx2, avx512) avx2
#define MVEC_f32                     _ZGVdN8
#define MVEC_f64                     _ZGVdN4
#define SLEEF_LANES_f32              f8
#define SLEEF_LANES_f64              d4
#define SLEEF_ISA                    avx2
#define SLEEF_SAME                   Sleef_finz_
#else
#define PICK(baseline, avx2, avx512) baseline
#define MVEC_f32                     _ZGVbN4
#define MVEC_f64                     _ZGVbN2
#define SLEEF_LANES_f32              f4
#define SLEEF_LANES_f64              d2
#define SLEEF_ISA                    sse2
#define SLEEF_SAME                   Sleef_cinz_
#endif

#define MVEC_NAME_f32(vectors, name)       JOIN5(MVEC_f32, vectors, _, name, f)
#define MVEC_NAME_f64(vectors, name)       JOIN5(MVEC_f64, vectors, _, name, )
#define SLEEF_NAME(prefix, name, T, bound) JOIN5(prefix, name, SLEEF_LANES_##T, bound, SLEEF_ISA)

#if defined(KERNEL_HAS_MVEC)
#define BLOCK1_M(block, name, T)                                                                   \
    VECTOR_BLOCK1(block, T, KERNEL_VECTOR_BYTES, MVEC_NAME_##T(v, name))
#define BLOCK2_M(block, name, T)                                                                   \
    VECTOR_BLOCK2(block, T, KERNEL_VECTOR_BYTES, MVEC_NAME_##T(vv, name))
#define SOURCE_M "libmvec"
#else
#define BLOCK1_M BLOCK1_L
#define BLOCK2_M BLOCK2_L
#define SOURCE_M SOURCE_L
#endif

#if defined(KERNEL_HAS_MVEC_2_35)
#define BLOCK1_N                 BLOCK1_M
#define BLOCK2_N                 BLOCK2_M
#define MVEC_HALF_NAME_f32(name) JOIN5(MVEC_HALF_f32, v, _, name, f)
#define MVEC_HALF_NAME_f64(name) JOIN5(MVEC_HALF_f64, v, _, name, )
#define BLOCK1_H(block, name, T)                                                                   \
    VECTOR_BLOCK1(block, T, KERNEL_VECTOR_BYTES / 2, MVEC_HALF_NAME_##T(name))
#define SOURCE_N "libmvec"
#define SOURCE_H "libmvec (AVX2)"
#else
#define BLOCK1_N BLOCK1_L
#define BLOCK2_N BLOCK2_L
#define BLOCK1_H BLOCK1_L
#define SOURCE_N SOURCE_L
#define SOURCE_H SOURCE_L
#endif

#if defined(KERNEL_HAS_SLEEF)
#define BLOCK1_S(block, name, T)                                                                   \
    VECTOR_BLOCK1(block, T, KERNEL_VECTOR_BYTES, SLEEF_NAME(Sleef_, name, T, _u35))
#define BLOCK2_S(block, name, T)                                                                   \
    VECTOR_BLOCK2(block, T, KERNEL_VECTOR_BYTES, SLEEF_NAME(Sleef_, name, T, _u35))
#define BLOCK1_T(block, name, T)                                                                   \
    VECTOR_BLOCK1(block, T, KERNEL_VECTOR_BYTES, SLEEF_NAME(Sleef_, name, T, _u10))
#define BLOCK1_SAME(block, name, T)                                                                \
    VECTOR_BLOCK1(block, T, KERNEL_VECTOR_BYTES, SLEEF_NAME(SLEEF_SAME, name, T, _u35))
#define SOURCE_S "SLEEF"
#define SOURCE_T "SLEEF"
#else
#define BLOCK1_S BLOCK1_N
#define BLOCK2_S BLOCK2_N
#define BLOCK1_T BLOCK1_L
#define SOURCE_S SOURCE_N
#define SOURCE_T SOURCE_L
#endif

#define SOURCE_L "libm"

/* The block functions of a row of the table, for both dtypes. */
#define BLOCK1_ROW(op, name, a32, b32, c32, a64, b64, c64)                                         \
    KERNEL_PASTE(BLOCK1, PICK(a32, b32, c32))                                                      \
    (name##_block, name, f32) KERNEL_PASTE(BLOCK1, PICK(a64, b64, c64))(name##_block, name, f64)
#define BLOCK1_ROW_F64(op, name, a32, b32, c32, a64, b64, c64)                                     \
    KERNEL_PASTE(BLOCK1, PICK(a64, b64, c64))(name##_block, name, f64)
#define BLOCK2_ROW(op, name, a32, b32, c32, a64, b64, c64)                                         \
    KERNEL_PASTE(BLOCK2, PICK(a32, b32, c32))                                                      \
    (name##_block, name, f32) KERNEL_PASTE(BLOCK2, PICK(a64, b64, c64))(name##_block, name, f64)
#define SOURCE_ROW(op, name, a32, b32, c32, a64, b64, c64)                                         \
    [OP_##op] = {KERNEL_PASTE(SOURCE, PICK(a32, b32, c32)),                                        \
                 KERNEL_PASTE(SOURCE, PICK(a64, b64, c64))},

/* name_T: a kernel of name_block_T. */
#define KERNEL1(name, T)                                                                           \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i += BLOCK)                                                      \
            name##_block_##T((T *)dst + i, (const T *)pa + i);                                     \
    }
#define KERNEL2(name, T)                                                                           \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i += BLOCK)                                                      \
            name##_block_##T((T *)dst + i, (const T *)pa + i, (const T *)pb + i);                  \
    }
#define KERNEL1_ROW(op, name, ...)                                                                 \
    KERNEL1(name, f32)                                                                             \
    KERNEL1(name, f64)
#define KERNEL2_ROW(op, name, ...)                                                                 \
    KERNEL2(name, f32)                                                                             \
    KERNEL2(name, f64)
#define TABLE_ROW(op, name, ...) [OP_##op] = {ROW_FLOATS(name)},

typedef i32 mask_f32;
typedef i64 mask_f64;

/* Whether the condition, an expression in `a`, holds for all of a block. */
#define ALL_OF(name, T, condition)                                                                 \
    static inline bool name##_##T(const T *as)                                                     \
    {                                                                                              \
        mask_##T n_others = 0;                                                                     \
        for (unsigned i = 0; i < BLOCK; i++) {                                                     \
            T a = as[i];                                                                           \
            n_others |= !(condition);                                                              \
        }                                                                                          \
        return !n_others;                                                                          \
    }
