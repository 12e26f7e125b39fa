/* Reductions of a box along some of its axes, strip by strip in visiting order.
 *
 * Neighbours in visiting order that are all reduced, or all kept, are one axis here. The fastest of
 * these makes the rows:
 *
 *     reduced:  a row belongs to one cell        mean(a, axis=-1)
 *     kept:     a row's elements to one each     mean(a, axis=0)
 *
 * The order in which a cell takes in its elements is that of the walk. Floats are added in double:
 * within a row as reduce_sums.c says and reduce.c of products (short rows one after the other),
 * rows one after the other in blocks of r->block, and blocks one after the other. So the bits
 * depend on the extents of the reduced axes alone. (A box that goes on with the node of others has
 * the rows behind theirs; all of these together are one block.) Axes of length 1 in the whole pass
 * are not there; a kept axis of which the box has one element is, or the bits would depend on how
 * many it has.
 *
 * A row that goes on in the next strip: its blocks of KERNEL_GRANULE elements begin where the row
 * does, so elements that do not fill one wait in `pending`.
 *
 * In long rows a SUM or SQUARED_DEVIATIONS takes in MIN and MAX of the same floats as well, in one
 * sweep (bind_reductions.c); each result is as if it were alone.
 *
 * Called by run.c for each strip, or for whole boxes where no instruction stands between an input
 * and a reduction.
 */
#include "kernels/cpu/run/reducer.h"

#include "kernels/cpu/run/turned.h"
#include "proto/util.h"

#include <string.h>

static void add_group(struct reducer *r, bool is_reduced, uint64_t count)
{
    struct reducer_group *last = r->n_groups ? &r->groups[r->n_groups - 1] : NULL;
    if (last && (last->row_step != 0) == is_reduced) {
        last->count *= count;
        return;
    }
    r->groups[r->n_groups++] =
        (struct reducer_group){.count = count, .cell_step = !is_reduced, .row_step = is_reduced};
}

static uint64_t block_for(uint64_t n_rows)
{
    uint64_t block = REDUCER_BLOCK;
    while (block < n_rows / block)
        block *= 2;
    return block;
}

/* Of the axes beside the rows: the fastest, as far as it is of the last group. */
static void find_next_axis(struct reducer *r, const struct engine_box *box, const struct pass *pass)
{
    bool is_in_rows = true;
    r->next_axis = -1;
    r->next_length = 1;
    for (int i = box->ndim - 1; i >= 0; i--) {
        int axis = box->axis_order[i];
        bool is_of_row = (pass->reduced_axes >> axis & 1) == r->is_along_rows;
        if (pass->shape[axis] == 1)
            continue;
        is_in_rows &= is_of_row;
        if (is_in_rows)
            continue;
        if (is_of_row)
            return;
        if (box->count[axis] > 1) {
            r->next_axis = axis;
            r->next_length = (uint64_t)box->count[axis];
            return;
        }
    }
}

void reducer_init(struct reducer *r, const struct engine_box *box, const struct pass *pass)
{
    *r = (struct reducer){.row = 1, .n_cells = 1, .n_rows = 1, .n_elements = 1};
    for (int i = 0; i < box->ndim; i++) {
        int axis = box->axis_order[i];
        if (pass->shape[axis] != 1)
            add_group(r, pass->reduced_axes >> axis & 1, (uint64_t)box->count[axis]);
    }
    if (r->n_groups == 0)
        add_group(r, true, 1);
    const struct reducer_group *fastest = &r->groups[--r->n_groups];
    r->is_along_rows = fastest->row_step != 0;
    r->row = fastest->count;
    if (r->is_along_rows)
        r->n_elements = r->row;
    else
        r->n_cells = r->row;
    for (unsigned i = r->n_groups; i-- > 0;) {
        struct reducer_group *g = &r->groups[i];
        g->cell_step *= r->n_cells;
        if (g->row_step) {
            g->row_step = r->n_rows;
            r->n_rows *= g->count;
            r->n_elements *= g->count;
        } else {
            r->n_cells *= g->count;
        }
    }
    r->block = block_for(r->n_rows);
    find_next_axis(r, box, pass);
}

uint64_t reducer_locate_row(const struct reducer *r, uint64_t row, uint64_t *ret_cell,
                            uint64_t *ret_row)
{
    uint64_t n_left = 1;
    *ret_cell = *ret_row = 0;
    for (unsigned i = r->n_groups; i-- > 0;) {
        const struct reducer_group *g = &r->groups[i];
        uint64_t at = row % g->count;
        row /= g->count;
        *ret_cell += at * g->cell_step;
        *ret_row += at * g->row_step;
        if (i == r->n_groups - 1)
            n_left = g->count - at;
    }
    return n_left;
}

/* A new block of rows begins in these cells: what they hold goes to their totals. Returns whether
 * the next row's elements begin the cells' values. */
static bool begin_block(const struct reducer *r, struct reducing *d, uint64_t cell, size_t n_cells,
                        uint64_t row)
{
    if (row == 0)
        return r->n_rows_before == 0;
    if (!d->is_ordered || row % r->block != 0)
        return false;
    for (int i = 0; i < 2 && d->totals[i]; i++) {
        const double *value = (const double *)d->planes[i] + cell;
        double *total = d->totals[i] + cell;
        bool is_product = d->reduction->op == OP_PROD;
        for (size_t k = 0; k < n_cells; k++)
            total[k] = row == r->block ? value[k]
                       : is_product    ? total[k] * value[k]
                                       : total[k] + value[k];
    }
    return true;
}

static double element_as_double(const struct reducing *d, const char *src)
{
    return d->reduction->src.dtype == DTYPE_FLOAT32 ? (double)*(const float *)src
                                                    : *(const double *)src;
}

/* Of a cell whose first row, which is not short, begins at src. */
static double choose_shift(const struct reducing *d, const char *src)
{
    return d->reduction->src.dtype == DTYPE_FLOAT32
               ? reduce_shift_f32(REDUCER_SHORT_ROW, (const float *)src)
               : *(const double *)src;
}

static void *plane_at(const struct reducing *d, unsigned plane, uint64_t cell)
{
    unsigned item_log2 = plane == 0 ? d->plane_log2 : 3;
    return d->planes[plane] ? (char *)d->planes[plane] + (cell << item_log2) : NULL;
}

/* Values of whole rows to their cells. */
static void join_values(const struct reducer *r, struct reducing *d, uint64_t cell, size_t n_cells,
                        uint64_t row, const void *values, const void *seconds)
{
    struct reduce_rows rows = {
        .n_rows = 1,
        .n_cells = n_cells,
        .src = values,
        .indices = seconds,
        .value = plane_at(d, 0, cell),
        .second = plane_at(d, 1, cell),
        .is_first = begin_block(r, d, cell, n_cells, row),
    };
    d->join(&rows);
    if (d->reduction->op != OP_SQUARED_DEVIATIONS)
        return;
    rows.src = seconds;
    rows.value = rows.second;
    d->join(&rows);
}

/* Of a long row, and its extrema with it. */
static void begin_row(struct reducing *d, uint64_t cell)
{
    reduce_state_begin(&d->state, d->reduction);
    if (d->shift)
        d->state.shift = d->shift[cell];
    for (int i = 0; i < 2; i++)
        if (d->extrema[i])
            reduce_state_begin(&d->extrema[i]->state, d->extrema[i]->reduction);
}

static void take_arguments(struct reducing *d, size_t n, const char *src)
{
    for (size_t n_now; n > 0; n -= n_now, src += n_now << d->item_log2, d->first += n_now) {
        int64_t number, step;
        n_now = index_stream_run(d->numbers, d->first, n, &number, &step);
        d->argument(n_now, src, number, step, d->extremum, &d->state);
    }
}

/* Of a row that is not short. */
static void take_elements(struct reducing *d, size_t n, const char *src)
{
    struct reducing *min = d->extrema[0], *max = d->extrema[1];
    if (min || max)
        d->fused(n, src, &d->state, min ? &min->state : NULL, max ? &max->state : NULL);
    else if (d->argument)
        take_arguments(d, n, src);
    else
        d->run(n, src, &d->state);
}

static void finish_row(struct reducing *d, struct gathered *g, size_t i)
{
    reduce_state_finish(&d->state, d->reduction, (char *)g->values + (i << d->plane_log2),
                        &g->seconds[i]);
    for (int k = 0; k < 2; k++) {
        const struct reducing *e = d->extrema[k];
        if (e)
            reduce_state_finish(&e->state, e->reduction,
                                (char *)g->extrema[k] + (i << e->plane_log2), NULL);
    }
}

static void join_rows(const struct reducer *r, struct reducing *d, uint64_t cell, size_t n_cells,
                      uint64_t row, const struct gathered *g)
{
    join_values(r, d, cell, n_cells, row, g->values, g->seconds);
    for (int k = 0; k < 2; k++)
        if (d->extrema[k])
            join_values(r, d->extrema[k], cell, n_cells, row, g->extrema[k], NULL);
}

static void take_long_rows(const struct reducer *r, struct reducing *d, uint64_t cell,
                           size_t n_rows, const char *src, struct gathered *g)
{
    size_t n = (size_t)r->row;
    for (size_t i = 0; i < n_rows; i++) {
        begin_row(d, cell + i);
        take_elements(d, n, src);
        finish_row(d, g, i);
        src += n << d->item_log2;
    }
}

/* Whole rows, of cells that follow on each other; all are their cells' row number `row`. */
static void take_rows(const struct reducer *r, struct reducing *d, uint64_t cell, size_t n_rows,
                      uint64_t row, const char *src, const int64_t *positions)
{
    struct gathered g;
    for (size_t n_now; n_rows > 0; n_rows -= n_now, cell += n_now) {
        n_now = min_u64(n_rows, TURNED_MAX_ROWS);
        size_t n_bytes = (size_t)(n_now * r->row) << d->item_log2;
        for (size_t i = 0; row == 0 && d->shift && i < n_now; i++) {
            const char *at = src + ((i * r->row) << d->item_log2);
            d->shift[cell + i] =
                r->row < REDUCER_SHORT_ROW ? element_as_double(d, at) : choose_shift(d, at);
        }
        if (turned_suits(d, (size_t)r->row, n_now))
            turned_take(d, cell, (size_t)r->row, n_now, src, positions, &g);
        else
            take_long_rows(r, d, cell, n_now, src, &g);
        join_rows(r, d, cell, n_now, row, &g);
        src += n_bytes;
        positions = positions ? positions + n_now * r->row : NULL;
    }
}

/* A piece of a short row: one element after the other. */
static void take_part_of_short(struct reducing *d, bool is_first, size_t n, const char *src,
                               const int64_t *positions)
{
    struct reduce_state *state = &d->state;
    struct reduce_rows rows = {.n_rows = n,
                               .n_cells = 1,
                               .src = src,
                               .row_bytes = (int64_t)1 << d->item_log2,
                               .indices = positions,
                               .value = &state->u64,
                               .second =
                                   d->shift ? (void *)&state->stack[1][0] : (void *)&state->index,
                               .shift = &state->shift,
                               .is_first = is_first};
    d->rows(&rows);
}

/* is_first: of the cell's rows, whose first elements, at least a block or all, choose the shift. */
static void take_blocks(struct reducing *d, uint64_t cell, bool is_first, size_t n, const char *src)
{
    if (is_first && d->shift && d->state.n_blocks == 0 && d->state.n_taken == 0)
        d->state.shift = d->shift[cell] = choose_shift(d, src);
    take_elements(d, n, src);
}

/* A piece of a row in blocks of KERNEL_GRANULE that begin where the row does. */
static void take_part_of_long(struct reducing *d, uint64_t cell, uint64_t row, bool is_last,
                              size_t n, const char *src)
{
    if (!d->is_ordered) {
        take_elements(d, n, src);
        return;
    }
    if (d->n_pending) {
        size_t n_more = min_u64(n, KERNEL_GRANULE - d->n_pending);
        memcpy(d->pending + ((size_t)d->n_pending << d->item_log2), src, n_more << d->item_log2);
        d->n_pending += (unsigned)n_more;
        src += n_more << d->item_log2;
        n -= n_more;
        if (d->n_pending < KERNEL_GRANULE && !is_last)
            return;
        take_blocks(d, cell, row == 0, d->n_pending, d->pending);
        d->n_pending = 0;
    }
    size_t n_now = is_last ? n : n & ~(size_t)(KERNEL_GRANULE - 1);
    if (n_now)
        take_blocks(d, cell, row == 0, n_now, src);
    d->n_pending = (unsigned)(n - n_now);
    memcpy(d->pending, src + (n_now << d->item_log2), (n - n_now) << d->item_log2);
}

static void finish_part(const struct reducer *r, struct reducing *d, uint64_t cell, uint64_t row)
{
    struct gathered g;
    const struct reduce_state *state = &d->state;
    if (r->row >= REDUCER_SHORT_ROW) {
        finish_row(d, &g, 0);
    } else {
        g.values[0] = state->u64;
        memcpy(g.seconds,
               d->shift ? (const void *)&state->stack[1][0] : (const void *)&state->index,
               sizeof(g.seconds[0]));
    }
    join_rows(r, d, cell, 1, row, &g);
}

/* A piece of one row. */
static void take_part(const struct reducer *r, struct reducing *d, uint64_t at, size_t n,
                      uint64_t cell, uint64_t row, const char *src, const int64_t *positions)
{
    bool is_last = at + n == r->row;
    if (at == 0) {
        d->n_pending = 0;
        if (d->shift && row == 0) /* in a short row: its own */
            d->shift[cell] = element_as_double(d, src);
        begin_row(d, cell);
    }
    if (r->row < REDUCER_SHORT_ROW)
        take_part_of_short(d, at == 0, n, src, positions);
    else
        take_part_of_long(d, cell, row, is_last, n, src);
    if (is_last)
        finish_part(r, d, cell, row);
}

static size_t take_along_rows(const struct reducer *r, struct reducing *d, uint64_t first, size_t n,
                              const char *src, const int64_t *positions)
{
    uint64_t cell, row, at = first % r->row;
    uint64_t n_group = reducer_locate_row(r, first / r->row, &cell, &row);
    d->first = first;
    if (at > 0 || n < r->row) {
        size_t n_now = min_u64(n, r->row - at);
        take_part(r, d, at, n_now, cell, row, src, positions);
        return n_now;
    }
    /* Rows of a group belong to neighbouring cells, for what comes before reduced axes is kept. */
    size_t n_rows = min_u64(n / r->row, n_group);
    take_rows(r, d, cell, n_rows, row, src, positions);
    return n_rows * r->row;
}

/* Rows of the same cells, row_bytes apart. */
static void take_across(const struct reducer *r, struct reducing *d, uint64_t cell, size_t n_cells,
                        uint64_t row, size_t n_rows, const char *src, int64_t row_bytes,
                        const int64_t *positions)
{
    while (n_rows > 0) {
        size_t n_now = min_u64(n_rows, r->block - row % r->block);
        for (size_t i = 0; row == 0 && d->shift && i < n_cells; i++)
            d->shift[cell + i] = element_as_double(d, src + (i << d->item_log2));
        struct reduce_rows rows = {.n_rows = n_now,
                                   .n_cells = n_cells,
                                   .src = src,
                                   .row_bytes = row_bytes,
                                   .indices = positions,
                                   .value = plane_at(d, 0, cell),
                                   .second = plane_at(d, 1, cell),
                                   .shift = d->shift ? d->shift + cell : NULL,
                                   .is_first = begin_block(r, d, cell, n_cells, row)};
        d->rows(&rows);
        src += (int64_t)n_now * row_bytes;
        positions = positions ? positions + n_now * n_cells : NULL;
        row += n_now;
        n_rows -= n_now;
    }
}

static size_t take_across_rows(const struct reducer *r, struct reducing *d, uint64_t first,
                               size_t n, const char *src, const int64_t *positions)
{
    uint64_t cell, row, at = first % r->row;
    uint64_t n_group = reducer_locate_row(r, first / r->row, &cell, &row);
    int64_t row_bytes = (int64_t)(r->row << d->item_log2);
    if (at > 0 || n < r->row) {
        size_t n_now = min_u64(n, r->row - at);
        take_across(r, d, cell + at, n_now, row, 1, src, row_bytes, positions);
        return n_now;
    }
    size_t n_rows = min_u64(n / r->row, n_group);
    take_across(r, d, cell, (size_t)r->row, row, n_rows, src, row_bytes, positions);
    return n_rows * (size_t)r->row;
}

void reducing_take(const struct reducer *r, struct reducing *d, uint64_t first, size_t n,
                   const void *src, const int64_t *positions)
{
    const char *at = src;
    while (n > 0 && !d->twin && !d->is_taken) {
        size_t n_taken = r->is_along_rows ? take_along_rows(r, d, first, n, at, positions)
                                          : take_across_rows(r, d, first, n, at, positions);
        first += n_taken;
        n -= n_taken;
        at += n_taken << d->item_log2;
        positions = positions ? positions + n_taken : NULL;
    }
}

void reducing_take_rows(const struct reducer *r, struct reducing *d, uint64_t first, size_t n_cells,
                        size_t n_rows, const void *src, int64_t row_bytes)
{
    uint64_t cell, row;
    if (d->twin)
        return;
    (void)reducer_locate_row(r, first / r->row, &cell, &row);
    take_across(r, d, cell + first % r->row, n_cells, row, n_rows, src, row_bytes, NULL);
}

void reducing_finish(const struct reducer *r, struct reducing *d)
{
    if (d->twin) {
        memcpy(d->planes[0], d->twin->planes[0], r->n_cells * sizeof(double));
        return;
    }
    for (int i = 0; i < 2 && d->totals[i]; i++) {
        double *value = d->planes[i];
        const double *total = d->totals[i];
        bool is_product = d->reduction->op == OP_PROD;
        for (size_t k = 0; k < r->n_cells; k++)
            value[k] = is_product ? total[k] * value[k] : total[k] + value[k];
    }
    if (d->shift)
        reduce_deviations(r->n_elements, (enum dtype)d->reduction->src.dtype, r->n_cells, d->shift,
                          d->planes[0], d->planes[1]);
}
