/* Small arrays to npz archives, and from any source.
 *
 * The archive is made as that of a job's outputs is: its members are joined, and appear with the
 * last commit. A checkpoint is so written again and again; results get an archive of their own, in
 * which nothing else is left. Called by programs and by checkpoint.c.
 */
#include "client/array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/formats.h"
#include "client/gpuarrayd-linalg.h"
#include "client/hidden.h"
#include "client/lib/connection/client.h"
#include "client/linalg/dense_files.h"
#include "client/tree.h"
#include "proto/dtype.h"
#include "proto/util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_MEMBERS 32

static int64_t n_elements(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n = mul_saturating_i64(n, shape[i]);
    return n;
}

int dense_init(struct gad_dense *dense, const char *name, int ndim, const int64_t *shape,
               struct gad_error *error)
{
    *dense = (struct gad_dense){.ndim = ndim};
    snprintf(dense->name, sizeof(dense->name), "%s", name);
    for (int i = 0; i < ndim; i++)
        dense->shape[i] = shape[i];
    dense->data = calloc((size_t)max_i64(n_elements(ndim, shape), 1), sizeof(*dense->data));
    return dense->data ? 0
                       : error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
}

static int write_all(int fd, const void *bytes, uint64_t n_bytes, uint64_t at)
{
    while (n_bytes > 0) {
        ssize_t n = pwrite(fd, bytes, n_bytes, (off_t)at);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            bytes = (const char *)bytes + n;
            at += (uint64_t)n;
            n_bytes -= (uint64_t)n;
        }
    }
    return 0;
}

/* One member: where it will be, and its elements there. */
static int put_member(const char *path, const struct gad_dense *dense, struct gad_array *first,
                      struct gad_array **ret_member, struct gad_error *error)
{
    _cleanup_free_ char *spec = NULL;
    if (asprintf(&spec, "%s:%s", path, dense->name) < 0) {
        spec = NULL;
        return -ENOMEM;
    }
    int r = format_create(NULL, spec, true, DTYPE_FLOAT64, dense->ndim, dense->shape, false, NULL,
                          ret_member, error);
    if (r)
        return r;
    struct gad_array *member = *ret_member;
    if (!member->join)
        return error_set(error, GAD_BAD_ARGUMENT, path, "%s is not named as an npz archive", path);
    if (first)
        r = member->join(member, first, error);
    uint64_t n_bytes = (uint64_t)n_elements(dense->ndim, dense->shape) * sizeof(double);
    if (r == 0)
        r = write_all(member->fd, dense->data, n_bytes, member->offset_bytes);
    return r < 0 ? error_from_errno(error, -r, path, path) : r;
}

int dense_save(const char *path, unsigned n, const struct gad_dense *arrays,
               struct gad_error *error)
{
    struct gad_array *members[MAX_MEMBERS] = {NULL};
    if (n > MAX_MEMBERS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "arrays", "%u arrays, at most %d are possible",
                         n, MAX_MEMBERS);
    int r = 0;
    for (unsigned i = 0; i < n && r == 0; i++)
        r = put_member(path, &arrays[i], members[0], &members[i], error);
    for (unsigned i = 0; i < n && r == 0; i++) {
        r = members[i]->commit(members[i], error);
        members[i]->is_committed = r == 0;
    }
    for (unsigned i = 0; i < n; i++)
        gad_array_release(members[i]);
    return r;
}

/* In a hidden folder beside its place, which the next output there removes if this process is
 * killed. */
static int make_apart(int dir_fd, const char *folder, const char *path, unsigned n,
                      const struct gad_dense *arrays, struct gad_error *error)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    _cleanup_free_ char *made = NULL;
    if (asprintf(&made, "%.*s%s/%s", (int)(base - path), path, folder, base) < 0) {
        made = NULL;
        return -ENOMEM;
    }
    int r = dense_save(made, n, arrays, error);
    if (r == 0 && renameat(AT_FDCWD, made, dir_fd, base) < 0)
        r = error_from_errno(error, errno, path, path);
    return r;
}

/* A new archive in the place of what is there. */
int dense_replace(const char *path, unsigned n, const struct gad_dense *arrays,
                  struct gad_error *error)
{
    char tag[HIDDEN_TAG_SIZE], folder[NAME_MAX + 1];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n_base = strlen(base);
    if (n_base < 4 || strcasecmp(base + n_base - 4, ".npz") != 0) {
        error_set(error, GAD_BAD_ARGUMENT, path, "%s is not named as an npz archive", path);
        error_expected(error, "FILE.npz");
        error_found(error, "%.100s", base);
        return GAD_BAD_ARGUMENT;
    }
    int r = hidden_tag(tag);
    if (r < 0)
        return r;
    _cleanup_free_ char *above = strndup(path, (size_t)(base - path));
    if (!above)
        return -ENOMEM;
    _cleanup_fd_ int dir_fd = open(*above ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    hidden_file_name(base, tag, folder);
    if (dir_fd >= 0)
        hidden_sweep(dir_fd);
    if (dir_fd < 0 || mkdirat(dir_fd, folder, 0777) < 0)
        return file_path_error(error, errno, path, path);
    r = make_apart(dir_fd, folder, path, n, arrays, error);
    if (tree_remove(dir_fd, folder))
        hidden_give_up(tag);
    return r;
}

/* Reading -------------------------------------------------------------------------------------- */

#define CONVERT(type)                                                                              \
    for (int64_t i = n; i-- > 0;)                                                                  \
    to[i] = (double)((const type *)from)[i]

/* `from` is where `to` is, or apart; elements are no wider than those of `to`. */
static void convert(enum gad_dtype dtype, const void *from, int64_t n, double *to)
{
    switch (dtype) {
    case GAD_BOOL:
    case GAD_UINT8: CONVERT(uint8_t); return;
    case GAD_INT8: CONVERT(int8_t); return;
    case GAD_INT16: CONVERT(int16_t); return;
    case GAD_UINT16: CONVERT(uint16_t); return;
    case GAD_INT32: CONVERT(int32_t); return;
    case GAD_UINT32: CONVERT(uint32_t); return;
    case GAD_INT64: CONVERT(int64_t); return;
    case GAD_UINT64: CONVERT(uint64_t); return;
    case GAD_FLOAT32: CONVERT(float); return;
    case GAD_FLOAT64: CONVERT(double); return;
    }
}

static void swap_bytes(void *elements, int64_t n, size_t width)
{
    uint8_t *at = elements;
    for (int64_t i = 0; i < n; i++, at += width)
        for (size_t j = 0; j < width / 2; j++) {
            uint8_t kept = at[j];
            at[j] = at[width - 1 - j];
            at[width - 1 - j] = kept;
        }
}

static int fetch(struct gad_array *array, const char *spec, struct gad_dense *dense,
                 struct gad_error *error)
{
    const struct gad_array_info *info = &array->info;
    const int64_t start[ARRAY_MAX_NDIM] = {0};
    int64_t n = n_elements(info->ndim, info->shape);
    _cleanup_free_ void *stored = malloc(gad_dtype_size(info->dtype) * (size_t)max_i64(n, 1));
    dense->data = malloc(sizeof(double) * (size_t)max_i64(n, 1));
    if (!stored || !dense->data)
        return -ENOMEM;
    if (!array->provider || !array->provider->fill)
        return error_set(error, GAD_BAD_FORMAT, spec, "%s cannot be read here", spec);
    int errno_of_read =
        n > 0 ? array->provider->fill(array->provider_state, start, info->shape, stored) : 0;
    if (errno_of_read)
        return error_from_errno(error, errno_of_read, spec, spec);
    if (info->is_swapped)
        swap_bytes(stored, n, gad_dtype_size(info->dtype));
    convert(info->dtype, stored, n, dense->data);
    dense->ndim = info->ndim;
    memcpy(dense->shape, info->shape, sizeof(*dense->shape) * (size_t)info->ndim);
    return 0;
}

int dense_load(const char *spec, struct gad_dense *ret_dense, struct gad_error *error)
{
    struct gad_array *array;
    struct gad_dense dense = {.ndim = 0};
    int r = format_open(NULL, spec, false, &array, error);
    if (r)
        return r;
    array_use_provider(array);
    r = fetch(array, spec, &dense, error);
    gad_array_release(array);
    if (r)
        free(dense.data);
    else
        *ret_dense = dense;
    return r;
}

enum gad_status gad_dense_save(const char *path, unsigned n, const struct gad_dense *arrays,
                               struct gad_error *error)
{
    if (!path || (n > 0 && !arrays))
        return error_set(error, GAD_BAD_ARGUMENT, path ? "arrays" : "path", "is NULL");
    return client_status(dense_replace(path, n, arrays, error), error);
}

enum gad_status gad_dense_load(const char *spec, struct gad_dense *ret_dense,
                               struct gad_error *error)
{
    if (!spec || !ret_dense)
        return error_set(error, GAD_BAD_ARGUMENT, spec ? "ret_dense" : "spec", "is NULL");
    return client_status(dense_load(spec, ret_dense, error), error);
}

void gad_dense_deinit(struct gad_dense *dense)
{
    if (dense)
        free(steal_ptr(dense->data));
}
