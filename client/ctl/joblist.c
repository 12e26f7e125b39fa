/* Jobs as text: one in full, or a list of lines; and which of them are meant.
 *
 *          JOB  STATE              TILES    RUNNING  LABEL
 *           17  running             3/12     0.41 s  night shift
 *
 * Called by jobs.c and watch.c.
 */
#include "client/ctl/joblist.h"
#include "client/ctl/stats/stats.h"

#include <inttypes.h>
#include <string.h>

static const char *const states[] = {"queued",    "running", "settling",     "done",  "failed",
                                     "cancelled", "active",  "reconnecting", "paused"};

bool joblist_is_state(const char *state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(states[i], state) == 0)
            return true;
    return false;
}

const char *joblist_state(const struct gad_job_status *job)
{
    return job->is_paused ? "paused" : job->state;
}

bool joblist_is_active(const struct gad_job_status *job)
{
    return strcmp(job->state, "queued") == 0 || strcmp(job->state, "running") == 0 ||
           strcmp(job->state, "settling") == 0 || strcmp(job->state, "reconnecting") == 0;
}

static bool is_of(const struct gad_job_status *job, const char *state)
{
    if (!state)
        return true;
    if (strcmp(state, "active") == 0)
        return joblist_is_active(job);
    return strcmp(state, joblist_state(job)) == 0;
}

size_t joblist_keep(struct gad_job_status *jobs, size_t n_jobs, const char *state)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < n_jobs; i++)
        if (is_of(&jobs[i], state))
            jobs[n_kept++] = jobs[i];
    return n_kept;
}

const char *joblist_tiles(const struct gad_job_status *job, char buffer[JOBLIST_TILES])
{
    snprintf(buffer, JOBLIST_TILES, "%" PRIu64, job->n_tiles);
    return ctl_knows_tiles(job) ? buffer : "?";
}

void joblist_print_status(const struct gad_job_status *s)
{
    char moved[32], tiles[JOBLIST_TILES], hint[CTL_HINT_SIZE];
    printf("job %" PRIu64 ": %s%s\n", s->job, s->state, s->is_paused ? ", paused" : "");
    if (s->label[0])
        printf("  label    %s\n", s->label);
    printf("  tiles    %" PRIu64 " of %s\n", s->tiles_done, joblist_tiles(s, tiles));
    printf("  moved    %s\n", ctl_format_bytes((double)(s->read_bytes + s->write_bytes), moved));
    printf("  queued   %.3f s\n  running  %.3f s\n", s->queued_s, s->running_s);
    if (!s->error.status)
        return;
    printf("  error    %s [%s]\n", s->error.message, gad_status_word((int)s->error.status));
    ctl_hint(&s->error, hint, sizeof(hint));
    if (hint[0])
        printf("  try      %s\n", hint);
}

size_t joblist_print(const struct gad_job_status *jobs, size_t n_jobs, bool with_users)
{
    if (n_jobs == 0) {
        puts("no jobs");
        return 1;
    }
    printf("%13s  %-9s  %13s  %9s  %s%s\n", "JOB", "STATE", "TILES", "RUNNING",
           with_users ? "USER             " : "", "LABEL");
    for (size_t i = 0; i < n_jobs; i++) {
        char tiles[48], all[JOBLIST_TILES], name[STATS_USER_SIZE];
        snprintf(tiles, sizeof(tiles), "%" PRIu64 "/%s", jobs[i].tiles_done,
                 joblist_tiles(&jobs[i], all));
        printf("%13" PRIu64 "  %-9s  %13s  %7.2f s  ", jobs[i].job, joblist_state(&jobs[i]), tiles,
               jobs[i].running_s);
        if (with_users)
            printf("%-15s  ", stats_user_name(jobs[i].uid, name));
        puts(jobs[i].label);
    }
    return n_jobs + 1;
}
