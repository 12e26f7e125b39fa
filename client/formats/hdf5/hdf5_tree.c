/* Moving an output to its place among the groups of an HDF5 file.
 *
 * The dataset was made under a hidden name in the root group. Its final name may need groups that
 * do not exist, and may belong to a dataset that is to be replaced: that one is moved aside first
 * and deleted last, so that no failure in between loses it. One that somebody may still be writing
 * to takes the hidden name that has become free, to be swept later.
 *
 * External links are not followed: the new dataset is in this file, and a link cannot be moved into
 * another one.
 *
 * Called by hdf5_output.c.
 */
#include "client/formats/hdf5/hdf5_tree.h"
#include "client/formats/files/file_claim.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/hdf5_names.h"
#include "client/hidden.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MAX_SWEPT 10000 /* links that are looked at */

enum there { THERE_NOTHING, THERE_GROUP, THERE_DATASET, THERE_OTHER };

static enum there what_is_there(hid_t file, const struct stat *st, const char *path)
{
    if (H5Lexists(file, path, H5P_DEFAULT) <= 0)
        return THERE_NOTHING;
    _cleanup_hid_ hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    if (object <= 0 || !hdf5_is_in_file(object, st))
        return THERE_OTHER;
    switch (H5Iget_type(object)) {
    case H5I_GROUP: return THERE_GROUP;
    case H5I_DATASET: return THERE_DATASET;
    default: return THERE_OTHER;
    }
}

/* The groups on the way. ret_exists: all of them are there. */
static int check_groups(hid_t file, const struct stat *st, char *path, const char *name,
                        bool *ret_exists, struct gad_error *error)
{
    *ret_exists = true;
    for (char *slash = strchr(path + 1, '/'); slash && *ret_exists;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        enum there there = what_is_there(file, st, path);
        int r = 0;
        if (there == THERE_DATASET)
            r = error_set(error, GAD_BAD_ARGUMENT, name, "'%.200s' is a dataset, not a group",
                          path);
        if (there == THERE_OTHER)
            r = error_set(error, GAD_BAD_ARGUMENT, name, "'%.200s' is no group of this file", path);
        *slash = '/';
        if (r)
            return r;
        *ret_exists = there == THERE_GROUP;
    }
    return 0;
}

int hdf5_tree_check(hid_t file, const struct stat *st, const char *dataset, bool replace,
                    const char *name, struct gad_error *error)
{
    bool exists;
    if (strncmp(dataset + 1, HDF5_HIDDEN_PREFIX, strlen(HDF5_HIDDEN_PREFIX)) == 0)
        return error_set(error, GAD_BAD_ARGUMENT, name, "names that begin with %s are taken",
                         HDF5_HIDDEN_PREFIX);
    _cleanup_free_ char *path = strdup(dataset);
    if (!path)
        return error_from_errno(error, ENOMEM, name, dataset);
    int r = check_groups(file, st, path, name, &exists, error);
    if (r || !exists)
        return r;
    switch (what_is_there(file, st, dataset)) {
    case THERE_NOTHING: return 0;
    case THERE_DATASET:
        if (replace)
            return 0;
        return error_set(error, GAD_EXISTS, name, "there is a dataset '%.200s' already", dataset);
    case THERE_GROUP: return error_set(error, GAD_EXISTS, name, "'%.200s' is a group", dataset);
    default:
        return error_set(error, GAD_EXISTS, name, "'%.200s' is there and no dataset of this file",
                         dataset);
    }
}

/* What cannot be opened as a dataset is not known to be free. A link of another kind is not
 * followed, since anybody may have put it there and it leads anywhere: deleting it frees no place.
 */
static bool is_claimed(hid_t file, const char *hidden)
{
    H5L_info_t info;
    if (H5Lget_info(file, hidden, &info, H5P_DEFAULT) < 0)
        return true;
    if (info.type != H5L_TYPE_HARD)
        return false;
    _cleanup_hid_ hid_t dataset = H5Dopen2(file, hidden, H5P_DEFAULT);
    if (dataset <= 0)
        return true;
    haddr_t offset = H5Dget_offset(dataset);
    return offset != HADDR_UNDEF &&
           file_is_claimed(hdf5_file_fd(file), offset, H5Dget_storage_size(dataset));
}

int hdf5_tree_delete(hid_t file, const char *hidden, struct gad_error *error)
{
    if (H5Lexists(file, hidden, H5P_DEFAULT) <= 0)
        return 0;
    if (is_claimed(file, hidden))
        return error_set(error, GAD_BUSY, NULL, "'%.160s' may still be written to", hidden);
    return H5Ldelete(file, hidden, H5P_DEFAULT) >= 0
               ? 0
               : error_set(error, GAD_IO_ERROR, NULL, "'%.160s' cannot be deleted", hidden);
}

/* A dataset that was moved aside has a longer name, and stays: it may be the only one. */
void hdf5_tree_sweep(hid_t file)
{
    size_t n_prefix = strlen(HDF5_HIDDEN_PREFIX);
    H5G_info_t info;
    if (H5Gget_info(file, &info) < 0)
        return;
    for (hsize_t i = 0; i < info.nlinks && i < MAX_SWEPT;) {
        char name[sizeof(HDF5_HIDDEN_PREFIX) + HIDDEN_TAG_SIZE];
        ssize_t n = H5Lget_name_by_idx(file, "/", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof(name),
                                       H5P_DEFAULT);
        bool is_left = n > 0 && (size_t)n < sizeof(name) &&
                       strncmp(name, HDF5_HIDDEN_PREFIX, n_prefix) == 0 &&
                       hidden_is_left(name + n_prefix);
        if (is_left && hdf5_tree_delete(file, name, NULL) == 0)
            info.nlinks--;
        else if (n > 0 && strncmp(name, HDF5_HIDDEN_PREFIX, n_prefix) > 0)
            return; /* names are in order */
        else
            i++;
    }
}

static bool move_link(hid_t file, const char *from, const char *to)
{
    _cleanup_hid_ hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
    return lcpl > 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
           H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0 &&
           H5Lmove(file, from, file, to, lcpl, H5P_DEFAULT) >= 0;
}

/* What was replaced. Where even renaming fails it stays under its longer name. */
static void drop_old(hid_t file, const char *aside, const char *hidden)
{
    if (hdf5_tree_delete(file, aside, NULL) && move_link(file, aside, hidden))
        hidden_give_up(hidden + strlen(HDF5_HIDDEN_PREFIX));
}

int hdf5_tree_move(hid_t file, const struct stat *st, const char *hidden, const char *dataset,
                   bool replace, const char *name, struct gad_error *error)
{
    char aside[128], reason[160];
    int r = hdf5_tree_check(file, st, dataset, replace, name, error);
    if (r)
        return r;
    snprintf(aside, sizeof(aside), "%.100s-old", hidden);
    bool has_old = H5Lexists(file, dataset, H5P_DEFAULT) > 0;
    bool is_done = !has_old || move_link(file, dataset, aside);
    if (is_done && !move_link(file, hidden, dataset)) {
        hdf5_reason(reason, sizeof(reason));
        if (has_old && !move_link(file, aside, dataset))
            return error_set(error, GAD_IO_ERROR, name, "the old '%.120s' is now '%.120s'", dataset,
                             aside);
        is_done = false;
    } else if (!is_done) {
        hdf5_reason(reason, sizeof(reason));
    }
    if (!is_done)
        return error_set(error, GAD_IO_ERROR, name, "'%.120s' cannot be made: %.160s", dataset,
                         reason);
    if (has_old)
        drop_old(file, aside, hidden);
    return 0;
}
