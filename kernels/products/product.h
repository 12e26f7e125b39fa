/* How a matrix product that fits no memory is cut into turns. Pure code, run by the broker and
 * again by the worker.
 *
 * C is computed tile by tile. A tile stays in the carry while panels of the operands stream by: a
 * panel of the left operand and one of the right, loaded while those before are multiplied (two
 * buffers). The larger a tile, the less often the operands are read.
 *
 *                    columns of C
 *                   +--+-----+--+
 *                   |  |panel|  |  depth
 *       depth       +--+-----+--+
 *     +-------+     +--+-----+--+
 *     +-------+     +--+-----+--+
 *     | panel |     |  |tile |  |  rows
 *     +-------+     +--+-----+--+
 *     +-------+     +--+-----+--+
 *
 * A panel is one or several steps deep; deeper ones are read in longer pieces. A MULTIPLY is one
 * block of C, or several, times one step. The sizes of blocks and the depth of a step depend on the
 * product's shape and dtype alone, and blocks begin at multiples of their sizes: so the bits of C
 * do not depend on the pool, on threads, or on what else runs. Tiles group blocks, panels steps.
 *
 * Panels are numbered through all tiles: tile t has those from t * n_panels on. The turns of a job,
 * in the order in which they begin (they end in any order, and product_needs() says what each has
 * to wait for):
 *
 *     LOAD(0)
 *     for each panel s:    the first MULTIPLYs of s, LOAD(s + 1), the other MULTIPLYs of s
 *         the tile's last step:    STOREs among them, and among the next tile's first ones;
 *                                  with a journal STORE, MARK, APPLY, MARK behind them
 *
 * Tiles follow each other along a row of tiles, all of which read the same of the left operand; or
 * down the only column, and then of the right one. Where the pool has room, the first n_kept panels
 * of that operand have memory of their own: they are loaded for the first of n_sharing tiles and
 * stay for the others, whose LOADs of them are empty. If the depth is one panel, it stays in its
 * buffer, and rows of tiles take the two in turn.
 *
 * LOAD, STORE and APPLY are grains of the geometries of the product's three passes: a box of the
 * grid, which turns take in parts. A grain of an operand lies in one tile's rows (or columns) and
 * in one panel; one of C in one tile. Where C has fewer blocks or grains at its edges, turns are
 * empty: the numbers are the same for all tiles.
 *
 * Where the right operand is the left one transposed, C is symmetric: tiles and blocks above its
 * diagonal are not computed, and what lies below is stored twice, the second time through a view
 * with its axes exchanged. A block on the diagonal is made symmetric when it is complete.
 *
 * A small pool has one buffer for each operand: then LOAD(s + 1) waits for all of panel s.
 *
 * Of a batch, a tile has matrices of a part of one axis, the cut one, and of all axes behind it:
 * the inner ones, which are short (product_batch.c).
 */
#pragma once

#include "kernels/engine.h"
#include "kernels/grains/geometry.h"
#include "kernels/program.h"

enum product_step {
    PRODUCT_LOAD,     /* grains of PRODUCT_LEFT or PRODUCT_RIGHT into a panel */
    PRODUCT_MULTIPLY, /* a block of the tile: set or added to */
    PRODUCT_STORE,    /* grains of PRODUCT_RESULT: to the output; with a journal, to that */
    PRODUCT_MARK,     /* with a journal: the tile is in it whole; then: is in the output whole */
    PRODUCT_APPLY,    /* with a journal: grains of the tile, from there to the output */
};

/* Which axes of a pass are which; -1: there is none. */
struct product_axes {
    int n_batch; /* the first ones, aligned to the right with C's */
    int row, column, depth;
};

struct plan_product {
    const struct program_product *whole; /* of the program, which outlives the plan */
    struct plan_pass *passes;            /* its own three, of the same plan */
    uint64_t n_turns;
    uint64_t scratch_bytes; /* of the carry: tile and panels */
    uint64_t least_bytes;   /* of it, where there was too little */
    /* These follow from shapes, dtype and the kind of engine alone. */
    int64_t block_rows, block_columns, step_depth;
    int64_t block_matrices; /* how many matrices one MULTIPLY does, one after the other */
    int64_t n_matrices, n_rows, n_columns, depth; /* of C; n_matrices: of the cut and inner axes */
    int cut_axis;                                 /* of C's batch axes; -1: there are none */
    /* At one place along the cut axis: of C, and of what each pass walks, which has one where it is
     * broadcast. n_outer: places along the axes before it, together. */
    int64_t n_inner, n_inner_of[3], n_outer;
    bool has_matrices[3]; /* others for each place along the cut axis */
    int64_t run_matrices; /* of C: product_run() gives no more; INT64_MAX: it gives all of a turn */
    /* These follow from the pool's size and the rates, too. Each is a multiple of a block's or a
     * step's size above, or all that there is; tile_matrices is a multiple of n_inner as well. */
    int64_t tile_rows, tile_columns, tile_matrices;
    int64_t panel_depth; /* whole steps; the last panel may have less */
    uint64_t n_tiles, n_depth_steps, n_panels;
    uint64_t n_kept, n_sharing; /* so many panels stay in the carry for so many tiles */
    enum product_pass kept_pass;
    /* How many turns of a kind a step or a tile has, and how much each takes. */
    int64_t join_rows, join_columns; /* of whole blocks, that one MULTIPLY takes at most */
    unsigned n_left_loads, n_right_loads, n_multiplies, n_first_multiplies, n_stores;
    unsigned load_grains, store_grains; /* of one turn, at most */
    uint64_t n_cells;                   /* grains of a tile of C, at most; whatever turns take */
    /* Of grains of C: lines of one STORE, or (then 1) into how many STOREs one is parted; lines 0:
     * STOREs take what comes. How many STOREs are among the next tile's turns, and how many
     * MULTIPLYs each stands behind those that it needs. */
    unsigned store_lines, store_parts, n_late_stores, n_lag;
    bool is_by_columns; /* MULTIPLYs and STOREs of a tile go column by column, not row by row */
    bool has_journal, is_symmetric;
    bool is_tf32; /* the device may round float32 to TF32's 10 bits before it multiplies */
    /* Where a journal says that tiles are finished: turns begin here. is_redone: the tile before is
     * in the journal whole, and is applied first. */
    uint64_t first_tile;
    bool is_redone;
    /* In the carry; with one buffer, both are at the same place. Panels are along the depth
     * fastest, or along the rows (columns); their lines and those of C are line_bytes apart. Kept
     * panels are kept_bytes apart, and if all are kept, there are no others of that operand. */
    uint64_t result_offset_bytes, panel_offset_bytes[2][2]; /* [left, right][buffer] */
    uint64_t kept_offset_bytes, kept_bytes;
    bool has_two_buffers;
    bool is_depth_fastest[2];
    bool is_direct[2]; /* the operand is an argument as it is, read from its file into the panel */
    int64_t panel_line_bytes[2], panel_matrix_bytes[2]; /* from one line, one matrix to the next */
    int64_t result_line_bytes, result_matrix_bytes;
    int64_t item_bytes;
    uint64_t tile_bytes;                                  /* of C in the product's dtype */
    uint64_t left_bytes, right_bytes;                     /* read by LOADs */
    double n_operations;                                  /* multiplications and additions */
    uint64_t n_matrix_tiles, n_row_tiles, n_column_tiles; /* at one outer place, of a matrix */
    struct product_axes axes[3];                          /* of the passes */
};

struct product_turn {
    enum product_step step;
    bool is_empty;          /* there is nothing to do */
    enum product_pass pass; /* LOAD, STORE, APPLY */
    uint64_t tile;
    /* LOAD, MULTIPLY: along the depth, and in which buffer left and right panels are. */
    uint64_t panel_index;
    unsigned buffer[2];
    uint64_t step_index; /* MULTIPLY: along the depth */
    /* LOAD, STORE, APPLY: grains of the pass's geometry, see product_grain(). first_cell: how many
     * of the panel, of the tile, are in the turns before. */
    uint64_t n_grains, first_cell;
    bool is_applied; /* MARK: the second one */
    /* MULTIPLY: the block or blocks, from the tile's beginning. */
    bool is_first;    /* along the depth: C is set */
    bool is_mirrored; /* complete then, and on the diagonal: product_mirror() follows */
    int64_t matrix, n_matrices, row, n_rows, column, n_columns, n_depth;
};

void product_turn(const struct plan_product *p, uint64_t index, struct product_turn *ret_turn);
/* Searches from turn `index` on for one that has grains of one of `passes` (bits), and never goes
 * beyond the first such turn. Since many turns may lie between, it may return an earlier one: after
 * a few calls it has found one, or the end. */
uint64_t product_skip(const struct plan_product *p, uint64_t index, unsigned passes);
/* The number of a LOAD's, STORE's or APPLY's grain i, 0 to n_grains - 1. */
uint64_t product_grain(const struct plan_product *p, const struct product_turn *turn, uint64_t i);

/* The turn may begin when all turns below the returned one are done. Never more than 192 below it:
 * the worker remembers that many. */
uint64_t product_needs(const struct plan_product *p, uint64_t index);

/* A journal says that tiles below first_tile are finished (is_redone: the last of them is in the
 * journal whole, and perhaps not in the output). Sets these and n_turns. */
void product_resume(struct plan_product *p, uint64_t first_tile, bool is_redone);

/* Panels and tiles in the carry. Views are in the axes of the pass, `start` is the place in it
 * where the box begins: what a LOAD writes there, what a STORE reads. */
void product_panel_view(const struct plan_product *p, const struct product_turn *turn,
                        const int64_t *start, char *carry, struct engine_view *ret_view);
void product_result_view(const struct plan_product *p, const int64_t *start, char *carry,
                         struct engine_view *ret_view);

/* One matrix of a MULTIPLY (0 to n_matrices - 1): its operands and its part of C. Strides in bytes.
 */
struct product_matrix {
    char *base;
    int64_t row_bytes, column_bytes; /* from one row, one column, to the next */
};
void product_block(const struct plan_product *p, const struct product_turn *turn, int64_t matrix,
                   char *carry, struct product_matrix *ret_left, struct product_matrix *ret_right,
                   struct product_matrix *ret_result);
/* For an engine that multiplies several matrices at a time: how many, from `matrix` on, lie at
 * equal distances from one to the next in left operand, right operand and C. At least 1. */
int64_t product_run(const struct plan_product *p, const struct product_turn *turn, int64_t matrix);
/* Copies what a block on the diagonal of a symmetric C has below the diagonal to above it, so that
 * C is symmetric to the bit. */
void product_mirror(const struct plan_product *p, const struct product_turn *turn, char *carry);
