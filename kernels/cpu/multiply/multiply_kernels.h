/* The kernels of matrix products, in a table per level. As other kernels they read no more than
 * they say, trap never, and sums of integers wrap; "sums" of bools are or, their "products" and.
 *
 * Tiles, of integers and bools: n_rows x n_columns sums over packed operands. Of the left one the
 * n_rows elements of a column lie side by side, column by column; of the right one the n_columns
 * elements of a row, row by row. Both have `packed` items, which are wider than the result's where
 * that is faster, and are aligned to 64 bytes. Of the result's tile the first `rows` and `columns`
 * are set or added to; its rows are row_bytes apart.
 *
 * Vectors: a matrix of n rows by depth times a vector, in two layouts of the matrix. `along`: the
 * elements of a row lie side by side, rows row_bytes apart. `across`: those of a column,
 * columns column_bytes apart. The vector is dense. The n sums are dense, and set. Floats are added
 * in an order that the layout and the depth alone decide. No alignment is asked for.
 */
#pragma once

#include "proto/dtype.h"

#define MULTIPLY_MAX_TILE_ROWS  8
#define MULTIPLY_MAX_TILE_BYTES 256 /* of a packed row of the right operand */

struct multiply_tile {
    size_t depth;
    const void *left, *right;
    void *result;
    int64_t row_bytes;
    size_t rows, columns;
    bool is_added;
};
typedef void multiply_tile_fn(const struct multiply_tile *tile);

/* n lanes of `depth` items each, lane_bytes and depth_bytes apart (one of them is the item's size),
 * become depth groups of `width` packed items; those of lanes beyond n are 0. */
struct multiply_pack {
    size_t n, width, depth;
    const char *src;
    int64_t lane_bytes, depth_bytes;
    void *dst;
};
typedef void multiply_pack_fn(const struct multiply_pack *pack);

struct multiply_vector {
    size_t n, depth;
    const char *matrix;
    int64_t apart_bytes; /* of rows (along), of columns (across) */
    const void *vector;
    void *sums;
};
typedef void multiply_vector_fn(const struct multiply_vector *v);
/* The result's n elements, apart_bytes apart, are set to sums or added to. */
typedef void multiply_add_fn(size_t n, void *result, int64_t apart_bytes, const void *sums,
                             bool is_added);

/* By dtype. Of all tiles of a level: rows, and bytes of a packed row of the right operand. */
struct multiply_tiles {
    size_t n_rows, row_bytes;
    multiply_tile_fn *multiply[DTYPE_COUNT]; /* none of floats */
    multiply_pack_fn *pack[DTYPE_COUNT];
};
struct multiply_vectors {
    multiply_vector_fn *along[DTYPE_COUNT], *across[DTYPE_COUNT];
    multiply_add_fn *add[DTYPE_COUNT];
};

#define MULTIPLY_DECLARE(level)                                                                    \
    extern const struct multiply_tiles multiply_tiles_##level;                                     \
    extern const struct multiply_vectors multiply_vectors_##level;

MULTIPLY_DECLARE(plain)
MULTIPLY_DECLARE(baseline)
MULTIPLY_DECLARE(avx2)
MULTIPLY_DECLARE(avx512)
