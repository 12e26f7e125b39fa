/* Byte order and bool bytes, for operands on their way into and out of strips; and the way out past
 * the cache.
 *
 * An ordinary store to a line that is not in the cache reads the line first, and later writes it
 * back in the place of something else: of what an array that is larger than the cache moves, a
 * third is for nothing. A non-temporal store of a whole line goes to memory directly. The lines at
 * the two ends of a block are shared with its neighbours and are stored as usual.
 */
#include "kernels/cpu/template.h"

#include <string.h>
#if defined(KERNEL_VECTOR_BYTES)
#include <immintrin.h>
#endif

#define SWAP(T, swapped)                                                                           \
    static void swap_##T(size_t n, void *dst, const void *src)                                     \
    {                                                                                              \
        T *d = dst;                                                                                \
        const T *as = src;                                                                         \
        n = KERNEL_ROUND(n);                                                                       \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = as[i];                                                                           \
            d[i] = swapped;                                                                        \
        }                                                                                          \
    }
SWAP(u16, __builtin_bswap16(a))
SWAP(u32, __builtin_bswap32(a))
SWAP(u64, __builtin_bswap64(a))

static void normalise(size_t n, void *dst, const void *src)
{
    u8 *d = dst;
    const u8 *as = src;
    n = KERNEL_ROUND(n);
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        d[i] = as[i] != 0;
}

#if defined(KERNEL_VECTOR_BYTES)

#define LINE_BYTES 64u

#if KERNEL_VECTOR_BYTES == 64
#define STREAM_VECTOR(d, s) _mm512_stream_si512((__m512i *)(d), _mm512_loadu_si512(s))
#elif KERNEL_VECTOR_BYTES == 32
#define STREAM_VECTOR(d, s) _mm256_stream_si256((__m256i *)(d), _mm256_loadu_si256(s))
#else
#define STREAM_VECTOR(d, s) _mm_stream_si128((__m128i *)(d), _mm_loadu_si128(s))
#endif

static void stream(size_t n, void *dst, const void *src)
{
    char *d = dst;
    const char *s = src;
    size_t head = -(uintptr_t)dst & (LINE_BYTES - 1);
    if (head > n)
        head = n;
    if (head > 0)
        memcpy(d, s, head);
    size_t end = head + ((n - head) & ~(size_t)(LINE_BYTES - 1));
    for (size_t i = head; i < end; i += LINE_BYTES)
        for (size_t j = i; j < i + LINE_BYTES; j += KERNEL_VECTOR_BYTES)
            STREAM_VECTOR(d + j, (const void *)(s + j));
    if (end < n)
        memcpy(d + end, s + end, n - end);
}

#else

static void stream(size_t n, void *dst, const void *src)
{
    memcpy(dst, src, n);
}

#endif

const struct move_kernels KERNEL_SYMBOL(move) = {
    .swap = {NULL, swap_u16, swap_u32, swap_u64},
    .normalise = normalise,
    .stream = stream,
};
