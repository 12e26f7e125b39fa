/* gpuarrayctl ops: what can be written in an expression, as the connected daemon has it.
 *
 *     add(a, b)            a + b    bool int float    sum of two arrays; of bools: logical or
 *
 * With names, only those: by NumPy's name, by another name or by the operator. A name that is not
 * there gets the nearest one.
 */
#include "client/ctl/ctl.h"

#include "proto/error.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 64

struct ops_options {
    const char *names[MAX_NAMES];
    unsigned n_names;
    bool json;
    struct gad_error error;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option ops_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct ops_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->n_names == MAX_NAMES)
            return ctl_usage_error(state, "at most %d names", MAX_NAMES);
        o->names[o->n_names++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp ops_argp = {
    ops_argp_options,
    parse_option,
    "[NAME...]",
    "Lists the operations of expressions: how each is called, its operator, the dtypes of its "
    "arrays (int: signed and unsigned integers), and what it computes. Optional arguments stand "
    "with their defaults.\v"
    "Examples:\n"
    "  gpuarrayctl ops\n"
    "  gpuarrayctl ops sqrt divmod '//'\n"
    "  gpuarrayctl ops --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* "" where there is none. */
static const char *text_of(struct json_object *op, const char *key)
{
    struct json_object *value = json_object_object_get(op, key);
    return value ? json_object_get_string(value) : "";
}

static int number_of(struct json_object *op, const char *key)
{
    return json_object_get_int(json_object_object_get(op, key));
}

/* "add(a, b)", "round(a, decimals=0)", "q, r = divmod(a, b)". */
static void format_call(struct json_object *op, char *buffer, size_t n_bytes)
{
    const char *name = text_of(op, "name"), *keywords = text_of(op, "keywords");
    int n_args = number_of(op, "args");
    /* Written as the name of a dtype. */
    bool is_cast = strcmp(name, "astype") == 0;
    size_t used =
        (size_t)snprintf(buffer, n_bytes, "%s%s(", number_of(op, "results") == 2 ? "q, r = " : "",
                         is_cast ? "DTYPE" : name);
    const char *arguments = text_of(op, "arguments");
    if (arguments[0])
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s", arguments);
    for (int i = 0; !arguments[0] && i < n_args && used < n_bytes; i++)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s%c", i ? ", " : "", 'a' + i);
    if (used < n_bytes)
        snprintf(buffer + used, n_bytes - used, "%s%s)", keywords[0] && n_args > 0 ? ", " : "",
                 keywords);
}

static void print_op(struct json_object *op)
{
    char call[160], symbol[32] = "";
    const char *sign = text_of(op, "symbol"), *alias = text_of(op, "alias");
    format_call(op, call, sizeof(call));
    if (sign[0])
        snprintf(symbol, sizeof(symbol), number_of(op, "args") == 1 ? "%sa" : "a %s b", sign);
    printf("%-22s %-7s %-15s %s%s%s%s\n", call, symbol, text_of(op, "dtypes"), text_of(op, "doc"),
           alias[0] ? " (also " : "", alias, alias[0] ? ")" : "");
}

static bool is_called(struct json_object *op, const char *name)
{
    return name[0] &&
           (strcmp(text_of(op, "name"), name) == 0 || strcmp(text_of(op, "alias"), name) == 0 ||
            strcmp(text_of(op, "symbol"), name) == 0);
}

static int no_such_op(struct json_object *all, const char *name, struct gad_error *error)
{
    struct ctl_nearest nearest = {.word = name};
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        struct json_object *op = json_object_array_get_idx(all, i);
        ctl_nearest_consider(&nearest, text_of(op, "name"));
        ctl_nearest_consider(&nearest, text_of(op, "alias"));
    }
    if (nearest.best)
        return error_set(error, GAD_UNKNOWN_NAME, name,
                         "there is no operation '%s'; did you mean '%s'?", name, nearest.best);
    return error_set(error, GAD_UNKNOWN_NAME, name, "there is no operation '%s'", name);
}

/* Those that are asked for, in the order of the names; all without names. */
static int choose(const struct ops_options *o, struct json_object *all, struct json_object *chosen,
                  struct gad_error *error)
{
    for (unsigned k = 0; k < (o->n_names ? o->n_names : 1); k++) {
        size_t n_before = json_object_array_length(chosen);
        for (size_t i = 0; i < json_object_array_length(all); i++) {
            struct json_object *op = json_object_array_get_idx(all, i);
            if (!o->n_names || is_called(op, o->names[k]))
                json_object_array_add(chosen, json_object_get(op));
        }
        if (o->n_names && json_object_array_length(chosen) == n_before)
            return no_such_op(all, o->names[k], error);
    }
    return 0;
}

static int print_ops(struct gad_client *client, struct ops_options *o)
{
    char *text;
    int r = (int)gad_ops_json(client, &text, &o->error);
    if (r)
        return r;
    struct json_object *all = json_tokener_parse(text), *chosen = json_object_new_array();
    free(text);
    if (!json_object_is_type(all, json_type_array))
        r = error_set(&o->error, GAD_PROTOCOL, NULL, "the daemon's answer is no list");
    if (!r)
        r = choose(o, all, chosen, &o->error);
    for (size_t i = 0; !r && !o->json && i < json_object_array_length(chosen); i++)
        print_op(json_object_array_get_idx(chosen, i));
    if (!r && o->json)
        ctl_put_json(json_object_get(chosen));
    json_object_put(chosen);
    json_object_put(all);
    return r;
}

int verb_ops(int argc, char **argv)
{
    struct ops_options o = {0};
    struct gad_client *client = NULL;
    if (ctl_parse(&ops_argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = ctl_connect(&client, &o.error);
    if (!r)
        r = print_ops(client, &o);
    gad_close(client);
    return r ? ctl_fail(&o.error, o.json) : EXIT_OK;
}
