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

/* Of an array of many files, whose attributes are those of the file at `path`: along the axis on
 * which they are joined the coordinates are those of all that match the pattern (NULL: as it is).
 */
void attribute_join_coordinate(struct gad_array *array, int axis, const char *path,
                               const char *pattern);

/* The same where they are a list: their specs, one a line; taken over. NULL: there is none. */
void attribute_list_coordinate(struct gad_array *array, int axis, char *specs);

/* When all are taken: what was asked for is done. bad-format, no-memory. */
int attributes_apply(struct gad_array *array, enum gad_masking masking, const char *name,
                     struct gad_error *error) GAD_MUST_CHECK;
