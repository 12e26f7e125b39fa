/* What the rules of reductions share: the call, and the steps that they are written with. */
#pragma once

#include "kernels/expr/rules/lower.h"

/* One call, with what its arguments say. */
struct reduce {
    struct lower l; /* steps behind a failure do nothing */
    uint16_t src;
    uint16_t mask; /* bool, of the source's shape or to be broadcast to it; NODE_NONE: all */
    uint32_t axes; /* bits of the source's */
    bool keeps_dims;
    int64_t n_reduced; /* elements of the source for each of the result */
};

/* reduce.c */

/* axis, keepdims and where, for operations that have them. */
int reduce_begin(struct reduce *k, struct compiler *c, const struct ast_node *n,
                 const struct value *args) GAD_MUST_CHECK;
void reduce_these_axes(struct reduce *k, uint32_t axes);
/* Whether n_reduced is not known: one of the axes is open, and n_reduced what there may be at most.
 */
bool reduce_is_open(const struct reduce *k);
/* Takes what is NaN out of the mask. */
void reduce_ignore_nan(struct reduce *k);
/* The source where the mask is true, else the value. */
uint16_t reduce_masked(struct reduce *k, uint16_t src, const struct value *otherwise);
/* One reduction of the engines: its result in their dtype. */
uint16_t reduce_by(struct reduce *k, enum op op, uint16_t src);
/* The same with keepdims=True; and with it where that is needed to read it beside the source. */
uint16_t reduce_by_keeping(struct reduce *k, enum op op, uint16_t src);
uint16_t reduce_beside(struct reduce *k, enum op op, uint16_t src);
/* SUM of floats, which begins with 0, or with -0: only then it can be -0. */
uint16_t reduce_sum(struct reduce *k, uint16_t src, bool from_minus_zero);
/* How many elements the mask lets through, float64; is_beside: to be read beside the source. */
uint16_t reduce_count(struct reduce *k, bool is_beside);
/* BINCOUNT over the axes: bins is an int64 node of the source's shape, weights a float64 one or
 * NODE_NONE. The result, to be read beside the source, has one axis more, of n_bins. At least one
 * axis is reduced, or the source is a single number. */
uint16_t reduce_bincount(struct reduce *k, uint16_t bins, uint16_t weights, uint32_t n_bins,
                         bool is_cumulative);
/* KTH over the axes, to be read beside the source: keys is a uint32 or uint64 node of the source's
 * shape, and reduce_has_kth() says that there may be one. */
uint16_t reduce_kth(struct reduce *k, uint16_t keys, const struct kth_rank *place);
bool reduce_has_kth(const struct reduce *k);
/* Whether the graph reduces streams along different axes, in a way that one pass could do. */
bool reduce_streams_apart(const struct compiler *c);
/* One value for each element of the result. */
uint16_t reduce_repeat(struct reduce *k, uint16_t value);
/* That there is something to reduce where there is no identity. */
int reduce_check_not_empty(struct reduce *k) GAD_MUST_CHECK;
int reduce_finish(struct reduce *k, uint16_t node, struct value *ret) GAD_MUST_CHECK;

/* counts.c: weights=... in float64 and of what dtype they were, or NODE_NONE; an array (0,). */
int counts_weights(struct reduce *k, uint16_t *ret, enum dtype *ret_dtype) GAD_MUST_CHECK;
uint16_t counts_none(struct lower *l, enum dtype dtype);

/* moments.c, norms.c */
int moments_mean(struct reduce *k, struct value *ret) GAD_MUST_CHECK;
int moments_variance(struct reduce *k, struct value *ret) GAD_MUST_CHECK;
int norms_norm(struct reduce *k, struct value *ret) GAD_MUST_CHECK;
int norms_logsumexp(struct reduce *k, struct value *ret) GAD_MUST_CHECK;
