/* Macros of the kernel sources: one body, all element types, all levels.
 *
 * KERNEL_LEVEL (plain, baseline, avx2, avx512) is given by the build, beside the compiler's flags;
 * KERNEL_IS_VECTORISED for all levels but plain.
 * Loops are written for the compiler's vectoriser: no branches in bodies, lengths that are a
 * multiple of KERNEL_GRANULE, and the promise that iterations do not depend on each other.
 */
#pragma once

#include "kernels/cpu/levels/kernels.h"

#define KERNEL_PASTE_(a, b)  a##_##b
#define KERNEL_PASTE(a, b)   KERNEL_PASTE_(a, b)
#define KERNEL_SYMBOL(table) KERNEL_PASTE(table, KERNEL_LEVEL)

#if !defined(KERNEL_IS_VECTORISED)
#define KERNEL_LOOP
#elif defined(__clang__)
#define KERNEL_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define KERNEL_LOOP _Pragma("GCC ivdep")
#endif

#define KERNEL_ROUND(n) (((n) + (KERNEL_GRANULE - 1)) & ~(size_t)(KERNEL_GRANULE - 1))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#define KERNEL_ARGS                                                                                \
    size_t n, void *dst, const void *pa, const void *pb, const void *pc,                           \
        struct kernel_events *events

/* name_T: R d[i] = expression in `a` (and `b`), of type T. */
#define UNARY(name, T, R, expression)                                                              \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        R *d = dst;                                                                                \
        const T *as = pa;                                                                          \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = as[i];                                                                           \
            d[i] = (R)(expression);                                                                \
        }                                                                                          \
    }

#define BINARY(name, T, R, expression)                                                             \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        R *d = dst;                                                                                \
        const T *as = pa, *bs = pb;                                                                \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = as[i], b = bs[i];                                                                \
            d[i] = (R)(expression);                                                                \
        }                                                                                          \
    }

/* The same past the cache (see kernels.h): a block at a time, which the compiler keeps
 * in registers or else in the first-level cache. */
#define UNARY_PAST(name, T, R, expression)                                                         \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        R *d = dst;                                                                                \
        const T *as = pa;                                                                          \
        for (size_t k = 0; k < n; k += KERNEL_GRANULE) {                                           \
            R block[KERNEL_GRANULE] __attribute__((aligned(LINE_BYTES)));                          \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                T a = as[k + i];                                                                   \
                block[i] = (R)(expression);                                                        \
            }                                                                                      \
            lines_stream(d + k, block, sizeof(block));                                             \
        }                                                                                          \
    }

#define BINARY_PAST(name, T, R, expression)                                                        \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        R *d = dst;                                                                                \
        const T *as = pa, *bs = pb;                                                                \
        for (size_t k = 0; k < n; k += KERNEL_GRANULE) {                                           \
            R block[KERNEL_GRANULE] __attribute__((aligned(LINE_BYTES)));                          \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < KERNEL_GRANULE; i++) {                                          \
                T a = as[k + i], b = bs[k + i];                                                    \
                block[i] = (R)(expression);                                                        \
            }                                                                                      \
            lines_stream(d + k, block, sizeof(block));                                             \
        }                                                                                          \
    }

/* The same for a family of types; result of the same type. */
#define FOR_WIDTHS(M, name, expression)                                                            \
    M(name, u8, u8, expression)                                                                    \
    M(name, u16, u16, expression) M(name, u32, u32, expression) M(name, u64, u64, expression)
#define FOR_SIGNED(M, name, expression)                                                            \
    M(name, i8, i8, expression)                                                                    \
    M(name, i16, i16, expression) M(name, i32, i32, expression) M(name, i64, i64, expression)
#define FOR_FLOATS(M, name, expression) M(name, f32, f32, expression) M(name, f64, f64, expression)

/* Rows of a kernel_table. */
#define ROW_WIDTHS(name)                                                                           \
    [DTYPE_INT8] = name##_u8, [DTYPE_INT16] = name##_u16, [DTYPE_INT32] = name##_u32,              \
    [DTYPE_INT64] = name##_u64, [DTYPE_UINT8] = name##_u8, [DTYPE_UINT16] = name##_u16,            \
    [DTYPE_UINT32] = name##_u32, [DTYPE_UINT64] = name##_u64
#define ROW_SIGNED(name)                                                                           \
    [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16, [DTYPE_INT32] = name##_i32,              \
    [DTYPE_INT64] = name##_i64
#define ROW_UNSIGNED(name)                                                                         \
    [DTYPE_UINT8] = name##_u8, [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32,           \
    [DTYPE_UINT64] = name##_u64
#define ROW_FLOATS(name) [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64
