/* Boxes from a client's memory into a slot, and back.
 *
 * Axes that run on in both layouts are merged; what is left is a run of bytes, contiguous in both,
 * and outer axes over it. Long runs can be written past the cache, which saves reading what is
 * overwritten: that is a third of the traffic. Where no run is longer than an item, the items of
 * the fastest axis are moved one by one, by their size.
 *
 * Called by the tiles of the CUDA engine, inside guard_call().
 */
#include "daemon/worker/cuda/boxcopy.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LONG_RUN_BYTES 4096

struct runs {
    bool is_past_cache;
    int64_t run_bytes;
    int n_axes;
    struct boxcopy_axis axes[ARRAY_MAX_NDIM]; /* fastest first */
};

static void runs_init(struct runs *r, const struct boxcopy *b)
{
    r->is_past_cache = b->is_past_cache;
    r->run_bytes = b->item_bytes;
    r->n_axes = 0;
    for (int i = b->n_axes - 1; i >= 0; i--) {
        const struct boxcopy_axis *axis = &b->axes[i];
        struct boxcopy_axis *last = r->n_axes > 0 ? &r->axes[r->n_axes - 1] : NULL;
        if (axis->count == 1)
            continue;
        if (!last && axis->from_stride == r->run_bytes && axis->to_stride == r->run_bytes)
            r->run_bytes *= axis->count;
        else if (last && axis->from_stride == last->from_stride * last->count &&
                 axis->to_stride == last->to_stride * last->count)
            last->count *= axis->count;
        else
            r->axes[r->n_axes++] = *axis;
    }
}

#ifdef __SSE2__
static void copy_past_cache(char *to, const char *from, int64_t n_bytes)
{
    int64_t head = -(int64_t)(uintptr_t)to & 63;
    memcpy(to, from, (size_t)head);
    to += head;
    from += head;
    n_bytes -= head;
    for (; n_bytes >= 64; n_bytes -= 64, to += 64, from += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)from);
        __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
        _mm_stream_si128((__m128i *)to, a);
        _mm_stream_si128((__m128i *)(to + 16), b);
        _mm_stream_si128((__m128i *)(to + 32), c);
        _mm_stream_si128((__m128i *)(to + 48), d);
    }
    memcpy(to, from, (size_t)n_bytes);
}

void boxcopy_fence(void)
{
    _mm_sfence();
}
#else
static void copy_past_cache(char *to, const char *from, int64_t n_bytes)
{
    memcpy(to, from, (size_t)n_bytes);
}

void boxcopy_fence(void) {}
#endif

static void copy_run(bool is_past_cache, char *to, const char *from, int64_t n_bytes)
{
    if (is_past_cache && n_bytes >= LONG_RUN_BYTES)
        copy_past_cache(to, from, n_bytes);
    else
        memcpy(to, from, (size_t)n_bytes);
}

#define COPY_ITEMS(TYPE)                                                                           \
    for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)                          \
    memcpy(to, from, sizeof(TYPE))

/* Along the fastest axis. */
static void copy_line(const struct runs *r, char *to, const char *from)
{
    const int64_t n = r->axes[0].count, n_bytes = r->run_bytes;
    const int64_t to_stride = r->axes[0].to_stride, from_stride = r->axes[0].from_stride;
    switch (n_bytes) {
    case 1: COPY_ITEMS(uint8_t); return;
    case 2: COPY_ITEMS(uint16_t); return;
    case 4: COPY_ITEMS(uint32_t); return;
    case 8: COPY_ITEMS(uint64_t); return;
    default:
        for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            copy_run(r->is_past_cache, to, from, n_bytes);
    }
}

/* One step of the axes behind the fastest; false after the last. */
static bool next_line(const struct runs *r, int64_t *index, char **to, const char **from)
{
    for (int i = 1; i < r->n_axes; i++) {
        const struct boxcopy_axis *axis = &r->axes[i];
        *to += axis->to_stride;
        *from += axis->from_stride;
        if (++index[i] < axis->count)
            return true;
        *to -= axis->count * axis->to_stride;
        *from -= axis->count * axis->from_stride;
        index[i] = 0;
    }
    return false;
}

void boxcopy(const struct boxcopy *b, void *to, const void *from)
{
    struct runs r;
    int64_t index[ARRAY_MAX_NDIM] = {0};
    char *to_line = to;
    const char *from_line = from;
    runs_init(&r, b);
    if (r.n_axes == 0) {
        copy_run(r.is_past_cache, to_line, from_line, r.run_bytes);
        return;
    }
    do
        copy_line(&r, to_line, from_line);
    while (next_line(&r, index, &to_line, &from_line));
}
