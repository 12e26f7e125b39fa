/* Listing a netCDF classic file: the file itself with its attributes, then its variables.
 *
 * Called by list.c.
 */
#include "client/formats/netcdf/netcdf_list.h"
#include "client/formats/dataset_path.h"
#include "client/formats/files/file_source.h"
#include "client/formats/netcdf/netcdf_attributes.h"
#include "client/formats/netcdf/netcdf_file.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

/* What an entry points to besides its attributes. */
struct shown {
    char *name;
    size_t ndim;
    int64_t *shape, *max_shape; /* max_shape: NULL: it does not grow */
    char **dimensions;
};

static void shown_deinit(struct shown *shown)
{
    for (size_t i = 0; shown->dimensions && i < shown->ndim; i++)
        free(shown->dimensions[i]);
    free(shown->dimensions);
    free(shown->shape);
    free(shown->name);
}

static bool shown_init(struct shown *shown, const struct netcdf_header *header,
                       const struct netcdf_variable *variable)
{
    size_t n_chars = variable->name.n_chars;
    *shown = (struct shown){.ndim = variable->ndim,
                            .name = malloc(n_chars + 2),
                            .shape = calloc(2 * variable->ndim + 1, sizeof(*shown->shape)),
                            .dimensions = calloc(variable->ndim + 1, sizeof(*shown->dimensions))};
    if (!shown->name || !shown->shape || !shown->dimensions)
        return false;
    shown->name[0] = '/';
    memcpy(shown->name + 1, variable->name.chars, n_chars);
    shown->name[n_chars + 1] = '\0';
    for (size_t i = 0; i < variable->ndim; i++) {
        const struct netcdf_dimension *dimension = netcdf_dimension_of(header, variable, i);
        shown->shape[i] = (int64_t)dimension->size;
        shown->shape[variable->ndim + i] =
            dimension->is_record ? GAD_UNKNOWN_LENGTH : shown->shape[i];
        if (dimension->is_record)
            shown->max_shape = shown->shape + variable->ndim;
        shown->dimensions[i] = strndup(dimension->name.chars, dimension->name.n_chars);
        if (!shown->dimensions[i])
            return false;
    }
    return true;
}

/* ret_goes_on: whether more is wanted. -ENOMEM. */
static int list_variable(const struct netcdf_header *header, const struct netcdf_variable *variable,
                         gad_list_function *function, void *userdata, bool *ret_goes_on)
{
    enum dtype dtype;
    struct shown shown;
    struct netcdf_attribute_list list = {.n = 0};
    int r = shown_init(&shown, header, variable) ? 0 : -ENOMEM;
    if (r == 0)
        r = netcdf_attributes_read(header, variable, &list);
    if (r == 0) {
        bool is_number = netcdf_variable_dtype(variable, &dtype);
        const struct gad_listed entry = {
            .kind = GAD_LISTED_ARRAY,
            .name = shown.name,
            .type = is_number ? dtype_name(dtype) : "a text",
            .is_served = is_number && shown.ndim <= ARRAY_MAX_NDIM,
            .ndim = (int)shown.ndim,
            .shape = shown.shape,
            .max_shape = shown.max_shape,
            .dimensions = shown.ndim ? (const char *const *)shown.dimensions : NULL,
            .filters = "",
            .n_attributes = list.n,
            .attributes = list.attributes,
        };
        int step = function(userdata, &entry);
        *ret_goes_on = step == GAD_LIST_ON || step == GAD_LIST_PAST; /* nothing is in it */
    }
    netcdf_attributes_free(&list);
    shown_deinit(&shown);
    return r;
}

static int list_root(const struct netcdf_header *header, gad_list_function *function,
                     void *userdata, bool *ret_goes_on)
{
    struct netcdf_attribute_list list;
    int r = netcdf_attributes_read(header, NULL, &list);
    if (r)
        return r;
    const struct gad_listed entry = {
        .kind = GAD_LISTED_GROUP,
        .name = "/",
        .n_attributes = list.n,
        .attributes = list.attributes,
    };
    *ret_goes_on = function(userdata, &entry) == GAD_LIST_ON;
    netcdf_attributes_free(&list);
    return 0;
}

/* only: NULL: all. */
static int list_file(const struct netcdf_header *header, const struct netcdf_variable *only,
                     gad_list_function *function, void *userdata)
{
    bool goes_on = true;
    int r = only ? list_variable(header, only, function, userdata, &goes_on)
                 : list_root(header, function, userdata, &goes_on);
    for (size_t i = 0; !only && i < header->n_variables && r == 0 && goes_on; i++)
        r = list_variable(header, &header->variables[i], function, userdata, &goes_on);
    return r;
}

static int list_dataset(const struct netcdf_file *file, const char *dataset, const char *name,
                        gad_list_function *function, void *userdata, struct gad_error *error)
{
    const struct netcdf_variable *only = NULL;
    if (*dataset && !(only = netcdf_file_find(file, dataset)))
        return netcdf_no_variable_error(file, dataset, name, error);
    int r = list_file(&file->header, only, function, userdata);
    return r < 0 ? error_from_errno(error, -r, name, "netCDF header") : r;
}

int netcdf_list(const char *path, const char *dataset, const char *name,
                gad_list_function *function, void *userdata, struct gad_error *error)
{
    struct stat st;
    struct netcdf_file file;
    _cleanup_fd_ int fd = -1;
    int r = file_source_open(path, false, name, &fd, &st, error);
    if (r == 0)
        r = netcdf_file_read(fd, &st, path, name, &file, error);
    if (r)
        return r;
    r = list_dataset(&file, dataset + (*dataset == '/'), name, function, userdata, error);
    netcdf_file_deinit(&file);
    return r;
}
