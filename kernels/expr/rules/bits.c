/* The rules of operations on bits and whole numbers: & | ^ ~ << >>, bitwise_count, gcd and lcm; and
 * of the logical operations, which are those on bits after a cast to bool.
 *
 * Called by rules.c.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"

static enum dtype compute_dtype(const struct compiler *c, const struct ast_node *n,
                                const struct value *args)
{
    return n->n_children == 1 ? types_of(c, &args[0]) : types_common(c, &args[0], &args[1]);
}

/* Floats are refused; that uint64 and int64 have none but a float in common has its own text. */
static int check_whole(struct compiler *c, const struct ast_node *n, const struct value *args,
                       enum dtype d, const char *wanted, const char *why)
{
    if (!dtype_is_float(d))
        return 0;
    if (n->n_children == 2 && !dtype_is_float(types_of(c, &args[0])) &&
        !dtype_is_float(types_of(c, &args[1])))
        return rules_bad_dtype(c, n, d, "integers that have a common dtype",
                               "of uint64 and a signed integer: cast one of them");
    return rules_bad_dtype(c, n, d, wanted, why);
}

int bits_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
               struct value *ret)
{
    enum dtype d = compute_dtype(c, n, args);
    bool is_power = n->is_operator && n->op == OP_BITWISE_XOR; /* as other languages write it */
    int r = check_whole(c, n, args, d, "integers or bools",
                        is_power ? "needs integers or bools; x**y is the power"
                                 : "needs integers or bools");
    if (r)
        return r;
    if (op_info((enum op)n->op)->rule == OP_RULE_SHIFT && d == DTYPE_BOOL)
        d = DTYPE_INT8;
    return types_apply(c, n, (enum op)n->op, d, d, n->n_children, args, ret);
}

int bits_count(struct compiler *c, const struct ast_node *n, const struct value *args,
               struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    int r = check_whole(c, n, args, d, "integers or bools", "needs integers or bools");
    if (r)
        return r;
    if (d != DTYPE_BOOL)
        return types_apply(c, n, OP_BITWISE_COUNT, d, DTYPE_UINT8, 1, args, ret);
    struct lower l = {c, n, 0};
    return lower_finish(&l, lower_cast(&l, lower_value(&l, &args[0], d), DTYPE_UINT8), ret);
}

int bits_integer(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum dtype d = compute_dtype(c, n, args);
    int r = check_whole(c, n, args, d, "integers", "needs integers");
    if (r == 0 && d == DTYPE_BOOL)
        r = rules_bad_dtype(c, n, d, "integers", "needs integers, write int8(x)");
    return r ? r : types_apply(c, n, (enum op)n->op, d, d, 2, args, ret);
}

int bits_logical(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum op op = n->op == OP_LOGICAL_AND  ? OP_BITWISE_AND
                 : n->op == OP_LOGICAL_OR ? OP_BITWISE_OR
                                          : OP_BITWISE_XOR;
    struct lower l = {c, n, 0};
    uint16_t a = lower_value(&l, &args[0], DTYPE_BOOL);
    if (n->op == OP_LOGICAL_NOT)
        return lower_finish(&l, lower_unary(&l, OP_INVERT, a), ret);
    return lower_finish(&l, lower_binary(&l, op, a, lower_value(&l, &args[1], DTYPE_BOOL)), ret);
}
