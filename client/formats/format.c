/* From a spec to the format that it names.
 *
 * Called by the public functions of open.c (gad_array_open() and its kin), which work without a
 * connection too, and by targets.c for new files.
 */
#include "client/formats/format_impl.h"
#include "proto/util.h"

#include <string.h>

static int open_spec(struct gad_client *client, const struct spec *spec, const char *name,
                     bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    switch (spec->format) {
    case FORMAT_NPY: return npy_open(client, spec, name, for_writing, ret_array, error);
    case FORMAT_RAW: return raw_open(client, spec, name, for_writing, ret_array, error);
    case FORMAT_HDF5: return hdf5_open(client, spec, name, for_writing, ret_array, error);
    }
    return error_set(error, GAD_INTERNAL, name, "no such format");
}

static int create_spec(struct gad_client *client, const struct format_target *target,
                       struct gad_array **ret_array, struct gad_error *error)
{
    switch (target->spec->format) {
    case FORMAT_NPY: return npy_create(client, target, ret_array, error);
    case FORMAT_RAW: return raw_create(client, target, ret_array, error);
    case FORMAT_HDF5: return hdf5_create(client, target, ret_array, error);
    }
    return error_set(error, GAD_INTERNAL, target->name, "no such format");
}

int format_open(struct gad_client *client, const char *text, bool for_writing,
                struct gad_array **ret_array, struct gad_error *error)
{
    struct spec spec;
    int r = spec_parse(text, false, &spec, error);
    if (r)
        return r;
    r = open_spec(client, &spec, text, for_writing, ret_array, error);
    spec_deinit(&spec);
    return r;
}

int format_create(struct gad_client *client, const char *text, bool replace, enum dtype dtype,
                  int ndim, const int64_t *shape, bool fortran_order, struct gad_array **ret_array,
                  struct gad_error *error)
{
    struct spec spec;
    int r = spec_parse(text, true, &spec, error);
    if (r)
        return r;
    struct array described = {.dtype = dtype, .ndim = ndim};
    if (ndim > 0 && ndim <= ARRAY_MAX_NDIM)
        memcpy(described.shape, shape, (size_t)ndim * sizeof(int64_t));
    r = array_check(&described, text, error);
    struct format_target target = {
        .spec = &spec,
        .name = text,
        .replace = replace,
        .dtype = dtype,
        .ndim = ndim,
        .shape = described.shape,
        .fortran_order = fortran_order,
    };
    if (r == 0)
        r = create_spec(client, &target, ret_array, error);
    spec_deinit(&spec);
    return r;
}
