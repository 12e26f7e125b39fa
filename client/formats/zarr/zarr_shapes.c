/* The arithmetic of an array's shape and its chunks, checked once for both versions.
 *
 * Called by zarr_v2.c, zarr_v3.c and whoever needs the innermost chunks.
 */
#include "client/formats/chunk_grid.h"
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <string.h>

const int64_t *zarr_inner_shape(const struct zarr_meta *meta)
{
    return meta->n_shards > 0 ? meta->shards[meta->n_shards - 1].chunk_shape : meta->chunk_shape;
}

int zarr_read_chunks(const struct zarr_doc *doc, struct json_object *list, const char *key,
                     struct zarr_meta *meta)
{
    int r = zarr_sizes(doc, list, key, 0, &meta->ndim, meta->chunk_shape);
    for (int i = 0; i < meta->ndim && r == 0; i++) {
        if (meta->chunk_shape[i] > 0)
            continue;
        if (meta->shape[i] > 0)
            return zarr_bad(doc, key, list, "a list of integers of 1 or more");
        meta->chunk_shape[i] = 1;
    }
    return r;
}

int zarr_check_shapes(const struct zarr_doc *doc, const struct zarr_meta *meta)
{
    char shape[128];
    struct chunk_grid grid;
    struct array array = {.dtype = meta->dtype, .ndim = meta->ndim};
    int64_t item_bytes = (int64_t)dtype_size(meta->dtype), least[ARRAY_MAX_NDIM];
    memcpy(array.shape, meta->shape, sizeof(array.shape));
    int r =
        array_check(&array, doc->name, doc->error); /* the shape alone: strides are still zero */
    if (r)
        return r;
    array_c_strides(meta->ndim, meta->shape, item_bytes, array.strides);
    r = array_check(&array, doc->name, doc->error);
    if (r)
        return r;
    if (meta->ndim == 0)
        return 0;
    for (int i = 0; i < meta->ndim; i++)
        least[i] = max_i64(meta->shape[i], 1);
    if (chunk_grid_init(&grid, meta->ndim, least, meta->chunk_shape, item_bytes))
        return 0;
    array_format_shape(meta->ndim, meta->chunk_shape, shape, sizeof(shape));
    error_set(doc->error, GAD_BAD_SHAPE, doc->name,
              "'%.120s': chunks of shape %s have more bytes than 63 bits can count", doc->file,
              shape);
    error_expected(doc->error, "chunks of less than 2**63 bytes");
    error_found(doc->error, "%s", shape);
    return GAD_BAD_SHAPE;
}
