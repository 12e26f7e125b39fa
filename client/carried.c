/* What is written beside the elements of a new array: keeping it, and which attributes it has.
 *
 * Wrong units are worse than none. Where elements are moved as they are stored, what unpacks them
 * goes with them, or their units do not: a source with a scale has its units only together with the
 * scale. Of several sources an attribute is carried where all have the same.
 *
 * Nothing here fails a job: where memory is short less is carried.
 */
#include "client/carried.h"
#include "client/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Keeping ---- */

struct carried *carried_new(void)
{
    return calloc(1, sizeof(struct carried));
}

static void free_attribute(struct meaning_attribute *attribute)
{
    free(attribute->name);
    free(attribute->text);
    free(attribute->values);
}

struct carried *carried_free(struct carried *carried)
{
    if (!carried)
        return NULL;
    for (int i = 0; i < ARRAY_MAX_NDIM; i++) {
        free(carried->dimensions[i]);
        coordinate_free(carried->coordinates[i]);
    }
    for (unsigned i = 0; i < carried->n_attributes; i++)
        free_attribute(&carried->attributes[i]);
    free(carried->attributes);
    free(carried);
    return NULL;
}

struct carried_coordinate *coordinate_new(enum gad_dtype dtype, int64_t n,
                                          struct meaning_attributes *attributes)
{
    struct carried_coordinate *coordinate = calloc(1, sizeof(*coordinate));
    if (!coordinate)
        return NULL;
    coordinate->dtype = dtype;
    coordinate->n = n;
    coordinate->values = calloc((size_t)n + 1, gad_dtype_size(dtype));
    if (!coordinate->values) {
        free(coordinate);
        return NULL;
    }
    coordinate->attributes = attributes;
    if (attributes)
        attributes->n_refs++;
    return coordinate;
}

struct carried_coordinate *coordinate_free(struct carried_coordinate *coordinate)
{
    if (!coordinate)
        return NULL;
    if (coordinate->attributes)
        meaning_attributes_unref(coordinate->attributes);
    free(coordinate->values);
    free(coordinate);
    return NULL;
}

bool coordinates_are_equal(const struct carried_coordinate *a, const struct carried_coordinate *b)
{
    return a->dtype == b->dtype && a->n == b->n &&
           memcmp(a->values, b->values, (size_t)a->n * gad_dtype_size(a->dtype)) == 0;
}

bool coordinates_go_together(const struct carried_coordinate *a, const struct carried_coordinate *b)
{
    return a->dtype == b->dtype && meaning_attributes_have_same_units(a->attributes, b->attributes);
}

bool coordinate_append(struct carried_coordinate *to, const struct carried_coordinate *more)
{
    size_t n_item = gad_dtype_size(to->dtype), n = (size_t)to->n * n_item;
    if (!coordinates_go_together(to, more))
        return false;
    char *values = realloc(to->values, n + ((size_t)more->n + 1) * n_item);
    if (!values)
        return false;
    memcpy(values + n, more->values, (size_t)more->n * n_item);
    to->values = values;
    to->n += more->n;
    return true;
}

static bool copy_attribute(const struct meaning_attribute *from, struct meaning_attribute *ret)
{
    *ret = *from;
    ret->text = NULL;
    ret->values = NULL;
    ret->name = strdup(from->name);
    if (from->text)
        ret->text = strdup(from->text);
    if (from->n_values > 0)
        ret->values = malloc(from->n_values * sizeof(*ret->values));
    if (ret->values)
        memcpy(ret->values, from->values, from->n_values * sizeof(*ret->values));
    if (ret->name && !from->text == !ret->text && (from->n_values == 0 || ret->values))
        return true;
    free_attribute(ret);
    return false;
}

bool carried_add_attribute(struct carried *carried, const struct meaning_attribute *attribute)
{
    struct meaning_attribute *list =
        realloc(carried->attributes, (carried->n_attributes + 1) * sizeof(*list));
    if (!list)
        return false;
    carried->attributes = list;
    if (!copy_attribute(attribute, &list[carried->n_attributes]))
        return false;
    carried->n_attributes++;
    return true;
}

/* ---- Which attributes ---- */

static bool is_scaled(const struct meaning *meaning)
{
    return meaning_find(meaning, "scale_factor") || meaning_find(meaning, "add_offset") ||
           meaning_find(meaning, "_Unsigned");
}

static const struct meaning_attribute *find_seen(const struct gad_array *array, const char *name)
{
    if (meaning_is_packing(name) && meaning_unpacking(array))
        return NULL;
    return meaning_find(array->meaning, name);
}

/* Whether the others have the same, as they are seen. */
static bool is_common(const struct meaning_attribute *attribute, unsigned n,
                      struct gad_array *const *sources)
{
    for (unsigned i = 0; i < n; i++) {
        const struct meaning_attribute *found = find_seen(sources[i], attribute->name);
        if (!found || !meaning_attribute_is_equal(attribute, found))
            return false;
    }
    return true;
}

/* Whether what is stored means the same in all of them, and can be said of this dtype. */
static bool has_common_packing(unsigned n, struct gad_array *const *sources, enum gad_dtype dtype)
{
    for (unsigned i = 0; i < n; i++) {
        const struct meaning *meaning = sources[i]->meaning;
        bool is_cast = meaning_dtype(sources[i]) != dtype;
        for (unsigned k = 0; meaning && k < meaning->attributes->n; k++) {
            const struct meaning_attribute *own = &meaning->attributes->list[k];
            if (!meaning_is_packing(own->name) || !find_seen(sources[i], own->name))
                continue;
            if (!is_common(own, n, sources) || is_cast)
                return false;
        }
    }
    return true;
}

/* A fill value is of the array's own dtype, or means nothing. */
static bool is_writable(const struct meaning_attribute *attribute, enum gad_dtype dtype)
{
    return strcmp(attribute->name, "_FillValue") != 0 ||
           (attribute->is_dtype_known && attribute->dtype == dtype && attribute->n_values == 1);
}

static void add_fill_of_nan(struct carried *carried, enum gad_dtype dtype)
{
    struct gad_scalar nan = {.kind = GAD_SCALAR_FLOAT, .float_value = NAN};
    const struct meaning_attribute fill = {.name = (char *)"_FillValue",
                                           .n_values = 1,
                                           .values = &nan,
                                           .dtype = dtype,
                                           .is_dtype_known = true};
    if (dtype == GAD_FLOAT32 || dtype == GAD_FLOAT64)
        (void)!carried_add_attribute(carried, &fill);
}

void carried_take_attributes(struct carried *carried, unsigned n, struct gad_array *const *sources,
                             enum gad_dtype dtype)
{
    const struct meaning *meaning = sources[0]->meaning;
    bool has_packing = has_common_packing(n, sources, dtype), has_units = true, has_nan = false;
    for (unsigned i = 0; i < n; i++) {
        const struct meaning_packing *unpacking = meaning_unpacking(sources[i]);
        has_units = has_units && (has_packing || unpacking || !is_scaled(sources[i]->meaning));
        has_nan = has_nan || unpacking;
    }
    for (unsigned i = 0; meaning && i < meaning->attributes->n; i++) {
        const struct meaning_attribute *own = &meaning->attributes->list[i];
        if (find_seen(sources[0], own->name) && is_common(own, n, sources) &&
            (meaning_is_packing(own->name) ? has_packing && is_writable(own, dtype) : has_units))
            (void)!carried_add_attribute(carried, own);
    }
    if (has_nan)
        add_fill_of_nan(carried, dtype);
}

void carried_take_units(struct carried *carried, struct gad_array *source)
{
    const struct meaning_attribute *units = source->meaning ? find_seen(source, "units") : NULL;
    if (units && (meaning_unpacking(source) || !is_scaled(source->meaning)))
        (void)!carried_add_attribute(carried, units);
}
