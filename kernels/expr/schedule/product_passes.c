/* The three passes of a program with a matrix product, and what such a program may be.
 *
 *     maximum((a / 255) @ w.T + bias, 0)
 *              PRODUCT_LEFT: a / 255    PRODUCT_RIGHT: w.T
 *              PRODUCT_RESULT: maximum(product + bias, 0)
 *
 * The product's steps run between these passes, so all three are elementwise and there is one
 * product and one output. What is left out (reductions, scans, another product) is a job of its own
 * before or after, and the errors say so. Transposed arguments are there for the operands alone:
 * an engine reads them along with the matrix, while the output is written in its own order.
 *
 * Called by compile.c for each output, then by it and by assemble.c for a program with a product.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/schedule/schedule.h"

#include <string.h>

/* By which of the three passes a node is evaluated, or read as the product. */
enum { IN_RESULT = 1, IN_LEFT = 2, IN_RIGHT = 4 };

/* Sets the state of all nodes that the output needs; the product, or NODE_NONE. */
static uint16_t mark(struct compiler *c, uint16_t output)
{
    struct graph *g = &c->graph;
    uint16_t product = NODE_NONE;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].state = 0;
    g->nodes[output].state = IN_RESULT;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        bool is_product = n->kind == NODE_PRODUCT && product == NODE_NONE && n->state != 0;
        if (is_product)
            product = (uint16_t)i;
        for (unsigned k = 0; n->state != 0 && k < n->n_src; k++)
            g->nodes[n->src[k]].state |= !is_product ? n->state : k == 0 ? IN_LEFT : IN_RIGHT;
    }
    return product;
}

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

/* What cannot stand beside a product. */
static int bad_company(struct compiler *c, bool is_product)
{
    int r = compiler_fail(
        c, GAD_BAD_EXPRESSION, c->product_column, "matmul: %s",
        is_product ? "there is a second matrix product; store the result of one, then use "
                     "it in the other"
                   : "beside a matrix product there can be no reductions, scans, counts or "
                     "look-ups; compute them in a job of their own, before or after");
    error_expected(c->error, "one product of elementwise expressions, in an elementwise one");
    error_found(c->error, is_product ? "two products" : "more than elementwise expressions");
    return r;
}

static int check_nodes(struct compiler *c, uint16_t product)
{
    const struct graph *g = &c->graph;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        if (n->state == 0 || i == product)
            continue;
        if (n->kind == NODE_INPUT && n->is_transposed && (n->state & IN_RESULT))
            return bad_transposed(c, (uint16_t)n->arg);
        bool is_company =
            n->kind == NODE_REDUCTION || n->kind == NODE_SCAN || n->kind == NODE_PRODUCT;
        if (product != NODE_NONE && is_company)
            return bad_company(c, n->kind == NODE_PRODUCT);
    }
    return 0;
}

static int check_shape(struct compiler *c, uint16_t product, uint16_t output_shape)
{
    const struct shape *own = &c->graph.shapes[c->graph.nodes[product].shape];
    const struct shape *whole = &c->graph.shapes[output_shape];
    char a[96], b[96];
    if (own == whole)
        return 0;
    array_format_shape(own->ndim, own->dims, a, sizeof(a));
    array_format_shape(whole->ndim, whole->dims, b, sizeof(b));
    int r =
        compiler_fail(c, GAD_BAD_SHAPE, c->product_column,
                      "matmul: the product has shape %s, what is computed with it %s; store the "
                      "product, then broadcast it",
                      a, b);
    error_expected(c->error, "%s", a);
    error_found(c->error, "%s", b);
    return r;
}

int product_passes_check(struct compiler *c, unsigned index)
{
    if (c->product_column == 0 && c->transposed_columns == NULL)
        return 0;
    uint16_t product = mark(c, c->outputs[index]);
    int r = check_nodes(c, product);
    if (r != 0 || product == NODE_NONE)
        return r;
    if (c->request->n_outputs > 1) {
        r = compiler_fail(c, GAD_BAD_EXPRESSION, c->product_column,
                          "matmul: a matrix product is the only output of its job");
        error_expected(c->error, "one output");
        error_found(c->error, "%u", c->request->n_outputs);
        return r;
    }
    if (c->n_checks > 0) /* of a name that is not used */
        return bad_company(c, false);
    c->product = product;
    return check_shape(c, product, c->output_shapes[index]);
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
static int find_symmetry(struct compiler *c, const struct graph_node *product, bool *ret)
{
    const struct graph *g = &c->graph;
    uint16_t *mirror = arena_take(&c->arena, g->n_nodes * sizeof(*mirror));
    *ret = false;
    if (mirror == NULL)
        return compiler_no_memory(c);
    memset(mirror, 0xff, g->n_nodes * sizeof(*mirror));
    mirror[product->src[0]] = product->src[1];
    for (unsigned i = product->src[0] + 1u; i-- > 0;) {
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

static struct root make_root(const struct compiler *c, uint16_t node, uint16_t target)
{
    return (struct root){.node = node,
                         .weights = NODE_NONE,
                         .level = c->graph.nodes[node].level,
                         .shape = c->graph.nodes[node].shape,
                         .target = target,
                         .scan = NODE_NONE,
                         .is_output = true};
}

void product_passes_assign(const struct compiler *c, struct schedule *ret)
{
    const struct graph_node *product = &c->graph.nodes[c->product];
    *ret = (struct schedule){.n_roots = PRODUCT_N_PASSES, .n_passes = PRODUCT_N_PASSES};
    ret->roots[PRODUCT_LEFT] = make_root(c, product->src[0], 1);
    ret->roots[PRODUCT_RIGHT] = make_root(c, product->src[1], 2);
    ret->roots[PRODUCT_RESULT] = make_root(c, c->outputs[0], 0);
    for (uint16_t i = 0; i <= PRODUCT_N_PASSES; i++)
        ret->first_root[i] = i;
}

int product_passes_finish(struct compiler *c, struct program *draft)
{
    const struct graph_node *n = &c->graph.nodes[c->product];
    const struct shape *left = &c->graph.shapes[c->graph.nodes[n->src[0]].shape];
    const struct shape *right = &c->graph.shapes[c->graph.nodes[n->src[1]].shape];
    struct program_product *product = &draft->products[0];
    int r = products_extents(c, c->product_column, left, right, product);
    bool may_be = product->has_rows && product->has_columns && left->ndim == right->ndim &&
                  product->n_rows == product->n_columns;
    if (r == 0 && may_be)
        r = find_symmetry(c, n, &product->is_symmetric);
    product->first_output = draft->n_outputs;
    product->dtype = (enum dtype)n->dtype;
    draft->n_reductions = 1;
    draft->reductions[0] =
        (struct reduction){.op = OP_MATMUL, .result = n->dtype, .pass = PRODUCT_RESULT};
    return r;
}
