/* A test double of cuBLAS: what kernels/cuda/product/blas.c calls, linked in the place of
 * blas_library.c, which finds the library. Multiplications are kernels of the double: put into the
 * handle's stream, checked for order, with all faults of launches. Each element of the result is a
 * sum in the dtype, in order of the depth.
 *
 * It insists on what the real one leaves to its caller: a workspace, set after the stream, without
 * which a multiplication would allocate. The workspace itself is not touched.
 */
#include "tests/double/internal.h"

#include "kernels/cuda/product/blas.h"

#include <stdlib.h>
#include <string.h>

#define VERSION      130000
#define MAX_MATRICES 65535 /* of a call; more are nothing for every version */

struct cublasContext {
    cuda_stream stream;
    bool has_workspace, is_warming_up;
};

/* In the double's words: all but the functions' names are those of blas.h. */
struct multiplication {
    const char *left, *right;
    char *result;
    int64_t left_line, right_line, result_line; /* elements, as are strides */
    int64_t left_stride, right_stride, result_stride;
    int64_t n_rows, n_columns, n_depth, n_matrices;
    bool is_left_transposed, is_right_transposed, is_double, is_tf32, adds;
};

static float as_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bits << 1 >= 0xff000000u) /* an infinity, NaN */
        return value;
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float as_float(float value, bool is_tf32)
{
    return is_tf32 ? as_tf32(value) : value;
}

static double as_double(double value, bool is_tf32)
{
    (void)is_tf32;
    return value;
}

/* One matrix; `packed` is the left one, column after column. The innermost loop, in which all of
 * the time goes, is made of vectors at any level. No sanitizer looks at each of its accesses: they
 * lie between the ends of a column and of the sums, in one block, which its caller touches. */
#if defined(__clang__)
#define INNERMOST __attribute__((no_sanitize("address", "undefined")))
#else
#define INNERMOST                                                                                  \
    __attribute__((noinline, no_sanitize("address", "undefined"), optimize("tree-vectorize"),      \
                   optimize("vect-cost-model=dynamic")))
#endif
#define MULTIPLY(T)                                                                                \
    INNERMOST static void add_scaled_##T(T *restrict sums, const T *restrict column, T b,          \
                                         int64_t n)                                                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            sums[i] += column[i] * b;                                                              \
    }                                                                                              \
                                                                                                   \
    static void touch_##T(const volatile T *sums, const volatile T *column, int64_t n)             \
    {                                                                                              \
        if (n > 0)                                                                                 \
            (void)sums[0], (void)sums[n - 1], (void)column[0], (void)column[n - 1];                \
    }                                                                                              \
                                                                                                   \
    static void pack_##T(const struct multiplication *m, const T *left, T *packed)                 \
    {                                                                                              \
        for (int64_t l = 0; l < m->n_depth; l++)                                                   \
            for (int64_t i = 0; i < m->n_rows; i++)                                                \
                packed[l * m->n_rows + i] =                                                        \
                    as_##T(m->is_left_transposed ? left[i * m->left_line + l]                      \
                                                 : left[l * m->left_line + i],                     \
                           m->is_tf32);                                                            \
    }                                                                                              \
                                                                                                   \
    static void multiply_##T(const struct multiplication *m, int64_t matrix, void *memory)         \
    {                                                                                              \
        const T *right = (const T *)m->right + matrix * m->right_stride;                           \
        T *result = (T *)m->result + matrix * m->result_stride, *packed = memory;                  \
        T *sums = packed + m->n_rows * m->n_depth;                                                 \
        pack_##T(m, (const T *)m->left + matrix * m->left_stride, packed);                         \
        for (int64_t j = 0; j < m->n_columns; j++) {                                               \
            memset(sums, 0, (size_t)m->n_rows * sizeof(T));                                        \
            for (int64_t l = 0; l < m->n_depth; l++) {                                             \
                const T *column = packed + l * m->n_rows;                                          \
                const T b = as_##T(m->is_right_transposed ? right[l * m->right_line + j]           \
                                                          : right[j * m->right_line + l],          \
                                   m->is_tf32);                                                    \
                touch_##T(sums, column, m->n_rows);                                                \
                add_scaled_##T(sums, column, b, m->n_rows);                                        \
            }                                                                                      \
            T *to = result + j * m->result_line;                                                   \
            for (int64_t i = 0; i < m->n_rows; i++)                                                \
                to[i] = m->adds ? to[i] + sums[i] : sums[i];                                       \
        }                                                                                          \
    }
MULTIPLY(float)
MULTIPLY(double)

/* Operands are at the same distance from the result as on the device. */
static void run_multiplication(char *result, const void *arguments)
{
    struct multiplication m;
    memcpy(&m, arguments, sizeof m);
    m.left = result + (m.left - m.result);
    m.right = result + (m.right - m.result);
    m.result = result;
    void *memory = malloc((size_t)(m.n_rows * m.n_depth + m.n_rows + 1) * sizeof(double));
    if (!memory)
        double_abort("no memory");
    for (int64_t i = 0; i < m.n_matrices; i++) {
        if (m.is_double)
            multiply_double(&m, i, memory);
        else
            multiply_float(&m, i, memory);
    }
    free(memory);
}

static void add_work(const char *result, const void *arguments, struct timeline_work *ret_work)
{
    const struct multiplication *m = arguments;
    (void)result;
    const double n =
        2.0 * (double)m->n_matrices * (double)m->n_rows * (double)m->n_columns * (double)m->n_depth;
    if (m->is_double)
        ret_work->product_float64 = n;
    else if (m->is_tf32)
        ret_work->product_tf32 = n;
    else
        ret_work->product_float32 = n;
}

static void do_nothing(char *result, const void *arguments)
{
    (void)result;
    (void)arguments;
}

static int create(blas_handle *ret_handle)
{
    cudaError_t error = double_enter(true);
    const bool fails = the_double.settings.fail_blas;
    double_leave(error);
    if (error || fails)
        return error ? BLAS_NOT_INITIALIZED : BLAS_ALLOC_FAILED;
    *ret_handle = calloc(1, sizeof **ret_handle);
    return *ret_handle ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

static int destroy(blas_handle handle)
{
    free(handle);
    return BLAS_SUCCESS;
}

static int get_version(blas_handle handle, int *ret_version)
{
    (void)handle;
    *ret_version = VERSION;
    return BLAS_SUCCESS;
}

static int set_stream(blas_handle handle, cuda_stream stream)
{
    handle->stream = stream;
    handle->has_workspace = false;
    return BLAS_SUCCESS;
}

static int set_workspace(blas_handle handle, void *workspace, size_t n_bytes)
{
    const cudaError_t error = double_enter(true);
    const struct memory *m = memory_find_locked(workspace, n_bytes);
    if (!error && (!m || m->kind != MEMORY_DEVICE))
        double_abort("cuBLAS's workspace of %zu bytes at %p is not device memory", n_bytes,
                     workspace);
    double_leave(error);
    if (error || (uintptr_t)workspace % CUDA_BLAS_WORKSPACE_ALIGN != 0)
        return error ? BLAS_EXECUTION_FAILED : BLAS_INVALID_VALUE;
    handle->has_workspace = true;
    return BLAS_SUCCESS;
}

static int set_math_mode(blas_handle handle, int mode)
{
    (void)handle;
    return mode == BLAS_DEFAULT_MATH ? BLAS_SUCCESS : BLAS_NOT_SUPPORTED;
}

static struct cuda_host_range range_of(const void *base, int64_t line, int64_t n_lines,
                                       int64_t n_across, int64_t stride, int64_t n_matrices,
                                       int64_t item_bytes, bool is_written)
{
    const struct cuda_matrix m = {.base = (char *)base,
                                  .row_bytes = line * item_bytes,
                                  .column_bytes = item_bytes,
                                  .matrix_bytes = stride * item_bytes};
    return cuda_host_matrix(&m, n_matrices, n_lines, n_across, item_bytes, is_written);
}

static int launch(blas_handle handle, const struct multiplication *m)
{
    const bool is_left = m->is_left_transposed, is_right = m->is_right_transposed;
    const int64_t item = m->is_double ? 8 : 4, n = m->n_matrices;
    const struct cuda_host_launch call = {
        .kernel = handle->is_warming_up ? do_nothing : run_multiplication,
        .work = handle->is_warming_up ? NULL : add_work,
        .arguments = m,
        .n_argument_bytes = sizeof *m,
        .device_slot = m->result,
        .ranges =
            {
                range_of(m->left, m->left_line, is_left ? m->n_rows : m->n_depth,
                         is_left ? m->n_depth : m->n_rows, m->left_stride, n, item, false),
                range_of(m->right, m->right_line, is_right ? m->n_depth : m->n_columns,
                         is_right ? m->n_columns : m->n_depth, m->right_stride, n, item, false),
                range_of(m->result, m->result_line, m->n_columns, m->n_rows, m->result_stride, n,
                         item, true),
            },
        .is_warm_up = handle->is_warming_up,
    };
    return cuda_host_launch(&call, handle->stream) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS;
}

static bool is_line_long_enough(int line, int n_across)
{
    return line >= (n_across > 1 ? n_across : 1);
}

static int gemm(BLAS_GEMM_PARAMETERS(int, int, int, int))
{
    const bool is_double = result_type == BLAS_REAL_64;
    const struct multiplication m = {
        .left = left,
        .right = right,
        .result = result,
        .left_line = left_line,
        .right_line = right_line,
        .result_line = result_line,
        .left_stride = left_stride,
        .right_stride = right_stride,
        .result_stride = result_stride,
        .n_rows = n_rows,
        .n_columns = n_columns,
        .n_depth = n_depth,
        .n_matrices = n_matrices,
        .is_left_transposed = left_operation == BLAS_TRANSPOSED,
        .is_right_transposed = right_operation == BLAS_TRANSPOSED,
        .is_double = is_double,
        .is_tf32 = compute == BLAS_COMPUTE_TF32,
        .adds = is_double ? *(const double *)beta != 0 : *(const float *)beta != 0,
    };
    if (!handle->has_workspace)
        double_abort("cuBLAS has no workspace and would allocate one");
    if (the_double.settings.fail_gemm || left_type != result_type || right_type != result_type ||
        algorithm != BLAS_DEFAULT_ALGORITHM || (compute == BLAS_COMPUTE_64) != is_double ||
        (!is_double && compute != BLAS_COMPUTE_32 && compute != BLAS_COMPUTE_TF32) ||
        (is_double ? *(const double *)alpha != 1 : *(const float *)alpha != 1))
        return BLAS_NOT_SUPPORTED;
    if (n_matrices > MAX_MATRICES)
        return BLAS_NOT_SUPPORTED;
    if (n_rows < 0 || n_columns < 0 || n_depth < 0 || n_matrices < 0 ||
        !is_line_long_enough(left_line, m.is_left_transposed ? n_depth : n_rows) ||
        !is_line_long_enough(right_line, m.is_right_transposed ? n_columns : n_depth) ||
        !is_line_long_enough(result_line, n_rows))
        return BLAS_INVALID_VALUE;
    return launch(handle, &m);
}

static void set_warming_up(blas_handle handle, bool is_warming_up)
{
    handle->is_warming_up = is_warming_up;
}

int blas_library_open(struct blas_functions *ret_functions, struct gad_error *error)
{
    const cudaError_t refused = double_enter(false);
    const bool is_there = !the_double.settings.no_blas;
    double_leave(refused);
    if (!is_there)
        return error_set(error, GAD_NO_ENGINE, "engine",
                         "cuBLAS cannot be opened: the test double has none");
    *ret_functions = (struct blas_functions){
        .create = create,
        .destroy = destroy,
        .get_version = get_version,
        .set_stream = set_stream,
        .set_workspace = set_workspace,
        .set_math_mode = set_math_mode,
        .gemm_strided_batched = gemm,
        .set_warming_up = set_warming_up,
    };
    return 0;
}
