/* Operands that are coordinates: made strip by strip in visiting order, for any order of the axes.
 *
 * Along an axis the elements of a box, in visiting order, have the coordinates
 *
 *     start x n_inner times, start + 1 x n_inner times, ... , all of it again and again
 *
 * where n_inner is 1 for the fastest axis: then whole runs count up. Numbers in C order go up by
 * the same step along a run of the fastest axis, whichever that is. Nothing is kept between strips.
 * Called by run.c for every strip of a pass that uses such an operand.
 */
#include "kernels/cpu/run/stream.h"

#include "proto/util.h"

void index_stream_init(struct index_stream *s, const struct engine_box *box, unsigned axis)
{
    *s = (struct index_stream){
        .axis = axis,
        .start = box->start ? box->start[axis] : 0,
        .count = (uint64_t)box->count[axis],
        .n_inner = 1,
    };
    for (int i = box->ndim - 1; i >= 0 && (unsigned)box->axis_order[i] != axis; i--)
        s->n_inner *= (uint64_t)box->count[box->axis_order[i]];
}

static void count_up(int64_t *to, size_t n, int64_t value)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value + (int64_t)i;
}

static void repeat(int64_t *to, size_t n, int64_t value)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* The product of the fastest axes' counts, as long as one follows on the other. */
static uint64_t counting_length(const struct index_stream *s)
{
    const struct engine_box *box = s->box;
    uint64_t n = 1;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        if (box->count[axis] == 1)
            continue;
        if ((uint64_t)s->flat_strides[axis] != n)
            break;
        n *= (uint64_t)box->count[axis];
    }
    return n;
}

void index_stream_init_flat(struct index_stream *s, const struct engine_box *box,
                            const int64_t *shape, uint32_t axes)
{
    *s = (struct index_stream){.is_flat = true, .box = box};
    int64_t stride = 1;
    for (int i = box->ndim - 1; i >= 0; i--) {
        if (!(axes >> i & 1))
            continue;
        s->flat_strides[i] = stride;
        s->flat_start += (uint64_t)(box->start ? box->start[i] : 0) * (uint64_t)stride;
        stride *= shape[i];
    }
    s->n_counting = counting_length(s);
}

static void count_by(uint64_t *to, size_t n, uint64_t value, uint64_t step)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value + i * step;
}

/* The next element behind a run of the fastest axis. */
static uint64_t carry(const struct index_stream *s, int64_t *at, uint64_t value)
{
    const struct engine_box *box = s->box;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        if (i < box->ndim - 1) {
            at[i]++;
            value += (uint64_t)s->flat_strides[axis];
        }
        if (at[i] < box->count[axis])
            break;
        value -= (uint64_t)at[i] * (uint64_t)s->flat_strides[axis];
        at[i] = 0;
    }
    return value;
}

/* The number of an element, and where that is, in order of walking. */
static uint64_t locate(const struct index_stream *s, uint64_t element, int64_t *ret_at)
{
    const struct engine_box *box = s->box;
    uint64_t value = s->flat_start;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        ret_at[i] = (int64_t)(element % (uint64_t)box->count[axis]);
        element /= (uint64_t)box->count[axis];
        value += (uint64_t)ret_at[i] * (uint64_t)s->flat_strides[axis];
    }
    return value;
}

bool index_stream_counts(const struct index_stream *s, uint64_t first, size_t n,
                         uint64_t *ret_number)
{
    int64_t at[ARRAY_MAX_NDIM];
    if (!s->is_flat || first % s->n_counting + n > s->n_counting)
        return false;
    *ret_number = locate(s, first, at);
    return true;
}

size_t index_stream_run(const struct index_stream *s, uint64_t first, size_t n, int64_t *ret_number,
                        int64_t *ret_step)
{
    const struct engine_box *box = s->box;
    int64_t at[ARRAY_MAX_NDIM];
    int last = box->ndim - 1;
    *ret_number = (int64_t)locate(s, first, at);
    *ret_step = 1;
    if (s->n_counting > 1)
        return min_u64(n, s->n_counting - first % s->n_counting);
    while (last >= 0 && box->count[box->axis_order[last]] == 1)
        last--;
    if (last < 0)
        return n;
    *ret_step = s->flat_strides[box->axis_order[last]];
    return min_u64(n, (uint64_t)(box->count[box->axis_order[last]] - at[last]));
}

static void load_flat(const struct index_stream *s, uint64_t first, size_t n)
{
    const struct engine_box *box = s->box;
    int64_t at[ARRAY_MAX_NDIM];
    uint64_t value = locate(s, first, at);
    int last = box->ndim - 1;
    int64_t count = last < 0 ? 1 : box->count[box->axis_order[last]];
    uint64_t step = last < 0 ? 0 : (uint64_t)s->flat_strides[box->axis_order[last]];
    uint64_t *to = (uint64_t *)s->buffer;
    while (n > 0) {
        size_t n_now = last < 0 ? n : min_u64(n, (uint64_t)(count - at[last]));
        count_by(to, n_now, value, step);
        to += n_now;
        n -= n_now;
        if (last < 0)
            break;
        at[last] += (int64_t)n_now;
        value = carry(s, at, value + n_now * step);
    }
}

void index_stream_load(const struct index_stream *s, uint64_t first, size_t n)
{
    if (s->is_flat) {
        load_flat(s, first, round_up_u64(n, KERNEL_GRANULE));
        return;
    }
    bool is_fastest = s->n_inner == 1;
    uint64_t position = first / s->n_inner % s->count;
    /* What is left of the first run. */
    uint64_t left = is_fastest ? s->count - position : s->n_inner - first % s->n_inner;
    int64_t *to = s->buffer;
    n = round_up_u64(n, KERNEL_GRANULE);
    while (n > 0) {
        size_t n_now = min_u64(n, left);
        if (is_fastest) {
            count_up(to, n_now, s->start + (int64_t)position);
            position = 0;
            left = s->count;
        } else {
            repeat(to, n_now, s->start + (int64_t)position);
            position = position + 1 == s->count ? 0 : position + 1;
            left = s->n_inner;
        }
        to += n_now;
        n -= n_now;
    }
}
