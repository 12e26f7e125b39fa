/* Attributes that say what elements mean.
 *
 * The formats read them from their files and hand them over one by one, in any order; they are kept
 * as they are (client/meaning.h), since what one means may depend on another. format.c then applies
 * what was asked for. Memory that is short on the way is told there.
 *
 * Of netCDF's two names of the value of what was not measured, `_FillValue` is the one that
 * gad_array_info has.
 *
 * Called by the formats when they open an array, and by format.c when they have.
 */
#include "client/formats/attributes.h"
#include "client/meaning.h"
#include "proto/text.h"
#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES 64 /* of one attribute: nobody names more values of what was not measured */

bool attribute_is_kept(const char *name)
{
    static const char *const kept[] = {
        "_FillValue",    "missing_value", "valid_range", "valid_min", "valid_max",
        "scale_factor",  "add_offset",    "_Unsigned",   "units",     "long_name",
        "standard_name", "calendar",      "axis",        "positive",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
        if (strcmp(kept[i], name) == 0)
            return true;
    return false;
}

static double as_double(const struct gad_scalar *scalar)
{
    if (scalar->kind == GAD_SCALAR_FLOAT)
        return scalar->float_value;
    return scalar->kind == GAD_SCALAR_UINT ? (double)scalar->uint_value : (double)scalar->int_value;
}

static void take_fill(struct gad_array *array, const struct gad_attribute *attribute)
{
    bool is_fill = strcmp(attribute->name, "_FillValue") == 0;
    if (attribute->n_values != 1 ||
        !(is_fill || (strcmp(attribute->name, "missing_value") == 0 && !array->info.has_fill)))
        return;
    array->info.has_fill = true;
    array->info.fill = as_double(attribute->values);
    array->info.exact_fill = *attribute->values;
}

/* False: no memory. */
static bool copy(const struct gad_attribute *from, struct meaning_attribute *ret)
{
    ret->name = strdup(from->name);
    if (!ret->name)
        return false;
    if (from->text) {
        ret->text = strdup(from->text);
        return ret->text != NULL;
    }
    ret->is_dtype_known = from->is_dtype_known;
    ret->dtype = from->dtype;
    if (from->n_values == 0 || from->n_values > MAX_VALUES)
        return true;
    ret->values = malloc(from->n_values * sizeof(*ret->values));
    if (!ret->values)
        return false;
    memcpy(ret->values, from->values, from->n_values * sizeof(*ret->values));
    ret->n_values = from->n_values;
    return true;
}

void attribute_take(struct gad_array *array, const struct gad_attribute *attribute)
{
    if (!attribute_is_kept(attribute->name))
        return;
    take_fill(array, attribute);
    struct meaning *meaning = meaning_of(array);
    if (!meaning || meaning_find(meaning, attribute->name)) {
        array->has_lost_meaning |= !meaning;
        return;
    }
    struct meaning_attributes *all = meaning->attributes;
    struct meaning_attribute *list = realloc(all->list, (all->n + 1) * sizeof(*list));
    if (!list) {
        array->has_lost_meaning = true;
        return;
    }
    all->list = list;
    list[all->n] = (struct meaning_attribute){NULL};
    array->has_lost_meaning |= !copy(attribute, &list[all->n]);
    if (list[all->n].name)
        all->n++;
}

/* It may be described twice: what was there goes. */
static void set_text(struct gad_array *array, char **at, const char *text)
{
    free(*at);
    *at = text ? strdup(text) : NULL;
    array->has_lost_meaning |= text && !*at;
}

/* An array of the same file, as a spec names it. */
static void set_spec(struct gad_array *array, char **at, const char *name)
{
    char *spec = NULL;
    free(steal_ptr(*at));
    if (!name || !array->info.path)
        return;
    if (asprintf(&spec, "%s:%s%s", array->info.path, name[0] == '/' ? "" : "/", name) < 0)
        array->has_lost_meaning = true;
    else
        *at = spec;
}

void attribute_take_dimensions(struct gad_array *array, const struct selection *selection,
                               const char *const *names)
{
    for (int i = 0; i < selection->ndim; i++) {
        int axis = selection->axis_of[i];
        if (axis == SELECTION_NEW_AXIS || !names[axis])
            continue;
        struct meaning *meaning = meaning_of(array);
        if (!meaning) {
            array->has_lost_meaning = true;
            return;
        }
        set_text(array, &meaning->dimensions[i], names[axis]);
        set_spec(array, &meaning->coordinates[i], names[axis]);
        meaning->starts[i] = selection->axes[axis].start;
        meaning->steps[i] = selection->axes[axis].step;
    }
}

void attribute_take_limits(struct gad_array *array, const struct selection *selection,
                           const struct axis_limits *limits)
{
    for (int i = 0; i < selection->ndim && array->meaning; i++) {
        int axis = selection->axis_of[i];
        if (axis == SELECTION_NEW_AXIS || !array->meaning->dimensions[i])
            continue;
        array->meaning->limits.is_unlimited[i] = limits->is_unlimited[axis];
        array->meaning->limits.chunks[i] = limits->chunks[axis];
    }
}

void attribute_take_coordinates(struct gad_array *array, const struct selection *selection,
                                const char *const *coordinates)
{
    for (int i = 0; i < selection->ndim && array->meaning; i++) {
        int axis = selection->axis_of[i];
        if (axis != SELECTION_NEW_AXIS)
            set_spec(array, &array->meaning->coordinates[i], coordinates[axis]);
    }
}

void attributes_join(struct gad_array *array, int axis, bool is_new_axis, char *members)
{
    struct meaning *meaning = array->meaning;
    meaning->attributes->members = members;
    meaning->attributes->joined_axis = is_new_axis ? -1 : axis;
    for (int i = 0; i < array->info.ndim; i++) {
        meaning->member_axes[i] = i - (is_new_axis && i > axis);
        meaning->starts[i] = 0;
        meaning->steps[i] = 1;
    }
}

static int refuse_factor(const struct meaning *meaning, const char *bad, const char *name,
                         struct gad_error *error)
{
    const struct meaning_attribute *found = meaning_find(meaning, bad);
    error_set(error, GAD_BAD_FORMAT, name, "its %s is no single finite number", bad);
    error_expected(error, "one finite number");
    if (found->text) {
        char shown[64];
        snprintf(shown, sizeof(shown), "%s", found->text);
        text_make_printable(shown);
        error_found(error, "the text '%s'", shown);
    } else if (found->n_values == 1) {
        error_found(error, "%g", found->values[0].float_value);
    } else {
        error_found(error, "%zu numbers", found->n_values);
    }
    return GAD_BAD_FORMAT;
}

int attributes_apply(struct gad_array *array, enum gad_masking masking, const char *name,
                     struct gad_error *error)
{
    if (array->has_lost_meaning)
        return error_from_errno(error, ENOMEM, name, "attributes");
    struct meaning *meaning = array->meaning;
    if (!meaning)
        return 0;
    meaning->masking = masking;
    if (!gad_array_meaning(array))
        return error_from_errno(error, ENOMEM, name, "attributes");
    if (masking == GAD_MASK_AND_SCALE && meaning->packing.bad)
        return refuse_factor(meaning, meaning->packing.bad, name, error);
    if (meaning->answer.is_unpacked)
        array->is_writable = false;
    return 0;
}
