/* Transposing, reversing, joining and repeating: movements with few pieces.
 *
 * Each function checks what it is given as NumPy does, says what shape comes out, and names the
 * pieces: all of a source by a permutation, one piece a source, one piece with repeated axes.
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct move_segment whole(int64_t size)
{
    return (struct move_segment){.step = 1, .count = size, .n_repeats = 1};
}

static struct move_result like(const struct gad_array *array)
{
    struct move_result result = {.dtype = meaning_dtype(array), .ndim = array->info.ndim};
    memcpy(result.shape, array->info.shape, sizeof(result.shape));
    return result;
}

/* A movement of one piece. */
static int move_one(struct gad_client *client, struct gad_array *array,
                    const struct gad_move_options *options, struct move_result *result,
                    const int *source_axes, const struct move_segment *segments,
                    struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct move move;
    move_take_limits(result, 1, &array, source_axes);
    int r = move_init(&move, client, options, result, 1, &array, error);
    if (r == 0)
        r = move_add(&move, array, source_axes, segments, error);
    if (r == 0)
        r = move_run(&move, ret_stats, error);
    move_deinit(&move);
    return (int)client_status(r, error);
}

enum gad_status gad_transpose(struct gad_client *client, struct gad_array *array, const int *axes,
                              const struct gad_move_options *options,
                              struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct move_segment segments[ARRAY_MAX_NDIM];
    int order[ARRAY_MAX_NDIM];
    int r = move_check(client, 1, &array, options, error);
    if (r)
        return (enum gad_status)r;
    struct move_result result = like(array);
    for (int i = 0; i < result.ndim; i++)
        order[i] = result.ndim - 1 - i;
    if (axes)
        r = view_axes(result.ndim, result.ndim, axes, "axes", order, error);
    for (int i = 0; i < result.ndim && r == 0; i++) {
        result.shape[i] = array->info.shape[order[i]];
        segments[i] = whole(result.shape[i]);
    }
    if (r == 0)
        r = move_one(client, array, options, &result, order, segments, ret_stats, error);
    return (enum gad_status)r;
}

enum gad_status gad_flip(struct gad_client *client, struct gad_array *array, int n_axes,
                         const int *axes, const struct gad_move_options *options,
                         struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct gad_array *view;
    struct move_segment segments[ARRAY_MAX_NDIM];
    int order[ARRAY_MAX_NDIM];
    int r = move_check(client, 1, &array, options, error);
    if (r == 0)
        r = (int)gad_array_flip(array, n_axes, axes, &view, error);
    if (r)
        return (enum gad_status)r;
    struct move_result result = like(array);
    for (int i = 0; i < result.ndim; i++) {
        order[i] = i;
        segments[i] = whole(result.shape[i]);
    }
    r = move_one(client, view, options, &result, order, segments, ret_stats, error);
    gad_array_release(view);
    return (enum gad_status)r;
}

/* Joining -------------------------------------------------------------------------------------- */

static int shape_error(unsigned i, const struct gad_array *array, const struct gad_array *first,
                       const char *expected, struct gad_error *error)
{
    char name[24], mine[96], others[96];
    snprintf(name, sizeof(name), "arrays[%u]", i);
    array_format_shape(array->info.ndim, array->info.shape, mine, sizeof(mine));
    array_format_shape(first->info.ndim, first->info.shape, others, sizeof(others));
    error_set(error, GAD_BAD_SHAPE, name, "%s has shape %s, the first array %s", name, mine,
              others);
    error_expected(error, "%s", expected);
    error_found(error, "%s", mine);
    return GAD_BAD_SHAPE;
}

/* All have the first one's shape, but along `free_axis` (-1: everywhere). */
static int check_shapes(unsigned n, struct gad_array *const *arrays, int free_axis,
                        struct gad_error *error)
{
    const struct gad_array_info *first = &arrays[0]->info;
    char expected[64] = "the same shape";
    if (free_axis >= 0)
        snprintf(expected, sizeof(expected), "the same shape but along axis %d", free_axis);
    for (unsigned i = 1; i < n; i++) {
        const struct gad_array_info *info = &arrays[i]->info;
        bool is_same = info->ndim == first->ndim;
        for (int k = 0; k < first->ndim && is_same; k++)
            is_same = k == free_axis || info->shape[k] == first->shape[k];
        if (!is_same)
            return shape_error(i, arrays[i], arrays[0], expected, error);
    }
    return 0;
}

/* numpy.result_type of all: floats first, since each integer meets them by itself (of int16, uint16
 * and float32 float32, not what int32 and float32 give). */
static enum gad_dtype promoted(unsigned n, struct gad_array *const *arrays)
{
    enum dtype dtype = DTYPE_BOOL;
    for (int floats = 1; floats >= 0; floats--)
        for (unsigned i = 0; i < n; i++)
            if (dtype_is_float((enum dtype)meaning_dtype(arrays[i])) == (floats == 1))
                dtype = dtype_promote(dtype, (enum dtype)meaning_dtype(arrays[i]));
    return (enum gad_dtype)dtype;
}

/* Each source after the other along `axis`. source_axes: the same for all. */
static int join(struct gad_client *client, unsigned n, struct gad_array *const *arrays, int axis,
                const int *source_axes, struct move_result *result,
                const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                struct gad_error *error)
{
    struct move move;
    struct move_segment segments[ARRAY_MAX_NDIM];
    int64_t at = 0;
    move_take_limits(result, n, arrays, source_axes);
    int r = move_init(&move, client, options, result, n, arrays, error);
    for (unsigned i = 0; i < n && r == 0; i++) {
        for (int k = 0; k < result->ndim; k++)
            segments[k] = whole(result->shape[k]);
        segments[axis].to = at;
        segments[axis].count = source_axes[axis] < 0 ? 1 : arrays[i]->info.shape[source_axes[axis]];
        at += segments[axis].count;
        r = move_add(&move, arrays[i], source_axes, segments, error);
    }
    if (r == 0)
        r = move_run(&move, ret_stats, error);
    move_deinit(&move);
    return (int)client_status(r, error);
}

enum gad_status gad_concatenate(struct gad_client *client, unsigned n_arrays,
                                struct gad_array *const *arrays, int axis,
                                const struct gad_move_options *options,
                                struct gad_job_stats *ret_stats, struct gad_error *error)
{
    int source_axes[ARRAY_MAX_NDIM];
    int r = move_check(client, n_arrays, arrays, options, error);
    if (r == 0 && arrays[0]->info.ndim == 0) {
        r = error_set(error, GAD_BAD_SHAPE, "arrays[0]", "an array without axes cannot be joined");
        error_expected(error, "at least one axis; stack makes a new one");
        error_found(error, "()");
    }
    if (r == 0)
        r = view_axis(arrays[0]->info.ndim, axis, "axis", &axis, error);
    if (r == 0)
        r = check_shapes(n_arrays, arrays, axis, error);
    if (r)
        return (enum gad_status)r;
    struct move_result result = like(arrays[0]);
    result.dtype = promoted(n_arrays, arrays);
    for (unsigned i = 1; i < n_arrays && r == 0; i++)
        if (add_overflows_i64(result.shape[axis], arrays[i]->info.shape[axis], &result.shape[axis]))
            r = error_set(error, GAD_BAD_SHAPE, "arrays", "the result is too long");
    for (int i = 0; i < result.ndim; i++)
        source_axes[i] = i;
    if (r == 0)
        r = join(client, n_arrays, arrays, axis, source_axes, &result, options, ret_stats, error);
    return (enum gad_status)r;
}

enum gad_status gad_stack(struct gad_client *client, unsigned n_arrays,
                          struct gad_array *const *arrays, int axis,
                          const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                          struct gad_error *error)
{
    int source_axes[ARRAY_MAX_NDIM];
    int r = move_check(client, n_arrays, arrays, options, error);
    if (r == 0)
        r = check_shapes(n_arrays, arrays, -1, error);
    if (r == 0 && arrays[0]->info.ndim == ARRAY_MAX_NDIM)
        r = error_set(error, GAD_BAD_SHAPE, "arrays", "the result has more than %d dimensions",
                      ARRAY_MAX_NDIM);
    if (r == 0)
        r = view_axis(arrays[0]->info.ndim + 1, axis, "axis", &axis, error);
    if (r)
        return (enum gad_status)r;
    struct move_result result = {.dtype = promoted(n_arrays, arrays),
                                 .ndim = arrays[0]->info.ndim + 1};
    for (int i = 0, k = 0; i < result.ndim; i++) {
        source_axes[i] = i == axis ? -1 : k++;
        result.shape[i] = i == axis ? n_arrays : arrays[0]->info.shape[source_axes[i]];
    }
    return (enum gad_status)join(client, n_arrays, arrays, axis, source_axes, &result, options,
                                 ret_stats, error);
}

/* Repeating ------------------------------------------------------------------------------------ */

static int check_repeats(int n, const int64_t *repeats, struct gad_error *error)
{
    if (n < 0 || n > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "repeats", "%d repeats: 0 to %d are possible", n,
                         ARRAY_MAX_NDIM);
    if (n > 0 && !repeats)
        return error_set(error, GAD_BAD_ARGUMENT, "repeats", "repeats is NULL");
    for (int i = 0; i < n; i++) {
        if (repeats[i] >= 0)
            continue;
        error_set(error, GAD_BAD_ARGUMENT, "repeats", "a negative number of repeats, %" PRId64,
                  repeats[i]);
        error_expected(error, "0 or more");
        error_found(error, "%" PRId64, repeats[i]);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

enum gad_status gad_tile(struct gad_client *client, struct gad_array *array, int n_repeats,
                         const int64_t *repeats, const struct gad_move_options *options,
                         struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct move_segment segments[ARRAY_MAX_NDIM];
    int source_axes[ARRAY_MAX_NDIM];
    int r = move_check(client, 1, &array, options, error);
    if (r == 0)
        r = check_repeats(n_repeats, repeats, error);
    if (r)
        return (enum gad_status)r;
    int own = array->info.ndim, ndim = own > n_repeats ? own : n_repeats;
    struct move_result result = {.dtype = meaning_dtype(array), .ndim = ndim};
    for (int i = 0; i < ndim && r == 0; i++) {
        int source = i - (ndim - own), repeat = i - (ndim - n_repeats);
        source_axes[i] = source < 0 ? -1 : source;
        segments[i] = whole(source < 0 ? 1 : array->info.shape[source]);
        segments[i].n_repeats = repeat < 0 ? 1 : repeats[repeat];
        if (mul_overflows_i64(segments[i].count, segments[i].n_repeats, &result.shape[i]))
            r = error_set(error, GAD_BAD_SHAPE, "repeats", "the result is too long");
    }
    if (r == 0)
        r = move_one(client, array, options, &result, source_axes, segments, ret_stats, error);
    return (enum gad_status)r;
}
