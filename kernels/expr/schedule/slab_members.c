/* Which products share one walk by slabs over a matrix X (struct program_slab), and what else it
 * computes on the way. It follows from the graph alone, so from texts, shapes and dtypes: the bits
 * of results do not depend on the pool.
 *
 *     node                                    is
 *     x @ c, tensordot(x, c, 2)               a member, of rows    c is not behind the slab
 *     t @ g                                   a member, of rows    t is of rows, g not behind
 *     x.T @ v, tensordot(x, v, (rows, 0))     a member, a sum      v is of rows, or an argument
 *     v.T @ w, tensordot(v, w, (0, 0))        a member, a sum      so is v or w, the other is of
 *                                                                  rows or an argument
 *     sum(x * x), sum(x, axis=0)              a member, a sum      nothing with rows is made of it
 *     sum(t), sum(t, axis=0)                  a member, a sum      the same, t is of rows
 *     sum(t, axis=1)                          a member, of rows    t is of rows
 *     max(t), var(t, axis=0), max(t, axis=1)  the same             the same; not of X itself
 *     maximum(t, 0), t / b, ...               of rows              what it is made of is, or
 *                                                                  broadcasts to rows
 *
 * Rows are the first axis of what is of rows, so nothing may move them: what broadcasts t to more
 * axes is not of rows, and is computed behind the slab, which then keeps t in whole.
 *
 * A slab pays where X would be read by several products, and where one product's large result is
 * another's operand, which a stage of its own would leave for it in whole. A single product of
 * matrices stays a stage, which has no limit; a tensordot that is none is always a slab.
 * Members are skinny, since a slab's kernels keep a few columns in registers.
 *
 * Called by slab_find.c.
 */
#include "kernels/expr/schedule/slab_members.h"

#include <string.h>

#define MAX_PLAIN_COLUMNS 128                /* where a product of matrices would do as well */
#define MAX_PLAIN_CELLS   (INT64_C(1) << 18) /* of an operand, and of a sum: fits most pools */
#define MAX_PLAIN_ROW     16384              /* columns of X: so do some of its rows */
#define MAX_BINS          4096               /* of a histogram, which each lane has whole */
#define MAX_CHAIN_CELLS   (INT64_C(1) << 19) /* of an operand, where it would leave more */

static const struct shape *shape_of(const struct graph *g, uint16_t node)
{
    return &g->shapes[g->nodes[node].shape];
}

/* The left operand's axes that a product sums over. */
static uint32_t slab_summed_axes(const struct graph *g, const struct graph_node *product)
{
    if (product->left_axes != 0)
        return product->left_axes;
    return UINT32_C(1) << (shape_of(g, product->src[0])->ndim - 1);
}

/* tensordot, or matmul without batches. */
static bool is_plain(const struct graph *g, const struct graph_node *product)
{
    return product->left_axes != 0 ||
           (shape_of(g, product->src[0])->ndim <= 2 && shape_of(g, product->src[1])->ndim <= 2);
}

/* The first axes of the right operand are summed, and at most one is left. */
static bool has_skinny_right(const struct graph *g, const struct graph_node *product)
{
    int n_summed = __builtin_popcount(slab_summed_axes(g, product));
    int ndim = shape_of(g, product->src[1])->ndim;
    bool is_first = product->left_axes == 0 || product->right_axes == (UINT32_C(1) << n_summed) - 1;
    return is_first && ndim <= n_summed + 1;
}

static int64_t columns_of(const struct graph *g, const struct graph_node *product)
{
    const struct shape *right = shape_of(g, product->src[1]);
    int n_summed = __builtin_popcount(slab_summed_axes(g, product));
    return right->ndim > n_summed ? right->dims[right->ndim - 1] : 1;
}

static bool has(const struct slab_search *s, uint16_t node, unsigned flags)
{
    return (s->flags[node] & flags) == flags;
}

/* Row by row, or an argument with as many rows. */
static bool is_like_rows(const struct slab_search *s, uint16_t node)
{
    const struct shape *shape = shape_of(&s->c->graph, node);
    if (shape->ndim < 1 || shape->ndim > 2 || shape->dims[0] != s->n_rows)
        return false;
    return has(s, node, SLAB_IS_OF_ROWS) || !has(s, node, SLAB_IS_BEHIND);
}

bool slab_is_of_x(const struct slab_search *s, const struct graph_node *member)
{
    const struct graph *g = &s->c->graph;
    bool is_mirror;
    if (slab_is_x(s, member->src[0]) || member->left_axes != 0)
        return slab_is_x(s, member->src[0]);
    if (shape_of(g, s->x)->ndim != 2 || shape_of(g, member->src[0])->ndim != 2)
        return false;
    int r = product_passes_mirror(s->c, member->src[0], s->wide, &is_mirror);
    if (r == 0 && !is_mirror && s->wide != s->x)
        r = product_passes_mirror(s->c, member->src[0], s->x, &is_mirror);
    return r == 0 && is_mirror;
}

uint16_t slab_left(const struct graph *g, const struct graph_node *product)
{
    if (product->n_src == 0 || product->left_axes != 0)
        return product->src[0];
    uint16_t mirror = g->nodes[product->src[0]].mirror;
    return mirror == NODE_NONE ? product->src[0] : mirror;
}

enum role { NO_ROLE, GIVES_ROWS, GIVES_SUM };

static enum role role_of_x(const struct slab_search *s, const struct graph_node *n)
{
    const struct graph *g = &s->c->graph;
    uint32_t all = (UINT32_C(1) << shape_of(g, s->x)->ndim) - 1, rows = UINT32_C(1) << s->row_axis;
    uint32_t summed = slab_summed_axes(g, n);
    bool is_mirror = !slab_is_x(s, n->src[0]);
    if (is_mirror) /* its axis 1 is the rows */
        summed = rows;
    if (summed == (all & ~rows) && !is_mirror)
        return has(s, n->src[1], SLAB_IS_BEHIND) || n->n_bins != s->n_again ? NO_ROLE : GIVES_ROWS;
    if (summed != rows)
        return NO_ROLE;
    if (slab_is_x(s, n->src[1]))
        return all == 3 ? GIVES_SUM : NO_ROLE;
    return is_like_rows(s, n->src[1]) ? GIVES_SUM : NO_ROLE;
}

/* v.T @ w, of which one is of rows. A vector has no rows to be turned. What is large is kept better
 * by who multiplies matrices, tile by tile. */
static bool sums_over_rows(const struct slab_search *s, const struct graph_node *n)
{
    const struct graph *g = &s->c->graph;
    uint16_t left = slab_left(g, n);
    if (n->left_axes == 0 && g->shapes[n->shape].n_elements > SLAB_MAX_KEPT)
        return false;
    bool is_turned = left != n->src[0] || shape_of(g, left)->ndim == 1 || n->left_axes == 1;
    return is_turned && is_like_rows(s, left) && is_like_rows(s, n->src[1]) &&
           (has(s, left, SLAB_IS_OF_ROWS) || has(s, n->src[1], SLAB_IS_OF_ROWS));
}

static enum role role_of(const struct slab_search *s, const struct graph_node *n)
{
    const struct graph *g = &s->c->graph;
    int64_t most = slab_is_x(s, n->src[1]) ? SLAB_MAX_SQUARE : SLAB_MAX_COLUMNS;
    if (!is_plain(g, n) || !dtype_is_float((enum dtype)n->dtype) || !has_skinny_right(g, n) ||
        columns_of(g, n) > most)
        return NO_ROLE;
    if (slab_is_of_x(s, n))
        return role_of_x(s, n);
    if (sums_over_rows(s, n))
        return GIVES_SUM;
    bool is_of_rows = has(s, n->src[0], SLAB_IS_OF_ROWS) && shape_of(g, n->src[0])->ndim == 2;
    bool is_small = shape_of(g, n->src[1])->n_elements <= SLAB_MAX_KEPT;
    return is_of_rows && slab_summed_axes(g, n) == 2 && !has(s, n->src[1], SLAB_IS_BEHIND) &&
                   is_small
               ? GIVES_ROWS
               : NO_ROLE;
}

/* Of an operation element for element: all sources behind the slab are of rows, and none is
 * broadcast along them. */
static bool keeps_rows(const struct slab_search *s, const struct graph_node *n)
{
    const struct graph *g = &s->c->graph;
    const struct shape *shape = &g->shapes[n->shape];
    if (shape->ndim < 1 || shape->ndim > 2 || shape->dims[0] != s->n_rows)
        return false;
    for (unsigned i = 0; i < n->n_src; i++) {
        if (!has(s, n->src[i], SLAB_IS_BEHIND))
            continue;
        if (!has(s, n->src[i], SLAB_IS_OF_ROWS) || shape_of(g, n->src[i])->ndim != shape->ndim)
            return false;
    }
    return true;
}

/* The levels of what a node behind the slab takes from elsewhere. */
static uint16_t level_of(const struct slab_search *s, uint16_t index)
{
    const struct graph *g = &s->c->graph;
    const struct graph_node *n = &g->nodes[index];
    bool is_product = n->kind == NODE_PRODUCT && has(s, index, SLAB_IS_MEMBER);
    uint16_t level = 0;
    for (unsigned i = 0; i < n->n_src; i++) {
        uint16_t src = is_product && i == 0 ? slab_left(g, n) : n->src[i];
        uint16_t own = has(s, src, SLAB_IS_BEHIND) ? s->levels[src] : g->nodes[src].level;
        level = own > level ? own : level;
    }
    return level;
}

/* x itself, or widened. */
static bool is_like_x(const struct slab_search *s, uint16_t node)
{
    const struct graph_node *n = &s->c->graph.nodes[node];
    return node == s->x || (n->kind == NODE_INSN && n->op == OP_CAST && n->src[0] == s->x &&
                            n->dtype == DTYPE_FLOAT64);
}

bool slab_is_sum_of_x(const struct slab_search *s, const struct graph_node *n, bool *ret_is_square)
{
    const struct graph *g = &s->c->graph;
    const struct graph_node *x = &g->nodes[s->x];
    uint32_t all = (UINT32_C(1) << shape_of(g, s->x)->ndim) - 1, rows = UINT32_C(1) << s->row_axis;
    if (n->kind != NODE_REDUCTION || n->op != OP_SUM || n->n_src != 1 || n->over != x->shape ||
        (n->reduced_axes != all && n->reduced_axes != rows))
        return false;
    const struct graph_node *of = &g->nodes[n->src[0]];
    *ret_is_square = of->kind == NODE_INSN && (of->op == OP_SQUARE || of->op == OP_MULTIPLY) &&
                     of->src[0] == of->src[of->n_src - 1u];
    return is_like_x(s, *ret_is_square ? of->src[0] : n->src[0]);
}

bool slab_sums_rows(const struct slab_search *s, const struct graph_node *n)
{
    const struct graph *g = &s->c->graph;
    if (n->kind != NODE_REDUCTION || n->op != OP_SUM || n->n_src != 1 || n->has_minus_zero ||
        !dtype_is_float((enum dtype)n->dtype) || !has(s, n->src[0], SLAB_IS_OF_ROWS))
        return false;
    const struct graph_node *of = &g->nodes[n->src[0]];
    const struct shape *shape = &g->shapes[of->shape];
    return n->over == of->shape && dtype_is_float((enum dtype)of->dtype) &&
           (shape->ndim == 1 || shape->dims[1] <= SLAB_MAX_COLUMNS);
}

/* What a job takes for granted is looked at behind a pass of its own. */
static bool is_check(const struct compiler *c, uint16_t index)
{
    for (unsigned i = 0; i < c->n_checks; i++)
        if (c->checks[i].node == index)
            return true;
    return false;
}

bool slab_reduces_rows(const struct slab_search *s, uint16_t index)
{
    const struct graph *g = &s->c->graph;
    const struct graph_node *n = &g->nodes[index];
    if (n->kind != NODE_REDUCTION || n->n_src != 1 || !has(s, n->src[0], SLAB_IS_OF_ROWS) ||
        n->op == OP_KTH || n->op == OP_QR_R || is_check(s->c, index))
        return false;
    const struct shape *shape = shape_of(g, n->src[0]);
    bool has_few = n->n_bins == 0 ||
                   (n->n_bins <= MAX_BINS && n->reduced_axes == (UINT32_C(1) << shape->ndim) - 1);
    return n->over == g->nodes[n->src[0]].shape && has_few &&
           (shape->ndim == 1 || shape->dims[1] <= SLAB_MAX_COLUMNS);
}

static enum role role_of_reduction(const struct slab_search *s, uint16_t index)
{
    const struct graph_node *n = &s->c->graph.nodes[index];
    bool is_square;
    if (slab_sums_rows(s, n) || slab_reduces_rows(s, index))
        return n->reduced_axes == 2 ? GIVES_ROWS : GIVES_SUM;
    if (has(s, index, SLAB_FEEDS))
        return NO_ROLE;
    return slab_is_sum_of_x(s, n, &is_square) ? GIVES_SUM : NO_ROLE;
}

/* What sums must not wait for: a slab would have to keep what they go into. */
static void mark_feeding(struct slab_search *s)
{
    const struct graph *g = &s->c->graph;
    for (uint16_t i = s->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        const struct shape *shape = &g->shapes[n->shape];
        bool feeds = has(s, i, SLAB_FEEDS) || n->kind == NODE_PRODUCT ||
                     (shape->ndim > 0 && shape->dims[0] == s->n_rows);
        for (unsigned k = 0; n->state && feeds && k < n->n_src; k++)
            s->flags[n->src[k]] |= SLAB_FEEDS;
    }
}

static void look_at(struct slab_search *s, uint16_t index)
{
    const struct graph_node *n = &s->c->graph.nodes[index];
    enum role role = NO_ROLE;
    bool is_behind = false;
    for (unsigned i = 0; i < n->n_src; i++)
        is_behind |= has(s, n->src[i], SLAB_IS_BEHIND);
    if (n->kind == NODE_PRODUCT && n->slab == 0 && s->n_members < SLAB_MAX_MEMBERS)
        role = role_of(s, n);
    if (n->kind == NODE_REDUCTION && n->slab == 0 && s->n_members < SLAB_MAX_MEMBERS)
        role = role_of_reduction(s, index);
    if (role != NO_ROLE) {
        s->members[s->n_members++] = index;
        s->flags[index] |= SLAB_IS_MEMBER | SLAB_IS_BEHIND;
    } else if (is_behind) {
        s->flags[index] |= SLAB_IS_BEHIND;
    }
    bool is_of_rows = n->kind == NODE_INSN && is_behind && keeps_rows(s, n);
    if (is_of_rows || role == GIVES_ROWS)
        s->flags[index] |= SLAB_IS_OF_ROWS;
    s->levels[index] = level_of(s, index);
}

/* What the node reads; of a member's left operand what it was before it was turned. */
static void mark_sources(struct slab_search *s, uint16_t index, enum slab_flag flag)
{
    const struct graph *g = &s->c->graph;
    const struct graph_node *n = &g->nodes[index];
    uint16_t left = n->kind == NODE_PRODUCT ? slab_left(g, n) : NODE_NONE;
    bool is_later = left != NODE_NONE && s->looks_later && has(s, left, SLAB_IS_BEHIND) &&
                    shape_of(g, left)->n_elements > SLAB_MAX_KEPT;
    for (unsigned k = 0; k < n->n_src; k++) {
        bool is_left = left != NODE_NONE && k == 0 && (is_later || has(s, index, SLAB_IS_MEMBER));
        s->flags[is_left ? left : n->src[k]] |= (uint8_t)flag;
    }
}

/* What was turned is looked at, too: what of it nobody needs is no member. */
static void drop_unused(struct slab_search *s)
{
    const struct graph *g = &s->c->graph;
    unsigned n_members = 0;
    for (uint16_t i = s->n_nodes; i-- > 0;) {
        if (!(g->nodes[i].state & SCHEDULE_IS_NEEDED) && !has(s, i, SLAB_IS_USED))
            s->flags[i] &= (uint8_t)~SLAB_IS_MEMBER;
        else
            mark_sources(s, i, SLAB_IS_USED);
    }
    for (unsigned i = 0; i < s->n_members; i++)
        if (has(s, s->members[i], SLAB_IS_MEMBER))
            s->members[n_members++] = s->members[i];
    s->n_members = n_members;
}

/* ---- what is read where ---- */

static void mark_outside(struct slab_search *s)
{
    const struct graph *g = &s->c->graph;
    for (uint16_t i = s->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        bool is_inside = has(s, i, SLAB_IS_MEMBER) ||
                         (has(s, i, SLAB_IS_OF_ROWS) && !has(s, i, SLAB_IS_OUTSIDE));
        if (((n->state & SCHEDULE_IS_NEEDED) || has(s, i, SLAB_IS_USED)) && !is_inside)
            mark_sources(s, i, SLAB_IS_OUTSIDE);
    }
}

/* The slab's level, and whether all that others read of it is early enough for them. */
static bool set_level(struct slab_search *s)
{
    const struct compiler *c = s->c;
    const struct graph_node *nodes = c->graph.nodes;
    s->level = nodes[s->x].level;
    for (unsigned i = 0; i < s->n_members; i++)
        s->level = s->levels[s->members[i]] > s->level ? s->levels[s->members[i]] : s->level;
    for (unsigned i = 0; i < c->request->n_outputs; i++)
        if (has(s, c->outputs[i], SLAB_IS_OF_ROWS) && s->levels[c->outputs[i]] > s->level)
            s->level = s->levels[c->outputs[i]];
    bool is_square;
    unsigned n_early = 0; /* sums that are needed before the slab: not its members */
    for (unsigned i = 0; i < s->n_members; i++) {
        uint16_t member = s->members[i];
        bool is_early = has(s, member, SLAB_IS_OUTSIDE) && nodes[member].level <= s->level;
        if (is_early && !slab_is_sum_of_x(s, &nodes[member], &is_square))
            return false;
        if (is_early)
            s->flags[member] &= (uint8_t)~SLAB_IS_MEMBER;
        s->members[i - n_early] = member;
        n_early += is_early;
    }
    s->n_members -= n_early;
    return true;
}

/* ---- whether it is worth it ---- */

/* What a stage of its own would leave for the others. */
static bool is_large(const struct slab_search *s, uint16_t node)
{
    return has(s, node, SLAB_IS_OF_ROWS) &&
           shape_of(&s->c->graph, node)->n_elements > SLAB_MAX_KEPT;
}

/* Products of X that an expression of rows joins: all but one would be left. */
static bool joins_products(const struct slab_search *s)
{
    const struct graph *g = &s->c->graph;
    unsigned n_products = 0;
    for (unsigned i = 0; i < s->n_members; i++) {
        const struct graph_node *n = &g->nodes[s->members[i]];
        n_products += n->kind == NODE_PRODUCT && slab_gives_rows(s, s->members[i]) &&
                      slab_is_of_x(s, n) && is_large(s, s->members[i]);
    }
    for (uint16_t i = 0; n_products > 1 && i < s->n_nodes; i++) {
        const struct graph_node *n = &g->nodes[i];
        unsigned n_large = 0;
        for (unsigned k = 0; k < n->n_src; k++)
            n_large += is_large(s, n->src[k]) && (k == 0 || n->src[k] != n->src[0]);
        if (n->kind == NODE_INSN && (n->state & SCHEDULE_IS_NEEDED) && n_large > 1)
            return true;
    }
    return false;
}

static bool is_argument(const struct slab_search *s, uint16_t node)
{
    return !has(s, node, SLAB_IS_BEHIND) && !slab_is_x(s, node);
}

static bool is_worth_it(const struct slab_search *s)
{
    const struct graph *g = &s->c->graph;
    unsigned n_reads = 0, n_sums = 0;
    int64_t n_widest = 0;
    bool is_too_wide = false, keeps_much = joins_products(s), is_square;
    for (unsigned i = 0; i < s->n_members; i++) {
        const struct graph_node *n = &g->nodes[s->members[i]];
        bool is_product = n->kind == NODE_PRODUCT;
        uint16_t left = is_product ? slab_left(g, n) : n->src[0];
        if (is_product && (n->n_bins != 0 || (n->left_axes != 0 && !is_argument(s, left))))
            return true;
        if (is_product ? !slab_is_of_x(s, n) : !slab_is_sum_of_x(s, n, &is_square)) {
            keeps_much |= is_large(s, left) || (is_product && is_large(s, n->src[1]));
            continue;
        }
        if (n->kind == NODE_REDUCTION) {
            n_reads++;
            n_sums++;
            continue;
        }
        is_square = slab_is_x(s, n->src[1]);
        n_widest = max_i64(n_widest, columns_of(g, n));
        n_reads++;
        n_sums += !slab_gives_rows(s, s->members[i]);
        is_too_wide |= !is_square && (columns_of(g, n) > MAX_PLAIN_COLUMNS ||
                                      columns_of(g, n) > MAX_PLAIN_CELLS / s->n_columns);
    }
    if (s->n_columns > MAX_PLAIN_ROW)
        return false;
    return keeps_much ? n_widest <= MAX_CHAIN_CELLS / s->n_columns
                      : n_reads > 1 && n_sums > 0 && !is_too_wide;
}

/* ---- X ---- */

/* Sums over all axes but one are rows of that one; over one axis of several, it is the rows'. Of a
 * matrix the first axis is always the rows'. */
static bool choose_x(struct slab_search *s, uint16_t index)
{
    const struct graph *g = &s->c->graph;
    const struct graph_node *n = &g->nodes[index];
    const struct shape *left = shape_of(g, n->src[0]);
    uint32_t summed = slab_summed_axes(g, n), all = (UINT32_C(1) << left->ndim) - 1;
    bool is_mirror = false;
    if (!is_plain(g, n) || left->ndim < 2 || left->n_elements == 0)
        return false;
    s->x = n->src[0];
    s->row_axis = 0;
    if (left->ndim == 2 && n->left_axes == 0 && shape_of(g, n->src[1])->ndim == 2 &&
        product_passes_mirror(s->c, n->src[0], n->src[1], &is_mirror) == 0 && is_mirror)
        s->x = n->src[1];
    else if (left->ndim > 2 && __builtin_popcount(summed) == 1)
        s->row_axis = __builtin_ctz(summed);
    else if (left->ndim > 2 && __builtin_popcount(all & ~summed) == 1)
        s->row_axis = __builtin_ctz(all & ~summed);
    else if (left->ndim > 2)
        return false;
    const struct graph_node *x = &g->nodes[s->x];
    s->wide = s->x;
    if (x->kind == NODE_INSN && x->op == OP_CAST && x->dtype == DTYPE_FLOAT64 &&
        g->nodes[x->src[0]].dtype == DTYPE_FLOAT32 && g->nodes[x->src[0]].shape == x->shape)
        s->x = x->src[0];
    x = &g->nodes[s->x];
    if (left->ndim == 2 && n->left_axes == 0 && x->kind == NODE_INPUT && x->is_transposed)
        return false; /* as the plain one, if at all */
    s->n_rows = g->shapes[x->shape].dims[s->row_axis];
    s->n_columns = g->shapes[x->shape].n_elements / s->n_rows;
    return (s->n_rows > 1 || n->left_axes != 0) && dtype_is_float((enum dtype)x->dtype);
}

int slab_members_find(struct compiler *c, const struct schedule *s, uint16_t index,
                      bool looks_later, struct slab_search *ret, bool *ret_is_found)
{
    const struct graph *g = &c->graph;
    *ret_is_found = false;
    *ret = (struct slab_search){.c = c, .n_nodes = g->n_nodes, .looks_later = looks_later};
    if (s->n_slabs == PROGRAM_MAX_SLABS || !choose_x(ret, index))
        return 0;
    ret->flags = arena_take(&c->arena, g->n_nodes);
    ret->levels = arena_take(&c->arena, g->n_nodes * sizeof(*ret->levels));
    if (ret->flags == NULL || ret->levels == NULL)
        return compiler_no_memory(c);
    memset(ret->flags, 0, g->n_nodes);
    ret->n_again = g->nodes[index].n_bins;
    mark_feeding(ret);
    for (uint16_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].state)
            look_at(ret, i);
    drop_unused(ret);
    if (!(ret->flags[index] & SLAB_IS_MEMBER) || !is_worth_it(ret))
        return 0;
    mark_outside(ret);
    *ret_is_found = set_level(ret);
    return 0;
}
