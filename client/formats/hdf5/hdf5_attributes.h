/* Attributes of datasets and the names of their axes. Inside a scope. */
#pragma once

#include "client/array.h"
#include "client/formats/selection.h"

#include <hdf5.h>

/* Hands over what attribute_take() keeps; what cannot be read is left out. */
void hdf5_attributes_take(hid_t dataset, struct gad_array *array);
/* Names of the axes by netCDF-4's dimension scales, of what is selected. */
void hdf5_dimensions_take(hid_t dataset, const struct selection *selection,
                          struct gad_array *array);
