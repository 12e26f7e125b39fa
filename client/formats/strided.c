/* Copies between lines of elements with gaps.
 *
 * The sizes of elements are constants in the loops, so that each copy is a plain move. A box is
 * walked by its lines along the last axis; the other axes are counted like an odometer.
 *
 * Called by file_provider.c and hdf5_provider.c.
 */
#include "client/formats/strided.h"
#include "proto/array.h"

#include <string.h>

void strided_copy(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                  size_t item_bytes)
{
    if (to_stride == (int64_t)item_bytes && from_stride == to_stride) {
        memcpy(to, from, (size_t)n * item_bytes);
        return;
    }
    switch (item_bytes) {
    case 1:
        for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 1);
        break;
    case 2:
        for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
            memcpy(to, from, 8);
        break;
    }
}

void strided_gather(char *ret_packed, const char *from, int ndim, const int64_t *count,
                    const int64_t *strides, size_t item_bytes)
{
    int64_t index[ARRAY_MAX_NDIM] = {0};
    int64_t item = (int64_t)item_bytes;
    int64_t n = ndim ? count[ndim - 1] : 1, stride = ndim ? strides[ndim - 1] : item;
    for (;;) {
        strided_copy(ret_packed, item, from, stride, n, item_bytes);
        ret_packed += n * item;
        int i = ndim - 2;
        for (; i >= 0; i--) {
            from += strides[i];
            if (++index[i] < count[i])
                break;
            from -= count[i] * strides[i];
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}
