/* The byte shuffle of HDF5 and numcodecs: all first bytes of the items, then all second ones, and
 * so on; bytes behind the last whole item follow as they are. values[0]: bytes of an item.
 *
 * The usual items have loops whose item size the compiler knows, so that it uses vectors; others go
 * byte by byte in pieces that stay in the cache.
 */
#include "client/codecs/shuffle.h"
#include "client/codecs/scratch.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* below that it does not vectorise these loops */
#endif

#define PIECE_ITEMS 4096

/* Planes as arguments of their own: the compiler then knows what it may keep in registers. */
#define PLANES_2(p) p[0], p[1]
#define PLANES_4(p) p[0], p[1], p[2], p[3]
#define PLANES_8(p) p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
static void join_2(uint8_t *restrict items, size_t n_items, const uint8_t *restrict a,
                   const uint8_t *restrict b)
{
    for (size_t i = 0; i < n_items; i++, items += 2) {
        items[0] = a[i];
        items[1] = b[i];
    }
}

static void join_4(uint8_t *restrict items, size_t n_items, const uint8_t *restrict a,
                   const uint8_t *restrict b, const uint8_t *restrict c, const uint8_t *restrict d)
{
    for (size_t i = 0; i < n_items; i++, items += 4) {
        items[0] = a[i];
        items[1] = b[i];
        items[2] = c[i];
        items[3] = d[i];
    }
}

static void join_8(uint8_t *restrict items, size_t n_items, const uint8_t *restrict a,
                   const uint8_t *restrict b, const uint8_t *restrict c, const uint8_t *restrict d,
                   const uint8_t *restrict e, const uint8_t *restrict f, const uint8_t *restrict g,
                   const uint8_t *restrict h)
{
    for (size_t i = 0; i < n_items; i++, items += 8) {
        items[0] = a[i];
        items[1] = b[i];
        items[2] = c[i];
        items[3] = d[i];
        items[4] = e[i];
        items[5] = f[i];
        items[6] = g[i];
        items[7] = h[i];
    }
}

/* Plane k of n_items bytes begins at planes + k * n_items. */
#define DEFINE_SPLIT(ITEM)                                                                         \
    static void split_##ITEM(const uint8_t *restrict items, uint8_t *restrict planes,              \
                             size_t n_items)                                                       \
    {                                                                                              \
        for (size_t i = 0; i < n_items; i++)                                                       \
            for (size_t k = 0; k < ITEM; k++)                                                      \
                planes[k * n_items + i] = items[i * ITEM + k];                                     \
    }
DEFINE_SPLIT(2)
DEFINE_SPLIT(4)
DEFINE_SPLIT(8)

/* list NULL: the planes follow each other from `planes` on. */
static void join_any(const uint8_t *const *list, const uint8_t *planes, uint8_t *items,
                     size_t n_items, size_t item_bytes)
{
    for (size_t from = 0; from < n_items; from += PIECE_ITEMS) {
        size_t to = from + PIECE_ITEMS < n_items ? from + PIECE_ITEMS : n_items;
        for (size_t k = 0; k < item_bytes; k++) {
            const uint8_t *plane = list ? list[k] : planes + k * n_items;
            for (size_t i = from; i < to; i++)
                items[i * item_bytes + k] = plane[i];
        }
    }
}

static void split_any(const uint8_t *items, uint8_t *planes, size_t n_items, size_t item_bytes)
{
    for (size_t from = 0; from < n_items; from += PIECE_ITEMS) {
        size_t to = from + PIECE_ITEMS < n_items ? from + PIECE_ITEMS : n_items;
        for (size_t k = 0; k < item_bytes; k++)
            for (size_t i = from; i < to; i++)
                planes[k * n_items + i] = items[i * item_bytes + k];
    }
}

static size_t item_bytes_of(const struct codec_step *step)
{
    return step->n_values > 0 && step->values[0] > 0 ? step->values[0] : 1;
}

void shuffle_join_planes(const uint8_t *const *planes, void *items, size_t n_items,
                         size_t item_bytes)
{
    switch (item_bytes) {
    case 1: memcpy(items, planes[0], n_items); break;
    case 2: join_2(items, n_items, PLANES_2(planes)); break;
    case 4: join_4(items, n_items, PLANES_4(planes)); break;
    case 8: join_8(items, n_items, PLANES_8(planes)); break;
    default: join_any(planes, NULL, items, n_items, item_bytes);
    }
}

void shuffle_join(const void *planes, void *items, size_t n_items, size_t item_bytes)
{
    const uint8_t *list[SHUFFLE_MAX_PLANES];
    for (size_t k = 0; k < item_bytes && k < SHUFFLE_MAX_PLANES; k++)
        list[k] = (const uint8_t *)planes + k * n_items;
    if (item_bytes <= SHUFFLE_MAX_PLANES)
        shuffle_join_planes(list, items, n_items, item_bytes);
    else
        join_any(NULL, planes, items, n_items, item_bytes);
}

void shuffle_split(const void *items, void *planes, size_t n_items, size_t item_bytes)
{
    switch (item_bytes) {
    case 1: memcpy(planes, items, n_items); break;
    case 2: split_2(items, planes, n_items); break;
    case 4: split_4(items, planes, n_items); break;
    case 8: split_8(items, planes, n_items); break;
    default: split_any(items, planes, n_items, item_bytes);
    }
}

typedef void move_fn(const void *from, void *to, size_t n_items, size_t item_bytes);

static int turn(move_fn *move, const struct codec_step *step, const void *from, size_t n_from,
                void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    size_t item_bytes = item_bytes_of(step), n_items = n_from / item_bytes;
    size_t n_whole = n_items * item_bytes;
    if (n_from > room)
        return CODEC_FAULT_LONG;
    move(from, ret_bytes, n_items, item_bytes);
    memcpy((uint8_t *)ret_bytes + n_whole, (const uint8_t *)from + n_whole, n_from - n_whole);
    *ret_n_bytes = n_from;
    return 0;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    return turn(shuffle_join, step, from, n_from, ret_bytes, room, ret_n_bytes);
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    return turn(shuffle_split, step, from, n_from, ret_bytes, room, ret_n_bytes);
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes;
}

const struct codec codec_shuffle = {
    .name = "shuffle",
    .hdf5_id = 2,
    .zarr_name = "shuffle",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
