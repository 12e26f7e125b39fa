/* What fits a grain: every operand's packed box is within GRAIN_MAX_OPERAND_BYTES, all boxes, each
 * rounded up to the alignment inside a slot, are within GRAIN_MAX_TOTAL_BYTES (where runs are long,
 * each and all within rules->long_bytes), and there are not more elements than bytes of one operand
 * (so that broadcasting small operands against each other does not make grains of endless work).
 * What is no array of the job, but needs room with a device, is within GRAIN_MAX_OTHER_BYTES all
 * together, what windows need within GRAIN_MAX_WINDOW_BYTES.
 *
 * Extents are looked for with the others as they are; they keep to the units (chunks, or single
 * elements), and to whole pages where that loses little. Called by geometry.c and its parts.
 */
#include "kernels/grains/cutter.h"

#include <assert.h>

#define SLOT_ALIGN_BYTES   64
#define MAX_DIVISOR_SEARCH 4096
#define MAX_ALIGN_ELEMENTS 4096 /* a page of the smallest element */

_Static_assert(CUTTER_MAX_OPERANDS *SLOT_ALIGN_BYTES <= GRAIN_MAX_TOTAL_BYTES,
               "one element always fits");

static int64_t most_elements(const struct cutter *c)
{
    return c->rules->whole_elements > 0 ? c->rules->whole_elements : CUTTER_MAX_ELEMENTS;
}

/* With what a box reads around a grain. */
static int64_t reaching_bytes(const struct cutter *c, const struct geometry_operand *operand,
                              int axis, int64_t extent)
{
    const struct geometry *g = c->g;
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    for (int i = 0; i < operand->ndim; i++) {
        int of = g->ndim - operand->ndim + i;
        int64_t own = (of == axis ? extent : g->grain_shape[of]) + operand->reach[i];
        if (!operand->is_window)
            own = min_i64(own, operand->shape[i]);
        n_bytes = mul_saturating_i64(n_bytes, own);
    }
    return n_bytes;
}

bool cutter_fits(const struct cutter *c, int axis, int64_t extent)
{
    const struct geometry *g = c->g;
    int64_t n_elements = 1, n_total = 0, n_other = 0, n_windows = 0, extents[ARRAY_MAX_NDIM];
    int64_t n_most = GRAIN_MAX_OPERAND_BYTES, n_most_total = GRAIN_MAX_TOTAL_BYTES;
    int axes[ARRAY_MAX_NDIM], n_long = 0; /* of 2 and more: others change nothing */

    for (int i = 0; i < g->ndim; i++) {
        int64_t own = i == axis ? extent : g->grain_shape[i];
        n_elements = mul_saturating_i64(n_elements, own);
        if (own == 1)
            continue;
        axes[n_long] = i;
        extents[n_long++] = own;
    }
    if (n_elements > most_elements(c))
        return false;
    if (c->has_long_runs)
        n_most = n_most_total = (int64_t)c->rules->long_bytes;
    for (unsigned n = 0; n < c->n_operands; n++) {
        int64_t n_bytes = (int64_t)dtype_size(c->operands[n].dtype);
        for (int i = 0; i < n_long; i++) {
            if (cutter_has_axis(g, &c->operands[n], axes[i]))
                n_bytes *= extents[i]; /* <= 8 x MAX_ELEMENTS */
        }
        if (c->operands[n].reach)
            n_bytes = reaching_bytes(c, &c->operands[n], axis, extent);
        bool is_other = c->operands[n].is_internal && !c->operands[n].is_in_slot;
        if (n_bytes > (is_other ? (int64_t)GRAIN_MAX_WINDOW_BYTES : n_most))
            return false;
        *(c->operands[n].is_window ? &n_windows
          : is_other               ? &n_other
                     : &n_total) += (int64_t)round_up_u64((uint64_t)n_bytes, SLOT_ALIGN_BYTES);
    }
    return n_total <= n_most_total && n_other <= GRAIN_MAX_OTHER_BYTES &&
           n_windows <= GRAIN_MAX_WINDOW_BYTES;
}

int64_t cutter_largest_extent(const struct cutter *c, int axis, int64_t limit)
{
    int64_t unit = c->unit[axis];

    if (cutter_fits(c, axis, limit))
        return limit;
    int64_t good = c->g->grain_shape[axis] / unit, bad = divide_up_i64(limit, unit);
    if (bad > CUTTER_MAX_ELEMENTS / unit + 1)
        bad = CUTTER_MAX_ELEMENTS / unit + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (cutter_fits(c, axis, middle * unit))
            good = middle;
        else
            bad = middle;
    }
    int64_t extent = good * unit;
    return extent < c->g->grain_shape[axis] ? c->g->grain_shape[axis] : extent;
}

/* A step of extents such that they and the faster axes make runs of whole pages, or of smaller
 * powers of two, where rounding down to it loses at most a quarter. */
static int64_t align_step(int64_t extent, int64_t n_inner)
{
    for (int64_t align = MAX_ALIGN_ELEMENTS; align >= CUTTER_MIN_ALIGN; align /= 2) {
        int64_t step = align / common_divisor_i64(align, n_inner);
        if (extent >= step && extent % step <= extent / 4)
            return step;
    }
    return 1;
}

int64_t cutter_even_out(const struct cutter *c, int axis, int64_t length, int64_t extent)
{
    const struct geometry *g = c->g;
    int64_t step = c->unit[axis], n_inner = 1;

    for (int i = g->ndim - 1; g->axis_order[i] != axis; i--)
        n_inner *= g->grain_shape[g->axis_order[i]];
    if (step == 1)
        step = align_step(extent, n_inner);
    if (extent < step)
        return extent;
    extent -= extent % step;
    int64_t n_parts = divide_up_i64(length, extent);
    int64_t even = mul_saturating_i64(divide_up_i64(divide_up_i64(length, n_parts), step), step);
    assert(even <= extent);
    return even;
}

int64_t cutter_near_divisor(int64_t chunk, int64_t extent)
{
    int64_t last = extent / 4;

    if (last < extent - MAX_DIVISOR_SEARCH)
        last = extent - MAX_DIVISOR_SEARCH;
    for (int64_t i = extent; i > last; i--) {
        if (chunk % i == 0)
            return i;
    }
    return extent;
}
