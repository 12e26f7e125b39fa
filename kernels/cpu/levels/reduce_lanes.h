/* Vectors of a few doubles, in which reduce_sums.c adds, and the extrema of the same elements, in
 * vectors as wide as the level's.
 */
#pragma once

#include "kernels/cpu/levels/template.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Inlined whatever the compiler thinks: arguments that are NULL leave no trace then. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Vectors of 4 doubles also at AVX-512: conversions to wider ones cost twice as much for each
 * element. */
#if defined(__AVX__)
typedef f64 addends __attribute__((vector_size(32)));
#define LANES 4

/* The units that add also convert, and have nothing else to do than that here (Zen 4, whose
 * multipliers stand beside them). So additions are made by the multipliers, as a * 1.0 + b: that is
 * exactly the sum. The compiler does not know that `one` is 1. */
#if defined(__FMA__) || defined(__AVX512VL__)
static inline addends get_one(void)
{
    addends one = {1, 1, 1, 1};
    __asm__("" : "+x"(one));
    return one;
}

static inline addends plus(addends a, addends b, addends one)
{
#if defined(__FMA__)
    return (addends)_mm256_fmadd_pd((__m256d)a, (__m256d)one, (__m256d)b);
#else
    return (addends)_mm256_mask_fmadd_pd((__m256d)a, (__mmask8)-1, (__m256d)one, (__m256d)b);
#endif
}
#define HAS_PLUS
#endif

static inline addends load_f32(const f32 *x)
{
    return (addends)_mm256_cvtps_pd(_mm_loadu_ps(x));
}

static inline addends load_f64(const f64 *x)
{
    return (addends)_mm256_loadu_pd(x);
}

/* The sum of a vector's doubles, the two halves first. */
static inline f64 fold_vector(addends a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

/* Four of these sums: of a, c, b and d. */
static inline addends fold_crossed(addends a, addends b, addends c, addends d)
{
    addends ab =
        __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    addends cd =
        __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 4, 2, 6) +
           __builtin_shufflevector(ab, cd, 1, 5, 3, 7);
}

/* As many of these sums as a vector has lanes. */
static inline addends fold_each(const addends *s)
{
    return fold_crossed(s[0], s[2], s[1], s[3]);
}

/* Four of them, added by pairs. */
static inline f64 fold_four(addends a, addends b, addends c, addends d)
{
    addends sums = fold_crossed(a, b, c, d);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}
#else
typedef f64 addends __attribute__((vector_size(16)));
#define LANES 2

static inline addends load_f32(const f32 *x)
{
    return (addends){x[0], x[1]};
}

static inline addends load_f64(const f64 *x)
{
    return (addends){x[0], x[1]};
}

static inline f64 fold_vector(addends a)
{
    return a[0] + a[1];
}

static inline addends fold_each(const addends *s)
{
    return (addends){fold_vector(s[0]), fold_vector(s[1])};
}

static inline f64 fold_four(addends a, addends b, addends c, addends d)
{
    return (fold_vector(a) + fold_vector(b)) + (fold_vector(c) + fold_vector(d));
}
#endif

#if !defined(HAS_PLUS)
static inline addends get_one(void)
{
    return (addends){0};
}

static inline addends plus(addends a, addends b, addends one)
{
    (void)one;
    return a + b;
}
#endif

/* a * a + b, where a * a is exact: in one instruction or two, the same. */
static inline addends plus_square(addends a, addends b)
{
#if defined(__FMA__)
    return (addends)_mm256_fmadd_pd((__m256d)a, (__m256d)a, (__m256d)b);
#elif defined(__AVX512VL__)
    return (addends)_mm256_mask_fmadd_pd((__m256d)a, (__mmask8)-1, (__m256d)a, (__m256d)b);
#else
    return a * a + b;
#endif
}

/* Stores n vectors. */
static ALWAYS_INLINE void store_vectors(f64 *dst, const addends *s, size_t n)
{
    typedef addends near_addends __attribute__((aligned(sizeof(f64))));
    for (size_t k = 0; k < n; k++)
        *(near_addends *)(dst + k * LANES) = s[k];
}

/* The lanes of a block down to one vector. */
static inline addends fold_to_vector(const f64 *lanes)
{
    addends s[REDUCE_SUM_LANES / LANES];
    for (size_t k = 0; k < REDUCE_SUM_LANES / LANES; k++)
        s[k] = load_f64(lanes + k * LANES);
    for (size_t w = REDUCE_SUM_LANES / LANES / 2; w > 0; w /= 2)
        for (size_t k = 0; k < w; k++)
            s[k] = s[k] + s[k + w];
    return s[0];
}

#if !defined(KERNEL_VECTOR_BYTES)
#define KERNEL_VECTOR_BYTES 16
#endif
#define FUSED_VECTORS  2 /* of each extremum: the processor does as many at once */
#define FUSED_LANES(T) (FUSED_VECTORS * KERNEL_VECTOR_BYTES / sizeof(T))

typedef f32 lanes_f32 __attribute__((vector_size(KERNEL_VECTOR_BYTES)));
typedef f64 lanes_f64 __attribute__((vector_size(KERNEL_VECTOR_BYTES)));

/* a < b ? a : b and a > b ? a : b. One instruction, which compilers do not always find. By the
 * vectors' size: a build for a newer processor has the instructions of all of them. */
#if defined(__AVX512F__) && KERNEL_VECTOR_BYTES == 64
#define LANES_CALL(call, T, suffix, a, b) (lanes_##T) _mm512_##call##_##suffix(a, b)
#elif defined(__AVX__) && KERNEL_VECTOR_BYTES == 32
#define LANES_CALL(call, T, suffix, a, b) (lanes_##T) _mm256_##call##_##suffix(a, b)
#elif defined(__SSE2__) && KERNEL_VECTOR_BYTES == 16
#define LANES_CALL(call, T, suffix, a, b) (lanes_##T) _mm_##call##_##suffix(a, b)
#endif
#if defined(LANES_CALL)
#define LANES_OF(name, T, suffix, is_better)                                                       \
    static inline lanes_##T name##_of_two_##T(lanes_##T a, lanes_##T b)                            \
    {                                                                                              \
        return LANES_CALL(name, T, suffix, a, b);                                                  \
    }
#else
#define LANES_OF(name, T, suffix, is_better)                                                       \
    static inline lanes_##T name##_of_two_##T(lanes_##T a, lanes_##T b)                            \
    {                                                                                              \
        for (size_t j = 0; j < sizeof(a) / sizeof(T); j++)                                         \
            b[j] = a[j] is_better b[j] ? a[j] : b[j];                                              \
        return b;                                                                                  \
    }
#endif
LANES_OF(min, f32, ps, <)
LANES_OF(max, f32, ps, >)
LANES_OF(min, f64, pd, <)
LANES_OF(max, f64, pd, >)

#define FUSED_EXTREMA(T)                                                                           \
    typedef lanes_##T near_lanes_##T __attribute__((aligned(sizeof(T))));                          \
    struct extrema_##T {                                                                           \
        lanes_##T least[FUSED_VECTORS], most[FUSED_VECTORS];                                       \
    };                                                                                             \
    static inline struct extrema_##T extrema_none_##T(void) {                                      \
        struct extrema_##T e;                                                                      \
        for (size_t k = 0; k < FUSED_VECTORS; k++) {                                               \
            e.least[k] = (lanes_##T){0} + (T)__builtin_inf();                                      \
            e.most[k] = (lanes_##T){0} - (T)__builtin_inf();                                       \
        }                                                                                          \
        return e;                                                                                  \
    } /* n: a multiple of a vector. */                                                             \
    static inline void extrema_take_##T(const T *x, size_t n, struct extrema_##T *e)               \
    {                                                                                              \
        for (size_t k = 0; k < n * sizeof(T) / KERNEL_VECTOR_BYTES; k++) {                         \
            lanes_##T a = *(const near_lanes_##T *)(x + k * KERNEL_VECTOR_BYTES / sizeof(T));      \
            e->least[k % FUSED_VECTORS] = min_of_two_##T(a, e->least[k % FUSED_VECTORS]);          \
            e->most[k % FUSED_VECTORS] = max_of_two_##T(a, e->most[k % FUSED_VECTORS]);            \
        }                                                                                          \
    }                                                                                              \
    static inline void extrema_last_##T(const T *x, size_t n, struct extrema_##T *e, f64 *odd)     \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            lanes_##T a = (lanes_##T){0} + x[i];                                                   \
            *odd += (f64)x[i] - (f64)x[i];                                                         \
            e->least[0] = min_of_two_##T(a, e->least[0]);                                          \
            e->most[0] = max_of_two_##T(a, e->most[0]);                                            \
        }                                                                                          \
    }
FUSED_EXTREMA(f32)
FUSED_EXTREMA(f64)
