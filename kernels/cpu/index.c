/* Operands that are coordinates: made strip by strip in visiting order, for any order of the axes.
 *
 * Along an axis the elements of a box, in visiting order, have the coordinates
 *
 *     start x n_inner times, start + 1 x n_inner times, ... , all of it again and again
 *
 * where n_inner is 1 for the fastest axis: then whole runs count up. Nothing is kept between
 * strips. Called by run.c for every strip of a pass that uses such an operand.
 */
#include "kernels/cpu/stream.h"

#include "proto/util.h"

void index_stream_init(struct index_stream *s, const struct cpu_box *box, unsigned axis)
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

void index_stream_load(const struct index_stream *s, uint64_t first, size_t n)
{
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
