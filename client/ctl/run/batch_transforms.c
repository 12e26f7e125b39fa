/* The transforms of `batches`: their words, and what they name, which is read into memory, as the
 * library wants it, by a job.
 *
 * Called by verb_batches.c.
 */
#include "client/ctl/run/batch_transforms.h"

#include <string.h>

int batch_transforms_add(struct batch_transforms *transforms, char *word,
                         const struct argp_state *state)
{
    char *equals = strchr(word, '=');
    if (!equals || equals == word || equals[1] == '\0')
        return ctl_usage_error(state, "a transform is NAME=EXPRESSION, not '%s'", word);
    if (transforms->n == GAD_MAX_PARTS)
        return ctl_usage_error(state, "at most %d transforms", GAD_MAX_PARTS);
    *equals = '\0';
    transforms->texts[transforms->n++] = (struct gad_transform){word, equals + 1};
    return 0;
}

int batch_transforms_with(struct batch_transforms *transforms, char *word,
                          const struct argp_state *state)
{
    struct gad_error error;
    int r = ctl_parse_argument(&transforms->values, word, &error);
    return r ? ctl_usage_error(state, "%s", error.message) : 0;
}

/* Into shared memory. */
static int read_source(struct gad_client *client, const char *spec, struct gad_argument *argument,
                       struct gad_error *error)
{
    struct gad_array *source = NULL;
    int r = ctl_open_source(client, spec, GAD_AS_STORED, &source, error);
    if (r)
        return r;
    const struct gad_array_info *info = gad_array_info(source);
    r = (int)gad_array_empty(client, info->dtype, info->ndim, info->shape, &argument->array, error);
    if (r == 0) {
        const struct gad_argument from = {.name = argument->name, .array = source};
        const struct gad_output to = {.expr = argument->name, .to = argument->array};
        const struct gad_job_options job = {
            .n_args = 1, .args = &from, .n_outputs = 1, .outputs = &to};
        r = (int)gad_run(client, &job, NULL, error);
    }
    gad_array_release(source);
    return r;
}

int batch_transforms_open(struct batch_transforms *transforms, struct gad_client *client,
                          struct gad_loader_options *options, struct gad_error *error)
{
    struct ctl_job *values = &transforms->values;
    int r = 0;
    for (unsigned i = 0; i < values->n_args && transforms->n > 0 && r == 0; i++)
        if (values->sources[i])
            r = read_source(client, values->sources[i], &values->args[i], error);
    options->n_transforms = transforms->n;
    options->transforms = transforms->texts;
    options->n_args = transforms->n > 0 ? values->n_args : 0;
    options->args = values->args;
    return r;
}

void batch_transforms_deinit(struct batch_transforms *transforms)
{
    ctl_job_deinit(&transforms->values);
}
