/* Passes over the data of a decomposition.
 *
 * An expression of the caller's may have parts with names: what is behind its last semicolon is the
 * data, and gets the name `_x` as one part more. How often a job reads the data is told by bytes,
 * the same way before and after it: those that its inputs do not explain.
 */
#include "client/linalg/passes.h"
#include "client/clock.h"
#include "client/lib/memory/stream.h"
#include "client/lib/views/move.h"
#include "client/meaning.h"
#include "proto/dtype.h"
#include "proto/request.h"
#include "proto/util.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The operand ---------------------------------------------------------------------------------- */

static int check_argument(const struct gad_argument *arg, struct gad_error *error)
{
    if (!arg->name || !arg->name[0])
        return error_set(error, GAD_BAD_ARGUMENT, "args", "an argument has no name");
    if (arg->name[0] == '_' && isalpha((unsigned char)arg->name[1])) {
        error_set(error, GAD_BAD_ARGUMENT, arg->name,
                  "%s: names that begin with '_' and a letter are used here", arg->name);
        error_expected(error, "another name");
        error_found(error, "%.60s", arg->name);
        return GAD_BAD_ARGUMENT;
    }
    if (arg->array && stream_of(arg->array))
        return error_set(
            error, GAD_BAD_ARGUMENT, arg->name,
            "%s: a stream comes once, a decomposition may read it again: save it first", arg->name);
    return 0;
}

/* What comes last in an expression is the data. */
static int set_prefix(struct passes *p, const char *expr)
{
    const char *last = strrchr(expr, ';');
    int n_before = last ? (int)(last + 1 - expr) : 0;
    const char *function = p->is_float ? "" : "float64";
    free(steal_ptr(p->prefix));
    if (asprintf(&p->prefix, "%.*s%s_x = %s(%s); ", n_before, expr, n_before > 0 ? " " : "",
                 function, expr + n_before) >= 0)
        return 0;
    p->prefix = NULL;
    return -ENOMEM;
}

static int take_operand(struct passes *p, const struct gad_operand *operand,
                        struct gad_error *error)
{
    struct gad_argument alone = {.name = "x", .array = operand->array};
    p->n_args = operand->expr ? operand->n_args : 1;
    const struct gad_argument *args = operand->expr ? operand->args : &alone;
    if (!operand->expr && !operand->array)
        return error_set(error, GAD_BAD_ARGUMENT, "operand", "there is no array to decompose");
    p->args = calloc(p->n_args ? p->n_args : 1, sizeof(*p->args));
    if (!p->args)
        return -ENOMEM;
    for (unsigned i = 0; i < p->n_args; i++) {
        int r = check_argument(&args[i], error);
        if (r)
            return r;
        p->args[i] = args[i];
        if (args[i].array)
            array_ref(args[i].array);
    }
    return 0;
}

int refuse_argument(const char *argument, const char *what, struct gad_error *error)
{
    return error_set(error, GAD_BAD_ARGUMENT, argument, "%s: %s", argument, what);
}

int refuse_number(const char *argument, double found, const char *expected, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, argument, "%s: is not %s", argument, expected);
    error_expected(error, "%s", expected);
    error_found(error, "%g", found);
    return GAD_BAD_ARGUMENT;
}

/* Jobs ----------------------------------------------------------------------------------------- */

/* A job of a pass: the operand's arguments and its inputs, texts with the prefix. */
struct pass_job {
    struct gad_argument args[REQUEST_MAX_ARGS];
    struct gad_output outputs[REQUEST_MAX_OUTPUTS];
    char *texts[REQUEST_MAX_OUTPUTS];
    uint64_t input_bytes;
    bool has_no_data, is_walk;
    struct gad_job_options options; /* points into the rest */
};

static void job_deinit(struct pass_job *job)
{
    for (unsigned i = 0; i < REQUEST_MAX_OUTPUTS; i++)
        free(job->texts[i]);
}

static uint64_t stored_bytes(const struct gad_array *array)
{
    const struct gad_array_info *info = &array->info;
    uint64_t n = gad_dtype_size(info->dtype);
    for (int i = 0; i < info->ndim; i++)
        n *= (uint64_t)info->shape[i];
    return n;
}

static int fill_job(const struct passes *p, const struct pass *pass, struct pass_job *job,
                    struct gad_error *error)
{
    if (p->n_args + pass->n_inputs > REQUEST_MAX_ARGS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "args",
                         "the expression has %u arguments, %u are possible here", p->n_args,
                         REQUEST_MAX_ARGS - pass->n_inputs);
    unsigned n_args = pass->has_no_data ? 0 : p->n_args;
    for (unsigned i = 0; i < n_args; i++)
        job->args[i] = p->args[i];
    for (unsigned i = 0; i < pass->n_inputs; i++) {
        job->args[n_args + i] = pass->inputs[i];
        if (pass->inputs[i].array)
            job->input_bytes += stored_bytes(pass->inputs[i].array);
    }
    for (unsigned i = 0; i < pass->n_outputs; i++) {
        job->outputs[i] = pass->outputs[i];
        if (asprintf(&job->texts[i], "%s%s", pass->has_no_data ? "" : p->prefix,
                     pass->outputs[i].expr) < 0) {
            job->texts[i] = NULL;
            return -ENOMEM;
        }
        job->outputs[i].expr = job->texts[i];
    }
    job->has_no_data = pass->has_no_data || pass->is_beside;
    job->is_walk = pass->is_walk;
    job->options = (struct gad_job_options){
        .n_args = n_args + pass->n_inputs,
        .args = job->args,
        .n_outputs = pass->n_outputs,
        .outputs = job->outputs,
        .engine = p->run.engine,
        .priority = p->run.priority,
        .label = p->run.label,
        .progress = p->run.progress,
        .progress_data = p->run.data,
    };
    return 0;
}

static void count_reads(struct passes *p, const struct pass_job *job, uint64_t read_bytes,
                        uint64_t write_bytes)
{
    uint64_t of_data = read_bytes - min_u64(read_bytes, job->input_bytes);
    p->reads.n_jobs++;
    p->reads.read_bytes += read_bytes;
    p->reads.write_bytes += write_bytes;
    if (!job->has_no_data && p->read_once_bytes > 0)
        p->reads.n_reads +=
            job->is_walk ? 1 : max_u64(1, (of_data + p->read_once_bytes / 2) / p->read_once_bytes);
}

static int plan_job(struct passes *p, const struct pass_job *job, struct gad_error *error)
{
    struct gad_plan *plan;
    int r = (int)gad_plan(p->client, &job->options, &plan, error);
    if (r)
        return r;
    count_reads(p, job, plan->read_bytes, plan->write_bytes);
    p->carry_bytes = max_u64(p->carry_bytes, plan->carry_bytes);
    p->planned_s += plan->seconds;
    gad_plan_free(plan);
    return 0;
}

static int take_results(const struct pass *pass, struct gad_job *job, struct gad_error *error)
{
    int r = pass->take ? pass->take(pass->taking, error) : 0;
    if (r) {
        (void)!gad_job_cancel(job, NULL);
        (void)!gad_job_wait(job, -1, NULL);
    }
    return r;
}

static int run_job(struct passes *p, const struct pass *pass, struct pass_job *job,
                   struct gad_error *error)
{
    const struct gad_move_options waiting = {.is_cancelled = p->run.is_cancelled,
                                             .progress_data = p->run.data};
    struct gad_job *running;
    if (p->run.is_cancelled && p->run.is_cancelled(p->run.data))
        return error_set(error, GAD_CANCELLED, NULL, "it was cancelled");
    int r = loop_times_give(&p->times, &job->options, error);
    if (r == 0)
        r = (int)gad_submit(p->client, &job->options, &running, error);
    if (r)
        return r;
    r = take_results(pass, running, error);
    if (r == 0)
        r = move_wait(&waiting, running, error);
    if (r == 0) {
        const struct gad_job_stats *stats = gad_job_stats(running);
        count_reads(p, job, stats->read_bytes, stats->write_bytes);
    }
    gad_job_free(running);
    return loop_times_tell(&p->times, r, error);
}

int passes_run(struct passes *p, const struct pass *pass, struct gad_error *error)
{
    struct pass_job job = {.input_bytes = 0};
    int r = fill_job(p, pass, &job, error);
    if (r == 0)
        r = p->only_plans ? plan_job(p, &job, error) : run_job(p, pass, &job, error);
    job_deinit(&job);
    return r;
}

int passes_try(struct passes *p, const struct pass *pass, struct gad_error *error)
{
    struct pass_job job = {.input_bytes = 0};
    struct gad_plan *plan = NULL;
    int r = fill_job(p, pass, &job, error);
    job.options.progress = NULL;
    if (r == 0)
        r = (int)gad_plan(p->client, &job.options, &plan, error);
    gad_plan_free(plan);
    job_deinit(&job);
    return r;
}

/* Beginning and end ---------------------------------------------------------------------------- */

/* What an expression gives: the daemon knows, from its plan. */
static int ask_shape(struct passes *p, struct gad_error *error)
{
    const struct gad_output output = {.expr = "_x"};
    const struct pass pass = {.n_outputs = 1, .outputs = &output};
    struct pass_job job = {.input_bytes = 0};
    struct gad_plan *plan = NULL;
    int r = fill_job(p, &pass, &job, error);
    job.options.progress = NULL;
    if (r == 0)
        r = (int)gad_plan(p->client, &job.options, &plan, error);
    job_deinit(&job);
    if (r)
        return r;
    p->dtype = plan->outputs[0]->dtype;
    p->ndim = plan->outputs[0]->ndim;
    memcpy(p->shape, plan->outputs[0]->shape, sizeof(*p->shape) * (size_t)p->ndim);
    p->read_once_bytes = plan->read_bytes;
    gad_plan_free(plan);
    return 0;
}

static void take_shape(struct passes *p)
{
    const struct gad_array *array = p->args[0].array;
    p->dtype = meaning_dtype(array);
    p->ndim = array->info.ndim;
    memcpy(p->shape, array->info.shape, sizeof(*p->shape) * (size_t)p->ndim);
    p->read_once_bytes = stored_bytes(array);
}

static bool is_float(enum gad_dtype dtype)
{
    return dtype == GAD_FLOAT32 || dtype == GAD_FLOAT64;
}

/* Texts and shape. An array of floats has the data's name itself, so that it can be transposed in
 * texts. */
static int name_array(struct passes *p)
{
    take_shape(p);
    p->is_float = is_float(p->dtype);
    p->args[0].name = p->is_float ? "_x" : "_d";
    if (!p->is_float)
        return set_prefix(p, "_d");
    p->prefix = strdup("");
    return p->prefix ? 0 : -ENOMEM;
}

static int name_expression(struct passes *p, const char *expr, struct gad_error *error)
{
    p->is_float = true;
    int r = set_prefix(p, expr);
    if (r == 0)
        r = ask_shape(p, error);
    p->is_float = is_float(p->dtype);
    return r || p->is_float ? r : set_prefix(p, expr);
}

int passes_init(struct passes *p, struct gad_client *client, const struct gad_operand *operand,
                const struct gad_linalg_run *run, bool only_plans, struct gad_error *error)
{
    *p = (struct passes){.client = client,
                         .run = *run,
                         .only_plans = only_plans,
                         .started_ms = clock_now_ms(),
                         .times = loop_times_begin(run->queue_timeout_ms, run->deadline_ms)};
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "client is NULL");
    int r = take_operand(p, operand, error);
    if (r)
        return r;
    return operand->expr ? name_expression(p, operand->expr, error) : name_array(p);
}

void passes_release_matrices(struct passes *p, unsigned n)
{
    while (p->n_matrices > n)
        gad_array_release(p->matrices[--p->n_matrices]);
}

void passes_deinit(struct passes *p)
{
    passes_release_matrices(p, 0);
    for (unsigned i = 0; p->args && i < p->n_args; i++)
        gad_array_release(p->args[i].array);
    free(p->args);
    free(p->prefix);
    *p = (struct passes){.n_matrices = 0};
}

int passes_new_matrix(struct passes *p, int ndim, const int64_t *shape, struct gad_array **ret,
                      struct gad_error *error)
{
    if (p->n_matrices == PASSES_MATRICES)
        return error_set(error, GAD_LIMIT_EXCEEDED, NULL, "a decomposition has over %d matrices",
                         PASSES_MATRICES);
    struct gad_array **slot = &p->matrices[p->n_matrices];
    int r = (int)gad_array_new(p->client, GAD_FLOAT64, ndim, shape, slot, error);
    if (r)
        return r;
    p->n_matrices++;
    *ret = *slot;
    return 0;
}

bool passes_tell(const struct passes *p, unsigned iteration, unsigned n_iterations, double fit,
                 double change)
{
    if (p->only_plans || !p->run.iteration)
        return false;
    double seconds = (double)(clock_now_ms() - p->started_ms) / 1000;
    const struct gad_iteration now = {
        .iteration = iteration,
        .n_iterations = n_iterations,
        .fit = fit,
        .change = change,
        .reads = p->reads,
        .seconds = seconds,
        .seconds_left = seconds / (iteration - p->n_before) * (n_iterations - iteration),
    };
    return p->run.iteration(p->run.data, &now) != 0;
}

struct gad_reads passes_since(const struct passes *p, const struct gad_reads *before)
{
    return (struct gad_reads){
        .n_jobs = p->reads.n_jobs - before->n_jobs,
        .n_reads = p->reads.n_reads - before->n_reads,
        .read_bytes = p->reads.read_bytes - before->read_bytes,
        .write_bytes = p->reads.write_bytes - before->write_bytes,
    };
}

struct gad_reads reads_sum(const struct gad_reads *a, int64_t n, const struct gad_reads *b)
{
    return (struct gad_reads){
        .n_jobs = a->n_jobs + (uint64_t)n * b->n_jobs,
        .n_reads = a->n_reads + (uint64_t)n * b->n_reads,
        .read_bytes = a->read_bytes + (uint64_t)n * b->read_bytes,
        .write_bytes = a->write_bytes + (uint64_t)n * b->write_bytes,
    };
}
