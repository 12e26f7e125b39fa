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

#include "kernels/cpu/moves/strided.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <string.h>

#define MIN_RUN (2 * KERNEL_GRANULE) /* shorter runs are not worth a look */

/* At least one axis. */
static void walk_init(struct box *w, const struct engine_box *box, const int64_t *strides)
{
    engine_box_merge(box, strides, w);
    box_need_axis(w, 0, 0);
}

/* Copies elements between their places and a strip, whole rows at a time where possible. */
static void walk_copy(const struct stream *s, const struct engine_box *box, uint64_t first,
                      size_t n, char *strip, bool is_store)
{
    struct box w;
    struct box_place place;
    walk_init(&w, box, s->strides);
    box_locate(&w, first, &place);
    const struct box_axis *fast = &w.axes[0], *slow = &w.axes[1];
    int64_t item_bytes = (int64_t)1 << s->item_log2;
    while (n > 0) {
        bool has_rows = w.n > 1 && place.index[0] == 0 && n >= (size_t)fast->count;
        size_t n_row = min_u64((uint64_t)(fast->count - place.index[0]), n), n_rows = 1;
        if (has_rows)
            n_rows = min_u64(n / n_row, (uint64_t)(slow->count - place.index[1]));
        struct strided_block block = {.n_rows = n_rows, .n = n_row};
        char *at = s->base + place.offset[0];
        int64_t strip_row = (int64_t)n_row * item_bytes, row = has_rows ? slow->strides[0] : 0;
        if (is_store) {
            block.dst = at, block.dst_row = row, block.dst_stride = fast->strides[0];
            block.src = strip, block.src_row = strip_row, block.src_stride = item_bytes;
        } else {
            block.dst = strip, block.dst_row = strip_row, block.dst_stride = item_bytes;
            block.src = at, block.src_row = row, block.src_stride = fast->strides[0];
        }
        strided_copy(s->item_log2, &block);
        (void)box_advance(w.axes, w.n, has_rows, (int64_t)(has_rows ? n_rows : n_row), &place);
        strip += (n_row * n_rows) << s->item_log2;
        n -= n_row * n_rows;
    }
}

/* What is near is never overwritten, so it need not be known where exactly it is at an edge. */
static void find_extent(struct stream *s, const struct box *w)
{
    s->low = s->high = (uintptr_t)s->base;
    if (s->near)
        return;
    for (int i = 0; i < w->n; i++) {
        int64_t reach = (w->axes[i].count - 1) * w->axes[i].strides[0];
        if (reach < 0)
            s->low += (uintptr_t)reach;
        else
            s->high += (uintptr_t)reach;
    }
    s->high += (uintptr_t)1 << s->item_log2;
}

static bool is_aligned(const struct stream *s, const struct box *w)
{
    uintptr_t bits = (uintptr_t)s->base;
    for (int i = 0; i < w->n; i++)
        bits |= (uintptr_t)w->axes[i].strides[0];
    return (bits & (((uintptr_t)1 << s->item_log2) - 1)) == 0;
}

static void describe(struct stream *s, const struct engine_view *view, enum dtype dtype)
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
        .run_first = INT64_MAX,
        .goes_on_axes = view->goes_on_axes,
    };
}

static void find_kind(struct stream *s, const struct engine_box *box, uint64_t period_limit)
{
    struct box w;
    walk_init(&w, box, s->strides);
    find_extent(s, &w);

    int n = w.n;
    if (w.axes[n - 1].strides[0] == 0)
        n--; /* merged: at most one axis without steps is slowest */
    uint64_t period = 1;
    for (int i = 0; i < n && period <= period_limit; i++)
        period *= (uint64_t)w.axes[i].count;
    if (n < w.n && period <= period_limit) {
        s->kind = STREAM_PERIODIC;
        s->n_run = period;
        return;
    }
    /* Bools of a source are bytes of any value: they are normalised on the way. */
    bool is_raw_bool = s->dtype == DTYPE_BOOL && period_limit > 0;
    if (s->is_swapped || is_raw_bool || !is_aligned(s, &w))
        return;
    if (s->near) {
        int fastest = box->axis_order[box->ndim - 1];
        s->n_run = (uint64_t)box->count[fastest];
        if (s->strides[fastest] == (int64_t)1 << s->item_log2 && s->n_run >= MIN_RUN)
            s->kind = STREAM_RUNS;
        edges_find_inside(s, box, &s->run_low, &s->run_high);
        return;
    }
    if (w.axes[0].strides[0] == (int64_t)1 << s->item_log2 || w.axes[0].count == 1) {
        s->n_run = s->run_high = (uint64_t)w.axes[0].count;
        if (w.n == 1)
            s->kind = STREAM_LINEAR;
        else if (s->n_run >= MIN_RUN)
            s->kind = STREAM_RUNS;
    }
}

void stream_init(struct stream *s, const struct engine_box *box, const struct engine_view *view,
                 enum dtype dtype, uint64_t period_limit)
{
    describe(s, view, dtype);
    find_kind(s, box, period_limit);
}

void stream_init_near(struct stream *s, const struct engine_box *box,
                      const struct engine_view *view, const struct program *program,
                      const struct program_near *near, uint64_t period_limit)
{
    const struct program_input *of = &program->inputs[near->input];
    describe(s, view, of->dtype);
    s->base += neighbours_distance(near, of, view, box->ndim);
    s->near_of = of;
    if (neighbours_are_beyond(near, of, view->goes_on_axes, box))
        s->near = near;
    find_kind(s, box, period_limit);
}

/* The run in which an element is. */
static void find_run(struct stream *s, const struct engine_box *box, uint64_t element)
{
    struct box w;
    struct box_place place;
    s->run_first = element - element % s->n_run;
    if (s->near) {
        s->run = edges_find_row(s, box, s->run_first);
        return;
    }
    walk_init(&w, box, s->strides);
    box_locate(&w, s->run_first, &place);
    s->run = s->base + place.offset[0];
}

void *stream_direct(struct stream *s, const struct engine_box *box, uint64_t first, size_t n)
{
    if (s->kind == STREAM_LINEAR)
        return s->base + (first << s->item_log2);
    if (s->kind != STREAM_RUNS)
        return NULL;
    if (first - s->run_first >= s->n_run)
        find_run(s, box, first);
    uint64_t at = first - s->run_first;
    if (!s->run || at < s->run_low || at + n > s->run_high)
        return NULL;
    return s->run + (at << s->item_log2);
}

void stream_load(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                 const struct move_kernels *move, void *buffer)
{
    if (s->near)
        edges_load(s, box, first, n, buffer);
    else
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

void stream_store(struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
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
