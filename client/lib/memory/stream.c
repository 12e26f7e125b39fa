/* Copies with stores that bypass the cache.
 *
 * An ordinary store of a line that is not in the cache reads the line first, and later evicts
 * another one: 2 bytes more on the memory bus for each byte copied, and the blocks that are about
 * to be filled and computed are no longer in the cache. Stores with a non-temporal hint collect a
 * line in a buffer of the core and write it whole. They are weakly ordered, so the copy ends with a
 * fence, and then the usual release to another thread covers them too.
 *
 * Reading and writing memory overlap in the memory and in the core, but a thread that first stores
 * one block and then fetches another does one at a time. So the next block's lines are asked for
 * between the stores: the two together then take about as long as the fetching alone.
 *
 * The ends that are not whole lines are copied as usual. SSE2 is there on every x86-64; a line is
 * four stores, and wider ones are no faster, as the memory is the limit. On other processors this
 * is memcpy().
 *
 * Called by feed.c and block.c for large arrays.
 */
#include "client/lib/memory/stream.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE_BYTES 64u

#ifdef __SSE2__

static inline void copy_line(char *to, const char *from)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
    __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
    __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));
    _mm_stream_si128((__m128i *)(void *)to, a);
    _mm_stream_si128((__m128i *)(void *)(to + 16), b);
    _mm_stream_si128((__m128i *)(void *)(to + 32), c);
    _mm_stream_si128((__m128i *)(void *)(to + 48), d);
}

void stream_copy(void *to, const void *from, size_t n_bytes, const void *next, size_t n_next)
{
    size_t head = -(uintptr_t)to & (LINE_BYTES - 1);
    if (n_bytes < head + LINE_BYTES) {
        memcpy(to, from, n_bytes);
        return;
    }
    memcpy(to, from, head);
    size_t i = head, n_lines = (n_bytes - head) / LINE_BYTES, n_both = n_next / LINE_BYTES;
    size_t end_both = head + (n_both < n_lines ? n_both : n_lines) * LINE_BYTES;
    size_t end = head + n_lines * LINE_BYTES;
    for (; i < end_both; i += LINE_BYTES) {
        _mm_prefetch((const char *)next + (i - head), _MM_HINT_T0);
        copy_line((char *)to + i, (const char *)from + i);
    }
    for (; i < end; i += LINE_BYTES)
        copy_line((char *)to + i, (const char *)from + i);
    _mm_sfence();
    memcpy((char *)to + i, (const char *)from + i, n_bytes - i);
}

#else

void stream_copy(void *to, const void *from, size_t n_bytes, const void *next, size_t n_next)
{
    (void)next;
    (void)n_next;
    memcpy(to, from, n_bytes);
}

#endif
