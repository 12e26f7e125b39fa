/* Which element of a cell a KTH is, for both engines: the common subset of C11 and CUDA C++.
 *
 * The largest key is NaN's (ORDERED_KEY). Where NaNs are left out, the element's rank follows from
 * the number n of the other keys, in float64:
 *
 *     is_inner    (n - 1) * q + shift, as a whole number
 *     else        n * q + shift, as a whole number, less 1
 *
 * and where that is none from 0 to n - 1, the nearest of these. A product, a sum and comparisons,
 * each rounded once as IEEE 754 says: every level of the CPU engine and every device has the same
 * ranks. A cell has few elements, so that whole numbers fit 32 bits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define KTH_INLINE static __device__ __forceinline__
#else
#define KTH_INLINE static inline
#endif

enum kth_by {
    KTH_AT,     /* the element with `at` keys before it in ascending order, NaN or not */
    KTH_RANK,   /* the element of the rank */
    KTH_BEHIND, /* the one behind that; the same one where there is none */
    KTH_COUNT,  /* no element: the result is n */
};

enum kth_rounding { KTH_FLOOR, KTH_CEIL, KTH_RINT };

/* Unused bytes are 0. */
struct kth_rank {
    uint8_t by;       /* enum kth_by */
    uint8_t rounding; /* enum kth_rounding */
    bool is_inner;
    uint8_t unused;
    uint32_t at;
    double q, shift;
};

/* Towards 0, and from there on to what is asked for. What is negative becomes rank 0 anyway. */
KTH_INLINE int32_t kth_round(double x, uint32_t rounding)
{
    int32_t whole = (int32_t)x;
    double rest = x - whole;
    if (rounding == KTH_CEIL)
        return whole + (rest > 0);
    if (rounding == KTH_RINT)
        return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1) != 0));
    return whole;
}

/* How many keys are before the wanted one, of cells with n keys that are no NaN's. */
KTH_INLINE uint32_t kth_rank(const struct kth_rank *place, uint32_t n)
{
    if (place->by == KTH_AT)
        return place->at;
    double x = (place->is_inner ? (double)n - 1 : (double)n) * place->q + place->shift;
    int32_t rank = kth_round(x, place->rounding) - (place->is_inner ? 0 : 1);
    int32_t last = (int32_t)n - 1;
    rank = rank < 0 ? 0 : rank;
    rank += place->by == KTH_BEHIND;
    rank = rank > last ? last : rank;
    return rank < 0 ? 0 : (uint32_t)rank;
}
