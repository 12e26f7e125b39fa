/* Views of arrays, as the rest of the library makes them. */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-move.h"

/* Does what gad_array_view() does; nobody has checked the axes yet. */
int view_new(struct gad_array *array, const int64_t *start, int ndim,
             const struct gad_view_axis *axes, struct gad_array **ret_view,
             struct gad_error *error) GAD_MUST_CHECK;

/* Serves blocks of a view from blocks of its array, for arrays that have no strides. */
struct view_blocks {
    struct gad_array *base; /* a reference */
    int ndim;
    struct gad_view_axis axes[ARRAY_MAX_NDIM];
    int64_t start[ARRAY_MAX_NDIM]; /* of the base's axes */
    char *buffer;
    size_t buffer_bytes;
};
/* Of a view; NULL: the array is none. */
const struct view_blocks *view_blocks_of(const struct gad_array *array);
/* For views of an array. The state of what is returned is a struct view_blocks. */
const struct provider *view_provider_of(const struct gad_array *array);

/* Axis numbers as NumPy takes them, each once: *ret_axes has them from 0 on. `name` is the error's
 * argument. bad-argument. */
int view_axes(int ndim, int n_axes, const int *axes, const char *name, int *ret_axes,
              struct gad_error *error) GAD_MUST_CHECK;
int view_axis(int ndim, int axis, const char *name, int *ret_axis,
              struct gad_error *error) GAD_MUST_CHECK;
