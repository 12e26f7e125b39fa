/* Arrays of Zarr version 2: the file .zarray.
 *
 *     {"zarr_format": 2, "shape": [..], "chunks": [..], "dtype": "<f4", "order": "C" or "F",
 *      "fill_value": .., "filters": null or [codecs], "compressor": null or codec,
 *      "dimension_separator": "." or "/"}
 *
 * Filters come first when a chunk is written, the compressor last. Every chunk is whole in its
 * file, those at the edges too.
 *
 * Called by zarr.c and zarr_list.c.
 */
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <string.h>

static int bad_dtype(const struct zarr_doc *doc, struct json_object *type)
{
    const char *there = json_object_to_json_string_ext(type, JSON_C_TO_STRING_PLAIN);
    error_set(doc->error, GAD_BAD_DTYPE, doc->name,
              "'%.160s': elements of dtype %.60s are not served", doc->file, there);
    error_expected(doc->error, "bool, int8 to int64, uint8 to uint64, float32 or float64");
    error_found(doc->error, "%.100s", there);
    return GAD_BAD_DTYPE;
}

static int read_dtype(const struct zarr_doc *doc, struct json_object *object,
                      struct zarr_meta *meta)
{
    struct json_object *type = zarr_member(object, "dtype");
    const char *text = zarr_text(object, "dtype");
    if (!text && !json_object_is_type(type, json_type_array))
        return zarr_bad(doc, "dtype", type, "a type as \"<f4\"");
    if (!text || !strchr("<>|", text[0]) ||
        dtype_from_typestr(text, strlen(text), &meta->dtype, &meta->is_swapped, NULL))
        return bad_dtype(doc, type);
    return 0;
}

static int read_order(const struct zarr_doc *doc, struct json_object *object,
                      struct zarr_meta *meta)
{
    const char *text = zarr_text(object, "order");
    if (!text || (strcmp(text, "C") != 0 && strcmp(text, "F") != 0))
        return zarr_bad(doc, "order", zarr_member(object, "order"), "\"C\" or \"F\"");
    for (int i = 0; i < meta->ndim; i++)
        meta->order[i] = *text == 'C' ? i : meta->ndim - 1 - i;
    return 0;
}

static int read_separator(const struct zarr_doc *doc, struct json_object *object,
                          struct zarr_meta *meta)
{
    struct json_object *value = zarr_member(object, "dimension_separator");
    const char *text = value ? zarr_text(object, "dimension_separator") : ".";
    if (!text || (strcmp(text, ".") != 0 && strcmp(text, "/") != 0))
        return zarr_bad(doc, "dimension_separator", value, "\".\" or \"/\"");
    meta->separator = *text;
    return 0;
}

static int add_codec(const struct zarr_doc *doc, const char *key, struct json_object *codec,
                     struct zarr_meta *meta)
{
    const char *id = zarr_text(codec, "id");
    if (!id)
        return zarr_bad(doc, key, codec, "null or a codec with an \"id\"");
    return zarr_add_codec(doc, key, id, codec, meta, &meta->pipeline);
}

static int read_codecs(const struct zarr_doc *doc, struct json_object *object,
                       struct zarr_meta *meta)
{
    struct json_object *filters = zarr_member(object, "filters");
    struct json_object *compressor = zarr_member(object, "compressor");
    if (filters && !json_object_is_type(filters, json_type_array))
        return zarr_bad(doc, "filters", filters, "null or a list of codecs");
    size_t n = filters ? json_object_array_length(filters) : 0;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_codec(doc, "filters", json_object_array_get_idx(filters, i), meta);
    return r == 0 && compressor ? add_codec(doc, "compressor", compressor, meta) : r;
}

int zarr_v2_parse(const struct zarr_doc *doc, struct json_object *object,
                  struct zarr_meta *ret_meta)
{
    struct zarr_meta meta = {.version = 2, .ndim = -1};
    if (zarr_integer(object, "zarr_format", 0) != 2)
        return zarr_bad(doc, "zarr_format", zarr_member(object, "zarr_format"), "2");
    int r = read_dtype(doc, object, &meta);
    if (r == 0)
        r = zarr_sizes(doc, zarr_member(object, "shape"), "shape", 0, &meta.ndim, meta.shape);
    if (r == 0)
        r = zarr_read_chunks(doc, zarr_member(object, "chunks"), "chunks", &meta);
    if (r == 0)
        r = zarr_check_shapes(doc, &meta);
    if (r == 0)
        r = read_order(doc, object, &meta);
    if (r == 0)
        r = read_separator(doc, object, &meta);
    if (r == 0)
        r = zarr_fill_parse(doc, zarr_member(object, "fill_value"), &meta);
    if (r == 0)
        r = read_codecs(doc, object, &meta);
    if (r)
        return r;
    *ret_meta = meta;
    return 0;
}
