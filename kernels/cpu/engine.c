/* The engine's levels: which kernels a processor gets.
 *
 * A level is a set of constant tables. What a level does not have is taken from the plain level,
 * which has everything. Engines are constants; cpu_engine_get() asks the processor each time and
 * keeps nothing. The build says which levels there are (CPU_HAS_..., at least the plain one). On
 * processors other than x86-64 these are the plain level and the baseline, which is the same source
 * vectorised for the processor that the build was for.
 */
#include "kernels/cpu/run/run.h"

#include "kernels/cpu/multiply/multiply_kernels.h"
#include "kernels/cpu/slab/slab_kernels.h"
#include "kernels/cpu/windows/window_kernels.h"
#include "proto/util.h"

#define LEVEL(id, name)                                                                            \
    [id] = {                                                                                       \
        .level = id,                                                                               \
        .families = {&arith_##name, &integer_##name, &compare_##name, &math_##name,                \
                     &special_##name, &bits_##name, &modulo_##name, &random_##name, &table_##name, \
                     &key_##name},                                                                 \
        .past = &past_##name,                                                                      \
        .drawn = &drawn_##name,                                                                    \
        .past_drawn = &past_drawn_##name,                                                          \
        .casts = &casts_##name,                                                                    \
        .mixed = &mixed_##name,                                                                    \
        .chains = &chains_##name,                                                                  \
        .reduce = &reduce_##name,                                                                  \
        .sums = &sums_##name,                                                                      \
        .fused = &fused_##name,                                                                    \
        .extrema = &extrema_##name,                                                                \
        .rows = &rows_##name,                                                                      \
        .short_rows = &short_rows_##name,                                                          \
        .scan_sum = &scan_sum_##name,                                                              \
        .scan_prod = &scan_prod_##name,                                                            \
        .move = &move_##name,                                                                      \
        .transpose = &transpose_##name,                                                            \
        .ranks = &ranks_##name,                                                                    \
        .tiles = &multiply_tiles_##name,                                                           \
        .vectors = &multiply_vectors_##name,                                                       \
        .slabs = &slab_kernels_##name,                                                             \
        .windows = &windows_##name,                                                                \
    }

static const struct cpu_engine engines[] = {
    LEVEL(CPU_LEVEL_PLAIN, plain),
#if defined(CPU_HAS_BASELINE)
    LEVEL(CPU_LEVEL_BASELINE, baseline),
#endif
#if defined(CPU_HAS_AVX2)
    LEVEL(CPU_LEVEL_AVX2, avx2),
#endif
#if defined(CPU_HAS_AVX512)
    LEVEL(CPU_LEVEL_AVX512, avx512),
#endif
};

static bool is_supported(enum cpu_level level)
{
    switch (level) {
    case CPU_LEVEL_PLAIN: return true;
#if defined(CPU_HAS_BASELINE)
    case CPU_LEVEL_BASELINE: return true;
#endif
#if defined(CPU_HAS_AVX2)
    case CPU_LEVEL_AVX2: /* SLEEF's functions for AVX2 need FMA too */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#if defined(CPU_HAS_AVX512)
    case CPU_LEVEL_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
    default: return false;
    }
}

const struct cpu_engine *cpu_engine_get(enum cpu_level max_level)
{
    int level = max_level;
    if (level < CPU_LEVEL_PLAIN || level > CPU_LEVEL_AVX512)
        level = CPU_LEVEL_AVX512;
    while (!is_supported((enum cpu_level)level))
        level--;
    return &engines[level];
}

enum cpu_level cpu_engine_level(const struct cpu_engine *engine)
{
    return engine->level;
}

const char *cpu_level_name(enum cpu_level level)
{
    static const char *const names[] = {"plain", "baseline", "avx2", "avx512"};
    return (unsigned)level < ARRAY_LENGTH(names) ? names[level] : "unknown";
}

static kernel_fn *find_in_tables(const struct cpu_engine *engine, unsigned op, unsigned dtype)
{
    for (unsigned i = 0; i < CPU_KERNEL_FAMILIES; i++) {
        kernel_fn *kernel = (*engine->families[i])[op][dtype];
        if (kernel)
            return kernel;
    }
    return engine->level == CPU_LEVEL_PLAIN ? scalar_kernels[op][dtype]
                                            : find_in_tables(&engines[CPU_LEVEL_PLAIN], op, dtype);
}

kernel_fn *engine_find_kernel(const struct cpu_engine *engine, const struct insn *insn,
                              bool *ret_is_exchanged)
{
    unsigned op = insn->op;
    *ret_is_exchanged = false;
    if (op >= OP_COUNT || insn->compute >= DTYPE_COUNT || insn->dst.dtype >= DTYPE_COUNT)
        return NULL;
    if (op == OP_CAST)
        return (*engine->casts)[insn->compute][insn->dst.dtype];
    if (op_is_comparison((enum op)op) && insn->src[0].dtype != insn->src[1].dtype) {
        *ret_is_exchanged = insn->src[0].dtype == DTYPE_UINT64;
        return (*engine->mixed)[*ret_is_exchanged ? op_mirrored((enum op)op) : op];
    }
    if (op == OP_GREATER || op == OP_GREATER_EQUAL) {
        *ret_is_exchanged = true;
        op = op_mirrored((enum op)op);
    }
    if (op == OP_TAKE)
        return find_in_tables(engine, op, insn->dst.dtype);
    return find_in_tables(engine, op, insn->compute);
}

kernel_fn *engine_find_past(const struct cpu_engine *engine, const struct insn *insn)
{
    return (*engine->past)[insn->op][insn->compute];
}

kernel_fn *engine_find_drawn(const struct cpu_engine *engine, const struct insn *insn, bool is_draw,
                             bool is_past)
{
    if (is_draw != (insn->op == OP_RANDOM_U32 || insn->op == OP_RANDOM_U64))
        return NULL;
    return (*(is_past ? engine->past_drawn : engine->drawn))[insn->op][insn->compute];
}

bool engine_find_scan(const struct cpu_engine *engine, const struct reduction *reduction,
                      struct scanning *d)
{
    if (reduction->src.dtype >= DTYPE_COUNT || reduction->result >= DTYPE_COUNT ||
        (reduction->op != OP_CUMSUM && reduction->op != OP_CUMPROD))
        return false;
    const struct scan_kernels *scans =
        reduction->op == OP_CUMSUM ? engine->scan_sum : engine->scan_prod;
    d->along = scans->along[reduction->src.dtype];
    d->across = scans->across[reduction->src.dtype];
    return true;
}

bool engine_find_reduction(const struct cpu_engine *engine, const struct reduction *reduction,
                           struct reducing *d)
{
    unsigned op = reduction->op, dtype = reduction->src.dtype;
    if (op >= OP_COUNT || dtype >= DTYPE_COUNT)
        return false;
    bool is_float = dtype_is_float((enum dtype)dtype);
    bool is_argument = op == OP_ARGMIN || op == OP_ARGMAX;
    bool is_extremum = op == OP_MIN || op == OP_MAX;
    bool is_float_sum = is_float && (op == OP_SUM || op == OP_SQUARED_DEVIATIONS);
    d->run = is_extremum    ? (*engine->extrema)[op][dtype]
             : is_float_sum ? (*engine->sums)[op][dtype]
                            : (*engine->reduce)[op][dtype];
    d->argument = argument_kernels[op][dtype];
    d->extremum = is_argument ? (*engine->extrema)[op == OP_ARGMIN ? OP_MIN : OP_MAX][dtype] : NULL;
    d->fused = (*engine->fused)[op][dtype];
    d->short_rows = (*engine->short_rows)[op][dtype];
    d->rows = is_argument ? argument_rows[op][dtype] : (*engine->rows)[op][dtype];
    d->join =
        is_argument || is_extremum
            ? d->rows
            : (*engine->rows)[op == OP_PROD ? OP_PROD : OP_SUM]
                             [is_float && op != OP_COUNT_NONZERO ? DTYPE_FLOAT64 : DTYPE_UINT64];
    d->is_ordered = is_float_sum || (is_float && op == OP_PROD);
    d->turn = engine->transpose->by_item[__builtin_ctzl(dtype_size((enum dtype)dtype))];
    return (d->run || (d->argument && d->extremum)) && d->rows && d->join;
}
