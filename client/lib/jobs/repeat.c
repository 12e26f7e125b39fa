/* gad_repeat(): many steps of time as jobs between two files.
 *
 *     u.npy --8 steps--> .o.npy.repeat-HASH.8.0 --8--> .o.npy.repeat-HASH.16.0 --> ... --> o.npy
 *
 * A job takes as many steps as a tile has room for, at most STEPS_AT_ONCE, in one read and one
 * write. What it makes is a file beside the first destination whose name says how many steps it is
 * after, and of what: a digest of the steps and of the arguments. As every file that a job makes it
 * appears whole or not at all, so these files are the journal: whoever is called with the same
 * steps and arguments goes on from the last step of which all arrays are there. A job's files go
 * when the next job's are there, the last ones when the destinations are.
 */
#include "client/array.h"
#include "client/gpuarrayd-plan.h"
#include "client/lib/arguments/identity.h"
#include "client/lib/jobs/loop_times.h"
#include "client/lib/views/move.h"
#include "proto/error.h"
#include "proto/util.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS_AT_ONCE 8
#define MAX_ARRAYS    16
#define MAX_ARGUMENTS 64 /* of a job */

struct repeating {
    struct gad_client *client;
    const struct gad_repeat *options;
    char *definitions;     /* of functions, in front of the steps */
    char *steps;           /* "u = ..., v = ..." */
    char *folder, *prefix; /* of the files' names, up to the number of steps */
    struct loop_times times;
    uint64_t n_done;
    uint32_t at_once;
    unsigned n_args;
    struct gad_argument args[MAX_ARGUMENTS];
    struct gad_array *arrays[MAX_ARRAYS]; /* of files in between */
};

static int no_memory(struct gad_error *error)
{
    return error_set(error, GAD_NO_MEMORY, NULL, "no memory for the steps");
}

/* ---- texts ---- */

/* Of "f(x) = x*x; g(y) = f(y); f(u)" where the last part begins; -1: a part before it is no
 * function. */
static ssize_t step_begins(const char *expr)
{
    size_t begin = 0;
    for (size_t i = 0; expr[i] != '\0'; i++) {
        if (expr[i] != ';' || expr[i + 1 + strspn(expr + i + 1, " \t\n")] == '\0')
            continue;
        const char *at = expr + begin + strspn(expr + begin, " \t\n");
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || at[n] == '_')
            n++;
        const char *close = strchr(at, ')');
        if (n == 0 || at[n + strspn(at + n, " \t\n")] != '(' || !close || close > expr + i ||
            close[1 + strspn(close + 1, " \t\n")] != '=')
            return -1;
        begin = i + 1;
    }
    return (ssize_t)begin;
}

static int refuse_text(const struct gad_output *output, const char *why, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, output->name, "repeat: %s", why);
    error_expected(error, "functions, f(x) = ...;, and one expression");
    return GAD_BAD_ARGUMENT;
}

static int make_texts(struct repeating *r, struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    r->definitions = strdup("");
    r->steps = strdup("");
    for (unsigned i = 0; i < o->n_outputs; i++) {
        const struct gad_output *output = &o->outputs[i];
        if (!output->expr || !output->name)
            return refuse_text(output, "an array has no name or no step", error);
        ssize_t begin = step_begins(output->expr);
        if (begin < 0)
            return refuse_text(
                output, "what is named before a step would be another thing in each job", error);
        char *steps, *definitions = strndup(output->expr, (size_t)begin);
        size_t n = strlen(output->expr + begin);
        while (n > 0 && strchr(" ;\t\n", output->expr[begin + (ssize_t)n - 1]))
            n--;
        if (!r->steps || !definitions ||
            asprintf(&steps, "%s%s%s = %.*s", r->steps, i > 0 ? ", " : "", output->name, (int)n,
                     output->expr + begin) < 0) {
            free(definitions);
            return no_memory(error);
        }
        free(r->steps);
        r->steps = steps;
        if (strlen(definitions) > strlen(r->definitions)) { /* each has those before it, too */
            char *taken = r->definitions;
            r->definitions = definitions;
            definitions = taken;
        }
        free(definitions);
    }
    return 0;
}

/* ---- files ---- */

/* Beside the first destination. */
static int name_files(struct repeating *r, struct gad_error *error)
{
    const char *to = NULL;
    for (unsigned i = 0; i < r->options->n_outputs && !to; i++)
        to = r->options->outputs[i].to_path;
    if (!to)
        return error_set(error, GAD_BAD_ARGUMENT, "outputs", "repeat: no array goes to a file");
    const char *colon = strstr(to, ":/");
    _cleanup_free_ char *path = strndup(to, colon ? (size_t)(colon - to) : strlen(to));
    uint64_t h = IDENTITY_BASIS;
    if (!path)
        return no_memory(error);
    h = identity_text(identity_text(h, r->definitions), r->steps);
    for (unsigned i = 0; i < r->options->n_args; i++)
        h = identity_argument(h, &r->options->args[i]);
    char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    r->folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    if (!r->folder || asprintf(&r->prefix, ".%.180s.repeat-%016" PRIx64 ".", base, h) < 0) {
        r->prefix = NULL;
        return no_memory(error);
    }
    return 0;
}

static int file_of(const struct repeating *r, uint64_t n_steps, unsigned array, char **ret,
                   struct gad_error *error)
{
    if (asprintf(ret, "%s%s%" PRIu64 ".%u.npy", r->folder, r->prefix, n_steps, array) >= 0)
        return 0;
    *ret = NULL;
    return no_memory(error);
}

static void remove_files(const struct repeating *r, uint64_t n_steps)
{
    for (unsigned i = 0; n_steps > 0 && i < r->options->n_outputs; i++) {
        _cleanup_free_ char *path = NULL;
        if (file_of(r, n_steps, i, &path, NULL) == 0)
            (void)unlink(path);
    }
}

static bool are_there(const struct repeating *r, uint64_t n_steps)
{
    bool are = true;
    for (unsigned i = 0; i < r->options->n_outputs && are; i++) {
        _cleanup_free_ char *path = NULL;
        are = file_of(r, n_steps, i, &path, NULL) == 0 && access(path, R_OK) == 0;
    }
    return are;
}

/* The last step, before the end, of which all arrays are there; others that are there go. */
static void find_done(struct repeating *r)
{
    DIR *folder = opendir(r->folder);
    size_t n_prefix = strlen(r->prefix);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, r->prefix, n_prefix) != 0)
            continue;
        uint64_t n = strtoull(entry->d_name + n_prefix, NULL, 10);
        if (n > r->n_done && n < r->options->n_steps && are_there(r, n)) {
            remove_files(r, r->n_done);
            r->n_done = n;
        }
    }
    if (folder)
        closedir(folder);
}

/* ---- jobs ---- */

static void release(struct repeating *r)
{
    for (unsigned i = 0; i < MAX_ARRAYS; i++) {
        gad_array_release(r->arrays[i]);
        r->arrays[i] = NULL;
    }
}

/* What the steps begin with: what was given, or what the last job made. */
static int open_arrays(struct repeating *r, struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    r->n_args = o->n_args;
    memcpy(r->args, o->args, o->n_args * sizeof(*r->args));
    for (unsigned i = 0; r->n_done > 0 && i < o->n_outputs; i++) {
        _cleanup_free_ char *path = NULL;
        unsigned k = 0;
        int status = file_of(r, r->n_done, i, &path, error);
        if (status == 0)
            status = (int)gad_array_open(r->client, path, &r->arrays[i], error);
        if (status)
            return status;
        while (k < r->n_args && strcmp(r->args[k].name, o->outputs[i].name) != 0)
            k++;
        r->args[k] = (struct gad_argument){.name = o->outputs[i].name, .array = r->arrays[i]};
        r->n_args = k == r->n_args ? k + 1 : r->n_args;
    }
    return 0;
}

struct step_job {
    struct gad_job_options options;
    unsigned n;
    struct gad_output outputs[MAX_ARRAYS];
    char *exprs[MAX_ARRAYS], *paths[MAX_ARRAYS];
};

static void step_job_deinit(struct step_job *job)
{
    for (unsigned i = 0; i < MAX_ARRAYS; i++) {
        free(job->exprs[i]);
        free(job->paths[i]);
    }
}

/* So many steps from n_done on. */
static int make_job(struct repeating *r, uint64_t n_steps, struct step_job *job,
                    struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    bool is_last = r->n_done + n_steps == o->n_steps;
    for (unsigned i = 0; i < o->n_outputs; i++) {
        const char *to = o->outputs[i].to_path;
        if (is_last && !to)
            continue;
        int status = is_last ? 0 : file_of(r, r->n_done + n_steps, i, &job->paths[job->n], error);
        if (status == 0 && asprintf(&job->exprs[job->n], "%srepeat(%" PRIu64 ", %s)[%u]",
                                    r->definitions, n_steps, r->steps, i) < 0)
            status = no_memory(error);
        if (status)
            return status;
        job->outputs[job->n] =
            (struct gad_output){.expr = job->exprs[job->n],
                                .name = o->outputs[i].name,
                                .to_path = is_last ? to : job->paths[job->n],
                                .storage = is_last ? o->outputs[i].storage : NULL};
        job->n++;
    }
    job->options = (struct gad_job_options){.n_args = r->n_args,
                                            .args = r->args,
                                            .n_outputs = job->n,
                                            .outputs = job->outputs,
                                            .engine = o->engine,
                                            .priority = o->priority,
                                            .label = o->label,
                                            .beyond = o->beyond};
    return 0;
}

static uint64_t next_steps(const struct repeating *r)
{
    return min_u64(r->at_once, r->options->n_steps - r->n_done);
}

/* Made and given up: whether the last job could write them is known before the first one runs. */
static int try_destinations(struct repeating *r, const struct gad_plan *plan,
                            struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    int status = 0;
    for (unsigned i = 0; i < o->n_outputs && status == 0; i++) {
        const struct gad_output *output = &o->outputs[i];
        const struct gad_plan_output *planned = plan->outputs[i];
        struct gad_array *made = NULL;
        if (output->to_path)
            status = (int)gad_array_create(r->client, output->to_path, true, planned->dtype,
                                           planned->ndim, planned->shape, planned->fortran_order,
                                           output->storage, &made, error);
        gad_array_release(made);
    }
    return status;
}

/* As many at once as a tile has room for. */
static int choose_steps(struct repeating *r, struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    uint32_t wanted = o->steps_at_once;
    for (r->at_once = wanted > 0 ? wanted : STEPS_AT_ONCE;; r->at_once /= 2) {
        struct step_job job = {.n = 0};
        struct gad_plan *plan = NULL;
        int status = make_job(r, next_steps(r), &job, error);
        if (status == 0)
            status = (int)gad_plan(r->client, &job.options, &plan, error);
        if (status == 0 && !o->only_plans && r->n_done + next_steps(r) < o->n_steps)
            status = try_destinations(r, plan, error);
        gad_plan_free(plan);
        step_job_deinit(&job);
        if (status != GAD_LIMIT_EXCEEDED || wanted > 0 || r->at_once == 1)
            return status;
    }
}

static int run_job(struct repeating *r, struct gad_repeat_outcome *ret, struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    const struct gad_move_options waiting = {.is_cancelled = o->is_cancelled,
                                             .progress_data = o->data};
    struct step_job job = {.n = 0};
    struct gad_job_stats stats;
    uint64_t n_steps = next_steps(r);
    if (o->is_cancelled && o->is_cancelled(o->data))
        return error_set(error, GAD_CANCELLED, NULL, "it was cancelled");
    int status = make_job(r, n_steps, &job, error);
    if (status == 0)
        status = loop_times_give(&r->times, &job.options, error);
    if (status == 0)
        status = move_submit(r->client, &job.options, &waiting, &stats, error);
    status = loop_times_tell(&r->times, status, error);
    step_job_deinit(&job);
    release(r);
    if (status)
        return status;
    remove_files(r, r->n_done);
    r->n_done += n_steps;
    ret->n_jobs++;
    ret->read_bytes += stats.read_bytes;
    ret->write_bytes += stats.write_bytes;
    return 0;
}

static int check(const struct gad_repeat *o, struct gad_error *error)
{
    if (o->n_outputs == 0 || o->n_outputs > MAX_ARRAYS || o->n_args > MAX_ARGUMENTS - MAX_ARRAYS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "outputs",
                         "repeat takes 1 to %d arrays that change, and %d others", MAX_ARRAYS,
                         MAX_ARGUMENTS - MAX_ARRAYS);
    if (o->n_steps > 0)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, "n_steps", "repeat: no steps");
    error_expected(error, "1 or more");
    return GAD_BAD_ARGUMENT;
}

static int run_all(struct repeating *r, struct gad_repeat_outcome *ret, struct gad_error *error)
{
    const struct gad_repeat *o = r->options;
    int status = make_texts(r, error);
    if (status == 0)
        status = name_files(r, error);
    if (status)
        return status;
    find_done(r);
    ret->n_before = r->n_done;
    status = open_arrays(r, error);
    if (status == 0)
        status = choose_steps(r, error);
    ret->steps_at_once = r->at_once;
    if (o->only_plans)
        return status;
    while (status == 0 && r->n_done < o->n_steps) {
        status = run_job(r, ret, error);
        if (status == 0 && o->step && o->step(o->data, r->n_done, o->n_steps) != 0)
            return 0;
        if (status == 0 && r->n_done < o->n_steps)
            status = open_arrays(r, error);
    }
    return status;
}

enum gad_status gad_repeat(struct gad_client *client, const struct gad_repeat *options,
                           struct gad_repeat_outcome *ret_outcome, struct gad_error *error)
{
    struct repeating r = {.client = client, .options = options};
    struct gad_repeat_outcome own;
    struct gad_repeat_outcome *outcome = ret_outcome ? ret_outcome : &own;
    *outcome = (struct gad_repeat_outcome){0};
    int status = check(options, error);
    if (status == 0)
        r.times = loop_times_begin(options->queue_timeout_ms, options->deadline_ms);
    if (status == 0)
        status = run_all(&r, outcome, error);
    outcome->n_done = r.n_done;
    release(&r);
    free(r.definitions);
    free(r.steps);
    free(r.folder);
    free(r.prefix);
    return (enum gad_status)status;
}
