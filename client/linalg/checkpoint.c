/* Checkpoints of decompositions: written between iterations, read before the first.
 *
 * Whatever kills the process, the file is that of one full iteration: it takes the place of the
 * one before as a whole.
 */
#include "client/linalg/checkpoint.h"
#include "client/lib/arguments/identity.h"
#include "client/linalg/dense_files.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_ARRAYS 16
#define OF_DIGEST  4 /* numbers of 32 bits: of all, and of the data alone */

void checkpoint_init(struct checkpoint *c, const char *path, const struct gad_operand *operand,
                     enum gad_dtype dtype, int ndim, const int64_t *shape)
{
    *c = (struct checkpoint){
        .path = path, .dtype = dtype, .ndim = ndim, .digest = IDENTITY_BASIS, .n_state = 1};
    memcpy(c->shape, shape, sizeof(*shape) * (size_t)ndim);
    if (!path)
        return;
    c->digest = identity_text(c->digest, operand->expr);
    if (!operand->expr)
        c->digest = identity_array(c->digest, operand->array);
    for (unsigned i = 0; operand->expr && i < operand->n_args; i++)
        c->digest = identity_argument(c->digest, &operand->args[i]);
    c->data_digest = c->digest;
}

void checkpoint_mark(struct checkpoint *c, double setting)
{
    c->digest = identity_bytes(c->digest, &setting, sizeof(setting));
}

/* dtype, digests, shape. */
static struct gad_dense of_what(const struct checkpoint *c, double *ret_numbers)
{
    ret_numbers[0] = c->dtype;
    ret_numbers[1] = (double)(c->digest >> 32);
    ret_numbers[2] = (double)(c->digest & UINT32_MAX);
    ret_numbers[3] = (double)(c->data_digest >> 32);
    ret_numbers[4] = (double)(c->data_digest & UINT32_MAX);
    for (int i = 0; i < c->ndim; i++)
        ret_numbers[1 + OF_DIGEST + i] = (double)c->shape[i];
    return (struct gad_dense){
        .name = "_of", .ndim = 1, .shape = {1 + OF_DIGEST + c->ndim}, .data = ret_numbers};
}

int checkpoint_write(const struct checkpoint *c, unsigned n, const struct gad_dense *arrays,
                     struct gad_error *error)
{
    struct gad_dense all[MAX_ARRAYS + 2];
    double numbers[1 + OF_DIGEST + ARRAY_MAX_NDIM], state[CHECKPOINT_STATE];
    if (!c->path)
        return 0;
    if (n > MAX_ARRAYS)
        return error_set(error, GAD_LIMIT_EXCEEDED, c->path, "a checkpoint has at most %d arrays",
                         MAX_ARRAYS);
    memcpy(all, arrays, sizeof(*arrays) * n);
    memcpy(state, c->state, sizeof(state));
    all[n] = of_what(c, numbers);
    all[n + 1] =
        (struct gad_dense){.name = "_state", .ndim = 1, .shape = {c->n_state}, .data = state};
    return dense_save(c->path, n + 2, all, error);
}

static int of_another(const struct checkpoint *c, const char *expected, const char *found,
                      struct gad_error *error)
{
    error_set(error, GAD_BAD_CHECKPOINT, c->path,
              "%s is a checkpoint of something else: remove it, or name another file", c->path);
    error_expected(error, "%s", expected);
    error_found(error, "%s", found);
    return GAD_BAD_CHECKPOINT;
}

int checkpoint_refuse(const struct checkpoint *c, const char *expected, double found,
                      struct gad_error *error)
{
    error_set(error, GAD_BAD_CHECKPOINT, c->path, "%s is no checkpoint that can be gone on from",
              c->path);
    error_expected(error, "%s", expected);
    error_found(error, "%g", found);
    return GAD_BAD_CHECKPOINT;
}

/* Before anything is read for it: whether it can be written. */
static int check_place(const char *path, struct gad_error *error)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    if (n < 5 || strcasecmp(base + n - 4, ".npz") != 0) {
        error_set(error, GAD_BAD_ARGUMENT, "checkpoint", "%s: a checkpoint is an .npz archive",
                  path);
        error_expected(error, "FILE.npz");
        error_found(error, "%.100s", base);
        return GAD_BAD_ARGUMENT;
    }
    _cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!folder)
        return -ENOMEM;
    if (access(folder, W_OK | X_OK) == 0)
        return 0;
    int number = errno;
    error_set(error, error_from_errno(NULL, number, path, path), "checkpoint", "%s: its folder: %s",
              path, strerror(number));
    error_expected(error, "a folder that can be written");
    error_found(error, "%.100s: %s", folder, strerror(number));
    return error_from_errno(NULL, number, path, path);
}

static int load(const struct checkpoint *c, const char *name, struct gad_dense *ret_dense,
                struct gad_error *error)
{
    _cleanup_free_ char *spec = NULL;
    if (asprintf(&spec, "%s:%s", c->path, name) < 0) {
        spec = NULL;
        return -ENOMEM;
    }
    return dense_load(spec, ret_dense, error);
}

static void shape_text(const double *of, int ndim, char *ret_text, size_t n_bytes)
{
    size_t at = (size_t)snprintf(ret_text, n_bytes, "%s (", gad_dtype_name((enum gad_dtype)of[0]));
    for (int i = 0; i < ndim && at < n_bytes; i++)
        at += (size_t)snprintf(ret_text + at, n_bytes - at, "%s%.0f", i ? ", " : "",
                               of[1 + OF_DIGEST + i]);
    if (at < n_bytes)
        snprintf(ret_text + at, n_bytes - at, ")");
}

static int check_of(const struct checkpoint *c, const struct gad_dense *found,
                    struct gad_error *error)
{
    double numbers[1 + OF_DIGEST + ARRAY_MAX_NDIM];
    char wanted_text[100], found_text[100];
    struct gad_dense wanted = of_what(c, numbers);
    int64_t n = wanted.shape[0];
    if (found->ndim != 1 || found->shape[0] < 1 + OF_DIGEST)
        return of_another(c, "a checkpoint", "an archive", error);
    bool is_same_size = found->shape[0] == n;
    if (is_same_size && memcmp(found->data, numbers, sizeof(double) * (size_t)n) == 0)
        return 0;
    shape_text(numbers, c->ndim, wanted_text, sizeof(wanted_text));
    int ndim = (int)min_i64(found->shape[0] - 1 - OF_DIGEST, ARRAY_MAX_NDIM);
    shape_text(found->data, ndim, found_text, sizeof(found_text));
    if (strcmp(wanted_text, found_text) != 0)
        return of_another(c, wanted_text, found_text, error);
    return memcmp(found->data + 3, numbers + 3, sizeof(double) * 2) == 0
               ? of_another(c, "these settings", "other ones, of the same data", error)
               : of_another(c, "this data, as it is",
                            "another file or expression, or the file before it was changed", error);
}

static int read_member(const struct checkpoint *c, struct gad_dense *into, struct gad_error *error)
{
    struct gad_dense found;
    int r = load(c, into->name, &found, error);
    if (r)
        return r;
    size_t n_shape_bytes = sizeof(*into->shape) * (size_t)into->ndim;
    if (found.ndim != into->ndim || memcmp(found.shape, into->shape, n_shape_bytes) != 0) {
        gad_dense_deinit(&found);
        return of_another(c, "arrays of these settings", "other sizes", error);
    }
    size_t n_bytes = sizeof(double);
    for (int i = 0; i < into->ndim; i++)
        n_bytes *= (size_t)into->shape[i];
    memcpy(into->data, found.data, n_bytes);
    gad_dense_deinit(&found);
    return 0;
}

int checkpoint_read(struct checkpoint *c, unsigned n, struct gad_dense *arrays, bool *ret_is_there,
                    struct gad_error *error)
{
    struct gad_dense of;
    double state[CHECKPOINT_STATE] = {0};
    *ret_is_there = false;
    int r = c->path ? check_place(c->path, error) : 0;
    if (r || !c->path || access(c->path, F_OK) != 0)
        return r;
    r = load(c, "_of", &of, error);
    if (r)
        return r == GAD_NOT_FOUND ? of_another(c, "a checkpoint", "an archive", error) : r;
    r = check_of(c, &of, error);
    gad_dense_deinit(&of);
    for (unsigned i = 0; i < n && r == 0; i++)
        r = read_member(c, &arrays[i], error);
    struct gad_dense kept = {.name = "_state", .ndim = 1, .shape = {c->n_state}, .data = state};
    if (r == 0)
        r = read_member(c, &kept, error);
    if (r == 0) {
        memcpy(c->state, state, sizeof(state));
        *ret_is_there = true;
    }
    return r;
}
