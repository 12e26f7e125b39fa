/* Short rows along which is reduced: a block of them is turned, so that elements of as many cells
 * are neighbours, and vectors work on many rows at once. Where there is a kernel for such rows as
 * they lie (reduce_short.c), it is called instead.
 *
 *     row 0   a b c d          a e i       -> one cell each
 *     row 1   e f g h    ->    b f j
 *     row 2   i j k l          c g k
 *                              d h l
 *
 * The shortest rows are added up one element after the other. Longer ones have the order of a block
 * of reduce_sums.c, whose lanes are here rows of their own: element i goes to lane i % 16, and
 * lanes are folded by halves. So the bits are those that each row has by itself, and which way it
 * goes is a matter of time alone.
 *
 * Called by reducer.c.
 */
#include "kernels/cpu/run/turned.h"

#include "proto/util.h"

#include <string.h>

#define LANES          REDUCE_SUM_LANES
#define BLOCK_BYTES    (16u << 10)
#define MOST_ELEMENTS  64  /* of a row: longer ones have enough of them for vectors of their own */
#define MOST_ADDED_F32 128 /* those have to be folded, too */
#define LEAST_ROWS     8
#define MAX_ITEM_BYTES 8

_Static_assert(REDUCER_SHORT_ROW == LANES, "every lane of a row that is not short has an element");
_Static_assert(MOST_ELEMENTS <= REDUCE_SUM_BLOCK, "a row is one block");
_Static_assert(MOST_ELEMENTS *MAX_ITEM_BYTES *LEAST_ROWS <= BLOCK_BYTES, "some rows fit");

/* Extrema are taken by blocks. */
static bool has_kernel(const struct reducing *d, size_t n)
{
    return d->short_rows && n >= REDUCER_SHORT_ROW && n <= REDUCE_SUM_BLOCK && !d->extrema[0] &&
           !d->extrema[1];
}

bool turned_suits(const struct reducing *d, size_t n, size_t n_rows)
{
    unsigned op = d->reduction->op;
    if (has_kernel(d, n))
        return true;
    size_t most = d->is_ordered && d->item_log2 == 2 ? MOST_ADDED_F32 : MOST_ELEMENTS;
    if (n < REDUCER_SHORT_ROW)
        return true;
    return n <= most && n_rows >= LEAST_ROWS && op != OP_ARGMIN && op != OP_ARGMAX &&
           !(d->is_ordered && op == OP_PROD);
}

/* Sums of all lanes, each of n_rows cells, to the first lane. */
static void fold_lanes(double *lanes, size_t n_rows)
{
    for (size_t w = LANES / 2; w > 0; w /= 2)
        for (size_t k = 0; k < w * n_rows; k++)
            lanes[k] += lanes[w * n_rows + k];
}

/* rows: all elements of the block. */
static void take_lanes(const struct reducing *d, const struct reduce_rows *rows)
{
    double lanes[2][LANES * TURNED_MAX_ROWS] __attribute__((aligned(64)));
    size_t n_cells = rows->n_cells;
    for (size_t j = 0; j < LANES; j++) {
        struct reduce_rows lane = *rows;
        lane.n_rows = (rows->n_rows - j + LANES - 1) / LANES;
        lane.src = rows->src + (int64_t)j * rows->row_bytes;
        lane.row_bytes = LANES * rows->row_bytes;
        lane.value = lanes[0] + j * n_cells;
        lane.second = lanes[1] + j * n_cells;
        d->rows(&lane);
    }
    fold_lanes(lanes[0], n_cells);
    memcpy(rows->value, lanes[0], n_cells * sizeof(double));
    if (d->reduction->op != OP_SQUARED_DEVIATIONS)
        return;
    fold_lanes(lanes[1], n_cells);
    memcpy(rows->second, lanes[1], n_cells * sizeof(double));
}

static void take_block(const struct reducing *d, uint64_t cell, struct reduce_rows *rows, size_t at,
                       struct gathered *g)
{
    rows->value = (char *)g->values + (at << d->plane_log2);
    rows->second = g->seconds + at;
    rows->shift = d->shift ? d->shift + cell + at : NULL;
    if (d->is_ordered && rows->n_rows >= REDUCER_SHORT_ROW)
        take_lanes(d, rows);
    else
        d->rows(rows);
    for (int k = 0; k < 2; k++) {
        const struct reducing *e = d->extrema[k];
        if (!e)
            continue;
        rows->value = (char *)g->extrema[k] + (at << e->plane_log2);
        e->rows(rows);
    }
}

void turned_take(const struct reducing *d, uint64_t cell, size_t n, size_t n_rows, const char *src,
                 const int64_t *positions, struct gathered *g)
{
    char block[BLOCK_BYTES] __attribute__((aligned(64)));
    int64_t turned_positions[REDUCER_SHORT_ROW * TURNED_MAX_ROWS];
    int64_t item_bytes = (int64_t)1 << d->item_log2;
    size_t most = BLOCK_BYTES / (n << d->item_log2);
    if (has_kernel(d, n)) {
        d->short_rows(n_rows, n, src, g->values);
        return;
    }
    for (size_t at = 0, n_now; at < n_rows; at += n_now) {
        n_now = min_u64(n_rows - at, most);
        const struct transposing turn = {.n_rows = n_now,
                                         .n_columns = n,
                                         .src = src + (int64_t)(at * n) * item_bytes,
                                         .src_row = (int64_t)n * item_bytes,
                                         .dst = block,
                                         .dst_row = (int64_t)n_now * item_bytes};
        d->turn(&turn);
        for (size_t i = 0; positions && i < n_now; i++)
            for (size_t k = 0; k < n; k++)
                turned_positions[k * n_now + i] = positions[(at + i) * n + k];
        struct reduce_rows rows = {.n_rows = n,
                                   .n_cells = n_now,
                                   .src = block,
                                   .row_bytes = (int64_t)n_now * item_bytes,
                                   .indices = turned_positions,
                                   .is_first = true};
        take_block(d, cell, &rows, at, g);
    }
}
