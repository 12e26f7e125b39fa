/* Packing and unpacking blocks of arrays in ordinary memory.
 *
 * A box (proto/box.h) of the array and the packed block is walked along its outer axes, with one of
 * three copies inside:
 *
 *     run        the fastest axis is contiguous: memcpy(), or past the cache
 *     transpose  another axis is the dense one (Fortran order): squares of TRANSPOSE_TILE elements
 *                a side, so that the cache lines of both sides are used whole
 *     strided    neither: element by element
 *
 * Reads every element of the box once and writes it once. Called by the pump's threads, by request
 * building for inline arrays, and at the end of a job for staged outputs.
 */
#include "client/lib/memory/block.h"
#include "proto/box.h"

#include <stdlib.h>
#include <string.h>

#define TRANSPOSE_TILE   32
#define STREAM_MIN_BYTES 1024 /* of a run: below, the two ends weigh too much */

enum direction { GATHER, SCATTER, SCATTER_STREAM };

enum { STRIDED, PACKED }; /* whose strides are which in a box */

/* Of the box: at least one axis; at least two where the fastest is not dense in the array. False
 * when there is no element. */
static bool make_box(struct box *box, int ndim, const int64_t *count, const int64_t *strides,
                     int64_t item_bytes)
{
    int64_t packed = item_bytes;
    box->n = 0;
    for (int i = ndim - 1; i >= 0; i--) {
        if (count[i] == 0)
            return false;
        box_add(box, count[i], strides[i], packed);
        packed *= count[i];
    }
    box_need_axis(box, item_bytes, item_bytes);
    if (box->n == 1 && box->axes[0].strides[STRIDED] != item_bytes)
        box->axes[box->n++] = (struct box_axis){.count = 1}; /* a plane has two axes */
    return true;
}

struct side { /* one of the two memories, with its steps along the two inner axes */
    char *bytes;
    int64_t step0, step1;
};

#define COPY_PLANE(type)                                                                           \
    for (int64_t i = 0; i < n0; i++)                                                               \
        for (int64_t j = 0; j < n1; j++)                                                           \
    memcpy(to.bytes + i * to.step0 + j * to.step1, from.bytes + i * from.step0 + j * from.step1,   \
           sizeof(type))

static void copy_plane(struct side to, struct side from, int64_t n0, int64_t n1, size_t item_bytes)
{
    switch (item_bytes) {
    case 1: COPY_PLANE(uint8_t); break;
    case 2: COPY_PLANE(uint16_t); break;
    case 4: COPY_PLANE(uint32_t); break;
    default: COPY_PLANE(uint64_t); break;
    }
}

static void copy_tiles(struct side to, struct side from, int64_t n0, int64_t n1, size_t item_bytes)
{
    for (int64_t i = 0; i < n0; i += TRANSPOSE_TILE)
        for (int64_t j = 0; j < n1; j += TRANSPOSE_TILE) {
            struct side to_tile = to, from_tile = from;
            to_tile.bytes += i * to.step0 + j * to.step1;
            from_tile.bytes += i * from.step0 + j * from.step1;
            copy_plane(to_tile, from_tile, n0 - i < TRANSPOSE_TILE ? n0 - i : TRANSPOSE_TILE,
                       n1 - j < TRANSPOSE_TILE ? n1 - j : TRANSPOSE_TILE, item_bytes);
        }
}

/* Moves the axis that is dense in the array to the second place. */
static void pair_dense(struct box *box, int64_t item_bytes)
{
    for (int i = box->n - 1; i > 1; i--) {
        struct box_axis dense = box->axes[i];
        if (llabs(dense.strides[STRIDED]) != item_bytes)
            continue;
        box->axes[i] = box->axes[1];
        box->axes[1] = dense;
        return;
    }
}

static void copy_inner(char *strided, char *packed, const struct box *box, enum direction direction,
                       size_t item_bytes)
{
    const struct box_axis *fast = &box->axes[0], *slow = &box->axes[1];
    bool is_gather = direction == GATHER;
    if (fast->strides[STRIDED] == (int64_t)item_bytes) {
        size_t n_bytes = (size_t)fast->count * item_bytes;
        if (direction == SCATTER_STREAM && n_bytes >= STREAM_MIN_BYTES)
            box_copy_past_cache(strided, packed, n_bytes, NULL, 0);
        else
            memcpy(is_gather ? packed : strided, is_gather ? strided : packed, n_bytes);
        return;
    }
    struct side a = {strided, slow->strides[STRIDED], fast->strides[STRIDED]};
    struct side b = {packed, slow->strides[PACKED], fast->strides[PACKED]};
    copy_tiles(is_gather ? b : a, is_gather ? a : b, slow->count, fast->count, item_bytes);
}

static void copy_box(char *strided, char *packed, int ndim, const int64_t *count,
                     const int64_t *strides, enum direction direction, size_t item_bytes)
{
    struct box box;
    struct box_place place = {.index = {0}};
    if (!make_box(&box, ndim, count, strides, (int64_t)item_bytes))
        return;
    bool is_run = box.axes[0].strides[STRIDED] == (int64_t)item_bytes;
    int n_inner = is_run ? 1 : 2;
    if (!is_run)
        pair_dense(&box, (int64_t)item_bytes);
    do
        copy_inner(strided + place.offset[STRIDED], packed + place.offset[PACKED], &box, direction,
                   item_bytes);
    while (box_next(box.axes + n_inner, box.n - n_inner, &place));
    if (direction == SCATTER_STREAM)
        box_fence();
}

void block_gather(void *packed, const void *first, int ndim, const int64_t *count,
                  const int64_t *strides, size_t item_bytes)
{
    copy_box((char *)first, packed, ndim, count, strides, GATHER, item_bytes);
}

void block_scatter(void *first, const void *packed, int ndim, const int64_t *count,
                   const int64_t *strides, size_t item_bytes, bool is_streamed)
{
    copy_box(first, (char *)packed, ndim, count, strides, is_streamed ? SCATTER_STREAM : SCATTER,
             item_bytes);
}

bool block_is_run(int ndim, const int64_t *count, const int64_t *strides, size_t item_bytes)
{
    int64_t step = (int64_t)item_bytes;
    for (int i = ndim - 1; i >= 0; i--) {
        if (count[i] != 1 && strides[i] != step)
            return false;
        step *= count[i];
    }
    return true;
}
