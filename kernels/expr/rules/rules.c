/* The dtype rules of the catalogue (enum op_rule), as NumPy 2 has them.
 *
 * Each rule finds the dtype to compute in, casts the arguments to it and adds the operation to the
 * graph, or writes it with others where engines do not have it. Operations that leave a dtype as it
 * is (floor of integers) or that are known without looking (isnan of integers, int8 against 300)
 * add nothing. On bools, + * minimum maximum are the logical operations that they stand for, so
 * that engines need no arithmetic of bools.
 *
 * Arithmetic, comparisons and casts are here, the others in the files of their kind.
 * Called by types.c for each operation of which an argument has a dtype, and for each function.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

int rules_bad_dtype(struct compiler *c, const struct ast_node *n, enum dtype found,
                    const char *wanted, const char *why)
{
    int r = compiler_fail(c, GAD_BAD_DTYPE, n->column, "%s %s", op_info((enum op)n->op)->name, why);
    error_expected(c->error, "%s", wanted);
    error_found(c->error, "%s", dtype_name(found));
    return r;
}

int rules_known(struct compiler *c, const struct ast_node *n, bool value, const struct value *like,
                struct value *ret)
{
    const struct graph_node *of = like->kind == VALUE_NODE ? &c->graph.nodes[like->node] : NULL;
    if (of != NULL && of->is_free) {
        /* It has no shape yet: computed after all, x == x or x != x of integers. */
        const struct value both[2] = {*like, *like};
        return rules_lower(c, n, value ? OP_EQUAL : OP_NOT_EQUAL, 2, both, ret);
    }
    uint16_t node;
    int r =
        graph_const(c, DTYPE_BOOL, (union scalar){.u64 = value}, of != NULL ? of->shape : 0, &node);
    return r ? r : types_set_node(node, ret);
}

static enum dtype compute_dtype(const struct compiler *c, const struct ast_node *n,
                                const struct value *args)
{
    return n->n_children == 1 ? types_of(c, &args[0]) : types_common(c, &args[0], &args[1]);
}

/* The operation that engines have for it, on bools a logical one. */
static int bool_arithmetic(struct compiler *c, const struct ast_node *n, enum op *op)
{
    enum dtype d = DTYPE_BOOL;
    switch (*op) {
    case OP_ADD:
    case OP_FMAX:
    case OP_MAXIMUM: *op = OP_BITWISE_OR; return 0;
    case OP_MULTIPLY:
    case OP_FMIN:
    case OP_MINIMUM: *op = OP_BITWISE_AND; return 0;
    case OP_SUBTRACT:
        return rules_bad_dtype(c, n, d, "numbers", "is not defined for bools, write a ^ b");
    case OP_NEGATIVE:
        return rules_bad_dtype(c, n, d, "numbers", "is not defined for bools, write ~x");
    case OP_POSITIVE:
    case OP_SIGN:
        return rules_bad_dtype(c, n, d, "numbers", "is not defined for bools, write int8(x)");
    default: return 0;
    }
}

static int type_arithmetic(struct compiler *c, const struct ast_node *n, const struct value *args,
                           struct value *ret)
{
    enum dtype d = compute_dtype(c, n, args);
    enum op op = (enum op)n->op;
    struct value one_and_arg[2] = {{.kind = VALUE_FLOAT, .number = 1}, args[0]};
    struct lower l = {c, n, 0};
    int r = d == DTYPE_BOOL ? bool_arithmetic(c, n, &op) : 0;
    if (r)
        return r;
    bool is_logical = op == OP_BITWISE_OR || op == OP_BITWISE_AND;
    if (d == DTYPE_BOOL && !is_logical)
        d = DTYPE_INT8;
    switch (op) {
    case OP_DIVMOD: op = n->result == 0 ? OP_FLOOR_DIVIDE : OP_REMAINDER; break;
    case OP_FMIN: op = dtype_is_float(d) ? op : OP_MINIMUM; break;
    case OP_FMAX: op = dtype_is_float(d) ? op : OP_MAXIMUM; break;
    case OP_POSITIVE: return lower_finish(&l, lower_value(&l, &args[0], d), ret);
    case OP_RECIPROCAL:
        if (dtype_is_float(d))
            return types_apply(c, n, OP_DIVIDE, d, d, 2, one_and_arg, ret);
        break;
    default: break;
    }
    return types_apply(c, n, op, d, d, n->n_children, args, ret);
}

static int type_divide(struct compiler *c, const struct ast_node *n, const struct value *args,
                       struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    if (!dtype_is_float(d))
        d = DTYPE_FLOAT64;
    return types_apply(c, n, OP_DIVIDE, d, d, 2, args, ret);
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
        if (r)
            return r;
    }
    int r =
        graph_op(c, n->column, (enum op)n->op, types_of_node(c, src[0]), DTYPE_BOOL, 2, src, &node);
    return r ? r : types_set_node(node, ret);
}

static int type_compare(struct compiler *c, const struct ast_node *n, const struct value *args,
                        struct value *ret)
{
    enum dtype d = types_common(c, &args[0], &args[1]);
    struct value folded;
    if (args[0].kind != VALUE_NODE && args[1].kind != VALUE_NODE) {
        int r = scalar_fold(c, n, args, &folded);
        return r ? r : rules_known(c, n, folded.integer != 0, &folded, ret);
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct value *number = &args[i], *other = &args[1 - i];
        if (number->kind == VALUE_INTEGER && other->kind == VALUE_NODE && dtype_is_integer(d) &&
            !scalar_fits(number, d))
            return rules_known(c, n,
                               compare_out_of_range((enum op)n->op, i == 0, number->integer > 0),
                               other, ret);
    }
    if (args[0].kind == VALUE_NODE && args[1].kind == VALUE_NODE) {
        enum dtype a = types_of_node(c, args[0].node), b = types_of_node(c, args[1].node);
        if ((a == DTYPE_UINT64 && dtype_is_signed(b)) || (b == DTYPE_UINT64 && dtype_is_signed(a)))
            return type_compare_mixed(c, n, args, ret);
    }
    return types_apply(c, n, (enum op)n->op, d, DTYPE_BOOL, 2, args, ret);
}

static int type_same(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    enum op op = (enum op)n->op;
    if (op == OP_ABSOLUTE && (d == DTYPE_BOOL || dtype_is_unsigned(d))) {
        struct lower l = {c, n, 0};
        return lower_finish(&l, lower_value(&l, &args[0], d), ret);
    }
    if (op == OP_SQUARE && d == DTYPE_BOOL)
        d = DTYPE_INT8;
    return types_apply(c, n, op, d, d, 1, args, ret);
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
    return r ? r : types_set_node(node, ret);
}

int rules_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret)
{
    switch (op_info((enum op)n->op)->rule) {
    case OP_RULE_ARITHMETIC: return type_arithmetic(c, n, args, ret);
    case OP_RULE_DIVIDE: return type_divide(c, n, args, ret);
    case OP_RULE_POWER: return powers_apply(c, n, args, ret);
    case OP_RULE_FLOAT64: return powers_apply_float64(c, n, args, ret);
    case OP_RULE_FLOAT: return floats_apply(c, n, args, ret);
    case OP_RULE_COMPARE: return type_compare(c, n, args, ret);
    case OP_RULE_BITWISE:
    case OP_RULE_SHIFT: return bits_apply(c, n, args, ret);
    case OP_RULE_BITCOUNT: return bits_count(c, n, args, ret);
    case OP_RULE_INTEGER: return bits_integer(c, n, args, ret);
    case OP_RULE_LOGICAL: return bits_logical(c, n, args, ret);
    case OP_RULE_SAME: return type_same(c, n, args, ret);
    case OP_RULE_FLOOR: return floats_floor(c, n, args, ret);
    case OP_RULE_ROUND: return floats_round(c, n, args, ret);
    case OP_RULE_LDEXP: return floats_ldexp(c, n, args, ret);
    case OP_RULE_SINC: return floats_sinc(c, n, args, ret);
    case OP_RULE_PREDICATE: return floats_predicate(c, n, args, ret);
    case OP_RULE_WHERE: return choices_where(c, n, args, ret);
    case OP_RULE_SELECT: return choices_select(c, n, args, ret);
    case OP_RULE_CLIP: return choices_clip(c, n, args, ret);
    case OP_RULE_ISCLOSE: return closeness_isclose(c, n, args, ret);
    case OP_RULE_NAN_TO_NUM: return closeness_nan_to_num(c, n, args, ret);
    case OP_RULE_INDEX: return axes_apply(c, n, args, ret);
    case OP_RULE_CAST: return type_cast(c, n, args, ret);
    case OP_RULE_RANDOM: return random_apply(c, n, args, ret);
    case OP_RULE_RANDOM_INTEGERS: return random_integers(c, n, args, ret);
    case OP_RULE_SCAN: return scans_apply(c, n, args, ret);
    case OP_RULE_BINCOUNT: return counts_apply(c, n, args, ret);
    case OP_RULE_HISTOGRAM: return histograms_apply(c, n, args, ret);
    case OP_RULE_TABLE: return lookups_apply(c, n, args, ret);
    case OP_RULE_MATMUL: return products_apply(c, n, args, ret);
    case OP_RULE_TENSORDOT: return tensordot_apply(c, n, args, ret);
    case OP_RULE_QR: return triangles_apply(c, n, args, ret);
    case OP_RULE_NEAR: return near_apply(c, n, args, ret);
    case OP_RULE_WINDOW: return windows_apply(c, n, args, ret);
    default: return reductions_apply(c, n, args, ret);
    }
}

/* It has no children in the text: errors name the column of what is lowered. */
static struct ast_node make_call(const struct ast_node *n, enum op op, unsigned n_args)
{
    return (struct ast_node){
        .kind = AST_OP, .op = (uint16_t)op, .n_children = (uint8_t)n_args, .column = n->column};
}

int rules_lower(struct compiler *c, const struct ast_node *n, enum op op, unsigned n_args,
                const struct value *args, struct value *ret)
{
    struct ast_node call = make_call(n, op, n_args);
    return rules_apply(c, &call, args, ret);
}

int rules_lower_operator(struct compiler *c, const struct ast_node *n, enum op op,
                         const struct value *a, const struct value *b, struct value *ret)
{
    struct ast_node call = make_call(n, op, 2);
    struct value args[2] = {*a, *b};
    call.is_operator = true;
    return a->kind != VALUE_NODE && b->kind != VALUE_NODE ? scalar_fold(c, &call, args, ret)
                                                          : rules_apply(c, &call, args, ret);
}
