/* What a job and its streams (client/lib/memory/stream.c) tell each other at the end. */
#include "client/lib/jobs/job_streams.h"
#include "client/lib/memory/stream.h"

#include <stdio.h>

struct named_stream {
    struct gad_stream *stream; /* NULL: the array is none */
    const char *name;
};

static unsigned n_arrays(const struct gad_job_options *options)
{
    return options->n_args + options->n_outputs;
}

/* Of the arguments, then of the outputs. */
static struct named_stream stream_at(const struct gad_job_options *options, unsigned i)
{
    bool is_arg = i < options->n_args;
    const struct gad_output *output = is_arg ? NULL : &options->outputs[i - options->n_args];
    const struct gad_array *array = is_arg ? options->args[i].array : output->to;
    return (struct named_stream){.stream = array ? stream_of(array) : NULL,
                                 .name = is_arg ? options->args[i].name : output->name};
}

bool job_has_streams(const struct gad_job_options *options)
{
    for (unsigned i = 0; i < n_arrays(options); i++)
        if (stream_at(options, i).stream)
            return true;
    return false;
}

/* A stream that has made the job fail says why, in more words than the daemon, which knows an
 * errno. */
static void say_why(struct gad_job *job)
{
    for (unsigned i = 0; i < n_arrays(&job->options); i++) {
        struct named_stream at = stream_at(&job->options, i);
        struct gad_error error;
        if (!at.stream || !stream_has_failed(at.stream, &error))
            continue;
        job->error = error;
        job->status = error.status;
        snprintf(job->error.argument, sizeof(job->error.argument), "%s", at.name ? at.name : "");
        return;
    }
}

void job_end_streams(struct gad_job *job)
{
    if (!job->was_sent)
        return;
    if (job->status == GAD_PROVIDER_FAILED)
        say_why(job);
    for (unsigned i = 0; i < n_arrays(&job->options); i++) {
        struct gad_stream *stream = stream_at(&job->options, i).stream;
        if (stream)
            stream_job_ended(stream, (int)job->status, &job->error);
    }
}
