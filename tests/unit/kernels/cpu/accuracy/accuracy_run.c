/* Runs the kernels of all levels over the arguments of accuracy_arguments.c and keeps the worst.
 *
 * The exact value of an argument is computed once for all levels. Each chunk runs twice, the second
 * time from another place on: a result that depends on its neighbours or its place is counted.
 * Thread-safe: what it needs is on the stack.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"

#include "kernels/cpu/levels/math_sources.h"
#include "kernels/cpu/run/run.h"

#include <math.h>
#include <string.h>

#define CHUNK   1024 /* a multiple of KERNEL_GRANULE */
#define ROTATED 389

struct chunk {
    size_t n;
    double x[CHUNK][2];
    long double exact[CHUNK];
    double sources[2][CHUNK], rotated[2][CHUNK]; /* in the dtype */
    double got[CHUNK], got_rotated[CHUNK];
};

static void put(double *array, enum dtype dtype, size_t i, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)array)[i] = (float)value;
    else
        array[i] = value;
}

static double get(const double *array, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)array)[i] : array[i];
}

static void draw_chunk(struct chunk *c, const struct accuracy_function *f, enum dtype dtype,
                       uint64_t first, uint64_t n)
{
    c->n = n < CHUNK ? (size_t)n : CHUNK;
    for (size_t i = 0; i < CHUNK; i++) {
        accuracy_argument(f, dtype, first + i, c->x[i]);
        for (int k = 0; k < 2; k++) {
            put(c->sources[k], dtype, i, c->x[i][k]);
            put(c->rotated[k], dtype, (i + ROTATED) % CHUNK, c->x[i][k]);
        }
    }
    for (size_t i = 0; i < c->n; i++)
        c->exact[i] = accuracy_exact(f, c->x[i]);
}

static kernel_fn *kernel_of(const struct accuracy_function *f, enum dtype dtype,
                            enum cpu_level level)
{
    const struct cpu_engine *engine = cpu_engine_get(level);
    struct insn insn = {
        .op = (uint16_t)f->op, .compute = (uint8_t)dtype, .dst = {.dtype = (uint8_t)dtype}};
    bool is_exchanged;
    return cpu_engine_level(engine) == level ? engine_find_kernel(engine, &insn, &is_exchanged)
                                             : NULL;
}

static void run_chunk(struct chunk *c, const struct accuracy_function *f, enum dtype dtype,
                      kernel_fn *kernel, struct accuracy_worst *worst)
{
    struct kernel_events events = {0};
    kernel(CHUNK, c->got, c->sources[0], c->sources[1], NULL, &events);
    kernel(CHUNK, c->got_rotated, c->rotated[0], c->rotated[1], NULL, &events);
    for (size_t i = 0; i < c->n; i++) {
        double got = get(c->got, dtype, i);
        double again = get(c->got_rotated, dtype, (i + ROTATED) % CHUNK);
        worst->n_unstable += memcmp(&got, &again, sizeof(got)) && !(isnan(got) && isnan(again));
        double error = accuracy_error(f, dtype, c->x[i], c->exact[i], got);
        if (error > worst->error) {
            worst->error = error;
            worst->got = got;
            memcpy(worst->x, c->x[i], sizeof(worst->x));
        }
    }
}

void accuracy_run(const struct accuracy_function *f, enum dtype dtype, uint64_t first, uint64_t n,
                  struct accuracy_worst worst[ACCURACY_LEVELS])
{
    struct chunk c;
    for (uint64_t done = 0; done < n; done += CHUNK) {
        draw_chunk(&c, f, dtype, first + done, n - done);
        for (int level = 0; level < ACCURACY_LEVELS; level++) {
            kernel_fn *kernel = kernel_of(f, dtype, (enum cpu_level)level);
            worst[level].is_there = kernel != NULL;
            if (kernel)
                run_chunk(&c, f, dtype, kernel, &worst[level]);
        }
    }
}

const char *accuracy_source(const struct accuracy_function *f, enum dtype dtype,
                            enum cpu_level level)
{
    static const math_sources *const sources[ACCURACY_LEVELS][2] = {
        [CPU_LEVEL_PLAIN] = {&math_sources_plain, &special_sources_plain},
#if defined(CPU_HAS_BASELINE)
        [CPU_LEVEL_BASELINE] = {&math_sources_baseline, &special_sources_baseline},
#endif
#if defined(CPU_HAS_AVX2)
        [CPU_LEVEL_AVX2] = {&math_sources_avx2, &special_sources_avx2},
#endif
#if defined(CPU_HAS_AVX512)
        [CPU_LEVEL_AVX512] = {&math_sources_avx512, &special_sources_avx512},
#endif
    };
    for (int i = 0; i < 2; i++)
        if (sources[level][i] && (*sources[level][i])[f->op][dtype == DTYPE_FLOAT64])
            return (*sources[level][i])[f->op][dtype == DTYPE_FLOAT64];
    return "?";
}
