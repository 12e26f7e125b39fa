/* Sums of small tensors over axes. Each reads the tensor once, in order; columns are next to each
 * other, so that the inner loop is over them. Called by cp_update.c and tensor_given.c.
 */
#include "client/linalg/tensor/contract.h"

#include <string.h>

void contract_right(int64_t left, int64_t right, int64_t rank, const double *restrict t,
                    const double *restrict weights, double *restrict ret)
{
    memset(ret, 0, sizeof(*ret) * (size_t)(left * rank));
    for (int64_t l = 0; l < left; l++, ret += rank)
        for (int64_t j = 0; j < right; j++, t += rank)
            for (int64_t r = 0; r < rank; r++)
                ret[r] += t[r] * weights[j * rank + r];
}

void contract_left(int64_t left, int64_t right, int64_t rank, const double *restrict t,
                   const double *restrict weights, double *restrict ret)
{
    memset(ret, 0, sizeof(*ret) * (size_t)(right * rank));
    for (int64_t l = 0; l < left; l++, weights += rank)
        for (int64_t j = 0; j < right; j++, t += rank)
            for (int64_t r = 0; r < rank; r++)
                ret[j * rank + r] += t[r] * weights[r];
}

void contract_weights(int n, const int64_t *sizes, const double *const *factors, int64_t rank,
                      double *ret)
{
    int64_t rows = sizes[0];
    memcpy(ret, factors[0], sizeof(*ret) * (size_t)(rows * rank));
    for (int i = 1; i < n; i++) {
        /* Backwards: row (l, j) is never before row l, which it is made of. */
        for (int64_t l = rows; l-- > 0;)
            for (int64_t j = sizes[i]; j-- > 0;)
                for (int64_t r = 0; r < rank; r++)
                    ret[(l * sizes[i] + j) * rank + r] =
                        ret[l * rank + r] * factors[i][j * rank + r];
        rows *= sizes[i];
    }
}
