/* What the rules of quantiles share: where a quantile lies among sorted elements, and the elements
 * at such places. */
#pragma once

#include "kernels/expr/functions/reductions.h"

#define QUANTILES_MAX 8 /* of one call */

enum quantile_method {
    QUANTILE_LINEAR,
    QUANTILE_LOWER,
    QUANTILE_HIGHER,
    QUANTILE_NEAREST,
    QUANTILE_MIDPOINT,
    QUANTILE_INVERTED_CDF,
    QUANTILE_AVERAGED_INVERTED_CDF,
    QUANTILE_CLOSEST_OBSERVATION,
    QUANTILE_INTERPOLATED_INVERTED_CDF,
    QUANTILE_HAZEN,
    QUANTILE_WEIBULL,
    QUANTILE_MEDIAN_UNBIASED,
    QUANTILE_NORMAL_UNBIASED,
    QUANTILE_N_METHODS,
    QUANTILE_MEDIAN = QUANTILE_N_METHODS, /* of median(): the middle element, or the two */
};

/* Between two neighbours of n sorted elements: nodes, of n's shape or constants. */
struct quantile_place {
    uint16_t rank;     /* float64, from 0 */
    uint16_t weight;   /* float64: of the neighbour behind it; NODE_NONE: the method is discrete */
    uint16_t has_next; /* bool: there is one, and it has a say; NODE_NONE as above */
};

/* places.c */
int places_method(struct compiler *c, const struct ast_node *n,
                  enum quantile_method *ret) GAD_MUST_CHECK;
bool places_is_discrete(enum quantile_method method); /* results are elements */
/* The rank as a KTH finds it, by how many elements there are. */
void places_rule(enum quantile_method method, double q, struct kth_rank *ret);
/* n: float64, how many elements there are. */
void places_find(struct lower *l, enum quantile_method method, uint16_t n, double q,
                 struct quantile_place *ret);

/* selection.c: elements by their ranks among those of each slice, in ascending order of q. */
struct selection {
    struct reduce *k;
    enum quantile_method method;
    unsigned n;                   /* of ranks */
    const double *q;              /* in ascending order */
    bool ignores_nan;             /* floats: NaNs are no elements */
    bool needs_next;              /* also the elements behind them */
    uint16_t n_elements;          /* float64, of a slice: a constant unless ignores_nan */
    uint16_t largest;             /* of a slice: NaN where it has one; NODE_NONE: ignores_nan */
    uint16_t at[QUANTILES_MAX];   /* results, of the source's dtype: the elements, */
    uint16_t next[QUANTILES_MAX]; /* and those behind them; any where there is none */
};

/* At least one axis is reduced, and one element in it. All it gives is to be read beside the
 * source; where there are several slices, k->keeps_dims is set. */
void selection_run(struct selection *s);

/* quantiles.c */
int quantiles_apply(struct reduce *k, struct value *ret) GAD_MUST_CHECK;
