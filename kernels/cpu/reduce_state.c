/* Beginning and end of a reduction over one box; the strips between are reduce.c's.
 *
 * The end folds what the strips left: the binary counter of block sums from its newest and smallest
 * entry to its oldest, and the lanes of float extremes as reduce.c folds a block. So the result
 * depends on the elements in visiting order and on nothing else.
 */
#include "kernels/cpu/run.h"

#include <math.h>

static void fill_lanes(struct reduce_state *state, enum dtype dtype, double value)
{
    for (int i = 0; i < REDUCE_LANES; i++) {
        if (dtype == DTYPE_FLOAT32)
            state->lanes_f32[i] = (float)value;
        else
            state->lanes_f64[i] = value;
    }
}

void reduce_state_init(struct reduce_state *state, const struct reduction *reduction)
{
    enum dtype dtype = reduction->src.dtype;
    unsigned n_bits = 8 * (unsigned)dtype_size(dtype);
    bool is_min = reduction->op == OP_MIN;
    state->n_blocks = 0;
    state->u64 = 0;
    if (reduction->op != OP_MIN && reduction->op != OP_MAX)
        return;
    if (dtype_is_float(dtype))
        fill_lanes(state, dtype, is_min ? HUGE_VAL : -HUGE_VAL);
    else if (dtype_is_signed(dtype))
        state->i64 = is_min ? INT64_MAX >> (64 - n_bits) : INT64_MIN >> (64 - n_bits);
    else if (dtype == DTYPE_BOOL)
        state->u64 = is_min;
    else
        state->u64 = is_min ? UINT64_MAX >> (64 - n_bits) : 0;
}

static double sum_of_blocks(const struct reduce_state *state)
{
    double sum = -0.0;
    for (unsigned level = 0; level < REDUCE_LEVELS - 1; level++) {
        if (state->n_blocks >> level & 1)
            sum = state->stack[level] + sum;
    }
    if (state->n_blocks >> (REDUCE_LEVELS - 1))
        sum = state->stack[REDUCE_LEVELS - 1] + sum;
    return sum;
}

#define FOLD(T)                                                                                    \
    static T fold_##T(const T *lanes, bool is_min)                                                 \
    {                                                                                              \
        T lane[REDUCE_LANES];                                                                      \
        for (int j = 0; j < REDUCE_LANES; j++)                                                     \
            lane[j] = lanes[j];                                                                    \
        for (int w = REDUCE_LANES / 2; w > 0; w /= 2) {                                            \
            for (int j = 0; j < w; j++) {                                                          \
                T a = lane[j], b = lane[j + w];                                                    \
                bool is_first = is_min ? a < b : a > b;                                            \
                lane[j] = is_first || isnan(a) ? a : b;                                            \
            }                                                                                      \
        }                                                                                          \
        return lane[0];                                                                            \
    }
FOLD(float)
FOLD(double)

void reduce_state_finish(const struct reduce_state *state, const struct reduction *reduction,
                         struct partial *ret_partial)
{
    bool is_min = reduction->op == OP_MIN, is_extremum = is_min || reduction->op == OP_MAX;
    *ret_partial = (struct partial){.value.u64 = 0};
    if (is_extremum && reduction->src.dtype == DTYPE_FLOAT32)
        ret_partial->value.f32 = fold_float(state->lanes_f32, is_min);
    else if (is_extremum && reduction->src.dtype == DTYPE_FLOAT64)
        ret_partial->value.f64 = fold_double(state->lanes_f64, is_min);
    else if (reduction->op == OP_SUM && dtype_is_float(reduction->src.dtype))
        ret_partial->value.f64 = sum_of_blocks(state);
    else
        ret_partial->value.u64 = state->u64;
}
