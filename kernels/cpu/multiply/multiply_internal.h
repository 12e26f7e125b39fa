/* What the parts of cpu_multiply() hand to each other. */
#pragma once

#include "kernels/cpu/multiply/multiply.h"
#include "kernels/cpu/run/run.h"

/* The arguments of cpu_multiply(); depth > 0. */
struct multiply_job {
    const struct cpu_engine *engine;
    enum dtype dtype;
    int64_t n_rows, n_columns, depth;
    const struct cpu_matrix *left, *right;
    char *result;
    int64_t row_bytes;
    bool is_added;
    void *scratch;
};

/* Around calls of OpenBLAS: a serial one's callers take turns. */
void multiply_enter(void);
void multiply_leave(void);

/* Integers and bools. */
void multiply_blocks(const struct multiply_job *job);
/* One row or one column; all dtypes. */
void multiply_line(const struct multiply_job *job);
