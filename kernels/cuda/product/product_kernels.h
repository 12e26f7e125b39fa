/* The kernels of matrix products that are ours: multiplications of integers and bools, and the
 * mirror. Implemented by product.cu on the device, and by device/host_product.c where the same
 * source is compiled for the host, for tests. Both return 0 or a runtime error. */
#pragma once

#include "kernels/cuda/product/matrix.h"
#include "kernels/cuda/runtime.h"

/* One kernel for each item: signed and unsigned integers wrap to the same bits. */
enum cuda_product_kind {
    CUDA_PRODUCT_8,
    CUDA_PRODUCT_16,
    CUDA_PRODUCT_32,
    CUDA_PRODUCT_64,
    CUDA_PRODUCT_BOOL, /* bytes of 0 and 1: or of ands */
    CUDA_PRODUCT_N_KINDS,
};

struct cuda_product {
    struct cuda_matrix left, right, result;
    int64_t n_matrices, n_rows, n_columns, n_depth;
    uint8_t kind; /* enum cuda_product_kind */
    bool adds;
};

struct cuda_mirror {
    struct cuda_matrix matrix;
    int64_t n_matrices, n_rows;
    uint8_t item_log2;
};

/* Rows and columns that a block of threads computes. */
#define CUDA_PRODUCT_SIDE 64u
#define CUDA_MIRROR_SIDE  32u

/* Blocks of one matrix. */
static inline int64_t cuda_product_blocks(const struct cuda_product *p)
{
    return ((p->n_rows + CUDA_PRODUCT_SIDE - 1) / CUDA_PRODUCT_SIDE) *
           ((p->n_columns + CUDA_PRODUCT_SIDE - 1) / CUDA_PRODUCT_SIDE);
}

static inline int64_t cuda_mirror_blocks(const struct cuda_mirror *m)
{
    int64_t n = (m->n_rows + CUDA_MIRROR_SIDE - 1) / CUDA_MIRROR_SIDE;
    return n * n;
}

/* Nothing is launched where there is no element. */
int cuda_product_launch(const struct cuda_product *product, cuda_stream stream) GAD_MUST_CHECK;
int cuda_mirror_launch(const struct cuda_mirror *mirror, cuda_stream stream) GAD_MUST_CHECK;
/* Loads every kernel and runs it once, on nothing; the address is not followed. */
int cuda_product_warm_up(void *scratch, cuda_stream stream) GAD_MUST_CHECK;
