/* Loaders, as the caller has them.
 *
 * All that batches are told by is under one lock, which nobody holds while rows are read, so that a
 * batch that is ready is a matter of a lock and a list. A batch that is held counts as a reference:
 * the memory of all goes with the last of them.
 */
#include "client/lib/datasets/loader.h"
#include "client/lib/scans/row_copier.h"
#include "client/lib/scans/shared_rows.h"
#include "client/clock.h"
#include "client/lib/connection/client.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void free_memory(struct gad_loader *loader)
{
    batches_free(loader);
    free(loader->parts);
    free(loader->scratch);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

static void unref(struct gad_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    bool is_last = --loader->n_refs == 0;
    pthread_mutex_unlock(&loader->lock);
    if (is_last)
        free_memory(loader);
}

/* Under the lock. A jump to a batch: everything that was made is of no use. */
static void jump(struct gad_loader *loader, uint64_t seed, uint64_t epoch, uint64_t next)
{
    loader->turn++;
    loader->seed = seed;
    loader->epoch = epoch;
    loader->next = loader->to_make = next;
    atomic_store(&loader->is_cancelled, true);
    while (loader->ready) {
        struct gad_batch *batch = loader->ready;
        loader->ready = batch->next;
        batches_give(loader, batch);
    }
    loader->n_ready = 0;
    loader->ready_end = &loader->ready;
    pthread_cond_broadcast(&loader->changed);
}

/* Where another loader of the dataset reads just now, the sources stay as they are. */
static void share_scans(struct gad_dataset *dataset)
{
    if (pthread_mutex_trylock(&dataset->reading) != 0)
        return;
    for (unsigned i = 0; i < dataset->n_parts; i++)
        if (!dataset->parts[i].shared)
            dataset->parts[i].shared = shared_rows_new(dataset->client, &dataset->parts[i].source);
    pthread_mutex_unlock(&dataset->reading);
}

static int init(struct gad_loader *loader, struct gad_dataset *dataset,
                const struct gad_loader_options *options, struct gad_error *error)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&loader->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&loader->lock, NULL);
    loader->n_refs = 1;
    loader->ready_end = &loader->ready;
    loader->process = getpid();
    loader->dataset = dataset_ref(dataset);
    loader->n_rows = dataset->n_rows;
    loader->n_parts = dataset->n_parts;
    loader->parts = calloc(loader->n_parts, sizeof(*loader->parts));
    if (!loader->parts)
        return -ENOMEM;
    for (unsigned i = 0; i < loader->n_parts; i++) {
        const struct gad_array_info *info = &dataset->parts[i].source.array->info;
        loader->parts[i].source = &dataset->parts[i].source;
        loader->parts[i].layout = (struct gad_layout){.dtype = info->dtype, .ndim = info->ndim};
    }
    int r = loader_plan(loader, options, error);
    if (r == 0 && loader->plan == PLAN_SCAN)
        share_scans(dataset);
    if (r == 0)
        r = loader_add_transforms(loader, options, error);
    if (r == 0)
        r = batches_new(loader, error);
    return r ? r : loader_copy_rows(loader, error);
}

enum gad_status gad_loader_new(struct gad_dataset *dataset,
                               const struct gad_loader_options *options,
                               struct gad_loader **ret_loader, struct gad_error *error)
{
    if (!dataset || !options || !ret_loader)
        return error_set(error, GAD_BAD_ARGUMENT,
                         !dataset   ? "dataset"
                         : !options ? "options"
                                    : "ret_loader",
                         "is NULL");
    struct gad_loader *loader = calloc(1, sizeof(*loader));
    if (!loader)
        return client_status(-ENOMEM, error);
    int r = init(loader, dataset, options, error);
    if (r) {
        gad_loader_free(loader);
        return client_status(r, error);
    }
    *ret_loader = loader;
    return GAD_OK;
}

void gad_loader_free(struct gad_loader *loader)
{
    if (!loader)
        return;
    if (loader->process == getpid()) /* in a child there is no thread */
        maker_stop(loader);
    loader_fill_deinit(loader);
    permuted_tables_deinit(&loader->tables);
    loader->copier = row_copier_free(loader->copier);
    for (unsigned i = 0; loader->parts && i < loader->n_parts; i++)
        row_source_deinit(&loader->parts[i].own);
    gad_dataset_free(loader->dataset);
    loader->dataset = NULL;
    unref(loader);
}

/* Questions ------------------------------------------------------------------------------------ */

static int check_loader(const struct gad_loader *loader, const void *ret, struct gad_error *error)
{
    if (!loader || !ret)
        return error_set(error, GAD_BAD_ARGUMENT, loader ? "ret" : "loader", "is NULL");
    if (loader->process != getpid())
        return error_set(error, GAD_BAD_ARGUMENT, "loader",
                         "the loader is of the process before fork(); make one here");
    return 0;
}

uint64_t gad_loader_length(const struct gad_loader *loader)
{
    return loader ? loader_n_batches(loader) : 0;
}

/* One of its numbers, which other threads may change. */
static uint64_t locked(const struct gad_loader *loader, const uint64_t *number)
{
    struct gad_loader *own = (struct gad_loader *)(uintptr_t)loader;
    pthread_mutex_lock(&own->lock);
    uint64_t n = *number;
    pthread_mutex_unlock(&own->lock);
    return n;
}

uint64_t gad_loader_skipped(const struct gad_loader *loader)
{
    return loader ? locked(loader, &loader->n_skipped) : 0;
}

uint64_t gad_loader_epoch(const struct gad_loader *loader)
{
    return loader ? locked(loader, &loader->epoch) : 0;
}

enum gad_status gad_loader_set_epoch(struct gad_loader *loader, uint64_t epoch,
                                     struct gad_error *error)
{
    if (!loader)
        return error_set(error, GAD_BAD_ARGUMENT, "loader", "is NULL");
    return (enum gad_status)loader_jump(loader, NULL, epoch, 0, error);
}

static void explain_parts(const struct gad_loader *loader, FILE *text)
{
    static const char *const kept[] = {
        [KEPT_NOT] = "", [KEPT_IN_MEMORY] = ", kept in memory", [KEPT_IN_SCRATCH] = ", copied"};
    for (unsigned i = 0; i < loader->n_parts; i++) {
        const struct row_source *source = &loader->dataset->parts[i].source;
        fprintf(text, "part      %s: %s, rows of %zu bytes, ", loader->dataset->parts[i].name,
                source->array->info.format, source->row_bytes);
        if (source->unit_rows > 1)
            fprintf(text, "%" PRId64 " are read together%s\n", source->unit_rows,
                    kept[loader->parts[i].kept]);
        else
            fprintf(text, "each read by itself%s%s\n", kept[loader->parts[i].kept],
                    loader->parts[i].source->bring ? ", by a process that maps the file" : "");
    }
}

static void explain_plan(const struct gad_loader *loader, FILE *text)
{
    static const char *const orders[] = {
        "in order", "shuffled", "blocks of 16 batches shuffled, rows mixed among 8 (approximate)"};
    uint64_t n = loader_n_batches(loader);
    fprintf(text, "rows      %" PRId64 ", %s; %" PRIu64 " batches of %" PRId64 "\n", loader->n_rows,
            orders[loader->shuffle], n, loader->batch_size);
    if (loader->world > 1)
        fprintf(text, "rank      %" PRIu32 " of %" PRIu32 "\n", loader->rank, loader->world);
    if (loader->plan == PLAN_SCAN)
        fprintf(text,
                "plan      scan: %" PRIu64 " windows of %" PRIu64
                " batches, for each of which a unit is decoded once\n",
                n > 0 ? (n - 1) / loader->window + 1 : 0, loader->window);
    else
        fprintf(text, "plan      %s: up to %" PRIu64 " batches are read together\n",
                loader_plan_name(loader->plan), loader->group);
    if (loader->note[0])
        fprintf(text, "note      %s\n", loader->note);
    fprintf(text, "memory    %" PRIu64 " bytes of windows at most, %u batches of %zu bytes\n",
            loader->memory_bytes, loader->n_batches, loader->batch_bytes);
}

enum gad_status gad_loader_explain(struct gad_loader *loader, char **ret_text,
                                   struct gad_error *error)
{
    size_t n_bytes;
    char *written = NULL;
    int r = check_loader(loader, ret_text, error);
    if (r)
        return (enum gad_status)r;
    FILE *text = open_memstream(&written, &n_bytes);
    if (!text)
        return client_status(-ENOMEM, error);
    pthread_mutex_lock(&loader->lock);
    explain_plan(loader, text);
    explain_parts(loader, text);
    pthread_mutex_unlock(&loader->lock);
    if (fclose(text)) {
        free(written);
        return client_status(-ENOMEM, error);
    }
    *ret_text = written;
    return GAD_OK;
}

/* Batches -------------------------------------------------------------------------------------- */

static int all_are_held(const struct gad_loader *loader, struct gad_error *error)
{
    unsigned most = loader->n_batches - N_KEPT_BATCHES - 1;
    error_set(
        error, GAD_LIMIT_EXCEEDED, "loader",
        "%u batches are held, and there is no memory for another one: let one go, or copy it, "
        "before the next; with a larger prefetch more can be held",
        loader->n_refs - 1);
    error_expected(error, "at most %u held batches", most);
    error_found(error, "%u", loader->n_refs - 1);
    return GAD_LIMIT_EXCEEDED;
}

static bool is_at_end(const struct gad_loader *loader)
{
    return loader->next >= loader_n_batches(loader);
}

/* Under the lock. Waits until a batch is ready, or others have taken all that there were. */
static int wait_ready(struct gad_loader *loader, int timeout_ms, struct gad_error *error)
{
    int64_t deadline = clock_deadline_ms(timeout_ms);
    while (!loader->ready && !is_at_end(loader)) {
        int64_t left = deadline == DEADLINE_NEVER ? INT32_MAX : deadline - clock_now_ms();
        if (loader->n_making == 0 && loader->n_free <= N_KEPT_BATCHES)
            return all_are_held(loader, error);
        if (left <= 0)
            return error_set(error, GAD_TIMEOUT, "timeout_ms", "the batch is not ready yet");
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += left / 1000;
        until.tv_nsec += left % 1000 * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&loader->changed, &loader->lock, &until);
    }
    return 0;
}

/* Under the lock. *ret_batch NULL: the batch was left out. */
static int hand_over(struct gad_loader *loader, struct gad_batch *batch,
                     struct gad_batch **ret_batch, struct gad_error *error)
{
    int r = batch->error.status;
    bool is_skipped = loader->skips_errors && (r == GAD_PROVIDER_FAILED || r == GAD_SHORT_READ);
    if (r == 0) {
        loader->n_refs++;
        *ret_batch = batch;
        return 0;
    }
    if (error && !is_skipped)
        *error = batch->error;
    batches_give(loader, batch);
    maker_wake(loader);
    loader->n_skipped += is_skipped;
    *ret_batch = NULL;
    return is_skipped ? 0 : r;
}

enum gad_status gad_loader_next(struct gad_loader *loader, int timeout_ms,
                                struct gad_batch **ret_batch, struct gad_error *error)
{
    struct gad_batch *batch = NULL;
    int r = check_loader(loader, ret_batch, error);
    if (r)
        return (enum gad_status)r;
    pthread_mutex_lock(&loader->lock);
    r = maker_start(loader, error);
    while (r == 0 && !batch && !is_at_end(loader)) {
        r = wait_ready(loader, timeout_ms, error);
        if (r || !loader->ready)
            break;
        batch = loader->ready;
        loader->ready = batch->next;
        if (!loader->ready)
            loader->ready_end = &loader->ready;
        loader->n_ready--;
        loader->next++;
        maker_wake(loader);
        if (is_at_end(loader)) /* others wait for what does not come */
            pthread_cond_broadcast(&loader->changed);
        r = hand_over(loader, batch, &batch, error);
    }
    pthread_mutex_unlock(&loader->lock);
    if (r == 0)
        *ret_batch = batch;
    return (enum gad_status)r;
}

enum gad_status gad_loader_batch(struct gad_loader *loader, uint64_t k,
                                 struct gad_batch **ret_batch, struct gad_error *error)
{
    struct epoch_order order;
    int r = check_loader(loader, ret_batch, error);
    if (r)
        return (enum gad_status)r;
    if (k >= loader_n_batches(loader)) {
        error_set(error, GAD_BAD_INDEX, "k", "there is no batch %" PRIu64, k);
        error_expected(error, "below %" PRIu64, loader_n_batches(loader));
        error_found(error, "%" PRIu64, k);
        return GAD_BAD_INDEX;
    }
    pthread_mutex_lock(&loader->lock);
    struct gad_batch *batch = batches_take(loader);
    epoch_order_init(&order, loader->shuffle, (uint64_t)loader->n_rows,
                     (uint64_t)loader->batch_size, loader->seed, loader->epoch);
    if (!batch)
        r = all_are_held(loader, error);
    pthread_mutex_unlock(&loader->lock);
    if (r)
        return (enum gad_status)r;
    batch->k = k;
    loader_fill(loader, &order, &batch, 1, true);
    pthread_mutex_lock(&loader->lock);
    r = batch->error.status;
    if (r && error)
        *error = batch->error;
    if (r)
        batches_give(loader, batch);
    else
        loader->n_refs++;
    pthread_mutex_unlock(&loader->lock);
    if (r == 0)
        *ret_batch = batch;
    return (enum gad_status)r;
}

enum gad_status gad_batch_layout(const struct gad_batch *batch, unsigned part,
                                 struct gad_layout *ret_layout)
{
    const struct gad_loader *loader = batch->loader;
    if (part >= loader->n_parts)
        return GAD_BAD_ARGUMENT;
    *ret_layout = loader->parts[part].layout;
    ret_layout->shape = batch->shapes[part];
    return GAD_OK;
}

void gad_batch_release(struct gad_batch *batch)
{
    if (!batch)
        return;
    struct gad_loader *loader = batch->loader;
    pthread_mutex_lock(&loader->lock);
    batches_give(loader, batch);
    maker_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    unref(loader);
}

/* States --------------------------------------------------------------------------------------- */

int loader_jump(struct gad_loader *loader, const uint64_t *seed, uint64_t epoch, uint64_t next,
                struct gad_error *error)
{
    int r = check_loader(loader, loader, error);
    if (r)
        return r;
    pthread_mutex_lock(&loader->lock);
    jump(loader, seed ? *seed : loader->seed, epoch, next);
    pthread_mutex_unlock(&loader->lock);
    return 0;
}
