/* What verbs of decompositions share.
 *
 * Progress is a line on a terminal, drawn in place after each iteration:
 *
 *     iteration 7 of 50, fit 0.93121, change 2.1e-04, 7 reads, 3 s left
 *
 * Before that, and of what has no iterations, it is the bar of the job that runs.
 */
#include "client/ctl/linalg/linalg_words.h"
#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_NAME "x" /* of a source that has none */

/* Words ---------------------------------------------------------------------------------------- */

static bool has_name(const char *word)
{
    size_t n = strcspn(word, "=:/.[");
    return n > 0 && word[n] == '=';
}

static error_t add_source(struct linalg_words *words, char *word, const struct argp_state *state)
{
    struct ctl_job *job = &words->job;
    struct gad_error error;
    if (has_name(word))
        return ctl_parse_argument(job, word, &error) ? ctl_usage_error(state, "%s", error.message)
                                                     : 0;
    if (job->n_args > 0)
        return ctl_usage_error(state,
                               "one source: '%s' is too much; of several an expression makes "
                               "one: --of 'a - b' a=A.npy b=B.npy",
                               word);
    job->args[0] = (struct gad_argument){.name = SOURCE_NAME};
    job->sources[0] = word;
    job->n_args = 1;
    return 0;
}

error_t linalg_parse(int key, char *arg, struct linalg_words *words, struct argp_state *state)
{
    switch (key) {
    case 'o':
        if (words->destination)
            return ctl_usage_error(state, "there is one destination: '%s' is too much", arg);
        words->destination = arg;
        return 0;
    case 'l': words->run.label = arg; return 0;
    case 'q': words->quiet = true; return 0;
    case LINALG_OPTION_OF: words->of = arg; return 0;
    case LINALG_OPTION_EXPLAIN: words->explain = true; return 0;
    case LINALG_OPTION_ENGINE: words->run.engine = arg; return 0;
    case LINALG_OPTION_PRIORITY: return ctl_read_priority(arg, &words->run.priority, state);
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &words->run.queue_timeout_ms, &words->run.deadline_ms,
                               state);
    case LINALG_OPTION_JSON: words->json = true; return 0;
    case ARGP_KEY_ARG: return add_source(words, arg, state);
    default: return ctl_parse_masking(key, &words->job.masking) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

error_t linalg_check(const struct linalg_words *words, const struct argp_state *state)
{
    if (words->job.n_args == 0)
        return ctl_usage_error(state, "a source is needed, as t.npy");
    if (!words->of && (words->job.n_args > 1 || !words->job.sources[0]))
        return ctl_usage_error(state, "of several sources or numbers: --of EXPR");
    if (!words->destination && !words->explain)
        return ctl_usage_error(state, "a destination is needed: -o f.npz");
    return 0;
}

error_t linalg_read_count(const char *name, const char *text, int64_t *ret,
                          const struct argp_state *state)
{
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
        return 0;
    return ctl_usage_error(state, "%s is a number from 0 on, not '%s'", name, text);
}

error_t linalg_read_number(const char *name, const char *text, double *ret,
                           const struct argp_state *state)
{
    char *end;
    *ret = strtod(text, &end);
    if (end != text && *end == '\0')
        return 0;
    return ctl_usage_error(state, "%s is a number, not '%s'", name, text);
}

/* Running -------------------------------------------------------------------------------------- */

static int draw(void *data, const struct gad_iteration *now)
{
    struct linalg_words *words = data;
    char change[40] = "", fit[40] = "", text[160];
    if (!isnan(now->fit))
        snprintf(fit, sizeof(fit), ", fit %.6g", now->fit);
    if (!isnan(now->change))
        snprintf(change, sizeof(change), ", change %.1e", now->change);
    snprintf(text, sizeof(text), "iteration %u of %u%s%s, %llu reads", now->iteration,
             now->n_iterations, fit, change, (unsigned long long)now->reads.n_reads);
    ctl_progress_count(&words->progress, now->iteration, now->n_iterations,
                       now->seconds_left > 0 ? now->seconds_left : -1, text);
    words->has_drawn = true;
    return 0;
}

static void draw_job(void *data, const struct gad_progress *now)
{
    struct linalg_words *words = data;
    if (!words->has_drawn)
        ctl_progress_draw(&words->progress, now);
}

void linalg_end_progress(struct linalg_words *words)
{
    ctl_progress_end(&words->progress);
    words->has_drawn = false;
}

/* What can be known of it before the data is read, perhaps for hours. */
static int check_destination(const char *path, struct gad_error *error)
{
    _cleanup_free_ char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    size_t n = strlen(path);
    if (!folder)
        return error_from_errno(error, ENOMEM, path, path);
    if (n < 4 || strcasecmp(path + n - 4, ".npz") != 0) {
        error_set(error, GAD_BAD_ARGUMENT, path, "%s is not named as an npz archive", path);
        error_expected(error, "FILE.npz");
        error_found(error, "%.100s", path);
        return GAD_BAD_ARGUMENT;
    }
    if (slash)
        slash[slash == folder] = '\0';
    const char *name = slash ? folder : ".";
    return access(name, W_OK | X_OK) == 0 ? 0 : error_from_errno(error, errno, path, name);
}

int linalg_open(struct linalg_words *words, const char *verb, struct gad_client **ret_client,
                struct gad_error *error)
{
    struct ctl_job *job = &words->job;
    ctl_watch_signals();
    int r = words->destination ? check_destination(words->destination, error) : 0;
    if (r == 0)
        r = ctl_connect(ret_client, error);
    if (r == 0)
        r = ctl_open_sources(job, *ret_client, error);
    if (r)
        return r;
    ctl_warn_packed_job(job);
    words->operand = (struct gad_operand){
        .array = job->args[0].array, .expr = words->of, .n_args = job->n_args, .args = job->args};
    snprintf(words->label, sizeof(words->label), "%s %s", verb,
             words->of ? words->of : job->sources[0]);
    if (!words->run.label)
        words->run.label = words->label;
    ctl_progress_begin(&words->progress, words->quiet || words->json);
    words->run.iteration = draw;
    words->run.progress = draw_job;
    words->run.is_cancelled = ctl_is_cancelled;
    words->run.data = words;
    return 0;
}

void linalg_close(struct linalg_words *words, struct gad_client *client)
{
    ctl_job_deinit(&words->job);
    gad_close(client);
}

/* Outcomes ------------------------------------------------------------------------------------- */

void linalg_add_reads(struct json_object *object, const struct gad_reads *reads)
{
    json_object_object_add(object, "jobs", json_object_new_uint64(reads->n_jobs));
    json_object_object_add(object, "reads", json_object_new_uint64(reads->n_reads));
    json_object_object_add(object, "read_bytes", json_object_new_uint64(reads->read_bytes));
    json_object_object_add(object, "write_bytes", json_object_new_uint64(reads->write_bytes));
}

static struct json_object *reads_json(const struct gad_reads *reads)
{
    struct json_object *object = json_object_new_object();
    linalg_add_reads(object, reads);
    return object;
}

static void print_reads(const char *what, const struct gad_reads *reads)
{
    char bytes[32];
    printf("  %-14s %3llu read%s of the data, %s in %llu job%s\n", what,
           (unsigned long long)reads->n_reads, reads->n_reads == 1 ? " " : "s",
           ctl_format_bytes((double)reads->read_bytes, bytes), (unsigned long long)reads->n_jobs,
           reads->n_jobs == 1 ? "" : "s");
}

void linalg_print_plan(const struct linalg_words *words, const struct gad_linalg_plan *plan)
{
    char carry[32];
    if (words->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "method", json_object_new_string(plan->method));
        json_object_object_add(object, "iterations",
                               json_object_new_int64((int64_t)plan->n_iterations));
        json_object_object_add(object, "start", reads_json(&plan->start));
        json_object_object_add(object, "iteration", reads_json(&plan->iteration));
        json_object_object_add(object, "finish", reads_json(&plan->finish));
        json_object_object_add(object, "total", reads_json(&plan->total));
        json_object_object_add(object, "carry_bytes", json_object_new_uint64(plan->carry_bytes));
        json_object_object_add(object, "seconds", json_object_new_double(plan->seconds));
        ctl_put_json(object);
        return;
    }
    if (plan->n_iterations > 0)
        printf("%s; at most %u iterations\n", plan->method, plan->n_iterations);
    else
        printf("%s\n", plan->method);
    print_reads("to begin", &plan->start);
    if (plan->n_iterations > 0)
        print_reads("an iteration", &plan->iteration);
    if (plan->finish.n_jobs > 0)
        print_reads("at the end", &plan->finish);
    print_reads("in all", &plan->total);
    printf("  %s of the daemon's pool; about %.3g s\n",
           ctl_format_bytes((double)plan->carry_bytes, carry), plan->seconds);
}
