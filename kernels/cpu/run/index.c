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

void index_stream_init_flat(struct index_stream *s, const struct engine_box *box,
                            const int64_t *shape, uint32_t axes)
{
    int64_t stride = 1;
    *s = (struct index_stream){.is_flat = true, .box = box};
    for (int i = box->ndim - 1; i >= 0; i--) {
        if (!(axes >> i & 1))
            continue;
        s->flat_strides[i] = stride;
        s->flat_start += (uint64_t)(box->start ? box->start[i] : 0) * (uint64_t)stride;
        stride *= shape[i];
    }
}

/* Where the number of an element is: the axes as they are walked, merged. */
static void locate(const struct index_stream *s, uint64_t element, struct box *ret_flat,
                   struct box_place *ret_place)
{
    engine_box_merge(s->box, s->flat_strides, ret_flat);
    box_need_axis(ret_flat, 1, 0);
    box_locate(ret_flat, element, ret_place);
}

static void count_by(uint64_t *to, size_t n, uint64_t value, uint64_t step)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value + i * step;
}

size_t index_stream_run(const struct index_stream *s, uint64_t first, size_t n, int64_t *ret_number,
                        int64_t *ret_step)
{
    struct box flat;
    struct box_place place;
    locate(s, first, &flat, &place);
    *ret_number = (int64_t)s->flat_start + place.offset[0];
    *ret_step = flat.axes[0].strides[0];
    return min_u64(n, (uint64_t)(flat.axes[0].count - place.index[0]));
}

bool index_stream_counts(const struct index_stream *s, uint64_t first, size_t n,
                         uint64_t *ret_number)
{
    int64_t number, step;
    if (!s->is_flat || index_stream_run(s, first, n, &number, &step) < n || (n > 1 && step != 1))
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static void load_flat(const struct index_stream *s, uint64_t first, size_t n)
{
    struct box flat;
    struct box_place place;
    locate(s, first, &flat, &place);
    const struct box_axis *fastest = &flat.axes[0];
    uint64_t *to = (uint64_t *)s->buffer;
    while (n > 0) {
        size_t n_now = min_u64(n, (uint64_t)(fastest->count - place.index[0]));
        count_by(to, n_now, s->flat_start + (uint64_t)place.offset[0],
                 (uint64_t)fastest->strides[0]);
        to += n_now;
        n -= n_now;
        (void)box_advance(flat.axes, flat.n, 0, (int64_t)n_now, &place);
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
