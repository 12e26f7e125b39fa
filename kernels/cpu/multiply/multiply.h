/* Blocks of matrix products on the CPU: OpenBLAS for floats, kernels of this engine for integers
 * and bools.
 *
 * One call is one thread's; OpenBLAS is used single-threaded. The bits of a block depend on its
 * extents and its values, and on the strides' order, not on where it lies.
 *
 * Several blocks of the same extents and depth have the same bits in one call as in a call each, if
 * cpu_multiply_may_join() says so: those below each other, and where cpu_multiply_may_join_beside()
 * those beside each other too. It is so because OpenBLAS cuts the depth by its length alone and
 * works in units that divide such extents, and because small matrices, for which it has other
 * kernels, are excluded; of float32 columns, kernels without AVX-512 make a difference at their
 * end.
 */
#pragma once

#include "kernels/cpu/engine.h"

struct cpu_matrix {
    const void *base;
    /* One of them is the item's size; both are positive, and no more than INT32_MAX items. */
    int64_t row_bytes, column_bytes;
};

/* result = left @ right, or with is_added result += left @ right. result: rows row_bytes apart,
 * columns side by side. No extent is 0 but depth, which may be: then nothing is added. `scratch`:
 * as cpu_engine_run()'s. */
void cpu_multiply(const struct cpu_engine *engine, enum dtype dtype, int64_t n_rows,
                  int64_t n_columns, int64_t depth, const struct cpu_matrix *left,
                  const struct cpu_matrix *right, void *result, int64_t row_bytes, bool is_added,
                  void *scratch);

static inline bool cpu_multiply_may_join(enum dtype dtype, int64_t n_rows, int64_t n_columns,
                                         int64_t depth)
{
    bool is_large = (double)n_rows * (double)n_columns * (double)depth >= 1 << 22;
    return is_large && ((dtype == DTYPE_FLOAT32 && n_rows % 48 == 0) ||
                        (dtype == DTYPE_FLOAT64 && n_rows % 16 == 0 && n_columns % 16 == 0));
}

static inline bool cpu_multiply_may_join_beside(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT64;
}

/* Once, before the first call, in a process with one thread: no threads of OpenBLAS's own. */
void cpu_multiply_init(void);
/* The library was made for one thread: its callers wait for each other, and float products are as
 * fast as one thread. */
bool cpu_multiply_is_serial(void);
/* Its name and version, what it uses on this processor: "OpenBLAS 0.3.21, SkylakeX". Static text.
 */
const char *cpu_multiply_library(void);
