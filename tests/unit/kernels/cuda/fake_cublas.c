/* A library that has the names that kernels/cuda/product/blas_library.c looks for, all or, with
 * FAKE_IS_INCOMPLETE, all but one; its version is 12.3.4. */
int cublasCreate_v2(void);
int cublasDestroy_v2(void);
int cublasGetVersion_v2(void *handle, int *ret_version);
int cublasSetStream_v2(void);
int cublasSetWorkspace_v2(void);
int cublasSetMathMode(void);
int cublasGemmStridedBatchedEx(void);

int cublasCreate_v2(void)
{
    return 0;
}

int cublasDestroy_v2(void)
{
    return 0;
}

int cublasGetVersion_v2(void *handle, int *ret_version)
{
    (void)handle;
    *ret_version = 120304;
    return 0;
}

int cublasSetStream_v2(void)
{
    return 0;
}

int cublasSetMathMode(void)
{
    return 0;
}

int cublasGemmStridedBatchedEx(void)
{
    return 0;
}

#if !defined(FAKE_IS_INCOMPLETE)
int cublasSetWorkspace_v2(void)
{
    return 0;
}
#endif
