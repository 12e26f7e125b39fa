/* Matrices in device memory, one after the other: for multiply.h and for the kernels. */
#pragma once

#include <stdint.h>

/* Strides in bytes: one of row_bytes and column_bytes is the item's size, the other a multiple of
 * it. */
struct cuda_matrix {
    char *base;
    int64_t row_bytes, column_bytes; /* from one row, one column, to the next */
    int64_t matrix_bytes;            /* from one matrix to the next; 0: all the same one */
};
