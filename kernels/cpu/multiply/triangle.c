/* R of the rows of a matrix, block by block.
 *
 *     | R |                  Reflections, one for each column, in groups of some columns: those of
 *     | . |  rows  ->  R     a group are found one by one, and then change all columns behind the
 *     | . |                  group at once, as a matrix product. The rows stay in the cache.
 *
 * 2 n^2 multiplications and additions for each row. Wider groups make the products larger, but more
 * is done one by one: eight columns are best up to some hundred, sixteen above; of very
 * many columns eight again, for the sake of the memory. R is as accurate as
 * that of the whole matrix at once (each column to some rounding errors of its length), however the
 * rows are cut; its bits depend on that, so blocks follow from the matrix alone.
 *
 * Called by the engine, from any thread.
 */
#include "kernels/cpu/multiply/triangle.h"

#include "kernels/cpu/multiply/multiply_internal.h"

#include <assert.h>
#include <cblas.h>

#define GROUP_FEW     8
#define GROUP_MANY    16
#define FEW_COLUMNS   160
#define WORTH_COLUMNS 512 /* what many columns need besides is as much as of so many */

/* LAPACK: of [a; b], a upper triangular, rows of b from m - l on too, blocks of nb columns. */
void dtpqrt_(const blasint *m, const blasint *n, const blasint *l, const blasint *nb, double *a,
             const blasint *lda, double *b, const blasint *ldb, double *t, const blasint *ldt,
             double *work, blasint *info);

static blasint group_of(int64_t n)
{
    int64_t group = n <= FEW_COLUMNS || n > WORTH_COLUMNS ? GROUP_FEW : GROUP_MANY;
    return (blasint)(group < n ? group : n);
}

size_t cpu_triangle_scratch_bytes(int64_t n)
{
    return 2 * (size_t)group_of(n) * (size_t)n * sizeof(double);
}

void cpu_triangle_add(int64_t n, double *r, int64_t n_rows, double *rows, int64_t apart,
                      void *scratch)
{
    blasint n_columns = (blasint)n, m = (blasint)n_rows, of_rows = (blasint)apart, info = 0;
    blasint l = 0, group = group_of(n);
    double *t = scratch, *work = t + (size_t)group * (size_t)n;
    assert(n_rows <= apart);
    multiply_enter();
    dtpqrt_(&m, &n_columns, &l, &group, r, &n_columns, rows, &of_rows, t, &group, work, &info);
    multiply_leave();
    assert(info == 0);
}
