/* gpuarrayctl trace: what a job did, tile by tile, as a file for Perfetto.
 *
 * The job may run or have ended; it is known by the number that its user knows. The file is
 * replaced whole, or the text goes to standard output. No daemon is started: without one there is
 * no job.
 */
#include "client/ctl/agent/numbers.h"
#include "client/ctl/stats/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x100 };

struct trace_options {
    uint64_t job;
    const char *output;
    bool json;
};

static const struct argp_option trace_argp_options[] = {
    {"output", 'o', "FILE", 0, "replace FILE whole instead of printing (mode 0644)", 0},
    {"json", OPTION_JSON, NULL, 0, "print errors as JSON, as the trace is", 0},
    {0},
};

static error_t read_job(const char *word, struct trace_options *o, struct argp_state *state)
{
    char *end;
    errno = 0;
    if (o->job)
        return ctl_usage_error(state, "one job: '%s' is too much", word);
    o->job = strtoull(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end || errno || o->job == 0)
        return ctl_usage_error(state, "'%s' is not the number of a job", word);
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct trace_options *o = state->input;
    switch (key) {
    case 'o':
        if (arg[0] == '\0')
            return ctl_usage_error(state, "--output needs the name of a file");
        o->output = arg;
        return 0;
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return read_job(arg, o, state);
    case ARGP_KEY_NO_ARGS:
        return ctl_usage_error(state,
                               "the number of a job is needed; 'gpuarrayctl jobs' lists yours");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp trace_argp = {
    trace_argp_options,
    parse_option,
    "JOB",
    "What a job did: each tile's read, copies, kernel and write, on its thread or stream, as JSON "
    "for Perfetto (ui.perfetto.dev) or another reader of Chrome's trace events.\v"
    "The daemon remembers the last sixteen thousand steps of all jobs together: of a job that "
    "ended "
    "long ago there is nothing, and of a long one its last part.\n\n"
    "Examples:\n"
    "  gpuarrayctl trace 17 -o trace.json\n"
    "  gpuarrayctl trace 17 | gzip > trace.json.gz" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

int verb_trace(int argc, char **argv)
{
    struct trace_options o = {.job = 0};
    struct gad_error error = {0};
    char *text = NULL;
    if (ctl_parse(&trace_argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = numbers_trace(o.job, &text, &error);
    if (!r && o.output)
        r = stats_replace_file(o.output, text, strlen(text), &error);
    else if (!r)
        puts(text);
    free(text);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
