/* From pieces of a movement to views that a request can name.
 *
 * A piece is two views of the same shape, one of its source and one of the destination. Axes of one
 * element are left out of both; a segment that is repeated is two axes of the destination. A piece
 * that is all of its source names the source itself, so that chunks are read where they are.
 *
 * A request takes pieces as long as it has room for their passes (each shape of pieces is one), and
 * as the daemon can tell that they lie apart. Views are made for the request
 * that needs them, since each of a file has a descriptor.
 *
 * Called by move.c.
 */
#include "client/lib/views/move_request.h"
#include "client/lib/views/view.h"
#include "proto/overlap.h"
#include "proto/util.h"

#include <string.h>

#define MAX_PASSES 8 /* of one job */

/* Views ---------------------------------------------------------------------------------------- */

/* Both views of a piece while it is made. */
struct views {
    int ndim;
    struct gad_view_axis from[ARRAY_MAX_NDIM + 1], to[ARRAY_MAX_NDIM + 1];
    int64_t from_start[ARRAY_MAX_NDIM], to_start[ARRAY_MAX_NDIM];
};

static void add_axis(struct views *views, struct gad_view_axis from, struct gad_view_axis to)
{
    if (views->ndim <= ARRAY_MAX_NDIM) {
        views->from[views->ndim] = from;
        views->to[views->ndim] = to;
    }
    views->ndim++;
}

static void make_views(struct views *views, int ndim, const int *source_axes,
                       const struct move_segment *segments, bool is_whole)
{
    *views = (struct views){.ndim = 0};
    for (int i = 0; i < ndim; i++) {
        const struct move_segment *s = &segments[i];
        int source = source_axes[i];
        views->to_start[i] = s->to;
        if (source >= 0)
            views->from_start[source] = s->from;
        if (s->n_repeats > 1)
            add_axis(views, (struct gad_view_axis){-1, s->n_repeats, 0},
                     (struct gad_view_axis){i, s->n_repeats, s->count});
        if (s->count > 1 || (is_whole && source >= 0)) {
            bool is_still = source < 0 || s->step == 0;
            add_axis(views, (struct gad_view_axis){is_still ? -1 : source, s->count, s->step},
                     (struct gad_view_axis){i, s->count, 1});
        }
    }
}

static bool is_whole_source(const struct gad_array *source, int ndim, const int *source_axes,
                            const struct move_segment *segments)
{
    int n = 0;
    for (int i = 0; i < ndim; i++) {
        const struct move_segment *s = &segments[i];
        if (s->n_repeats != 1 || (source_axes[i] < 0 && s->count != 1))
            return false;
        if (source_axes[i] < 0)
            continue;
        if (source_axes[i] != n++ || s->from != 0 || s->step != 1 ||
            s->count != source->info.shape[source_axes[i]])
            return false;
    }
    return n == source->info.ndim;
}

static bool is_whole_target(const struct gad_array *to, const struct views *views)
{
    if (views->ndim != to->info.ndim)
        return false;
    for (int i = 0; i < views->ndim; i++)
        if (views->to[i].axis != i || views->to_start[i] != 0 ||
            views->to[i].count != to->info.shape[i])
            return false;
    return true;
}

/* Parts ---------------------------------------------------------------------------------------- */

static void part_release(struct move_part *part)
{
    gad_array_release(part->from);
    gad_array_release(part->to);
    *part = (struct move_part){NULL, NULL};
}

static int part_init(struct move_part *part, const struct move *move,
                     const struct move_piece *piece, struct gad_error *error)
{
    struct views views;
    int ndim = move->to->info.ndim;
    bool is_whole = is_whole_source(piece->source, ndim, piece->source_axes, piece->segments);
    *part = (struct move_part){NULL, NULL};
    make_views(&views, ndim, piece->source_axes, piece->segments, is_whole);
    if (views.ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_LIMIT_EXCEEDED, NULL, "a piece has more than %d dimensions",
                         ARRAY_MAX_NDIM);
    int r = 0;
    if (is_whole)
        part->from = array_ref(piece->source);
    else
        r = view_new(piece->source, views.from_start, views.ndim, views.from, &part->from, error);
    if (r == 0 && is_whole_target(move->to, &views))
        part->to = array_ref(move->to);
    else if (r == 0)
        r = view_new(move->to, views.to_start, views.ndim, views.to, &part->to, error);
    if (r)
        part_release(part);
    return r;
}

/* Requests ------------------------------------------------------------------------------------- */

static bool is_of_shape(const struct gad_array *a, const struct gad_array *b)
{
    return a->info.ndim == b->info.ndim &&
           memcmp(a->info.shape, b->info.shape, sizeof(a->info.shape)) == 0;
}

static int64_t place_of(const struct gad_array *array)
{
    return array->data ? (int64_t)(uintptr_t)array->data : (int64_t)array->offset_bytes;
}

/* Whether the daemon takes it beside the others: that many passes, and a place that it can tell
 * from theirs. *ret_is_pass: no other is of this shape. */
static bool fits(const struct move_request *request, const struct move_part *part,
                 bool *ret_is_pass)
{
    struct array described = array_described(part->to);
    *ret_is_pass = true;
    for (unsigned i = 0; i < request->n; i++) {
        const struct gad_array *other = request->parts[i].to;
        struct array of_other = array_described(other);
        if (!array_is_apart(&of_other, place_of(other), &described, place_of(part->to)))
            return false;
        if (is_of_shape(other, part->to))
            *ret_is_pass = false;
    }
    return request->n_passes + *ret_is_pass <= MAX_PASSES;
}

void move_request_deinit(struct move_request *request)
{
    while (request->n > 0)
        part_release(&request->parts[--request->n]);
}

int move_request_init(struct move_request *request, const struct move *move, unsigned first,
                      struct gad_error *error)
{
    *request = (struct move_request){.n = 0};
    while (request->n < REQUEST_MAX_OUTPUTS && first + request->n < move->n_pieces) {
        struct move_part part;
        bool is_pass;
        int r = part_init(&part, move, &move->pieces[first + request->n], error);
        if (r) {
            move_request_deinit(request);
            return r;
        }
        if (!fits(request, &part, &is_pass) && request->n > 0) {
            part_release(&part);
            return 0;
        }
        request->n_passes += is_pass;
        request->parts[request->n++] = part;
    }
    return 0;
}
