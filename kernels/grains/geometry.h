/* Grains: how one pass's iteration space is cut, whatever the pool, threads and load.
 *
 * A grain is a hyper-rectangle of the iteration space, small enough that all operands of it fit one
 * slot. Axes are walked in the order that suits the sources' layout (`axis_order`, slowest first);
 * inner axes are taken whole while they fit, one axis is split, outer ones have one index a grain.
 * Where sources disagree (C against Fortran order) a grain is a block with runs of a useful length
 * on both sides; where a source is a grid of chunks, grains are made of whole chunks, or of parts
 * of one chunk. All of it is a function of shapes, dtypes and layouts only: results do not depend
 * on anything else.
 *
 * Grains are numbered in row-major order of `grid` in the order of `grid_order`: that of walking;
 * where some axes are reduced the kept ones first, so that the grains of a chain (reduce.h) are
 * neighbours; parts of a chunk along a reduced axis are neighbours too, and where none is reduced
 * those of a chunk that is decoded. Of a scan it is the other
 * way round: grains at the same place along the scanned axis are neighbours, since they do not wait
 * for each other. The extents along reduced axes depend on the whole shapes, dtypes and layouts
 * alone; those along kept axes, which change no bit, also on how many cells a node may have.
 *
 * Where the results of reductions for all kept elements together would not fit the job's memory,
 * the passes are done in rounds: `round_axis`, a kept axis, is the slowest in grid_order, and each
 * round is `round_length` of it (the last one may be shorter); no grain is in two rounds. A job's
 * passes have the same number of rounds; a round is all passes for its part.
 */
#pragma once

#include "proto/array.h"

#define GRAIN_MAX_OPERAND_BYTES (256u * 1024u) /* of one operand in one grain; see long_bytes */
#define GRAIN_MAX_TOTAL_BYTES   (512u * 1024u) /* of all operands together: a slot has as much */
#define GRAIN_MAX_OTHER_BYTES   (768u * 1024u) /* of internal operands, beside them */

#define GRAIN_MAX_WINDOW_BYTES (2u * 1024u * 1024u) /* of what windows have beside them */

#define GRAIN_WINDOW_PAD_BYTES 128u /* of each row of them */

struct geometry_operand {
    enum dtype dtype;
    int ndim; /* broadcasts to the pass's shape, right-aligned */
    const int64_t *shape;
    const int64_t *strides;     /* bytes; NULL: C order */
    const int64_t *chunk_shape; /* NULL: no grid of chunks */
    const int64_t *reach; /* elements that a box has more along each axis, at most; NULL: none */
    bool is_output;
    /* It is no array of the job but what the program itself makes: a result, a scan's state, a
     * panel, a value that a reduction reads. It takes room, but axes are not ordered for it. */
    bool is_internal;
    bool is_in_slot; /* internal, and in the slot beside the others, not somewhere else */
    bool is_window;  /* and internal: with all of `reach`, even beyond the ends of its axes */
    /* It is slow unless it is moved in runs of a useful length, as files are. To give it such runs
     * a grain may take a part of another operand's chunk. */
    bool wants_runs;
    bool is_decoded; /* a chunk that is read in parts is decoded for each, unless it was just now */
};

struct geometry {
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];       /* of the iteration space, in the arrays' axis order */
    int axis_order[ARRAY_MAX_NDIM];      /* axes from slowest to fastest */
    int64_t grain_shape[ARRAY_MAX_NDIM]; /* in the arrays' axis order */
    int64_t grid[ARRAY_MAX_NDIM];        /* number of grains along each axis, arrays' axis order */
    int grid_order[ARRAY_MAX_NDIM];      /* axes in which grains are numbered, slowest first */
    uint64_t n_grains;                   /* 0 for an empty space, 1 for shape () */
    uint32_t reduced_axes;
    bool is_too_large;     /* not even one element of all operands fits: it cannot be used */
    uint64_t chain_grains; /* neighbours that are a chain; 1 without reduced axes, and of a scan */
    uint64_t n_steps; /* of a scan: grains along its axis, else 0. Each step, which is all grains
                         that are at one place along it, begins when the one before has ended */
    int round_axis;   /* -1: there is one round */
    int64_t round_length;
    uint64_t n_rounds, round_grains; /* of a whole round: n_grains where there is one */
};

/* What decides on the cut beside the operands. */
struct geometry_rules {
    uint32_t reduced_axes;
    uint32_t open_axes;   /* extents follow as if these had no end; grains end where they do */
    uint64_t max_cells;   /* of a grain's kept axes; 0: any number */
    uint64_t chunk_cells; /* where these are a whole chunk's: if they are more than max_cells */
    int round_axis;       /* -1: none */
    int64_t round_length; /* of that axis */
    /* What all operands together may take where that makes the runs of files longer (kept.c); at
     * least GRAIN_MAX_TOTAL_BYTES. 0: nothing may, one operand is GRAIN_MAX_OPERAND_BYTES at most.
     */
    uint64_t long_bytes;
    /* The most elements of a grain that has the whole of each reduced axis, which all operands must
     * have room for beside one element of the others; no operand is in chunks. 0: it need not. */
    int64_t whole_elements;
    /* A grain has all of the second of two axes, and at most so many elements of the first one, as
     * rows that are worked with together; 0: nothing of the kind. */
    int64_t most_rows;
    /* What lies around a grain is read with it (operands' reach), and once more with the next. */
    bool gathers;
    bool takes_steps; /* what lies around it is computed, too, and much of it */
    bool is_scan;     /* the one reduced axis is scanned: it is slower in grid_order than others */
    /* Blocks of these extents along two axes, and one element along all others, in any order;
     * grains are numbered along the second first, and are chains along it. [0] = 0: as above. */
    int swath_axes[2];
    int64_t swath_extents[2];
};

/* Without reach, one element of all operands always fits (within REQUEST_MAX_ARGS +
 * REQUEST_MAX_OUTPUTS); else look at is_too_large. */
void geometry_init(struct geometry *g, int ndim, const int64_t *shape, unsigned n_operands,
                   const struct geometry_operand *operands, const struct geometry_rules *rules);

/* The grains of a round are [first, first + n); none where there are fewer rounds. */
void geometry_round(const struct geometry *g, uint64_t round, uint64_t *ret_first, uint64_t *ret_n);

/* The grains of one step of a scan: neighbours. In rounds there are steps of their own for each
 * place of a grain along the round axis, one place after the other. */
uint64_t geometry_step_grains(const struct geometry *g);

/* The kept elements of a box: the cells of its node. */
uint64_t geometry_n_cells(const struct geometry *g, const int64_t *count);

/* The box of one grain, in the arrays' axis order. */
void geometry_grain(const struct geometry *g, uint64_t grain, int64_t *ret_start,
                    int64_t *ret_count);

/* The part of an operand (of the given shape, right-aligned broadcasting) that a box needs: axes
 * that are missing or of length 1 give start 0, count 1. ret arrays have operand_ndim entries. */
void geometry_operand_box(int ndim, const int64_t *start, const int64_t *count, int operand_ndim,
                          const int64_t *operand_shape, int64_t *ret_start, int64_t *ret_count);
