/* Elements a second, per op, dtype and level.
 *
 * Over arrays that stay in the second-level cache; then fused expressions, awkward layouts, arrays
 * in memory, and reductions. First of all comes how fast memcpy is in the same run: no kernel of
 * one source can be faster. Arguments are of moderate size, those that the runner draws.
 */
#include "tests/unit/kernels/cpu/check.h"

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
    struct cpu_box box;
    struct cpu_view inputs[4], output;
    size_t n;
};

/* Billions of elements a second. */
static double measure(enum cpu_level level, const struct bench *m)
{
    struct partial partials[PROGRAM_MAX_REDUCTIONS];
    struct cpu_warnings warnings = {0};
    double begin = now(), seconds;
    size_t n_runs = 0;
    do {
        if (cpu_engine_run(cpu_engine_get(level), &m->built->program, 0, &m->box, m->inputs,
                           &m->output, NULL, partials, &warnings, test_scratch()))
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

static void bench_reductions(void)
{
    static const enum op ops[] = {OP_SUM, OP_MIN, OP_COUNT_NONZERO};
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT32, DTYPE_UINT8};
    static const int64_t count = N_CACHED;
    static struct built b;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) {
            char name[64];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name(dtypes[j]));
            built_init(&b);
            built_reduction(&b, ops[i], dtypes[j], built_input(&b, dtypes[j]));
            check_fill(arrays[0], dtypes[j], N_CACHED, true);
            struct bench m = flat_bench(&b, &count);
            print_line(name, &m);
        }
    }
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
        m.output = (struct cpu_view){.base = arrays[4], .strides = {4 * layouts[i].count[1], 4}};
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
        bench_reductions();
    }
    for (int i = 0; i < 5; i++)
        free(arrays[i]);
}
