/* norm and logsumexp: reductions of a function of the elements, and a function of the result.
 *
 * norm is numpy.linalg.norm: of vectors along one axis, of matrices over two, or without `ord` the
 * root of the sum of squares of everything. Squares and powers are in double, so that float32 does
 * not overflow on the way. Norms of matrices that need singular values are refused.
 *
 * logsumexp takes the largest elements out of the exponentials first, two reductions after each
 * other: max, then log1p(sum of the others' exp(x - max) / n) + log(n) + max, where n is how many
 * are the largest. So results near 0 keep their digits, and what is infinite or NaN comes through
 * by the last addition.
 *
 * Called by reductions.c.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/text/literals.h"

#include <math.h>

static uint16_t number(struct reduce *k, double value)
{
    return lower_float(&k->l, DTYPE_FLOAT64, value);
}

/* ---- norm ---- */

static int bad_order(struct reduce *k, double ord, const char *why, const char *wanted)
{
    const struct ast_node *given = literals_find(k->l.c, k->l.n, "ord");
    int r = compiler_fail(k->l.c, GAD_BAD_EXPRESSION,
                          given != NULL ? given->column : k->l.n->column, "norm: %s", why);
    error_expected(k->l.c->error, "%s", wanted);
    if (ord != 0)
        error_found(k->l.c->error, "ord=%g", ord);
    return r;
}

/* The largest or smallest magnitude; of nothing 0 is the largest. */
static uint16_t extreme(struct reduce *k, bool is_max, uint16_t x)
{
    if (is_max && k->n_reduced == 0)
        return reduce_repeat(k, number(k, 0));
    if (!is_max && k->l.r == 0)
        k->l.r = reduce_check_not_empty(k);
    return reduce_by(k, is_max ? OP_MAX : OP_MIN, x);
}

static uint16_t euclidean(struct reduce *k, uint16_t x)
{
    return lower_unary(&k->l, OP_SQRT, reduce_by(k, OP_SUM, lower_unary(&k->l, OP_SQUARE, x)));
}

/* x is of float64. */
static uint16_t vector_norm(struct reduce *k, double ord, uint16_t x)
{
    uint16_t magnitude = lower_unary(&k->l, OP_ABSOLUTE, x);
    if (isinf(ord))
        return extreme(k, ord > 0, magnitude);
    if (ord == 0)
        return lower_cast(&k->l, reduce_by(k, OP_COUNT_NONZERO, x), DTYPE_FLOAT64);
    if (ord == 1)
        return reduce_by(k, OP_SUM, magnitude);
    if (ord == 2)
        return euclidean(k, x);
    uint16_t power = lower_binary(&k->l, OP_POWER, magnitude, number(k, ord));
    return lower_binary(&k->l, OP_POWER, reduce_by(k, OP_SUM, power), number(k, 1 / ord));
}

/* The largest or smallest sum of a column (1), or of a row (infinity): the sums keep both axes, so
 * that the second reduction counts its axis as the first. */
static uint16_t matrix_norm(struct reduce *k, double ord, int row_axis, int column_axis, uint16_t x)
{
    uint32_t both = k->axes;
    reduce_these_axes(k, 1u << (fabs(ord) == 1 ? row_axis : column_axis));
    k->src = reduce_by_keeping(k, OP_SUM, lower_unary(&k->l, OP_ABSOLUTE, x));
    reduce_these_axes(k, both);
    return extreme(k, ord > 0, k->src);
}

/* The axes in the order in which they are given: rows, then columns. */
static int matrix_axes(struct reduce *k, int *ret)
{
    __int128 given[ARRAY_MAX_NDIM] = {0, 1};
    unsigned n;
    bool is_tuple;
    const struct graph_node *src = &k->l.c->graph.nodes[k->src];
    int ndim = k->l.c->graph.shapes[src->shape].ndim;
    int r = 0;
    if (literals_find(k->l.c, k->l.n, "axis") != NULL)
        r = literals_integers(k->l.c, k->l.n, "axis", given, &n, &is_tuple);
    for (int i = 0; i < 2; i++)
        ret[i] = (int)given[i] + (given[i] < 0 ? ndim : 0);
    return r;
}

static int check_order(struct reduce *k, double ord, int n_axes)
{
    if (n_axes == 1)
        return isnan(ord) ? bad_order(k, ord, "the order is NaN", "a number") : 0;
    if (n_axes != 2)
        return bad_order(k, ord, "an order needs one axis (vectors) or two (matrices)", "axis=...");
    if (fabs(ord) == 2)
        return bad_order(k, ord,
                         "orders 2 and -2 of matrices need singular values, which are not here",
                         "None, 1, -1, inf or -inf");
    if (fabs(ord) != 1 && !isinf(ord))
        return bad_order(k, ord, "matrices have no norm of this order", "None, 1, -1, inf or -inf");
    return 0;
}

int norms_norm(struct reduce *k, struct value *ret)
{
    const struct ast_node *given = literals_find(k->l.c, k->l.n, "ord");
    enum dtype d = types_of_node(k->l.c, k->src) == DTYPE_FLOAT32 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    int n_axes = __builtin_popcount(k->axes), axes[2], r = 0;
    uint16_t x = lower_cast(&k->l, k->src, DTYPE_FLOAT64), node;
    double ord = 2;
    if (given != NULL)
        r = literals_number(k->l.c, k->l.n, "ord", &ord);
    if (r == 0 && given != NULL)
        r = check_order(k, ord, n_axes);
    if (r == 0 && given == NULL && n_axes > 2 && literals_find(k->l.c, k->l.n, "axis") != NULL)
        r = bad_order(k, 0, "more than two axes; leave 'axis' out for all of them",
                      "at most two axes");
    if (r == 0 && given != NULL && n_axes == 2)
        r = matrix_axes(k, axes);
    if (r)
        return r;
    if (given == NULL)
        node = euclidean(k, x);
    else if (n_axes == 1)
        node = vector_norm(k, ord, x);
    else
        node = matrix_norm(k, ord, axes[0], axes[1], x);
    return reduce_finish(k, lower_cast(&k->l, node, d), ret);
}

/* ---- logsumexp ---- */

/* The dtype of a floating function of them. */
static enum dtype common_float(const struct compiler *c, const struct value *const *values,
                               unsigned n)
{
    enum dtype d = types_common_of(c, values, n);
    return dtype_is_float(d) ? d : DTYPE_FLOAT64;
}

/* Factors of 0 take their elements out. */
static int read_factor(struct reduce *k, const struct ast_node *given, enum dtype d,
                       uint16_t *ret_factor, uint16_t *ret_x)
{
    struct compiler *c = k->l.c;
    uint16_t shape = c->graph.nodes[k->src].shape;
    *ret_factor = lower_value(&k->l, &given->value, d);
    uint16_t is_in = lower_cast(&k->l, *ret_factor, DTYPE_BOOL);
    *ret_x = lower_where(&k->l, is_in, *ret_x, lower_float(&k->l, d, -INFINITY));
    if (k->l.r != 0 || c->graph.nodes[*ret_x].shape == shape)
        return k->l.r;
    int r = compiler_fail(c, GAD_BAD_SHAPE, given->column,
                          "logsumexp: 'b' does not broadcast to the array");
    error_expected(c->error, "a shape that broadcasts to the array's");
    return r;
}

int norms_logsumexp(struct reduce *k, struct value *ret)
{
    struct compiler *c = k->l.c;
    const struct ast_node *given = literals_find(c, k->l.n, "b");
    struct value src = {.kind = VALUE_NODE, .node = k->src};
    const struct value *values[2] = {&src, given != NULL ? &given->value : NULL};
    enum dtype d = common_float(c, values, given != NULL ? 2 : 1);
    uint16_t x = lower_cast(&k->l, k->src, d), factor = 0;
    if (k->l.r == 0 && given != NULL)
        k->l.r = read_factor(k, given, d, &factor, &x);
    if (k->l.r != 0)
        return k->l.r;
    if (k->n_reduced == 0)
        return reduce_finish(k, reduce_repeat(k, lower_float(&k->l, d, -INFINITY)), ret);
    uint16_t none = lower_float(&k->l, d, 0), most = reduce_beside(k, OP_MAX, x);
    uint16_t is_most = lower_binary(&k->l, OP_EQUAL, x, most);
    uint16_t term = lower_unary(&k->l, OP_EXP, lower_binary(&k->l, OP_SUBTRACT, x, most)), sum, n;
    if (given != NULL) {
        term = lower_where(&k->l, is_most, factor, lower_binary(&k->l, OP_MULTIPLY, factor, term));
        sum = lower_unary(&k->l, OP_LOG, reduce_by(k, OP_SUM, term));
    } else {
        n = lower_cast(&k->l, reduce_by(k, OP_COUNT_NONZERO, is_most), DTYPE_FLOAT64);
        sum = reduce_by(k, OP_SUM, lower_where(&k->l, is_most, none, term));
        sum = lower_unary(&k->l, OP_LOG1P, lower_binary(&k->l, OP_DIVIDE, sum, n));
        sum = lower_binary(&k->l, OP_ADD, sum, lower_unary(&k->l, OP_LOG, n));
    }
    most = lower_cast(&k->l, reduce_by(k, OP_MAX, x), DTYPE_FLOAT64);
    return reduce_finish(k, lower_cast(&k->l, lower_binary(&k->l, OP_ADD, sum, most), d), ret);
}
