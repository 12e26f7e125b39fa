/* Packing and unpacking blocks of arrays in ordinary memory.
 *
 * First the axes are reduced: those of length 1 go, and neighbours that are one run in memory
 * become one axis. What is left is walked by an odometer over the outer axes, with one of three
 * copies inside:
 *
 *     run        the last axis is contiguous: memcpy(), or past the cache
 *     transpose  another axis is the dense one (Fortran order): squares of TRANSPOSE_TILE elements
 *                a side, so that the cache lines of both sides are used whole
 *     strided    neither: element by element
 *
 * Reads every element of the box once and writes it once. Called by the pump's threads, by request
 * building for inline arrays, and at the end of a job for staged outputs.
 */
#include "client/lib/memory/block.h"
#include "client/lib/memory/stream.h"
#include "proto/array.h"

#include <stdbool.h>
#include <string.h>

#define TRANSPOSE_TILE   32
#define STREAM_MIN_BYTES 1024 /* of a run: below, the two ends weigh too much */

enum direction { GATHER, SCATTER, SCATTER_STREAM };

struct axes { /* at least one; at least two where the last is not dense in the array */
    int n;
    int64_t count[ARRAY_MAX_NDIM];
    int64_t strided[ARRAY_MAX_NDIM]; /* bytes per step in the array */
    int64_t packed[ARRAY_MAX_NDIM];  /* bytes per step in the block */
};

/* From the fastest axis on; false when there is no element. */
static bool axes_reduce(struct axes *axes, int ndim, const int64_t *count, const int64_t *strides,
                        int64_t item_bytes)
{
    struct axes reversed = {0};
    int64_t packed = item_bytes;
    for (int i = ndim - 1; i >= 0; i--) {
        int last = reversed.n - 1;
        if (count[i] == 0)
            return false;
        if (count[i] == 1)
            continue;
        if (last >= 0 && strides[i] == reversed.strided[last] * reversed.count[last]) {
            reversed.count[last] *= count[i];
        } else {
            reversed.count[reversed.n] = count[i];
            reversed.strided[reversed.n] = strides[i];
            reversed.packed[reversed.n] = packed;
            reversed.n++;
        }
        packed *= count[i];
    }
    if (reversed.n == 0) {
        reversed.count[0] = 1;
        reversed.strided[0] = reversed.packed[0] = item_bytes;
        reversed.n = 1;
    }
    if (reversed.n == 1 && reversed.strided[0] != item_bytes)
        reversed.count[reversed.n++] = 1; /* a plane has two axes */
    axes->n = reversed.n;
    for (int i = 0; i < axes->n; i++) {
        int from = axes->n - 1 - i;
        axes->count[i] = reversed.count[from];
        axes->strided[i] = reversed.strided[from];
        axes->packed[i] = reversed.packed[from];
    }
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

/* Moves the axis that is dense in the array to the last place but one. */
static void axes_pair_dense(struct axes *axes, int64_t item_bytes)
{
    for (int i = 0; i < axes->n - 2; i++) {
        if (axes->strided[i] != item_bytes && axes->strided[i] != -item_bytes)
            continue;
        int to = axes->n - 2;
        int64_t count = axes->count[i], strided = axes->strided[i], packed = axes->packed[i];
        axes->count[i] = axes->count[to];
        axes->strided[i] = axes->strided[to];
        axes->packed[i] = axes->packed[to];
        axes->count[to] = count;
        axes->strided[to] = strided;
        axes->packed[to] = packed;
        return;
    }
}

static void copy_inner(char *strided, char *packed, const struct axes *axes,
                       enum direction direction, size_t item_bytes)
{
    int last = axes->n - 1;
    bool is_gather = direction == GATHER;
    if (axes->strided[last] == (int64_t)item_bytes) {
        size_t n_bytes = (size_t)axes->count[last] * item_bytes;
        if (direction == SCATTER_STREAM && n_bytes >= STREAM_MIN_BYTES)
            stream_copy(strided, packed, n_bytes, NULL, 0);
        else
            memcpy(is_gather ? packed : strided, is_gather ? strided : packed, n_bytes);
        return;
    }
    struct side a = {strided, axes->strided[last - 1], axes->strided[last]};
    struct side b = {packed, axes->packed[last - 1], axes->packed[last]};
    copy_tiles(is_gather ? b : a, is_gather ? a : b, axes->count[last - 1], axes->count[last],
               item_bytes);
}

/* Steps the odometer of the outer axes; false at its end. */
static bool step(char **strided, char **packed, int64_t *index, const struct axes *axes,
                 int n_outer)
{
    for (int axis = n_outer - 1; axis >= 0; axis--) {
        *strided += axes->strided[axis];
        *packed += axes->packed[axis];
        if (++index[axis] < axes->count[axis])
            return true;
        *strided -= axes->strided[axis] * axes->count[axis];
        *packed -= axes->packed[axis] * axes->count[axis];
        index[axis] = 0;
    }
    return false;
}

static void copy_box(char *strided, char *packed, int ndim, const int64_t *count,
                     const int64_t *strides, enum direction direction, size_t item_bytes)
{
    struct axes axes;
    if (!axes_reduce(&axes, ndim, count, strides, (int64_t)item_bytes))
        return;
    int n_outer = axes.n - 1;
    if (axes.strided[axes.n - 1] != (int64_t)item_bytes) {
        axes_pair_dense(&axes, (int64_t)item_bytes);
        n_outer = axes.n - 2;
    }
    int64_t index[ARRAY_MAX_NDIM] = {0};
    do
        copy_inner(strided, packed, &axes, direction, item_bytes);
    while (step(&strided, &packed, index, &axes, n_outer));
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
