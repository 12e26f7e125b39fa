/* Whole-array reductions: sum, mean, min, max, count_nonzero.
 *
 * Engines know sum, min, max and count_nonzero. A mean is a sum that cannot wrap, divided by the
 * number of elements; float32 is summed and divided in double and rounded once at the end.
 *
 * Called by rules.c.
 */
#include "kernels/expr/internal.h"

static enum dtype sum_dtype(enum dtype d)
{
    if (dtype_is_float(d))
        return DTYPE_FLOAT64;
    return dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
}

static int type_sum(struct compiler *c, uint16_t src, uint16_t *ret)
{
    enum dtype d = types_of_node(c, src);
    int r = graph_reduce(c, OP_SUM, sum_dtype(d), src, ret);
    return r == 0 && d == DTYPE_FLOAT32 ? graph_cast(c, *ret, d, ret) : r;
}

/* Sums that cannot wrap: 8 and 16 bits in 64, wider integers in double as NumPy does. */
static int type_mean(struct compiler *c, const struct ast_node *n, uint16_t src, uint16_t *ret)
{
    enum dtype d = types_of_node(c, src);
    int64_t n_elements = c->graph.shapes[c->graph.nodes[src].shape].n_elements;
    uint16_t operands[2];
    int r = 0;
    if (dtype_is_integer(d) && dtype_size(d) >= 4)
        r = graph_cast(c, src, DTYPE_FLOAT64, &src);
    if (r == 0)
        r = graph_reduce(c, OP_SUM, sum_dtype(types_of_node(c, src)), src, &operands[0]);
    if (r == 0)
        r = graph_cast(c, operands[0], DTYPE_FLOAT64, &operands[0]);
    if (r == 0)
        r = graph_const(c, DTYPE_FLOAT64, (union scalar){.f64 = (double)n_elements}, 0,
                        &operands[1]);
    if (r == 0)
        r = graph_op(c, n->column, OP_DIVIDE, DTYPE_FLOAT64, DTYPE_FLOAT64, 2, operands, ret);
    return r == 0 && d == DTYPE_FLOAT32 ? graph_cast(c, *ret, d, ret) : r;
}

static int type_extremum(struct compiler *c, const struct ast_node *n, uint16_t src, uint16_t *ret)
{
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[src].shape];
    if (shape->n_elements > 0)
        return graph_reduce(c, (enum op)n->op, types_of_node(c, src), src, ret);
    char text[96];
    int r = fail(c, GAD_BAD_SHAPE, n->column,
                 "zero-size array to reduction operation %s which has no identity",
                 op_info((enum op)n->op)->name);
    error_expected(c->error, "at least one element");
    error_found(c->error, "%s", array_format_shape(shape->ndim, shape->dims, text, sizeof(text)));
    return r;
}

int reductions_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    uint16_t src, node;
    int r = types_as_node(c, n->column, &args[0], &src);
    if (r == 0)
        r = axes_check(c, src, &c->graph.shapes[c->graph.nodes[src].shape]);
    if (r != 0)
        return r;
    switch (op_info((enum op)n->op)->rule) {
    case OP_RULE_SUM: r = type_sum(c, src, &node); break;
    case OP_RULE_MEAN: r = type_mean(c, n, src, &node); break;
    case OP_RULE_EXTREMUM: r = type_extremum(c, n, src, &node); break;
    default: r = graph_reduce(c, OP_COUNT_NONZERO, DTYPE_INT64, src, &node); break;
    }
    return r != 0 ? r : types_set_node(node, ret);
}
