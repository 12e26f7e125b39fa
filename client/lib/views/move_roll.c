/* Rolling: elements move along axes, those beyond the end to the beginning.
 *
 * Along one axis a shift cuts the array into two parts. Along several, each part of one axis meets
 * each part of the others.
 *
 * Flat, element number j of the result is number j - shift of the array. That is a subtraction of
 * numbers with a digit for each axis: the digits of the shift are subtracted axis by axis, the last
 * first, and where a digit of the result is less than what is subtracted, the axis before it
 * borrows one. So every axis again has two parts, one that borrows and one that does not:
 *
 *     shape (3, 4), shift 5 = digits (1, 1)
 *     last axis:   column 0 (borrows)        columns 1 to 3
 *     first axis:  shift 1 + 1               shift 1
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <string.h>

struct roll {
    struct move *move;
    struct gad_array *array;
    bool is_flat;                   /* axes borrow */
    int64_t shifts[ARRAY_MAX_NDIM]; /* 0 to below the size of the axis */
    int axes[ARRAY_MAX_NDIM];
    struct move_segment segments[ARRAY_MAX_NDIM];
};

/* All parts of the axes up to this one, with the chosen parts of those behind. */
static int add_parts(struct roll *roll, int axis, bool borrows, struct gad_error *error)
{
    if (axis < 0)
        return move_add(roll->move, roll->array, roll->axes, roll->segments, error);
    int64_t size = roll->array->info.shape[axis];
    int64_t taken = roll->shifts[axis] + (borrows ? 1 : 0), shift = taken % size;
    struct move_segment head = {.from = size - shift, .step = 1, .count = shift, .n_repeats = 1};
    struct move_segment tail = {.to = shift, .step = 1, .count = size - shift, .n_repeats = 1};
    int r = 0;
    roll->segments[axis] = head;
    if (head.count > 0)
        r = add_parts(roll, axis - 1, roll->is_flat, error);
    roll->segments[axis] = tail;
    if (r == 0)
        r = add_parts(roll, axis - 1, roll->is_flat && taken == size, error);
    return r;
}

static int64_t modulo(int64_t value, int64_t size)
{
    int64_t rest = size > 0 ? value % size : 0;
    return rest < 0 ? rest + size : rest;
}

static int set_shifts(struct roll *roll, int n, const int64_t *shifts, const int *axes,
                      struct gad_error *error)
{
    const struct gad_array_info *info = &roll->array->info;
    for (int i = 0; i < n; i++) {
        int axis;
        int r = view_axis(info->ndim, axes[i], "axes", &axis, error);
        if (r)
            return r;
        int64_t size = info->shape[axis];
        roll->shifts[axis] = modulo(roll->shifts[axis] + modulo(shifts[i], size), size);
    }
    return 0;
}

static void set_flat_shifts(struct roll *roll, int n, const int64_t *shifts)
{
    const struct gad_array_info *info = &roll->array->info;
    int64_t n_elements = 1, shift = 0;
    for (int i = 0; i < info->ndim; i++)
        n_elements *= info->shape[i]; /* was checked when the array was made */
    for (int i = 0; i < n; i++)
        shift = modulo(shift + modulo(shifts[i], n_elements), n_elements);
    for (int i = info->ndim - 1; i >= 0 && n_elements > 0; i--) {
        roll->shifts[i] = shift % info->shape[i];
        shift /= info->shape[i];
    }
    roll->is_flat = true;
}

static int run(struct roll *roll, struct gad_client *client, const struct gad_move_options *options,
               struct gad_job_stats *ret_stats, struct gad_error *error)
{
    const struct gad_array_info *info = &roll->array->info;
    struct move_result result = {.dtype = meaning_dtype(roll->array), .ndim = info->ndim};
    bool is_empty = false;
    memcpy(result.shape, info->shape, sizeof(result.shape));
    for (int i = 0; i < info->ndim; i++) {
        roll->axes[i] = i;
        is_empty |= info->shape[i] == 0;
    }
    move_take_limits(&result, 1, &roll->array, NULL);
    int r = move_init(roll->move, client, options, &result, 1, &roll->array, error);
    if (r == 0 && !is_empty)
        r = add_parts(roll, info->ndim - 1, false, error);
    if (r == 0)
        r = move_run(roll->move, ret_stats, error);
    move_deinit(roll->move);
    return r;
}

enum gad_status gad_roll(struct gad_client *client, struct gad_array *array, int n_shifts,
                         const int64_t *shifts, const int *axes,
                         const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                         struct gad_error *error)
{
    struct move move;
    struct roll roll = {.move = &move, .array = array};
    int r = move_check(client, 1, &array, options, error);
    if (r == 0 && (n_shifts < 0 || (n_shifts > 0 && !shifts)))
        r = error_set(error, GAD_BAD_ARGUMENT, "shifts",
                      n_shifts < 0 ? "a negative number of shifts" : "shifts is NULL");
    if (r == 0 && axes)
        r = set_shifts(&roll, n_shifts, shifts, axes, error);
    else if (r == 0)
        set_flat_shifts(&roll, n_shifts, shifts);
    if (r == 0)
        r = run(&roll, client, options, ret_stats, error);
    return client_status(r, error);
}
