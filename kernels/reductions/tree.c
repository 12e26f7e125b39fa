/* The trees of a pass's chains, over tiles, in the job's carry.
 *
 *     | struct reduce_tree, waiting[window] | nodes of the open chain | places [window] |
 *
 * A tile has the place `tile % window` from the time it begins. When it has arrived it waits there
 * until all before it have; then it is pushed on the open chain's stack, a binary counter as in
 * stack.c. As the tiles of a chain are neighbours and are taken in order, one chain is open at a
 * time: there are window places and a node a level, however many tiles and chains there are.
 *
 * Invariants: n_added is the oldest missing tile; a tile that arrived early waits in its place, and
 * n_added's place is not waiting between calls; the open chain holds n_added % chain_tiles tiles.
 *
 * The caller holds a lock of the job's, but for reduce_tree_place(), which reads only what
 * reduce_tree_init() wrote.
 */
#include "kernels/reductions/reduce.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

struct waiting {
    struct reduce_layout layout;
    bool is_there;
};

struct reduce_tree {
    struct reduce_tree_shape shape;
    char *nodes, *places;
    uint64_t place_bytes;
    uint64_t n_added;
    unsigned n_nodes;            /* of the open chain */
    struct reduce_layout layout; /* its */
    struct waiting waiting[];
};

static size_t head_bytes(const struct reduce_tree_shape *shape)
{
    return round_up_u64(sizeof(struct reduce_tree) + shape->window * sizeof(struct waiting), 64);
}

/* The most subtrees that a chain of n tiles has at a time: set bits of any number up to n. A flat
 * one has one. */
static unsigned max_nodes(const struct reduce_tree_shape *shape)
{
    return shape->is_flat ? 1 : 63 - (unsigned)__builtin_clzll(shape->chain_tiles + 1);
}

static uint64_t place_bytes(const struct reduce_tree_shape *shape)
{
    return reduce_stack_nodes(shape->leaves_log2, shape->is_flat) * shape->node_bytes;
}

size_t reduce_tree_size_bytes(const struct reduce_tree_shape *shape)
{
    return head_bytes(shape) + max_nodes(shape) * shape->node_bytes +
           shape->window * place_bytes(shape);
}

struct reduce_tree *reduce_tree_init(void *memory, const struct reduce_tree_shape *shape)
{
    struct reduce_tree *t = memory;

    assert((uintptr_t)memory % 64 == 0 && shape->node_bytes % 64 == 0);
    assert(shape->window > 0 && shape->chain_tiles > 0 && shape->chain_tiles < UINT64_MAX);
    memset(t, 0, head_bytes(shape));
    t->shape = *shape;
    t->nodes = (char *)memory + head_bytes(shape);
    t->places = t->nodes + max_nodes(shape) * shape->node_bytes;
    t->place_bytes = place_bytes(shape);
    return t;
}

void *reduce_tree_place(const struct reduce_tree *t, uint64_t tile)
{
    return t->places + tile % t->shape.window * t->place_bytes;
}

static char *node_at(const struct reduce_tree *t, unsigned i)
{
    return t->nodes + i * t->shape.node_bytes;
}

/* One tile more of the open chain; index: how many came before. */
static void push(struct reduce_tree *t, uint64_t index, const struct reduce_layout *layout,
                 void *node)
{
    if (layout->is_flat && index > 0)
        index = 1;
    if (!(index & 1)) {
        memcpy(node_at(t, t->n_nodes++), node, layout->n_bytes);
        return;
    }
    reduce_combine(layout, node_at(t, t->n_nodes - 1), node);
    for (uint64_t rest = index >> 1; rest & 1; rest >>= 1, t->n_nodes--)
        reduce_combine(layout, node_at(t, t->n_nodes - 2), node_at(t, t->n_nodes - 1));
}

static const void *finish_chain(struct reduce_tree *t, const struct reduce_layout *layout)
{
    for (; t->n_nodes > 1; t->n_nodes--)
        reduce_combine(layout, node_at(t, t->n_nodes - 2), node_at(t, t->n_nodes - 1));
    t->n_nodes = 0;
    return node_at(t, 0);
}

static void take_oldest(struct reduce_tree *t, reduce_chain_done *done, void *argument)
{
    struct waiting *w = &t->waiting[t->n_added % t->shape.window];
    void *place = reduce_tree_place(t, t->n_added);
    uint64_t chain = t->n_added / t->shape.chain_tiles, index = t->n_added % t->shape.chain_tiles;

    w->is_there = false;
    t->n_added++;
    if (t->shape.chain_tiles == 1) {
        done(argument, chain, &w->layout, place);
        return;
    }
    push(t, index, &w->layout, place);
    t->layout = w->layout;
    if (index == t->shape.chain_tiles - 1)
        done(argument, chain, &w->layout, finish_chain(t, &w->layout));
}

void reduce_tree_add(struct reduce_tree *t, uint64_t tile, const struct reduce_layout *layout,
                     reduce_chain_done *done, void *argument)
{
    struct waiting *w = &t->waiting[tile % t->shape.window];

    assert(tile < t->shape.n_tiles);
    assert(tile >= t->n_added && tile - t->n_added < t->shape.window);
    assert(!w->is_there && layout->n_bytes <= t->shape.node_bytes);
    *w = (struct waiting){.layout = *layout, .is_there = true};
    while (t->waiting[t->n_added % t->shape.window].is_there)
        take_oldest(t, done, argument);
}

void reduce_tree_end(struct reduce_tree *t, reduce_chain_done *done, void *argument)
{
    if (t->n_nodes > 0)
        done(argument, t->n_added / t->shape.chain_tiles, &t->layout, finish_chain(t, &t->layout));
}

uint64_t reduce_tree_oldest_missing(const struct reduce_tree *t)
{
    return t->n_added;
}

bool reduce_tree_is_complete(const struct reduce_tree *t)
{
    return t->n_added == t->shape.n_tiles;
}
