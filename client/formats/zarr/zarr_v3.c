/* Arrays of Zarr version 3: zarr.json with node_type "array".
 *
 *     {"zarr_format": 3, "node_type": "array", "shape": [..], "data_type": "float32",
 *      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [..]}},
 *      "chunk_key_encoding": {"name": "default" or "v2", "configuration": {"separator": "/"}},
 *      "fill_value": .., "codecs": [..]}
 *
 * Codecs come in three sorts, in this order: of arrays (transpose, delta ..), one from an array to
 * bytes (bytes, or sharding_indexed with codecs of its own for what is inside), and of bytes.
 *
 *     chunk of a file    transposed     split into chunks, each transposed, bytes, packed
 *     array's axes   ->  other axes ->  sharding_indexed { transpose, bytes, zstd, .. }
 *
 * All that is kept of the transpositions is in which order the array's axes lie: as the index of
 * each level of shards counts, and in the innermost chunk.
 *
 * Called by zarr.c and zarr_list.c.
 */
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

#define MAX_INDEX_BYTES (UINT64_C(1) << 30)

/* While the codecs of a chunk are read. */
struct reader {
    const struct zarr_doc *doc;
    struct zarr_meta *meta;
    const int64_t *chunk_shape; /* in the array's axes */
    int axes[ARRAY_MAX_NDIM];   /* in which order they lie here */
};

static int read_dtype(const struct zarr_doc *doc, struct json_object *object,
                      struct zarr_meta *meta)
{
    struct json_object *type = zarr_member(object, "data_type");
    const char *text = zarr_name(type);
    if (!text)
        return zarr_bad(doc, "data_type", type, "a name as \"float32\"");
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(text, dtype_name((enum dtype)i)) == 0) {
            meta->dtype = (enum dtype)i;
            return 0;
        }
    }
    error_set(doc->error, GAD_BAD_DTYPE, doc->name,
              "'%.160s': elements of data_type '%.60s' are not served", doc->file, text);
    error_expected(doc->error, "bool, int8 to int64, uint8 to uint64, float32 or float64");
    error_found(doc->error, "%.100s", text);
    return GAD_BAD_DTYPE;
}

static int read_grid(const struct zarr_doc *doc, struct json_object *object, struct zarr_meta *meta)
{
    struct json_object *grid = zarr_member(object, "chunk_grid");
    const char *name = zarr_name(grid);
    if (!name || strcmp(name, "regular") != 0)
        return zarr_bad(doc, "chunk_grid", grid, "\"regular\" with a chunk_shape");
    return zarr_read_chunks(doc, zarr_member(zarr_configuration(grid), "chunk_shape"),
                            "chunk_shape", meta);
}

static int read_names(const struct zarr_doc *doc, struct json_object *object,
                      struct zarr_meta *meta)
{
    struct json_object *encoding = zarr_member(object, "chunk_key_encoding");
    const char *name = zarr_name(encoding);
    bool is_default = name && strcmp(name, "default") == 0;
    if (!is_default && !(name && strcmp(name, "v2") == 0))
        return zarr_bad(doc, "chunk_key_encoding", encoding, "\"default\" or \"v2\"");
    struct json_object *value = zarr_member(zarr_configuration(encoding), "separator");
    const char *text = is_default ? "/" : ".";
    if (value)
        text = zarr_text(zarr_configuration(encoding), "separator");
    if (!text || (strcmp(text, ".") != 0 && strcmp(text, "/") != 0))
        return zarr_bad(doc, "separator", value, "\".\" or \"/\"");
    meta->separator = *text;
    meta->has_prefix = is_default;
    return 0;
}

/* What later versions may add, and says that it may not be passed over. */
static int check_extensions(const struct zarr_doc *doc, struct json_object *object)
{
    static const char *const known[] = {
        "zarr_format",     "node_type",          "shape",
        "data_type",       "chunk_grid",         "fill_value",
        "codecs",          "attributes",         "storage_transformers",
        "dimension_names", "chunk_key_encoding", "consolidated_metadata"};
    struct json_object *transformers = zarr_member(object, "storage_transformers");
    if (transformers && json_object_array_length(transformers) > 0)
        return zarr_bad(doc, "storage_transformers", transformers, "empty");
    json_object_object_foreach(object, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_LENGTH(known) && !is_known; i++)
            is_known = strcmp(key, known[i]) == 0;
        struct json_object *must = zarr_member(value, "must_understand");
        if (!is_known && !(must && !json_object_get_boolean(must)))
            return zarr_bad(doc, key, value, "nothing: it is not known here");
    }
    return 0;
}

/* transpose: axis i of what it makes is axis order[i] of what it gets. */
static int read_transpose(struct reader *reader, struct json_object *codec)
{
    int64_t order[ARRAY_MAX_NDIM];
    int axes[ARRAY_MAX_NDIM], n = reader->meta->ndim;
    uint64_t seen = 0;
    struct json_object *list = zarr_member(zarr_configuration(codec), "order");
    int r = zarr_sizes(reader->doc, list, "order", 0, &n, order);
    if (r)
        return r;
    for (int i = 0; i < n; i++) {
        if (order[i] >= n || seen >> order[i] & 1)
            return zarr_bad(reader->doc, "order", list, "each axis once");
        seen |= UINT64_C(1) << order[i];
        axes[i] = reader->axes[order[i]];
    }
    memcpy(reader->axes, axes, sizeof(axes));
    return 0;
}

static int read_endian(const struct zarr_doc *doc, struct json_object *codec, bool is_needed,
                       bool *ret_is_swapped)
{
    struct json_object *value = zarr_member(zarr_configuration(codec), "endian");
    const char *text = zarr_text(zarr_configuration(codec), "endian");
    if (!value && !is_needed)
        return 0;
    if (!text || (strcmp(text, "little") != 0 && strcmp(text, "big") != 0))
        return zarr_bad(doc, "endian", value, "\"little\" or \"big\"");
    *ret_is_swapped = *text == 'b' && is_needed;
    return 0;
}

/* The codecs of an index: bytes, then perhaps crc32c. */
static int read_index_codecs(struct reader *reader, struct json_object *codecs,
                             struct zarr_shard *shard)
{
    size_t n = json_object_is_type(codecs, json_type_array) ? json_object_array_length(codecs) : 0;
    const char *first = n > 0 ? zarr_name(json_object_array_get_idx(codecs, 0)) : NULL;
    const char *second = n > 1 ? zarr_name(json_object_array_get_idx(codecs, 1)) : NULL;
    shard->has_checksum = second && strcmp(second, "crc32c") == 0;
    if (n > 2 || !first || strcmp(first, "bytes") != 0 || (n == 2 && !shard->has_checksum))
        return zarr_bad(reader->doc, "index_codecs", codecs, "bytes, or bytes and crc32c");
    return read_endian(reader->doc, json_object_array_get_idx(codecs, 0), true,
                       &shard->is_index_swapped);
}

/* The chunks inside, whose shape is given in the order in which the axes lie here. */
static int read_inner_shape(struct reader *reader, struct json_object *list,
                            struct zarr_shard *shard)
{
    int64_t inner[ARRAY_MAX_NDIM];
    int n = reader->meta->ndim;
    int r = zarr_sizes(reader->doc, list, "chunk_shape", 1, &n, inner);
    if (r)
        return r;
    shard->n_chunks = 1;
    for (int i = 0; i < n; i++) {
        int axis = reader->axes[i];
        int64_t outer = reader->chunk_shape[axis];
        shard->axes[i] = axis;
        shard->chunk_shape[axis] = inner[i];
        if (outer % inner[i] != 0)
            return zarr_bad(reader->doc, "chunk_shape", list,
                            "of parts of the shard: %" PRId64 " along axis %d", outer, axis);
        if (__builtin_mul_overflow(shard->n_chunks, (uint64_t)(outer / inner[i]),
                                   &shard->n_chunks) ||
            shard->n_chunks > MAX_INDEX_BYTES / 16)
            return zarr_bad(reader->doc, "chunk_shape", list,
                            "of at most %" PRIu64 " chunks in a shard", MAX_INDEX_BYTES / 16);
    }
    return 0;
}

static int read_codecs(struct reader *reader, struct json_object *codecs);

static int read_shard(struct reader *reader, struct json_object *codec)
{
    struct json_object *values = zarr_configuration(codec);
    struct zarr_meta *meta = reader->meta;
    if (meta->n_shards == ZARR_MAX_LEVELS)
        return zarr_bad(reader->doc, "codecs", codec, "at most %d shards in each other",
                        ZARR_MAX_LEVELS);
    struct zarr_shard *shard = &meta->shards[meta->n_shards];
    struct json_object *where = zarr_member(values, "index_location");
    const char *location = where ? zarr_text(values, "index_location") : "end";
    if (!location || (strcmp(location, "start") != 0 && strcmp(location, "end") != 0))
        return zarr_bad(reader->doc, "index_location", where, "\"start\" or \"end\"");
    shard->is_index_first = *location == 's';
    int r = read_inner_shape(reader, zarr_member(values, "chunk_shape"), shard);
    if (r == 0)
        r = read_index_codecs(reader, zarr_member(values, "index_codecs"), shard);
    if (r)
        return r;
    shard->index_bytes = 16 * shard->n_chunks + (shard->has_checksum ? 4 : 0);
    meta->n_shards++;
    reader->chunk_shape = shard->chunk_shape;
    return read_codecs(reader, zarr_member(values, "codecs"));
}

/* The one that makes bytes of an array. */
static int read_array_to_bytes(struct reader *reader, struct json_object *codec,
                               struct json_object *codecs, size_t n_behind)
{
    const struct zarr_meta *meta = reader->meta;
    if (strcmp(zarr_name(codec), "bytes") == 0) {
        int r =
            read_endian(reader->doc, codec, dtype_size(meta->dtype) > 1, &reader->meta->is_swapped);
        if (r == 0 && meta->is_swapped && meta->pipeline.n_steps > 0)
            r = zarr_bad(reader->doc, "endian", codec, "\"little\" behind codecs of elements");
        return r;
    }
    if (meta->pipeline.n_steps > 0 || n_behind > 0)
        return zarr_bad(reader->doc, "codecs", codecs,
                        "without other codecs than transpose beside sharding_indexed");
    return read_shard(reader, codec);
}

static int read_codecs(struct reader *reader, struct json_object *codecs)
{
    bool has_bytes = false;
    if (!json_object_is_type(codecs, json_type_array))
        return zarr_bad(reader->doc, "codecs", codecs, "a list of codecs");
    size_t n = json_object_array_length(codecs);
    for (size_t i = 0; i < n; i++) {
        struct json_object *codec = json_object_array_get_idx(codecs, i);
        const char *name = zarr_name(codec);
        if (!name)
            return zarr_bad(reader->doc, "codecs", codec, "a codec with a name");
        bool is_last_of_array = strcmp(name, "bytes") == 0 || strcmp(name, "sharding_indexed") == 0;
        int r;
        if (is_last_of_array && has_bytes)
            return zarr_bad(reader->doc, "codecs", codecs, "one codec from an array to bytes");
        if (is_last_of_array)
            r = read_array_to_bytes(reader, codec, codecs, n - i - 1);
        else if (strcmp(name, "transpose") == 0 && !has_bytes &&
                 reader->meta->pipeline.n_steps == 0)
            r = read_transpose(reader, codec);
        else
            r = zarr_add_codec(reader->doc, "codecs", name, zarr_configuration(codec), reader->meta,
                               &reader->meta->pipeline);
        if (r)
            return r;
        has_bytes |= is_last_of_array;
    }
    return has_bytes
               ? 0
               : zarr_bad(reader->doc, "codecs", codecs, "with one codec from array to bytes");
}

static int read_elements(const struct zarr_doc *doc, struct json_object *object,
                         struct zarr_meta *meta)
{
    struct reader reader = {.doc = doc, .meta = meta, .chunk_shape = meta->chunk_shape};
    for (int i = 0; i < meta->ndim; i++)
        reader.axes[i] = i;
    int r = read_codecs(&reader, zarr_member(object, "codecs"));
    memcpy(meta->order, reader.axes, sizeof(meta->order));
    /* The byte order of the fill value is known with the codecs. */
    return r ? r : zarr_fill_parse(doc, zarr_member(object, "fill_value"), meta);
}

int zarr_v3_parse(const struct zarr_doc *doc, struct json_object *object,
                  struct zarr_meta *ret_meta)
{
    struct zarr_meta meta = {.version = 3, .ndim = -1};
    const char *type = zarr_text(object, "node_type");
    if (zarr_integer(object, "zarr_format", 0) != 3)
        return zarr_bad(doc, "zarr_format", zarr_member(object, "zarr_format"), "3");
    if (!type || strcmp(type, "array") != 0)
        return zarr_bad(doc, "node_type", zarr_member(object, "node_type"), "\"array\"");
    int r = read_dtype(doc, object, &meta);
    if (r == 0)
        r = zarr_sizes(doc, zarr_member(object, "shape"), "shape", 0, &meta.ndim, meta.shape);
    if (r == 0)
        r = read_grid(doc, object, &meta);
    if (r == 0)
        r = zarr_check_shapes(doc, &meta);
    if (r == 0)
        r = read_names(doc, object, &meta);
    if (r == 0)
        r = check_extensions(doc, object);
    if (r == 0)
        r = read_elements(doc, object, &meta);
    if (r)
        return r;
    *ret_meta = meta;
    return 0;
}
