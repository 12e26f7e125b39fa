/* The file that HDF5 outputs go to: an existing one, or a new one that several outputs of this
 * process share until the first commit gives it its name. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <sys/stat.h>

struct hdf5_target;

/* Finds or makes the target for a path. ret_fd: the caller's own open file, for reading and
 * writing. `name` is the error's argument. Needs no scope, as all of these. Not thread-safe against
 * itself for one path: outputs of one file are made by one thread, or in turns. */
int hdf5_target_get(const char *path, const char *name, struct hdf5_target **ret_target,
                    int *ret_fd, struct gad_error *error) GAD_MUST_CHECK;
/* NULL allowed. The last one removes a new file that was never named. Returns NULL. */
struct hdf5_target *hdf5_target_unref(struct hdf5_target *target);

/* The path for HDF5, valid as long as the target. */
const char *hdf5_target_path(const struct hdf5_target *target);
const struct stat *hdf5_target_stat(const struct hdf5_target *target);
/* Whether it will go with the last reference, with all that is in it. */
bool hdf5_target_is_temporary(const struct hdf5_target *target);
/* The file is on the disk when a commit returns. */
void hdf5_target_sync(struct hdf5_target *target);
/* Where another file has the name of a new one by now: the target that it is, which is synced as
 * this one; else NULL. */
int hdf5_target_other(struct hdf5_target *target, const char *name, struct hdf5_target **ret_other,
                      struct gad_error *error) GAD_MUST_CHECK;
/* Gives a new file its name, once; nothing for others. exists when the name is taken by now. */
int hdf5_target_commit(struct hdf5_target *target, const char *name,
                       struct gad_error *error) GAD_MUST_CHECK;
