/* Blocks of matrix products: which code multiplies what.
 *
 *     one row or one column      multiply_line.c
 *     integers, bools            multiply_blocks.c
 *     float32, float64           OpenBLAS's gemm
 *
 * OpenBLAS can have threads of its own, and everything here is to run in the caller's alone:
 * cpu_multiply_init() tells it so. A serial one, made without threads, must not be called by two
 * threads at once (its buffers are then shared, and results wrong): its callers wait for each
 * other.
 *
 * Operands are packed by OpenBLAS before they are multiplied, so where they lie and how far apart
 * their rows are does not change a bit of the result; which of their strides is an item's may,
 * since small matrices have kernels of their own. It cuts the depth by its length alone, and rows
 * and columns at multiples of its own unit: so several blocks with extents of whole units, not
 * small, have the same bits in one call as in a call each.
 *
 * C is written without being read where nothing is added: whatever was there, NaN too, is gone.
 *
 * OpenBLAS's kernels for AVX-512 copy the last columns of a small product of two matrices by rows,
 * where they are at most half a vector, into memory that they allocate then and there, and write
 * to it whether there is any or not. Such columns are multiplied apart (multiply_rest()); all else
 * is done in buffers that OpenBLAS keeps, for which it waits.
 *
 * Called by the worker, from any thread.
 */
#include "kernels/cpu/multiply/multiply.h"

#include "kernels/cpu/multiply/multiply_internal.h"
#include "proto/util.h"

#include <assert.h>
#include <cblas.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* Of OpenBLAS's kernels for small products: what is small, from which depth on they copy, the rows
 * times columns up to which there are some for a right operand that is turned. */
#define VECTOR_BYTES   64
#define SMALL_WORK     1e6
#define LEAST_DEPTH    16
#define TURNED_EXTENTS 1200

/* A matrix as OpenBLAS wants it. */
struct blas_operand {
    CBLAS_TRANSPOSE order;
    blasint apart; /* elements from one row to the next; of a transposed one, column */
};

/* An extent of 1 has no stride that means anything. */
static struct blas_operand operand_of(const struct cpu_matrix *m, int64_t n_rows, int64_t n_columns,
                                      int64_t item_bytes)
{
    bool is_transposed = m->column_bytes != item_bytes && n_columns > 1;
    int64_t apart = (is_transposed ? m->column_bytes : m->row_bytes) / item_bytes;
    int64_t least = is_transposed ? n_rows : n_columns;
    if ((is_transposed ? n_columns : n_rows) == 1)
        apart = least;
    assert(apart >= least && apart <= INT32_MAX);
    return (struct blas_operand){is_transposed ? CblasTrans : CblasNoTrans, (blasint)apart};
}

static atomic_flag is_taken = ATOMIC_FLAG_INIT;

void multiply_enter(void)
{
    while (cpu_multiply_is_serial() &&
           atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire))
        sched_yield();
}

void multiply_leave(void)
{
    if (cpu_multiply_is_serial())
        atomic_flag_clear_explicit(&is_taken, memory_order_release);
}

/* A matrix by columns is its transpose by rows: the right operand comes first then. By rows,
 * float32 would be multiplied by kernels that differ with the extents. */
static void multiply_floats(const struct multiply_job *j)
{
    int64_t item_bytes = (int64_t)dtype_size(j->dtype);
    struct blas_operand a = operand_of(j->left, j->n_rows, j->depth, item_bytes);
    struct blas_operand b = operand_of(j->right, j->depth, j->n_columns, item_bytes);
    blasint m = (blasint)j->n_rows, n = (blasint)j->n_columns, k = (blasint)j->depth;
    blasint apart = (blasint)(j->row_bytes / item_bytes);
    multiply_enter();
    if (j->dtype == DTYPE_FLOAT32)
        cblas_sgemm(CblasColMajor, b.order, a.order, n, m, k, 1, j->right->base, b.apart,
                    j->left->base, a.apart, j->is_added, (float *)j->result, apart);
    else
        cblas_dgemm(CblasColMajor, b.order, a.order, n, m, k, 1, j->right->base, b.apart,
                    j->left->base, a.apart, j->is_added, (double *)j->result, apart);
    multiply_leave();
}

static bool kernels_allocate; /* those of this processor */

/* The last columns for which OpenBLAS would allocate. */
static int64_t n_columns_apart(const struct multiply_job *j)
{
    int64_t item_bytes = (int64_t)dtype_size(j->dtype), unit = VECTOR_BYTES / item_bytes;
    int64_t rest = j->n_columns % unit;
    bool is_small = (double)j->n_rows * (double)j->n_columns * (double)j->depth <= SMALL_WORK;
    bool is_by_rows = j->left->column_bytes == item_bytes && j->right->column_bytes == item_bytes;
    return kernels_allocate && is_small && is_by_rows && rest <= unit / 2 && j->depth >= LEAST_DEPTH
               ? rest
               : 0;
}

/* The same columns of the right operand, side by side along the depth. */
static struct cpu_matrix turn_columns(const struct multiply_job *j)
{
    size_t item_bytes = dtype_size(j->dtype);
    char *to = j->scratch;
    for (int64_t column = 0; column < j->n_columns; column++)
        for (int64_t k = 0; k < j->depth; k++, to += item_bytes)
            memcpy(to,
                   (const char *)j->right->base + k * j->right->row_bytes +
                       column * (int64_t)item_bytes,
                   item_bytes);
    return (struct cpu_matrix){j->scratch, (int64_t)item_bytes, j->depth * (int64_t)item_bytes};
}

/* A small product of few columns: in one call where OpenBLAS has a kernel for it that takes the
 * columns turned, else one by one. */
static void multiply_rest(const struct multiply_job *j)
{
    int64_t item_bytes = (int64_t)dtype_size(j->dtype);
    struct multiply_job one = *j;
    if (j->n_columns > 1 && j->n_columns * j->n_rows <= TURNED_EXTENTS &&
        j->n_columns * j->depth * item_bytes <= CPU_SCRATCH_BYTES) {
        struct cpu_matrix turned = turn_columns(j);
        one.right = &turned;
        multiply_floats(&one);
        return;
    }
    one.n_columns = 1;
    for (int64_t column = 0; column < j->n_columns; column++) {
        struct cpu_matrix right = *j->right;
        right.base = (const char *)right.base + column * item_bytes;
        one.right = &right;
        one.result = j->result + column * item_bytes;
        multiply_line(&one);
    }
}

static void multiply_in_parts(const struct multiply_job *j, int64_t n_apart)
{
    int64_t n_first = j->n_columns - n_apart, offset = n_first * (int64_t)dtype_size(j->dtype);
    struct cpu_matrix right = {(const char *)j->right->base + offset, j->right->row_bytes,
                               j->right->column_bytes};
    struct multiply_job first = *j, rest = *j;
    first.n_columns = n_first;
    rest.n_columns = n_apart;
    rest.right = &right;
    rest.result += offset;
    if (n_first > 0)
        multiply_floats(&first);
    if (n_apart > 0)
        multiply_rest(&rest);
}

static void set_zeros(const struct multiply_job *j)
{
    for (int64_t i = 0; i < j->n_rows; i++)
        memset(j->result + i * j->row_bytes, 0, (size_t)j->n_columns * dtype_size(j->dtype));
}

void cpu_multiply(const struct cpu_engine *engine, enum dtype dtype, int64_t n_rows,
                  int64_t n_columns, int64_t depth, const struct cpu_matrix *left,
                  const struct cpu_matrix *right, void *result, int64_t row_bytes, bool is_added,
                  void *scratch)
{
    const struct multiply_job job = {engine, dtype,  n_rows,    n_columns, depth,  left,
                                     right,  result, row_bytes, is_added,  scratch};
    if (depth == 0 && !is_added)
        set_zeros(&job);
    else if (depth == 0)
        return;
    else if (n_rows == 1 || n_columns == 1)
        multiply_line(&job);
    else if (!dtype_is_float(dtype))
        multiply_blocks(&job);
    else
        multiply_in_parts(&job, n_columns_apart(&job));
}

bool cpu_multiply_is_serial(void)
{
    return openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
}

static char library[96] = "OpenBLAS";

void cpu_multiply_init(void)
{
    const char *config = openblas_get_config(), *space = strchr(config, ' ');
    size_t n_chars = space ? (size_t)(space - config) + 1 : 0;
    n_chars += strcspn(config + n_chars, " ");
    snprintf(library, sizeof(library), "%.*s, %s%s", (int)n_chars, config, openblas_get_corename(),
             cpu_multiply_is_serial() ? ", serial: one thread at a time" : "");
    openblas_set_num_threads(1);
#ifdef __x86_64__
    kernels_allocate = __builtin_cpu_supports("avx512f");
#endif
}

const char *cpu_multiply_library(void)
{
    return library;
}
