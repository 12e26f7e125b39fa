/* Partial results of reductions, combined in one fixed binary tree by grain index.
 *
 * Leaves are grains. node(level, i) = combine(node(level-1, 2i), node(level-1, 2i+1)), or its left
 * child alone where the right one lies beyond the last grain. The shape of the tree, hence the
 * bits, depends on the number of grains only; the order in which tiles arrive does not matter.
 * A tile (an aligned run of 2^k grains) reduces its own subtree; the job's tree, in its carry,
 * combines as soon as both children are there, so it holds no more nodes than tiles in flight
 * plus one a level.
 */
#pragma once

#include "kernels/program.h"

#define REDUCE_WINDOW 256 /* no tile is begun this far ahead of the oldest unfinished one */

/* One reduction's partial result: 16 bytes, so that a later compensated sum finds room. */
struct partial {
    union scalar value;
    uint64_t spare;
};

void partial_identity(const struct reduction *reduction, struct partial *ret);
/* left = combine(left, right); MIN and MAX propagate NaN; integer sums wrap. */
void partial_combine(const struct reduction *reduction, struct partial *left,
                     const struct partial *right);

/* A small in-order stack: feeds grains of one tile in order, gives the tile's node. */
struct reduce_stack {
    unsigned n_reductions, n_nodes;
    uint64_t n_leaves;
    struct partial nodes[64][PROGRAM_MAX_REDUCTIONS];
};
void reduce_stack_init(struct reduce_stack *s, unsigned n_reductions);
void reduce_stack_add(struct reduce_stack *s, const struct reduction *reductions,
                      const struct partial *partials);
/* Needs at least one leaf. */
void reduce_stack_finish(struct reduce_stack *s, const struct reduction *reductions,
                         struct partial *ret_partials);

/* The job's tree over tiles, in memory given by the caller (the carry). Not thread-safe: the caller
 * holds the job's lock. */
struct reduce_tree;
size_t reduce_tree_size_bytes(unsigned n_reductions);
struct reduce_tree *reduce_tree_init(void *memory, unsigned n_reductions, uint64_t n_tiles);
/* Tile `index` is done. Tiles arrive in any order within REDUCE_WINDOW of the oldest missing. */
void reduce_tree_add(struct reduce_tree *t, const struct reduction *reductions, uint64_t index,
                     const struct partial *partials);
/* Tiles below this one have all arrived; tiles from it + REDUCE_WINDOW on must not be begun. */
uint64_t reduce_tree_oldest_missing(const struct reduce_tree *t);
bool reduce_tree_is_complete(const struct reduce_tree *t);
/* The result when complete (identities when there are no tiles). */
void reduce_tree_result(const struct reduce_tree *t, const struct reduction *reductions,
                        struct partial *ret_partials);
