/* Attributes of nodes, as Zarr's JSON has them and as everybody else here does. */
#pragma once

#include "client/array.h"
#include "client/formats/selection.h"
#include "client/formats/zarr/zarr_meta.h"
#include "client/formats/zarr/zarr_store.h"

struct zarr_attributes {
    size_t n;
    struct gad_attribute *list; /* names and texts are the JSON object's */
    struct gad_scalar *values;
    const char **texts;
};

/* object NULL: none. -ENOMEM. */
int zarr_attributes_init(struct json_object *object, struct zarr_attributes *ret) GAD_MUST_CHECK;
void zarr_attributes_deinit(struct zarr_attributes *attributes);

/* Hands an array's attributes and the names of its axes to attribute_take() and
 * attribute_take_dimensions(). dataset: where the array is in its store. -ENOMEM. */
int zarr_attributes_take(struct gad_array *array, const char *dataset, const struct zarr_node *node,
                         const struct zarr_meta *meta,
                         const struct selection *selection) GAD_MUST_CHECK;

/* The names of an array's ndim axes, each of which may be NULL; they are the node's. False: none
 * has one. */
bool zarr_dimensions(const struct zarr_node *node, int ndim, const char **ret_names);

/* A float of 8 bytes, as xarray keeps _FillValue in version 3. */
#define ZARR_BASE64_SIZE 13
void zarr_base64(double value, char ret_text[ZARR_BASE64_SIZE]);
