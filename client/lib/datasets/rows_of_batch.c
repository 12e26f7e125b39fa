/* Which rows a batch has.
 *
 * A batch is cut among the ranks in order, as evenly as it goes:
 *
 *     batch of 10, world 4      0 1 | 2 3 4 | 5 6 | 7 8 9
 */
#include "client/lib/datasets/loader.h"
#include "proto/util.h"

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
