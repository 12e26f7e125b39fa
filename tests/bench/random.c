/* Random numbers into a region that has been written before, in turns with memset and with NumPy's
 * generators SFC64 and Philox on BULK_THREADS threads each; then the moments of what was drawn and
 * its Kolmogorov-Smirnov distance, from counts in N_CELLS cells of the distribution function (the
 * exact distance is at most 1 / N_CELLS more).
 * Usage: random MILLIONS [PYTHON SCRIPT]
 */
#include "tests/bench/bulk.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS  5
#define N_CELLS 1000000
#define PIECE   ((size_t)1 << 20)

enum { NORMAL, UNIFORM, EXPONENTIAL };

static const struct drawn {
    const char *name, *expr;
    enum gad_dtype dtype;
    int kind;
    double target; /* times NumPy's SFC64 */
} each[] = {
    {"normal float32", "normal(seed=1, dtype=float32)", GAD_FLOAT32, NORMAL, 4},
    {"uniform float32", "uniform(seed=1, dtype=float32)", GAD_FLOAT32, UNIFORM, 2.5},
    {"exponential float32", "exponential(seed=1, dtype=float32)", GAD_FLOAT32, EXPONENTIAL, 0},
    {"normal float64", "normal(seed=1)", GAD_FLOAT64, NORMAL, 0},
    {"uniform float64", "uniform(seed=1)", GAD_FLOAT64, UNIFORM, 0},
};
#define N_EACH (sizeof(each) / sizeof(each[0]))

static void set_piece(void *data, size_t first, size_t n)
{
    memset((char *)data + first, 1, n);
}

static double value_at(const struct drawn *d, const void *data, size_t i)
{
    return d->dtype == GAD_FLOAT32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static double distribution(int kind, double x)
{
    switch (kind) {
    case NORMAL: return erfc(-x * M_SQRT1_2) / 2;
    case EXPONENTIAL: return -expm1(-x);
    default: return x;
    }
}

/* sqrt(n) times the greatest distance at the cells' edges. */
static double kolmogorov_smirnov(const struct drawn *d, const void *data, size_t n)
{
    static uint32_t counts[N_CELLS + 1];
    memset(counts, 0, sizeof(counts));
    for (size_t i = 0; i < n; i++)
        counts[(size_t)(distribution(d->kind, value_at(d, data, i)) * N_CELLS)]++;
    double below = 0, most = 0;
    for (size_t k = 0; k < N_CELLS; k++) {
        below += counts[k];
        most = fmax(most, fabs(below / (double)n - (double)(k + 1) / N_CELLS));
    }
    return most * sqrt((double)n);
}

static void print_quality(const struct drawn *d, const void *data, size_t n)
{
    long double sums[5] = {0};
    for (size_t i = 0; i < n; i++) {
        double x = value_at(d, data, i), power = 1;
        for (int k = 1; k <= 4; k++)
            sums[k] += power *= x;
    }
    double mean = (double)(sums[1] / n), m2 = (double)(sums[2] / n) - mean * mean;
    double m3 = (double)(sums[3] / n) - 3 * mean * (double)(sums[2] / n) + 2 * pow(mean, 3);
    double m4 = (double)(sums[4] / n) - 4 * mean * (double)(sums[3] / n) +
                6 * mean * mean * (double)(sums[2] / n) - 3 * pow(mean, 4);
    printf("  %zu samples: mean %.6f, variance %.6f, skewness %.5f, kurtosis %.5f, "
           "Kolmogorov-Smirnov sqrt(n) D %.3f (95 %% of fair ones are below 1.358)\n",
           n, mean, m2, m3 / pow(m2, 1.5), m4 / (m2 * m2), kolmogorov_smirnov(d, data, n));
}

static void bench(struct gad_client *client, const struct drawn *d, size_t n, char **python)
{
    double ours[ROUNDS], sets[ROUNDS], theirs[2][ROUNDS];
    struct gad_array *array = bulk_array(client, d->dtype, (int64_t)n);
    size_t n_bytes = n * (d->dtype == GAD_FLOAT32 ? 4 : 8);
    void *data = gad_array_data(array);
    struct gad_output output = {.expr = d->expr, .to = array};
    struct gad_job_options job = {.n_outputs = 1, .outputs = &output};
    static const char *const generators[] = {"SFC64", "Philox"};
    char count[32];
    snprintf(count, sizeof(count), "%zu", n);
    struct bulk_peer peers[2];
    for (int k = 0; k < 2; k++)
        bulk_peer_start(&peers[k], python ? (const char *[]){python[0], python[1], generators[k],
                                                             d->name, count, NULL}
                                          : (const char *[]){NULL});
    bulk_parallel(set_piece, data, n_bytes, PIECE);
    for (int i = 0; i < ROUNDS; i++) {
        sets[i] = bulk_parallel(set_piece, data, n_bytes, PIECE);
        ours[i] = bulk_run_job(client, &job);
        for (int k = 0; k < 2; k++)
            theirs[k][i] = peers[k].pid ? bulk_peer_round(&peers[k]) : 0;
    }
    double millions = 1e-6 * (double)n, us = bulk_median(ours, ROUNDS);
    printf("%s: %.0f M/s; memset %.0f M/s\n", d->name, millions / us,
           millions / bulk_median(sets, ROUNDS));
    for (int k = 0; k < 2 && peers[k].pid; k++) {
        double them = bulk_median(theirs[k], ROUNDS);
        printf("  NumPy's %s on %d threads: %.0f M/s; %.2f times", generators[k], BULK_THREADS,
               millions / them, them / us);
        printf(k == 0 && d->target > 0 ? " (at least %.1f)\n" : "\n", d->target);
    }
    print_quality(d, data, n);
    fflush(stdout);
    for (int k = 0; k < 2; k++)
        bulk_peer_end(&peers[k]);
    gad_array_release(array);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: random MILLIONS [PYTHON SCRIPT]\n");
        return 2;
    }
    size_t n = (size_t)strtoul(argv[1], NULL, 10) * 1000000;
    struct gad_client *client = bulk_connect();
    for (size_t i = 0; i < N_EACH; i++)
        bench(client, &each[i], n, argc == 4 ? argv + 2 : NULL);
    gad_close(client);
    return 0;
}
