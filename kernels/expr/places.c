/* Where a quantile lies among n sorted elements, by each of NumPy's methods.
 *
 * Hyndman and Fan, Sample quantiles in statistical packages, 1996, as NumPy computes them: a place
 * is a real number, its floor the element's rank and its fraction the weight of the next element.
 * The steps are NumPy's, one rounding after the other, so that ranks and weights are the same to
 * the bit. Below the first and behind the last element there is no neighbour.
 *
 * n is a node: a constant where it is known, and then all of this folds to constants, or how many
 * elements of each slice are not NaN.
 *
 * Called by selection.c for the ranks, and by quantiles.c for the weights.
 */
#include "kernels/expr/quantiles.h"

int places_method(struct compiler *c, const struct ast_node *n, enum quantile_method *ret)
{
    static const char *const words[QUANTILE_N_METHODS] = {
        [QUANTILE_LINEAR] = "linear",
        [QUANTILE_LOWER] = "lower",
        [QUANTILE_HIGHER] = "higher",
        [QUANTILE_NEAREST] = "nearest",
        [QUANTILE_MIDPOINT] = "midpoint",
        [QUANTILE_INVERTED_CDF] = "inverted_cdf",
        [QUANTILE_AVERAGED_INVERTED_CDF] = "averaged_inverted_cdf",
        [QUANTILE_CLOSEST_OBSERVATION] = "closest_observation",
        [QUANTILE_INTERPOLATED_INVERTED_CDF] = "interpolated_inverted_cdf",
        [QUANTILE_HAZEN] = "hazen",
        [QUANTILE_WEIBULL] = "weibull",
        [QUANTILE_MEDIAN_UNBIASED] = "median_unbiased",
        [QUANTILE_NORMAL_UNBIASED] = "normal_unbiased",
    };
    unsigned word = QUANTILE_LINEAR;
    int r = literals_word(c, n, "method", words, QUANTILE_N_METHODS, &word);
    *ret = (enum quantile_method)word;
    return r;
}

bool places_is_discrete(enum quantile_method method)
{
    return method == QUANTILE_LOWER || method == QUANTILE_HIGHER || method == QUANTILE_NEAREST ||
           method == QUANTILE_INVERTED_CDF || method == QUANTILE_CLOSEST_OBSERVATION;
}

static uint16_t number(struct lower *l, double value)
{
    return lower_float(l, DTYPE_FLOAT64, value);
}

/* n*q + (alpha + q*(1 - alpha - beta)) - 1 */
static uint16_t place_of_parameters(struct lower *l, uint16_t n, double q, double alpha,
                                    double beta)
{
    uint16_t place = lower_binary(l, OP_MULTIPLY, n, number(l, q));
    place = lower_binary(l, OP_ADD, place, number(l, alpha + q * (1 - alpha - beta)));
    return lower_binary(l, OP_SUBTRACT, place, number(l, 1));
}

static uint16_t place_of(struct lower *l, enum quantile_method method, uint16_t n, double q)
{
    uint16_t linear =
        lower_binary(l, OP_MULTIPLY, lower_binary(l, OP_SUBTRACT, n, number(l, 1)), number(l, q));
    uint16_t part = lower_binary(l, OP_MULTIPLY, n, number(l, q));
    part = lower_binary(l, OP_SUBTRACT, part, number(l, 1));
    switch (method) {
    case QUANTILE_LOWER: return lower_unary(l, OP_FLOOR, linear);
    case QUANTILE_HIGHER: return lower_unary(l, OP_CEIL, linear);
    case QUANTILE_NEAREST: return lower_unary(l, OP_RINT, linear);
    case QUANTILE_MIDPOINT:
        linear = lower_binary(l, OP_ADD, lower_unary(l, OP_FLOOR, linear),
                              lower_unary(l, OP_CEIL, linear));
        return lower_binary(l, OP_MULTIPLY, number(l, 0.5), linear);
    case QUANTILE_INVERTED_CDF:
    case QUANTILE_AVERAGED_INVERTED_CDF: return part;
    case QUANTILE_CLOSEST_OBSERVATION: return lower_binary(l, OP_SUBTRACT, part, number(l, 0.5));
    case QUANTILE_INTERPOLATED_INVERTED_CDF: return place_of_parameters(l, n, q, 0, 1);
    case QUANTILE_HAZEN: return place_of_parameters(l, n, q, 0.5, 0.5);
    case QUANTILE_WEIBULL: return place_of_parameters(l, n, q, 0, 0);
    case QUANTILE_MEDIAN_UNBIASED: return place_of_parameters(l, n, q, 1 / 3.0, 1 / 3.0);
    case QUANTILE_NORMAL_UNBIASED: return place_of_parameters(l, n, q, 3 / 8.0, 3 / 8.0);
    default: return linear;
    }
}

/* The element at the place's floor or the one behind it, from the first on. */
static uint16_t rank_of_step(struct lower *l, enum quantile_method method, uint16_t place,
                             uint16_t floor, uint16_t fraction)
{
    uint16_t zero = number(l, 0), stays = lower_binary(l, OP_EQUAL, fraction, zero);
    if (method == QUANTILE_CLOSEST_OBSERVATION) { /* where it is odd */
        uint16_t half = lower_binary(l, OP_MULTIPLY, floor, number(l, 0.5));
        half = lower_binary(l, OP_MULTIPLY, lower_unary(l, OP_FLOOR, half), number(l, 2));
        stays = lower_binary(l, OP_BITWISE_AND, stays, lower_binary(l, OP_NOT_EQUAL, floor, half));
    }
    uint16_t rank = lower_where(l, stays, floor, lower_binary(l, OP_ADD, floor, number(l, 1)));
    return lower_where(l, lower_binary(l, OP_LESS, place, zero), zero, rank);
}

static uint16_t weight_of(struct lower *l, enum quantile_method method, uint16_t fraction)
{
    uint16_t is_whole = lower_binary(l, OP_EQUAL, fraction, number(l, 0));
    switch (method) {
    case QUANTILE_AVERAGED_INVERTED_CDF:
        return lower_where(l, is_whole, number(l, 0.5), number(l, 1));
    case QUANTILE_MIDPOINT: return lower_where(l, is_whole, number(l, 0), number(l, 0.5));
    default: return fraction;
    }
}

/* From the first element to the last one for every q of 0 to 1. */
static bool is_inside(enum quantile_method method)
{
    return method == QUANTILE_LINEAR || method == QUANTILE_LOWER || method == QUANTILE_HIGHER ||
           method == QUANTILE_NEAREST || method == QUANTILE_MIDPOINT || method == QUANTILE_MEDIAN;
}

void places_find(struct lower *l, enum quantile_method method, uint16_t n, double q,
                 struct quantile_place *ret)
{
    uint16_t place = place_of(l, method, n, q), zero = number(l, 0);
    uint16_t floor = lower_unary(l, OP_FLOOR, place);
    uint16_t fraction = lower_binary(l, OP_SUBTRACT, place, floor);
    uint16_t last = lower_binary(l, OP_SUBTRACT, n, number(l, 1));
    ret->rank = floor;
    ret->weight = weight_of(l, method, fraction);
    ret->has_next = method == QUANTILE_MEDIAN ? lower_binary(l, OP_NOT_EQUAL, fraction, zero)
                                              : lower_binary(l, OP_LESS, place, last);
    if (is_inside(method))
        return;
    uint16_t is_behind = lower_binary(l, OP_GREATER_EQUAL, place, zero);
    ret->has_next = lower_binary(l, OP_BITWISE_AND, is_behind, ret->has_next);
    ret->weight = lower_where(l, ret->has_next, ret->weight, zero);
    if (method == QUANTILE_INVERTED_CDF || method == QUANTILE_CLOSEST_OBSERVATION)
        ret->rank = rank_of_step(l, method, place, floor, fraction);
    else
        ret->rank = lower_binary(l, OP_MINIMUM, lower_binary(l, OP_MAXIMUM, floor, zero), last);
}
