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

/* A matrix by columns is its transpose by rows: the right operand comes first then. By rows,
 * float32 would be multiplied by kernels that differ with the extents. */
static void multiply_floats(const struct multiply_job *j)
{
    int64_t item_bytes = (int64_t)dtype_size(j->dtype);
    struct blas_operand a = operand_of(j->left, j->n_rows, j->depth, item_bytes);
    struct blas_operand b = operand_of(j->right, j->depth, j->n_columns, item_bytes);
    blasint m = (blasint)j->n_rows, n = (blasint)j->n_columns, k = (blasint)j->depth;
    blasint apart = (blasint)(j->row_bytes / item_bytes);
    if (j->dtype == DTYPE_FLOAT32)
        cblas_sgemm(CblasColMajor, b.order, a.order, n, m, k, 1, j->right->base, b.apart,
                    j->left->base, a.apart, j->is_added, (float *)j->result, apart);
    else
        cblas_dgemm(CblasColMajor, b.order, a.order, n, m, k, 1, j->right->base, b.apart,
                    j->left->base, a.apart, j->is_added, (double *)j->result, apart);
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
    else {
        multiply_enter();
        multiply_floats(&job);
        multiply_leave();
    }
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
}

const char *cpu_multiply_library(void)
{
    return library;
}
