/* CP decompositions: the loop.
 *
 *     read       rows = X_s C inv(G), rest += X_s.T rows      one job (or two, see slabs.h)
 *     update     all other factors, and the fit, of rest      here (cp_update.c)
 *     keep       the factors in the checkpoint; tell
 *
 * With elements that must not be negative rows are improved by coordinate descent on the way
 * (slabs_descent.c); with many columns the right side X_s C is read first, improved here, and rest
 * is a second read.
 *
 * Until an iteration is over, `rows` keeps the slabs' factor of the one before: what ends it, ends
 * it with factors that belong together.
 */
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "client/linalg/tensor/cp_state.h"
#include "client/linalg/tensor/tensor_result.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define USUAL_ITERATIONS 100
#define USUAL_TOLERANCE  1e-8
#define CHECKPOINT_SHARE 20 /* of the time; less would be spent on checkpoints otherwise */

/* Options -------------------------------------------------------------------------------------- */

static int take_options(struct cp *cp, const struct gad_operand *tensor,
                        const struct gad_cp_options *options, struct gad_error *error)
{
    if (!tensor || !options)
        return refuse_argument(tensor ? "options" : "tensor", "is NULL", error);
    if (options->size < offsetof(struct gad_cp_options, checkpoint) + sizeof(char *))
        return refuse_argument("options", "its size is not that of a struct gad_cp_options", error);
    memcpy(&cp->options, options, sizeof(cp->options));
    struct gad_cp_options *o = &cp->options;
    if (!(o->ridge >= 0) || isinf(o->ridge))
        return refuse_number("ridge", o->ridge, "a number from 0 on", error);
    if (isnan(o->tolerance))
        return refuse_number("tolerance", o->tolerance, "a number", error);
    if (o->init != GAD_CP_RANDOM && o->init != GAD_CP_SVD)
        return refuse_argument("init", "is none that there is", error);
    if (o->n_iterations == 0)
        o->n_iterations = USUAL_ITERATIONS;
    if (o->tolerance == 0)
        o->tolerance = USUAL_TOLERANCE;
    return 0;
}

/* Beginning and end ---------------------------------------------------------------------------- */

static int allocate(struct cp *cp, struct gad_error *error)
{
    size_t n = sizeof(double) * (size_t)cp->slabs.rank;
    bool is_short = false;
    for (int i = 0; i < cp->passes.ndim; i++)
        is_short |= !(cp->grams[i] = malloc(n * (size_t)cp->slabs.rank));
    cp->normal = malloc(n * (size_t)cp->slabs.rank);
    cp->rows = malloc(n * (size_t)cp->passes.shape[cp->slabs.axis]);
    return is_short || !cp->normal || !cp->rows
               ? error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left")
               : 0;
}

static int cp_init(struct cp *cp, struct gad_client *client, const struct gad_operand *tensor,
                   const struct gad_cp_options *options, bool only_plans, struct gad_error *error)
{
    *cp = (struct cp){.squares = -1, .relative_error = NAN, .previous_error = NAN};
    int r = take_options(cp, tensor, options, error);
    if (r == 0)
        r = passes_init(&cp->passes, client, tensor, &cp->options.run, only_plans, error);
    if (r == 0)
        r = slabs_init(&cp->slabs, &cp->passes, cp->options.rank, error);
    if (r == 0 && cp->options.nonnegative)
        r = slabs_use_descent(&cp->slabs, &cp->has_descent, error);
    if (r == 0)
        r = allocate(cp, error);
    if (r)
        return r;
    const struct gad_cp_options *o = &cp->options;
    checkpoint_init(&cp->checkpoint, o->checkpoint, tensor, cp->passes.dtype, cp->passes.ndim,
                    cp->passes.shape);
    const double settings[] = {
        (double)o->rank, (double)o->nonnegative,  o->ridge,
        (double)o->init, (double)(o->seed >> 32), (double)(o->seed & UINT32_MAX)};
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        checkpoint_mark(&cp->checkpoint, settings[i]);
    return 0;
}

static void cp_deinit(struct cp *cp)
{
    for (int i = 0; i < SLABS_MAX_NDIM; i++)
        free(cp->grams[i]);
    free(cp->normal);
    free(cp->rows);
    slabs_deinit(&cp->slabs);
    passes_deinit(&cp->passes);
}

/* Checkpoints ---------------------------------------------------------------------------------- */

enum { STATE_DONE, STATE_ERROR, STATE_SQUARES, STATE_RIDGE, STATE_CONVERGED, N_STATES };

/* The factors as they are in shared memory; weights: ones. */
static unsigned list_arrays(const struct cp *cp, double *weights, struct gad_dense *ret_arrays)
{
    unsigned n = 0;
    for (int i = 0; i < cp->passes.ndim; i++) {
        struct gad_dense *factor = &ret_arrays[n++];
        *factor = (struct gad_dense){.ndim = 2,
                                     .shape = {cp->passes.shape[i], cp->slabs.rank},
                                     .data = slabs_factor(&cp->slabs, i)};
        snprintf(factor->name, sizeof(factor->name), "factor_%d", i);
    }
    for (int64_t i = 0; i < cp->slabs.rank; i++)
        weights[i] = 1;
    ret_arrays[n++] = (struct gad_dense){
        .name = "weights", .ndim = 1, .shape = {cp->slabs.rank}, .data = weights};
    return n;
}

static int save(struct cp *cp, struct gad_error *error)
{
    struct gad_dense arrays[SLABS_MAX_NDIM + 1];
    double weights[SLABS_MAX_RANK];
    double *state = cp->checkpoint.state;
    cp->checkpoint.n_state = N_STATES;
    state[STATE_DONE] = cp->n_done;
    state[STATE_ERROR] = cp->relative_error;
    state[STATE_SQUARES] = cp->squares;
    state[STATE_RIDGE] = cp->ridge_added;
    state[STATE_CONVERGED] = cp->is_converged;
    unsigned n = list_arrays(cp, weights, arrays);
    return checkpoint_write(&cp->checkpoint, n, arrays, error);
}

/* Factors to begin or to go on with. */
static int start(struct cp *cp, struct gad_error *error)
{
    struct gad_dense arrays[SLABS_MAX_NDIM + 1];
    double weights[SLABS_MAX_RANK];
    bool is_there;
    cp->checkpoint.n_state = N_STATES;
    unsigned n = list_arrays(cp, weights, arrays);
    int r = checkpoint_read(&cp->checkpoint, n, arrays, &is_there, error);
    if (r)
        return r;
    if (!is_there) {
        r = cp_start(cp, error);
        if (r == 0 && cp->options.init == GAD_CP_SVD)
            cp->squares = *(const double *)gad_array_data(cp->slabs.squares);
        return r;
    }
    const double *state = cp->checkpoint.state;
    cp->n_done = (unsigned)state[STATE_DONE];
    cp->relative_error = state[STATE_ERROR];
    cp->squares = state[STATE_SQUARES];
    cp->ridge_added = state[STATE_RIDGE];
    for (int i = 0; i < cp->passes.ndim && r == 0; i++)
        r = cp_make_gram(cp, i, error);
    return r;
}

/* The loop ------------------------------------------------------------------------------------- */

static size_t rows_bytes(const struct cp *cp)
{
    return sizeof(double) * (size_t)(cp->passes.shape[cp->slabs.axis] * cp->slabs.rank);
}

/* The right side takes the factor's place in shared memory, and is then exchanged with it. */
static int read_nonnegative(struct cp *cp, bool with_squares, struct gad_error *error)
{
    struct slabs *s = &cp->slabs;
    double *factor = slabs_factor(s, s->axis);
    int r = slabs_read_rows(s, with_squares, error);
    if (r == 0 && !cp->passes.only_plans) {
        _cleanup_free_ double *right_side = malloc(rows_bytes(cp));
        if (!right_side)
            return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
        memcpy(right_side, factor, rows_bytes(cp));
        memcpy(factor, cp->rows, rows_bytes(cp));
        r = cp_update(cp, s->axis, right_side, error);
    }
    return r ? r : slabs_read_rest(s, false, error);
}

static int read_once(struct cp *cp, struct gad_error *error)
{
    struct slabs *s = &cp->slabs;
    bool with_squares = cp->squares < 0;
    int r;
    if (cp->has_descent) {
        r = cp_make_descent(cp, error);
        if (r == 0)
            r = slabs_read_descent(s, with_squares, error);
    } else if (cp->options.nonnegative) {
        r = read_nonnegative(cp, with_squares, error);
    } else {
        r = cp_make_solver(cp, error);
        if (r == 0)
            r = slabs_read(s, with_squares, error);
    }
    if (r || !with_squares)
        return r;
    cp->squares = *(const double *)gad_array_data(s->squares);
    return slabs_check_finite(s, error);
}

/* *ret_is_whole: the factors belong together, whatever happened. */
static int iterate(struct cp *cp, bool *ret_is_whole, struct gad_error *error)
{
    struct slabs *s = &cp->slabs;
    *ret_is_whole = true;
    memcpy(cp->rows, slabs_factor(s, s->axis), rows_bytes(cp));
    int r = read_once(cp, error);
    if (r)
        memcpy(slabs_factor(s, s->axis), cp->rows, rows_bytes(cp));
    if (r || cp->passes.only_plans)
        return r;
    *ret_is_whole = false;
    r = cp_make_gram(cp, s->axis, error);
    if (r == 0)
        r = cp_update_others(cp, error);
    if (r)
        return r;
    *ret_is_whole = true;
    cp->n_done++;
    double change = fabs(cp->previous_error - cp->relative_error); /* NaN after the first */
    cp->is_converged = change < cp->options.tolerance;
    return 0;
}

static int loop(struct cp *cp, struct gad_error *error)
{
    int64_t saved_ms = clock_now_ms(), cost_ms = 0;
    unsigned n_most = cp->options.n_iterations;
    cp->passes.n_before = cp->n_done;
    bool is_whole, is_saved = true;
    int r = 0;
    cp->is_converged = cp->n_done > 0 && cp->checkpoint.state[STATE_CONVERGED] != 0;
    while (r == 0 && cp->n_done < n_most && !cp->is_converged && !cp->is_stopped) {
        r = iterate(cp, &is_whole, error);
        if (r) {
            if (is_whole && !is_saved)
                (void)!save(cp, NULL);
            return r;
        }
        is_saved = false;
        double change = fabs(cp->previous_error - cp->relative_error);
        cp->is_stopped =
            passes_tell(&cp->passes, cp->n_done, n_most, 1 - cp->relative_error, change);
        int64_t now_ms = clock_now_ms();
        if (now_ms - saved_ms >= CHECKPOINT_SHARE * cost_ms) {
            r = save(cp, error);
            saved_ms = clock_now_ms();
            cost_ms = saved_ms - now_ms;
            is_saved = true;
        }
    }
    return r || is_saved ? r : save(cp, error);
}

/* Results -------------------------------------------------------------------------------------- */

/* Columns of norm 1, and the product of the norms that they had. */
static void normalise(struct gad_factors *factors, int64_t rank)
{
    double *weights = factors->core.data;
    for (int64_t q = 0; q < rank; q++)
        weights[q] = 1;
    for (int i = 0; i < factors->ndim; i++) {
        double *data = factors->factors[i].data;
        int64_t n = factors->factors[i].shape[0];
        for (int64_t q = 0; q < rank; q++) {
            double squares = 0;
            for (int64_t j = 0; j < n; j++)
                squares += data[j * rank + q] * data[j * rank + q];
            weights[q] *= sqrt(squares);
            for (int64_t j = 0; squares > 0 && j < n; j++)
                data[j * rank + q] /= sqrt(squares);
        }
    }
}

static int make_result(const struct cp *cp, struct gad_tensor_result *ret, struct gad_error *error)
{
    const int64_t rank = cp->slabs.rank;
    int r = tensor_result_init(ret, false, &cp->passes, &rank, 1, error);
    if (r)
        return r;
    for (int i = 0; i < cp->passes.ndim; i++) {
        const int64_t shape[] = {cp->passes.shape[i], rank};
        r = tensor_result_factor(ret, i, shape, slabs_factor(&cp->slabs, i), error);
        if (r)
            return r;
    }
    normalise(&ret->factors, rank);
    ret->norm = sqrt(max_f64(cp->squares, 0));
    ret->relative_error = cp->relative_error;
    ret->n_iterations = cp->n_done;
    ret->is_converged = cp->is_converged;
    ret->is_stopped = cp->is_stopped;
    ret->ridge_added = cp->ridge_added;
    if (cp->ridge_added > 0)
        snprintf(ret->warning, sizeof(ret->warning),
                 "a normal matrix was singular: a ridge of %.3g was added; a lower rank may do",
                 cp->ridge_added);
    return 0;
}

enum gad_status gad_cp(struct gad_client *client, const struct gad_operand *tensor,
                       const struct gad_cp_options *options, struct gad_tensor_result *ret_result,
                       struct gad_error *error)
{
    struct gad_tensor_result result = {.dtype = GAD_FLOAT64};
    struct cp cp;
    if (!ret_result)
        return (enum gad_status)refuse_argument("ret_result", "is NULL", error);
    int r = cp_init(&cp, client, tensor, options, false, error);
    if (r == 0)
        r = start(&cp, error);
    if (r == 0)
        r = loop(&cp, error);
    if (r == 0)
        r = make_result(&cp, &result, error);
    cp_deinit(&cp);
    if (r)
        gad_tensor_result_deinit(&result);
    else
        *ret_result = result;
    return client_status(r, error);
}

/* Plans ---------------------------------------------------------------------------------------- */

static int explain(struct cp *cp, struct gad_linalg_plan *plan, struct gad_error *error)
{
    struct passes *p = &cp->passes;
    char what[48];
    bool is_whole;
    int r = cp_start(cp, error);
    if (r)
        return r;
    if (cp->options.init == GAD_CP_SVD)
        cp->squares = 0;
    plan->start = p->reads;
    double start_s = p->planned_s;
    r = iterate(cp, &is_whole, error); /* with the sum of squares */
    if (r)
        return r;
    struct gad_reads first = passes_since(p, &plan->start), before = p->reads;
    double first_s = p->planned_s - start_s, before_s = p->planned_s;
    cp->squares = 0;
    r = iterate(cp, &is_whole, error);
    if (r)
        return r;
    plan->iteration = passes_since(p, &before);
    unsigned n = plan->n_iterations = cp->options.n_iterations;
    plan->total = reads_sum(&plan->start, 1, &first);
    plan->total = reads_sum(&plan->total, n - 1, &plan->iteration);
    plan->start = reads_sum(&plan->total, -(int64_t)n, &plan->iteration);
    plan->carry_bytes = p->carry_bytes;
    plan->seconds = start_s + first_s + (n - 1) * (p->planned_s - before_s);
    snprintf(what, sizeof(what), "%llu read%s an iteration",
             (unsigned long long)plan->iteration.n_reads, plan->iteration.n_reads == 1 ? "" : "s");
    slabs_describe(&cp->slabs, what, plan->method, sizeof(plan->method));
    return 0;
}

enum gad_status gad_cp_explain(struct gad_client *client, const struct gad_operand *tensor,
                               const struct gad_cp_options *options,
                               struct gad_linalg_plan *ret_plan, struct gad_error *error)
{
    struct gad_linalg_plan plan = {.n_iterations = 0};
    struct cp cp;
    if (!ret_plan)
        return (enum gad_status)refuse_argument("ret_plan", "is NULL", error);
    int r = cp_init(&cp, client, tensor, options, true, error);
    if (r == 0)
        r = explain(&cp, &plan, error);
    cp_deinit(&cp);
    if (r == 0)
        *ret_plan = plan;
    return client_status(r, error);
}
