/* Array descriptors: every number checked once, then plain arithmetic on it.
 *
 * array_check() is the gate: after it, for any shape and strides of the array, the number of
 * elements and bytes, the extent on both sides of element 0 and (in a region or file) every
 * address are known to fit 63 bits, so that the other functions here, the planner and the engines
 * may multiply and add without checks. To keep that true for arrays without elements as well, a
 * dimension of 0 counts as 1 in the sums, and a stride that is never used (a dimension of 1) is
 * held to the same bound as the others.
 *
 * Called by decoders (a client's numbers), by the client library (its caller's numbers), and the
 * plain helpers by everybody.
 */
#include "proto/array.h"

#include "proto/wire/ring.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_STRIDE_BYTES (INT64_C(1) << 62)
#define SHAPE_CHARS      112

void array_c_strides(int ndim, const int64_t *shape, int64_t item_bytes, int64_t *ret_strides)
{
    int64_t stride = item_bytes;
    for (int i = ndim - 1; i >= 0; i--) {
        ret_strides[i] = stride;
        stride *= shape[i] > 0 ? shape[i] : 1;
    }
}

static int check_shape(int ndim, const int64_t *shape, int64_t item_bytes, const char *name,
                       struct gad_error *error)
{
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM) {
        int r = error_set(error, GAD_BAD_SHAPE, name, "%d dimensions are too many", ndim);
        error_expected(error, "at most %d dimensions", ARRAY_MAX_NDIM);
        error_found(error, "%d", ndim);
        return r;
    }
    int64_t n_bytes = item_bytes;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) {
            int r = error_set(error, GAD_BAD_SHAPE, name, "dimension %d is negative: %" PRId64, i,
                              shape[i]);
            error_expected(error, "dimensions of 0 or more");
            error_found(error, "%" PRId64, shape[i]);
            return r;
        }
        if (mul_overflows_i64(n_bytes, shape[i] > 0 ? shape[i] : 1, &n_bytes)) {
            char text[SHAPE_CHARS];
            array_format_shape(ndim, shape, text, sizeof(text));
            int r = error_set(error, GAD_BAD_SHAPE, name,
                              "shape %s has more bytes than 63 bits can count", text);
            error_expected(error, "less than 2**63 bytes");
            error_found(error, "%s", text);
            return r;
        }
    }
    return 0;
}

/* The extent of the elements around element 0, dimensions of 0 counted as 1. False when it does
 * not fit. */
static bool extent_of(const struct array *array, int64_t *ret_low, int64_t *ret_high)
{
    int64_t low = 0, high = (int64_t)dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++) {
        int64_t stride = array->strides[i], reach;
        int64_t last = array->shape[i] > 0 ? array->shape[i] - 1 : 0;
        if (stride < -MAX_STRIDE_BYTES || stride > MAX_STRIDE_BYTES ||
            mul_overflows_i64(stride, last, &reach))
            return false;
        int64_t *side = reach < 0 ? &low : &high;
        if (add_overflows_i64(*side, reach, side))
            return false;
    }
    int64_t span;
    if (__builtin_sub_overflow(high, low, &span))
        return false;
    *ret_low = low;
    *ret_high = high;
    return true;
}

static int extent_error(const char *name, const char *what, struct gad_error *error)
{
    return error_set(error, GAD_BAD_EXTENT, name, "%s", what);
}

/* Element 0 lies at an offset of a region or file: no address before it or beyond 2**63. */
static int check_offset(uint64_t offset_bytes, int64_t low, int64_t high, const char *name,
                        struct gad_error *error)
{
    int64_t end;
    if (offset_bytes > INT64_MAX || add_overflows_i64((int64_t)offset_bytes, high, &end))
        return extent_error(name, "offset, shape and strides reach beyond 63 bits", error);
    if ((int64_t)offset_bytes + low < 0) {
        int r = error_set(error, GAD_BAD_EXTENT, name,
                          "an element would lie %" PRId64 " bytes before the beginning",
                          -((int64_t)offset_bytes + low));
        error_expected(error, "an offset of at least %" PRId64, -low);
        error_found(error, "%" PRIu64, offset_bytes);
        return r;
    }
    return 0;
}

static int check_inline(const struct array *array, const char *name, struct gad_error *error)
{
    int64_t n_bytes = array_n_bytes(array);
    uint64_t size_bytes = array->at.inlined.size_bytes;
    if (n_bytes > ARRAY_MAX_INLINE_BYTES || size_bytes > ARRAY_MAX_INLINE_BYTES) {
        int r = error_set(error, GAD_TOO_LARGE_FOR_INLINE, name,
                          "%" PRIu64 " bytes are too many for an inline array",
                          max_u64((uint64_t)n_bytes, size_bytes));
        error_expected(error, "at most %d bytes", ARRAY_MAX_INLINE_BYTES);
        error_found(error, "%" PRIu64, max_u64((uint64_t)n_bytes, size_bytes));
        return r;
    }
    if ((uint64_t)n_bytes != size_bytes) {
        int r = error_set(error, GAD_BAD_EXTENT, name,
                          "shape and dtype need %" PRId64 " bytes, the message holds %" PRIu64,
                          n_bytes, size_bytes);
        error_expected(error, "%" PRId64 " bytes", n_bytes);
        error_found(error, "%" PRIu64 " bytes", size_bytes);
        return r;
    }
    return 0;
}

static int check_chunk_shape(const struct array *array, const int64_t *chunk_shape,
                             const char *name, struct gad_error *error)
{
    for (int i = 0; i < array->ndim; i++) {
        if (chunk_shape[i] < 1)
            return error_set(error, GAD_BAD_CHUNK_TABLE, name,
                             "dimension %d of the chunks is %" PRId64, i, chunk_shape[i]);
    }
    return check_shape(array->ndim, chunk_shape, (int64_t)dtype_size(array->dtype), name, error);
}

static int check_grid(const struct array *array, const char *name, struct gad_error *error)
{
    const int64_t *chunk_shape = array->at.file.chunk_shape;
    int64_t n_chunks = 1, n_bytes;
    int r = check_chunk_shape(array, chunk_shape, name, error);
    if (r)
        return r;
    for (int i = 0; i < array->ndim; i++)
        n_chunks *= array->shape[i] / chunk_shape[i] + (array->shape[i] % chunk_shape[i] != 0);
    if (array->at.file.n_chunks != (uint64_t)n_chunks) {
        r = error_set(error, GAD_BAD_CHUNK_TABLE, name,
                      "the table has %" PRIu64 " chunks, the array %" PRId64,
                      array->at.file.n_chunks, n_chunks);
        error_expected(error, "%" PRId64, n_chunks);
        error_found(error, "%" PRIu64, array->at.file.n_chunks);
        return r;
    }
    if (mul_overflows_i64(n_chunks, (int64_t)sizeof(struct chunk_entry), &n_bytes))
        return error_set(error, GAD_BAD_CHUNK_TABLE, name, "too many chunks: %" PRId64, n_chunks);
    return 0;
}

static int check_provider(const struct array *array, const char *name, struct gad_error *error)
{
    if (ring_size_bytes(array->at.provider.n_slots, array->at.provider.slot_bytes) != 0)
        return array->at.provider.has_chunks
                   ? check_chunk_shape(array, array->at.provider.chunk_shape, name, error)
                   : 0;
    int r = error_set(error, GAD_LIMIT_EXCEEDED, name,
                      "a ring of %" PRIu32 " slots of %" PRIu64 " bytes is not possible",
                      array->at.provider.n_slots, array->at.provider.slot_bytes);
    error_expected(error, "1 to %u slots of %u to %u bytes, a multiple of 4096", RING_MAX_SLOTS,
                   RING_MIN_SLOT_BYTES, RING_MAX_SLOT_BYTES);
    error_found(error, "%" PRIu32 " slots of %" PRIu64 " bytes", array->at.provider.n_slots,
                array->at.provider.slot_bytes);
    return r;
}

int array_check(const struct array *array, const char *name, struct gad_error *error)
{
    int r = check_shape(array->ndim, array->shape, (int64_t)dtype_size(array->dtype), name, error);
    if (r)
        return r;
    int64_t low, high;
    if (!extent_of(array, &low, &high))
        return extent_error(name, "shape and strides reach beyond 63 bits", error);
    switch (array->at.kind) {
    case LOCATION_NONE: return 0;
    case LOCATION_INLINE: return check_inline(array, name, error);
    case LOCATION_REGION:
        return check_offset(array->at.region.offset_bytes, low, high, name, error);
    case LOCATION_FILE:
        if (array->at.file.is_grid)
            return check_grid(array, name, error);
        return check_offset(array->at.file.offset_bytes, low, high, name, error);
    case LOCATION_PROVIDER: return check_provider(array, name, error);
    }
    return error_set(error, GAD_BAD_REQUEST, name, "no such location");
}

const int64_t *array_chunk_shape(const struct array *array)
{
    const struct location *at = &array->at;
    if (at->kind == LOCATION_FILE && at->file.is_grid)
        return at->file.chunk_shape;
    return at->kind == LOCATION_PROVIDER && at->provider.has_chunks ? at->provider.chunk_shape
                                                                    : NULL;
}

int64_t array_n_elements(const struct array *array)
{
    int64_t n = 1;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return 0;
    for (int i = 0; i < array->ndim; i++)
        n *= array->shape[i];
    return n;
}

int64_t array_n_bytes(const struct array *array)
{
    return array_n_elements(array) * (int64_t)dtype_size(array->dtype);
}

void array_extent(const struct array *array, int64_t *ret_low, int64_t *ret_high)
{
    *ret_low = *ret_high = 0;
    if (array_n_elements(array) == 0)
        return;
    *ret_high = (int64_t)dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++) {
        int64_t reach = array->strides[i] * (array->shape[i] - 1);
        if (reach < 0)
            *ret_low += reach;
        else
            *ret_high += reach;
    }
}

/* Walks the axes from the fastest one, `first`, by `step`. */
static bool is_contiguous(const struct array *array, int first, int step)
{
    if (array_n_elements(array) == 0)
        return true;
    int64_t stride = (int64_t)dtype_size(array->dtype);
    for (int i = first; i >= 0 && i < array->ndim; i += step) {
        if (array->shape[i] == 1)
            continue;
        if (array->strides[i] != stride)
            return false;
        stride *= array->shape[i];
    }
    return true;
}

bool array_is_c_contiguous(const struct array *array)
{
    return is_contiguous(array, array->ndim - 1, -1);
}

bool array_is_f_contiguous(const struct array *array)
{
    return is_contiguous(array, 0, 1);
}

static int broadcast_error(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b,
                           struct gad_error *error)
{
    char a_text[SHAPE_CHARS], b_text[SHAPE_CHARS];
    array_format_shape(a_ndim, a, a_text, sizeof(a_text));
    array_format_shape(b_ndim, b, b_text, sizeof(b_text));
    int r = error_set(error, GAD_BAD_SHAPE, NULL, "shapes %s and %s do not broadcast together",
                      a_text, b_text);
    error_expected(error, "%s", a_text);
    error_found(error, "%s", b_text);
    return r;
}

int array_broadcast(int *ndim, int64_t *shape, int b_ndim, const int64_t *b_shape,
                    struct gad_error *error)
{
    int result_ndim = *ndim > b_ndim ? *ndim : b_ndim;
    int64_t result[ARRAY_MAX_NDIM];
    for (int i = 1; i <= result_ndim; i++) {
        int64_t a = i <= *ndim ? shape[*ndim - i] : 1;
        int64_t b = i <= b_ndim ? b_shape[b_ndim - i] : 1;
        if (a != b && a != 1 && b != 1)
            return broadcast_error(*ndim, shape, b_ndim, b_shape, error);
        result[result_ndim - i] = a == 1 ? b : a;
    }
    for (int i = 0; i < result_ndim; i++)
        shape[i] = result[i];
    *ndim = result_ndim;
    return 0;
}

char *array_format_shape(int ndim, const int64_t *shape, char *buffer, size_t n_bytes)
{
    size_t used = 0;
    int n = snprintf(buffer, n_bytes, "(");
    for (int i = 0; i <= ndim && n >= 0; i++) {
        used += (size_t)n;
        if (used >= n_bytes)
            break;
        const char *comma = ndim == 1 ? "," : i + 1 < ndim ? ", " : "";
        if (i == ndim)
            n = snprintf(buffer + used, n_bytes - used, ")");
        else if (shape[i] < 0)
            n = snprintf(buffer + used, n_bytes - used, "?%s", comma);
        else
            n = snprintf(buffer + used, n_bytes - used, "%" PRId64 "%s", shape[i], comma);
    }
    return buffer;
}
