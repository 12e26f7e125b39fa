/* Transposing blocks in memory.
 *
 * Reads rows, elements of which are neighbours, and writes columns as rows; any distance between
 * rows on both sides, any alignment. Squares of N rows and N columns are turned in registers: N
 * vectors of N elements, interleaved in pairs log2(N) times, each time in the same way.
 *
 *     a0 a1 a2 a3         a0 c0 a1 c1         a0 b0 c0 d0
 *     b0 b1 b2 b3   -->   a2 c2 a3 c3   -->   a1 b1 c1 d1
 *     c0 c1 c2 c3         b0 d0 b1 d1         a2 b2 c2 d2
 *     d0 d1 d2 d3         b2 d2 b3 d3         a3 b3 c3 d3
 *
 * A vector is a whole line of the cache where there are such registers, so that each line is read
 * once and written once: rows of a large array often lie a power of two apart, and then the lines
 * of a column share few sets of a cache and push each other out. Nor does anything go through
 * memory in between, since stores wait for each other, in order, for lines that are not there yet.
 * What will be read AHEAD rows later is asked for. The last rows and columns are a square with some
 * of those before them, which are written once more; where there are too few for any square, and in
 * the plain reference, elements go one by one. One pass over memory each way. Called by movement.c.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#define LINE_BYTES 64
#define AHEAD      16

#define ELEMENTS(T)                                                                                \
    static void elements_##T(const struct transposing *t)                                          \
    {                                                                                              \
        for (size_t i = 0; i < t->n_rows; i++) {                                                   \
            const char *src = t->src + (int64_t)i * t->src_row;                                    \
            char *dst = t->dst + i * sizeof(T);                                                    \
            for (size_t k = 0; k < t->n_columns; k++) {                                            \
                memcpy(dst, src, sizeof(T));                                                       \
                src += sizeof(T);                                                                  \
                dst += t->dst_row;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
ELEMENTS(u8)
ELEMENTS(u16)
ELEMENTS(u32)
ELEMENTS(u64)

#if !defined(KERNEL_IS_VECTORISED)

#define PLAIN(T)                                                                                   \
    static void transpose_##T(const struct transposing *t)                                         \
    {                                                                                              \
        elements_##T(t);                                                                           \
    }
PLAIN(u8)
PLAIN(u16)
PLAIN(u32)
PLAIN(u64)

#else

#define FIRST_2   0, 2
#define SECOND_2  1, 3
#define FIRST_4   0, 4, 1, 5
#define SECOND_4  2, 6, 3, 7
#define FIRST_8   0, 8, 1, 9, 2, 10, 3, 11
#define SECOND_8  4, 12, 5, 13, 6, 14, 7, 15
#define FIRST_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define SECOND_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#define SQUARES(T, N)                                                                              \
    typedef T vector_##T __attribute__((vector_size(N * sizeof(T))));                              \
    static inline void interleave_##T(const vector_##T *a, vector_##T *ret)                        \
    {                                                                                              \
        UNROLLED                                                                                   \
        for (size_t i = 0; i < N / 2; i++) {                                                       \
            ret[2 * i] = __builtin_shufflevector(a[i], a[i + N / 2], FIRST_##N);                   \
            ret[2 * i + 1] = __builtin_shufflevector(a[i], a[i + N / 2], SECOND_##N);              \
        }                                                                                          \
    }                                                                                              \
    static inline void square_##T(const char *src, int64_t src_row, char *dst, int64_t dst_row)    \
    {                                                                                              \
        vector_##T a[N], b[N];                                                                     \
        UNROLLED                                                                                   \
        for (size_t i = 0; i < N; i++)                                                             \
            memcpy(&a[i], src + (int64_t)i * src_row, sizeof(a[i]));                               \
        interleave_##T(a, b);                                                                      \
        if (N >= 4)                                                                                \
            interleave_##T(b, a);                                                                  \
        if (N >= 8)                                                                                \
            interleave_##T(a, b);                                                                  \
        if (N >= 16)                                                                               \
            interleave_##T(b, a);                                                                  \
        const vector_##T *turned = N == 2 || N == 8 ? b : a;                                       \
        UNROLLED                                                                                   \
        for (size_t i = 0; i < N; i++)                                                             \
            memcpy(dst + (int64_t)i * dst_row, &turned[i], sizeof(a[i]));                          \
    }                                                                                              \
                                                                                                   \
    static void transpose_##T(const struct transposing *t)                                         \
    {                                                                                              \
        if (t->n_rows < N || t->n_columns < N) {                                                   \
            elements_##T(t);                                                                       \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < t->n_rows; i += N) {                                                \
            size_t row = i + N <= t->n_rows ? i : t->n_rows - N;                                   \
            const char *src = t->src + (int64_t)row * t->src_row;                                  \
            ask_ahead(src, t->src_row, N, t->n_columns * sizeof(T));                               \
            for (size_t k = 0; k < t->n_columns; k += N) {                                         \
                size_t column = k + N <= t->n_columns ? k : t->n_columns - N;                      \
                square_##T(src + column * sizeof(T), t->src_row,                                   \
                           t->dst + (int64_t)column * t->dst_row + row * sizeof(T), t->dst_row);   \
            }                                                                                      \
        }                                                                                          \
    }

/* The same columns of the rows that come AHEAD rows later, of which there may be none. */
static inline void ask_ahead(const char *src, int64_t src_row, size_t n_rows, size_t n_bytes)
{
    for (size_t i = 0; i < n_rows; i++) {
        uintptr_t row = (uintptr_t)src + (AHEAD + i) * (uintptr_t)src_row;
        for (size_t k = 0; k < n_bytes; k += LINE_BYTES)
            __builtin_prefetch((const void *)(row + k), 0, 2);
    }
}

#if KERNEL_VECTOR_BYTES == 64
SQUARES(u8, 16)
SQUARES(u16, 16)
SQUARES(u32, 16)
SQUARES(u64, 8)
#elif KERNEL_VECTOR_BYTES == 32
SQUARES(u8, 16)
SQUARES(u16, 16)
SQUARES(u32, 8)
SQUARES(u64, 4)
#else
SQUARES(u8, 16)
SQUARES(u16, 8)
SQUARES(u32, 4)
SQUARES(u64, 2)
#endif

#endif

const struct transpose_kernels KERNEL_SYMBOL(transpose) = {
    .by_item = {transpose_u8, transpose_u16, transpose_u32, transpose_u64},
};
