/* Differences of neighbours along an axis, as numpy.diff() takes them.
 *
 * The job reads n + 1 views of the array, each one element further along the axis, and takes the
 * differences level by level, so that every one of them is rounded as NumPy rounds it:
 *
 *     n = 2:  b0_0 = x1 - x0;  b0_1 = x2 - x1;  b0_1 - b0_0
 *
 * Nothing but the result is stored. The destination is made, checked and committed as those of
 * movements are. Of bool the difference is whether two elements differ.
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/lib/views/view.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

_Static_assert(GAD_MAX_DIFF == 16, "as the refusal says");

#define TEXT_CHARS 4096 /* GAD_MAX_DIFF * (GAD_MAX_DIFF + 1) / 2 differences of 25 */

_Static_assert(GAD_MAX_DIFF *(GAD_MAX_DIFF + 1) / 2 * 25 < TEXT_CHARS, "the text has room");

struct diff {
    struct move move;
    struct gad_array *array;
    int n, axis;
    struct move_result result;
    struct gad_array *views[GAD_MAX_DIFF + 1];
    char text[TEXT_CHARS];
};

/* What an expression calls the difference number i of a level; of level 0 the views. */
static void put_name(struct diff *d, size_t *at, int level, int i)
{
    size_t room = sizeof(d->text) - *at;
    *at += level == 0 ? (size_t)snprintf(d->text + *at, room, "x%d", i)
                      : (size_t)snprintf(d->text + *at, room, "d%d_%d", level, i);
}

static void write_text(struct diff *d)
{
    const char *minus = meaning_dtype(d->array) == GAD_BOOL ? "!=" : "-";
    size_t at = 0;
    if (d->n == 0)
        put_name(d, &at, 0, 0);
    for (int level = 1; level <= d->n; level++) {
        for (int i = 0; i + level <= d->n; i++) {
            if (level < d->n) {
                put_name(d, &at, level, i);
                at += (size_t)snprintf(d->text + at, sizeof(d->text) - at, "=");
            }
            put_name(d, &at, level - 1, i + 1);
            at += (size_t)snprintf(d->text + at, sizeof(d->text) - at, "%s", minus);
            put_name(d, &at, level - 1, i);
            if (level < d->n)
                at += (size_t)snprintf(d->text + at, sizeof(d->text) - at, ";");
        }
    }
}

static int make_views(struct diff *d, struct gad_error *error)
{
    struct gad_view_axis axes[ARRAY_MAX_NDIM];
    int64_t start[ARRAY_MAX_NDIM] = {0};
    int r = 0;
    for (int i = 0; i < d->result.ndim; i++)
        axes[i] = (struct gad_view_axis){i, d->result.shape[i], 1};
    for (int i = 0; i <= d->n && r == 0; i++) {
        start[d->axis] = i;
        r = view_new(d->array, start, d->result.ndim, axes, &d->views[i], error);
    }
    return r;
}

static int run_job(struct diff *d, struct gad_error *error)
{
    struct gad_argument args[GAD_MAX_DIFF + 1];
    char names[GAD_MAX_DIFF + 1][12];
    struct gad_output output = {.expr = d->text, .to = d->move.to};
    int r = make_views(d, error);
    write_text(d);
    for (int i = 0; i <= d->n; i++) {
        snprintf(names[i], sizeof(names[i]), "x%d", i);
        args[i] = (struct gad_argument){.name = names[i], .array = d->views[i]};
    }
    return r ? r : move_run_job(&d->move, (unsigned)d->n + 1, args, 1, &output, error);
}

static int run(struct diff *d, struct gad_client *client, const struct gad_move_options *options,
               struct gad_job_stats *ret_stats, struct gad_error *error)
{
    move_take_limits(&d->result, 1, &d->array, NULL);
    int r = move_init(&d->move, client, options, &d->result, 1, &d->array, error);
    uint64_t n_bytes = gad_dtype_size(d->result.dtype);
    for (int i = 0; i < d->result.ndim; i++)
        n_bytes *= (uint64_t)d->result.shape[i];
    d->move.total_bytes = n_bytes;
    d->move.n_reads = (unsigned)d->n + 1;
    if (r == 0 && n_bytes > 0)
        r = run_job(d, error);
    if (r == 0)
        r = move_finish(&d->move, ret_stats, error);
    for (unsigned i = 0; i < sizeof(d->views) / sizeof(d->views[0]); i++)
        gad_array_release(d->views[i]);
    move_deinit(&d->move);
    return r;
}

static int refuse_n(enum gad_status status, int n, const char *message, const char *expected,
                    struct gad_error *error)
{
    error_set(error, status, "n", "%s", message);
    error_expected(error, "%s", expected);
    error_found(error, "%d", n);
    return (int)status;
}

static int set_result(struct diff *d, int n, int axis, struct gad_error *error)
{
    const struct gad_array_info *info = &d->array->info;
    if (n < 0)
        return refuse_n(GAD_BAD_ARGUMENT, n, "differences are taken a number of times", "0 or more",
                        error);
    if (info->ndim == 0) {
        error_set(error, GAD_BAD_SHAPE, "array", "an array without axes has no neighbours");
        error_expected(error, "at least one axis");
        error_found(error, "()");
        return GAD_BAD_SHAPE;
    }
    int r = view_axis(info->ndim, axis, "axis", &d->axis, error);
    if (r)
        return r;
    int64_t size = info->shape[d->axis];
    if (n > GAD_MAX_DIFF && n < size)
        return refuse_n(GAD_LIMIT_EXCEEDED, n, "too many differences of differences in one call",
                        "at most 16; take those of its result", error);
    d->n = n;
    d->result = (struct move_result){.dtype = meaning_dtype(d->array), .ndim = info->ndim};
    memcpy(d->result.shape, info->shape, sizeof(d->result.shape));
    d->result.shape[d->axis] = n < size ? size - n : 0;
    return 0;
}

enum gad_status gad_diff(struct gad_client *client, struct gad_array *array, int n, int axis,
                         const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                         struct gad_error *error)
{
    struct diff d = {.array = array};
    int r = move_check(client, 1, &array, options, error);
    if (r == 0)
        r = set_result(&d, n, axis, error);
    if (r == 0)
        r = run(&d, client, options, ret_stats, error);
    return client_status(r, error);
}
