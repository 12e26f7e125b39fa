/* Random numbers, what must be so in the long run: moments, the Kolmogorov-Smirnov distance, counts
 * against probabilities (chi-square), streams, seeds and neighbours that do not depend on each
 * other. The seeds are fixed, so that the outcome is: bounds are such that one generator in 10^5
 * that is as good as can be would fail, and one with a visible fault would not pass.
 */
#include "kernels/common/random_poisson.h"
#include "tests/unit/kernels/cpu/random_rig.h"

#include <math.h>
#include <string.h>

#define N        ((size_t)1 << 20)
#define LIMIT    4.5 /* standard deviations */
#define LIMIT_KS 2.5 /* of sqrt(n) D: beyond it with a probability of 2 exp(-2 2.5^2) = 7e-6 */

static f64 normal_cdf(f64 x)
{
    return erfc(-x / sqrt(2)) / 2;
}

static f64 uniform_cdf(f64 x)
{
    return x;
}

static f64 exponential_cdf(f64 x)
{
    return -expm1(-x);
}

static int compare_f64(const void *a, const void *b)
{
    f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

static f64 kolmogorov_smirnov(f64 *x, f64 cdf(f64))
{
    f64 most = 0;
    qsort(x, N, sizeof(*x), compare_f64);
    for (size_t i = 0; i < N; i++) {
        f64 p = cdf(x[i]), below = p - (f64)i / N, above = (f64)(i + 1) / N - p;
        most = fmax(most, fmax(below, above));
    }
    return most * sqrt((f64)N);
}

/* The mean of (x - center)^power, in standard errors from what it should be. */
static f64 moment_off(const f64 *x, f64 center, int power, f64 expected, f64 variance)
{
    f64 sum = 0;
    for (size_t i = 0; i < N; i++) {
        f64 term = 1;
        for (int k = 0; k < power; k++)
            term *= x[i] - center;
        sum += term;
    }
    return (sum / N - expected) / sqrt(variance / N);
}

static void expect_moment(const f64 *x, f64 center, int power, f64 expected, f64 variance)
{
    f64 off = moment_off(x, center, power, expected, variance);
    cr_assert(fabs(off) < LIMIT, "moment %d: %.2f standard errors off", power, off);
}

/* Central moments: of a normal distribution 0 1 0 3, of a uniform one 1/12 and 1/80, of an
 * exponential one 1 and 9. The variance of a mean of powers is the moment of twice the power less
 * the square. */
Test(random_quality, moments_are_right)
{
    for (int is_f32 = 0; is_f32 < 2; is_f32++) {
        f64 *x = rig_draw(OP_STANDARD_NORMAL, is_f32, N, SEED, RANDOM_STREAM_NORMAL);
        expect_moment(x, 0, 1, 0, 1);
        expect_moment(x, 0, 2, 1, 2);
        expect_moment(x, 0, 3, 0, 15);
        expect_moment(x, 0, 4, 3, 96);
        free(x);
        x = rig_draw(OP_STANDARD_UNIFORM, is_f32, N, SEED, RANDOM_STREAM_UNIFORM);
        expect_moment(x, 0.5, 1, 0, 1.0 / 12);
        expect_moment(x, 0.5, 2, 1.0 / 12, 1.0 / 180);
        expect_moment(x, 0.5, 4, 1.0 / 80, 1.0 / 2304 - 1.0 / 6400);
        free(x);
        x = rig_draw(OP_STANDARD_EXPONENTIAL, is_f32, N, SEED, RANDOM_STREAM_EXPONENTIAL);
        expect_moment(x, 0, 1, 1, 1);
        expect_moment(x, 0, 2, 2, 20);
        expect_moment(x, 1, 2, 1, 8);
        free(x);
    }
}

Test(random_quality, kolmogorov_and_smirnov_agree)
{
    static const struct {
        enum op op;
        f64 (*cdf)(f64);
    } each[] = {{OP_STANDARD_UNIFORM, uniform_cdf},
                {OP_STANDARD_NORMAL, normal_cdf},
                {OP_STANDARD_EXPONENTIAL, exponential_cdf}};
    for (size_t i = 0; i < 3; i++) {
        for (int is_f32 = 0; is_f32 < 2; is_f32++) {
            f64 *x = rig_draw(each[i].op, is_f32, N, SEED, i + 1);
            f64 distance = kolmogorov_smirnov(x, each[i].cdf);
            cr_assert(distance < LIMIT_KS, "%zu: %.2f", i, distance);
            cr_assert(distance > 0.2, "%zu: %.2f is too good", i, distance);
            free(x);
        }
    }
}

/* How many standard deviations chi-square is off, by Wilson and Hilferty's cube root. */
static f64 chi_square_off(size_t n_cells, const f64 *counts, const f64 *expected)
{
    f64 sum = 0, freedom = (f64)n_cells - 1;
    for (size_t i = 0; i < n_cells; i++)
        sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    f64 spread = 2 / (9 * freedom);
    return (cbrt(sum / freedom) - (1 - spread)) / sqrt(spread);
}

/* integers(0, range): the upper half of bits times range. */
Test(random_quality, integers_are_even)
{
    static const u64 ranges[] = {2, 3, 7, 10, 100, 1000};
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_AVX512);
    u64 *bits = rig_counting(N, 0), *drawn = rig_room(N);
    rig_bits(engine, OP_RANDOM_U64, N, bits, bits, SEED, RANDOM_STREAM_INTEGERS);
    for (size_t k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++) {
        u64 *range = rig_filled(N, ranges[k]);
        f64 counts[1000] = {0}, expected[1000];
        (void)rig_run(engine, OP_MULTIPLY_HIGH, DTYPE_UINT64, N, drawn, bits, range, NULL);
        for (size_t i = 0; i < N; i++)
            counts[drawn[i]]++;
        for (u64 i = 0; i < ranges[k]; i++)
            expected[i] = (f64)N / (f64)ranges[k];
        f64 off = chi_square_off(ranges[k], counts, expected);
        cr_assert(fabs(off) < LIMIT, "range %lu: %.2f", ranges[k], off);
        free(range);
    }
    free(bits);
    free(drawn);
}

#define MAX_CELLS 4096

static i64 *poisson_numbers(f64 mean)
{
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_AVX512);
    u64 *numbers = rig_counting(N, 0), *seeds = rig_filled(N, SEED);
    f64 *means = rig_room(N);
    i64 *drawn = rig_room(N);
    for (size_t i = 0; i < N; i++)
        means[i] = mean;
    (void)rig_run(engine, OP_RANDOM_POISSON, DTYPE_FLOAT64, N, drawn, numbers, seeds, means);
    free(numbers);
    free(seeds);
    free(means);
    return drawn;
}

/* Counts of Poisson numbers, neighbours together until 20 are expected, the last ones too. */
static f64 poisson_off(f64 mean)
{
    static f64 counts[MAX_CELLS], expected[MAX_CELLS];
    i64 *drawn = poisson_numbers(mean), last = (i64)(mean + 12 * sqrt(mean) + 20);
    size_t *of_number = calloc((size_t)last + 1, sizeof(*of_number)), cell = 0;
    cr_assert(of_number != NULL && last < MAX_CELLS);
    memset(counts, 0, sizeof(counts));
    memset(expected, 0, sizeof(expected));
    for (i64 k = 0; k <= last; k++) {
        of_number[k] = cell;
        expected[cell] += N * exp((f64)k * log(mean) - mean - lgamma((f64)k + 1));
        cell += expected[cell] >= 20;
    }
    for (size_t i = 0; i < N; i++) {
        cr_assert(drawn[i] >= 0 && drawn[i] <= last);
        counts[of_number[drawn[i]]]++;
    }
    counts[cell - 1] += counts[cell];
    expected[cell - 1] += expected[cell];
    free(of_number);
    free(drawn);
    return chi_square_off(cell, counts, expected);
}

Test(random_quality, poisson_counts_are_right)
{
    static const f64 means[] = {0.05, 0.7, 3.5, 9.99, 10, 10.5, 30, 250, 3000};
    for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
        f64 off = poisson_off(means[i]);
        cr_assert(fabs(off) < LIMIT, "mean %g: %.2f", means[i], off);
    }
}

/* Large means: mean and variance are the mean, also where float64 has no fractions left. */
Test(random_quality, large_poisson_means_have_their_moments)
{
    static const f64 means[] = {1e5, 1e9, 1e14, 0x1p55, 0x1p62};
    for (size_t k = 0; k < sizeof(means) / sizeof(means[0]); k++) {
        f64 sum = 0, squares = 0, n = 100000;
        for (u64 i = 0; i < (u64)n; i++) {
            f64 off = (f64)(random_poisson(i, SEED, means[k]) - (i64)means[k]) / sqrt(means[k]);
            sum += off;
            squares += off * off;
        }
        cr_assert(fabs(sum / n) < LIMIT / sqrt(n), "mean %g: %g", means[k], sum / n);
        cr_assert(fabs(squares / n - 1) < LIMIT * sqrt(2 / n), "mean %g: %g", means[k],
                  squares / n);
    }
}

/* All permutations of a few elements are equally likely: by seeds. */
Test(random_quality, small_permutations_are_equally_likely)
{
    for (u64 n = 2; n <= 5; n++) {
        size_t n_cells = 1;
        for (u64 i = 2; i <= n; i++)
            n_cells *= i;
        f64 counts[3125] = {0}, seen[120], expected[120];
        for (u64 seed = 0; seed < 60000; seed++) {
            size_t code = 0;
            for (u64 i = 0; i < n; i++)
                code = code * n + random_permuted(i, seed, n);
            counts[code]++;
        }
        size_t n_seen = 0;
        for (size_t code = 0; code < 3125; code++) {
            if (counts[code] > 0) {
                cr_assert(n_seen < n_cells);
                expected[n_seen] = 60000.0 / (f64)n_cells;
                seen[n_seen++] = counts[code];
            }
        }
        cr_assert(eq(sz, n_seen, n_cells));
        f64 off = chi_square_off(n_cells, seen, expected);
        cr_assert(fabs(off) < LIMIT, "n %lu: %.2f", n, off);
    }
}

/* Longer ones, by seeds: where an element goes, and how far its neighbour goes from there. */
Test(random_quality, permutations_scatter)
{
    static const u64 lengths[] = {20, 64, 65, 100, 128, 300};
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        u64 n = lengths[k];
        f64 places[300] = {0}, apart[300] = {0}, expected[300];
        for (u64 seed = 0; seed < 60000; seed++) {
            u64 here = random_permuted(seed % (n - 1), seed, n);
            u64 next = random_permuted(seed % (n - 1) + 1, seed, n);
            places[here]++;
            apart[(next + n - here) % n - 1]++;
        }
        for (u64 i = 0; i < n; i++)
            expected[i] = 60000.0 / (f64)n;
        f64 off = chi_square_off(n, places, expected);
        cr_assert(fabs(off) < LIMIT, "n %lu: places %.2f", n, off);
        for (u64 i = 0; i + 1 < n; i++)
            expected[i] = 60000.0 / (f64)(n - 1);
        off = chi_square_off(n - 1, apart, expected);
        cr_assert(fabs(off) < LIMIT, "n %lu: neighbours %.2f", n, off);
    }
}

static f64 correlation_off(const f64 *x, const f64 *y, size_t n)
{
    f64 sum = 0; /* of standard normal numbers: products have the mean 0 and the variance 1 */
    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum / sqrt((f64)n);
}

/* Streams of one seed, seeds that differ by one bit, elements side by side and far apart. */
Test(random_quality, streams_seeds_and_elements_are_independent)
{
    f64 *x = rig_draw(OP_STANDARD_NORMAL, true, N, SEED, RANDOM_STREAM_NORMAL);
    for (u64 stream = 1; stream < 8; stream++) {
        f64 *y = rig_draw(OP_STANDARD_NORMAL, true, N, SEED, stream);
        cr_assert(stream == RANDOM_STREAM_NORMAL || fabs(correlation_off(x, y, N)) < LIMIT);
        cr_assert(stream != RANDOM_STREAM_NORMAL || memcmp(x, y, N * sizeof(*x)) == 0);
        free(y);
    }
    for (unsigned bit = 0; bit < 64; bit += 9) {
        f64 *y = rig_draw(OP_STANDARD_NORMAL, true, N, SEED ^ (u64)1 << bit, RANDOM_STREAM_NORMAL);
        cr_assert(fabs(correlation_off(x, y, N)) < LIMIT, "seeds, bit %u", bit);
        free(y);
    }
    static const size_t apart[] = {1, 2, 3, 4, 5, 7, 8, 16, 64, 1000, 4096, 65536};
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
        cr_assert(fabs(correlation_off(x, x + apart[i], N - apart[i])) < LIMIT, "%zu apart",
                  apart[i]);
    free(x);
}
