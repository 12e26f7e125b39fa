/* msgpack to JSON, for what the daemon says of itself.
 *
 * Recursion is bounded: the object came out of a frame, whose nesting was checked. Floats that JSON
 * has no word for (NaN, infinities) become null. Called by byid.c and samples.c.
 */
#include "client/lib/asking/json.h"
#include "proto/util.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

static int convert(const msgpack_object *object, struct json_object **ret);

static int convert_key(const msgpack_object *key, char **ret)
{
    if (key->type != MSGPACK_OBJECT_STR)
        return -EPROTO;
    *ret = strndup(key->via.str.ptr, key->via.str.size);
    return *ret ? 0 : -ENOMEM;
}

static int convert_map(const msgpack_object *map, struct json_object *ret)
{
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        _cleanup_free_ char *key = NULL;
        struct json_object *value = NULL;
        int r = convert_key(&pair->key, &key);
        if (r == 0)
            r = convert(&pair->val, &value);
        if (r == 0 && json_object_object_add(ret, key, value))
            r = -ENOMEM;
        if (r) {
            json_object_put(value);
            return r;
        }
    }
    return 0;
}

static int convert_array(const msgpack_object *array, struct json_object *ret)
{
    for (uint32_t i = 0; i < array->via.array.size; i++) {
        struct json_object *value = NULL;
        int r = convert(&array->via.array.ptr[i], &value);
        if (r == 0 && json_object_array_add(ret, value))
            r = -ENOMEM;
        if (r) {
            json_object_put(value);
            return r;
        }
    }
    return 0;
}

static struct json_object *hexadecimal(const char *bytes, uint32_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    _cleanup_free_ char *text = malloc(2 * (size_t)n_bytes + 1);
    if (!text)
        return NULL;
    for (uint32_t i = 0; i < n_bytes; i++) {
        text[2 * (size_t)i] = digits[(unsigned char)bytes[i] >> 4];
        text[2 * (size_t)i + 1] = digits[(unsigned char)bytes[i] & 15];
    }
    return json_object_new_string_len(text, (int)(2 * n_bytes));
}

static struct json_object *convert_leaf(const msgpack_object *o)
{
    switch (o->type) {
    case MSGPACK_OBJECT_BOOLEAN: return json_object_new_boolean(o->via.boolean);
    case MSGPACK_OBJECT_POSITIVE_INTEGER: return json_object_new_uint64(o->via.u64);
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: return json_object_new_int64(o->via.i64);
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: return json_object_new_double(o->via.f64);
    case MSGPACK_OBJECT_STR:
        return json_object_new_string_len(o->via.str.ptr, (int)o->via.str.size);
    case MSGPACK_OBJECT_BIN: return hexadecimal(o->via.bin.ptr, o->via.bin.size);
    case MSGPACK_OBJECT_MAP: return json_object_new_object();
    case MSGPACK_OBJECT_ARRAY: return json_object_new_array();
    default: return NULL;
    }
}

static bool is_null(const msgpack_object *o)
{
    bool is_float = o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64;
    return o->type == MSGPACK_OBJECT_NIL || o->type == MSGPACK_OBJECT_EXT ||
           (is_float && !isfinite(o->via.f64));
}

static int convert(const msgpack_object *object, struct json_object **ret)
{
    if (is_null(object))
        return 0; /* json-c's null is NULL */
    struct json_object *made = convert_leaf(object);
    int r = made ? 0 : -ENOMEM;
    if (r == 0 && object->type == MSGPACK_OBJECT_MAP)
        r = convert_map(object, made);
    if (r == 0 && object->type == MSGPACK_OBJECT_ARRAY)
        r = convert_array(object, made);
    if (r) {
        json_object_put(made);
        return r;
    }
    *ret = made;
    return 0;
}

int json_object_from_msgpack(const msgpack_object *object, struct json_object **ret)
{
    *ret = NULL;
    return convert(object, ret);
}

int json_text(struct json_object *object, char **ret_text)
{
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
    *ret_text = text ? strdup(text) : NULL;
    return *ret_text ? 0 : -ENOMEM;
}

int json_from_msgpack(const msgpack_object *object, char **ret_text)
{
    struct json_object *made = NULL;
    int r = convert(object, &made);
    if (r == 0)
        r = json_text(made, ret_text);
    json_object_put(made);
    return r;
}
