/* Indices as places.
 *
 * Indices are read into memory of our own before they are checked: whoever has them may write them
 * meanwhile. A place that has passed is below the length of its axis.
 *
 * Called by take_provider.c and take_window.c, by any thread.
 */
#include "client/lib/memory/block.h"
#include "client/lib/take/take.h"
#include "proto/util.h"

#include <string.h>

#define PIECE 4096 /* indices that are widened at a time: they stay in the cache */

int take_read(const struct gad_array *array, const int64_t *start, const int64_t *count,
              void *ret_block)
{
    if (array->access != ACCESS_MEMORY && array->access != ACCESS_REGION)
        return array->provider->fill(array->provider_state, start, count, ret_block);
    const char *first = array->data;
    for (int i = 0; i < array->info.ndim; i++) {
        if (count[i] == 0)
            return 0;
        first += start[i] * array->info.strides[i];
    }
    block_gather(ret_block, first, array->info.ndim, count, array->info.strides,
                 gad_dtype_size(array->info.dtype));
    return 0;
}

/* Widening ------------------------------------------------------------------------------------- */

#define WIDEN(type, unsigned_type, swap)                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        unsigned_type stored;                                                                      \
        memcpy(&stored, from + i * sizeof(stored), sizeof(stored));                                \
        ret[i] = (int64_t)(type)(is_swapped ? swap(stored) : stored);                              \
    }                                                                                              \
    break
#define KEEP(x) (x)

/* Of uint64 those beyond int64 become negative. */
static void widen(enum gad_dtype dtype, bool is_swapped, const char *from, size_t n, int64_t *ret)
{
    switch (dtype) {
    case GAD_INT8: WIDEN(int8_t, uint8_t, KEEP);
    case GAD_UINT8: WIDEN(uint8_t, uint8_t, KEEP);
    case GAD_INT16: WIDEN(int16_t, uint16_t, __builtin_bswap16);
    case GAD_UINT16: WIDEN(uint16_t, uint16_t, __builtin_bswap16);
    case GAD_INT32: WIDEN(int32_t, uint32_t, __builtin_bswap32);
    case GAD_UINT32: WIDEN(uint32_t, uint32_t, __builtin_bswap32);
    default: WIDEN(int64_t, uint64_t, __builtin_bswap64);
    }
}

/* Checking ------------------------------------------------------------------------------------- */

/* The first one is kept. at: its number among the box's. */
static int fail(struct take *take, const int64_t *start, const int64_t *count, size_t at,
                int64_t value, bool is_unsigned)
{
    pthread_mutex_lock(&take->lock);
    if (!take->has_failed) {
        take->has_failed = true;
        take->value = value;
        take->is_unsigned = is_unsigned;
        for (int i = take->n_index_axes - 1; i >= 0; at /= (size_t)count[i--])
            take->failed_at[i] = start[i] + (int64_t)(at % (size_t)count[i]);
    }
    pthread_mutex_unlock(&take->lock);
    return ERANGE;
}

static int64_t wrapped(int64_t value, int64_t length, bool is_unsigned)
{
    if (is_unsigned)
        return (int64_t)((uint64_t)value % (uint64_t)length);
    int64_t rest = value % length;
    return rest < 0 ? rest + length : rest;
}

/* Where an index lies that is not from 0 to length - 1; negative: nowhere. */
static int64_t brought_in(const struct take *take, int64_t value, bool is_unsigned)
{
    switch (take->mode) {
    case GAD_TAKE_WRAP: return wrapped(value, take->length, is_unsigned);
    case GAD_TAKE_CLIP: return value < 0 && !is_unsigned ? 0 : take->length - 1;
    case GAD_TAKE_RAISE: break;
    }
    return value < 0 && value >= -take->length && !is_unsigned ? value + take->length : -1;
}

int take_places(struct take *take, const int64_t *start, const int64_t *count, int64_t *ret_places)
{
    const struct gad_array_info *info = &take->indices->info;
    size_t n = 1, item = gad_dtype_size(info->dtype);
    bool is_unsigned = info->dtype == GAD_UINT64;
    for (int i = 0; i < take->n_index_axes; i++)
        n *= (size_t)count[i];
    _cleanup_free_ char *raw = malloc(n * item);
    int r = raw ? take_read(take->indices, start, count, raw) : ENOMEM;
    if (r) {
        pthread_mutex_lock(&take->lock);
        take->unread = take->unread ? take->unread : take->indices;
        pthread_mutex_unlock(&take->lock);
        return r;
    }
    for (size_t first = 0; first < n; first += PIECE) {
        size_t end = first + PIECE < n ? first + PIECE : n;
        widen(info->dtype, info->is_swapped, raw + first * item, end - first, ret_places + first);
        for (size_t i = first; i < end; i++) {
            int64_t value = ret_places[i];
            if ((uint64_t)value < (uint64_t)take->length)
                continue;
            ret_places[i] = brought_in(take, value, is_unsigned);
            if (ret_places[i] < 0)
                return fail(take, start, count, i, value, is_unsigned);
        }
    }
    return 0;
}
