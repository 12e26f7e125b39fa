/* R by LAPACK in this process, of rows as they come from one job.
 *
 *     | R    |          A slab is as many rows as fit SLAB_BYTES; R is all that is kept of those
 *     | slab | -> R     before it. Nothing of it is in the daemon's pool but the job's slots.
 *
 * Columns behind are read before, and held: a number for each row. All of them are of the one R,
 * [R_a, c; 0, S]: for each the R of the data and that column alone has the length of what is below
 * in its column.
 */
#include "client/linalg/dense.h"
#include "client/linalg/matrix/matrix.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

#define SLAB_BYTES     (1 << 20) /* that a core's cache has room for */
#define LEAST_ROWS     128
#define MOST_TAKEN     32768 /* elements at a time */
#define MOST_COLUMNS   16
#define CANCEL_WAIT_MS 50
#define MOST_TRIES     8 /* where workers are lost: a job with a stream is not begun anew by itself */

struct rows {
    struct passes *p;
    int64_t n, width, n_slab; /* columns of the data; with those behind; rows of a slab */
    unsigned n_columns;
    const double *columns[MOST_COLUMNS]; /* behind: all rows of each */
    struct gad_stream *stream;
    double *r_of, *slab, *taken;
    bool is_finite;
};

/* A slab --------------------------------------------------------------------------------------- */

static void put(struct rows *rows, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        int64_t row = (at + i) / rows->n, column = (at + i) % rows->n;
        int64_t length = min_i64(rows->n - column, n - i);
        double *to = rows->slab + row * rows->width + column;
        for (int64_t j = 0; j < length; j++) {
            to[j] = rows->taken[i + j];
            rows->is_finite &= isfinite(to[j]) != 0;
        }
        i += length;
    }
}

static int take_slab(struct rows *rows, int64_t n_rows, struct gad_error *error)
{
    const struct gad_linalg_run *run = &rows->p->run;
    int64_t n_taken = 0, n_all = n_rows * rows->n;
    while (n_taken < n_all && rows->is_finite) {
        size_t n, n_wanted = (size_t)min_i64(n_all - n_taken, MOST_TAKEN);
        int r =
            (int)gad_stream_take(rows->stream, rows->taken, n_wanted, CANCEL_WAIT_MS, &n, error);
        put(rows, n_taken, (int64_t)n);
        n_taken += (int64_t)n;
        if (r == 0 && n < n_wanted)
            return error_set(error, GAD_SHORT_READ, NULL, "the job has ended before its results");
        if (r && r != GAD_TIMEOUT)
            return r;
        if (run->is_cancelled && run->is_cancelled(run->data))
            return error_set(error, GAD_CANCELLED, NULL, "it was cancelled");
    }
    return 0;
}

static void put_columns(struct rows *rows, int64_t first, int64_t n_rows)
{
    for (int64_t i = 0; i < n_rows; i++)
        for (unsigned j = 0; j < rows->n_columns; j++) {
            double element = rows->columns[j][first + i];
            rows->slab[i * rows->width + rows->n + j] = element;
            rows->is_finite &= isfinite(element) != 0;
        }
}

/* While the job runs. */
static int take_all(void *data, struct gad_error *error)
{
    struct rows *rows = data;
    int64_t n_rows = rows->p->shape[0];
    int r = 0;
    for (int64_t first = 0; first < n_rows && r == 0 && rows->is_finite; first += rows->n_slab) {
        int64_t n = min_i64(rows->n_slab, n_rows - first);
        r = take_slab(rows, n, error);
        put_columns(rows, first, n);
        if (r == 0 && rows->is_finite)
            r = dense_qr_update(n, rows->width, rows->r_of, rows->slab, error);
    }
    if (r == 0 && !rows->is_finite) /* nobody needs the rest of the job */
        r = error_set(error, GAD_CANCELLED, NULL, "there are elements that are not finite");
    return r;
}

/* Jobs ----------------------------------------------------------------------------------------- */

static int read_columns(struct rows *rows, unsigned n_inputs, const struct gad_argument *inputs,
                        char *const *texts, struct gad_error *error)
{
    struct gad_output outputs[MOST_COLUMNS];
    const int64_t shape[] = {rows->p->shape[0], 1};
    int r = 0;
    for (unsigned i = 0; i < rows->n_columns && r == 0; i++) {
        struct gad_array *to;
        r = passes_new_matrix(rows->p, 2, shape, &to, error);
        outputs[i] = (struct gad_output){.expr = texts[i], .to = r ? NULL : to};
        rows->columns[i] = r ? NULL : gad_array_data(to);
    }
    const struct pass pass = {.is_beside = true,
                              .n_inputs = n_inputs,
                              .inputs = inputs,
                              .n_outputs = rows->n_columns,
                              .outputs = outputs};
    return r || rows->n_columns == 0 ? r : passes_run(rows->p, &pass, error);
}

static int prepare(struct rows *rows, struct gad_error *error)
{
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = rows->p->shape};
    int64_t most = SLAB_BYTES / (int64_t)sizeof(double) / rows->width;
    rows->n_slab = min_i64(max_i64(most, LEAST_ROWS), rows->p->shape[0]);
    int r = (int)gad_stream_new(rows->p->client, &layout, true, NULL, &rows->stream, error);
    if (r || rows->p->only_plans)
        return r;
    rows->r_of = matrix_new(rows->width, rows->width, error);
    rows->slab = rows->r_of ? matrix_new(rows->n_slab, rows->width, error) : NULL;
    rows->taken = rows->slab ? matrix_new(1, MOST_TAKEN, error) : NULL;
    return rows->taken ? 0 : GAD_NO_MEMORY;
}

static void forget(struct rows *rows)
{
    gad_stream_free(steal_ptr(rows->stream));
    free(steal_ptr(rows->r_of));
    free(steal_ptr(rows->slab));
    free(steal_ptr(rows->taken));
}

static int read_rows(struct rows *rows, unsigned n_inputs, const struct gad_argument *inputs,
                     const char *text, struct gad_error *error)
{
    forget(rows);
    int r = prepare(rows, error);
    if (r)
        return r;
    const struct gad_output output = {.expr = text, .to = gad_stream_array(rows->stream)};
    const struct pass pass = {.n_inputs = n_inputs,
                              .inputs = inputs,
                              .n_outputs = 1,
                              .outputs = &output,
                              .take = take_all,
                              .taking = rows};
    r = passes_run(rows->p, &pass, error);
    return r == GAD_CANCELLED && !rows->is_finite ? 0 : r;
}

static void take_results(const struct rows *rows, double *ret_r, double *ret_behind)
{
    int64_t n = rows->n;
    for (int64_t i = 0; i < n; i++)
        memcpy(ret_r + i * n, rows->r_of + i * rows->width, sizeof(*ret_r) * (size_t)n);
    for (unsigned j = 0; j < rows->n_columns; j++) {
        const double *column = rows->r_of + n + j;
        double *behind = ret_behind + j * (n + 1), squares = 0;
        for (int64_t i = 0; i < n; i++)
            behind[i] = column[i * rows->width];
        for (int64_t i = n; i < rows->width; i++)
            squares += column[i * rows->width] * column[i * rows->width];
        behind[n] = sqrt(squares);
    }
}

int matrix_triangles_of_rows(struct passes *p, unsigned n_columns, unsigned n_inputs,
                             const struct gad_argument *inputs, char *const *texts, double *ret_r,
                             double *ret_behind, bool *ret_is_finite, struct gad_error *error)
{
    struct rows rows = {.p = p,
                        .n = p->shape[1],
                        .width = p->shape[1] + n_columns,
                        .n_columns = n_columns,
                        .is_finite = true};
    unsigned n_before = p->n_matrices;
    int r = n_columns <= MOST_COLUMNS ? read_columns(&rows, n_inputs, inputs, texts + 1, error)
                                      : -E2BIG;
    if (r == 0)
        r = read_rows(&rows, n_inputs, inputs, texts[0], error);
    for (unsigned i = 1; i < MOST_TRIES && r == GAD_WORKER_LOST; i++)
        r = read_rows(&rows, n_inputs, inputs, texts[0], error);
    if (r == 0 && rows.is_finite && !p->only_plans)
        take_results(&rows, ret_r, ret_behind);
    *ret_is_finite = rows.is_finite;
    forget(&rows);
    passes_release_matrices(p, n_before);
    return r;
}
