/* Filling batches with rows.
 *
 *     direct    the rows of several batches, sorted by where they lie, into the batches
 *     scan      the rows of a window likewise, into the window, from which batches are copied
 *
 * What cannot be read fails the batches that have rows of it and no others. Whether the files are
 * still what they were is asked after reading.
 *
 * Called by the maker, and by who waits for a batch by number: one at a time for a dataset.
 */
#include "client/lib/datasets/loader.h"
#include "client/rows/large_memory.h"
#include "proto/util.h"

#include <string.h>

static int set_no_memory(struct gad_error *error)
{
    return error_from_errno(error, ENOMEM, NULL, "a window of rows");
}

/* Whether a batch is left out by all ranks where one of them cannot read its rows. */
static bool asks_for_others(const struct gad_loader *loader)
{
    return loader->skips_errors && loader->world > 1;
}

static int init_order(const struct gad_loader *loader, uint64_t n, const int64_t *rows,
                      struct row_order *ret_order)
{
    bool any = true;
    for (unsigned i = 0; i < loader->n_parts; i++)
        any &= loader->parts[i].source->brings_any_order;
    return any ? row_order_of_places(ret_order, n, rows) : row_order_init(ret_order, n, rows);
}

/* n rows of all parts; the base of a part from its batch or window on. A status. */
static int read_rows(struct gad_loader *loader, const int64_t *rows, uint64_t n,
                     struct row_target *targets, uint8_t *failed, const atomic_bool *is_cancelled,
                     struct gad_error *error)
{
    struct row_order order;
    int r = 0;
    if (init_order(loader, n, rows, &order))
        return set_no_memory(error);
    unsigned i = 0;
    struct row_failure failure;
    for (; i < loader->n_parts && r == 0; i++) {
        const struct gather_options options = {
            .failed = failed,
            .mark = (uint8_t)(i + 1),
            .is_cancelled = is_cancelled,
            .meanwhile = i == 0 && is_cancelled ? loader_look_ahead : NULL,
            .meanwhile_state = loader,
        };
        r = gather(loader->parts[i].source, &order, &targets[i], &options, &failure);
    }
    row_order_deinit(&order);
    if (r == ECANCELED)
        return error_set(error, GAD_CANCELLED, NULL, "the batch is not wanted any more");
    if (r == ESTALE)
        return row_source_explain(loader->parts[i - 1].source, failure.first, failure.n, r,
                                  loader->dataset->parts[i - 1].name, error);
    if (r)
        return error_from_errno(error, r, NULL, "reading rows");
    if (asks_for_others(loader) && loader_note_read(loader, rows, n, failed))
        return set_no_memory(error);
    return dataset_check(loader->dataset, error);
}

/* The first of a batch's rows that could not be read, and what is around it, which is read once
 * more for the message. */
static void explain(struct gad_loader *loader, const int64_t *rows, const uint8_t *failed,
                    uint64_t n, struct gad_error *ret_error)
{
    for (uint64_t i = 0; i < n; i++) {
        if (failed[i] == 0)
            continue;
        unsigned part = failed[i] - 1u;
        struct row_source *source = loader->parts[part].source;
        int64_t first, n_rows;
        row_source_unreadable(source, rows[i], &first, &n_rows);
        row_source_explain(source, first, n_rows, 0, loader->dataset->parts[part].name, ret_error);
        return;
    }
}

/* Directly ------------------------------------------------------------------------------------- */

struct direct {
    int64_t *rows;
    uint8_t *failed;
    char **bases; /* by part, then by batch */
    struct row_target *targets;
};

static void direct_deinit(struct direct *direct)
{
    free(direct->rows);
    free(direct->failed);
    free(direct->bases);
    free(direct->targets);
}

static int direct_init(struct direct *direct, const struct gad_loader *loader,
                       struct gad_batch *const *batches, uint64_t n)
{
    uint64_t most = n * loader->rank_rows + 1;
    *direct = (struct direct){
        .rows = malloc(most * sizeof(*direct->rows)),
        .failed = calloc(most, 1),
        .bases = calloc(n * loader->n_parts, sizeof(*direct->bases)),
        .targets = calloc(loader->n_parts, sizeof(*direct->targets)),
    };
    if (!direct->rows || !direct->failed || !direct->bases || !direct->targets)
        return -ENOMEM;
    for (unsigned i = 0; i < loader->n_parts; i++) {
        for (uint64_t j = 0; j < n; j++)
            direct->bases[i * n + j] = batches_rows(batches[j], i);
        direct->targets[i] = (struct row_target){
            .bases = direct->bases + i * n,
            .rows_per_base = max_u64((uint64_t)batches[0]->n_rows, 1),
            .stride_bytes = loader->parts[i].source->row_bytes,
        };
    }
    return 0;
}

/* All but the last batch have the same number of rows, and that one no more. */
static void fill_even(struct gad_loader *loader, struct gad_batch *const *batches, uint64_t n,
                      const atomic_bool *is_cancelled)
{
    struct direct direct;
    struct gad_error error;
    uint64_t n_rows = 0;
    int r = direct_init(&direct, loader, batches, n) ? set_no_memory(&error) : 0;
    for (uint64_t j = 0; j < n && r == 0; j++) {
        memcpy(direct.rows + n_rows, batches[j]->rows,
               (size_t)batches[j]->n_rows * sizeof(*direct.rows));
        n_rows += (uint64_t)batches[j]->n_rows;
    }
    if (r == 0)
        r = read_rows(loader, direct.rows, n_rows, direct.targets, direct.failed, is_cancelled,
                      &error);
    uint64_t at = 0;
    for (uint64_t j = 0; j < n; at += (uint64_t)batches[j++]->n_rows)
        if (r)
            batches[j]->error = error;
        else
            explain(loader, batches[j]->rows, direct.failed + at, (uint64_t)batches[j]->n_rows,
                    &batches[j]->error);
    direct_deinit(&direct);
}

/* Of a batch that is shorter than the others a rank may have one row more than of those. */
static void fill_direct(struct gad_loader *loader, struct gad_batch *const *batches, uint64_t n,
                        const atomic_bool *is_cancelled)
{
    bool is_even = n == 1 || batches[n - 1]->n_rows <= batches[0]->n_rows;
    fill_even(loader, batches, is_even ? n : n - 1, is_cancelled);
    if (!is_even)
        fill_even(loader, batches + n - 1, 1, is_cancelled);
}

/* Through a window ------------------------------------------------------------------------------
 */

static int reserve_window(struct gad_loader *loader)
{
    struct row_window *window = &loader->filled;
    uint64_t most = loader->window * loader->rank_rows + 1;
    if (window->rows)
        return 0;
    window->rows = malloc(most * sizeof(*window->rows));
    window->failed = malloc(most);
    bool is_there = window->rows && window->failed;
    for (unsigned i = 0; i < loader->n_parts && is_there; i++) {
        loader->parts[i].window = large_alloc(most * loader->parts[i].source->row_bytes + 1);
        is_there = loader->parts[i].window;
    }
    if (is_there)
        return 0;
    loader_fill_deinit(loader);
    return -ENOMEM;
}

void loader_fill_deinit(struct gad_loader *loader)
{
    for (unsigned i = 0; loader->parts && i < loader->n_parts; i++) {
        free_ptr(&loader->parts[i].window);
        free_ptr(&loader->parts[i].is_readable);
        free_ptr(&loader->parts[i].is_damaged);
    }
    free_ptr(&loader->coming.rows);
    loader->coming.end = 0;
    free_ptr(&loader->filled.rows);
    free_ptr(&loader->filled.failed);
    loader->filled.end = 0;
}

static void fill_window(struct gad_loader *loader, const struct epoch_order *order, uint64_t first)
{
    struct row_window *window = &loader->filled;
    struct row_target targets[GAD_MAX_PARTS];
    uint64_t n = 0;
    *window = (struct row_window){
        .epoch = order->epoch,
        .seed = order->seed,
        .first = first,
        .end = min_u64(first + loader->window, loader_n_batches(loader)),
        .failed = window->failed,
        .rows = window->rows,
    };
    if (reserve_window(loader)) {
        window->status = set_no_memory(&window->error);
        return;
    }
    for (uint64_t k = first; k < window->end; k++)
        n += loader_batch_rows(loader, order, k, window->rows + n);
    memset(window->failed, 0, n + 1);
    for (unsigned i = 0; i < loader->n_parts; i++)
        targets[i] = (struct row_target){&loader->parts[i].window, n + 1,
                                         loader->parts[i].source->row_bytes};
    window->status = read_rows(loader, window->rows, n, targets, window->failed,
                               &loader->is_cancelled, &window->error);
    if (window->status == GAD_CANCELLED)
        window->end = first;
}

static void fill_from_window(struct gad_loader *loader, const struct epoch_order *order,
                             struct gad_batch *batch)
{
    struct row_window *window = &loader->filled;
    if (window->epoch != order->epoch || window->seed != order->seed || batch->k < window->first ||
        batch->k >= window->end)
        fill_window(loader, order, batch->k);
    if (window->status) {
        batch->error = window->error;
        return;
    }
    uint64_t n = (uint64_t)batch->n_rows; /* those before it have the same number, all of them */
    uint64_t at =
        (batch->k - window->first) * loader_batch_rows(loader, order, window->first, NULL);
    for (unsigned i = 0; i < loader->n_parts; i++) {
        size_t row_bytes = loader->parts[i].source->row_bytes;
        memcpy(batches_rows(batch, i), loader->parts[i].window + at * row_bytes, n * row_bytes);
    }
    explain(loader, batch->rows, window->failed + at, n, &batch->error);
}

void loader_fill(struct gad_loader *loader, const struct epoch_order *order,
                 struct gad_batch *const *batches, uint64_t n, bool is_alone)
{
    struct gad_dataset *dataset = loader->dataset;
    for (uint64_t j = 0; j < n; j++) {
        struct gad_batch *batch = batches[j];
        batch->epoch = order->epoch;
        batch->n_rows =
            (int64_t)(is_alone ? loader_batch_rows(loader, order, batch->k, batch->rows)
                               : loader_coming_rows(loader, order, batch->k, batch->rows));
        for (unsigned i = 0; i < loader->n_parts; i++)
            batch->shapes[i][0] = batch->n_rows;
    }
    pthread_mutex_lock(&dataset->reading);
    if (!is_alone)
        loader_prepare(loader);
    if (is_alone || loader->plan != PLAN_SCAN)
        fill_direct(loader, batches, n, is_alone ? NULL : &loader->is_cancelled);
    else
        for (uint64_t j = 0; j < n; j++)
            fill_from_window(loader, order, batches[j]);
    for (uint64_t j = 0; j < n && asks_for_others(loader); j++)
        if (!batches[j]->error.status)
            loader_check_others(loader, order, batches[j]);
    pthread_mutex_unlock(&dataset->reading);
    for (uint64_t j = 0; j < n; j++)
        for (unsigned i = 0; i < loader->n_parts && !batches[j]->error.status; i++) {
            const struct row_source *source = &dataset->parts[i].source;
            row_source_order_bytes(source, batches_rows(batches[j], i),
                                   (size_t)batches[j]->n_rows * source->row_bytes);
        }
    for (uint64_t j = 0; j < n && loader->transforms; j++)
        if (!batches[j]->error.status)
            loader_transform(loader, order, batches[j]);
}
