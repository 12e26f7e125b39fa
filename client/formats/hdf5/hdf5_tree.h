/* Links of an HDF5 file: where an output may go, and moving it there. Inside a scope. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Whether a dataset can be put at the path: the groups before it are groups or absent, and nothing
 * is there, or with `replace` a dataset. exists, bad-argument (a dataset in the place of a group,
 * or a group in another file). */
int hdf5_tree_check(hid_t file, const struct stat *st, const char *dataset, bool replace,
                    const char *name, struct gad_error *error) GAD_MUST_CHECK;

/* An output that is being written has a root link under the first of the hidden names that is free,
 * and says by an attribute which process makes it. That name, and not one that tells the maker
 * itself, is the same in two runs of one job, for what a file has held stays in it. */
#define HDF5_HIDDEN_SIZE 32
void hdf5_tree_free_name(hid_t file, char ret_hidden[HDF5_HIDDEN_SIZE]);
/* tag: of hidden.h. False: HDF5 fails. */
bool hdf5_tree_sign(hid_t dataset, const char *tag) GAD_MUST_CHECK;

/* Moves the root link `hidden`, signed with the tag, to the path, making groups; a dataset that is
 * there goes (replace), and the tag too. On failure everything is as it was. exists, bad-argument,
 * io-error. */
int hdf5_tree_move(hid_t file, const struct stat *st, const char *hidden, const char *tag,
                   const char *dataset, bool replace, const char *name,
                   struct gad_error *error) GAD_MUST_CHECK;

/* Deletes the hidden root link of a dataset that is not to be, if it has the tag. busy: somebody
 * else may still be writing to it (file_claim.h), so its place must not be given to another one
 * yet. */
int hdf5_tree_delete(hid_t file, const char *hidden, const char *tag,
                     struct gad_error *error) GAD_MUST_CHECK;

/* Deletes those that killed processes of this user have left, and those that this process has given
 * up (hidden.h), as far as it may. */
void hdf5_tree_sweep(hid_t file);
