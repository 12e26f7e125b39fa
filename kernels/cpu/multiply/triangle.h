/* R of the rows of a matrix, block by block: LAPACK's, from OpenBLAS, in the caller's thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* r, n x n, column by column, upper triangular, becomes the R of itself with these rows below it.
 * rows: n_rows x n, column by column, `apart` elements from one column to the next; spoilt.
 * scratch: cpu_triangle_scratch_bytes(n), 64-byte aligned. */
void cpu_triangle_add(int64_t n, double *r, int64_t n_rows, double *rows, int64_t apart,
                      void *scratch);
size_t cpu_triangle_scratch_bytes(int64_t n);
