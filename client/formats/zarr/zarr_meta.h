/* What a Zarr array's metadata say, of version 2 and 3, checked. */
#pragma once

#include "client/codecs/codec.h"
#include "client/formats/zarr/zarr_json.h"
#include "client/gpuarrayd-files.h"
#include "proto/array.h"

#define ZARR_MAX_LEVELS GAD_MAX_SHARD_LEVELS /* of shards in shards */

/* A chunk that is a shard: chunks of its own, and an index of where they are in it. */
struct zarr_shard {
    int64_t chunk_shape[ARRAY_MAX_NDIM]; /* of those in it, in the axes of the array */
    int axes[ARRAY_MAX_NDIM];            /* in which order the index counts, the slowest first */
    uint64_t n_chunks;                   /* in it */
    uint64_t index_bytes;                /* with the checksum */
    bool is_index_first, is_index_swapped, has_checksum;
};

struct zarr_meta {
    int version;
    enum dtype dtype;
    bool is_swapped;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t chunk_shape[ARRAY_MAX_NDIM]; /* of what a file holds */
    char separator;                      /* between the numbers of a file's name */
    bool has_prefix;                     /* names begin with "c" */
    unsigned n_shards;
    struct zarr_shard shards[ZARR_MAX_LEVELS]; /* from the file inwards */
    int order[ARRAY_MAX_NDIM];                 /* axes as they lie in the innermost chunk */
    bool has_fill;
    uint8_t fill[8];                /* as it is stored: in the byte order of the elements */
    struct codec_pipeline pipeline; /* of an innermost chunk */
};

/* From .zarray or zarr.json. bad-format, bad-dtype, bad-shape. */
int zarr_v2_parse(const struct zarr_doc *doc, struct json_object *object,
                  struct zarr_meta *ret_meta) GAD_MUST_CHECK;
int zarr_v3_parse(const struct zarr_doc *doc, struct json_object *object,
                  struct zarr_meta *ret_meta) GAD_MUST_CHECK;

/* The shape of the innermost chunks. */
const int64_t *zarr_inner_shape(const struct zarr_meta *meta);
/* Of shards at a level: of files, then of the chunks in them; n_shards: of innermost chunks. */
const int64_t *zarr_shape_at(const struct zarr_meta *meta, unsigned level);
/* The shard of a level that an element is in: its place in their grid, and its number in C order.
 */
uint64_t zarr_shard_of(const struct zarr_meta *meta, unsigned level, const int64_t *place,
                       int64_t ret_place[ARRAY_MAX_NDIM]);
/* Where the chunk that has an element stands in the index of its shard of a level. */
uint64_t zarr_entry_of(const struct zarr_meta *meta, unsigned level, const int64_t *place);

/* The shape of the chunks of an array whose shape is known, into meta. An axis without elements may
 * have chunks of 0. */
int zarr_read_chunks(const struct zarr_doc *doc, struct json_object *list, const char *key,
                     struct zarr_meta *meta) GAD_MUST_CHECK;
/* For both: what a checked shape must be with its dtype and chunks. */
int zarr_check_shapes(const struct zarr_doc *doc, const struct zarr_meta *meta) GAD_MUST_CHECK;
/* A fill value into the bytes of an element; NULL and null: zeros. */
int zarr_fill_parse(const struct zarr_doc *doc, struct json_object *value,
                    struct zarr_meta *meta) GAD_MUST_CHECK;
/* A number, "NaN" and its kin, 0x and hexadecimal digits: into native bytes; false: none of them,
 * or not one of the dtype's. */
bool zarr_fill_read(struct json_object *value, enum dtype dtype, union scalar *ret_value);
/* delta and its kin, which see elements and not bytes. */
bool zarr_is_of_elements(const struct codec_step *step);
/* One codec more, as numcodecs names it (`id`) or version 3; `values` is its configuration.
 * item_bytes: of the elements that come to it. `key` is where it stands. */
int zarr_add_codec(const struct zarr_doc *doc, const char *key, const char *id,
                   struct json_object *values, const struct zarr_meta *meta,
                   struct codec_pipeline *pipeline) GAD_MUST_CHECK;
