/* The tensor that factors stand for, written by one job.
 *
 *     CP      (_f0 * _f1 * ..) @ _l.mT     factors broadcast to n0 x n1 x .. x rank, on the way
 *     Tucker  _g @ _l.mT                   g: the core times all factors but the last, in memory
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/linalg/tensor/modes.h"
#include "client/linalg/tensor/tensor_result.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

struct writing {
    struct gad_client *client;
    struct gad_argument args[GAD_MAX_FACTORS];
    char names[GAD_MAX_FACTORS][8], text[160];
    unsigned n_args;
};

static void writing_deinit(struct writing *w)
{
    for (unsigned i = 0; i < w->n_args; i++)
        gad_array_release(w->args[i].array);
}

/* A copy in shared memory, of these sizes. */
static int add(struct writing *w, const char *name, int ndim, const int64_t *shape,
               const double *elements, struct gad_error *error)
{
    struct gad_array *array;
    size_t n_bytes = sizeof(double);
    for (int i = 0; i < ndim; i++)
        n_bytes *= (size_t)shape[i];
    int r = (int)gad_array_empty(w->client, GAD_FLOAT64, ndim, shape, &array, error);
    if (r)
        return r;
    snprintf(w->names[w->n_args], sizeof(w->names[0]), "%s", name);
    w->args[w->n_args] = (struct gad_argument){.name = w->names[w->n_args], .array = array};
    w->n_args++;
    if (n_bytes > 0)
        memcpy(gad_array_data(array), elements, n_bytes);
    return 0;
}

/* n x 1 x .. x 1 x rank; the first one times the weights. */
static int add_cp(struct writing *w, const struct gad_factors *f, struct gad_error *error)
{
    int n_left = f->ndim - 1;
    int64_t rank = f->core.shape[0];
    for (int i = 0; i < n_left; i++) {
        int64_t shape[GAD_MAX_FACTORS + 1] = {f->factors[i].shape[0]};
        char name[16];
        for (int j = 1; j < n_left - i; j++)
            shape[j] = 1;
        shape[n_left - i] = rank;
        snprintf(name, sizeof(name), "_f%d", i);
        int r = add(w, name, n_left - i + 1, shape, f->factors[i].data, error);
        if (r)
            return r;
        size_t at = strlen(w->text);
        snprintf(w->text + at, sizeof(w->text) - at, "%s%s", i ? " * " : "(", name);
    }
    double *first = gad_array_data(w->args[0].array);
    for (int64_t i = 0; i < f->factors[0].shape[0] * rank; i++)
        first[i] *= f->core.data[i % rank];
    size_t at = strlen(w->text);
    snprintf(w->text + at, sizeof(w->text) - at, ") @ _l.mT");
    return 0;
}

static int add_tucker(struct writing *w, const struct gad_factors *f, struct gad_error *error)
{
    int64_t left = 1, right = 1, shape[GAD_MAX_FACTORS];
    for (int i = 0; i < f->ndim; i++)
        right *= f->core.shape[i];
    _cleanup_free_ double *now = malloc(sizeof(double) * (size_t)max_i64(right, 1));
    if (!now)
        return -ENOMEM;
    memcpy(now, f->core.data, sizeof(double) * (size_t)right);
    for (int i = 0; i < f->ndim - 1; i++) {
        const struct gad_dense *factor = &f->factors[i];
        right /= factor->shape[1];
        double *next = malloc(sizeof(double) * (size_t)max_i64(left * factor->shape[0] * right, 1));
        if (!next)
            return -ENOMEM;
        int r = modes_multiply(left, factor->shape[1], right, now, factor->shape[0], factor->data,
                               true, next, error);
        free(now);
        now = next;
        if (r)
            return r;
        shape[i] = factor->shape[0];
        left *= factor->shape[0];
    }
    shape[f->ndim - 1] = f->core.shape[f->ndim - 1];
    snprintf(w->text, sizeof(w->text), "_g @ _l.mT");
    return add(w, "_g", f->ndim, shape, now, error);
}

static int check(const struct gad_factors *factors, enum gad_dtype dtype,
                 const struct gad_move_options *options, struct gad_error *error)
{
    if (!factors || !options)
        return error_set(error, GAD_BAD_ARGUMENT, factors ? "options" : "factors", "is NULL");
    if (dtype != GAD_FLOAT32 && dtype != GAD_FLOAT64)
        return error_set(error, GAD_BAD_DTYPE, "dtype", "a tensor of factors is of floats");
    if (!options->to == !options->to_path)
        return error_set(error, GAD_BAD_ARGUMENT, "options", "one destination, an array or a path");
    int r = factors_check(factors, error);
    if (r == 0 && factors->ndim < 2)
        r = error_set(error, GAD_BAD_SHAPE, "factors", "one factor alone is no tensor");
    return r;
}

static int write_tensor(struct writing *w, const struct gad_factors *f, enum gad_dtype dtype,
                        const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                        struct gad_error *error)
{
    const struct gad_dense *last = &f->factors[f->ndim - 1];
    char text[200];
    int r = f->is_tucker ? add_tucker(w, f, error) : add_cp(w, f, error);
    if (r == 0)
        r = add(w, "_l", 2, last->shape, last->data, error);
    if (r)
        return r;
    snprintf(text, sizeof(text), dtype == GAD_FLOAT32 ? "float32(%s)" : "%s", w->text);
    const struct gad_output output = {
        .expr = text, .to = options->to, .to_path = options->to_path, .storage = options->storage};
    const struct gad_job_options wanted = {.n_args = w->n_args,
                                           .args = w->args,
                                           .n_outputs = 1,
                                           .outputs = &output,
                                           .engine = options->engine,
                                           .priority = options->priority,
                                           .queue_timeout_ms = options->queue_timeout_ms,
                                           .deadline_ms = options->deadline_ms,
                                           .label = options->label,
                                           .progress = options->progress,
                                           .progress_data = options->progress_data,
                                           .progress_ms = options->progress_ms};
    return move_submit(w->client, &wanted, options, ret_stats, error);
}

enum gad_status gad_reconstruct(struct gad_client *client, const struct gad_factors *factors,
                                enum gad_dtype dtype, const struct gad_move_options *options,
                                struct gad_job_stats *ret_stats, struct gad_error *error)
{
    struct writing w = {.client = client};
    int r = client ? check(factors, dtype, options, error)
                   : error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    if (r == 0)
        r = write_tensor(&w, factors, dtype, options, ret_stats, error);
    writing_deinit(&w);
    return client_status(r, error);
}
