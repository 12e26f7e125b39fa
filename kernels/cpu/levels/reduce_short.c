/* Short rows one behind the other, each to a value of its own, which is to the bit what reduce.c or
 * reduce_sums.c make of it as a row: sums of floats in the order of a block there, counts in any.
 *
 *     row 0  | s0 s1 s2 s3 | + | s0 s1 s2 s3 | + ...  -> one vector  \
 *     row 1  |             |   |             |        -> one vector   } -> their sums, a vector
 *     ...                                                            /
 *
 * As many rows at a time as a vector has lanes, so that nothing is folded alone. One pass over
 * memory; nothing beyond the rows is read. Called by turned.c.
 */
#include "kernels/cpu/levels/template.h"

#if defined(KERNEL_IS_VECTORISED)
#include "kernels/cpu/levels/reduce_lanes.h"

#define STEP    ((size_t)REDUCE_SUM_LANES)
#define VECTORS (STEP / LANES)

/* The first n of a vector's lanes, 0 < n < LANES; the others change no sum. */
#define LOAD_PART(T)                                                                               \
    static ALWAYS_INLINE addends load_part_##T(const T *x, size_t n)                               \
    {                                                                                              \
        addends part = -(addends){0};                                                              \
        part[0] = (f64)x[0];                                                                       \
        for (size_t j = 1; j < LANES - 1; j++)                                                     \
            part[j] = n > j ? (f64)x[n > j ? j : 0] : -0.0;                                        \
        return part;                                                                               \
    }
LOAD_PART(f32)
LOAD_PART(f64)

/* n: STEP elements or more, of one block. A lane of the result is the sum of a quarter, or a half,
 * of the row's. */
#define ROW_OF(T)                                                                                  \
    static ALWAYS_INLINE addends row_##T(const T *x, size_t n, addends one)                        \
    {                                                                                              \
        addends s[VECTORS];                                                                        \
        for (size_t k = 0; k < VECTORS; k++)                                                       \
            s[k] = load_##T(x + k * LANES);                                                        \
        size_t i = STEP;                                                                           \
        for (; n - i >= STEP; i += STEP)                                                           \
            for (size_t k = 0; k < VECTORS; k++)                                                   \
                s[k] = plus(load_##T(x + i + k * LANES), s[k], one);                               \
        for (size_t k = 0; k < VECTORS; k++) {                                                     \
            if (n - i >= (k + 1) * LANES)                                                          \
                s[k] = plus(load_##T(x + i + k * LANES), s[k], one);                               \
            else if (n - i > k * LANES)                                                            \
                s[k] = s[k] + load_part_##T(x + i + k * LANES, n - i - k * LANES);                 \
        }                                                                                          \
        for (size_t w = VECTORS / 2; w > 0; w /= 2)                                                \
            for (size_t k = 0; k < w; k++)                                                         \
                s[k] = s[k] + s[k + w];                                                            \
        return s[0];                                                                               \
    }                                                                                              \
    static ALWAYS_INLINE void rows_##T(size_t n_rows, size_t n, const T *x, f64 *values)           \
    {                                                                                              \
        addends one = get_one();                                                                   \
        for (; n_rows >= LANES; n_rows -= LANES, x += LANES * n, values += LANES) {                \
            addends s[LANES];                                                                      \
            for (size_t r = 0; r < LANES; r++)                                                     \
                s[r] = row_##T(x + r * n, n, one);                                                 \
            s[0] = fold_each(s);                                                                   \
            store_vectors(values, s, 1);                                                           \
        }                                                                                          \
        for (; n_rows > 0; n_rows--, x += n)                                                       \
            *values++ = fold_vector(row_##T(x, n, one));                                           \
    }                                                                                              \
    static void sum_##T(size_t n_rows, size_t n, const void *src, void *values)                    \
    {                                                                                              \
        if (n == STEP)                                                                             \
            rows_##T(n_rows, STEP, src, values);                                                   \
        else                                                                                       \
            rows_##T(n_rows, n, src, values);                                                      \
    }
ROW_OF(f32)
ROW_OF(f64)

/* How many of STEP bytes are not 0, in parts. */
#if defined(__SSE2__)
typedef __m128i counts;
static inline counts count_step(const u8 *x)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)x);
    return _mm_sad_epu8(_mm_min_epu8(bytes, _mm_set1_epi8(1)), _mm_setzero_si128());
}

static inline u64 fold_counts(counts c)
{
    return (u64)c[0] + (u64)c[1];
}
#else
typedef u64 counts;
static inline counts count_step(const u8 *x)
{
    u64 n = 0;
    for (size_t i = 0; i < STEP; i++)
        n += x[i] != 0;
    return n;
}

static inline u64 fold_counts(counts c)
{
    return c;
}
#endif

static ALWAYS_INLINE u64 count_row(const u8 *x, size_t n)
{
    counts c = count_step(x);
    size_t i = STEP;
    for (; n - i >= STEP; i += STEP)
        c += count_step(x + i);
    u64 total = fold_counts(c);
    for (; i < n; i++)
        total += x[i] != 0;
    return total;
}

static void count_u8(size_t n_rows, size_t n, const void *src, void *values)
{
    const u8 *x = src;
    u64 *counted = values;
    for (size_t r = 0; r < n_rows; r++)
        counted[r] = n == STEP ? count_row(x + r * n, STEP) : count_row(x + r * n, n);
}

/* clang-format off */
const short_rows_table KERNEL_SYMBOL(short_rows) = {
    [OP_SUM] = {ROW_FLOATS(sum)},
    [OP_COUNT_NONZERO] = {[DTYPE_BOOL] = count_u8, [DTYPE_INT8] = count_u8,
                          [DTYPE_UINT8] = count_u8},
};
/* clang-format on */
#else
const short_rows_table KERNEL_SYMBOL(short_rows) = {{NULL}};
#endif
