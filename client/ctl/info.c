/* gpuarrayctl info and ping: what the daemon is, what a file has, how far away they are. */
#include "client/ctl/files/info_file.h"
#include "client/ctl/info_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct info_options {
    const char *source;
    bool json, takes_source, has_attributes, names_alone;
    long n_round_trips;
};

enum { OPTION_JSON = 0x100, OPTION_NAMES };

static const struct argp_option info_argp_options[] = {
    {"attributes", 'a', NULL, 0, "of a file: all attributes, too", 0},
    {"names", OPTION_NAMES, NULL, 0, "of a file or group: the names that are in it, alone", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};
static const struct argp_option ping_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {"count", 'c', "N", 0, "round trips (1)", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct info_options *o = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_NAMES: o->names_alone = true; return 0;
    case 'a': o->has_attributes = true; return 0;
    case 'c':
        o->n_round_trips = strtol(arg, &end, 10);
        if (end == arg || *end || o->n_round_trips < 1 || o->n_round_trips > 1000000)
            return ctl_usage_error(state, "a count is a number from 1 to 1000000, not '%s'", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (!o->takes_source)
            return ctl_usage_error(state, "'%s' is too much", arg);
        if (o->source)
            return ctl_usage_error(state, "'%s' is too much" CTL_IN_QUOTES, arg);
        o->source = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp info_argp = {
    info_argp_options,
    parse_option,
    "[SOURCE]",
    "An array's dtype, shape, layout and attributes, without reading it; of a file or group with "
    "several arrays, which arrays these are; of '-' what the npy on standard input says. Without a "
    "SOURCE what the daemon is and holds: its "
    "engines with their state, pool and rates, of a device also what its memory is made of.\v"
    "Examples:\n"
    "  gpuarrayctl info winds.h5\n"
    "  gpuarrayctl info winds.h5:/UWND\n"
    "  gpuarrayctl info\n"
    "  gpuarrayctl info --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};
static const struct argp ping_argp = {
    ping_argp_options,
    parse_option,
    "",
    "Round trips to the daemon: whether it answers, and how soon.\v"
    "Examples:\n"
    "  gpuarrayctl ping\n"
    "  gpuarrayctl ping -c 1000" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* "bytes" and "..._bytes" with a unit, seconds too; the rest as it is. */
static const char *value_text(const char *key, struct json_object *value, char buffer[32])
{
    size_t n = strlen(key);
    if (n >= 5 && strcmp(key + n - 5, "bytes") == 0)
        return ctl_format_bytes(json_object_get_double(value), buffer);
    if (n < 2 || strcmp(key + n - 2, "_s") != 0)
        return json_object_get_string(value);
    snprintf(buffer, 32, "%.3f s", json_object_get_double(value));
    return buffer;
}

/* Nested maps as indented lines: keys as the protocol names them. */
static void print_value(const char *key, struct json_object *value, int depth)
{
    if (key && (!value || (json_object_is_type(value, json_type_string) &&
                           !json_object_get_string_len(value))))
        return; /* not known, not there */
    if (key && strcmp(key, "memory") == 0 && json_object_is_type(value, json_type_object)) {
        info_print_memory(value, depth);
        return;
    }
    if (key && strcmp(key, "rates") == 0 && json_object_is_type(value, json_type_object)) {
        info_print_rates(value, depth);
        return;
    }
    if (key && strcmp(key, "scans") == 0 && json_object_is_type(value, json_type_object)) {
        info_print_scan(value, depth);
        return;
    }
    if (json_object_is_type(value, json_type_object)) {
        if (key)
            printf("%*s%s\n", depth * 2, "", key);
        json_object_object_foreach(value, name, member)
            print_value(name, member, key ? depth + 1 : depth);
        return;
    }
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            print_value(key, json_object_array_get_idx(value, i), depth);
        return;
    }
    char buffer[32];
    printf("%*s%-*s %s\n", depth * 2, "", 22 - depth * 2, key ? key : "",
           value_text(key ? key : "", value, buffer));
}

static int print_server(struct gad_client *client, bool json, struct gad_error *error)
{
    char *text;
    int r = (int)gad_info_json(client, &text, error);
    if (r)
        return r;
    struct json_object *object = json_tokener_parse(text);
    free(text);
    if (json) {
        ctl_put_json(object);
        return 0;
    }
    print_value(NULL, object, 0);
    json_object_put(object);
    return 0;
}

static int info_source(const struct info_options *o, struct gad_error *error)
{
    const struct info_file_options options = {.source = o->source,
                                              .json = o->json,
                                              .has_attributes = o->has_attributes,
                                              .names_alone = o->names_alone};
    return info_file(&options, error);
}

static int info_daemon(const struct info_options *o, struct gad_error *error)
{
    struct gad_client *client = NULL;
    int r = ctl_connect(&client, error);
    if (!r)
        r = print_server(client, o->json, error);
    gad_close(client);
    return r;
}

int verb_info(int argc, char **argv)
{
    struct info_options o = {.takes_source = true};
    if (ctl_parse(&info_argp, argc, argv, &o))
        return EXIT_USAGE;
    struct gad_error error = {0};
    if (!o.source && (o.has_attributes || o.names_alone))
        return ctl_usage_report(argv[0], o.json, "gpuarrayctl info --help",
                                "a file is needed, as in 'info winds.h5'");
    int r = o.source ? info_source(&o, &error) : info_daemon(&o, &error);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}

struct ping_times {
    double least, greatest, sum;
};

static int ping(struct gad_client *client, long n_round_trips, struct ping_times *ret,
                struct gad_error *error)
{
    *ret = (struct ping_times){.least = INFINITY};
    for (long i = 0; i < n_round_trips; i++) {
        double began = ctl_now_s();
        int r = (int)gad_ping(client, error);
        if (r)
            return r;
        double seconds = ctl_now_s() - began;
        ret->least = fmin(ret->least, seconds);
        ret->greatest = fmax(ret->greatest, seconds);
        ret->sum += seconds;
    }
    return 0;
}

static void print_ping(const struct info_options *o, const struct ping_times *times)
{
    double mean = times->sum / (double)o->n_round_trips;
    if (o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "round_trips", json_object_new_int64(o->n_round_trips));
        json_object_object_add(object, "least_us", json_object_new_double(times->least * 1e6));
        json_object_object_add(object, "mean_us", json_object_new_double(mean * 1e6));
        json_object_object_add(object, "greatest_us",
                               json_object_new_double(times->greatest * 1e6));
        ctl_put_json(object);
    } else if (o->n_round_trips == 1) {
        printf("one round trip: %.1f us\n", mean * 1e6);
    } else {
        printf("%ld round trips: least %.1f us, mean %.1f us, greatest %.1f us\n", o->n_round_trips,
               times->least * 1e6, mean * 1e6, times->greatest * 1e6);
    }
}

int verb_ping(int argc, char **argv)
{
    struct info_options o = {.n_round_trips = 1};
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    struct ping_times times;
    if (ctl_parse(&ping_argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = ctl_connect(&client, &error);
    if (!r)
        r = ping(client, o.n_round_trips, &times, &error);
    gad_close(client);
    if (r)
        return ctl_fail(&error, o.json);
    print_ping(&o, &times);
    return EXIT_OK;
}
