/* gpuarrayctl wait, status, cancel, jobs: jobs by their number, from anywhere, by the same user. */
#include "client/ctl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct jobs_options {
    uint64_t job;
    bool has_job, needs_job, json;
    int timeout_ms;
};

enum { OPTION_JSON = 0x100, OPTION_TIMEOUT };

static const struct argp_option plain_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static const struct argp_option wait_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {"timeout", OPTION_TIMEOUT, "SECONDS", 0, "give up waiting (exit code 4), the job goes on", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct jobs_options *o = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_TIMEOUT: {
        double seconds = strtod(arg, &end);
        if (end == arg || *end || !(seconds >= 0) || seconds > 1e6)
            argp_error(state, "a time-out is a number of seconds, not '%s'", arg);
        o->timeout_ms = (int)(seconds * 1000);
        return 0;
    }
    case ARGP_KEY_ARG:
        errno = 0;
        o->job = strtoull(arg, &end, 10);
        if (!o->needs_job || o->has_job || end == arg || *end || errno || o->job == 0)
            argp_error(state, "'%s' is not the number of a job", arg);
        o->has_job = true;
        return 0;
    case ARGP_KEY_END:
        if (o->needs_job && !o->has_job)
            argp_error(state, "the number of a job is needed; 'gpuarrayctl jobs' lists yours");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp job_argp = {plain_options, parse_option, "JOB", NULL, NULL, NULL, NULL};
static const struct argp wait_argp = {wait_options, parse_option, "JOB", NULL, NULL, NULL, NULL};
static const struct argp list_argp = {plain_options, parse_option, "", NULL, NULL, NULL, NULL};

static int begin(const struct argp *argp, int argc, char **argv, struct jobs_options *o,
                 struct gad_client **ret_client, struct gad_error *error)
{
    o->timeout_ms = -1;
    if (argp_parse(argp, argc, argv, 0, NULL, o))
        exit(EXIT_USAGE);
    return ctl_connect(ret_client, error);
}

static int finish(struct gad_client *client, int r, const struct gad_error *error, bool json)
{
    gad_close(client);
    return r ? ctl_fail(error, json) : EXIT_OK;
}

int verb_wait(int argc, char **argv)
{
    struct jobs_options o = {.needs_job = true};
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    int r = begin(&wait_argp, argc, argv, &o, &client, &error);
    if (!r)
        r = (int)gad_job_wait_by_id(client, o.job, o.timeout_ms, &error);
    if (!r && o.json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "job", json_object_new_uint64(o.job));
        json_object_object_add(object, "state", json_object_new_string("done"));
        ctl_put_json(object);
    }
    return finish(client, r, &error, o.json);
}

static void print_status(const struct gad_job_status *s)
{
    char moved[32];
    printf("job %" PRIu64 ": %s\n", s->job, s->state);
    if (s->label[0])
        printf("  label    %s\n", s->label);
    printf("  tiles    %" PRIu64 " of %" PRIu64 "\n", s->tiles_done, s->n_tiles);
    printf("  moved    %s\n", ctl_format_bytes((double)(s->read_bytes + s->write_bytes), moved));
    printf("  queued   %.3f s\n  running  %.3f s\n", s->queued_s, s->running_s);
    if (s->error.status)
        printf("  error    %s [%s]\n", s->error.message, gad_status_word((int)s->error.status));
}

int verb_status(int argc, char **argv)
{
    struct jobs_options o = {.needs_job = true};
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    struct gad_job_status status;
    int r = begin(&job_argp, argc, argv, &o, &client, &error);
    if (!r)
        r = (int)gad_job_status_by_id(client, o.job, &status, &error);
    if (!r && o.json)
        ctl_put_json(ctl_status_json(&status));
    else if (!r)
        print_status(&status);
    return finish(client, r, &error, o.json);
}

int verb_cancel(int argc, char **argv)
{
    struct jobs_options o = {.needs_job = true};
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    int r = begin(&job_argp, argc, argv, &o, &client, &error);
    if (!r)
        r = (int)gad_job_cancel_by_id(client, o.job, &error);
    return finish(client, r, &error, o.json);
}

static void print_list(const struct gad_job_status *jobs, size_t n_jobs)
{
    printf("%8s  %-9s  %13s  %9s  %s\n", "JOB", "STATE", "TILES", "RUNNING", "LABEL");
    for (size_t i = 0; i < n_jobs; i++) {
        char tiles[48];
        snprintf(tiles, sizeof(tiles), "%" PRIu64 "/%" PRIu64, jobs[i].tiles_done, jobs[i].n_tiles);
        printf("%8" PRIu64 "  %-9s  %13s  %7.2f s  %s\n", jobs[i].job, jobs[i].state, tiles,
               jobs[i].running_s, jobs[i].label);
    }
}

int verb_jobs(int argc, char **argv)
{
    struct jobs_options o = {0};
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    struct gad_job_status *jobs = NULL;
    size_t n_jobs = 0;
    int r = begin(&list_argp, argc, argv, &o, &client, &error);
    if (!r)
        r = (int)gad_job_list(client, &jobs, &n_jobs, &error);
    if (!r && o.json) {
        struct json_object *list = json_object_new_array();
        for (size_t i = 0; i < n_jobs; i++)
            json_object_array_add(list, ctl_status_json(&jobs[i]));
        ctl_put_json(list);
    } else if (!r) {
        print_list(jobs, n_jobs);
    }
    free(jobs);
    return finish(client, r, &error, o.json);
}
