/* What a command says of its job's journal: at its end, and where it is after a failure. */
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

void ctl_note_journal(const struct gad_array *to, const char *destination, const char *journal_path,
                      int status)
{
    struct stat st;
    char *path = NULL;
    const struct gad_array_info *info = gad_array_info(to);
    if (!info || !info->path || status == GAD_BUSY)
        return;
    if (journal_path)
        path = strdup(journal_path);
    else if (asprintf(&path, "%s.journal", info->path) < 0)
        path = NULL;
    bool is_there = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (is_there && status == GAD_BAD_JOURNAL)
        fprintf(stderr, "the journal is %s\n", path);
    else if (is_there)
        fprintf(stderr, "%s may be added to in part: the same command goes on from %s\n",
                destination ? destination : info->path, path);
    free(path);
}
