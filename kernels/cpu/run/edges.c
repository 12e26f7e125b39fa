/* Where a near goes beyond the ends of its array.
 *
 *     near(u, 0, -1), mode edge, of a row:      u0 | u0 u1 u2 u3 u4 u5 ...
 *     strips of it:                            [ copied ][ where it lies ][ ...
 *
 * An element's place along each axis is found by the near's mode, one axis at a time, so a row
 * above the first one is another row or none, as a whole. Only along the fastest axis elements of
 * one row differ: those that lie inside are used where they are, or copied as a run, and those
 * beyond go one by one.
 *
 * Called by stream.c; boxes that have no such elements have no need of it.
 */
#include "kernels/cpu/moves/strided.h"
#include "kernels/cpu/run/stream.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <string.h>

#define BEYOND INT64_MIN /* in place of a distance */

/* One axis of the pass, as the near has it. */
static struct near_axis edge_axis_of(const struct stream *s, const struct engine_box *box, int axis)
{
    return neighbours_axis(s->near, s->near_of, s->goes_on_axes, box, axis);
}

/* Of the box's element i along the axis, in steps from where its first one would be. */
static int64_t edge_distance(const struct near_axis *a, int64_t i)
{
    if (!a->is_moved)
        return i;
    int64_t place = near_place(a->mode, a->first + i, a->length);
    return place < 0 ? BEYOND : place - a->first;
}

/* The row in which an element lies, and its place there: NULL: all of it is beyond. */
static const char *find_row(const struct stream *s, const struct engine_box *box, uint64_t element,
                            int64_t *ret_at)
{
    const char *row = s->base;
    bool is_beyond = false;
    for (int k = box->ndim - 1; k >= 0; k--) {
        int axis = box->axis_order[k];
        int64_t i = (int64_t)(element % (uint64_t)box->count[axis]);
        element /= (uint64_t)box->count[axis];
        if (k == box->ndim - 1) {
            *ret_at = i;
            continue;
        }
        struct near_axis a = edge_axis_of(s, box, axis);
        int64_t distance = edge_distance(&a, i);
        is_beyond |= distance == BEYOND;
        row += is_beyond ? 0 : distance * s->strides[axis];
    }
    return is_beyond ? NULL : row;
}

char *edges_find_row(const struct stream *s, const struct engine_box *box, uint64_t element)
{
    int64_t at;
    return (char *)(uintptr_t)find_row(s, box, element, &at); /* an input: it is only read */
}

void edges_find_inside(const struct stream *s, const struct engine_box *box, uint64_t *ret_low,
                       uint64_t *ret_high)
{
    int axis = box->axis_order[box->ndim - 1];
    struct near_axis a = edge_axis_of(s, box, axis);
    int64_t low = a.is_moved ? -a.first : 0, high = a.is_moved ? a.length - a.first : INT64_MAX;
    *ret_low = low < 0 ? 0 : (uint64_t)low;
    *ret_high = high < 0 ? 0 : min_u64((uint64_t)high, (uint64_t)box->count[axis]);
}

static void fill_beyond(const struct stream *s, char *strip, size_t n)
{
    char value[sizeof(union scalar)];
    size_t item_bytes = (size_t)1 << s->item_log2;
    memcpy(value, &s->near->beyond, sizeof(value));
    for (size_t i = 0; s->is_swapped && i < item_bytes / 2; i++) {
        char taken = value[i];
        value[i] = value[item_bytes - 1 - i];
        value[item_bytes - 1 - i] = taken;
    }
    for (size_t i = 0; i < n; i++)
        memcpy(strip + (i << s->item_log2), value, item_bytes);
}

/* Of one row, from its element `at` on. */
static void load_row(const struct stream *s, const struct near_axis *a, int64_t stride,
                     const char *row, int64_t at, size_t n, char *strip)
{
    size_t item_bytes = (size_t)1 << s->item_log2;
    for (size_t done = 0, n_now; done < n; done += n_now) {
        int64_t i = at + (int64_t)done, place = a->first + i;
        char *to = strip + (done << s->item_log2);
        n_now = n - done;
        if (a->is_moved && place >= 0 && place < a->length)
            n_now = min_u64(n_now, (uint64_t)(a->length - place));
        else if (a->is_moved)
            n_now = 1;
        int64_t distance = edge_distance(a, i);
        const struct strided_block block = {.n_rows = 1,
                                            .n = n_now,
                                            .dst = to,
                                            .dst_stride = (int64_t)item_bytes,
                                            .src =
                                                row + (distance == BEYOND ? 0 : distance * stride),
                                            .src_stride = stride};
        if (distance == BEYOND)
            fill_beyond(s, to, 1);
        else if (n_now == 1)
            memcpy(to, block.src, item_bytes);
        else
            strided_copy(s->item_log2, &block);
    }
}

void edges_load(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                char *strip)
{
    int fastest = box->axis_order[box->ndim - 1];
    struct near_axis a = edge_axis_of(s, box, fastest);
    while (n > 0) {
        int64_t at;
        const char *row = find_row(s, box, first, &at);
        size_t n_row = min_u64((uint64_t)(box->count[fastest] - at), n);
        if (row)
            load_row(s, &a, s->strides[fastest], row, at, n_row, strip);
        else
            fill_beyond(s, strip, n_row);
        strip += n_row << s->item_log2;
        first += n_row;
        n -= n_row;
    }
}
