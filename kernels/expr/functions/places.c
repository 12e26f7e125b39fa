/* Where a quantile lies among n sorted elements, by each of NumPy's methods.
 *
 * Hyndman and Fan, Sample quantiles in statistical packages, 1996, as NumPy computes them: a place
 * is a real number, its floor the element's rank and its fraction the weight of the next element.
 * The steps are NumPy's, one rounding after the other, so that ranks and weights are the same to
 * the bit. Below the first and behind the last element there is no neighbour.
 *
 * n is a node: a constant where it is known, and then all of this folds to constants, or how many
 * elements of each slice are not NaN. A KTH finds the rank by itself, by a rule that is rewritten
 * so that all methods have it.
 *
 * Called by selection.c for the ranks, and by quantiles.c for the weights.
 */
#include "kernels/expr/functions/quantiles.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/text/literals.h"

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

/* Places are inside where they are from the first element to the last one for every q of 0 to 1. */
static bool is_inside(enum quantile_method method)
{
    return method == QUANTILE_LINEAR || method == QUANTILE_LOWER || method == QUANTILE_HIGHER ||
           method == QUANTILE_NEAREST || method == QUANTILE_MIDPOINT || method == QUANTILE_MEDIAN;
}

/* By Hyndman and Fan's parameters. */
static double shift_of(enum quantile_method method, double q)
{
    double alpha;
    switch (method) {
    case QUANTILE_HAZEN: alpha = 0.5; break;
    case QUANTILE_WEIBULL: alpha = 0; break;
    case QUANTILE_MEDIAN_UNBIASED: alpha = 1 / 3.0; break;
    case QUANTILE_NORMAL_UNBIASED: alpha = 3 / 8.0; break;
    default: return 0;
    }
    return alpha + q * (1 - alpha - alpha);
}

/* NumPy rounds closest_observation's after it has taken 1 away, n * q - 1.5 up, and halves to odd
 * ones: that is n * q to the nearest, less 1. */
void places_rule(enum quantile_method method, double q, struct kth_rank *ret)
{
    *ret = (struct kth_rank){.by = KTH_RANK,
                             .rounding = KTH_FLOOR,
                             .is_inner = is_inside(method),
                             .q = q,
                             .shift = shift_of(method, q)};
    if (method == QUANTILE_HIGHER || method == QUANTILE_INVERTED_CDF)
        ret->rounding = KTH_CEIL;
    else if (method == QUANTILE_NEAREST || method == QUANTILE_CLOSEST_OBSERVATION)
        ret->rounding = KTH_RINT;
}

static uint16_t product_of(struct lower *l, const struct kth_rank *rule, uint16_t n)
{
    if (rule->is_inner)
        n = lower_binary(l, OP_SUBTRACT, n, number(l, 1));
    uint16_t product = lower_binary(l, OP_MULTIPLY, n, number(l, rule->q));
    return rule->shift == 0 ? product : lower_binary(l, OP_ADD, product, number(l, rule->shift));
}

static uint16_t within(struct lower *l, uint16_t rank, uint16_t n)
{
    uint16_t last = lower_binary(l, OP_SUBTRACT, n, number(l, 1));
    return lower_binary(l, OP_MINIMUM, lower_binary(l, OP_MAXIMUM, rank, number(l, 0)), last);
}

/* Of a method whose results are elements. */
static uint16_t rank_of(struct lower *l, const struct kth_rank *rule, uint16_t n)
{
    static const enum op roundings[] = {
        [KTH_FLOOR] = OP_FLOOR, [KTH_CEIL] = OP_CEIL, [KTH_RINT] = OP_RINT};
    uint16_t rank = lower_unary(l, roundings[rule->rounding], product_of(l, rule, n));
    if (rule->is_inner)
        return rank;
    return within(l, lower_binary(l, OP_SUBTRACT, rank, number(l, 1)), n);
}

static uint16_t place_of(struct lower *l, enum quantile_method method, const struct kth_rank *rule,
                         uint16_t n)
{
    uint16_t place = product_of(l, rule, n);
    if (!rule->is_inner)
        return lower_binary(l, OP_SUBTRACT, place, number(l, 1));
    if (method != QUANTILE_MIDPOINT)
        return place;
    uint16_t both =
        lower_binary(l, OP_ADD, lower_unary(l, OP_FLOOR, place), lower_unary(l, OP_CEIL, place));
    return lower_binary(l, OP_MULTIPLY, number(l, 0.5), both);
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

void places_find(struct lower *l, enum quantile_method method, uint16_t n, double q,
                 struct quantile_place *ret)
{
    struct kth_rank rule;
    places_rule(method, q, &rule);
    *ret = (struct quantile_place){.weight = NODE_NONE, .has_next = NODE_NONE};
    if (places_is_discrete(method)) {
        ret->rank = rank_of(l, &rule, n);
        return;
    }
    uint16_t place = place_of(l, method, &rule, n), zero = number(l, 0);
    uint16_t floor = lower_unary(l, OP_FLOOR, place);
    uint16_t fraction = lower_binary(l, OP_SUBTRACT, place, floor);
    ret->rank = floor;
    ret->weight = weight_of(l, method, fraction);
    ret->has_next =
        method == QUANTILE_MEDIAN
            ? lower_binary(l, OP_NOT_EQUAL, fraction, zero)
            : lower_binary(l, OP_LESS, place, lower_binary(l, OP_SUBTRACT, n, number(l, 1)));
    if (rule.is_inner)
        return;
    uint16_t is_behind = lower_binary(l, OP_GREATER_EQUAL, place, zero);
    ret->rank = within(l, floor, n);
    ret->has_next = lower_binary(l, OP_BITWISE_AND, is_behind, ret->has_next);
    ret->weight = lower_where(l, ret->has_next, ret->weight, zero);
}
