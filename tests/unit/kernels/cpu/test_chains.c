/* Additions, subtractions and multiplications that become chains: every level gives the bytes of
 * the plain one, where each instruction is a kernel; whoever else reads a result, wherever outputs
 * go, of any length. */
#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define N_INPUTS 3
#define MAX_N    4200

static struct built b;
static unsigned seed;

static unsigned below(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct operand some(const struct operand *registers, unsigned n_registers,
                           const struct operand *others, unsigned n_others)
{
    unsigned i = below(n_registers + n_others / 2 + 1);
    return i < n_registers ? registers[i] : others[below(n_others)];
}

/* Four registers, the results of which are used once or more, by the next or later; the last one
 * and perhaps another are stored. */
static void make_program(enum dtype dtype, unsigned n_insns)
{
    static const enum op ops[] = {OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_MULTIPLY, OP_MINIMUM};
    struct operand others[N_INPUTS + 1], registers[4], last = {0};
    union scalar k = {.f64 = 0.75};
    unsigned n_registers = 0;
    if (dtype == DTYPE_FLOAT32)
        k.f32 = 0.75f;
    built_init(&b);
    for (unsigned i = 0; i < N_INPUTS; i++)
        others[i] = built_input(&b, dtype);
    others[N_INPUTS] = built_const(&b, dtype, k);
    for (unsigned i = 0; i < n_insns; i++) {
        unsigned reg = n_registers < 4 ? n_registers : below(4);
        enum op op = ops[below(10) == 0 ? 4 : below(4)];
        struct operand x = some(registers, n_registers, others, N_INPUTS + 1);
        struct operand y = some(registers, n_registers, others, N_INPUTS + 1);
        if (i > 0 && below(3) > 0) /* mostly of what was just made */
            *(below(2) ? &x : &y) = last;
        last = built_insn(&b, op, dtype, dtype, reg, x, y, (struct operand){0});
        registers[reg] = last;
        n_registers += reg == n_registers;
    }
    built_store(&b, last);
    if (below(2))
        built_store(&b, registers[below(n_registers)]);
}

static void run(enum cpu_level level, int64_t n, bool is_large, char *const *inputs,
                char *const *outputs)
{
    struct engine_view in[N_INPUTS] = {0}, out[2] = {0};
    struct engine_warnings warnings = {0};
    struct engine_box box = {.ndim = 1, .count = &n, .axis_order = (int[]){0}};
    int64_t item_bytes = (int64_t)dtype_size(b.inputs[0].dtype);
    for (unsigned i = 0; i < N_INPUTS; i++)
        in[i] = (struct engine_view){
            .base = inputs[i], .strides = {item_bytes}, .is_fetched_ahead = is_large};
    for (unsigned i = 0; i < b.program.n_outputs; i++)
        out[i] = (struct engine_view){
            .base = outputs[i], .strides = {item_bytes}, .bypasses_cache = is_large};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(level), &b.program, 0, &box, in, out, NULL,
                                       NULL, NULL, &warnings, test_scratch())));
    cpu_engine_fence();
}

static void fill(char *at, enum dtype dtype, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double value = (below(20000) - 10000.0) / 5000;
        if (dtype == DTYPE_FLOAT32)
            ((float *)at)[i] = (float)value;
        else
            ((double *)at)[i] = value;
    }
}

Test(chains, give_the_bytes_of_kernels_one_by_one)
{
    static char memory[N_INPUTS + 4][MAX_N * 8 + 64] __attribute__((aligned(64)));
    for (unsigned k = 0; k < 400; k++) {
        enum dtype dtype = k % 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        unsigned n = k % 5 ? 1 + below(300) : 1 + below(MAX_N), shift = below(4) * 8;
        bool in_place = below(4) == 0;
        char *inputs[N_INPUTS], *wanted[2] = {memory[N_INPUTS], memory[N_INPUTS + 1]};
        char *got[2] = {memory[N_INPUTS + 2], memory[N_INPUTS + 3]};
        seed = k + 1;
        make_program(dtype, 1 + below(40));
        for (unsigned i = 0; i < N_INPUTS; i++)
            fill(inputs[i] = memory[i] + shift, dtype, n);
        run(CPU_LEVEL_PLAIN, n, false, inputs, wanted);
        for (int level = CPU_LEVEL_BASELINE; level <= CPU_LEVEL_AVX512; level++) {
            size_t n_bytes = n * dtype_size(dtype);
            bool is_last = level == CPU_LEVEL_AVX512;
            if (in_place && is_last) /* it is written over */
                got[0] = inputs[0];
            run((enum cpu_level)level, n, below(2), inputs, got);
            for (unsigned i = 0; i < b.program.n_outputs; i++)
                cr_assert(memcmp(got[i], wanted[i], n_bytes) == 0, "%u: level %d, %u elements", k,
                          level, n);
        }
    }
}
