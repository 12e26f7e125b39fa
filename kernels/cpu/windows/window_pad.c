/* What lies beyond the ends of an array, as numpy.pad has it: copied inside the grid from where the
 * axis has it.
 *
 *     grid:     d c b | a b c d e f ...        reflect
 *               <---->  made by the operand's pass
 *
 * A grid has as much before a place as behind it, so that what is mirrored is in it; where it has
 * more than the whole axis, the axis is in it as a whole.
 *
 * Called by window_make.c for each box.
 */
#include "kernels/common/near_place.h"
#include "kernels/cpu/windows/window_make.h"
#include "proto/util.h"

#include <string.h>

struct window_span window_span(enum near_mode mode, int64_t length, int64_t first, int64_t count)
{
    struct window_span s = {.first = first, .length = length, .mode = mode};
    s.made_first = mode == NEAR_WRAP ? first : max_i64(first, 0);
    s.made_end =
        mode == NEAR_WRAP ? first + min_i64(count, length) : min_i64(first + count, length);
    return s;
}

/* From which of the grid's places along the axis the place k is copied; -1: it is beyond. */
static int64_t source_of(const struct window_span *s, int64_t k)
{
    if (s->mode == NEAR_WRAP)
        return k - s->length;
    int64_t place = near_place_again(s->mode, s->first + k, s->length);
    return place < 0 ? -1 : place - s->first;
}

static void fill(char *at, int64_t n_bytes, size_t item_bytes, const void *value)
{
    for (int64_t i = 0; i < n_bytes; i += (int64_t)item_bytes)
        memcpy(at + i, value, item_bytes);
}

/* One place along an axis, of which the faster axes have n_inner bytes. */
static void pad_place(char *line, const struct window_span *s, int64_t k, int64_t stride,
                      int64_t n_inner, size_t item_bytes, const void *beyond)
{
    int64_t source = source_of(s, k);
    if (source < 0)
        fill(line + k * stride, n_inner, item_bytes, beyond);
    else
        memcpy(line + k * stride, line + source * stride, (size_t)n_inner);
}

void window_pad(const struct window_grid *grid, const struct window_span *spans, size_t item_bytes,
                const void *beyond)
{
    int64_t n_outer = 1;
    for (int axis = 0; axis < grid->ndim; axis++) {
        const struct window_span *s = &spans[axis];
        int64_t stride = grid->strides[axis];
        bool is_last = axis == grid->ndim - 1;
        int64_t n_inner = is_last ? (int64_t)item_bytes : stride;
        int64_t before = s->made_first - s->first, end = s->made_end - s->first;
        for (int64_t i = 0; i < n_outer && (before > 0 || end < grid->count[axis]); i++) {
            /* Slower axes lie one behind the other. */
            char *line = grid->base + i * stride * grid->count[axis];
            if (is_last && grid->ndim > 1)
                line = grid->base + i * grid->strides[axis - 1];
            for (int64_t k = before; k-- > 0;)
                pad_place(line, s, k, stride, n_inner, item_bytes, beyond);
            for (int64_t k = end; k < grid->count[axis]; k++)
                pad_place(line, s, k, stride, n_inner, item_bytes, beyond);
        }
        n_outer *= grid->count[axis];
    }
}
