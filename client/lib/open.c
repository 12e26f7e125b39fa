/* The public way to a file: the arguments are checked here, the formats do the rest. */
#include "client/formats/formats.h"
#include "client/lib/memory/memory.h"

static enum gad_status check_call(const char *spec, struct gad_array **ret_array,
                                  struct gad_error *error)
{
    if (!spec)
        return error_set(error, GAD_BAD_ARGUMENT, "spec", "spec is NULL");
    if (!ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_array", "ret_array is NULL");
    return GAD_OK;
}

static enum gad_status check_masking(enum gad_masking masking, struct gad_error *error)
{
    if (masking >= GAD_MASK_UNSAID && masking <= GAD_MASK_AND_SCALE)
        return GAD_OK;
    return error_set(error, GAD_BAD_ARGUMENT, "masking", "there is no way of masking %d",
                     (int)masking);
}

static enum gad_status check_options(const struct gad_open_options *options,
                                     struct gad_error *error)
{
    if (!options)
        return error_set(error, GAD_BAD_ARGUMENT, "options", "options is NULL");
    enum gad_status status = check_masking(options->masking, error);
    if (status)
        return status;
    if (!options->in_place || options->masking != GAD_MASK_AND_SCALE)
        return GAD_OK;
    error_set(error, GAD_BAD_ARGUMENT, "masking",
              "what is written in place is written as it is stored: nothing packs it");
    error_expected(error, "a source, or an array as it is stored");
    error_found(error, "one that is masked, scaled and written in place");
    return GAD_BAD_ARGUMENT;
}

enum gad_status gad_array_open_as(struct gad_client *client, const char *spec,
                                  const struct gad_open_options *options,
                                  struct gad_array **ret_array, struct gad_error *error)
{
    enum gad_status status = check_call(spec, ret_array, error);
    if (status == GAD_OK)
        status = check_options(options, error);
    if (status == GAD_OK)
        status = (enum gad_status)format_open_as(client, spec, options, ret_array, error);
    if (status == GAD_OK)
        array_set_spec(*ret_array, spec);
    return status;
}

static enum gad_status open_source(struct gad_client *client, const char *spec, bool for_writing,
                                   struct gad_array **ret_array, struct gad_error *error)
{
    const struct gad_open_options options = {.in_place = for_writing};
    return gad_array_open_as(client, spec, &options, ret_array, error);
}

enum gad_status gad_array_open(struct gad_client *client, const char *spec,
                               struct gad_array **ret_array, struct gad_error *error)
{
    return open_source(client, spec, false, ret_array, error);
}

enum gad_status gad_array_open_in_place(struct gad_client *client, const char *spec,
                                        struct gad_array **ret_array, struct gad_error *error)
{
    return open_source(client, spec, true, ret_array, error);
}

enum gad_status gad_array_open_many(struct gad_client *client, size_t n, const char *const *specs,
                                    const struct gad_join_options *options,
                                    struct gad_array **ret_array, struct gad_error *error)
{
    const struct gad_join_options first_axis = {.axis = 0};
    if (!specs || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, specs ? "ret_array" : "specs", "is NULL");
    if (n == 0) {
        error_set(error, GAD_BAD_ARGUMENT, "specs", "there is nothing to join");
        error_expected(error, "at least one source");
        error_found(error, "none");
        return GAD_BAD_ARGUMENT;
    }
    for (size_t i = 0; i < n; i++)
        if (!specs[i])
            return error_set(error, GAD_BAD_ARGUMENT, "specs", "source %zu is NULL", i);
    options = options ? options : &first_axis;
    enum gad_status status = check_masking(options->masking, error);
    return status ? status
                  : (enum gad_status)format_open_many(client, n, specs, options, ret_array, error);
}

enum gad_status gad_list(const char *spec, gad_list_function *function, void *userdata,
                         struct gad_error *error)
{
    if (!spec)
        return error_set(error, GAD_BAD_ARGUMENT, "spec", "spec is NULL");
    if (!function)
        return error_set(error, GAD_BAD_ARGUMENT, "function", "function is NULL");
    return (enum gad_status)format_list(spec, function, userdata, error);
}

enum gad_status gad_array_create(struct gad_client *client, const char *spec, bool replace,
                                 enum gad_dtype dtype, int ndim, const int64_t *shape,
                                 bool fortran_order, const struct gad_storage *storage,
                                 struct gad_array **ret_array, struct gad_error *error)
{
    enum gad_status status = check_call(spec, ret_array, error);
    if (status)
        return status;
    struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    struct array described;
    status = memory_describe(&layout, &described, error);
    if (status)
        return status;
    return format_create(client, spec, replace, described.dtype, ndim, described.shape,
                         fortran_order, storage, ret_array, error);
}
