/* The C library's side of python.py: one job, again and again, when it is told.
 *
 * Arrays a, b, c (as many as N_ARGS says) and the result r lie in shared memory, with the values of
 * expression.c. Writes a line when they are there and the job has run; then, for every line read, a
 * number, runs the job so often and writes the median of a run in seconds.
 * Usage: rounds EXPRESSION N_ARGS DTYPE N, with a daemon at $GPUARRAYD_SOCKET. DTYPE: float32 or
 * float64.
 */
#include "tests/bench/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 10000

static const struct {
    const char *name;
    double low, high;
} ranges[] = {{"a", 0, 4}, {"b", -3, 3}, {"c", -10, 10}};

static void fill(struct gad_array *array, enum gad_dtype dtype, size_t n, double low, double high)
{
    float *floats = gad_array_data(array);
    double *doubles = gad_array_data(array);
    for (size_t i = 0; i < n; i++) {
        double value = low + (high - low) * (double)i / (double)n;
        if (dtype == GAD_FLOAT32)
            floats[i] = (float)value;
        else
            doubles[i] = value;
    }
}

static void serve(struct gad_client *client, const struct gad_job_options *job)
{
    static double seconds[MAX_ROUNDS];
    char line[64];
    bulk_run_job(client, job);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        int n = atoi(line);
        if (n < 1 || n > MAX_ROUNDS)
            return;
        for (int i = 0; i < n; i++)
            seconds[i] = bulk_run_job(client, job);
        printf("%.9f\n", bulk_median(seconds, n));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    unsigned n_args = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
    size_t n = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    if (n_args < 1 || n_args > 3 || n == 0) {
        fprintf(stderr, "usage: rounds EXPRESSION N_ARGS DTYPE N\n");
        return 2;
    }
    enum gad_dtype dtype = strcmp(argv[3], "float32") == 0 ? GAD_FLOAT32 : GAD_FLOAT64;
    struct gad_client *client = bulk_connect();
    struct gad_argument args[3] = {{.name = NULL}};
    for (unsigned i = 0; i < n_args; i++) {
        args[i].name = ranges[i].name;
        args[i].array = bulk_array(client, dtype, (int64_t)n);
        fill(args[i].array, dtype, n, ranges[i].low, ranges[i].high);
    }
    struct gad_output output = {.expr = argv[1], .to = bulk_array(client, dtype, (int64_t)n)};
    struct gad_job_options job = {
        .n_args = n_args, .args = args, .n_outputs = 1, .outputs = &output};
    serve(client, &job);
    for (unsigned i = 0; i < n_args; i++)
        gad_array_release(args[i].array);
    gad_array_release(output.to);
    gad_close(client);
    return 0;
}
