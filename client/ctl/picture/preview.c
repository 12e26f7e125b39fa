/* The small array that a picture shows, made in the daemon.
 *
 * The array is seen as blocks: a view whose axes are rows of blocks, rows in a block, columns of
 * blocks, columns in a block, of which the means over the second and the fourth are taken. What is
 * left at the ends, because sizes are no multiple of a block's, are blocks of their own size.
 *
 *     +----+----+----+--+
 *     |    |    |    |  |     means       4 parts at most
 *     +----+----+----+--+    ------->     # # # #
 *     |    |    |    |  |                 # # # #
 *     +----+----+----+--+                 # # # #
 *     +----+----+----+--+
 *
 * NaN and the fill value that a source names are left out of the means. To look for NaN takes as
 * long again as adding up, and mostly there is none: so a large part is read in bands, the first a
 * 16th of it, each next one as large as all before. A band of floats is added up as it is until a
 * cell comes out as NaN; that band is then read again, and it and all that follow without NaN. So
 * each element is read once, and where NaN is met at most half of them twice.
 *
 * Nothing is in memory but the means. --fast takes one element of each block: a view with steps.
 */
#include "client/ctl/picture/preview.h"

#include "proto/error.h"
#include "proto/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ASPECT 8  /* beyond it sides are drawn to different scales */
#define EVEN_STEP   16 /* elements */
#define LONG_STEP   64
#define FIRST_BAND  16                 /* the part of the rows that it has */
#define FEW         (INT64_C(1) << 22) /* elements, for which bands are not worth it */

struct part { /* of one axis: n blocks of so many elements each */
    int64_t start, n, size;
    unsigned to; /* the first cell */
};

struct reading {
    struct gad_client *client;
    struct gad_array *array;
    const struct gad_array_info *info;
    struct preview *preview;
    struct ctl_progress progress;
    double n_before, n_now; /* elements: of parts that have been read, of the one that is */
    bool skips_nan;         /* else there is none, or it shows */
};

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by > 0);
}

int preview_check(const struct gad_array_info *info, struct gad_error *error)
{
    char shape[256];
    const char *why = info->ndim == 0 ? "it is a single number" : NULL;
    for (int i = 0; i < info->ndim && !why; i++) {
        if (info->shape[i] == GAD_UNKNOWN_LENGTH)
            why = "nobody knows its length before its end";
        else if (info->shape[i] == 0)
            why = "it has no elements";
    }
    if (!why)
        return 0;
    error_set(error, GAD_BAD_SHAPE, "SOURCE", "there is no picture of the array: %s", why);
    error_expected(error, "an array of one axis or more, with elements");
    error_found(error, "%s", ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)));
    return GAD_BAD_SHAPE;
}

/* A cell's length so that an axis has no more cells than that. Long ones of images are rounded up,
 * for what is whole cache lines is added up sooner. */
static int64_t choose_step(int64_t n, unsigned most, bool is_line)
{
    int64_t step = divide_up(n, most);
    return step > LONG_STEP && !is_line ? divide_up(step, EVEN_STEP) * EVEN_STEP : step;
}

static void choose_cells(struct gad_picture *p, const struct preview_options *o)
{
    int64_t rows = choose_step(p->height, o->most_rows, p->is_line);
    int64_t columns = choose_step(p->width, o->most_columns, p->is_line),
            both = rows > columns ? rows : columns;
    p->is_even =
        !p->is_line && p->height / MOST_ASPECT <= p->width && p->width / MOST_ASPECT <= p->height;
    p->row_step = p->is_even ? both : rows;
    p->column_step = p->is_even ? both : columns;
    p->n_rows = (unsigned)divide_up(p->height, p->row_step);
    p->n_columns = (unsigned)divide_up(p->width, p->column_step);
}

/* A view of the blocks: [rows, in a row, columns, in a column], without those of one element. */
static int view_of(const struct reading *r, const struct part *row, const struct part *column,
                   struct gad_array **ret, struct gad_error *error)
{
    int64_t start[GAD_MAX_NDIM] = {0};
    int ndim = r->info->ndim, last = ndim - 1, n = 0;
    bool is_fast = r->preview->is_fast;
    struct gad_view_axis axes[4];
    if (!r->preview->picture.is_line) {
        start[last - 1] = row->start + (is_fast ? row->size / 2 : 0);
        axes[n++] = (struct gad_view_axis){last - 1, row->n, row->size};
        axes[n++] = (struct gad_view_axis){last - 1, is_fast ? 1 : row->size, 1};
    }
    start[last] = column->start + (is_fast ? column->size / 2 : 0);
    axes[n++] = (struct gad_view_axis){last, column->n, column->size};
    axes[n++] = (struct gad_view_axis){last, is_fast ? 1 : column->size, 1};
    return (int)gad_array_view(r->array, start, n, axes, ret, error);
}

/* The element as a number that is NaN where nothing is. */
static const char *element_text(const struct gad_array_info *info)
{
    bool is_float = info->dtype == GAD_FLOAT32 || info->dtype == GAD_FLOAT64;
    if (!info->has_fill)
        return is_float ? "x" : info->dtype == GAD_BOOL ? "uint8(x)" : "x";
    return is_float ? "where(x == f, nan, x)" : "where(x == f, nan, float64(x))";
}

/* How far all parts are, in elements. */
static void draw_progress(void *data, const struct gad_progress *now)
{
    struct reading *r = data;
    const struct gad_picture *p = &r->preview->picture;
    double n = (double)p->height * (double)p->width, size = gad_dtype_size(r->info->dtype);
    if (now->n_tiles == 0 || r->preview->is_fast)
        return;
    double n_done = r->n_before + r->n_now * (double)now->tiles_done / (double)now->n_tiles;
    const struct gad_progress all = {.tiles_done = (uint64_t)n_done,
                                     .n_tiles = (uint64_t)n,
                                     .read_bytes = (uint64_t)(n_done * size),
                                     .total_bytes = (uint64_t)(n * size)};
    ctl_progress_draw(&r->progress, &all);
}

static int run(struct reading *r, struct gad_array *view, unsigned n_outputs,
               const struct gad_output *outputs, struct gad_error *error)
{
    const struct gad_scalar *fill = &r->info->exact_fill;
    struct gad_argument args[2] = {{.name = "x", .array = view},
                                   {.name = "f", .scalar = fill->kind}};
    if (fill->kind == GAD_SCALAR_FLOAT)
        args[1].float_value = fill->float_value;
    else
        args[1].uint_value = fill->uint_value; /* or int_value, in one place with it */
    struct gad_job_options options = {
        .n_args = r->info->has_fill ? 2 : 1,
        .args = args,
        .n_outputs = n_outputs,
        .outputs = outputs,
        .label = "show",
        .progress = r->progress.is_shown ? draw_progress : NULL,
        .progress_data = r,
        .progress_ms = 100,
    };
    struct gad_job *job;
    int ret = (int)gad_submit(r->client, &options, &job, error);
    if (ret)
        return ret;
    ret = ctl_wait(job, error);
    gad_job_free(job);
    return ret;
}

/* Where the cells of a part belong. */
static void put(double *to, const struct gad_picture *p, const struct part *row,
                const struct part *column, struct gad_array *from)
{
    const double *values = gad_array_data(from);
    for (int64_t i = 0; i < row->n; i++)
        memcpy(to + (size_t)(row->to + i) * p->n_columns + column->to, values + i * column->n,
               (size_t)column->n * sizeof(*to));
}

static bool has_nan(struct gad_array *from, int64_t n)
{
    const double *values = gad_array_data(from);
    bool has = false;
    for (int64_t i = 0; i < n; i++)
        has |= isnan(values[i]);
    return has;
}

static int read_part(struct reading *r, const struct part *row, const struct part *column,
                     struct gad_error *error)
{
    static const char *const functions[] = {"mean", "min", "max"};
    const struct gad_picture *p = &r->preview->picture;
    size_t n_cells = (size_t)p->n_rows * p->n_columns;
    unsigned n = p->is_line ? 3 : 1;
    struct gad_output outputs[3] = {{.expr = NULL}};
    char texts[3][96];
    struct gad_array *view = NULL;
    bool skips_nan = r->skips_nan;
    int ret = view_of(r, row, column, &view, error);
    for (unsigned i = 0; i < n && !ret; i++) {
        snprintf(texts[i], sizeof(texts[i]), "float64(%s%s(%s, axis=%s))", skips_nan ? "nan" : "",
                 functions[i], element_text(r->info), p->is_line ? "1" : "(1, 3)");
        outputs[i].expr = texts[i];
        ret = (int)gad_array_new(r->client, GAD_FLOAT64, p->is_line ? 1 : 2,
                                 p->is_line ? &column->n : (int64_t[]){row->n, column->n},
                                 &outputs[i].to, error);
    }
    r->n_now = (double)row->n * (double)row->size * (double)column->n * (double)column->size;
    if (!ret)
        ret = run(r, view, n, outputs, error);
    if (!ret && !skips_nan)
        r->skips_nan = has_nan(outputs[0].to, row->n * column->n);
    for (unsigned i = 0; i < n && !ret; i++)
        put(r->preview->numbers + i * n_cells, p, row, column, outputs[i].to);
    for (unsigned i = 0; i < n; i++)
        gad_array_release(outputs[i].to);
    gad_array_release(view);
    return ret;
}

/* Again, if there has turned out to be NaN. Of single elements that is the same. */
static int read_band(struct reading *r, const struct part *row, const struct part *column,
                     struct gad_error *error)
{
    bool skips_nan = r->skips_nan;
    int ret = read_part(r, row, column, error);
    if (!ret && r->skips_nan && !skips_nan && !r->preview->is_fast)
        ret = read_part(r, row, column, error);
    r->n_before += r->n_now;
    return ret;
}

static int read_bands(struct reading *r, const struct part *row, const struct part *column,
                      struct gad_error *error)
{
    bool is_line = r->preview->picture.is_line;
    const struct part *along = is_line ? column : row, *across = is_line ? row : column;
    bool is_small = along->n * along->size < FEW / (across->n * across->size + 1);
    int ret = 0;
    for (int64_t done = 0, n; done < along->n && across->n > 0 && !ret; done += n) {
        n = done > 0 ? done : divide_up(along->n, FIRST_BAND);
        if (n > along->n - done || r->skips_nan || is_small || r->preview->is_fast)
            n = along->n - done;
        struct part band = {along->start + done * along->size, n, along->size,
                            along->to + (unsigned)done};
        ret = read_band(r, is_line ? row : &band, is_line ? &band : column, error);
    }
    return ret;
}

/* Whole blocks, and what is left. */
static void cut(int64_t n, int64_t step, struct part ret[2])
{
    ret[0] = (struct part){.n = n / step, .size = step};
    ret[1] = (struct part){
        .start = n - n % step, .n = n % step > 0, .size = n % step, .to = (unsigned)(n / step)};
}

int preview_read(struct gad_client *client, struct gad_array *array,
                 const struct gad_array_info *info, const struct preview_options *options,
                 struct preview *ret, struct gad_error *error)
{
    int last = info->ndim - 1;
    *ret = (struct preview){.picture = {.size = sizeof(ret->picture), .is_line = info->ndim == 1},
                            .is_fast = options->is_fast};
    struct gad_picture *p = &ret->picture;
    int r = preview_check(info, error);
    if (r)
        return r;
    p->height = last > 0 ? info->shape[last - 1] : 1;
    p->width = info->shape[last];
    choose_cells(p, options);
    size_t n = (size_t)p->n_rows * p->n_columns;
    p->means = ret->numbers = calloc(p->is_line ? 3 * n : n, sizeof(*ret->numbers));
    if (!ret->numbers)
        return error_set(error, GAD_NO_MEMORY, "SOURCE", "no memory for the picture");
    if (p->is_line) {
        p->lows = ret->numbers + n;
        p->highs = ret->numbers + 2 * n;
    }
    struct reading reading = {.client = client,
                              .array = array,
                              .info = info,
                              .preview = ret,
                              .skips_nan = info->has_fill};
    ctl_progress_begin(&reading.progress, options->is_quiet);
    struct part rows[2], columns[2];
    cut(p->height, p->row_step, rows);
    cut(p->width, p->column_step, columns);
    for (unsigned i = 0; i < 4 && !r; i++)
        r = read_bands(&reading, &rows[i / 2], &columns[i % 2], error);
    ctl_progress_end(&reading.progress);
    return r;
}

void preview_deinit(struct preview *preview)
{
    free(preview->numbers);
}
