/* How a walk by slabs (struct program_slab) is cut into turns, and where everything lies in the
 * carry. Pure code, run by the broker and again by the worker.
 *
 * Turns of a job, in the order in which they begin; slab_needs() says what each has to wait for:
 *
 *     OPERAND   grains of an operand into the carry, float64, transposed: lines along the columns
 *     for each slab s:
 *         LOAD      grains of X into the slab, for one unit; then its part of SLAB_PROJECT
 *         ROWS      sections: grains of a pass of rows (but for the first section), then the steps
 *                   behind it up to the next pass of rows
 *         ADD       SLAB_GATHERs of X, for one unit of columns
 *     FINISH    lanes' sums are added up, sums rounded to their dtypes
 *     STORE     grains of passes of results
 *
 * Two ways, which shapes and dtypes choose:
 *
 * - by lanes, where a row is short and sums are small. SLAB_LANES slabs go on at a time, each of
 *   them in a lane with sums of its own: slab i is in lane i % SLAB_LANES. A lane's slabs follow
 *   each other, and FINISH adds up lanes in pairs. Mostly a slab is one turn, a LOAD: what needs no
 *   array of the job is done at its end;
 * - by blocks, where sums are large. There is one lane, and threads share a slab: LOADs have some
 *   of its rows each, or where a row is long some of its columns; ADDs have some of its columns. A
 *   SLAB_PROJECT's parts of columns are added up in order.
 *
 * Either way the order in which anything is added follows from shapes and dtypes alone, and so do
 * the rows that are added up in float32: slabs begin at multiples of fold_rows. How a LOAD's boxes
 * are cut to grains changes no bit.
 *
 * In the carry: sums are transposed, as operands are; X is by rows, a LOAD's columns together where
 * it has some of the columns only.
 */
#pragma once

#include "kernels/engine.h"
#include "kernels/grains/geometry.h"
#include "kernels/program.h"
#include "kernels/reductions/reduce.h"

#define SLAB_LANES     16
#define SLAB_MAX_UNITS 128

enum slab_turn_kind {
    SLAB_TURN_OPERAND,
    SLAB_TURN_LOAD,
    SLAB_TURN_ROWS,
    SLAB_TURN_ADD,
    SLAB_TURN_FINISH,
    SLAB_TURN_STORE,
};

struct plan_slab {
    const struct program *program; /* it outlives the plan */
    const struct program_slab *whole;
    struct plan_pass *passes; /* the stage's, of the same plan */
    uint64_t n_turns;
    uint64_t scratch_bytes;
    bool is_by_lanes;
    bool is_by_columns; /* LOADs have some of the columns */
    bool is_direct;     /* X is an argument as it is, read from its file into the slab */
    bool is_mapped;     /* is_direct, and X is used in its file's mapping: the carry has none */
    bool adds_columns;  /* there are ADDs, or what they would do in lanes */
    bool is_whole;      /* ADDs look at all of a slab */
    int64_t n_rows, n_columns, slab_rows;
    uint64_t n_slabs;         /* of all lanes */
    unsigned n_lanes;         /* that have slabs */
    unsigned n_loads, n_adds; /* units of a slab */
    int64_t load_rows;        /* of a LOAD */
    int64_t fold_rows;        /* that are added up in float32, where a step is */
    int64_t add_columns;      /* of an ADD */
    int cut_axis;             /* is_by_columns: of X's pass; those before it are 1 in a LOAD */
    int64_t cut_extent;       /* of it */
    int64_t cut_columns;      /* columns of one place along it */
    int64_t block_columns;    /* of a LOAD, at most */
    unsigned n_sections;      /* [0] has no pass */
    uint8_t section_steps[SLAB_MAX_STEPS + 1]; /* where they begin; behind the last: n_steps */
    unsigned first_rows, first_result;         /* of the stage's passes */
    uint64_t first_slab_turn, slab_turns;      /* slab_turns: of a slab, or of one in each lane */
    uint64_t n_rounds;                         /* of slab_turns */
    unsigned turn_grains;                      /* of OPERAND, STORE */
    uint64_t most_grains;                      /* of any turn */
    double n_operations;                       /* in float64; in float32 they are half as many */
    uint64_t offsets[SLAB_MAX_VALUES];    /* of values in the carry; lanes are lane_bytes apart */
    uint64_t lane_bytes[SLAB_MAX_VALUES]; /* 0: there is one for all */
    /* Of PROJECT: what LOADs give, float64, part by part; one part of float64 is the value itself.
     * Of REDUCE two nodes: of all rows so far, of reduced_rows of them. */
    uint64_t part_offsets[SLAB_MAX_STEPS];
    uint64_t part_bytes[SLAB_MAX_STEPS], part_lane_bytes[SLAB_MAX_STEPS];
    int64_t reduced_rows; /* slabs begin at multiples of it */
};

struct slab_turn {
    enum slab_turn_kind kind;
    bool is_empty;
    unsigned pass;    /* of the stage's, where n_grains > 0 */
    unsigned lane;    /* by lanes */
    unsigned unit;    /* LOAD, ADD: by blocks */
    unsigned section; /* ROWS */
    uint64_t slab;
    bool is_first;             /* of the lane's slabs: sums are set */
    int64_t first_row, n_rows; /* of the slab */
    uint64_t n_grains;
    uint64_t first_grain; /* OPERAND, STORE */
    /* LOAD, ROWS: in the grid of the pass. */
    int64_t grid_start[ARRAY_MAX_NDIM], grid_count[ARRAY_MAX_NDIM];
};

void slab_turn(const struct plan_slab *p, uint64_t index, struct slab_turn *ret_turn);
/* Bytes of an element of an operand or a sum; sums are float64 until FINISH, and stay as far apart.
 */
static inline size_t slab_line_item(const struct slab_value *v)
{
    return v->kind == SLAB_OPERAND ? dtype_size((enum dtype)v->dtype) : sizeof(double);
}

/* The turn may begin when all turns below the returned one are done. */
uint64_t slab_needs(const struct plan_slab *p, uint64_t index);
/* The number of its grain i, 0 to n_grains - 1, in the pass's geometry. */
uint64_t slab_grain(const struct plan_slab *p, const struct slab_turn *turn, uint64_t i);

/* Rows or columns of X in the carry. */
struct slab_box {
    char *base;
    int64_t line_bytes;              /* from one row to the next */
    int64_t first_row, n_rows;       /* of the slab */
    int64_t first_column, n_columns; /* of X */
};
/* What a LOAD has; what an ADD has, where X is not mapped (then base and line_bytes say nothing).
 * By lanes either is all of the lane's slab. By columns all of a slab is n_loads boxes: see
 * slab_load_box(). */
void slab_load_box(const struct plan_slab *p, const struct slab_turn *turn, unsigned unit,
                   char *carry, struct slab_box *ret_box);
void slab_add_box(const struct plan_slab *p, const struct slab_turn *turn, char *carry,
                  struct slab_box *ret_box);
/* A value of rows, an operand or a lane's sum; X is none of these. line_bytes: from one row, or one
 * column of an operand or sum, to the next. */
char *slab_place(const struct plan_slab *p, unsigned value, unsigned lane, char *carry,
                 int64_t *ret_line_bytes);
/* What LOADs gave for a PROJECT: n_parts of them, each rows of the result's columns. */
double *slab_part(const struct plan_slab *p, unsigned step, unsigned lane, unsigned part,
                  char *carry);
unsigned slab_n_parts(const struct plan_slab *p);
/* The nodes of a REDUCE, where the box that it reduces has so many rows. */
void slab_layout(const struct plan_slab *p, unsigned step, int64_t n_rows,
                 struct reduce_layout *ret);
void *slab_node(const struct plan_slab *p, unsigned step, unsigned lane, unsigned which,
                char *carry);

/* Where a pass of the stage finds or stores a value, for the box that begins at `start`. */
void slab_view(const struct plan_slab *p, const struct slab_turn *turn, unsigned value,
               const int64_t *start, char *carry, struct engine_view *ret_view);
