/* The dtype rules of the catalogue (enum op_rule), as NumPy 2 has them.
 *
 * Each rule finds the dtype to compute in, casts the arguments to it and adds the operation to the
 * graph. Operations that leave a dtype as it is (floor of integers) or that are known without
 * looking (isnan of integers, int8 against 300) add nothing. On bools, + * minimum maximum are the
 * logical operations that they stand for, so that engines need no arithmetic of bools.
 *
 * Where NumPy has float16 (floating functions of 8-bit integers and bool) the result is float32.
 * Called by types.c for each operation of which an argument has a dtype, and for each function.
 */
#include "kernels/expr/internal.h"

static int bad_dtype(struct compiler *c, const struct ast_node *n, enum dtype found,
                     const char *wanted, const char *why)
{
    int r = fail(c, GAD_BAD_DTYPE, n->column, "%s %s", op_info((enum op)n->op)->name, why);
    error_expected(c->error, "%s", wanted);
    error_found(c->error, "%s", dtype_name(found));
    return r;
}

static int set_const_bool(struct compiler *c, bool value, uint16_t shape, struct value *ret)
{
    uint16_t node;
    int r = graph_const(c, DTYPE_BOOL, (union scalar){.u64 = value}, shape, &node);
    return r != 0 ? r : types_set_node(node, ret);
}

/* One operation on a node that is there. */
static int apply_unary(struct compiler *c, const struct ast_node *n, enum op op, uint16_t src,
                       struct value *ret)
{
    uint16_t node;
    enum dtype dtype = types_of_node(c, src);
    int r = graph_op(c, n->column, op, dtype, dtype, 1, &src, &node);
    return r != 0 ? r : types_set_node(node, ret);
}

static enum dtype compute_dtype(const struct compiler *c, const struct ast_node *n,
                                const struct value *args)
{
    return n->n_children == 1 ? types_of(c, &args[0]) : types_common(c, &args[0], &args[1]);
}

static int type_arithmetic(struct compiler *c, const struct ast_node *n, const struct value *args,
                           struct value *ret)
{
    enum dtype d = compute_dtype(c, n, args);
    enum op op = (enum op)n->op;
    if (d == DTYPE_BOOL) {
        switch (op) {
        case OP_ADD:
        case OP_MAXIMUM: op = OP_BITWISE_OR; break;
        case OP_MULTIPLY:
        case OP_MINIMUM: op = OP_BITWISE_AND; break;
        case OP_SUBTRACT:
            return bad_dtype(c, n, d, "numbers", "is not defined for bools, write a ^ b");
        case OP_NEGATIVE:
            return bad_dtype(c, n, d, "numbers", "is not defined for bools, write ~x");
        default: d = DTYPE_INT8; break;
        }
    }
    return types_apply(c, n, op, d, d, args, ret);
}

static int type_divide(struct compiler *c, const struct ast_node *n, const struct value *args,
                       struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    if (!dtype_is_float(d))
        d = DTYPE_FLOAT64;
    return types_apply(c, n, OP_DIVIDE, d, d, args, ret);
}

/* x to an exponent that is known now and has a short way; OP_COUNT: there is none. */
static enum op power_shortcut(enum dtype d, double exponent, int base_ndim)
{
    if (exponent == 2)
        return OP_SQUARE;
    if (exponent == -1 && dtype_is_float(d))
        return OP_DIVIDE;
    if (exponent == 0.5 && base_ndim > 0) /* as in NumPy: sqrt for arrays, pow for scalars */
        return OP_SQRT;
    return OP_COUNT;
}

static int type_known_power(struct compiler *c, const struct ast_node *n, enum dtype d,
                            const struct value *args, struct value *ret)
{
    double exponent = scalar_as_double(&args[1]);
    uint16_t base;
    int r = types_as(c, types_child_column(c, n, 0), &args[0], d, &base);
    if (r != 0)
        return r;
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[base].shape];
    if (exponent == 1)
        return types_set_node(base, ret);
    if (dtype_is_signed(d) && exponent < 0 && shape->n_elements > 0)
        return fail(c, GAD_NEGATIVE_POWER, n->column,
                    "integers to negative integer powers are not allowed, write x ** -1.0");
    struct value one_and_base[2] = {{.kind = VALUE_FLOAT, .number = 1}, {.kind = VALUE_NODE}};
    one_and_base[1].node = base;
    switch (power_shortcut(d, exponent, shape->ndim)) {
    case OP_SQUARE: return apply_unary(c, n, OP_SQUARE, base, ret);
    case OP_SQRT: return apply_unary(c, n, OP_SQRT, base, ret);
    case OP_DIVIDE: return types_apply(c, n, OP_DIVIDE, d, d, one_and_base, ret);
    default: return types_apply(c, n, OP_POWER, d, d, args, ret);
    }
}

static int type_power(struct compiler *c, const struct ast_node *n, const struct value *args,
                      struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    bool is_known = args[1].kind != VALUE_NODE;
    /* `b**2` squares bools as int8; power(b, 2) computes in int64 */
    bool is_square = n->is_operator && args[1].kind == VALUE_INTEGER && args[1].integer == 2 &&
                     types_of(c, &args[0]) == DTYPE_BOOL;
    if (d == DTYPE_BOOL || is_square)
        d = DTYPE_INT8;
    return is_known ? type_known_power(c, n, d, args, ret)
                    : types_apply(c, n, OP_POWER, d, d, args, ret);
}

static int type_float(struct compiler *c, const struct ast_node *n, const struct value *args,
                      struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    if (!dtype_is_float(d))
        d = dtype_size(d) <= 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    return types_apply(c, n, (enum op)n->op, d, d, args, ret);
}

/* The answer of `x op number` for every x of an integer dtype that cannot hold the number. */
static bool compare_out_of_range(enum op op, bool is_number_first, bool is_number_positive)
{
    bool is_less = is_number_positive != is_number_first;
    switch (op) {
    case OP_EQUAL: return false;
    case OP_NOT_EQUAL: return true;
    case OP_LESS:
    case OP_LESS_EQUAL: return is_less;
    default: return !is_less;
    }
}

/* int64 and uint64 as they are: there is no dtype that holds both. */
static int type_compare_mixed(struct compiler *c, const struct ast_node *n,
                              const struct value *args, struct value *ret)
{
    uint16_t src[2], node;
    for (unsigned i = 0; i < 2; i++) {
        enum dtype d = dtype_is_signed(types_of_node(c, args[i].node)) ? DTYPE_INT64 : DTYPE_UINT64;
        int r = graph_cast(c, args[i].node, d, &src[i]);
        if (r != 0)
            return r;
    }
    int r =
        graph_op(c, n->column, (enum op)n->op, types_of_node(c, src[0]), DTYPE_BOOL, 2, src, &node);
    return r != 0 ? r : types_set_node(node, ret);
}

static int type_compare(struct compiler *c, const struct ast_node *n, const struct value *args,
                        struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    struct value folded;
    if (args[0].kind != VALUE_NODE && args[1].kind != VALUE_NODE) {
        int r = scalar_fold(c, n, args, &folded);
        return r != 0 ? r : set_const_bool(c, folded.integer != 0, 0, ret);
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct value *number = &args[i], *other = &args[1 - i];
        if (number->kind == VALUE_INTEGER && other->kind == VALUE_NODE && dtype_is_integer(d) &&
            !scalar_fits(number, d))
            return set_const_bool(c,
                                  compare_out_of_range((enum op)n->op, i == 0, number->integer > 0),
                                  c->graph.nodes[other->node].shape, ret);
    }
    if (args[0].kind == VALUE_NODE && args[1].kind == VALUE_NODE) {
        enum dtype a = types_of_node(c, args[0].node), b = types_of_node(c, args[1].node);
        if ((a == DTYPE_UINT64 && dtype_is_signed(b)) || (b == DTYPE_UINT64 && dtype_is_signed(a)))
            return type_compare_mixed(c, n, args, ret);
    }
    return types_apply(c, n, (enum op)n->op, d, DTYPE_BOOL, args, ret);
}

static int type_bits(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    enum dtype d = compute_dtype(c, n, args);
    bool is_shift = op_info((enum op)n->op)->rule == OP_RULE_SHIFT;
    if (dtype_is_float(d) && n->n_children == 2) {
        enum dtype a = types_of(c, &args[0]), b = types_of(c, &args[1]);
        if (!dtype_is_float(a) && !dtype_is_float(b))
            return bad_dtype(c, n, d, "integers that have a common dtype",
                             "of uint64 and a signed integer: cast one of them");
    }
    if (dtype_is_float(d))
        return bad_dtype(c, n, d, "integers or bools", "needs integers or bools");
    if (is_shift && d == DTYPE_BOOL)
        d = DTYPE_INT8;
    return types_apply(c, n, (enum op)n->op, d, d, args, ret);
}

static int type_same(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    enum op op = (enum op)n->op;
    bool is_unchanged = op == OP_FLOOR
                            ? !dtype_is_float(d)
                            : op == OP_ABSOLUTE && (d == DTYPE_BOOL || dtype_is_unsigned(d));
    if (is_unchanged) {
        uint16_t node;
        int r = types_as_node(c, n->column, &args[0], &node);
        return r != 0 ? r : types_set_node(node, ret);
    }
    if (op == OP_SQUARE && d == DTYPE_BOOL)
        d = DTYPE_INT8;
    return types_apply(c, n, op, d, d, args, ret);
}

static int type_predicate(struct compiler *c, const struct ast_node *n, const struct value *args,
                          struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    if (dtype_is_float(d))
        return types_apply(c, n, (enum op)n->op, d, DTYPE_BOOL, args, ret);
    uint16_t shape = args[0].kind == VALUE_NODE ? c->graph.nodes[args[0].node].shape : 0;
    return set_const_bool(c, n->op == OP_ISFINITE, shape, ret);
}

static int type_where(struct compiler *c, const struct ast_node *n, const struct value *args,
                      struct value *ret)
{
    uint16_t src[3], node;
    enum dtype d = types_common(c, &args[1], &args[2]);
    int r = types_as(c, n->column, &args[0], DTYPE_BOOL, &src[0]);
    for (unsigned i = 1; r == 0 && i < 3; i++)
        r = types_as(c, types_child_column(c, n, i), &args[i], d, &src[i]);
    if (r == 0)
        r = graph_op(c, n->column, OP_WHERE, d, d, 3, src, &node);
    return r != 0 ? r : types_set_node(node, ret);
}

static int type_cast(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    uint16_t node;
    union scalar scalar;
    enum dtype d = (enum dtype)n->dtype;
    int r;
    if (args[0].kind == VALUE_NODE) {
        r = graph_cast(c, args[0].node, d, &node);
    } else {
        r = scalar_construct(c, types_child_column(c, n, 0), &args[0], d, &scalar);
        if (r == 0)
            r = graph_const(c, d, scalar, 0, &node);
    }
    return r != 0 ? r : types_set_node(node, ret);
}

int rules_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret)
{
    switch (op_info((enum op)n->op)->rule) {
    case OP_RULE_ARITHMETIC: return type_arithmetic(c, n, args, ret);
    case OP_RULE_DIVIDE: return type_divide(c, n, args, ret);
    case OP_RULE_POWER: return type_power(c, n, args, ret);
    case OP_RULE_FLOAT: return type_float(c, n, args, ret);
    case OP_RULE_COMPARE: return type_compare(c, n, args, ret);
    case OP_RULE_BITWISE:
    case OP_RULE_SHIFT: return type_bits(c, n, args, ret);
    case OP_RULE_SAME:
    case OP_RULE_FLOOR: return type_same(c, n, args, ret);
    case OP_RULE_PREDICATE: return type_predicate(c, n, args, ret);
    case OP_RULE_WHERE: return type_where(c, n, args, ret);
    case OP_RULE_CAST: return type_cast(c, n, args, ret);
    default: return reductions_apply(c, n, args, ret);
    }
}
