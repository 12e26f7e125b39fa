/* A new file that appears under its name whole or not at all.
 *
 * It is written under no name (O_TMPFILE), or a hidden temporary one where the file system has no
 * such files, and gets its name at the commit. Without a commit nothing
 * stays behind; what a killed process has left the user's next output there removes. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct file_output;

/* Makes the file in the directory of `path`, whose symbolic links are followed: the link stays, the
 * file that it points to is replaced. Not where another user has put a link into a directory that
 * is shared as /tmp is: permission-denied. `name` is the error's argument. not-found (the
 * directory), permission-denied, read-only, bad-descriptor. */
int file_output_new(const char *path, const char *name, struct file_output **ret_output,
                    struct gad_error *error) GAD_MUST_CHECK;
/* NULL is allowed; without a commit the temporary file is removed. Returns NULL. */
struct file_output *file_output_free(struct file_output *output);

/* Open for reading and writing, as long as the output. */
int file_output_fd(const struct file_output *output);
/* A path of this process to it, before and after the commit. */
const char *file_output_path(const struct file_output *output);
/* The path that it was made for. */
const char *file_output_target(const struct file_output *output);
/* Whether both have the same target. */
bool file_output_is_for(const struct file_output *output, const struct file_output *other);

/* Opens the file that has the target's name now, for reading. A negative
 * errno; -ENOENT: none has it. */
int file_output_open_current(const struct file_output *output, int *ret_fd) GAD_MUST_CHECK;
/* Whether an open file still has the target's name. */
bool file_output_is_current(const struct file_output *output, int fd);

/* Reserves [offset, offset + n_bytes); no-space with the numbers. What cannot be reserved on this
 * file system is flushed at the commit, so that a lack of space is still seen. */
int file_output_reserve(struct file_output *output, uint64_t offset_bytes, uint64_t n_bytes,
                        const char *name, struct gad_error *error) GAD_MUST_CHECK;

/* From now on what is committed is on the disk, and its name too, when the commit returns. */
void file_output_sync(struct file_output *output);

/* Gives it its name. A file that has the name is replaced and its mode, owner (where the system
 * allows it) and ACL kept; `must_be_new`: exists instead. Once. */
int file_output_commit(struct file_output *output, bool must_be_new, const char *name,
                       struct gad_error *error) GAD_MUST_CHECK;

/* Whether the file may grow by n_bytes, as far as can be told beforehand: no-space. */
int file_check_room(int fd, uint64_t n_bytes, const char *path, const char *name,
                    struct gad_error *error) GAD_MUST_CHECK;

/* The same reservation for any descriptor; ret_is_reserved false: the file system cannot. */
int file_reserve(int fd, uint64_t offset_bytes, uint64_t n_bytes, const char *path,
                 const char *name, bool *ret_is_reserved, struct gad_error *error) GAD_MUST_CHECK;
