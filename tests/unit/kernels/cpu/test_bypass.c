/* Outputs that go past the cache and inputs that are fetched ahead: the same bytes as without, at
 * every level, alignment and length, and nothing beside them. */
#include "tests/unit/kernels/cpu/builder.h"

#include "kernels/cpu/run/run.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define F32   DTYPE_FLOAT32
#define F64   DTYPE_FLOAT64
#define N     5003
#define GUARD 128

#define EACH_LEVEL(level)                                                                          \
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)                          \
        if (cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level)

static struct built b;
static struct engine_warnings warnings;
static const struct operand none;
static double x[N], y[N];

static void fill(void)
{
    built_init(&b);
    for (int i = 0; i < N; i++) {
        x[i] = i * 0.37;
        y[i] = (double)(N - i) * 1.5;
    }
}

TestSuite(bypass, .init = fill);

/* Runs over n elements of contiguous arrays, past the cache or not. */
static void run(int level, bool is_large, int64_t n, void *const *inputs, void *const *outputs,
                struct built_node *ret_node)
{
    struct engine_view in[REQUEST_MAX_ARGS] = {0}, out[REQUEST_MAX_OUTPUTS] = {0};
    for (unsigned i = 0; i < b.program.n_inputs; i++) {
        in[i].base = inputs[i];
        in[i].strides[0] = (int64_t)dtype_size(b.inputs[i].dtype);
        in[i].is_fetched_ahead = is_large;
    }
    for (unsigned i = 0; i < b.program.n_outputs; i++) {
        out[i].base = outputs[i];
        out[i].strides[0] = (int64_t)dtype_size(b.outputs[i].dtype);
        out[i].bypasses_cache = is_large;
    }
    struct engine_box box = {.ndim = 1, .count = &n, .axis_order = (int[]){0}};
    struct reduce_layout layout;
    reduce_layout_init(&layout, &b.program, 0, 1);
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get((enum cpu_level)level), &b.program, 0, &box,
                                       in, out, NULL, ret_node ? &layout : NULL, ret_node,
                                       &warnings, test_scratch())));
    cpu_engine_fence();
}

Test(bypass, copies_any_length_to_any_alignment)
{
    static char from[1024 + 64], to[1024 + 3 * GUARD] __attribute__((aligned(64)));
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (char)(i * 7 + 1);
    EACH_LEVEL(level)
    {
        const struct move_kernels *move = cpu_engine_get((enum cpu_level)level)->move;
        for (size_t n = 0; n <= 1024; n += n < 200 ? 1 : 103) {
            for (size_t at = 0; at < 64; at += 1 + at % 5) {
                memset(to, 0x5a, sizeof(to));
                move->stream(n, to + GUARD + at, from + at % 17);
                cpu_engine_fence();
                cr_assert(zero(int, memcmp(to + GUARD + at, from + at % 17, n)), "%zu bytes at %zu",
                          n, at);
                for (size_t i = 0; i < sizeof(to); i++)
                    if (i < GUARD + at || i >= GUARD + at + n)
                        cr_assert(eq(chr, to[i], 0x5a), "%zu bytes at %zu: byte %zu", n, at, i);
            }
        }
    }
}

/* x > 500, x as float32, x + y: results of 1, 4 and 8 bytes. */
static void build_of_size(size_t item_bytes)
{
    built_init(&b);
    struct operand a = built_input(&b, F64), c = built_input(&b, F64);
    struct operand limit = built_const(&b, F64, (union scalar){.f64 = 500});
    struct operand sum = built_insn(&b, OP_ADD, F64, F64, 0, a, c, none);
    if (item_bytes == 1)
        built_store(&b, built_insn(&b, OP_GREATER, F64, DTYPE_BOOL, 0, a, limit, none));
    else if (item_bytes == 4)
        built_store(&b, built_insn(&b, OP_CAST, F64, F32, 0, sum, none, none));
    else
        built_store(&b, sum);
}

Test(bypass, gives_the_same_bytes_at_every_offset_and_length)
{
    static char wanted[8 * N], got[8 * N + 3 * GUARD] __attribute__((aligned(64)));
    static const int64_t lengths[] = {1, 63, 64, 65, 127, 128, 500, 2048, 2049, 4096, N};
    void *inputs[] = {x, y};
    EACH_LEVEL(level)
    {
        for (size_t item = 1; item <= 8; item = item == 1 ? 4 : item * 2) {
            build_of_size(item);
            for (unsigned i = 0; i < ARRAY_LENGTH(lengths); i++) {
                run(level, false, lengths[i], inputs, (void *[]){wanted}, NULL);
                size_t n_bytes = (size_t)lengths[i] * item;
                for (size_t at = 0; at < 72; at += item == 1 ? 5 : 4) { /* also between items */
                    memset(got, 0x5a, sizeof(got));
                    run(level, true, lengths[i], inputs, (void *[]){got + GUARD + at}, NULL);
                    cr_assert(zero(int, memcmp(got + GUARD + at, wanted, n_bytes)),
                              "level %d, %lld items of %zu bytes at %zu", level,
                              (long long)lengths[i], item, at);
                    for (size_t k = 0; k < GUARD; k++)
                        cr_assert(got[at + k] == 0x5a && got[GUARD + at + n_bytes + k] == 0x5a);
                }
            }
        }
    }
}

Test(bypass, works_in_place)
{
    static double values[N + 8] __attribute__((aligned(64)));
    struct operand a = built_input(&b, F64);
    struct operand root = built_insn(&b, OP_SQRT, F64, F64, 0, a, none, none);
    built_store(&b, built_insn(&b, OP_ADD, F64, F64, 0, root, a, none));
    EACH_LEVEL(level)
    {
        for (int at = 0; at < 8; at++) {
            memcpy(values + at, x, sizeof(x));
            run(level, true, N, (void *[]){values + at}, (void *[]){values + at}, NULL);
            for (int i = 0; i < N; i++)
                cr_assert(eq(dbl, values[at + i], sqrt(x[i]) + x[i]), "element %d", i);
        }
    }
}

Test(bypass, keeps_an_input_that_is_read_after_its_output_is_defined)
{
    static double p[N], q[N];
    struct operand a = built_input(&b, F64), c = built_input(&b, F64);
    built_store(&b, built_insn(&b, OP_ADD, F64, F64, 0, a, c, none));
    built_store(&b, built_insn(&b, OP_SUBTRACT, F64, F64, 1, a, c, none));
    EACH_LEVEL(level)
    {
        memcpy(p, x, sizeof(x));
        memcpy(q, y, sizeof(y));
        run(level, true, N, (void *[]){p, q}, (void *[]){p, q}, NULL);
        for (int i = 0; i < N; i++)
            cr_assert(p[i] == x[i] + y[i] && q[i] == x[i] - y[i], "element %d", i);
    }
}

Test(bypass, exchanges_two_arrays_in_place)
{
    static double p[N], q[N];
    struct operand a = built_input(&b, F64), c = built_input(&b, F64);
    built_store(&b, c);
    built_store(&b, a);
    EACH_LEVEL(level)
    {
        memcpy(p, x, sizeof(x));
        memcpy(q, y, sizeof(y));
        run(level, true, N, (void *[]){p, q}, (void *[]){p, q}, NULL);
        cr_assert(zero(int, memcmp(p, y, sizeof(y))));
        cr_assert(zero(int, memcmp(q, x, sizeof(x))));
    }
}

/* By an instruction, by a reduction, by a second store. */
Test(bypass, keeps_a_value_that_is_used_again)
{
    static double squares[N], again[N], halves[N];
    struct operand a = built_input(&b, F64);
    struct operand square = built_insn(&b, OP_SQUARE, F64, F64, 0, a, none, none);
    struct operand half = built_const(&b, F64, (union scalar){.f64 = 0.5});
    built_store(&b, square);
    built_store(&b, square);
    built_store(&b, built_insn(&b, OP_MULTIPLY, F64, F64, 1, square, half, none));
    built_reduction(&b, OP_MAX, F64, square);
    built_reduction(&b, OP_SUM, F64, square);
    void *outputs[] = {squares, again, halves};
    EACH_LEVEL(level)
    {
        struct built_node usual, node;
        run(level, false, N, (void *[]){x}, outputs, &usual);
        memset(squares, 0, sizeof(squares));
        memset(again, 0, sizeof(again));
        memset(halves, 0, sizeof(halves));
        run(level, true, N, (void *[]){x}, outputs, &node);
        for (int i = 0; i < N; i++)
            cr_assert(squares[i] == x[i] * x[i] && again[i] == squares[i] &&
                          halves[i] == squares[i] * 0.5,
                      "element %d", i);
        cr_assert(eq(u64, built_value(&b, &node, 0).u64, built_value(&b, &usual, 0).u64));
        cr_assert(eq(u64, built_value(&b, &node, 1).u64, built_value(&b, &usual, 1).u64));
    }
}

/* Rows of 700 in 1000, in the other byte order: gaps stay. */
Test(bypass, leaves_the_gaps_between_rows)
{
    enum { ROWS = 6, ROW = 700, PITCH = 1000 };
    static double to[ROWS * PITCH];
    struct operand a = built_input(&b, F64);
    built_store(&b, built_insn(&b, OP_NEGATIVE, F64, F64, 0, a, none, none));
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        struct engine_view in = {.base = x, .strides = {8 * ROW, 8}, .is_fetched_ahead = true};
        struct engine_view out = {.base = to,
                                  .strides = {8 * PITCH, 8},
                                  .is_swapped = is_swapped,
                                  .bypasses_cache = true};
        struct engine_box box = {
            .ndim = 2, .count = (int64_t[]){ROWS, ROW}, .axis_order = (int[]){0, 1}};
        for (int i = 0; i < ROWS * PITCH; i++)
            to[i] = 7;
        cr_assert(
            zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, &in,
                                     &out, NULL, NULL, NULL, &warnings, test_scratch())));
        cpu_engine_fence();
        for (int i = 0; i < ROWS * PITCH; i++) {
            double wanted = i % PITCH < ROW ? -x[i / PITCH * ROW + i % PITCH] : 7;
            uint64_t bits, found;
            memcpy(&bits, &wanted, 8);
            memcpy(&found, &to[i], 8);
            if (is_swapped && i % PITCH < ROW)
                bits = __builtin_bswap64(bits);
            cr_assert(eq(u64, found, bits), "element %d", i);
        }
    }
}

/* What is fetched ahead may lie behind the end of the mapping. */
Test(bypass, fetches_nothing_that_could_fault)
{
    enum { BYTES = 64 * 1024, ITEMS = BYTES / 8 };
    char *memory =
        mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(memory != MAP_FAILED);
    cr_assert(zero(int, mprotect(memory + BYTES, BYTES, PROT_NONE)));
    double *from = (double *)memory;
    static double to[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        from[i] = i;
    struct operand a = built_input(&b, F64);
    struct operand root = built_insn(&b, OP_SQRT, F64, F64, 0, a, none, none);
    built_store(&b, built_insn(&b, OP_ADD, F64, F64, 0, root, a, none));
    run(CPU_LEVEL_AVX512, true, ITEMS, (void *[]){from}, (void *[]){to}, NULL);
    for (int i = 0; i < ITEMS; i++)
        cr_assert(eq(dbl, to[i], sqrt(i) + i));
    munmap(memory, 3 * BYTES);
}

Test(bypass, caches_have_sensible_sizes)
{
    cr_assert(ge(sz, cpu_first_cache_bytes(), 16 * 1024));
    cr_assert(le(sz, cpu_first_cache_bytes(), 128 * 1024));
    cr_assert(ge(sz, cpu_last_cache_bytes(), 4 * 1024 * 1024));
    cr_assert(le(sz, cpu_last_cache_bytes(), 64 * 1024 * 1024));
    cr_assert(eq(sz, cpu_first_cache_bytes(), cpu_first_cache_bytes()));
}
