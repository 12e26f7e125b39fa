/* sqrt(a) of float64, region to region, beside a streaming copy between the same two arrays on two
 * threads, and NumPy with out=; in turns, medians. The first run after attaching is shown apart: in
 * it the worker's mapping of the regions gets its pages.
 * Usage: regions [PYTHON SCRIPT [MIB]], with a daemon at $GPUARRAYD_SOCKET; PYTHON "" for no peer.
 */
#include "tests/bench/bulk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const double *a, const double *r, size_t n)
{
    for (size_t i = 0; i < n; i += i < 4096 || i + 4096 > n ? 1 : 997) {
        if (r[i] != sqrt(a[i])) {
            fprintf(stderr, "element %zu is wrong\n", i);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    size_t mib = argc > 3 ? strtoul(argv[3], NULL, 10) : 1024, n_bytes = mib << 20;
    size_t n = n_bytes / sizeof(double);
    double ours[BULK_ROUNDS], copy[BULK_ROUNDS], theirs[BULK_ROUNDS];
    char count[32];
    if (argc == 2 || argc > 4 || mib == 0) {
        fprintf(stderr, "usage: regions [PYTHON SCRIPT [MIB]]\n");
        return 2;
    }
    struct gad_client *client = bulk_connect();
    struct gad_array *a = bulk_array(client, GAD_FLOAT64, (int64_t)n);
    struct gad_array *r = bulk_array(client, GAD_FLOAT64, (int64_t)n);
    double *elements = gad_array_data(a), *results = gad_array_data(r);
    for (size_t i = 0; i < n; i++)
        elements[i] = (double)(i * 2654435761u % 1000003) * 0.37;
    memset(results, 0x55, n_bytes);
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = "sqrt(a)", .to = r}};
    struct gad_job_options job = {.n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};

    double first = bulk_run_job(client, &job);
    check(elements, results, n);
    snprintf(count, sizeof(count), "%zu", n);
    struct bulk_peer peer;
    bulk_peer_start(&peer, argc > 2 ? (const char *[]){argv[1], argv[2], "sqrt", count, NULL}
                                    : (const char *[]){NULL});
    for (int i = 0; i < BULK_ROUNDS; i++) {
        copy[i] = bulk_copy(results, elements, n_bytes);
        ours[i] = bulk_run_job(client, &job);
        theirs[i] = peer.pid ? bulk_peer_round(&peer) : 0;
    }
    check(elements, results, n);
    double us = bulk_median(ours, BULK_ROUNDS), limit = bulk_median(copy, BULK_ROUNDS);
    double gb = 2e-9 * (double)n_bytes;
    printf("region to region, sqrt float64, %zu MiB: %.4f s (%.1f GB/s in and out); streaming copy "
           "%.4f s (%.1f GB/s); ratio %.2f (at least 0.90)\n",
           mib, us, gb / us, limit, gb / limit, limit / us);
    if (peer.pid) {
        double numpy = bulk_median(theirs, BULK_ROUNDS);
        printf("  NumPy with out=: %.4f s; %.1f times (at least 3.0)\n", numpy, numpy / us);
    } else {
        printf("  no NumPy here: no peer\n");
    }
    printf("  first run after attaching: %.4f s\n", first);
    bulk_peer_end(&peer);
    gad_array_release(a);
    gad_array_release(r);
    gad_close(client);
    return 0;
}
