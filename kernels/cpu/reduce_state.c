/* Beginning and end of a reduction over one row; the pieces between are reduce.c's.
 *
 * The end folds what the pieces left: the binary counter of block sums from its newest and smallest
 * entry to its oldest. So the result depends on the elements in visiting order and on nothing else.
 *
 * Squared deviations. With d = x - shift, where shift is one of the elements,
 *
 *     sum = n shift + sum(d),     result = sum(d d) - sum(d)^2 / n
 *
 * The subtraction loses little: shift is an element, so the square of its own distance from the
 * mean, n times, is at most n times the result, and where the first element is an ordinary one
 * about as large as the result. A mean that is large beside the deviations does no harm. Of float32
 * sum(x) is there instead, and sum(d) = sum(x) - n shift: its error, 2^-53 of the elements, is to
 * the deviations at most as 2^-29 to 1, since float32 has 24 bits for both.
 */
#include "kernels/cpu/reducer.h"

#include <math.h>
#include <string.h>

void reduce_state_begin(struct reduce_state *state, const struct reduction *reduction)
{
    state->n_blocks = 0;
    state->has_value = false;
    state->u64 = reduction->op == OP_PROD;
}

static double join_blocks(const double *stack, uint64_t n_blocks, bool is_product)
{
    double value = is_product ? 1.0 : -0.0;
    for (unsigned level = 0; level < REDUCE_LEVELS; level++) {
        bool is_top = level == REDUCE_LEVELS - 1;
        if (!(is_top ? n_blocks >> level : n_blocks >> level & 1))
            continue;
        value = is_product ? stack[level] * value : stack[level] + value;
    }
    return value;
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
            *(double *)ret_value = join_blocks(state->stack[0], state->n_blocks, is_product);
        break;
    case OP_SQUARED_DEVIATIONS:
        *(double *)ret_value = join_blocks(state->stack[0], state->n_blocks, false);
        *(double *)ret_second = join_blocks(state->stack[1], state->n_blocks, false);
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
