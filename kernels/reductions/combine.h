/* Combining the planes of two nodes (kernels/reductions/reduce.h), element by element: left = left
 * with right. The planes do not overlap. */
#pragma once

#include "proto/dtype.h"
#include "kernels/ops.h"

#include <stdint.h>

/* op: SUM, PROD, MIN, MAX, COUNT_NONZERO or BINCOUNT; dtype: of the plane. */
void combine_values(enum op op, enum dtype dtype, size_t n, void *left, const void *right);

/* ARGMIN, or ARGMAX. */
void combine_arguments(bool is_min, enum dtype dtype, size_t n, void *left, int64_t *left_index,
                       const void *right, const int64_t *right_index);

/* SQUARED_DEVIATIONS: sums and squared deviations of n_left and n_right elements, neither 0. */
struct deviations {
    double *sums, *squares;
    uint64_t n_elements;
};
void combine_deviations(size_t n, const struct deviations *left, const struct deviations *right);

/* QR_R: two upper triangles of n columns, column by column, become that of both below each other.
 * The right one is spoilt. (triangles.c) */
void combine_triangles(size_t n, double *left, double *right);
