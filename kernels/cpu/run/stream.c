/* One array of a pass, walked strip by strip in visiting order.
 *
 * A box's axes, as one operand sees them, are first merged: two neighbours in walking order become
 * one where a step of the slower is as far as the whole of the faster. What is left is the
 * operand's own walk, fastest axis first:
 *
 *     (4, 1000, 1000) contiguous       ->  4000000 x 4 bytes             linear
 *     (4, 1000, 1000)[:, :, :900]      ->  900 x 4, 4000 x 4000          runs of 900
 *     row of (1000, 2)                 ->  2 x 4, 1000 x 0               periodic after 2
 *     column of (1000, 2)              ->  2 x 0, 1000 x 4               copied
 *
 * Strips take no notice of rows: every operand decides for itself, strip by strip, whether the
 * elements lie together. The walk is made anew for each copied strip (a few additions per axis), so
 * that an operand keeps no state.
 */
#include "kernels/cpu/run/stream.h"

#include "kernels/cpu/run/strided.h"
#include "proto/util.h"

#include <string.h>

#define MIN_RUN (2 * KERNEL_GRANULE) /* shorter runs are not worth a look */

struct walk {
    int n;
    int64_t count[ARRAY_MAX_NDIM + 1], stride[ARRAY_MAX_NDIM + 1]; /* fastest first */
};

static void walk_init(struct walk *w, const struct engine_box *box, const int64_t *strides)
{
    w->n = 1;
    w->count[0] = 1;
    w->stride[0] = 0;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        int64_t count = box->count[axis], stride = strides[axis];
        if (count == 1)
            continue;
        int last = w->n - 1;
        if (w->count[last] == 1) {
            w->count[last] = count;
            w->stride[last] = stride;
        } else if (stride == w->stride[last] * w->count[last]) {
            w->count[last] *= count;
        } else {
            w->count[w->n] = count;
            w->stride[w->n++] = stride;
        }
    }
}

static char *walk_locate(const struct walk *w, char *base, uint64_t element, int64_t *ret_index)
{
    for (int i = 0; i < w->n; i++) {
        ret_index[i] = (int64_t)(element % (uint64_t)w->count[i]);
        element /= (uint64_t)w->count[i];
        base += ret_index[i] * w->stride[i];
    }
    return base;
}

/* Moves `by` steps along `axis` (at most to its end) and carries into the slower ones. */
static char *walk_advance(const struct walk *w, char *at, int64_t *index, int axis, int64_t by)
{
    index[axis] += by;
    at += by * w->stride[axis];
    while (index[axis] == w->count[axis] && axis + 1 < w->n) {
        at -= w->count[axis] * w->stride[axis];
        index[axis++] = 0;
        index[axis]++;
        at += w->stride[axis];
    }
    return at;
}

/* Copies elements between their places and a strip, whole rows at a time where possible. */
static void walk_copy(const struct stream *s, const struct engine_box *box, uint64_t first,
                      size_t n, char *strip, bool is_store)
{
    struct walk w;
    walk_init(&w, box, s->strides);
    int64_t index[ARRAY_MAX_NDIM + 1];
    char *at = walk_locate(&w, s->base, first, index);
    int64_t item_bytes = (int64_t)1 << s->item_log2;
    while (n > 0) {
        bool has_rows = w.n > 1 && index[0] == 0 && n >= (size_t)w.count[0];
        size_t row_left = (size_t)(w.count[0] - index[0]);
        size_t n_row = row_left < n ? row_left : n;
        size_t n_rows = 1;
        if (has_rows) {
            size_t rows_left = (size_t)(w.count[1] - index[1]);
            n_rows = n / n_row < rows_left ? n / n_row : rows_left;
        }
        struct strided_block block = {.n_rows = n_rows, .n = n_row};
        int64_t strip_row = (int64_t)n_row * item_bytes, row = has_rows ? w.stride[1] : 0;
        if (is_store) {
            block.dst = at, block.dst_row = row, block.dst_stride = w.stride[0];
            block.src = strip, block.src_row = strip_row, block.src_stride = item_bytes;
        } else {
            block.dst = strip, block.dst_row = strip_row, block.dst_stride = item_bytes;
            block.src = at, block.src_row = row, block.src_stride = w.stride[0];
        }
        strided_copy(s->item_log2, &block);
        at = has_rows ? walk_advance(&w, at, index, 1, (int64_t)n_rows)
                      : walk_advance(&w, at, index, 0, (int64_t)n_row);
        strip += (n_row * n_rows) << s->item_log2;
        n -= n_row * n_rows;
    }
}

static void find_extent(struct stream *s, const struct walk *w)
{
    s->low = s->high = (uintptr_t)s->base;
    for (int i = 0; i < w->n; i++) {
        int64_t reach = (w->count[i] - 1) * w->stride[i];
        if (reach < 0)
            s->low += (uintptr_t)reach;
        else
            s->high += (uintptr_t)reach;
    }
    s->high += (uintptr_t)1 << s->item_log2;
}

static bool is_aligned(const struct stream *s, const struct walk *w)
{
    uintptr_t bits = (uintptr_t)s->base;
    for (int i = 0; i < w->n; i++)
        bits |= (uintptr_t)w->stride[i];
    return (bits & (((uintptr_t)1 << s->item_log2) - 1)) == 0;
}

void stream_init(struct stream *s, const struct engine_box *box, const struct engine_view *view,
                 enum dtype dtype, uint64_t period_limit)
{
    *s = (struct stream){
        .dtype = dtype,
        .item_log2 = (unsigned)__builtin_ctzl(dtype_size(dtype)),
        .is_swapped = view->is_swapped && dtype_size(dtype) > 1,
        .bypasses_cache = view->bypasses_cache,
        .is_fetched_ahead = view->is_fetched_ahead,
        .base = view->base,
        .strides = view->strides,
        .kind = STREAM_COPIED,
    };
    struct walk w;
    walk_init(&w, box, s->strides);
    find_extent(s, &w);

    int n = w.n;
    if (w.stride[n - 1] == 0)
        n--; /* merged: at most one axis without steps is slowest */
    uint64_t period = 1;
    for (int i = 0; i < n && period <= period_limit; i++)
        period *= (uint64_t)w.count[i];
    if (n < w.n && period <= period_limit) {
        s->kind = STREAM_PERIODIC;
        s->n_run = period;
        return;
    }
    /* Bools of a source are bytes of any value: they are normalised on the way. */
    bool is_raw_bool = dtype == DTYPE_BOOL && period_limit > 0;
    if (s->is_swapped || is_raw_bool || !is_aligned(s, &w))
        return;
    if (w.stride[0] == (int64_t)1 << s->item_log2 || w.count[0] == 1) {
        s->n_run = (uint64_t)w.count[0];
        if (w.n == 1)
            s->kind = STREAM_LINEAR;
        else if (s->n_run >= MIN_RUN)
            s->kind = STREAM_RUNS;
    }
}

void *stream_direct(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n)
{
    if (s->kind == STREAM_LINEAR)
        return s->base + (first << s->item_log2);
    if (s->kind != STREAM_RUNS || first % s->n_run + n > s->n_run)
        return NULL;
    struct walk w;
    int64_t index[ARRAY_MAX_NDIM + 1];
    walk_init(&w, box, s->strides);
    return walk_locate(&w, s->base, first, index);
}

void stream_load(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                 const struct move_kernels *move, void *buffer)
{
    walk_copy(s, box, first, n, buffer, false);
    size_t n_room = round_up_u64(n, KERNEL_GRANULE), item_bytes = (size_t)1 << s->item_log2;
    char *end = (char *)buffer + n * item_bytes;
    if (n_room > n) {
        memcpy(end, end - item_bytes, item_bytes);
        stream_repeat(end, item_bytes, (n_room - n) * item_bytes);
    }
    if (s->is_swapped)
        move->swap[s->item_log2](n, buffer, buffer);
    else if (s->dtype == DTYPE_BOOL)
        move->normalise(n, buffer, buffer);
}

void stream_store(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                  const struct move_kernels *move, const void *strip, void *spare)
{
    if (s->is_swapped) {
        move->swap[s->item_log2](n, spare, strip);
        strip = spare;
    }
    void *place = s->bypasses_cache ? stream_direct(s, box, first, n) : NULL;
    if (place) {
        move->stream(n << s->item_log2, place, strip);
        return;
    }
    /* A walk's strip is either side of a copy. */
    walk_copy(s, box, first, n, (char *)(uintptr_t)strip, true);
}

void stream_repeat(void *buffer, size_t n_first_bytes, size_t n_bytes)
{
    for (size_t done = n_first_bytes; done < n_bytes;) {
        size_t more = n_bytes - done < done ? n_bytes - done : done;
        memcpy((char *)buffer + done, buffer, more);
        done += more;
    }
}
