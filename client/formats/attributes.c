/* Attributes that say what elements mean.
 *
 * The formats read them from their files and hand them over one by one, in any order. Of netCDF's
 * two names of the value of what was not measured, `_FillValue` wins.
 *
 * Called by the formats when they open an array.
 */
#include "client/formats/attributes.h"

#include <string.h>

static double as_double(const struct gad_scalar *scalar)
{
    if (scalar->kind == GAD_SCALAR_FLOAT)
        return scalar->float_value;
    return scalar->kind == GAD_SCALAR_UINT ? (double)scalar->uint_value : (double)scalar->int_value;
}

void attribute_take(struct gad_array *array, const struct gad_attribute *attribute)
{
    bool is_fill = strcmp(attribute->name, "_FillValue") == 0;
    if (attribute->n_values != 1 ||
        !(is_fill || (strcmp(attribute->name, "missing_value") == 0 && !array->info.has_fill)))
        return;
    array->info.has_fill = true;
    array->info.fill = as_double(attribute->values);
    array->info.exact_fill = *attribute->values;
}
