/* The loops over the cells of two nodes. They run once a grain over all of its cells, so they are
 * written for the compiler to vectorise: no branches, pointers that do not alias. Compiled with -O3
 * for the processor's baseline; wider vectors would wait for the cache, where nodes lie.
 *
 * One pass over the left plane (read and written) and the right one (read), in order. The bits do
 * not depend on vectors: every cell is one operation.
 *
 * MIN and MAX: NaN stays whichever side it is on, of equals (0.0 and -0.0 too) the left one stays.
 * Integer sums and products wrap; they are done without sign, which gives the same bits.
 *
 * Squared deviations, with n elements on each side (Chan, Golub, LeVeque, 1979):
 *
 *     d = sum_right / n_right - sum_left / n_left
 *     squares = squares_left + squares_right + d * d * (n_left * n_right / (n_left + n_right))
 *
 * Called by node.c.
 */
#include "kernels/reductions/combine.h"

#include <assert.h>

typedef void combine_kernel(size_t n, void *left, const void *right);

#define COMBINE(name, T, expression)                                                               \
    static void name##_##T(size_t n, void *left, const void *right)                                \
    {                                                                                              \
        T *restrict ls = left;                                                                     \
        const T *restrict rs = right;                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            T l = ls[i], r = rs[i];                                                                \
            ls[i] = (T)(expression);                                                               \
        }                                                                                          \
    }

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

COMBINE(sum, u64, l + r)
COMBINE(sum, f64, l + r)
COMBINE(prod, u64, l *r)
COMBINE(prod, f64, l *r)

#define COMBINE_INTEGERS(T) COMBINE(min, T, r < l ? r : l) COMBINE(max, T, r > l ? r : l)
COMBINE_INTEGERS(i8)
COMBINE_INTEGERS(i16)
COMBINE_INTEGERS(i32)
COMBINE_INTEGERS(i64)
COMBINE_INTEGERS(u8)
COMBINE_INTEGERS(u16)
COMBINE_INTEGERS(u32)
COMBINE_INTEGERS(u64)
#define COMBINE_FLOATS(T)                                                                          \
    COMBINE(min, T, ((l <= r) | (l != l)) ? l : r) COMBINE(max, T, ((l >= r) | (l != l)) ? l : r)
COMBINE_FLOATS(f32)
COMBINE_FLOATS(f64)

#define ROW(name)                                                                                  \
    {                                                                                              \
        [DTYPE_BOOL] = name##_u8, [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16,            \
        [DTYPE_INT32] = name##_i32, [DTYPE_INT64] = name##_i64, [DTYPE_UINT8] = name##_u8,         \
        [DTYPE_UINT16] = name##_u16, [DTYPE_UINT32] = name##_u32, [DTYPE_UINT64] = name##_u64,     \
        [DTYPE_FLOAT32] = name##_f32, [DTYPE_FLOAT64] = name##_f64                                 \
    }
static combine_kernel *const minima[DTYPE_COUNT] = ROW(min), *const maxima[DTYPE_COUNT] = ROW(max);

static combine_kernel *find_kernel(enum op op, enum dtype dtype)
{
    bool is_float = dtype == DTYPE_FLOAT64;
    switch (op) {
    case OP_SUM:
    case OP_BINCOUNT:
    case OP_COUNT_NONZERO: return is_float ? sum_f64 : sum_u64;
    case OP_PROD: return is_float ? prod_f64 : prod_u64;
    case OP_MIN: return minima[dtype];
    default: assert(op == OP_MAX); return maxima[dtype];
    }
}

void combine_values(enum op op, enum dtype dtype, size_t n, void *left, const void *right)
{
    find_kernel(op, dtype)(n, left, right);
}

typedef void argument_kernel(size_t n, void *left, int64_t *left_index, const void *right,
                             const int64_t *right_index);

/* Index -1: nothing was taken in on that side. Only floats are not equal to
 * themselves. */
#define COMBINE_ARGUMENT(name, T, is_better)                                                       \
    static void arg##name##_##T(size_t n, void *left, int64_t *left_index, const void *right,      \
                                const int64_t *right_index)                                        \
    {                                                                                              \
        T *restrict ls = left;                                                                     \
        const T *restrict rs = right;                                                              \
        int64_t *restrict lis = left_index;                                                        \
        const int64_t *restrict ris = right_index;                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            T l = ls[i], r = rs[i];                                                                \
            int64_t li = lis[i], ri = ris[i];                                                      \
            bool is_nan_l = l != l, is_nan_r = r != r;                                             \
            bool is_new = (l == l) & (is_nan_r | (r is_better l));                                 \
            bool is_tied = (l == r) | (is_nan_l & is_nan_r);                                       \
            bool is_taken = (ri >= 0) & ((li < 0) | is_new | (is_tied & (ri < li)));               \
            ls[i] = is_taken ? r : l;                                                              \
            lis[i] = is_taken ? ri : li;                                                           \
        }                                                                                          \
    }
#define COMBINE_ARGUMENTS(T) COMBINE_ARGUMENT(min, T, <) COMBINE_ARGUMENT(max, T, >)
COMBINE_ARGUMENTS(i8)
COMBINE_ARGUMENTS(i16)
COMBINE_ARGUMENTS(i32)
COMBINE_ARGUMENTS(i64)
COMBINE_ARGUMENTS(u8)
COMBINE_ARGUMENTS(u16)
COMBINE_ARGUMENTS(u32)
COMBINE_ARGUMENTS(u64)
COMBINE_ARGUMENTS(f32)
COMBINE_ARGUMENTS(f64)
static argument_kernel *const argmins[DTYPE_COUNT] = ROW(argmin), *const argmaxs[DTYPE_COUNT] =
                                                                      ROW(argmax);

void combine_arguments(bool is_min, enum dtype dtype, size_t n, void *left, int64_t *left_index,
                       const void *right, const int64_t *right_index)
{
    (is_min ? argmins : argmaxs)[dtype](n, left, left_index, right, right_index);
}

void combine_deviations(size_t n, const struct deviations *left, const struct deviations *right)
{
    double n_left = (double)left->n_elements, n_right = (double)right->n_elements;
    double weight = n_left / (n_left + n_right) * n_right;
    double *restrict sums = left->sums, *restrict squares = left->squares;
    const double *restrict right_sums = right->sums, *restrict right_squares = right->squares;

    assert(left->n_elements > 0 && right->n_elements > 0);
    for (size_t i = 0; i < n; i++) {
        double d = right_sums[i] / n_right - sums[i] / n_left;
        squares[i] = (squares[i] + right_squares[i]) + d * d * weight;
        sums[i] += right_sums[i];
    }
}
