/* Whether NVIDIA's header says what blas.h says. Compiled where it is there; has no code. */
#include "kernels/cuda/product/blas.h"

#include <cublas_v2.h>

#define IS_SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

IS_SAME(BLAS_SUCCESS, CUBLAS_STATUS_SUCCESS);
IS_SAME(BLAS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
IS_SAME(BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
IS_SAME(BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
IS_SAME(BLAS_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
IS_SAME(BLAS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
IS_SAME(BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
IS_SAME(BLAS_AS_IT_IS, CUBLAS_OP_N);
IS_SAME(BLAS_TRANSPOSED, CUBLAS_OP_T);
IS_SAME(BLAS_REAL_32, CUDA_R_32F);
IS_SAME(BLAS_REAL_64, CUDA_R_64F);
IS_SAME(BLAS_COMPUTE_32, CUBLAS_COMPUTE_32F);
IS_SAME(BLAS_COMPUTE_64, CUBLAS_COMPUTE_64F);
IS_SAME(BLAS_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
IS_SAME(BLAS_DEFAULT_MATH, CUBLAS_DEFAULT_MATH);
IS_SAME(BLAS_DEFAULT_ALGORITHM, CUBLAS_GEMM_DEFAULT);
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
                   sizeof(cudaDataType) == sizeof(int) &&
                   sizeof(cublasComputeType_t) == sizeof(int) &&
                   sizeof(cublasGemmAlgo_t) == sizeof(int) && sizeof(cublasMath_t) == sizeof(int),
               "enums are ints");

#define IS_DECLARED(function, ...)                                                                 \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(function), cublasStatus_t(__VA_ARGS__)),           \
        #function)

IS_DECLARED(cublasCreate_v2, blas_handle *);
IS_DECLARED(cublasDestroy_v2, blas_handle);
IS_DECLARED(cublasGetVersion_v2, blas_handle, int *);
IS_DECLARED(cublasSetStream_v2, blas_handle, cuda_stream);
IS_DECLARED(cublasSetWorkspace_v2, blas_handle, void *, size_t);
IS_DECLARED(cublasSetMathMode, blas_handle, cublasMath_t);
IS_DECLARED(cublasGemmStridedBatchedEx,
            BLAS_GEMM_PARAMETERS(cublasOperation_t, cudaDataType, cublasComputeType_t,
                                 cublasGemmAlgo_t));
