/* Who multiplies what: see multiply.h. */
#include "kernels/cuda/product/blas.h"
#include "kernels/cuda/product/product_kernels.h"

#include <assert.h>

static enum cuda_product_kind kind_of(enum dtype dtype)
{
    if (dtype == DTYPE_BOOL)
        return CUDA_PRODUCT_BOOL;
    switch (dtype_size(dtype)) {
    case 1: return CUDA_PRODUCT_8;
    case 2: return CUDA_PRODUCT_16;
    case 4: return CUDA_PRODUCT_32;
    default: return CUDA_PRODUCT_64;
    }
}

/* Without depth the kernel of integers sets the bits of 0.0 too. */
int cuda_multiply(struct cuda_blas *blas, const struct cuda_multiply *m, cuda_stream stream)
{
    if (m->n_matrices == 0 || m->n_rows == 0 || m->n_columns == 0 || (m->n_depth == 0 && m->adds))
        return 0;
    if (dtype_is_float(m->dtype) && m->n_depth > 0)
        return cuda_blas_multiply(blas, m);
    struct cuda_product product = {
        .left = m->left,
        .right = m->right,
        .result = m->result,
        .n_matrices = m->n_matrices,
        .n_rows = m->n_rows,
        .n_columns = m->n_columns,
        .n_depth = m->n_depth,
        .kind = (uint8_t)kind_of(m->dtype),
        .adds = m->adds,
    };
    return cuda_product_launch(&product, stream);
}

int cuda_mirror(const struct cuda_matrix *result, int64_t item_bytes, int64_t n_matrices,
                int64_t n_rows, cuda_stream stream)
{
    struct cuda_mirror mirror = {
        .matrix = *result,
        .n_matrices = n_matrices,
        .n_rows = n_rows,
        .item_log2 = (uint8_t)__builtin_ctzll((unsigned long long)item_bytes),
    };
    assert(INT64_C(1) << mirror.item_log2 == item_bytes && mirror.item_log2 <= 3);
    return n_matrices > 0 && n_rows > 1 ? cuda_mirror_launch(&mirror, stream) : 0;
}

int cuda_multiply_warm_up(struct cuda_blas *blas, void *scratch, uint64_t scratch_bytes,
                          cuda_stream stream)
{
    int r = cuda_product_warm_up(scratch, stream);
    return r || !blas ? r : cuda_blas_warm_up(blas, scratch, scratch_bytes);
}
