/* gpuarrayctl watch: a job, or all of the user's, until they have ended.
 *
 * On a terminal one job is a progress bar on standard error, and the list of jobs is drawn over
 * itself. Anywhere else a line is printed when something has changed, so that a log stays short. A
 * job's exit code is its outcome's, as wait gives it; that of the list is 0 when all have ended.
 * Asks the daemon a few times a second, by the number that the user knows: others' jobs send no
 * progress, and the daemon may restart under a job of submit.
 */
#include "client/ctl/ctl.h"

#include "client/ctl/joblist.h"
#include "client/ctl/agent/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct watch_options {
    uint64_t job;
    double interval_s;
    bool json;
    struct gad_error error;
};

enum { OPTION_JSON = 0x100 };

static const struct argp_option watch_argp_options[] = {
    {"interval", 'n', "SECONDS", 0, "between looks (0.2)", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON at the end", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct watch_options *o = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case 'n':
        o->interval_s = strtod(arg, &end);
        if (end == arg || *end || !(o->interval_s >= 0.01) || o->interval_s > 3600)
            return ctl_usage_error(state, "an interval is 0.01 to 3600 seconds, not '%s'", arg);
        return 0;
    case ARGP_KEY_ARG:
        errno = 0;
        if (o->job)
            return ctl_usage_error(state, "one job, or none for all of yours: '%s' is too much",
                                   arg);
        o->job = strtoull(arg, &end, 10);
        if (arg[0] < '0' || arg[0] > '9' || *end || errno || o->job == 0)
            return ctl_usage_error(state, "'%s' is not the number of a job", arg);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp watch_argp = {watch_argp_options,
                                       parse_option,
                                       "[JOB]",
                                       "Follows one job, or all of yours, until they have ended.\v"
                                       "Examples:\n"
                                       "  gpuarrayctl watch 17\n"
                                       "  gpuarrayctl watch -n 5" CTL_EXIT_CODES,
                                       NULL,
                                       NULL,
                                       NULL};

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL); /* a signal ends it: the caller looks */
}

static void print_line(const struct gad_job_status *s)
{
    char tiles[JOBLIST_TILES];
    printf("job %" PRIu64 ": %s, %" PRIu64 " of %s tiles%s%s\n", s->job, joblist_state(s),
           s->tiles_done, joblist_tiles(s, tiles), s->label[0] ? "  " : "", s->label);
    fflush(stdout);
}

static bool has_changed(const struct gad_job_status *now, const struct gad_job_status *before)
{
    return strcmp(joblist_state(now), joblist_state(before)) != 0 ||
           now->tiles_done != before->tiles_done;
}

static void draw_job(struct ctl_progress *progress, const struct gad_job_status *s)
{
    const struct gad_progress now = {.job = s->job,
                                     .tiles_done = s->tiles_done,
                                     .n_tiles = s->n_tiles,
                                     .read_bytes = s->read_bytes,
                                     .write_bytes = s->write_bytes};
    progress->began_s = ctl_now_s() - s->running_s;
    if (s->tiles_done > 0)
        ctl_progress_draw(progress, &now);
}

static int watch_job(struct watch_options *o)
{
    struct ctl_progress progress;
    struct gad_job_status now, before = {0};
    ctl_progress_begin(&progress, o->json || !isatty(STDERR_FILENO)); /* else changes are told */
    int r;
    for (;;) {
        r = numbers_status(o->job, &now, &o->error);
        if (r || ctl_was_interrupted())
            break;
        if (!o->json && !progress.is_shown && has_changed(&now, &before))
            print_line(&now);
        draw_job(&progress, &now);
        if (!joblist_is_active(&now))
            break;
        before = now;
        sleep_s(o->interval_s);
    }
    ctl_progress_end(&progress);
    if (r || ctl_was_interrupted())
        return r;
    r = numbers_wait(o->job, -1, &o->error);
    if (!r && o->json)
        ctl_put_json(ctl_status_json(&now));
    return r;
}

/* The list over itself: up by the lines of the last one, then each line anew. The screen has to
 * hold all of them, so lines are not wrapped and the oldest jobs are left out. */
static void draw_list(const struct gad_job_status *jobs, size_t n_jobs, size_t *n_lines)
{
    struct winsize size;
    size_t n_rows = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
    size_t most = n_rows > 3 ? n_rows - 2 : n_rows > 0 ? 1 : n_jobs; /* heading, cursor */
    size_t n_out = n_jobs > most ? n_jobs - most : 0;
    if (*n_lines > 0)
        printf("\033[%zuA\033[J", *n_lines);
    fputs("\033[?7l", stdout);
    *n_lines = joblist_print(jobs + n_out, n_jobs - n_out, false);
    fputs("\033[?7h", stdout);
    fflush(stdout);
}

static const struct gad_job_status *find(const struct gad_job_status *jobs, size_t n, uint64_t job)
{
    static const struct gad_job_status none;
    for (size_t i = 0; i < n; i++)
        if (jobs[i].job == job)
            return &jobs[i];
    return &none;
}

static void print_changes(const struct gad_job_status *jobs, size_t n_jobs,
                          const struct gad_job_status *before, size_t n_before)
{
    for (size_t i = 0; i < n_jobs; i++)
        if (has_changed(&jobs[i], find(before, n_before, jobs[i].job)))
            print_line(&jobs[i]);
}

static void put_list_json(const struct gad_job_status *jobs, size_t n_jobs)
{
    struct json_object *array = json_object_new_array();
    for (size_t i = 0; i < n_jobs; i++)
        json_object_array_add(array, ctl_status_json(&jobs[i]));
    ctl_put_json(array);
}

static int watch_all(struct watch_options *o)
{
    struct gad_job_status *before = NULL;
    size_t n_before = 0, n_lines = 0;
    bool is_terminal = isatty(STDOUT_FILENO);
    int r;
    for (;;) {
        struct gad_job_status *jobs;
        size_t n_jobs, n_active = 0;
        r = numbers_list(&jobs, &n_jobs, &o->error);
        if (r)
            break;
        for (size_t i = 0; i < n_jobs; i++)
            n_active += joblist_is_active(&jobs[i]);
        if (!o->json && is_terminal)
            draw_list(jobs, n_jobs, &n_lines);
        else if (!o->json)
            print_changes(jobs, n_jobs, before, n_before);
        if (n_active == 0 && o->json)
            put_list_json(jobs, n_jobs);
        free(before);
        before = jobs;
        n_before = n_jobs;
        if (n_active == 0 || ctl_was_interrupted())
            break;
        sleep_s(o->interval_s);
    }
    free(before);
    return r;
}

int verb_watch(int argc, char **argv)
{
    struct watch_options o = {.interval_s = 0.2};
    if (ctl_parse(&watch_argp, argc, argv, &o))
        return EXIT_USAGE;
    ctl_watch_signals();
    int r = o.job ? watch_job(&o) : watch_all(&o);
    if (ctl_was_interrupted())
        return EXIT_INTERRUPTED;
    return r ? ctl_fail(&o.error, o.json) : EXIT_OK;
}
