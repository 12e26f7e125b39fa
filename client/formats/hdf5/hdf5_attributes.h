/* Attributes of datasets and the names of their axes. Inside a scope. */
#pragma once

#include "client/array.h"
#include "client/formats/selection.h"

#include <hdf5.h>

/* The dtype of a dataset's elements, which its attribute _Unsigned may say to be of the other sign
 * than `dtype`, as which they are stored. */
enum dtype hdf5_attributes_sign(hid_t dataset, enum dtype dtype);
/* Hands over what attribute_take() keeps; what cannot be read is left out. */
void hdf5_attributes_take(hid_t dataset, struct gad_array *array);
/* Names of the axes by netCDF-4's dimension scales, of what is selected. */
void hdf5_dimensions_take(hid_t dataset, const struct selection *selection,
                          struct gad_array *array);
