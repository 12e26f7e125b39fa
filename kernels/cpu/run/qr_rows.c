/* R of the rows of a box: its elements are put by column by column, as LAPACK wants them, strip by
 * strip, and at the end R becomes that of itself with these rows below it. The first box of a node
 * begins with an R of zeros, others go on with what is there.
 *
 *     a strip, by rows      part of a row | eight rows | eight rows | ... | rows | part of a row
 *
 * Eight rows at a time are turned, so that a column's elements are written side by side. Columns
 * are an odd number of cache lines apart, or they would meet in the same lines of the cache.
 *
 * Memory may belong to another process: each element is read once. Called by run.c for each strip,
 * and by bind_reductions.c.
 */
#include "kernels/cpu/run/qr_rows.h"

#include "kernels/cpu/multiply/triangle.h"
#include "proto/util.h"

#include <string.h>

#define TURNED_ROWS 8

static int64_t all_columns(const struct qr_rows *q)
{
    return q->n_columns + q->has_column;
}

size_t qr_rows_bytes(const struct qr_rows *q)
{
    return (size_t)(q->apart * all_columns(q)) * sizeof(double);
}

size_t qr_rows_scratch_bytes(const struct qr_rows *q)
{
    return cpu_triangle_scratch_bytes(all_columns(q));
}

bool qr_rows_init(struct qr_rows *q, const struct engine_box *box, const struct pass *pass,
                  const struct reduction *reduction, void *plane)
{
    if (box->ndim != 2 || box->count[1] != pass->shape[1])
        return false;
    bool has_column = reduction->weights.kind != OPERAND_NONE;
    int64_t n_lines = divide_up_i64(box->count[0], PROGRAM_QR_LINE);
    *q = (struct qr_rows){
        .n_columns = box->count[1],
        .n_rows = box->count[0],
        .apart = (n_lines | (n_lines > 2)) * PROGRAM_QR_LINE,
        .is_by_rows = box->axis_order[1] == 1,
        .has_column = has_column,
        .is_continued = box->is_continued,
        .plane = plane,
    };
    return reduction->n_bins == (uint64_t)all_columns(q);
}

static void put(const struct qr_rows *q, int64_t row, int64_t column, size_t n, const double *src)
{
    double *to = q->rows + column * q->apart + row;
    for (size_t i = 0; i < n; i++)
        to[(int64_t)i * q->apart] = src[i];
}

static void turn_rows(const struct qr_rows *q, int64_t row, const double *src)
{
    double *restrict to = q->rows + row;
    int64_t n = q->n_columns;
    for (int64_t j = 0; j < n; j++, to += q->apart)
        for (int64_t i = 0; i < TURNED_ROWS; i++)
            to[i] = src[i * n + j];
}

static void take_by_rows(const struct qr_rows *q, uint64_t first, size_t n, const double *src)
{
    uint64_t width = (uint64_t)q->n_columns;
    while (n > 0) {
        int64_t row = (int64_t)(first / width), column = (int64_t)(first % width);
        size_t n_now = min_u64(n, width - (uint64_t)column);
        if (column == 0 && n >= TURNED_ROWS * width) {
            n_now = TURNED_ROWS * width;
            turn_rows(q, row, src);
        } else {
            put(q, row, column, n_now, src);
        }
        first += n_now;
        src += n_now;
        n -= n_now;
    }
}

static void take_by_columns(const struct qr_rows *q, uint64_t first, size_t n, const double *src)
{
    uint64_t height = (uint64_t)q->n_rows;
    while (n > 0) {
        uint64_t column = first / height, row = first % height;
        size_t n_now = min_u64(n, height - row);
        memcpy(q->rows + (int64_t)column * q->apart + row, src, n_now * sizeof(*src));
        first += n_now;
        src += n_now;
        n -= n_now;
    }
}

/* Of the column behind there is one element for each element of the box: those of the first column
 * are taken. */
static void take_column(const struct qr_rows *q, uint64_t first, size_t n, const double *column)
{
    double *to = q->rows + q->n_columns * q->apart;
    uint64_t step = q->is_by_rows ? (uint64_t)q->n_columns : 1;
    uint64_t most = q->is_by_rows ? UINT64_MAX : (uint64_t)q->n_rows;
    for (uint64_t i = (step - first % step) % step; i < n && first + i < most; i += step)
        to[(first + i) / step] = column[i];
}

void qr_rows_take(struct qr_rows *q, uint64_t first, size_t n, const double *src,
                  const double *column)
{
    if (q->is_by_rows)
        take_by_rows(q, first, n, src);
    else
        take_by_columns(q, first, n, src);
    if (column)
        take_column(q, first, n, column);
}

void qr_rows_finish(struct qr_rows *q)
{
    int64_t n = all_columns(q);
    if (!q->is_continued)
        memset(q->plane, 0, (size_t)(n * n) * sizeof(double));
    cpu_triangle_add(n, q->plane, q->n_rows, q->rows, q->apart, q->scratch);
}
