/* The thread that makes batches ahead, in order.
 *
 * Batches of the plan direct are made several at a time, since what is read together is sorted
 * together: while one half of them is with the caller the other half is made. Whoever jumps to
 * another place counts `turn` on: what was being made for the earlier one is thrown away.
 *
 * Started with the first gad_loader_next().
 */
#include "client/lib/datasets/loader.h"
#include "client/rows/kept.h"
#include "proto/util.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* How many batches to make now. Under the lock. */
static uint64_t find_work(const struct gad_loader *loader)
{
    uint64_t left = loader_n_batches(loader) - loader->to_make;
    uint64_t n = loader->n_free > N_KEPT_BATCHES ? loader->n_free - N_KEPT_BATCHES : 0;
    uint64_t group = loader_group(loader);
    n = min_u64(min_u64(n, left), group);
    if (loader->ready && n < left && n < group / 2)
        return 0;
    if (loader->n_ready >= loader_most_ready(loader))
        return 0;
    return n;
}

void maker_wake(struct gad_loader *loader)
{
    if (find_work(loader) > 0)
        pthread_cond_broadcast(&loader->changed);
}

static void append_ready(struct gad_loader *loader, struct gad_batch *batch)
{
    batch->next = NULL;
    *loader->ready_end = batch;
    loader->ready_end = &batch->next;
    loader->n_ready++;
}

/* Under the lock, which is let go meanwhile. */
static void make(struct gad_loader *loader, struct gad_batch **batches, uint64_t n)
{
    struct epoch_order order;
    uint64_t turn = loader->turn;
    atomic_store(&loader->is_cancelled, false);
    for (uint64_t j = 0; j < n; j++) {
        batches[j] = batches_take(loader);
        batches[j]->k = loader->to_make++;
    }
    loader->n_making = (unsigned)n;
    epoch_order_init(&order, loader->shuffle, (uint64_t)loader->n_rows,
                     (uint64_t)loader->batch_size, loader->seed, loader->epoch);
    pthread_mutex_unlock(&loader->lock);
    if (loader->shuffle == ROW_SHUFFLE_EXACT)
        permuted_use_tables(&order.permuted, &loader->tables);
    loader->coming.order = &order;
    loader->coming.next = batches[n - 1]->k + 1;
    loader_fill(loader, &order, batches, n, false);
    pthread_mutex_lock(&loader->lock);
    loader->n_making = 0;
    loader_review_plan(loader);
    for (uint64_t j = 0; j < n; j++)
        if (turn == loader->turn)
            append_ready(loader, batches[j]);
        else
            batches_give(loader, batches[j]);
    pthread_cond_broadcast(&loader->changed);
}

static void *run(void *userdata)
{
    struct gad_loader *loader = userdata;
    struct gad_batch *batches[2048]; /* no loader has more; see loader_plan.c */
    pthread_mutex_lock(&loader->lock);
    while (!loader->is_stopping) {
        uint64_t n = find_work(loader);
        if (n > 0)
            make(loader, batches, n);
        else
            pthread_cond_wait(&loader->changed, &loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

int maker_start(struct gad_loader *loader, struct gad_error *error)
{
    sigset_t all, before;
    if (loader->has_maker)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&loader->maker, NULL, run, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        return error_from_errno(error, r == EAGAIN ? ENOMEM : r, NULL,
                                "starting the thread that makes batches");
    loader->has_maker = true;
    return 0;
}

void maker_stop(struct gad_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->is_stopping = true;
    atomic_store(&loader->is_cancelled, true);
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    if (loader->has_maker)
        pthread_join(loader->maker, NULL);
}

/* Rows that are kept --------------------------------------------------------------------------- */

static void give_up_keeping(struct gad_loader *loader, struct loader_part *part,
                            const struct gad_error *error)
{
    pthread_mutex_lock(&loader->lock);
    part->kept = KEPT_NOT;
    if (loader->plan != PLAN_DIRECT)
        loader->plan = PLAN_SCAN;
    snprintf(loader->note, sizeof(loader->note), "not kept: %.200s", error->message);
    pthread_mutex_unlock(&loader->lock);
}

void loader_prepare(struct gad_loader *loader)
{
    bool is_cancelled = false;
    for (unsigned i = 0; i < loader->n_parts && !loader->is_prepared; i++) {
        struct loader_part *part = &loader->parts[i];
        struct gad_error error;
        if (part->kept == KEPT_NOT || part->own.array)
            continue;
        int r =
            rows_keep(part->source, part->kept == KEPT_IN_SCRATCH ? loader->scratch : NULL,
                      &loader->is_cancelled, loader->dataset->parts[i].name, &part->own, &error);
        if (r == 0) {
            part->source = &part->own;
            continue;
        }
        is_cancelled |= r == GAD_CANCELLED;
        if (r != GAD_CANCELLED)
            give_up_keeping(loader, part, &error);
    }
    loader->is_prepared = !is_cancelled;
}
