/* Small matrices: what is decomposed comes together again, in C order, for shapes that are no
 * squares. */
#include "client/linalg/dense.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#define MOST 12

/* Numbers between -1 and 1 that are the same each time. */
static void fill(double *elements, int n)
{
    unsigned state = 12345;
    for (int i = 0; i < n; i++) {
        state = state * 1103515245 + 12345;
        elements[i] = (double)(state >> 8 & 0xffff) / 32768 - 1;
    }
}

/* The largest difference of a from b @ c, of m x n; transpose_b: b is k x m. */
static double distance(int m, int n, int k, const double *a, const double *b, bool transpose_b,
                       const double *c)
{
    double largest = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (transpose_b ? b[l * m + i] : b[i * k + l]) * c[l * n + j];
            largest = fmax(largest, fabs(sum - a[i * n + j]));
        }
    return largest;
}

/* g = a.T @ a of an m x n matrix of numbers. */
static void fill_gram(int m, int n, double *g)
{
    double a[MOST * MOST];
    fill(a, m * n);
    const struct dense_product product = {.transpose_a = true, .m = n, .n = n, .k = m, .alpha = 1};
    cr_assert(eq(int, dense_multiply(&product, a, a, g, NULL), 0));
}

Test(dense, products_take_either_side_transposed_and_add)
{
    double a[12], b[8], c[6], want[6];
    fill(a, 12);
    fill(b, 8);
    for (int i = 0; i < 6; i++)
        c[i] = want[i] = i;
    struct dense_product product = {.m = 3, .n = 2, .k = 4, .alpha = 1, .beta = 1};
    cr_assert(eq(int, dense_multiply(&product, a, b, c, NULL), 0));
    for (int i = 0; i < 6; i++)
        c[i] -= want[i];
    cr_assert(lt(dbl, distance(3, 2, 4, c, a, false, b), 1e-14));

    product.beta = 0; /* what is there is not read */
    product.transpose_a = true;
    c[0] = NAN;
    cr_assert(eq(int, dense_multiply(&product, a, b, c, NULL), 0));
    cr_assert(lt(dbl, distance(3, 2, 4, c, a, true, b), 1e-14));
}

Test(dense, rows_are_solved_and_a_singular_matrix_gets_the_least_ridge)
{
    double g[16], rows[3 * 4], solved[3 * 4], added;
    fill_gram(7, 4, g);
    fill(rows, 12);
    memcpy(solved, rows, sizeof(rows));
    cr_assert(eq(int, dense_solve_rows(4, g, 0, 3, solved, &added, NULL), 0));
    cr_assert(eq(dbl, added, 0));
    cr_assert(lt(dbl, distance(3, 4, 4, rows, solved, false, g), 1e-12));

    double ones[4] = {1, 1, 1, 1}, row[2] = {2, 2};
    cr_assert(eq(int, dense_solve_rows(2, ones, 0, 1, row, &added, NULL), 0));
    cr_assert(lt(dbl, 0, added));
    cr_assert(lt(dbl, added, 1e-13));
    cr_assert(lt(dbl, fabs(row[0] + row[1] - 2), 1e-6));

    double zeros[4] = {0}, nans[4] = {NAN, 0, 0, NAN};
    struct gad_error error;
    cr_assert(eq(int, dense_solve_rows(2, zeros, 0, 1, row, &added, NULL), 0));
    cr_assert(lt(dbl, 0, added));
    cr_assert(eq(int, dense_solve_rows(2, nans, 0, 1, row, &added, &error), GAD_BAD_ARGUMENT));
}

Test(dense, orthogonal_decompositions_come_together_again)
{
    static const int shapes[][2] = {{7, 3}, {4, 4}, {5, 1}, {3, 7}};
    for (int i = 0; i < 4; i++) {
        int m = shapes[i][0], n = shapes[i][1], k = m < n ? m : n;
        double a[MOST * MOST], q[MOST * MOST], r[MOST * MOST], s[MOST], u[MOST * MOST],
            vt[MOST * MOST], spoilt[MOST * MOST];
        fill(a, m * n);
        memcpy(q, a, sizeof(a));
        memcpy(spoilt, a, sizeof(a));
        if (m >= n) {
            cr_assert(eq(int, dense_qr(m, n, q, r, NULL), 0));
            cr_assert(lt(dbl, distance(m, n, n, a, q, false, r), 1e-14), "%d x %d", m, n);
            cr_assert(eq(dbl, n > 1 ? r[n] : 0, 0));
        }
        cr_assert(eq(int, dense_svd(m, n, spoilt, u, s, vt, NULL), 0));
        for (int j = 0; j < k; j++) {
            cr_assert(j == 0 || s[j] <= s[j - 1]);
            for (int l = 0; l < n; l++)
                vt[j * n + l] *= s[j];
        }
        cr_assert(lt(dbl, distance(m, n, k, a, u, false, vt), 1e-14), "%d x %d", m, n);
        double alone[MOST];
        memcpy(spoilt, a, sizeof(a));
        cr_assert(eq(int, dense_svd(m, n, spoilt, NULL, alone, NULL, NULL), 0));
        for (int j = 0; j < k; j++)
            cr_assert(lt(dbl, fabs(alone[j] - s[j]), 1e-14));
    }
}

Test(dense, a_triangle_takes_rows_slab_by_slab)
{
    static const int slabs[] = {2, 5, 4}; /* fewer than columns, and more */
    double a[11 * 4], rows[11 * 4], r[16] = {0}, got[16], want[16];
    const struct dense_product square = {.transpose_a = true, .m = 4, .n = 4, .alpha = 1};
    struct dense_product of_a = square, of_r = square;
    fill(a, 11 * 4);
    memcpy(rows, a, sizeof(a));
    for (int i = 0, first = 0; i < 3; first += slabs[i++])
        cr_assert(eq(int, dense_qr_update(slabs[i], 4, r, rows + first * 4, NULL), 0));
    of_a.k = 11;
    of_r.k = 4;
    cr_assert(eq(int, dense_multiply(&of_a, a, a, want, NULL), 0));
    cr_assert(eq(int, dense_multiply(&of_r, r, r, got, NULL), 0));
    for (int i = 0; i < 16; i++)
        cr_assert(lt(dbl, fabs(got[i] - want[i]), 1e-13));
    for (int i = 0; i < 16; i++)
        cr_assert(i % 4 >= i / 4 || r[i] == 0);
}

Test(dense, eigenvectors_are_rows_and_values_fall)
{
    double g[25], vectors[25], scaled[25], values[5];
    fill_gram(9, 5, g);
    memcpy(vectors, g, sizeof(g));
    cr_assert(eq(int, dense_eigh(5, 5, vectors, values, NULL), 0));
    for (int i = 0; i < 5; i++) {
        cr_assert(i == 0 || values[i] <= values[i - 1]);
        for (int j = 0; j < 5; j++)
            scaled[i * 5 + j] = values[i] * vectors[i * 5 + j];
    }
    cr_assert(lt(dbl, distance(5, 5, 5, g, vectors, true, scaled), 1e-13));
}

Test(dense, a_few_eigenvectors_are_the_first_of_all)
{
    double a[24 * 20], g[20 * 20], all[20 * 20], some[20 * 20], values[20], largest[20];
    fill(a, 24 * 20);
    cr_assert(eq(int, dense_gram(true, 20, 24, a, 0, g, NULL), 0));
    for (int i = 0; i < 20; i++)
        for (int j = i + 1; j < 20; j++)
            g[i * 20 + j] = NAN; /* is not read */
    memcpy(all, g, sizeof(g));
    memcpy(some, g, sizeof(g));
    cr_assert(eq(int, dense_eigh(20, 20, all, values, NULL), 0));
    cr_assert(eq(int, dense_eigh(20, 3, some, largest, NULL), 0));
    for (int i = 0; i < 3; i++) {
        double product = 0;
        cr_assert(lt(dbl, fabs(values[i] - largest[i]), 1e-13 * values[0]));
        for (int j = 0; j < 20; j++)
            product += some[i * 20 + j] * all[i * 20 + j];
        cr_assert(lt(dbl, fabs(fabs(product) - 1), 1e-12));
    }
}

/* The largest k of them, in falling order; rows of `vectors` are orthonormal, and a @ v = value *
 * v. */
static void check_eigenpairs(int n, int k, const double *a, const double *expected)
{
    double vectors[20 * 20], values[20];
    memcpy(vectors, a, sizeof(double) * (size_t)(n * n));
    cr_assert(eq(int, dense_eigh(n, k, vectors, values, NULL), 0));
    for (int i = 0; i < k; i++) {
        const double *v = vectors + (ptrdiff_t)i * n;
        cr_assert(lt(dbl, fabs(values[i] - expected[i]), 1e-12), "%d of %d", i, k);
        for (int j = 0; j <= i; j++) {
            double product = 0;
            for (int m = 0; m < n; m++)
                product += v[m] * vectors[j * n + m];
            cr_assert(lt(dbl, fabs(product - (i == j)), 1e-12), "%d, %d of %d", i, j, k);
        }
        for (int j = 0; j < n; j++) {
            double product = 0;
            for (int m = 0; m < n; m++)
                product += a[j * n + m] * v[m];
            cr_assert(lt(dbl, fabs(product - values[i] * v[j]), 1e-12), "%d of %d", i, k);
        }
    }
}

/* q * diagonal * q.T of a reflection q = 1 - 2 u u.T. */
static void plant(int n, const double *diagonal, double *a)
{
    double u[20], square = 0;
    fill(u, n);
    for (int i = 0; i < n; i++)
        square += u[i] * u[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i * n + j] = 0;
            for (int m = 0; m < n; m++)
                a[i * n + j] += ((i == m) - 2 * u[i] * u[m] / square) * diagonal[m] *
                                ((j == m) - 2 * u[j] * u[m] / square);
        }
}

Test(dense, eigenvectors_of_zeros_and_of_equal_values_are_orthonormal_too)
{
    const double cases[][8] = {{9, 4, 1, 0, 0, 0, 0, 0}, /* of rank 3 */
                               {5, 5, 5, 2, 2, 1, 1, 1}, /* groups of equal ones */
                               {3, 3, 3, 3, 3, 3, 3, 3}, /* all are */
                               {0, 0, 0, 0, 0, 0, 0, 0}, /* nothing */
                               {7, 1, 0, 0, -1, -2, -2, -9}};
    const int counts[] = {1, 2, 4, 7, 8};
    double a[8 * 8];
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        plant(8, cases[i], a);
        for (size_t k = 0; k < ARRAY_LENGTH(counts); k++)
            check_eigenpairs(8, counts[k], a, cases[i]);
    }
    check_eigenpairs(1, 1, (const double[]){-2}, (const double[]){-2});
}

Test(dense, sizes_beyond_lapacks_integers_are_refused)
{
    struct gad_error error;
    double one = 1;
    cr_assert(eq(int, dense_qr(INT64_C(1) << 31, 1, &one, NULL, &error), GAD_LIMIT_EXCEEDED));
}
