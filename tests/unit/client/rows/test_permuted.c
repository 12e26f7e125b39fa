/* Orders of rows: every row once, there and back, epochs of their own, and no pattern in where
 * pairs of positions go. */
#include "client/rows/permuted.h"
#include "proto/permutation.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED  0x9d2c5680u
#define LIMIT 5 /* standard deviations; seeds are fixed, so that a test that passes always does */

static void check_every_row_once(uint64_t n, int64_t *rows, uint8_t *seen)
{
    struct permuted permuted;
    permuted_init(&permuted, n, SEED, 3, true);
    permuted_rows(&permuted, 0, n, rows);
    memset(seen, 0, n);
    for (uint64_t i = 0; i < n; i++) {
        bool is_new = (uint64_t)rows[i] < n && !seen[rows[i]];
        cr_assert(is_new, "n %lu, position %lu", n, i);
        seen[rows[i]] = 1;
    }
}

Test(permuted, takes_every_row_once)
{
    int64_t *rows = malloc(1000003 * sizeof(*rows));
    uint8_t *seen = malloc(1000003);
    for (uint64_t n = 1; n <= 2000; n++)
        check_every_row_once(n, rows, seen);
    for (uint64_t n = 2001; n <= 10000; n += 29)
        check_every_row_once(n, rows, seen);
    check_every_row_once(1000003, rows, seen);
    free(rows);
    free(seen);
}

Test(permuted, is_the_same_by_tables)
{
    static const uint64_t lengths[] = {65, 1972, 4096, 99991, (1u << 18) + 1, 1u << 20};
    struct permuted_tables tables = {.n = 0};
    int64_t own[1003], by_tables[1003];
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        struct permuted permuted;
        uint64_t n = lengths[k] < 1003 ? lengths[k] : 1003;
        permuted_init(&permuted, lengths[k], SEED, k, true);
        permuted_rows(&permuted, lengths[k] - n, n, own);
        permuted_use_tables(&permuted, &tables);
        cr_assert(eq(int, permuted.tables != NULL, lengths[k] > 1000));
        permuted_rows(&permuted, lengths[k] - n, n, by_tables);
        cr_assert(memcmp(own, by_tables, n * sizeof(*own)) == 0, "n %lu", lengths[k]);
    }
    permuted_tables_deinit(&tables);
}

Test(permuted, goes_there_and_back)
{
    static const uint64_t lengths[] = {1,    2,     3,        64,       65,
                                       127,  128,   129,      1000,     4096,
                                       4097, 99991, 1u << 20, 10000019, UINT64_C(1) << 40};
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        uint64_t n = lengths[k], step = n / 1000 + 1;
        struct permuted permuted;
        int64_t row;
        permuted_init(&permuted, n, SEED, k, true);
        for (uint64_t i = 0; i < n; i += step) {
            permuted_rows(&permuted, i, 1, &row);
            cr_assert(eq(u64, permuted_position(&permuted, (uint64_t)row), i));
        }
    }
}

Test(permuted, is_the_permutation_of_expressions_in_epoch_0)
{
    int64_t rows[1000];
    struct permuted permuted;
    permuted_init(&permuted, 1000, SEED, 0, true);
    permuted_rows(&permuted, 0, 1000, rows);
    for (uint64_t i = 0; i < 1000; i++)
        cr_assert(eq(u64, (uint64_t)rows[i], random_permuted(i, SEED, 1000)));
}

Test(permuted, has_the_same_rows_from_any_position_on)
{
    int64_t rows[500], some[500];
    struct permuted permuted;
    permuted_init(&permuted, 500, SEED, 1, true);
    permuted_rows(&permuted, 0, 500, rows);
    for (uint64_t first = 0; first < 500; first += 37)
        for (uint64_t n = 0; n <= 20 && first + n <= 500; n++) {
            permuted_rows(&permuted, first, n, some);
            cr_assert(memcmp(some, rows + first, n * sizeof(*some)) == 0);
        }
    permuted_init(&permuted, 500, SEED, 1, false);
    permuted_rows(&permuted, 100, 2, some);
    cr_assert(eq(i64, some[0], 100));
    cr_assert(eq(i64, some[1], 101));
    cr_assert(eq(u64, permuted_position(&permuted, 77), 77));
}

/* Counts into cells that are equally likely, as standard deviations from the mean of chi squared.
 */
static double chi_square_off(const double *counts, size_t n_cells, double expected)
{
    double sum = 0;
    for (size_t i = 0; i < n_cells; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return (sum - (double)(n_cells - 1)) / sqrt(2.0 * (double)(n_cells - 1));
}

#define CELLS 8u

/* Where pairs of positions, `apart` from each other, go: each to one of CELLS parts of the rows. Of
 * few rows over many epochs. The parts are of nearly the same size where n is large; where it is
 * not, n is a multiple but one, and what pairs of different rows lack is below the noise. */
static double pairs_off(uint64_t n, uint64_t apart, uint64_t n_pairs)
{
    double counts[CELLS * CELLS] = {0};
    struct permuted permuted;
    int64_t a, b;
    uint64_t epoch = 0, done = 0, step = n / 20000 + 1;
    while (done < n_pairs) {
        permuted_init(&permuted, n, SEED, epoch++, true);
        for (uint64_t i = 0; i + apart < n && done < n_pairs; i += step) {
            permuted_rows(&permuted, i, 1, &a);
            permuted_rows(&permuted, i + apart, 1, &b);
            uint64_t cell_a = (uint64_t)a * CELLS / n, cell_b = (uint64_t)b * CELLS / n;
            if (n < 1000) { /* the distance alone, which any number of rows has evenly */
                cell_a = 0;
                cell_b = ((uint64_t)b + n - (uint64_t)a) % n - 1;
                if (cell_b >= (n - 1) / (CELLS * CELLS) * (CELLS * CELLS))
                    continue;
                cell_b %= CELLS * CELLS;
            }
            counts[cell_a * CELLS + cell_b]++;
            done++;
        }
    }
    return chi_square_off(counts, CELLS * CELLS, (double)n_pairs / (CELLS * CELLS));
}

Test(permuted, scatters_pairs_of_positions)
{
    static const uint64_t lengths[] = {65, 129, 200, 1024, 4096, 10007, 131072, 1000000, 10000000};
    static const uint64_t apart[] = {1, 2, 3, 16, 32};
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
        for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
            double off = pairs_off(lengths[k], apart[i], 20000);
            cr_assert(fabs(off) < LIMIT, "n %lu, %lu apart: %.2f", lengths[k], apart[i], off);
        }
}

/* The same position in epochs behind each other, and in seeds that differ by one bit. */
Test(permuted, epochs_and_seeds_have_orders_of_their_own)
{
    double by_epoch[64] = {0}, by_seed[64] = {0};
    struct permuted permuted;
    int64_t before = 0, row, other;
    for (uint64_t epoch = 0; epoch < 20001; epoch++, before = row) {
        permuted_init(&permuted, 4096, SEED, epoch, true);
        permuted_rows(&permuted, 17, 1, &row);
        permuted_init(&permuted, 4096, SEED ^ UINT64_C(1) << epoch % 64, epoch, true);
        permuted_rows(&permuted, 17, 1, &other);
        if (epoch > 0)
            by_epoch[(row - before) & 63]++;
        if (epoch > 0)
            by_seed[(row - other) & 63]++;
    }
    double off = chi_square_off(by_epoch, 64, 20000 / 64.0);
    cr_assert(fabs(off) < LIMIT, "epochs: %.2f", off);
    off = chi_square_off(by_seed, 64, 20000 / 64.0);
    cr_assert(fabs(off) < LIMIT, "seeds: %.2f", off);
}
