/* Blocks of what is taken.
 *
 * A block has a box of the indices and a part of the axes around them. Its indices are read, and
 * its elements gathered in the order of their places; where blocks are better made together, many
 * at a time (take_window.c). From memory they are copied as they come.
 *
 * Called by the pump's threads, several at once where the array and the indices allow that.
 */
#include "client/lib/take/take.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a block takes of each place; returns how many indices it has. */
static size_t set_part(const struct take *take, const int64_t *start, const int64_t *count,
                       struct take_part *part)
{
    int behind = take->axis + take->n_index_axes;
    size_t n = 1;
    part->n_outer = 1;
    part->inner_bytes = gad_dtype_size(take->array->info.dtype);
    for (int i = 0; i < take->axis; i++) {
        part->start[i] = start[i];
        part->count[i] = count[i];
        part->n_outer *= count[i];
    }
    for (int i = 0; i < take->n_axes; i++) {
        part->start[take->axis + i] = 0;
        part->count[take->axis + i] = 1;
    }
    for (int i = 0; i < take->n_after; i++) {
        part->start[take->axis + take->n_axes + i] = start[behind + i];
        part->count[take->axis + take->n_axes + i] = count[behind + i];
        part->inner_bytes *= (size_t)count[behind + i];
    }
    for (int i = 0; i < take->n_index_axes; i++)
        n *= (size_t)count[take->axis + i];
    part->outer_stride = (int64_t)(n * part->inner_bytes);
    return n;
}

int take_block(struct take *take, const int64_t *start, const int64_t *count, char *block)
{
    struct take_part part;
    size_t n = set_part(take, start, count, &part);
    struct row_order order;
    _cleanup_free_ int64_t *places = malloc(n * sizeof(*places));
    int r = places ? take_places(take, start + take->axis, count + take->axis, places) : ENOMEM;
    if (r)
        return r;
    part.to = block;
    if (take->is_in_memory) {
        take_copy(take, &part, places, n);
        return 0;
    }
    if (row_order_init(&order, n, places))
        return ENOMEM;
    r = take_gather(take, &part, order.wanted, n);
    row_order_deinit(&order);
    return r;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct take *take = state;
    int ndim = take->axis + take->n_index_axes + take->n_after;
    bool is_done = false;
    for (int i = 0; i < ndim; i++)
        if (count[i] == 0)
            return 0;
    int r = take->window ? take_window_fill(take, start, count, ret_block, &is_done) : 0;
    return r || is_done ? r : take_block(take, start, count, ret_block);
}

/* What failed ---------------------------------------------------------------------------------- */

static void explain_index(const struct take *take, struct gad_error *error)
{
    char argument[sizeof(error->argument)], place[96], value[24];
    const char *name = take->indices->spec;
    memcpy(argument, error->argument, sizeof(argument)); /* error_set() begins with an empty one */
    array_format_shape(take->n_index_axes, take->failed_at, place, sizeof(place));
    snprintf(value, sizeof(value), take->is_unsigned ? "%" PRIu64 : "%" PRId64, take->value);
    error_set(
        error, GAD_BAD_INDEX, argument,
        "%.120s%sindex %s at place %s of the indices is out of bounds for %s %d with size %" PRId64,
        name ? name : "", name ? ": " : "", value, place,
        take->n_axes > 1 ? "the axes from" : "axis", take->axis, take->length);
    error_expected(error, "%" PRId64 " to %" PRId64, -take->length, take->length - 1);
    error_found(error, "%s at place %s", value, place);
}

static void explain(void *state, struct gad_error *error)
{
    struct take *take = state;
    const struct gad_array *unread = take->unread;
    if (take->has_failed)
        explain_index(take, error);
    else if (unread && unread->provider && unread->provider->explain)
        unread->provider->explain(unread->provider_state, error);
    take->has_failed = false; /* the next job's is its own */
    take->unread = NULL;
}

const struct provider take_provider = {.is_concurrent = true, .fill = fill, .explain = explain};
const struct provider take_provider_alone = {.fill = fill, .explain = explain};
