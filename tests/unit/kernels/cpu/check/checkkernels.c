/* The kernel runner: every op, dtype and level against the plain reference, as dav1d's checkasm
 * does for its assembly.
 *
 *     checkkernels [--bench] [--worst] [--seed N] [--trials N] [FILTER]
 *
 * Prints the failing parameters and ends with 1 if anything failed. FILTER is a part of a case's
 * name ("sqrt", "float32", "remainder int8"); it changes which cases run, not what they draw.
 * --bench prints elements a second instead, and how fast memory is copied. Trials are the same in
 * every run with the same seed. --worst prints what elements take at their worst instead.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct check c = {.n_trials = 50, .seed = 1};
    bool is_bench = false, is_worst = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--bench"))
            is_bench = true;
        else if (!strcmp(argv[i], "--worst"))
            is_worst = true;
        else if (!strcmp(argv[i], "--trials") && i + 1 < argc)
            c.n_trials = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            c.seed = strtoull(argv[++i], NULL, 10);
        else
            c.filter = argv[i];
    }
    if (is_bench) {
        bench_kernels(&c);
        return c.n_failed != 0;
    }
    if (is_worst) {
        bench_worst(&c);
        return c.n_failed != 0;
    }
    check_flat(&c);
    check_layouts(&c);
    check_reductions(&c);
    check_counts(&c);
    check_scans(&c);
    check_accuracy(&c);
    printf("%llu checks up to level %s with seed %llu, %llu failed\n", (unsigned long long)c.n_run,
           cpu_level_name(cpu_engine_level(cpu_engine_get(CPU_LEVEL_AVX512))),
           (unsigned long long)c.seed, (unsigned long long)c.n_failed);
    return c.n_failed != 0;
}
