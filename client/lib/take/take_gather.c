/* Elements at places, from wherever the array is.
 *
 *     sorted places    3 4 5 . 7 . . . . . . . . 900 900
 *                      \_ one span: read at once  \_ another, whose element goes to two places
 *
 * A span has gaps where reading over them costs less than reading again. Of several axes that are
 * one here, what lies between two places need not be a box: then whole rows are read around them.
 * What is read is copied to where its order says; but a single place, and a run that the result has
 * in the same order, is read straight into it.
 *
 * Called by take_provider.c and take_window.c, by any thread.
 */
#include "client/formats/files/file_source.h"
#include "client/lib/take/take.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define DIRECT_BYTES (16u * 1024u) /* of a run, which is not copied */

/* Wanted ones [from, to) and the places that are read for them. */
struct span {
    size_t from, to;
    int64_t first, n_places;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM]; /* of the array */
    bool is_straight;                                     /* into the result */
};

struct gathering {
    struct take *take;
    const struct take_part *part;
    const struct wanted_row *wanted; /* places, and which ones they are of the part */
    size_t n;
    int64_t place_bytes, gap_places;
    /* Whether each place is one run of bytes in a file; where place 0 is, how far they are apart.
     */
    bool is_run;
    uint64_t file_offset;
    int64_t place_stride;
};

static int64_t place_of(const struct gathering *g, size_t i)
{
    return g->wanted[i].row;
}

static size_t order_of(const struct gathering *g, size_t i)
{
    return g->wanted[i].place;
}

static void copy_element(char *to, const char *from, size_t n_bytes)
{
    switch (n_bytes) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, n_bytes);
    }
}

/* The box around places [low, high], which may have more of them. */
static void set_box(const struct gathering *g, int64_t low, int64_t high, struct span *span)
{
    const struct take *take = g->take;
    int64_t below = 1; /* places of one step */
    int k = take->axis + take->n_axes - 1;
    for (; k > take->axis && low / take->array->info.shape[k] != high / take->array->info.shape[k];
         k--) {
        int64_t size = take->array->info.shape[k];
        span->start[k] = 0;
        span->count[k] = size;
        below *= size;
        low /= size;
        high /= size;
    }
    span->first = low * below;
    span->n_places = (high - low + 1) * below;
    span->count[k] = high - low + 1;
    for (; k >= take->axis; k--) {
        int64_t size = take->array->info.shape[k];
        span->start[k] = k > take->axis ? low % size : low;
        low /= size;
        if (k > take->axis)
            span->count[k - 1] = 1;
    }
}

/* As many from `from` on as are a run in the array and in the result. */
static size_t run_length(const struct gathering *g, size_t from)
{
    const struct take *take = g->take;
    size_t n = 1, most = g->n - from;
    if (take->n_axes > 1) {
        int64_t size = take->array->info.shape[take->axis + take->n_axes - 1];
        most = min_u64(most, (uint64_t)(size - place_of(g, from) % size));
    }
    while (n < most && place_of(g, from + n) == place_of(g, from) + (int64_t)n &&
           order_of(g, from + n) == order_of(g, from) + n)
        n++;
    return n;
}

/* Places that the box around [low, high] has. */
static int64_t n_in_box(const struct gathering *g, int64_t low, int64_t high)
{
    const struct take *take = g->take;
    int64_t below = 1;
    for (int k = take->axis + take->n_axes - 1; k > take->axis; k--) {
        int64_t size = take->array->info.shape[k];
        if (low / size == high / size)
            break;
        below *= size;
        low /= size;
        high /= size;
    }
    return (high - low + 1) * below;
}

static void find_span(const struct gathering *g, size_t from, struct span *span)
{
    int64_t low = place_of(g, from), high = low, most = TAKE_BOUNCE_BYTES / g->place_bytes;
    size_t n = g->part->n_outer == 1 ? run_length(g, from) : 1, to = from + 1;
    span->from = from;
    span->is_straight = n > 1 && (int64_t)n * g->place_bytes >= (int64_t)DIRECT_BYTES;
    if (span->is_straight) {
        to = from + n;
        high = low + (int64_t)n - 1;
    }
    for (; to < g->n && !span->is_straight; to++) {
        int64_t place = place_of(g, to);
        if (place != high && (place - high > g->gap_places || n_in_box(g, low, place) > most))
            break;
        high = place;
    }
    span->to = to;
    set_box(g, low, high, span);
    span->is_straight |= span->n_places == 1 && g->part->n_outer == 1;
}

/* Of a part that is one run of a file for each place: without the walk through all axes. */
static int read_run(const struct gathering *g, const struct span *span, char *to)
{
    const struct gad_array *array = g->take->array;
    size_t n_bytes = (size_t)(span->n_places * g->place_bytes), n = 0;
    int r = file_read(array->fd, to, n_bytes,
                      g->file_offset + (uint64_t)(span->first * g->place_stride), &n);
    return r < 0 ? -r : n == n_bytes ? 0 : ENODATA; /* shorter than the array */
}

static int read_span(const struct gathering *g, const struct span *span, char *to)
{
    struct take *take = g->take;
    bool is_run = g->is_run && (span->n_places == 1 || g->place_stride == g->place_bytes);
    int r = is_run ? read_run(g, span, to) : take_read(take->array, span->start, span->count, to);
    if (r) {
        pthread_mutex_lock(&take->lock);
        take->unread = take->unread ? take->unread : take->array;
        pthread_mutex_unlock(&take->lock);
    }
    return r;
}

/* Of one place or a run: what comes after its first time are copies of that. */
static int gather_straight(const struct gathering *g, const struct span *span)
{
    const struct take_part *part = g->part;
    char *first = part->to + order_of(g, span->from) * part->inner_bytes;
    int r = read_span(g, span, first);
    for (size_t i = span->from + 1; i < span->to && span->n_places == 1 && r == 0; i++)
        copy_element(part->to + order_of(g, i) * part->inner_bytes, first, part->inner_bytes);
    return r;
}

static int gather_span(const struct gathering *g, const struct span *span, char *bounce)
{
    const struct take_part *part = g->part;
    size_t n_bytes = part->inner_bytes;
    int r = read_span(g, span, bounce);
    for (int64_t outer = 0; outer < part->n_outer && r == 0; outer++) {
        const char *from = bounce + (size_t)(outer * span->n_places) * n_bytes;
        char *to = part->to + outer * part->outer_stride;
        for (size_t i = span->from; i < span->to; i++)
            copy_element(to + order_of(g, i) * n_bytes,
                         from + (size_t)(place_of(g, i) - span->first) * n_bytes, n_bytes);
    }
    return r;
}

static void find_runs(struct gathering *g)
{
    const struct take *take = g->take;
    const struct gad_array_info *info = &take->array->info;
    int64_t run = (int64_t)gad_dtype_size(info->dtype);
    int last = take->axis + take->n_axes - 1;
    g->place_stride = info->strides[last];
    g->file_offset = take->array->offset_bytes;
    g->is_run = take->is_in_file && g->part->n_outer == 1;
    for (int k = info->ndim - 1; k > last; k--) {
        g->is_run &= g->part->count[k] == 1 || info->strides[k] == run;
        run *= g->part->count[k];
    }
    for (int k = take->axis; k < last; k++)
        g->is_run &= info->strides[k] == info->strides[k + 1] * info->shape[k + 1];
    for (int k = 0; k < info->ndim; k++)
        if (k < take->axis || k > last)
            g->file_offset += (uint64_t)(g->part->start[k] * info->strides[k]);
}

int take_gather(struct take *take, const struct take_part *part, const struct wanted_row *wanted,
                size_t n)
{
    struct gathering g = {.take = take,
                          .part = part,
                          .wanted = wanted,
                          .n = n,
                          .place_bytes = part->n_outer * (int64_t)part->inner_bytes,
                          .gap_places = take->gap_bytes / (int64_t)part->inner_bytes + 1};
    _cleanup_free_ char *bounce = malloc(max_u64(TAKE_BOUNCE_BYTES, (uint64_t)g.place_bytes));
    struct span span;
    int r = bounce ? 0 : ENOMEM;
    find_runs(&g);
    memcpy(span.start, part->start, sizeof(span.start));
    memcpy(span.count, part->count, sizeof(span.count));
    for (size_t i = 0; i < n && r == 0; i = span.to) {
        find_span(&g, i, &span);
        r = span.is_straight ? gather_straight(&g, &span) : gather_span(&g, &span, bounce);
    }
    return r;
}

/* From memory ---------------------------------------------------------------------------------- */

/* Bytes from the place 0 on. */
static int64_t place_offset(const struct take *take, int64_t place)
{
    const struct gad_array_info *info = &take->array->info;
    int64_t offset = 0;
    for (int k = take->axis + take->n_axes - 1; k > take->axis; k--) {
        offset += place % info->shape[k] * info->strides[k];
        place /= info->shape[k];
    }
    return offset + place * info->strides[take->axis];
}

/* Of the elements after: a run of bytes, or a box. */
static void lay_inner(const struct take *take, const struct take_part *part, struct box *ret)
{
    const struct gad_array_info *info = &take->array->info;
    int64_t block_stride = (int64_t)gad_dtype_size(info->dtype);
    ret->n = 0;
    for (int k = info->ndim - 1; k >= take->axis + take->n_axes; k--) {
        box_add(ret, part->count[k], block_stride, info->strides[k]);
        block_stride *= part->count[k];
    }
}

/* Of the elements before, in the same order as in the result. */
static void lay_outer(const struct take *take, const struct take_part *part, struct box *ret)
{
    int64_t block_stride = part->outer_stride;
    ret->n = 0;
    for (int k = take->axis - 1; k >= 0; k--) {
        box_add(ret, part->count[k], block_stride, take->array->info.strides[k]);
        block_stride *= part->count[k];
    }
}

void take_copy(const struct take *take, const struct take_part *part, const int64_t *places,
               size_t n)
{
    const struct gad_array_info *info = &take->array->info;
    int64_t item = (int64_t)gad_dtype_size(info->dtype);
    const char *first = take->array->data;
    struct box inner, outer, run;
    struct box_place at = {.index = {0}};
    for (int k = 0; k < info->ndim; k++)
        if (k < take->axis || k >= take->axis + take->n_axes)
            first += part->start[k] * info->strides[k];
    lay_inner(take, part, &inner);
    lay_outer(take, part, &outer);
    run = inner;
    bool is_run = box_take_run(&run, item) == (int64_t)part->inner_bytes;
    do {
        char *to = part->to + at.offset[0];
        const char *from = first + at.offset[1];
        for (size_t i = 0; i < n; i++, to += part->inner_bytes) {
            const char *element = from + place_offset(take, places[i]);
            if (is_run) {
                copy_element(to, element, part->inner_bytes);
            } else {
                run = inner;
                box_copy(&run, to, element, (size_t)item, false);
            }
        }
    } while (box_next(outer.axes, outer.n, &at));
}
