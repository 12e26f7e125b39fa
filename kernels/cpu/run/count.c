/* Counting: how often each number of a bin is there, for each cell of a box.
 *
 * Where many elements belong to one cell they are counted in several small tables in turn: equal
 * numbers that follow on each other then do not wait for each other's counter to reach memory and
 * come back. A table has one counter more, for numbers outside of the bins, so that nothing
 * branches on data. Tables are added to the node's plane when the cell changes and at the end;
 * counters have 32 bits, and a cell with more elements than these can count has no tables.
 *
 * Elsewhere, and for sums of weights, whose order shows in the bits, elements go into the plane one
 * after the other in visiting order: a weight of 0.0 into bin 0 for what is outside.
 *
 * Numbers may lie in memory that another process writes to: each is read once. Called by run.c for
 * each strip, and by bind.c.
 */
#include "kernels/cpu/run/count.h"

#include "proto/util.h"

#include <string.h>

#define TABLES_MAX_BYTES                                                                           \
    (32u << 10)           /* of one BINCOUNT: they should stay in the first-level cache */
#define ROW_PER_BIN     4 /* a row with fewer elements to a bin does without tables */
#define COUNTERS_A_LINE 16

static size_t table_step(uint32_t n_bins)
{
    return round_up_u64((uint64_t)n_bins + 1, COUNTERS_A_LINE) + COUNTERS_A_LINE;
}

size_t counting_choose_tables(struct counting *c, const struct reducer *r, size_t room_bytes)
{
    uint64_t n_together = r->n_cells == 1 ? r->n_elements : r->is_along_rows ? r->row : 0;
    c->n_tables = 0;
    c->table_step = table_step(c->n_bins);
    size_t n_bytes = c->table_step * sizeof(uint32_t);
    if (c->has_weights || n_together / ROW_PER_BIN < c->n_bins || r->n_elements > UINT32_MAX)
        return 0;
    for (unsigned n = COUNT_MAX_TABLES; n > 1; n /= 2) {
        if (n * n_bytes > min_u64(room_bytes, TABLES_MAX_BYTES))
            continue;
        c->n_tables = n;
        return n * n_bytes;
    }
    return 0;
}

void counting_begin(struct counting *c, const struct reducer *r, uint32_t *tables)
{
    c->tables = tables;
    c->open_cell = 0;
    memset(c->plane, 0, r->n_cells * c->n_bins * sizeof(uint64_t));
    if (c->n_tables)
        memset(tables, 0, c->n_tables * c->table_step * sizeof(uint32_t));
}

static void close_cell(struct counting *c)
{
    uint64_t *counts = (uint64_t *)c->plane + c->open_cell * c->n_bins;
    for (unsigned k = 0; k < c->n_tables; k++) {
        uint32_t *table = c->tables + k * c->table_step;
        for (size_t i = 0; i < c->n_bins; i++)
            counts[i] += table[i];
        memset(table, 0, c->table_step * sizeof(*table));
    }
}

static inline uint64_t bin_at(const int64_t *bins, size_t i, uint64_t n_bins)
{
    uint64_t bin = ((const volatile uint64_t *)bins)[i];
    uint64_t is_inside = 0 - (uint64_t)(bin < n_bins);
    return (bin & is_inside) | (n_bins & ~is_inside); /* no branch that could be mispredicted */
}

static void count_in_tables(struct counting *c, size_t n, const int64_t *bins)
{
    uint64_t n_bins = c->n_bins;
    uint32_t *even = c->tables, *odd = even + c->table_step;
    uint32_t *third = c->n_tables > 2 ? odd + c->table_step : even;
    uint32_t *fourth = c->n_tables > 2 ? third + c->table_step : odd;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        even[bin_at(bins, i, n_bins)]++;
        odd[bin_at(bins, i + 1, n_bins)]++;
        third[bin_at(bins, i + 2, n_bins)]++;
        fourth[bin_at(bins, i + 3, n_bins)]++;
    }
    for (; i < n; i++)
        even[bin_at(bins, i, n_bins)]++;
}

/* step: from one element's bins to the next one's; 0: they are the same cell's. */
static void count_in_plane(const struct counting *c, uint64_t cell, size_t step, size_t n,
                           const int64_t *bins)
{
    uint64_t n_bins = c->n_bins, *counts = (uint64_t *)c->plane + cell * n_bins;
    for (size_t i = 0; i < n; i++, counts += step) {
        uint64_t bin = bin_at(bins, i, n_bins);
        counts[bin < n_bins ? bin : 0] += bin < n_bins;
    }
}

static void add_weights(const struct counting *c, uint64_t cell, size_t step, size_t n,
                        const int64_t *bins, const double *weights)
{
    uint64_t n_bins = c->n_bins;
    double *sums = (double *)c->plane + cell * n_bins;
    for (size_t i = 0; i < n; i++, sums += step) {
        uint64_t bin = bin_at(bins, i, n_bins);
        sums[bin < n_bins ? bin : 0] += bin < n_bins ? weights[i] : 0.0;
    }
}

static void take_one_cell(struct counting *c, uint64_t cell, size_t n, const int64_t *bins,
                          const double *weights)
{
    if (weights) {
        add_weights(c, cell, 0, n, bins, weights);
        return;
    }
    if (c->n_tables == 0) {
        count_in_plane(c, cell, 0, n, bins);
        return;
    }
    if (cell != c->open_cell)
        close_cell(c);
    c->open_cell = cell;
    count_in_tables(c, n, bins);
}

void counting_take(const struct reducer *r, struct counting *c, uint64_t first, size_t n,
                   const int64_t *bins, const double *weights)
{
    while (n > 0) {
        uint64_t cell, row, at = first % r->row;
        size_t n_now = r->n_cells == 1 ? n : min_u64(n, r->row - at);
        (void)reducer_locate_row(r, first / r->row, &cell, &row);
        if (r->is_along_rows || r->n_cells == 1)
            take_one_cell(c, cell, n_now, bins, weights);
        else if (weights)
            add_weights(c, cell + at, c->n_bins, n_now, bins, weights);
        else
            count_in_plane(c, cell + at, c->n_bins, n_now, bins);
        first += n_now;
        n -= n_now;
        bins += n_now;
        weights = weights ? weights + n_now : NULL;
    }
}

void counting_finish(struct counting *c)
{
    if (c->n_tables)
        close_cell(c);
}
