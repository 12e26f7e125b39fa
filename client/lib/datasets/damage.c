/* Batches that are left out by all ranks alike.
 *
 * A rank reads its own rows of a batch, and would not know of damage in those of the others. So
 * that which batches are left out is a matter of the data alone, it remembers of which rows it
 * knows that they can be read, and tries what others have of a batch where it does not know: one
 * row of each unit of chunks, as none of a unit's rows can be read where one cannot, else each row.
 * That is asked once in the life of a loader, and most of it is known from the rank's own rows.
 *
 * Called by fill.c, where errors are skipped and there are several ranks.
 */
#include "client/lib/datasets/loader.h"
#include "proto/util.h"

#include <string.h>

#define PROBE_BYTES (UINT64_C(4) << 20) /* that are tried at a time */

struct other_rows {
    int64_t *rows; /* of the whole batch */
    uint64_t n;
    int64_t *tried;
    uint8_t *failed;
    char *buffer;
};

static bool can_fail(const struct row_source *source)
{
    return source->array->access != ACCESS_MEMORY && source->array->access != ACCESS_REGION;
}

static uint64_t unit_of(const struct row_source *source, int64_t row)
{
    return (uint64_t)(source->is_chunked ? row / source->unit_rows : row);
}

static bool has_bit(const uint8_t *bits, uint64_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

static void set_bit(uint8_t *bits, uint64_t i)
{
    bits[i / 8] |= (uint8_t)(1 << i % 8);
}

static void clear_bit(uint8_t *bits, uint64_t i)
{
    bits[i / 8] &= (uint8_t) ~(1 << i % 8);
}

static int reserve(struct loader_part *part)
{
    size_t n_bytes = unit_of(part->source, part->source->n_rows) / 8 + 1;
    if (!part->is_readable)
        part->is_readable = calloc(n_bytes, 1);
    if (!part->is_damaged)
        part->is_damaged = calloc(n_bytes, 1);
    return part->is_readable && part->is_damaged ? 0 : -ENOMEM;
}

static void note(struct loader_part *part, const int64_t *rows, uint64_t n, const uint8_t *failed,
                 uint8_t mark)
{
    for (uint64_t i = 0; i < n; i++)
        if (failed[i] == 0 || failed[i] == mark)
            set_bit(failed[i] ? part->is_damaged : part->is_readable,
                    unit_of(part->source, rows[i]));
}

int loader_note_read(struct gad_loader *loader, const int64_t *rows, uint64_t n,
                     const uint8_t *failed)
{
    int r = 0;
    for (unsigned i = 0; i < loader->n_parts && r == 0; i++) {
        if (!can_fail(loader->parts[i].source))
            continue;
        r = reserve(&loader->parts[i]);
        if (r == 0)
            note(&loader->parts[i], rows, n, failed, (uint8_t)(i + 1));
    }
    return r;
}

/* Rows of which nothing is known, of one part. A positive errno. */
static int try_rows(struct loader_part *part, struct other_rows *others, uint64_t n_tried)
{
    const struct row_target target = {&others->buffer, n_tried, part->source->row_bytes};
    const struct gather_options options = {.failed = others->failed, .mark = 1};
    struct row_failure failure;
    struct row_order order;
    memset(others->failed, 0, n_tried);
    int r = row_order_init(&order, n_tried, others->tried) ? ENOMEM : 0;
    if (r == 0) {
        r = gather(part->source, &order, &target, &options, &failure);
        row_order_deinit(&order);
    }
    if (r == 0)
        note(part, others->tried, n_tried, others->failed, 1);
    for (uint64_t i = 0; i < n_tried && r != 0; i++)
        clear_bit(part->is_readable, unit_of(part->source, others->tried[i]));
    return r;
}

static int try_part(struct loader_part *part, struct other_rows *others)
{
    uint64_t n = 0, most = max_u64(PROBE_BYTES / max_u64(part->source->row_bytes, 1), 1);
    int r = reserve(part) ? ENOMEM : 0;
    for (uint64_t i = 0; i < others->n && r == 0; i++) {
        uint64_t unit = unit_of(part->source, others->rows[i]);
        if (has_bit(part->is_readable, unit) || has_bit(part->is_damaged, unit))
            continue;
        set_bit(part->is_readable, unit); /* until it is found not to be */
        others->tried[n++] = others->rows[i];
        if (n == most)
            r = try_rows(part, others, n);
        n = n == most ? 0 : n;
    }
    return r == 0 && n > 0 ? try_rows(part, others, n) : r;
}

static int others_init(struct other_rows *others, const struct gad_loader *loader,
                       const struct epoch_order *order, uint64_t k)
{
    uint64_t size = (uint64_t)loader->batch_size, start = k * size, row_bytes = 1;
    *others = (struct other_rows){.n = min_u64(size, (uint64_t)loader->n_rows - start)};
    for (unsigned i = 0; i < loader->n_parts; i++)
        row_bytes = max_u64(row_bytes, loader->parts[i].source->row_bytes);
    others->rows = calloc(others->n, sizeof(*others->rows));
    others->tried = calloc(others->n, sizeof(*others->tried));
    others->failed = calloc(others->n, 1);
    others->buffer = malloc(max_u64(min_u64(others->n * row_bytes, PROBE_BYTES), row_bytes));
    if (!others->rows || !others->tried || !others->failed || !others->buffer)
        return ENOMEM;
    epoch_order_rows(order, start, others->n, others->rows);
    return 0;
}

static void explain(struct gad_loader *loader, unsigned part, int64_t row, struct gad_error *ret)
{
    int64_t first, n;
    struct row_source *source = loader->parts[part].source;
    row_source_unreadable(source, row, &first, &n);
    row_source_explain(source, first, n, 0, loader->dataset->parts[part].name, ret);
}

void loader_check_others(struct gad_loader *loader, const struct epoch_order *order,
                         struct gad_batch *batch)
{
    struct other_rows others;
    int r = others_init(&others, loader, order, batch->k);
    unsigned i = 0;
    for (; i < loader->n_parts && r == 0 && !batch->error.status; i++) {
        struct loader_part *part = &loader->parts[i];
        if (!can_fail(part->source))
            continue;
        r = try_part(part, &others);
        for (uint64_t j = 0; j < others.n && r == 0 && !batch->error.status; j++)
            if (has_bit(part->is_damaged, unit_of(part->source, others.rows[j])))
                explain(loader, i, others.rows[j], &batch->error);
    }
    if (r == ESTALE)
        row_source_explain(loader->parts[i - 1].source, others.rows[0], 1, r,
                           loader->dataset->parts[i - 1].name, &batch->error);
    else if (r)
        error_from_errno(&batch->error, r, NULL, "reading what other ranks have of a batch");
    free(others.rows);
    free(others.tried);
    free(others.failed);
    free(others.buffer);
}
