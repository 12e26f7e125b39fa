/* The arithmetic of an array's shape, its shards and its chunks, checked once for both versions.
 *
 * Called by zarr_v2.c, zarr_v3.c and whoever needs shards or the innermost chunks.
 */
#include "client/formats/chunk_grid.h"
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <string.h>

const int64_t *zarr_inner_shape(const struct zarr_meta *meta)
{
    return zarr_shape_at(meta, meta->n_shards);
}

const int64_t *zarr_shape_at(const struct zarr_meta *meta, unsigned level)
{
    return level == 0 ? meta->chunk_shape : meta->shards[level - 1].chunk_shape;
}

uint64_t zarr_shard_of(const struct zarr_meta *meta, unsigned level, const int64_t *place,
                       int64_t ret_place[ARRAY_MAX_NDIM])
{
    const int64_t *shape = zarr_shape_at(meta, level);
    uint64_t number = 0;
    for (int i = 0; i < meta->ndim; i++) {
        ret_place[i] = place[i] / shape[i];
        number =
            number * (uint64_t)divide_up_i64(meta->shape[i], shape[i]) + (uint64_t)ret_place[i];
    }
    return number;
}

uint64_t zarr_entry_of(const struct zarr_meta *meta, unsigned level, const int64_t *place)
{
    const struct zarr_shard *shard = &meta->shards[level];
    const int64_t *shape = zarr_shape_at(meta, level);
    uint64_t entry = 0;
    for (int i = 0; i < meta->ndim; i++) {
        int axis = shard->axes[i];
        int64_t n = shape[axis] / shard->chunk_shape[axis];
        entry = entry * (uint64_t)n + (uint64_t)(place[axis] / shard->chunk_shape[axis] % n);
    }
    return entry;
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
