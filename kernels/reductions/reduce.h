/* What reductions know of the elements that they have taken in, combined in one fixed binary tree
 * by grain index.
 *
 * A pass that reduces has axes that are reduced and axes that are kept (pass->reduced_axes). The
 * grains that share their place along the kept axes are a chain: geometry numbers them one behind
 * the other. Each grain, or a few of them one after the other (plan_pass.leaf_log2), gives a node:
 * an accumulator per reduction and cell, a cell being one element of the grain's kept axes (a
 * single one where all axes are reduced). The nodes of a chain are combined in a tree over the
 * node's index in the chain:
 *
 *     node(level, i) = combine(node(level - 1, 2i), node(level - 1, 2i + 1))
 *
 * or the left child alone where the right one lies beyond the chain's last one. The shape of the
 * tree, hence the bits, depends on the number of nodes in a chain only. Counts may have large
 * nodes, and are exact in any order: theirs are combined one after the other, without a tree. So
 * are those of a walk by slabs, in each of its lanes (kernels/slabs/slab.h), which has two nodes. A
 * tile (an aligned run of 2^k of them in one chain) reduces its own subtree in a stack; the tree
 * combines tiles as soon as both children are there.
 *
 * A node's memory, 64-byte aligned: a header of 64 bytes, then for each reduction of the pass, in
 * order, its planes: SUM PROD MIN MAX COUNT_NONZERO one (the value), ARGMIN and ARGMAX two (value,
 * int64 index), SQUARED_DEVIATIONS two (float64 sum, float64 sum of squared deviations from the
 * mean). A plane has room for 8 bytes a value, rounded up to 64, and n_cells values of its dtype
 * lie densely at its beginning, in visiting order of the kept axes. BINCOUNT has one plane, of
 * n_cells times n_bins values: those of a cell's bins are neighbours. QR_R has one, its R column by
 * column. Values: as in the reduction's
 * result dtype, but ARGMIN's and ARGMAX's values, which have the source's.
 *
 * SUM and PROD of floats are added in float64, pairwise; integers wrap in 64 bits. MIN and MAX
 * propagate NaN and keep the first of equals. ARGMIN and ARGMAX: of equal values the smallest
 * index, of NaNs the first NaN. Squared deviations: Chan, Golub, LeVeque, Updating formulae and a
 * pairwise algorithm for computing sample variances, 1979.
 */
#pragma once

#include "kernels/program.h"

#define REDUCE_MAX_PLANES 2

/* The layout of the nodes of one box. */
struct reduce_layout {
    const struct reduction *reductions; /* of the pass */
    unsigned n_reductions;
    uint64_t n_cells;
    uint64_t plane_bytes; /* of a reduction without bins */
    uint64_t n_bytes;     /* of a node; a multiple of 64 */
    /* Of counts, of what else is exact in any order, and of triangles: nodes are combined one after
     * the other. */
    bool is_flat;
};

struct reduce_header {   /* the node's first 64 bytes */
    uint64_t n_elements; /* that each cell has taken in */
};

void reduce_layout_init(struct reduce_layout *layout, const struct program *program, unsigned pass,
                        uint64_t n_cells);
unsigned reduce_n_planes(const struct reduction *reduction);
/* The dtype of a plane's values. */
enum dtype reduce_plane_dtype(const struct reduction *reduction, unsigned plane);
/* 1, or how many bins. */
uint64_t reduce_values_per_cell(const struct reduction *reduction);
/* The values in each plane of reduction i of the pass; where a plane of it is. */
uint64_t reduce_n_values(const struct reduce_layout *layout, unsigned i);
void *reduce_plane(const struct reduce_layout *layout, const void *node, unsigned i,
                   unsigned plane);

/* Nothing taken in. ARGMIN and ARGMAX have index -1. */
void reduce_identity(const struct reduce_layout *layout, void *node);
/* n values of the result of nothing, densely. */
void reduce_fill_identity(const struct reduction *reduction, uint64_t n, void *values);
/* left = combine(left, right); `right` may be spoilt. */
void reduce_combine(const struct reduce_layout *layout, void *left, void *right);
/* The result of reduction i: its values of its result dtype, densely. Of SQUARED_DEVIATIONS
 * the second plane, of ARGMIN and ARGMAX the index. */
const void *reduce_values(const struct reduce_layout *layout, const void *node, unsigned i);

/* A small in-order stack: takes a tile's leaves in order, which are its grains' nodes, gives the
 * tile's node. Its memory is given: reduce_stack_nodes(k, is_flat) nodes for 2^k leaves. The next
 * leaf is written where reduce_stack_next() says, then pushed. */
struct reduce_stack {
    struct reduce_layout layout;
    char *memory;
    unsigned n_nodes;
    uint64_t n_leaves;
};
unsigned reduce_stack_nodes(unsigned leaves_log2, bool is_flat);
void reduce_stack_init(struct reduce_stack *s, const struct reduce_layout *layout, void *memory);
void *reduce_stack_next(const struct reduce_stack *s);
void reduce_stack_push(struct reduce_stack *s);
/* The root; it is the memory's first node. At least one leaf. */
void *reduce_stack_finish(struct reduce_stack *s);

/* The chains' trees over tiles, in memory given by the caller (the carry). Tiles are numbered
 * through all chains of a round, chain_tiles to a chain; they arrive in any order within `window`
 * of the oldest missing, and are combined in order, so that one chain is open at a time. Not
 * thread-safe: the caller holds a lock of the job's. */
struct reduce_tree;
struct reduce_tree_shape {
    uint64_t node_bytes;  /* of the largest node */
    uint64_t chain_tiles; /* tiles of one chain; at least 1 */
    uint64_t n_tiles;     /* of all chains together */
    unsigned leaves_log2; /* of a tile */
    bool is_flat;         /* as the layouts */
    unsigned window;      /* no tile is begun this far ahead of the oldest unfinished one */
};
size_t reduce_tree_size_bytes(const struct reduce_tree_shape *shape);
struct reduce_tree *reduce_tree_init(void *memory, const struct reduce_tree_shape *shape);
/* The memory for the stack of this tile; its own from the time the tile begins until it is
 * combined. */
void *reduce_tree_place(const struct reduce_tree *t, uint64_t tile);
/* The tile's node is in its place, with this layout. Each chain that is complete now is given to
 * done(argument, chain, layout, node), in order. */
typedef void reduce_chain_done(void *argument, uint64_t chain, const struct reduce_layout *layout,
                               const void *node);
void reduce_tree_add(struct reduce_tree *t, uint64_t tile, const struct reduce_layout *layout,
                     reduce_chain_done *done, void *argument);
/* No tile follows those that came, which all were added: gives the chain that is open, if one is.
 */
void reduce_tree_end(struct reduce_tree *t, reduce_chain_done *done, void *argument);
/* Tiles below this one have all been combined; tiles from it + window on must not be begun. */
uint64_t reduce_tree_oldest_missing(const struct reduce_tree *t);
bool reduce_tree_is_complete(const struct reduce_tree *t);
