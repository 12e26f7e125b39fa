/* Blocks of a view, made of blocks of its array.
 *
 * Of the view's axes that go along one axis of the array, the one with the smallest step is walked
 * inside a block of the array; the others, and steps that would read too much around, are walked
 * outside, one block of the array for each place:
 *
 *     view axes (2, 3, 8) along array axes (0, 0, 1), steps (3, 1, 1)
 *     outside: the first, two blocks;  inside: 3 x 8 of the array
 *
 * Inside, the array's block has the elements between the steps, too, so that of a step of 2 twice
 * as much is read. What is written is walked outside unless steps are 1 or -1: elements between
 * belong to others. A block of the array is packed in C order; elements are copied between it and
 * the view's block with a stride on each side.
 *
 * Called by the pump: one call at a time for all providers of a client, so the buffer is the
 * view's; but where the array's provider serves several threads at once the view's does, too, and
 * each call has a buffer of its own.
 */
#include "client/lib/views/view.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define MAX_STEP 8 /* times as much may be read */

enum { IN_BLOCK, IN_BASE }; /* whose strides are which inside */

/* Outside: each step is a place of its own in the array. */
struct walk_axis {
    int64_t count;
    int64_t block_stride; /* bytes in the view's block */
    int64_t base_step;    /* elements along `axis` of the array */
    int axis;
};

struct walk {
    size_t item_bytes;
    struct box inside;
    int n_outside;
    struct walk_axis outside[ARRAY_MAX_NDIM];
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM]; /* of the array's block */
    int64_t base_offset; /* bytes in the array's block, of the view's first element */
    size_t base_bytes;
};

static int64_t magnitude(int64_t step)
{
    return step < 0 ? -step : step;
}

/* Which axis of the view is walked inside along an axis of the array; -1: none. */
static int find_inside(const struct view_blocks *view, int axis, const int64_t *count,
                       int64_t max_step)
{
    int best = -1;
    for (int i = 0; i < view->ndim; i++) {
        if (view->axes[i].axis != axis || count[i] <= 1 ||
            magnitude(view->axes[i].step) > max_step || view->axes[i].step == 0)
            continue;
        if (best < 0 || magnitude(view->axes[i].step) < magnitude(view->axes[best].step))
            best = i;
    }
    return best;
}

/* The array's block around the place where the outside axes begin. False: too large to say. */
static bool set_base_box(struct walk *walk, const struct view_blocks *view, const int64_t *start,
                         const int64_t *count, const int *inside)
{
    int64_t n_bytes = (int64_t)walk->item_bytes;
    for (int k = 0; k < view->base->info.ndim; k++) {
        int i = inside[k];
        int64_t step = i < 0 ? 1 : view->axes[i].step, n = i < 0 ? 1 : count[i];
        walk->start[k] = view->start[k];
        walk->count[k] = (n - 1) * magnitude(step) + 1;
        for (int j = 0; j < view->ndim; j++)
            if (view->axes[j].axis == k)
                walk->start[k] += start[j] * view->axes[j].step;
        if (step < 0)
            walk->start[k] -= walk->count[k] - 1;
        if (mul_overflows_i64(n_bytes, walk->count[k], &n_bytes))
            return false;
    }
    walk->base_bytes = (size_t)n_bytes;
    return true;
}

static bool walk_init(struct walk *walk, const struct view_blocks *view, const int64_t *start,
                      const int64_t *count, int64_t max_step)
{
    int inside[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM], block_strides[ARRAY_MAX_NDIM];
    int base_ndim = view->base->info.ndim;
    *walk = (struct walk){.item_bytes = gad_dtype_size(view->base->info.dtype)};
    for (int k = 0; k < base_ndim; k++)
        inside[k] = find_inside(view, k, count, max_step);
    if (!set_base_box(walk, view, start, count, inside))
        return false;
    array_c_strides(base_ndim, walk->count, (int64_t)walk->item_bytes, strides);
    array_c_strides(view->ndim, count, (int64_t)walk->item_bytes, block_strides);
    for (int i = view->ndim - 1; i >= 0; i--) {
        int k = view->axes[i].axis;
        int64_t step = view->axes[i].step;
        bool is_inside = k >= 0 && inside[k] == i, stands = k < 0 || step == 0;
        if (count[i] > 1 && !is_inside && !stands) {
            walk->outside[walk->n_outside++] = (struct walk_axis){
                .count = count[i], .block_stride = block_strides[i], .base_step = step, .axis = k};
            continue;
        }
        int64_t base_stride = is_inside ? strides[k] * step : 0;
        walk->base_offset += base_stride < 0 ? -(count[i] - 1) * base_stride : 0;
        box_add(&walk->inside, count[i], block_strides[i], base_stride);
    }
    return true;
}

/* Between the array's block and the view's, from `block` on. */
static void copy_inside(const struct walk *walk, char *block, char *base, bool is_fill)
{
    struct box box = walk->inside;
    base += walk->base_offset;
    if (!is_fill)
        box_exchange(&box);
    box_copy(&box, is_fill ? block : base, is_fill ? base : block, walk->item_bytes, false);
}

/* The array's block has the elements of the view's, in the same order. */
static bool is_same_block(const struct walk *walk)
{
    struct box box = walk->inside;
    return box_take_run(&box, (int64_t)walk->item_bytes) == (int64_t)walk->base_bytes && box.n == 0;
}

static int reserve(struct view_blocks *view, size_t n_bytes)
{
    if (view->buffer_bytes >= n_bytes)
        return 0;
    char *buffer = realloc(view->buffer, n_bytes);
    if (!buffer)
        return ENOMEM;
    view->buffer = buffer;
    view->buffer_bytes = n_bytes;
    return 0;
}

static int move_inside(struct view_blocks *view, const struct walk *walk, char *block, bool is_fill)
{
    const struct provider *provider = view->base->provider;
    void *state = view->base->provider_state;
    if (is_same_block(walk))
        return is_fill ? provider->fill(state, walk->start, walk->count, block)
                       : provider->drain(state, walk->start, walk->count, block);
    int r = reserve(view, walk->base_bytes);
    if (r == 0 && is_fill)
        r = provider->fill(state, walk->start, walk->count, view->buffer);
    if (r == 0)
        copy_inside(walk, block, view->buffer, is_fill);
    if (r == 0 && !is_fill)
        r = provider->drain(state, walk->start, walk->count, view->buffer);
    return r;
}

/* Steps the outside axes; false after the last place. */
static bool step_outside(struct walk *walk, int64_t *index, char **block)
{
    for (int i = 0; i < walk->n_outside; i++) {
        const struct walk_axis *axis = &walk->outside[i];
        *block += axis->block_stride;
        walk->start[axis->axis] += axis->base_step;
        if (++index[i] < axis->count)
            return true;
        *block -= axis->count * axis->block_stride;
        walk->start[axis->axis] -= axis->count * axis->base_step;
        index[i] = 0;
    }
    return false;
}

static int move(struct view_blocks *view, const int64_t *start, const int64_t *count, char *block,
                bool is_fill)
{
    struct walk walk;
    int64_t index[ARRAY_MAX_NDIM] = {0};
    for (int i = 0; i < view->ndim; i++)
        if (count[i] == 0)
            return 0;
    if (!walk_init(&walk, view, start, count, is_fill ? MAX_STEP : 1))
        return EOVERFLOW;
    int r;
    do
        r = move_inside(view, &walk, block, is_fill);
    while (r == 0 && step_outside(&walk, index, &block));
    return r;
}

static int view_fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    return move(state, start, count, ret_block, true);
}

static int view_drain(void *state, const int64_t *start, const int64_t *count, const void *block)
{
    return move(state, start, count, (char *)(uintptr_t)block, false);
}

static void view_explain(void *state, struct gad_error *error)
{
    const struct view_blocks *view = state;
    if (view->base->provider->explain)
        view->base->provider->explain(view->base->provider_state, error);
}

static int view_watch(void *state, struct file_sums *sums)
{
    const struct view_blocks *view = state;
    const struct provider *provider = view->base->provider;
    return provider->watch ? provider->watch(view->base->provider_state, sums) : 0;
}

static int view_verify(void *state)
{
    const struct view_blocks *view = state;
    const struct provider *provider = view->base->provider;
    return provider->verify ? provider->verify(view->base->provider_state) : 0;
}

static const struct provider view_provider = {.fill = view_fill,
                                              .drain = view_drain,
                                              .explain = view_explain,
                                              .watch = view_watch,
                                              .verify = view_verify};

static int move_alone(const struct view_blocks *view, const int64_t *start, const int64_t *count,
                      char *block, bool is_fill)
{
    struct view_blocks own = *view;
    own.buffer = NULL;
    own.buffer_bytes = 0;
    int r = move(&own, start, count, block, is_fill);
    free(own.buffer);
    return r;
}

static int concurrent_fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    return move_alone(state, start, count, ret_block, true);
}

static int concurrent_drain(void *state, const int64_t *start, const int64_t *count,
                            const void *block)
{
    return move_alone(state, start, count, (char *)(uintptr_t)block, false);
}

static const struct provider view_provider_concurrent = {.is_concurrent = true,
                                                         .fill = concurrent_fill,
                                                         .drain = concurrent_drain,
                                                         .explain = view_explain,
                                                         .watch = view_watch,
                                                         .verify = view_verify};

static const struct provider view_provider_quick = {.is_concurrent = true,
                                                    .is_quick = true,
                                                    .fill = concurrent_fill,
                                                    .drain = concurrent_drain,
                                                    .explain = view_explain,
                                                    .watch = view_watch,
                                                    .verify = view_verify};

const struct provider *view_provider_of(const struct gad_array *array)
{
    if (!array->provider || !array->provider->is_concurrent)
        return &view_provider;
    return array->provider->is_quick ? &view_provider_quick : &view_provider_concurrent;
}
