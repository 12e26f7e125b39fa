/* Values of largest magnitude of a symmetric operator: a block Krylov method (Musco and Musco,
 * Randomized block Krylov methods for stronger and faster approximate singular value decomposition,
 * 2015).
 *
 *     block    n x width, orthonormal: random at first, then what the operator made of the one
 *              before, at right angles to all before it, twice
 *     basis    all blocks, and `images` what the operator made of them, a row each: the values are
 *              those of the operator restricted to the basis, at the end with the newest images
 *
 * Of float32 data the operator may be in float32, with sums of some rows added in float64. Then
 * values are off by some 5e-8 of the largest one: where the wanted ones turn out to be so small
 * that it shows, the newest images are where it begins again, in float64. So there is no read more,
 * but where squares leave float32's range.
 *
 * A read is one application. Where the daemon's pool has no room for one of the whole block, it is
 * made of fewer columns at a time. Between reads basis, images and the next block are kept in the
 * checkpoint, which is all that the loop depends on.
 */
#include "client/gpuarrayd-matrix.h"
#include "client/linalg/checkpoint.h"
#include "client/linalg/dense.h"
#include "client/linalg/matrix/matrix.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROUNDED    1e-12 /* of the largest value: what is less is noise */
#define MOST_RATIO 0.9   /* of a change by the one before */
/* In float32. */
#define ROUNDED_OF_SINGLES 1e-6
#define LEAST_OF_SINGLES   1e-4  /* of the largest value: the least that is wanted */
#define LEAST_SINGLE       1e-26 /* of what a row gives: products have all digits */
#define MOST_SINGLE        1e30

enum { STATE_DONE, STATE_ROWS, STATE_WIDTH, STATE_SINGLE, STATE_DROPPED, N_STATES };

struct loop {
    struct directions *d;
    int64_t width, most_width; /* of the block, and of the first one */
    int64_t n_rows;            /* of basis and images */
    bool is_single;            /* the operator is in float32, and what `block` has is, too */
    unsigned n_dropped;        /* iterations before it began again */
    double *block, *basis, *images;
    double *past[2]; /* values of the iterations before, the newest first */
    int n_past;
    int64_t step;                /* columns that a job has */
    struct gad_array *w, *image; /* n x step */
};

/* The operator ----------------------------------------------------------------------------------
 */

static int apply_step(struct loop *l, bool is_single, bool only_tries, struct gad_error *error)
{
    const struct directions *d = l->d;
    const struct gad_argument inputs[] = {{.name = "_w", .array = l->w},
                                          {.name = "_m", .array = d->centre}};
    const struct gad_output output = {.expr = is_single ? d->single_expr : d->expr, .to = l->image};
    const struct pass pass = {
        .n_inputs = d->centre ? 2 : 1, .inputs = inputs, .n_outputs = 1, .outputs = &output};
    return only_tries ? passes_try(d->p, &pass, error) : passes_run(d->p, &pass, error);
}

/* So many columns at a time as the pool has room for. */
static int choose_step(struct loop *l, struct gad_error *error)
{
    struct passes *p = l->d->p;
    l->step = l->width;
    for (;;) {
        const int64_t shape[] = {l->d->n, l->step};
        int r = passes_new_matrix(p, 2, shape, &l->w, error);
        if (r == 0)
            r = passes_new_matrix(p, 2, shape, &l->image, error);
        if (r == 0)
            r = apply_step(l, false, true, error);
        if (r == 0 && l->is_single)
            l->is_single = apply_step(l, true, true, NULL) == 0;
        if (r != GAD_TOO_LARGE_FOR_POOL || l->step == 1)
            return r;
        l->step = divide_up_i64(l->step, 2);
    }
}

static void copy_columns(int64_t n, int64_t n_columns, const double *from, int64_t from_width,
                         double *to, int64_t to_width)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_width, from + i * from_width, sizeof(*to) * (size_t)n_columns);
}

static void round_block(struct loop *l)
{
    for (int64_t i = 0; l->is_single && i < l->d->n * l->width; i++)
        l->block[i] = (float)l->block[i];
}

/* The block's images into rows of `images`, and itself into those of `basis`. */
static int apply(struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    double largest = 0;
    bool is_finite = true;
    round_block(l);
    double *w = gad_array_data(l->w), *image = gad_array_data(l->image);
    for (int64_t first = 0; first < l->width; first += l->step) {
        int64_t n_now = min_i64(l->step, l->width - first);
        memset(w, 0, sizeof(*w) * (size_t)(d->n * l->step));
        copy_columns(d->n, n_now, l->block + first, l->width, w, l->step);
        int r = apply_step(l, l->is_single, false, error);
        if (r)
            return r;
        for (int64_t i = 0; i < d->n && !d->p->only_plans; i++)
            for (int64_t j = 0; j < n_now; j++) {
                int64_t row = l->n_rows + first + j;
                l->images[row * d->n + i] = image[i * l->step + j];
                l->basis[row * d->n + i] = l->block[i * l->width + first + j];
                is_finite &= isfinite(image[i * l->step + j]) != 0;
                largest = max_f64(largest, fabs(image[i * l->step + j]));
            }
    }
    double of_row = largest / (double)d->p->shape[0];
    bool is_in_range = of_row > LEAST_SINGLE && of_row < MOST_SINGLE;
    if (l->is_single && !d->p->only_plans && (!is_finite || (l->n_rows == 0 && !is_in_range))) {
        l->is_single = false;
        return apply(l, error);
    }
    if (!is_finite)
        return passes_refuse_not_finite(d->p, d->argument, error);
    l->n_rows += l->width;
    return 0;
}

/* Blocks --------------------------------------------------------------------------------------- */

static int draw(struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    struct gad_array *drawn;
    char text[120];
    const int64_t shape[] = {d->n, l->width};
    int r = passes_new_matrix(d->p, 2, shape, &drawn, error);
    if (r)
        return r;
    snprintf(text, sizeof(text), "normal(size=(%lld, %lld), seed=%llu)", (long long)d->n,
             (long long)l->width, (unsigned long long)(d->seed & INT64_MAX));
    const struct gad_output output = {.expr = text, .to = drawn};
    const struct pass pass = {.has_no_data = true, .n_outputs = 1, .outputs = &output};
    r = passes_run(d->p, &pass, error);
    if (r || d->p->only_plans)
        return r;
    memcpy(l->block, gad_array_data(drawn), sizeof(*l->block) * (size_t)(d->n * l->width));
    return dense_qr(d->n, l->width, l->block, NULL, error);
}

static bool has_lost_digits(const struct loop *l)
{
    const struct directions *d = l->d;
    return l->is_single && d->values[d->k - 1] < LEAST_OF_SINGLES * d->values[0];
}

/* In float64 from here on, from the newest images. */
static void begin_again(struct loop *l)
{
    l->is_single = false;
    l->n_dropped = l->d->n_done;
    l->n_rows = 0;
    l->n_past = 0;
}

/* The newest images' first columns, at right angles to the basis. */
static int next_block(struct loop *l, bool is_last, struct gad_error *error)
{
    const struct directions *d = l->d;
    int64_t first = (d->n_done - l->n_dropped - 1) * l->most_width, n_newest = l->n_rows - first;
    const double *newest = l->images + first * d->n;
    if (!is_last && has_lost_digits(l))
        begin_again(l);
    int64_t n = d->n, rows = l->n_rows, width = min_i64(n_newest, n - rows);
    _cleanup_free_ double *along = matrix_new(max_i64(rows, 1), max_i64(width, 1), error);
    if (!along)
        return GAD_NO_MEMORY;
    l->width = width;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++)
            l->block[i * width + j] = newest[j * n + i];
    const struct dense_product find = {.m = rows, .n = width, .k = n, .alpha = 1};
    const struct dense_product take = {
        .transpose_a = true, .m = n, .n = width, .k = rows, .alpha = -1, .beta = 1};
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++) {
        if (rows > 0)
            r = dense_multiply(&find, l->basis, l->block, along, error);
        if (r == 0 && rows > 0)
            r = dense_multiply(&take, l->basis, along, l->block, error);
        if (r == 0)
            r = dense_qr(n, width, l->block, NULL, error);
    }
    return r;
}

/* Values --------------------------------------------------------------------------------------- */

/* Of the k values of largest magnitude, which fall, the numbers; values are sorted by size. */
static void choose(int64_t n, const double *values, int64_t k, int64_t *ret_chosen)
{
    int64_t low = 0, high = n - 1;
    for (int64_t i = 0; i < k; i++)
        ret_chosen[i] = fabs(values[low]) >= fabs(values[high]) ? low++ : high--;
}

/* Eigenvalues of the operator restricted to the basis, which fall, and a row for each vector. */
static int restrict_operator(const struct loop *l, double *h, double *values,
                             struct gad_error *error)
{
    int64_t rows = l->n_rows;
    const struct dense_product inner = {
        .transpose_b = true, .m = rows, .n = rows, .k = l->d->n, .alpha = 1};
    int r = dense_multiply(&inner, l->basis, l->images, h, error);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < i; j++)
            h[i * rows + j] = h[j * rows + i] = (h[i * rows + j] + h[j * rows + i]) / 2;
    return r ? r : dense_eigh(rows, rows, h, values, error);
}

/* values and vectors; the largest length of what the operator makes of a vector beside it. */
static int restrict_to_basis(const struct loop *l, double *ret_rest, struct gad_error *error)
{
    struct directions *d = l->d;
    int64_t n = d->n, rows = l->n_rows;
    const struct dense_product turn = {.m = d->k, .n = n, .k = rows, .alpha = 1};
    _cleanup_free_ double *h = matrix_new(rows, rows, error), *all = matrix_new(rows, 1, error);
    _cleanup_free_ double *turned = matrix_new(d->k, rows, error);
    _cleanup_free_ double *images = matrix_new(d->k, n, error);
    _cleanup_free_ int64_t *chosen = calloc((size_t)d->k, sizeof(*chosen));
    if (!h || !all || !turned || !images || !chosen)
        return GAD_NO_MEMORY;
    int r = restrict_operator(l, h, all, error);
    if (r)
        return r;
    choose(rows, all, d->k, chosen);
    for (int64_t i = 0; i < d->k; i++) {
        d->values[i] = all[chosen[i]];
        memcpy(turned + i * rows, h + chosen[i] * rows, sizeof(*h) * (size_t)rows);
    }
    r = dense_multiply(&turn, turned, l->basis, d->vectors, error);
    if (r == 0)
        r = dense_multiply(&turn, turned, l->images, images, error);
    *ret_rest = 0;
    for (int64_t i = 0; i < d->k && r == 0; i++) {
        double squares = 0;
        for (int64_t j = 0; j < n; j++) {
            double rest = images[i * n + j] - d->values[i] * d->vectors[i * n + j];
            squares += rest * rest;
        }
        *ret_rest = max_f64(*ret_rest, sqrt(squares));
    }
    return r;
}

/* Of squares the newest images count, too: values and vectors of images.T inv(H) images, where H is
 * the operator restricted to the basis (Nystrom; Gittens and Mahoney, Revisiting the Nystrom
 * method, 2013). They lie between those of H and the operator's. Directions of H that are noise are
 * left out. */
static int use_images(const struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    int64_t n = d->n, rows = l->n_rows, n_kept = 0;
    _cleanup_free_ double *h = matrix_new(rows, rows, error), *all = matrix_new(rows, 1, error);
    _cleanup_free_ double *factor = matrix_new(rows, n, error), *vt = matrix_new(rows, n, error);
    _cleanup_free_ double *u = matrix_new(rows, rows, error);
    if (!h || !all || !factor || !vt || !u)
        return GAD_NO_MEMORY;
    int r = restrict_operator(l, h, all, error);
    double least = l->is_single ? ROUNDED_OF_SINGLES : ROUNDED;
    while (r == 0 && n_kept < rows && all[n_kept] > least * all[0])
        n_kept++;
    if (r || n_kept < d->k)
        return r;
    for (int64_t i = 0; i < n_kept; i++)
        for (int64_t j = 0; j < rows; j++)
            h[i * rows + j] /= sqrt(all[i]);
    const struct dense_product scale = {.m = n_kept, .n = n, .k = rows, .alpha = 1};
    r = dense_multiply(&scale, h, l->images, factor, error);
    if (r == 0)
        r = dense_svd(n_kept, n, factor, u, all, vt, error);
    for (int64_t i = 0; i < d->k && r == 0; i++)
        d->values[i] = all[i] * all[i];
    if (r == 0)
        memcpy(d->vectors, vt, sizeof(*vt) * (size_t)(d->k * n));
    return r;
}

static void remember(struct loop *l)
{
    double *oldest = l->past[1];
    l->past[1] = l->past[0];
    l->past[0] = oldest;
    memcpy(oldest, l->d->values, sizeof(*oldest) * (size_t)l->d->k);
    l->n_past = (int)min_i64(l->n_past + 1, 2);
}

/* What part of a value is still to come, at most: changes of the last iterations go on to fall as
 * they did. Before the third it is what the operator makes of a vector beside it. */
static double estimate_off(const struct loop *l, double rest)
{
    const struct directions *d = l->d;
    double off = 0, largest = fabs(d->values[0]);
    double least = fabs(d->values[d->k - 1]);
    if (l->n_past < 2)
        return largest > 0 ? rest / (least > ROUNDED * largest ? least : largest) : 0;
    for (int64_t i = 0; i < d->k && fabs(d->values[i]) > ROUNDED * largest; i++) {
        double now = fabs(d->values[i]), change = now - fabs(l->past[0][i]);
        double before = fabs(l->past[0][i]) - fabs(l->past[1][i]);
        double ratio = before > 0 ? min_f64(max_f64(change / before, 0), MOST_RATIO) : 0;
        off = max_f64(off, change / now * ratio / (1 - ratio));
    }
    return off;
}

/* Checkpoints ---------------------------------------------------------------------------------- */

static void list(const struct loop *l, struct gad_dense *ret_arrays)
{
    ret_arrays[0] = (struct gad_dense){
        .name = "basis", .ndim = 2, .shape = {l->n_rows, l->d->n}, .data = l->basis};
    ret_arrays[1] = (struct gad_dense){
        .name = "images", .ndim = 2, .shape = {l->n_rows, l->d->n}, .data = l->images};
    ret_arrays[2] = (struct gad_dense){
        .name = "block", .ndim = 2, .shape = {l->d->n, l->width}, .data = l->block};
}

static int save(const struct loop *l, struct gad_error *error)
{
    struct checkpoint *c = l->d->checkpoint;
    struct gad_dense arrays[3];
    list(l, arrays);
    c->n_state = N_STATES;
    c->state[STATE_DONE] = l->d->n_done;
    c->state[STATE_ROWS] = (double)l->n_rows;
    c->state[STATE_WIDTH] = (double)l->width;
    c->state[STATE_SINGLE] = l->is_single;
    c->state[STATE_DROPPED] = l->n_dropped;
    return checkpoint_write(c, 3, arrays, error);
}

/* First how large the arrays are, then the arrays. */
static int load(struct loop *l, bool *ret_is_there, struct gad_error *error)
{
    struct checkpoint *c = l->d->checkpoint;
    struct gad_dense arrays[3];
    c->n_state = N_STATES;
    int r = checkpoint_read(c, 0, NULL, ret_is_there, error);
    if (r || !*ret_is_there)
        return r;
    l->d->n_done = (unsigned)c->state[STATE_DONE];
    l->n_rows = (int64_t)c->state[STATE_ROWS];
    l->width = (int64_t)c->state[STATE_WIDTH];
    l->is_single = c->state[STATE_SINGLE] != 0;
    l->n_dropped = (unsigned)c->state[STATE_DROPPED];
    if (l->d->n_done > l->d->n_iterations || l->n_rows > l->most_width * l->d->n_iterations ||
        l->width > l->most_width)
        return checkpoint_refuse(c, "no more iterations than are asked for", l->d->n_done, error);
    list(l, arrays);
    return checkpoint_read(c, 3, arrays, ret_is_there, error);
}

/* The loop ------------------------------------------------------------------------------------- */

static int prepare(struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    bool is_there = false;
    l->width = l->most_width = min_i64(d->k + d->n_oversamples, d->n);
    int64_t most = min_i64(mul_saturating_i64(l->most_width, d->n_iterations), d->n);
    d->values = matrix_new(d->k, 1, error);
    d->vectors = matrix_new(d->k, d->n, error);
    l->past[0] = matrix_new(d->k, 1, error);
    l->past[1] = matrix_new(d->k, 1, error);
    l->block = matrix_new(d->n, l->most_width, error);
    l->basis = matrix_new(most, d->n, error);
    l->images = matrix_new(most, d->n, error);
    if (!d->values || !d->vectors || !l->past[0] || !l->past[1] || !l->block || !l->basis ||
        !l->images)
        return GAD_NO_MEMORY;
    int r = choose_step(l, error);
    if (r == 0 && !d->p->only_plans)
        r = load(l, &is_there, error);
    d->p->n_before = d->n_done;
    return r || is_there ? r : draw(l, error);
}

static int iterate(struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    double rest;
    int r = apply(l, error);
    if (d->n_done > l->n_dropped)
        remember(l);
    if (r == 0)
        r = restrict_to_basis(l, &rest, error);
    if (r)
        return r;
    d->off = estimate_off(l, rest);
    double largest = fabs(d->values[0]), change = largest > 0 ? rest / largest : 0;
    if (d->is_of_squares || largest == 0)
        r = passes_check_squares(d->p, d->argument, d->centre ? 0 : -1, largest, error);
    if (r)
        return r;
    d->n_done++;
    d->is_converged = change <= d->tolerance || l->n_rows == d->n;
    d->is_stopped = passes_tell(d->p, d->n_done, d->n_iterations, NAN, change);
    bool is_done = d->is_converged || d->is_stopped || d->n_done == d->n_iterations;
    r = l->n_rows == d->n ? 0 : next_block(l, is_done, error);
    return r ? r : save(l, error);
}

static int plan(struct loop *l, struct gad_error *error)
{
    struct passes *p = l->d->p;
    struct gad_reads before = p->reads;
    double before_s = p->planned_s;
    int r = apply(l, error);
    l->d->planned = passes_since(p, &before);
    l->d->planned_s = p->planned_s - before_s;
    return r;
}

/* The values of up to two iterations before, of what a checkpoint has. */
static int restrict_past(struct loop *l, struct gad_error *error)
{
    int64_t rows = l->n_rows, n_done = l->d->n_done;
    double rest;
    int r = 0;
    for (int64_t i = max_i64(n_done - 2, l->n_dropped + 1); i < n_done && r == 0; i++) {
        l->n_rows = min_i64((i - l->n_dropped) * l->most_width, rows);
        r = restrict_to_basis(l, &rest, error);
        remember(l);
    }
    l->n_rows = rows;
    return r;
}

static int run(struct loop *l, struct gad_error *error)
{
    struct directions *d = l->d;
    double rest = 0;
    int r = prepare(l, error);
    if (r == 0 && d->p->only_plans)
        return plan(l, error);
    if (r == 0 && d->n_done > l->n_dropped) {
        r = restrict_past(l, error);
        if (r == 0)
            r = restrict_to_basis(l, &rest, error);
        d->off = estimate_off(l, rest);
        d->is_converged = rest <= d->tolerance * fabs(d->values[0]) || l->n_rows == d->n;
        if (r == 0 && has_lost_digits(l) && d->n_done < d->n_iterations && !d->is_converged)
            r = next_block(l, false, error); /* it was stopped, and shall have more */
    }
    while (r == 0 && d->n_done < d->n_iterations && !d->is_converged && !d->is_stopped)
        r = iterate(l, error);
    return r || !d->is_of_squares ? r : use_images(l, error);
}

int directions_find(struct directions *d, struct gad_error *error)
{
    struct loop l = {.d = d, .is_single = d->single_expr != NULL};
    int r = run(&l, error);
    d->is_single = l.is_single;
    free(l.block);
    free(l.basis);
    free(l.images);
    free(l.past[0]);
    free(l.past[1]);
    return r;
}

void directions_deinit(struct directions *d)
{
    free(d->values);
    free(d->vectors);
}
