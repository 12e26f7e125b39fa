/* The file formats: from a spec (`file.npy`, `file.npz:x`, `file.h5:/dataset[0]`,
 * `file.raw:f4:100x100:128`) to an array, and from an array's dtype and shape to a new file. No
 * connection is needed. All return 0, or a positive gad_status with `error` filled; argument = the
 * spec. */
#pragma once

#include "client/array.h"

#include <stddef.h>

struct axis_limits;
struct carried_coordinate;
struct format; /* a row of the table: format_impl.h */

/* A spec taken apart. The texts are heap strings. */
struct spec {
    const struct format *format;
    char *path;
    char *dataset; /* HDF5, npz */
    bool has_type; /* raw */
    enum dtype dtype;
    bool is_swapped;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    uint64_t offset_bytes;
    bool is_fortran_order; /* raw */
    size_t selection_at;   /* where the selection's bracket stands in the text; 0: there is none */
    char *
        literal; /* npy: path, HDF5 and npz: dataset, if the brackets belong to the name; or NULL */
};
int spec_parse(const char *text, bool is_output, struct spec *ret_spec,
               struct gad_error *error) GAD_MUST_CHECK;
void spec_deinit(struct spec *spec);
/* raw.c: of a raw array without a path, ":DTYPE:SHAPE", its type alone. A pipe's first axis may be
 * GAD_UNKNOWN_LENGTH. */
int format_parse_raw(const char *rest, const char *whole, struct spec *spec,
                     struct gad_error *error) GAD_MUST_CHECK;

/* in_place: npy, stored npz, raw, contiguous HDF5. */
int format_open_as(struct gad_client *client, const char *spec,
                   const struct gad_open_options *options, struct gad_array **ret_array,
                   struct gad_error *error) GAD_MUST_CHECK;
/* The same where nobody has said whether it is to be masked and scaled. */
int format_open(struct gad_client *client, const char *spec, bool for_writing,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
/* Several as one. A spec may be a pattern. n: at least 1. */
int format_open_many(struct gad_client *client, size_t n, const char *const *specs,
                     const struct gad_join_options *options, struct gad_array **ret_array,
                     struct gad_error *error) GAD_MUST_CHECK;
/* replace: a dataset that is there; files of npy and raw are always replaced. fortran_order: npy
 * and npz, the others are made in C order (info.strides tells). storage: may be NULL. */
int format_create(struct gad_client *client, const char *spec, bool replace, enum dtype dtype,
                  int ndim, const int64_t *shape, bool fortran_order,
                  const struct gad_storage *storage, struct gad_array **ret_array,
                  struct gad_error *error) GAD_MUST_CHECK;
/* The same, of an array that is to grow along axes without a limit, if its format has such a thing
 * and `storage` does not say otherwise; NULL: along none. */
int format_create_as(struct gad_client *client, const char *spec, bool replace, enum dtype dtype,
                     int ndim, const int64_t *shape, bool fortran_order,
                     const struct gad_storage *storage, const struct axis_limits *limits,
                     struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
/* The name of the format that a new array of this spec has; NULL: it is no spec. */
const char *format_of_new(const char *spec);
/* The coordinate of what is selected along an axis of a source; NULL: there is none, or it cannot
 * be read. To be ended by coordinate_free(). */
struct carried_coordinate *format_coordinate(const struct gad_array *array, int axis);
/* An array as the coordinate of a dimension; NULL: it is none, or cannot be read. The same. */
struct carried_coordinate *format_coordinate_of(struct gad_array *array, const char *dimension);
/* For what is not made in a file: bad-argument where `storage` (may be NULL) asks for something. */
int format_check_unstored(const struct gad_storage *storage, const char *name,
                          struct gad_error *error) GAD_MUST_CHECK;
/* gad_list(), its arguments checked. */
int format_list(const char *spec, gad_list_function *function, void *userdata,
                struct gad_error *error) GAD_MUST_CHECK;
