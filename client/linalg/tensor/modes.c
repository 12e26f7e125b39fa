/* Small tensors along one of their axes: BLAS, matrix by matrix. Called by cp_start.c, tucker and
 * tensor_given.c.
 */
#include "client/linalg/tensor/modes.h"
#include "client/linalg/dense.h"

#include <string.h>

int modes_gram(int64_t left, int64_t n, int64_t right, const double *t, double *ret_gram,
               struct gad_error *error)
{
    if (right == 1) /* rows are next to each other: one product of all */
        return dense_gram(true, n, left, t, 0, ret_gram, error);
    int r = 0;
    memset(ret_gram, 0, sizeof(*ret_gram) * (size_t)n * (size_t)n); /* of no elements, too */
    for (int64_t l = 0; l < left && r == 0; l++, t += n * right)
        r = dense_gram(false, n, right, t, l > 0, ret_gram, error);
    return r;
}

int modes_multiply(int64_t left, int64_t n, int64_t right, const double *t, int64_t m,
                   const double *matrix, bool is_transposed, double *ret, struct gad_error *error)
{
    if (right == 1) {
        const struct dense_product whole = {
            .transpose_b = is_transposed, .m = left, .n = m, .k = n, .alpha = 1};
        return dense_multiply(&whole, t, matrix, ret, error);
    }
    const struct dense_product product = {
        .transpose_a = !is_transposed, .m = m, .n = right, .k = n, .alpha = 1};
    int r = 0;
    for (int64_t l = 0; l < left && r == 0; l++, t += n * right, ret += m * right)
        r = dense_multiply(&product, matrix, t, ret, error);
    return r;
}
