/* Reading the header of a netCDF classic file, of which nobody knows the length beforehand.
 *
 * A beginning is read and parsed; where it is too short, twice as much, up to a limit that no
 * header reaches that a program has made on purpose.
 *
 * Called by netcdf.c and netcdf_list.c.
 */
#include "client/formats/netcdf/netcdf_file.h"
#include "client/formats/files/file_source.h"
#include "client/formats/near_names.h"
#include "proto/util.h"

#include <stdio.h>

#define FIRST_BYTES (16 * 1024)

static int too_long_error(const char *path, const char *name, struct gad_error *error)
{
    error_set(error, GAD_BAD_FORMAT, name, "the header of '%.160s' is too long", path);
    error_expected(error, "at most %u bytes", NETCDF_MAX_HEADER_BYTES);
    error_found(error, "more");
    return GAD_BAD_FORMAT;
}

/* -EAGAIN: the header is longer than n_bytes. */
static int read_beginning(int fd, size_t n_bytes, uint64_t file_bytes, const char *path,
                          const char *name, struct netcdf_file *ret_file, struct gad_error *error)
{
    size_t n_read;
    struct netcdf_file file;
    file.bytes = malloc(n_bytes > 0 ? n_bytes : 1);
    if (!file.bytes)
        return error_from_errno(error, ENOMEM, name, path);
    int r = file_read(fd, file.bytes, n_bytes, 0, &n_read);
    if (r < 0)
        r = file_path_error(error, -r, path, name);
    if (r == 0) /* one that has become shorter meanwhile is as long as it is now */
        r = netcdf_header_parse(file.bytes, n_read, n_read < n_bytes ? n_read : file_bytes, name,
                                &file.header, error);
    if (r)
        free(file.bytes);
    else
        *ret_file = file;
    return r;
}

int netcdf_file_read(int fd, const struct stat *st, const char *path, const char *name,
                     struct netcdf_file *ret_file, struct gad_error *error)
{
    uint64_t file_bytes = (uint64_t)st->st_size;
    for (size_t n = FIRST_BYTES; n <= NETCDF_MAX_HEADER_BYTES; n *= 2) {
        int r = read_beginning(fd, min_u64(n, file_bytes), file_bytes, path, name, ret_file, error);
        if (r != -EAGAIN)
            return r;
    }
    return too_long_error(path, name, error);
}

void netcdf_file_deinit(struct netcdf_file *file)
{
    netcdf_header_deinit(&file->header);
    free_ptr(&file->bytes);
}

const struct netcdf_variable *netcdf_file_find(const struct netcdf_file *file, const char *dataset)
{
    const struct netcdf_header *header = &file->header;
    for (size_t i = 0; i < header->n_variables; i++)
        if (netcdf_text_is(&header->variables[i].name, dataset + (*dataset == '/')))
            return &header->variables[i];
    return NULL;
}

int netcdf_no_variable_error(const struct netcdf_file *file, const char *dataset, const char *name,
                             struct gad_error *error)
{
    const struct netcdf_header *header = &file->header;
    struct near_names *names = calloc(1, sizeof(*names));
    if (!names)
        return error_from_errno(error, ENOMEM, name, dataset);
    names->wanted = dataset;
    for (size_t i = 0; i < header->n_variables; i++) {
        char shown[NEAR_NAME_BYTES];
        const struct netcdf_text *text = &header->variables[i].name;
        snprintf(shown, sizeof(shown), "/%.*s", (int)text->n_chars, text->chars);
        near_names_add(names, shown);
    }
    int r = near_names_error(names, "variable", name, error);
    free(names);
    return r;
}
