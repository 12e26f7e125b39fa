/* Walking the nodes of a store: by its consolidated metadata where it has some, which is one file
 * however many nodes there are, else by its directories.
 *
 * Arrays are not entered: theirs are chunks, perhaps millions. What is no node is passed by. Links
 * may lead in circles and a store may be anything, so depth and number have limits.
 *
 * Called by zarr_list.c.
 */
#include "client/formats/zarr/zarr_store.h"
#include "proto/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 24
#define MAX_NODES 200000u

struct walk {
    const struct zarr_store *store;
    zarr_walk_function *function;
    void *userdata;
    unsigned n_nodes;
};

static int visit(struct walk *walk, const char *dataset, struct zarr_node *node)
{
    int r = 0;
    if (node->kind != ZARR_NOTHING && walk->n_nodes++ < MAX_NODES)
        r = walk->function(walk->userdata, dataset, node);
    return r;
}

/* Not the hidden ones, among which are those that are being made. */
static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_type != DT_REG;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk_directory(struct walk *walk, const char *dataset, unsigned depth);

static int walk_children(struct walk *walk, const char *dataset, unsigned depth)
{
    struct dirent **entries = NULL;
    int n = scandirat(walk->store->fd, zarr_directory(dataset), &entries, is_shown, by_name);
    int r = 0;
    for (int i = 0; i < n; i++) {
        char child[PATH_MAX];
        int n_chars = snprintf(child, sizeof(child), "%s/%s", dataset, entries[i]->d_name);
        if (r == 0 && (size_t)n_chars < sizeof(child))
            r = walk_directory(walk, child, depth + 1);
        free(entries[i]);
    }
    free(entries);
    return r;
}

static int walk_directory(struct walk *walk, const char *dataset, unsigned depth)
{
    struct zarr_node node;
    if (depth > MAX_DEPTH || walk->n_nodes >= MAX_NODES)
        return 0;
    int r = zarr_store_node(walk->store, dataset, NULL, &node, NULL);
    if (r == GAD_NOT_FOUND) /* a link to a file */
        return 0;
    if (r)
        node = (struct zarr_node){ZARR_DAMAGED};
    r = visit(walk, dataset, &node);
    if (r == 0 && node.kind == ZARR_GROUP)
        r = walk_children(walk, dataset, depth);
    zarr_node_deinit(&node);
    return r == ZARR_WALK_PAST ? 0 : r;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The node that a key of consolidated metadata is of: "a/.zarray" and "a/.zgroup" of version 2,
 * "a" of version 3. NULL: another file's key, or one that leads elsewhere. */
static char *node_of_key(const struct zarr_store *store, const char *key)
{
    static const char *const files[] = {".zarray", ".zgroup"};
    size_t n = strlen(key);
    bool is_node = store->consolidated_version == 3;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && !is_node; i++) {
        size_t n_file = strlen(files[i]);
        if (n < n_file || strcmp(key + n - n_file, files[i]) != 0)
            continue;
        n -= n_file;
        is_node = n == 0 || key[n - 1] == '/';
    }
    while (n > 0 && key[n - 1] == '/')
        n--;
    char *dataset = NULL;
    if (!is_node || n > PATH_MAX || asprintf(&dataset, n ? "/%.*s" : "%.*s", (int)n, key) < 0)
        return NULL;
    return dataset;
}

static bool is_below(const char *dataset, const char *group)
{
    size_t n = strlen(group);
    return strncmp(dataset, group, n) == 0 && (dataset[n] == '/' || dataset[n] == '\0');
}

static int visit_consolidated(struct walk *walk, const char *dataset)
{
    struct zarr_node node;
    if (zarr_store_consolidated(walk->store, dataset, NULL, &node, NULL))
        return 0;
    int r = visit(walk, dataset, &node);
    zarr_node_deinit(&node);
    return r;
}

static int walk_consolidated(struct walk *walk, const char *group)
{
    size_t n = 0, most = (size_t)json_object_object_length(walk->store->consolidated);
    char **names = calloc(most + 1, sizeof(*names));
    struct zarr_node node;
    int r = 0;
    if (!names)
        return 0;
    json_object_object_foreach(walk->store->consolidated, key, value)
    {
        (void)value;
        if (n < most && (names[n] = node_of_key(walk->store, key)) != NULL)
            n++;
    }
    qsort(names, n, sizeof(*names), compare_names);
    /* Version 3 leaves the root out. */
    if (!*group && (n == 0 || *names[0]) &&
        zarr_store_node(walk->store, "", NULL, &node, NULL) == 0) {
        r = visit(walk, "", &node);
        zarr_node_deinit(&node);
    }
    const char *past = r == ZARR_WALK_PAST ? "" : NULL;
    r = past ? 0 : r;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!is_below(names[i], group) || (past && is_below(names[i], past)) ||
            (i > 0 && strcmp(names[i], names[i - 1]) == 0))
            continue;
        r = visit_consolidated(walk, names[i]);
        past = r == ZARR_WALK_PAST ? names[i] : past;
        r = r == ZARR_WALK_PAST ? 0 : r;
    }
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return r;
}

int zarr_walk(const struct zarr_store *store, const char *dataset, zarr_walk_function *function,
              void *userdata)
{
    struct walk walk = {store, function, userdata, 0};
    return store->consolidated ? walk_consolidated(&walk, dataset)
                               : walk_directory(&walk, dataset, 0);
}
