/* What a file says of an array besides its elements: named attributes, as netCDF's conventions have
 * them, and names of dimensions. */
#pragma once

#include "client/array.h"
#include "client/formats/selection.h"
#include "client/meaning.h"

/* Takes in one attribute of the file's array, in any order, before the array is given to anybody;
 * what means nothing to us is left. */
void attribute_take(struct gad_array *array, const struct gad_attribute *attribute);
/* Whether attribute_take() keeps attributes of this name. */
bool attribute_is_kept(const char *name);
/* Names of the axes of the file's array, which may be NULL; the array is what is selected of it. */
void attribute_take_dimensions(struct gad_array *array, const struct selection *selection,
                               const char *const *names);
/* After them: which of those axes grow in the file. */
void attribute_take_limits(struct gad_array *array, const struct selection *selection,
                           const struct axis_limits *limits);
/* After them: the arrays of the same file whose elements are the coordinates along the axes, as a
 * spec has them behind the file, which may be NULL. Without this they are those that are named as
 * the dimensions. */
void attribute_take_coordinates(struct gad_array *array, const struct selection *selection,
                                const char *const *coordinates);

/* Of an array of several, which has the attributes of one of them and names along its axes: they
 * are behind each other along this one. members: their specs, as in struct meaning_attributes;
 * taken over. */
void attributes_join(struct gad_array *array, int axis, bool is_new_axis, char *members);

/* When all are taken: what was asked for is done. bad-format, no-memory. */
int attributes_apply(struct gad_array *array, enum gad_masking masking, const char *name,
                     struct gad_error *error) GAD_MUST_CHECK;
