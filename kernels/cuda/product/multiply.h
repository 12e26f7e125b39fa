/* Matrix products on the device: one piece of C, set or added to. cuBLAS multiplies floats;
 * integers (which wrap as NumPy's) and bools (or of ands) have kernels of our own.
 *
 * The library is opened at run time, so that a worker also starts on a host that has a driver
 * alone. It gets its workspace here, once, and allocates nothing later.
 *
 * Functions that can fail return 0 or a runtime error (runtime.h). What they put into the stream
 * has not run when they return. Addresses are the device's.
 */
#pragma once

#include "kernels/cuda/product/matrix.h"
#include "kernels/cuda/runtime.h"
#include "proto/dtype.h"

#define CUDA_BLAS_WORKSPACE_BYTES                                                                  \
    (UINT64_C(32) << 20) /* as cuBLAS advises for its fastest kernels */
#define CUDA_BLAS_WORKSPACE_ALIGN 256u

struct cuda_blas;

/* The library's handle for multiplications in `stream`. workspace: device memory, for the handle's
 * life; fewer bytes than CUDA_BLAS_WORKSPACE_BYTES are fine. 0; no-engine: the library is not to be
 * had or of no use, `error` says why; device-fault: it could not be started. */
int cuda_blas_open(void *workspace, uint64_t workspace_bytes, cuda_stream stream,
                   struct cuda_blas **ret_blas, struct gad_error *error) GAD_MUST_CHECK;
/* NULL. Nothing of it is in the stream. */
struct cuda_blas *cuda_blas_close(struct cuda_blas *blas);
const char *cuda_blas_version(const struct cuda_blas *blas); /* "cuBLAS 13.0.2" */

struct cuda_multiply {
    enum dtype dtype;
    bool adds;    /* to what is in the result; else it is set */
    bool is_tf32; /* float32 may be rounded to TF32's 10 bits before it is multiplied */
    int64_t n_matrices, n_rows, n_columns, n_depth; /* depth 0: the result is set to 0 */
    struct cuda_matrix left, right;                 /* n_rows x n_depth, n_depth x n_columns */
    struct cuda_matrix result;                      /* n_rows x n_columns, row after row */
};

/* blas: not read for integers and bools. The bits depend on the extents, the layouts and the device
 * alone. */
int cuda_multiply(struct cuda_blas *blas, const struct cuda_multiply *m,
                  cuda_stream stream) GAD_MUST_CHECK;

/* Copies what lies below the diagonal of square matrices to above it. */
int cuda_mirror(const struct cuda_matrix *result, int64_t item_bytes, int64_t n_matrices,
                int64_t n_rows, cuda_stream stream) GAD_MUST_CHECK;

/* Runs the kernels that products use once: ours, and of cuBLAS those that it takes for matrices of
 * up to the planner's blocks, as far as such fit into scratch, which is device memory that nobody
 * uses. CUDA_MULTIPLY_SCRATCH_BYTES are enough for all, a few MiB for some. blas may be NULL. */
#define CUDA_MULTIPLY_SCRATCH_BYTES (UINT64_C(32) << 20)
int cuda_multiply_warm_up(struct cuda_blas *blas, void *scratch, uint64_t scratch_bytes,
                          cuda_stream stream) GAD_MUST_CHECK;
