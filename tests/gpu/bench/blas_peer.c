#include "tests/gpu/bench/blas_peer.h"

#include <dlfcn.h>
#include <stddef.h>

/* Numbers of cublas_api.h and library_types.h. */
#define OPERATION_N       0
#define DATA_32F          0
#define DATA_64F          1
#define COMPUTE_32F       68
#define COMPUTE_64F       70
#define COMPUTE_32F_TF32  77
#define ALGORITHM_DEFAULT (-1)

typedef int create_fn(void **handle);
typedef int destroy_fn(void *handle);
typedef int set_stream_fn(void *handle, cuda_stream stream);
typedef int gemm_fn(void *handle, int left_op, int right_op, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                    const void *beta, void *c, int c_type, int ldc, int compute, int algorithm);
typedef int select_fn(void *handle, int n_devices, int *devices);
typedef int xt_gemm_fn(void *handle, int left_op, int right_op, size_t m, size_t n, size_t k,
                       const void *alpha, const void *a, size_t lda, const void *b, size_t ldb,
                       const void *beta, void *c, size_t ldc);

/* A function is no object: the pointer goes by its bytes. */
#define FIND(b, fn, name)                                                                          \
    union {                                                                                        \
        void *object;                                                                              \
        fn *call;                                                                                  \
    } fn##_is = {dlsym((b)->library, name)}

static int call_create(const struct blas_peer *b, const char *name, void **ret_handle)
{
    FIND(b, create_fn, name);
    return create_fn_is.object ? create_fn_is.call(ret_handle) : -1;
}

static void call_destroy(const struct blas_peer *b, const char *name, void *handle)
{
    FIND(b, destroy_fn, name);
    if (handle && destroy_fn_is.object)
        (void)destroy_fn_is.call(handle);
}

static int set_stream(const struct blas_peer *b, cuda_stream stream)
{
    FIND(b, set_stream_fn, "cublasSetStream_v2");
    return set_stream_fn_is.object ? set_stream_fn_is.call(b->handle, stream) : -1;
}

static int select_device(const struct blas_peer *b)
{
    int device = 0;
    FIND(b, select_fn, "cublasXtDeviceSelect");
    return select_fn_is.object ? select_fn_is.call(b->xt, 1, &device) : -1;
}

const char *blas_peer_open(struct blas_peer *b, cuda_stream stream)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                        "/usr/local/cuda/lib64/libcublas.so"};
    *b = (struct blas_peer){NULL};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !b->library; i++)
        b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return "cuBLAS is not on this host";
    if (call_create(b, "cublasCreate_v2", &b->handle) || set_stream(b, stream)) {
        blas_peer_close(b);
        return "cuBLAS cannot be started";
    }
    if (call_create(b, "cublasXtCreate", &b->xt) || select_device(b)) {
        call_destroy(b, "cublasXtDestroy", b->xt);
        b->xt = NULL;
    }
    return NULL;
}

void blas_peer_close(struct blas_peer *b)
{
    if (!b->library)
        return;
    call_destroy(b, "cublasXtDestroy", b->xt);
    call_destroy(b, "cublasDestroy_v2", b->handle);
    dlclose(b->library);
    *b = (struct blas_peer){NULL};
}

static const float one_32 = 1, zero_32 = 0;
static const double one_64 = 1, zero_64 = 0;

/* The library's matrices are column after column: ours are their transposes, and change sides. */
int blas_peer_multiply(const struct blas_peer *b, enum blas_kind kind, int n, const void *left,
                       const void *right, void *result)
{
    static const int computes[] = {COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_TF32};
    bool is_double = kind == BLAS_FLOAT64;
    int type = is_double ? DATA_64F : DATA_32F;
    const void *one = is_double ? (const void *)&one_64 : &one_32;
    const void *zero = is_double ? (const void *)&zero_64 : &zero_32;
    FIND(b, gemm_fn, "cublasGemmEx");
    if (!gemm_fn_is.object)
        return -1;
    return gemm_fn_is.call(b->handle, OPERATION_N, OPERATION_N, n, n, n, one, right, type, n, left,
                           type, n, zero, result, type, n, computes[kind], ALGORITHM_DEFAULT);
}

int blas_peer_multiply_host(const struct blas_peer *b, bool is_double, int64_t n, const void *left,
                            const void *right, void *result)
{
    size_t extent = (size_t)n;
    const void *one = is_double ? (const void *)&one_64 : &one_32;
    const void *zero = is_double ? (const void *)&zero_64 : &zero_32;
    FIND(b, xt_gemm_fn, is_double ? "cublasXtDgemm" : "cublasXtSgemm");
    if (!xt_gemm_fn_is.object || !b->xt)
        return -1;
    return xt_gemm_fn_is.call(b->xt, OPERATION_N, OPERATION_N, extent, extent, extent, one, right,
                              extent, left, extent, zero, result, extent);
}
