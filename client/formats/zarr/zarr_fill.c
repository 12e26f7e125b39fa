/* Fill values, as both versions of Zarr write them.
 *
 *     null                   none: elements that were never written are 0
 *     12, -0.5, true         a number of the dtype
 *     "NaN", "-Infinity"     floats that JSON has not
 *     "0x7fc00000"           the bits of a float (version 3)
 *     "AAAAAAAA+H8="         a double in base64: how xarray writes the attribute _FillValue
 *
 * An integer that the dtype has not is refused: whoever wrote it meant something else.
 *
 * Called by zarr_v2.c, zarr_v3.c and zarr_attributes.c.
 */
#include "client/formats/zarr/zarr_meta.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

static bool read_special(const char *text, double *ret)
{
    if (strcmp(text, "NaN") == 0)
        *ret = NAN;
    else if (strcmp(text, "Infinity") == 0)
        *ret = INFINITY;
    else if (strcmp(text, "-Infinity") == 0)
        *ret = -INFINITY;
    else
        return false;
    return true;
}

/* Exactly the digits of the dtype, the highest first. */
static bool read_bits(const char *text, size_t n_bytes, uint64_t *ret_bits)
{
    char *end;
    if (strncmp(text, "0x", 2) != 0 || strlen(text + 2) != 2 * n_bytes ||
        strspn(text + 2, "0123456789abcdefABCDEF") != 2 * n_bytes)
        return false;
    *ret_bits = strtoull(text + 2, &end, 16);
    return true;
}

static bool read_float_text(const char *text, enum dtype dtype, union scalar *ret)
{
    double value;
    uint64_t bits;
    if (read_special(text, &value)) {
        if (dtype == DTYPE_FLOAT32)
            ret->f32 = (float)value;
        else
            ret->f64 = value;
        return true;
    }
    if (!read_bits(text, dtype_size(dtype), &bits))
        return false;
    uint32_t low = (uint32_t)bits;
    if (dtype == DTYPE_FLOAT32)
        memcpy(&ret->f32, &low, sizeof(low));
    else
        memcpy(&ret->f64, &bits, sizeof(bits));
    return true;
}

static bool read_float(struct json_object *value, enum dtype dtype, union scalar *ret)
{
    if (json_object_is_type(value, json_type_string))
        return read_float_text(json_object_get_string(value), dtype, ret);
    if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
        return false;
    double number = json_object_get_double(value);
    if (dtype == DTYPE_FLOAT32)
        ret->f32 = (float)number;
    else
        ret->f64 = number;
    return true;
}

static bool read_unsigned(struct json_object *value, unsigned n_bits, union scalar *ret)
{
    if (json_object_get_int64(value) < 0)
        return false;
    ret->u64 = json_object_get_uint64(value);
    return n_bits == 64 || ret->u64 >> n_bits == 0;
}

static bool read_signed(struct json_object *value, unsigned n_bits, union scalar *ret)
{
    ret->i64 = json_object_get_int64(value);
    int64_t most = INT64_MAX >> (64 - n_bits);
    if (ret->i64 == INT64_MAX && json_object_get_uint64(value) > INT64_MAX)
        return false;
    return ret->i64 <= most && ret->i64 >= -most - 1;
}

static bool read_bool(struct json_object *value, union scalar *ret)
{
    bool is_number = json_object_is_type(value, json_type_int);
    ret->u64 = is_number ? json_object_get_uint64(value) : json_object_get_boolean(value) != 0;
    return ret->u64 <= 1 && (is_number || json_object_is_type(value, json_type_boolean));
}

/* Some writers have 0.0 as the fill value of integers. */
static struct json_object *whole_number(struct json_object *value)
{
    double number = json_object_get_double(value);
    bool is_whole = number == floor(number) && fabs(number) < 0x1p53;
    return is_whole ? json_object_new_int64((int64_t)number) : NULL;
}

bool zarr_fill_read(struct json_object *value, enum dtype dtype, union scalar *ret_value)
{
    unsigned n_bits = 8 * (unsigned)dtype_size(dtype);
    if (dtype_is_float(dtype))
        return read_float(value, dtype, ret_value);
    _cleanup_json_ struct json_object *integer =
        json_object_is_type(value, json_type_double) ? whole_number(value) : json_object_get(value);
    if (dtype == DTYPE_BOOL)
        return integer && read_bool(integer, ret_value);
    if (!json_object_is_type(integer, json_type_int))
        return false;
    return dtype_is_signed(dtype) ? read_signed(integer, n_bits, ret_value)
                                  : read_unsigned(integer, n_bits, ret_value);
}

/* The low bytes of an integer, or a float's, lie at the beginning of the union on this machine. */
static void store(const union scalar *value, struct zarr_meta *meta)
{
    size_t n_bytes = dtype_size(meta->dtype);
    const uint8_t *bytes = (const uint8_t *)value;
    for (size_t i = 0; i < n_bytes; i++)
        meta->fill[i] = bytes[meta->is_swapped ? n_bytes - 1 - i : i];
}

int zarr_fill_parse(const struct zarr_doc *doc, struct json_object *value, struct zarr_meta *meta)
{
    union scalar scalar = {0};
    if (!value)
        return 0;
    if (!zarr_fill_read(value, meta->dtype, &scalar))
        return zarr_bad(doc, "fill_value", value, "a number of %s", dtype_name(meta->dtype));
    meta->has_fill = true;
    store(&scalar, meta);
    return 0;
}
