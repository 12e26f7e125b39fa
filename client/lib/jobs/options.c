/* What a caller says of a job, checked as far as it can be without the daemon.
 *
 * Expressions, shapes and dtypes are the daemon's to judge. What is found here would otherwise be a
 * crash (a NULL), a silent cut (a name that is too long), or a job that computes something else
 * than it says (two arguments of one name, an output in memory that covers itself).
 *
 * Called by gad_plan(), gad_submit() and gad_run(). Which arrays a refusal means is found here,
 * too.
 */
#include "client/formats/formats.h"
#include "client/lib/jobs/build.h"
#include "client/lib/jobs/job.h"
#include "client/lib/memory/memory.h"
#include "proto/overlap.h"

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
        if (arg->scalar < GAD_SCALAR_NONE || arg->scalar > GAD_SCALAR_UINT)
            return bad(error, arg->name, "its kind of scalar does not exist");
        if (arg->scalar == GAD_SCALAR_NONE && !arg->array)
            return bad(error, arg->name, "is neither an array nor a scalar");
        if (arg->scalar == GAD_SCALAR_NONE && arg->array->is_write_only)
            return bad(error, arg->name, "its blocks can be written only: there is no read()");
        for (unsigned j = 0; j < i; j++)
            if (strcmp(arg->name, o->args[j].name) == 0)
                return bad(error, arg->name, "there are two arguments of this name");
    }
    return 0;
}

static int check_self(const struct gad_array *to, const char *name, struct gad_error *error)
{
    struct array described = array_described(to);
    int axis;
    uint64_t covered;
    if (to->access == ACCESS_CHUNKS || to->access == ACCESS_PROVIDER ||
        !array_covers_itself(&described, &axis, &covered))
        return 0;
    error_set(error, GAD_BAD_EXTENT, name,
              "%s: elements of the output lie over each other: its stride along axis %d is %lld "
              "bytes, its elements there cover %llu",
              name, axis, (long long)described.strides[axis], (unsigned long long)covered);
    error_expected(error, "a stride of at least %llu bytes", (unsigned long long)covered);
    error_found(error, "%lld bytes", (long long)described.strides[axis]);
    return GAD_BAD_EXTENT;
}

static int check_against_args(const struct gad_job_options *o, const struct gad_array *to,
                              const char *name, struct gad_error *error)
{
    for (unsigned i = 0; i < o->n_args; i++) {
        const struct gad_argument *arg = &o->args[i];
        if (arg->scalar != GAD_SCALAR_NONE || memory_meet(to, arg->array) != MEMORY_OVERLAPS)
            continue;
        error_set(error, GAD_OVERLAPPING_OUTPUT, name,
                  "%s overlaps argument '%s' in memory without being the same array", name,
                  arg->name);
        error_expected(error, "memory apart, or the same address, shape, strides and item size");
        return GAD_OVERLAPPING_OUTPUT;
    }
    return 0;
}

static int check_target(const struct gad_job_options *o, unsigned i, const char *name,
                        struct gad_error *error)
{
    const struct gad_array *to = o->outputs[i].to;
    if (!to->is_writable)
        return error_set(error, GAD_READ_ONLY, name, "%s: the array was opened for reading only",
                         name);
    int r = check_self(to, name, error);
    if (r == 0)
        r = check_against_args(o, to, name, error);
    for (unsigned j = 0; j < i && r == 0; j++)
        if (o->outputs[j].to && memory_meet(to, o->outputs[j].to) != MEMORY_APART)
            r = error_set(error, GAD_OVERLAPPING_OUTPUT, name,
                          "%s: shares memory with another output", name);
    return r;
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
        if (r == 0 && !output->to_path)
            r = format_check_unstored(output->storage, name, error);
        if (r)
            return r;
    }
    return 0;
}

static int check_engine(const char *word, struct gad_error *error)
{
    enum engine_choice engine;
    int index;
    if (request_parse_engine(word, strlen(word), &engine, &index) == 0)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, "engine", "'%.64s' is no engine", word);
    error_expected(error, "auto, cpu, cuda, or cuda:0 to cuda:%d", ENGINE_MAX_DEVICES - 1);
    error_found(error, "%.64s", word);
    return GAD_BAD_ARGUMENT;
}

static int check_draws(const struct gad_job_options *o, struct gad_error *error)
{
    const struct gad_draws *draws = o->draws;
    if (draws->ndim < 0 || draws->ndim > GAD_MAX_NDIM || (draws->ndim > 0 && !draws->size))
        return bad(error, "draws", "its size is none");
    for (int i = 0; i < draws->ndim; i++)
        if (draws->size[i] < 0)
            return bad(error, "draws", "its size has an axis of negative length");
    for (unsigned i = 0; draws->rows && i < o->n_args; i++)
        if (strcmp(o->args[i].name, draws->rows) == 0)
            return 0;
    return draws->rows ? bad(error, "draws", "its rows are no argument") : 0;
}

static int check_beyond(const struct gad_beyond *beyond, struct gad_error *error)
{
    enum gad_scalar_kind kind = beyond->value.kind;
    if (beyond->mode < GAD_PAD_CONSTANT || beyond->mode > GAD_PAD_WRAP)
        return bad(error, "beyond", "its mode does not exist");
    if (kind < GAD_SCALAR_NONE || kind > GAD_SCALAR_UINT)
        return bad(error, "beyond", "its value's kind of scalar does not exist");
    return kind != GAD_SCALAR_NONE && beyond->mode != GAD_PAD_CONSTANT
               ? bad(error, "beyond", "a value lies there with mode constant alone")
               : 0;
}

int build_check_options(const struct gad_job_options *options, struct gad_error *error)
{
    if (!options)
        return bad(error, "options", "is NULL");
    if (options->priority < -100 || options->priority > 100)
        return error_set(error, GAD_BAD_ARGUMENT, "priority",
                         "priority %d is not between -100 and 100", options->priority);
    int r = options->engine ? check_engine(options->engine, error) : 0;
    if (r == 0)
        r = check_args(options, error);
    if (r == 0 && options->draws)
        r = check_draws(options, error);
    if (r == 0 && options->beyond)
        r = check_beyond(options->beyond, error);
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
