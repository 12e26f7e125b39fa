/* What a command says of its job's journal: at its end, and where it is after a failure.
 *
 * A journal is the daemon's, and what it says is not read here. That it changed while the job was
 * there tells that the job began; a file that did not may be anything. */
#include "client/ctl/ctl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void ctl_print_journal(const struct gad_job_stats *stats)
{
    if (strcmp(stats->journal, "complete") == 0)
        fprintf(stderr, "the journal was complete: nothing was left to add\n");
    if (strcmp(stats->journal, "continued") == 0)
        fprintf(stderr, "went on from the journal\n");
}

void ctl_look_at_journal(const struct gad_array *to, const char *destination, const char *path,
                         struct ctl_journal *ret)
{
    const struct gad_array_info *info = gad_array_info(to);
    *ret = (struct ctl_journal){.path = NULL};
    if (!info || !info->path)
        return;
    if (path)
        ret->path = strdup(path);
    else if (asprintf(&ret->path, "%s.journal", info->path) < 0)
        ret->path = NULL;
    ret->destination = destination ? destination : info->path;
    ret->was_there = ret->path && stat(ret->path, &ret->before) == 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether somebody wrote to it: this job, whose lock it has meanwhile. */
static bool is_changed(const struct ctl_journal *journal, const struct stat *now)
{
    const struct stat *before = &journal->before;
    return !journal->was_there || now->st_dev != before->st_dev || now->st_ino != before->st_ino ||
           now->st_size != before->st_size || !is_same_time(&now->st_mtim, &before->st_mtim);
}

void ctl_note_journal(const struct ctl_journal *journal, int status)
{
    struct stat now;
    if (!journal->path || status == GAD_BUSY || stat(journal->path, &now) || !S_ISREG(now.st_mode))
        return;
    if (status == GAD_BAD_JOURNAL)
        fprintf(stderr, "the file taken for the journal is %s\n", journal->path);
    else if (is_changed(journal, &now))
        fprintf(stderr, "%s may be added to in part: the same command goes on from %s\n",
                journal->destination, journal->path);
    else
        fprintf(stderr,
                "nothing was written to %s, which was there before: if it is a journal of "
                "this command, that goes on from it\n",
                journal->path);
}

void ctl_journal_deinit(struct ctl_journal *journal)
{
    free(journal->path);
    journal->path = NULL;
}
