/* The runner of the device's kernels: every op, dtype and layout against the CPU engine's plain
 * level, as dav1d's checkasm does for its assembly.
 *
 *     checkcuda [--bench [--mib N]] [--device I] [--seed N] [--trials N] [--unfilled] [FILTER]
 *
 * One source, two programs: linked with the CUDA runtime it runs on a device, and ends with 77
 * (skipped) where there is none; linked with the test double it runs the same kernels, compiled for
 * the host. Prints the failing parameters and ends with 1 if anything failed. FILTER is a part of a
 * case's name ("sqrt", "float32", "remainder int8", "sum", "axes", "counts", "scans", "tables",
 * "near", "programs", "multiply"); it changes which cases run, not what they draw. --bench prints
 * rates of expressions over data on the device beside the device's own copy of the same bytes, and
 * the floor of a launch; N bounds what it takes of the device's memory.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77

int main(int argc, char **argv)
{
    static struct rig rig;
    struct checkcuda c = {.check = {.n_trials = 12, .seed = 1}, .rig = &rig};
    bool is_bench = false;
    int index = 0;
    uint64_t max_bytes = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--bench"))
            is_bench = true;
        else if (!strcmp(argv[i], "--device") && i + 1 < argc)
            index = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--mib") && i + 1 < argc)
            max_bytes = strtoull(argv[++i], NULL, 10) << 20;
        else if (!strcmp(argv[i], "--trials") && i + 1 < argc)
            c.check.n_trials = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--unfilled"))
            rig_is_unfilled = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            c.check.seed = strtoull(argv[++i], NULL, 10);
        else
            c.check.filter = argv[i];
    }
    int r = rig_open(&rig, index);
    if (r)
        return cuda_error_is_absent(r) ? SKIPPED : 1;
    printf("%s, compute capability %d.%d; compiled for %s\n", rig.device.name, rig.device.major,
           rig.device.minor, cuda_interpreter_architectures());
    if (is_bench) {
        checkcuda_bench(&c, max_bytes);
    } else {
        checkcuda_cases(&c);
        checkcuda_accuracy(&c);
        checkcuda_reductions(&c);
        checkcuda_axes(&c);
        checkcuda_counts(&c);
        checkcuda_kth(&c);
        checkcuda_scans(&c);
        checkcuda_tables(&c);
        checkcuda_near(&c);
        checkcuda_made(&c);
        checkcuda_programs(&c);
        checkcuda_multiply(&c);
        printf("%llu checks with seed %llu, %llu failed\n", (unsigned long long)c.check.n_run,
               (unsigned long long)c.check.seed, (unsigned long long)c.check.n_failed);
    }
    rig_close(&rig);
    return c.check.n_failed != 0;
}
