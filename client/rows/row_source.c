/* Arrays as rows.
 *
 *     file, each row in one piece     pread(), as many rows at once as lie behind each other
 *     file otherwise                  the provider of files: blocks of rows
 *     memory                          copies
 *     chunks, providers               blocks of rows, by the array's provider
 *
 * Where the chunks are known, all chunks side by side are a unit: whoever needs a row has to decode
 * them all, and has all their rows. Of other providers, and of files in which the elements of a row
 * are scattered, a unit is UNIT_BYTES of rows.
 *
 * Called by gathers and windows, in several threads.
 */
#include "client/rows/row_source.h"
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "proto/box.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNIT_BYTES (INT64_C(1) << 20)

static bool is_in_memory(const struct gad_array *array)
{
    return array->access == ACCESS_MEMORY || array->access == ACCESS_REGION;
}

static bool has_packed_rows(const struct gad_array *array)
{
    int64_t stride = (int64_t)gad_dtype_size(array->info.dtype);
    for (int i = array->info.ndim - 1; i > 0; i--) {
        if (array->info.shape[i] != 1 && array->info.strides[i] != stride)
            return false;
        stride *= array->info.shape[i];
    }
    return true;
}

static void find_unit(struct row_source *source)
{
    const struct gad_array *array = source->array;
    bool is_many_files = array->provider && array->provider->is_quick;
    source->unit_rows = 1;
    if (source->is_plain || is_in_memory(array) || source->row_bytes == 0 ||
        (is_many_files && array->access == ACCESS_PROVIDER))
        return;
    source->is_packed = array->access != ACCESS_FILE;
    source->is_chunked = source->is_packed && array->n_chunks > 0;
    if (source->is_chunked)
        source->unit_rows = array->chunk_shape[0];
    else
        source->unit_rows = UNIT_BYTES / (int64_t)source->row_bytes;
    source->unit_rows = max_i64(1, min_i64(source->unit_rows, source->n_rows));
}

int row_source_init(struct row_source *ret_source, struct gad_array *array, const char *name,
                    struct gad_error *error)
{
    const struct gad_array_info *info = &array->info;
    if (info->ndim == 0)
        return error_set(error, GAD_BAD_SHAPE, name, "%s has no axes, and so no rows", name);
    if (array->is_write_only)
        return error_set(error, GAD_BAD_ARGUMENT, name, "%s can only be written", name);
    struct row_source source = {
        .array = array,
        .n_rows = info->shape[0],
        .item_bytes = gad_dtype_size(info->dtype),
    };
    source.row_bytes = source.item_bytes;
    for (int i = 1; i < info->ndim; i++)
        source.row_bytes *= (size_t)info->shape[i]; /* was checked when the array was made */
    source.is_plain =
        (array->access == ACCESS_FILE || is_in_memory(array)) && has_packed_rows(array);
    source.is_concurrent =
        array->access == ACCESS_FILE || is_in_memory(array) || array->provider->is_concurrent;
    find_unit(&source);
    pthread_mutex_init(&source.turn, NULL);
    source.array = array_ref(array);
    *ret_source = source;
    return 0;
}

void row_source_deinit(struct row_source *source)
{
    if (!source->array)
        return;
    gad_array_release(source->array);
    source->array = NULL;
    pthread_mutex_destroy(&source->turn);
}

/* Reading -------------------------------------------------------------------------------------- */

static void copy_rows(const struct row_source *source, int64_t first, int64_t n, char *ret_rows)
{
    const struct gad_array_info *info = &source->array->info;
    const char *from = (const char *)source->array->data + first * info->strides[0];
    struct box box;
    box.n = 0;
    int64_t stride = (int64_t)source->item_bytes;
    for (int i = info->ndim - 1; i >= 0; i--) {
        int64_t count = i == 0 ? n : info->shape[i];
        box_add(&box, count, stride, info->strides[i]);
        stride *= count;
    }
    box_copy(&box, ret_rows, from, source->item_bytes, false);
}

static int read_run(int fd, char *ret_bytes, size_t n_bytes, uint64_t offset)
{
    size_t n;
    int r = file_read(fd, ret_bytes, n_bytes, offset, &n);
    if (r < 0)
        return -r;
    return n == n_bytes ? 0 : ENODATA; /* the file has become shorter */
}

static int read_plain(const struct row_source *source, int64_t first, int64_t n, char *ret_rows)
{
    const struct gad_array *array = source->array;
    int64_t stride = array->info.strides[0];
    uint64_t offset = array->offset_bytes + (uint64_t)(first * stride);
    if (stride == (int64_t)source->row_bytes)
        return read_run(array->fd, ret_rows, (size_t)n * source->row_bytes, offset);
    int r = 0;
    for (int64_t i = 0; i < n && r == 0; i++)
        r = read_run(array->fd, ret_rows + (size_t)i * source->row_bytes, source->row_bytes,
                     offset + (uint64_t)(i * stride));
    return r;
}

int row_source_read(struct row_source *source, int64_t first, int64_t n, void *ret_rows)
{
    struct gad_array *array = source->array;
    if (n == 0 || source->row_bytes == 0)
        return 0;
    if (is_in_memory(array)) {
        copy_rows(source, first, n, ret_rows);
        return 0;
    }
    if (source->is_plain)
        return read_plain(source, first, n, ret_rows);
    int64_t start[ARRAY_MAX_NDIM] = {first}, count[ARRAY_MAX_NDIM] = {n};
    for (int i = 1; i < array->info.ndim; i++)
        count[i] = array->info.shape[i];
    if (array->access == ACCESS_FILE)
        return file_provider.fill(array, start, count, ret_rows);
    if (!source->is_concurrent)
        pthread_mutex_lock(&source->turn);
    int r = array->provider->fill(array->provider_state, start, count, ret_rows);
    if (!source->is_concurrent)
        pthread_mutex_unlock(&source->turn);
    return r;
}

/* Its own; NULL: it is read without one. */
static const struct provider *provider_of(const struct row_source *source)
{
    return source->array->access == ACCESS_PROVIDER ? source->array->provider : NULL;
}

static int say_changed(const struct row_source *source, const char *name, struct gad_error *error)
{
    const struct provider *provider = provider_of(source);
    struct gad_error own;
    if (!error)
        error = &own;
    error_set(error, GAD_DATASET_CHANGED, name, "a file of %.60s has changed", name);
    if (provider->explain)
        provider->explain(source->array->provider_state, error);
    return error->status = GAD_DATASET_CHANGED;
}

int row_source_watch(struct row_source *source, const char *name, struct file_sums *sums,
                     struct gad_error *error)
{
    const struct provider *provider = provider_of(source);
    int r = provider && provider->watch ? provider->watch(source->array->provider_state, sums) : 0;
    if (r == ESTALE)
        return say_changed(source, name, error);
    return r ? error_from_errno(error, r, name, "looking at files") : 0;
}

int row_source_verify(struct row_source *source, const char *name, struct gad_error *error)
{
    const struct provider *provider = provider_of(source);
    if (!provider || !provider->verify || !provider->verify(source->array->provider_state))
        return 0;
    return say_changed(source, name, error);
}

int row_source_explain(struct row_source *source, int64_t first, int64_t n, int error_number,
                       const char *name, struct gad_error *error)
{
    const struct gad_array *array = source->array;
    const struct provider *provider = provider_of(source);
    const char *path = array->info.path ? array->info.path : name;
    struct gad_error own;
    if (!error)
        error = &own;
    error_set(error, GAD_PROVIDER_FAILED, name, "%.160s", path);
    if (provider && provider->explain) { /* it keeps the first failure: of other rows, so far */
        struct gad_error earlier = *error;
        provider->explain(array->provider_state, &earlier);
    }
    _cleanup_free_ char *again = malloc((size_t)n * source->row_bytes + 1);
    int now = again ? row_source_read(source, first, n, again) : ENOMEM;
    if (error_number == ESTALE && now == 0 && provider && provider->verify)
        now = provider->verify(array->provider_state); /* what is open was read all the same */
    error_number = error_number ? error_number : now ? now : EIO;
    if (error_number == ENOMEM)
        return error_from_errno(error, ENOMEM, name, "reading rows");
    if (error_number == ENODATA)
        error_set(error, GAD_SHORT_READ, name, "%.160s is shorter than the array in it", path);
    else if (error_number == ESTALE)
        error_set(error, GAD_DATASET_CHANGED, name, "%.160s has changed since it was opened", path);
    else
        error_set(error, GAD_PROVIDER_FAILED, name, "%.160s: %s", path,
                  strerrordesc_np(error_number));
    bool is_stale = error_number == ESTALE;
    error_expected(error, is_stale ? "the file as it was" : "rows that can be read");
    error_found(error, "%s",
                is_stale ? "another size, time or place" : strerrordesc_np(error_number));
    /* What was written into a file may look like damage, which is not why. */
    if (now && (!is_stale || now == ESTALE) && provider && provider->explain)
        provider->explain(array->provider_state, error);
    if (is_stale)
        return error->status = GAD_DATASET_CHANGED;
    size_t n_chars = strlen(error->message);
    snprintf(error->message + n_chars, sizeof(error->message) - n_chars,
             " (rows %" PRId64 " to %" PRId64 " of %.32s)", first, first + n - 1, name);
    return error->status;
}

/* The last one before `limit` on its way there, which is a row, too. Steps become longer, then
 * shorter again. */
static int64_t last_unreadable(struct row_source *source, int64_t row, int64_t limit, void *buffer)
{
    int64_t step = limit < row ? -1 : 1;
    bool is_growing = true;
    while (row != limit && step != 0) {
        int64_t next = step < 0 ? max_i64(row + step, limit) : min_i64(row + step, limit);
        bool is_bad = row_source_read(source, next, 1, buffer) != 0;
        row = is_bad ? next : row;
        is_growing &= is_bad;
        step = is_growing ? step * 2 : step / 2;
    }
    return row;
}

void row_source_unreadable(struct row_source *source, int64_t row, int64_t *ret_first,
                           int64_t *ret_n)
{
    *ret_first = row;
    *ret_n = 1;
    if (source->is_chunked) {
        *ret_first = row / source->unit_rows * source->unit_rows;
        *ret_n = min_i64(source->unit_rows, source->n_rows - *ret_first);
        return;
    }
    _cleanup_free_ void *buffer = malloc(source->row_bytes);
    if (!buffer)
        return;
    *ret_first = last_unreadable(source, row, 0, buffer);
    *ret_n = last_unreadable(source, row, source->n_rows - 1, buffer) - *ret_first + 1;
}

void row_source_order_bytes(const struct row_source *source, void *rows, size_t n_bytes)
{
    char *at = rows;
    if (!source->array->info.is_swapped)
        return;
    for (size_t i = 0; i < n_bytes; i += source->item_bytes)
        for (size_t k = 0; k < source->item_bytes / 2; k++) {
            char kept = at[i + k];
            at[i + k] = at[i + source->item_bytes - 1 - k];
            at[i + source->item_bytes - 1 - k] = kept;
        }
}

/* Arrays of rows ------------------------------------------------------------------------------- */

static struct gad_array *new_array(const struct row_source *source, enum access access)
{
    struct gad_array *array =
        array_new(NULL, access == ACCESS_FILE ? "file" : "memory", access, NULL);
    if (!array)
        return NULL;
    const struct gad_array_info *info = &source->array->info;
    array->info.dtype = info->dtype;
    array->info.is_swapped = info->is_swapped;
    array->info.ndim = info->ndim;
    memcpy(array->info.shape, info->shape, sizeof(info->shape));
    array_c_strides(info->ndim, info->shape, (int64_t)source->item_bytes, array->info.strides);
    return array;
}

static void free_memory(struct gad_array *array)
{
    free(array->data);
}

struct gad_array *row_source_in_memory(const struct row_source *source, void *memory_take)
{
    struct gad_array *array = new_array(source, ACCESS_MEMORY);
    if (!array)
        return NULL;
    array->data = memory_take;
    array->maker_free = free_memory;
    return array;
}

struct gad_array *row_source_in_file(const struct row_source *source, int fd_take)
{
    struct gad_array *array = new_array(source, ACCESS_FILE);
    if (array)
        array->fd = fd_take;
    return array;
}
