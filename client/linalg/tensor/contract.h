/* Sums of small tensors over axes, with a factor's columns as weights: what is left of a tensor
 * after one pass is contracted to the right sides of all other axes.
 *
 * A tensor here has a last axis of `rank` columns which stay apart. It is seen as (left, right,
 * rank). All are float64 in C order.
 */
#pragma once

#include <stdint.h>

/* ret[l, r] = sum over j of t[l, j, r] * weights[j, r]. */
void contract_right(int64_t left, int64_t right, int64_t rank, const double *t,
                    const double *weights, double *ret);
/* ret[j, r] = sum over l of t[l, j, r] * weights[l, r]. */
void contract_left(int64_t left, int64_t right, int64_t rank, const double *t,
                   const double *weights, double *ret);
/* The Khatri-Rao product of n factors, of sizes[i] rows each: ret[(i, j, ...), r]. */
void contract_weights(int n, const int64_t *sizes, const double *const *factors, int64_t rank,
                      double *ret);
