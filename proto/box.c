/* Copies of boxes, and lists of indices; see box.h.
 *
 * The sizes of elements are constants in the loops, so that each copy is a plain move.
 *
 * An ordinary store of a line that is not in the cache reads the line first, and later evicts
 * another one: 2 bytes more on the memory bus for each byte copied. Stores with a non-temporal hint
 * collect a line in a buffer of the core and write it whole. They are weakly ordered, hence the
 * fence. Reading and writing memory overlap in the memory and in the core, but a thread that first
 * stores one block and then fetches another does one at a time; so lines of the next block are
 * asked for between the stores: the two together then take about as long as the fetching alone.
 * SSE2 is there on every x86-64; a line is four stores, and wider ones are no faster, as the memory
 * is the limit. On other processors this is memcpy().
 */
#include "proto/box.h"
#include "proto/error.h"

#include <inttypes.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE_BYTES     64u
#define LONG_RUN_BYTES 4096u /* below, the two ends weigh too much */

int64_t box_take_run(struct box *box, int64_t item_bytes)
{
    const struct box_axis *first = box->axes;
    if (box->n == 0 || first->strides[0] != item_bytes || first->strides[1] != item_bytes)
        return item_bytes;
    int64_t n = first->count;
    memmove(box->axes, box->axes + 1, (size_t)--box->n * sizeof(box->axes[0]));
    return n * item_bytes;
}

#define COPY_ITEMS(n_bytes)                                                                        \
    for (int64_t i = 0; i < n; i++, out += to_stride, in += from_stride)                           \
    memcpy(out, in, n_bytes)

void box_copy_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n,
                   size_t item_bytes)
{
    char *out = to;
    const char *in = from;
    if (to_stride == (int64_t)item_bytes && from_stride == to_stride) {
        memcpy(to, from, (size_t)n * item_bytes);
        return;
    }
    switch (item_bytes) {
    case 1: COPY_ITEMS(1); return;
    case 2: COPY_ITEMS(2); return;
    case 4: COPY_ITEMS(4); return;
    case 8: COPY_ITEMS(8); return;
    default: COPY_ITEMS(item_bytes); return;
    }
}

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

void box_copy_past_cache(void *to, const void *from, size_t n_bytes, const void *next,
                         size_t n_next)
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
    memcpy((char *)to + i, (const char *)from + i, n_bytes - i);
}

void box_fence(void)
{
    _mm_sfence();
}
#else
void box_copy_past_cache(void *to, const void *from, size_t n_bytes, const void *next,
                         size_t n_next)
{
    (void)next;
    (void)n_next;
    memcpy(to, from, n_bytes);
}

void box_fence(void) {}
#endif

/* A line of runs. */
static void copy_runs(char *to, const char *from, const struct box_axis *line, size_t run_bytes,
                      bool is_past_cache)
{
    if (!is_past_cache || run_bytes < LONG_RUN_BYTES) {
        box_copy_line(to, line->strides[0], from, line->strides[1], line->count, run_bytes);
        return;
    }
    for (int64_t i = 0; i < line->count; i++)
        box_copy_past_cache(to + i * line->strides[0], from + i * line->strides[1], run_bytes, NULL,
                            0);
}

void box_copy(struct box *box, void *to, const void *from, size_t item_bytes, bool is_past_cache)
{
    struct box_place place = {.index = {0}};
    size_t run_bytes = (size_t)box_take_run(box, (int64_t)item_bytes);
    box_need_axis(box, 0, 0);
    do
        copy_runs((char *)to + place.offset[0], (const char *)from + place.offset[1], &box->axes[0],
                  run_bytes, is_past_cache);
    while (box_next(box->axes + 1, box->n - 1, &place));
}
