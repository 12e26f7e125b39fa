/* The kernels of matrix products and their launches: integers and bools are multiplied here, floats
 * by cuBLAS (blas.c). The code is device/product.inc and device/mirror.inc, which the host compiles
 * too.
 */
#include "kernels/cuda/device/device.h"

extern "C" {
#include "kernels/cuda/product/product_kernels.h"
}

#include "kernels/cuda/device/product_kinds.h"

#include <cuda_runtime.h>

#define MAX_ACROSS 65535 /* of a grid, in y */

/* Where there is no block, nothing is read or written. */
#define KERNEL(family, kind, arguments)                                                            \
    extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS) cuda_##family##_##kind(          \
        const __grid_constant__ arguments of, i64 first_matrix, i64 n_blocks)                      \
    {                                                                                              \
        __shared__ __align__(16) struct family##_##kind##_shared shared;                           \
        if (blockIdx.x < n_blocks)                                                                 \
            family##_##kind##_run_block(&of, &shared, first_matrix + blockIdx.y, blockIdx.x);      \
    }
KERNEL(product, u8, struct cuda_product)
KERNEL(product, u16, struct cuda_product)
KERNEL(product, u32, struct cuda_product)
KERNEL(product, u64, struct cuda_product)
KERNEL(product, b8, struct cuda_product)
KERNEL(mirror, u8, struct cuda_mirror)
KERNEL(mirror, u16, struct cuda_mirror)
KERNEL(mirror, u32, struct cuda_mirror)
KERNEL(mirror, u64, struct cuda_mirror)

typedef void product_kernel(const struct cuda_product of, i64 first_matrix, i64 n_blocks);
typedef void mirror_kernel(const struct cuda_mirror of, i64 first_matrix, i64 n_blocks);

/* As in enum cuda_product_kind; by item. */
static product_kernel *const product_kernels[CUDA_PRODUCT_N_KINDS] = {
    cuda_product_u8, cuda_product_u16, cuda_product_u32, cuda_product_u64, cuda_product_b8};
static mirror_kernel *const mirror_kernels[] = {cuda_mirror_u8, cuda_mirror_u16, cuda_mirror_u32,
                                                cuda_mirror_u64};

static u32 n_across(i64 n_matrices, i64 first)
{
    return (u32)(n_matrices - first < MAX_ACROSS ? n_matrices - first : MAX_ACROSS);
}

extern "C" int cuda_product_launch(const struct cuda_product *product, cuda_stream stream)
{
    i64 n_blocks = cuda_product_blocks(product);
    for (i64 m = 0; n_blocks > 0 && m < product->n_matrices; m += MAX_ACROSS) {
        dim3 grid((u32)n_blocks, n_across(product->n_matrices, m));
        product_kernels[product->kind]<<<grid, PRODUCT_THREADS, 0, (cudaStream_t)stream>>>(
            *product, m, n_blocks);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess)
            return (int)error;
    }
    return 0;
}

extern "C" int cuda_mirror_launch(const struct cuda_mirror *mirror, cuda_stream stream)
{
    i64 n_blocks = cuda_mirror_blocks(mirror);
    for (i64 m = 0; n_blocks > 0 && m < mirror->n_matrices; m += MAX_ACROSS) {
        dim3 grid((u32)n_blocks, n_across(mirror->n_matrices, m));
        mirror_kernels[mirror->item_log2]<<<grid, PRODUCT_THREADS, 0, (cudaStream_t)stream>>>(
            *mirror, m, n_blocks);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess)
            return (int)error;
    }
    return 0;
}

extern "C" int cuda_product_warm_up(void *scratch, cuda_stream stream)
{
    (void)scratch;
    const struct cuda_product product = {};
    const struct cuda_mirror mirror = {};
    for (u32 i = 0; i < CUDA_PRODUCT_N_KINDS; i++)
        product_kernels[i]<<<1, PRODUCT_THREADS, 0, (cudaStream_t)stream>>>(product, 0, 0);
    for (u32 i = 0; i < sizeof(mirror_kernels) / sizeof(mirror_kernels[0]); i++)
        mirror_kernels[i]<<<1, PRODUCT_THREADS, 0, (cudaStream_t)stream>>>(mirror, 0, 0);
    return (int)cudaGetLastError();
}
