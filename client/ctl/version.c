/* gpuarrayctl version: of the command, of the library that it runs with, and of the daemon where
 * one answers. No daemon is started for it, and none that answers is no error.
 */
#include "client/ctl/facts.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x100 };

static const struct argp_option version_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    bool *json = state->input;
    switch (key) {
    case OPTION_JSON: *json = true; return 0;
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp version_argp = {version_argp_options,
                                         parse_option,
                                         "",
                                         "Versions of command, library and daemon.\v"
                                         "Examples:\n"
                                         "  gpuarrayctl version\n"
                                         "  gpuarrayctl version --json" CTL_EXIT_CODES,
                                         NULL,
                                         NULL,
                                         NULL};

/* "gpuarrayd 0.1.0, protocol 1, HDF5 1.10.8" as a map: name to version. */
static struct json_object *library_json(void)
{
    struct json_object *map = json_object_new_object();
    char *text = strdup(gad_versions()), *rest = text;
    for (char *part; rest && (part = strsep(&rest, ","));) {
        part += strspn(part, " ");
        char *version = strrchr(part, ' ');
        if (!version)
            continue;
        *version = '\0';
        json_object_object_add(map, part, json_object_new_string(version + 1));
    }
    free(text);
    return map;
}

static void print_json(const struct daemon_facts *facts, const struct gad_error *error)
{
    struct json_object *object = json_object_new_object();
    struct json_object *daemon = json_object_new_object();
    json_object_object_add(object, "gpuarrayctl", json_object_new_string(GPUARRAYD_VERSION));
    json_object_object_add(object, "library", library_json());
    if (facts) {
        json_object_object_add(daemon, "version",
                               json_object_new_string(facts_text(facts, "version")));
        json_object_object_add(daemon, "kind",
                               json_object_new_string(facts_kind_name(facts->kind)));
        json_object_object_add(daemon, "socket", json_object_new_string(facts->socket));
    } else {
        json_object_object_add(daemon, "error", ctl_error_json(error));
    }
    json_object_object_add(object, "daemon", daemon);
    ctl_put_json(object);
}

static void print_text(const struct daemon_facts *facts, const struct gad_error *error)
{
    printf("gpuarrayctl %s\n", GPUARRAYD_VERSION);
    printf("library     %s\n", gad_versions());
    if (facts)
        printf("daemon      gpuarrayd %s, %s, %s\n", facts_text(facts, "version"),
               facts_kind_name(facts->kind), facts->socket);
    else
        printf("daemon      none answers: %s [%s]\n", error->message,
               gad_status_word((int)error->status));
}

int verb_version(int argc, char **argv)
{
    bool json = false;
    struct gad_client *client = NULL;
    struct daemon_facts facts = {0};
    struct gad_error error = {0};
    if (ctl_parse(&version_argp, argc, argv, &json))
        return EXIT_USAGE;
    int r = ctl_connect_existing(&client, &error);
    if (!r)
        r = facts_get(client, &facts, &error);
    (json ? print_json : print_text)(r ? NULL : &facts, &error);
    facts_deinit(&facts);
    gad_close(client);
    return EXIT_OK;
}
