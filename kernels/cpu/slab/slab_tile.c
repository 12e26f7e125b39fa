/* Skinny products of a part of X (see slab_kernels.h).
 *
 *     project    to[i][j] = sum over k of x[i][k] * operand[j][k]     k: columns
 *     gather     sums[j][k..] += v[i][j] * x[i][k..]
 *     add        sums[k..] += x[i][k..], or its square
 *
 * As many sums as registers hold are kept there: some rows, or vectors of columns, for all results.
 * The number of results is a constant in each copy of the loop. Columns behind the last whole
 * vector are loaded and stored by masks. What comes next of X is asked for while a tile is
 * multiplied: rows begin in pages of their own, which processors do not look into by themselves.
 * Processors without fused multiplication compute it by calls, slowly, and to the same bits.
 */
#include "kernels/cpu/slab/slab_level.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512d vector;
static inline __mmask8 first(size_t n)
{
    return (__mmask8)((1u << n) - 1);
}
#define LOAD_f64(p)         _mm512_loadu_pd(p)
#define LOAD_f32(p)         _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define LOAD_SOME_f64(p, n) _mm512_maskz_loadu_pd(first(n), p)
#define LOAD_SOME_f32(p, n)                                                                        \
    _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_maskz_loadu_ps(first(n), p)))
#define STORE(p, a)         _mm512_storeu_pd(p, a)
#define STORE_SOME(p, a, n) _mm512_mask_storeu_pd(p, first(n), a)
#define SAME(number)        _mm512_set1_pd(number)
#define FUSED(a, b, sums)   _mm512_fmadd_pd(a, b, sums)
static inline f64 sum_of(vector a)
{
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

typedef struct {
    __m256d low, high;
} vector;
static const i64 masks[2 * SLAB_LANES_OF] = {-1, -1, -1, -1, -1, -1, -1, -1};
static inline __m256i mask_of(size_t n, size_t from)
{
    return _mm256_loadu_si256((const __m256i *)(masks + SLAB_LANES_OF - n + from));
}
static inline vector load_f64(const f64 *p)
{
    return (vector){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
static inline vector load_f32(const f32 *p)
{
    return (vector){_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
}
static inline vector load_some_f64(const f64 *p, size_t n)
{
    return (vector){_mm256_maskload_pd(p, mask_of(n, 0)), _mm256_maskload_pd(p + 4, mask_of(n, 4))};
}
static inline vector load_some_f32(const f32 *p, size_t n)
{
    f32 some[SLAB_LANES_OF] = {0};
    memcpy(some, p, n * sizeof(*p));
    return load_f32(some);
}
static inline void store(f64 *p, vector a)
{
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}
static inline void store_some(f64 *p, vector a, size_t n)
{
    _mm256_maskstore_pd(p, mask_of(n, 0), a.low);
    _mm256_maskstore_pd(p + 4, mask_of(n, 4), a.high);
}
static inline vector fused(vector a, vector b, vector sums)
{
    return (vector){_mm256_fmadd_pd(a.low, b.low, sums.low),
                    _mm256_fmadd_pd(a.high, b.high, sums.high)};
}
static inline f64 sum_of(vector a)
{
    __m256d four = _mm256_add_pd(a.low, a.high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
#define LOAD_f64(p)         load_f64(p)
#define LOAD_f32(p)         load_f32(p)
#define LOAD_SOME_f64(p, n) load_some_f64(p, n)
#define LOAD_SOME_f32(p, n) load_some_f32(p, n)
#define STORE(p, a)         store(p, a)
#define STORE_SOME(p, a, n) store_some(p, a, n)
#define SAME(number)        ((vector){_mm256_set1_pd(number), _mm256_set1_pd(number)})
#define FUSED(a, b, sums)   fused(a, b, sums)

#else

typedef struct {
    f64 lanes[SLAB_LANES_OF];
} vector;
#define EACH(vector_expression)                                                                    \
    vector ret;                                                                                    \
    for (size_t i = 0; i < SLAB_LANES_OF; i++)                                                     \
        ret.lanes[i] = (vector_expression);                                                        \
    return ret;
static inline vector load_f64(const f64 *p)
{
    EACH(p[i])
}
static inline vector load_f32(const f32 *p)
{
    EACH((f64)p[i])
}
static inline vector load_some_f64(const f64 *p, size_t n)
{
    EACH(i < n ? p[i] : 0)
}
static inline vector load_some_f32(const f32 *p, size_t n)
{
    EACH(i < n ? (f64)p[i] : 0)
}
static inline vector same(f64 number)
{
    EACH(number)
}
static inline vector fused(vector a, vector b, vector sums)
{
    EACH(fma(a.lanes[i], b.lanes[i], sums.lanes[i]))
}
static inline void store_some(f64 *p, vector a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = a.lanes[i];
}
static inline f64 sum_of(vector a)
{
    for (size_t n = SLAB_LANES_OF / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++)
            a.lanes[i] += a.lanes[i + n];
    return a.lanes[0];
}
#define LOAD_f64(p)         load_f64(p)
#define LOAD_f32(p)         load_f32(p)
#define LOAD_SOME_f64(p, n) load_some_f64(p, n)
#define LOAD_SOME_f32(p, n) load_some_f32(p, n)
#define STORE(p, a)         store_some(p, a, SLAB_LANES_OF)
#define STORE_SOME(p, a, n) store_some(p, a, n)
#define SAME(number)        same(number)
#define FUSED(a, b, sums)   fused(a, b, sums)

#endif

#define TILES(T)                                                                                   \
    INLINE void project_rows_##T(const struct slab_tile *t, size_t first_row, const size_t n_rows, \
                                 const size_t n_results)                                           \
    {                                                                                              \
        vector sums[N_MOST][N_RESULTS];                                                            \
        const T *x[N_MOST];                                                                        \
        f64 *lanes = t->lanes + first_row * n_results * SLAB_LANES_OF;                             \
        f64 *to = t->to + first_row * t->to_line;                                                  \
        size_t k = 0;                                                                              \
        UNROLL for (size_t i = 0; i < n_rows; i++)                                                 \
        {                                                                                          \
            x[i] = (const T *)((const char *)t->x + (int64_t)(first_row + i) * t->line_bytes);     \
            UNROLL for (size_t j = 0; j < n_results; j++) sums[i][j] =                             \
                t->is_added ? LOAD_f64(lanes + (i * n_results + j) * SLAB_LANES_OF) : SAME(0);     \
        }                                                                                          \
        for (; k + SLAB_LANES_OF <= t->n_columns; k += SLAB_LANES_OF) {                            \
            vector own[N_MOST];                                                                    \
            UNROLL for (size_t i = 0; i < n_rows; i++)                                             \
            {                                                                                      \
                own[i] = LOAD_##T(x[i] + k);                                                       \
                __builtin_prefetch((const char *)(x[i] + k) + (int64_t)n_rows * t->line_bytes);    \
            }                                                                                      \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
            {                                                                                      \
                vector c = LOAD_f64((const f64 *)t->operand + j * t->operand_line + k);            \
                UNROLL for (size_t i = 0; i < n_rows; i++) sums[i][j] =                            \
                    FUSED(own[i], c, sums[i][j]);                                                  \
            }                                                                                      \
        }                                                                                          \
        size_t n = t->n_columns - k;                                                               \
        if (n > 0) {                                                                               \
            vector own[N_MOST];                                                                    \
            UNROLL for (size_t i = 0; i < n_rows; i++) own[i] = LOAD_SOME_##T(x[i] + k, n);        \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
            {                                                                                      \
                vector c = LOAD_SOME_f64((const f64 *)t->operand + j * t->operand_line + k, n);    \
                UNROLL for (size_t i = 0; i < n_rows; i++) sums[i][j] =                            \
                    FUSED(own[i], c, sums[i][j]);                                                  \
            }                                                                                      \
        }                                                                                          \
        if (t->is_last) {                                                                          \
            UNROLL for (size_t i = 0; i < n_rows; i++)                                             \
                UNROLL for (size_t j = 0; j < n_results; j++) to[i * t->to_line + j] =             \
                    sum_of(sums[i][j]);                                                            \
            return;                                                                                \
        }                                                                                          \
        UNROLL for (size_t i = 0; i < n_rows; i++) UNROLL for (size_t j = 0; j < n_results; j++)   \
            STORE(lanes + (i * n_results + j) * SLAB_LANES_OF, sums[i][j]);                        \
    }                                                                                              \
    INLINE void project_##T(const struct slab_tile *t, const size_t n_results)                     \
    {                                                                                              \
        const size_t n_rows = together(n_results);                                                 \
        size_t i = 0;                                                                              \
        for (; i + n_rows <= t->n_rows; i += n_rows)                                               \
            project_rows_##T(t, i, n_rows, n_results);                                             \
        for (; i < t->n_rows; i++)                                                                 \
            project_rows_##T(t, i, 1, n_results);                                                  \
    }                                                                                              \
    /* some: of the columns, fewer than a vector has; 0: there are whole vectors. */               \
    INLINE void gather_columns_##T(const struct slab_tile *t, size_t from, const size_t n_vectors, \
                                   const size_t some, const size_t n_results)                      \
    {                                                                                              \
        vector sums[N_MOST][N_RESULTS];                                                            \
        const char *line = (const char *)((const T *)t->x + from);                                 \
        const f64 *v = t->v;                                                                       \
        f64 *to = t->sums + from;                                                                  \
        UNROLL for (size_t m = 0; m < n_vectors; m++)                                              \
            UNROLL for (size_t j = 0; j < n_results; j++) sums[m][j] =                             \
                !t->is_added ? SAME(0)                                                             \
                : some       ? LOAD_SOME_f64(to + j * t->sums_line, some)                          \
                             : LOAD_f64(to + j * t->sums_line + m * SLAB_LANES_OF);                      \
        for (size_t i = 0; i < t->n_rows; i++, line += t->line_bytes, v += t->v_line) {            \
            vector own[N_MOST];                                                                    \
            UNROLL for (size_t m = 0; m < n_vectors; m++)                                          \
            {                                                                                      \
                const T *x = (const T *)line + m * SLAB_LANES_OF;                                  \
                own[m] = some ? LOAD_SOME_##T(x, some) : LOAD_##T(x);                              \
                __builtin_prefetch((const char *)x + AHEAD);                                       \
            }                                                                                      \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
            {                                                                                      \
                vector factor = SAME(v[j]);                                                        \
                UNROLL for (size_t m = 0; m < n_vectors; m++) sums[m][j] =                         \
                    FUSED(own[m], factor, sums[m][j]);                                             \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (size_t m = 0; m < n_vectors; m++)                                              \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
        {                                                                                          \
            if (some)                                                                              \
                STORE_SOME(to + j * t->sums_line, sums[m][j], some);                               \
            else                                                                                   \
                STORE(to + j * t->sums_line + m * SLAB_LANES_OF, sums[m][j]);                      \
        }                                                                                          \
    }                                                                                              \
    INLINE void gather_##T(const struct slab_tile *t, const size_t n_results)                      \
    {                                                                                              \
        const size_t n_vectors = together(n_results), n = n_vectors * SLAB_LANES_OF;               \
        size_t k = 0;                                                                              \
        for (; k + n <= t->n_columns; k += n)                                                      \
            gather_columns_##T(t, k, n_vectors, 0, n_results);                                     \
        for (; k + SLAB_LANES_OF <= t->n_columns; k += SLAB_LANES_OF)                              \
            gather_columns_##T(t, k, 1, 0, n_results);                                             \
        if (k < t->n_columns)                                                                      \
            gather_columns_##T(t, k, 1, t->n_columns - k, n_results);                              \
    }

TILES(f32)
TILES(f64)

/* Rows in order, for as many columns as there are vectors. */
#define ADDS(name, T, factor)                                                                      \
    INLINE void name##_columns_##T(const struct slab_tile *t, size_t from, const size_t n_vectors, \
                                   const size_t some)                                              \
    {                                                                                              \
        vector sums[ADD_VECTORS];                                                                  \
        const char *line = (const char *)((const T *)t->x + from);                                 \
        f64 *to = t->sums + from;                                                                  \
        UNROLL for (size_t m = 0; m < n_vectors; m++) sums[m] =                                    \
            !t->is_added ? SAME(0)                                                                 \
            : some       ? LOAD_SOME_f64(to, some)                                                 \
                         : LOAD_f64(to + m * SLAB_LANES_OF);                                             \
        for (size_t i = 0; i < t->n_rows; i++, line += t->line_bytes)                              \
            UNROLL for (size_t m = 0; m < n_vectors; m++)                                          \
            {                                                                                      \
                const T *x = (const T *)line + m * SLAB_LANES_OF;                                  \
                vector own = some ? LOAD_SOME_##T(x, some) : LOAD_##T(x);                          \
                __builtin_prefetch((const char *)x + AHEAD);                                       \
                sums[m] = FUSED(own, factor, sums[m]);                                             \
            }                                                                                      \
        UNROLL for (size_t m = 0; m < n_vectors; m++)                                              \
        {                                                                                          \
            if (some)                                                                              \
                STORE_SOME(to, sums[m], some);                                                     \
            else                                                                                   \
                STORE(to + m * SLAB_LANES_OF, sums[m]);                                            \
        }                                                                                          \
    }                                                                                              \
    static void tile_##name##_##T(const struct slab_tile *t)                                       \
    {                                                                                              \
        size_t k = 0, n = ADD_VECTORS * SLAB_LANES_OF;                                             \
        for (; k + n <= t->n_columns; k += n)                                                      \
            name##_columns_##T(t, k, ADD_VECTORS, 0);                                              \
        for (; k + SLAB_LANES_OF <= t->n_columns; k += SLAB_LANES_OF)                              \
            name##_columns_##T(t, k, 1, 0);                                                        \
        if (k < t->n_columns)                                                                      \
            name##_columns_##T(t, k, 1, t->n_columns - k);                                         \
    }
enum { ADD_VECTORS = N_MOST > 1 ? 8 : 4 };
ADDS(add, f32, SAME(1))
ADDS(add, f64, SAME(1))
ADDS(add_squares, f32, own)
ADDS(add_squares, f64, own)

TILE(project_f32)
TILE(project_f64)
TILE(gather_f32)
TILE(gather_f64)

/* Rows of n_results float32 from `from` on, line_bytes apart, as float64 side by side. */
static void widen(const void *from, int64_t line_bytes, size_t n_rows, size_t n_results, f64 *to)
{
    const char *line = from;
    for (size_t i = 0; i < n_rows; i++, line += line_bytes, to += n_results) {
        const f32 *own = (const f32 *)line;
        size_t j = 0;
        for (; j + SLAB_LANES_OF <= n_results; j += SLAB_LANES_OF)
            STORE(to + j, LOAD_f32(own + j));
        if (j < n_results)
            STORE_SOME(to + j, LOAD_SOME_f32(own + j, n_results - j), n_results - j);
    }
}

const struct slab_kernels KERNEL_SYMBOL(slab_kernels) = {
    .n_results = N_RESULTS,
    .project = {tile_project_f32, tile_project_f64, KERNEL_SYMBOL(slab_project_single)},
    .gather = {tile_gather_f32, tile_gather_f64, KERNEL_SYMBOL(slab_gather_single)},
    .add = {tile_add_f32, tile_add_f64},
    .add_squares = {tile_add_squares_f32, tile_add_squares_f64},
    .widen = widen,
};
