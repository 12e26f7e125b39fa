/* Byte order and bool bytes, for operands on their way into and out of strips. */
#include "kernels/cpu/template.h"

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

const struct move_kernels KERNEL_SYMBOL(move) = {
    .swap = {NULL, swap_u16, swap_u32, swap_u64},
    .normalise = normalise,
};
