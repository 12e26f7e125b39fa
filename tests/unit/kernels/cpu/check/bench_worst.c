/* Nanoseconds an element takes at its worst, per op and kind of dtype, beside what the table of
 * costs says (kernels/op_costs.def), which bounds what a turn takes. Where the arguments make a
 * difference they are such as make it large: numbers below the normal ones, ratios and arguments
 * that are far out, neighbours among Fibonacci's numbers, any bits.
 */
#include "kernels/op_costs.h"
#include "tests/unit/kernels/cpu/check/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N_ELEMENTS 4096
#define N_RUNS     5

static const double pairs[][2] = {{0x1.8p-1060, 0x1.8p-1060},
                                  {0x1.fp1023, 0x1.8p-1070},
                                  {0x1.8p-1070, 0x1.fp1023},
                                  {0x1.3p-530, 0x1.7p-530},
                                  {0x1.3p-1030, 0.37},
                                  {-100000.3, 7.7},
                                  {-170.3, 0.5},
                                  {1e300, 3.3},
                                  {-741.3, -0.5},
                                  {-88.9, 1.0},
                                  {1.0000001, 0.9999999},
                                  {1e-3, 700.1},
                                  {26.6, -1074},
                                  {2.5, 1e17},
                                  {1e17, 2.5}};
static const double narrow_pairs[][2] = {{0x1.8p-140, 0x1.8p-140},
                                         {0x1.fp127, 0x1.8p-145},
                                         {0x1.8p-145, 0x1.fp127},
                                         {0x1.3p-70, 0x1.7p-70},
                                         {0x1.3p-130, 0.37},
                                         {-100.3, 0.5},
                                         {1e38, 3.3},
                                         {-88.9, 1.0}};
static const uint64_t whole_pairs[][2] = {
    {UINT64_C(7540113804746346429), UINT64_C(4660046610375530309)},
    {1836311903, 1134903170},
    {UINT64_C(12200160415121876738), UINT64_C(7540113804746346429)},
    {2971215073, 1836311903},
    {28657, 17711},
    {46368, 28657},
    {89, 55},
    {233, 144},
    {3, INT64_MAX},
    {UINT64_MAX, 3},
    {7, 127},
    {UINT64_C(1) << 63, 0}};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char arrays[4][N_ELEMENTS * 8] __attribute__((aligned(64)));

static void set_all(unsigned source, enum dtype dtype, double x, uint64_t whole)
{
    float narrow = (float)x;
    const void *item = dtype == DTYPE_FLOAT64   ? (const void *)&x
                       : dtype == DTYPE_FLOAT32 ? (const void *)&narrow
                                                : (const void *)&whole;
    for (size_t i = 0; i < N_ELEMENTS; i++)
        memcpy(arrays[source] + i * dtype_size(dtype), item, dtype_size(dtype));
}

/* False: there are no more. */
static bool fill(const struct check_case *k, unsigned pattern)
{
    const double(*floats)[2] = k->compute == DTYPE_FLOAT32 ? narrow_pairs : pairs;
    size_t n_floats = k->compute == DTYPE_FLOAT32 ? sizeof(narrow_pairs) / sizeof(narrow_pairs[0])
                                                  : sizeof(pairs) / sizeof(pairs[0]);
    size_t n = sizeof(whole_pairs) / sizeof(whole_pairs[0]);
    if (pattern < 2) {
        check_fill_sources(k, (void *const[]){arrays[0], arrays[1], arrays[2]}, N_ELEMENTS,
                           pattern == 0);
        return true;
    }
    pattern -= 2;
    if (pattern >= (n > n_floats ? n : n_floats))
        return false;
    for (unsigned j = 0; j < k->n_src; j++) {
        unsigned which = j > 1 ? 0 : j;
        uint64_t whole = whole_pairs[pattern % n][which];
        if (k->src[j] == DTYPE_BOOL)
            whole &= 1;
        set_all(j, k->src[j], floats[pattern % n_floats][which], whole);
    }
    return true;
}

static double ns_of(const struct built *b, enum cpu_level level, const struct check_case *k)
{
    static const int64_t count = N_ELEMENTS;
    static const int axis = 0;
    const struct engine_box box = {.ndim = 1, .count = &count, .axis_order = &axis};
    struct engine_view in[3] = {{0}}, out = {.base = arrays[3]};
    struct engine_warnings warnings = {0};
    for (unsigned j = 0; j < k->n_src; j++) {
        in[j].base = arrays[j];
        in[j].strides[0] = (int64_t)dtype_size(b->inputs[j].dtype);
    }
    out.strides[0] = (int64_t)dtype_size(b->outputs[0].dtype);
    double least = INFINITY; /* other processes only add to it */
    for (unsigned i = 0; i < N_RUNS; i++) {
        double begin = now();
        if (cpu_engine_run(cpu_engine_get(level), &b->program, 0, &box, in, &out, NULL, NULL, NULL,
                           &warnings, test_scratch()))
            return 0;
        least = fmin(least, now() - begin);
    }
    return least / N_ELEMENTS * 1e9;
}

static void worst_case(struct check *c, const struct check_case *k)
{
    static struct built b;
    double worst[CPU_LEVEL_AVX512 + 1] = {0};
    check_build(&b, k);
    check_restart(c, k->name, 0);
    for (unsigned pattern = 0; fill(k, pattern); pattern++)
        for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
            if (check_has_level(level))
                worst[level] = fmax(worst[level], ns_of(&b, (enum cpu_level)level, k));
    printf("%-44s %5u", k->name, op_worst_ns(k->op, k->compute));
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        if (check_has_level(level))
            printf(" %8.2f", worst[level]);
    printf("\n");
    c->n_run++;
}

void bench_worst(struct check *c)
{
    printf("%-44s %5s %8s\n", "ns an element at its worst", "table", "plain, baseline, ...");
    check_each_case(c, worst_case);
}
