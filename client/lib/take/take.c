/* Making arrays of elements that are picked by indices, and moving them.
 *
 * Such an array holds references to the two that it is made of. What it means is what its array
 * means, but of axes whose elements are picked: they have no coordinates any more, and one that is
 * picked by a list alone keeps its name.
 *
 * Called by programs.
 */
#include "client/lib/take/take.h"
#include "client/formats/files/file_provider.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/stream.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MEMORY_BYTES     (UINT64_C(256) << 20)
#define FILE_GAP_BYTES   4096  /* are read as fast as is asked for once more */
#define PACKED_GAP_BYTES 16384 /* of what is unpacked anyway */
#define PACKED_PLACES    64    /* that a chunk has, where nobody says */

static bool has_memory(const struct gad_array *array)
{
    return array->access == ACCESS_MEMORY || array->access == ACCESS_REGION;
}

static bool is_in_file(const struct gad_array *array)
{
    return !has_memory(array) && array->provider == &file_provider;
}

/* Whether several threads may read it at once: pread() they may in any case. */
static bool is_concurrent(const struct gad_array *array)
{
    return has_memory(array) || is_in_file(array) || array->provider->is_concurrent;
}

/* What is asked for ---------------------------------------------------------------------------- */

static int check_readable(const struct gad_array *array, const char *name, struct gad_error *error)
{
    if (!array)
        return error_set(error, GAD_BAD_ARGUMENT, name, "%s is NULL", name);
    if (stream_of(array))
        return error_set(error, GAD_BAD_ARGUMENT, name,
                         "elements of a stream cannot be picked: they come once and in order");
    if (array->is_write_only || (!has_memory(array) && !array->provider))
        return error_set(error, GAD_BAD_ARGUMENT, name, "%s cannot be read", name);
    return 0;
}

static int check_indices(struct gad_array *indices, struct gad_error *error)
{
    enum gad_dtype dtype = meaning_dtype(indices);
    int r = check_readable(indices, "indices", error);
    if (r || (dtype_is_integer((enum dtype)dtype) && dtype == indices->info.dtype))
        return r;
    error_set(error, GAD_BAD_DTYPE, "indices", "indices are integers, not %s",
              dtype_name((enum dtype)dtype));
    error_expected(error, "int8 to int64, uint8 to uint64");
    error_found(error, "%s", dtype_name((enum dtype)dtype));
    return GAD_BAD_DTYPE;
}

/* Which axes are one: *ret_n of them from *ret_axis on. */
static int find_axes(const struct gad_array_info *info, const struct gad_take_options *options,
                     int *ret_axis, int *ret_n, struct gad_error *error)
{
    int n = options->n_axes == 0 ? 1 : options->n_axes;
    if ((unsigned)options->mode > GAD_TAKE_CLIP)
        return error_set(error, GAD_BAD_ARGUMENT, "mode", "%d is no mode", (int)options->mode);
    if (info->ndim == 0) {
        error_set(error, GAD_BAD_SHAPE, "array", "an array without axes has no indices");
        error_expected(error, "at least one axis");
        error_found(error, "()");
        return GAD_BAD_SHAPE;
    }
    int r = view_axis(info->ndim, options->axis, "axis", ret_axis, error);
    if (r)
        return r;
    *ret_n = n < 0 ? info->ndim - *ret_axis : n;
    if (*ret_n > info->ndim - *ret_axis) {
        error_set(error, GAD_BAD_SHAPE, "n_axes", "%d axes from axis %d on of an array of %d", n,
                  *ret_axis, info->ndim);
        error_expected(error, "at most %d", info->ndim - *ret_axis);
        error_found(error, "%d", n);
        return GAD_BAD_SHAPE;
    }
    return 0;
}

/* Making --------------------------------------------------------------------------------------- */

static void free_take(struct gad_array *array)
{
    struct take *take = array->format_state;
    take_window_free(take->window);
    gad_array_release(take->array);
    gad_array_release(take->indices);
    pthread_mutex_destroy(&take->lock);
    free(take);
}

static struct take *take_new(struct gad_array *array, struct gad_array *indices, int axis,
                             int n_axes, const struct gad_take_options *options)
{
    struct take *take = calloc(1, sizeof(*take));
    if (!take)
        return NULL;
    pthread_mutex_init(&take->lock, NULL);
    take->array = array_ref(array);
    take->indices = array_ref(indices);
    take->axis = axis;
    take->n_axes = n_axes;
    take->n_index_axes = indices->info.ndim;
    take->n_after = array->info.ndim - axis - n_axes;
    take->mode = options->mode;
    take->length = 1;
    for (int i = axis; i < axis + n_axes; i++)
        take->length =
            mul_saturating_i64(take->length, array->info.shape[i]); /* beside an axis of 0 */
    take->is_in_file = is_in_file(array);
    take->is_in_memory = has_memory(array);
    take->memory_bytes = options->memory_bytes ? options->memory_bytes : MEMORY_BYTES;
    take->gap_bytes = take->is_in_file ? FILE_GAP_BYTES : PACKED_GAP_BYTES;
    return take;
}

static void describe(const struct take *take, struct array *ret)
{
    const struct gad_array_info *info = &take->array->info, *indices = &take->indices->info;
    *ret = (struct array){.dtype = (enum dtype)info->dtype, .is_swapped = info->is_swapped};
    ret->ndim = info->ndim - take->n_axes + indices->ndim;
    if (ret->ndim > ARRAY_MAX_NDIM)
        return;
    memcpy(ret->shape, info->shape, (size_t)take->axis * sizeof(*ret->shape));
    memcpy(ret->shape + take->axis, indices->shape, (size_t)indices->ndim * sizeof(*ret->shape));
    memcpy(ret->shape + take->axis + indices->ndim, info->shape + take->axis + take->n_axes,
           (size_t)take->n_after * sizeof(*ret->shape));
}

static int check_result(const struct take *take, struct array *described, struct gad_error *error)
{
    bool has_indices = true;
    if (described->ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "indices", "%d dimensions: 0 to %d are possible",
                         described->ndim, ARRAY_MAX_NDIM);
    int r = array_check(described, "indices", error); /* before strides are made of it */
    if (r)
        return r;
    array_c_strides(described->ndim, described->shape, (int64_t)dtype_size(described->dtype),
                    described->strides);
    for (int i = 0; i < take->n_index_axes; i++)
        has_indices &= take->indices->info.shape[i] > 0;
    if (take->length > 0 || !has_indices)
        return 0;
    error_set(error, GAD_BAD_INDEX, "indices", "an axis of no elements has no indices");
    error_expected(error, "no indices");
    error_found(error, "some");
    return GAD_BAD_INDEX;
}

static int copy_meaning(const struct take *take, struct gad_array *result)
{
    int axes[ARRAY_MAX_NDIM];
    int64_t starts[ARRAY_MAX_NDIM] = {0}, steps[ARRAY_MAX_NDIM];
    int behind = take->axis + take->n_index_axes;
    int picked = take->n_axes == 1 && take->n_index_axes == 1 ? take->axis : -1;
    for (int i = 0; i < result->info.ndim; i++) {
        axes[i] = i < take->axis ? i : i < behind ? picked : i - take->n_index_axes + take->n_axes;
        steps[i] = 1;
    }
    result->info.has_fill = take->array->info.has_fill;
    result->info.fill = take->array->info.fill;
    result->info.exact_fill = take->array->info.exact_fill;
    int r = meaning_copy_to_view(take->array, result, result->info.ndim, axes, starts, steps);
    if (r == 0 && picked >= 0 && result->meaning) {
        free(steal_ptr(result->meaning->coordinates[picked]));
        result->meaning->limits.is_unlimited[picked] = false;
    }
    return r;
}

/* How many places are read for the price of one, see take_window.c. */
static void set_cost(struct take *take)
{
    const struct gad_array *array = take->array;
    int64_t row_bytes = (int64_t)gad_dtype_size(array->info.dtype);
    for (int i = take->axis + take->n_axes; i < array->info.ndim; i++)
        row_bytes *= array->info.shape[i];
    take->chunk_places = PACKED_PLACES;
    if (take->is_in_file)
        take->chunk_places = row_bytes > 0 ? FILE_GAP_BYTES / row_bytes : 1;
    else if (array->n_chunks > 0)
        take->chunk_places = array->chunk_shape[take->axis];
    for (int i = take->axis + 1; i < take->axis + take->n_axes && !take->is_in_file; i++)
        take->chunk_places *= array->n_chunks > 0 ? array->chunk_shape[i] : 1;
    take->chunk_places = max_i64(take->chunk_places, 1);
}

static int make(struct gad_array *array, struct gad_array *indices,
                const struct gad_take_options *options, struct gad_array **ret_array,
                struct gad_error *error)
{
    int axis, n_axes;
    struct array described;
    int r = check_readable(array, "array", error);
    if (r == 0)
        r = check_indices(indices, error);
    if (r == 0)
        r = find_axes(&array->info, options, &axis, &n_axes, error);
    if (r)
        return r;
    struct gad_array *result =
        array_new(array->client, array->info.format, ACCESS_PROVIDER, array->info.path);
    struct take *take = result ? take_new(array, indices, axis, n_axes, options) : NULL;
    if (!take) {
        gad_array_release(result);
        return -ENOMEM;
    }
    result->format_state = result->provider_state = take;
    result->maker_free = free_take;
    result->provider =
        is_concurrent(array) && is_concurrent(indices) ? &take_provider : &take_provider_alone;
    describe(take, &described);
    r = check_result(take, &described, error);
    if (r == 0) {
        memory_fill_info(result, &described);
        array_set_spec(result, array->spec);
        set_cost(take);
        r = copy_meaning(take, result);
    }
    if (r == 0)
        r = take_window_new(take, &result->info);
    if (r)
        gad_array_release(result);
    else
        *ret_array = result;
    return r;
}

enum gad_status gad_array_take(struct gad_array *array, struct gad_array *indices,
                               const struct gad_take_options *options, struct gad_array **ret_array,
                               struct gad_error *error)
{
    static const struct gad_take_options zeroed;
    if (!ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_array", "ret_array is NULL");
    if (!array || !indices)
        return error_set(error, GAD_BAD_ARGUMENT, array ? "indices" : "array", "is NULL");
    return client_status(make(array, indices, options ? options : &zeroed, ret_array, error),
                         error);
}

/* As a movement -------------------------------------------------------------------------------- */

static int refuse_mask(const struct gad_array *array, const struct gad_array *mask, int axis,
                       struct gad_error *error)
{
    char of_array[96], of_mask[96];
    array_format_shape(array->info.ndim, array->info.shape, of_array, sizeof(of_array));
    array_format_shape(mask->info.ndim, mask->info.shape, of_mask, sizeof(of_mask));
    error_set(error, GAD_BAD_SHAPE, "indices",
              "a mask of shape %s does not fit the axes from %d on of an array of shape %s",
              of_mask, axis, of_array);
    error_expected(error, "the shape of these axes");
    error_found(error, "%s", of_mask);
    return GAD_BAD_SHAPE;
}

/* Where the mask is true, by a job of its own; options->n_axes becomes what the mask has. */
static int find_positions(struct gad_client *client, struct gad_array *array,
                          struct gad_array *mask, struct gad_take_options *options,
                          const struct gad_move_options *move, struct gad_array **ret_positions,
                          struct gad_error *error)
{
    int axis, n_axes;
    struct gad_array *marks = NULL;
    options->n_axes = 1;
    int r = find_axes(&array->info, options, &axis, &n_axes, error);
    if (r)
        return r;
    options->n_axes = mask->info.ndim;
    if (mask->info.ndim == 0 || mask->info.ndim > array->info.ndim - axis ||
        memcmp(mask->info.shape, array->info.shape + axis,
               (size_t)mask->info.ndim * sizeof(int64_t)) != 0)
        return refuse_mask(array, mask, axis, error);
    if (mask->access == ACCESS_MEMORY && !mask->data) /* of a plan of what is not there yet */
        return error_set(error, GAD_BAD_ARGUMENT, "mask", "the mask is not known yet");
    r = (int)gad_array_new_marks(client, mask->info.ndim, mask->info.shape, &marks, error);
    struct gad_argument arg = {.name = "mask", .array = mask};
    struct gad_output output = {.expr = "mask", .to = marks};
    struct gad_job_options job = {.n_args = 1,
                                  .args = &arg,
                                  .n_outputs = 1,
                                  .outputs = &output,
                                  .engine = move->engine,
                                  .priority = move->priority,
                                  .queue_timeout_ms = move->queue_timeout_ms,
                                  .deadline_ms = move->deadline_ms,
                                  .label = move->label};
    struct gad_job *running;
    if (r == 0)
        r = (int)gad_submit(client, &job, &running, error);
    if (r == 0) {
        r = move_wait(move, running, error);
        gad_job_free(running);
    }
    if (r == 0)
        r = (int)gad_array_positions(marks, ret_positions, error);
    gad_array_release(marks);
    return r;
}

int take_indexed(struct gad_client *client, struct gad_array *array, struct gad_array *indices,
                 const struct gad_take_options *options, const struct gad_move_options *move,
                 struct gad_array **ret_array, struct gad_error *error)
{
    struct gad_take_options own = *options;
    struct gad_array *positions = NULL;
    int r = 0;
    if (indices->info.dtype == GAD_BOOL)
        r = find_positions(client, array, indices, &own, move, &positions, error);
    if (r == 0)
        r = make(array, positions ? positions : indices, &own, ret_array, error);
    gad_array_release(positions);
    return r;
}

static int run(struct gad_client *client, struct gad_array *taken, struct gad_array *const *apart,
               const struct gad_move_options *options, struct gad_job_stats *ret_stats,
               struct gad_error *error)
{
    struct move move;
    struct move_result result = {.dtype = meaning_dtype(taken), .ndim = taken->info.ndim};
    struct move_segment segments[ARRAY_MAX_NDIM];
    int axes[ARRAY_MAX_NDIM];
    for (int i = 0; i < result.ndim; i++) {
        result.shape[i] = taken->info.shape[i];
        segments[i] =
            (struct move_segment){.step = 1, .count = taken->info.shape[i], .n_repeats = 1};
        axes[i] = i;
    }
    int r = move_init(&move, client, options, &result, 2, apart, error);
    if (r == 0)
        r = move_add(&move, taken, axes, segments, error);
    if (r == 0)
        r = move_run(&move, ret_stats, error);
    move_deinit(&move);
    return r;
}

enum gad_status gad_take(struct gad_client *client, struct gad_array *array,
                         struct gad_array *indices, const struct gad_take_options *options,
                         const struct gad_move_options *move, struct gad_job_stats *ret_stats,
                         struct gad_error *error)
{
    static const struct gad_take_options zeroed;
    struct gad_array *apart[] = {array, indices}, *taken = NULL;
    int r = move_check(client, 2, apart, move, error);
    if (r == 0)
        r = take_indexed(client, array, indices, options ? options : &zeroed, move, &taken, error);
    if (r == 0)
        r = run(client, taken, apart, move, ret_stats, error);
    if (r == GAD_BAD_INDEX && error) /* the movement's own name for it is nobody's */
        snprintf(error->argument, sizeof(error->argument), "indices");
    gad_array_release(taken);
    return client_status(r, error);
}
