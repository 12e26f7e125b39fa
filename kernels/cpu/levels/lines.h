/* Lines of the cache: whole ones written past it, and those that are read soon.
 *
 * An ordinary store to a line that is not in the cache reads the line first, and later writes it
 * back in the place of something else: of what an array that is larger than the cache moves, a
 * third is for nothing. A non-temporal store of a whole line goes to memory directly. It is in
 * order for other threads after cpu_engine_fence().
 */
#pragma once

#include <stddef.h>

#define LINE_BYTES 64u

/* The lines a little behind [at, at + n): what a thread has just read from a file lies in the
 * second level and beyond, from where the processor alone fetches too late. Harmless at an array's
 * end. */
static inline __attribute__((always_inline)) void lines_fetch_ahead(const void *at, size_t n)
{
    for (size_t k = 0; k < n; k += LINE_BYTES)
        __builtin_prefetch((const char *)at + 64 * LINE_BYTES + k);
}

#if defined(KERNEL_VECTOR_BYTES)
#define KERNEL_HAS_LINES
#include <immintrin.h>

#if KERNEL_VECTOR_BYTES == 64
#define LINE_VECTOR(d, s) _mm512_stream_si512((__m512i *)(d), _mm512_loadu_si512(s))
#elif KERNEL_VECTOR_BYTES == 32
#define LINE_VECTOR(d, s) _mm256_stream_si256((__m256i *)(d), _mm256_loadu_si256(s))
#else
#define LINE_VECTOR(d, s) _mm_stream_si128((__m128i *)(d), _mm_loadu_si128(s))
#endif

/* n: a multiple of LINE_BYTES; dst is aligned to it. */
static inline void lines_stream(void *dst, const void *src, size_t n)
{
    char *d = dst;
    const char *s = src;
    for (size_t i = 0; i < n; i += KERNEL_VECTOR_BYTES)
        LINE_VECTOR(d + i, (const void *)(s + i));
}
#endif
