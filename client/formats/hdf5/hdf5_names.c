/* Names of datasets of a file, as suggestions.
 *
 * Whoever misspells a dataset, or names a group, is told what there is. The walk is bounded in
 * depth and links, since it runs over a file that may have a million objects, or groups in a
 * circle.
 *
 * Called by hdf5.c when a dataset cannot be opened.
 */
#include "client/formats/hdf5/hdf5_names.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/listing/list_memory.h"
#include "client/formats/near_names.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_LINKS  500
#define MAX_GROUPS 64
#define NAME_BYTES NEAR_NAME_BYTES

struct walk {
    hid_t file;
    unsigned n_links, n_groups;
    char groups[MAX_GROUPS][NAME_BYTES]; /* to be walked, "" is the root */
    struct near_names names;
};

static void add_group(struct walk *walk, const char *path)
{
    if (walk->n_groups == MAX_GROUPS)
        walk->names.is_cut = true;
    else
        snprintf(walk->groups[walk->n_groups++], NAME_BYTES, "%.*s", NAME_BYTES - 1, path);
}

static void look_at(struct walk *walk, const char *path)
{
    _cleanup_hid_ hid_t object = H5Oopen(walk->file, path, H5P_DEFAULT);
    H5I_type_t type = object > 0 ? H5Iget_type(object) : H5I_BADID;
    if (type == H5I_DATASET)
        near_names_add(&walk->names, path);
    else if (type == H5I_GROUP)
        add_group(walk, path);
}

static void walk_group(struct walk *walk, const char *path)
{
    H5G_info_t info;
    _cleanup_hid_ hid_t group = H5Gopen2(walk->file, *path ? path : "/", H5P_DEFAULT);
    if (group <= 0 || H5Gget_info(group, &info) < 0)
        return;
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[NAME_BYTES], child[2 * NAME_BYTES];
        if (walk->n_links++ >= MAX_LINKS) {
            walk->names.is_cut = true;
            return;
        }
        ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                       sizeof(name), H5P_DEFAULT);
        if (n <= 0 || (size_t)n >= sizeof(name) || strlen(path) + (size_t)n + 1 >= NAME_BYTES ||
            strncmp(name, HDF5_HIDDEN_PREFIX, strlen(HDF5_HIDDEN_PREFIX)) == 0)
            continue;
        snprintf(child, sizeof(child), "%.*s/%s", NAME_BYTES - 1, path, name);
        look_at(walk, child);
    }
}

/* ---- What is there and cannot be read ---- */

/* Its header's, as HDF5 counts, from the end of a user block. 0: unknown. */
static uint64_t address_of(hid_t file, const char *path)
{
    H5L_info_t link;
    struct object_id id = {.file = 0};
    uint64_t address;
    if (strcmp(path, "/") == 0)
        (void)object_id_of(file, &id);
    else if (H5Lget_info(file, path, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD)
        id = object_id_linked(0, &link);
    memcpy(&address, id.place, sizeof(address));
    return address;
}

/* It is made by a newer HDF5, or damaged. */
static int unreadable_error(hid_t file, const char *path, const char *what, const char *reason,
                            const char *name, struct gad_error *error)
{
    char address[40] = "";
    uint64_t at = address_of(file, path);
    if (at > 0)
        snprintf(address, sizeof(address), " at byte %" PRIu64, at);
    error_set(error, GAD_BAD_FORMAT, name, "HDF5 %d.%d.%d cannot %s '%.100s'%s: %.140s",
              H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, what, path, address, reason);
    hdf5_say_older(error);
    return GAD_BAD_FORMAT;
}

/* Of a link into another file: the file that it names. 0: it is none. */
static int external_error(hid_t file, const char *path, const char *name, struct gad_error *error)
{
    H5L_info_t link;
    const char *other, *object;
    unsigned flags;
    if (H5Lget_info(file, path, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_EXTERNAL)
        return 0;
    _cleanup_free_ char *value = malloc(link.u.val_size);
    if (!value || H5Lget_val(file, path, value, link.u.val_size, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value, link.u.val_size, &flags, &other, &object) < 0)
        return 0;
    error_set(error, GAD_NOT_FOUND, name,
              "'%.80s' is a link to '%.80s' of the file '%.160s', which is not there", path, object,
              other);
    error_expected(error, "'%.100s' in it, beside the file with the link", other);
    error_found(error, "none that can be opened");
    return GAD_NOT_FOUND;
}

/* 0: what is on the way to the dataset can be read, or the way ends. */
static int check_way(hid_t file, const char *dataset, const char *name, struct gad_error *error)
{
    char reason[160], group[NAME_BYTES] = "/", path[NAME_BYTES];
    for (const char *end = dataset; *end;) {
        end += 1 + strcspn(end + 1, "/");
        if ((size_t)snprintf(path, sizeof(path), "%.*s", (int)(end - dataset), dataset) >=
            sizeof(path))
            return 0;
        H5Eclear2(H5E_DEFAULT);
        htri_t is_there = H5Lexists(file, path, H5P_DEFAULT);
        hdf5_reason(reason, sizeof(reason));
        if (is_there < 0)
            return unreadable_error(file, group, "read the group", reason, name, error);
        _cleanup_hid_ hid_t object = is_there ? H5Oopen(file, path, H5P_DEFAULT) : H5I_INVALID_HID;
        hdf5_reason(reason, sizeof(reason));
        int r = is_there && object <= 0 ? external_error(file, path, name, error) : 0;
        if (r)
            return r;
        if (is_there && object <= 0 && H5Oexists_by_name(file, path, H5P_DEFAULT) != 0)
            return unreadable_error(file, path, "open", reason, name, error);
        if (object <= 0 || H5Iget_type(object) != H5I_GROUP)
            return 0;
        strcpy(group, path);
    }
    return 0;
}

int hdf5_no_dataset_error(hid_t file, const char *dataset, const char *name,
                          struct gad_error *error)
{
    char list[NEAR_TEXT_BYTES];
    int r = check_way(file, dataset, name, error);
    if (r)
        return r;
    _cleanup_hid_ hid_t object = H5Oopen(file, dataset, H5P_DEFAULT);
    bool is_group = object > 0 && H5Iget_type(object) == H5I_GROUP;
    struct walk *walk = calloc(1, sizeof(*walk));
    if (!walk)
        return error_from_errno(error, ENOMEM, name, dataset);
    walk->file = file;
    walk->names.wanted = dataset;
    add_group(walk, is_group ? dataset : "");
    for (unsigned i = 0; i < walk->n_groups; i++)
        walk_group(walk, walk->groups[i]);
    if (is_group) {
        near_names_text(&walk->names, list, sizeof(list));
        error_set(error, GAD_NOT_FOUND, name, "'%.80s' is a group%s%s", dataset,
                  *list ? "; it has " : " without datasets", list);
        error_expected(error, "%s", list);
        error_found(error, "'%.100s'", dataset);
    } else {
        (void)near_names_error(&walk->names, "dataset", name, error);
    }
    free(walk);
    return GAD_NOT_FOUND;
}
