/* gpuarrayctl reconstruct: the tensor that factors stand for, into any file.
 */
#include "client/ctl/linalg/linalg_words.h"

#include <string.h>

enum { OPTION_DTYPE = 0x600, OPTION_ENGINE, OPTION_JSON };

struct reconstruct_options {
    struct gad_move_options move;
    struct ctl_storage storage;
    const char *source;
    enum gad_dtype dtype;
    bool json, quiet;
};

static const struct argp_option options[] = {
    {"output", 'o', "DEST", 0, "where the tensor goes: " CTL_DESTINATIONS, 0},
    {"dtype", OPTION_DTYPE, "DTYPE", 0, "float32 or float64, which it is without it", 0},
    CTL_STORAGE_OPTIONS,
    {"engine", OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0},
    CTL_TIME_OPTIONS,
    {"json", OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {"quiet", 'q', NULL, 0, "no progress bar", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct reconstruct_options *o = state->input;
    switch (key) {
    case 'o': o->move.to_path = arg; return 0;
    case 'q': o->quiet = true; return 0;
    case OPTION_DTYPE: return ctl_read_dtype(arg, false, &o->dtype, state);
    case OPTION_ENGINE: o->move.engine = arg; return 0;
    case OPTION_JSON: o->json = true; return 0;
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &o->move.queue_timeout_ms, &o->move.deadline_ms, state);
    case ARGP_KEY_ARG:
        if (o->source)
            return ctl_usage_error(state, "one file of factors: '%s' is too much", arg);
        o->source = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->source)
            return ctl_usage_error(state, "a file of factors is needed, as f.npz");
        return o->move.to_path ? 0 : ctl_usage_error(state, "a destination is needed: -o t.npy");
    default: return ctl_parse_storage(key, arg, &o->storage, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    "FACTORS",
    "Computes the tensor that factors stand for, of any size.\v"
    "FACTORS is a file that 'gpuarrayctl cp' or 'gpuarrayctl tucker' wrote, or a checkpoint.\n"
    "\nExamples:\n"
    "  gpuarrayctl cp t.npy --rank 10 -o f.npz\n"
    "  gpuarrayctl reconstruct f.npz -o t2.npy" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

int verb_reconstruct(int argc, char **argv)
{
    struct reconstruct_options o = {.dtype = GAD_FLOAT64};
    struct gad_factors factors = {.ndim = 0};
    struct gad_client *client = NULL;
    struct gad_job_stats stats = {0};
    struct ctl_progress progress;
    struct gad_error error = {0};
    if (ctl_parse(&argp, argc, argv, &o))
        return EXIT_USAGE;
    ctl_watch_signals();
    int r = (int)gad_factors_load(o.source, &factors, &error);
    if (r == 0)
        r = ctl_connect(&client, &error);
    ctl_progress_begin(&progress, o.quiet || o.json);
    o.move.storage = &o.storage.asked;
    o.move.label = "reconstruct";
    o.move.progress = progress.is_shown ? ctl_progress_draw : NULL;
    o.move.progress_data = &progress;
    o.move.progress_ms = 100;
    o.move.is_cancelled = ctl_is_cancelled;
    if (r == 0)
        r = (int)gad_reconstruct(client, &factors, o.dtype, &o.move, &stats, &error);
    ctl_progress_end(&progress);
    if (r == 0 && o.json) {
        struct json_object *object = ctl_stats_json(&stats);
        json_object_object_add(object, "to", json_object_new_string(o.move.to_path));
        ctl_put_json(object);
    }
    gad_factors_deinit(&factors);
    gad_close(client);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
