/* Variables of netCDF classic files as sources: CDF-1, CDF-2 and CDF-5.
 *
 * They lie in their file as they are, big-endian, so that the daemon reads them where they are:
 * those without records contiguous, those with records with the size of a record from one to the
 * next. They are written in place likewise. Nothing is ever added to such a file.
 *
 * Their names are HDF5's too, since netCDF-4 files are HDF5 files: how a file begins decides.
 *
 * Called by format.c and list.c.
 */
#include "client/formats/attributes.h"
#include "client/formats/dataset_path.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "client/formats/netcdf/netcdf_attributes.h"
#include "client/formats/netcdf/netcdf_file.h"
#include "client/formats/netcdf/netcdf_list.h"
#include "proto/util.h"

#include <limits.h>
#include <string.h>

static int text_error(const struct spec *spec, const char *name, struct gad_error *error)
{
    error_set(error, GAD_BAD_DTYPE, name, "the elements of '%.120s' are not served: a text",
              spec->dataset);
    error_expected(error, "a variable of numbers");
    error_found(error, "a text");
    return GAD_BAD_DTYPE;
}

/* Shape and strides; more axes than an array can have are refused later, by their number. */
static void lay_axes(const struct netcdf_header *header, const struct netcdf_variable *variable,
                     enum dtype dtype, int64_t *ret_shape, int64_t *ret_strides)
{
    int64_t item_bytes = (int64_t)dtype_size(dtype);
    int ndim = (int)variable->ndim;
    for (int i = 0; i < ndim; i++)
        ret_shape[i] = (int64_t)netcdf_dimension_of(header, variable, (size_t)i)->size;
    /* The sizes of the axes inside were multiplied when the header was read. */
    array_c_strides(ndim - variable->is_record, ret_shape + variable->is_record, item_bytes,
                    ret_strides + variable->is_record);
    if (variable->is_record)
        ret_strides[0] = (int64_t)header->record_bytes;
}

static int describe(struct gad_array *array, const struct netcdf_header *header,
                    const struct netcdf_variable *variable, const struct spec *spec,
                    const char *name, struct gad_error *error)
{
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    struct file_layout layout = {
        .ndim = (int)min_u64(variable->ndim, INT_MAX),
        .shape = shape,
        .strides = strides,
        .offset_bytes = variable->offset_bytes,
    };
    if (!netcdf_variable_dtype(variable, &layout.dtype))
        return text_error(spec, name, error);
    layout.is_swapped = dtype_size(layout.dtype) > 1;
    if (variable->ndim <= ARRAY_MAX_NDIM)
        lay_axes(header, variable, layout.dtype, shape, strides);
    return file_array_describe(array, &layout, name, error);
}

static int take_attributes(struct gad_array *array, const struct netcdf_header *header,
                           const struct netcdf_variable *variable, const char *name,
                           struct gad_error *error)
{
    struct netcdf_attribute_list list;
    int r = netcdf_attributes_read(header, variable, &list);
    if (r)
        return error_from_errno(error, -r, name, "attributes");
    for (size_t i = 0; i < list.n; i++)
        attribute_take(array, &list.attributes[i]);
    netcdf_attributes_free(&list);
    return 0;
}

/* The array is still the whole variable. */
static int take_dimensions(struct gad_array *array, const struct netcdf_header *header,
                           const struct netcdf_variable *variable, const struct spec *spec,
                           const char *name, struct gad_error *error)
{
    int ndim = array->info.ndim, r = 0;
    char *names[ARRAY_MAX_NDIM];
    struct selection selection;
    struct axis_limits limits = {.chunks = {0}};
    selection_whole(ndim, array->info.shape, &selection);
    if (spec->selection_at)
        r = selection_read(name, spec->selection_at, ndim, array->info.shape, &selection, error);
    if (r)
        return r;
    for (int i = 0; i < ndim; i++) {
        const struct netcdf_dimension *of = netcdf_dimension_of(header, variable, (size_t)i);
        names[i] = strndup(of->name.chars, of->name.n_chars);
        limits.is_unlimited[i] = of->is_record;
        array->has_lost_meaning |= !names[i];
    }
    attribute_take_dimensions(array, &selection, (const char *const *)names);
    attribute_take_limits(array, &selection, &limits);
    for (int i = 0; i < ndim; i++)
        free(names[i]);
    return 0;
}

static int open_variable(struct gad_array *array, const struct netcdf_file *file,
                         uint64_t file_bytes, const struct spec *spec, const char *name,
                         struct gad_error *error)
{
    const struct netcdf_variable *variable = netcdf_file_find(file, spec->dataset);
    if (!variable)
        return netcdf_no_variable_error(file, spec->dataset, name, error);
    int r = describe(array, &file->header, variable, spec, name, error);
    if (r == 0 && file_array_n_bytes(array) > 0)
        r = file_array_check_size(array, file_bytes, name, error);
    if (r == 0)
        r = take_attributes(array, &file->header, variable, name, error);
    return r ? r : take_dimensions(array, &file->header, variable, spec, name, error);
}

static int open_array(struct gad_array *array, const struct spec *spec, const char *name,
                      struct gad_error *error)
{
    struct stat st;
    struct netcdf_file file;
    int r = file_source_open(spec->path, array->is_writable, name, &array->fd, &st, error);
    if (r == 0)
        r = netcdf_file_read(array->fd, &st, spec->path, name, &file, error);
    if (r)
        return r;
    r = open_variable(array, &file, (uint64_t)st.st_size, spec, name, error);
    netcdf_file_deinit(&file);
    return r;
}

static int netcdf_open(struct gad_client *client, const struct spec *spec, const char *name,
                       bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    return file_array_open(client, spec, name, for_writing, open_array, ret_array, error);
}

static int netcdf_create(struct gad_client *client, const struct format_target *target,
                         struct gad_array **ret_array, struct gad_error *error)
{
    const char *path = target->spec->path;
    struct stat st;
    if (stat(path, &st) == 0)
        error_set(error, GAD_READ_ONLY, target->name,
                  "'%.80s' is a netCDF classic file, to which nothing is added: name another file, "
                  "or convert it with 'nccopy -k nc4 %.80s NEW.nc'",
                  path, path);
    else
        error_set(error, GAD_READ_ONLY, target->name,
                  "netCDF classic files are only read: name a file that ends in .nc, which becomes "
                  "netCDF-4");
    error_expected(error, "a new file that ends in .nc or .h5");
    error_found(error, "%.100s", path);
    return GAD_READ_ONLY;
}

static bool netcdf_has_dataset(const char *path, const char *dataset)
{
    struct stat st;
    struct netcdf_file file;
    _cleanup_fd_ int fd = -1;
    if (file_source_open(path, false, path, &fd, &st, NULL) ||
        netcdf_file_read(fd, &st, path, path, &file, NULL))
        return false;
    bool is_there = netcdf_file_find(&file, dataset) != NULL;
    netcdf_file_deinit(&file);
    return is_there;
}

const struct format format_netcdf = {
    .name = "netcdf",
    .extensions = ".nc3 .nc5",
    .written = "FILE.nc:/VARIABLE",
    .takes_brackets = true,
    .normalise = dataset_path_normalise,
    .parse_rest = dataset_path_parse,
    .is_own = netcdf_is_magic,
    .has_dataset = netcdf_has_dataset,
    .open = netcdf_open,
    .create = netcdf_create,
    .list = netcdf_list,
};
