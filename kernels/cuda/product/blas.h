/* cuBLAS, as much of it as multiplies matrices.
 *
 * The declarations are this file's own: the library's interface is stable, from 11 on, and its
 * header is not beside every compiler. Where it is, blas_check.c compares. */
#pragma once

#include "kernels/cuda/product/multiply.h"

typedef struct cublasContext *blas_handle;

enum blas_status {
    BLAS_SUCCESS = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_ALLOC_FAILED = 3,
    BLAS_INVALID_VALUE = 7,
    BLAS_ARCH_MISMATCH = 8,
    BLAS_EXECUTION_FAILED = 13,
    BLAS_NOT_SUPPORTED = 15,
};

enum blas_operation { BLAS_AS_IT_IS = 0, BLAS_TRANSPOSED = 1 };
enum blas_type { BLAS_REAL_32 = 0, BLAS_REAL_64 = 1 };
enum blas_compute { BLAS_COMPUTE_32 = 68, BLAS_COMPUTE_64 = 70, BLAS_COMPUTE_TF32 = 77 };
#define BLAS_DEFAULT_MATH      0
#define BLAS_DEFAULT_ALGORITHM (-1)

/* Matrices are column after column; alpha and beta are on the host. The words stand for the
 * library's enums: with us ints. */
#define BLAS_GEMM_PARAMETERS(OPERATION, TYPE, COMPUTE, ALGORITHM)                                  \
    blas_handle handle, OPERATION left_operation, OPERATION right_operation, int n_rows,           \
        int n_columns, int n_depth, const void *alpha, const void *left, TYPE left_type,           \
        int left_line, long long left_stride, const void *right, TYPE right_type, int right_line,  \
        long long right_stride, const void *beta, void *result, TYPE result_type, int result_line, \
        long long result_stride, int n_matrices, COMPUTE compute, ALGORITHM algorithm
typedef int blas_gemm_function(BLAS_GEMM_PARAMETERS(int, int, int, int));

struct blas_functions {
    int (*create)(blas_handle *ret_handle);
    int (*destroy)(blas_handle handle);
    int (*get_version)(blas_handle handle, int *ret_version);
    int (*set_stream)(blas_handle handle, cuda_stream stream); /* takes the workspace away */
    int (*set_workspace)(blas_handle handle, void *workspace, size_t n_bytes);
    int (*set_math_mode)(blas_handle handle, int mode);
    blas_gemm_function *gemm_strided_batched;
    /* Of the test double alone, else NULL: it computes nothing meanwhile. */
    void (*set_warming_up)(blas_handle handle, bool is_warming_up);
};

/* blas_library.c; in programs with the test double, tests/double/blas.c. The process keeps the
 * library. 0 or no-engine. */
int blas_library_open(struct blas_functions *ret_functions, struct gad_error *error) GAD_MUST_CHECK;

/* The same from the first of `names` (NULL ends them) that can be opened; each is what dlopen()
 * takes. */
int blas_library_open_one(const char *const *names, struct blas_functions *ret_functions,
                          struct gad_error *error) GAD_MUST_CHECK;

/* blas_version.c: what get_version gives, for readers. False: too old. */
#define BLAS_VERSION_SIZE 48
bool blas_version_text(int version, char text[static BLAS_VERSION_SIZE]);

/* blas.c: of floats, with some depth. 0 or a runtime error. */
int cuda_blas_multiply(const struct cuda_blas *blas, const struct cuda_multiply *m) GAD_MUST_CHECK;
/* Multiplies what is in scratch, for the kernels' sake. */
int cuda_blas_warm_up(const struct cuda_blas *blas, void *scratch,
                      uint64_t scratch_bytes) GAD_MUST_CHECK;
