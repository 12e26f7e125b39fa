/* Arrays: making one, its public questions, and its end.
 *
 * An array belongs to the client that it was made from and counts references: the caller's own and
 * one for every job that uses it, so that a caller who releases too early only keeps the array
 * alive until the job is freed. The last release undoes an output that was never committed, frees
 * what its maker keeps for it (a format's state, shared memory of the arena) and closes the
 * descriptors.
 *
 * Whoever makes arrays, a format or the library's memory, calls array_new() and fills in the rest.
 */
#include "client/array.h"
#include "client/carried.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <string.h>

#define OPEN_MAX_BYTES (INT64_C(1) << 50) /* what is computed with it may be some times larger */
#define OPEN_ODD_ROWS  87

static const char *access_name(enum access access)
{
    static const char *const names[] = {
        [ACCESS_FILE] = "file",     [ACCESS_CHUNKS] = "chunks", [ACCESS_PROVIDER] = "provider",
        [ACCESS_REGION] = "region", [ACCESS_MEMORY] = "memory",
    };
    return names[access];
}

struct gad_array *array_new(struct gad_client *client, const char *format, enum access access,
                            const char *path)
{
    struct gad_array *array = calloc(1, sizeof(*array));
    if (!array)
        return NULL;
    *array = (struct gad_array){
        .client = client,
        .n_refs = 1,
        .access = access,
        .fd = -1,
        .table_fd = -1,
        .info = {.format = format, .access = access_name(access)},
    };
    if (path) {
        array->info.path = strdup(path);
        if (!array->info.path) {
            free(array);
            return NULL;
        }
    }
    return array;
}

void array_set_spec(struct gad_array *array, const char *spec)
{
    array->spec = spec ? strdup(spec) : NULL;
}

struct gad_array *array_ref(struct gad_array *array)
{
    array->n_refs++;
    return array;
}

struct array array_described(const struct gad_array *array)
{
    struct array described = {
        .dtype = (enum dtype)array->info.dtype,
        .is_swapped = array->info.is_swapped,
        .ndim = array->info.ndim,
    };
    memcpy(described.shape, array->info.shape, sizeof(described.shape));
    memcpy(described.strides, array->info.strides, sizeof(described.strides));
    return described;
}

bool array_is_open(const struct gad_array *array)
{
    return array->info.ndim > 0 && array->info.shape[0] == GAD_UNKNOWN_LENGTH;
}

/* No number that somebody would choose, since what is as long in a job is taken for the same axis.
 */
int64_t array_open_rows(const struct gad_array *array)
{
    int64_t row_bytes = (int64_t)gad_dtype_size(array->info.dtype);
    for (int i = 1; i < array->info.ndim; i++)
        if (mul_overflows_i64(row_bytes, array->info.shape[i], &row_bytes))
            return 0;
    int64_t n_rows = row_bytes > 0 ? OPEN_MAX_BYTES / row_bytes - OPEN_ODD_ROWS : 0;
    return n_rows > 0 ? n_rows : 0;
}

void array_write_through(struct gad_array *array, const struct provider *provider, void *state)
{
    memset(array->info.strides, 0, sizeof(array->info.strides));
    array->access = ACCESS_PROVIDER;
    array->info.access = access_name(ACCESS_PROVIDER);
    array->is_write_only = true;
    array->provider = provider;
    array->provider_state = state;
}

bool array_use_provider(struct gad_array *array)
{
    if (!array->provider || (array->access != ACCESS_FILE && array->access != ACCESS_CHUNKS))
        return false;
    array->access = ACCESS_PROVIDER;
    array->info.access = access_name(ACCESS_PROVIDER);
    return true;
}

void gad_array_release(struct gad_array *array)
{
    if (!array || --array->n_refs > 0)
        return;
    if (array->discard && !array->is_committed)
        array->discard(array);
    if (array->maker_free)
        array->maker_free(array);
    close_fd(&array->fd);
    close_fd(&array->table_fd);
    free((char *)array->info.path);
    free(array->spec);
    free(array->picked_as);
    meaning_free(array->meaning);
    carried_free(array->carried);
    free(array);
}

int array_settle(struct gad_array *array_take, int r, struct gad_array **ret_array)
{
    if (r)
        gad_array_release(array_take);
    else
        *ret_array = array_take;
    return r;
}

const struct gad_array_info *gad_array_info(const struct gad_array *array)
{
    return array ? &array->info : NULL;
}

void *gad_array_data(struct gad_array *array)
{
    return array ? array->data : NULL;
}

enum gad_status gad_array_commit(struct gad_array *array, struct gad_error *error)
{
    if (!array)
        return error_set(error, GAD_BAD_ARGUMENT, "array", "array is NULL");
    if (!array->commit || array->is_committed)
        return GAD_OK;
    int r = array->commit(array, error);
    if (r < 0)
        return error_from_errno(error, -r, array->info.path, "commit");
    if (r == 0)
        array->is_committed = true;
    return r;
}
