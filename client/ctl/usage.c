/* Wrong words on the command line: what is wrong, the nearest word that is right, and where to read
 * on; as text, or with --json as the same map that every other error gets.
 *
 * argp knows options by unique beginnings and prints messages of its own. Here the words are looked
 * at first, by the same rules and out of the same table, so argp meets only what it understands.
 * Parsers of verbs report through ctl_usage_error(). Exit code 2 is what all of this ends in.
 */
#include "client/ctl/ctl.h"

#include "proto/dtype.h"
#include "proto/error.h"
#include "proto/ops.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

void ctl_nearest_consider(struct ctl_nearest *nearest, const char *name)
{
    size_t n_word = strlen(nearest->word), n_name = strlen(name);
    if (n_word == 0 || n_word > OP_NAME_MAX_CHARS || n_name > OP_NAME_MAX_CHARS)
        return;
    unsigned distance = op_name_distance(nearest->word, n_word, name, n_name);
    if (n_word >= 2 && n_name > n_word && strncmp(nearest->word, name, n_word) == 0)
        distance = 1;
    unsigned most = n_word <= 3 ? 1 : 2;
    if (distance > most || (nearest->best && distance >= nearest->distance))
        return;
    nearest->best = name;
    nearest->distance = distance;
}

bool ctl_wants_json(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int report(const char *name, bool json, const char *hint, const struct gad_error *error)
{
    if (json) {
        ctl_fail_hint(error, hint, true);
        return EXIT_USAGE;
    }
    fprintf(stderr, "%s: %s\n", name, error->message);
    if (error->expected[0])
        fprintf(stderr, "  expected: %s\n  found:    %s\n", error->expected, error->found);
    fprintf(stderr, "  try: %s\n", hint);
    return EXIT_USAGE;
}

int ctl_usage_report(const char *name, bool json, const char *hint, const char *format, ...)
{
    char message[sizeof(((struct gad_error *)0)->message)];
    struct gad_error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    error_set(&error, GAD_BAD_ARGUMENT, NULL, "%s", message);
    return report(name, json, hint, &error);
}

int ctl_usage_error(const struct argp_state *state, const char *format, ...)
{
    char message[256], hint[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    snprintf(hint, sizeof(hint), "%s --help", state->argv[0]);
    ctl_usage_report(state->argv[0], ctl_wants_json(state->argc, state->argv), hint, "%s", message);
    return EINVAL;
}

int ctl_read_dtype(const char *text, bool allows_bool, enum gad_dtype *ret,
                   const struct argp_state *state)
{
    enum dtype dtype;
    bool is_swapped = false;
    if (!dtype_from_name(text, strlen(text), &dtype) &&
        dtype_from_typestr(text, strlen(text), &dtype, &is_swapped, NULL)) {
        char hint[128];
        struct gad_error error;
        error_set(&error, GAD_BAD_ARGUMENT, "--dtype", "'%.40s' is no dtype", text);
        error_expected(&error, "%sint8 to int64, uint8 to uint64, float32 or float64",
                       allows_bool ? "bool, " : "");
        error_found(&error, "'%.40s'", text);
        snprintf(hint, sizeof(hint), "%s --help", state->argv[0]);
        report(state->argv[0], ctl_wants_json(state->argc, state->argv), hint, &error);
        return EINVAL;
    }
    if (is_swapped)
        return ctl_usage_error(state, "arrays are written in this machine's byte order, not '%s'",
                               text);
    *ret = (enum gad_dtype)dtype;
    return 0;
}

static int read_time(const char *option, const char *text, uint32_t *ret_ms,
                     const struct argp_state *state)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"min", 6e4}, {"h", 3.6e6}};
    const char *unit = text + strspn(text, "0123456789.");
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; end == unit && end != text && i < sizeof(units) / sizeof(units[0]); i++) {
        double ms = value * units[i].ms;
        if (strcmp(unit, units[i].name) != 0 || !(ms >= 1) || ms > UINT32_MAX)
            continue;
        *ret_ms = (uint32_t)ms;
        return 0;
    }
    return ctl_usage_error(state,
                           "--%s takes a time from 1ms on, as 30s, 500ms, 10m or 2h, at most 49 "
                           "days, not '%.40s'",
                           option, text);
}

error_t ctl_parse_times(int key, const char *arg, uint32_t *queue_timeout_ms, uint32_t *deadline_ms,
                        const struct argp_state *state)
{
    if (key == CTL_OPTION_QUEUE_TIMEOUT)
        return read_time("queue-timeout", arg, queue_timeout_ms, state);
    return key == CTL_OPTION_DEADLINE ? read_time("deadline", arg, deadline_ms, state)
                                      : ARGP_ERR_UNKNOWN;
}

int ctl_read_priority(const char *text, int *ret, const struct argp_state *state)
{
    char *end;
    long priority = strtol(text, &end, 10);
    if (end == text || *end || priority < -100 || priority > 100)
        return ctl_usage_error(state, "a priority is a number from -100 to 100, not '%s'", text);
    *ret = (int)priority;
    return 0;
}

/* Looking at the words before argp does ----------------------------------------------------------
 */

struct scan {
    const struct argp_option *options;
    int argc;
    char **argv;
    int at;
    bool json;
};

static int complain(const struct scan *s, const char *hint, const char *format, ...)
    GAD_PRINTF(3, 4);

static int complain(const struct scan *s, const char *hint, const char *format, ...)
{
    char message[256], own[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    snprintf(own, sizeof(own), "%s --help", s->argv[0]);
    return ctl_usage_report(s->argv[0], s->json, hint ? hint : own, "%s", message);
}

static bool is_last(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc;
}

/* argp's own come last. */
static const struct argp_option own_options[] = {
    {"help", '?', NULL, 0, "", 0}, {"usage", 0x7fff, NULL, 0, "", 0}, {0}};

/* argp's own too, but hidden: nobody is told of it, and it makes beginnings ambiguous. */
#define HIDDEN_OPTION "program-name"

/* By its whole name, or by a beginning that no other option has. */
static const struct argp_option *find_long(const struct argp_option *options, const char *name,
                                           size_t n_chars, unsigned *n_found)
{
    const struct argp_option *found = NULL;
    for (; !is_last(options); options++) {
        if (!options->name || strncmp(options->name, name, n_chars) != 0)
            continue;
        bool is_another = !found || found->key != options->key;
        found = options;
        if (options->name[n_chars] == '\0') {
            *n_found = 1;
            return found;
        }
        *n_found += is_another; /* not an alias */
    }
    return found;
}

static int no_such_option(const struct scan *s, const char *name, size_t n_chars)
{
    char word[OP_NAME_MAX_CHARS + 1];
    snprintf(word, sizeof(word), "%.*s", (int)n_chars, name);
    struct ctl_nearest nearest = {.word = word};
    for (const struct argp_option *o = s->options; n_chars <= OP_NAME_MAX_CHARS && !is_last(o); o++)
        if (o->name)
            ctl_nearest_consider(&nearest, o->name);
    if (nearest.best)
        return complain(s, NULL, "there is no option '--%s'; did you mean '--%s'?", word,
                        nearest.best);
    return complain(s, NULL, "there is no option '--%.*s'", (int)n_chars, name);
}

static int scan_long(struct scan *s)
{
    const char *name = s->argv[s->at] + 2;
    size_t n_chars = strcspn(name, "=");
    unsigned n_found = 0;
    const struct argp_option *option = find_long(s->options, name, n_chars, &n_found);
    if (!option)
        option = find_long(own_options, name, n_chars, &n_found);
    if (!option)
        return no_such_option(s, name, n_chars);
    if (option->name[n_chars] && strncmp(HIDDEN_OPTION, name, n_chars) == 0)
        n_found++;
    if (n_found > 1)
        return complain(s, NULL, "'--%.*s' is the beginning of %u options, as of '--%s'",
                        (int)n_chars, name, n_found, option->name);
    if (name[n_chars] == '=' && !option->arg)
        return complain(s, NULL, "the option '--%s' takes no value", option->name);
    if (name[n_chars] == '=' || !option->arg || (option->flags & OPTION_ARG_OPTIONAL))
        return 0;
    if (++s->at >= s->argc)
        return complain(s, NULL, "the option '--%s' needs its %s", option->name, option->arg);
    return 0;
}

static int scan_short(struct scan *s)
{
    for (const char *at = s->argv[s->at] + 1; *at; at++) {
        const struct argp_option *option = s->options;
        while (!is_last(option) && option->key != *at)
            option++;
        if (is_last(option) && *at == '?')
            continue;
        if (is_last(option) && (isdigit((unsigned char)*at) || *at == '.'))
            return complain(s,
                            "-- before the first negative number, as in 'random integers -- -9 9'",
                            "there is no option '-%c'", *at);
        if (is_last(option))
            return complain(s, "-- before an expression that begins with a minus sign",
                            "there is no option '-%c'", *at);
        if (!option->arg)
            continue;
        if (at[1] == '\0' && ++s->at >= s->argc)
            return complain(s, NULL, "the option '-%c' needs its %s", option->key, option->arg);
        return 0;
    }
    return 0;
}

/* "-:f4:?", elements on standard input, is no option; argp is shown a word that looks like none. */
#define PIPE_SIGN '\1'

static argp_parser_t verb_parser;

static error_t parse_shown(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG && arg[0] == PIPE_SIGN)
        arg[0] = '-';
    return verb_parser(key, arg, state);
}

int ctl_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    struct argp shown = *argp;
    struct scan s = {argp->options, argc, argv, 1, ctl_wants_json(argc, argv)};
    for (; s.at < argc && strcmp(argv[s.at], "--") != 0; s.at++) {
        const char *word = argv[s.at];
        int r = 0;
        if (word[0] == '-' && word[1] == '-')
            r = scan_long(&s);
        else if (word[0] == '-' && word[1] == ':')
            argv[s.at][0] = PIPE_SIGN;
        else if (word[0] == '-' && word[1] != '\0')
            r = scan_short(&s);
        if (r)
            return r;
    }
    verb_parser = argp->parser;
    shown.parser = parse_shown;
    return argp_parse(&shown, argc, argv, 0, NULL, input) ? EXIT_USAGE : 0;
}
