/* gpuarrayctl stats: what the daemon has done since it started, once; or how that went over time,
 * from the samples that it keeps, as a picture or as they are.
 *
 * The text is made whole in memory first, so that what is printed or replaced is complete whatever
 * happens on the way. No daemon is started to be asked.
 */
#include "client/ctl/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x100, OPTION_PROMETHEUS, OPTION_PLOT, OPTION_LAST };

#define MOST_SECONDS (366 * 86400.0)

struct stats_options {
    bool json, prometheus;
    const char *output, *plot;
    uint64_t last_ms; /* 0: it was not said */
};

static const struct argp_option stats_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON: the map of server.stats", 0},
    {"prometheus", OPTION_PROMETHEUS, NULL, 0, "print the Prometheus text format", 0},
    {"output", 'o', "FILE", 0, "replace FILE whole instead of printing (mode 0644)", 0},
    {"plot", OPTION_PLOT, "FILE", 0,
     "draw memory, pool, rates and jobs over time into FILE, as SVG (mode 0644)", 0},
    {"last", OPTION_LAST, "TIME", 0,
     "of so long: 90s, 30m, 1h, 1d (with --plot 1h unless given; with --json the samples)", 0},
    {0},
};

/* A number with a unit of time. */
static int read_last(const char *text, uint64_t *ret_ms, const struct argp_state *state)
{
    static const char units[] = "smhd";
    static const double seconds[] = {1, 60, 3600, 86400};
    char *end;
    double value = strtod(text, &end);
    const char *unit = end != text && *end ? strchr(units, *end) : NULL;
    double s = unit ? value * seconds[unit - units] : NAN;
    if (!unit || end[1] || !(s >= 1) || s > MOST_SECONDS)
        return ctl_usage_error(state, "--last takes a time as 90s, 30m, 1h or 1d, not '%s'", text);
    *ret_ms = (uint64_t)(s * 1e3);
    return 0;
}

static error_t check_options(const struct stats_options *o, const struct argp_state *state)
{
    if (o->json && o->prometheus)
        return ctl_usage_error(state, "--json or --prometheus, not both");
    if (o->plot && (o->json || o->prometheus || o->output))
        return ctl_usage_error(state, "--plot goes alone, or with --last");
    if (o->last_ms > 0 && !o->plot && !o->json)
        return ctl_usage_error(state, "--last goes with --plot or --json");
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct stats_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_PROMETHEUS: o->prometheus = true; return 0;
    case 'o':
        if (arg[0] == '\0')
            return ctl_usage_error(state, "--output needs the name of a file");
        o->output = arg;
        return 0;
    case OPTION_PLOT:
        if (arg[0] == '\0')
            return ctl_usage_error(state, "--plot needs the name of a file");
        o->plot = arg;
        return 0;
    case OPTION_LAST: return read_last(arg, &o->last_ms, state);
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    case ARGP_KEY_END: return check_options(o, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp stats_argp = {
    stats_argp_options,
    parse_option,
    "",
    "What the daemon has done since it started: jobs, bytes, seconds, users.\v"
    "Counters only rise and begin at zero with the daemon; sizes are bytes, times seconds.\n"
    "The daemon keeps a sample of its memory, pool, bytes and jobs a second for ten minutes, "
    "coarser ones for a day.\n\n"
    "Examples:\n"
    "  gpuarrayctl stats\n"
    "  gpuarrayctl stats --json\n"
    "  gpuarrayctl stats --prometheus -o gpuarrayd.prom\n"
    "  gpuarrayctl stats --plot night.svg --last 12h\n"
    "  gpuarrayctl stats --last 10m --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* 0 or a status. */
static int write_stats(FILE *file, const struct stats_options *o, struct json_object *stats)
{
    if (o->plot)
        return stats_write_plot(file, stats, o->last_ms);
    if (o->prometheus)
        stats_write_prometheus(file, stats);
    else if (o->json)
        fprintf(file, "%s\n",
                json_object_to_json_string_ext(stats, JSON_C_TO_STRING_PRETTY |
                                                          JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        stats_write_table(file, stats);
    return 0;
}

static int deliver(const struct stats_options *o, struct json_object *stats,
                   struct gad_error *error)
{
    char *text = NULL;
    size_t n_bytes = 0;
    const char *path = o->plot ? o->plot : o->output;
    FILE *file = open_memstream(&text, &n_bytes);
    int r = file ? write_stats(file, o, stats) : GAD_NO_MEMORY;
    if ((file && fclose(file) != 0) || r)
        r = error_set(error, GAD_NO_MEMORY, NULL, "no memory for the numbers");
    else if (path)
        r = stats_replace_file(path, text, n_bytes, error);
    else
        fwrite(text, 1, n_bytes, stdout);
    free(text);
    return r;
}

static int fetch(const struct stats_options *o, struct json_object **ret_stats,
                 struct gad_error *error)
{
    struct gad_client *client = NULL;
    char *text = NULL;
    int r = ctl_connect_existing(&client, error);
    if (!r)
        r = (int)(o->last_ms > 0 ? gad_samples_json(client, o->last_ms, &text, error)
                                 : gad_stats_json(client, &text, error));
    gad_close(client);
    if (r)
        return r;
    *ret_stats = json_tokener_parse(text);
    free(text);
    return *ret_stats ? 0 : error_set(error, GAD_NO_MEMORY, NULL, "no memory for the numbers");
}

int verb_stats(int argc, char **argv)
{
    struct stats_options o = {0};
    struct json_object *stats = NULL;
    struct gad_error error = {0};
    if (ctl_parse(&stats_argp, argc, argv, &o))
        return EXIT_USAGE;
    if (o.plot && o.last_ms == 0)
        o.last_ms = 3600000;
    int r = fetch(&o, &stats, &error);
    if (!r)
        r = deliver(&o, stats, &error);
    json_object_put(stats);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
