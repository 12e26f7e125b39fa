/* Tucker decompositions: reads, and when there are enough of them.
 *
 *     first read    C is random: rows t = X C span nearly what the leading singular vectors of X do
 *     others        C is what the factors of the read before say about X: t = X C is a step of
 *                   subspace iteration, and all other factors are made anew of the same read. The
 *                   fixed points are those of HOOI, at one read a sweep
 *
 * Ranks that are not given follow from the tolerance. Where the sketch had too few columns for it,
 * it is made again with twice as many.
 */
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "client/linalg/tensor/tensor_result.h"
#include "client/linalg/tensor/tucker_state.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define USUAL_READS   2
#define MORE_COLUMNS  10   /* of a sketch, beyond the rank */
#define FIRST_COLUMNS 32   /* where no rank is given */
#define ENOUGH        1e-9 /* a change of the relative error that ends the reads */

/* Options -------------------------------------------------------------------------------------- */

static int take_options(struct tucker *t, const struct gad_operand *tensor,
                        const struct gad_tucker_options *options, struct gad_error *error)
{
    if (!tensor || !options)
        return refuse_argument(tensor ? "options" : "tensor", "is NULL", error);
    if (options->size < offsetof(struct gad_tucker_options, checkpoint) + sizeof(char *))
        return refuse_argument("options", "its size is not that of a struct gad_tucker_options",
                               error);
    memcpy(&t->options, options, sizeof(t->options));
    if (!(options->tolerance >= 0) || options->tolerance >= 1)
        return refuse_number("tolerance", options->tolerance, "a number from 0 to below 1", error);
    if (t->options.n_reads == 0)
        t->options.n_reads = USUAL_READS;
    return 0;
}

/* Ranks are at most the axis, and the product of all others. */
static int check_ranks(const struct tucker *t, struct gad_error *error)
{
    const struct passes *p = &t->passes;
    for (int i = 0; i < p->ndim; i++) {
        int64_t rank = t->options.ranks[i];
        if (rank == 0 && t->options.tolerance == 0) {
            error_set(error, GAD_BAD_RANK, "ranks",
                      "axis %d has no rank, and there is no tolerance", i);
            error_expected(error, "a rank for each of %d axes, or a tolerance", p->ndim);
            return GAD_BAD_RANK;
        }
        if (rank >= 0 && rank <= min_i64(p->shape[i], SLABS_MAX_RANK))
            continue;
        error_set(error, GAD_BAD_RANK, "ranks", "rank %lld along axis %d of %lld elements",
                  (long long)rank, i, (long long)p->shape[i]);
        error_expected(error, "1 to %lld", (long long)min_i64(p->shape[i], SLABS_MAX_RANK));
        error_found(error, "%lld", (long long)rank);
        return GAD_BAD_RANK;
    }
    return 0;
}

/* Beginning and end ---------------------------------------------------------------------------- */

static int64_t most_columns(const struct passes *p)
{
    int64_t longest = 1;
    for (int i = 0; i < p->ndim; i++)
        longest = max_i64(longest, p->shape[i]);
    return min_i64(longest, SLABS_MAX_RANK);
}

static int64_t first_columns(const struct tucker *t)
{
    const struct passes *p = &t->passes;
    int axis = slabs_axis(p);
    int64_t rank = t->options.ranks[axis];
    int64_t wanted = rank > 0 ? rank + MORE_COLUMNS : FIRST_COLUMNS;
    return min_i64(wanted, most_columns(p));
}

static int make_slabs(struct tucker *t, int64_t n_columns, struct gad_error *error)
{
    slabs_deinit(&t->slabs);
    passes_release_matrices(&t->passes, 0);
    return slabs_init(&t->slabs, &t->passes, n_columns, error);
}

static int tucker_init(struct tucker *t, struct gad_client *client,
                       const struct gad_operand *tensor, const struct gad_tucker_options *options,
                       bool only_plans, struct gad_error *error)
{
    *t = (struct tucker){.relative_error = NAN};
    int r = take_options(t, tensor, options, error);
    if (r == 0)
        r = passes_init(&t->passes, client, tensor, &t->options.run, only_plans, error);
    if (r == 0)
        r = slabs_check_shape(&t->passes, error);
    if (r == 0)
        r = check_ranks(t, error);
    if (r == 0)
        tucker_init_checkpoint(t, tensor);
    return r ? r : make_slabs(t, first_columns(t), error);
}

static void tucker_deinit(struct tucker *t)
{
    for (int i = 0; i < SLABS_MAX_NDIM; i++)
        free(t->factors[i]);
    free(t->q);
    free(t->small);
    free(t->core);
    free(t->wide);
    slabs_deinit(&t->slabs);
    passes_deinit(&t->passes);
}

/* Reads ---------------------------------------------------------------------------------------- */

static int read_sketch(struct tucker *t, struct gad_error *error)
{
    struct slabs *s = &t->slabs;
    int r = slabs_draw(s, "normal", t->options.seed, error);
    if (r == 0)
        r = slabs_read_plain(s, true, error);
    if (r || t->passes.only_plans)
        return r;
    t->squares = *(const double *)gad_array_data(s->squares);
    r = slabs_check_finite(s, error);
    return r ? r : tucker_compress(t, error);
}

static bool has_all_ranks(const struct tucker *t)
{
    for (int i = 0; i < t->passes.ndim; i++)
        if (t->options.ranks[i] == 0)
            return false;
    return true;
}

/* With more columns until what the sketch loses is within half of the tolerance. */
static int sketch(struct tucker *t, struct gad_error *error)
{
    double tolerance = t->options.tolerance;
    int64_t most = min_i64(most_columns(&t->passes), slabs_n_rest(&t->slabs));
    int r = read_sketch(t, error);
    t->n_done = 1;
    while (r == 0 && !t->passes.only_plans && !has_all_ranks(t) && t->slabs.rank < most &&
           t->options.ranks[t->slabs.axis] == 0 &&
           tucker_lost(t) > tolerance * tolerance * t->squares / 2) {
        r = make_slabs(t, min_i64(2 * t->slabs.rank, most), error);
        if (r == 0)
            r = read_sketch(t, error);
        t->n_done++;
    }
    return r;
}

static int read_again(struct tucker *t, struct gad_error *error)
{
    struct slabs *s = &t->slabs;
    int r = slabs_use_columns(s, error);
    if (r == 0 && !t->passes.only_plans)
        r = tucker_make_columns(t, error);
    if (r == 0)
        r = slabs_read_plain(s, false, error);
    if (r || t->passes.only_plans)
        return r;
    r = tucker_compress(t, error);
    return r ? r : tucker_improve(t, error);
}

/* The first factors, or those of the checkpoint. */
static int start(struct tucker *t, double *ret_change, struct gad_error *error)
{
    bool is_there;
    int64_t n_columns = t->slabs.rank;
    *ret_change = NAN;
    int r = tucker_load(t, &n_columns, ret_change, &is_there, error);
    t->passes.n_before = t->n_done;
    if (r == 0 && is_there && n_columns != t->slabs.rank)
        r = make_slabs(t, n_columns, error);
    if (r || is_there)
        return r;
    r = sketch(t, error);
    if (r == 0)
        r = tucker_truncate(t, error);
    return r ? r : tucker_save(t, *ret_change, error);
}

static int run(struct tucker *t, struct gad_error *error)
{
    double change;
    int r = start(t, &change, error);
    unsigned n_reads = (unsigned)max_u64(t->options.n_reads, t->n_done);
    while (r == 0) {
        if (t->n_done > t->passes.n_before)
            t->is_stopped =
                passes_tell(&t->passes, t->n_done, n_reads, 1 - t->relative_error, change);
        t->is_converged = change < ENOUGH;
        if (t->n_done >= n_reads || t->is_converged || t->is_stopped)
            return 0;
        double before = t->relative_error;
        r = read_again(t, error);
        change = before - t->relative_error;
        t->n_done++;
        if (r == 0)
            r = tucker_save(t, change, error);
    }
    return r;
}

/* Results -------------------------------------------------------------------------------------- */

static int make_result(const struct tucker *t, struct gad_tensor_result *ret,
                       struct gad_error *error)
{
    int r = tensor_result_init(ret, true, &t->passes, t->ranks, t->passes.ndim, error);
    for (int i = 0; i < t->passes.ndim && r == 0; i++) {
        const int64_t shape[] = {t->passes.shape[i], t->ranks[i]};
        r = tensor_result_factor(ret, i, shape, t->factors[i], error);
    }
    if (r)
        return r;
    tucker_place_core(t, ret->factors.core.data);
    ret->norm = sqrt(t->squares);
    ret->relative_error = t->relative_error;
    ret->n_iterations = t->n_done;
    ret->is_converged = t->is_converged;
    ret->is_stopped = t->is_stopped;
    if (t->options.tolerance > 0 && !has_all_ranks(t) && t->relative_error > t->options.tolerance)
        snprintf(ret->warning, sizeof(ret->warning),
                 "the tolerance is not reached with the ranks that are possible here");
    return 0;
}

enum gad_status gad_tucker(struct gad_client *client, const struct gad_operand *tensor,
                           const struct gad_tucker_options *options,
                           struct gad_tensor_result *ret_result, struct gad_error *error)
{
    struct gad_tensor_result result = {.dtype = GAD_FLOAT64};
    struct tucker t;
    if (!ret_result)
        return (enum gad_status)refuse_argument("ret_result", "is NULL", error);
    int r = tucker_init(&t, client, tensor, options, false, error);
    if (r == 0)
        r = run(&t, error);
    if (r == 0)
        r = make_result(&t, &result, error);
    tucker_deinit(&t);
    if (r)
        gad_tensor_result_deinit(&result);
    else
        *ret_result = result;
    return client_status(r, error);
}

/* Plans ---------------------------------------------------------------------------------------- */

enum gad_status gad_tucker_explain(struct gad_client *client, const struct gad_operand *tensor,
                                   const struct gad_tucker_options *options,
                                   struct gad_linalg_plan *ret_plan, struct gad_error *error)
{
    struct gad_linalg_plan plan = {.n_iterations = 0};
    struct tucker t;
    if (!ret_plan)
        return (enum gad_status)refuse_argument("ret_plan", "is NULL", error);
    int r = tucker_init(&t, client, tensor, options, true, error);
    if (r == 0)
        r = sketch(&t, error);
    plan.start = t.passes.reads;
    double start_s = t.passes.planned_s;
    if (r == 0 && t.options.n_reads > 1)
        r = read_again(&t, error);
    if (r == 0) {
        plan.n_iterations = t.options.n_reads;
        plan.iteration = passes_since(&t.passes, &plan.start);
        plan.total = reads_sum(&plan.start, t.options.n_reads - 1, &plan.iteration);
        plan.carry_bytes = t.passes.carry_bytes;
        plan.seconds = start_s + (t.options.n_reads - 1) * (t.passes.planned_s - start_s);
        slabs_describe(&t.slabs, t.options.n_reads > 1 ? "a sketch and better ones" : "a sketch",
                       plan.method, sizeof(plan.method));
        *ret_plan = plan;
    }
    tucker_deinit(&t);
    return client_status(r, error);
}
