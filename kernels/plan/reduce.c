/* Partial results of reductions and the fixed tree that combines them. Pure code: the engine makes
 * a partial per grain, the worker's threads feed a stack per tile and, under the job's lock, the
 * job's tree.
 *
 * Both are the same binary counter: leaves arrive in order, and after leaf number n the stack holds
 * one complete subtree per set bit of n, largest first:
 *
 *     n = 7 = 0b111:   [0 1 2 3] [4 5] [6]
 *
 * Leaf n + 1 is combined with as many of the last subtrees as n has trailing ones. At the end the
 * subtrees are combined from the right. This is exactly the tree of reduce.h: a node whose right
 * child lies beyond the last leaf is its left child.
 *
 * A tile that arrives early waits in a ring of REDUCE_WINDOW places until all before it are there.
 * So the tree holds REDUCE_WINDOW partials and one a level, however many tiles there are.
 *
 * Invariants: tree->n_added is the oldest missing tile; a tile at `index` waits in place index
 * modulo REDUCE_WINDOW; is_waiting of n_added's place is false between calls.
 */
#include "kernels/reduce.h"
#include "proto/util.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_LEVELS 64 /* of a tree over at most 2^64 - 1 leaves */

struct reduce_tree {
    unsigned n_reductions;
    uint64_t n_tiles, n_added;
    bool is_waiting[REDUCE_WINDOW];
    struct partial partials[]; /* [MAX_LEVELS + REDUCE_WINDOW][n_reductions]: stack, then ring */
};

static union scalar largest(enum dtype dtype)
{
    unsigned n_bits = 8 * (unsigned)dtype_size(dtype);

    if (dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = INFINITY};
    if (dtype == DTYPE_FLOAT32)
        return (union scalar){.f32 = INFINITY};
    if (dtype == DTYPE_BOOL)
        return (union scalar){.u64 = 1};
    if (dtype_is_signed(dtype))
        return (union scalar){.i64 = INT64_MAX >> (64 - n_bits)};
    return (union scalar){.u64 = UINT64_MAX >> (64 - n_bits)};
}

static union scalar smallest(enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = -INFINITY};
    if (dtype == DTYPE_FLOAT32)
        return (union scalar){.f32 = -INFINITY};
    if (dtype_is_signed(dtype))
        return (union scalar){.i64 = -largest(dtype).i64 - 1};
    return (union scalar){.u64 = 0};
}

void partial_identity(const struct reduction *reduction, struct partial *ret)
{
    *ret = (struct partial){.spare = 0};
    if (reduction->op == OP_MIN)
        ret->value = largest(reduction->result);
    else if (reduction->op == OP_MAX)
        ret->value = smallest(reduction->result);
    else if (reduction->result == DTYPE_FLOAT64)
        ret->value.f64 = 0.0;
    else
        ret->value.u64 = 0;
}

static void combine_sum(enum dtype dtype, union scalar *left, const union scalar *right)
{
    if (dtype == DTYPE_FLOAT64)
        left->f64 += right->f64;
    else
        left->u64 += right->u64; /* the same bits for signed, without undefined overflow */
}

/* Whether right replaces left; of equal ones (0.0 and -0.0 too) the left one stays. */
static bool is_smaller(enum dtype dtype, const union scalar *left, const union scalar *right)
{
    if (dtype == DTYPE_FLOAT64)
        return !isnan(left->f64) && (isnan(right->f64) || right->f64 < left->f64);
    if (dtype == DTYPE_FLOAT32)
        return !isnan(left->f32) && (isnan(right->f32) || right->f32 < left->f32);
    return dtype_is_signed(dtype) ? right->i64 < left->i64 : right->u64 < left->u64;
}

static bool is_larger(enum dtype dtype, const union scalar *left, const union scalar *right)
{
    if (dtype == DTYPE_FLOAT64)
        return !isnan(left->f64) && (isnan(right->f64) || right->f64 > left->f64);
    if (dtype == DTYPE_FLOAT32)
        return !isnan(left->f32) && (isnan(right->f32) || right->f32 > left->f32);
    return dtype_is_signed(dtype) ? right->i64 > left->i64 : right->u64 > left->u64;
}

void partial_combine(const struct reduction *reduction, struct partial *left,
                     const struct partial *right)
{
    enum dtype dtype = reduction->result;

    switch (reduction->op) {
    case OP_SUM:
    case OP_COUNT_NONZERO: combine_sum(dtype, &left->value, &right->value); break;
    case OP_MIN:
        if (is_smaller(dtype, &left->value, &right->value))
            left->value = right->value;
        break;
    case OP_MAX:
        if (is_larger(dtype, &left->value, &right->value))
            left->value = right->value;
        break;
    default: assert(!"not a reduction");
    }
}

/* One leaf more on a stack of complete subtrees; n_leaves: how many came before. `stride` partials
 * lie between two nodes. Returns the number of nodes after it. */
static unsigned stack_push(struct partial *nodes, size_t stride, unsigned n_reductions,
                           const struct reduction *reductions, uint64_t n_leaves,
                           const struct partial *leaf)
{
    unsigned n_nodes = (unsigned)__builtin_popcountll(n_leaves);

    memcpy(nodes + n_nodes * stride, leaf, n_reductions * sizeof(*leaf));
    for (uint64_t rest = n_leaves; rest & 1; rest >>= 1, n_nodes--) {
        struct partial *left = nodes + (n_nodes - 1) * stride;
        for (unsigned i = 0; i < n_reductions; i++)
            partial_combine(&reductions[i], &left[i], &left[stride + i]);
    }
    return n_nodes + 1;
}

static void stack_fold(const struct partial *nodes, size_t stride, unsigned n_nodes,
                       unsigned n_reductions, const struct reduction *reductions,
                       struct partial *ret_partials)
{
    for (unsigned i = 0; i < n_reductions; i++) {
        struct partial right = nodes[(n_nodes - 1) * stride + i];
        for (unsigned n = n_nodes - 1; n > 0; n--) {
            struct partial left = nodes[(n - 1) * stride + i];
            partial_combine(&reductions[i], &left, &right);
            right = left;
        }
        ret_partials[i] = right;
    }
}

void reduce_stack_init(struct reduce_stack *s, unsigned n_reductions)
{
    assert(n_reductions <= PROGRAM_MAX_REDUCTIONS);
    s->n_reductions = n_reductions;
    s->n_nodes = 0;
    s->n_leaves = 0;
}

void reduce_stack_add(struct reduce_stack *s, const struct reduction *reductions,
                      const struct partial *partials)
{
    assert(s->n_leaves < UINT64_MAX);
    s->n_nodes = stack_push(s->nodes[0], PROGRAM_MAX_REDUCTIONS, s->n_reductions, reductions,
                            s->n_leaves, partials);
    s->n_leaves++;
}

void reduce_stack_finish(struct reduce_stack *s, const struct reduction *reductions,
                         struct partial *ret_partials)
{
    assert(s->n_leaves > 0);
    stack_fold(s->nodes[0], PROGRAM_MAX_REDUCTIONS, s->n_nodes, s->n_reductions, reductions,
               ret_partials);
}

size_t reduce_tree_size_bytes(unsigned n_reductions)
{
    assert(n_reductions <= PROGRAM_MAX_REDUCTIONS);
    return sizeof(struct reduce_tree) +
           (size_t)n_reductions * (MAX_LEVELS + REDUCE_WINDOW) * sizeof(struct partial);
}

struct reduce_tree *reduce_tree_init(void *memory, unsigned n_reductions, uint64_t n_tiles)
{
    struct reduce_tree *t = memory;

    assert((uintptr_t)memory % _Alignof(struct reduce_tree) == 0);
    memset(t, 0, reduce_tree_size_bytes(n_reductions));
    t->n_reductions = n_reductions;
    t->n_tiles = n_tiles;
    return t;
}

static struct partial *waiting_place(struct reduce_tree *t, uint64_t index)
{
    return t->partials + (MAX_LEVELS + index % REDUCE_WINDOW) * t->n_reductions;
}

void reduce_tree_add(struct reduce_tree *t, const struct reduction *reductions, uint64_t index,
                     const struct partial *partials)
{
    bool *is_waiting = &t->is_waiting[index % REDUCE_WINDOW];

    assert(index < t->n_tiles);
    assert(index >= t->n_added && index - t->n_added < REDUCE_WINDOW);
    assert(!*is_waiting);
    memcpy(waiting_place(t, index), partials, t->n_reductions * sizeof(*partials));
    *is_waiting = true;
    while (t->is_waiting[t->n_added % REDUCE_WINDOW]) {
        t->is_waiting[t->n_added % REDUCE_WINDOW] = false;
        (void)stack_push(t->partials, t->n_reductions, t->n_reductions, reductions, t->n_added,
                         waiting_place(t, t->n_added));
        t->n_added++;
    }
}

uint64_t reduce_tree_oldest_missing(const struct reduce_tree *t)
{
    return t->n_added;
}

bool reduce_tree_is_complete(const struct reduce_tree *t)
{
    return t->n_added == t->n_tiles;
}

void reduce_tree_result(const struct reduce_tree *t, const struct reduction *reductions,
                        struct partial *ret_partials)
{
    assert(reduce_tree_is_complete(t));
    if (t->n_tiles == 0) {
        for (unsigned i = 0; i < t->n_reductions; i++)
            partial_identity(&reductions[i], &ret_partials[i]);
        return;
    }
    stack_fold(t->partials, t->n_reductions, (unsigned)__builtin_popcountll(t->n_tiles),
               t->n_reductions, reductions, ret_partials);
}
