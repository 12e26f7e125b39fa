/* Products of a matrix and a vector (see multiply_kernels.h). They are as fast as the matrix can be
 * read, so floats need no library: sums are the same at all levels, and on all processors.
 *
 * along: a row has SUMS sums, of every SUMS-th element each, which are added in pairs at its end:
 *
 *     s[i] = m[i] * v[i] + m[i + SUMS] * v[i + SUMS] + ...
 *     s[0] + s[SUMS / 2], ..., then halves of those, until one is left
 *
 * across: columns are added to the sums in their order, COLUMNS at a time so that sums are loaded
 * and stored less often.
 */
#include "kernels/cpu/multiply/multiply_kernels.h"
#include "kernels/cpu/levels/template.h"

#include <string.h>

#define SUMS_BYTES 128
#define COLUMNS    4

#define TIMES_PLUS(sum, a, b) ((sum) + (a) * (b))
#define PLUS(a, b)            ((a) + (b))
#define AND_OR(sum, a, b)     ((sum) | ((a) & (b)))
#define OR(a, b)              ((a) | (b))

#define VECTORS(name, T, STEP, ADD)                                                                \
    static T along_row_##name(size_t depth, const T *m, const T *v)                                \
    {                                                                                              \
        enum { SUMS = SUMS_BYTES / sizeof(T) };                                                    \
        T s[SUMS] = {0};                                                                           \
        size_t k = 0;                                                                              \
        for (; k + SUMS <= depth; k += SUMS) {                                                     \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < SUMS; i++)                                                      \
                s[i] = (T)STEP(s[i], m[k + i], v[k + i]);                                          \
        }                                                                                          \
        for (size_t i = 0; k + i < depth; i++)                                                     \
            s[i] = (T)STEP(s[i], m[k + i], v[k + i]);                                              \
        for (size_t n = SUMS / 2; n > 0; n /= 2)                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                s[i] = (T)ADD(s[i], s[i + n]);                                                     \
        return s[0];                                                                               \
    }                                                                                              \
    static void along_##name(const struct multiply_vector *p)                                      \
    {                                                                                              \
        T *sums = p->sums;                                                                         \
        for (size_t i = 0; i < p->n; i++)                                                          \
            sums[i] = along_row_##name(                                                            \
                p->depth, (const T *)(p->matrix + (int64_t)i * p->apart_bytes), p->vector);        \
    }                                                                                              \
    static void across_columns_##name(const struct multiply_vector *p, size_t first, T *sums)      \
    {                                                                                              \
        const T *c0 = (const T *)(p->matrix + (int64_t)first * p->apart_bytes);                    \
        const T *c1 = (const T *)((const char *)c0 + p->apart_bytes);                              \
        const T *c2 = (const T *)((const char *)c1 + p->apart_bytes);                              \
        const T *c3 = (const T *)((const char *)c2 + p->apart_bytes);                              \
        const T *v = (const T *)p->vector + first;                                                 \
        T v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];                                              \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < p->n; i++) {                                                        \
            T s = (T)STEP(sums[i], c0[i], v0);                                                     \
            s = (T)STEP(s, c1[i], v1);                                                             \
            s = (T)STEP(s, c2[i], v2);                                                             \
            sums[i] = (T)STEP(s, c3[i], v3);                                                       \
        }                                                                                          \
    }                                                                                              \
    static void across_##name(const struct multiply_vector *p)                                     \
    {                                                                                              \
        T *sums = p->sums;                                                                         \
        size_t k = 0;                                                                              \
        memset(sums, 0, p->n * sizeof(T));                                                         \
        for (; k + COLUMNS <= p->depth; k += COLUMNS)                                              \
            across_columns_##name(p, k, sums);                                                     \
        for (; k < p->depth; k++) {                                                                \
            const T *c = (const T *)(p->matrix + (int64_t)k * p->apart_bytes);                     \
            T v = ((const T *)p->vector)[k];                                                       \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < p->n; i++)                                                      \
                sums[i] = (T)STEP(sums[i], c[i], v);                                               \
        }                                                                                          \
    }                                                                                              \
    static void add_##name(size_t n, void *result, int64_t apart_bytes, const void *sums,          \
                           bool is_added)                                                          \
    {                                                                                              \
        char *c = result;                                                                          \
        const T *s = sums;                                                                         \
        for (size_t i = 0; i < n; i++, c += apart_bytes)                                           \
            *(T *)c = is_added ? (T)ADD(*(T *)c, s[i]) : s[i];                                     \
    }

VECTORS(bool, u8, AND_OR, OR)
VECTORS(8, u8, TIMES_PLUS, PLUS)
VECTORS(16, u16, TIMES_PLUS, PLUS)
VECTORS(32, u32, TIMES_PLUS, PLUS)
VECTORS(64, u64, TIMES_PLUS, PLUS)
VECTORS(f32, f32, TIMES_PLUS, PLUS)
VECTORS(f64, f64, TIMES_PLUS, PLUS)

#define ROW_ALL(name)                                                                              \
    [DTYPE_BOOL] = name##_bool, [DTYPE_INT8] = name##_8, [DTYPE_UINT8] = name##_8,                 \
    [DTYPE_INT16] = name##_16, [DTYPE_UINT16] = name##_16, [DTYPE_INT32] = name##_32,              \
    [DTYPE_UINT32] = name##_32, [DTYPE_INT64] = name##_64, [DTYPE_UINT64] = name##_64,             \
    [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64

const struct multiply_vectors KERNEL_SYMBOL(multiply_vectors) = {
    .along = {ROW_ALL(along)},
    .across = {ROW_ALL(across)},
    .add = {ROW_ALL(add)},
};
