/* Factors to begin with: random, or leading singular vectors.
 *
 * Singular vectors are those of a sketch, of one read. With random factors w the rows t of the read
 * are the tensor times a random matrix, whose range is nearly that of the leading singular vectors
 * along the slabs' axis; rest = x times t is then, up to t's own scale, the tensor that is cut to
 * that range. Vectors along the other axes are those of rest.
 */
#include "client/linalg/tensor/cp_state.h"
#include "client/linalg/dense.h"
#include "client/linalg/tensor/modes.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Leading eigenvectors as columns; where there are more columns than elements, what is there stays.
 */
static int take_vectors(struct cp *cp, int axis, const double *rest, int64_t left, int64_t right,
                        struct gad_error *error)
{
    int64_t n = cp->passes.shape[axis], rank = cp->slabs.rank;
    double *factor = slabs_factor(&cp->slabs, axis);
    _cleanup_free_ double *gram = malloc(sizeof(double) * (size_t)(n * n));
    _cleanup_free_ double *values = malloc(sizeof(double) * (size_t)n);
    if (!gram || !values)
        return error_set(error, GAD_NO_MEMORY, NULL, "the process has no memory left");
    int r = modes_gram(left, n, right, rest, gram, error);
    if (r == 0)
        r = dense_eigh(n, min_i64(n, rank), gram, values, error);
    for (int64_t q = 0; r == 0 && q < min_i64(n, rank); q++)
        for (int64_t i = 0; i < n; i++) {
            double element = gram[q * n + i];
            factor[i * rank + q] = cp->options.nonnegative ? fabs(element) : element;
        }
    return r;
}

#define MOST_VECTORS 4096 /* elements along an axis of which a gram is made */

static int start_svd(struct cp *cp, struct gad_error *error)
{
    struct slabs *s = &cp->slabs;
    int64_t rank = s->rank, left = 1, right = slabs_n_rest(s) * rank;
    int r = slabs_draw(s, "normal", cp->options.seed, error);
    if (r == 0)
        r = slabs_read_plain(s, true, error);
    if (r == 0)
        r = slabs_check_finite(s, error);
    if (r == 0)
        r = slabs_draw(s, "uniform", cp->options.seed, error); /* of columns without a vector */
    for (int i = 0; i < s->n_others && r == 0 && !cp->passes.only_plans; i++) {
        int64_t n = cp->passes.shape[s->others[i]];
        right /= n;
        if (n <= MOST_VECTORS)
            r = take_vectors(cp, s->others[i], gad_array_data(s->rest), left, right, error);
        left *= n;
    }
    return r;
}

int cp_start(struct cp *cp, struct gad_error *error)
{
    int r = cp->options.init == GAD_CP_SVD
                ? start_svd(cp, error)
                : slabs_draw(&cp->slabs, "uniform", cp->options.seed, error);
    for (int i = 0; i < cp->passes.ndim && r == 0; i++)
        r = cp_make_gram(cp, i, error);
    return r;
}
