/* What the destination of a movement has beside its elements: names of axes, coordinates, units.
 *
 * A coordinate goes where its elements go: along each axis every piece says which index of its
 * source comes where, so what is joined, reversed, rolled or repeated keeps the coordinates that it
 * had. An axis whose pieces disagree, or which is not covered by them, as in a constant border, has
 * a name alone; one without a name in all of them leaves the destination without names.
 *
 * How axes grow is known before, with the axes of the result: its file is made to.
 *
 * Called by move.c before it commits, and by the verbs (move_take_limits()).
 */
#include "client/formats/formats.h"
#include "client/lib/jobs/carry.h"
#include "client/lib/views/move.h"
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
