/* What the destination of a movement has beside its elements: names of axes, coordinates, units.
 *
 * A coordinate goes where its elements go: along each axis every piece says which index of its
 * source comes where, so what is joined, reversed, rolled or repeated keeps the coordinates that it
 * had. An axis whose pieces disagree, or which is not covered by them, as in a constant border, has
 * a name alone; one without a name in all of them leaves the destination without names.
 *
 * How axes grow is known before, with the axes of the result: its file is made to.
 *
 * Called by move.c before it commits, by the verbs (move_take_limits()), and by programs that write
 * an array piece by piece (gad_array_carry()).
 */
#include "client/formats/formats.h"
#include "client/lib/connection/client.h"
#include "client/lib/jobs/carry.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIECES      4096 /* that are looked at */
#define MAX_COORDINATES (1 << 20)

/* A coordinate along one axis of the destination, in the making. */
struct joined {
    struct carried_coordinate *made, *part; /* part: of the piece at hand */
    const struct gad_array *part_source;
    int part_axis;
    bool *is_filled;
    int64_t n_filled;
};

/* A border of one value is nobody's elements. */
static bool is_border(const struct move_piece *piece)
{
    return piece->source->info.ndim == 0;
}

static const char *axis_name(const struct gad_array *source, int axis)
{
    return source->meaning && axis >= 0 ? source->meaning->dimensions[axis] : NULL;
}

/* The name that all pieces have; NULL: there is none. */
static const char *common_name(const struct move *move, int i)
{
    const char *found = NULL;
    for (unsigned k = 0; k < move->n_pieces; k++) {
        const struct move_piece *piece = &move->pieces[k];
        const char *name = axis_name(piece->source, piece->source_axes[i]);
        if (is_border(piece))
            continue;
        if (!name || (found && strcmp(name, found) != 0))
            return NULL;
        found = name;
    }
    return found;
}

/* The coordinate along all of the piece's source. Pieces of one source follow each other. */
static bool load_part(struct joined *joined, const struct move_piece *piece, int i)
{
    int axis = piece->source_axes[i];
    if (joined->part_source != piece->source || joined->part_axis != axis) {
        coordinate_free(joined->part);
        joined->part = format_coordinate(piece->source, axis);
        joined->part_source = piece->source;
        joined->part_axis = axis;
    }
    return joined->part != NULL;
}

/* False: it disagrees with another piece. */
static bool put_value(struct joined *joined, int64_t to, int64_t from)
{
    size_t n_bytes = gad_dtype_size(joined->made->dtype);
    char *at = (char *)joined->made->values + (size_t)to * n_bytes;
    const char *value = (const char *)joined->part->values + (size_t)from * n_bytes;
    if (joined->is_filled[to])
        return memcmp(at, value, n_bytes) == 0;
    memcpy(at, value, n_bytes);
    joined->is_filled[to] = true;
    joined->n_filled++;
    return true;
}

static bool put_piece(struct joined *joined, const struct move_piece *piece, int i, int64_t n)
{
    const struct move_segment *s = &piece->segments[i];
    if (!load_part(joined, piece, i))
        return false;
    if (!joined->made)
        joined->made = coordinate_new(joined->part->dtype, n, joined->part->attributes);
    if (!joined->made || !coordinates_go_together(joined->made, joined->part))
        return false;
    for (int64_t repeat = 0; repeat < s->n_repeats; repeat++)
        for (int64_t k = 0; k < s->count; k++)
            if (!put_value(joined, s->to + repeat * s->count + k, s->from + k * s->step))
                return false;
    return true;
}

/* NULL: there is none. */
static struct carried_coordinate *join_coordinates(const struct move *move, int i)
{
    int64_t n = move->to->info.shape[i];
    struct joined joined = {.part_axis = -1};
    if (n > MAX_COORDINATES || !(joined.is_filled = calloc((size_t)n + 1, sizeof(bool))))
        return NULL;
    bool is_whole = true;
    for (unsigned k = 0; k < move->n_pieces && is_whole; k++)
        is_whole = is_border(&move->pieces[k]) || put_piece(&joined, &move->pieces[k], i, n);
    if (!is_whole || joined.n_filled < n)
        joined.made = coordinate_free(joined.made);
    coordinate_free(joined.part);
    free(joined.is_filled);
    return joined.made;
}

static void add_axes(struct carried *carried, const struct move *move)
{
    int ndim = move->to->info.ndim, n_named = 0;
    while (n_named < ndim) {
        const char *name = common_name(move, n_named);
        if (!name || !(carried->dimensions[n_named] = strdup(name)))
            return;
        n_named++;
    }
    for (int i = 0; i < ndim; i++)
        carried->coordinates[i] = join_coordinates(move, i);
    carried->has_dimensions = ndim > 0;
}

static void add_attributes(struct carried *carried, const struct move *move)
{
    unsigned n = 0;
    struct gad_array **sources = calloc(move->n_pieces + 1, sizeof(struct gad_array *));
    for (unsigned k = 0; sources && k < move->n_pieces; k++) {
        struct gad_array *source = move->pieces[k].source;
        if (!is_border(&move->pieces[k]) && (n == 0 || sources[n - 1] != source))
            sources[n++] = source;
    }
    if (n > 0)
        carried_take_attributes(carried, n, sources, move->to->info.dtype);
    free(sources);
}

void move_take_limits(struct move_result *result, unsigned n_sources,
                      struct gad_array *const *sources, const int *source_axes)
{
    struct axis_limits limits = {.chunks = {0}};
    for (int i = 0; i < result->ndim; i++) {
        int axis = source_axes ? source_axes[i] : i;
        const char *name = axis_name(sources[0], axis);
        for (unsigned k = 0; k < n_sources; k++) {
            const char *other = axis_name(sources[k], axis);
            if (!name || !other || strcmp(name, other) != 0)
                return;
            limits.is_unlimited[i] |= sources[k]->meaning->limits.is_unlimited[axis];
        }
        limits.chunks[i] = sources[0]->meaning->limits.chunks[axis];
    }
    result->limits = limits;
}

static bool is_silent(const struct move *move)
{
    for (unsigned k = 0; k < move->n_pieces; k++)
        if (move->pieces[k].source->meaning)
            return false;
    return true;
}

void move_carry(struct move *move)
{
    struct gad_array *to = move->to;
    if (!to->commit || to->is_committed || !carry_is_written(to->info.format) || is_silent(move) ||
        move->n_pieces > MAX_PIECES)
        return;
    struct carried *carried = carried_new();
    if (!carried)
        return;
    add_attributes(carried, move);
    add_axes(carried, move);
    carried_free(to->carried);
    to->carried = carried;
}

/* ---- What is written piece by piece ---- */

/* An array as a view of itself, or of what it is one of. */
static struct view_blocks as_view(struct gad_array *array)
{
    const struct view_blocks *view = view_blocks_of(array);
    struct view_blocks whole = {.base = array, .ndim = array->info.ndim};
    for (int i = 0; i < whole.ndim; i++)
        whole.axes[i] = (struct gad_view_axis){i, array->info.shape[i], 1};
    return view ? *view : whole;
}

/* One axis of the views; they may go several times along an axis of the destination. */
static bool add_view_axis(struct move_segment *segment, int *source_axis,
                          const struct gad_view_axis *to, const struct gad_view_axis *from,
                          int64_t start)
{
    if (to->step == 1 && segment->count < 0) {
        segment->count = to->count;
        segment->from = from->axis < 0 ? 0 : start;
        segment->step = from->step;
        *source_axis = from->axis;
        return true;
    }
    segment->n_repeats *= to->count;
    return from->axis < 0 || from->step == 0;
}

/* False: this is not how movements put pieces. The last axes lie closest. */
static bool find_segments(const struct view_blocks *to, const struct view_blocks *from,
                          struct move_segment *segments, int *source_axes)
{
    for (int i = 0; i < to->base->info.ndim; i++) {
        segments[i] = (struct move_segment){.to = to->start[i], .count = -1, .n_repeats = 1};
        source_axes[i] = -1;
    }
    for (int k = to->ndim - 1; k >= 0; k--) {
        const struct gad_view_axis *axis = &to->axes[k], *of = &from->axes[k];
        if (axis->axis < 0)
            return false;
        struct move_segment *segment = &segments[axis->axis];
        if (axis->step != 1 && (segment->count < 0 || axis->step != segment->count))
            return false;
        if (!add_view_axis(segment, &source_axes[axis->axis], axis, of,
                           of->axis < 0 ? 0 : from->start[of->axis]))
            return false;
    }
    for (int i = 0; i < to->base->info.ndim; i++)
        segments[i].count = segments[i].count < 0 ? 1 : segments[i].count;
    return true;
}

static int add_piece(struct move *move, struct gad_array *source, struct gad_array *place,
                     bool *ret_is_known, struct gad_error *error)
{
    struct move_segment segments[ARRAY_MAX_NDIM];
    int source_axes[ARRAY_MAX_NDIM];
    const struct view_blocks to = as_view(place), from = as_view(source);
    const struct gad_array_info *a = &source->info, *b = &place->info;
    if (to.base != move->to || a->ndim != b->ndim ||
        memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])) != 0)
        return error_set(error, GAD_BAD_ARGUMENT, "places",
                         "a piece is a view of the output, of its source's shape");
    *ret_is_known = find_segments(&to, &from, segments, source_axes);
    return *ret_is_known ? move_add(move, from.base, source_axes, segments, error) : 0;
}

enum gad_status gad_array_carry(struct gad_array *output, unsigned n_pieces,
                                struct gad_array *const *sources, struct gad_array *const *places,
                                struct gad_error *error)
{
    struct move move = {.to = NULL};
    bool is_known = true;
    int r = 0;
    if (!output || (n_pieces > 0 && (!sources || !places)))
        r = error_set(error, GAD_BAD_ARGUMENT, "output", "output, sources or places is NULL");
    else
        move.to = array_ref(output);
    for (unsigned i = 0; i < n_pieces && is_known && r == 0; i++)
        r = sources[i] && places[i]
                ? add_piece(&move, sources[i], places[i], &is_known, error)
                : error_set(error, GAD_BAD_ARGUMENT, "sources", "a piece is NULL");
    if (r == 0 && is_known)
        move_carry(&move);
    move_deinit(&move);
    return client_status(r, error);
}
