/* gpuarrayctl transpose, concatenate, stack, flip, roll, tile, pad, take, diff: arrays into another
 * layout, elements by their indices, and differences of neighbours.
 *
 * The words are NumPy's: the verbs are its functions, the options their parameters. The movement is
 * the library's, and runs as one job or several; Ctrl-C ends it and leaves nothing behind.
 *
 * Each verb has an option of its own at most beside those that all have; what is wrong with axes
 * and shapes is said by the library.
 */
#include "client/ctl/move/verb_move.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_AXES = 0x100,
    OPTION_AXIS,
    OPTION_SHIFT,
    OPTION_REPEATS,
    OPTION_WIDTH,
    OPTION_MODE,
    OPTION_VALUE,
    OPTION_N,
};

/* Of every verb. */
#define COMMON_OPTIONS                                                                             \
    CTL_OUTPUT_OPTIONS, {"verbose", 'v', NULL, 0, "say how long it took and why", 0},              \
    {                                                                                              \
        0                                                                                          \
    }

static int add_source(struct move_options *o, const char *text, const struct argp_state *state)
{
    bool takes_many = o->kind == MOVE_CONCATENATE || o->kind == MOVE_STACK;
    if (o->kind == MOVE_TAKE && o->n_sources == 2)
        return ctl_usage_error(state, "a source and its indices: '%s' is too much", text);
    if (!takes_many && o->kind != MOVE_TAKE && o->n_sources == 1)
        return ctl_usage_error(state, "one source: '%s' is too much", text);
    if (o->n_sources == MOVE_MAX_SOURCES)
        return ctl_usage_error(state, "at most %d sources", MOVE_MAX_SOURCES);
    o->sources[o->n_sources++] = text;
    return 0;
}

static int check_end(const struct move_options *o, const struct argp_state *state)
{
    if (o->n_sources == 0)
        return ctl_usage_error(state, "a source is needed");
    if (o->kind == MOVE_TAKE && o->n_sources == 1)
        return ctl_usage_error(state, "which elements? take a.npy indices.npy -o b.npy");
    if (!o->out.destination)
        return ctl_usage_error(state, "a destination is needed: -o file.npy");
    if (o->kind == MOVE_ROLL && o->n_numbers == 0)
        return ctl_usage_error(state, "by how much? --shift 3, or --shift 3,-1 --axes 0,1");
    if (o->kind == MOVE_TILE && o->n_numbers == 0)
        return ctl_usage_error(state, "how often? --repeats 2, or --repeats 2,3");
    if (o->kind == MOVE_PAD && o->n_widths == 0)
        return ctl_usage_error(state, "how wide? --width 1, or --width 1:2,0:0");
    if (o->kind == MOVE_ROLL && o->has_axes && o->n_axes != o->n_numbers && o->n_numbers != 1)
        return ctl_usage_error(state, "%d shifts along %d axes", o->n_numbers, o->n_axes);
    return 0;
}

static int read_axis(struct move_options *o, const char *text, const struct argp_state *state)
{
    int n, axes[GAD_MAX_NDIM];
    o->take.n_axes = o->kind == MOVE_TAKE && strcmp(text, "none") == 0 ? -1 : 1;
    if (o->take.n_axes < 0) {
        o->axis = 0;
        return 0;
    }
    if (!move_read_axes(text, &n, axes) || n != 1)
        return ctl_usage_error(state, "an axis is a number, not '%s'", text);
    o->axis = axes[0];
    return 0;
}

static int read_n(struct move_options *o, const char *text, const struct argp_state *state)
{
    int n, numbers[GAD_MAX_NDIM];
    if (!move_read_axes(text, &n, numbers) || n != 1)
        return ctl_usage_error(state, "how often differences are taken is a number, not '%s'",
                               text);
    o->n = numbers[0];
    return 0;
}

static int read_values(struct move_options *o, const char *text, const struct argp_state *state)
{
    if (!move_read_pairs(text, false, &o->n_values, o->values))
        return ctl_usage_error(
            state, "values are BEFORE:AFTER of all axes or of each, as in 0 or 1:2, not '%s'",
            text);
    for (int i = 0; i < o->n_values; i++)
        if (o->values[i].before.kind == GAD_SCALAR_NONE ||
            o->values[i].after.kind == GAD_SCALAR_NONE)
            return ctl_usage_error(
                state, "--value does not fit 64 bits: '%s'; a number so large is a float, as 1e30",
                text);
    return 0;
}

static int read_mode(struct move_options *o, const char *text, const struct argp_state *state)
{
    if (o->kind == MOVE_TAKE && !move_read_take_mode(text, &o->take.mode))
        return ctl_usage_error(state, "a mode is raise, wrap or clip, not '%s'", text);
    if (o->kind == MOVE_PAD && !move_read_mode(text, &o->mode))
        return ctl_usage_error(
            state, "a mode is constant, edge, reflect, symmetric or wrap, not '%s'", text);
    return 0;
}

static error_t parse_own(int key, char *arg, struct argp_state *state)
{
    struct move_options *o = state->input;
    switch (key) {
    case ARGP_KEY_ARG: return add_source(o, arg, state);
    case ARGP_KEY_END: return check_end(o, state);
    case OPTION_AXIS: return read_axis(o, arg, state);
    case OPTION_N: return read_n(o, arg, state);
    case OPTION_AXES:
        o->has_axes = true;
        if (!move_read_axes(arg, &o->n_axes, o->axes))
            return ctl_usage_error(state, "axes are numbers as in 2,0,1, not '%s'", arg);
        return 0;
    case OPTION_SHIFT:
    case OPTION_REPEATS:
        if (!move_read_numbers(arg, &o->n_numbers, o->numbers))
            return ctl_usage_error(state, "numbers as in 3 or 3,-1 are needed, not '%s'", arg);
        return 0;
    case OPTION_WIDTH:
        if (!move_read_pairs(arg, true, &o->n_widths, o->widths))
            return ctl_usage_error(
                state, "widths are BEFORE:AFTER of all axes or of each, as in 1:2,0:0, not '%s'",
                arg);
        return 0;
    case OPTION_VALUE: return read_values(o, arg, state);
    case OPTION_MODE: return read_mode(o, arg, state);
    default: return ctl_parse_output(key, arg, &o->out, state);
    }
}

/* Running -------------------------------------------------------------------------------------- */

/* Pairs for each axis from one for all, or from as many. */
static int spread(const struct move_pair *pairs, int n, int ndim, const char *what,
                  struct move_pair *ret, struct gad_error *error)
{
    if (n > 1 && n != ndim) {
        error_set(error, GAD_BAD_ARGUMENT, what, "%d borders for %d axes", n, ndim);
        error_expected(error, "one for all axes, or %d", ndim);
        error_found(error, "%d", n);
        return GAD_BAD_ARGUMENT;
    }
    for (int i = 0; i < ndim; i++)
        ret[i] = n == 0 ? (struct move_pair){0} : pairs[n == 1 ? 0 : i];
    return 0;
}

static int pad(struct move_options *o, struct gad_client *client, struct gad_array *source,
               struct gad_job_stats *stats, struct gad_error *error)
{
    struct move_pair widths[GAD_MAX_NDIM], values[GAD_MAX_NDIM];
    struct gad_pad pads[GAD_MAX_NDIM];
    int ndim = gad_array_info(source)->ndim;
    int r = spread(o->widths, o->n_widths, ndim, "--width", widths, error);
    if (r == 0)
        r = spread(o->values, o->n_values, ndim, "--value", values, error);
    if (r)
        return r;
    for (int i = 0; i < ndim; i++)
        pads[i] = (struct gad_pad){.before = widths[i].before.int_value,
                                   .after = widths[i].after.int_value,
                                   .before_exact = values[i].before,
                                   .after_exact = values[i].after};
    return (int)gad_pad(client, source, pads, o->mode, &o->out.move, stats, error);
}

static int transpose(struct move_options *o, struct gad_client *client, struct gad_array *source,
                     struct gad_job_stats *stats, struct gad_error *error)
{
    int ndim = gad_array_info(source)->ndim;
    if (o->has_axes && o->n_axes != ndim) {
        error_set(error, GAD_BAD_ARGUMENT, "--axes", "%d axes of an array of %d", o->n_axes, ndim);
        error_expected(error, "%d axes", ndim);
        error_found(error, "%d", o->n_axes);
        return GAD_BAD_ARGUMENT;
    }
    return (int)gad_transpose(client, source, o->has_axes ? o->axes : NULL, &o->out.move, stats,
                              error);
}

/* One shift along several axes is the same along each. */
static int roll(struct move_options *o, struct gad_client *client, struct gad_array *source,
                struct gad_job_stats *stats, struct gad_error *error)
{
    int n = o->has_axes ? o->n_axes : o->n_numbers;
    for (int i = o->n_numbers; i < n; i++)
        o->numbers[i] = o->numbers[0];
    return (int)gad_roll(client, source, n, o->numbers, o->has_axes ? o->axes : NULL, &o->out.move,
                         stats, error);
}

static int move(struct move_options *o, struct gad_client *client, struct gad_array **sources,
                struct gad_job_stats *stats, struct gad_error *error)
{
    const int *axes = o->has_axes ? o->axes : NULL;
    switch (o->kind) {
    case MOVE_TRANSPOSE: return transpose(o, client, sources[0], stats, error);
    case MOVE_CONCATENATE:
        return (int)gad_concatenate(client, o->n_sources, sources, o->axis, &o->out.move, stats,
                                    error);
    case MOVE_STACK:
        return (int)gad_stack(client, o->n_sources, sources, o->axis, &o->out.move, stats, error);
    case MOVE_FLIP:
        return (int)gad_flip(client, sources[0], o->n_axes, axes, &o->out.move, stats, error);
    case MOVE_ROLL: return roll(o, client, sources[0], stats, error);
    case MOVE_TILE:
        return (int)gad_tile(client, sources[0], o->n_numbers, o->numbers, &o->out.move, stats,
                             error);
    case MOVE_DIFF:
        return (int)gad_diff(client, sources[0], o->n, o->axis, &o->out.move, stats, error);
    case MOVE_TAKE:
        o->take.axis = o->axis;
        return (int)gad_take(client, sources[0], sources[1], &o->take, &o->out.move, stats, error);
    case MOVE_PAD: break;
    }
    return pad(o, client, sources[0], stats, error);
}

static int open_all(struct move_options *o, struct gad_client *client, struct gad_array **sources,
                    struct gad_error *error)
{
    int r = ctl_open_output(client, &o->out, o->out.in_place, error);
    for (unsigned i = 0; i < o->n_sources && r == 0; i++)
        r = ctl_open_source(client, o->sources[i], o->out.masking, &sources[i], error);
    if (r == 0)
        ctl_warn_packed_sources(o->n_sources, o->sources, sources);
    return r;
}

/* The library counts its arrays; people know their files. */
static void name_source(const struct move_options *o, struct gad_error *error)
{
    unsigned i;
    int n_chars = 0;
    if (o->kind == MOVE_TAKE &&
        (strcmp(error->argument, "indices") == 0 || strcmp(error->argument, "array") == 0)) {
        const char *name = o->sources[error->argument[0] == 'i'];
        snprintf(error->argument, sizeof(error->argument), "%s", name);
        return;
    }
    if (sscanf(error->argument, "arrays[%u]%n", &i, &n_chars) != 1 || i >= o->n_sources)
        return;
    char message[sizeof(error->message)];
    const char *behind = error->message;
    bool is_in_front = strncmp(behind, error->argument, (size_t)n_chars) == 0;
    snprintf(message, sizeof(message), "%s%s", is_in_front ? o->sources[i] : "",
             behind + (is_in_front ? n_chars : 0));
    snprintf(error->message, sizeof(error->message), "%s", message);
    snprintf(error->argument, sizeof(error->argument), "%s", o->sources[i]);
}

static void print_outcome(const struct move_options *o, const struct gad_job_stats *stats)
{
    if (o->out.json) {
        struct json_object *object = ctl_stats_json(stats);
        json_object_object_add(object, "to", json_object_new_string(o->out.destination));
        ctl_put_json(object);
    } else if (o->out.verbose) {
        char moved[32], rate[32];
        double bytes = (double)stats->read_bytes + (double)stats->write_bytes;
        fprintf(stderr, "%s: %s in %.3f s, %s/s\n", stats->engine, ctl_format_bytes(bytes, moved),
                stats->total_s,
                ctl_format_bytes(stats->total_s > 0 ? bytes / stats->total_s : 0, rate));
    }
}

static int execute(struct move_options *o, struct gad_client *client, struct gad_error *error)
{
    struct gad_array *sources[MOVE_MAX_SOURCES] = {NULL};
    struct gad_job_stats stats = {0};
    struct ctl_progress progress;
    ctl_watch_output(&o->out, &progress);
    int r = open_all(o, client, sources, error);
    if (!r)
        r = move(o, client, sources, &stats, error);
    ctl_progress_end(&progress);
    if (!r)
        print_outcome(o, &stats);
    else
        name_source(o, error);
    for (unsigned i = 0; i < o->n_sources; i++)
        gad_array_release(sources[i]);
    gad_array_release(o->out.move.to);
    return r;
}

static int run_verb(const struct argp *argp, enum move_kind kind, int argc, char **argv)
{
    struct move_options o = {.kind = kind, .axis = kind == MOVE_DIFF ? -1 : 0, .n = 1};
    struct gad_error error = {0};
    char label[64];
    if (ctl_parse(argp, argc, argv, &o))
        return EXIT_USAGE;
    if (!o.out.move.label) {
        snprintf(label, sizeof(label), "%s %s", strrchr(argv[0], ' ') + 1, o.sources[0]);
        o.out.move.label = label;
    }
    ctl_watch_signals();
    struct gad_client *client = NULL;
    int r = ctl_connect(&client, &error);
    if (!r)
        r = execute(&o, client, &error);
    gad_close(client);
    return r ? ctl_fail(&error, o.out.json) : EXIT_OK;
}

/* The verbs ------------------------------------------------------------------------------------ */

#define OWN_OPTION(name, key, argument, doc)                                                       \
    {                                                                                              \
        name, key, argument, 0, doc, 0                                                             \
    }
/* NumPy's name of the one before it. */
#define NUMPY_OPTION(name, key)                                                                    \
    {                                                                                              \
        name, key, "LIST", OPTION_ALIAS, NULL, 0                                                   \
    }
#define VERB(verb, kind, words, doc, ...)                                                          \
    static const struct argp_option verb##_options[] = {__VA_ARGS__, COMMON_OPTIONS};              \
    static const struct argp verb##_argp = {verb##_options, parse_own, words, doc CTL_EXIT_CODES,  \
                                            NULL,           NULL,      NULL};                      \
    int verb_##verb(int argc, char **argv)                                                         \
    {                                                                                              \
        return run_verb(&verb##_argp, kind, argc, argv);                                           \
    }

VERB(transpose, MOVE_TRANSPOSE, "SOURCE",
     "Permutes the axes of an array, of any size, as numpy.transpose.\v"
     "Examples:\n"
     "  gpuarrayctl transpose a.npy -o b.npy\n"
     "  gpuarrayctl transpose cube.h5:/d --axes 2,0,1 -o turned.h5:/d",
     OWN_OPTION("axes", OPTION_AXES, "LIST",
                "which axis comes where, as in 2,0,1; without it they are reversed"))

VERB(concatenate, MOVE_CONCATENATE, "SOURCE...",
     "Joins arrays along an axis, as numpy.concatenate; the dtype is the one that holds all.\v"
     "Examples:\n"
     "  gpuarrayctl concatenate x1.npy x2.npy x3.npy -o x.npy\n"
     "  gpuarrayctl concatenate jan.h5:/u feb.h5:/u --axis 1 -o year.h5:/u",
     OWN_OPTION("axis", OPTION_AXIS, "N", "along which; negative: from the end; without it 0"))

VERB(stack, MOVE_STACK, "SOURCE...",
     "Joins arrays of one shape along a new axis, as numpy.stack.\v"
     "Examples:\n"
     "  gpuarrayctl stack red.npy green.npy blue.npy --axis -1 -o rgb.npy",
     OWN_OPTION("axis", OPTION_AXIS, "N",
                "which of the result; negative: from the end; without it 0"))

VERB(flip, MOVE_FLIP, "SOURCE",
     "Reverses an array along axes, as numpy.flip.\v"
     "Examples:\n"
     "  gpuarrayctl flip a.npy --axes 0 -o upside_down.npy",
     OWN_OPTION("axes", OPTION_AXES, "LIST", "along which, as in 0,2; without it all"),
     NUMPY_OPTION("axis", OPTION_AXES))

VERB(roll, MOVE_ROLL, "SOURCE",
     "Moves elements along axes, those beyond the end to the beginning, as numpy.roll.\v"
     "Examples:\n"
     "  gpuarrayctl roll a.npy --shift 180 --axes 1 -o b.npy",
     OWN_OPTION("shift", OPTION_SHIFT, "LIST", "by how many elements; negative: to the beginning"),
     OWN_OPTION("axes", OPTION_AXES, "LIST",
                "along which, as many as shifts; without it as if the array were flat"),
     NUMPY_OPTION("axis", OPTION_AXES))

VERB(tile, MOVE_TILE, "SOURCE",
     "Repeats a whole array, as numpy.tile.\v"
     "Examples:\n"
     "  gpuarrayctl tile a.npy --repeats 2,3 -o six.npy",
     OWN_OPTION("repeats", OPTION_REPEATS, "LIST",
                "how often along the last axes; more than there are make new ones in front"),
     NUMPY_OPTION("reps", OPTION_REPEATS))

VERB(pad, MOVE_PAD, "SOURCE",
     "Puts a border around an array, as numpy.pad.\v"
     "Examples:\n"
     "  gpuarrayctl pad a.npy --width 1 -o b.npy\n"
     "  gpuarrayctl pad a.npy --width 2:0,1:1 --mode reflect -o b.npy\n"
     "  gpuarrayctl pad a.npy --width 1 --value -1 -o b.npy",
     OWN_OPTION("width", OPTION_WIDTH, "LIST",
                "N, or BEFORE:AFTER, of all axes; or one of these for each, with commas between"),
     NUMPY_OPTION("pad-width", OPTION_WIDTH),
     OWN_OPTION("mode", OPTION_MODE, "NAME",
                "constant, edge, reflect, symmetric or wrap; without it constant"),
     OWN_OPTION("value", OPTION_VALUE, "LIST",
                "of a constant border, written as widths are; without it 0"),
     NUMPY_OPTION("constant-values", OPTION_VALUE))

VERB(take, MOVE_TAKE, "SOURCE INDICES",
     "Picks elements of an array, of any size, by their indices along an axis, or where a mask is "
     "true, as NumPy's a[indices].\v"
     "Indices are integers of any shape, in any order and again and again; negative ones count "
     "from the end. A mask is of bool.\n"
     "Examples:\n"
     "  gpuarrayctl take a.npy rows.npy -o b.npy\n"
     "  gpuarrayctl take x.h5:/x columns.npy --axis 1 -o some.h5:/x\n"
     "  gpuarrayctl take a.npy mask.npy -o chosen.npy",
     OWN_OPTION("axis", OPTION_AXIS, "N",
                "along which; negative: from the end; none: as if the array were flat; without it "
                "0"),
     OWN_OPTION("mode", OPTION_MODE, "NAME",
                "what becomes of indices that are outside: raise, wrap or clip; without it raise"))

VERB(diff, MOVE_DIFF, "SOURCE",
     "Takes differences of neighbours along an axis, as numpy.diff; of bool whether they differ.\v"
     "Examples:\n"
     "  gpuarrayctl diff a.npy -o steps.npy\n"
     "  gpuarrayctl diff cube.h5:/d --axis 0 --n 2 -o curvature.npy",
     OWN_OPTION("axis", OPTION_AXIS, "N",
                "along which; negative: from the end; without it the last"),
     OWN_OPTION("n", OPTION_N, "N", "how many times, 0 to 16; without it once"))
