/* Views: the elements of an array in another order.
 *
 *     array with strides (file, region, memory)   the same place with other strides
 *     chunks, provider                            blocks, through the array's own provider
 *
 * Each axis of a view goes along one axis of the array, or along none. Along one axis of the array
 * go several of the view where it is cut into equal parts, as for tile. What the axes of a view add
 * up to is checked against the array, so that a view never reaches outside.
 *
 * A view holds a reference to its array: its memory, its provider, what its maker keeps. It has a
 * descriptor of its own. It is never committed: that is the array's.
 *
 * Called by programs, and by the movements (move.c).
 */
#include "client/lib/views/view.h"
#include "client/formats/files/file_provider.h"
#include "client/lib/memory/stream.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/meaning.h"
#include "proto/overlap.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* Axes ----------------------------------------------------------------------------------------- */

int view_axis(int ndim, int axis, const char *name, int *ret_axis, struct gad_error *error)
{
    if (axis >= -ndim && axis < ndim) {
        *ret_axis = axis < 0 ? axis + ndim : axis;
        return 0;
    }
    error_set(error, GAD_BAD_SHAPE, name, "axis %d is out of bounds for an array of %d dimension%s",
              axis, ndim, ndim == 1 ? "" : "s");
    if (ndim > 0)
        error_expected(error, "%d to %d", -ndim, ndim - 1);
    else
        error_expected(error, "no axis: the array has none");
    error_found(error, "%d", axis);
    return GAD_BAD_SHAPE;
}

int view_axes(int ndim, int n_axes, const int *axes, const char *name, int *ret_axes,
              struct gad_error *error)
{
    uint32_t seen = 0;
    for (int i = 0; i < n_axes; i++) {
        int axis;
        int r = view_axis(ndim, axes[i], name, &axis, error);
        if (r)
            return r;
        if (seen >> axis & 1) {
            error_set(error, GAD_BAD_SHAPE, name, "axis %d is given twice", axis);
            error_expected(error, "each axis once");
            error_found(error, "%d again", axes[i]);
            return GAD_BAD_SHAPE;
        }
        seen |= UINT32_C(1) << axis;
        ret_axes[i] = axis;
    }
    return 0;
}

/* Limits --------------------------------------------------------------------------------------- */

static int outside(const struct gad_array *array, int axis, int64_t low, int64_t high,
                   struct gad_error *error)
{
    int64_t size = array->info.shape[axis];
    error_set(error, GAD_BAD_ARGUMENT, "axes",
              "the view reaches from %" PRId64 " to %" PRId64 " along axis %d of size %" PRId64,
              low, high, axis, size);
    error_expected(error, "0 to %" PRId64, size - 1);
    error_found(error, "%" PRId64 " to %" PRId64, low, high);
    return GAD_BAD_ARGUMENT;
}

/* Every element that the axes can name is one of the array's. */
static int check_reach(const struct gad_array *array, const int64_t *start, int ndim,
                       const struct gad_view_axis *axes, struct gad_error *error)
{
    for (int k = 0; k < array->info.ndim; k++) {
        int64_t low = start[k], high = start[k], reach = 0;
        bool overflows = false;
        for (int i = 0; i < ndim; i++) {
            if (axes[i].axis != k)
                continue;
            overflows |= mul_overflows_i64(axes[i].count - 1, axes[i].step, &reach);
            overflows |= add_overflows_i64(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
        }
        if (overflows || low < 0 || high >= array->info.shape[k])
            return outside(array, k, low, high, error);
    }
    return 0;
}

static int check_axes(const struct gad_array *array, int ndim, const struct gad_view_axis *axes,
                      bool *ret_is_empty, struct gad_error *error)
{
    *ret_is_empty = false;
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "ndim", "%d dimensions: 0 to %d are possible", ndim,
                         ARRAY_MAX_NDIM);
    for (int i = 0; i < ndim; i++) {
        if (axes[i].axis < -1 || axes[i].axis >= array->info.ndim)
            return error_set(error, GAD_BAD_SHAPE, "axes",
                             "axis %d is none of an array of %d dimensions", axes[i].axis,
                             array->info.ndim);
        if (axes[i].count < 0)
            return error_set(error, GAD_BAD_ARGUMENT, "axes", "axis %d has a negative count", i);
        *ret_is_empty |= axes[i].count == 0;
    }
    return 0;
}

/* Making --------------------------------------------------------------------------------------- */

/* Bytes per step along an axis of the array; where its elements have no place, as if they lay in C
 * order, which tells the daemon along which axis blocks are best long. */
static void base_strides(const struct gad_array *array, int64_t *ret_strides)
{
    const struct gad_array_info *info = &array->info;
    bool has_strides = array->access != ACCESS_CHUNKS;
    if (array->access == ACCESS_PROVIDER) {
        has_strides = false;
        for (int i = 0; i < info->ndim; i++)
            has_strides |= info->strides[i] != 0;
    }
    if (has_strides)
        memcpy(ret_strides, info->strides, sizeof(info->strides));
    else
        array_c_strides(info->ndim, info->shape, (int64_t)gad_dtype_size(info->dtype), ret_strides);
}

static void describe(const struct gad_array *array, const int64_t *strides, int ndim,
                     const struct gad_view_axis *axes, struct array *ret)
{
    *ret = (struct array){
        .dtype = (enum dtype)array->info.dtype, .is_swapped = array->info.is_swapped, .ndim = ndim};
    int64_t item = (int64_t)dtype_size(ret->dtype);
    for (int i = 0; i < ndim; i++) {
        int64_t stride = 0;
        bool has_stride = axes[i].count > 1; /* of an empty view nobody has checked the steps */
        if (has_stride && axes[i].axis >= 0)
            has_stride = !mul_overflows_i64(axes[i].step, strides[axes[i].axis], &stride);
        ret->shape[i] = axes[i].count;
        ret->strides[i] = has_stride ? stride : item;
    }
}

static void free_view(struct gad_array *view)
{
    struct view_blocks *blocks = view->format_state;
    gad_array_release(blocks->base);
    free(blocks->buffer);
    free(blocks);
}

const struct view_blocks *view_blocks_of(const struct gad_array *array)
{
    return array->maker_free == free_view ? array->format_state : NULL;
}

static int add_state(struct gad_array *view, struct gad_array *array, const int64_t *start,
                     int ndim, const struct gad_view_axis *axes)
{
    struct view_blocks *blocks = calloc(1, sizeof(*blocks));
    if (!blocks)
        return -ENOMEM;
    blocks->base = array_ref(array);
    blocks->ndim = ndim;
    if (ndim > 0)
        memcpy(blocks->axes, axes, (size_t)ndim * sizeof(*axes));
    memcpy(blocks->start, start, sizeof(blocks->start));
    view->format_state = blocks;
    view->maker_free = free_view;
    return 0;
}

/* Where the elements are: the array's place, moved by the start. */
static int add_place(struct gad_array *view, const struct gad_array *array, int64_t moved,
                     struct gad_error *error)
{
    view->offset_bytes = array->offset_bytes + (uint64_t)moved;
    view->region_offset_bytes = array->region_offset_bytes + (uint64_t)moved;
    view->region = array->region;
    view->data = array->data ? (char *)array->data + moved : NULL;
    if (view->access == ACCESS_FILE) {
        bool reads_by_strides = array->provider == &file_provider;
        view->provider = reads_by_strides ? &file_provider : view_provider_of(array);
        view->provider_state = reads_by_strides ? (void *)view : view->format_state;
        view->fd = fcntl(array->fd, F_DUPFD_CLOEXEC, 3);
        if (view->fd < 0)
            return error_from_errno(error, errno, array->info.path, "duplicating a descriptor");
    }
    return 0;
}

/* What has a place in a file, also where the daemon has said that it does not read it there. */
static bool is_in_file(const struct gad_array *array)
{
    return array->access == ACCESS_FILE ||
           (array->access == ACCESS_PROVIDER && array->provider == &file_provider);
}

static int add_meaning(struct gad_array *view, const struct gad_array *array, const int64_t *start,
                       int ndim, const struct gad_view_axis *axes)
{
    int own_axes[ARRAY_MAX_NDIM];
    int64_t starts[ARRAY_MAX_NDIM], steps[ARRAY_MAX_NDIM];
    uint32_t seen = 0, twice = 0;
    for (int i = 0; i < ndim; i++) {
        int axis = axes[i].axis;
        own_axes[i] = axis;
        starts[i] = axis < 0 ? 0 : start[axis];
        steps[i] = axes[i].step;
        twice |= axis < 0 ? 0 : seen & UINT32_C(1) << axis;
        seen |= axis < 0 ? 0 : UINT32_C(1) << axis;
    }
    /* An axis that is cut into several has no name: none of them goes along all of it. */
    for (int i = 0; i < ndim; i++)
        if (own_axes[i] >= 0 && twice >> own_axes[i] & 1)
            own_axes[i] = -1;
    return meaning_copy_to_view(array, view, ndim, own_axes, starts, steps);
}

/* The chunks of the array are the view's, where none is cut at its beginning or passed over. */
static void keep_chunks(struct gad_array *view, const struct gad_array *array, const int64_t *start,
                        const struct gad_view_axis *axes)
{
    uint64_t n_chunks = array->n_chunks > 0;
    uint32_t seen = 0;
    for (int i = 0; i < view->info.ndim && n_chunks > 0; i++) {
        int axis = axes[i].axis;
        int64_t count = axes[i].count, chunk = 1;
        if (count > 1 && axis >= 0) {
            chunk = array->chunk_shape[axis];
            if (axes[i].step != 1 || start[axis] % chunk != 0 || seen >> axis & 1)
                return;
            seen |= UINT32_C(1) << axis;
        }
        view->chunk_shape[i] = chunk;
        n_chunks *= (uint64_t)divide_up_i64(count, chunk);
    }
    view->n_chunks = n_chunks;
}

static int fill_view(struct gad_array *view, struct gad_array *array, const int64_t *start,
                     int ndim, const struct gad_view_axis *axes, bool is_empty,
                     struct gad_error *error)
{
    struct array described;
    int64_t strides[ARRAY_MAX_NDIM] = {0}, moved = 0;
    int axis;
    uint64_t covered;
    base_strides(array, strides);
    describe(array, strides, ndim, axes, &described);
    int r = array_check(&described, "axes", error);
    if (r == 0)
        r = add_state(view, array, start, ndim, axes);
    if (r)
        return r;
    for (int i = 0; i < array->info.ndim && !is_empty; i++)
        moved += start[i] * strides[i];
    memory_fill_info(view, &described);
    view->info.has_fill = array->info.has_fill;
    view->info.fill = array->info.fill;
    view->info.exact_fill = array->info.exact_fill;
    array_set_spec(view, array->spec);
    r = add_meaning(view, array, start, ndim, axes);
    if (r)
        return r;
    view->is_write_only = array->is_write_only;
    view->is_writable = array->is_writable && !array_covers_itself(&described, &axis, &covered);
    if (view->access == ACCESS_PROVIDER) {
        view->provider = view_provider_of(array);
        view->provider_state = view->format_state;
        view->may_hang = array->may_hang;
        view->n_threads = array->n_threads;
        keep_chunks(view, array, start, axes);
        return 0;
    }
    return add_place(view, array, moved, error);
}

int view_new(struct gad_array *array, const int64_t *start, int ndim,
             const struct gad_view_axis *axes, struct gad_array **ret_view, struct gad_error *error)
{
    static const int64_t zeros[ARRAY_MAX_NDIM];
    int64_t own_start[ARRAY_MAX_NDIM] = {0};
    bool is_empty;
    if (stream_of(array) || array->is_in_order)
        return error_set(error, GAD_BAD_ARGUMENT, "array",
                         "a stream has no views: its elements come once and in order; "
                         "put it into a file first");
    memcpy(own_start, start ? start : zeros, (size_t)array->info.ndim * sizeof(*start));
    int r = check_axes(array, ndim, axes, &is_empty, error);
    if (r == 0 && !is_empty)
        r = check_reach(array, own_start, ndim, axes, error);
    if (r)
        return r;
    enum access access = is_in_file(array)                ? ACCESS_FILE
                         : array->access == ACCESS_CHUNKS ? ACCESS_PROVIDER
                                                          : array->access;
    struct gad_array *view = array_new(array->client, array->info.format, access, array->info.path);
    if (!view)
        return -ENOMEM;
    r = fill_view(view, array, own_start, ndim, axes, is_empty, error);
    return array_settle(view, r, ret_view);
}

/* Public --------------------------------------------------------------------------------------- */

static int check_call(const struct gad_array *array, struct gad_array **ret_view,
                      struct gad_error *error)
{
    if (!array || !ret_view)
        return error_set(error, GAD_BAD_ARGUMENT, array ? "ret_view" : "array", "is NULL");
    return 0;
}

enum gad_status gad_array_view(struct gad_array *array, const int64_t *start, int ndim,
                               const struct gad_view_axis *axes, struct gad_array **ret_view,
                               struct gad_error *error)
{
    int r = check_call(array, ret_view, error);
    if (r == 0 && ndim > 0 && !axes)
        r = error_set(error, GAD_BAD_ARGUMENT, "axes", "axes is NULL");
    if (r == 0)
        r = view_new(array, start, ndim, axes, ret_view, error);
    return client_status(r, error);
}

enum gad_status gad_array_transpose(struct gad_array *array, const int *axes,
                                    struct gad_array **ret_view, struct gad_error *error)
{
    struct gad_view_axis view[ARRAY_MAX_NDIM];
    int order[ARRAY_MAX_NDIM];
    int r = check_call(array, ret_view, error);
    if (r)
        return (enum gad_status)r;
    int ndim = array->info.ndim;
    for (int i = 0; i < ndim; i++)
        order[i] = ndim - 1 - i;
    if (axes)
        r = view_axes(ndim, ndim, axes, "axes", order, error);
    for (int i = 0; i < ndim && r == 0; i++)
        view[i] = (struct gad_view_axis){order[i], array->info.shape[order[i]], 1};
    if (r == 0)
        r = view_new(array, NULL, ndim, view, ret_view, error);
    return client_status(r, error);
}

enum gad_status gad_array_flip(struct gad_array *array, int n_axes, const int *axes,
                               struct gad_array **ret_view, struct gad_error *error)
{
    struct gad_view_axis view[ARRAY_MAX_NDIM];
    int64_t start[ARRAY_MAX_NDIM] = {0};
    int flipped[ARRAY_MAX_NDIM];
    int r = check_call(array, ret_view, error);
    if (r)
        return (enum gad_status)r;
    int ndim = array->info.ndim;
    if (axes && (n_axes < 0 || n_axes > ndim))
        return error_set(error, GAD_BAD_ARGUMENT, "axes", "%d axes of an array of %d dimensions",
                         n_axes, ndim);
    if (axes)
        r = view_axes(ndim, n_axes, axes, "axes", flipped, error);
    for (int i = 0; i < ndim; i++)
        view[i] = (struct gad_view_axis){i, array->info.shape[i], 1};
    for (int i = 0; i < (axes ? n_axes : ndim) && r == 0; i++) {
        int axis = axes ? flipped[i] : i;
        view[axis].step = -1;
        start[axis] = array->info.shape[axis] > 0 ? array->info.shape[axis] - 1 : 0;
    }
    if (r == 0)
        r = view_new(array, start, ndim, view, ret_view, error);
    return client_status(r, error);
}
