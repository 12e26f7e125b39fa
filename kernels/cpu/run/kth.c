/* The kth smallest: keys of a whole box are put by in visiting order, then cells are looked at in
 * blocks that stay in the cache, for all places at once.
 *
 *     rows of many cells:    a block of columns, where the rows lie      median(a, axis=0)
 *     cells of a short row:  turned, so that they are columns            median(a, axis=-1)
 *     others of few keys:    gathered, so that they are columns          median(a, axis=1)
 *     others:                one cell at a time, its keys side by side
 *
 * Called by run.c for each strip and at the end, and by bind_reductions.c.
 */
#include "kernels/cpu/run/kth.h"

#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define TURNED_MAX_ROW (KTH_SOME_BYTES / RANKS_BLOCK_BYTES)

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* 0: of the same rank. */
static int compare_rules(const struct kth_rank *a, const struct kth_rank *b)
{
    int q = compare_numbers(a->q, b->q), shift = compare_numbers(a->shift, b->shift);
    if (q != 0 || shift != 0)
        return q != 0 ? q : shift;
    return a->rounding != b->rounding ? a->rounding - b->rounding : a->is_inner - b->is_inner;
}

static bool has_rule(const struct kth_rank *place)
{
    return place->by == KTH_RANK || place->by == KTH_BEHIND;
}

/* Known places ascend, then come those that follow from counts, and the counts. */
static int compare_places(const struct kth_rank *a, const struct kth_rank *b)
{
    if (has_rule(a) && has_rule(b)) {
        int rule = compare_rules(a, b);
        return rule != 0 ? rule : a->by - b->by;
    }
    return a->by != b->by ? a->by - b->by : compare_numbers(a->at, b->at);
}

static bool is_near(const struct kth_rank *place, const struct kth_rank *before)
{
    if (place->by == KTH_AT && before->by == KTH_AT)
        return place->at <= before->at + 1;
    return has_rule(place) && has_rule(before) && compare_rules(place, before) == 0;
}

void kth_add_place(struct kth *k, const struct kth_rank *place, void *plane)
{
    unsigned i = k->n_places++;
    for (; i > 0 && compare_places(&k->places[i - 1].kth, place) > 0; i--) {
        k->places[i] = k->places[i - 1];
        k->planes[i] = k->planes[i - 1];
    }
    k->places[i].kth = *place;
    k->planes[i] = plane;
    k->has_counts |= place->by != KTH_AT;
}

void kth_find_near(struct kth *k)
{
    for (unsigned i = 0; i < k->n_places; i++)
        k->places[i].is_near = i > 0 && is_near(&k->places[i].kth, &k->places[i - 1].kth);
}

void kth_take(struct kth *k, uint64_t first, size_t n, const void *src)
{
    k->kernels->keep[k->item_log2 - 2](n, k->keys + (first << k->item_log2), src);
}

/* `step`: between the n keys of a cell. */
static void find(const struct kth *k, ranks_fn *const *kernels, uint64_t cell, size_t n_cells,
                 size_t n, size_t step, const char *keys)
{
    void *results[PASS_MAX_REDUCTIONS];
    for (unsigned i = 0; i < k->n_places; i++)
        results[i] = k->planes[i] + (cell << k->item_log2);
    const struct ranked ranked = {.n = n,
                                  .step = step,
                                  .n_columns = n_cells,
                                  .n_places = k->n_places,
                                  .has_counts = k->has_counts,
                                  .places = k->places,
                                  .results = results};
    kernels[k->item_log2 - 2](&ranked, keys);
}

/* The rows of each cell, one after the other: how far behind its first key they begin. Keys are
 * numbered in visiting order. */
struct rows {
    struct box box; /* in keys */
    struct box_place place;
};

static void rows_init(struct rows *rows, const struct reducer *r)
{
    int64_t step = (int64_t)r->row;
    rows->box.n = 0;
    rows->place = (struct box_place){.index = {0}};
    for (unsigned i = r->n_groups; i-- > 0; step *= (int64_t)r->groups[i].count)
        if (r->groups[i].row_step)
            box_add(&rows->box, (int64_t)r->groups[i].count, step, 0);
}

static uint64_t rows_at(const struct rows *rows)
{
    return (uint64_t)rows->place.offset[0];
}

static void rows_next(struct rows *rows)
{
    (void)box_next(rows->box.axes, rows->box.n, &rows->place);
}

static uint64_t first_of_cell(const struct reducer *r, uint64_t cell)
{
    uint64_t at = r->is_along_rows ? 0 : cell % r->row, step = r->row;
    for (unsigned i = r->n_groups; i-- > 0; step *= r->groups[i].count)
        if (!r->groups[i].row_step)
            at += cell / r->groups[i].cell_step % r->groups[i].count * step;
    return at;
}

#define GATHER(T)                                                                                  \
    static void gather_##T(size_t n, T *dst, const T *keys, const uint64_t *first)                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            dst[i] = keys[first[i]];                                                               \
    }
GATHER(uint32_t)
GATHER(uint64_t)

/* Key number `at`, counted from each cell's first one. */
static void gather(const struct kth *k, size_t n, char *dst, uint64_t at, const uint64_t *first)
{
    const char *keys = k->keys + (at << k->item_log2);
    if (k->item_log2 == 2)
        gather_uint32_t(n, (uint32_t *)dst, (const uint32_t *)keys, first);
    else
        gather_uint64_t(n, (uint64_t *)dst, (const uint64_t *)keys, first);
}

static void find_gathered(const struct reducer *r, const struct kth *k)
{
    size_t n_block = RANKS_BLOCK_BYTES >> k->item_log2, n_row = r->is_along_rows ? r->row : 1;
    uint64_t first[RANKS_BLOCK_BYTES / sizeof(uint32_t)];
    for (uint64_t cell = 0; cell < r->n_cells; cell += n_block) {
        size_t n = (size_t)min_u64(n_block, r->n_cells - cell);
        char *to = k->some;
        struct rows rows;
        for (size_t i = 0; i < n; i++)
            first[i] = first_of_cell(r, cell + i);
        rows_init(&rows, r);
        for (uint64_t row = 0; row < r->n_rows; row++, rows_next(&rows))
            for (size_t i = 0; i < n_row; i++, to += RANKS_BLOCK_BYTES)
                gather(k, n, to, rows_at(&rows) + i, first);
        find(k, k->kernels->columns, cell, n, (size_t)r->n_elements, n_block, k->some);
    }
}

static void find_one(const struct reducer *r, const struct kth *k, uint64_t cell)
{
    size_t n_row = r->is_along_rows ? (size_t)r->row : 1;
    uint64_t first = first_of_cell(r, cell);
    char *to = k->some;
    struct rows rows;
    rows_init(&rows, r);
    for (uint64_t row = 0; row < r->n_rows; row++, rows_next(&rows)) {
        if (n_row == 1)
            gather(k, 1, to, rows_at(&rows), &first);
        else
            memcpy(to, k->keys + ((first + rows_at(&rows)) << k->item_log2), n_row << k->item_log2);
        to += n_row << k->item_log2;
    }
    find(k, k->kernels->row, cell, 1, (size_t)r->n_elements, 1, k->some);
}

static void find_columns(const struct reducer *r, const struct kth *k)
{
    size_t n_block = RANKS_BLOCK_BYTES >> k->item_log2, n = (size_t)r->row;
    uint64_t cell = 0;
    for (; cell + n_block <= n; cell += n_block)
        find(k, k->kernels->columns, cell, n_block, (size_t)r->n_rows, n,
             k->keys + (cell << k->item_log2));
    if (cell < n && r->n_rows > TURNED_MAX_ROW) {
        for (; cell < n; cell++)
            find_one(r, k, cell);
    } else if (cell < n) { /* a block of which some columns are not there */
        for (size_t row = 0; row < r->n_rows; row++)
            memcpy(k->some + row * RANKS_BLOCK_BYTES, k->keys + ((row * n + cell) << k->item_log2),
                   (n - cell) << k->item_log2);
        find(k, k->kernels->columns, cell, n - cell, (size_t)r->n_rows, n_block, k->some);
    }
}

static void find_turned(const struct reducer *r, const struct kth *k)
{
    size_t n_block = RANKS_BLOCK_BYTES >> k->item_log2, n = (size_t)r->row;
    for (uint64_t cell = 0; cell < r->n_cells; cell += n_block) {
        struct transposing t = {.n_rows = min_u64(n_block, r->n_cells - cell),
                                .n_columns = n,
                                .src = k->keys + ((cell * n) << k->item_log2),
                                .src_row = (int64_t)(n << k->item_log2),
                                .dst = k->some,
                                .dst_row = RANKS_BLOCK_BYTES};
        k->turn(&t);
        find(k, k->kernels->columns, cell, t.n_rows, n, n_block, k->some);
    }
}

void kth_finish(const struct reducer *r, struct kth *k)
{
    bool is_plain = r->is_along_rows ? r->n_rows == 1 : r->n_cells == r->row;
    memset(k->some, 0, min_u64(r->n_elements, TURNED_MAX_ROW) * RANKS_BLOCK_BYTES);
    if (is_plain && !r->is_along_rows) {
        find_columns(r, k);
        return;
    }
    if (is_plain && r->row <= TURNED_MAX_ROW && r->n_cells > 1) {
        find_turned(r, k);
        return;
    }
    if (!is_plain && r->n_elements <= TURNED_MAX_ROW) {
        find_gathered(r, k);
        return;
    }
    for (uint64_t cell = 0; cell < r->n_cells; cell++)
        if (is_plain)
            find(k, k->kernels->row, cell, 1, (size_t)r->row, 1,
                 k->keys + ((cell * r->row) << k->item_log2));
        else
            find_one(r, k, cell);
}
