/* Small tensors along one of their axes, seen as (left, n, right). All are float64 in C order. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

/* n x n: the tensor with the axis first, times its own transpose; the lower half of it. */
int modes_gram(int64_t left, int64_t n, int64_t right, const double *t, double *ret_gram,
               struct gad_error *error) GAD_MUST_CHECK;
/* ret, of (left, m, right): ret[l, p, r] = sum over i of matrix[i, p] * t[l, i, r], of an n x m
 * matrix; or with is_transposed, of an m x n matrix, its transpose. */
int modes_multiply(int64_t left, int64_t n, int64_t right, const double *t, int64_t m,
                   const double *matrix, bool is_transposed, double *ret,
                   struct gad_error *error) GAD_MUST_CHECK;
