/* Opening what a user names: regular files on file systems that hold bytes, nothing else. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Opens for reading, or for reading and writing in place. `name` is the error's argument. ret_stat
 * is of the open file. not-found, permission-denied, read-only, bad-descriptor, io-error. */
int file_source_open(const char *path, bool for_writing, const char *name, int *ret_fd,
                     struct stat *ret_stat, struct gad_error *error) GAD_MUST_CHECK;

/* Reads until n_bytes are there or the file ends. A negative errno. */
int file_read(int fd, void *buffer, size_t n_bytes, uint64_t offset_bytes,
              size_t *ret_n_bytes) GAD_MUST_CHECK;
/* Writes all. A negative errno. */
int file_write(int fd, const void *buffer, size_t n_bytes, uint64_t offset_bytes) GAD_MUST_CHECK;

/* bad-descriptor naming the kind, for everything but a regular file. */
int file_check_kind(mode_t mode, const char *path, const char *name,
                    struct gad_error *error) GAD_MUST_CHECK;

/* The same, and for files that the kernel makes up when they are read (/proc). */
int file_check_stored(int fd, const struct stat *st, const char *path, const char *name,
                      struct gad_error *error) GAD_MUST_CHECK;

/* An errno of a call on a path as a status. `error_number` is positive. */
int file_path_error(struct gad_error *error, int error_number, const char *path, const char *name);
