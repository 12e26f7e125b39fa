/* Coordinates of a new array: arrays of one axis in its group, by the names of its axes. */
#pragma once

#include "client/array.h"
#include "client/formats/zarr/writing/zarr_place.h"

/* Before the metadata of the array are written: an axis whose name stands for something else in the
 * group gets another one. */
int zarr_coordinates_name(struct gad_array *array, const struct zarr_place *place) GAD_MUST_CHECK;
/* Once the array is in its place: those that are not there yet are written beside it. */
int zarr_coordinates_write(const struct gad_array *array, const struct zarr_place *place,
                           struct gad_error *error) GAD_MUST_CHECK;
