/* Which walks by slabs a program has: one after the other, in the order of the graph.
 *
 *     slab_members_find()    what one walk computes
 *     slab_again_make()      what it would keep for others is made again, by walks behind it
 *     slab_build()           its steps and passes
 *
 * `.T` of what is computed is something else in the graph (rules/transposed.c). What it was made of
 * is looked at, too, as if it were needed, since v.T @ w is a sum over rows of v and w: if a walk
 * has it, nobody needs what was turned.
 *
 * What walks by slabs do not compute is a stage of its own, or refused. Where a copy of a product
 * is no step of a walk in the end, and where walks make a program too large, compile.c begins anew,
 * and asks for less.
 *
 * Called by passes.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/slab_members.h"

#include <inttypes.h>
#include <string.h>

/* What matmul computes, too. */
static bool is_of_matrices(const struct graph *g, const struct graph_node *n)
{
    int left = g->shapes[g->nodes[n->src[0]].shape].ndim;
    int right = g->shapes[g->nodes[n->src[1]].shape].ndim;
    return left <= 2 && right <= 2 && n->left_axes == UINT32_C(1) << (left - 1) &&
           n->right_axes == 1;
}

/* A tensordot that became no step: nothing else computes it. */
static int refuse_tensordot(struct compiler *c, const struct graph_node *n)
{
    const struct graph *g = &c->graph;
    const struct shape *left = &g->shapes[g->nodes[n->src[0]].shape];
    const struct shape *right = &g->shapes[g->nodes[n->src[1]].shape];
    int n_summed = __builtin_popcount(n->left_axes), n_kept = right->ndim - n_summed;
    int64_t columns = n_kept > 0 ? right->dims[right->ndim - 1] : 1;
    int r = compiler_fail(
        c, c->request->has_no_slabs ? GAD_NO_ENGINE : GAD_BAD_EXPRESSION, c->product_column, "%s",
        c->request->has_no_slabs ? "tensordot: the engine does not walk by slabs; ask for \"cpu\""
                                 : "tensordot: not computed in one walk over the left operand");
    if (c->request->has_no_slabs) {
        error_expected(c->error, "cpu or auto");
    } else if (n_summed != 1 && n_summed != left->ndim - 1) {
        error_expected(c->error, "all axes of the left operand but one, or one of them");
        error_found(c->error, "%d of %d axes", n_summed, left->ndim);
    } else if (left->ndim < 2) {
        error_expected(c->error, "a left operand of two axes or more; of one sum(x * y)");
        error_found(c->error, "%d", left->ndim);
    } else if (n->right_axes != (UINT32_C(1) << n_summed) - 1 || n_kept > 1) {
        error_expected(c->error, "the first axes of the right operand, and one behind them");
        error_found(c->error, "%d axes beside those that are summed", n_kept);
    } else if (columns > SLAB_MAX_COLUMNS) {
        error_expected(c->error, "a right operand of at most %d columns, or %d of what is walked",
                       SLAB_MAX_COLUMNS, SLAB_MAX_SQUARE);
        error_found(c->error, "%" PRId64, columns);
    } else {
        error_expected(
            c->error,
            "a right operand that is there before the walk, or has a row for each row of "
            "the left one, and at most %d products in a walk",
            SLAB_MAX_MEMBERS);
    }
    return r;
}

/* X transposed is read by nobody, where a step has X instead. */
static bool is_read(const struct graph *g, const struct graph_node *n, const struct schedule *s,
                    unsigned src)
{
    if (n->slab == 0 || src != 0)
        return true;
    for (unsigned i = 0; i < s->n_roots; i++)
        if (s->roots[i].slab != 0 && s->roots[i].is_own && s->roots[i].node == n->src[0])
            return true;
    const struct graph_node *left = &g->nodes[n->src[0]];
    return left->kind == NODE_PRODUCT;
}

/* Which nodes are needed, as far as it is known what steps read. */
static void mark_needed(struct compiler *c, const struct schedule *s)
{
    struct graph *g = &c->graph;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].state = 0;
    for (unsigned i = 0; i < c->request->n_outputs; i++)
        g->nodes[c->outputs[i]].state = SCHEDULE_IS_NEEDED;
    for (unsigned i = 0; i < c->n_checks; i++)
        g->nodes[c->checks[i].node].state = SCHEDULE_IS_NEEDED;
    for (unsigned i = 0; i < s->n_roots; i++)
        if (s->roots[i].slab != 0)
            g->nodes[s->roots[i].node].state = SCHEDULE_IS_NEEDED;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        for (unsigned k = 0; n->state && k < n->n_src; k++)
            if (is_read(g, n, s, k))
                g->nodes[n->src[k]].state = SCHEDULE_IS_NEEDED;
        if (n->state)
            stepping_mark(c, n, SCHEDULE_IS_NEEDED);
    }
}

/* What left operands of products were before they were turned, and what that is made of. */
static void mark_mirrors(struct compiler *c)
{
    struct graph *g = &c->graph;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        for (unsigned k = 0; (n->state & SCHEDULE_IS_MIRROR) && k < n->n_src; k++)
            g->nodes[n->src[k]].state |= SCHEDULE_IS_MIRROR;
        if (n->kind == NODE_PRODUCT && n->n_src > 0 && n->state && n->slab == 0)
            g->nodes[slab_left(g, n)].state |= SCHEDULE_IS_MIRROR;
    }
}

/* One that a walk over the operand of this product can have; copies are behind all others. */
static int find_slab(struct compiler *c, struct schedule *s, uint16_t index)
{
    struct slab_search search;
    bool is_found, is_made = false, makes_again = c->walks == COMPILER_WALKS_AGAIN;
    c->n_steps += c->graph.n_nodes;
    int r = compiler_check_steps(c, c->product_column);
    if (r == 0)
        r = slab_members_find(c, s, index, makes_again, &search, &is_found);
    if (r == 0 && is_found && makes_again)
        r = slab_again_make(c, s, &search, &is_made);
    if (is_made) {
        mark_needed(c, s);
        mark_mirrors(c);
    }
    if (r == 0 && makes_again)
        r = slab_members_find(c, s, index, false, &search, &is_found);
    if (r || !is_found)
        return r;
    r = slab_build(c, s, &search);
    mark_needed(c, s);
    mark_mirrors(c);
    return r;
}

/* A copy that became no step: without copies there is less to compute. */
static int refuse_copy(struct compiler *c)
{
    int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, c->product_column,
                          "matmul: too much for walks by slabs");
    error_expected(c->error, "at most %d walks", PROGRAM_MAX_SLABS);
    return r;
}

static int find_slabs(struct compiler *c, struct schedule *s)
{
    int r = 0;
    mark_mirrors(c);
    for (uint16_t i = 0; r == 0 && i < c->graph.n_nodes; i++) {
        const struct graph_node *n = &c->graph.nodes[i];
        if (n->kind == NODE_PRODUCT && n->state && n->slab == 0)
            r = find_slab(c, s, i);
    }
    mark_needed(c, s);
    for (uint16_t i = 0; r == 0 && i < c->graph.n_nodes; i++) {
        const struct graph_node *n = &c->graph.nodes[i];
        if (n->kind == NODE_PRODUCT && n->state && n->slab == 0 && n->n_bins != 0)
            r = refuse_copy(c);
    }
    c->has_walks = s->n_slabs > 0;
    return r;
}

int slabs_find(struct compiler *c, struct schedule *s)
{
    int r = c->walks == COMPILER_WALKS_NONE ? 0 : find_slabs(c, s);
    for (uint16_t i = 0; r == 0 && i < c->graph.n_nodes; i++) {
        struct graph_node *n = &c->graph.nodes[i];
        if (n->kind != NODE_PRODUCT || !n->state || n->slab != 0 || n->left_axes == 0)
            continue;
        if (!is_of_matrices(&c->graph, n))
            return refuse_tensordot(c, n);
        n->left_axes = n->right_axes = 0;
    }
    return r;
}
