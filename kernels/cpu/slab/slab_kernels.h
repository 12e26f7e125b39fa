/* The kernels of walks by slabs, in a table per level: skinny products of a part of X, in float64,
 * or of float32 in float32 with sums in float64.
 *
 * Both keep SLAB_LANES_OF neighbouring columns of X in a vector's lanes. `project` adds to
 * SLAB_LANES_OF sums of each row and result, of every SLAB_LANES_OF-th column each, which with the
 * last columns become one, in pairs; `gather` to a sum for each column and result. A sum takes in
 * one column after the other, or one row after the other, each with one rounding (fused): so levels
 * differ in no bit, and neither do tiles of other sizes. Of float32 in float32 a tile adds up twice
 * as many lanes, and then adds to the sums once: its size counts.
 *
 * n_columns of project is a multiple of SLAB_LANES_OF but for the last ones. Nothing needs to be
 * aligned, nothing beyond the columns is touched. Operand and sums are transposed: a line for each
 * result.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_LANES_OF    8
#define SLAB_MAX_RESULTS 12

struct slab_tile {
    size_t n_rows, n_columns, n_results; /* at most the level's n_results */
    const void *x;
    int64_t line_bytes; /* from one row of X to the next */
    bool is_added;      /* to lanes or sums; else they are set */
    /* project */
    const void *operand; /* float64; of SLAB_SINGLE float32, as v */
    size_t operand_line; /* elements */
    double *lanes;
    bool is_last;
    double *to;
    size_t to_line;
    /* gather */
    const void *v;
    size_t v_line;
    double *sums;
    size_t sums_line;
};
typedef void slab_tile_fn(const struct slab_tile *tile);

/* Of X of float32 and of float64, in float64; of float32 in float32. */
enum slab_precision { SLAB_WIDENED, SLAB_DOUBLE, SLAB_SINGLE, SLAB_N_PRECISIONS };

struct slab_kernels {
    size_t n_results;
    slab_tile_fn *project[SLAB_N_PRECISIONS], *gather[SLAB_N_PRECISIONS];
    slab_tile_fn *add[2], *add_squares[2]; /* to one line of sums: of columns, in float64 */
    /* Rows of n_results float32, line_bytes apart, as float64 side by side. */
    void (*widen)(const void *from, int64_t line_bytes, size_t n_rows, size_t n_results,
                  double *to);
};

#define SLAB_DECLARE(level)                                                                        \
    extern const struct slab_kernels slab_kernels_##level;                                         \
    slab_tile_fn slab_project_single_##level, slab_gather_single_##level;

SLAB_DECLARE(plain)
SLAB_DECLARE(baseline)
SLAB_DECLARE(avx2)
SLAB_DECLARE(avx512)
