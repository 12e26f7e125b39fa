/* Attributes of nodes.
 *
 * A text stays one; a number, a bool, or a list of them are values; what else JSON has is of a type
 * that is not shown. Among lists of numbers the names of floats that JSON lacks are numbers too.
 *
 * The value of what was not measured, _FillValue, comes in three ways. Version 2 keeps it as the
 * array's fill_value where xarray wrote the store (it tells the axes' names, and puts null where
 * there is no such value); version 3 has the attribute, of floats in base64; and there is JSON's
 * own.
 *
 * Called by zarr.c and zarr_list.c.
 */
#include "client/formats/zarr/zarr_attributes.h"
#include "client/formats/attributes.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSIONS "_ARRAY_DIMENSIONS"
#define FILL_VALUE "_FillValue"

static bool read_number(struct json_object *value, struct gad_scalar *ret)
{
    union scalar special;
    switch (json_object_get_type(value)) {
    case json_type_boolean:
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_BOOL};
        ret->int_value = json_object_get_boolean(value);
        return true;
    case json_type_int:
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_INT};
        ret->int_value = json_object_get_int64(value);
        if (ret->int_value == INT64_MAX && json_object_get_uint64(value) > INT64_MAX) {
            ret->kind = GAD_SCALAR_UINT;
            ret->uint_value = json_object_get_uint64(value);
        }
        return true;
    case json_type_double:
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_FLOAT};
        ret->float_value = json_object_get_double(value);
        return true;
    case json_type_string:
        *ret = (struct gad_scalar){.kind = GAD_SCALAR_FLOAT};
        if (json_object_get_string(value)[0] == '0' ||
            !zarr_fill_read(value, DTYPE_FLOAT64, &special))
            return false;
        ret->float_value = special.f64;
        return true;
    default: return false;
    }
}

static size_t most_values(struct json_object *value)
{
    return json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 1;
}

/* A list of texts alone: all of them, or none. */
static size_t read_texts(struct json_object *value, const char **ret_texts)
{
    size_t n = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *text = json_object_array_get_idx(value, i);
        if (!json_object_is_type(text, json_type_string))
            return 0;
        ret_texts[i] = json_object_get_string(text);
    }
    return n;
}

/* All of them, or none. */
static size_t read_values(struct json_object *value, struct gad_scalar *ret_values)
{
    if (!json_object_is_type(value, json_type_array))
        return read_number(value, ret_values);
    size_t n = json_object_array_length(value);
    for (size_t i = 0; i < n; i++)
        if (!read_number(json_object_array_get_idx(value, i), &ret_values[i]))
            return 0;
    return n;
}

int zarr_attributes_init(struct json_object *object, struct zarr_attributes *ret)
{
    struct zarr_attributes attributes = {0};
    size_t n_values = 0, n = 0;
    *ret = attributes;
    if (!json_object_is_type(object, json_type_object))
        return 0;
    json_object_object_foreach(object, name, value)
    {
        (void)name;
        n_values += most_values(value);
        n++;
    }
    attributes.list = calloc(n + 1, sizeof(*attributes.list));
    attributes.values = calloc(n_values + 1, sizeof(*attributes.values));
    attributes.texts = calloc(n_values + 1, sizeof(*attributes.texts));
    if (!attributes.list || !attributes.values || !attributes.texts) {
        zarr_attributes_deinit(&attributes);
        return -ENOMEM;
    }
    struct gad_scalar *values = attributes.values;
    const char **texts = attributes.texts;
    json_object_object_foreach(object, key, member)
    {
        struct gad_attribute *attribute = &attributes.list[attributes.n++];
        attribute->name = key;
        if (json_object_is_type(member, json_type_string))
            attribute->text = json_object_get_string(member);
        else
            attribute->n_values = read_values(member, values);
        attribute->values = values;
        values += attribute->n_values;
        if (attribute->n_values == 0)
            attribute->n_texts = read_texts(member, texts);
        attribute->texts = texts;
        texts += attribute->n_texts;
    }
    *ret = attributes;
    return 0;
}

void zarr_attributes_deinit(struct zarr_attributes *attributes)
{
    free_ptr(&attributes->list);
    free_ptr(&attributes->values);
    free_ptr(&attributes->texts);
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void zarr_base64(double value, char ret_text[ZARR_BASE64_SIZE])
{
    uint8_t bytes[9] = {0};
    memcpy(bytes, &value, sizeof(value));
    for (int i = 0; i < 11; i++) {
        int at = i * 6 / 8, shift = 10 - i * 6 % 8;
        unsigned two = (unsigned)bytes[at] << 8 | bytes[at + 1];
        ret_text[i] = letters[two >> shift & 63];
    }
    memcpy(ret_text + 11, "=", 2);
}

/* Twelve characters, the last of which is '=': eight bytes. */
static bool read_base64(const char *text, double *ret)
{
    uint8_t bytes[9] = {0};
    if (strlen(text) != 12 || text[11] != '=')
        return false;
    for (int i = 0; i < 11; i++) {
        const char *letter = strchr(letters, text[i]);
        if (!letter)
            return false;
        unsigned value = (unsigned)(letter - letters);
        int at = i * 6 / 8, shift = 10 - i * 6 % 8;
        bytes[at] |= (uint8_t)(value << shift >> 8);
        bytes[at + 1] |= (uint8_t)(value << shift);
    }
    memcpy(ret, bytes, sizeof(*ret));
    return true;
}

static bool read_fill(struct json_object *value, enum dtype dtype, struct gad_scalar *ret)
{
    union scalar scalar;
    if (json_object_is_type(value, json_type_string) &&
        read_base64(json_object_get_string(value), &ret->float_value)) {
        ret->kind = GAD_SCALAR_FLOAT;
        return true;
    }
    if (!zarr_fill_read(value, dtype, &scalar))
        return false;
    if (dtype_is_float(dtype)) {
        ret->kind = GAD_SCALAR_FLOAT;
        ret->float_value = dtype == DTYPE_FLOAT32 ? (double)scalar.f32 : scalar.f64;
    } else {
        ret->kind = dtype_is_signed(dtype) ? GAD_SCALAR_INT : GAD_SCALAR_UINT;
        ret->uint_value = scalar.u64;
    }
    return true;
}

static void take_fill(struct gad_array *array, struct json_object *value, enum dtype dtype)
{
    struct gad_scalar fill = {.kind = GAD_SCALAR_NONE};
    if (!value || !read_fill(value, dtype, &fill))
        return;
    const struct gad_attribute attribute = {.name = FILL_VALUE,
                                            .n_values = 1,
                                            .values = &fill,
                                            .dtype = (enum gad_dtype)dtype,
                                            .is_dtype_known = true};
    attribute_take(array, &attribute);
}

bool zarr_dimensions(const struct zarr_node *node, int ndim, const char **ret_names)
{
    struct json_object *list = node->version == 3 ? zarr_member(node->metadata, "dimension_names")
                                                  : zarr_member(node->attributes, DIMENSIONS);
    bool has_one = false;
    if (!json_object_is_type(list, json_type_array) ||
        json_object_array_length(list) != (size_t)ndim)
        return false;
    for (int i = 0; i < ndim; i++) {
        struct json_object *name = json_object_array_get_idx(list, (size_t)i);
        ret_names[i] =
            json_object_is_type(name, json_type_string) ? json_object_get_string(name) : NULL;
        has_one |= ret_names[i] != NULL;
    }
    return has_one;
}

/* Coordinates are in the array's own group. */
static void take_axes(struct gad_array *array, const char *dataset,
                      const struct selection *selection, const char *const *names)
{
    const char *slash = strrchr(dataset, '/');
    char *paths[ARRAY_MAX_NDIM] = {NULL};
    for (int i = 0; i < selection->source_ndim; i++)
        if (names[i] && asprintf(&paths[i], "%.*s/%s", slash ? (int)(slash - dataset) : 0, dataset,
                                 names[i]) < 0)
            paths[i] = NULL;
    attribute_take_dimensions(array, selection, names);
    attribute_take_coordinates(array, selection, (const char *const *)paths);
    for (int i = 0; i < selection->source_ndim; i++)
        free(paths[i]);
}

int zarr_attributes_take(struct gad_array *array, const char *dataset, const struct zarr_node *node,
                         const struct zarr_meta *meta, const struct selection *selection)
{
    struct zarr_attributes attributes;
    const char *names[ARRAY_MAX_NDIM];
    int r = zarr_attributes_init(node->attributes, &attributes);
    if (r)
        return r;
    for (size_t i = 0; i < attributes.n; i++)
        if (strcmp(attributes.list[i].name, FILL_VALUE) != 0)
            attribute_take(array, &attributes.list[i]);
    zarr_attributes_deinit(&attributes);
    if (node->version == 2 && zarr_member(node->attributes, DIMENSIONS))
        take_fill(array, zarr_member(node->metadata, "fill_value"), meta->dtype);
    take_fill(array, zarr_member(node->attributes, FILL_VALUE), meta->dtype);
    if (zarr_dimensions(node, meta->ndim, names))
        take_axes(array, dataset, selection, names);
    return 0;
}
