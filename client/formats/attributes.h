/* What a file says of an array besides its elements: named attributes, as netCDF's conventions have
 * them. */
#pragma once

#include "client/array.h"

/* Takes in one attribute of the file's array; what means nothing to us is left. */
void attribute_take(struct gad_array *array, const struct gad_attribute *attribute);
