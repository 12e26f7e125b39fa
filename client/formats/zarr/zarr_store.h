/* A Zarr store: a directory with arrays and groups in it, each a directory that its metadata file
 * makes a node. */
#pragma once

#include "client/formats/zarr/zarr_json.h"

struct zarr_store {
    int fd;
    char *path;                       /* without slashes at its end */
    struct json_object *consolidated; /* metadata of all nodes by their names, or NULL */
    int consolidated_version;
};

enum zarr_kind { ZARR_NOTHING, ZARR_ARRAY, ZARR_GROUP, ZARR_DAMAGED };

struct zarr_node {
    enum zarr_kind kind;
    int version;
    struct json_object *metadata;   /* of .zarray, .zgroup or zarr.json */
    struct json_object *attributes; /* NULL: none */
    char *file;                     /* where the metadata are, as errors say it */
};

/* not-found, permission-denied, bad-format: it is no directory, or there are no metadata in it. */
int zarr_store_open(const char *path, const char *name, struct zarr_store *ret_store,
                    struct gad_error *error) GAD_MUST_CHECK;
void zarr_store_deinit(struct zarr_store *store);

/* The node `dataset`, "" or "/group/name"; ZARR_NOTHING (and no error) where there is none. Its own
 * metadata count, the store's consolidated ones where its directory has none. */
int zarr_store_node(const struct zarr_store *store, const char *dataset, const char *name,
                    struct zarr_node *ret_node, struct gad_error *error) GAD_MUST_CHECK;
/* Only what the consolidated metadata say; they are there. */
int zarr_store_consolidated(const struct zarr_store *store, const char *dataset, const char *name,
                            struct zarr_node *ret_node, struct gad_error *error) GAD_MUST_CHECK;
void zarr_node_deinit(struct zarr_node *node);

/* The path of a node's directory in the store, for openat(). */
const char *zarr_directory(const char *dataset);

/* Each node at and below `dataset`, a group before what is in it, those of one group by name.
 * Anything but 0 and ZARR_WALK_PAST, which passes over what is in the group, ends the walk and is
 * returned. Nodes whose metadata cannot be read are ZARR_DAMAGED and have none. */
#define ZARR_WALK_PAST 2
typedef int zarr_walk_function(void *userdata, const char *dataset, const struct zarr_node *node);
int zarr_walk(const struct zarr_store *store, const char *dataset, zarr_walk_function *function,
              void *userdata);
