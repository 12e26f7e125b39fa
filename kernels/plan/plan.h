/* The plan of a job: passes, grains, tiles, what of the pool it needs, what it moves. Pure code,
 * run by the broker at submission and again by the worker (same input, same plan). Its work is
 * O(passes x arguments x dimensions).
 *
 * A tile is an aligned run of 2^tile_log2 grains (the last one of a round or of a chain may be
 * shorter): the unit of a turn. Where a chain has more than one grain, a tile is of one chain
 * alone.
 */
#pragma once

#include "kernels/engine.h"
#include "kernels/grains/geometry.h"
#include "kernels/products/product.h"
#include "kernels/reductions/reduce.h"
#include "kernels/slabs/slab.h"

#include <stddef.h>

/* Which part of the machine's work decides on the estimated time. */
enum plan_bound {
    PLAN_BOUND_START,
    PLAN_BOUND_MEMORY,
    PLAN_BOUND_FILE,
    PLAN_BOUND_DISK,
    PLAN_BOUND_LINK,
    PLAN_BOUND_WORK
};
/* "start" "memory" "file" "disk" "link" "work" */
const char *plan_bound_name(enum plan_bound bound);

/* Of a product's or slab's pass only `geometry`, read_bytes and write_bytes (of all its grains),
 * needs_slot and room mean something; it has no tiles. */
struct plan_pass {
    struct geometry geometry;
    unsigned tile_log2;
    /* 2^leaf_log2 neighbours of a chain (fewer at its end) give one node, each going on with what
     * the one before it gave; at most tile_log2. Follows from shapes, dtypes and layouts alone. */
    unsigned leaf_log2;
    /* Of the CPU's engine: what the arithmetic of a whole tile takes, whatever the values are.
     * Where it is more than PLAN_LONG_TURN_NS a turn does not see the tile through while others
     * wait. */
    uint64_t tile_worst_ns;
    uint64_t n_tiles;     /* over all rounds */
    uint64_t round_tiles; /* of a whole round */
    /* The axis that ends where a client says so (struct job_request), the slowest of those along
     * which there are several grains. */
    bool has_open_axis, has_stream; /* the latter: some axis is cut as if it had no end */
    int open_axis;
    bool chains_steps; /* of a scan of one grain a step: a tile has several steps */
    bool needs_slot; /* some operand is a file, staged in a slot (providers bring their own); for a
                        device: always, but of an empty space */
    struct engine_room room; /* for a device: of the largest grain */
    /* The bytes of all grains' boxes together. A broadcast operand counts once for each grain, or
     * once in all where it is in memory and small enough for one grain. */
    uint64_t read_bytes, write_bytes;
    /* Of a pass with reductions. node_bytes: of the largest node. has_tree: chains have several
     * tiles. Else no tree is needed: the memory at plan->tree_offset_bytes is `tree.window` stacks
     * of stack_nodes nodes, one for each tile that exists: a single node where each grain is a
     * chain, or reduce_stack_nodes(tile_log2 - leaf_log2). */
    uint64_t node_bytes;
    unsigned stack_nodes;
    /* Of a pass that transposes a file (plan/swaths.c): the memory of a stack is instead a block of
     * a tile's. swaths_are_mapped: the source is mapped, the block is what the tile writes, dense
     * as its port packs it. Else it is what the tile reads of its source, each element along
     * swath_axis swath_row_bytes behind the one before. */
    bool has_swaths, swaths_are_mapped;
    uint64_t swath_row_bytes;
    int swath_axis;
    bool has_tree;
    struct reduce_tree_shape tree;
};

#define PLAN_LONG_TURN_NS 20000000u

#define PLAN_MAX_WINDOW        256u           /* of tree.window */
#define PLAN_SMALL_CARRY_BYTES (256u * 1024u) /* at most, where is_small */

/* Where the values of a reduction lie: densely, in C order of its result's shape, of one round. */
struct plan_result {
    uint64_t offset_bytes; /* in the carry (a product's: where those lie), 64-byte aligned */
    int round_axis;        /* of the result; -1: it does not go in rounds */
};

/* A job that takes more steps to plan is refused. A step is a few instructions: an axis of an array
 * that a pass reads or writes, each time that the pass is cut to grains of another size (some 60 at
 * most); a result's size or place, or a pass, each time that rounds are considered. */
#define PLAN_MAX_STEPS (UINT64_C(1) << 20)

struct plan {
    unsigned n_passes;
    uint64_t n_steps; /* how many steps planning took: see PLAN_MAX_STEPS */
    /* In each round all passes are done for a part of the arrays. There is one, unless results
     * would not fit the carry. A pass that the cut does not reach (rounds.c) is done in the
     * first round alone: its geometry has one round. */
    uint64_t n_rounds;
    /* What the job holds of the pool for its life; 0 without reductions and products. The carry is:
     * the tree of the pass in hand, or its tiles' stacks, or tile and panels of the product in
     * hand, or all of the slab's in hand; then the results of program->reductions. */
    uint64_t carry_bytes, tree_offset_bytes;
    /* Of an engine with a link: what its products have, and what is kept of them, in the device's
     * memory instead. Else 0: they are in the carry. */
    uint64_t device_carry_bytes;
    uint64_t read_bytes, write_bytes, n_tiles;
    double seconds; /* estimate */
    enum plan_bound bound;
    bool is_restartable; /* no output overwrites an input */
    bool is_small; /* one tile, all inline or region, done in 0.5 ms whatever the values are: may
                      run at once */
    bool is_fortran_order; /* the order NumPy's 'K' would choose for new outputs */
    /* Large: what is not of a pass, reduction or product of the program is never written. A plan
     * is not copied: products point to their passes. */
    struct plan_result results[PROGRAM_MAX_REDUCTIONS];
    struct plan_pass passes[PROGRAM_MAX_PASSES];
    struct plan_product products[PROGRAM_MAX_PRODUCTS];
    struct plan_slab slabs[PROGRAM_MAX_SLABS];
};
#define PLAN_HEAD_BYTES offsetof(struct plan, results)

/* Reads the request's locations for layouts (strides, chunk shapes, kinds). in_place: some output
 * covers exactly an input (see overlap.h). too-large-for-pool with the numbers; bad-shape where a
 * pass has more elements, limit-exceeded where it moves more bytes, than 63 bits count. After an
 * error what *ret_plan holds means nothing. */
int plan_make(const struct job_request *request, const struct program *program, bool in_place,
              const struct plan_limits *limits, struct plan *ret_plan,
              struct gad_error *error) GAD_MUST_CHECK;

/* A tile's grains are [first, first + n). Tiles are numbered through all rounds. */
void plan_tile_grains(const struct plan_pass *pass, uint64_t tile, uint64_t *ret_first,
                      uint64_t *ret_n);
/* Of a pass that scans: a tile may begin when all tiles of its round below the returned one are
 * done: the one that has the states of its scans is the last of these. No tile has two grains of
 * one chain. */
uint64_t plan_scan_needs(const struct plan_pass *pass, uint64_t tile);
/* Of a pass with an open axis that turned out to be so long: the number of its grains, which are
 * the first ones; of those before a grain the number of tiles that have some; what is left of a
 * box. */
uint64_t plan_open_grains(const struct plan_pass *pass, int64_t length);
uint64_t plan_open_tiles(const struct plan_pass *pass, uint64_t n_grains);
void plan_open_clip(const struct plan_pass *pass, int64_t length, const int64_t *start,
                    int64_t *count);
/* The tiles [first, first + n) of a round. */
void plan_round_tiles(const struct plan_pass *pass, uint64_t round, uint64_t *ret_first,
                      uint64_t *ret_n);

/* results.c: the carry's results. ----------------------------------------------------------- */

/* Where a box of `pass`, which begins at `start`, reads a reduction's result: base and strides of
 * native values. Strides are in that pass's axes, 0 where the result is broadcast. */
void plan_result_view(const struct plan *plan, const struct program *program, unsigned reduction,
                      unsigned pass, const int64_t *start, char *carry,
                      struct engine_view *ret_view);
/* Where all values of a reduction's result lie, for who reads it as a table. */
void *plan_table(const struct plan *plan, unsigned reduction, char *carry);
/* Where a box of a scanning pass, which begins at `start`, finds the state of one of the pass's own
 * reductions. */
void plan_state_view(const struct plan *plan, const struct program *program, unsigned reduction,
                     const int64_t *start, char *carry, struct engine_view *ret_view);
/* Writes a chain's values to the results: its node is complete. first_grain is any of the chain's
 * grains; open_length: of the pass's open axis, if it has one. */
void plan_keep_results(const struct plan *plan, const struct program *program, unsigned pass,
                       uint64_t first_grain, int64_t open_length,
                       const struct reduce_layout *layout, const void *node, char *carry);
/* Writes to all results of a round what reductions of no elements give: the pass has none. */
void plan_keep_identities(const struct plan *plan, const struct program *program, unsigned pass,
                          uint64_t round, char *carry);
