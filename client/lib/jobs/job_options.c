/* Copying job options, so that callers may forget theirs when gad_submit() returns.
 *
 * Invariant: a half-made copy is as good as a whole one for job_options_deinit(): counts are set
 * first, entries are NULL until they are filled.
 */
#include "client/lib/jobs/job_options.h"
#include "client/lib/jobs/build.h"
#include "proto/util.h"

#include <string.h>

#define SMALL_JOB_ELEMENTS (1 << 20)
#define SMALL_REGION_BYTES (1 << 20)

static int copy_text(const char *text, const char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static int copy_args(const struct gad_job_options *options, struct gad_job_options *ret)
{
    struct gad_argument *args = calloc(options->n_args + 1, sizeof(*args));
    if (!args)
        return -ENOMEM;
    ret->args = args;
    ret->n_args = options->n_args;
    for (unsigned i = 0; i < options->n_args; i++) {
        int r = copy_text(options->args[i].name, &args[i].name);
        if (r)
            return r;
        args[i].scalar = options->args[i].scalar;
        args[i].int_value = options->args[i].int_value;
        args[i].float_value = options->args[i].float_value;
        if (args[i].scalar == GAD_SCALAR_NONE)
            args[i].array = array_ref(options->args[i].array);
    }
    return 0;
}

static int copy_outputs(const struct gad_job_options *options, struct gad_job_options *ret)
{
    struct gad_output *outputs = calloc(options->n_outputs + 1, sizeof(*outputs));
    if (!outputs)
        return -ENOMEM;
    ret->outputs = outputs;
    ret->n_outputs = options->n_outputs;
    int r = 0;
    for (unsigned i = 0; i < options->n_outputs && r == 0; i++) {
        r = copy_text(options->outputs[i].expr, &outputs[i].expr);
        if (r == 0)
            r = copy_text(options->outputs[i].name, &outputs[i].name);
        if (r == 0)
            r = copy_text(options->outputs[i].to_path, &outputs[i].to_path);
        outputs[i].to = options->outputs[i].to;
        outputs[i].storage = options->outputs[i].storage; /* the caller's, until targets are made */
    }
    return r;
}

/* In one piece. */
static int copy_draws(const struct gad_draws *draws, const struct gad_draws **ret)
{
    if (!draws)
        return 0;
    size_t n_chars = draws->rows ? strlen(draws->rows) + 1 : 0;
    struct {
        struct gad_draws draws;
        int64_t size[GAD_MAX_NDIM];
        char rows[];
    } *copy = malloc(sizeof(*copy) + n_chars);
    if (!copy)
        return -ENOMEM;
    copy->draws = *draws;
    copy->draws.size = copy->size;
    copy->draws.rows = draws->rows ? copy->rows : NULL;
    for (int i = 0; i < draws->ndim; i++)
        copy->size[i] = draws->size[i];
    if (draws->rows)
        memcpy(copy->rows, draws->rows, n_chars);
    *ret = &copy->draws;
    return 0;
}

static int copy_beyond(const struct gad_beyond *beyond, const struct gad_beyond **ret)
{
    struct gad_beyond *copy = beyond ? malloc(sizeof(*copy)) : NULL;
    if (copy)
        *copy = *beyond;
    *ret = copy;
    return beyond && !copy ? -ENOMEM : 0;
}

int job_options_copy(const struct gad_job_options *options, struct gad_job_options *ret)
{
    *ret = *options;
    ret->n_args = ret->n_outputs = 0;
    ret->args = NULL;
    ret->outputs = NULL;
    ret->engine = ret->label = ret->journal_path = NULL;
    ret->draws = NULL;
    ret->beyond = NULL;
    int r = copy_text(options->engine, &ret->engine);
    if (r == 0)
        r = copy_text(options->label, &ret->label);
    if (r == 0)
        r = copy_text(options->journal_path, &ret->journal_path);
    if (r == 0)
        r = copy_draws(options->draws, &ret->draws);
    if (r == 0)
        r = copy_beyond(options->beyond, &ret->beyond);
    if (r == 0)
        r = copy_args(options, ret);
    return r ? r : copy_outputs(options, ret);
}

void job_options_deinit(struct gad_job_options *options)
{
    for (unsigned i = 0; i < options->n_args; i++) {
        free((char *)options->args[i].name);
        gad_array_release(options->args[i].array);
    }
    for (unsigned i = 0; i < options->n_outputs; i++) {
        free((char *)options->outputs[i].expr);
        free((char *)options->outputs[i].name);
        free((char *)options->outputs[i].to_path);
    }
    free((void *)options->args);
    free((void *)options->outputs);
    free((char *)options->engine);
    free((char *)options->label);
    free((char *)options->journal_path);
    free((void *)options->draws);
    free((void *)options->beyond);
    *options = (struct gad_job_options){0};
}

/* The elements of the space that the arguments broadcast to, at most. */
static bool has_small_space(const struct gad_job_options *options)
{
    int64_t n = 1;
    for (int axis = 0; axis < GAD_MAX_NDIM; axis++) {
        int64_t longest = 1;
        for (unsigned i = 0; i < options->n_args; i++) {
            const struct gad_array *array = options->args[i].array;
            int own = array ? array->info.ndim - 1 - axis : -1;
            int64_t length = own >= 0 ? array->info.shape[own] : 1;
            if (length == GAD_UNKNOWN_LENGTH || length > longest)
                longest = length == GAD_UNKNOWN_LENGTH ? INT64_MAX : length;
        }
        if (longest > SMALL_JOB_ELEMENTS || n * longest > SMALL_JOB_ELEMENTS)
            return false;
        n *= longest;
    }
    return true;
}

/* What has to be moved is in the message already, or in memory that the worker has mapped. */
static bool is_small(const struct gad_array *array)
{
    struct array sized = array_described(array);
    return build_is_small(array) ||
           (array->access == ACCESS_REGION && array_n_bytes(&sized) <= SMALL_REGION_BYTES);
}

bool job_options_are_small(const struct gad_job_options *options)
{
    if (options->progress)
        return false;
    for (unsigned i = 0; i < options->n_args; i++)
        if (options->args[i].scalar == GAD_SCALAR_NONE && !is_small(options->args[i].array))
            return false;
    for (unsigned i = 0; i < options->n_outputs; i++)
        if (options->outputs[i].to_path ||
            (options->outputs[i].to && !is_small(options->outputs[i].to)))
            return false;
    return has_small_space(options);
}
