/* The products of a tensor that CP and Tucker are made of, as jobs.
 *
 * With the tensor as before x n x behind, x is before matrices of n x behind:
 *
 *     rows   sum of x @ C over them, where C is before x behind x rank
 *     rest   rows.T @ x of each, before x rank x behind, into a view of rest
 *
 * C is made here, of the other axes' factors.
 */
#include "client/linalg/slabs.h"
#include "client/gpuarrayd-tensor.h"
#include "client/linalg/contract.h"
#include "client/linalg/dense.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Making --------------------------------------------------------------------------------------- */

int slabs_check_shape(const struct passes *p, struct gad_error *error)
{
    if (p->ndim < 3 || p->ndim > SLABS_MAX_NDIM) {
        error_set(error, GAD_BAD_SHAPE, "tensor", "a tensor of %d axes is not decomposed here",
                  p->ndim);
        error_expected(error, "3 to %d axes", SLABS_MAX_NDIM);
        error_found(error, "%d", p->ndim);
        return GAD_BAD_SHAPE;
    }
    for (int i = 0; i < p->ndim; i++)
        if (p->shape[i] == 0)
            return error_set(error, GAD_BAD_SHAPE, "tensor", "axis %d has no elements", i);
    return 0;
}

#define MUCH_SHORTER 4 /* an axis that the first one is preferred to is at most so much longer */

int slabs_axis(const struct passes *p)
{
    int axis = 0;
    for (int i = 1; i < p->ndim; i++)
        if (p->shape[i] > p->shape[axis])
            axis = i;
    return p->shape[axis] <= MUCH_SHORTER * p->shape[0] ? 0 : axis;
}

static void choose_axis(struct slabs *s)
{
    s->axis = slabs_axis(s->p);
    for (int i = 0; i < s->p->ndim; i++)
        if (i != s->axis)
            s->others[s->n_others++] = i;
}

int64_t slabs_n_rest(const struct slabs *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_others; i++)
        n = mul_saturating_i64(n, s->p->shape[s->others[i]]);
    return n;
}

/* Any tensor is a sum of so many outer products as it has elements beside its longest axis. */
static int check_rank(const struct slabs *s, int64_t rank, struct gad_error *error)
{
    const struct passes *p = s->p;
    int64_t n = 1, longest = 1;
    for (int i = 0; i < p->ndim; i++) {
        n = mul_saturating_i64(n, p->shape[i]);
        longest = max_i64(longest, p->shape[i]);
    }
    int64_t most = min_i64(SLABS_MAX_RANK, n / longest);
    if (rank >= 1 && rank <= most)
        return 0;
    error_set(error, GAD_BAD_RANK, "rank", "rank %lld is not possible for this tensor",
              (long long)rank);
    error_expected(error, "1 to %lld", (long long)most);
    error_found(error, "%lld", (long long)rank);
    return GAD_BAD_RANK;
}

static int make_matrices(struct slabs *s, struct gad_error *error)
{
    struct passes *p = s->p;
    int64_t rest_shape[SLABS_MAX_NDIM + 1];
    const int64_t g_shape[] = {s->rank, s->rank};
    int r = passes_new_matrix(p, 2, g_shape, &s->g, error);
    if (r == 0)
        r = passes_new_matrix(p, 0, NULL, &s->squares, error);
    for (int i = 0; i < p->ndim && r == 0; i++) {
        const int64_t shape[] = {p->shape[i], s->rank};
        r = passes_new_matrix(p, 2, shape, &s->factors[i], error);
    }
    for (int i = 0; i < s->n_others; i++)
        rest_shape[i] = p->shape[s->others[i]];
    rest_shape[s->n_others] = s->rank;
    if (r == 0)
        r = passes_new_matrix(p, s->n_others + 1, rest_shape, &s->rest, error);
    return r ? r : passes_new_matrix(p, s->n_others + 1, rest_shape, &s->columns, error);
}

/* before x n x behind, without axes of no account: n x behind, before x n. */
static int collapse(struct slabs *s, struct gad_error *error)
{
    int64_t shape[3], n = s->p->shape[s->axis];
    int ndim = 0;
    s->n_before = s->n_behind = 1;
    for (int i = 0; i < s->p->ndim; i++)
        *(i < s->axis ? &s->n_before : &s->n_behind) *= i == s->axis ? 1 : s->p->shape[i];
    if (s->n_before > 1)
        shape[ndim++] = s->n_before;
    shape[ndim++] = n;
    if (s->n_behind > 1 || s->n_before == 1)
        shape[ndim++] = s->n_behind;
    return passes_reshape(s->p, ndim, shape, error);
}

enum { VIEW_C, VIEW_REST, VIEW_ROWS };

static bool is_first(const struct slabs *s)
{
    return s->n_before == 1;
}

static bool is_last(const struct slabs *s)
{
    return !is_first(s) && s->n_behind == 1;
}

/* before x behind x rank of C and rest, without axes of no account; rest with the last two
 * exchanged where that is how the product comes. */
static int make_views(struct slabs *s, struct gad_error *error)
{
    int64_t shape[3];
    int ndim = 0;
    struct gad_array *flat = NULL;
    if (!is_first(s))
        shape[ndim++] = s->n_before;
    if (!is_last(s))
        shape[ndim++] = s->n_behind;
    shape[ndim++] = s->rank;
    int r = (int)gad_array_reshape(s->columns, ndim, shape, &s->views[VIEW_C], error);
    if (r == 0)
        r = (int)gad_array_reshape(s->rest, ndim, shape, &flat, error);
    const int swapped[] = {1, 0}, swapped_last[] = {0, 2, 1};
    s->rest_flat = flat;
    if (r == 0 && is_last(s))
        s->views[VIEW_REST] = array_ref(flat);
    else if (r == 0)
        r = (int)gad_array_transpose(flat, ndim == 2 ? swapped : swapped_last, &s->views[VIEW_REST],
                                     error);
    if (r)
        return r;
    return (int)gad_array_transpose(s->factors[s->axis], NULL, &s->views[VIEW_ROWS], error);
}

static int choose_reads(struct slabs *s, struct gad_error *error);

int slabs_init(struct slabs *s, struct passes *p, int64_t rank, struct gad_error *error)
{
    *s = (struct slabs){.p = p, .rank = rank};
    int r = slabs_check_shape(p, error);
    if (r)
        return r;
    choose_axis(s);
    r = check_rank(s, rank, error);
    if (r == 0)
        r = make_matrices(s, error);
    if (r == 0)
        r = collapse(s, error);
    if (r == 0)
        r = make_views(s, error);
    return r ? r : choose_reads(s, error);
}

void slabs_deinit(struct slabs *s)
{
    for (size_t i = 0; i < ARRAY_LENGTH(s->views); i++)
        gad_array_release(s->views[i]);
    gad_array_release(s->rest_flat);
    *s = (struct slabs){.axis = 0};
}

double *slabs_factor(const struct slabs *s, int axis)
{
    return gad_array_data(s->factors[axis]);
}

/* Reading -------------------------------------------------------------------------------------- */

#define SQUARES_TEXT "sum(square(float64(_x)))"

static void make_columns(struct slabs *s)
{
    int64_t sizes[SLABS_MAX_NDIM];
    const double *factors[SLABS_MAX_NDIM];
    if (s->has_columns || s->p->only_plans)
        return;
    for (int i = 0; i < s->n_others; i++) {
        sizes[i] = s->p->shape[s->others[i]];
        factors[i] = slabs_factor(s, s->others[i]);
    }
    contract_weights(s->n_others, sizes, factors, s->rank, gad_array_data(s->columns));
}

static int read_squares(struct slabs *s, struct gad_error *error)
{
    const struct gad_output outputs[] = {{.expr = SQUARES_TEXT, .to = s->squares}};
    const struct pass pass = {.n_outputs = 1, .outputs = outputs};
    return passes_run(s->p, &pass, error);
}

static int run(struct slabs *s, const char *name, struct gad_array *input, const char *expr,
               struct gad_array *to, bool with_squares, struct gad_error *error)
{
    const struct gad_argument inputs[] = {{.name = name, .array = input}};
    const struct gad_output outputs[] = {{.expr = expr, .to = to}};
    const struct pass pass = {.n_inputs = 1, .inputs = inputs, .n_outputs = 1, .outputs = outputs};
    int r = with_squares ? read_squares(s, error) : 0;
    return r ? r : passes_run(s->p, &pass, error);
}

int slabs_read_rows(struct slabs *s, bool with_squares, struct gad_error *error)
{
    make_columns(s);
    if (is_last(s))
        return run(s, "_c", s->views[VIEW_C], "_c.mT @ _x", s->views[VIEW_ROWS], with_squares,
                   error);
    return run(s, "_c", s->views[VIEW_C], is_first(s) ? "_x @ _c" : "sum(_x @ _c, axis=0)",
               s->factors[s->axis], with_squares, error);
}

int slabs_read_rest(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return run(s, "_a", s->factors[s->axis], is_last(s) ? "_x @ _a" : "_a.mT @ _x",
               s->views[VIEW_REST], with_squares, error);
}

/* rows @ g, in place. */
static int solve_rows(struct slabs *s, struct gad_error *error)
{
    int64_t n = s->p->shape[s->axis];
    double *rows = slabs_factor(s, s->axis);
    const struct dense_product product = {.m = n, .n = s->rank, .k = s->rank, .alpha = 1};
    _cleanup_free_ double *solved = malloc(sizeof(double) * (size_t)(n * s->rank));
    if (!solved)
        return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    int r = dense_multiply(&product, rows, gad_array_data(s->g), solved, error);
    if (r == 0)
        memcpy(rows, solved, sizeof(double) * (size_t)(n * s->rank));
    return r;
}

struct both {
    struct gad_argument inputs[2];
    struct gad_output outputs[2];
    struct pass pass;
};

/* One job for both. */
static void describe_both(const struct slabs *s, bool is_solved, struct both *both)
{
    const char *rows = is_solved ? "(_x @ _c) @ _g" : "_x @ _c";
    both->inputs[0] = (struct gad_argument){.name = "_c", .array = s->views[VIEW_C]};
    both->inputs[1] = (struct gad_argument){.name = "_g", .array = s->g};
    both->outputs[0] = (struct gad_output){.expr = rows, .to = s->factors[s->axis]};
    both->outputs[1] =
        (struct gad_output){.expr = is_solved ? s->solved_text : s->rest_text, .to = s->rest_flat};
    both->pass = (struct pass){.n_inputs = is_solved ? 2 : 1,
                               .inputs = both->inputs,
                               .n_outputs = 2,
                               .outputs = both->outputs};
}

/* The daemon says whether it has room. */
static int choose_reads(struct slabs *s, struct gad_error *error)
{
    const char *transposed;
    struct both both;
    s->is_split = true;
    if (!is_first(s))
        return 0;
    int r = passes_transpose(s->p, &transposed, error);
    if (r)
        return r;
    snprintf(s->rest_text, sizeof(s->rest_text), "%s @ (_x @ _c)", transposed);
    snprintf(s->solved_text, sizeof(s->solved_text), "%s @ ((_x @ _c) @ _g)", transposed);
    describe_both(s, true, &both);
    r = passes_try(s->p, &both.pass, error);
    s->is_split = r == GAD_TOO_LARGE_FOR_POOL;
    return s->is_split ? 0 : r;
}

static int read_both(struct slabs *s, bool is_solved, bool with_squares, struct gad_error *error)
{
    struct both both;
    int r = with_squares ? read_squares(s, error) : 0;
    if (r)
        return r;
    make_columns(s);
    describe_both(s, is_solved, &both);
    return passes_run(s->p, &both.pass, error);
}

int slabs_read_plain(struct slabs *s, bool with_squares, struct gad_error *error)
{
    if (!s->is_split)
        return read_both(s, false, with_squares, error);
    int r = slabs_read_rows(s, with_squares, error);
    return r ? r : slabs_read_rest(s, false, error);
}

int slabs_read(struct slabs *s, bool with_squares, struct gad_error *error)
{
    if (!s->is_split)
        return read_both(s, true, with_squares, error);
    int r = slabs_read_rows(s, with_squares, error);
    if (r == 0 && !s->p->only_plans)
        r = solve_rows(s, error);
    return r ? r : slabs_read_rest(s, false, error);
}

/* Factors to begin with ------------------------------------------------------------------------ */

/* An axis' own seed; programs' seeds that are near each other have none in common. */
static uint64_t seed_of(uint64_t seed, int axis)
{
    return ((seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)axis) >> 1;
}

int slabs_draw(struct slabs *s, const char *function, uint64_t seed, struct gad_error *error)
{
    struct gad_output outputs[SLABS_MAX_NDIM];
    char texts[SLABS_MAX_NDIM][120];
    for (int i = 0; i < s->p->ndim; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s(size=(%lld, %lld), seed=%llu)", function,
                 (long long)s->p->shape[i], (long long)s->rank,
                 (unsigned long long)seed_of(seed, i));
        outputs[i] = (struct gad_output){.expr = texts[i], .to = s->factors[i]};
    }
    const struct pass pass = {
        .has_no_data = true, .n_outputs = (unsigned)s->p->ndim, .outputs = outputs};
    return passes_run(s->p, &pass, error);
}

int slabs_use_columns(struct slabs *s, struct gad_error *error)
{
    s->has_columns = true;
    return 0;
}

/* Elements that are not finite ------------------------------------------------------------------
 */

#define N_FINDS 4

static int refuse(const struct slabs *s, int64_t at, const char *what, struct gad_error *error)
{
    const struct passes *p = s->p;
    int64_t index[SLABS_MAX_NDIM];
    char text[100] = "";
    for (int i = p->ndim; i-- > 0; at /= p->shape[i])
        index[i] = at % p->shape[i];
    for (int i = 0; i < p->ndim; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%lld", i ? ", " : "", (long long)index[i]);
    }
    error_set(error, GAD_BAD_ARGUMENT, "tensor", "element [%s] is %s: nothing fits it", text, what);
    error_expected(error, "finite numbers; where(isfinite(x), x, 0) takes others as 0");
    error_found(error, "%s at [%s]", what, text);
    return GAD_BAD_ARGUMENT;
}

int slabs_check_finite(struct slabs *s, struct gad_error *error)
{
    static const char *const texts[N_FINDS] = {
        "float64(argmax(isnan(_x)))", "float64(any(isnan(_x)))", "float64(argmax(isinf(_x)))",
        "float64(any(isinf(_x)))"};
    const double *squares = gad_array_data(s->squares);
    struct gad_array *found[N_FINDS];
    struct gad_output outputs[N_FINDS];
    double values[N_FINDS];
    if (s->p->only_plans || isfinite(*squares))
        return 0;
    for (int i = 0; i < N_FINDS; i++) {
        int r = passes_new_matrix(s->p, 0, NULL, &found[i], error);
        if (r)
            return r;
        outputs[i] = (struct gad_output){.expr = texts[i], .to = found[i]};
    }
    const struct pass pass = {.n_outputs = N_FINDS, .outputs = outputs};
    int r = passes_run(s->p, &pass, error);
    if (r)
        return r;
    for (int i = 0; i < N_FINDS; i++)
        values[i] = *(const double *)gad_array_data(found[i]);
    if (values[1] != 0 && (values[3] == 0 || values[0] < values[2]))
        return refuse(s, (int64_t)values[0], "nan", error);
    if (values[3] != 0)
        return refuse(s, (int64_t)values[2], "infinite", error);
    return error_set(error, GAD_BAD_ARGUMENT, "tensor",
                     "the sum of its elements' squares is beyond float64: divide it by a number");
}
