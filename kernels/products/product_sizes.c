/* The blocks of a matrix product: functions of its shape and dtype and of the kind of engine alone,
 * since they decide in which order products are added, and so the bits of C.
 *
 * A block is BASE rows x columns x depth, where there is as much: so large that a library's own
 * copying of operands costs little beside the arithmetic, and so small that a turn is some
 * milliseconds and that one block with its panels fits the least pool. From there:
 *
 * - a C of few blocks gets smaller ones, so that threads have something to do;
 * - where an extent is short (vectors), the others become longer, up to comparable work;
 * - of small matrices in a batch, one block has several;
 * - blocks are of nearly equal size.
 *
 * Called by product_tiles.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define EVEN_STEP        16 /* of small extents */
#define LARGE_EVEN_STEP  64
#define LARGE_EXTENT     256
#define FLOAT32_ROW_STEP 48 /* such may be joined */

static const struct plan_block *block_of(const struct plan_blocks *blocks, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT32: return &blocks->float32;
    case DTYPE_FLOAT64: return &blocks->float64;
    default: return dtype_size(dtype) == 8 ? &blocks->integer_8 : &blocks->integer;
    }
}

static int64_t work_of(const struct plan_block *s)
{
    return mul_saturating_i64(mul_saturating_i64(s->rows, s->columns), s->depth);
}

static int64_t triple_bytes(const struct plan_block *s, int64_t item_bytes)
{
    int64_t operands = mul_saturating_i64(s->rows + s->columns, s->depth);
    int64_t result = mul_saturating_i64(s->rows, s->columns);

    return mul_saturating_i64(operands < INT64_MAX - result ? operands + result : INT64_MAX,
                              item_bytes);
}

/* Of an axis in parts of at most `extent`: as many parts, of nearly equal size. large_step: of
 * large ones. */
static int64_t even_out(int64_t length, int64_t extent, int64_t large_step)
{
    int64_t n_parts = divide_up_i64(max_i64(length, 1), extent);
    int64_t step = extent >= LARGE_EXTENT ? large_step : EVEN_STEP;
    int64_t even = divide_up_i64(divide_up_i64(max_i64(length, 1), n_parts), step) * step;

    return n_parts == 1 || even > extent ? extent : even;
}

static int64_t n_blocks(const struct plan_block *whole, const struct plan_block *s,
                        int64_t n_matrices)
{
    int64_t n = mul_saturating_i64(divide_up_i64(whole->rows, s->rows),
                                   divide_up_i64(whole->columns, s->columns));
    return mul_saturating_i64(n, n_matrices);
}

/* Returns whether there is anything made smaller. */
static bool divide_small(const struct plan_blocks *wishes, const struct plan_block *whole,
                         int64_t n_matrices, struct plan_block *s)
{
    bool is_smaller = false;

    while (n_blocks(whole, s, n_matrices) < wishes->enough_blocks) {
        int64_t *larger = s->rows >= s->columns ? &s->rows : &s->columns;
        struct plan_block column = {.rows = s->rows, .columns = s->columns, .depth = whole->depth};
        if (*larger < 2 * wishes->least_extent || work_of(&column) / 2 < wishes->least_work)
            break;
        *larger = divide_up_i64(*larger, 2);
        is_smaller = true;
    }
    return is_smaller;
}

static bool grow(int64_t *extent, int64_t whole, const struct plan_block *s, int64_t item_bytes,
                 int64_t max_triple_bytes)
{
    int64_t before = *extent;

    if (before >= whole)
        return false;
    *extent = min_i64(2 * before, whole);
    if (triple_bytes(s, item_bytes) <= max_triple_bytes)
        return true;
    *extent = before;
    return false;
}

/* Floats that are no lines: a library's calls, of which the depth decides what they add. */
static bool has_whole_depth(const struct program_product *product)
{
    return dtype_is_float(product->dtype) && product->n_rows > 1 && product->n_columns > 1;
}

/* Until its work is `enough`. limit: of the bytes. */
static void lengthen(const struct plan_block *whole, int64_t enough, int64_t item_bytes,
                     int64_t limit, bool is_small, struct plan_block *s)
{
    while (work_of(s) < enough) {
        if (grow(&s->depth, whole->depth, s, item_bytes, limit))
            continue;
        if (is_small || (!grow(&s->rows, whole->rows, s, item_bytes, limit) &&
                         !grow(&s->columns, whole->columns, s, item_bytes, limit)))
            return;
    }
}

/* How many are little together. */
static int64_t most_matrices(const struct plan_blocks *wishes, const struct plan_block *s,
                             int64_t item_bytes)
{
    return min_i64(wishes->least_work / work_of(s),
                   wishes->max_batch_bytes / triple_bytes(s, item_bytes));
}

/* Of n_cut that one tile may have, and of n_all; a multiple of the inner ones, or fewer. */
static int64_t matrices_of(const struct plan_blocks *wishes, const struct plan_block *s,
                           int64_t n_cut, int64_t n_inner, int64_t n_all, int64_t item_bytes)
{
    int64_t n = 1;

    while (2 * n <= n_cut && n_all / (2 * n) >= wishes->enough_blocks &&
           mul_saturating_i64(work_of(s), 2 * n) <= wishes->least_work &&
           mul_saturating_i64(triple_bytes(s, item_bytes), 2 * n) <= wishes->max_batch_bytes)
        n *= 2;
    return n > n_inner ? n - n % n_inner : n;
}

void planner_product_blocks(const struct planner *p, const struct plan_blocks *wishes)
{
    struct plan_product *ret = p->product;
    const struct program_product *product = ret->whole;
    int64_t item_bytes = (int64_t)dtype_size(product->dtype), n_all = 1;
    struct plan_block whole = {max_i64(product->n_rows, 1), max_i64(product->n_columns, 1),
                               max_i64(product->depth, 1)};
    struct plan_block base = *block_of(wishes, product->dtype);
    struct plan_block s = {min_i64(whole.rows, base.rows), min_i64(whole.columns, base.columns),
                           min_i64(whole.depth, base.depth)};

    ret->n_rows = product->n_rows;
    ret->n_columns = product->n_columns;
    ret->depth = product->depth;
    ret->item_bytes = item_bytes;
    for (int i = 0; i < product->n_batch_axes; i++)
        n_all = mul_saturating_i64(n_all, product->batch_shape[i]);
    bool is_small = divide_small(wishes, &whole, n_all, &s);
    int64_t limit = has_whole_depth(product) ? wishes->max_whole_bytes : wishes->max_triple_bytes;
    lengthen(&whole, work_of(&base), item_bytes, limit, is_small, &s);
    if (product->is_symmetric) /* blocks on the diagonal are square */
        s.rows = s.columns = min_i64(s.rows, s.columns);
    ret->is_symmetric = product->is_symmetric;
    planner_cut_batch(p, most_matrices(wishes, &s, item_bytes));
    int64_t most = mul_saturating_i64(wishes->max_runs, ret->run_matrices);
    ret->block_matrices =
        matrices_of(wishes, &s, min_i64(ret->n_matrices, most), ret->n_inner, n_all, item_bytes);
    bool is_float32 = product->dtype == DTYPE_FLOAT32 && !product->is_symmetric;
    ret->block_rows =
        even_out(product->n_rows, s.rows, is_float32 ? FLOAT32_ROW_STEP : LARGE_EVEN_STEP);
    ret->block_columns = even_out(product->n_columns, s.columns, LARGE_EVEN_STEP);
    ret->step_depth = even_out(product->depth, s.depth, LARGE_EVEN_STEP);
    ret->n_depth_steps = (uint64_t)divide_up_i64(whole.depth, ret->step_depth);
}
