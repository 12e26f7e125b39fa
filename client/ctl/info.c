/* gpuarrayctl info and ping: what the daemon is, what an array is, how far away they are. */
#include "client/ctl/ctl.h"

#include <stdlib.h>
#include <string.h>

struct info_options {
    const char *source;
    bool json, takes_source;
    int n_round_trips;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option info_argp_options[] = {
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
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case 'c':
        o->n_round_trips = atoi(arg);
        if (o->n_round_trips < 1 || o->n_round_trips > 1000000)
            argp_error(state, "a count is a number from 1 to 1000000, not '%s'", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (!o->takes_source || o->source)
            argp_error(state, "too many arguments: '%s'", arg);
        o->source = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp info_argp = {
    info_argp_options,
    parse_option,
    "[SOURCE]",
    "What the daemon is and holds; with a SOURCE: dtype, shape and layout of that array.",
    NULL,
    NULL,
    NULL};
static const struct argp ping_argp = {
    ping_argp_options, parse_option, "", "One round trip to the daemon.", NULL, NULL, NULL};

/* Nested maps as indented lines: keys as the protocol names them. */
static void print_value(const char *key, struct json_object *value, int depth)
{
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
    printf("%*s%-*s %s\n", depth * 2, "", 22 - depth * 2, key ? key : "",
           json_object_get_string(value));
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

static int print_source(struct gad_client *client, const struct info_options *o,
                        struct gad_error *error)
{
    struct gad_array *array;
    int r = (int)gad_array_open(client, o->source, &array, error);
    if (r)
        return r;
    const struct gad_array_info *info = gad_array_info(array);
    struct gad_plan_output what = {.dtype = info->dtype, .ndim = info->ndim};
    memcpy(what.shape, info->shape, sizeof(what.shape));
    char shape[256];
    if (o->json) {
        struct json_object *object = ctl_array_json(&what, NULL);
        json_object_object_add(object, "format", json_object_new_string(info->format));
        json_object_object_add(object, "access", json_object_new_string(info->access));
        json_object_object_add(object, "swapped", json_object_new_boolean(info->is_swapped));
        if (info->has_fill)
            json_object_object_add(object, "fill", json_object_new_double(info->fill));
        ctl_put_json(object);
    } else {
        printf("format  %s\naccess  %s\ndtype   %s%s\nshape   %s\n", info->format, info->access,
               gad_dtype_name(info->dtype), info->is_swapped ? ", byte-swapped" : "",
               ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)));
        if (info->has_fill)
            printf("fill    %g\n", info->fill);
    }
    gad_array_release(array);
    return 0;
}

int verb_info(int argc, char **argv)
{
    struct info_options o = {.takes_source = true};
    if (argp_parse(&info_argp, argc, argv, 0, NULL, &o))
        return EXIT_USAGE;
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    int r = ctl_connect(&client, &error);
    if (!r)
        r = o.source ? print_source(client, &o, &error) : print_server(client, o.json, &error);
    gad_close(client);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}

int verb_ping(int argc, char **argv)
{
    struct info_options o = {.n_round_trips = 1};
    if (argp_parse(&ping_argp, argc, argv, 0, NULL, &o))
        return EXIT_USAGE;
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    int r = ctl_connect(&client, &error);
    double least = 0, sum = 0;
    for (int i = 0; i < o.n_round_trips && !r; i++) {
        double began = ctl_now_s();
        r = (int)gad_ping(client, &error);
        double seconds = ctl_now_s() - began;
        least = i == 0 || seconds < least ? seconds : least;
        sum += seconds;
    }
    gad_close(client);
    if (r)
        return ctl_fail(&error, o.json);
    if (o.json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "round_trips", json_object_new_int(o.n_round_trips));
        json_object_object_add(object, "least_us", json_object_new_double(least * 1e6));
        json_object_object_add(object, "mean_us",
                               json_object_new_double(sum / o.n_round_trips * 1e6));
        ctl_put_json(object);
    } else {
        printf("%d round trips: least %.1f us, mean %.1f us\n", o.n_round_trips, least * 1e6,
               sum / o.n_round_trips * 1e6);
    }
    return EXIT_OK;
}
