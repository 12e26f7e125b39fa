/* What is written beside a new dataset: its attributes, and the names of its axes. Inside a scope.
 */
#pragma once

#include "client/array.h"

#include <hdf5.h>

/* Before the dataset `hidden` becomes `dataset`, perhaps in the place of another: writes what the
 * array carries, and lets axes that the old one names be named by the new one. io-error. */
int hdf5_dims_write(hid_t file, const char *hidden, const char *dataset,
                    const struct gad_array *array, const char *name,
                    struct gad_error *error) GAD_MUST_CHECK;
