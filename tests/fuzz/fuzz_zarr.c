/* Any bytes as the metadata of a Zarr array, of both versions, and as its attributes.
 *
 * Checked: what is accepted has sane numbers, so that chunks and shards may be computed with them,
 * and names of files that fit; what is refused says why.
 */
#include "client/formats/zarr/zarr_attributes.h"
#include "client/formats/zarr/zarr_chunks.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

static void check_axes(const int *axes, int ndim)
{
    uint64_t seen = 0;
    for (int i = 0; i < ndim; i++) {
        assert(axes[i] >= 0 && axes[i] < ndim && !(seen >> axes[i] & 1));
        seen |= UINT64_C(1) << axes[i];
    }
}

static void check_shards(const struct zarr_meta *meta)
{
    const int64_t *outer = meta->chunk_shape;
    assert(meta->n_shards <= ZARR_MAX_LEVELS);
    for (unsigned k = 0; k < meta->n_shards; k++) {
        const struct zarr_shard *shard = &meta->shards[k];
        uint64_t n = 1;
        check_axes(shard->axes, meta->ndim);
        for (int i = 0; i < meta->ndim; i++) {
            assert(shard->chunk_shape[i] > 0 && outer[i] % shard->chunk_shape[i] == 0);
            n *= (uint64_t)(outer[i] / shard->chunk_shape[i]);
        }
        assert(n == shard->n_chunks && shard->index_bytes / 16 == n);
        outer = shard->chunk_shape;
    }
}

static void check_accepted(const struct zarr_meta *meta)
{
    char key[ZARR_KEY_BYTES];
    int64_t place[ARRAY_MAX_NDIM];
    struct array array = {.dtype = meta->dtype, .ndim = meta->ndim};
    assert(meta->ndim >= 0 && meta->ndim <= ARRAY_MAX_NDIM);
    memcpy(array.shape, meta->shape, sizeof(array.shape));
    assert(array_check(&array, "x", NULL) == 0);
    for (int i = 0; i < meta->ndim; i++) {
        assert(meta->chunk_shape[i] > 0);
        place[i] = INT64_MAX;
    }
    check_axes(meta->order, meta->ndim);
    check_shards(meta);
    zarr_key(meta, place, key);
    assert(strlen(key) < sizeof(key));
    assert(meta->pipeline.n_steps <= CODEC_MAX_STEPS);
    for (unsigned i = 0; i < meta->pipeline.n_steps; i++)
        assert(meta->pipeline.steps[i].codec->decode && meta->pipeline.steps[i].codec->bound);
}

static void try_parse(const struct zarr_doc *doc, struct json_object *object, bool is_v2)
{
    struct zarr_meta meta;
    memset(doc->error, 0, sizeof(*doc->error));
    int r = is_v2 ? zarr_v2_parse(doc, object, &meta) : zarr_v3_parse(doc, object, &meta);
    if (r == 0)
        check_accepted(&meta);
    else
        assert(r > 0 && doc->error->status == (enum gad_status)r && doc->error->message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct gad_error error = {0};
    const struct zarr_doc doc = {"x.zarr/zarr.json", "x", &error};
    struct zarr_attributes attributes;
    struct json_object *object = NULL;
    int r = zarr_json_parse((const char *)data, n_bytes, &doc, &object);
    if (r) {
        assert(r > 0 && error.status == (enum gad_status)r && error.message[0]);
        return 0;
    }
    try_parse(&doc, object, true);
    try_parse(&doc, object, false);
    r = zarr_attributes_init(object, &attributes);
    assert(r == 0 && attributes.n == (size_t)json_object_object_length(object));
    zarr_attributes_deinit(&attributes);
    json_object_put(object);
    return 0;
}
