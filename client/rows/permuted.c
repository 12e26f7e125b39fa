/* Orders of rows, by the permutation of proto/permutation.h.
 *
 * The keys of the rounds are made once. A round waits for the one before it, so several positions
 * are taken through the rounds side by side, and those that the rounds take beyond n, fewer than
 * half, again as soon as there are as many of them.
 *
 * Called by the windows, which need the rows of many positions in a row.
 */
#include "client/rows/permuted.h"
#include "proto/permutation.h"
#include "proto/util.h"

#define N_ABREAST      8u
#define MAX_TABLE_BITS 28u /* tables of 768 KiB */
#define EPOCH_SEEDS    2u  /* the try of the blocks (philox.h) that epochs have their seeds of */

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

/* Tables --------------------------------------------------------------------------------------- */

/* Of a round's table. */
static uint64_t n_entries(const struct permuted *permuted)
{
    return UINT64_C(1) << (permuted->n_bits + 1) / 2;
}

static void fill_tables(const struct permuted *permuted, uint16_t *entries)
{
    uint32_t n_low = permuted->n_bits / 2, n_high = permuted->n_bits - n_low;
    uint64_t n = n_entries(permuted);
    for (unsigned i = 0; i < RANDOM_ROUNDS; i++) {
        uint64_t key = philox_u64(&permuted->keys[i / 2], i % 2);
        uint64_t mask = (UINT64_C(1) << (i % 2 == 0 ? n_high : n_low)) - 1;
        for (uint64_t half = 0; half < n; half++)
            entries[i * n + half] = (uint16_t)(random_mixed(half, key) & mask);
    }
}

void permuted_use_tables(struct permuted *permuted, struct permuted_tables *tables)
{
    uint64_t n = RANDOM_ROUNDS * n_entries(permuted);
    if (!permuted->is_shuffled || permuted->n <= RANDOM_FEW || permuted->n_bits > MAX_TABLE_BITS ||
        permuted->n < n)
        return;
    if (!tables->entries || tables->n != permuted->n || tables->seed != permuted->seed) {
        permuted_tables_deinit(tables);
        tables->entries = malloc(n * sizeof(*tables->entries));
        if (!tables->entries)
            return;
        fill_tables(permuted, tables->entries);
        tables->n = permuted->n;
        tables->seed = permuted->seed;
    }
    permuted->tables = tables->entries;
}

void permuted_tables_deinit(struct permuted_tables *tables)
{
    free_ptr(&tables->entries);
}

/* Rows ----------------------------------------------------------------------------------------- */

static void look_up(const struct permuted *permuted, uint64_t *x)
{
    uint64_t low[N_ABREAST], high[N_ABREAST], n = n_entries(permuted);
    uint32_t n_low = permuted->n_bits / 2;
    for (unsigned k = 0; k < N_ABREAST; k++) {
        low[k] = x[k] & ((UINT64_C(1) << n_low) - 1);
        high[k] = x[k] >> n_low;
    }
    for (const uint16_t *table = permuted->tables, *end = table + RANDOM_ROUNDS * n; table < end;
         table += 2 * n)
        for (unsigned k = 0; k < N_ABREAST; k++) {
            high[k] ^= table[low[k]];
            low[k] ^= table[n + high[k]];
        }
    for (unsigned k = 0; k < N_ABREAST; k++)
        x[k] = high[k] << n_low | low[k];
}

/* All rounds of N_ABREAST numbers. */
static void take_rounds(const struct permuted *permuted, uint64_t *x)
{
    if (permuted->tables) {
        look_up(permuted, x);
        return;
    }
    for (unsigned i = 0; i < RANDOM_KEY_BLOCKS; i++)
        for (unsigned k = 0; k < N_ABREAST; k++)
            x[k] = random_feistel_rounds(x[k], permuted->n_bits, &permuted->keys[i]);
}

/* Numbers that the rounds took beyond n, and where they go once they are below it. */
struct walkers {
    uint64_t x[N_ABREAST];
    int64_t *to[N_ABREAST];
    unsigned n;
};

static void walk(const struct permuted *permuted, struct walkers *walkers)
{
    unsigned n = walkers->n;
    take_rounds(permuted, walkers->x); /* those behind n are not used */
    walkers->n = 0;
    for (unsigned k = 0; k < n; k++)
        if (walkers->x[k] < permuted->n) {
            *walkers->to[k] = (int64_t)walkers->x[k];
        } else {
            walkers->x[walkers->n] = walkers->x[k];
            walkers->to[walkers->n++] = walkers->to[k];
        }
}

static void take_abreast(const struct permuted *permuted, uint64_t first, int64_t *ret_rows,
                         struct walkers *walkers)
{
    uint64_t x[N_ABREAST];
    for (unsigned k = 0; k < N_ABREAST; k++)
        x[k] = first + k;
    take_rounds(permuted, x);
    for (unsigned k = 0; k < N_ABREAST; k++) {
        if (x[k] < permuted->n) {
            ret_rows[k] = (int64_t)x[k];
            continue;
        }
        walkers->x[walkers->n] = x[k];
        walkers->to[walkers->n++] = ret_rows + k;
        while (walkers->n == N_ABREAST)
            walk(permuted, walkers);
    }
}

void permuted_rows(const struct permuted *permuted, uint64_t first, uint64_t n, int64_t *ret_rows)
{
    struct walkers walkers = {.n = 0};
    uint64_t i = 0;
    if (permuted->is_shuffled && permuted->n > RANDOM_FEW)
        for (; i + N_ABREAST <= n; i += N_ABREAST)
            take_abreast(permuted, first + i, ret_rows + i, &walkers);
    while (walkers.n > 0)
        walk(permuted, &walkers);
    for (; i < n; i++)
        ret_rows[i] = permuted->is_shuffled
                          ? (int64_t)random_permuted(first + i, permuted->seed, permuted->n)
                          : (int64_t)(first + i);
}

uint64_t permuted_position(const struct permuted *permuted, uint64_t row)
{
    return permuted->is_shuffled ? random_unpermuted(row, permuted->seed, permuted->n) : row;
}
