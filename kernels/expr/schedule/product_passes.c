/* Matrix products in the schedule: the roots of their passes, and who stores what they give.
 *
 *     maximum((a / 255) @ w.T + bias, 0)
 *              PRODUCT_LEFT: a / 255    PRODUCT_RIGHT: w.T
 *              PRODUCT_RESULT: maximum(product + bias, 0)
 *
 * A product's steps run between its three passes. Outputs that are made of it element for element,
 * of its shape, are stored by PRODUCT_RESULT as it comes, tile by tile, whatever its size. Whoever
 * else reads it (another product, a reduction, an output that broadcasts it) finds it kept, whole,
 * with the results of reductions:
 *
 *     (a @ b) @ c                  a @ b is kept
 *     a @ b - mean(c)              mean(c) comes first, nothing is kept
 *     x = a @ b; x - mean(x)       x is kept
 *     a @ b + c @ d                a @ b is kept
 *
 * A product that nobody else reads waits for what its outputs need besides (its level rises), so
 * that it need not be kept.
 *
 * Transposed arguments are there for operands alone: an engine reads them along with the matrix,
 * while other passes walk in the order of what they give.
 *
 * Called by compile.c for each output, by passes.c, and by assemble.c when the passes are there.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

#include <string.h>

/* By what a node is evaluated. */
enum { IN_PASS = 1, IN_OPERAND = 2 };

static int bad_transposed(struct compiler *c, uint16_t arg)
{
    int r = compiler_fail(
        c, GAD_BAD_EXPRESSION, c->transposed_columns[arg],
        "'%s' is transposed outside of an operand of @; store it transposed first, or "
        "give the argument with its strides exchanged",
        c->request->args[arg].name);
    error_expected(c->error, "an operand of @ or matmul");
    error_found(c->error, "'%s' in another place", c->request->args[arg].name);
    return r;
}

int product_passes_check(struct compiler *c, unsigned output)
{
    struct graph *g = &c->graph;
    if (c->transposed_columns == NULL)
        return 0;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].state = 0;
    g->nodes[c->outputs[output]].state = IN_PASS;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        if (n->kind == NODE_INPUT && n->is_transposed && (n->state & IN_PASS))
            return bad_transposed(c, (uint16_t)n->arg);
        if (n->state != 0)
            stepping_mark(c, n, IN_PASS);
        uint8_t state = n->kind == NODE_PRODUCT     ? IN_OPERAND
                        : n->kind == NODE_REDUCTION ? IN_PASS
                                                    : n->state;
        for (unsigned k = 0; n->state != 0 && k < n->n_src; k++)
            g->nodes[n->src[k]].state |= state;
    }
    return 0;
}

/* ---- roots ---- */

/* Of one of a product's passes; target: what it stores to, set when all are known. */
static void add_root(const struct compiler *c, struct schedule *s, uint16_t number, unsigned part,
                     uint16_t node)
{
    s->roots[s->n_roots++] = (struct root){.node = node,
                                           .weights = NODE_NONE,
                                           .level = s->products[number].level,
                                           .shape = c->graph.nodes[node].shape,
                                           .scan = NODE_NONE,
                                           .product = number + 1u,
                                           .part = (uint8_t)part,
                                           .is_output = true,
                                           .is_own = true};
}

int product_passes_add(struct compiler *c, struct schedule *s, uint16_t node)
{
    struct graph_node *n = &c->graph.nodes[node];
    if (s->n_products == PROGRAM_MAX_PRODUCTS) {
        int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, c->product_column,
                              "matmul: too many matrix products");
        error_expected(c->error, "at most %d", PROGRAM_MAX_PRODUCTS);
        return r;
    }
    n->index = s->n_products;
    s->products[s->n_products++] =
        (struct scheduled_product){.node = node, .level = (uint16_t)(n->level - 1)};
    return 0;
}

/* The products that a root's pass reads, bits, and the first level at which all results that it
 * reads are there, but for the product `apart`. */
static uint32_t products_read(const struct compiler *c, const struct root *root, unsigned apart,
                              uint16_t *ret_level)
{
    const struct graph *g = &c->graph;
    uint32_t products = 0;
    unsigned top = root->node;
    *ret_level = 0;
    g->nodes[root->node].state |= SCHEDULE_IS_BELOW;
    if (root->weights != NODE_NONE) {
        g->nodes[root->weights].state |= SCHEDULE_IS_BELOW;
        top = root->weights > top ? root->weights : top;
    }
    for (unsigned i = top + 1u; i-- > 0;) {
        struct graph_node *n = &g->nodes[i];
        if (!(n->state & SCHEDULE_IS_BELOW))
            continue;
        n->state &= (uint8_t)~SCHEDULE_IS_BELOW;
        bool is_product = n->kind == NODE_PRODUCT && n->slab == 0;
        bool is_result = n->kind == NODE_REDUCTION || n->kind == NODE_PRODUCT;
        if (is_product)
            products |= UINT32_C(1) << n->index;
        if ((is_product ? n->index != apart : is_result) && n->level > *ret_level)
            *ret_level = n->level;
        bool has_sources = graph_is_computed(n) || n->kind == NODE_WINDOW;
        for (unsigned k = 0; has_sources && k < n->n_src; k++)
            g->nodes[n->src[k]].state |= SCHEDULE_IS_BELOW;
    }
    return products;
}

/* Whether an output may be stored as the product comes. */
static bool may_take(const struct compiler *c, const struct schedule *s, const struct root *root,
                     unsigned number)
{
    return root->is_output && root->product == 0 && root->slab == 0 && root->scan == NODE_NONE &&
           root->shape == c->graph.nodes[s->products[number].node].shape;
}

/* Whether nothing but outputs that may take it reads the product; the level at which they can. */
static bool is_for_outputs(const struct compiler *c, const struct schedule *s, unsigned number,
                           uint16_t *ret_level)
{
    *ret_level = s->products[number].level;
    for (unsigned i = 0; i < s->n_roots; i++) {
        uint16_t level;
        if (!(s->roots[i].products >> number & 1))
            continue;
        if (!may_take(c, s, &s->roots[i], number))
            return false;
        (void)products_read(c, &s->roots[i], number, &level);
        *ret_level = level > *ret_level ? level : *ret_level;
    }
    return true;
}

/* Gives the product's pass the outputs that it can store, and keeps it for the others. */
static void place_product(const struct compiler *c, struct schedule *s, unsigned number)
{
    struct scheduled_product *product = &s->products[number];
    uint16_t level;
    if (is_for_outputs(c, s, number, &level)) {
        for (unsigned i = 0; i < s->n_roots; i++)
            if (s->roots[i].product == number + 1u)
                s->roots[i].level = level;
        product->level = level;
    }
    for (unsigned i = 0; i < s->n_roots; i++) {
        struct root *root = &s->roots[i];
        if (!(root->products >> number & 1))
            continue;
        (void)products_read(c, root, number, &level);
        if (may_take(c, s, root, number) && level <= product->level) {
            root->product = (uint16_t)(number + 1);
            root->part = PRODUCT_RESULT;
            root->level = product->level;
        } else {
            product->is_kept = true;
        }
    }
    if (product->is_kept) /* a root without `products`: it reads what is its pass's own */
        add_root(c, s, (uint16_t)number, PRODUCT_RESULT, product->node);
}

void product_passes_place(const struct compiler *c, struct schedule *s)
{
    const struct graph_node *nodes = c->graph.nodes;
    for (uint16_t i = 0; i < s->n_products; i++) {
        const struct graph_node *n = &nodes[s->products[i].node];
        add_root(c, s, i, PRODUCT_LEFT, n->src[0]);
        add_root(c, s, i, PRODUCT_RIGHT, n->src[1]);
    }
    for (unsigned i = 0; i < s->n_roots; i++) {
        uint16_t level;
        s->roots[i].products = products_read(c, &s->roots[i], NODE_NONE, &level);
    }
    /* They come in the order of the graph backwards: what is on top of an output first. */
    for (unsigned i = 0; i < s->n_products; i++)
        place_product(c, s, i);
    uint16_t own = (uint16_t)c->request->n_outputs;
    for (unsigned i = 0; i < s->n_products; i++) {
        s->products[i].first_output = own;
        own = (uint16_t)(own + PRODUCT_RESULT + s->products[i].is_kept);
    }
    s->n_all_outputs = own;
    for (unsigned i = 0; i < s->n_roots; i++) {
        struct root *root = &s->roots[i];
        if (root->is_own && root->product != 0)
            root->target = (uint16_t)(s->products[root->product - 1].first_output + root->part);
    }
}

/* ---- symmetry ---- */

/* Whether b is a transposed, as far as the two nodes alone say. */
static bool is_mirrored(const struct graph *g, const struct graph_node *a,
                        const struct graph_node *b)
{
    const struct shape *shape = &g->shapes[a->shape];
    if (a->kind != b->kind || a->dtype != b->dtype || a->compute != b->compute || a->op != b->op ||
        a->n_src != b->n_src)
        return false;
    switch (a->kind) {
    case NODE_INSN: return true;
    case NODE_INPUT:
        return a->arg == b->arg && (shape->ndim == 0 || a->is_transposed != b->is_transposed);
    case NODE_CONST:
        return shape->ndim == 0 && b->shape == a->shape && a->value.u64 == b->value.u64;
    default: return false;
    }
}

/* Both operands are walked side by side: what is met on the left always meets the same on the
 * right, since equal values are one node. */
int product_passes_mirror(struct compiler *c, uint16_t left, uint16_t right, bool *ret)
{
    const struct graph *g = &c->graph;
    *ret = false;
    if (!is_mirrored(g, &g->nodes[left], &g->nodes[right])) /* most are not */
        return 0;
    if (c->mirrors == NULL)
        c->mirrors = arena_take(&c->arena, EXPR_MAX_NODES * sizeof(*c->mirrors));
    uint16_t *mirror = c->mirrors;
    if (mirror == NULL)
        return compiler_no_memory(c);
    c->n_steps += left / 4u;
    memset(mirror, 0xff, (left + 1u) * sizeof(*mirror));
    mirror[left] = right;
    for (unsigned i = left + 1u; i-- > 0;) {
        const struct graph_node *a = &g->nodes[i];
        if (mirror[i] == NODE_NONE)
            continue;
        const struct graph_node *b = &g->nodes[mirror[i]];
        if (!is_mirrored(g, a, b))
            return 0;
        for (unsigned k = 0; k < a->n_src; k++) {
            uint16_t *other = &mirror[a->src[k]];
            if (*other != NODE_NONE && *other != b->src[k])
                return 0;
            *other = b->src[k];
        }
    }
    *ret = true;
    return 0;
}

/* ---- passes ---- */

void product_passes_order(struct schedule *s)
{
    for (unsigned i = 1; i < s->n_products; i++) {
        struct scheduled_product product = s->products[i];
        unsigned at = i;
        for (; at > 0 && s->products[at - 1].first_pass > product.first_pass; at--)
            s->products[at] = s->products[at - 1];
        s->products[at] = product;
    }
}

int product_passes_finish(struct compiler *c, const struct schedule *s, struct program *draft)
{
    int r = 0;
    for (uint16_t i = 0; r == 0 && i < s->n_products; i++) {
        const struct scheduled_product *scheduled = &s->products[i];
        const struct graph_node *n = &c->graph.nodes[scheduled->node];
        const struct shape *left = &c->graph.shapes[c->graph.nodes[n->src[0]].shape];
        const struct shape *right = &c->graph.shapes[c->graph.nodes[n->src[1]].shape];
        struct program_product *product = &draft->products[i];
        r = products_extents(c, c->product_column, left, right, product);
        bool may_be = product->has_rows && product->has_columns && left->ndim == right->ndim &&
                      product->n_rows == product->n_columns;
        if (r == 0 && may_be)
            r = product_passes_mirror(c, n->src[0], n->src[1], &product->is_symmetric);
        product->first_pass = scheduled->first_pass;
        product->first_output = scheduled->first_output;
        product->is_kept = scheduled->is_kept;
        product->dtype = (enum dtype)n->dtype;
        product->reduction = draft->n_reductions++;
        draft->reductions[product->reduction] =
            (struct reduction){.op = OP_MATMUL,
                               .result = n->dtype,
                               .pass = (uint16_t)(scheduled->first_pass + PRODUCT_RESULT)};
    }
    return r;
}
