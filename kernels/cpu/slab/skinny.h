/* The arithmetic of walks by slabs on the CPU: skinny products of a part of a matrix, in float64
 * whatever the matrix is of. Thread-safe: what is written is the caller's, scratch is the thread's.
 *
 * No bit depends on how rows or results are grouped. A projection depends on where its columns
 * begin, a sum on the order of its rows.
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

/* to = x @ operand.T: rows of n_results, rounded to x's dtype where it is `dtype`. operand: a line
 * for each result, operand_line elements apart. */
void cpu_slab_project(const struct cpu_engine *engine, const struct cpu_rows *x,
                      const double *operand, int64_t operand_line, int64_t n_results, void *to,
                      enum dtype dtype, void *scratch);

/* sums += v.T @ x, or set: a line of x's columns for each of v's. skipped: lines are computed from
 * column `line - skipped` on, or some before it; INT64_MIN: all columns. */
void cpu_slab_gather(const struct cpu_engine *engine, const struct cpu_rows *x,
                     const struct cpu_rows *v, double *sums, int64_t sums_line, bool is_added,
                     int64_t skipped, void *scratch);
#define CPU_SLAB_ALL INT64_MIN

/* sums += the sum over x's rows, or of squares. */
void cpu_slab_add(const struct cpu_engine *engine, const struct cpu_rows *x, bool is_square,
                  double *sums, bool is_added);

/* Rows rounded to a dtype, of the sum of n_parts parts, part_line elements apart. */
void cpu_slab_add_parts(const double *parts, int64_t part_apart, unsigned n_parts,
                        int64_t n_elements, void *to, enum dtype dtype);
