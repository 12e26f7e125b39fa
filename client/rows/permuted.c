/* Orders of rows, by the permutation of proto/permutation.h.
 *
 * The keys of the rounds are made once. A round waits for the one before it, so several positions
 * are taken through the rounds side by side; those that the rounds take beyond n, fewer than half,
 * walk on by themselves.
 *
 * Called by the windows, which need the rows of many positions in a row.
 */
#include "client/rows/permuted.h"
#include "proto/permutation.h"
#include "proto/util.h"

#define N_ABREAST   8u
#define EPOCH_SEEDS 2u /* the try of the blocks (philox.h) that epochs have their seeds of */

void permuted_init(struct permuted *ret_permuted, uint64_t n, uint64_t seed, uint64_t epoch,
                   bool is_shuffled)
{
    struct philox_block block = philox(seed, epoch, RANDOM_PERMUTATION, EPOCH_SEEDS);
    *ret_permuted = (struct permuted){
        .n = n,
        .seed = epoch == 0 ? seed : philox_u64(&block, 0),
        .is_shuffled = is_shuffled,
        .n_bits = random_bits_of(n),
    };
    _Static_assert(ARRAY_LENGTH(ret_permuted->keys) == RANDOM_KEY_BLOCKS, "keys of all rounds");
    for (unsigned i = 0; i < RANDOM_KEY_BLOCKS; i++)
        ret_permuted->keys[i] = random_round_keys(ret_permuted->seed, i);
}

static uint64_t walk_on(const struct permuted *permuted, uint64_t x)
{
    while (x >= permuted->n)
        for (unsigned i = 0; i < RANDOM_KEY_BLOCKS; i++)
            x = random_feistel_rounds(x, permuted->n_bits, &permuted->keys[i]);
    return x;
}

static void take_abreast(const struct permuted *permuted, uint64_t first, int64_t *ret_rows)
{
    uint64_t x[N_ABREAST];
    for (unsigned k = 0; k < N_ABREAST; k++)
        x[k] = first + k;
    for (unsigned i = 0; i < RANDOM_KEY_BLOCKS; i++)
        for (unsigned k = 0; k < N_ABREAST; k++)
            x[k] = random_feistel_rounds(x[k], permuted->n_bits, &permuted->keys[i]);
    for (unsigned k = 0; k < N_ABREAST; k++)
        ret_rows[k] = (int64_t)walk_on(permuted, x[k]);
}

void permuted_rows(const struct permuted *permuted, uint64_t first, uint64_t n, int64_t *ret_rows)
{
    uint64_t i = 0;
    if (permuted->is_shuffled && permuted->n > RANDOM_FEW)
        for (; i + N_ABREAST <= n; i += N_ABREAST)
            take_abreast(permuted, first + i, ret_rows + i);
    for (; i < n; i++)
        ret_rows[i] = permuted->is_shuffled
                          ? (int64_t)random_permuted(first + i, permuted->seed, permuted->n)
                          : (int64_t)(first + i);
}

uint64_t permuted_position(const struct permuted *permuted, uint64_t row)
{
    return permuted->is_shuffled ? random_unpermuted(row, permuted->seed, permuted->n) : row;
}
