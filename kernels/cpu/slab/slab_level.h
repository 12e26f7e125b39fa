/* What the sources of kernels of walks by slabs share, of each level: how many sums registers hold,
 * and copies of a loop for each number of results.
 */
#pragma once

#include "kernels/cpu/slab/slab_kernels.h"
#include "kernels/cpu/levels/template.h"

/* Vectors have as many columns as a cache line. N_MOST: rows, or vectors of columns, that are done
 * together at most. */
#if defined(__AVX512F__)
enum { N_RESULTS = 12, N_SUMS = 24, N_MOST = 4 };
#elif defined(__AVX2__) && defined(__FMA__)
enum { N_RESULTS = 5, N_SUMS = 5, N_MOST = 1 };
#else
enum { N_RESULTS = 4, N_SUMS = 4, N_MOST = 1 };
#endif

#define INLINE static inline __attribute__((always_inline))
#if defined(__SANITIZE_ADDRESS__)
#define UNROLL /* the checks in every copy take too long to compile */
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define AHEAD 512 /* bytes */

/* How many rows, or vectors of columns, are done together. */
INLINE size_t together(size_t n_results)
{
    size_t n = N_SUMS / n_results;
    return n > N_MOST ? N_MOST : n < 1 ? 1 : n;
}

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
