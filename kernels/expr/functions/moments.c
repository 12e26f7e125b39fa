/* mean, var and std: sums and squared deviations, divided by how many there are.
 *
 *     mean  SUM / n
 *     var   SQUARED_DEVIATIONS / (n - ddof), one reduction over the data
 *     std   the square root of it
 *
 * Everything is in double and rounded once, to the result's dtype, at the end. Sums of integers of
 * 8 and 16 bits are exact, wider ones are summed in double as NumPy does. Under a mask, so for nan*
 * too, a variance is two reductions after each other: the mean, then the squares around it. Where
 * nothing is left to divide by, results are NaN or infinite as NumPy's are.
 *
 * Called by reductions.c.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/text/literals.h"

#include <math.h>

static const struct value zero = {.kind = VALUE_INTEGER, .integer = 0};

static enum dtype float_dtype(enum dtype d)
{
    return d == DTYPE_FLOAT32 ? d : DTYPE_FLOAT64;
}

/* dtype=int32: the sum wraps in it and the quotient is cut off; of bools it is any(). */
static int mean_of_integers(struct reduce *k, enum dtype d, struct value *ret)
{
    uint16_t node = lower_cast(&k->l, k->src, d);
    if (d == DTYPE_BOOL)
        node = k->n_reduced == 0 ? reduce_repeat(k, lower_value(&k->l, &zero, d))
                                 : reduce_by(k, OP_MAX, reduce_masked(k, node, &zero));
    else
        node = reduce_by(k, OP_SUM, reduce_masked(k, node, &zero));
    node = lower_cast(&k->l, lower_cast(&k->l, node, d), DTYPE_FLOAT64);
    node = lower_binary(&k->l, OP_DIVIDE, node, reduce_count(k, false));
    return reduce_finish(k, lower_cast(&k->l, node, d), ret);
}

int moments_mean(struct reduce *k, struct value *ret)
{
    enum dtype own = types_of_node(k->l.c, k->src);
    enum dtype d = literals_dtype(k->l.c, k->l.n, float_dtype(own));
    uint16_t node = k->src;
    if (!dtype_is_float(d) && k->l.n->op == OP_NANMEAN && dtype_is_float(own))
        return rules_bad_dtype(k->l.c, k->l.n, d, "float32 or float64", "of floats is a float");
    if (!dtype_is_float(d))
        return mean_of_integers(k, d, ret);
    if (literals_find(k->l.c, k->l.n, "dtype") != NULL)
        node = lower_cast(&k->l, node, d);
    else if (dtype_is_integer(own) && dtype_size(own) >= 4)
        node = lower_cast(&k->l, node, DTYPE_FLOAT64);
    node = reduce_masked(k, node, &zero);
    node = dtype_is_float(types_of_node(k->l.c, node)) ? reduce_sum(k, node, false)
                                                       : reduce_by(k, OP_SUM, node);
    node = lower_cast(&k->l, node, DTYPE_FLOAT64);
    node = lower_binary(&k->l, OP_DIVIDE, node, reduce_count(k, false));
    return reduce_finish(k, lower_cast(&k->l, node, d), ret);
}

/* ---- var, std ---- */

/* A float that holds all values of the source. */
static uint16_t float_source(struct reduce *k)
{
    enum dtype d = types_of_node(k->l.c, k->src);
    if (dtype_is_float(d))
        return k->src;
    return lower_cast(&k->l, k->src, dtype_size(d) <= 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64);
}

static uint16_t masked_squares(struct reduce *k)
{
    uint16_t x = lower_cast(&k->l, k->src, DTYPE_FLOAT64);
    uint16_t mean = reduce_beside(k, OP_SUM, reduce_masked(k, x, &zero));
    mean = lower_binary(&k->l, OP_DIVIDE, mean, reduce_count(k, true));
    uint16_t deviation = lower_binary(&k->l, OP_SUBTRACT, x, mean);
    uint16_t square = lower_binary(&k->l, OP_MULTIPLY, deviation, deviation);
    return reduce_by(k, OP_SUM, reduce_masked(k, square, &zero));
}

/* n - ddof, and 0 where that is less; nan*: NaN in place of 0. */
static uint16_t degrees_of_freedom(struct reduce *k, double ddof, bool is_nan)
{
    if (k->mask == NODE_NONE && !reduce_is_open(k)) {
        double n = (double)k->n_reduced - ddof;
        return lower_float(&k->l, DTYPE_FLOAT64, n < 0 ? 0 : n); /* NaN stays */
    }
    uint16_t none = lower_float(&k->l, DTYPE_FLOAT64, 0);
    uint16_t n = lower_binary(&k->l, OP_SUBTRACT, reduce_count(k, false),
                              lower_float(&k->l, DTYPE_FLOAT64, ddof));
    if (!is_nan)
        return lower_binary(&k->l, OP_MAXIMUM, n, none);
    return lower_where(&k->l, lower_binary(&k->l, OP_GREATER, n, none), n,
                       lower_float(&k->l, DTYPE_FLOAT64, NAN));
}

int moments_variance(struct reduce *k, struct value *ret)
{
    enum op op = (enum op)k->l.n->op;
    enum dtype own = types_of_node(k->l.c, k->src);
    enum dtype d = literals_dtype(k->l.c, k->l.n, float_dtype(own));
    double ddof = 0;
    if (!dtype_is_float(d))
        return rules_bad_dtype(k->l.c, k->l.n, d, "float32 or float64", "is computed in floats");
    if (literals_find(k->l.c, k->l.n, "ddof") != NULL)
        k->l.r = literals_number(k->l.c, k->l.n, "ddof", &ddof);
    uint16_t node = k->mask == NODE_NONE ? reduce_by(k, OP_SQUARED_DEVIATIONS, float_source(k))
                                         : masked_squares(k);
    bool is_nan = (op == OP_NANVAR || op == OP_NANSTD) && dtype_is_float(own);
    node = lower_binary(&k->l, OP_DIVIDE, node, degrees_of_freedom(k, ddof, is_nan));
    if (op == OP_STD || op == OP_NANSTD)
        node = lower_unary(&k->l, OP_SQRT, node);
    return reduce_finish(k, lower_cast(&k->l, node, d), ret);
}
