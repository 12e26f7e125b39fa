/* The journal of a job that adds into a file. */
#pragma once

#include "client/array.h"
#include "proto/error.h"

struct journal { /* path NULL: none */
    char *path;
    int fd, dir_fd; /* dir_fd: the directory that has it, O_PATH */
};

/* What a job's journal is, and opens it: the file that is named, or with NULL one beside `to`; none
 * if that is not in a file. It is locked until it is closed. *journal stays as it is on failure.
 * bad-argument (no regular file, a link), permission-denied (another user's), busy, and what the
 * system says. */
int journal_open(struct journal *journal, const char *path, const struct gad_array *to,
                 struct gad_error *error) GAD_MUST_CHECK;
/* is_done: its job has ended well; then the file is removed. So it is with nothing in it, unless
 * the job is_lost: somebody may still run it. */
void journal_close(struct journal *journal, bool is_done, bool is_lost);
