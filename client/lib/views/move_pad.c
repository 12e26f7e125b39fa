/* Borders, as numpy.pad() makes them.
 *
 * Along each axis the result is a list of segments, which are parts of the array, forwards,
 * backwards, or one element again and again:
 *
 *     edge       | first .. first | array | last .. last |
 *     wrap       | array, whole and once in part | array | array, likewise |
 *     reflect    | .. backwards | array | backwards .. |    period 2 (n - 1), the ends once
 *     symmetric  | .. backwards | array | backwards .. |    period 2 n, the ends twice
 *
 * and the pieces are all combinations of the axes' segments. A constant border is no part of the
 * array: its pieces are boxes around it, each axis over the full width of the axes before it, so
 * that in corners the last axis wins; they are views of one element in shared memory.
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/lib/memory/scalar.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/box.h"
#include "proto/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SEGMENTS 65536

struct segments {
    unsigned n, n_allocated;
    struct move_segment *list;
};

struct padding {
    struct move move;
    struct gad_array *array;
    const struct gad_pad *pads;
    enum gad_pad_mode mode;
    int ndim;
    int axes[ARRAY_MAX_NDIM];
    struct segments segments[ARRAY_MAX_NDIM];
};

/* Segments of an axis -------------------------------------------------------------------------- */

static int add_segment(struct segments *segments, struct move_segment segment,
                       struct gad_error *error)
{
    if (segment.count == 0 || segment.n_repeats == 0)
        return 0;
    if (segments->n == MAX_SEGMENTS) {
        error_set(error, GAD_LIMIT_EXCEEDED, "pads", "the border has too many parts");
        error_expected(error, "at most %d along an axis", MAX_SEGMENTS);
        return GAD_LIMIT_EXCEEDED;
    }
    if (segments->n == segments->n_allocated) {
        unsigned n = segments->n_allocated ? 2 * segments->n_allocated : 8;
        struct move_segment *list = realloc(segments->list, n * sizeof(*list));
        if (!list)
            return -ENOMEM;
        segments->list = list;
        segments->n_allocated = n;
    }
    segments->list[segments->n++] = segment;
    return 0;
}

static int64_t modulo(int64_t value, int64_t size)
{
    int64_t rest = value % size;
    return rest < 0 ? rest + size : rest;
}

/* [begin, end) of the result, which is periodic: the period is the array forwards and, where it is
 * mirrored, then backwards. skipped: elements that the way back leaves out at each end. */
static int add_periodic(struct segments *segments, int64_t begin, int64_t end, int64_t before,
                        int64_t size, bool is_mirrored, int64_t skipped, struct gad_error *error)
{
    int64_t back = is_mirrored ? size - 2 * skipped : 0, period = size + back;
    int r = 0;
    for (int64_t at = begin; at < end && r == 0;) {
        int64_t phase = modulo(at - before, period), left = end - at;
        struct move_segment s = {.to = at, .from = phase, .step = 1, .n_repeats = 1};
        s.count = size - phase;
        if (phase >= size) {
            s.from = size - 1 - skipped - (phase - size);
            s.step = -1;
            s.count = period - phase;
        }
        if (phase == 0 && !is_mirrored && left >= period)
            s.n_repeats = left / period;
        s.count = s.count < left ? s.count : left;
        at += s.count * s.n_repeats;
        r = add_segment(segments, s, error);
    }
    return r;
}

static int add_edges(struct segments *segments, const struct gad_pad *pad, int64_t size,
                     struct gad_error *error)
{
    int r = add_segment(
        segments, (struct move_segment){.step = 0, .count = pad->before, .n_repeats = 1}, error);
    if (r == 0)
        r = add_segment(
            segments,
            (struct move_segment){.to = pad->before, .step = 1, .count = size, .n_repeats = 1},
            error);
    if (r == 0)
        r = add_segment(segments,
                        (struct move_segment){.to = pad->before + size,
                                              .from = size - 1,
                                              .step = 0,
                                              .count = pad->after,
                                              .n_repeats = 1},
                        error);
    return r;
}

static int make_segments(struct padding *p, int axis, struct gad_error *error)
{
    const struct gad_pad *pad = &p->pads[axis];
    struct segments *segments = &p->segments[axis];
    int64_t size = p->array->info.shape[axis], end = pad->before + size + pad->after;
    bool is_plain = p->mode == GAD_PAD_CONSTANT || (pad->before == 0 && pad->after == 0);
    bool is_mirrored = p->mode == GAD_PAD_REFLECT || p->mode == GAD_PAD_SYMMETRIC;
    if (is_plain)
        return add_segment(
            segments,
            (struct move_segment){.to = pad->before, .step = 1, .count = size, .n_repeats = 1},
            error);
    if (p->mode == GAD_PAD_EDGE || (p->mode == GAD_PAD_REFLECT && size == 1))
        return add_edges(segments, pad, size, error);
    return add_periodic(segments, 0, end, pad->before, size, is_mirrored,
                        p->mode == GAD_PAD_REFLECT ? 1 : 0, error);
}

/* Pieces --------------------------------------------------------------------------------------- */

static int add_combinations(struct padding *p, struct gad_error *error)
{
    struct move_segment chosen[ARRAY_MAX_NDIM];
    struct box_axis axes[ARRAY_MAX_NDIM] = {0};
    struct box_place place = {.index = {0}};
    int r;
    for (int i = 0; i < p->ndim; i++) {
        if (p->segments[i].n == 0)
            return 0;
        axes[p->ndim - 1 - i].count = p->segments[i].n; /* the last axis is the fastest */
    }
    do {
        for (int i = 0; i < p->ndim; i++)
            chosen[i] = p->segments[i].list[place.index[p->ndim - 1 - i]];
        r = move_add(&p->move, p->array, p->axes, chosen, error);
    } while (r == 0 && box_next(axes, p->ndim, &place));
    return r;
}

/* What a side's border is of: a value that is cast is truncated first, as by NumPy. */
static struct gad_scalar constant(enum gad_dtype dtype, double value,
                                  const struct gad_scalar *exact)
{
    bool is_whole = dtype != GAD_BOOL && dtype != GAD_FLOAT32 && dtype != GAD_FLOAT64;
    if (exact->kind != GAD_SCALAR_NONE)
        return *exact;
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT,
                               .float_value = is_whole ? trunc(value) : value};
}

static int make_constant(struct padding *p, const struct gad_scalar *value,
                         struct gad_array **ret_array, struct gad_error *error)
{
    enum gad_dtype dtype = meaning_dtype(p->array);
    uint64_t element = 0;
    if (!scalar_put(dtype, value, &element)) {
        char text[SCALAR_TEXT_SIZE], bounds[2 * SCALAR_TEXT_SIZE];
        scalar_format(value, text);
        error_set(error, GAD_BAD_ARGUMENT, "value", "a constant of %s is none of %s", text,
                  gad_dtype_name(dtype));
        error_expected(error, "a value of %s: a whole number, %s", gad_dtype_name(dtype),
                       scalar_format_bounds(dtype, bounds));
        error_found(error, "%s", text);
        return GAD_BAD_ARGUMENT;
    }
    int r = (int)gad_array_new(p->move.client, dtype, 0, NULL, ret_array, error);
    if (r == 0)
        memcpy(gad_array_data(*ret_array), &element, gad_dtype_size(dtype));
    return r;
}

/* The border on one side of an axis. */
static int add_constant(struct padding *p, int axis, int64_t to, int64_t width,
                        const struct gad_scalar *value, struct gad_error *error)
{
    struct move_segment box[ARRAY_MAX_NDIM];
    int nowhere[ARRAY_MAX_NDIM];
    struct gad_array *element;
    if (width == 0)
        return 0;
    for (int i = 0; i < p->ndim; i++) {
        bool is_full = i < axis;
        box[i] = (struct move_segment){.to = is_full ? 0 : p->pads[i].before,
                                       .count = is_full ? p->move.to->info.shape[i]
                                                        : p->array->info.shape[i],
                                       .n_repeats = 1};
        nowhere[i] = -1;
    }
    box[axis].to = to;
    box[axis].count = width;
    int r = make_constant(p, value, &element, error);
    if (r)
        return r;
    r = move_add(&p->move, element, nowhere, box, error);
    gad_array_release(element);
    return r;
}

static int add_constants(struct padding *p, struct gad_error *error)
{
    enum gad_dtype dtype = meaning_dtype(p->array);
    int r = 0;
    for (int i = 0; i < p->ndim && r == 0; i++) {
        const struct gad_pad *pad = &p->pads[i];
        struct gad_scalar before = constant(dtype, pad->before_value, &pad->before_exact);
        struct gad_scalar after = constant(dtype, pad->after_value, &pad->after_exact);
        r = add_constant(p, i, 0, pad->before, &before, error);
        if (r == 0)
            r = add_constant(p, i, pad->before + p->array->info.shape[i], pad->after, &after,
                             error);
    }
    return r;
}

/* The call ------------------------------------------------------------------------------------- */

static int check_pads(const struct padding *p, struct gad_error *error)
{
    if (p->mode < GAD_PAD_CONSTANT || p->mode > GAD_PAD_WRAP)
        return error_set(error, GAD_BAD_ARGUMENT, "mode", "%d is no mode of pad", (int)p->mode);
    if (p->ndim > 0 && !p->pads)
        return error_set(error, GAD_BAD_ARGUMENT, "pads", "pads is NULL");
    for (int i = 0; i < p->ndim; i++) {
        const struct gad_pad *pad = &p->pads[i];
        if (pad->before < 0 || pad->after < 0) {
            int64_t width = pad->before < 0 ? pad->before : pad->after;
            error_set(error, GAD_BAD_ARGUMENT, "pads", "a border of %" PRId64 " along axis %d",
                      width, i);
            error_expected(error, "0 or more elements");
            error_found(error, "%" PRId64, width);
            return GAD_BAD_ARGUMENT;
        }
        if (p->array->info.shape[i] > 0 || p->mode == GAD_PAD_CONSTANT ||
            (pad->before == 0 && pad->after == 0))
            continue;
        error_set(error, GAD_BAD_ARGUMENT, "pads", "axis %d is empty: there is nothing to repeat",
                  i);
        error_expected(error, "a constant border");
        error_found(error, "an axis of size 0");
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

static int run(struct padding *p, struct gad_client *client, const struct gad_move_options *options,
               struct gad_job_stats *ret_stats, struct gad_error *error)
{
    const struct gad_array_info *info = &p->array->info;
    struct move_result result = {.dtype = meaning_dtype(p->array), .ndim = p->ndim};
    for (int i = 0; i < p->ndim; i++) {
        p->axes[i] = i;
        if (add_overflows_i64(info->shape[i], p->pads[i].before, &result.shape[i]) ||
            add_overflows_i64(result.shape[i], p->pads[i].after, &result.shape[i]))
            return error_set(error, GAD_BAD_SHAPE, "pads", "the result is too long");
    }
    move_take_limits(&result, 1, &p->array, NULL);
    int r = 0;
    for (int i = 0; i < p->ndim && r == 0; i++)
        r = make_segments(p, i, error);
    if (r == 0)
        r = move_init(&p->move, client, options, &result, 1, &p->array, error);
    if (r == 0)
        r = add_combinations(p, error);
    if (r == 0 && p->mode == GAD_PAD_CONSTANT)
        r = add_constants(p, error);
    return r ? r : move_run(&p->move, ret_stats, error);
}

enum gad_status gad_pad(struct gad_client *client, struct gad_array *array,
                        const struct gad_pad *pads, enum gad_pad_mode mode,
                        const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                        struct gad_error *error)
{
    int r = move_check(client, 1, &array, options, error);
    if (r)
        return (enum gad_status)r;
    struct padding p = {.array = array, .pads = pads, .mode = mode, .ndim = array->info.ndim};
    r = check_pads(&p, error);
    if (r == 0)
        r = run(&p, client, options, ret_stats, error);
    move_deinit(&p.move);
    for (int i = 0; i < p.ndim; i++)
        free(p.segments[i].list);
    return client_status(r, error);
}
