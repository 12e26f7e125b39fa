/* Tiles of a factor in memory: what LAPACK does of them, on all processors.
 *
 * LAPACK goes by columns. A tile in C order is for it the transposed one, so that a lower triangle
 * is an upper one there, and a system a system from the other side. LU must find its pivots along
 * columns: a panel of a few of them is turned into a buffer for LAPACK, and wider ones are halved
 * until they are so narrow:
 *
 *     +----+----+     L = factor of the left half, whose swaps go to the right one
 *     | L  | U  |     U = inv(L) @ U
 *     |    +----+     C = C - L @ U, by rows on all processors
 *     |    | C  |     and then C in the same way, whose swaps go back to the left
 *     +----+----+
 *
 * OpenBLAS keeps to the thread that calls it: the threads here are this file's. Called between
 * jobs.
 */
#include "client/linalg/lapack.h"
#include "client/linalg/solve/solve.h"
#include "client/process.h"
#include "proto/util.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define MAX_THREADS 16
#define LEAST_ROWS  64 /* of a thread */
#define NARROW      64 /* columns that LAPACK factors at once */

/* ---- threads ---- */

typedef void part_func(const struct lapack *lapack, void *data, int64_t first, int64_t count);

struct part {
    pthread_t thread;
    part_func *func;
    const struct lapack *lapack;
    void *data;
    int64_t first, count;
};

static void *run_part(void *data)
{
    struct part *part = data;
    part->func(part->lapack, part->data, part->first, part->count);
    return NULL;
}

/* Parts of 0 to n, the last in this thread. A thread that cannot be had leaves its part to it. */
static void in_parallel(const struct lapack *lapack, int64_t n, part_func *func, void *data)
{
    struct part parts[MAX_THREADS];
    sigset_t all, before;
    int64_t n_parts = min_i64(min_i64(n_processors(), MAX_THREADS), max_i64(n / LEAST_ROWS, 1));
    int64_t each = round_up_u64((uint64_t)divide_up_i64(n, n_parts), 8), first = 0;
    unsigned n_begun = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; first + each < n; n_begun++, first += each) {
        parts[n_begun] = (struct part){
            .func = func, .lapack = lapack, .data = data, .first = first, .count = each};
        if (pthread_create(&parts[n_begun].thread, NULL, run_part, &parts[n_begun]))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (n > first)
        func(lapack, data, first, n - first);
    for (unsigned i = 0; i < n_begun; i++)
        pthread_join(parts[i].thread, NULL);
}

/* ---- triangles ---- */

struct triangular {
    const struct solve_tile *t, *x;
    enum solve_triangle kind;
};

/* Of some columns of x, which are rows for LAPACK: x' = x' @ inv(t'), t' being turned there. */
static void solve_columns(const struct lapack *lapack, void *data, int64_t first, int64_t count)
{
    const struct triangular *c = data;
    const double one = 1;
    const int m = (int)count, n = (int)c->t->n_rows;
    const int ldt = (int)c->t->stride, ldx = (int)c->x->stride;
    const char *uplo = c->kind == SOLVE_UPPER ? "L" : "U";
    const char *turned = c->kind == SOLVE_LOWER_TURNED ? "T" : "N";
    const char *diagonal = c->kind == SOLVE_UNIT_LOWER ? "U" : "N";
    lapack->dtrsm_("R", uplo, turned, diagonal, &m, &n, &one, c->t->data, &ldt, c->x->data + first,
                   &ldx, 1, 1, 1, 1);
}

int solve_tile_triangle(const struct solve_tile *t, enum solve_triangle kind,
                        const struct solve_tile *x, struct gad_error *error)
{
    const struct lapack *lapack;
    struct triangular data = {.t = t, .x = x, .kind = kind};
    int r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    in_parallel(lapack, x->n_columns, solve_columns, &data);
    lapack_end(lapack);
    return 0;
}

/* Of some rows, which are columns for LAPACK: rows' = inv(l) @ rows'. */
static void solve_rows(const struct lapack *lapack, void *data, int64_t first, int64_t count)
{
    const struct triangular *c = data;
    const double one = 1;
    const int m = (int)c->t->n_rows, n = (int)count;
    const int ldt = (int)c->t->stride, ldx = (int)c->x->stride;
    lapack->dtrsm_("L", "U", "T", "N", &m, &n, &one, c->t->data, &ldt,
                   c->x->data + first * c->x->stride, &ldx, 1, 1, 1, 1);
}

int solve_tile_rows(const struct solve_tile *l, const struct solve_tile *rows,
                    struct gad_error *error)
{
    const struct lapack *lapack;
    struct triangular data = {.t = l, .x = rows};
    int r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    in_parallel(lapack, rows->n_rows, solve_rows, &data);
    lapack_end(lapack);
    return 0;
}

/* ---- Cholesky ---- */

int solve_tile_cholesky(const struct solve_tile *tile, int64_t *ret_bad, struct gad_error *error)
{
    const struct lapack *lapack;
    int n = (int)tile->n_columns, stride = (int)tile->stride, info = 0;
    int r = lapack_begin(false, &lapack, error);
    if (r)
        return r;
    lapack->dpotrf_("U", &n, tile->data, &stride, &info, 1);
    lapack_end(lapack);
    *ret_bad = info - 1;
    for (int64_t i = 0; i < n && info == 0; i++) {
        double *row = tile->data + i * tile->stride;
        if (!isfinite(row[i])) /* of infinity LAPACK has nothing to say */
            *ret_bad = i;
        memset(row + i + 1, 0, (size_t)(n - 1 - i) * sizeof(*row));
        if (*ret_bad >= 0)
            break;
    }
    return 0;
}

/* ---- LU ---- */

struct lu {
    const struct lapack *lapack;
    const struct solve_tile *tile;
    double *buffer; /* n_rows x NARROW, by columns */
    int64_t *pivots;
    int64_t bad;
};

struct update {
    const struct solve_tile *tile;
    int64_t column, half, width; /* C is n_rows - column - half x width - half */
};

void solve_tile_swap(const struct solve_tile *tile, const int64_t *pivots, int64_t first,
                     int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        double *a = tile->data + i * tile->stride, *b = tile->data + pivots[i] * tile->stride;
        for (int64_t k = 0; k < tile->n_columns && a != b; k++) {
            double value = a[k];
            a[k] = b[k];
            b[k] = value;
        }
    }
}

/* Of the columns `from` to `to`. */
static void swap_columns(const struct lu *c, int64_t from, int64_t to, int64_t first, int64_t end)
{
    struct solve_tile part = *c->tile;
    part.data += from;
    part.n_columns = to - from;
    solve_tile_swap(&part, c->pivots, first, end);
}

static void factor_narrow(struct lu *c, int64_t column, int64_t width)
{
    const struct solve_tile *tile = c->tile;
    int m = (int)(tile->n_rows - column), n = (int)width, info = 0, pivots[NARROW];
    double *corner = tile->data + column * tile->stride + column;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            c->buffer[k * m + i] = corner[i * tile->stride + k];
    c->lapack->dgetrf_(&m, &n, c->buffer, &m, pivots, &info);
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            corner[i * tile->stride + k] = c->buffer[k * m + i];
    for (int64_t k = 0; k < n; k++)
        c->pivots[column + k] = column + pivots[k] - 1;
    if (info > 0)
        c->bad = column + info - 1;
}

/* C = C - L @ U for some rows of it. */
static void update_rows(const struct lapack *lapack, void *data, int64_t first, int64_t count)
{
    const struct update *u = data;
    const double minus = -1, one = 1;
    const int64_t stride = u->tile->stride, right = u->column + u->half;
    const int m = (int)(u->width - u->half), n = (int)count, k = (int)u->half, ld = (int)stride;
    double *rows = u->tile->data + (right + first) * stride;
    lapack->dgemm_("N", "N", &m, &n, &k, &minus, u->tile->data + u->column * stride + right, &ld,
                   rows + u->column, &ld, &one, rows + right, &ld, 1, 1);
}

static void factor_columns(struct lu *c, int64_t column, int64_t width)
{
    const struct solve_tile *tile = c->tile;
    if (width <= NARROW) {
        factor_narrow(c, column, width);
        return;
    }
    int64_t half = divide_up_i64(width / 2, NARROW) * NARROW, right = column + half;
    factor_columns(c, column, half);
    if (c->bad >= 0)
        return;
    swap_columns(c, right, column + width, column, right);
    struct solve_tile l = {half, half, tile->stride, tile->data + column * tile->stride + column};
    struct solve_tile u = {half, width - half, tile->stride, l.data + half};
    struct triangular upper = {.t = &l, .x = &u, .kind = SOLVE_UNIT_LOWER};
    in_parallel(c->lapack, u.n_columns, solve_columns, &upper);
    struct update update = {.tile = tile, .column = column, .half = half, .width = width};
    in_parallel(c->lapack, tile->n_rows - right, update_rows, &update);
    factor_columns(c, right, width - half);
    if (c->bad < 0)
        swap_columns(c, column, right, right, column + width);
}

int solve_tile_lu(const struct solve_tile *tile, int64_t *ret_pivots, int64_t *ret_bad,
                  struct gad_error *error)
{
    struct lu c = {.tile = tile, .pivots = ret_pivots, .bad = -1};
    c.buffer = malloc((size_t)tile->n_rows * NARROW * sizeof(*c.buffer));
    if (!c.buffer)
        return -ENOMEM;
    int r = lapack_begin(false, &c.lapack, error);
    if (r == 0) {
        factor_columns(&c, 0, tile->n_columns);
        lapack_end(c.lapack);
    }
    free(c.buffer);
    *ret_bad = c.bad;
    return r;
}
