/* Consolidated metadata, kept true.
 *
 * Readers believe them before they look at directories: an array that they do not name would not be
 * there for zarr-python and xarray. So each group on the way that has some gets the new nodes into
 * them; its file is written anew under a hidden name, which then takes its name.
 *
 * Called by zarr_output.c, under a lock on the store.
 */
#include "client/formats/zarr/writing/zarr_consolidate.h"
#include "client/formats/zarr/writing/zarr_write.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* From a group, which is the part before `first`, to a node: "b/c". */
static int path_to(const struct zarr_place *place, unsigned first, unsigned part, const char *file,
                   char *buffer, size_t n_bytes)
{
    size_t used = 0;
    *buffer = '\0';
    for (unsigned i = first; i <= part && used < n_bytes; i++)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "%s%s", used ? "/" : "",
                                 place->parts[i]);
    if (*file && used < n_bytes)
        used += (size_t)snprintf(buffer + used, n_bytes - used, "/%s", file);
    return used < n_bytes ? 0 : -ENAMETOOLONG;
}

static int add_one(struct json_object *all, const struct zarr_place *place, unsigned first,
                   unsigned part, const char *file, struct json_object *value)
{
    char key[PATH_MAX];
    int r = path_to(place, first, part, file, key, sizeof(key));
    if (r == 0 && value)
        json_object_object_add(all, key, json_object_get(value));
    return r;
}

static int add_nodes(struct json_object *all, const struct zarr_place *place, unsigned first,
                     unsigned n_nodes, const struct zarr_new_node *nodes, bool is_v2)
{
    int r = 0;
    for (unsigned i = 0; i < n_nodes && r == 0; i++) {
        const struct zarr_new_node *node = &nodes[i];
        const char *file = !is_v2 ? "" : node->is_array ? ".zarray" : ".zgroup";
        r = add_one(all, place, first, node->part, file, node->metadata);
        if (r == 0 && is_v2)
            r = add_one(all, place, first, node->part, ".zattrs", node->attributes);
    }
    return r;
}

static int replace_file(int dir_fd, const char *file, struct json_object *object)
{
    char tag[HIDDEN_TAG_SIZE], temporary[NAME_MAX + 1];
    struct stat st;
    int r = hidden_tag(tag);
    if (r)
        return r;
    hidden_sweep(dir_fd);
    hidden_file_name(file, tag, temporary);
    r = zarr_json_write(dir_fd, temporary, object);
    if (r == 0 && fstatat(dir_fd, file, &st, 0) == 0)
        (void)!fchmodat(dir_fd, temporary, st.st_mode & 07777, 0);
    if (r == 0 && renameat(dir_fd, temporary, dir_fd, file) < 0)
        r = -errno;
    if (r)
        unlinkat(dir_fd, temporary, 0);
    return r;
}

int zarr_consolidate(const struct zarr_place *place, unsigned n_nodes,
                     const struct zarr_new_node *nodes)
{
    bool is_v2 = place->version == 2;
    const char *file = is_v2 ? ".zmetadata" : "zarr.json";
    const struct zarr_doc doc = {file, NULL, NULL};
    int r = 0;
    for (unsigned part = 1; part < place->n_parts && part <= nodes[0].part && r == 0; part++) {
        _cleanup_json_ struct json_object *object = NULL;
        _cleanup_fd_ int fd = zarr_place_open(place, part);
        if (fd < 0 || zarr_json_read(fd, file, &doc, &object) || !object)
            continue;
        struct json_object *all =
            is_v2 ? zarr_member(object, "metadata")
                  : zarr_member(zarr_member(object, "consolidated_metadata"), "metadata");
        if (!json_object_is_type(all, json_type_object))
            continue;
        r = add_nodes(all, place, part, n_nodes, nodes, is_v2);
        if (r == 0)
            r = replace_file(fd, file, object);
    }
    return r;
}
