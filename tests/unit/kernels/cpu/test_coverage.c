/* The catalogue, the compiler and the engine agree.
 *
 * Every function of the catalogue, written with any two dtypes, is refused for its dtypes or
 * compiles to instructions that have kernels, runs, and gives the same at every level. And the
 * kernel runner knows every instruction that comes up, so that none goes untested there.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N         130 /* two granules and a tail */
#define MAX_FORMS 4
#define MAX_ULP   16 /* of two functions, one on the other */

/* What is not written as name(a, b). */
static const struct written {
    enum op op;
    const char *forms[MAX_FORMS];
} written[] = {
    {OP_DIVMOD, {"divmod(a, b)[0]", "divmod(a, b)[1]"}},
    {OP_FREXP, {"frexp(b)[0]", "frexp(b)[1]"}},
    {OP_MODF, {"modf(b)[0]", "modf(b)[1]"}},
    {OP_ITERATE, {"iterate(3, a = b, until = a > 1)", "iterate(70, a = b, b = a)"}},
    {OP_SELECT, {"select([a > 0], [b], default=0)", "select([a > 1, b > 2], [a, b])"}},
    {OP_CLIP, {"clip(a, 1, 5)", "clip(a, min=b)", "clip(a, a_max=b)"}},
    {OP_ROUND, {"round(b)", "round(b, 2)", "round(b, decimals=-1)"}},
    {OP_ISCLOSE, {"isclose(a, b)", "isclose(a, b, rtol=0.25, equal_nan=True)"}},
    {OP_NAN_TO_NUM, {"nan_to_num(b)", "nan_to_num(b, nan=1.5, posinf=2.0, neginf=-2.0)"}},
    {OP_INDEX, {"index(0) + b"}},
    {OP_UNIFORM, {"uniform(seed=1) * b", "uniform(-1, b, seed=1, dtype=float32)"}},
    {OP_NORMAL, {"normal(b, 2, seed=1)", "normal(seed=1, dtype=float32) * b"}},
    {OP_LOGNORMAL, {"lognormal(sigma=0.5, seed=1) * b"}},
    {OP_EXPONENTIAL, {"exponential(b, seed=1)", "exponential(seed=1, dtype=float32) * b"}},
    {OP_INTEGERS, {"integers(10, seed=1) + b", "integers(-3, 7, endpoint=True, seed=1) * b"}},
    {OP_BERNOULLI, {"where(bernoulli(0.5, seed=1), a, b)"}},
    {OP_POISSON, {"poisson(3.5, seed=1) + b", "poisson(300, seed=1) + b"}},
    {OP_CHOICE, {"choice(10, seed=1) + b"}},
    {OP_NEAR, {"near(a, 1) + b", "near(a + b, -2, mode=constant, value=3)"}},
    {OP_WINDOW_SUM, {"window_sum(a, 3) + b", "window_sum(a * b, 4, mode=wrap)"}},
    {OP_WINDOW_MEAN, {"window_mean(a, 3) + b"}},
    {OP_WINDOW_MIN, {"window_min(a, 3, origin=1)"}},
    {OP_WINDOW_MAX, {"window_max(a + b, 5, mode=reflect)"}},
    {OP_WINDOW_STD, {"window_std(a, 3) * b"}},
    {OP_WINDOW_MEDIAN, {"window_median(a, 4) + b"}},
    {OP_WINDOW_RANK, {"window_rank(a, -1, 3)"}},
    {OP_CORRELATE, {"correlate(a, [1, 2, 1])", "correlate(a, [0.5, 0.5], mode=symmetric)"}},
    {OP_CONVOLVE, {"convolve(a, [1, 2, 3]) + b"}},
    {OP_QR_R, {"where(max(qr_r(integers(-9, 9, size=(40, 3), seed=1))) > 0, a, b)"}},
    {OP_TENSORDOT, {"tensordot(a, b, 1) + a"}},
    {OP_PERMUTATION, {"permutation(130, seed=1) + b"}},
    {OP_CUMSUM, {"cumsum(a)", "cumsum(a + b, axis=0)"}},
    {OP_CUMPROD, {"cumprod(a)"}},
    {OP_BINCOUNT, {"bincount(a, length=130)", "bincount(a, weights=b, length=9)"}},
    {OP_HISTOGRAM, {"histogram(b, bins=7, range=(-3, 3))[0]", "histogram(a, bins=b)[0]"}},
    {OP_HISTOGRAM_BIN_EDGES, {"histogram_bin_edges(b, bins=7)"}},
    {OP_SEARCHSORTED, {"searchsorted(a, b)", "searchsorted(a, b, side=right)"}},
    {OP_DIGITIZE, {"digitize(a, b)", "digitize(a, b, right=True)"}},
    {OP_TAKE, {"take(b, a)", "take(a, b, mode=wrap)"}},
    {OP_QUANTILE, {"quantile(b, [0.25, 0.5])", "quantile(a, 0.3, method=lower)"}},
    {OP_PERCENTILE, {"percentile(b, 30)"}},
    {OP_MEDIAN, {"median(b)"}},
    {OP_NANQUANTILE, {"nanquantile(b, 0.25)"}},
    {OP_NANPERCENTILE, {"nanpercentile(b, 30)"}},
    {OP_NANMEDIAN, {"nanmedian(b)"}},
};

static bool is_expected[OP_COUNT][DTYPE_COUNT]; /* by the runner */
static bool is_seen[OP_COUNT][DTYPE_COUNT];
static char values[2][DTYPE_COUNT][N * 8];

static void expect(struct check *c, const struct check_case *k)
{
    is_expected[k->op][k->compute] = true;
}

static struct program *compile(const char *expr, enum dtype a, enum dtype b)
{
    static struct request_arg args[2];
    static struct request_output output;
    static struct gad_error error;
    struct job_request request = {.n_args = 2, .n_outputs = 1, .args = args, .outputs = &output};
    memset(args, 0, sizeof(args));
    memset(&output, 0, sizeof(output));
    for (int i = 0; i < 2; i++) {
        args[i].name[0] = "ab"[i];
        args[i].array = (struct array){.dtype = i ? b : a, .ndim = 1, .shape = {N}};
        args[i].array.strides[0] = (int64_t)dtype_size(i ? b : a);
    }
    output.expr = expr;
    output.n_expr_chars = strlen(expr);
    struct program *program = NULL;
    int r = program_compile(&request, &program, &error);
    cr_assert(r == 0 || r == GAD_BAD_DTYPE, "%s of %s, %s: %s", expr, dtype_name(a), dtype_name(b),
              error.message);
    return r ? NULL : program;
}

/* What a pass reads of a result: in its axes, by broadcasting; in whole; or as a scan's state. */
static struct engine_view view_of(const struct program *program, unsigned reduction, unsigned pass,
                                  char *const *results)
{
    struct engine_view view = {.base = results[reduction]};
    int64_t shape[ARRAY_MAX_NDIM], step = sizeof(union scalar);
    int ndim = program_reduction_shape(program, reduction, shape);
    int n_more = program->passes[pass].ndim - ndim;
    if (program->reductions[reduction].pass == pass)
        return view;
    step = (int64_t)dtype_size((enum dtype)program->reductions[reduction].result);
    for (int i = ndim - 1; i >= 0; i--) {
        if (i + n_more >= 0 && shape[i] != 1)
            view.strides[i + n_more] = step;
        step *= shape[i];
    }
    return view;
}

/* From a node to the results, as the planner keeps them. */
static void keep(const struct program *program, unsigned pass, const struct reduce_layout *layout,
                 const void *node, char **results)
{
    for (unsigned i = 0; i < layout->n_reductions; i++) {
        const struct reduction *r = &layout->reductions[i];
        unsigned index = program->passes[pass].first_reduction + i;
        uint64_t n = reduce_n_values(layout, i);
        results[index] = realloc(results[index], n * sizeof(union scalar) + 64);
        memcpy(results[index], reduce_values(layout, node, i),
               n * dtype_size((enum dtype)r->result));
        int64_t *counts = (int64_t *)results[index];
        for (uint64_t k = 1; r->is_cumulative && k < n; k++)
            counts[k] += k % r->n_bins ? counts[k - 1] : 0;
    }
}

static uint64_t n_cells_of(const struct pass *pass)
{
    uint64_t n = 1;
    for (int i = 0; i < pass->ndim; i++)
        n *= pass->reduced_axes >> i & 1 ? 1 : (uint64_t)pass->shape[i];
    return n;
}

static int run_pass(const struct cpu_engine *engine, const struct program *program, unsigned i,
                    const struct engine_view *inputs, const struct engine_view *output,
                    char **results)
{
    static const int order[ARRAY_MAX_NDIM] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct pass *pass = &program->passes[i];
    struct engine_view reduced[PROGRAM_MAX_REDUCTIONS];
    struct engine_warnings warnings = {0};
    struct reduce_layout layout;
    bool has_node = pass->n_reductions > 0 && pass->scanned_axis < 0;
    struct engine_box box = {.ndim = pass->ndim,
                             .count = pass->shape,
                             .axis_order = order,
                             .window_memory = (char *)test_scratch() + CPU_SCRATCH_BYTES};
    for (unsigned k = 0; k < program->n_reductions; k++)
        reduced[k] = view_of(program, k, i, results);
    reduce_layout_init(&layout, program, i, n_cells_of(pass));
    void *node = has_node ? aligned_alloc(64, layout.n_bytes) : NULL;
    int r = cpu_engine_run(engine, program, i, &box, inputs, output, reduced,
                           has_node ? &layout : NULL, node, &warnings, test_scratch());
    if (!r && has_node)
        keep(program, i, &layout, node, results);
    free(node);
    return r;
}

/* All passes, over boxes of the whole space. */
static int run(const struct cpu_engine *engine, const struct program *program,
               const enum dtype *dtypes, void *out)
{
    struct engine_view inputs[2], output = {.base = out};
    char *results[PROGRAM_MAX_REDUCTIONS];
    int r = 0;
    output.strides[0] = (int64_t)dtype_size(program->outputs[0].dtype);
    for (unsigned i = 0; i < program->n_inputs; i++) {
        unsigned arg = program->inputs[i].arg;
        inputs[i] = (struct engine_view){.base = values[arg][dtypes[arg]],
                                         .strides = {(int64_t)dtype_size(dtypes[arg])}};
    }
    for (unsigned i = 0; i < program->n_reductions; i++)
        results[i] = calloc(1, sizeof(union scalar)); /* a scan's state */
    for (unsigned i = 0; i < program->n_passes && !r; i++)
        r = run_pass(engine, program, i, inputs, &output, results);
    for (unsigned i = 0; i < program->n_reductions; i++)
        free(results[i]);
    return r;
}

/* Not in the kernel runner: reductions, and what test_random.c and test_tables.c are about. */
static bool is_elsewhere(enum op op)
{
    return op == OP_SQUARED_DEVIATIONS || op == OP_KTH || op == OP_TAKE ||
           (op >= OP_RANDOM_U32 && op <= OP_SEARCH_RIGHT);
}

static void check_instructions(const struct program *program, const char *expr)
{
    bool is_exchanged;
    for (unsigned i = 0; i < program->n_insns; i++) {
        const struct insn *insn = &program->insns[i];
        cr_assert(is_elsewhere((enum op)insn->op) || is_expected[insn->op][insn->compute],
                  "%s: %s of %s is an instruction that the kernel runner does not know", expr,
                  op_info((enum op)insn->op)->name, dtype_name((enum dtype)insn->compute));
        is_seen[insn->op][insn->compute] = true;
        for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)
            cr_assert(engine_find_kernel(cpu_engine_get((enum cpu_level)level), insn,
                                         &is_exchanged) != NULL,
                      "%s: %s of %s has no kernel", expr, op_info((enum op)insn->op)->name,
                      dtype_name((enum dtype)insn->compute));
    }
}

static void check_program(const struct program *program, const char *expr, enum dtype a,
                          enum dtype b)
{
    static char wanted[N * 8 + 8], got[N * 8 + 8];
    const enum dtype dtypes[] = {a, b};
    enum dtype result = program->outputs[0].dtype;
    size_t n = 1, item_bytes = dtype_size(result);
    for (int i = 0; i < program->outputs[0].ndim; i++)
        n *= (size_t)program->outputs[0].shape[i];
    check_instructions(program, expr);
    if (program->n_products > 0 || program->n_slabs > 0) /* they have kernels of their own */
        return;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        void *out = level == CPU_LEVEL_PLAIN ? wanted : got;
        int r = run(cpu_engine_get((enum cpu_level)level), program, dtypes, out);
        cr_assert(eq(int, r, 0), "%s of %s, %s", expr, dtype_name(a), dtype_name(b));
        for (size_t i = 0; i < n && out == got; i++) {
            const char *x = got + i * item_bytes, *y = wanted + i * item_bytes;
            bool is_good = dtype_is_float(result) ? check_is_near(x, y, result, MAX_ULP)
                                                  : check_same(x, y, result);
            cr_assert(is_good, "%s of %s, %s: element %zu, level %s", expr, dtype_name(a),
                      dtype_name(b), i, cpu_level_name((enum cpu_level)level));
        }
    }
}

static unsigned check_form(const char *form)
{
    unsigned n_compiled = 0;
    for (int a = 0; a < DTYPE_COUNT; a++)
        for (int b = 0; b < DTYPE_COUNT; b++) {
            struct program *program = compile(form, (enum dtype)a, (enum dtype)b);
            if (!program)
                continue; /* dtypes that the operation does not have */
            n_compiled++;
            check_program(program, form, (enum dtype)a, (enum dtype)b);
            program_free(program);
        }
    return n_compiled;
}

static void check_op(enum op op)
{
    const struct op_info *info = op_info(op);
    static const char *const arguments[] = {"", "(b)", "(a, b)", "(a, b, a)"};
    char form[64];
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        if (written[i].op != op)
            continue;
        for (int j = 0; j < MAX_FORMS && written[i].forms[j]; j++)
            cr_assert(lt(u32, 0, check_form(written[i].forms[j])), "%s", written[i].forms[j]);
        return;
    }
    for (int to = 0; info->rule == OP_RULE_CAST && to < DTYPE_COUNT; to++) {
        snprintf(form, sizeof(form), "%s(b)", dtype_name((enum dtype)to));
        cr_assert(lt(u32, 0, check_form(form)), "%s", form);
    }
    if (info->rule == OP_RULE_CAST || info->rule == OP_RULE_NONE)
        return;
    snprintf(form, sizeof(form), "%s%s", info->name, arguments[info->n_args]);
    cr_assert(lt(u32, 0, check_form(form)), "%s", form);
}

Test(coverage, every_operation_of_the_catalogue_compiles_and_runs_at_every_level)
{
    struct check c = {.seed = 1};
    check_each_case(&c, expect);
    cr_assert(eq(u64, c.n_failed, 0), "an instruction has no kernel");
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < DTYPE_COUNT; d++)
            check_fill(values[i][d], (enum dtype)d, N, true);
    for (int op = 0; op < OP_COUNT; op++)
        check_op((enum op)op);
    for (int op = 0; op < OP_COUNT; op++)
        if (op_info((enum op)op)->rule == OP_RULE_NONE && !is_elsewhere((enum op)op))
            cr_assert(is_seen[op][DTYPE_FLOAT32] && is_seen[op][DTYPE_FLOAT64], "%s",
                      op_info((enum op)op)->name);
    for (int op = OP_RANDOM_U32; op <= OP_SEARCH_RIGHT; op++) {
        bool is_any = false;
        for (int d = 0; d < DTYPE_COUNT; d++)
            is_any |= is_seen[op][d];
        cr_assert(is_any, "%s", op_info((enum op)op)->name);
    }
}
