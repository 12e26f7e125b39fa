/* By what a file is told from what it was. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_mark {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec written;
};

void file_mark_of(const struct stat *st, struct file_mark *ret_mark);
bool file_mark_is_same(const struct file_mark *a, const struct file_mark *b);
bool file_mark_is_same_file(const struct file_mark *a, const struct file_mark *b);
/* The same of equal marks, and hardly ever of others; never 0. */
uint64_t file_mark_digest(const struct file_mark *mark);

/* Of all files of an array, as another process finds them too: where they are, and what is in them
 * as far as size and time of writing tell. Zeroed at first. */
struct file_sums {
    uint64_t names, contents;
};
void file_sums_name(struct file_sums *sums, const char *path);
void file_sums_content(struct file_sums *sums, const struct file_mark *mark);
void file_sums_add(struct file_sums *sums, const struct file_sums *more);
