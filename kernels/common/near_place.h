/* Where an axis goes on beyond its ends, for both engines: the common subset of C11 and CUDA C++.
 * As numpy.pad has it:
 *
 *     edge        a a a | a b c d | d d d        symmetric   c b a | a b c d | d c b
 *     constant    v v v | a b c d | v v v        reflect     d c b | a b c d | c b a
 *                                                wrap        b c d | a b c d | a b c
 */
#pragma once

#include "proto/near_mode.h"

#include <stdint.h>

#if defined(__CUDACC__)
#define NEAR_INLINE static __device__ __forceinline__
#else
#define NEAR_INLINE static inline
#endif

/* Where along an axis of this length the element at `at` is, which may lie beyond the ends by as
 * much as a near's offsets allow; -1: nowhere, it is the near's `beyond`. */
NEAR_INLINE int64_t near_place(uint32_t mode, int64_t at, int64_t length)
{
    if (at >= 0 && at < length)
        return at;
    switch (mode) {
    case NEAR_CONSTANT: return -1;
    case NEAR_REFLECT: return at < 0 ? -at : 2 * length - 2 - at;
    case NEAR_SYMMETRIC: return at < 0 ? -at - 1 : 2 * length - 1 - at;
    case NEAR_WRAP: return at < 0 ? at + length : at - length;
    default: return at < 0 ? 0 : length - 1;
    }
}

NEAR_INLINE int64_t near_modulo(int64_t at, int64_t n)
{
    return at % n < 0 ? at % n + n : at % n;
}

/* The same however far beyond: what is mirrored or wrapped goes on again and again. */
NEAR_INLINE int64_t near_place_again(uint32_t mode, int64_t at, int64_t length)
{
    if (at < 0 || at >= length) {
        if (mode == NEAR_REFLECT)
            at = length == 1 ? 0 : near_modulo(at, 2 * (length - 1));
        else if (mode == NEAR_SYMMETRIC)
            at = near_modulo(at, 2 * length);
        else if (mode == NEAR_WRAP)
            at = near_modulo(at, length);
    }
    return near_place(mode, at, length);
}
