/* Arrays that lie in a file as they are: their strides, limits and size.
 *
 * Everything here is checked before it is believed: a header may claim any shape, and the file may
 * hold less than the shape needs. A file that holds more is fine, as it is for NumPy.
 *
 * Called by the formats when they open or create.
 */
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_provider.h"
#include "client/formats/format_impl.h"
#include "client/formats/selection.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

static void fortran_strides(int ndim, const int64_t *shape, int64_t item_bytes,
                            int64_t *ret_strides)
{
    int64_t stride = item_bytes;
    for (int i = 0; i < ndim; i++) {
        ret_strides[i] = stride;
        stride *= shape[i] > 0 ? shape[i] : 1;
    }
}

int file_array_describe(struct gad_array *array, const struct file_layout *layout, const char *name,
                        struct gad_error *error)
{
    struct array described = {
        .dtype = layout->dtype,
        .ndim = layout->ndim,
        .at = {.kind = LOCATION_FILE, .file = {.offset_bytes = layout->offset_bytes}},
    };
    bool is_open = layout->ndim > 0 && layout->shape[0] == GAD_UNKNOWN_LENGTH;
    if (layout->ndim >= 0 && layout->ndim <= ARRAY_MAX_NDIM)
        memcpy(described.shape, layout->shape, (size_t)layout->ndim * sizeof(int64_t));
    if (is_open)
        described.shape[0] = 1;                   /* strides do not follow from it */
    int r = array_check(&described, name, error); /* the shape alone: strides are still zero */
    if (r)
        return r;
    int64_t item_bytes = (int64_t)dtype_size(layout->dtype);
    if (layout->strides && layout->ndim > 0)
        memcpy(described.strides, layout->strides, (size_t)layout->ndim * sizeof(int64_t));
    else if (layout->fortran_order)
        fortran_strides(layout->ndim, described.shape, item_bytes, described.strides);
    else
        array_c_strides(layout->ndim, described.shape, item_bytes, described.strides);
    r = array_check(&described, name, error);
    if (r)
        return r;
    array->info.dtype = (enum gad_dtype)layout->dtype;
    array->info.is_swapped = layout->is_swapped;
    array->info.ndim = layout->ndim;
    memcpy(array->info.shape, described.shape, sizeof(described.shape));
    memcpy(array->info.strides, described.strides, sizeof(described.strides));
    if (is_open)
        array->info.shape[0] = GAD_UNKNOWN_LENGTH;
    array->offset_bytes = layout->offset_bytes;
    array->provider = &file_provider;
    array->provider_state = array;
    return 0;
}

int file_array_select(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct selection selection;
    struct array described = array_described(array);
    if (!spec->selection_at)
        return 0;
    int r = selection_read(name, spec->selection_at, described.ndim, described.shape, &selection,
                           error);
    if (r)
        return r;
    selection_apply(&selection, &described, &array->offset_bytes);
    array->info.ndim = described.ndim;
    memcpy(array->info.shape, described.shape, sizeof(described.shape));
    memcpy(array->info.strides, described.strides, sizeof(described.strides));
    return 0;
}

int file_array_open(struct gad_client *client, const struct spec *spec, const char *name,
                    bool for_writing, file_array_open_fn *open_array, struct gad_array **ret_array,
                    struct gad_error *error)
{
    struct gad_array *array = array_new(client, spec->format->name, ACCESS_FILE, spec->path);
    if (!array)
        return error_from_errno(error, ENOMEM, name, "array");
    array->is_writable = for_writing;
    int r = open_array(array, spec, name, error);
    if (r == 0)
        r = file_array_select(array, spec, name, error);
    return array_settle(array, r, ret_array);
}

uint64_t file_array_n_bytes(const struct gad_array *array)
{
    struct array described = array_described(array);
    return (uint64_t)array_n_bytes(&described);
}

int file_array_check_size(const struct gad_array *array, uint64_t file_bytes, const char *name,
                          struct gad_error *error)
{
    int64_t low, high;
    struct array described = array_described(array);
    array_extent(&described, &low, &high);
    uint64_t expected = array->offset_bytes + (uint64_t)high;
    if (expected <= file_bytes)
        return 0;
    error_set(error, GAD_SHORT_READ, name,
              "'%.160s' holds %" PRIu64 " bytes, dtype, shape and offset need %" PRIu64,
              array->info.path, file_bytes, expected);
    error_expected(error, "%" PRIu64 " bytes", expected);
    error_found(error, "%" PRIu64 " bytes", file_bytes);
    return GAD_SHORT_READ;
}
