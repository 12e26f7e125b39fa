/* gpuarrayctl stats: what the daemon has done since it started, once.
 *
 * The text is made whole in memory first, so that what is printed or replaced is complete whatever
 * happens on the way. No daemon is started to be asked.
 */
#include "client/ctl/stats/stats.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x100, OPTION_PROMETHEUS };

struct stats_options {
    bool json, prometheus;
    const char *output;
};

static const struct argp_option stats_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON: the map of server.stats", 0},
    {"prometheus", OPTION_PROMETHEUS, NULL, 0, "print the Prometheus text format", 0},
    {"output", 'o', "FILE", 0, "replace FILE whole instead of printing (mode 0644)", 0},
    {0},
};

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
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    case ARGP_KEY_END:
        if (o->json && o->prometheus)
            return ctl_usage_error(state, "--json or --prometheus, not both");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp stats_argp = {
    stats_argp_options,
    parse_option,
    "",
    "What the daemon has done since it started: jobs, bytes, seconds, users.\v"
    "Counters only rise and begin at zero with the daemon; sizes are bytes, times seconds.\n\n"
    "Examples:\n"
    "  gpuarrayctl stats\n"
    "  gpuarrayctl stats --json\n"
    "  gpuarrayctl stats --prometheus -o gpuarrayd.prom" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static void write_stats(FILE *file, const struct stats_options *o, struct json_object *stats)
{
    if (o->prometheus)
        stats_write_prometheus(file, stats);
    else if (o->json)
        fprintf(file, "%s\n",
                json_object_to_json_string_ext(stats, JSON_C_TO_STRING_PRETTY |
                                                          JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        stats_write_table(file, stats);
}

static int deliver(const struct stats_options *o, struct json_object *stats,
                   struct gad_error *error)
{
    char *text = NULL;
    size_t n_bytes = 0;
    int r = 0;
    FILE *file = open_memstream(&text, &n_bytes);
    if (file)
        write_stats(file, o, stats);
    if (!file || fclose(file) != 0)
        r = error_set(error, GAD_NO_MEMORY, NULL, "no memory for the numbers");
    else if (o->output)
        r = stats_replace_file(o->output, text, n_bytes, error);
    else
        fwrite(text, 1, n_bytes, stdout);
    free(text);
    return r;
}

static int fetch(struct json_object **ret_stats, struct gad_error *error)
{
    struct gad_client *client = NULL;
    char *text = NULL;
    int r = ctl_connect_existing(&client, error);
    if (!r)
        r = (int)gad_stats_json(client, &text, error);
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
    int r = fetch(&stats, &error);
    if (!r)
        r = deliver(&o, stats, &error);
    json_object_put(stats);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
