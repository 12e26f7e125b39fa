/* gpuarrayctl random: an array of random numbers, as one expression that run's machinery carries
 * out.
 *
 *     random normal 10 scale=2 --shape 500,2000 --dtype f4 --seed 1
 *     normal(10, scale=2, seed=1, dtype=float32, size=(500,2000))
 *
 * A parameter is a number, by position or by name, or by name an array: NAME=SOURCE becomes an
 * argument of the job. What a distribution takes is the daemon's to say. Without --seed one is
 * drawn from the system and printed, so that the array can be made again.
 */
#include "client/ctl/run/run.h"
#include "proto/ops.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TEXT_SIZE 2048
#define MAX_AXES  32

enum {
    OPTION_SHAPE = 0x200,
    OPTION_DTYPE,
    OPTION_SEED,
    OPTION_ENGINE,
    OPTION_PRIORITY,
    OPTION_EXPLAIN,
    OPTION_JSON,
    OPTION_ALL,
};

struct random_options {
    struct run_options run;
    const char *name, *dtype;
    char shape[MAX_AXES * 20], required[256], parameters[TEXT_SIZE / 2], text[TEXT_SIZE];
    unsigned n_by_place; /* of the parameters, those without a name */
    bool has_seed;
};

static const struct argp_option options[] = {
    {"shape", OPTION_SHAPE, "N,N,...", 0,
     "of the array; without it that of parameters that are arrays, or else one number", 0},
    {"dtype", OPTION_DTYPE, "DTYPE", 0, "float32, f4, int64 ...: what the distribution has", 0},
    {"seed", OPTION_SEED, "N", 0,
     "0 to 2^64 - 1: the same seed, the same array; without it one is drawn and printed", 0},
    {"output", 'o', "DEST", 0,
     "where it goes: " CTL_DESTINATIONS "; without it the result is printed", 0},
    CTL_MASKING_OPTIONS,
    CTL_STORAGE_OPTIONS,
    {"explain", OPTION_EXPLAIN, NULL, 0, "print the plan and run nothing", 0},
    {"engine", OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0},
    {"priority", OPTION_PRIORITY, "N", 0, "-100 to 100 among your own jobs", 0},
    CTL_TIME_OPTIONS,
    {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},
    {"json", OPTION_JSON, NULL, 0, "print the outcome, with the seed, as JSON", 0},
    {"all", OPTION_ALL, NULL, 0, "print all elements, not the first of long arrays", 0},
    CTL_SHOW_OPTION,
    {"quiet", 'q', NULL, 0, "no progress bar", 0},
    {"verbose", 'v', NULL, 0, "say how long it took and why", 0},
    {0},
};

/* "500,2000" as it is, but for what is no list of lengths. */
static int set_shape(struct random_options *o, const char *arg, const struct argp_state *state)
{
    unsigned n_axes = 0;
    const char *at = arg;
    while (*arg) {
        char *end;
        errno = 0;
        long long n = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (n < 0 || errno || n_axes == MAX_AXES || (*end != ',' && *end != '\0'))
            return ctl_usage_error(state, "a shape is up to %d lengths, as in 500,2000; not '%s'",
                                   MAX_AXES, arg);
        n_axes++;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    if (strlen(arg) + sizeof(", size=(,)") >= sizeof(o->shape))
        return ctl_usage_error(state, "the shape '%s' is too long", arg);
    snprintf(o->shape, sizeof(o->shape), ", size=(%s%s)", arg, n_axes == 1 ? "," : "");
    return 0;
}

static int set_dtype(struct random_options *o, const char *arg, const struct argp_state *state)
{
    enum gad_dtype dtype;
    int r = ctl_read_dtype(arg, false, &dtype, state);
    if (r == 0)
        o->dtype = gad_dtype_name(dtype);
    return r;
}

static int set_seed(struct random_options *o, const char *arg, const struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(arg, &end, strncasecmp(arg, "0x", 2) == 0 ? 16 : 10);
    if (!isdigit((unsigned char)arg[0]) || *end != '\0' || errno)
        return ctl_usage_error(state,
                               "a seed is an integer from 0 to 18446744073709551615, "
                               "not '%s'",
                               arg);
    o->run.seed = seed;
    o->has_seed = true;
    return 0;
}

static bool is_literal(const char *text)
{
    char *end;
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return true;
    (void)strtod(text, &end);
    return end != text && *end == '\0' && strpbrk(text, "xXpP") == NULL;
}

/* What must be given has no name in the text: integers(low), bernoulli(p), choice(n). NULL: nothing
 * must. */
static const char *required_name(const char *distribution)
{
    static const char *const names[][2] = {
        {"integers", "low"}, {"bernoulli", "p"}, {"choice", "n"}, {"permutation", "n"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i][0], distribution) == 0)
            return names[i][1];
    return NULL;
}

static bool is_required(const char *distribution, const char *word, size_t n_name)
{
    const char *name = required_name(distribution);
    return name && strlen(name) == n_name && strncmp(name, word, n_name) == 0;
}

/* What stands behind the parameters is said with options. */
static int check_parameter(const char *word, const struct argp_state *state)
{
    static const char *const options_of[][2] = {
        {"size=", "--shape"}, {"dtype=", "--dtype"}, {"seed=", "--seed"}};
    for (size_t i = 0; i < sizeof(options_of) / sizeof(options_of[0]); i++)
        if (strncmp(word, options_of[i][0], strlen(options_of[i][0])) == 0)
            return ctl_usage_error(state, "'%s' is said with %s", word, options_of[i][1]);
    return 0;
}

/* A parameter: "3", "scale=2", "loc=means.npy". */
static int add_parameter(struct random_options *o, char *word, const struct argp_state *state)
{
    char *equals = strchr(word, '=');
    bool is_first = equals && is_required(o->name, word, (size_t)(equals - word));
    char *text = is_first ? o->required : o->parameters;
    size_t used = is_first ? 0 : strlen(text);
    size_t room = (is_first ? sizeof(o->required) : sizeof(o->parameters)) - used;
    const char *separator = used > 0 ? ", " : "";
    int n;
    if (check_parameter(word, state))
        return EINVAL;
    o->n_by_place += !equals;
    if (is_literal(equals ? equals + 1 : word)) {
        n = snprintf(text + used, room, "%s%s", separator, is_first ? equals + 1 : word);
    } else if (equals) {
        if (ctl_parse_argument(&o->run.job, word, &o->run.error))
            return ctl_usage_error(state, "%s", o->run.error.message);
        n = snprintf(text + used, room, "%s%s%s%s", separator, is_first ? "" : word,
                     is_first ? "" : "=", word);
    } else {
        return ctl_usage_error(state,
                               "'%s' is no number; an array is NAME=SOURCE, as in "
                               "loc=means.npy",
                               word);
    }
    if (n < 0 || (size_t)n >= room)
        return ctl_usage_error(state, "too many parameters");
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct random_options *o = state->input;
    switch (key) {
    case OPTION_SHAPE: return set_shape(o, arg, state);
    case OPTION_DTYPE: return set_dtype(o, arg, state);
    case OPTION_SEED: return set_seed(o, arg, state);
    case OPTION_PRIORITY: return ctl_read_priority(arg, &o->run.priority, state);
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &o->run.queue_timeout_ms, &o->run.deadline_ms, state);
    case OPTION_ENGINE: o->run.engine = arg; return 0;
    case OPTION_EXPLAIN: o->run.explain = true; return 0;
    case OPTION_JSON: o->run.json = true; return 0;
    case CTL_OPTION_SHOW: o->run.show = true; return 0;
    case OPTION_ALL: o->run.printing = CTL_PRINT_ALL; return 0;
    case 'l': o->run.label = arg; return 0;
    case 'q': o->run.quiet = true; return 0;
    case 'v': o->run.verbose = true; return 0;
    case 'o':
        if (o->run.n_destinations == 1)
            return ctl_usage_error(state, "one destination only");
        o->run.destinations[o->run.n_destinations++] = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (o->name)
            return add_parameter(o, arg, state);
        o->name = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        return ctl_usage_error(state, "a distribution is needed, as in 'random normal'");
    default:
        return ctl_parse_masking(key, &o->run.job.masking)
                   ? 0
                   : ctl_parse_storage(key, arg, &o->run.job.storage, state);
    }
}

static const struct argp random_argp = {
    options,
    parse_option,
    "DISTRIBUTION [VALUE...] [NAME=VALUE...]",
    "Makes an array of random numbers, of any size.\v"
    "Distributions and their parameters: uniform low high, normal loc scale, lognormal mean sigma, "
    "exponential scale, integers low high, bernoulli p, poisson lam, choice n, permutation n. A "
    "parameter may be an array, by name: loc=means.npy.\n"
    "An element depends on the seed and its place in the array alone: not on the engine's threads, "
    "its memory, or how the file is laid out.\n"
    "\nExamples:\n"
    "  gpuarrayctl random normal --shape 100,200,300 --dtype f4 -o r.h5:/d\n"
    "  gpuarrayctl random integers 1 7 --shape 1000000 --seed 3 -o dice.npy\n"
    "  gpuarrayctl random poisson lam=rates.npy --shape 1000,1000 -o counts.npy" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static int choose_seed(struct random_options *o)
{
    o->run.has_seed = true;
    if (o->has_seed)
        return 0;
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return error_set(&o->run.error, GAD_INTERNAL, NULL, "the system gave no random bytes: %s",
                         strerror(errno));
    o->run.seed = seed;
    if (!o->run.json)
        fprintf(stderr, "seed: %llu\n", (unsigned long long)seed);
    return 0;
}

static bool is_distribution(unsigned op)
{
    return op != OP_N_ROWS && (op_row_info(op)->rule == OP_RULE_RANDOM ||
                               op_row_info(op)->rule == OP_RULE_RANDOM_INTEGERS);
}

/* One more name: "a", "a, b". */
static void add_name(char *list, size_t n_bytes, const char *name, size_t n_chars)
{
    size_t used = strlen(list);
    snprintf(list + used, n_bytes - used, "%s%.*s", used > 0 ? ", " : "", (int)n_chars, name);
}

static int no_distribution(const char *name, struct gad_error *error)
{
    char names[sizeof(error->expected)] = "";
    struct ctl_nearest nearest = {.word = name};
    for (unsigned op = 0; op < OP_N_ROWS; op++) {
        if (!is_distribution(op))
            continue;
        const char *other = op_row_info(op)->name;
        add_name(names, sizeof(names), other, strlen(other));
        ctl_nearest_consider(&nearest, other);
    }
    if (nearest.best)
        error_set(error, GAD_UNKNOWN_NAME, name, "'%s' is no distribution; did you mean '%s'?",
                  name, nearest.best);
    else
        error_set(error, GAD_UNKNOWN_NAME, name, "'%s' is no distribution", name);
    error_expected(error, "%s", names);
    error_found(error, "'%s'", name);
    return GAD_UNKNOWN_NAME;
}

/* The parameters that may be given without a name: all before the shape, which --shape says. */
static int check_parameters(const struct random_options *o, struct gad_error *error)
{
    unsigned op = op_row_find(o->name, strlen(o->name));
    if (!is_distribution(op))
        return no_distribution(o->name, error);
    const char *required = required_name(o->name);
    bool is_named = required && o->required[0];
    unsigned n = 0;
    char names[sizeof(error->expected) / 2] = "";
    if (required && ++n)
        add_name(names, sizeof(names), required, strlen(required));
    const char *at = op_row_info(op)->keywords;
    while (at && at[0] != '*' && strncmp(at, "size=", 5) != 0) {
        add_name(names, sizeof(names), at, strcspn(at, "="));
        n++;
        at = strstr(at, ", ");
        at = at ? at + 2 : NULL;
    }
    if (o->n_by_place + is_named <= n)
        return 0;
    error_set(error, GAD_BAD_ARITY, o->name, "%s takes at most %u parameter%s, %s; found %u",
              o->name, n, n == 1 ? "" : "s", names, o->n_by_place + is_named);
    error_expected(error, "at most %u: %s", n, names);
    error_found(error, "%u", o->n_by_place + is_named);
    return GAD_BAD_ARITY;
}

/* Whether there are arrays that each element has its own parameter of. */
static bool has_parameter_array(const struct random_options *o)
{
    bool is_chosen_from = strcmp(o->name, "choice") == 0;
    for (unsigned i = 0; i < o->run.job.n_args; i++)
        if (o->run.job.sources[i] && !is_chosen_from)
            return true;
    return false;
}

static int prepare(struct random_options *o)
{
    struct run_options *run = &o->run;
    int r = check_parameters(o, &run->error);
    if (r)
        return r;
    bool is_permutation = strcmp(o->name, "permutation") == 0;
    if (is_permutation && o->shape[0])
        return error_set(&run->error, GAD_BAD_ARGUMENT, "shape",
                         "permutation has the shape of its length: leave --shape out");
    r = choose_seed(o);
    if (r)
        return r;
    snprintf(o->text, sizeof(o->text), "%s(%s%s%s%sseed=%llu%s%s%s)", o->name, o->required,
             o->required[0] ? ", " : "", o->parameters, o->parameters[0] ? ", " : "",
             (unsigned long long)run->seed, o->dtype ? ", dtype=" : "", o->dtype ? o->dtype : "",
             o->shape[0] || is_permutation || has_parameter_array(o) ? o->shape : ", size=()");
    run->expression = o->text;
    if (!run->label)
        run_set_label(run, o->text);
    r = ctl_parse_expressions(&run->job, o->text, &run->error);
    if (!r && run->n_destinations > 0)
        r = ctl_parse_destination(&run->job, run->destinations[0], &run->error);
    return r;
}

int verb_random(int argc, char **argv)
{
    struct random_options o = {.dtype = NULL};
    int code = ctl_parse(&random_argp, argc, argv, &o) ? EXIT_USAGE : EXIT_OK;
    if (code == EXIT_OK && prepare(&o)) {
        ctl_fail(&o.run.error, o.run.json);
        code = EXIT_USAGE;
    }
    if (code == EXIT_OK)
        return run_execute(&o.run);
    ctl_job_deinit(&o.run.job);
    return code;
}
