/* gpuarrayctl convert: an array into another file, format or dtype.
 *
 * It is run's job with the identity as its expression, or a cast: so everything that run does holds
 * here too, sources of any kind, outputs that appear whole or not at all, progress, Ctrl-C; and
 * where the file system shares blocks those of the source are in the new file, too. The
 * dtype stays unless --dtype is given; values that a cast could not keep are counted and warned
 * about. What is written has this machine's byte order.
 */
#include "client/ctl/run/run.h"

#include <string.h>

enum { OPTION_JSON = 0x100, OPTION_DTYPE, OPTION_EXPLAIN };

struct convert_options {
    struct run_options run;
    char *source, *destination;
    char expression[32];
};

static const struct argp_option convert_argp_options[] = {
    {"dtype", OPTION_DTYPE, "DTYPE", 0, "cast to float32, f4, int16, bool ...; else as it is", 0},
    CTL_MASKING_OPTIONS,
    CTL_STORAGE_OPTIONS,
    {"explain", OPTION_EXPLAIN, NULL, 0, "print the plan and run nothing", 0},
    CTL_TIME_OPTIONS,
    {"json", OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {"quiet", 'q', NULL, 0, "no progress bar", 0},
    {"verbose", 'v', NULL, 0, "say how long it took and why", 0},
    {0},
};

static int set_dtype(struct convert_options *o, const char *text, const struct argp_state *state)
{
    enum gad_dtype dtype;
    int r = ctl_read_dtype(text, true, &dtype, state);
    if (r == 0)
        snprintf(o->expression, sizeof(o->expression), "%s(x)", gad_dtype_name(dtype));
    return r;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct convert_options *o = state->input;
    switch (key) {
    case 'q': o->run.quiet = true; return 0;
    case 'v': o->run.verbose = true; return 0;
    case OPTION_JSON: o->run.json = true; return 0;
    case OPTION_EXPLAIN: o->run.explain = true; return 0;
    case OPTION_DTYPE: return set_dtype(o, arg, state);
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &o->run.queue_timeout_ms, &o->run.deadline_ms, state);
    case ARGP_KEY_ARG:
        if (o->destination)
            return ctl_usage_error(
                state, "one source and one destination: '%s' is too much" CTL_IN_QUOTES, arg);
        *(o->source ? &o->destination : &o->source) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->destination)
            return ctl_usage_error(state, "a source and a destination are needed, as in "
                                          "'convert a.npy b.h5:/a'");
        return 0;
    default:
        return ctl_parse_masking(key, &o->run.job.masking)
                   ? 0
                   : ctl_parse_storage(key, arg, &o->run.job.storage, state);
    }
}

static const struct argp convert_argp = {
    convert_argp_options,
    parse_option,
    "SOURCE DESTINATION",
    "Copies an array into another file, format or dtype.\v"
    "Sources and destinations are those of run. Where elements go into the new file as they are, "
    "block by block, it shares the blocks of the source if the file system can.\n"
    "Examples:\n"
    "  gpuarrayctl convert winds.h5:/UWND u.npy\n"
    "  gpuarrayctl convert scan.raw:u2:4096x4096 scan.h5:/counts --dtype float32\n"
    "  gpuarrayctl convert x.npy x.raw --dtype f4 --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

int verb_convert(int argc, char **argv)
{
    struct convert_options o = {.expression = "x"};
    if (ctl_parse(&convert_argp, argc, argv, &o))
        return EXIT_USAGE;
    struct ctl_job *job = &o.run.job;
    char label[RUN_LABEL_SIZE + sizeof("convert ")];
    snprintf(label, sizeof(label), "convert %s", o.source);
    run_set_label(&o.run, label);
    o.run.expression = o.expression;
    job->args[job->n_args] = (struct gad_argument){.name = "x"};
    job->sources[job->n_args++] = o.source;
    job->outputs[job->n_outputs++] = (struct gad_output){
        .expr = o.expression, .to_path = o.destination, .storage = &o.run.job.storage.asked};
    return run_execute(&o.run);
}
