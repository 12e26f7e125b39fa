/* The arithmetic of walks by slabs on the CPU: skinny products of a part of a matrix. Thread-safe:
 * what is written is the caller's, scratch is the thread's.
 *
 * In float64 whatever the matrix is of, or where both sides are of float32 and the caller says so
 * in float32: 512 columns of a projection or so many rows of a sum as the caller says are added up
 * with a rounding to float32 at each step, and what they give is added in float64.
 *
 * No bit depends on how results are grouped, nor in float64 how rows are. A projection depends on
 * where its columns begin, a sum on the order of its rows, and in float32 on which are added up.
 */
#pragma once

#include "kernels/cpu/engine.h"

/* float32 or float64, columns side by side. */
struct cpu_rows {
    const void *base;
    enum dtype dtype;
    int64_t line_bytes; /* from one row to the next */
    int64_t n_rows, n_columns;
};

/* A line for each result, line_bytes apart. float32: x is, too, and it is multiplied in float32. */
struct cpu_operand {
    const void *base;
    enum dtype dtype;
    int64_t line_bytes, n_results;
};
/* to = x @ operand.T: rows of n_results, rounded to `dtype`. */
void cpu_slab_project(const struct cpu_engine *engine, const struct cpu_rows *x,
                      const struct cpu_operand *operand, void *to, enum dtype dtype, void *scratch);

struct cpu_sums {
    double *base;
    int64_t line; /* elements from one to the next */
    bool is_added;
    /* Lines are computed from column `line - skipped` on, or some before it; CPU_SLAB_ALL: all. */
    int64_t skipped;
    /* So many rows are added up in float32, from each multiple of it on, of x and v of float32; 0:
     * in float64. */
    int64_t fold_rows;
};
#define CPU_SLAB_ALL INT64_MIN
/* sums += v.T @ x, or set: a line of x's columns for each of v's. */
void cpu_slab_gather(const struct cpu_engine *engine, const struct cpu_rows *x,
                     const struct cpu_rows *v, const struct cpu_sums *sums, void *scratch);

/* sums += the sum over x's rows, or of squares. */
void cpu_slab_add(const struct cpu_engine *engine, const struct cpu_rows *x, bool is_square,
                  double *sums, bool is_added);

/* Rows rounded to a dtype, of the sum of n_parts parts, part_line elements apart. */
void cpu_slab_add_parts(const double *parts, int64_t part_apart, unsigned n_parts,
                        int64_t n_elements, void *to, enum dtype dtype);
