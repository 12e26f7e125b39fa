/* Multiplications of floats by cuBLAS.
 *
 * cuBLAS has matrices column after column, ours are row after row: read as theirs, they are
 * transposed. So C^T = right^T @ left^T is asked for, which is ours row after row again, and the
 * operands change places.
 *
 * float32 is computed in float32, unless the request allows TF32. With a workspace of its own and
 * one stream, a handle gives the same bits for the same call.
 *
 * Called by multiply.c in the thread that has the device; when the worker starts, in that which
 * starts it.
 */
#include "kernels/cuda/product/blas.h"
#include "proto/util.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_MATRICES 32768 /* of a call: some versions multiply more than 65535 wrongly */

struct cuda_blas {
    struct blas_functions functions;
    blas_handle handle;
    cuda_stream stream;
    char version[BLAS_VERSION_SIZE];
};

/* What cuBLAS says of a kernel that failed leaves open whether the context is still of use: nothing
 * may be believed. */
static int error_of(int status)
{
    switch (status) {
    case BLAS_SUCCESS: return 0;
    case BLAS_NOT_INITIALIZED: return cudaErrorInitializationError;
    case BLAS_ALLOC_FAILED: return cudaErrorMemoryAllocation;
    case BLAS_INVALID_VALUE: return cudaErrorInvalidValue;
    case BLAS_NOT_SUPPORTED: return cudaErrorNotSupported;
    case BLAS_ARCH_MISMATCH: return cudaErrorNoKernelImageForDevice;
    case BLAS_EXECUTION_FAILED: return cudaErrorLaunchFailure;
    default: return cudaErrorUnknown;
    }
}

static int create(struct cuda_blas *blas, struct gad_error *error)
{
    int version = 0, status = blas->functions.create(&blas->handle);
    if (status == BLAS_ARCH_MISMATCH)
        return error_set(error, GAD_NO_ENGINE, "engine",
                         "cuBLAS does not know this device: it is newer or older than the library");
    if (status != BLAS_SUCCESS) {
        blas->handle = NULL;
        return error_set(error, GAD_DEVICE_FAULT, NULL, "cuBLAS cannot be started: %s (status %d)",
                         cuda_error_text(error_of(status)), status);
    }
    if (blas->functions.get_version(blas->handle, &version) != BLAS_SUCCESS ||
        !blas_version_text(version, blas->version))
        return error_set(error, GAD_NO_ENGINE, "engine", "%s is too old: 11 is needed, or newer",
                         version > 0 ? blas->version : "cuBLAS");
    return 0;
}

int cuda_blas_open(void *workspace, uint64_t workspace_bytes, cuda_stream stream,
                   struct cuda_blas **ret_blas, struct gad_error *error)
{
    struct cuda_blas *blas = calloc(1, sizeof(*blas));
    assert((uintptr_t)workspace % CUDA_BLAS_WORKSPACE_ALIGN == 0);
    if (!blas)
        return error_set(error, GAD_DEVICE_FAULT, NULL, "no memory for cuBLAS");
    blas->stream = stream;
    int r = cuda_thread_bind();
    if (r)
        r = error_set(error, GAD_DEVICE_FAULT, NULL, "%s", cuda_error_text(r));
    if (r == 0)
        r = blas_library_open(&blas->functions, error);
    if (r == 0)
        r = create(blas, error);
    /* The workspace last: a stream takes it away. */
    if (r == 0 &&
        (blas->functions.set_stream(blas->handle, stream) != BLAS_SUCCESS ||
         blas->functions.set_math_mode(blas->handle, BLAS_DEFAULT_MATH) != BLAS_SUCCESS ||
         blas->functions.set_workspace(blas->handle, workspace, workspace_bytes) != BLAS_SUCCESS))
        r = error_set(error, GAD_DEVICE_FAULT, NULL, "cuBLAS refuses its workspace of %llu bytes",
                      (unsigned long long)workspace_bytes);
    if (r)
        cuda_blas_close(blas);
    else
        *ret_blas = blas;
    return r;
}

struct cuda_blas *cuda_blas_close(struct cuda_blas *blas)
{
    if (blas && blas->handle && cuda_thread_bind() == 0)
        (void)blas->functions.destroy(blas->handle);
    free(blas);
    return NULL;
}

const char *cuda_blas_version(const struct cuda_blas *blas)
{
    return blas->version;
}

/* An operand, transposed, as cuBLAS has it. */
struct laid {
    int operation, line;
    long long stride;
};

static int line_of(int64_t line_bytes, int64_t n_lines, int64_t n_across, int64_t item_bytes)
{
    int64_t line = line_bytes / item_bytes;
    assert(line_bytes % item_bytes == 0 && (line >= n_across || n_lines == 1));
    line = line < n_across ? n_across : line; /* of a single line nobody needs to know it */
    assert(line <= INT_MAX);
    return (int)line;
}

static struct laid lay(const struct cuda_matrix *m, int64_t n_rows, int64_t n_columns,
                       int64_t item_bytes)
{
    struct laid laid = {.stride = m->matrix_bytes / item_bytes};
    bool is_by_rows =
        m->column_bytes == item_bytes && (n_rows == 1 || m->row_bytes >= n_columns * item_bytes);
    assert(is_by_rows || n_columns == 1 || m->row_bytes == item_bytes);
    assert(m->matrix_bytes % item_bytes == 0);
    laid.operation = is_by_rows ? BLAS_AS_IT_IS : BLAS_TRANSPOSED;
    laid.line = is_by_rows ? line_of(m->row_bytes, n_rows, n_columns, item_bytes)
                           : line_of(m->column_bytes, n_columns, n_rows, item_bytes);
    return laid;
}

int cuda_blas_multiply(const struct cuda_blas *blas, const struct cuda_multiply *m)
{
    static const float one_32 = 1, zero_32 = 0;
    static const double one_64 = 1, zero_64 = 0;
    bool is_double = m->dtype == DTYPE_FLOAT64;
    int type = is_double ? BLAS_REAL_64 : BLAS_REAL_32;
    int compute = is_double ? BLAS_COMPUTE_64 : m->is_tf32 ? BLAS_COMPUTE_TF32 : BLAS_COMPUTE_32;
    const void *one = is_double ? (const void *)&one_64 : &one_32;
    const void *zero = is_double ? (const void *)&zero_64 : &zero_32;
    int64_t item_bytes = (int64_t)dtype_size(m->dtype);
    struct laid left = lay(&m->left, m->n_rows, m->n_depth, item_bytes);
    struct laid right = lay(&m->right, m->n_depth, m->n_columns, item_bytes);
    int line = line_of(m->result.row_bytes, m->n_rows, m->n_columns, item_bytes);

    assert(m->result.column_bytes == item_bytes);
    assert(m->n_rows <= INT_MAX && m->n_columns <= INT_MAX && m->n_depth <= INT_MAX);
    int r = cuda_thread_bind();
    for (int64_t i = 0; !r && i < m->n_matrices; i += MAX_MATRICES) {
        int64_t n = m->n_matrices - i < MAX_MATRICES ? m->n_matrices - i : MAX_MATRICES;
        r = error_of(blas->functions.gemm_strided_batched(
            blas->handle, right.operation, left.operation, (int)m->n_columns, (int)m->n_rows,
            (int)m->n_depth, one, m->right.base + i * m->right.matrix_bytes, type, right.line,
            right.stride, m->left.base + i * m->left.matrix_bytes, type, left.line, left.stride,
            m->adds ? one : zero, m->result.base + i * m->result.matrix_bytes, type, line,
            m->result.matrix_bytes / item_bytes, (int)n, compute, BLAS_DEFAULT_ALGORITHM));
    }
    return r;
}

/* Warming up ----------------------------------------------------------------------------------
 * A kernel's code is loaded to the device when it is first used, and which one cuBLAS takes depends
 * on types, layouts and extents. So all layouts are asked for, in extents like those of blocks and
 * of their remainders. */

struct warm_up {
    const struct cuda_blas *blas;
    char *scratch;
    uint64_t n_bytes;
    enum dtype dtype;
    bool is_tf32;
};

static int warm_up_layout(const struct warm_up *w, const int64_t *extents, bool is_left_transposed,
                          bool is_right_transposed)
{
    int64_t item = (int64_t)dtype_size(w->dtype), n_rows = extents[0], n_columns = extents[1];
    int64_t depth = extents[2], n_matrices = extents[3];
    int64_t larger = n_rows > n_columns ? n_rows : n_columns;
    uint64_t result_bytes =
        round_up_u64((uint64_t)(n_matrices * n_rows * n_columns * item), CUDA_BLAS_WORKSPACE_ALIGN);
    struct cuda_multiply m = {
        .dtype = w->dtype,
        .is_tf32 = w->is_tf32,
        .n_matrices = n_matrices,
        .n_rows = n_rows,
        .n_columns = n_columns,
        .n_depth = depth,
        /* Both operands are the same memory, for all matrices. */
        .left = {w->scratch + result_bytes, depth * item, item, 0},
        .right = {w->scratch + result_bytes, n_columns * item, item, 0},
        .result = {w->scratch, n_columns * item, item, n_rows * n_columns * item},
    };
    if (result_bytes + (uint64_t)(larger * depth * item) > w->n_bytes)
        return 0;
    if (is_left_transposed)
        m.left.row_bytes = item, m.left.column_bytes = n_rows * item;
    if (is_right_transposed)
        m.right.row_bytes = item, m.right.column_bytes = depth * item;
    return cuda_blas_multiply(w->blas, &m);
}

static int warm_up_dtype(const struct warm_up *w)
{
    static const int64_t extents[][4] = {
        /* rows, columns, depth, matrices */
        {2048, 2048, 1024, 1}, {2048, 1024, 1024, 1}, {1024, 1024, 1024, 1}, {2048, 512, 1024, 1},
        {512, 512, 1024, 1},   {1000, 1000, 1000, 1}, {333, 777, 555, 1},    {256, 256, 256, 1},
        {64, 64, 1024, 1},     {64, 64, 64, 1},       {17, 33, 5, 1},        {1000, 1, 1000, 1},
        {1, 1000, 1000, 1},    {1, 1, 1000, 1},       {256, 256, 256, 4},    {64, 64, 64, 32},
        {16, 16, 16, 256},     {5, 3, 7, 100},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(extents); i++)
        for (int layout = 0; r == 0 && layout < 4; layout++)
            r = warm_up_layout(w, extents[i], layout & 1, layout & 2);
    return r;
}

static int warm_up_all(struct warm_up *w)
{
    int r = warm_up_dtype(w);
    w->is_tf32 = true;
    if (r == 0)
        r = warm_up_dtype(w);
    w->is_tf32 = false;
    w->dtype = DTYPE_FLOAT64;
    return r ? r : warm_up_dtype(w);
}

int cuda_blas_warm_up(const struct cuda_blas *blas, void *scratch, uint64_t scratch_bytes)
{
    struct warm_up w = {blas, scratch, scratch_bytes, DTYPE_FLOAT32, false};
    if (blas->functions.set_warming_up)
        blas->functions.set_warming_up(blas->handle, true);
    int r = warm_up_all(&w);
    if (blas->functions.set_warming_up)
        blas->functions.set_warming_up(blas->handle, false);
    return r;
}
