/* power and float_power.
 *
 * Exponents that are known have short ways: x ** 2 is a product, x ** 0.5 a square root (of arrays,
 * as in NumPy; of scalars it is pow, which differs for -inf and -0.0), x ** -1 a quotient, x ** 1
 * is x. float_power computes in float64 and takes those of the short ways that are the same.
 *
 * Called by rules.c.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/text/scalar.h"

/* x to an exponent that is known now and has a short way; OP_COUNT: there is none. */
static enum op power_shortcut(enum dtype d, double exponent, bool is_array)
{
    if (exponent == 2)
        return OP_SQUARE;
    if (exponent == -1 && dtype_is_float(d))
        return OP_DIVIDE;
    if (exponent == 0.5 && is_array)
        return OP_SQRT;
    return OP_COUNT;
}

static int known_power(struct compiler *c, const struct ast_node *n, enum dtype d,
                       const struct value *args, struct value *ret)
{
    double exponent = scalar_as_double(&args[1]);
    uint16_t base;
    int r = types_as(c, types_child_column(c, n, 0), &args[0], d, &base);
    if (r)
        return r;
    const struct graph_node *node = &c->graph.nodes[base];
    const struct shape *shape = &c->graph.shapes[node->shape];
    if (exponent == 1)
        return types_set_node(base, ret);
    if (dtype_is_signed(d) && exponent < 0 && shape->n_elements > 0)
        return compiler_fail(
            c, GAD_NEGATIVE_POWER, n->column,
            "integers to negative integer powers are not allowed, write x ** -1.0");
    struct lower l = {c, n, 0};
    switch (power_shortcut(d, exponent, shape->ndim > 0 || node->is_free)) {
    case OP_SQUARE: base = lower_unary(&l, OP_SQUARE, base); break;
    case OP_SQRT: base = lower_unary(&l, OP_SQRT, base); break;
    case OP_DIVIDE: base = lower_binary(&l, OP_DIVIDE, lower_float(&l, d, 1), base); break;
    default: return types_apply(c, n, OP_POWER, d, d, 2, args, ret);
    }
    return lower_finish(&l, base, ret);
}

int powers_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    bool is_known = args[1].kind != VALUE_NODE;
    /* `b**2` squares bools as int8; power(b, 2) computes in int64 */
    bool is_square = n->is_operator && args[1].kind == VALUE_INTEGER && args[1].integer == 2 &&
                     types_of(c, &args[0]) == DTYPE_BOOL;
    if (d == DTYPE_BOOL || is_square)
        d = DTYPE_INT8;
    return is_known ? known_power(c, n, d, args, ret)
                    : types_apply(c, n, OP_POWER, d, d, 2, args, ret);
}

int powers_apply_float64(struct compiler *c, const struct ast_node *n, const struct value *args,
                         struct value *ret)
{
    double exponent = args[1].kind != VALUE_NODE ? scalar_as_double(&args[1]) : 0;
    if (exponent == 1 || exponent == 2)
        return known_power(c, n, DTYPE_FLOAT64, args, ret);
    return types_apply(c, n, OP_POWER, DTYPE_FLOAT64, DTYPE_FLOAT64, 2, args, ret);
}
