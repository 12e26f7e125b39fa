/* Codecs of metadata into steps of a pipeline.
 *
 * Version 2 has those of numcodecs, by `id`; version 3 its own and, as "numcodecs.NAME", the same.
 * What each says of itself is checked as far as decoding needs it; the rest (levels, block sizes)
 * was for who wrote the chunk. Codecs that lose nothing when they are left out (bitround, quantize)
 * are no steps.
 *
 * Called by zarr_v2.c and zarr_v3.c.
 */
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

/* One codec while it is read. */
struct entry {
    const struct zarr_doc *doc;
    const char *key, *id;
    struct json_object *values;
    enum dtype elements; /* that it gets */
    struct codec_step *step;
};

static int set_level(struct entry *entry, const char *key, int64_t otherwise)
{
    entry->step->n_values = 1;
    entry->step->values[0] = (uint32_t)zarr_integer(entry->values, key, otherwise);
    return 0;
}

static int read_level(struct entry *entry)
{
    return set_level(entry, "level", 0);
}

static int read_item_bytes(struct entry *entry)
{
    int64_t n = zarr_integer(entry->values, "elementsize", 4);
    if (n < 1 || n > INT32_MAX)
        return zarr_bad(entry->doc, "elementsize", zarr_member(entry->values, "elementsize"),
                        "above 0");
    entry->step->n_values = 1;
    entry->step->values[0] = (uint32_t)n;
    return 0;
}

static int read_lzma(struct entry *entry)
{
    int64_t format = zarr_integer(entry->values, "format", 1);
    if (format != 1 && format != 2)
        return zarr_bad(entry->doc, "format", zarr_member(entry->values, "format"),
                        "1 (xz) or 2 (lzma)");
    return set_level(entry, "preset", 6);
}

static int read_place(struct entry *entry, const char *otherwise)
{
    const char *place = zarr_text(entry->values, "location");
    if (!place)
        place = otherwise;
    if (strcmp(place, "start") != 0 && strcmp(place, "end") != 0)
        return zarr_bad(entry->doc, "location", zarr_member(entry->values, "location"),
                        "\"start\" or \"end\"");
    entry->step->n_values = 1;
    entry->step->values[0] = *place == 's';
    return 0;
}

static int read_place_end(struct entry *entry)
{
    return read_place(entry, "end");
}

static int read_place_start(struct entry *entry)
{
    return read_place(entry, "start");
}

static int read_type(struct entry *entry, const char *key, const char *otherwise,
                     enum dtype *ret_dtype, bool *ret_is_swapped)
{
    const char *text = zarr_text(entry->values, key);
    if (!text)
        text = otherwise;
    if (text && dtype_from_typestr(text, strlen(text), ret_dtype, ret_is_swapped, NULL) == 0)
        return 0;
    return text && dtype_from_name(text, strlen(text), ret_dtype)
               ? 0
               : zarr_bad(entry->doc, key, zarr_member(entry->values, key),
                          "a dtype of numbers as \"<i4\"");
}

/* dtype and astype: what comes out is seen as the elements that the codec before it stored, or the
 * array's, so it must be as wide. */
static int read_types(struct entry *entry)
{
    struct codec_step *step = entry->step;
    bool is_swapped = false, is_stored_swapped = false;
    int r = read_type(entry, "dtype", NULL, &step->dtype, &is_swapped);
    if (r == 0)
        r = read_type(entry, "astype", zarr_text(entry->values, "dtype"), &step->stored,
                      &is_stored_swapped);
    if (r)
        return r;
    if (dtype_size(step->dtype) != dtype_size(entry->elements))
        return zarr_bad(entry->doc, "dtype", zarr_member(entry->values, "dtype"),
                        "as wide as %s, which it gets", dtype_name(entry->elements));
    step->n_values = 1;
    step->values[0] = (is_swapped ? 1u : 0u) | (is_stored_swapped ? 2u : 0u);
    return 0;
}

static int read_number(struct entry *entry, const char *key, double *ret)
{
    struct json_object *value = zarr_member(entry->values, key);
    if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
        return zarr_bad(entry->doc, key, value, "a number");
    *ret = json_object_get_double(value);
    return 0;
}

static int read_scaled(struct entry *entry)
{
    int r = read_types(entry);
    if (r == 0)
        r = read_number(entry, "scale", &entry->step->scale);
    if (r == 0 && entry->step->scale == 0)
        r = zarr_bad(entry->doc, "scale", zarr_member(entry->values, "scale"), "other than 0");
    return r ? r : read_number(entry, "offset", &entry->step->offset);
}

static int read_nothing(struct entry *entry)
{
    return 0;
}

/* What each codec is asked for. */
static const struct {
    const char *id;
    int (*read)(struct entry *entry);
    bool is_of_elements;
} readers[] = {
    {"zlib", read_level, false},         {"gzip", read_level, false},
    {"bz2", read_level, false},          {"zstd", read_level, false},
    {"lzma", read_lzma, false},          {"lz4", read_nothing, false},
    {"blosc", read_nothing, false},      {"shuffle", read_item_bytes, false},
    {"fletcher32", read_nothing, false}, {"crc32c", read_place_end, false},
    {"crc32", read_place_start, false},  {"adler32", read_place_start, false},
    {"delta", read_types, true},         {"fixedscaleoffset", read_scaled, true},
};

/* Rounding that was done when the chunk was written: there is nothing to undo. */
static bool is_no_step(const char *id, struct json_object *values)
{
    const char *type = zarr_text(values, "dtype"), *stored = zarr_text(values, "astype");
    if (strcmp(id, "quantize") == 0)
        return !stored || (type && strcmp(type, stored) == 0);
    return strcmp(id, "bitround") == 0;
}

static int refuse(const struct entry *entry)
{
    static const struct {
        const char *id, *what;
    } known[] = {
        {"pcodec", "the Python package numcodecs[pcodec]"},
        {"zfpy", "the Python package numcodecs[zfpy]"},
        {"packbits", "the Python package numcodecs"},
        {"categorize", "the Python package numcodecs"},
        {"quantize", "the Python package numcodecs"},
        {"astype", "the Python package numcodecs"},
        {"base64", "the Python package numcodecs"},
        {"jenkins_lookup3", "the Python package numcodecs"},
        {"json2", "the Python package numcodecs"},
        {"pickle", "the Python package numcodecs"},
        {"msgpack2", "the Python package numcodecs[msgpack]"},
        {"vlen-utf8", "the Python package numcodecs"},
        {"vlen-bytes", "the Python package numcodecs"},
        {"vlen-array", "the Python package numcodecs"},
        {"blosc2", "the Python package blosc2"},
        {"imagecodecs", "the Python package imagecodecs"},
        {"crc32c", "GDAL"},
        {"cast_value", "the Python package zarr"},
        {"scale_offset", "the Python package zarr"},
    };
    const char *what = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(known) && !what; i++)
        if (strcmp(known[i].id, entry->id) == 0)
            what = known[i].what;
    if (strncmp(entry->id, "imagecodecs_", 12) == 0)
        what = "the Python package imagecodecs";
    error_set(entry->doc->error, GAD_BAD_FORMAT, entry->doc->name,
              "'%.120s': '%s' names the codec '%.60s', which is not served%s%s", entry->doc->file,
              entry->key, entry->id, what ? "; it is known to " : "", what ? what : "");
    error_expected(entry->doc->error,
                   "blosc, bz2, crc32c, delta, fixedscaleoffset, fletcher32, gzip, lz4, lzma, "
                   "shuffle, zlib or zstd");
    error_found(entry->doc->error, "%.100s", entry->id);
    return GAD_BAD_FORMAT;
}

static int refuse_unbuilt(const struct entry *entry)
{
    error_set(entry->doc->error, GAD_BAD_FORMAT, entry->doc->name,
              "'%.120s': '%s' names the codec '%.40s', without which this library was built",
              entry->doc->file, entry->key, entry->id);
    error_expected(entry->doc->error, "%s when gpuarrayd is built", entry->step->codec->package);
    error_found(entry->doc->error, "no %s", entry->step->codec->package);
    return GAD_BAD_FORMAT;
}

static const struct codec_step *last_step(const struct codec_pipeline *pipeline)
{
    return pipeline->n_steps > 0 ? &pipeline->steps[pipeline->n_steps - 1] : NULL;
}

/* Nothing that makes bytes may come before them. */
bool zarr_is_of_elements(const struct codec_step *step)
{
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++)
        if (readers[i].is_of_elements && strcmp(readers[i].id, step->codec->zarr_name) == 0)
            return true;
    return false;
}

int zarr_add_codec(const struct zarr_doc *doc, const char *key, const char *id,
                   struct json_object *values, const struct zarr_meta *meta,
                   struct codec_pipeline *pipeline)
{
    bool is_prefixed = strncmp(id, "numcodecs.", 10) == 0;
    struct codec_step step = {.codec = NULL};
    const struct codec_step *last = last_step(pipeline);
    struct entry entry = {doc, key, is_prefixed ? id + 10 : id, values, meta->dtype, &step};
    if (last && zarr_is_of_elements(last))
        entry.elements = last->stored;
    if (is_no_step(entry.id, values))
        return 0;
    if (pipeline->n_steps == CODEC_MAX_STEPS)
        return zarr_bad(doc, key, NULL, "at most %d codecs", CODEC_MAX_STEPS);
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++) {
        if (strcmp(readers[i].id, entry.id) != 0 || !(step.codec = codec_of_zarr(entry.id)))
            continue;
        if (!step.codec->decode)
            return refuse_unbuilt(&entry);
        if (readers[i].is_of_elements && last && !zarr_is_of_elements(last))
            return zarr_bad(doc, key, values, "elements' codecs before those of bytes");
        int r = readers[i].read(&entry);
        if (r == 0)
            pipeline->steps[pipeline->n_steps++] = step;
        return r;
    }
    return refuse(&entry);
}
