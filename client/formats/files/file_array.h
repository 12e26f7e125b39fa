/* An array that lies in one file as it is: what npy, raw, contiguous HDF5 and netCDF classic have
 * in common. */
#pragma once

#include "client/array.h"

struct file_layout {
    enum dtype dtype;
    bool is_swapped;
    bool fortran_order;
    int ndim;
    const int64_t *shape;
    const int64_t *strides; /* in bytes; NULL: contiguous, in that order */
    uint64_t offset_bytes;
};

/* Fills `array` (of array_new(), ACCESS_FILE): info, offset, and the provider that serves when the
 * daemon says use-provider. Checked by array_check(): bad-shape, bad-extent. */
int file_array_describe(struct gad_array *array, const struct file_layout *layout, const char *name,
                        struct gad_error *error) GAD_MUST_CHECK;

/* A new array of ACCESS_FILE, filled in by `open_array`, and the selection of it; the whole of
 * npy_open() and raw_open(). */
struct spec;
typedef int file_array_open_fn(struct gad_array *array, const struct spec *spec, const char *name,
                               struct gad_error *error);
int file_array_open(struct gad_client *client, const struct spec *spec, const char *name,
                    bool for_writing, file_array_open_fn *open_array, struct gad_array **ret_array,
                    struct gad_error *error) GAD_MUST_CHECK;

/* Makes the described array the part of it that the spec selects, if it has a selection. */
int file_array_select(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error) GAD_MUST_CHECK;

/* Bytes of the elements of a described array. */
uint64_t file_array_n_bytes(const struct gad_array *array);

/* short-read when a file of file_bytes does not hold the described array. */
int file_array_check_size(const struct gad_array *array, uint64_t file_bytes, const char *name,
                          struct gad_error *error) GAD_MUST_CHECK;
