/* Which rows a batch has.
 *
 * A batch is cut among the ranks in order, as evenly as it goes:
 *
 *     batch of 10, world 4      0 1 | 2 3 4 | 5 6 | 7 8 9
 */
#include "client/lib/datasets/loader.h"
#include "proto/util.h"

#include <string.h>

uint64_t loader_n_batches(const struct gad_loader *loader)
{
    uint64_t n_rows = (uint64_t)loader->n_rows, size = (uint64_t)loader->batch_size;
    return n_rows / size + (!loader->drop_last && n_rows % size != 0);
}

uint64_t loader_batch_rows(const struct gad_loader *loader, const struct epoch_order *order,
                           uint64_t k, int64_t *ret_rows)
{
    uint64_t size = (uint64_t)loader->batch_size, start = k * size;
    uint64_t n = min_u64(size, (uint64_t)loader->n_rows - start);
    /* Sizes are below 2^31 where ranks are counted; see loader_plan.c. */
    uint64_t low = n * loader->rank / loader->world, high = n * (loader->rank + 1) / loader->world;
    if (ret_rows)
        epoch_order_rows(order, start + low, high - low, ret_rows);
    return high - low;
}

void loader_look_ahead(void *state)
{
    struct gad_loader *loader = state;
    struct coming_rows *coming = &loader->coming;
    uint64_t n = 0, group = loader_group(loader);
    if (!coming->rows) {
        coming->n_most = group;
        coming->rows = malloc((group * loader->rank_rows + 1) * sizeof(*coming->rows));
    }
    if (!coming->rows)
        return;
    coming->epoch = coming->order->epoch;
    coming->seed = coming->order->seed;
    coming->first = coming->next;
    coming->end = min_u64(coming->next + min_u64(group, coming->n_most), loader_n_batches(loader));
    for (uint64_t k = coming->first; k < coming->end; k++)
        n += loader_batch_rows(loader, coming->order, k, coming->rows + n);
}

uint64_t loader_coming_rows(struct gad_loader *loader, const struct epoch_order *order, uint64_t k,
                            int64_t *ret_rows)
{
    const struct coming_rows *coming = &loader->coming;
    if (coming->epoch != order->epoch || coming->seed != order->seed || k < coming->first ||
        k >= coming->end)
        return loader_batch_rows(loader, order, k, ret_rows);
    /* Batches before it have the same number of rows, all of them. */
    uint64_t at = (k - coming->first) * loader_batch_rows(loader, order, coming->first, NULL);
    uint64_t n = loader_batch_rows(loader, order, k, NULL);
    memcpy(ret_rows, coming->rows + at, n * sizeof(*ret_rows));
    return n;
}
