/* Reductions: what each of NumPy's is, written with those that engines have (reduce.c).
 *
 *     sum prod        SUM, PROD in 64 bits or double, cast to the result's dtype at the end
 *     min max ptp     MIN, MAX; an initial value is one more element
 *     any all         MAX and MIN of bools
 *     mean var std    moments.c
 *     norm logsumexp  norms.c
 *     quantile median quantiles.c
 *
 * The nan* of them are the same under a mask that takes NaN out. What NumPy refuses is refused:
 * nothing to reduce where there is no identity, a mask without an initial value there.
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/quantiles.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <math.h>

static const struct value zero = {.kind = VALUE_INTEGER, .integer = 0};
static const struct value minus_zero = {.kind = VALUE_FLOAT, .number = -0.0}; /* changes no sum */
static const struct value one = {.kind = VALUE_INTEGER, .integer = 1};

static bool ignores_nan(enum op op)
{
    return op == OP_NANSUM || op == OP_NANPROD || op == OP_NANMEAN || op == OP_NANVAR ||
           op == OP_NANSTD || op == OP_NANMIN || op == OP_NANMAX;
}

/* `initial` in a dtype, as NumPy converts it: an integer must fit, a fraction is cut off. */
static uint16_t initial_node(struct reduce *k, const struct ast_node *initial, enum dtype d)
{
    const struct value *v = &initial->value;
    struct compiler *c = k->l.c;
    union scalar scalar;
    uint16_t node = 0;
    if (k->l.r != 0)
        return node;
    if (v->kind == VALUE_NODE) {
        const struct graph_node *given = &c->graph.nodes[v->node];
        if (c->graph.shapes[given->shape].ndim > 0 || given->is_free) {
            k->l.r =
                compiler_fail(c, GAD_BAD_SHAPE, initial->column, "%s: 'initial' must be one number",
                              op_info((enum op)k->l.n->op)->name);
            error_expected(c->error, "a number");
            error_found(c->error, "an array");
            return node;
        }
        return lower_cast(&k->l, v->node, d);
    }
    k->l.r = v->kind == VALUE_FLOAT ? scalar_construct(c, initial->column, v, d, &scalar)
                                    : scalar_convert(c, initial->column, v, d, &scalar);
    if (k->l.r == 0)
        k->l.r = graph_const(c, d, scalar, 0, &node);
    return node;
}

/* ---- any, all ---- */

/* A bool for all of them; of nothing what changes nothing. */
static uint16_t truth(struct reduce *k, enum op op, uint16_t src)
{
    const struct value *neutral = op == OP_MAX ? &zero : &one;
    struct value flag = {.kind = VALUE_BOOL, .integer = neutral->integer};
    if (k->n_reduced == 0)
        return reduce_repeat(k, lower_value(&k->l, &flag, DTYPE_BOOL));
    src = reduce_masked(k, lower_cast(&k->l, src, DTYPE_BOOL), &flag);
    return reduce_by(k, op, src);
}

/* ---- sum, prod ---- */

static enum dtype sum_dtype(enum dtype d)
{
    if (dtype_is_float(d))
        return d;
    return dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
}

/* dtype=bool: a sum of bools is any(), a product all(). */
static int type_truth_sum(struct reduce *k, bool is_sum, struct value *ret)
{
    const struct ast_node *initial = literals_find(k->l.c, k->l.n, "initial");
    uint16_t node = truth(k, is_sum ? OP_MAX : OP_MIN, k->src);
    if (initial != NULL)
        node = lower_binary(&k->l, is_sum ? OP_BITWISE_OR : OP_BITWISE_AND, node,
                            initial_node(k, initial, DTYPE_BOOL));
    return reduce_finish(k, node, ret);
}

static int type_sum(struct reduce *k, struct value *ret)
{
    bool is_sum = k->l.n->op == OP_SUM || k->l.n->op == OP_NANSUM;
    const struct ast_node *initial = literals_find(k->l.c, k->l.n, "initial");
    enum dtype own = types_of_node(k->l.c, k->src);
    enum dtype result = literals_dtype(k->l.c, k->l.n, sum_dtype(own));
    if (result == DTYPE_BOOL)
        return type_truth_sum(k, is_sum, ret);
    uint16_t node = k->src;
    if (literals_find(k->l.c, k->l.n, "dtype") != NULL)
        node = lower_cast(&k->l, node, result);
    bool is_float = dtype_is_float(types_of_node(k->l.c, node));
    if (initial != NULL && is_float && k->n_reduced == 0)
        return reduce_finish(k, reduce_repeat(k, initial_node(k, initial, result)), ret);
    node = reduce_masked(k, node, !is_sum ? &one : is_float ? &minus_zero : &zero);
    bool is_minus_zero = initial != NULL && initial->value.kind == VALUE_FLOAT &&
                         initial->value.number == 0 && signbit(initial->value.number);
    node = is_sum && is_float ? reduce_sum(k, node, is_minus_zero)
                              : reduce_by(k, is_sum ? OP_SUM : OP_PROD, node);
    if (initial != NULL) {
        uint16_t start = initial_node(k, initial, result);
        start = lower_cast(&k->l, start, types_of_node(k->l.c, node));
        node = lower_binary(&k->l, is_sum ? OP_ADD : OP_MULTIPLY, node, start);
    }
    return reduce_finish(k, lower_cast(&k->l, node, result), ret);
}

/* ---- min, max, ptp ---- */

static int needs_initial(struct reduce *k)
{
    int r = compiler_fail(k->l.c, GAD_BAD_EXPRESSION, k->l.n->column,
                          "%s has no identity: with 'where', write 'initial' too",
                          op_info((enum op)k->l.n->op)->name);
    error_expected(k->l.c->error, "initial=...");
    error_found(k->l.c->error, "where without initial");
    return r;
}

/* The smaller or the larger of two, as the written function; of bools and integers too. */
static uint16_t combine(struct reduce *k, enum op op, uint16_t a, uint16_t b)
{
    struct value args[2], result = {.kind = VALUE_NODE, .node = 0};
    (void)types_set_node(a, &args[0]);
    (void)types_set_node(b, &args[1]);
    if (k->l.r == 0)
        k->l.r = rules_lower(k->l.c, k->l.n, op, 2, args, &result);
    return result.node;
}

/* NaN where nothing else is left. */
static uint16_t nan_extremum(struct reduce *k, enum op op, enum dtype d)
{
    struct value far = {.kind = VALUE_FLOAT, .number = op == OP_MIN ? INFINITY : -INFINITY};
    reduce_ignore_nan(k);
    uint16_t count = reduce_count(k, false);
    uint16_t node = reduce_by(k, op, reduce_masked(k, k->src, &far));
    uint16_t is_any = lower_cast(&k->l, count, DTYPE_BOOL);
    return lower_where(&k->l, is_any, node, lower_float(&k->l, d, NAN));
}

static int type_extremum(struct reduce *k, struct value *ret)
{
    enum op written = (enum op)k->l.n->op;
    bool is_min = written == OP_MIN || written == OP_NANMIN;
    enum op op = is_min ? OP_MIN : OP_MAX;
    enum dtype d = types_of_node(k->l.c, k->src);
    bool is_nan = ignores_nan(written) && dtype_is_float(d);
    const struct ast_node *given = literals_find(k->l.c, k->l.n, "initial");
    if (k->mask != NODE_NONE && given == NULL)
        return needs_initial(k);
    int r = given == NULL ? reduce_check_not_empty(k) : 0;
    if (r)
        return r;
    struct value start = {.kind = VALUE_NODE, .node = 0};
    if (given != NULL)
        start.node = initial_node(k, given, d);
    if (k->n_reduced == 0)
        return reduce_finish(k, reduce_repeat(k, start.node), ret);
    uint16_t node =
        is_nan ? nan_extremum(k, op, d) : reduce_by(k, op, reduce_masked(k, k->src, &start));
    if (given != NULL && is_nan)
        node = combine(k, is_min ? OP_FMIN : OP_FMAX, node, start.node);
    else if (given != NULL)
        node = combine(k, is_min ? OP_MINIMUM : OP_MAXIMUM, node, start.node);
    return reduce_finish(k, node, ret);
}

static int type_ptp(struct reduce *k, struct value *ret)
{
    if (types_of_node(k->l.c, k->src) == DTYPE_BOOL)
        return rules_bad_dtype(k->l.c, k->l.n, DTYPE_BOOL, "numbers", "is not defined for bools");
    int r = reduce_check_not_empty(k);
    if (r)
        return r;
    uint16_t most = reduce_by(k, OP_MAX, k->src), least = reduce_by(k, OP_MIN, k->src);
    return reduce_finish(k, lower_binary(&k->l, OP_SUBTRACT, most, least), ret);
}

/* ---- argmin, argmax ---- */

static int type_argument(struct reduce *k, struct value *ret)
{
    const struct ast_node *axis = literals_find(k->l.c, k->l.n, "axis");
    if (axis != NULL && axis->kind == AST_TUPLE) {
        int r = compiler_fail(k->l.c, GAD_BAD_EXPRESSION, axis->column,
                              "%s: 'axis' must be one integer, or None for all axes",
                              op_info((enum op)k->l.n->op)->name);
        error_expected(k->l.c->error, "an integer");
        error_found(k->l.c->error, "a tuple");
        return r;
    }
    int r = reduce_check_not_empty(k);
    return r ? r : reduce_finish(k, reduce_by(k, (enum op)k->l.n->op, k->src), ret);
}

int reductions_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    struct reduce k;
    int r = reduce_begin(&k, c, n, args);
    if (r)
        return r;
    if (ignores_nan((enum op)n->op) && op_info((enum op)n->op)->rule != OP_RULE_EXTREMUM)
        reduce_ignore_nan(&k);
    switch (op_info((enum op)n->op)->rule) {
    case OP_RULE_SUM: return type_sum(&k, ret);
    case OP_RULE_MEAN: return moments_mean(&k, ret);
    case OP_RULE_VARIANCE: return moments_variance(&k, ret);
    case OP_RULE_EXTREMUM: return n->op == OP_PTP ? type_ptp(&k, ret) : type_extremum(&k, ret);
    case OP_RULE_ARGUMENT: return type_argument(&k, ret);
    case OP_RULE_TRUTH:
        return reduce_finish(&k, truth(&k, n->op == OP_ANY ? OP_MAX : OP_MIN, k.src), ret);
    case OP_RULE_NORM: return norms_norm(&k, ret);
    case OP_RULE_LOGSUMEXP: return norms_logsumexp(&k, ret);
    case OP_RULE_QUANTILE: return quantiles_apply(&k, ret);
    default: return reduce_finish(&k, reduce_by(&k, OP_COUNT_NONZERO, k.src), ret);
    }
}
