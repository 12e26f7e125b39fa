/* gpuarrayctl map: a function of a shared object over blocks of arrays.
 *
 * The object is loaded into this process, which is the user's own, and never into the daemon. What
 * the function gets is in gpuarrayd-function.h; what it makes is an array as others are, which one
 * job writes to its destination.
 */
#include "client/ctl/ctl.h"
#include "client/ctl/move/verb_move.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_DEPTH = 0x100,
    OPTION_MODE,
    OPTION_DTYPE,
    OPTION_BLOCK,
    OPTION_THREADS,
};

#define MAX_SOURCES 64

struct map_options {
    const char *what;
    struct ctl_output out;
    unsigned n_sources;
    const char *sources[MAX_SOURCES];
    int n_depths, n_block;
    int64_t depths[GAD_MAX_NDIM], block[GAD_MAX_NDIM];
    enum gad_pad_mode mode;
    bool has_dtype;
    enum gad_dtype dtype;
    unsigned n_threads;
};

static const struct argp_option options[] = {
    {"output", 'o', "DEST", 0, "where the result goes: " CTL_DESTINATIONS, 0},
    {"depth", OPTION_DEPTH, "LIST", 0,
     "neighbours that a block has on each side: along all axes, or along each, as in 2,0", 0},
    {"mode", OPTION_MODE, "NAME", 0,
     "beyond the borders: reflect, symmetric, edge, wrap or constant (0)", 0},
    {"dtype", OPTION_DTYPE, "DTYPE", 0, "of the result; without it that of the first source", 0},
    {"block", OPTION_BLOCK, "LIST", 0, "the shape of blocks; without it of about 2 MiB", 0},
    {"threads", OPTION_THREADS, "N", 0, "that call the function at once, at most", 0},
    CTL_TIME_OPTIONS,
    CTL_STORAGE_OPTIONS,
    {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},
    {"json", CTL_OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {"quiet", 'q', NULL, 0, "no progress bar", 0},
    {"verbose", 'v', NULL, 0, "say how long it took", 0},
    {0},
};

/* Words ---------------------------------------------------------------------------------------- */

/* The names in NAME=SOURCE are for people: blocks come in the order of the words. */
static int add_word(struct map_options *o, const char *text, const struct argp_state *state)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t n = strspn(text, letters);
    if (!o->what) {
        o->what = text;
        return 0;
    }
    if (o->n_sources == MAX_SOURCES)
        return ctl_usage_error(state, "at most %d sources", MAX_SOURCES);
    o->sources[o->n_sources++] = n > 0 && text[n] == '=' ? text + n + 1 : text;
    return 0;
}

static int read_list(const char *name, const char *text, int *ret_n, int64_t *ret,
                     const struct argp_state *state)
{
    bool is_good = move_read_numbers(text, ret_n, ret);
    for (int i = 0; is_good && i < *ret_n; i++)
        is_good = ret[i] >= 0;
    return is_good ? 0
                   : ctl_usage_error(state, "%s is numbers as in 2 or 2,0, not '%s'", name, text);
}

static int read_threads(struct map_options *o, const char *text, const struct argp_state *state)
{
    int n;
    int64_t number[GAD_MAX_NDIM];
    if (!move_read_numbers(text, &n, number) || n != 1 || number[0] < 1 || number[0] > 1024)
        return ctl_usage_error(state, "--threads is a number from 1 to 1024, not '%s'", text);
    o->n_threads = (unsigned)number[0];
    return 0;
}

static int check_end(const struct map_options *o, const struct argp_state *state)
{
    const char *colon = o->what ? strrchr(o->what, ':') : NULL;
    if (!colon || colon == o->what || !colon[1])
        return ctl_usage_error(state, "a function is needed, as in ./kernel.so:smooth");
    if (o->n_sources == 0)
        return ctl_usage_error(state, "a source is needed");
    if (!o->out.destination)
        return ctl_usage_error(state, "a destination is needed: -o file.npy");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct map_options *o = state->input;
    switch (key) {
    case OPTION_DEPTH: return read_list("--depth", arg, &o->n_depths, o->depths, state);
    case OPTION_BLOCK: return read_list("--block", arg, &o->n_block, o->block, state);
    case OPTION_THREADS: return read_threads(o, arg, state);
    case OPTION_DTYPE: o->has_dtype = true; return ctl_read_dtype(arg, true, &o->dtype, state);
    case OPTION_MODE:
        return move_read_mode(arg, &o->mode)
                   ? 0
                   : ctl_usage_error(
                         state, "a mode is constant, edge, reflect, symmetric or wrap, not '%s'",
                         arg);
    case ARGP_KEY_ARG: return add_word(o, arg, state);
    case ARGP_KEY_END: return check_end(o, state);
    default: return ctl_parse_output(key, arg, &o->out, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    "OBJECT:FUNCTION [NAME=]SOURCE...",
    "Computes an array by a function of your own, block by block, in this process.\v"
    "OBJECT is a shared object, which is loaded here and never in the daemon; FUNCTION is a "
    "gad_function_fn, which gpuarrayd-function.h describes: it gets a block of each source, with "
    "its neighbours, and fills one of the result. Sources broadcast.\n"
    "\nExamples:\n"
    "  cc -O2 -fPIC -shared -o stencil.so stencil.c\n"
    "  gpuarrayctl map ./stencil.so:smooth x=heat.npy --depth 1 -o b.npy" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Running -------------------------------------------------------------------------------------- */

/* Whether the object says that it is a variable: a call of that would end this program. One that
 * each thread has of its own lies in no object. */
static bool is_variable(void *symbol)
{
    Dl_info info;
    void *entry = NULL;
    if (dladdr1(symbol, &info, &entry, RTLD_DL_SYMENT) == 0)
        return true;
    return entry && ELF64_ST_TYPE(((const ElfW(Sym) *)entry)->st_info) == STT_OBJECT;
}

/* While code of the object may run: whose. */
static _Atomic(const char *) running;

static void report_exit(int status, void *data)
{
    (void)data;
    const char *what = running;
    if (what)
        fprintf(stderr, "gpuarrayctl: %s ended this process, by exit(%d)\n", what, status);
}

/* The object stays loaded: a call may still be in it when the process ends. */
static int load(const struct map_options *o, gad_function_fn **ret, struct gad_error *error)
{
    const char *colon = strrchr(o->what, ':');
    char path[4096];
    snprintf(path, sizeof(path), "%.*s", (int)(colon - o->what), o->what);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *function = object ? dlsym(object, colon + 1) : NULL;
    if (!function) {
        const char *why = dlerror();
        return error_set(error, GAD_NOT_FOUND, o->what, "%.300s", why ? why : "it is NULL");
    }
    if (is_variable(function))
        return error_set(error, GAD_NOT_FOUND, o->what, "%s is a variable, no function", colon + 1);
    memcpy(ret, &function, sizeof(function)); /* ISO C knows no cast between these */
    return 0;
}

/* As NumPy broadcasts; sources that do not are refused by the library. */
static void broadcast(unsigned n, struct gad_array *const *sources, int *ret_ndim,
                      int64_t *ret_shape)
{
    int ndim = 0;
    for (unsigned k = 0; k < n; k++)
        if (gad_array_info(sources[k])->ndim > ndim)
            ndim = gad_array_info(sources[k])->ndim;
    for (int i = 0; i < ndim; i++)
        ret_shape[i] = 1;
    for (unsigned k = 0; k < n; k++) {
        const struct gad_array_info *info = gad_array_info(sources[k]);
        for (int i = 0; i < info->ndim; i++)
            if (info->shape[i] != 1)
                ret_shape[ndim - info->ndim + i] = info->shape[i];
    }
    *ret_ndim = ndim;
}

/* Where a source is broadcast it has no neighbours. */
static void set_depths(const struct map_options *o, const struct gad_array_info *info, int ndim,
                       const int64_t *shape, int64_t *ret_depths)
{
    for (int i = 0; i < info->ndim; i++) {
        int axis = ndim - info->ndim + i;
        int64_t depth = o->n_depths == 0 ? 0 : o->depths[o->n_depths == 1 ? 0 : axis];
        ret_depths[i] = info->shape[i] == shape[axis] ? depth : 0;
    }
}

static int check_lists(const struct map_options *o, int ndim, struct gad_error *error)
{
    bool is_depth = o->n_depths > 1 && o->n_depths != ndim;
    if (!is_depth && (o->n_block == 0 || o->n_block == ndim))
        return 0;
    return error_set(error, GAD_BAD_ARGUMENT, is_depth ? "--depth" : "--block",
                     "%d numbers for %d axes", is_depth ? o->n_depths : o->n_block, ndim);
}

static int make(const struct map_options *o, struct gad_client *client,
                struct gad_array *const *sources, struct gad_array **ret, struct gad_error *error)
{
    struct gad_function_input inputs[MAX_SOURCES];
    int64_t shape[GAD_MAX_NDIM], depths[MAX_SOURCES][GAD_MAX_NDIM];
    struct gad_function function = {.n_inputs = o->n_sources,
                                    .inputs = inputs,
                                    .mode = o->mode,
                                    .block = o->n_block > 0 ? o->block : NULL,
                                    .n_threads = o->n_threads};
    struct gad_layout layout = {
        .dtype = o->has_dtype ? o->dtype : gad_array_info(sources[0])->dtype, .shape = shape};
    broadcast(o->n_sources, sources, &layout.ndim, shape);
    int r = check_lists(o, layout.ndim, error);
    for (unsigned k = 0; k < o->n_sources; k++) {
        set_depths(o, gad_array_info(sources[k]), layout.ndim, shape, depths[k]);
        inputs[k] = (struct gad_function_input){.array = sources[k], .depth = depths[k]};
    }
    if (r == 0)
        r = load(o, &function.call, error);
    return r ? r : (int)gad_array_from_function(client, &layout, &function, ret, error);
}

static void print_outcome(const struct map_options *o, const struct gad_job_stats *stats)
{
    if (o->out.json) {
        struct json_object *object = ctl_stats_json(stats);
        json_object_object_add(object, "to", json_object_new_string(o->out.destination));
        ctl_put_json(object);
    } else if (o->out.verbose) {
        fprintf(stderr, "%s: %.3f s\n", stats->engine, stats->total_s);
    }
}

static int write_array(const struct map_options *o, struct gad_client *client,
                       struct gad_array *made, struct gad_error *error)
{
    char label[64];
    struct ctl_progress progress;
    const struct gad_argument arg = {.name = "y", .array = made};
    const struct gad_output output = {
        .expr = "y", .to_path = o->out.destination, .storage = &o->out.storage.asked};
    snprintf(label, sizeof(label), "map %s", o->what);
    ctl_progress_begin(&progress, o->out.quiet || o->out.json);
    const struct gad_job_options job_options = {
        .n_args = 1,
        .args = &arg,
        .n_outputs = 1,
        .outputs = &output,
        .label = o->out.move.label ? o->out.move.label : label,
        .queue_timeout_ms = o->out.move.queue_timeout_ms,
        .deadline_ms = o->out.move.deadline_ms,
        .progress = progress.is_shown ? ctl_progress_draw : NULL,
        .progress_data = &progress,
        .progress_ms = 100,
    };
    struct gad_job *job;
    int r = (int)gad_submit(client, &job_options, &job, error);
    if (r == 0) {
        r = ctl_wait(job, error);
        ctl_progress_end(&progress);
        if (r == 0)
            print_outcome(o, gad_job_stats(job));
        gad_job_free(job);
    }
    return r;
}

int verb_map(int argc, char **argv)
{
    struct map_options o = {.mode = GAD_PAD_REFLECT};
    struct gad_array *sources[MAX_SOURCES] = {NULL}, *made = NULL;
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    if (ctl_parse(&argp, argc, argv, &o))
        return EXIT_USAGE;
    ctl_watch_signals();
    int r = ctl_connect(&client, &error);
    for (unsigned k = 0; k < o.n_sources && r == 0; k++)
        r = ctl_open_source(client, o.sources[k], GAD_AS_STORED, &sources[k], &error);
    on_exit(report_exit, NULL);
    running = o.what;
    if (r == 0)
        r = make(&o, client, sources, &made, &error);
    for (unsigned k = 0; k < o.n_sources; k++)
        gad_array_release(sources[k]);
    if (r == 0)
        r = write_array(&o, client, made, &error);
    gad_array_release(made);
    gad_close(client);
    running = NULL;
    return r ? ctl_fail(&error, o.out.json) : EXIT_OK;
}
