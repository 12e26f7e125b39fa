/* gpuarrayctl wait, status, cancel, pause, resume, jobs: jobs by their number, from anywhere, by
 * the same user; and all of a user's, or of everybody's, by those who may.
 *
 * They only look at what is there, so they never start a daemon: without one there are no jobs.
 * Several numbers are taken one after the other; the exit code is that of the first that failed.
 * As JSON one number gives one map, several numbers or --all give a list of them; --user and
 * --everybody how many jobs they were.
 */
#include "client/ctl/ctl.h"

#include "client/ctl/joblist.h"
#include "client/ctl/agent/numbers.h"
#include "client/ctl/stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 4096 /* on a command line */

struct jobs_options {
    uint64_t *jobs;
    size_t n_jobs;
    bool needs_jobs, all, json, is_list;
    bool has_user; /* --user, --everybody */
    uint32_t user;
    const char *state; /* jobs --state */
    double timeout_s;
    struct gad_error error;
};

enum {
    OPTION_JSON = 0x100,
    OPTION_TIMEOUT,
    OPTION_ALL,
    OPTION_STATE,
    OPTION_USER,
    OPTION_EVERYBODY
};

static const struct argp_option status_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static const struct argp_option change_options[] = {
    {"all", OPTION_ALL, NULL, 0, "all of yours that have not ended", 0},
    {"user", OPTION_USER, "USER", 0, "all of that user's; of others for admins", 0},
    {"everybody", OPTION_EVERYBODY, NULL, 0, "for admins: all that have not ended", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static const struct argp_option wait_options[] = {
    {"all", OPTION_ALL, NULL, 0, "all of yours that have not ended", 0},
    {"timeout", OPTION_TIMEOUT, "SECONDS", 0, "give up waiting (exit code 4), the job goes on", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static const struct argp_option list_options[] = {
    {"user", OPTION_USER, "USER", 0, "that user's; of others for admins", 0},
    {"everybody", OPTION_EVERYBODY, NULL, 0, "for admins: those of all users", 0},
    {"state", OPTION_STATE, "STATE", 0,
     "only those: queued, running, paused, settling, done, failed, cancelled, or active for the "
     "first four",
     0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static int add_job(struct jobs_options *o, const char *word, struct argp_state *state)
{
    char *end;
    errno = 0;
    uint64_t job = strtoull(word, &end, 10);
    if (!o->needs_jobs)
        return ctl_usage_error(state, "'%s' is too much: the list has all of yours", word);
    if (word[0] < '0' || word[0] > '9' || *end || errno || job == 0)
        return ctl_usage_error(state, "'%s' is not the number of a job", word);
    if (o->n_jobs == MAX_JOBS)
        return ctl_usage_error(state, "more than %d jobs", MAX_JOBS);
    o->jobs[o->n_jobs++] = job;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct jobs_options *o = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_ALL: o->all = true; return 0;
    case OPTION_EVERYBODY:
    case OPTION_USER:
        if (o->has_user)
            return ctl_usage_error(state, "one --user, or --everybody");
        o->has_user = true;
        o->user = GAD_EVERYBODY;
        return key == OPTION_EVERYBODY || stats_find_user(arg, &o->user)
                   ? 0
                   : ctl_usage_error(state, "there is no user '%.40s'", arg);
    case OPTION_STATE:
        if (!joblist_is_state(arg))
            return ctl_usage_error(state,
                                   "'%s' is no state; there are queued, running, paused, "
                                   "settling, done, failed, cancelled and active",
                                   arg);
        o->state = arg;
        return 0;
    case OPTION_TIMEOUT: {
        o->timeout_s = strtod(arg, &end);
        if (end == arg || *end || !(o->timeout_s >= 0) || o->timeout_s > 1e6)
            return ctl_usage_error(state, "a time-out is a number of seconds, not '%s'", arg);
        return 0;
    }
    case ARGP_KEY_ARG: return add_job(o, arg, state);
    case ARGP_KEY_END:
        if (o->all + o->has_user + (o->n_jobs > 0) > 1)
            return ctl_usage_error(state, "either numbers of jobs%s or --all",
                                   o->has_user ? ", --user, --everybody" : "");
        if (o->needs_jobs && o->n_jobs == 0 && !o->all && !o->has_user)
            return ctl_usage_error(state,
                                   "the number of a job is needed; 'gpuarrayctl jobs' lists yours");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp status_argp = {
    status_options,
    parse_option,
    "JOB...",
    "Says how jobs are doing: state, progress, bytes moved, times, and the error of a failed one.\v"
    "Examples:\n"
    "  gpuarrayctl status 17\n"
    "  gpuarrayctl status 17 18 --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};
static const struct argp cancel_argp = {
    change_options,
    parse_option,
    "JOB...",
    "Ends jobs. What they had written so far disappears, but for outputs in place.\v"
    "Examples:\n"
    "  gpuarrayctl cancel 18\n"
    "  gpuarrayctl cancel --all\n"
    "  gpuarrayctl cancel --user alice" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};
static const struct argp pause_argp = {
    change_options,
    parse_option,
    "JOB...",
    "Holds jobs back until 'gpuarrayctl resume': those that wait are passed over, those that run "
    "begin no part of their work any more. What they keep of the pool they give up when others "
    "wait "
    "for it; one that cannot begin again goes on then.\v"
    "Examples:\n"
    "  gpuarrayctl pause 18\n"
    "  gpuarrayctl pause --everybody" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};
static const struct argp resume_argp = {change_options,
                                        parse_option,
                                        "JOB...",
                                        "Lets paused jobs go on.\v"
                                        "Examples:\n"
                                        "  gpuarrayctl resume 18\n"
                                        "  gpuarrayctl resume --all" CTL_EXIT_CODES,
                                        NULL,
                                        NULL,
                                        NULL};
static const struct argp wait_argp = {
    wait_options,
    parse_option,
    "JOB...",
    "Waits until jobs have ended and their files are in their place. A job that failed gives its "
    "error, as run does.\v"
    "Examples:\n"
    "  gpuarrayctl wait 17\n"
    "  gpuarrayctl wait 17 18 --timeout 60\n"
    "  gpuarrayctl wait --all" CTL_EXIT_CODES_WAIT,
    NULL,
    NULL,
    NULL};
static const struct argp list_argp = {
    list_options,
    parse_option,
    "",
    "Lists your jobs, or those of others: those that wait or run, and the last ones that have "
    "ended.\v"
    "Examples:\n"
    "  gpuarrayctl jobs\n"
    "  gpuarrayctl jobs --state active\n"
    "  gpuarrayctl jobs --everybody --state queued\n"
    "  gpuarrayctl jobs --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Those of --all. */
static int take_all(struct jobs_options *o)
{
    struct gad_job_status *list;
    size_t n;
    int r = numbers_list(&list, &n, &o->error);
    for (size_t i = 0; !r && i < n && o->n_jobs < MAX_JOBS; i++)
        if (joblist_is_active(&list[i]))
            o->jobs[o->n_jobs++] = list[i].job;
    if (!r)
        free(list);
    return r;
}

/* 0, or a positive status with o->error; EXIT_USAGE is in *ret_code then, after its message. */
static int begin(const struct argp *argp, int argc, char **argv, struct jobs_options *o,
                 int *ret_code)
{
    o->timeout_s = -1;
    o->jobs = calloc(MAX_JOBS, sizeof(*o->jobs));
    *ret_code = !o->jobs ? EXIT_FAILED : ctl_parse(argp, argc, argv, o);
    if (*ret_code)
        return *ret_code;
    o->is_list = o->all || o->n_jobs > 1;
    int r = o->all ? take_all(o) : 0;
    if (r)
        *ret_code = ctl_fail(&o->error, o->json);
    return r;
}

static int finish(struct jobs_options *o, int code)
{
    free(o->jobs);
    return code;
}

typedef int job_fn(struct jobs_options *o, uint64_t job, struct json_object **ret_json);

static struct json_object *error_json(uint64_t job, const struct gad_error *error)
{
    struct json_object *map = json_object_new_object();
    if (job)
        json_object_object_add(map, "job", json_object_new_uint64(job));
    json_object_object_add(map, "error", ctl_error_json(error));
    return map;
}

/* Calls it for each job; what it made as JSON is printed at the end, as one document. */
static int for_each(struct jobs_options *o, job_fn *function)
{
    struct json_object *list = json_object_new_array();
    int code = EXIT_OK;
    for (size_t i = 0; i < o->n_jobs; i++) {
        struct json_object *entry = NULL;
        int r = function(o, o->jobs[i], &entry);
        if (r && code == EXIT_OK)
            code = ctl_exit_code(r);
        if (r && !o->json && o->is_list)
            fprintf(stderr, "gpuarrayctl: job %" PRIu64 ":\n", o->jobs[i]);
        if (r && !o->json)
            ctl_fail(&o->error, false);
        json_object_array_add(list, r ? error_json(o->is_list ? o->jobs[i] : 0, &o->error) : entry);
    }
    if (o->json && !o->is_list)
        ctl_put_json(json_object_get(json_object_array_get_idx(list, 0)));
    else if (o->json)
        ctl_put_json(json_object_get(list));
    json_object_put(list);
    return code;
}

static struct json_object *state_json(uint64_t job, const char *state)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "job", json_object_new_uint64(job));
    json_object_object_add(object, "state", json_object_new_string(state));
    return object;
}

static int wait_for(struct jobs_options *o, uint64_t job, struct json_object **ret_json)
{
    double left = o->timeout_s - ctl_now_s();
    int timeout_ms = o->timeout_s < 0 ? -1 : left < 0 ? 0 : (int)(left * 1000);
    int r = numbers_wait(job, timeout_ms, &o->error);
    if (!r)
        *ret_json = state_json(job, "done");
    return r;
}

int verb_wait(int argc, char **argv)
{
    struct jobs_options o = {.needs_jobs = true};
    int code;
    if (begin(&wait_argp, argc, argv, &o, &code) == 0) {
        if (o.timeout_s >= 0)
            o.timeout_s += ctl_now_s();
        code = for_each(&o, wait_for);
    }
    return finish(&o, code);
}

static int status_of(struct jobs_options *o, uint64_t job, struct json_object **ret_json)
{
    struct gad_job_status status;
    int r = numbers_status(job, &status, &o->error);
    if (!r && !o->json)
        joblist_print_status(&status);
    if (!r)
        *ret_json = ctl_status_json(&status);
    return r;
}

int verb_status(int argc, char **argv)
{
    struct jobs_options o = {.needs_jobs = true};
    int code;
    if (begin(&status_argp, argc, argv, &o, &code) == 0)
        code = for_each(&o, status_of);
    return finish(&o, code);
}

/* All of a user's, or of everybody's. */
static int change_many(struct jobs_options *o, enum gad_jobs_action action)
{
    static const char *const done[] = {[GAD_JOBS_CANCEL] = "cancelled",
                                       [GAD_JOBS_PAUSE] = "paused",
                                       [GAD_JOBS_RESUME] = "let go on"};
    struct gad_client *client = NULL;
    uint64_t n = 0;
    int r = ctl_connect_existing(&client, &o->error);
    if (!r)
        r = (int)gad_jobs_change(client, action, o->user, &n, &o->error);
    gad_close(client);
    if (r)
        return ctl_fail(&o->error, o->json);
    if (o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "jobs", json_object_new_uint64(n));
        ctl_put_json(object);
    } else {
        printf("%" PRIu64 " jobs %s\n", n, done[action]);
    }
    return EXIT_OK;
}

static int cancel(struct jobs_options *o, uint64_t job, struct json_object **ret_json)
{
    int r = numbers_cancel(job, &o->error);
    if (!r)
        *ret_json = state_json(job, "cancelling");
    return r;
}

static int change(const struct argp *argp, int argc, char **argv, enum gad_jobs_action action,
                  job_fn *function)
{
    struct jobs_options o = {.needs_jobs = true};
    int code;
    if (begin(argp, argc, argv, &o, &code) == 0)
        code = o.has_user ? change_many(&o, action) : for_each(&o, function);
    return finish(&o, code);
}

int verb_cancel(int argc, char **argv)
{
    return change(&cancel_argp, argc, argv, GAD_JOBS_CANCEL, cancel);
}

static int pause_one(struct jobs_options *o, uint64_t job, struct json_object **ret_json)
{
    int r = numbers_pause(job, true, &o->error);
    if (!r)
        *ret_json = state_json(job, "paused");
    return r;
}

int verb_pause(int argc, char **argv)
{
    return change(&pause_argp, argc, argv, GAD_JOBS_PAUSE, pause_one);
}

static int resume_one(struct jobs_options *o, uint64_t job, struct json_object **ret_json)
{
    int r = numbers_pause(job, false, &o->error);
    if (!r)
        *ret_json = state_json(job, "resumed");
    return r;
}

int verb_resume(int argc, char **argv)
{
    return change(&resume_argp, argc, argv, GAD_JOBS_RESUME, resume_one);
}

/* Of others the daemon alone knows; of one's own, agents too. */
static int list_meant(struct jobs_options *o, struct gad_job_status **ret_list, size_t *ret_n)
{
    if (!o->has_user)
        return numbers_list(ret_list, ret_n, &o->error);
    struct gad_client *client = NULL;
    int r = ctl_connect_existing(&client, &o->error);
    if (!r)
        r = (int)gad_jobs_list(client, o->user, ret_list, ret_n, &o->error);
    gad_close(client);
    return r;
}

static struct json_object *listed_json(const struct gad_job_status *job, bool with_user)
{
    struct json_object *object = ctl_status_json(job);
    if (with_user)
        json_object_object_add(object, "uid", json_object_new_uint64(job->uid));
    return object;
}

int verb_jobs(int argc, char **argv)
{
    struct jobs_options o = {0};
    struct gad_job_status *list = NULL;
    size_t n = 0;
    int code;
    if (begin(&list_argp, argc, argv, &o, &code))
        return finish(&o, code);
    if (list_meant(&o, &list, &n))
        return finish(&o, ctl_fail(&o.error, o.json));
    n = joblist_keep(list, n, o.state);
    if (o.json) {
        struct json_object *array = json_object_new_array();
        for (size_t i = 0; i < n; i++)
            json_object_array_add(array, listed_json(&list[i], o.has_user));
        ctl_put_json(array);
    } else {
        joblist_print(list, n, o.has_user);
    }
    free(list);
    return finish(&o, EXIT_OK);
}
