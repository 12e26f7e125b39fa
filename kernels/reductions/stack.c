/* A tile's stack: combines the nodes of its grains as they come.
 *
 * A binary counter: leaves arrive in order, and after leaf number n the stack holds one complete
 * subtree per set bit of n, largest first:
 *
 *     n = 7 = 0b111:   [0 1 2 3] [4 5] [6]
 *
 * Leaf n + 1 is combined with as many of the last subtrees as n has trailing ones. At the end the
 * subtrees are combined from the right. This is exactly the tree of reduce.h: a node whose right
 * child lies beyond the last leaf is its left child.
 *
 * Where the order does not matter (flat layouts) there is one subtree, of all leaves so far.
 *
 * A leaf is written behind the last subtree and combined there, so nothing is copied. With 2^k
 * leaves at most k subtrees and the next leaf exist at a time. Used by the thread that has the
 * tile.
 */
#include "kernels/reductions/reduce.h"

#include <assert.h>

unsigned reduce_stack_nodes(unsigned leaves_log2, bool is_flat)
{
    return is_flat && leaves_log2 > 1 ? 2 : leaves_log2 + 1;
}

void reduce_stack_init(struct reduce_stack *s, const struct reduce_layout *layout, void *memory)
{
    assert((uintptr_t)memory % 64 == 0);
    *s = (struct reduce_stack){.layout = *layout, .memory = memory};
}

static void *node_at(const struct reduce_stack *s, unsigned i)
{
    return s->memory + i * s->layout.n_bytes;
}

void *reduce_stack_next(const struct reduce_stack *s)
{
    return node_at(s, s->n_nodes);
}

void reduce_stack_push(struct reduce_stack *s)
{
    uint64_t n_combined = s->n_leaves;

    if (s->layout.is_flat && n_combined > 0)
        n_combined = 1;
    for (uint64_t rest = n_combined; rest & 1; rest >>= 1) {
        s->n_nodes--;
        reduce_combine(&s->layout, node_at(s, s->n_nodes), node_at(s, s->n_nodes + 1));
    }
    s->n_nodes++;
    s->n_leaves++;
}

void *reduce_stack_finish(struct reduce_stack *s)
{
    assert(s->n_leaves > 0);
    for (; s->n_nodes > 1; s->n_nodes--)
        reduce_combine(&s->layout, node_at(s, s->n_nodes - 2), node_at(s, s->n_nodes - 1));
    return s->memory;
}
