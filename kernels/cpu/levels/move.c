/* Byte order and bool bytes, for operands on their way into and out of strips; and the way out past
 * the cache. Of a block that goes there, the lines at the two ends are shared with its neighbours
 * and are stored as usual.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/template.h"

#include <string.h>

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

#if defined(KERNEL_HAS_LINES)

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
    lines_stream(d + head, s + head, end - head);
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
