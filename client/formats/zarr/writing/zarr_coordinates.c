/* Coordinates of a new array.
 *
 * As xarray has them: lat(lat) is an array `lat` of one axis with that name, in the group of those
 * that have an axis `lat`. One that is there and says the same is shared by all of them; where it
 * says something else the new array's axis is lat_2, and so on. An array that is the store itself
 * has no group, and names of axes alone.
 *
 * Each is an output like any other (zarr_output.c), made after the array that it belongs to: who
 * reads the store meanwhile finds the array without it.
 *
 * Called by zarr_output.c.
 */
#include "client/formats/zarr/writing/zarr_coordinates.h"
#include "client/carried.h"
#include "client/formats/format_impl.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MAX_NUMBER 99

/* "/group/name"; NULL: no memory. */
static char *dataset_of(const struct zarr_place *place, const char *name)
{
    char *dataset = strdup(""), *longer;
    for (unsigned i = 1; dataset && i < place->n_parts; i++) {
        const char *part = i + 1 < place->n_parts ? place->parts[i] : name;
        if (asprintf(&longer, "%s/%s", dataset, part) < 0)
            longer = NULL;
        free(dataset);
        dataset = longer;
    }
    return dataset;
}

static struct spec spec_of(const struct gad_array *array, char *dataset)
{
    return (struct spec){
        .format = &format_zarr, .path = (char *)(uintptr_t)array->info.path, .dataset = dataset};
}

enum found { FOUND_NOTHING, FOUND_SAME, FOUND_OTHER };

/* Whether an array of the axis' name is its coordinate, or could be: without values of our own any
 * of that length is. */
static bool says_the_same(const struct gad_array *array, int axis, const char *name,
                          struct gad_array *found)
{
    const struct carried_coordinate *own = array->carried->coordinates[axis];
    if (found->info.ndim != 1 || found->info.shape[0] != array->info.shape[axis])
        return false;
    struct carried_coordinate *theirs = own ? format_coordinate_of(found, name) : NULL;
    bool is_same = !own || (theirs && coordinates_are_equal(own, theirs) &&
                            coordinates_go_together(own, theirs));
    coordinate_free(theirs);
    return is_same;
}

static enum found find(const struct gad_array *array, int axis, const char *name, char *dataset)
{
    struct gad_array *found;
    struct gad_error error;
    const struct spec spec = spec_of(array, dataset);
    int r = format_zarr.open(NULL, &spec, name, false, &found, &error);
    if (r)
        return r == GAD_NOT_FOUND ? FOUND_NOTHING : FOUND_OTHER;
    bool is_same = says_the_same(array, axis, name, found);
    gad_array_release(found);
    return is_same ? FOUND_SAME : FOUND_OTHER;
}

/* Another axis of the array has this name. */
static bool is_used(const struct carried *carried, int axis, const char *name)
{
    for (int i = 0; i < axis; i++)
        if (strcmp(carried->dimensions[i], name) == 0)
            return true;
    return false;
}

static int name_axis(struct gad_array *array, const struct zarr_place *place, int axis)
{
    struct carried *carried = array->carried;
    const char *own = place->parts[place->n_parts - 1];
    for (int number = 1; number <= MAX_NUMBER; number++) {
        _cleanup_free_ char *name = NULL;
        int n = number == 1 ? asprintf(&name, "%s", carried->dimensions[axis])
                            : asprintf(&name, "%s_%d", carried->dimensions[axis], number);
        _cleanup_free_ char *dataset = n < 0 ? NULL : dataset_of(place, name);
        if (n < 0)
            name = NULL;
        if (!dataset)
            return -ENOMEM;
        bool is_own = strcmp(name, own) == 0; /* as lat(lat) itself, or t(t, x) */
        if (is_own && array->info.ndim > 1)
            continue;
        if (!is_own &&
            (is_used(carried, axis, name) || find(array, axis, name, dataset) == FOUND_OTHER))
            continue;
        free(carried->dimensions[axis]);
        carried->dimensions[axis] = steal_ptr(name);
        return 0;
    }
    return 0;
}

int zarr_coordinates_name(struct gad_array *array, const struct zarr_place *place)
{
    bool has_some = array->carried && array->carried->has_dimensions && place->n_parts > 1;
    int r = 0;
    for (int i = 0; has_some && i < array->info.ndim && r == 0; i++)
        r = name_axis(array, place, i);
    return r;
}

/* ---- Writing ---- */

static struct carried *carried_of(const struct carried_coordinate *coordinate, const char *name)
{
    struct carried *carried = carried_new();
    const struct meaning_attributes *attributes = coordinate->attributes;
    if (!carried || !(carried->dimensions[0] = strdup(name)))
        return carried_free(carried);
    carried->has_dimensions = true;
    for (unsigned i = 0; attributes && i < attributes->n; i++)
        if (!carried_add_attribute(carried, &attributes->list[i]))
            return carried_free(carried);
    return carried;
}

static int write_values(struct gad_array *made, const struct carried_coordinate *coordinate,
                        const char *name, struct gad_error *error)
{
    const int64_t start = 0;
    int r = 0;
    made->carried = carried_of(coordinate, name);
    if (!made->carried)
        return error_from_errno(error, ENOMEM, name, "coordinate");
    if (coordinate->n > 0)
        r = made->provider->drain(made->provider_state, &start, &coordinate->n, coordinate->values);
    if (r)
        return error_from_errno(error, r, name, "writing the coordinate");
    return made->commit(made, error);
}

static int write_one(const struct gad_array *array, int axis, const char *name, char *dataset,
                     struct gad_error *error)
{
    const struct carried_coordinate *coordinate = array->carried->coordinates[axis];
    const struct spec spec = spec_of(array, dataset);
    const struct storage storage = {.has_chunks = false};
    struct gad_array *made;
    int r = format_zarr.create(NULL,
                               &(struct format_target){.spec = &spec,
                                                       .name = name,
                                                       .dtype = (enum dtype)coordinate->dtype,
                                                       .ndim = 1,
                                                       .shape = &coordinate->n,
                                                       .storage = &storage},
                               &made, error);
    if (r)
        return r;
    r = write_values(made, coordinate, name, error);
    made->is_committed = r == 0;
    gad_array_release(made);
    return r;
}

int zarr_coordinates_write(const struct gad_array *array, const struct zarr_place *place,
                           struct gad_error *error)
{
    const struct carried *carried = array->carried;
    bool has_some = carried && carried->has_dimensions && place->n_parts > 1;
    int r = 0;
    for (int i = 0; has_some && i < array->info.ndim && r == 0; i++) {
        const char *name = carried->dimensions[i];
        _cleanup_free_ char *dataset = dataset_of(place, name);
        if (!dataset)
            return error_from_errno(error, ENOMEM, name, "coordinate");
        if (carried->coordinates[i] && strcmp(name, place->parts[place->n_parts - 1]) != 0 &&
            find(array, i, name, dataset) == FOUND_NOTHING)
            r = write_one(array, i, name, dataset, error);
        if (r == GAD_EXISTS) /* another output of the job was faster */
            r = 0;
    }
    return r;
}
