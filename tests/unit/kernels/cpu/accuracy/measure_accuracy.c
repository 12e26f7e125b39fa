/* Measures the functions of mathematics and writes kernels/ACCURACY.md.
 *
 *     measure-accuracy [--arguments N] [FILTER]
 *
 * Every function, dtype and level over N arguments (accuracy_arguments.c) on all cores; the table
 * goes to the standard output. MPFR confirms the worst argument of each, and some thousand others
 * to say how good the reference is. Ends with 1 where an error is beyond 4 ulp, where MPFR does not
 * agree, or where a result depends on its place. tests/accuracy.sh runs it.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy_mpfr.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_CONFIRMED 2000
#define MAX_THREADS 64
#define PART        (1024 * 64)
#define MOST_APART  0.01 /* ulp between MPFR and long double */

struct measurement {
    const struct accuracy_function *function;
    enum dtype dtype;
    uint64_t n, next; /* under the mutex */
    pthread_mutex_t mutex;
    struct accuracy_worst worst[ACCURACY_LEVELS];
};

static void merge(struct measurement *m, const struct accuracy_worst *part)
{
    for (int level = 0; level < ACCURACY_LEVELS; level++) {
        uint64_t n_unstable = m->worst[level].n_unstable + part[level].n_unstable;
        if (!m->worst[level].is_there || part[level].error > m->worst[level].error)
            m->worst[level] = part[level];
        m->worst[level].n_unstable = n_unstable;
    }
}

static void *measure_parts(void *argument)
{
    struct measurement *m = argument;
    for (;;) {
        pthread_mutex_lock(&m->mutex);
        uint64_t first = m->next;
        m->next += PART;
        pthread_mutex_unlock(&m->mutex);
        if (first >= m->n)
            return NULL;
        struct accuracy_worst part[ACCURACY_LEVELS] = {0};
        accuracy_run(m->function, m->dtype, first, m->n - first < PART ? m->n - first : PART, part);
        pthread_mutex_lock(&m->mutex);
        merge(m, part);
        pthread_mutex_unlock(&m->mutex);
    }
}

static void measure(struct measurement *m)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n_threads = n_cores < 1 ? 1 : n_cores > MAX_THREADS ? MAX_THREADS : (int)n_cores;
    pthread_t threads[MAX_THREADS];
    pthread_mutex_init(&m->mutex, NULL);
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, measure_parts, m))
            exit(2);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&m->mutex);
}

/* Largest distance between long double and MPFR over the first arguments, in ulp of the dtype. */
static double reference_error(const struct accuracy_function *f, enum dtype dtype)
{
    double worst = 0;
    for (uint64_t i = 0; i < N_CONFIRMED; i++) {
        double x[2];
        accuracy_argument(f, dtype, i, x);
        long double here = accuracy_exact(f, x);
        if (f->op == OP_LGAMMA && fabs(x[0]) > 1e17)
            continue; /* MPFR would take hours */
        double limit = dtype == DTYPE_FLOAT32 ? 0x1p127 : 0x1p1023;
        if (!(fabsl(here) < (long double)limit))
            continue;
        double error = accuracy_distance(f, dtype, x, accuracy_mpfr(f, x), here);
        if (error > worst)
            worst = error;
    }
    return worst;
}

static bool print_row(const struct measurement *m)
{
    const char *name = op_info(m->function->op)->name;
    bool is_good = true;
    printf("| %s | %s |", name, dtype_name(m->dtype));
    for (int level = 0; level < ACCURACY_LEVELS; level++) {
        const struct accuracy_worst *w = &m->worst[level];
        if (!w->is_there) {
            printf(" |");
            continue;
        }
        long double exact = accuracy_mpfr(m->function, w->x);
        double confirmed = accuracy_error(m->function, m->dtype, w->x, exact, w->got);
        printf(" %.2f %s |", ceil(w->error * 100) / 100,
               accuracy_source(m->function, m->dtype, (enum cpu_level)level));
        if (fabs(confirmed - w->error) > MOST_APART || w->error > ACCURACY_MAX_ULP ||
            w->n_unstable) {
            is_good = false;
            fprintf(stderr, "%s %s, level %s: %g ulp, with MPFR %g, at %a, %a: %a; %llu unstable\n",
                    name, dtype_name(m->dtype), cpu_level_name((enum cpu_level)level), w->error,
                    confirmed, w->x[0], w->x[1], w->got, (unsigned long long)w->n_unstable);
        }
    }
    printf("\n");
    fflush(stdout);
    return is_good;
}

static void print_head(uint64_t n)
{
    char line[256], model[200] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %199[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    printf("# Accuracy of the functions of mathematics\n\n"
           "The largest errors that `tests/accuracy.sh` found on the CPU engine, in units of the "
           "last place (ulp)\nof the exact result, rounded up, and the library behind each: per "
           "function, dtype and dispatch\nlevel. Nothing is beyond %.0f ulp. What is not in the "
           "table (arithmetic, sqrt, rounding,\ncomparisons, remainders, what works on bits) is "
           "exact or correctly rounded;\nsinc, round to decimals, deg2rad and rad2deg take NumPy's "
           "steps, and have NumPy's errors.\n\n",
           ACCURACY_MAX_ULP);
    printf("- %llu arguments a row: neighbours of special points, any bits at all (denormals, huge "
           "arguments),\n  uniform in the ranges where the function does something, uniform in "
           "the exponent, whole and half\n  numbers, multiples of pi/2 and their neighbours; "
           "pairs also where results nearly over- or\n  underflow or nearly cancel\n",
           (unsigned long long)n);
    printf("- denormal results: the unit is the smallest denormal. A result that overflows counts "
           "as the\n  power of two behind the largest number\n"
           "- logaddexp and logaddexp2 are the larger argument plus a logarithm: where these "
           "nearly cancel, the\n  unit is that of the larger of the two, not of the result\n"
           "- lgamma and gamma: relative to the result everywhere, also near zeros and poles\n"
           "- float32 and float64 are measured against long double of glibc, the worst argument of "
           "each cell and\n  %d others of each function again with MPFR %s\n"
           "- NaN, infinities and the signs of zeros are right at all arguments, and no result "
           "depends on its\n  neighbours or its place in the array\n"
           "- glibc %s, SLEEF %s, processor %s\n\n",
           N_CONFIRMED, mpfr_get_version(), gnu_get_libc_version(), SLEEF_VERSION_USED, model);
}

int main(int argc, char **argv)
{
    uint64_t n = 10 * 1000 * 1000;
    const char *filter = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--arguments") && i + 1 < argc)
            n = strtoull(argv[++i], NULL, 10);
        else
            filter = argv[i];
    }
    print_head(n);
    printf("| function | dtype | plain | baseline | avx2 | avx512 |\n|---|---|---|---|---|---|\n");
    bool is_good = true;
    double reference = 0;
    const char *reference_name = "";
    for (unsigned i = 0; i < accuracy_n_functions; i++) {
        const struct accuracy_function *f = &accuracy_functions[i];
        if (filter && !strstr(op_info(f->op)->name, filter))
            continue;
        for (int k = 0; k < 2; k++) {
            enum dtype dtype = k ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
            struct measurement m = {.function = f, .dtype = dtype, .n = n};
            measure(&m);
            is_good &= print_row(&m);
        }
        double error = reference_error(f, DTYPE_FLOAT64);
        if (error > reference) {
            reference = error;
            reference_name = op_info(f->op)->name;
        }
    }
    printf("\nOver %d arguments of each function in float64, the reference and MPFR differ by %.4f "
           "ulp at most (%s).\n",
           N_CONFIRMED, ceil(reference * 1e4) / 1e4, reference_name);
    mpfr_free_cache();
    return !is_good;
}
