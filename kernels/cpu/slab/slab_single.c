/* Skinny products of float32 in float32 (see slab_kernels.h): a tile is added up in registers, with
 * one rounding a step, and what it gives goes into sums of float64.
 *
 *     project    lanes[l % 8] += sum over k of x[i][16 k + l] * operand[j][16 k + l], l: 0 to 15
 *     gather     sums[j][k..] += sum over i of v[i][j] * x[i][k..]
 *
 * So a tile's rows, of gather, and columns, of project, say what is rounded to float32: callers
 * make them of places in the whole that nothing but shapes decides on.
 */
#include "kernels/cpu/slab/slab_level.h"

#include <math.h>
#include <string.h>

enum { LANES = 2 * SLAB_LANES_OF };

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512 vector;
static inline __mmask8 first(size_t n)
{
    return (__mmask8)((1u << n) - 1);
}
#define LOAD(p)           _mm512_loadu_ps(p)
#define LOAD_SOME(p, n)   _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
#define SAME(number)      _mm512_set1_ps(number)
#define FUSED(a, b, sums) _mm512_fmadd_ps(a, b, sums)
static inline __m512d low_of(vector a)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(a));
}
static inline __m512d high_of(vector a)
{
    return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
}
INLINE void fold(f64 *to, vector a, const size_t n, bool is_added)
{
    const __mmask8 in_low = first(n < SLAB_LANES_OF ? n : SLAB_LANES_OF);
    const __mmask8 in_high = first(n > SLAB_LANES_OF ? n - SLAB_LANES_OF : 0);
    __m512d low = low_of(a), high = high_of(a);
    if (is_added) {
        low = _mm512_add_pd(low, _mm512_maskz_loadu_pd(in_low, to));
        high = _mm512_add_pd(high, _mm512_maskz_loadu_pd(in_high, to + SLAB_LANES_OF));
    }
    _mm512_mask_storeu_pd(to, in_low, low);
    _mm512_mask_storeu_pd(to + SLAB_LANES_OF, in_high, high);
}
INLINE void fold_lanes(f64 *lanes, vector a, bool is_added)
{
    __m512d low = low_of(a);
    if (is_added)
        low = _mm512_add_pd(low, _mm512_loadu_pd(lanes));
    _mm512_storeu_pd(lanes, _mm512_add_pd(low, high_of(a)));
}

#else

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

typedef struct {
    __m256 low, high;
} vector;
static inline vector load(const f32 *p)
{
    return (vector){_mm256_loadu_ps(p), _mm256_loadu_ps(p + SLAB_LANES_OF)};
}
static inline vector same(f32 number)
{
    return (vector){_mm256_set1_ps(number), _mm256_set1_ps(number)};
}
static inline vector fused(vector a, vector b, vector sums)
{
    return (vector){_mm256_fmadd_ps(a.low, b.low, sums.low),
                    _mm256_fmadd_ps(a.high, b.high, sums.high)};
}
static inline void store(f32 *p, vector a)
{
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + SLAB_LANES_OF, a.high);
}

#else

typedef struct {
    f32 lanes[LANES];
} vector;
static inline vector load(const f32 *p)
{
    vector ret;
    memcpy(ret.lanes, p, sizeof(ret.lanes));
    return ret;
}
static inline vector same(f32 number)
{
    vector ret;
    for (size_t i = 0; i < LANES; i++)
        ret.lanes[i] = number;
    return ret;
}
static inline vector fused(vector a, vector b, vector sums)
{
    vector ret;
    for (size_t i = 0; i < LANES; i++)
        ret.lanes[i] = fmaf(a.lanes[i], b.lanes[i], sums.lanes[i]);
    return ret;
}
static inline void store(f32 *p, vector a)
{
    memcpy(p, a.lanes, sizeof(a.lanes));
}

#endif

static inline vector load_some(const f32 *p, size_t n)
{
    f32 some[LANES] = {0};
    memcpy(some, p, n * sizeof(*p));
    return load(some);
}
#define LOAD(p)           load(p)
#define LOAD_SOME(p, n)   load_some(p, n)
#define SAME(number)      same(number)
#define FUSED(a, b, sums) fused(a, b, sums)
INLINE void fold(f64 *to, vector a, const size_t n, bool is_added)
{
    f32 own[LANES];
    store(own, a);
    for (size_t i = 0; i < n; i++)
        to[i] = is_added ? (f64)own[i] + to[i] : (f64)own[i];
}
INLINE void fold_lanes(f64 *lanes, vector a, bool is_added)
{
    f32 own[LANES];
    store(own, a);
    for (size_t i = 0; i < SLAB_LANES_OF; i++) {
        f64 low = is_added ? (f64)own[i] + lanes[i] : (f64)own[i];
        lanes[i] = low + (f64)own[i + SLAB_LANES_OF];
    }
}

#endif

static inline f64 sum_of(const f64 *lanes)
{
    f64 sums[SLAB_LANES_OF];
    memcpy(sums, lanes, sizeof(sums));
    for (size_t n = SLAB_LANES_OF / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++)
            sums[i] += sums[i + n];
    return sums[0];
}

INLINE void project_rows(const struct slab_tile *t, size_t first_row, const size_t n_rows,
                         const size_t n_results)
{
    vector sums[N_MOST][N_RESULTS];
    const f32 *x[N_MOST];
    size_t k = 0, n = t->n_columns % LANES;
    UNROLL for (size_t i = 0; i < n_rows; i++)
    {
        x[i] = (const f32 *)((const char *)t->x + (int64_t)(first_row + i) * t->line_bytes);
        UNROLL for (size_t j = 0; j < n_results; j++) sums[i][j] = SAME(0);
    }
    for (; k + LANES <= t->n_columns; k += LANES) {
        vector own[N_MOST];
        UNROLL for (size_t i = 0; i < n_rows; i++)
        {
            own[i] = LOAD(x[i] + k);
            __builtin_prefetch((const char *)(x[i] + k) + (int64_t)n_rows * t->line_bytes);
        }
        UNROLL for (size_t j = 0; j < n_results; j++)
        {
            vector c = LOAD((const f32 *)t->operand + j * t->operand_line + k);
            UNROLL for (size_t i = 0; i < n_rows; i++) sums[i][j] = FUSED(own[i], c, sums[i][j]);
        }
    }
    if (n > 0) {
        vector own[N_MOST];
        UNROLL for (size_t i = 0; i < n_rows; i++) own[i] = LOAD_SOME(x[i] + k, n);
        UNROLL for (size_t j = 0; j < n_results; j++)
        {
            vector c = LOAD_SOME((const f32 *)t->operand + j * t->operand_line + k, n);
            UNROLL for (size_t i = 0; i < n_rows; i++) sums[i][j] = FUSED(own[i], c, sums[i][j]);
        }
    }
    UNROLL for (size_t i = 0; i < n_rows; i++) UNROLL for (size_t j = 0; j < n_results; j++)
    {
        f64 *lanes = t->lanes + ((first_row + i) * n_results + j) * SLAB_LANES_OF;
        fold_lanes(lanes, sums[i][j], t->is_added);
        if (t->is_last)
            t->to[(first_row + i) * t->to_line + j] = sum_of(lanes);
    }
}

INLINE void project(const struct slab_tile *t, const size_t n_results)
{
    const size_t n_rows = together(n_results);
    size_t i = 0;
    for (; i + n_rows <= t->n_rows; i += n_rows)
        project_rows(t, i, n_rows, n_results);
    for (; i < t->n_rows; i++)
        project_rows(t, i, 1, n_results);
}

/* n: of the columns of each vector, LANES but for the last columns. */
INLINE void gather_columns(const struct slab_tile *t, size_t from, const size_t n_vectors,
                           const size_t n, const size_t n_results)
{
    vector sums[N_MOST][N_RESULTS];
    const char *line = (const char *)((const f32 *)t->x + from);
    const f32 *v = t->v;
    UNROLL for (size_t m = 0; m < n_vectors; m++) UNROLL for (size_t j = 0; j < n_results; j++)
        sums[m][j] = SAME(0);
    for (size_t i = 0; i < t->n_rows; i++, line += t->line_bytes, v += t->v_line) {
        vector own[N_MOST];
        UNROLL for (size_t m = 0; m < n_vectors; m++)
        {
            const f32 *x = (const f32 *)line + m * LANES;
            own[m] = n < LANES ? LOAD_SOME(x, n) : LOAD(x);
            __builtin_prefetch((const char *)x + AHEAD);
        }
        UNROLL for (size_t j = 0; j < n_results; j++)
        {
            vector factor = SAME(v[j]);
            UNROLL for (size_t m = 0; m < n_vectors; m++) sums[m][j] =
                FUSED(own[m], factor, sums[m][j]);
        }
    }
    UNROLL for (size_t m = 0; m < n_vectors; m++) UNROLL for (size_t j = 0; j < n_results; j++)
        fold(t->sums + j * t->sums_line + from + m * LANES, sums[m][j], n, t->is_added);
}

INLINE void gather(const struct slab_tile *t, const size_t n_results)
{
    const size_t n_vectors = together(n_results), n = n_vectors * LANES;
    size_t k = 0;
    for (; k + n <= t->n_columns; k += n)
        gather_columns(t, k, n_vectors, LANES, n_results);
    for (; k + LANES <= t->n_columns; k += LANES)
        gather_columns(t, k, 1, LANES, n_results);
    if (k < t->n_columns)
        gather_columns(t, k, 1, t->n_columns - k, n_results);
}

TILE(project)
TILE(gather)

void KERNEL_SYMBOL(slab_project_single)(const struct slab_tile *tile)
{
    tile_project(tile);
}

void KERNEL_SYMBOL(slab_gather_single)(const struct slab_tile *tile)
{
    tile_gather(tile);
}
