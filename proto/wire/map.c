/* Named values out of a peer's map.
 *
 * Readers follow one rule: an absent key leaves the default that the caller put there; a value of
 * another type or out of range is bad-request, naming the key and what was found. Keys that nobody
 * asks for are ignored, so that the protocol can grow. Where a key occurs twice the first counts,
 * in the broker as in the worker.
 */
#include "proto/wire/map.h"

#include "proto/text.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

static bool is_text(const msgpack_object *object, const char *text, size_t n_chars)
{
    return object->type == MSGPACK_OBJECT_STR && object->via.str.size == n_chars &&
           (n_chars == 0 || object->via.str.ptr[0] == text[0]) &&
           memcmp(object->via.str.ptr, text, n_chars) == 0;
}

const msgpack_object *map_find(const msgpack_object *map, const char *key)
{
    if (map == NULL || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    size_t n_chars = strlen(key);
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (is_text(&map->via.map.ptr[i].key, key, n_chars))
            return &map->via.map.ptr[i].val;
    return NULL;
}

static const char *type_name(const msgpack_object *object)
{
    switch (object->type) {
    case MSGPACK_OBJECT_NIL: return "nil";
    case MSGPACK_OBJECT_BOOLEAN: return "a bool";
    case MSGPACK_OBJECT_POSITIVE_INTEGER: return "an integer";
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: return "a negative integer";
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: return "a float";
    case MSGPACK_OBJECT_STR: return "a text";
    case MSGPACK_OBJECT_ARRAY: return "an array";
    case MSGPACK_OBJECT_MAP: return "a map";
    case MSGPACK_OBJECT_BIN: return "bytes";
    default: return "something else";
    }
}

static int wrong_type(const char *key, const msgpack_object *value, const char *wanted,
                      struct gad_error *error)
{
    int r =
        error_set(error, GAD_BAD_REQUEST, key, "'%s' is %s, not %s", key, type_name(value), wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", type_name(value));
    return r;
}

static int absent(const char *key, struct gad_error *error)
{
    return error_set(error, GAD_BAD_REQUEST, key, "'%s' is missing", key);
}

int map_u64(const msgpack_object *map, const char *key, uint64_t *ret, struct gad_error *error)
{
    const msgpack_object *value = map_find(map, key);
    if (value == NULL)
        return 0;
    if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return wrong_type(key, value, "an integer of 0 or more", error);
    *ret = value->via.u64;
    return 0;
}

int map_require_u64(const msgpack_object *map, const char *key, uint64_t *ret,
                    struct gad_error *error)
{
    return map_find(map, key) == NULL ? absent(key, error) : map_u64(map, key, ret, error);
}

int map_i64(const msgpack_object *map, const char *key, int64_t *ret, struct gad_error *error)
{
    const msgpack_object *value = map_find(map, key);
    if (value == NULL)
        return 0;
    if (value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        *ret = value->via.i64;
        return 0;
    }
    if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return wrong_type(key, value, "an integer", error);
    if (value->via.u64 > INT64_MAX) {
        int r = error_set(error, GAD_BAD_REQUEST, key, "'%s' is %" PRIu64 ", beyond 63 bits", key,
                          value->via.u64);
        error_expected(error, "at most %" PRId64, INT64_MAX);
        error_found(error, "%" PRIu64, value->via.u64);
        return r;
    }
    *ret = (int64_t)value->via.u64;
    return 0;
}

int map_f64(const msgpack_object *map, const char *key, double *ret, struct gad_error *error)
{
    const msgpack_object *value = map_find(map, key);
    if (value == NULL)
        return 0;
    switch (value->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER: *ret = (double)value->via.u64; return 0;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: *ret = (double)value->via.i64; return 0;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: *ret = value->via.f64; return 0;
    default: return wrong_type(key, value, "a number", error);
    }
}

int map_bool(const msgpack_object *map, const char *key, bool *ret, struct gad_error *error)
{
    const msgpack_object *value = map_find(map, key);
    if (value == NULL)
        return 0;
    if (value->type != MSGPACK_OBJECT_BOOLEAN)
        return wrong_type(key, value, "a bool", error);
    *ret = value->via.boolean;
    return 0;
}

int map_str(const msgpack_object *map, const char *key, const char **ret, size_t *ret_n_chars,
            struct gad_error *error)
{
    const msgpack_object *value = map_find(map, key);
    if (value == NULL)
        return 0;
    if (value->type != MSGPACK_OBJECT_STR)
        return wrong_type(key, value, "a text", error);
    *ret = value->via.str.ptr;
    *ret_n_chars = value->via.str.size;
    return 0;
}

int map_require_str(const msgpack_object *map, const char *key, const char **ret,
                    size_t *ret_n_chars, struct gad_error *error)
{
    return map_find(map, key) == NULL ? absent(key, error)
                                      : map_str(map, key, ret, ret_n_chars, error);
}

int map_copy_str(const msgpack_object *map, const char *key, char *ret, size_t n_bytes,
                 struct gad_error *error)
{
    const char *text = NULL;
    size_t n_chars = 0;
    int r = map_str(map, key, &text, &n_chars, error);
    if (r != 0 || text == NULL)
        return r;
    if (n_chars >= n_bytes) {
        r = error_set(error, GAD_BAD_REQUEST, key, "'%s' is too long: %zu bytes", key, n_chars);
        error_expected(error, "at most %zu bytes", n_bytes - 1);
        error_found(error, "%zu bytes", n_chars);
        return r;
    }
    if (!text_is_printable(text, n_chars))
        return error_set(error, GAD_BAD_REQUEST, key, "'%s' is not printable UTF-8", key);
    memcpy(ret, text, n_chars);
    ret[n_chars] = '\0';
    return 0;
}

static void copy_cut(const msgpack_object *map, const char *key, char *field, size_t n_bytes)
{
    const char *text = NULL;
    size_t n_chars = 0;
    field[0] = '\0';
    if (map_str(map, key, &text, &n_chars, NULL) != 0 || text == NULL)
        return;
    size_t n_kept = min_u64(n_chars, n_bytes - 1);
    memcpy(field, text, n_kept);
    field[n_kept] = '\0';
    text_make_printable(field);
}

void map_error(const msgpack_object *map, struct gad_error *ret_error)
{
    const char *word = NULL;
    size_t n_chars = 0;
    ret_error->status = GAD_INTERNAL;
    if (map_str(map, "code", &word, &n_chars, NULL) == 0 && word != NULL)
        ret_error->status = error_from_word(word, (unsigned)n_chars);
    copy_cut(map, "argument", ret_error->argument, sizeof(ret_error->argument));
    copy_cut(map, "expected", ret_error->expected, sizeof(ret_error->expected));
    copy_cut(map, "found", ret_error->found, sizeof(ret_error->found));
    copy_cut(map, "message", ret_error->message, sizeof(ret_error->message));
}
