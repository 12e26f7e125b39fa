/* gpuarrayctl drain: the daemon takes no new jobs, and is waited for until none run.
 *
 * What it has to say of itself is asked for again and again, since nobody is told when a job of
 * another user ends. An interrupted wait leaves the daemon as it is: closed.
 */
#include "client/ctl/stats/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPTION_JSON = 0x100, OPTION_UNDO };

struct drain_options {
    bool json, undo, wait;
    const char *message;
    uint64_t n_running, n_queued;
    struct gad_error error;
};

static const struct argp_option drain_argp_options[] = {
    {"message", 'm', "TEXT", 0, "why, for those whose jobs are refused", 0},
    {"wait", 'w', NULL, 0, "wait until no job runs any more", 0},
    {"undo", OPTION_UNDO, NULL, 0, "take and begin jobs again", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct drain_options *o = state->input;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_UNDO: o->undo = true; return 0;
    case 'w': o->wait = true; return 0;
    case 'm': o->message = arg; return 0;
    case ARGP_KEY_ARG: return ctl_usage_error(state, "'%s' is too much", arg);
    case ARGP_KEY_END:
        if (o->undo && (o->wait || o->message))
            return ctl_usage_error(state, "--undo stands alone");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp drain_argp = {
    drain_argp_options,
    parse_option,
    "",
    "For admins (root, the daemon's user and its admin-group): the daemon takes no new jobs. Those "
    "that run go on to their end, those that wait do not begin.\v"
    "It lasts until --undo, or as long as the daemon: one that is restarted takes jobs, and gets "
    "those that waited from their clients.\n\n"
    "Examples:\n"
    "  gpuarrayctl drain -m 'new driver, back at 14:00' --wait\n"
    "  gpuarrayctl drain --undo" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL); /* a signal ends it: the caller looks */
}

/* Those that run or settle, and those that wait. */
static int look(struct gad_client *client, struct drain_options *o)
{
    char *text = NULL;
    int r = (int)gad_stats_json(client, &text, &o->error);
    struct json_object *stats = r ? NULL : json_tokener_parse(text);
    free(text);
    if (!r && !stats)
        return error_set(&o->error, GAD_NO_MEMORY, NULL, "no memory for the numbers");
    if (r)
        return r;
    o->n_running = stats_u64(stats, "jobs.running") + stats_u64(stats, "jobs.settling");
    o->n_queued = stats_u64(stats, "jobs.queued");
    json_object_put(stats);
    return 0;
}

static int wait_until_idle(struct gad_client *client, struct drain_options *o)
{
    int r = 0;
    ctl_watch_signals();
    for (unsigned ms = 10; !r && o->n_running > 0 && !ctl_was_interrupted();) {
        sleep_ms(ms);
        ms = ms < 500 ? 2 * ms : 1000;
        r = look(client, o);
    }
    return r;
}

static void print_outcome(const struct drain_options *o)
{
    if (o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "running", json_object_new_uint64(o->n_running));
        json_object_object_add(object, "queued", json_object_new_uint64(o->n_queued));
        ctl_put_json(object);
        return;
    }
    printf("%s; %" PRIu64 " jobs run, %" PRIu64 " wait\n",
           o->undo ? "jobs are taken again" : "no new jobs are taken", o->n_running, o->n_queued);
}

int verb_drain(int argc, char **argv)
{
    struct drain_options o = {.json = false};
    struct gad_client *client = NULL;
    if (ctl_parse(&drain_argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = ctl_connect_existing(&client, &o.error);
    if (!r)
        r = (int)gad_drain(client, o.undo, o.message, &o.n_running, &o.n_queued, &o.error);
    if (!r && o.wait)
        r = wait_until_idle(client, &o);
    gad_close(client);
    if (!r)
        print_outcome(&o);
    if (!r && o.wait && o.n_running > 0)
        return EXIT_INTERRUPTED;
    return r ? ctl_fail(&o.error, o.json) : EXIT_OK;
}
