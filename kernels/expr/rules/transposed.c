/* `.T` and `.mT` behind what is computed: the same of its parts, turned.
 *
 *     (a @ b).T               b.T @ a.T
 *     (exp(a @ b) + 1).T      exp(b.T @ a.T) + 1
 *     a.T                     the argument, read along with a matrix (see product_passes.c)
 *     (a - mean(a, axis=0)).T @ b    tensordot(a - mean(a, axis=0), b, (0, 0))
 *
 * A walk by slabs has what was turned as it was, for v.T @ w (node->mirror, schedule/slab_find.c).
 * So nothing is moved, and no pass is added: what is left are transposed arguments, which operands
 * of products may have. What has fewer axes than it meets would be spread along others, and what
 * other passes make is as it is: of these a product sums along rows where they are its left
 * operand, else they are refused. The last two axes are exchanged either way;
 * `.T` is for at most two.
 *
 * Called by types.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"

#include <string.h>

struct turning {
    struct compiler *c;
    const struct ast_node *n;
    uint16_t *turned; /* by node, up to the root: NODE_NONE: it is not needed */
};

static int refuse(const struct turning *t, const char *what, const char *instead)
{
    const char *name = t->n->is_transposed ? "mT" : "T";
    int r = compiler_fail(t->c, GAD_BAD_EXPRESSION, t->n->column, ".%s of %s; write %s", name, what,
                          instead);
    error_expected(t->c->error, "arguments, products, and arithmetic of as many axes");
    error_found(t->c->error, "%s", what);
    return r;
}

static const struct shape *shape_of(const struct turning *t, uint16_t node)
{
    return &t->c->graph.shapes[t->c->graph.nodes[node].shape];
}

static int turn_constant(const struct turning *t, const struct graph_node *n, uint16_t *ret)
{
    const struct shape *shape = &t->c->graph.shapes[n->shape];
    int64_t dims[ARRAY_MAX_NDIM];
    uint16_t turned;
    if (n->sized != NODE_NONE)
        return refuse(t, "random numbers", "them with the sizes exchanged");
    memcpy(dims, shape->dims, (size_t)shape->ndim * sizeof(*dims));
    dims[shape->ndim - 1] = shape->dims[shape->ndim - 2];
    dims[shape->ndim - 2] = shape->dims[shape->ndim - 1];
    int r = graph_shape(t->c, t->n->column, shape->ndim, dims, false, &turned);
    return r ? r : graph_const(t->c, (enum dtype)n->dtype, n->value, turned, ret);
}

static int turn_product(const struct turning *t, const struct graph_node *n, uint16_t *ret)
{
    const uint16_t src[] = {t->turned[n->src[1]], t->turned[n->src[0]]};
    if (n->op != OP_MATMUL)
        return refuse(t, "tensordot", "the operands in the other order, or their axes");
    if (src[0] == NODE_NONE || src[1] == NODE_NONE)
        return refuse(t, "a product with a vector", "the vectors as matrices of one row or column");
    return products_make(t->c, t->n->column, src, ret);
}

static int turn_operation(const struct turning *t, uint16_t node, uint16_t *ret)
{
    const struct graph_node n = t->c->graph.nodes[node];
    uint16_t src[3];
    if (n.axes != 0 || n.is_free || n.sized != NODE_NONE)
        return refuse(t, "what index() or random numbers are in",
                      "it without .T, with the axes exchanged");
    for (unsigned i = 0; i < n.n_src; i++) {
        int ndim = shape_of(t, n.src[i])->ndim;
        if (i == 1 && graph_is_lookup((enum op)n.op))
            ndim = 0; /* a table */
        if (ndim == 1)
            return refuse(t, "what is spread along rows", "the vector as a matrix of one row");
        src[i] = ndim == 0 ? n.src[i] : t->turned[n.src[i]];
    }
    return graph_remake(t->c, t->n->column, node, src, ret);
}

static int turn_node(const struct turning *t, uint16_t node, uint16_t *ret)
{
    const struct graph_node n = t->c->graph.nodes[node];
    int r;
    switch (n.kind) {
    case NODE_INPUT:
        if (n.near != 0 || graph_is_state(n.arg))
            return refuse(t, "near() or a repeat's array", "it stored first");
        r = compiler_note_transposed(t->c, (uint16_t)n.arg, t->n->column);
        return r ? r : graph_input(t->c, (uint16_t)n.arg, !n.is_transposed, ret);
    case NODE_CONST: return turn_constant(t, &n, ret);
    case NODE_INSN: return turn_operation(t, node, ret);
    case NODE_PRODUCT: return turn_product(t, &n, ret);
    case NODE_SCAN: return graph_used_scan(t->c, t->n->column, (enum op)n.op);
    case NODE_REDUCTION:
        return refuse(t, "a reduction", "it along the other axis, of the transposed argument");
    default: return refuse(t, "what is computed with other elements", "it stored first");
    }
}

/* All that is made of matrices, sources first. */
static int turn_all(struct turning *t, uint16_t root, uint16_t *ret)
{
    struct graph *g = &t->c->graph;
    uint16_t *turned = arena_take(&t->c->arena, (root + 1u) * sizeof(*turned));
    if (turned == NULL)
        return compiler_no_memory(t->c);
    memset(turned, 0xff, (root + 1u) * sizeof(*turned));
    turned[root] = root;
    t->turned = turned;
    for (unsigned i = root + 1u; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        bool has_sources = n->kind == NODE_INSN || n->kind == NODE_PRODUCT;
        for (unsigned k = 0; turned[i] != NODE_NONE && has_sources && k < n->n_src; k++)
            if (g->shapes[g->nodes[n->src[k]].shape].ndim > 1)
                turned[n->src[k]] = n->src[k];
    }
    for (uint16_t i = 0; i <= root; i++) {
        int r = turned[i] == NODE_NONE ? 0 : turn_node(t, i, &turned[i]);
        if (r)
            return r;
    }
    *ret = turned[root];
    return 0;
}

/* `.T` of floats, and nobody else has it. */
static bool is_left_operand(const struct compiler *c, const struct ast_node *n, uint16_t node)
{
    const struct ast *ast = &c->ast;
    uint32_t own = (uint32_t)(n - ast->nodes), n_parents = 0;
    bool is_left = false;
    for (uint32_t i = own + 1; i < ast->n_nodes; i++)
        for (unsigned k = 0; k < ast->nodes[i].n_children; k++)
            if (ast->nodes[i].children[k] == own) {
                n_parents++;
                is_left = ast->nodes[i].kind == AST_OP && ast->nodes[i].op == OP_MATMUL && k == 0;
            }
    return n_parents == 1 && is_left && dtype_is_float(types_of_node(c, node));
}

int turned_apply(struct compiler *c, const struct ast_node *n, const struct value *arg,
                 struct value *ret)
{
    struct turning t = {.c = c, .n = n};
    uint16_t node;
    int r = types_as_node(c, n->column, arg, &node);
    if (r)
        return r;
    int ndim = shape_of(&t, node)->ndim;
    if (n->is_transposed ? ndim < 2 : ndim > 2) {
        r = compiler_fail(c, GAD_BAD_SHAPE, n->column,
                          n->is_transposed
                              ? ".mT of %d axes: there are no two axes to exchange"
                              : ".T of %d axes: write .mT, which exchanges the last two axes",
                          ndim);
        error_expected(c->error, n->is_transposed ? "two axes or more" : "two axes or fewer");
        error_found(c->error, "%d", ndim);
        return r;
    }
    uint16_t turned = node;
    if (ndim > 1)
        r = turn_all(&t, node, &turned);
    if (r == 0 && ndim == 2 && turned > node)
        c->graph.nodes[turned].mirror = node;
    if (r != GAD_BAD_EXPRESSION || ndim != 2 || !is_left_operand(c, n, node))
        return r ? r : types_set_node(turned, ret);
    r = types_set_node(node, ret);
    ret->is_turned = true;
    return r;
}
