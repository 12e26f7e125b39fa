/* The R of two triangles below each other: what QR_R knows of two parts of a matrix's rows.
 *
 *     | L |          Column j of the right triangle has j + 1 elements. One reflection for each
 *     | R |  -> R    column takes them to the left one's diagonal; what it does to the columns
 *                    behind it are a dot product and an addition along theirs.
 *
 * 2/3 n^3 multiplications and additions, little beside those of the rows that triangles are made
 * of. A column that is all zeros on the right needs no reflection. Scaled by its largest element,
 * so that squares neither overflow nor vanish. Sums are made in eight parts, always in the same
 * order.
 *
 * Called by node.c.
 */
#include "kernels/reductions/combine.h"

#include <math.h>
#include <stddef.h>

#define PARTS 8

static double dot(size_t n, const double *restrict a, const double *restrict b)
{
    double parts[PARTS] = {0}, sum = 0;
    size_t i = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (size_t k = 0; k < PARTS; k++)
            parts[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (size_t k = 0; k < PARTS; k++)
        sum += parts[k];
    return sum;
}

static void add(size_t n, double factor, const double *restrict from, double *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* The largest magnitude; NaN if there is one. */
static double largest(size_t n, const double *x, double most)
{
    for (size_t i = 0; i < n; i++)
        most = isnan(most) || fabs(x[i]) <= most ? most : fabs(x[i]);
    return most;
}

/* x becomes v of the reflection 1 - factor (1, v) (1, v)^T that takes (*head, x) to
 * (a new *head, 0). Returns the factor. */
static double reflect(size_t n, double *head, double *x)
{
    double scale = largest(n, x, 0);
    if (scale == 0)
        return 0;
    scale = largest(1, head, scale);
    for (size_t i = 0; i < n; i++)
        x[i] /= scale;
    double first = *head / scale, norm = sqrt(first * first + dot(n, x, x));
    double beta = first >= 0 ? -norm : norm, below = first - beta;
    for (size_t i = 0; i < n; i++)
        x[i] /= below;
    *head = beta * scale;
    return -below / beta;
}

void combine_triangles(size_t n, double *left, double *right)
{
    for (size_t i = 0; i < n; i++) {
        double *v = right + i * n, *diagonal = left + i * n + i;
        double factor = reflect(i + 1, diagonal, v);
        for (size_t j = i + 1; j < n && factor != 0; j++) {
            double *head = left + j * n + i, *below = right + j * n;
            double step = -factor * (*head + dot(i + 1, v, below));
            *head += step;
            add(i + 1, step, v, below);
        }
    }
}
