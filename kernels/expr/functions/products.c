/* matmul and its operator @: a matrix product as a node of the graph.
 *
 *     (..., rows, depth) @ (..., depth, columns)    (..., rows, columns)
 *     (depth) @ (..., depth, columns)               (..., columns)
 *     (..., rows, depth) @ (depth)                  (..., rows)
 *     (depth) @ (depth)                             ()
 *
 * Axes in front broadcast, numbers are refused, as numpy.matmul does. Both operands are cast to
 * their common dtype, which is the result's. A NODE_PRODUCT is evaluated between three passes of
 * its own, see product_passes.c.
 *
 * Called by rules.c; product_passes.c asks for the extents again.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"

#include <inttypes.h>
#include <string.h>

static int no_axes(struct compiler *c, const struct ast_node *n, unsigned operand)
{
    int r = compiler_fail(c, GAD_BAD_SHAPE, types_child_column(c, n, operand),
                          "%s: the %s operand has no axes; numbers are multiplied with *",
                          op_info((enum op)n->op)->name, operand == 0 ? "left" : "right");
    error_expected(c->error, "one axis or more");
    error_found(c->error, "()");
    return r;
}

int products_operand(struct compiler *c, const struct ast_node *n, const struct value *arg,
                     unsigned operand, uint16_t *ret)
{
    if (arg->kind != VALUE_NODE)
        return no_axes(c, n, operand);
    const struct graph_node *node = &c->graph.nodes[arg->node];
    const struct shape *shape = &c->graph.shapes[node->shape];
    if (node->kind == NODE_SCAN)
        return graph_used_scan(c, n->column, (enum op)node->op);
    if (shape->ndim == 0)
        return no_axes(c, n, operand);
    *ret = arg->node;
    return axes_check(c, arg->node, shape);
}

static int bad_shapes(struct compiler *c, uint32_t column, const char *what,
                      const struct shape *left, const struct shape *right)
{
    char a[96], b[96];
    array_format_shape(left->ndim, left->dims, a, sizeof(a));
    array_format_shape(right->ndim, right->dims, b, sizeof(b));
    int r = compiler_fail(c, GAD_BAD_SHAPE, column, "matmul: %s: %s @ %s", what, a, b);
    error_found(c->error, "%.50s @ %.50s", a, b);
    return r;
}

static int check_depth(struct compiler *c, uint32_t column, const struct shape *left,
                       const struct shape *right)
{
    bool is_vector = right->ndim == 1;
    int64_t wanted = left->dims[left->ndim - 1];
    int64_t found = right->dims[is_vector ? 0 : right->ndim - 2];
    if (wanted == found)
        return 0;
    int r = bad_shapes(c, column, "inner dimensions differ", left, right);
    error_expected(c->error, "%" PRId64 " %s on the right", wanted,
                   is_vector ? "elements" : "rows");
    error_found(c->error, "%" PRId64, found);
    return r;
}

int products_extents(struct compiler *c, uint32_t column, const struct shape *left,
                     const struct shape *right, struct program_product *ret)
{
    bool has_rows = left->ndim > 1, has_columns = right->ndim > 1;
    int n_batch_axes = has_rows ? left->ndim - 2 : 0;
    *ret = (struct program_product){.depth = left->dims[left->ndim - 1],
                                    .n_rows = has_rows ? left->dims[left->ndim - 2] : 1,
                                    .n_columns = has_columns ? right->dims[right->ndim - 1] : 1,
                                    .has_rows = has_rows,
                                    .has_columns = has_columns};
    int r = check_depth(c, column, left, right);
    if (r)
        return r;
    memcpy(ret->batch_shape, left->dims, (size_t)n_batch_axes * sizeof(*left->dims));
    if (array_broadcast(&n_batch_axes, ret->batch_shape, has_columns ? right->ndim - 2 : 0,
                        right->dims, NULL) != 0) {
        r = bad_shapes(c, column, "the axes in front of the matrices do not broadcast together",
                       left, right);
        error_expected(c->error, "axes in front that broadcast");
        return r;
    }
    ret->n_batch_axes = n_batch_axes;
    return 0;
}

static int result_shape(struct compiler *c, uint32_t column, const struct program_product *product,
                        uint16_t *ret)
{
    int64_t dims[ARRAY_MAX_NDIM];
    int ndim = product->n_batch_axes;
    memcpy(dims, product->batch_shape, (size_t)ndim * sizeof(*dims));
    if (product->has_rows)
        dims[ndim++] = product->n_rows;
    if (product->has_columns)
        dims[ndim++] = product->n_columns;
    return graph_shape(c, column, ndim, dims, false, ret);
}

/* What was turned is cast, too. */
static int cast_mirror(struct compiler *c, uint16_t node, enum dtype dtype, uint16_t cast)
{
    uint16_t mirror = c->graph.nodes[node].mirror;
    if (mirror == NODE_NONE)
        return 0;
    int r = graph_cast(c, mirror, dtype, &mirror);
    if (r == 0 && mirror < cast)
        c->graph.nodes[cast].mirror = mirror;
    return r;
}

int products_make(struct compiler *c, uint32_t column, const uint16_t *src, uint16_t *ret)
{
    struct program_product product;
    const struct graph_node *nodes = c->graph.nodes;
    enum dtype d = dtype_promote(types_of_node(c, src[0]), types_of_node(c, src[1]));
    struct graph_node key = graph_key(NODE_PRODUCT, d);
    int r = products_extents(c, column, &c->graph.shapes[nodes[src[0]].shape],
                             &c->graph.shapes[nodes[src[1]].shape], &product);
    if (r == 0)
        r = result_shape(c, column, &product, &key.shape);
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = graph_cast(c, src[i], d, &key.src[i]);
    if (r == 0 && key.src[0] != src[0])
        r = cast_mirror(c, src[0], d, key.src[0]);
    if (r)
        return r;
    nodes = c->graph.nodes;
    key.op = OP_MATMUL;
    key.compute = (uint8_t)d;
    key.n_src = 2;
    for (unsigned i = 0; i < 2; i++)
        if (nodes[key.src[i]].level >= key.level)
            key.level = nodes[key.src[i]].level + 1;
    c->product_column = compiler_keep_column(c, column);
    return graph_find_or_add(c, &key, ret);
}

int products_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                   struct value *ret)
{
    uint16_t src[2] = {0}, node;
    int r = 0;
    if (args[0].is_turned)
        return tensordot_apply(c, n, args, ret);
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = products_operand(c, n, &args[i], i, &src[i]);
    if (r == 0)
        r = products_make(c, n->column, src, &node);
    return r ? r : types_set_node(node, ret);
}
