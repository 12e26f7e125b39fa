/* Parts of the blocks of a matrix product, for pools that have no room for a whole one.
 *
 * Blocks are functions of shape and dtype (product_sizes.c), since they decide in which order
 * products are added. But not all of that does. What of a block may be a turn of its own without a
 * bit of C changed:
 *
 *     integers, bools        any part: sums wrap
 *     one row or column      any rows and columns, but no last one alone; along the depth whole
 *                            pieces, since each has sums of its own that are added to C
 *                            (kernels/cpu/multiply/multiply_line.c)
 *     floats, a depth of 1   any rows and columns, but no last one alone: an element of C is one
 *                            product, rounded once
 *     other floats           rows and columns in units of a library, of float32 rows alone, while
 *                            all blocks before and after are so large that it takes the same
 *                            kernels for them (kernels/cpu/multiply/multiply.h)
 *
 * A library cuts C at multiples of its units, counted from a block's beginning; parts begin at such
 * places, so that the ends of C, where a unit is not full, stay what they are. Where blocks end
 * within a unit there are no such places, and no parts along that axis. Small blocks of
 * floats have no parts: a library picks its kernels for them by extents, in ways that differ from
 * processor to processor. Parts cost speed, so they come after
 * everything else.
 *
 * Called by product_tiles.c, again and again until something fits. Pure code.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define LEAST_EXTENT 16
#define PIECE_DEPTH  16384
#define FLOAT32_ROWS 48

struct parts {
    const struct plan_engine *engine;
    enum dtype dtype;
    bool is_float, is_line; /* is_line: one row or column */
    bool is_library;        /* its sums are a library's */
    int64_t n_rows, n_columns, depth;
    struct plan_product *product;
};

/* The last part of an axis in parts of `extent`. */
static int64_t rest_of(int64_t length, int64_t extent)
{
    return length - (divide_up_i64(length, extent) - 1) * extent;
}

/* How many elements parts are multiples of; 0: there are none. */
static int64_t unit_of(const struct parts *p, const int64_t *extent)
{
    if (!p->is_library || p->dtype != DTYPE_FLOAT32)
        return LEAST_EXTENT;
    return extent == &p->product->block_rows && !p->product->is_symmetric ? FLOAT32_ROWS : 0;
}

/* Whether a library's blocks are all large, the last ones of C too, which are the smallest. */
static bool are_large(const struct parts *p, int64_t rows, int64_t columns)
{
    int64_t row_unit = p->dtype == DTYPE_FLOAT32 ? FLOAT32_ROWS : LEAST_EXTENT;
    int64_t last_rows = rest_of(p->n_rows, rows), last_columns = rest_of(p->n_columns, columns);

    return p->engine->may_join(p->dtype, last_rows - last_rows % row_unit,
                               last_columns - last_columns % LEAST_EXTENT,
                               rest_of(p->depth, p->product->step_depth));
}

static bool may_be(const struct parts *p, const int64_t *extent, int64_t length, int64_t n)
{
    const struct plan_product *product = p->product;
    bool are_rows = extent == &product->block_rows || product->is_symmetric;
    bool are_columns = extent == &product->block_columns || product->is_symmetric;

    if (!p->is_library)
        return !(p->is_float || p->is_line) || rest_of(length, n) != 1;
    return are_large(p, product->block_rows, product->block_columns) &&
           are_large(p, are_rows ? n : product->block_rows,
                     are_columns ? n : product->block_columns);
}

/* Half of it or the longest below that may be; where there is none, the longest that may be. Of a
 * library's blocks not so little at a time. False: it stays. */
static bool part_extent(const struct parts *p, int64_t *extent, int64_t length)
{
    struct plan_product *product = p->product;
    int64_t unit = unit_of(p, extent), whole = min_i64(*extent, length);

    if (unit == 0 || (p->is_library && whole < length && whole % unit != 0))
        return false;
    int64_t n_units = divide_up_i64(whole, unit) - 1;
    int64_t first =
        p->is_library ? n_units - n_units / 8 : divide_up_i64(divide_up_i64(whole, 2), unit);
    for (int64_t i = 0; i < n_units; i++) {
        int64_t n = unit * (first - i > 0 ? first - i : n_units - (i - first));
        if (n >= whole || !may_be(p, extent, length, n))
            continue;
        *extent = n;
        if (product->is_symmetric)
            product->block_rows = product->block_columns = n;
        return true;
    }
    return false;
}

static bool part_depth(const struct parts *p)
{
    int64_t unit = p->is_float ? PIECE_DEPTH : LEAST_EXTENT;
    int64_t whole = min_i64(p->product->step_depth, p->depth);

    if (p->is_library || whole <= unit ||
        (p->is_float && p->product->n_depth_steps > 1 && whole % unit != 0))
        return false;
    p->product->step_depth = divide_up_i64(divide_up_i64(whole, 2), unit) * unit;
    if (p->product->step_depth >= whole)
        p->product->step_depth = unit;
    p->product->n_depth_steps = (uint64_t)divide_up_i64(p->depth, p->product->step_depth);
    return true;
}

/* What makes a block with its panels smallest is tried first: the longest extent. */
bool planner_part_blocks(const struct plan_engine *engine, struct plan_product *product)
{
    const struct program_product *whole = product->whole;
    struct parts p = {.engine = engine,
                      .dtype = whole->dtype,
                      .is_float = dtype_is_float(whole->dtype),
                      .is_line = whole->n_rows == 1 || whole->n_columns == 1,
                      .n_rows = max_i64(whole->n_rows, 1),
                      .n_columns = max_i64(whole->n_columns, 1),
                      .depth = max_i64(whole->depth, 1),
                      .product = product};
    int64_t rows = min_i64(product->block_rows, p.n_rows);
    int64_t columns = min_i64(product->block_columns, p.n_columns);
    int64_t depth = min_i64(product->step_depth, p.depth);

    p.is_library = p.is_float && !p.is_line && p.depth > 1;
    if (depth >= rows && depth >= columns && part_depth(&p))
        return true;
    if (rows >= columns && part_extent(&p, &product->block_rows, p.n_rows))
        return true;
    return part_extent(&p, &product->block_columns, p.n_columns) ||
           part_extent(&p, &product->block_rows, p.n_rows) || part_depth(&p);
}
