/* Rows by position.
 *
 * Shuffled by blocks: the dataset is cut into blocks of BLOCK_BATCHES batches, which are permuted;
 * GROUP_BLOCKS of them at a time are a group, whose rows are permuted with a seed of their own:
 *
 *     blocks      0 1 2 3 4 5 6 7'       (7' is shorter)
 *     epoch       5 2 7' 0 | 6 3 1 4     groups of 4; rows are mixed inside each
 *
 * So a group reads few places, and the order depends on nothing but the number of rows and the
 * batch size.
 */
#include "client/rows/epoch_order.h"
#include "proto/util.h"

#define BLOCK_BATCHES 16u
#define GROUP_BLOCKS  8u

void epoch_order_init(struct epoch_order *ret_order, enum row_shuffle shuffle, uint64_t n_rows,
                      uint64_t batch_size, uint64_t seed, uint64_t epoch)
{
    struct epoch_order order = {.shuffle = shuffle, .n_rows = n_rows, .seed = seed, .epoch = epoch};
    uint64_t n = n_rows;
    if (shuffle == ROW_SHUFFLE_BLOCKS && n_rows > 0) {
        order.block_rows = min_u64(batch_size, n_rows) * BLOCK_BATCHES;
        n = order.n_blocks = (n_rows - 1) / order.block_rows + 1;
        order.last_rows = n_rows - (n - 1) * order.block_rows;
    }
    permuted_init(&order.permuted, n, seed, epoch, shuffle != ROW_SHUFFLE_NONE);
    if (order.n_blocks > 0)
        order.last_at = permuted_position(&order.permuted, n - 1);
    *ret_order = order;
}

/* The first position of the how manieth block of the epoch. */
static uint64_t block_start(const struct epoch_order *order, uint64_t at)
{
    uint64_t missing = order->block_rows - order->last_rows;
    return at * order->block_rows - (order->last_at < at ? missing : 0);
}

/* Blocks whose rows are mixed. */
struct group {
    uint64_t first_at, end_at; /* of the epoch's blocks */
    uint64_t start, end;       /* positions */
    struct permuted mixed;
};

static void find_group(const struct epoch_order *order, uint64_t position, struct group *ret_group)
{
    /* The last block makes those behind it begin earlier: a guess is one too low at most. */
    uint64_t at = position / order->block_rows / GROUP_BLOCKS * GROUP_BLOCKS;
    if (at + GROUP_BLOCKS < order->n_blocks && block_start(order, at + GROUP_BLOCKS) <= position)
        at += GROUP_BLOCKS;
    ret_group->first_at = at;
    ret_group->end_at = min_u64(at + GROUP_BLOCKS, order->n_blocks);
    ret_group->start = block_start(order, at);
    ret_group->end = ret_group->end_at == order->n_blocks ? order->n_rows
                                                          : block_start(order, ret_group->end_at);
    permuted_init(&ret_group->mixed, ret_group->end - ret_group->start,
                  order->permuted.seed + 1 + at, order->epoch, true);
}

static int64_t row_of(const struct epoch_order *order, const struct group *group, uint64_t position)
{
    int64_t mixed, block;
    permuted_rows(&group->mixed, position - group->start, 1, &mixed);
    uint64_t source = group->start + (uint64_t)mixed;
    uint64_t at = group->first_at + (uint64_t)mixed / order->block_rows;
    if (at + 1 < group->end_at && block_start(order, at + 1) <= source)
        at++;
    permuted_rows(&order->permuted, at, 1, &block);
    return block * (int64_t)order->block_rows + (int64_t)(source - block_start(order, at));
}

void epoch_order_rows(const struct epoch_order *order, uint64_t first, uint64_t n,
                      int64_t *ret_rows)
{
    struct group group = {.end = 0};
    if (order->shuffle != ROW_SHUFFLE_BLOCKS) {
        permuted_rows(&order->permuted, first, n, ret_rows);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (first + i >= group.end)
            find_group(order, first + i, &group);
        ret_rows[i] = row_of(order, &group, first + i);
    }
}
