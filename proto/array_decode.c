/* Decoding one ARRAY map: dtype, shape, strides and location.
 *
 * All numbers are a client's. Each is read once, checked for its own range here and for what they
 * say together by array_check() at the end, so that what comes out may be computed with. Errors
 * name the array, not the key: the key is in the message.
 *
 * Strides are for regions, contiguous files and arrays without a location. Where the order of the
 * elements is fixed (inline, provider, grid of chunks) they may be given, but only as what they
 * are anyway: C order.
 *
 * Descriptors: an index must be one of the message's, and each is used once in a whole request;
 * the bits of those already used go from array to array in `used_fds`.
 */
#include "proto/array_decode.h"

#include "proto/wire/ring.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct decoder {
    const char *name;
    unsigned n_fds;
    struct used_fds *used_fds;
    struct gad_error *error;
};

/* An error that a map_*() reader set names its key: name the array instead. */
static int rename_error(const struct decoder *d, int r)
{
    if (r > 0 && d->error != NULL)
        snprintf(d->error->argument, sizeof(d->error->argument), "%s", d->name);
    return r;
}

static int bad(const struct decoder *d, const char *message)
{
    return error_set(d->error, GAD_BAD_REQUEST, d->name, "%s", message);
}

static int require_u64(const struct decoder *d, const msgpack_object *map, const char *key,
                       uint64_t *ret)
{
    return rename_error(d, map_require_u64(map, key, ret, d->error));
}

static int require_u32(const struct decoder *d, const msgpack_object *map, const char *key,
                       uint32_t *ret)
{
    uint64_t value = 0;
    int r = require_u64(d, map, key, &value);
    if (r)
        return r;
    if (value > UINT32_MAX) {
        r = error_set(d->error, GAD_BAD_REQUEST, d->name, "'%s' is too large", key);
        error_expected(d->error, "at most %" PRIu32, UINT32_MAX);
        error_found(d->error, "%" PRIu64, value);
        return r;
    }
    *ret = (uint32_t)value;
    return 0;
}

static int require_fd(const struct decoder *d, const msgpack_object *map, const char *key,
                      uint32_t *ret_index)
{
    uint64_t index = 0;
    int r = require_u64(d, map, key, &index);
    if (r)
        return r;
    if (index >= d->n_fds) {
        r = error_set(d->error, GAD_BAD_DESCRIPTOR, d->name,
                      "'%s' is descriptor %" PRIu64 ", but %u came with the message", key, index,
                      d->n_fds);
        error_expected(d->error, "an index below %u", d->n_fds);
        error_found(d->error, "%" PRIu64, index);
        return r;
    }
    if (d->used_fds->is_used[index])
        return error_set(d->error, GAD_BAD_DESCRIPTOR, d->name,
                         "'%s' is descriptor %" PRIu64 ", which is used already", key, index);
    d->used_fds->is_used[index] = true;
    *ret_index = (uint32_t)index;
    return 0;
}

static int not_integers(const struct decoder *d, const char *key)
{
    int r = error_set(d->error, GAD_BAD_SHAPE, d->name, "'%s' is not an array of integers", key);
    error_expected(d->error, "an array of 64-bit integers");
    return r;
}

/* Integers of 64 bits; what is beyond INT64_MAX is refused with the number. */
static int decode_integers(const struct decoder *d, const msgpack_object *list, const char *key,
                           int64_t *ret, int *ret_n)
{
    if (list->type != MSGPACK_OBJECT_ARRAY)
        return not_integers(d, key);
    uint32_t n = list->via.array.size;
    if (n > ARRAY_MAX_NDIM) {
        int r =
            error_set(d->error, GAD_BAD_SHAPE, d->name, "'%s' has %" PRIu32 " dimensions", key, n);
        error_expected(d->error, "at most %d dimensions", ARRAY_MAX_NDIM);
        error_found(d->error, "%" PRIu32, n);
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        const msgpack_object *value = &list->via.array.ptr[i];
        if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER &&
            value->type != MSGPACK_OBJECT_NEGATIVE_INTEGER)
            return not_integers(d, key);
        if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 > INT64_MAX) {
            int r = error_set(d->error, GAD_BAD_SHAPE, d->name,
                              "'%s' has %" PRIu64 " in place %" PRIu32, key, value->via.u64, i);
            error_expected(d->error, "at most %" PRId64, INT64_MAX);
            error_found(d->error, "%" PRIu64, value->via.u64);
            return r;
        }
        ret[i] = value->via.i64;
    }
    *ret_n = (int)n;
    return 0;
}

static int decode_dtype(const struct decoder *d, const msgpack_object *map, struct array *array)
{
    const char *text = NULL;
    size_t n_chars = 0;
    int r = map_require_str(map, "dtype", &text, &n_chars, d->error);
    if (r == 0)
        r = dtype_from_typestr(text, n_chars, &array->dtype, &array->is_swapped, d->error);
    return rename_error(d, r);
}

static int decode_shape(const struct decoder *d, const msgpack_object *map, struct array *array)
{
    const msgpack_object *shape = map_find(map, "shape");
    return shape == NULL ? bad(d, "'shape' is missing")
                         : decode_integers(d, shape, "shape", array->shape, &array->ndim);
}

/* Valid shapes only: the strides' products fit. */
static int decode_strides(const struct decoder *d, const msgpack_object *map, struct array *array)
{
    const msgpack_object *strides = map_find(map, "strides");
    if (strides == NULL || strides->type == MSGPACK_OBJECT_NIL)
        return 0;
    int n;
    int r = decode_integers(d, strides, "strides", array->strides, &n);
    if (r == 0 && n != array->ndim) {
        r = error_set(d->error, GAD_BAD_SHAPE, d->name, "%d strides for %d dimensions", n,
                      array->ndim);
        error_expected(d->error, "%d strides", array->ndim);
        error_found(d->error, "%d", n);
    }
    return r;
}

static int decode_inline(const struct decoder *d, const msgpack_object *map, struct location *at)
{
    const msgpack_object *data = map_find(map, "data");
    if (data == NULL || data->type != MSGPACK_OBJECT_BIN)
        return bad(d, "'data' of an inline array is missing or not bytes");
    at->inlined.bytes = data->via.bin.ptr;
    at->inlined.size_bytes = data->via.bin.size;
    return 0;
}

static int decode_region(const struct decoder *d, const msgpack_object *map, struct location *at)
{
    int r = require_u64(d, map, "id", &at->region.id);
    return r ? r : require_u64(d, map, "offset", &at->region.offset_bytes);
}

static int decode_chunk_shape(const struct decoder *d, const msgpack_object *chunks, int ndim,
                              int64_t *ret_shape)
{
    if (chunks->type != MSGPACK_OBJECT_MAP)
        return bad(d, "'chunks' is not a map");
    const msgpack_object *shape = map_find(chunks, "shape");
    if (shape == NULL)
        return bad(d, "'shape' of the chunks is missing");
    int n;
    int r = decode_integers(d, shape, "chunks", ret_shape, &n);
    if (r == 0 && n != ndim) {
        r = error_set(d->error, GAD_BAD_CHUNK_TABLE, d->name,
                      "chunks of %d dimensions for an array of %d", n, ndim);
        error_expected(d->error, "%d dimensions", ndim);
        error_found(d->error, "%d", n);
    }
    return r;
}

static int decode_chunks(const struct decoder *d, const msgpack_object *chunks, int ndim,
                         struct location *at)
{
    int r = decode_chunk_shape(d, chunks, ndim, at->file.chunk_shape);
    if (r)
        return r;
    at->file.is_grid = true;
    r = require_fd(d, chunks, "table", &at->file.table_fd_index);
    return r ? r : require_u64(d, chunks, "count", &at->file.n_chunks);
}

static int decode_file(const struct decoder *d, const msgpack_object *map, int ndim,
                       struct location *at)
{
    int r = require_fd(d, map, "fd", &at->file.fd_index);
    if (r)
        return r;
    const msgpack_object *chunks = map_find(map, "chunks");
    return chunks != NULL ? decode_chunks(d, chunks, ndim, at)
                          : require_u64(d, map, "offset", &at->file.offset_bytes);
}

static int decode_provider(const struct decoder *d, const msgpack_object *map, int ndim,
                           struct location *at)
{
    const msgpack_object *chunks = map_find(map, "chunks");
    int r = require_fd(d, map, "ring", &at->provider.ring_fd_index);
    if (r == 0)
        r = require_fd(d, map, "request", &at->provider.request_fd_index);
    if (r == 0)
        r = require_fd(d, map, "done", &at->provider.done_fd_index);
    if (r == 0)
        r = require_u32(d, map, "slots", &at->provider.n_slots);
    if (r == 0)
        r = require_u64(d, map, "slot_bytes", &at->provider.slot_bytes);
    if (r == 0 && chunks != NULL)
        r = decode_chunk_shape(d, chunks, ndim, at->provider.chunk_shape);
    at->provider.has_chunks = chunks != NULL;
    if (r == 0)
        r = rename_error(d, map_bool(map, "stream", &at->provider.is_stream, d->error));
    if (r == 0)
        r = rename_error(d, map_bool(map, "wraps", &at->provider.wraps, d->error));
    return r;
}

static const struct {
    const char *word;
    enum location_kind kind;
} kinds[] = {
    {"inline", LOCATION_INLINE},
    {"region", LOCATION_REGION},
    {"file", LOCATION_FILE},
    {"provider", LOCATION_PROVIDER},
};

static int decode_kind(const struct decoder *d, const msgpack_object *map,
                       enum location_kind *ret_kind)
{
    const char *word = NULL;
    size_t n_chars = 0;
    int r = rename_error(d, map_require_str(map, "kind", &word, &n_chars, d->error));
    if (r)
        return r;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strlen(kinds[i].word) == n_chars && memcmp(kinds[i].word, word, n_chars) == 0) {
            *ret_kind = kinds[i].kind;
            return 0;
        }
    }
    r = bad(d, "the location is of no known kind");
    error_expected(d->error, "inline, region, file or provider");
    error_found(d->error, "%.*s", (int)min_u64(n_chars, 64), word);
    return r;
}

static int decode_location(const struct decoder *d, const msgpack_object *map, int ndim,
                           struct location *at)
{
    if (map->type != MSGPACK_OBJECT_MAP)
        return bad(d, "'at' is not a map");
    int r = decode_kind(d, map, &at->kind);
    if (r)
        return r;
    switch (at->kind) {
    case LOCATION_INLINE: return decode_inline(d, map, at);
    case LOCATION_REGION: return decode_region(d, map, at);
    case LOCATION_FILE: return decode_file(d, map, ndim, at);
    case LOCATION_PROVIDER: return decode_provider(d, map, ndim, at);
    default: return bad(d, "the location is of no known kind");
    }
}

static bool has_fixed_order(const struct location *at)
{
    return at->kind == LOCATION_INLINE || at->kind == LOCATION_PROVIDER ||
           (at->kind == LOCATION_FILE && at->file.is_grid);
}

/* The end of it is an answer of the ring's. */
static int check_open(const struct decoder *d, const struct array *array)
{
    const struct location *at = &array->at;
    if (at->kind != LOCATION_NONE && (at->kind != LOCATION_PROVIDER || !at->provider.is_stream))
        return bad(d, "only a stream is open");
    if (array->ndim > 0 && array_n_elements(array) > 0)
        return 0;
    return bad(d, "an open array has a first axis, and rows that have elements");
}

static int decode_parts(const struct decoder *d, const msgpack_object *map, bool needs_at,
                        struct array *array)
{
    if (map->type != MSGPACK_OBJECT_MAP)
        return bad(d, "the array is not a map");
    int r = decode_dtype(d, map, array);
    if (r == 0)
        r = decode_shape(d, map, array);
    if (r == 0)
        r = array_check(array, d->name, d->error); /* the shape, before strides are made of it */
    if (r)
        return r;
    array_c_strides(array->ndim, array->shape, (int64_t)dtype_size(array->dtype), array->strides);
    r = decode_strides(d, map, array);
    if (r == 0)
        r = rename_error(d, map_bool(map, "open", &array->is_open, d->error));
    const msgpack_object *at = map_find(map, "at");
    if (r == 0 && at != NULL)
        r = decode_location(d, at, array->ndim, &array->at);
    else if (r == 0 && needs_at)
        r = bad(d, "'at' is missing");
    if (r == 0)
        r = array_check(array, d->name, d->error);
    if (r == 0 && has_fixed_order(&array->at) && !array_is_c_contiguous(array))
        r = bad(d, "strides go with regions and contiguous files only");
    return r == 0 && array->is_open ? check_open(d, array) : r;
}

int descriptor_decode_with(const msgpack_object *map, const char *name, const char *key,
                           unsigned n_fds, struct used_fds *used_fds, uint32_t *ret_index,
                           struct gad_error *error)
{
    const struct decoder d = {name, n_fds, used_fds, error};
    return require_fd(&d, map, key, ret_index);
}

int array_decode_with(const msgpack_object *map, const char *name, unsigned n_fds,
                      struct used_fds *used_fds, bool needs_at, struct array *ret_array,
                      struct gad_error *error)
{
    const struct decoder d = {name, n_fds, used_fds, error};
    memset(ret_array, 0, sizeof(*ret_array));
    return decode_parts(&d, map, needs_at, ret_array);
}

int array_decode(const msgpack_object *map, const char *name, unsigned n_fds, bool needs_at,
                 struct array *ret_array, struct gad_error *error)
{
    struct used_fds used_fds = {{false}};
    struct array array;
    int r = array_decode_with(map, name, n_fds, &used_fds, needs_at, &array, error);
    if (r == 0)
        *ret_array = array;
    return r;
}
