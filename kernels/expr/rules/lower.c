/* Writing one operation with others: the steps of `isclose`, `nan_to_num`, `round`, one a line.
 *
 * Each step names its sources by their nodes, which have the right dtype already, and gives the
 * node of its result. A step that fails leaves the error in the compiler; the steps behind it see
 * that in `r` and do nothing, so that a sequence is checked once, at its end.
 *
 * Called by the files of rules.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"

uint16_t lower_value(struct lower *l, const struct value *v, enum dtype dtype)
{
    uint16_t node = 0;
    if (l->r == 0)
        l->r = types_as(l->c, l->n->column, v, dtype, &node);
    return node;
}

uint16_t lower_float(struct lower *l, enum dtype dtype, double number)
{
    return lower_value(l, &(struct value){.kind = VALUE_FLOAT, .number = number}, dtype);
}

uint16_t lower_cast(struct lower *l, uint16_t src, enum dtype dtype)
{
    if (l->r == 0)
        l->r = graph_cast(l->c, src, dtype, &src);
    return src;
}

static uint16_t step(struct lower *l, enum op op, unsigned n_src, const uint16_t *src)
{
    uint16_t node = 0;
    if (l->r != 0)
        return node;
    enum op_rule rule = op_info(op)->rule;
    enum dtype compute = types_of_node(l->c, src[n_src - 1]);
    bool is_bool = rule == OP_RULE_COMPARE || rule == OP_RULE_PREDICATE;
    l->r = graph_op(l->c, l->n->column, op, compute, is_bool ? DTYPE_BOOL : compute, n_src, src,
                    &node);
    return node;
}

uint16_t lower_unary(struct lower *l, enum op op, uint16_t a)
{
    return step(l, op, 1, &a);
}

uint16_t lower_binary(struct lower *l, enum op op, uint16_t a, uint16_t b)
{
    return step(l, op, 2, (uint16_t[]){a, b});
}

uint16_t lower_where(struct lower *l, uint16_t condition, uint16_t a, uint16_t b)
{
    return step(l, OP_WHERE, 3, (uint16_t[]){condition, a, b});
}

uint16_t lower_lookup(struct lower *l, enum op op, uint16_t a, uint16_t table)
{
    uint16_t node = 0, src[2] = {a, table};
    if (l->r != 0)
        return node;
    enum dtype result = op == OP_TAKE ? types_of_node(l->c, table) : DTYPE_INT64;
    l->r = graph_op(l->c, l->n->column, op, types_of_node(l->c, a), result, 2, src, &node);
    return node;
}

uint16_t lower_table(struct lower *l, uint16_t src, int64_t n)
{
    uint16_t node = 0;
    if (l->r == 0)
        l->r = graph_table(l->c, src, n, &node);
    return node;
}

static uint16_t convert(struct lower *l, enum op op, uint16_t a, enum dtype dtype)
{
    uint16_t node = 0;
    if (l->r == 0)
        l->r = graph_op(l->c, l->n->column, op, types_of_node(l->c, a), dtype, 1, &a, &node);
    return node;
}

uint16_t lower_ordered_key(struct lower *l, uint16_t a)
{
    bool is_wide = types_of_node(l->c, a) == DTYPE_FLOAT64;
    return convert(l, OP_ORDERED_KEY, a, is_wide ? DTYPE_UINT64 : DTYPE_UINT32);
}

uint16_t lower_from_ordered_key(struct lower *l, uint16_t a)
{
    bool is_wide = types_of_node(l->c, a) == DTYPE_UINT64;
    return convert(l, OP_FROM_ORDERED_KEY, a, is_wide ? DTYPE_FLOAT64 : DTYPE_FLOAT32);
}

int lower_finish(const struct lower *l, uint16_t node, struct value *ret)
{
    return l->r != 0 ? l->r : types_set_node(node, ret);
}
