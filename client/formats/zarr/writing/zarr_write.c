/* Metadata of what is written, as zarr-python writes them.
 *
 * Codecs are those of a pipeline, by the names that each version has for them: what version 3 has
 * no name for is "numcodecs.NAME" there, which zarr-python reads as well. The fill value is 0 in
 * version 3, so a chunk of zeros need not be stored; in version 2 xarray takes it for the value of
 * what was not measured, so it is that, or there is none.
 *
 * Called by zarr_output.c.
 */
#include "client/formats/zarr/writing/zarr_write.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/zarr_attributes.h"
#include "proto/util.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOSC_ITEM_BYTES = 2, BLOSC_LEVEL = 4, BLOSC_SHUFFLE = 5, BLOSC_CODEC = 6 };

/* Chunks and codecs --------------------------------------------------------------------------- */

static int set_pipeline(const struct storage *storage, const char *name, struct zarr_meta *meta,
                        struct gad_error *error)
{
    meta->pipeline = storage->pipeline;
    if (!storage->says_packing) {
        meta->pipeline.n_steps = 1;
        meta->pipeline.steps[0] =
            (struct codec_step){.codec = codec_of_name("zstd"), .n_values = 1, .values = {0}};
    }
    for (unsigned i = 0; i < meta->pipeline.n_steps; i++) {
        struct codec_step *step = &meta->pipeline.steps[i];
        if (!step->codec->zarr_name) {
            error_set(error, GAD_BAD_ARGUMENT, name, "Zarr has no codec '%s'", step->codec->name);
            error_expected(error, "none, gzip, zlib, zstd, bz2, lzma, lz4 or blosc");
            error_found(error, "%s", step->codec->name);
            return GAD_BAD_ARGUMENT;
        }
        step->is_optional = false; /* a chunk does not say what was left out */
    }
    return 0;
}

static void set_shards(const struct storage *storage, struct zarr_meta *meta)
{
    const size_t n_bytes = sizeof(meta->chunk_shape);
    meta->n_shards = storage->n_shard_levels;
    memcpy(meta->shards[meta->n_shards - 1].chunk_shape, meta->chunk_shape, n_bytes);
    memcpy(meta->chunk_shape, storage->shard_shapes[0], n_bytes);
    for (unsigned level = 1; level < meta->n_shards; level++)
        memcpy(meta->shards[level - 1].chunk_shape, storage->shard_shapes[level], n_bytes);
    for (unsigned level = 0; level < meta->n_shards; level++) {
        struct zarr_shard *shard = &meta->shards[level];
        shard->n_chunks = 1;
        shard->has_checksum = true;
        for (int i = 0; i < meta->ndim; i++) {
            shard->axes[i] = i;
            shard->n_chunks *= (uint64_t)(zarr_shape_at(meta, level)[i] / shard->chunk_shape[i]);
        }
        shard->index_bytes = 16 * shard->n_chunks + 4;
    }
}

/* Axes of a chunk: in the array's order, or from the last to the first. */
static bool is_straight(const struct zarr_meta *meta)
{
    for (int i = 0; i < meta->ndim; i++)
        if (meta->order[i] != i)
            return false;
    return true;
}

static bool is_reversed(const struct zarr_meta *meta)
{
    for (int i = 0; i < meta->ndim; i++)
        if (meta->order[i] != meta->ndim - 1 - i)
            return false;
    return true;
}

int zarr_meta_make(const struct storage *storage, enum dtype dtype, int ndim, const int64_t *shape,
                   int version, const char *name, struct zarr_meta *ret_meta,
                   struct gad_error *error)
{
    struct zarr_meta meta = {
        .version = version,
        .dtype = dtype,
        .ndim = ndim,
        .separator = version == 3 ? '/' : '.',
        .has_prefix = version == 3,
        .has_fill = version == 3,
    };
    const struct zarr_doc doc = {"the new array", name, error};
    for (int i = 0; i < ndim; i++) {
        meta.shape[i] = shape[i] == GAD_UNKNOWN_LENGTH ? 0 : shape[i];
        meta.order[i] = storage->is_transposed ? storage->order[i] : i;
    }
    if (storage->has_chunks)
        memcpy(meta.chunk_shape, storage->chunk_shape, (size_t)ndim * sizeof(*shape));
    else
        storage_choose_chunks(dtype, ndim, shape, meta.chunk_shape);
    if (storage->n_shard_levels > 0 && version == 2)
        return error_set(error, GAD_BAD_ARGUMENT, name,
                         "a store of Zarr version 2 has no shards: choose another store");
    if (version == 2 && !is_straight(&meta) && !is_reversed(&meta))
        return error_set(error, GAD_BAD_ARGUMENT, name,
                         "a store of Zarr version 2 has axes in their order or in the reverse: "
                         "choose another store, or 'transpose' alone");
    if (storage->n_shard_levels > 0)
        set_shards(storage, &meta);
    int r = set_pipeline(storage, name, &meta, error);
    if (r == 0)
        r = zarr_check_shapes(&doc, &meta);
    if (r == 0)
        *ret_meta = meta;
    return r;
}

/* JSON ----------------------------------------------------------------------------------------- */

static void add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

static void add_number(struct json_object *object, const char *key, int64_t number)
{
    json_object_object_add(object, key, json_object_new_int64(number));
}

static struct json_object *sizes_json(int n, const int64_t *sizes)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < n; i++)
        json_object_array_add(list, json_object_new_int64(sizes[i]));
    return list;
}

/* {"name": name, "configuration": values} */
static struct json_object *named(const char *name, struct json_object *values)
{
    struct json_object *object = json_object_new_object();
    add_text(object, "name", name);
    if (values)
        json_object_object_add(object, "configuration", values);
    return object;
}

static void add_blosc(struct json_object *values, const struct codec_step *step, int version)
{
    static const char *const codecs[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
    static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
    uint32_t codec = step->values[BLOSC_CODEC], shuffle = step->values[BLOSC_SHUFFLE];
    add_text(values, "cname", codecs[codec < ARRAY_LENGTH(codecs) ? codec : 1]);
    add_number(values, "clevel", step->values[BLOSC_LEVEL]);
    if (version == 3) {
        add_text(values, "shuffle", shuffles[shuffle < ARRAY_LENGTH(shuffles) ? shuffle : 1]);
        add_number(values, "typesize", step->values[BLOSC_ITEM_BYTES]);
    } else {
        add_number(values, "shuffle", shuffle);
    }
    add_number(values, "blocksize", 0);
}

static struct json_object *values_json(const struct codec_step *step, int version)
{
    struct json_object *values = json_object_new_object();
    const char *name = step->codec->zarr_name;
    if (strcmp(name, "blosc") == 0) {
        add_blosc(values, step, version);
    } else if (zarr_is_of_elements(step)) {
        add_text(values, "dtype", dtype_typestr(step->dtype, false));
        add_text(values, "astype", dtype_typestr(step->stored, false));
        if (step->scale != 0) {
            json_object_object_add(values, "offset", json_object_new_double(step->offset));
            json_object_object_add(values, "scale", json_object_new_double(step->scale));
        }
    } else if (strcmp(name, "shuffle") == 0) {
        add_number(values, "elementsize", step->values[0]);
    } else if (strcmp(name, "lz4") == 0) {
        add_number(values, "acceleration", 1);
    } else if (strcmp(name, "crc32") == 0 || strcmp(name, "adler32") == 0) {
        add_text(values, "location", "start");
    } else if (step->n_values > 0 && strcmp(name, "crc32c") != 0) {
        add_number(values, strcmp(name, "lzma") == 0 ? "preset" : "level",
                   (int32_t)step->values[0]);
        if (strcmp(name, "zstd") == 0)
            json_object_object_add(values, "checksum", json_object_new_boolean(false));
    }
    return values;
}

static struct json_object *step_json(const struct codec_step *step, int version)
{
    static const char *const own[] = {"blosc", "gzip", "zstd", "crc32c"};
    const char *name = step->codec->zarr_name;
    struct json_object *values = values_json(step, version);
    char prefixed[64];
    if (version == 2) {
        add_text(values, "id", name);
        return values;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        if (strcmp(own[i], name) == 0)
            return named(name, values);
    snprintf(prefixed, sizeof(prefixed), "numcodecs.%.40s", name);
    return named(prefixed, values);
}

static struct json_object *bytes_json(enum dtype dtype)
{
    struct json_object *values = NULL;
    if (dtype_size(dtype) > 1) {
        values = json_object_new_object();
        add_text(values, "endian", "little");
    }
    return named("bytes", values);
}

static struct json_object *chunk_codecs_json(const struct zarr_meta *meta)
{
    struct json_object *list = json_object_new_array();
    const struct codec_step *steps = meta->pipeline.steps;
    enum dtype stored = meta->dtype;
    unsigned i = 0;
    if (!is_straight(meta)) {
        struct json_object *values = json_object_new_object(), *order = json_object_new_array();
        for (int k = 0; k < meta->ndim; k++)
            json_object_array_add(order, json_object_new_int(meta->order[k]));
        json_object_object_add(values, "order", order);
        json_object_array_add(list, named("transpose", values));
    }
    for (; i < meta->pipeline.n_steps && zarr_is_of_elements(&steps[i]); i++) {
        json_object_array_add(list, step_json(&steps[i], 3));
        stored = steps[i].stored;
    }
    json_object_array_add(list, bytes_json(stored));
    for (; i < meta->pipeline.n_steps; i++)
        json_object_array_add(list, step_json(&steps[i], 3));
    return list;
}

/* Of a level: shards, or the chunks in the innermost of them. */
static struct json_object *codecs_json(const struct zarr_meta *meta, unsigned level)
{
    if (level == meta->n_shards)
        return chunk_codecs_json(meta);
    struct json_object *list = json_object_new_array(), *index = json_object_new_array();
    struct json_object *values = json_object_new_object();
    json_object_object_add(values, "chunk_shape",
                           sizes_json(meta->ndim, meta->shards[level].chunk_shape));
    json_object_object_add(values, "codecs", codecs_json(meta, level + 1));
    json_object_array_add(index, bytes_json(DTYPE_UINT64));
    json_object_array_add(index, named("crc32c", NULL));
    json_object_object_add(values, "index_codecs", index);
    add_text(values, "index_location", "end");
    json_object_array_add(list, named("sharding_indexed", values));
    return list;
}

static struct json_object *zero_json(enum dtype dtype)
{
    if (dtype == DTYPE_BOOL)
        return json_object_new_boolean(false);
    return dtype_is_float(dtype) ? json_object_new_double_s(0, "0.0") : json_object_new_int(0);
}

/* A float that JSON has not is a text, as in fill values. */
static struct json_object *scalar_json(const struct gad_scalar *scalar)
{
    double number = scalar->float_value;
    switch (scalar->kind) {
    case GAD_SCALAR_BOOL: return json_object_new_boolean(scalar->int_value != 0);
    case GAD_SCALAR_INT: return json_object_new_int64(scalar->int_value);
    case GAD_SCALAR_UINT: return json_object_new_uint64(scalar->uint_value);
    case GAD_SCALAR_FLOAT:
        if (isnan(number))
            return json_object_new_string("NaN");
        if (isinf(number))
            return json_object_new_string(number > 0 ? "Infinity" : "-Infinity");
        return json_object_new_double(number);
    default: return NULL;
    }
}

static struct json_object *attribute_json(const struct meaning_attribute *attribute)
{
    if (attribute->text)
        return json_object_new_string(attribute->text);
    if (attribute->n_values == 1)
        return scalar_json(attribute->values);
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < attribute->n_values; i++)
        json_object_array_add(list, scalar_json(&attribute->values[i]));
    return list;
}

static struct json_object *dimensions_json(int ndim, const struct carried *carried)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < ndim; i++)
        json_object_array_add(list, json_object_new_string(carried->dimensions[i]));
    return list;
}

/* The value of what was not measured, as xarray has it where axes have names: in version 2 it is
 * the array's own fill value, in version 3 an attribute, of floats in base64. */
static const struct gad_scalar *fill_of(const struct carried *carried)
{
    for (unsigned i = 0; carried && carried->has_dimensions && i < carried->n_attributes; i++) {
        const struct meaning_attribute *attribute = &carried->attributes[i];
        if (strcmp(attribute->name, "_FillValue") == 0 && !attribute->text &&
            attribute->n_values == 1)
            return attribute->values;
    }
    return NULL;
}

static struct json_object *fill_json(const struct zarr_meta *meta, const struct gad_scalar *fill)
{
    char text[ZARR_BASE64_SIZE];
    if (meta->version == 2 || !dtype_is_float(meta->dtype))
        return scalar_json(fill);
    zarr_base64(fill->kind == GAD_SCALAR_FLOAT  ? fill->float_value
                : fill->kind == GAD_SCALAR_UINT ? (double)fill->uint_value
                                                : (double)fill->int_value,
                text);
    return json_object_new_string(text);
}

struct json_object *zarr_attributes_json(const struct zarr_meta *meta,
                                         const struct carried *carried)
{
    struct json_object *object = json_object_new_object();
    const struct gad_scalar *fill = fill_of(carried);
    for (unsigned i = 0; carried && i < carried->n_attributes; i++) {
        const struct meaning_attribute *attribute = &carried->attributes[i];
        bool is_fill = fill && attribute->values == fill;
        if (!is_fill || meta->version == 3)
            json_object_object_add(object, attribute->name,
                                   is_fill ? fill_json(meta, fill) : attribute_json(attribute));
    }
    if (meta->version == 2 && carried && carried->has_dimensions)
        json_object_object_add(object, "_ARRAY_DIMENSIONS", dimensions_json(meta->ndim, carried));
    return object;
}

static struct json_object *v2_json(const struct zarr_meta *meta, const struct carried *carried)
{
    struct json_object *object = json_object_new_object(), *filters = NULL;
    const struct gad_scalar *fill = fill_of(carried);
    const struct codec_step *steps = meta->pipeline.steps;
    unsigned n = meta->pipeline.n_steps;
    unsigned n_filters = n > 0 && !zarr_is_of_elements(&steps[n - 1]) ? n - 1 : n;
    add_number(object, "zarr_format", 2);
    json_object_object_add(object, "shape", sizes_json(meta->ndim, meta->shape));
    json_object_object_add(object, "chunks", sizes_json(meta->ndim, meta->chunk_shape));
    add_text(object, "dtype", dtype_typestr(meta->dtype, false));
    json_object_object_add(object, "fill_value", fill ? fill_json(meta, fill) : NULL);
    add_text(object, "order", is_straight(meta) ? "C" : "F");
    if (n_filters > 0)
        filters = json_object_new_array();
    for (unsigned i = 0; i < n_filters; i++)
        json_object_array_add(filters, step_json(&steps[i], 2));
    json_object_object_add(object, "filters", filters);
    json_object_object_add(object, "compressor",
                           n > n_filters ? step_json(&steps[n - 1], 2) : NULL);
    add_text(object, "dimension_separator", ".");
    return object;
}

static struct json_object *v3_json(const struct zarr_meta *meta, const struct carried *carried)
{
    struct json_object *object = json_object_new_object();
    struct json_object *grid = json_object_new_object(), *keys = json_object_new_object();
    add_number(object, "zarr_format", 3);
    add_text(object, "node_type", "array");
    json_object_object_add(object, "shape", sizes_json(meta->ndim, meta->shape));
    add_text(object, "data_type", dtype_name(meta->dtype));
    json_object_object_add(grid, "chunk_shape", sizes_json(meta->ndim, meta->chunk_shape));
    json_object_object_add(object, "chunk_grid", named("regular", grid));
    add_text(keys, "separator", "/");
    json_object_object_add(object, "chunk_key_encoding", named("default", keys));
    json_object_object_add(object, "fill_value", zero_json(meta->dtype));
    json_object_object_add(object, "codecs", codecs_json(meta, 0));
    json_object_object_add(object, "attributes", zarr_attributes_json(meta, carried));
    if (carried && carried->has_dimensions)
        json_object_object_add(object, "dimension_names", dimensions_json(meta->ndim, carried));
    json_object_object_add(object, "storage_transformers", json_object_new_array());
    return object;
}

struct json_object *zarr_array_json(const struct zarr_meta *meta, const struct carried *carried)
{
    return meta->version == 2 ? v2_json(meta, carried) : v3_json(meta, carried);
}

struct json_object *zarr_group_json(int version)
{
    struct json_object *object = json_object_new_object();
    add_number(object, "zarr_format", version);
    if (version == 2)
        return object;
    add_text(object, "node_type", "group");
    json_object_object_add(object, "attributes", json_object_new_object());
    return object;
}

int zarr_json_write(int dir_fd, const char *file, struct json_object *object)
{
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE);
    if (!text)
        return -ENOMEM;
    int fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    int r = file_write(fd, text, strlen(text), 0);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}
