/* WINDOW_LANES elements in registers, whatever the vectors of the level are. */
#pragma once

#include "kernels/cpu/levels/template.h"
#include "kernels/cpu/windows/window_kernels.h"

#include <string.h>

#if defined(KERNEL_VECTOR_BYTES)
#define WINDOW_VECTOR_BYTES KERNEL_VECTOR_BYTES
#else
#define WINDOW_VECTOR_BYTES 16
#endif

/* Narrow elements fill a part of a vector. */
#define VECTOR_BYTES(T)                                                                            \
    (sizeof(T) * WINDOW_LANES < WINDOW_VECTOR_BYTES ? sizeof(T) * WINDOW_LANES                     \
                                                    : WINDOW_VECTOR_BYTES)
#define VECTORS(T) ((int)(sizeof(T) * WINDOW_LANES / VECTOR_BYTES(T)))

#define LANES(T, M)                                                                                \
    typedef T T##_vector __attribute__((vector_size(VECTOR_BYTES(T))));                            \
    typedef M T##_mask __attribute__((vector_size(VECTOR_BYTES(T))));                              \
    struct T##_lanes {                                                                             \
        T##_vector v[VECTORS(T)];                                                                  \
    };                                                                                             \
    static inline struct T##_lanes load_##T(const void *src) {                                     \
        struct T##_lanes a;                                                                        \
        memcpy(&a, src, sizeof(a));                                                                \
        return a;                                                                                  \
    } static inline T##_vector choose_##T(T##_mask mask, T##_vector a, T##_vector b)               \
    {                                                                                              \
        return (T##_vector)((mask & (T##_mask)a) | (~mask & (T##_mask)b));                         \
    }                                                                                              \
    /* NaN where one of the two is. */                                                             \
    static inline struct T##_lanes least_##T(struct T##_lanes a, struct T##_lanes b) {             \
        for (int i = 0; i < VECTORS(T); i++)                                                       \
            a.v[i] = choose_##T((a.v[i] < b.v[i]) | (a.v[i] != a.v[i]), a.v[i], b.v[i]);           \
        return a;                                                                                  \
    } static inline struct T##_lanes most_##T(struct T##_lanes a, struct T##_lanes b) {            \
        for (int i = 0; i < VECTORS(T); i++)                                                       \
            a.v[i] = choose_##T((a.v[i] > b.v[i]) | (a.v[i] != a.v[i]), a.v[i], b.v[i]);           \
        return a;                                                                                  \
    }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* inline functions alone take and return them */
#endif
LANES(f32, i32)
LANES(f64, i64)
LANES(u8, i8)
LANES(u16, i16)
LANES(u32, i32)
LANES(u64, i64)
LANES(i8, i8)
LANES(i16, i16)
LANES(i32, i32)
LANES(i64, i64)

#define ADD_LANES(T)                                                                               \
    static inline struct T##_lanes add_##T(struct T##_lanes a, struct T##_lanes b) {               \
        for (int i = 0; i < VECTORS(T); i++)                                                       \
            a.v[i] += b.v[i];                                                                      \
        return a;                                                                                  \
    }
ADD_LANES(f64)
ADD_LANES(u64)

/* float32 as float64. */
typedef f32 narrow_f32_vector __attribute__((vector_size(VECTOR_BYTES(f64) / 2)));
static inline struct f64_lanes load_f64_of_f32(const void *src)
{
    struct f64_lanes a;
    for (int i = 0; i < VECTORS(f64); i++) {
        narrow_f32_vector narrow;
        memcpy(&narrow, (const char *)src + (size_t)i * sizeof(narrow), sizeof(narrow));
        a.v[i] = __builtin_convertvector(narrow, f64_vector);
    }
    return a;
}
static inline void store_f64_as_f32(void *dst, struct f64_lanes a)
{
    for (int i = 0; i < VECTORS(f64); i++) {
        narrow_f32_vector narrow = __builtin_convertvector(a.v[i], narrow_f32_vector);
        memcpy((char *)dst + (size_t)i * sizeof(narrow), &narrow, sizeof(narrow));
    }
}
static inline void store_f64_as_f64(void *dst, struct f64_lanes a)
{
    memcpy(dst, &a, sizeof(a));
}
#define load_f64_of_f64 load_f64
#define load_u64_of_u64 load_u64

/* window_taps.c */
#define WINDOW_TAPS_OF(T) KERNEL_SYMBOL(window_rank_##T)
#define WINDOW_RANKS                                                                               \
    {                                                                                              \
        [DTYPE_BOOL] = WINDOW_TAPS_OF(u8), [DTYPE_INT8] = WINDOW_TAPS_OF(i8),                      \
        [DTYPE_INT16] = WINDOW_TAPS_OF(i16), [DTYPE_INT32] = WINDOW_TAPS_OF(i32),                  \
        [DTYPE_INT64] = WINDOW_TAPS_OF(i64), [DTYPE_UINT8] = WINDOW_TAPS_OF(u8),                   \
        [DTYPE_UINT16] = WINDOW_TAPS_OF(u16), [DTYPE_UINT32] = WINDOW_TAPS_OF(u32),                \
        [DTYPE_UINT64] = WINDOW_TAPS_OF(u64), [DTYPE_FLOAT32] = WINDOW_TAPS_OF(f32),               \
        [DTYPE_FLOAT64] = WINDOW_TAPS_OF(f64)                                                      \
    }
window_taps_fn WINDOW_TAPS_OF(u8), WINDOW_TAPS_OF(u16), WINDOW_TAPS_OF(u32), WINDOW_TAPS_OF(u64),
    WINDOW_TAPS_OF(i8), WINDOW_TAPS_OF(i16), WINDOW_TAPS_OF(i32), WINDOW_TAPS_OF(i64),
    WINDOW_TAPS_OF(f32), WINDOW_TAPS_OF(f64);
window_taps_fn KERNEL_SYMBOL(window_correlate_f32), KERNEL_SYMBOL(window_correlate_f64),
    KERNEL_SYMBOL(window_correlate_u64);
