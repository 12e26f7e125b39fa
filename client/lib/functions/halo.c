/* Boxes of arrays with a halo.
 *
 * Along each axis the padded box is a row of indices of the array, -1 for a constant:
 *
 *     reflect, at the beginning of the axis    2 1 | 0 1 2 3 | 4 5
 *
 * The elements that they name are read once, as one interval, or, of a box at the border of a
 * wrapped axis, as up to three: the box's own and the other end's. Where nothing is beyond a border
 * that is the box already; otherwise rows of it are copied to where they belong. Of an array in
 * memory nothing is copied where it need not be: the box is then a part of that memory.
 *
 *     array --read--> intervals, packed --by the indices--> box with its halo
 *
 * Called by function.c, in threads of the pump.
 */
#include "client/lib/functions/halo.h"
#include "client/formats/files/file_provider.h"
#include "client/lib/memory/block.h"
#include "proto/util.h"

#include <string.h>

struct interval {
    int64_t begin, end; /* of the array's elements along an axis; the same: none */
};

struct axis {
    int64_t size; /* of the padded box */
    int64_t
        *index; /* for each of its elements: where in what was read; -1: nowhere. NULL: as it is */
    struct interval parts[3]; /* that are read, behind each other: the middle, low, high */
};

struct plan {
    int ndim;
    size_t item_bytes;
    struct axis axes[ARRAY_MAX_NDIM];
};

/* Indices -------------------------------------------------------------------------------------- */

static int64_t modulo(int64_t value, int64_t size)
{
    int64_t rest = value % size;
    return rest < 0 ? rest + size : rest;
}

/* The element of an axis of n that stands at a place beyond it; -1: none. */
static int64_t element_at(enum gad_pad_mode mode, int64_t place, int64_t n)
{
    int64_t phase;
    switch (mode) {
    case GAD_PAD_CONSTANT: return -1;
    case GAD_PAD_EDGE: return place < 0 ? 0 : n - 1;
    case GAD_PAD_WRAP: return modulo(place, n);
    case GAD_PAD_REFLECT:
        if (n == 1)
            return 0;
        phase = modulo(place, 2 * (n - 1));
        return phase < n ? phase : 2 * (n - 1) - phase;
    case GAD_PAD_SYMMETRIC:
        phase = modulo(place, 2 * n);
        return phase < n ? phase : 2 * n - 1 - phase;
    }
    return -1;
}

static void widen(struct interval *part, int64_t element)
{
    if (element < 0)
        return;
    if (part->begin == part->end)
        *part = (struct interval){element, element + 1};
    part->begin = min_i64(part->begin, element);
    part->end = max_i64(part->end, element + 1);
}

/* Which elements are read. The other end is a part of its own where the middle does not reach it.
 */
static void find_parts(struct axis *axis, enum gad_pad_mode mode, int64_t begin, int64_t n)
{
    int64_t end = begin + axis->size;
    bool is_far = mode == GAD_PAD_WRAP && axis->size < n;
    axis->parts[0] = (struct interval){max_i64(begin, 0), min_i64(end, n)};
    for (int64_t place = begin; place < 0; place++)
        widen(&axis->parts[is_far ? 1 : 0], element_at(mode, place, n));
    for (int64_t place = n; place < end; place++)
        widen(&axis->parts[is_far ? 2 : 0], element_at(mode, place, n));
}

static int64_t find_in_parts(const struct axis *axis, int64_t element)
{
    int64_t before = 0;
    for (int i = 0; i < 3; i++) {
        const struct interval *part = &axis->parts[i];
        if (element >= part->begin && element < part->end)
            return before + element - part->begin;
        before += part->end - part->begin;
    }
    return -1;
}

static int64_t n_read(const struct axis *axis)
{
    int64_t n = 0;
    for (int i = 0; i < 3; i++)
        n += axis->parts[i].end - axis->parts[i].begin;
    return n;
}

static int plan_axis(struct axis *axis, enum gad_pad_mode mode, int64_t begin, int64_t n)
{
    find_parts(axis, mode, begin, n);
    if (begin >= 0 && begin + axis->size <= n)
        return 0;
    axis->index = malloc((size_t)axis->size * sizeof(*axis->index));
    if (!axis->index)
        return ENOMEM;
    for (int64_t i = 0; i < axis->size; i++) {
        int64_t place = begin + i;
        int64_t element = place >= 0 && place < n ? place : element_at(mode, place, n);
        axis->index[i] = element < 0 ? -1 : find_in_parts(axis, element);
    }
    return 0;
}

static void plan_deinit(struct plan *plan)
{
    for (int i = 0; i < plan->ndim; i++)
        free(plan->axes[i].index);
}

/* Reading -------------------------------------------------------------------------------------- */

static void swap_bytes(char *at, size_t n_bytes, size_t item_bytes)
{
    for (size_t i = 0; i < n_bytes; i += item_bytes)
        for (size_t k = 0; k < item_bytes / 2; k++) {
            char kept = at[i + k];
            at[i + k] = at[i + item_bytes - 1 - k];
            at[i + item_bytes - 1 - k] = kept;
        }
}

static bool is_in_memory(const struct gad_array *array)
{
    return array->access == ACCESS_MEMORY || array->access == ACCESS_REGION;
}

static int read_packed(struct halo_source *source, const int64_t *start, const int64_t *count,
                       size_t n_bytes, char *ret)
{
    struct gad_array *array = source->array;
    size_t item_bytes = gad_dtype_size(array->info.dtype);
    int r = 0;
    if (is_in_memory(array)) {
        const char *first = array->data;
        for (int i = 0; i < array->info.ndim; i++)
            first += start[i] * array->info.strides[i];
        block_gather(ret, first, array->info.ndim, count, array->info.strides, item_bytes);
    } else if (array->access == ACCESS_FILE) {
        r = file_provider.fill(array, start, count, ret);
    } else if (array->provider->is_concurrent) {
        r = array->provider->fill(array->provider_state, start, count, ret);
    } else {
        pthread_mutex_lock(&source->turn);
        r = array->provider->fill(array->provider_state, start, count, ret);
        pthread_mutex_unlock(&source->turn);
    }
    if (r == 0 && array->info.is_swapped)
        swap_bytes(ret, n_bytes, item_bytes);
    return r;
}

/* One combination of the axes' parts, into its place among all that is read. */
static int read_part(struct halo_source *source, const struct plan *plan, const int *which,
                     const int64_t *strides, char *ret_read, bool is_all)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    size_t n_bytes = plan->item_bytes;
    char *to = ret_read;
    for (int i = 0; i < plan->ndim; i++) {
        const struct interval *part = &plan->axes[i].parts[which[i]];
        start[i] = part->begin;
        count[i] = part->end - part->begin;
        n_bytes *= (size_t)count[i];
        for (int k = 0; k < which[i]; k++)
            to += (plan->axes[i].parts[k].end - plan->axes[i].parts[k].begin) * strides[i];
    }
    if (n_bytes == 0)
        return 0;
    if (is_all)
        return read_packed(source, start, count, n_bytes, ret_read);
    _cleanup_free_ char *packed = malloc(n_bytes);
    int r = packed ? read_packed(source, start, count, n_bytes, packed) : ENOMEM;
    if (r == 0)
        block_scatter(to, packed, plan->ndim, count, strides, plan->item_bytes, false);
    return r;
}

static bool next_combination(int ndim, int *which)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++which[i] < 3)
            return true;
        which[i] = 0;
    }
    return false;
}

static int read_parts(struct halo_source *source, const struct plan *plan, const int64_t *shape,
                      const int64_t *strides, char *ret_read)
{
    int which[ARRAY_MAX_NDIM] = {0};
    bool is_all = true;
    int r;
    for (int i = 0; i < plan->ndim; i++)
        is_all &= shape[i] == plan->axes[i].parts[0].end - plan->axes[i].parts[0].begin;
    do
        r = read_part(source, plan, which, strides, ret_read, is_all);
    while (r == 0 && !is_all && next_combination(plan->ndim, which));
    return r;
}

/* Copying -------------------------------------------------------------------------------------- */

struct copying {
    const struct plan *plan;
    int last;          /* axes behind it go along as they are */
    size_t unit_bytes; /* of an element of that axis, with all behind it */
    const int64_t *to_strides, *from_strides;
};

/* Elements from k on that lie behind each other. */
static int64_t run_length(const struct axis *axis, int64_t k)
{
    int64_t n = 1;
    if (!axis->index)
        return axis->size - k;
    while (k + n < axis->size && axis->index[k + n] == axis->index[k] + n)
        n++;
    return n;
}

static void copy_axis(const struct copying *copying, int i, char *to, const char *from)
{
    const struct axis *axis = &copying->plan->axes[i];
    int64_t to_stride = copying->to_strides[i], from_stride = copying->from_strides[i];
    for (int64_t k = 0, n = 1; k < axis->size; k += n) {
        int64_t index = axis->index ? axis->index[k] : k;
        n = 1;
        if (index < 0) {
            memset(to + k * to_stride, 0, (size_t)to_stride);
        } else if (i < copying->last) {
            copy_axis(copying, i + 1, to + k * to_stride, from + index * from_stride);
        } else {
            if (from_stride == to_stride)
                n = run_length(axis, k);
            memcpy(to + k * to_stride, from + index * from_stride, (size_t)n * copying->unit_bytes);
        }
    }
}

static void copy_all(const struct plan *plan, char *to, const int64_t *to_strides, const char *from,
                     const int64_t *from_strides)
{
    struct copying copying = {.plan = plan,
                              .last = plan->ndim - 1,
                              .unit_bytes = plan->item_bytes,
                              .to_strides = to_strides,
                              .from_strides = from_strides};
    while (copying.last > 0 && !plan->axes[copying.last].index &&
           from_strides[copying.last] == to_strides[copying.last])
        copying.unit_bytes *= (size_t)plan->axes[copying.last--].size;
    copy_axis(&copying, 0, to, from);
}

/* The box -------------------------------------------------------------------------------------- */

static bool new_room(const struct plan *plan, const int64_t *shape, int64_t *ret_strides,
                     void **ret_room)
{
    int64_t n_bytes = (int64_t)plan->item_bytes;
    for (int i = 0; i < plan->ndim; i++)
        if (mul_overflows_i64(n_bytes, shape[i], &n_bytes))
            return false;
    array_c_strides(plan->ndim, shape, (int64_t)plan->item_bytes, ret_strides);
    *ret_room = malloc((size_t)max_i64(n_bytes, 1));
    return *ret_room;
}

static int make_box(struct halo_source *source, const struct plan *plan, struct halo_box *box)
{
    const struct gad_array_info *info = &source->array->info;
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    char *from;
    bool is_plain = true;
    for (int i = 0; i < plan->ndim; i++) {
        box->shape[i] = plan->axes[i].size;
        shape[i] = n_read(&plan->axes[i]);
        is_plain &= !plan->axes[i].index;
    }
    if (is_in_memory(source->array) && !info->is_swapped && is_plain) {
        box->data = source->array->data;
        for (int i = 0; i < plan->ndim; i++)
            box->data += plan->axes[i].parts[0].begin * info->strides[i];
        memcpy(box->strides, info->strides, sizeof(box->strides));
        return 0;
    }
    if (!new_room(plan, shape, strides, &box->kept[0]))
        return ENOMEM;
    from = box->kept[0];
    int r = read_parts(source, plan, shape, strides, from);
    if (r)
        return r;
    box->data = from;
    memcpy(box->strides, strides, sizeof(box->strides));
    if (is_plain)
        return 0;
    if (!new_room(plan, box->shape, box->strides, &box->kept[1]))
        return ENOMEM;
    box->data = box->kept[1];
    copy_all(plan, box->data, box->strides, from, strides);
    free_ptr(&box->kept[0]);
    return 0;
}

int halo_read(struct halo_source *source, enum gad_pad_mode mode, const int64_t *start,
              const int64_t *count, struct halo_box *ret_box)
{
    const struct gad_array_info *info = &source->array->info;
    struct plan plan = {.ndim = info->ndim, .item_bytes = gad_dtype_size(info->dtype)};
    int r = 0;
    *ret_box = (struct halo_box){.data = NULL};
    for (int i = 0; i < plan.ndim && r == 0; i++) {
        plan.axes[i].size = count[i] + 2 * source->depth[i];
        r = plan_axis(&plan.axes[i], mode, start[i] - source->depth[i], info->shape[i]);
    }
    if (r == 0)
        r = make_box(source, &plan, ret_box);
    plan_deinit(&plan);
    if (r)
        halo_box_deinit(ret_box);
    return r;
}

void halo_box_deinit(struct halo_box *box)
{
    free_ptr(&box->kept[0]);
    free_ptr(&box->kept[1]);
}
