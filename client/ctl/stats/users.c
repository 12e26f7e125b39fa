/* gpuarrayctl users: who is there, what each holds and may hold; and, for admins, what each weighs.
 *
 * Weights that are said are set first, one after the other, so that what is then printed has them.
 * Like stats it starts no daemon.
 */
#include "client/ctl/stats/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WEIGHTS 64u

enum { OPTION_JSON = 0x100, OPTION_LIMITS, OPTION_WEIGHT };

struct said {
    uint32_t uid, weight;
};

struct users_options {
    bool json, limits;
    struct said weights[MAX_WEIGHTS];
    unsigned n_weights;
};

static const struct argp_option users_argp_options[] = {
    {"limits", OPTION_LIMITS, NULL, 0,
     "what each may hold: the limit, and the share of what the others leave", 0},
    {"weight", OPTION_WEIGHT, "USER=N", 0,
     "for admins: the user's jobs count N, 1 to 1000, beside those of others, until the daemon "
     "ends "
     "or reads its settings again; 'default': as these say",
     0},
    {"json", OPTION_JSON, NULL, 0, "print JSON: the map of server.users", 0},
    {0},
};

static error_t add_weight(struct users_options *o, char *arg, const struct argp_state *state)
{
    char *sign = strrchr(arg, '='), *end;
    if (!sign || sign == arg)
        return ctl_usage_error(state, "--weight takes USER=N, not '%s'", arg);
    if (o->n_weights == MAX_WEIGHTS)
        return ctl_usage_error(state, "at most %u weights", MAX_WEIGHTS);
    struct said *said = &o->weights[o->n_weights++];
    const char *text = sign + 1;
    unsigned long weight = strtoul(text, &end, 10);
    bool is_default = strcmp(text, "default") == 0;
    bool is_number = text[0] >= '0' && text[0] <= '9' && !*end && weight >= 1 && weight <= 1000;
    if (!is_default && !is_number)
        return ctl_usage_error(state, "a weight is a number from 1 to 1000, or default, not '%s'",
                               text);
    said->weight = is_default ? 0 : (uint32_t)weight;
    *sign = '\0';
    bool is_found = stats_find_user(arg, &said->uid);
    *sign = '=';
    if (!is_found)
        return ctl_usage_error(state, "there is no user '%.*s'", (int)(sign - arg), arg);
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct users_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_LIMITS: o->limits = true; return 0;
    case OPTION_WEIGHT: return add_weight(o, arg, state);
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp users_argp = {
    users_argp_options,
    parse_option,
    "",
    "Who is connected or has jobs, with what each weighs and holds.\v"
    "Admins (root, the daemon's user and its admin-group) see all of everybody, others see of "
    "others "
    "what 'gpuarrayctl stats' shows.\n\n"
    "Examples:\n"
    "  gpuarrayctl users\n"
    "  gpuarrayctl users --limits\n"
    "  gpuarrayctl users --weight alice=4 --weight bob=default" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static int fetch(const struct users_options *o, char **ret_text, struct gad_error *error)
{
    struct gad_client *client = NULL;
    int r = ctl_connect_existing(&client, error);
    for (unsigned i = 0; i < o->n_weights && !r; i++)
        r = (int)gad_set_weight(client, o->weights[i].uid, o->weights[i].weight, error);
    if (!r)
        r = (int)gad_users_json(client, ret_text, error);
    gad_close(client);
    return r;
}

static void add_names(struct json_object *answer)
{
    struct json_object *users = stats_at(answer, "users");
    size_t n = json_object_is_type(users, json_type_array) ? json_object_array_length(users) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *user = json_object_array_get_idx(users, i);
        char name[STATS_USER_SIZE];
        stats_user_name((uint32_t)stats_u64(user, "uid"), name);
        if (json_object_is_type(user, json_type_object))
            json_object_object_add(user, "name", json_object_new_string(name));
    }
}

int verb_users(int argc, char **argv)
{
    struct users_options o = {0};
    struct gad_error error = {0};
    char *text = NULL;
    if (ctl_parse(&users_argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = fetch(&o, &text, &error);
    struct json_object *answer = r ? NULL : json_tokener_parse(text);
    free(text);
    if (!r && !answer)
        r = error_set(&error, GAD_NO_MEMORY, NULL, "no memory for the users");
    if (r)
        return ctl_fail(&error, o.json);
    if (o.json) {
        add_names(answer);
        ctl_put_json(answer);
        return EXIT_OK;
    }
    if (o.limits)
        users_write_limits(stdout, answer);
    else
        users_write_table(stdout, answer);
    json_object_put(answer);
    return EXIT_OK;
}
