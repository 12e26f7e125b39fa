/* Stores and their nodes.
 *
 *     x.zarr/zarr.json                    version 3: a group, or an array
 *     x.zarr/.zgroup .zattrs              version 2: a group and its attributes
 *     x.zarr/.zmetadata                   all metadata of version 2 once more, in one file
 *     x.zarr/a/.zarray .zattrs 0.0 0.1    version 2: an array and its chunks
 *
 * A file of its own tells more truly what a node is than consolidated metadata do, which may be
 * older, and is as near. Those count where a directory has none, and when nodes are listed, as
 * everybody does who reads them.
 *
 * Called by zarr.c, zarr_list.c and zarr_output.c.
 */
#include "client/formats/zarr/zarr_store.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

const char *zarr_directory(const char *dataset)
{
    return *dataset ? dataset + 1 : ".";
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

static char *file_of(const struct zarr_store *store, const char *dataset, const char *file)
{
    char *text;
    return asprintf(&text, "%s%s/%s", store->path, dataset, file) < 0 ? NULL : text;
}

/* ret_object NULL: there is no such file. ret_file gets its path where there is. */
static int read_file(const struct zarr_store *store, const char *dataset, const char *file,
                     const char *name, struct json_object **ret_object, char **ret_file,
                     struct gad_error *error)
{
    *ret_object = NULL;
    _cleanup_free_ char *shown = file_of(store, dataset, file);
    if (!shown)
        return error_from_errno(error, ENOMEM, name, store->path);
    const struct zarr_doc doc = {shown, name, error};
    int r = zarr_json_read(store->fd, shown + strlen(store->path) + 1, &doc, ret_object);
    if (r == 0 && *ret_object && ret_file)
        *ret_file = steal_ptr(shown);
    return r;
}

static enum zarr_kind kind_of_v3(struct json_object *object)
{
    const char *type = zarr_text(object, "node_type");
    if (type && strcmp(type, "array") == 0)
        return ZARR_ARRAY;
    return type && strcmp(type, "group") == 0 ? ZARR_GROUP : ZARR_NOTHING;
}

/* The metadata are the node's already. */
static int finish_v3(struct zarr_node *node, const char *name, struct gad_error *error)
{
    const struct zarr_doc doc = {node->file, name, error};
    node->version = 3;
    node->kind = kind_of_v3(node->metadata);
    if (node->kind == ZARR_NOTHING)
        return zarr_bad(&doc, "node_type", zarr_member(node->metadata, "node_type"),
                        "\"array\" or \"group\"");
    node->attributes = json_object_get(zarr_member(node->metadata, "attributes"));
    return 0;
}

static int read_v2(const struct zarr_store *store, const char *dataset, const char *name,
                   struct zarr_node *node, struct gad_error *error)
{
    node->version = 2;
    int r = read_file(store, dataset, ".zarray", name, &node->metadata, &node->file, error);
    if (r == 0 && node->metadata)
        node->kind = ZARR_ARRAY;
    if (r == 0 && !node->metadata) {
        r = read_file(store, dataset, ".zgroup", name, &node->metadata, &node->file, error);
        node->kind = node->metadata ? ZARR_GROUP : ZARR_NOTHING;
    }
    if (r == 0 && node->metadata)
        r = read_file(store, dataset, ".zattrs", name, &node->attributes, NULL, error);
    return r;
}

static int read_own(const struct zarr_store *store, const char *dataset, const char *name,
                    struct zarr_node *node, struct gad_error *error)
{
    int r = read_file(store, dataset, "zarr.json", name, &node->metadata, &node->file, error);
    if (r)
        return r;
    return node->metadata ? finish_v3(node, name, error)
                          : read_v2(store, dataset, name, node, error);
}

static struct json_object *consolidated_member(const struct zarr_store *store, const char *dataset,
                                               const char *file)
{
    _cleanup_free_ char *key = NULL;
    const char *slash = *dataset && *file ? "/" : "";
    if (asprintf(&key, "%s%s%s", dataset + (*dataset == '/'), slash, file) < 0)
        return NULL;
    return zarr_member(store->consolidated, key);
}

static struct json_object *take_v2(const struct zarr_store *store, const char *dataset,
                                   struct zarr_node *node)
{
    struct json_object *object = consolidated_member(store, dataset, ".zarray");
    node->kind = object ? ZARR_ARRAY : ZARR_GROUP;
    if (!object)
        object = consolidated_member(store, dataset, ".zgroup");
    node->attributes = json_object_get(consolidated_member(store, dataset, ".zattrs"));
    return object;
}

static int read_consolidated(const struct zarr_store *store, const char *dataset, const char *name,
                             struct zarr_node *node, struct gad_error *error)
{
    bool is_v2 = store->consolidated_version == 2;
    struct json_object *object =
        is_v2 ? take_v2(store, dataset, node) : consolidated_member(store, dataset, "");
    node->file = file_of(store, "", is_v2 ? ".zmetadata" : "zarr.json");
    if (!node->file)
        return error_from_errno(error, ENOMEM, name, store->path);
    node->version = 2;
    node->metadata = json_object_get(object);
    if (!object)
        node->kind = ZARR_NOTHING;
    return object && !is_v2 ? finish_v3(node, name, error) : 0;
}

static int hand_over(int r, struct zarr_node *node, struct zarr_node *ret_node)
{
    if (r)
        zarr_node_deinit(node);
    else
        *ret_node = *node;
    return r;
}

int zarr_store_consolidated(const struct zarr_store *store, const char *dataset, const char *name,
                            struct zarr_node *ret_node, struct gad_error *error)
{
    struct zarr_node node = {ZARR_NOTHING};
    return hand_over(read_consolidated(store, dataset, name, &node, error), &node, ret_node);
}

int zarr_store_node(const struct zarr_store *store, const char *dataset, const char *name,
                    struct zarr_node *ret_node, struct gad_error *error)
{
    struct zarr_node node = {ZARR_NOTHING};
    int r = read_own(store, dataset, name, &node, error);
    if (r == 0 && node.kind == ZARR_NOTHING && store->consolidated && *dataset &&
        faccessat(store->fd, zarr_directory(dataset), F_OK, 0) == 0)
        r = read_consolidated(store, dataset, name, &node, error);
    return hand_over(r, &node, ret_node);
}

void zarr_node_deinit(struct zarr_node *node)
{
    json_put(&node->metadata);
    json_put(&node->attributes);
    free_ptr(&node->file);
}

static int open_directory(struct zarr_store *store, const char *name, struct gad_error *error)
{
    struct stat st;
    store->fd = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->fd >= 0)
        return 0;
    if (errno != ENOTDIR || stat(store->path, &st) < 0 || S_ISDIR(st.st_mode))
        return file_path_error(error, errno, store->path, name);
    error_set(error, GAD_BAD_FORMAT, name,
              "'%.200s' is no directory: a Zarr store is one, and packed stores are not served",
              store->path);
    error_expected(error, "a directory");
    error_found(error, "%s", S_ISREG(st.st_mode) ? "a file" : "something else");
    return GAD_BAD_FORMAT;
}

/* Consolidated metadata that are damaged or of another kind are as good as none: the nodes have
 * their own. */
static int read_root(struct zarr_store *store, const char *name, struct gad_error *error)
{
    _cleanup_json_ struct json_object *object = NULL;
    struct json_object *metadata = NULL;
    int r = read_file(store, "", "zarr.json", name, &object, NULL, NULL);
    if (r == GAD_NO_MEMORY)
        return error_from_errno(error, ENOMEM, name, store->path);
    if (r == 0 && object) {
        metadata = zarr_member(zarr_member(object, "consolidated_metadata"), "metadata");
        store->consolidated_version = 3;
    } else if (r == 0) {
        r = read_file(store, "", ".zmetadata", name, &object, NULL, NULL);
        metadata = r == 0 ? zarr_member(object, "metadata") : NULL;
        store->consolidated_version = 2;
    }
    if (json_object_is_type(metadata, json_type_object))
        store->consolidated = json_object_get(metadata);
    return 0;
}

int zarr_store_open(const char *path, const char *name, struct zarr_store *ret_store,
                    struct gad_error *error)
{
    struct zarr_store store = {.fd = -1};
    store.path = without_slashes(path);
    if (!store.path)
        return error_from_errno(error, ENOMEM, name, path);
    int r = open_directory(&store, name, error);
    if (r == 0)
        r = read_root(&store, name, error);
    if (r) {
        zarr_store_deinit(&store);
        return r;
    }
    *ret_store = store;
    return 0;
}

void zarr_store_deinit(struct zarr_store *store)
{
    close_fd(&store->fd);
    json_put(&store->consolidated);
    free_ptr(&store->path);
}
