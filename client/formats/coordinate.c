/* Coordinates along the axes of a source: a small array of the same file, read at once.
 *
 * It is opened as any source is, by the name that the format has told, or by that of the dimension,
 * and read through its own provider. What is not what it should be is no coordinate: another number
 * of axes, a dtype that is not served, elements that are not there. Nothing here is an error: a
 * result without coordinates is a result.
 *
 * Called by the library when it knows what a new array is made of.
 */
#include "client/formats/formats.h"
#include "client/carried.h"
#include "proto/util.h"

#include <string.h>

#define MAX_BYTES (8 << 20)

static struct gad_array *open_coordinate(const char *spec)
{
    struct gad_array *found;
    struct gad_error error;
    return format_open(NULL, spec, false, &found, &error) ? NULL : found;
}

/* Whether it is one axis that has its own name. */
static bool is_coordinate(struct gad_array *found, const char *dimension)
{
    const struct gad_array_info *info = &found->info;
    const char *name = found->meaning ? found->meaning->dimensions[0] : NULL;
    return info->ndim == 1 && name && strcmp(name, dimension) == 0 && found->provider &&
           found->provider->fill && info->shape[0] <= MAX_BYTES / 8;
}

static void swap(void *values, int64_t n, size_t n_bytes)
{
    unsigned char *at = values;
    for (int64_t i = 0; i < n; i++, at += n_bytes)
        for (size_t k = 0; k < n_bytes / 2; k++) {
            unsigned char byte = at[k];
            at[k] = at[n_bytes - 1 - k];
            at[n_bytes - 1 - k] = byte;
        }
}

static struct carried_coordinate *read_all(struct gad_array *found)
{
    const int64_t start = 0, n = found->info.shape[0];
    struct carried_coordinate *all =
        coordinate_new(found->info.dtype, n, found->meaning ? found->meaning->attributes : NULL);
    if (!all)
        return NULL;
    if (n > 0 && found->provider->fill(found->provider_state, &start, &n, all->values))
        return coordinate_free(all);
    if (found->info.is_swapped)
        swap(all->values, n, gad_dtype_size(all->dtype));
    return all;
}

static struct carried_coordinate *select_of(const struct carried_coordinate *all, int64_t start,
                                            int64_t step, int64_t count)
{
    int64_t last = start + (count > 0 ? count - 1 : 0) * step;
    size_t n_bytes = gad_dtype_size(all->dtype);
    if (count > 0 && (start < 0 || start >= all->n || last < 0 || last >= all->n))
        return NULL;
    struct carried_coordinate *some = coordinate_new(all->dtype, count, all->attributes);
    for (int64_t i = 0; some && i < count; i++)
        memcpy((char *)some->values + (size_t)i * n_bytes,
               (char *)all->values + (size_t)(start + i * step) * n_bytes, n_bytes);
    return some;
}

struct carried_coordinate *format_coordinate_of(struct gad_array *array, const char *dimension)
{
    return is_coordinate(array, dimension) ? read_all(array) : NULL;
}

static struct carried_coordinate *read_one(const char *spec, const char *dimension)
{
    struct gad_array *found = open_coordinate(spec);
    struct carried_coordinate *all = found ? format_coordinate_of(found, dimension) : NULL;
    gad_array_release(found);
    return all;
}

static struct carried_coordinate *read_member(const char *spec, int axis)
{
    struct gad_array *array = open_coordinate(spec);
    struct carried_coordinate *part = array ? format_coordinate(array, axis) : NULL;
    gad_array_release(array);
    return part;
}

/* Puts it behind the others, or sees that it is what all have. Takes over part. */
static bool put_part(struct carried_coordinate **all, struct carried_coordinate *part,
                     bool is_joined)
{
    bool is_good = part && part->n <= MAX_BYTES / 8;
    if (is_good && !*all) {
        *all = part;
        return true;
    }
    if (is_good && is_joined)
        is_good = (*all)->n <= MAX_BYTES / 8 - part->n && coordinate_append(*all, part);
    else if (is_good)
        is_good = coordinates_are_equal(*all, part) && coordinates_go_together(*all, part);
    coordinate_free(part);
    return is_good;
}

/* What several arrays have along an axis of theirs: behind each other, or all the same. NULL: one
 * of them has none, or another one. */
static struct carried_coordinate *read_members(const struct meaning_attributes *of, int axis)
{
    struct carried_coordinate *all = NULL;
    for (const char *spec = of->members; *spec; spec += strlen(spec) + 1)
        if (!put_part(&all, read_member(spec, axis), axis == of->joined_axis))
            return coordinate_free(all);
    return all;
}

struct carried_coordinate *format_coordinate(const struct gad_array *array, int axis)
{
    const struct meaning *meaning = array->meaning;
    if (!meaning || !meaning->dimensions[axis] || !meaning->coordinates[axis])
        return NULL;
    struct carried_coordinate *some = NULL, *all = meaning->attributes->members
                                                       ? read_members(meaning->attributes,
                                                                      meaning->member_axes[axis])
                                                       : read_one(meaning->coordinates[axis],
                                                                  meaning->dimensions[axis]);
    if (all)
        some = select_of(all, meaning->starts[axis], meaning->steps[axis], array->info.shape[axis]);
    coordinate_free(all);
    return some;
}
