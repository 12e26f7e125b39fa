/* RANDOM_POISSON and RANDOM_PERMUTED: kernels/common/random_poisson.h and random_bits.h over
 * arrays.
 *
 * Poisson: the first try's blocks of a granule are computed together; the rest goes element by
 * element, with what a large mean needs prepared once for a run of equal means.
 *
 * Permutations: what depends on the seed and n alone, the exchanges or the rounds' keys, is
 * computed once a call, and each step is done for a whole granule. A granule is walked on until its
 * last element has arrived; those that have arrived stay where they are.
 */
#include "kernels/cpu/levels/random/random.h"
#include "kernels/common/random_poisson.h"

#include <string.h>

#define BLOCK KERNEL_GRANULE

static struct philox_block block_of_halves(u64 low, u64 high)
{
    return (struct philox_block){
        {(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)},
    };
}

/* Of the last element's mean. */
struct prepared {
    f64 mean, zero;
    struct random_ptrs ptrs;
};

static void prepare(struct prepared *p, f64 mean)
{
    p->mean = mean;
    if (mean < RANDOM_POISSON_LARGE)
        p->zero = random_exp_down(mean);
    else
        p->ptrs = random_ptrs_of(mean);
}

static i64 poisson_of(struct prepared *p, f64 mean, u64 index, u64 seed, u64 low, u64 high)
{
    if (p->mean != mean)
        prepare(p, mean);
    if (mean < RANDOM_POISSON_LARGE)
        return random_poisson_small(mean, p->zero, random_between(low));
    return random_poisson_large(&p->ptrs, block_of_halves(low, high), index, seed);
}

void KERNEL_SYMBOL(random_poisson)(KERNEL_ARGS)
{
    const u64 *numbers = pa, seed = *(const u64 *)pb;
    const f64 *means = pc;
    i64 *d = dst;
    struct prepared p = {.mean = -1};
    for (size_t k = 0; k < n; k += BLOCK) {
        u64 low[BLOCK], high[BLOCK];
        KERNEL_SYMBOL(random_blocks)(numbers + k, seed, RANDOM_POISSON_STREAM, low, high);
        for (size_t i = 0; i < BLOCK; i++) {
            f64 mean = ((const volatile f64 *)means)[k + i]; /* another process may write there */
            u64 number = numbers[k + i];
            bool is_mean = random_is_mean(mean);
            events->n_invalid_casts += !is_mean && k + i < n;
            d[k + i] = is_mean ? poisson_of(&p, mean, number, seed, low[i], high[i]) : INT64_MIN;
        }
    }
}

/* Fisher and Yates: where the exchanges, from the last on, take the granule's numbers. */
static void shuffle_block(u64 *x, u64 n, const u64 *exchanges)
{
    for (u64 k = n; k-- > 1;) {
        u64 other = exchanges[k];
        KERNEL_LOOP
        for (unsigned i = 0; i < BLOCK; i++)
            x[i] = x[i] == k ? other : x[i] == other ? k : x[i];
    }
}

static void feistel_block(u64 *x, u32 n_bits, const struct philox_block *keys)
{
    for (unsigned round = 0; round < RANDOM_KEY_BLOCKS; round++) {
        KERNEL_LOOP
        for (unsigned i = 0; i < BLOCK; i++)
            x[i] = random_feistel_rounds(x[i], n_bits, &keys[round]);
    }
}

static void walk_block(u64 *x, u64 n, u32 n_bits, const struct philox_block *keys)
{
    u64 next[BLOCK], n_left;
    feistel_block(x, n_bits, keys);
    do {
        n_left = 0;
        for (unsigned i = 0; i < BLOCK; i++)
            n_left += x[i] >= n;
        if (n_left == 0)
            return;
        memcpy(next, x, sizeof(next));
        feistel_block(next, n_bits, keys);
        for (unsigned i = 0; i < BLOCK; i++)
            x[i] = x[i] < n ? x[i] : next[i];
    } while (true);
}

static void load_numbers(u64 *x, const u64 *numbers, u64 n)
{
    for (unsigned i = 0; i < BLOCK; i++) {
        u64 number = numbers[i];
        x[i] = number < n ? number : 0;
    }
}

void KERNEL_SYMBOL(random_permuted)(KERNEL_ARGS)
{
    const u64 *numbers = pa, seed = *(const u64 *)pb, length = *(const u64 *)pc;
    u64 *d = dst, exchanges[RANDOM_FEW], x[BLOCK];
    struct philox_block keys[RANDOM_KEY_BLOCKS];
    for (u64 k = 0; k < RANDOM_FEW; k++)
        exchanges[k] = random_exchange(seed, k);
    for (unsigned i = 0; i < RANDOM_KEY_BLOCKS; i++)
        keys[i] = random_round_keys(seed, i);
    for (size_t i = 0; i < n; i += BLOCK) {
        load_numbers(x, numbers + i, length);
        if (length <= RANDOM_FEW)
            shuffle_block(x, length, exchanges);
        else
            walk_block(x, length, random_bits_of(length), keys);
        memcpy(d + i, x, sizeof(x));
    }
}
