/* Beginning and end of a reduction over one row; the pieces between are those of reduce.c,
 * reduce_extrema.c and, of sums of floats, reduce_sums.c.
 *
 * The end folds what the pieces left: a last block that is not full, and the binary counter of
 * block sums from its newest and smallest entry to its oldest. So the result depends on the
 * elements in visiting order and on nothing else.
 *
 * Squared deviations. With d = x - shift,
 *
 *     sum = n shift + sum(d),     result = sum(d d) - sum(d)^2 / n
 *
 * What the subtraction loses is, to the result, as n times the square of the shift's distance from
 * the mean. The shift is an element, so that this is at most n times the result, and where the
 * first element is an ordinary one about as large as the result. A mean that is large beside the
 * deviations does no harm. Of float32 sum(x) is there instead, and sum(d) = sum(x) - n shift: its
 * error, 2^-53 of the elements, is to the deviations at most as 2^-29 to 1, since float32 has 24
 * bits for both.
 *
 * Long rows of float32 are counted from 0 where that costs little, since their squares are exact
 * and an instruction takes one in: where the first elements differ by 1/128 of the largest, m. Then
 * the result is at least m^2 / 2^15, and at least a quarter of the mean's square where the mean is
 * beyond 2 m, so n mean^2 is at most 2^17 n times the result. That bound, an error of n 2^-36, is
 * for rows whose other elements are all equal; else the result grows with n as well. NumPy, which
 * rounds the mean to float32, adds n times the square of what that takes from it to the result:
 * about n 2^-31 of it, unless the mean happens to be a float32.
 */
#include "kernels/cpu/run/reducer.h"

#include <math.h>
#include <string.h>

void reduce_state_begin(struct reduce_state *state, const struct reduction *reduction)
{
    state->n_blocks = 0;
    state->n_taken = 0;
    state->has_value = false;
    state->u64 = reduction->op == OP_PROD;
}

double reduce_shift_f32(size_t n, const float *x)
{
    float least = x[0], most = x[0];
    for (size_t i = 1; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    double largest = -least > most ? -(double)least : (double)most;
    return (double)most - (double)least >= largest / 128 ? 0 : (double)x[0];
}

static double fold_lanes(const double *lanes)
{
    double s[REDUCE_SUM_LANES];
    memcpy(s, lanes, sizeof(s));
    for (unsigned w = REDUCE_SUM_LANES / 2; w > 0; w /= 2)
        for (unsigned j = 0; j < w; j++)
            s[j] += s[j + w];
    return s[0];
}

static double join_blocks(const double *stack, uint64_t n_blocks, double value, bool is_product)
{
    for (unsigned level = 0; level < REDUCE_LEVELS; level++) {
        bool is_top = level == REDUCE_LEVELS - 1;
        if (!(is_top ? n_blocks >> level : n_blocks >> level & 1))
            continue;
        value = is_product ? stack[level] * value : stack[level] + value;
    }
    return value;
}

static double join_sum(const struct reduce_state *state, unsigned plane)
{
    double last = state->n_taken > 0 ? fold_lanes(state->lanes[plane]) : -0.0;
    return join_blocks(state->stack[plane], state->n_blocks, last, false);
}

void reduce_state_finish(const struct reduce_state *state, const struct reduction *reduction,
                         void *ret_value, void *ret_second)
{
    bool is_product = reduction->op == OP_PROD;
    switch (reduction->op) {
    case OP_SUM:
    case OP_PROD:
        if (!dtype_is_float((enum dtype)reduction->src.dtype))
            memcpy(ret_value, &state->u64, sizeof(state->u64));
        else
            *(double *)ret_value = is_product
                                       ? join_blocks(state->stack[0], state->n_blocks, 1, true)
                                       : join_sum(state, 0);
        break;
    case OP_SQUARED_DEVIATIONS:
        *(double *)ret_value = join_sum(state, 0);
        *(double *)ret_second = join_sum(state, 1);
        break;
    case OP_COUNT_NONZERO: memcpy(ret_value, &state->u64, sizeof(state->u64)); break;
    default: /* little-endian: the low bytes of a wide integer are the narrow one */
        if (reduction->src.dtype == DTYPE_FLOAT32)
            memcpy(ret_value, &state->f32, sizeof(state->f32));
        else
            memcpy(ret_value, &state->u64, dtype_size((enum dtype)reduction->src.dtype));
        if (reduction->op == OP_ARGMIN || reduction->op == OP_ARGMAX)
            memcpy(ret_second, &state->index, sizeof(state->index));
    }
}

void reduce_deviations(uint64_t n_elements, enum dtype dtype, size_t n_cells, const double *shift,
                       double *sum, double *squares)
{
    double n = (double)n_elements;
    for (size_t i = 0; i < n_cells; i++) {
        double difference = dtype == DTYPE_FLOAT32 ? sum[i] - n * shift[i] : sum[i];
        double result = squares[i] - difference * (difference / n);
        if (squares[i] == HUGE_VAL && isfinite(sum[i]))
            result = squares[i]; /* the squares are too large, not the elements */
        squares[i] = result < 0 ? 0 : result;
        if (dtype != DTYPE_FLOAT32)
            sum[i] += n * shift[i];
    }
}
