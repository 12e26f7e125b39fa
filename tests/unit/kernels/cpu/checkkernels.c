/* The kernel runner: every op, dtype and level against the plain reference, as dav1d's checkasm
 * does for its assembly.
 *
 *     checkkernels [--bench] [--trials N] [FILTER]
 *
 * Prints the failing parameters and ends with 1 if anything failed. FILTER is a part of a case's
 * name ("sqrt", "float32", "remainder int8"). --bench prints elements a second instead. Trials are
 * random but the same in every run.
 */
#include "tests/unit/kernels/cpu/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct check c = {.n_trials = 50};
    bool is_bench = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--bench"))
            is_bench = true;
        else if (!strcmp(argv[i], "--trials") && i + 1 < argc)
            c.n_trials = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            c.filter = argv[i];
    }
    if (is_bench) {
        bench_kernels(&c);
        return 0;
    }
    check_layouts(&c);
    check_reductions(&c);
    check_accuracy(&c);
    printf("%llu checks up to level %s, %llu failed\n", (unsigned long long)c.n_run,
           cpu_level_name(cpu_engine_level(cpu_engine_get(CPU_LEVEL_AVX512))),
           (unsigned long long)c.n_failed);
    return c.n_failed != 0;
}
