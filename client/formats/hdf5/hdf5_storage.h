/* Storage of HDF5 datasets that are contiguous: where it is not there yet, or in other files. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>
#include <sys/stat.h>

/* Gives a contiguous dataset that was made and never written to its storage, as its first write
 * would, with the values that it has had so far. fd: of the file of `st`, open for writing. Outside
 * a scope. As hdf5_file_open(); no-space, io-error. */
int hdf5_allocate(const char *path, const char *dataset, const struct stat *st, int fd,
                  const char *name, struct gad_error *error) GAD_MUST_CHECK;

/* Whether the files outside of `path` that a dataset's elements are in are there: not-found or
 * permission-denied with the file's name. */
int hdf5_check_external(hid_t create_plist, const char *path, const char *dataset, const char *name,
                        struct gad_error *error) GAD_MUST_CHECK;
