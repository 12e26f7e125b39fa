/* Grains: how one pass's iteration space is cut, whatever the pool, threads and load.
 *
 * A grain is a hyper-rectangle of the iteration space, small enough that all operands of it fit one
 * slot. Axes are walked in the order that suits the sources' layout (`axis_order`, slowest first);
 * inner axes are taken whole while they fit, one axis is split, outer ones have one index a grain.
 * Where sources disagree (C against Fortran order) a grain is a block with runs of a useful length
 * on both sides; where a source is a grid of chunks, grains are made of whole chunks, or of parts
 * of one chunk. All of it is a function of shapes, dtypes and layouts only: results do not depend
 * on anything else. Grains are numbered in row-major order of `grid` (in walking order).
 */
#pragma once

#include "proto/array.h"

#define GRAIN_MAX_OPERAND_BYTES (256u * 1024u) /* of one operand in one grain */
#define GRAIN_MAX_TOTAL_BYTES   (512u * 1024u) /* of all operands together; also the slot size */

struct geometry_operand {
    enum dtype dtype;
    int ndim; /* broadcasts to the pass's shape, right-aligned */
    const int64_t *shape;
    const int64_t *strides;     /* bytes; NULL: C order */
    const int64_t *chunk_shape; /* NULL: no grid of chunks */
    bool is_output;
};

struct geometry {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];       /* of the iteration space, in the arrays' axis order */
    int axis_order[ARRAY_MAX_NDIM];      /* axes from slowest to fastest */
    int64_t grain_shape[ARRAY_MAX_NDIM]; /* in the arrays' axis order */
    int64_t grid[ARRAY_MAX_NDIM];        /* number of grains along each axis, arrays' axis order */
    uint64_t n_grains;                   /* 0 for an empty space, 1 for shape () */
};

/* The operands together must allow one element in GRAIN_MAX_TOTAL_BYTES (always true within
 * REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS). */
void geometry_init(struct geometry *g, int ndim, const int64_t *shape, unsigned n_operands,
                   const struct geometry_operand *operands);

/* The box of one grain, in the arrays' axis order. */
void geometry_grain(const struct geometry *g, uint64_t grain, int64_t *ret_start,
                    int64_t *ret_count);

/* The part of an operand (of the given shape, right-aligned broadcasting) that a box needs: axes
 * that are missing or of length 1 give start 0, count 1. ret arrays have operand_ndim entries. */
void geometry_operand_box(int ndim, const int64_t *start, const int64_t *count, int operand_ndim,
                          const int64_t *operand_shape, int64_t *ret_start, int64_t *ret_count);
