/* The rules of floating functions.
 *
 * NumPy has loops for float16, float32 and float64 alone; an integer argument becomes the float
 * that holds all its dtype's values (8 bits: float16, 16 bits: float32, else float64), and the
 * widest of the arguments' floats is what is computed in. Here float16 is float32. SciPy's
 * functions compute in float64 for all integers. Numbers take the dtype of the other argument, as
 * everywhere. On values that were integers, rint, trunc and fabs of unsigned do nothing.
 *
 * round and sinc are NumPy's own sequences of operations, so that they give its results to the bit.
 * Called by rules.c.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"

#include <float.h>
#include <limits.h>
#include <math.h>

static enum dtype float_of(enum dtype d)
{
    if (dtype_is_float(d))
        return d;
    return dtype_size(d) <= 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
}

static bool is_scipys(enum op op)
{
    return op == OP_ERF || op == OP_ERFC || op == OP_GAMMA || op == OP_LGAMMA || op == OP_EXPIT ||
           op == OP_LOGIT;
}

static enum dtype compute_dtype(const struct compiler *c, enum op op, unsigned n_args,
                                const struct value *args)
{
    if (n_args == 1) {
        enum dtype d = types_of(c, &args[0]);
        return is_scipys(op) && !dtype_is_float(d) ? DTYPE_FLOAT64 : float_of(d);
    }
    bool are_both = args[0].kind == args[1].kind || /* arrays, or numbers */
                    (args[0].kind != VALUE_NODE && args[1].kind != VALUE_NODE);
    if (!are_both)
        return float_of(types_common(c, &args[0], &args[1]));
    enum dtype a = float_of(types_of(c, &args[0])), b = float_of(types_of(c, &args[1]));
    return a > b ? a : b;
}

/* In radians of a degree and the other way, as NumPy's loops have them: divided in the dtype. */
static int scale_angle(struct compiler *c, const struct ast_node *n, enum dtype d,
                       const struct value *x, struct value *ret)
{
    const double pi32 = (double)(float)M_PI;
    bool is_narrow = d == DTYPE_FLOAT32;
    double factor = is_narrow ? (double)(float)(pi32 / 180) : M_PI / 180;
    if (n->op == OP_RAD2DEG)
        factor = is_narrow ? (double)(float)(180 / pi32) : 180 / M_PI;
    struct lower l = {c, n, 0};
    uint16_t node = lower_value(&l, x, d);
    node = lower_binary(&l, OP_MULTIPLY, node, lower_float(&l, d, factor));
    return lower_finish(&l, node, ret);
}

int floats_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum op op = (enum op)n->op;
    enum dtype own = types_of(c, &args[0]), d = compute_dtype(c, op, n->n_children, args);
    enum dtype result = d;
    bool is_whole = !dtype_is_float(own);
    switch (op) {
    case OP_DEG2RAD:
    case OP_RAD2DEG: return scale_angle(c, n, d, &args[0], ret);
    case OP_FABS: op = is_whole && !dtype_is_signed(own) ? OP_POSITIVE : OP_ABSOLUTE; break;
    case OP_RINT: op = is_whole ? OP_POSITIVE : OP_RINT; break;
    case OP_MODF:
        if (n->result == 1)
            op = is_whole ? OP_POSITIVE : OP_TRUNC;
        break;
    case OP_FREXP:
        if (n->result == 1) {
            op = OP_FREXP_EXPONENT;
            result = DTYPE_INT32;
        }
        break;
    default: break;
    }
    if (op != OP_POSITIVE)
        return types_apply(c, n, op, d, result, n->n_children, args, ret);
    struct lower l = {c, n, 0};
    return lower_finish(&l, lower_value(&l, &args[0], d), ret);
}

int floats_floor(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    struct lower l = {c, n, 0};
    uint16_t node = lower_value(&l, &args[0], d);
    return lower_finish(&l, dtype_is_float(d) ? lower_unary(&l, (enum op)n->op, node) : node, ret);
}

int floats_predicate(struct compiler *c, const struct ast_node *n, const struct value *args,
                     struct value *ret)
{
    enum dtype d = types_of(c, &args[0]);
    if (dtype_is_float(d))
        return types_apply(c, n, (enum op)n->op, d, DTYPE_BOOL, 1, args, ret);
    if (n->op == OP_SIGNBIT && dtype_is_signed(d)) {
        struct value both[2] = {args[0], {.kind = VALUE_INTEGER, .integer = 0}};
        return rules_lower(c, n, OP_LESS, 2, both, ret);
    }
    return rules_known(c, n, n->op == OP_ISFINITE, &args[0], ret);
}

/* ---- round ---- */

static int find_decimals(struct compiler *c, const struct ast_node *n, int *ret)
{
    const struct value *v = types_child(c, n, 1);
    *ret = 0;
    if (v == NULL)
        return 0;
    bool is_integer = v->kind == VALUE_INTEGER || v->kind == VALUE_BOOL;
    if (is_integer && v->integer > INT_MIN && v->integer <= INT_MAX) {
        *ret = (int)v->integer;
        return 0;
    }
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, types_child_column(c, n, 1),
                          "round: 'decimals' must be an integer of 32 bits that is known here");
    error_expected(c->error, "an integer");
    error_found(c->error, "%s", v->kind == VALUE_NODE ? "an array" : "another number");
    return r;
}

/* As NumPy computes it: not the nearest float of some. */
static double power_of_ten(int n)
{
    double power = 1;
    for (int i = 0; i < n && i < 400; i++)
        power *= 10;
    return power;
}

int floats_round(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    int decimals;
    enum dtype own = types_of(c, &args[0]), d = dtype_is_float(own) ? own : DTYPE_FLOAT64;
    int r = find_decimals(c, n, &decimals);
    if (r)
        return r;
    struct lower l = {c, n, 0};
    if (own == DTYPE_BOOL && decimals != 0)
        return rules_bad_dtype(c, n, own, "numbers", "of bools has no decimals, write int8(x)");
    if (own == DTYPE_BOOL)
        return lower_finish(&l, lower_value(&l, &args[0], DTYPE_FLOAT32), ret);
    if (dtype_is_integer(own) && decimals >= 0)
        return lower_finish(&l, lower_value(&l, &args[0], own), ret);
    uint16_t node = lower_value(&l, &args[0], own);
    node = lower_cast(&l, node, d);
    if (decimals == 0)
        return lower_finish(&l, lower_unary(&l, OP_RINT, node), ret);
    uint16_t power = lower_float(&l, d, power_of_ten(decimals < 0 ? -decimals : decimals));
    node = lower_binary(&l, decimals < 0 ? OP_DIVIDE : OP_MULTIPLY, node, power);
    node = lower_unary(&l, OP_RINT, node);
    node = lower_binary(&l, decimals < 0 ? OP_MULTIPLY : OP_DIVIDE, node, power);
    return lower_finish(&l, lower_cast(&l, node, own), ret);
}

/* ---- ldexp ---- */

/* Exponents beyond 32 bits give 0 or infinity as those at the limits do. */
static uint16_t exponent_node(struct lower *l, const struct value *v, enum dtype to)
{
    struct value limited = *v;
    enum dtype own = types_of(l->c, v);
    if (v->kind != VALUE_NODE) {
        if (to == DTYPE_INT32 && limited.integer > INT32_MAX)
            limited.integer = INT32_MAX;
        if (to == DTYPE_INT32 && limited.integer < INT32_MIN)
            limited.integer = INT32_MIN;
        return lower_value(l, &limited, to);
    }
    uint16_t node = lower_value(l, v, own);
    if (to == DTYPE_INT32 && (own == DTYPE_INT64 || own == DTYPE_UINT32)) {
        struct value limit = {.kind = VALUE_INTEGER, .integer = INT32_MAX};
        node = lower_binary(l, OP_MINIMUM, node, lower_value(l, &limit, own));
        limit.integer = INT32_MIN;
        if (own == DTYPE_INT64)
            node = lower_binary(l, OP_MAXIMUM, node, lower_value(l, &limit, own));
    }
    return lower_cast(l, node, to);
}

int floats_ldexp(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    enum dtype d = float_of(types_of(c, &args[0])), exponent = types_of(c, &args[1]);
    /* an integer number is as wide as the exponents that it meets, so small */
    if (args[0].kind == VALUE_INTEGER && args[1].kind == VALUE_NODE && exponent != DTYPE_BOOL)
        d = DTYPE_FLOAT32;
    if (dtype_is_float(exponent) || exponent == DTYPE_UINT64)
        return rules_bad_dtype(c, n, exponent, "integers, not uint64",
                               "needs an integer exponent, not uint64");
    struct lower l = {c, n, 0};
    uint16_t x = lower_value(&l, &args[0], d);
    uint16_t e = exponent_node(&l, &args[1], d == DTYPE_FLOAT32 ? DTYPE_INT32 : DTYPE_INT64);
    if (l.r != 0)
        return l.r;
    uint16_t node;
    int r = graph_op(c, n->column, OP_LDEXP, d, d, 2, (uint16_t[]){x, e}, &node);
    return r ? r : types_set_node(node, ret);
}

/* ---- sinc ---- */

/* y = pi x, or the smallest of 1 + eps where that is 0; sin(y) / y. */
int floats_sinc(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret)
{
    enum dtype own = types_of(c, &args[0]), d = dtype_is_float(own) ? own : DTYPE_FLOAT64;
    struct lower l = {c, n, 0};
    uint16_t x = lower_value(&l, &args[0], d);
    uint16_t y = lower_binary(&l, OP_MULTIPLY, lower_float(&l, d, M_PI), x);
    uint16_t eps = lower_float(&l, d, d == DTYPE_FLOAT32 ? FLT_EPSILON : DBL_EPSILON);
    uint16_t is_not_zero = lower_cast(&l, y, DTYPE_BOOL);
    y = lower_where(&l, is_not_zero, y, eps);
    return lower_finish(&l, lower_binary(&l, OP_DIVIDE, lower_unary(&l, OP_SIN, y), y), ret);
}
