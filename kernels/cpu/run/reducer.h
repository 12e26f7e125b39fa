/* Reductions of a box along some of its axes, strip by strip in visiting order. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cpu/levels/kernels.h"
#include "kernels/cpu/run/stream.h"

/* Rows shorter than this are added up one element after the other. */
#define REDUCER_SHORT_ROW 16
/* At most this many rows' values are added to a cell before they go to its total; more where the
 * square of it is less than the number of rows. */
#define REDUCER_BLOCK 64

/* How elements belong to cells: a box in visiting order is rows, and the rows lie in groups. */
struct reducer_group {
    uint64_t count, cell_step, row_step; /* from one to the next, in cells or in a cell's rows */
};
struct reducer {
    bool is_along_rows; /* a row belongs to one cell; else its elements to one cell each */
    uint64_t row;       /* elements of a row */
    uint64_t n_cells;
    uint64_t n_rows;        /* that a cell takes in */
    uint64_t block;         /* rows between two additions to a cell's total */
    uint64_t n_rows_before; /* that its cells have taken in: of boxes that this one goes on with */
    uint64_t n_elements;    /* of a cell */
    unsigned n_groups;
    struct reducer_group groups[ARRAY_MAX_NDIM]; /* slowest first */
    int next_axis; /* the fastest one of the last group with more than one element; -1: none */
    uint64_t next_length; /* its elements */
};
void reducer_init(struct reducer *r, const struct engine_box *box, const struct pass *pass);
/* Where row number `row` of the box belongs: the first of its cells, and which of their rows it is.
 * Returns how many rows, it and those behind it, are of one group. */
uint64_t reducer_locate_row(const struct reducer *r, uint64_t row, uint64_t *ret_cell,
                            uint64_t *ret_row);

/* One reduction of a pass. */
struct reducing {
    const struct reduction *reduction;
    reduce_fn *run;
    rows_fn *rows;
    short_rows_fn *short_rows; /* NULL: none */
    rows_fn *join;             /* of values as `rows` gives them */
    transpose_fn *turn;        /* of elements */
    /* Of ARGMIN and ARGMAX, along rows that are not short: instead of `run`. */
    argument_fn *argument;
    reduce_fn *extremum;
    const struct index_stream *numbers; /* the elements' positions */
    uint64_t first;                     /* of the box's elements, that comes next */
    bool is_ordered; /* floats are added or multiplied: the order shows in the bits */
    unsigned item_log2;
    uint16_t src;
    struct counting *counting;   /* BINCOUNT: it alone, and nothing else of what is here */
    struct qr_rows *qr;          /* QR_R: likewise */
    const struct reducing *twin; /* that adds up the same float32 elements; NULL: none */
    reduce_fused_fn *fused;      /* SUM and SQUARED_DEVIATIONS, with MIN and MAX; NULL: none */
    struct reducing *extrema[2]; /* MIN and MAX that this one takes in as well; NULL: none */
    bool is_taken;               /* by another, as one of its extrema */
    void *planes[2];             /* in the node */
    unsigned plane_log2;
    double *totals[2], *shift; /* for each cell; NULL where they are not needed */
    struct reduce_state state; /* of a row, which may go on in the next strip */
    unsigned n_pending;
    char *pending; /* elements of that row, fewer than KERNEL_GRANULE */
};

/* Elements [first, first + n) of the box; positions: theirs, for ARGMIN and ARGMAX, but along rows
 * that are not short. */
void reducing_take(const struct reducer *r, struct reducing *d, uint64_t first, size_t n,
                   const void *src, const int64_t *positions);
/* n_cells elements of each of n_rows rows, row_bytes apart, that follow on each other and belong to
 * the same cells; the first of them is element `first` of the box. Not along rows. */
void reducing_take_rows(const struct reducer *r, struct reducing *d, uint64_t first, size_t n_cells,
                        size_t n_rows, const void *src, int64_t row_bytes);
void reducing_finish(const struct reducer *r, struct reducing *d);

/* reduce_state.c */
void reduce_state_begin(struct reduce_state *state, const struct reduction *reduction);
/* What squared deviations of a row of float32 are counted from, by its first n elements. */
double reduce_shift_f32(size_t n, const float *x);
/* Of a row: the value, and of ARGMIN and ARGMAX the position; of SQUARED_DEVIATIONS the two sums.
 */
void reduce_state_finish(const struct reduce_state *state, const struct reduction *reduction,
                         void *ret_value, void *ret_second);
/* From sums of differences (of float32: of elements) and of squares to the node's planes: the
 * elements' sum and their squared deviations from the mean. */
void reduce_deviations(uint64_t n_elements, enum dtype dtype, size_t n_cells, const double *shift,
                       double *sum, double *squares);
