/* What a walk by slabs would keep in whole for those behind it is made again by a walk of its own.
 *
 *     p = a @ b; p - mean(p)      walk 1: p, mean(p)    walk 2: p', p' - mean(p)    stored row by
 * row
 *
 * A large value of rows that some node reads which is not of rows, since that node needs what comes
 * out at the walk's end, is copied with all of rows that it is made of, and so are the nodes behind
 * it, up to the outputs. A copy of a product is told from the product by its n_bins. The operands
 * of a are read once more and the product is computed twice, by the same steps: so a copy has the
 * bits of what it is a copy of, and `p / max(p)` has a 1.
 *
 * Where nothing but outputs is behind it, keeping it is cheaper, and gives the same bits: this is
 * done then only if the pool has no room (request->makes_again). What is reduced or multiplied
 * behind it would have other bits, so there it is done whatever the pool.
 *
 * Called by slab_find.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/slab_members.h"

#include <string.h>

enum { IS_MADE_OF = 1, IS_BEHIND = 2 }; /* of what is copied */

struct again {
    struct compiler *c;
    const struct slab_search *search;
    uint8_t *marks;
    uint16_t *copies; /* NODE_NONE: there is none */
    bool is_needed, is_reduced;
    uint16_t level; /* at which all is there that copies need beside copies */
};

static bool has(const struct again *a, uint16_t node, unsigned flags)
{
    return (a->search->flags[node] & flags) == flags;
}

static bool is_large(const struct again *a, uint16_t node)
{
    const struct graph *g = &a->c->graph;
    return has(a, node, SLAB_IS_OF_ROWS) &&
           g->shapes[g->nodes[node].shape].n_elements > SLAB_MAX_KEPT;
}

/* Behind the walk, but no part of it. */
static bool is_outside(const struct again *a, uint16_t node)
{
    const struct graph_node *n = &a->c->graph.nodes[node];
    bool is_alive = (n->state & SCHEDULE_IS_NEEDED) || has(a, node, SLAB_IS_USED);
    return is_alive && has(a, node, SLAB_IS_BEHIND) && !has(a, node, SLAB_IS_MEMBER) &&
           !has(a, node, SLAB_IS_OF_ROWS);
}

/* A product's left operand as it was before it was turned. */
static uint16_t source_of(const struct graph *g, const struct graph_node *n, unsigned k)
{
    return n->kind == NODE_PRODUCT && k == 0 ? slab_left(g, n) : n->src[k];
}

/* Whether a walk to come may have the node, when the sums of this one are there. */
static bool can_come_later(const struct again *a, uint16_t node)
{
    const struct graph *g = &a->c->graph;
    const struct graph_node *n = &g->nodes[node];
    const struct shape *shape = &g->shapes[n->shape];
    bool waits = false;
    for (unsigned k = 0; k < n->n_src; k++) {
        uint16_t src = source_of(g, n, k);
        waits |= has(a, src, SLAB_IS_BEHIND) && !has(a, src, SLAB_IS_OF_ROWS);
        if (n->kind == NODE_INSN && has(a, src, SLAB_IS_OF_ROWS) &&
            g->shapes[g->nodes[src].shape].ndim != shape->ndim)
            return false;
    }
    bool has_rows = shape->ndim >= 1 && shape->ndim <= 2 && shape->dims[0] == a->search->n_rows;
    return waits && (n->kind == NODE_INSN ? has_rows : n->kind == NODE_PRODUCT);
}

/* What large values others read, and of what these are made. Whether all of these can wait. */
static bool mark_kept(struct again *a)
{
    const struct graph *g = &a->c->graph;
    for (uint16_t i = a->search->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        bool is_made_of = a->marks[i] & IS_MADE_OF;
        if (!is_made_of && !is_outside(a, i))
            continue;
        for (unsigned k = 0; k < n->n_src; k++) {
            uint16_t src = source_of(g, n, k);
            if (is_made_of ? !has(a, src, SLAB_IS_OF_ROWS) : !is_large(a, src))
                continue;
            if (!is_made_of && !can_come_later(a, i))
                return false;
            a->marks[src] |= IS_MADE_OF;
            a->is_needed = true;
        }
    }
    return a->is_needed;
}

static bool is_check(const struct compiler *c, uint16_t node)
{
    for (unsigned i = 0; i < c->n_checks; i++)
        if (c->checks[i].node == node)
            return true;
    return false;
}

/* What is behind the copies: whether all of it can be copied. */
static bool mark_behind(struct again *a)
{
    const struct graph *g = &a->c->graph;
    for (uint16_t i = 0; i < a->search->n_nodes; i++) {
        const struct graph_node *n = &g->nodes[i];
        bool is_behind = false;
        for (unsigned k = 0; k < n->n_src && is_outside(a, i); k++)
            is_behind |= a->marks[source_of(g, n, k)] != 0;
        if (!is_behind)
            continue;
        bool is_reduction = n->kind == NODE_REDUCTION && n->op != OP_KTH && n->op != OP_QR_R;
        if ((n->kind != NODE_INSN && n->kind != NODE_PRODUCT && !is_reduction) || is_check(a->c, i))
            return false;
        a->marks[i] |= IS_BEHIND;
        a->is_reduced |= n->kind != NODE_INSN;
        for (unsigned k = 0; k < n->n_src; k++)
            if (a->marks[source_of(g, n, k)] == 0 && g->nodes[source_of(g, n, k)].level > a->level)
                a->level = g->nodes[source_of(g, n, k)].level;
    }
    return true;
}

/* A stream is read once. */
static bool reads_streams(const struct again *a)
{
    const struct job_request *request = a->c->request;
    const struct graph *g = &a->c->graph;
    uint64_t reads = g->nodes[a->search->x].reads;
    for (unsigned i = 0; i < a->search->n_nodes; i++)
        for (unsigned k = 0; k < g->nodes[i].n_src && a->marks[i] & IS_MADE_OF; k++)
            reads |= g->nodes[g->nodes[i].src[k]].reads;
    for (; reads; reads &= reads - 1) {
        const struct array *array = &request->args[__builtin_ctzll(reads)].array;
        if (array->is_open || (array->at.kind == LOCATION_PROVIDER && array->at.provider.is_stream))
            return true;
    }
    return false;
}

/* A matrix product whose left operand was turned has that as it was, as tensordot has. */
static void set_sources(const struct again *a, struct graph_node *copy)
{
    const struct graph *g = &a->c->graph;
    const struct graph_node n = *copy;
    uint16_t left = source_of(g, &n, 0);
    if (n.kind == NODE_PRODUCT && left != n.src[0] && a->copies[left] != NODE_NONE) {
        copy->src[0] = left;
        copy->op = OP_TENSORDOT;
        copy->left_axes = copy->right_axes = 1;
        copy->n_bins++;
    }
    copy->level = 0;
    for (unsigned k = 0; k < n.n_src; k++) {
        if (a->copies[copy->src[k]] != NODE_NONE)
            copy->src[k] = a->copies[copy->src[k]];
        uint16_t level = g->nodes[copy->src[k]].level + (n.kind != NODE_INSN);
        copy->level = level > copy->level ? level : copy->level;
    }
    if (n.mirror != NODE_NONE && a->copies[n.mirror] != NODE_NONE)
        copy->mirror = a->copies[n.mirror];
}

static int copy_node(struct again *a, uint16_t node)
{
    struct graph_node copy = a->c->graph.nodes[node];
    copy.state = copy.slab = 0;
    set_sources(a, &copy);
    if (copy.kind == NODE_PRODUCT && a->marks[node] & IS_MADE_OF) {
        copy.n_bins++;
        copy.level = copy.level > a->level ? copy.level : a->level + 1u; /* behind its own walk */
    }
    return graph_find_or_add(a->c, &copy, &a->copies[node]);
}

static int make_copies(struct again *a, struct schedule *s)
{
    struct compiler *c = a->c;
    for (uint16_t i = 0; i < a->search->n_nodes; i++) {
        int r = a->marks[i] ? copy_node(a, i) : 0;
        if (r)
            return r;
    }
    for (unsigned i = 0; i < c->request->n_outputs; i++) {
        if (!(a->marks[c->outputs[i]] & IS_BEHIND))
            continue;
        s->roots[i].node = c->outputs[i] = a->copies[c->outputs[i]];
        s->roots[i].level = c->graph.nodes[c->outputs[i]].level; /* behind all walks it waits for */
    }
    return 0;
}

int slab_again_make(struct compiler *c, struct schedule *s, const struct slab_search *search,
                    bool *ret_is_made)
{
    struct again a = {.c = c, .search = search};
    *ret_is_made = false;
    a.marks = arena_take(&c->arena, search->n_nodes);
    a.copies = arena_take(&c->arena, search->n_nodes * sizeof(*a.copies));
    if (a.marks == NULL || a.copies == NULL)
        return compiler_no_memory(c);
    memset(a.marks, 0, search->n_nodes);
    memset(a.copies, 0xff, search->n_nodes * sizeof(*a.copies));
    if (!mark_kept(&a) || !mark_behind(&a) || reads_streams(&a) ||
        !(a.is_reduced || c->request->makes_again))
        return 0;
    *ret_is_made = true;
    return make_copies(&a, s);
}
