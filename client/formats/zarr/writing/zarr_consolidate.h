/* Consolidated metadata of the groups in which something new has appeared. */
#pragma once

#include "client/formats/zarr/zarr_json.h"
#include "client/formats/zarr/writing/zarr_place.h"

/* A new node. */
struct zarr_new_node {
    unsigned part;                  /* of the place: its name */
    struct json_object *metadata;   /* .zarray, .zgroup, or zarr.json */
    struct json_object *attributes; /* .zattrs; NULL: version 3 */
    bool is_array;
};

/* Those of groups that have some, from the store's root on, learn of the nodes. `place` is
 * committed. 0 or -errno: then some are older than their store. */
int zarr_consolidate(const struct zarr_place *place, unsigned n_nodes,
                     const struct zarr_new_node *nodes) GAD_MUST_CHECK;
