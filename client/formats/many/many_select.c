/* A selection of all members together, made of selections of each.
 *
 * What is selected along the joined axis are members, and of each some elements with the same step:
 *
 *     members 0..100, 100..200, 200..300      [250:20:-60]  is  250, 190, 130, 70
 *     member 2: [50:49:-1]    member 1: [90:29:-60]    member 0: [70:69:-1]
 *
 * The rest of the selection is that of every member. So each format selects as it does for one
 * file, a file that has no part in it is not opened again, and an index along the joined axis
 * leaves one file, which is then read as if it had been named alone.
 *
 * Called by many.c, for patterns: their members have no selections of their own.
 */
#include "client/formats/many/many_impl.h"
#include "client/formats/selection.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_CHARS 4096 /* enough for the longest selection */

/* The first of the selected elements, counted from 0, that is `distance` or more from the start. */
static int64_t first_at(int64_t distance, int64_t step)
{
    return distance > 0 ? divide_up_i64(distance, step) : 0;
}

/* A member's part of what is taken along the joined axis; false: it has none. */
static bool take_part(const struct selection_axis *whole, const struct member *member,
                      struct selection_axis *ret_part)
{
    bool is_down = whole->step < 0;
    int64_t step = is_down ? -whole->step : whole->step, last = member->first + member->length - 1;
    int64_t low = first_at(is_down ? whole->start - last : member->first - whole->start, step);
    int64_t end =
        first_at(is_down ? whole->start - member->first + 1 : last + 1 - whole->start, step);
    int64_t n = min_i64(end, whole->count) - low;
    if (n <= 0)
        return false;
    *ret_part = (struct selection_axis){
        .start = whole->start + low * whole->step - member->first,
        .step = n > 1 ? whole->step : 1,
        .count = n,
        .is_dropped = whole->is_dropped,
    };
    return true;
}

/* The selection of members that do not have the joined axis. */
static void drop_axis(struct selection *selection, int axis)
{
    int n = 0;
    selection->source_ndim--;
    for (int i = axis; i < selection->source_ndim; i++)
        selection->axes[i] = selection->axes[i + 1];
    for (int i = 0; i < selection->ndim; i++) {
        int of = selection->axis_of[i];
        if (of != axis)
            selection->axis_of[n++] = of > axis ? of - 1 : of;
    }
    selection->ndim = n;
}

/* Whether an axis is taken as it is. */
static bool is_all(const struct selection_axis *axis, int64_t length)
{
    return !axis->is_dropped && axis->start == 0 && axis->step == 1 && axis->count == length;
}

/* Whether all axes but one (-1: but none) are taken as they are, and there is no new one. */
static bool is_all_but(const struct selection *selection, int but, const struct many *many)
{
    if (selection->ndim != many->form.ndim)
        return false;
    for (int i = 0; i < selection->source_ndim; i++)
        if (selection->axis_of[i] != i ||
            (i != but && !is_all(&selection->axes[i], many->form.shape[i])))
            return false;
    return true;
}

static size_t write_axis(const struct selection_axis *axis, char *to, size_t n_bytes)
{
    int64_t stop = axis->start + (axis->count - 1) * axis->step + (axis->step < 0 ? -1 : 1);
    if (axis->is_dropped)
        return (size_t)snprintf(to, n_bytes, "%" PRId64, axis->start);
    if (stop < 0)
        return (size_t)snprintf(to, n_bytes, "%" PRId64 "::%" PRId64, axis->start, axis->step);
    return (size_t)snprintf(to, n_bytes, "%" PRId64 ":%" PRId64 ":%" PRId64, axis->start, stop,
                            axis->step);
}

/* As text, in which the axes of the member come in order. */
static void write_selection(const struct selection *selection, char *to, size_t n_bytes)
{
    size_t used = 0;
    int i = 0, axis = 0;
    while (i < selection->ndim || axis < selection->source_ndim) {
        used += (size_t)snprintf(to + used, n_bytes - used, "%s", used > 0 ? "," : "[");
        if (i < selection->ndim && selection->axis_of[i] == SELECTION_NEW_AXIS) {
            used += (size_t)snprintf(to + used, n_bytes - used, "newaxis");
            i++;
            continue;
        }
        i += !selection->axes[axis].is_dropped;
        used += write_axis(&selection->axes[axis++], to + used, n_bytes - used);
    }
    snprintf(to + used, n_bytes - used, "]");
    assert(used + 1 < n_bytes);
}

static int name_selection(struct member *member, const struct selection *selection)
{
    char text[TEXT_CHARS], *name;
    if (selection->source_ndim == 0 && selection->ndim == 0)
        return 0;
    write_selection(selection, text, sizeof(text));
    if (asprintf(&name, "%s%s", member->name, text) < 0)
        return -ENOMEM;
    member->selection_at = strlen(member->name);
    free(member->name);
    member->name = name;
    return 0;
}

static int64_t bytes_of_element(const struct many *many)
{
    int64_t n_bytes = (int64_t)dtype_size(many->form.dtype);
    for (int i = many->axis + 1; i < many->form.ndim; i++)
        n_bytes *= many->form.shape[i];
    return n_bytes;
}

/* is_whole: but along the joined axis the member is taken as it is. */
static int lay(struct many *many, struct member *member, const struct selection *whole,
               const struct selection_axis *part, bool is_whole)
{
    struct selection own = *whole;
    if (is_whole && (many->is_new_axis || is_all(part, member->length)))
        return 0;
    member->is_plain &= is_whole && part->step == 1 && many->axis == 0 && !member->is_fortran;
    if (member->is_plain)
        member->offset_bytes += (uint64_t)(part->start * bytes_of_element(many));
    own.axes[many->axis] = *part;
    if (many->is_new_axis)
        drop_axis(&own, many->axis);
    return name_selection(member, &own);
}

/* The i-th in the order in which they are selected. */
static struct member *member_at(struct many *many, size_t i, bool is_down)
{
    return &many->members[is_down ? many->n_members - 1 - i : i];
}

/* The members that have a part come first, in the order of the selection. */
static int lay_all(struct many *many, const struct selection *selection)
{
    const struct selection_axis *along = &selection->axes[many->axis];
    bool is_whole = is_all_but(selection, many->axis, many);
    struct member *kept = calloc(many->n_members, sizeof(*kept));
    size_t n_kept = 0;
    int64_t length = 0;
    int r = kept ? 0 : -ENOMEM;
    for (size_t i = 0; i < many->n_members && r == 0; i++) {
        struct member *member = member_at(many, i, along->step < 0);
        struct selection_axis part;
        if (member->length == 0 || !take_part(along, member, &part))
            continue;
        r = lay(many, member, selection, &part, is_whole);
        member->first = length;
        member->length = part.count;
        length += part.count;
        kept[n_kept++] = *member;
        *member = (struct member){.path = NULL};
    }
    for (size_t i = 0; kept && i < many->n_members; i++)
        member_deinit(&many->members[i]);
    if (kept) {
        free(many->members);
        many->members = kept;
        many->n_allocated = many->n_members;
        many->n_members = n_kept;
    }
    return r;
}

static void set_form(struct many *many, const struct selection *selection)
{
    struct array *form = &many->form;
    int axis = many->axis, own_axes[ARRAY_MAX_NDIM];
    memcpy(own_axes, many->own_axes, sizeof(own_axes));
    many->length = selection->axes[axis].count;
    form->ndim = selection->ndim;
    memset(form->shape, 0, sizeof(form->shape));
    for (int i = 0; i < form->ndim; i++) {
        int of = selection->axis_of[i];
        form->shape[i] = selection_size(selection, i);
        many->own_axes[i] = of < 0 ? -1 : own_axes[of];
        many->starts[i] = of < 0 ? 0 : selection->axes[of].start;
        many->steps[i] = of < 0 ? 1 : selection->axes[of].step;
        if (of == axis)
            many->axis = i;
    }
    many->member_ndim = form->ndim - many->is_new_axis;
}

/* Chunks that are whole stay so, and none is cut at the beginning of a member. */
static bool keeps_chunks(const struct many *many, const struct selection *selection)
{
    const struct selection_axis *along = &selection->axes[many->axis];
    return is_all_but(selection, many->axis, many) && !along->is_dropped && along->step == 1 &&
           along->start % many->chunk_shape[many->axis] == 0;
}

int many_select(struct many *many, const char *text, size_t selection_at, bool *ret_is_one,
                struct gad_error *error)
{
    struct selection selection;
    int r =
        selection_read(text, selection_at, many->form.ndim, many->form.shape, &selection, error);
    if (r)
        return r;
    *ret_is_one = selection.axes[many->axis].is_dropped && !selection_is_empty(&selection);
    many->has_chunks = many->has_chunks && keeps_chunks(many, &selection);
    if (selection_is_empty(&selection))
        many_forget_members(many);
    else
        r = lay_all(many, &selection);
    set_form(many, &selection);
    return r < 0 ? error_from_errno(error, -r, text, "a selection") : r;
}
