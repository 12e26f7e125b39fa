/* tensordot: products summed over axes of both operands, as a node of the graph.
 *
 *     tensordot(x, c, 2)                 x (i, j, k), c (j, k, r)    (i, r)
 *     tensordot(x, c, ((0, 2), (0, 1)))  x (i, j, k), c (i, k, r)    (j, r)
 *     tensordot(x, v, (0, 0))            x (i, j, k), v (i, r)       (j, k, r)
 *
 * Names and order of axes are numpy.tensordot's. It is computed by a walk over the left operand by
 * slabs (schedule/slabs.c), which says what of it that can do; axes of both are in ascending order.
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"

#include <inttypes.h>

static int bad_axes(struct compiler *c, const struct ast_node *n, const char *what)
{
    const struct ast_node *given = literals_find(c, n, "axes");
    int r = compiler_fail(c, GAD_BAD_SHAPE, given != NULL ? given->column : n->column,
                          "tensordot: %s", what);
    error_expected(c->error, "a number of axes, or those of the left operand and as many of the "
                             "right one, in ascending order");
    return r;
}

/* An axis, or several, of one operand; below 0 from the end. */
static int read_axes(struct compiler *c, const struct ast_node *n, const struct ast_node *given,
                     int ndim, int *ret, int *ret_n)
{
    *ret_n = given->kind == AST_TUPLE ? given->n_children : 1;
    for (int i = 0; i < *ret_n; i++) {
        const struct ast_node *axis =
            given->kind == AST_TUPLE ? &c->ast.nodes[given->children[i]] : given;
        if (axis->kind == AST_TUPLE || axis->value.kind != VALUE_INTEGER)
            return bad_axes(c, n, "an axis is no integer that is known here");
        __int128 value = axis->value.integer + (axis->value.integer < 0 ? ndim : 0);
        if (value < 0 || value >= ndim)
            return bad_axes(c, n, "an axis is out of range");
        ret[i] = (int)value;
    }
    return 0;
}

struct summed {
    int n, axes[2][ARRAY_MAX_NDIM];
};

static int read_pairs(struct compiler *c, const struct ast_node *n,
                      const struct shape *const shapes[2], struct summed *ret)
{
    const struct ast_node *given = literals_find(c, n, "axes");
    int n_axes[2];
    if (given != NULL && given->kind == AST_TUPLE) {
        if (given->n_children != 2)
            return bad_axes(c, n, "axes are a number, or a pair");
        for (unsigned i = 0; i < 2; i++) {
            int r = read_axes(c, n, &c->ast.nodes[given->children[i]], shapes[i]->ndim,
                              ret->axes[i], &n_axes[i]);
            if (r)
                return r;
        }
        ret->n = n_axes[0];
        return n_axes[0] == n_axes[1] ? 0 : bad_axes(c, n, "as many axes of one as of the other");
    }
    if (given != NULL && given->value.kind != VALUE_INTEGER)
        return bad_axes(c, n, "axes are no integers that are known here");
    __int128 number = given != NULL ? given->value.integer : 2;
    if (number < 1 || number > shapes[0]->ndim || number > shapes[1]->ndim)
        return bad_axes(c, n, "so many axes are not there, or none is summed");
    ret->n = (int)number;
    for (int i = 0; i < ret->n; i++) {
        ret->axes[0][i] = shapes[0]->ndim - ret->n + i;
        ret->axes[1][i] = i;
    }
    return 0;
}

static int check_axes(struct compiler *c, const struct ast_node *n,
                      const struct shape *const shapes[2], const struct summed *s)
{
    for (int i = 0; i < s->n; i++) {
        int64_t left = shapes[0]->dims[s->axes[0][i]], right = shapes[1]->dims[s->axes[1][i]];
        if (i > 0 && (s->axes[0][i] <= s->axes[0][i - 1] || s->axes[1][i] <= s->axes[1][i - 1]))
            return bad_axes(c, n, "axes are not in ascending order");
        if (left == right)
            continue;
        int r = bad_axes(c, n, "axes that are summed together differ in length");
        error_expected(c->error, "%" PRId64, left);
        error_found(c->error, "%" PRId64, right);
        return r;
    }
    return s->n > 0 ? 0 : bad_axes(c, n, "no axis is summed");
}

/* Of axes that are checked. */
static int make(struct compiler *c, const struct ast_node *n, const uint16_t *src,
                const struct summed *summed, enum dtype d, struct value *ret)
{
    int64_t dims[2 * ARRAY_MAX_NDIM];
    uint32_t axes[2] = {0};
    uint16_t node;
    int r, ndim = 0;
    const struct shape *const shapes[2] = {&c->graph.shapes[c->graph.nodes[src[0]].shape],
                                           &c->graph.shapes[c->graph.nodes[src[1]].shape]};
    for (unsigned i = 0; i < 2; i++) {
        for (int k = 0; k < summed->n; k++)
            axes[i] |= UINT32_C(1) << summed->axes[i][k];
        for (int k = 0; k < shapes[i]->ndim; k++)
            if (!(axes[i] >> k & 1))
                dims[ndim++] = shapes[i]->dims[k];
    }
    if (ndim > ARRAY_MAX_NDIM)
        return bad_axes(c, n, "the result has too many axes");
    struct graph_node key = graph_key(NODE_PRODUCT, d);
    const union scalar zero = {.u64 = 0};
    r = graph_shape(c, n->column, ndim, dims, false, &key.shape);
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = graph_cast(c, src[i], d, &key.src[i]);
    if (r == 0 && (shapes[0]->n_elements == 0 || shapes[1]->n_elements == 0)) {
        r = graph_const(c, d, zero, key.shape, &node);
        return r ? r : types_set_node(node, ret);
    }
    if (r)
        return r;
    key.op = OP_TENSORDOT;
    key.compute = (uint8_t)d;
    key.n_src = 2;
    key.left_axes = axes[0];
    key.right_axes = axes[1];
    for (unsigned i = 0; i < 2; i++)
        if (c->graph.nodes[key.src[i]].level >= key.level)
            key.level = c->graph.nodes[key.src[i]].level + 1;
    c->product_column = compiler_keep_column(c, n->column);
    r = graph_find_or_add(c, &key, &node);
    return r ? r : types_set_node(node, ret);
}

int tensordot_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                    struct value *ret)
{
    struct summed summed;
    uint16_t src[2] = {0};
    int r = 0;
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = products_operand(c, n, &args[i], i, &src[i]);
    if (r)
        return r;
    enum dtype d = dtype_promote(types_of_node(c, src[0]), types_of_node(c, src[1]));
    if (!dtype_is_float(d))
        return rules_bad_dtype(c, n, d, "floats", "it sums floats");
    const struct shape *const shapes[2] = {&c->graph.shapes[c->graph.nodes[src[0]].shape],
                                           &c->graph.shapes[c->graph.nodes[src[1]].shape]};
    if (args[0].is_turned) /* x.T @ y */
        summed = (struct summed){.n = 1};
    else
        r = read_pairs(c, n, shapes, &summed);
    r = r ? r : check_axes(c, n, shapes, &summed);
    return r ? r : make(c, n, src, &summed, d, ret);
}
