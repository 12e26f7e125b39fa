/* "-" as a source or a destination of run: npy on standard input, npy on standard output; with more
 * words the elements alone, as many as come.
 *
 *     producer | gpuarrayctl run 'sqrt(a)' a=- -o - | consumer
 *     producer | gpuarrayctl run 'sqrt(a)' a=-:f4:?x3 -o -:raw | consumer
 *
 * Each is a stream of the library's (gpuarrayd-stream.h), for one argument and one result. Where a
 * result goes to standard output nothing else does.
 */
#include "client/ctl/run/run.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static int check_standard_output(const struct run_options *o)
{
    if (o->json || o->printing == CTL_PRINT_CSV)
        return ctl_usage_report("gpuarrayctl run", o->json, "a file as destination",
                                "with '-o -' nothing else goes to standard output, and %s does",
                                o->json ? "--json" : "--csv");
    for (unsigned i = 0; i < o->job.n_outputs; i++)
        if (!o->job.outputs[i].to_path)
            return ctl_usage_report("gpuarrayctl run", false, "-o NAME=FILE for the others",
                                    "with '-o -' no other result can be printed");
    return 0;
}

int run_check_pipes(const struct run_options *o)
{
    unsigned n_sources = 0, n_destinations = 0;
    for (unsigned i = 0; i < o->job.n_args; i++)
        n_sources += ctl_is_pipe(o->job.sources[i]);
    for (unsigned i = 0; i < o->job.n_outputs; i++) {
        const char *word = o->job.outputs[i].to_path;
        n_destinations += ctl_is_pipe(word);
        if (ctl_is_pipe(word) && word[1] && strcmp(word, "-:raw") != 0)
            return ctl_usage_report("gpuarrayctl run", o->json, "- or -:raw",
                                    "'%s' is no destination: standard output gets npy, or raw",
                                    word);
    }
    if (n_sources > 1 || n_destinations > 1)
        return ctl_usage_report("gpuarrayctl run", o->json, "files for the others",
                                "standard %s has one array, and is named %u times",
                                n_sources > 1 ? "input" : "output",
                                n_sources > 1 ? n_sources : n_destinations);
    if (n_destinations > 0 && o->in_place)
        return ctl_usage_report("gpuarrayctl run", o->json, "run without --in-place",
                                "a pipe cannot be written in place");
    return n_destinations > 0 && !o->explain ? check_standard_output(o) : 0;
}

int run_open_input_pipe(struct run_options *o, struct gad_client *client)
{
    for (unsigned i = 0; i < o->job.n_args; i++) {
        if (!ctl_is_pipe(o->job.sources[i]))
            continue;
        int r = ctl_open_pipe(client, o->job.sources[i], &o->input, &o->error);
        if (r)
            return r;
        o->job.args[i].array = gad_stream_array(o->input);
        o->input_index = i;
    }
    return 0;
}

/* The plan says what the result is. */
static int open_output(struct run_options *o, struct gad_client *client, unsigned index,
                       bool is_raw)
{
    struct gad_job_options options = run_job_options(o, NULL);
    struct gad_plan *plan;
    int r = (int)gad_plan(client, &options, &plan, &o->error);
    if (r)
        return r;
    const struct gad_plan_output *result = plan->outputs[index];
    r = (int)(is_raw ? gad_stream_write_raw : gad_stream_write_npy)(
        client, STDOUT_FILENO, result->dtype, result->ndim, result->shape, &o->output, &o->error);
    if (r == GAD_BAD_SHAPE && !is_raw)
        snprintf(o->error.expected, sizeof(o->error.expected), "-o -:raw, or -o FILE");
    gad_plan_free(plan);
    if (r)
        return r;
    o->job.outputs[index].to = gad_stream_array(o->output);
    o->output_index = index;
    return 0;
}

int run_open_output_pipe(struct run_options *o, struct gad_client *client)
{
    int r = 0;
    for (unsigned i = 0; i < o->job.n_outputs && !r; i++) {
        if (!ctl_is_pipe(o->job.outputs[i].to_path))
            continue;
        bool is_raw = o->job.outputs[i].to_path[1] != '\0';
        o->job.outputs[i].to_path = NULL;
        r = o->explain ? 0 : open_output(o, client, i, is_raw);
    }
    return r;
}

int run_join_output_pipe(struct run_options *o, int status)
{
    struct pollfd polled = {.fd = STDOUT_FILENO};
    if (!o->output)
        return status;
    if (!status)
        status = (int)gad_stream_join(o->output, &o->error);
    if (status && poll(&polled, 1, 0) == 1 && polled.revents & POLLERR)
        raise(SIGPIPE); /* noted, and what ends the process: "| head" wants no more */
    return status;
}

void run_close_pipes(struct run_options *o)
{
    if (o->input)
        o->job.args[o->input_index].array = NULL;
    if (o->output)
        o->job.outputs[o->output_index].to = NULL;
    gad_stream_free(o->input);
    gad_stream_free(o->output);
}
