/* Elements a second, per op, dtype and level.
 *
 * Over arrays that stay in the second-level cache; then fused expressions, awkward layouts, arrays
 * in memory, and reductions. First of all comes how fast memcpy is in the same run: no kernel of
 * one source can be faster. Arguments are of moderate size, those that the runner draws.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_CACHED    (16 * 1024)
#define N_MEMORY    (16 * 1024 * 1024)
#define MIN_SECONDS 0.02

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct bench {
    const struct built *built;
    struct engine_box box;
    struct engine_view inputs[4], output;
    size_t n;
    size_t n_cells; /* of its reductions; 0 without any */
};

/* Billions of elements a second. */
static double measure(enum cpu_level level, const struct bench *m)
{
    static char node[1 << 20] __attribute__((aligned(64)));
    struct reduce_layout layout;
    struct engine_warnings warnings = {0};
    if (m->n_cells)
        reduce_layout_init(&layout, &m->built->program, 0, m->n_cells);
    double begin = now(), seconds;
    size_t n_runs = 0;
    do {
        if (cpu_engine_run(cpu_engine_get(level), &m->built->program, 0, &m->box, m->inputs,
                           &m->output, NULL, m->n_cells ? &layout : NULL, node, &warnings,
                           test_scratch()))
            return 0;
        n_runs++;
        seconds = now() - begin;
    } while (seconds < MIN_SECONDS);
    return (double)n_runs * (double)m->n / seconds * 1e-9;
}

static char *arrays[5];

static struct bench flat_bench(const struct built *b, const int64_t *count)
{
    static const int axis = 0;
    struct bench m = {
        .built = b, .n = (size_t)*count, .box = {.ndim = 1, .count = count, .axis_order = &axis}};
    for (unsigned i = 0; i < b->program.n_inputs; i++) {
        m.inputs[i].base = arrays[i];
        m.inputs[i].strides[0] = (int64_t)dtype_size(b->inputs[i].dtype);
    }
    m.output.base = arrays[4];
    if (b->program.n_outputs)
        m.output.strides[0] = (int64_t)dtype_size(b->outputs[0].dtype);
    return m;
}

static void print_line(const char *name, const struct bench *m)
{
    printf("%-44s", name);
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        if (check_has_level(level))
            printf(" %8.3f", measure((enum cpu_level)level, m));
    printf("\n");
}

static void bench_case(struct check *c, const struct check_case *k)
{
    static struct built b;
    static const int64_t count = N_CACHED;
    check_build(&b, k);
    check_restart(c, k->name, 0);
    check_fill_sources(k, (void *const[]){arrays[0], arrays[1], arrays[2]}, N_CACHED, true);
    struct bench m = flat_bench(&b, &count);
    print_line(k->name, &m);
    c->n_run++;
}

/* sqrt(a*a + b*b) */
static void build_magnitude(struct built *b)
{
    struct operand none = {0};
    enum dtype f = DTYPE_FLOAT32;
    built_init(b);
    struct operand x = built_input(b, f), y = built_input(b, f);
    struct operand xx = built_insn(b, OP_MULTIPLY, f, f, 0, x, x, none);
    struct operand yy = built_insn(b, OP_MULTIPLY, f, f, 1, y, y, none);
    struct operand sum = built_insn(b, OP_ADD, f, f, 0, xx, yy, none);
    built_store(b, built_insn(b, OP_SQRT, f, f, 0, sum, none, none));
}

/* Along axes of a box that fits the second-level cache, as a grain does. */
static void bench_reduction(const char *name, enum dtype dtype, const int64_t *count, uint32_t axes,
                            const enum op *ops)
{
    static struct built b;
    built_init(&b);
    struct operand x = built_input(&b, dtype);
    struct bench m = {.built = &b,
                      .n = 1,
                      .n_cells = 1,
                      .box = {.ndim = 3, .count = count, .axis_order = (const int[]){0, 1, 2}}};
    for (; *ops; ops++) {
        bool is_float = dtype_is_float(dtype) && (*ops == OP_SUM || *ops == OP_SQUARED_DEVIATIONS);
        bool is_extremum = *ops == OP_MIN || *ops == OP_MAX;
        built_reduction(&b, *ops, is_extremum ? dtype : is_float ? DTYPE_FLOAT64 : DTYPE_INT64, x);
    }
    struct pass *pass = &b.program.passes[0];
    pass->reduced_axes = axes;
    int64_t step = (int64_t)dtype_size(dtype);
    for (int i = 2; i >= 0; i--) {
        pass->shape[i] = count[i];
        m.n *= (size_t)count[i];
        m.n_cells *= axes >> i & 1 ? 1 : (size_t)count[i];
        m.inputs[0].strides[i] = step;
        step *= count[i];
    }
    m.inputs[0].base = arrays[0];
    check_fill(arrays[0], dtype, m.n, true);
    print_line(name, &m);
}

static void bench_reductions(void)
{
    static const int64_t grain[] = {1, 1, 65536}, rows[] = {1, 16, 4096}, image[] = {1, 21845, 3};
    static const int64_t many[] = {1, 655, 100}, planes[] = {16, 64, 64}, column[] = {1, 256, 256};
    static const enum op sum[] = {OP_SUM, 0}, max[] = {OP_MAX, 0}, count[] = {OP_COUNT_NONZERO, 0};
    static const enum op variance[] = {OP_SQUARED_DEVIATIONS, 0}, first[] = {OP_ARGMAX, 0};
    static const enum op all[] = {OP_SUM, OP_SQUARED_DEVIATIONS, OP_MIN, OP_MAX, 0};
    enum dtype f = DTYPE_FLOAT32;
    bench_reduction("sum float32", f, grain, 7, sum);
    bench_reduction("sum float64", DTYPE_FLOAT64, grain, 7, sum);
    bench_reduction("sum int32", DTYPE_INT32, grain, 7, sum);
    bench_reduction("sum uint8", DTYPE_UINT8, grain, 7, sum);
    bench_reduction("max float32", f, grain, 7, max);
    bench_reduction("max float64", DTYPE_FLOAT64, grain, 7, max);
    bench_reduction("max uint8", DTYPE_UINT8, grain, 7, max);
    bench_reduction("count_nonzero float32", f, grain, 7, count);
    bench_reduction("squared deviations float32", f, grain, 7, variance);
    bench_reduction("squared deviations float64", DTYPE_FLOAT64, grain, 7, variance);
    bench_reduction("argmax float32", f, grain, 7, first);
    bench_reduction("sum, deviations, min, max float32", f, grain, 7, all);
    bench_reduction("sum float32 (16, 4096) axis 0", f, rows, 2, sum);
    bench_reduction("sum float32 (256, 256) axis 0", f, column, 2, sum);
    bench_reduction("sum float64 (16, 4096) axis 0", DTYPE_FLOAT64, rows, 2, sum);
    bench_reduction("max float32 (16, 4096) axis 0", f, rows, 2, max);
    bench_reduction("all four float32 (16, 4096) axis 0", f, rows, 2, all);
    bench_reduction("sum float32 (16, 4096) axis 1", f, rows, 4, sum);
    bench_reduction("sum float32 (655, 100) axis 1", f, many, 4, sum);
    bench_reduction("sum float32 (21845, 3) axis 1", f, image, 4, sum);
    bench_reduction("sum float32 (21845, 3) axis 0", f, image, 2, sum);
    bench_reduction("sum uint8 (21845, 3) axis 0", DTYPE_UINT8, image, 2, sum);
    bench_reduction("sum float32 (16, 64, 64) axes 0 2", f, planes, 5, sum);
    bench_reduction("all four float32 (655, 100) axis 1", f, many, 4, all);
}

static void bench_layouts(void)
{
    static struct built b;
    struct check_case add = {.op = OP_ADD,
                             .compute = DTYPE_FLOAT32,
                             .result = DTYPE_FLOAT32,
                             .src = {DTYPE_FLOAT32, DTYPE_FLOAT32},
                             .n_src = 2};
    check_build(&b, &add);
    static const struct {
        const char *name;
        int64_t count[2], a[2], b[2];
        bool is_swapped;
    } layouts[] = {
        {"add (8192, 2) + row", {8192, 2}, {8, 4}, {0, 4}, false},
        {"add (8192, 2) + column", {8192, 2}, {8, 4}, {4, 0}, false},
        {"add (16, 1000) + row", {16, 1000}, {4000, 4}, {0, 4}, false},
        {"add (16, 1000) + column", {16, 1000}, {4000, 4}, {4, 0}, false},
        {"add rows of 100 of 128", {128, 100}, {512, 4}, {512, 4}, false},
        {"add rows of 7 of 8", {2048, 7}, {32, 4}, {32, 4}, false},
        {"add every other", {1, 16384}, {0, 8}, {0, 8}, false},
        {"add transposed (128, 128)", {128, 128}, {4, 512}, {512, 4}, false},
        {"add transposed (127, 129)", {127, 129}, {4, 508}, {516, 4}, false},
        {"add big-endian", {1, 16384}, {0, 4}, {0, 4}, true},
    };
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct bench m = {
            .built = &b,
            .n = (size_t)(layouts[i].count[0] * layouts[i].count[1]),
            .box = {.ndim = 2, .count = layouts[i].count, .axis_order = (const int[]){0, 1}}};
        memcpy(m.inputs[0].strides, layouts[i].a, sizeof(layouts[i].a));
        memcpy(m.inputs[1].strides, layouts[i].b, sizeof(layouts[i].b));
        m.inputs[0].base = arrays[0];
        m.inputs[1].base = arrays[1];
        m.inputs[0].is_swapped = m.inputs[1].is_swapped = layouts[i].is_swapped;
        m.output = (struct engine_view){.base = arrays[4], .strides = {4 * layouts[i].count[1], 4}};
        print_line(layouts[i].name, &m);
    }
}

static void bench_memory(void)
{
    static const int64_t count = N_MEMORY;
    static struct built b;
    struct check_case root = {.op = OP_SQRT,
                              .compute = DTYPE_FLOAT32,
                              .result = DTYPE_FLOAT32,
                              .src = {DTYPE_FLOAT32},
                              .n_src = 1};
    check_build(&b, &root);
    struct bench m = flat_bench(&b, &count);
    print_line("sqrt float32, 64 MiB", &m);
    build_magnitude(&b);
    m = flat_bench(&b, &count);
    print_line("sqrt(a*a + b*b) float32, 64 MiB each", &m);
}

/* What no kernel of one source can beat: a copy of as many items, in cache and in memory. */
static void bench_copies(void)
{
    static const size_t lengths[] = {N_CACHED, N_MEMORY};
    for (size_t item_bytes = 1; item_bytes <= 8; item_bytes *= 2) {
        for (int i = 0; i < 2; i++) {
            size_t n = lengths[i], n_bytes = n * item_bytes, n_runs = 0;
            if (n_bytes > N_MEMORY * 4)
                n_bytes = N_MEMORY * 4;
            double begin = now(), seconds;
            do {
                memcpy(arrays[4], arrays[n_runs++ % 2], n_bytes);
                seconds = now() - begin;
            } while (seconds < MIN_SECONDS);
            printf("copy of %zu-byte items in %-22s %8.3f\n", item_bytes, i ? "memory" : "cache",
                   (double)n_runs * (double)(n_bytes / item_bytes) / seconds * 1e-9);
        }
    }
}

void bench_kernels(struct check *c)
{
    for (int i = 0; i < 5; i++) {
        arrays[i] = aligned_alloc(64, N_MEMORY * 4);
        if (!arrays[i])
            exit(2);
        memset(arrays[i], 0, N_MEMORY * 4);
    }
    printf("%-44s", "1e9 elements a second");
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
        if (check_has_level(level))
            printf(" %8s", cpu_level_name((enum cpu_level)level));
    printf("\n");
    bench_copies();
    check_each_case(c, bench_case);
    if (!c->filter || strstr("reductions", c->filter))
        bench_reductions();
    if (!c->filter || strstr("fused", c->filter)) {
        static const int64_t count = N_CACHED;
        static struct built b;
        check_fill(arrays[0], DTYPE_FLOAT32, N_MEMORY, true);
        check_fill(arrays[1], DTYPE_FLOAT32, N_MEMORY, true);
        build_magnitude(&b);
        struct bench m = flat_bench(&b, &count);
        print_line("fused sqrt(a*a + b*b) float32", &m);
        bench_layouts();
        bench_memory();
    }
    for (int i = 0; i < 5; i++)
        free(arrays[i]);
}
