/* What a caller says of a job, checked as far as it can be without the daemon.
 *
 * Expressions, shapes and dtypes are the daemon's to judge. What is found here would otherwise be a
 * crash (a NULL), a silent cut (a name that is too long), or a job that computes something else
 * than it says (two arguments of one name, an output in memory that covers itself).
 *
 * Called by gad_plan(), gad_submit() and gad_run(). Which arrays a refusal means is found here,
 * too.
 */
#include "client/lib/build.h"
#include "client/lib/job.h"
#include "client/lib/memory.h"

#include <stdio.h>
#include <string.h>

static int bad(struct gad_error *error, const char *argument, const char *what)
{
    return error_set(error, GAD_BAD_ARGUMENT, argument, "%s: %s", argument, what);
}

static int check_args(const struct gad_job_options *o, struct gad_error *error)
{
    if (o->n_args > REQUEST_MAX_ARGS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "args", "%u arguments, at most %u are possible",
                         o->n_args, REQUEST_MAX_ARGS);
    if (o->n_args > 0 && !o->args)
        return bad(error, "args", "is NULL");
    for (unsigned i = 0; i < o->n_args; i++) {
        const struct gad_argument *arg = &o->args[i];
        if (!arg->name || !arg->name[0])
            return bad(error, "args", "an argument has no name");
        if (strlen(arg->name) >= ARRAY_NAME_SIZE)
            return bad(error, "args", "the name of an argument is too long");
        if (arg->scalar < GAD_SCALAR_NONE || arg->scalar > GAD_SCALAR_FLOAT)
            return bad(error, arg->name, "its kind of scalar does not exist");
        if (arg->scalar == GAD_SCALAR_NONE && !arg->array)
            return bad(error, arg->name, "is neither an array nor a scalar");
        for (unsigned j = 0; j < i; j++)
            if (strcmp(arg->name, o->args[j].name) == 0)
                return bad(error, arg->name, "there are two arguments of this name");
    }
    return 0;
}

/* Axes from the densest: each must step over all that the denser ones cover. Arrays that pass do
 * not cover themselves; a few strange ones that do not either are refused. */
static bool covers_itself(const struct gad_array_info *info)
{
    uint64_t extent = gad_dtype_size(info->dtype);
    bool is_used[GAD_MAX_NDIM] = {false};
    for (int n = 0; n < info->ndim; n++) {
        int best = -1;
        uint64_t best_step = 0;
        for (int i = 0; i < info->ndim; i++) {
            uint64_t step =
                info->strides[i] < 0 ? 0 - (uint64_t)info->strides[i] : (uint64_t)info->strides[i];
            if (is_used[i] || info->shape[i] <= 1 || (best >= 0 && step >= best_step))
                continue;
            best = i;
            best_step = step;
        }
        if (best < 0)
            return false;
        if (best_step < extent)
            return true;
        is_used[best] = true;
        extent += best_step * (uint64_t)(info->shape[best] - 1);
    }
    return false;
}

static bool is_empty(const struct gad_array_info *info)
{
    for (int i = 0; i < info->ndim; i++)
        if (info->shape[i] == 0)
            return true;
    return false;
}

static int check_target(const struct gad_job_options *o, unsigned i, const char *name,
                        struct gad_error *error)
{
    const struct gad_array *to = o->outputs[i].to;
    if (!to->is_writable)
        return error_set(error, GAD_READ_ONLY, name, "%s: the array was opened for reading only",
                         name);
    if (to->access == ACCESS_MEMORY && !is_empty(&to->info) && covers_itself(&to->info))
        return error_set(error, GAD_OVERLAPPING_OUTPUT, name,
                         "%s: elements of the output cover each other", name);
    for (unsigned j = 0; j < i; j++)
        if (o->outputs[j].to && memory_overlaps(to, o->outputs[j].to))
            return error_set(error, GAD_OVERLAPPING_OUTPUT, name,
                             "%s: shares memory with another output", name);
    return 0;
}

static int check_outputs(const struct gad_job_options *o, struct gad_error *error)
{
    if (o->n_outputs == 0 || !o->outputs)
        return bad(error, "outputs", "a job has at least one");
    if (o->n_outputs > REQUEST_MAX_OUTPUTS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "outputs",
                         "%u outputs, at most %u are possible", o->n_outputs, REQUEST_MAX_OUTPUTS);
    for (unsigned i = 0; i < o->n_outputs; i++) {
        const struct gad_output *output = &o->outputs[i];
        char unnamed[24];
        snprintf(unnamed, sizeof(unnamed), "outputs[%u]", i);
        const char *name = output->name && output->name[0] ? output->name : unnamed;
        if (strlen(name) >= ARRAY_NAME_SIZE)
            return bad(error, unnamed, "its name is too long");
        if (!output->expr)
            return bad(error, name, "has no expression");
        if (strlen(output->expr) > REQUEST_MAX_EXPR_CHARS)
            return error_set(error, GAD_LIMIT_EXCEEDED, name,
                             "%s: the expression has %zu characters, at most %u are possible", name,
                             strlen(output->expr), REQUEST_MAX_EXPR_CHARS);
        if (output->to && output->to_path)
            return bad(error, name, "has both an array and a path to go to");
        int r = output->to ? check_target(o, i, name, error) : 0;
        if (r)
            return r;
    }
    return 0;
}

int build_check_options(const struct gad_job_options *options, struct gad_error *error)
{
    if (!options)
        return bad(error, "options", "is NULL");
    if (options->priority < -100 || options->priority > 100)
        return error_set(error, GAD_BAD_ARGUMENT, "priority",
                         "priority %d is not between -100 and 100", options->priority);
    const char *engine = options->engine;
    if (engine && strcmp(engine, "auto") != 0 && strcmp(engine, "cpu") != 0 &&
        strcmp(engine, "cuda") != 0) {
        error_set(error, GAD_BAD_ARGUMENT, "engine", "'%.64s' is no engine", engine);
        error_expected(error, "auto, cpu or cuda");
        return GAD_BAD_ARGUMENT;
    }
    int r = check_args(options, error);
    return r ? r : check_outputs(options, error);
}

bool job_turn_to_providers(const struct gad_job_options *options, struct gad_array *const *to,
                           const struct gad_error *error)
{
    bool is_named = false, has_turned = false;
    for (int round = 0; round < 2 && !is_named; round++) { /* by name, else all */
        for (unsigned i = 0; i < options->n_args; i++)
            if (options->args[i].array &&
                (round == 1 || strcmp(options->args[i].name, error->argument) == 0)) {
                is_named = true;
                has_turned |= array_use_provider(options->args[i].array);
            }
        for (unsigned i = 0; i < options->n_outputs; i++) {
            char unnamed[24];
            snprintf(unnamed, sizeof(unnamed), "outputs[%u]", i);
            const char *name = options->outputs[i].name;
            if (to[i] &&
                (round == 1 || strcmp(name && name[0] ? name : unnamed, error->argument) == 0)) {
                is_named = true;
                has_turned |= array_use_provider(to[i]);
            }
        }
    }
    return has_turned;
}
