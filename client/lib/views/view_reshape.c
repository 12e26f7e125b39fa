/* Views with other sizes in C order, as numpy.reshape() has them without a copy.
 *
 *     array (2, 3, 4) in C order             as (6, 4), (24), (2, 12)
 *     array (2, 3, 4), its last axis cut     as (6, 2): rows of others than that cannot be one
 *
 * The axes of the array are gone through in groups: as many of the array's and of the view's as
 * have the same number of elements. A group of the array is one run of elements with one distance
 * from each to the next, or it cannot be read by other sizes.
 *
 * Only arrays whose elements have a place can have such views; what chunks and blocks have is told
 * by their axes. A view holds a reference to its array, and has a descriptor of its own.
 *
 * Called by programs.
 */
#include "client/formats/files/file_provider.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/meaning.h"
#include "client/lib/views/view.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>

static bool has_place(const struct gad_array *array)
{
    return array->access == ACCESS_FILE || array->access == ACCESS_REGION ||
           array->access == ACCESS_MEMORY ||
           (array->access == ACCESS_PROVIDER && array->provider == &file_provider);
}

/* The axes of an array that are longer than 1. Returns how many. */
static int long_axes(const struct gad_array_info *info, int64_t *ret_shape, int64_t *ret_strides)
{
    int n = 0;
    for (int i = 0; i < info->ndim; i++) {
        if (info->shape[i] == 1)
            continue;
        ret_shape[n] = info->shape[i];
        ret_strides[n++] = info->strides[i];
    }
    return n;
}

/* Axes `from` to `to` of the array as one. */
static bool is_one_run(const int64_t *shape, const int64_t *strides, int from, int to)
{
    for (int i = from; i + 1 < to; i++)
        if (strides[i] != strides[i + 1] * shape[i + 1])
            return false;
    return true;
}

/* The strides of the view; both have as many elements, not none. */
static bool find_strides(const struct gad_array_info *info, struct array *view)
{
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    int n = long_axes(info, shape, strides), from = 0, first = 0;
    while (first < view->ndim) {
        int to = from, last = first + 1;
        int64_t theirs = 1, mine = view->shape[first];
        while (theirs != mine) {
            if (theirs < mine)
                theirs *= shape[to++];
            else
                mine *= view->shape[last++];
        }
        if (!is_one_run(shape, strides, from, to))
            return false;
        int64_t stride = to > from ? strides[to - 1] : (int64_t)dtype_size(view->dtype);
        for (int i = last - 1; i >= first; i--) {
            view->strides[i] = stride;
            stride *= view->shape[i];
        }
        from = to;
        first = last;
    }
    return from == n;
}

static void free_view(struct gad_array *view)
{
    gad_array_release(view->format_state);
}

static int make_view(struct gad_array *array, const struct array *described,
                     struct gad_array **ret_view, struct gad_error *error)
{
    enum access access = array->access == ACCESS_PROVIDER ? ACCESS_FILE : array->access;
    struct gad_array *view = array_new(array->client, array->info.format, access, array->info.path);
    if (!view)
        return -ENOMEM;
    view->format_state = array_ref(array);
    view->maker_free = free_view;
    memory_fill_info(view, described);
    view->info.has_fill = array->info.has_fill;
    view->info.fill = array->info.fill;
    view->info.exact_fill = array->info.exact_fill;
    array_set_spec(view, array->spec);
    if (meaning_copy_to_view(array, view, 0, NULL, NULL, NULL)) {
        gad_array_release(view);
        return -ENOMEM;
    }
    view->is_writable = array->is_writable;
    view->is_write_only = array->is_write_only;
    view->offset_bytes = array->offset_bytes;
    view->region_offset_bytes = array->region_offset_bytes;
    view->region = array->region;
    view->data = array->data;
    if (access == ACCESS_FILE) {
        view->provider = &file_provider;
        view->provider_state = view;
        view->fd = fcntl(array->fd, F_DUPFD_CLOEXEC, 3);
    }
    if (access == ACCESS_FILE && view->fd < 0) {
        int r = error_from_errno(error, errno, array->info.path, "duplicating a descriptor");
        gad_array_release(view);
        return r;
    }
    *ret_view = view;
    return 0;
}

static int refuse(const struct gad_array *array, const struct array *wanted, bool is_count,
                  struct gad_error *error)
{
    char found[96], expected[96];
    array_format_shape(array->info.ndim, array->info.shape, found, sizeof(found));
    array_format_shape(wanted->ndim, wanted->shape, expected, sizeof(expected));
    error_set(error, GAD_BAD_SHAPE, "shape",
              is_count ? "an array of shape %s has not as many elements as %s"
                       : "the elements of an array of shape %s do not lie so that they can be read "
                         "as %s; copy it first",
              found, expected);
    error_expected(error, "%s", expected);
    error_found(error, "%s", found);
    return GAD_BAD_SHAPE;
}

static int reshape(struct gad_array *array, int ndim, const int64_t *shape,
                   struct gad_array **ret_view, struct gad_error *error)
{
    struct array own = array_described(array);
    struct array wanted = {.dtype = own.dtype, .is_swapped = array->info.is_swapped, .ndim = ndim};
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "ndim", "%d dimensions: 0 to %d are possible", ndim,
                         ARRAY_MAX_NDIM);
    if (ndim > 0)
        memcpy(wanted.shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, wanted.shape, (int64_t)dtype_size(wanted.dtype), wanted.strides);
    int r = array_check(&wanted, "shape", error);
    if (r)
        return r;
    int64_t n_bytes = array_n_bytes(&own);
    if (array_n_bytes(&wanted) != n_bytes)
        return refuse(array, &wanted, true, error);
    if (!has_place(array) || (n_bytes > 0 && !find_strides(&array->info, &wanted)))
        return refuse(array, &wanted, false, error);
    return make_view(array, &wanted, ret_view, error);
}

enum gad_status gad_array_reshape(struct gad_array *array, int ndim, const int64_t *shape,
                                  struct gad_array **ret_view, struct gad_error *error)
{
    if (!array || !ret_view || (ndim > 0 && !shape))
        return error_set(error, GAD_BAD_ARGUMENT,
                         !array      ? "array"
                         : !ret_view ? "ret_view"
                                     : "shape",
                         "is NULL");
    return client_status(reshape(array, ndim, shape, ret_view, error), error);
}
