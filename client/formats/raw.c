/* Raw files: elements and nothing else; dtype, shape and offset come from the spec.
 *
 * Written in C order and this machine's byte order. A spec of an output may say dtype and shape, as
 * a promise that is checked against what the result turns out to be.
 *
 * Called by format.c.
 */
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "client/formats/files/plain_output.h"
#include "proto/util.h"

#include <string.h>

static int open_array(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct stat st;
    struct file_layout layout = {
        .dtype = spec->dtype,
        .is_swapped = spec->is_swapped,
        .ndim = spec->ndim,
        .shape = spec->shape,
        .offset_bytes = spec->offset_bytes,
    };
    int r = file_array_describe(array, &layout, name, error);
    if (r == 0)
        r = file_source_open(spec->path, array->is_writable, name, &array->fd, &st, error);
    return r ? r : file_array_check_size(array, (uint64_t)st.st_size, name, error);
}

int raw_open(struct gad_client *client, const struct spec *spec, const char *name, bool for_writing,
             struct gad_array **ret_array, struct gad_error *error)
{
    return file_array_open(client, "raw", spec, name, for_writing, open_array, ret_array, error);
}

static int check_promise(const struct format_target *target, struct gad_error *error)
{
    const struct spec *spec = target->spec;
    char wanted[112], got[112];
    if (!spec->has_type)
        return 0;
    if (spec->dtype != target->dtype || spec->is_swapped) {
        error_set(error, GAD_BAD_DTYPE, target->name, "the result is %s, the output says %s",
                  dtype_name(target->dtype), dtype_typestr(spec->dtype, spec->is_swapped));
        error_expected(error, "%s", dtype_typestr(spec->dtype, spec->is_swapped));
        error_found(error, "%s", dtype_typestr(target->dtype, false));
        return GAD_BAD_DTYPE;
    }
    if (spec->ndim == target->ndim &&
        memcmp(spec->shape, target->shape, (size_t)spec->ndim * sizeof(int64_t)) == 0)
        return 0;
    array_format_shape(spec->ndim, spec->shape, wanted, sizeof(wanted));
    array_format_shape(target->ndim, target->shape, got, sizeof(got));
    error_set(error, GAD_BAD_SHAPE, target->name, "the result's shape is %s, the output says %s",
              got, wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", got);
    return GAD_BAD_SHAPE;
}

int raw_create(struct gad_client *client, const struct format_target *target,
               struct gad_array **ret_array, struct gad_error *error)
{
    struct format_target plain = *target;
    plain.fortran_order = false;
    int r = check_promise(target, error);
    return r ? r : plain_output_new(client, "raw", &plain, "", 0, ret_array, error);
}
