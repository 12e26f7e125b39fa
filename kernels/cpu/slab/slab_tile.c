/* Skinny products of a part of X (see slab_kernels.h).
 *
 *     project    lanes[i][j] += x[i][k..] * operand[j][k..]      k: columns, a vector of them
 *     gather     sums[j][k..] += v[i][j] * x[i][k..]
 *
 * As many sums as registers hold are kept there: some rows, or vectors of columns, for all results.
 * The number of results is a constant in each copy of the loop. Processors without fused
 * multiplication compute it by calls, slowly, and to the same bits.
 */
#include "kernels/cpu/slab/slab_kernels.h"
#include "kernels/cpu/levels/template.h"

#include <math.h>

#if defined(__AVX512F__)
#include <immintrin.h>

enum { N_RESULTS = 12, N_ROWS = 2, N_VECTORS = 2 };
typedef __m512d vector;
#define LOAD_f64(p)       _mm512_loadu_pd(p)
#define LOAD_f32(p)       _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define STORE(p, a)       _mm512_storeu_pd(p, a)
#define SAME(number)      _mm512_set1_pd(number)
#define FUSED(a, b, sums) _mm512_fmadd_pd(a, b, sums)

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

enum { N_RESULTS = 5, N_ROWS = 1, N_VECTORS = 1 };
typedef struct {
    __m256d low, high;
} vector;
static inline vector load_f64(const f64 *p)
{
    return (vector){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
static inline vector load_f32(const f32 *p)
{
    return (vector){_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
}
static inline void store(f64 *p, vector a)
{
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}
static inline vector fused(vector a, vector b, vector sums)
{
    return (vector){_mm256_fmadd_pd(a.low, b.low, sums.low),
                    _mm256_fmadd_pd(a.high, b.high, sums.high)};
}
#define LOAD_f64(p)       load_f64(p)
#define LOAD_f32(p)       load_f32(p)
#define STORE(p, a)       store(p, a)
#define SAME(number)      ((vector){_mm256_set1_pd(number), _mm256_set1_pd(number)})
#define FUSED(a, b, sums) fused(a, b, sums)

#else

enum { N_RESULTS = 4, N_ROWS = 1, N_VECTORS = 1 };
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
static inline vector same(f64 number)
{
    EACH(number)
}
static inline vector fused(vector a, vector b, vector sums)
{
    EACH(fma(a.lanes[i], b.lanes[i], sums.lanes[i]))
}
static inline void store(f64 *p, vector a)
{
    for (size_t i = 0; i < SLAB_LANES_OF; i++)
        p[i] = a.lanes[i];
}
#define LOAD_f64(p)       load_f64(p)
#define LOAD_f32(p)       load_f32(p)
#define STORE(p, a)       store(p, a)
#define SAME(number)      same(number)
#define FUSED(a, b, sums) fused(a, b, sums)

#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

#define TILES(T)                                                                                   \
    INLINE void project_rows_##T(const struct slab_tile *t, size_t first, const size_t n_rows,     \
                                 const size_t n_results)                                           \
    {                                                                                              \
        vector sums[N_ROWS][N_RESULTS];                                                            \
        const T *x[N_ROWS];                                                                        \
        f64 *lanes = t->lanes + first * n_results * SLAB_LANES_OF;                                 \
        UNROLL for (size_t i = 0; i < n_rows; i++)                                                 \
        {                                                                                          \
            x[i] = (const T *)((const char *)t->x + (int64_t)(first + i) * t->line_bytes);         \
            UNROLL for (size_t j = 0; j < n_results; j++) sums[i][j] =                             \
                LOAD_f64(lanes + (i * n_results + j) * SLAB_LANES_OF);                             \
        }                                                                                          \
        for (size_t k = 0; k < t->n_columns; k += SLAB_LANES_OF) {                                 \
            vector own[N_ROWS];                                                                    \
            UNROLL for (size_t i = 0; i < n_rows; i++) own[i] = LOAD_##T(x[i] + k);                \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
            {                                                                                      \
                vector c = LOAD_f64(t->operand + j * t->operand_line + k);                         \
                UNROLL for (size_t i = 0; i < n_rows; i++) sums[i][j] =                            \
                    FUSED(own[i], c, sums[i][j]);                                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (size_t i = 0; i < n_rows; i++) UNROLL for (size_t j = 0; j < n_results; j++)   \
            STORE(lanes + (i * n_results + j) * SLAB_LANES_OF, sums[i][j]);                        \
    }                                                                                              \
    INLINE void project_##T(const struct slab_tile *t, const size_t n_results)                     \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + N_ROWS <= t->n_rows; i += N_ROWS)                                               \
            project_rows_##T(t, i, N_ROWS, n_results);                                             \
        for (; i < t->n_rows; i++)                                                                 \
            project_rows_##T(t, i, 1, n_results);                                                  \
    }                                                                                              \
    INLINE void gather_columns_##T(const struct slab_tile *t, size_t first,                        \
                                   const size_t n_vectors, const size_t n_results)                 \
    {                                                                                              \
        vector sums[N_VECTORS][N_RESULTS];                                                         \
        const char *line = (const char *)((const T *)t->x + first);                                \
        const f64 *v = t->v;                                                                       \
        UNROLL for (size_t m = 0; m < n_vectors; m++)                                              \
            UNROLL for (size_t j = 0; j < n_results; j++) sums[m][j] =                             \
                t->is_added ? LOAD_f64(t->sums + j * t->sums_line + first + m * SLAB_LANES_OF)     \
                            : SAME(0);                                                             \
        for (size_t i = 0; i < t->n_rows; i++, line += t->line_bytes, v += n_results) {            \
            vector own[N_VECTORS];                                                                 \
            UNROLL for (size_t m = 0; m < n_vectors; m++) own[m] =                                 \
                LOAD_##T((const T *)line + m * SLAB_LANES_OF);                                     \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
            {                                                                                      \
                vector factor = SAME(v[j]);                                                        \
                UNROLL for (size_t m = 0; m < n_vectors; m++) sums[m][j] =                         \
                    FUSED(own[m], factor, sums[m][j]);                                             \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (size_t m = 0; m < n_vectors; m++)                                              \
            UNROLL for (size_t j = 0; j < n_results; j++)                                          \
                STORE(t->sums + j * t->sums_line + first + m * SLAB_LANES_OF, sums[m][j]);         \
    }                                                                                              \
    INLINE void gather_##T(const struct slab_tile *t, const size_t n_results)                      \
    {                                                                                              \
        size_t k = 0;                                                                              \
        for (; k + N_VECTORS * SLAB_LANES_OF <= t->n_columns; k += N_VECTORS * SLAB_LANES_OF)      \
            gather_columns_##T(t, k, N_VECTORS, n_results);                                        \
        for (; k < t->n_columns; k += SLAB_LANES_OF)                                               \
            gather_columns_##T(t, k, 1, n_results);                                                \
    }

TILES(f32)
TILES(f64)

/* A copy for each number of results. */
#define CASE(name, n)                                                                              \
    case n:                                                                                        \
        name(t, n);                                                                                \
        return;
#define ALL_UP_TO_4(name)                                                                          \
    CASE(name, 1)                                                                                  \
    CASE(name, 2)                                                                                  \
    CASE(name, 3)                                                                                  \
    CASE(name, 4)
#if defined(__AVX512F__)
#define ALL(name)                                                                                  \
    ALL_UP_TO_4(name)                                                                              \
    CASE(name, 5)                                                                                  \
    CASE(name, 6)                                                                                  \
    CASE(name, 7)                                                                                  \
    CASE(name, 8)                                                                                  \
    CASE(name, 9)                                                                                  \
    CASE(name, 10)                                                                                 \
    CASE(name, 11)                                                                                 \
    CASE(name, 12)
#elif defined(__AVX2__) && defined(__FMA__)
#define ALL(name)                                                                                  \
    ALL_UP_TO_4(name)                                                                              \
    CASE(name, 5)
#else
#define ALL(name) ALL_UP_TO_4(name)
#endif

#define TILE(name)                                                                                 \
    static void tile_##name(const struct slab_tile *t)                                             \
    {                                                                                              \
        switch (t->n_results) {                                                                    \
            ALL(name)                                                                              \
        default: return;                                                                           \
        }                                                                                          \
    }

TILE(project_f32)
TILE(project_f64)
TILE(gather_f32)
TILE(gather_f64)

const struct slab_kernels KERNEL_SYMBOL(slab_kernels) = {
    .n_results = N_RESULTS,
    .project = {tile_project_f32, tile_project_f64},
    .gather = {tile_gather_f32, tile_gather_f64},
};
