/* New npy and raw files.
 *
 * The array has a duplicate of the output's descriptor: both are one open file, and each owner
 * closes its own. Header and space are there before the array is, so that the daemon only fills in
 * elements. Where the length of the first axis is not known nothing can be there before: blocks are
 * then taken from the daemon and written where they belong, and the commit, which knows the length,
 * writes the header.
 *
 * Called by npy.c and raw.c; commit, discard and free by the core through the array.
 */
#include "client/formats/files/plain_output.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_output.h"
#include "client/formats/files/file_source.h"
#include "client/formats/npy/npy_header.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>

static int commit(struct gad_array *array, struct gad_error *error)
{
    return file_output_commit(array->format_state, false, array->info.path, error);
}

/* The length is known now. */
static int commit_grown(struct gad_array *array, struct gad_error *error)
{
    const struct gad_array_info *info = &array->info;
    char header[NPY_DATA_OFFSET];
    int r = 0;
    if (array->offset_bytes > 0) {
        npy_header_format((enum dtype)info->dtype, info->ndim, info->shape, false, header);
        r = file_write(array->fd, header, sizeof(header), 0);
    }
    return r < 0 ? file_path_error(error, -r, info->path, info->path) : commit(array, error);
}

static void discard(struct gad_array *array)
{
    array->format_state = file_output_free(array->format_state);
}

static bool is_same_target(const struct gad_array *array, const struct gad_array *other)
{
    return file_output_is_for(array->format_state, other->format_state);
}

static int describe(struct gad_array *array, const struct format_target *target,
                    size_t n_header_bytes, struct gad_error *error)
{
    bool is_open = target->ndim > 0 && target->shape[0] == GAD_UNKNOWN_LENGTH;
    struct file_layout layout = {
        .dtype = target->dtype,
        .fortran_order = target->fortran_order && !is_open,
        .ndim = target->ndim,
        .shape = target->shape,
        .offset_bytes = n_header_bytes,
    };
    int r = file_array_describe(array, &layout, target->name, error);
    if (r == 0 && is_open)
        array->is_write_only = array_use_provider(array);
    return r;
}

static int make(struct gad_array *array, const struct format_target *target, const void *header,
                size_t n_header_bytes, struct gad_error *error)
{
    int r = describe(array, target, n_header_bytes, error);
    if (r)
        return r;
    bool is_open = array_is_open(array);
    struct file_output *output;
    r = file_output_new(target->spec->path, target->name, &output, error);
    if (r)
        return r;
    if (target->storage->sync)
        file_output_sync(output);
    array->format_state = output;
    array->commit = is_open ? commit_grown : commit;
    array->discard = discard;
    array->maker_free = discard;
    array->is_same_target = is_same_target;
    array->is_writable = true;
    r = file_output_reserve(output, 0, n_header_bytes + (is_open ? 0 : file_array_n_bytes(array)),
                            target->name, error);
    if (r)
        return r;
    array->fd = fcntl(file_output_fd(output), F_DUPFD_CLOEXEC, 3);
    if (array->fd < 0)
        return file_path_error(error, errno, target->spec->path, target->name);
    r = is_open ? 0 : file_write(array->fd, header, n_header_bytes, 0);
    return r < 0 ? file_path_error(error, -r, target->spec->path, target->name) : 0;
}

int plain_output_new(struct gad_client *client, const struct format_target *target,
                     const void *header, size_t n_header_bytes, struct gad_array **ret_array,
                     struct gad_error *error)
{
    struct gad_array *array =
        array_new(client, target->spec->format->name, ACCESS_FILE, target->spec->path);
    if (!array)
        return error_from_errno(error, ENOMEM, target->name, "array");
    return array_settle(array, make(array, target, header, n_header_bytes, error), ret_array);
}
