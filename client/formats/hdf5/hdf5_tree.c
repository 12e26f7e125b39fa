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
#define OWNER     "gpuarrayd-made-by"

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

/* Signs ---------------------------------------------------------------------------------------- */

void hdf5_tree_free_name(hid_t file, char ret_hidden[HDF5_HIDDEN_SIZE])
{
    unsigned n = 1;
    do
        snprintf(ret_hidden, HDF5_HIDDEN_SIZE, HDF5_HIDDEN_PREFIX "%u", n++);
    while (H5Lexists(file, ret_hidden, H5P_DEFAULT) > 0);
}

static hid_t tag_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type > 0 && H5Tset_size(type, HIDDEN_TAG_SIZE) < 0)
        hdf5_close(&type);
    return type;
}

bool hdf5_tree_sign(hid_t dataset, const char *tag)
{
    char padded[HIDDEN_TAG_SIZE] = "";
    _cleanup_hid_ hid_t type = tag_type();
    _cleanup_hid_ hid_t space = H5Screate(H5S_SCALAR);
    snprintf(padded, sizeof(padded), "%s", tag);
    if (type <= 0 || space <= 0)
        return false;
    _cleanup_hid_ hid_t owner = H5Acreate2(dataset, OWNER, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return owner > 0 && H5Awrite(owner, type, padded) >= 0;
}

/* The hidden dataset and who makes it. A link of another kind is not followed, since anybody may
 * have put it there and it leads anywhere. */
static hid_t open_signed(hid_t file, const char *hidden, char ret_tag[HIDDEN_TAG_SIZE])
{
    H5L_info_t info;
    H5A_info_t owner;
    if (H5Lexists(file, hidden, H5P_DEFAULT) <= 0 ||
        H5Lget_info(file, hidden, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
        return H5I_INVALID_HID;
    hid_t dataset = H5Dopen2(file, hidden, H5P_DEFAULT);
    if (dataset <= 0)
        return dataset;
    bool is_signed = H5Aexists(dataset, OWNER) > 0 &&
                     H5Aget_info_by_name(dataset, ".", OWNER, &owner, H5P_DEFAULT) >= 0 &&
                     owner.data_size == HIDDEN_TAG_SIZE;
    _cleanup_hid_ hid_t type = is_signed ? tag_type() : H5I_INVALID_HID;
    _cleanup_hid_ hid_t there = is_signed ? H5Aopen(dataset, OWNER, H5P_DEFAULT) : H5I_INVALID_HID;
    _cleanup_hid_ hid_t space = there > 0 ? H5Aget_space(there) : H5I_INVALID_HID;
    if (type <= 0 || space <= 0 || H5Sget_simple_extent_npoints(space) != 1 ||
        H5Aread(there, type, ret_tag) < 0)
        hdf5_close(&dataset);
    ret_tag[HIDDEN_TAG_SIZE - 1] = '\0';
    return dataset;
}

/* Under the tag alone. */
static hid_t open_own(hid_t file, const char *hidden, const char *tag)
{
    char found[HIDDEN_TAG_SIZE] = "";
    hid_t dataset = open_signed(file, hidden, found);
    if (dataset > 0 && strcmp(found, tag) != 0)
        hdf5_close(&dataset);
    return dataset;
}

static int delete_opened(hid_t file, const char *hidden, hid_t dataset, struct gad_error *error)
{
    haddr_t offset = H5Dget_offset(dataset);
    if (offset != HADDR_UNDEF &&
        file_is_claimed(hdf5_file_fd(file), offset, H5Dget_storage_size(dataset)))
        return error_set(error, GAD_BUSY, NULL, "'%.160s' may still be written to", hidden);
    return H5Ldelete(file, hidden, H5P_DEFAULT) >= 0
               ? 0
               : error_set(error, GAD_IO_ERROR, NULL, "'%.160s' cannot be deleted", hidden);
}

int hdf5_tree_delete(hid_t file, const char *hidden, const char *tag, struct gad_error *error)
{
    _cleanup_hid_ hid_t dataset = open_own(file, hidden, tag);
    return dataset > 0 ? delete_opened(file, hidden, dataset, error) : 0;
}

static bool sweep_link(hid_t file, const char *name)
{
    char tag[HIDDEN_TAG_SIZE] = "";
    _cleanup_hid_ hid_t dataset = open_signed(file, name, tag);
    return dataset > 0 && hidden_is_left(tag) && delete_opened(file, name, dataset, NULL) == 0;
}

void hdf5_tree_sweep(hid_t file)
{
    size_t n_prefix = strlen(HDF5_HIDDEN_PREFIX);
    H5G_info_t info;
    if (H5Gget_info(file, &info) < 0)
        return;
    for (hsize_t i = 0; i < info.nlinks && i < MAX_SWEPT;) {
        char name[HDF5_HIDDEN_SIZE];
        ssize_t n = H5Lget_name_by_idx(file, "/", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof(name),
                                       H5P_DEFAULT);
        int order = n > 0 ? strncmp(name, HDF5_HIDDEN_PREFIX, n_prefix) : -1;
        if (order == 0 && (size_t)n < sizeof(name) && sweep_link(file, name))
            info.nlinks--;
        else if (order > 0)
            return; /* names are in order */
        else
            i++;
    }
}

/* Moving --------------------------------------------------------------------------------------- */

static bool move_link(hid_t file, const char *from, const char *to)
{
    _cleanup_hid_ hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
    return lcpl > 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
           H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0 &&
           H5Lmove(file, from, file, to, lcpl, H5P_DEFAULT) >= 0;
}

/* What was replaced. What may still be written to is left to later outputs; where even that fails
 * it stays. */
static void drop_old(hid_t file, const char *aside, const char *tag)
{
    _cleanup_hid_ hid_t old = H5Dopen2(file, aside, H5P_DEFAULT);
    if (old > 0 && delete_opened(file, aside, old, NULL) && hdf5_tree_sign(old, tag))
        hidden_give_up(tag);
}

/* What is deleted stays in the file's bytes, and the tag is not the same in two runs: so it is
 * written over before. */
static bool wipe_tag(hid_t file, hid_t dataset)
{
    const char nothing[HIDDEN_TAG_SIZE] = "";
    _cleanup_hid_ hid_t type = tag_type();
    hid_t owner = H5Aopen(dataset, OWNER, H5P_DEFAULT);
    bool is_wiped = type > 0 && owner > 0 && H5Awrite(owner, type, nothing) >= 0;
    hdf5_close(&owner);
    return is_wiped && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && H5Adelete(dataset, OWNER) >= 0;
}

/* Without its tag. */
static bool move_signed(hid_t file, const char *hidden, const char *tag, const char *dataset)
{
    _cleanup_hid_ hid_t made = open_own(file, hidden, tag);
    if (made <= 0 || !wipe_tag(file, made))
        return false;
    if (move_link(file, hidden, dataset))
        return true;
    (void)!hdf5_tree_sign(made, tag);
    return false;
}

int hdf5_tree_move(hid_t file, const struct stat *st, const char *hidden, const char *tag,
                   const char *dataset, bool replace, const char *name, struct gad_error *error)
{
    char aside[HDF5_HIDDEN_SIZE], reason[160];
    int r = hdf5_tree_check(file, st, dataset, replace, name, error);
    if (r)
        return r;
    hdf5_tree_free_name(file, aside);
    bool has_old = H5Lexists(file, dataset, H5P_DEFAULT) > 0;
    bool is_done = !has_old || move_link(file, dataset, aside);
    if (is_done && !move_signed(file, hidden, tag, dataset)) {
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
        drop_old(file, aside, tag);
    return 0;
}
