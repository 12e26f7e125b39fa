/* The compiler and the engine agree: every instruction that an expression of one operation on any
 * two dtypes compiles to has a kernel, at every level. */
#include "kernels/cpu/run.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static struct program *compile(const char *expr, enum dtype a, enum dtype c)
{
    static struct request_arg args[2];
    static struct request_output output;
    static struct gad_error error;
    struct job_request request = {.n_args = 2, .n_outputs = 1, .args = args, .outputs = &output};
    memset(args, 0, sizeof(args));
    memset(&output, 0, sizeof(output));
    for (int i = 0; i < 2; i++) {
        args[i].name[0] = "ab"[i];
        args[i].array = (struct array){.dtype = i ? c : a, .ndim = 1, .shape = {10}};
        args[i].array.strides[0] = (int64_t)dtype_size(i ? c : a);
    }
    output.expr = expr;
    output.n_expr_chars = strlen(expr);
    struct program *program = NULL;
    return program_compile(&request, &program, &error) ? NULL : program;
}

static void check_program(const struct program *program, const char *expr)
{
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = cpu_engine_get((enum cpu_level)level);
        bool is_exchanged;
        for (unsigned i = 0; i < program->n_insns; i++)
            cr_assert(engine_find_kernel(engine, &program->insns[i], &is_exchanged) != NULL,
                      "%s: %s of %s", expr, op_info((enum op)program->insns[i].op)->name,
                      dtype_name((enum dtype)program->insns[i].compute));
        for (unsigned i = 0; i < program->n_reductions; i++)
            cr_assert(engine_find_reduction(engine, &program->reductions[i]) != NULL, "%s", expr);
    }
}

static unsigned check_op(enum op op)
{
    char expr[64];
    unsigned n_compiled = 0;
    const char *name = op_info(op)->name;
    for (int a = 0; a < DTYPE_COUNT; a++)
        for (int c = 0; c < DTYPE_COUNT; c++) {
            if (op == OP_CAST)
                snprintf(expr, sizeof(expr), "%s(a)", dtype_name((enum dtype)c));
            else if (op_info(op)->n_args == 1)
                snprintf(expr, sizeof(expr), "%s(b)", name);
            else if (op_info(op)->n_args == 2)
                snprintf(expr, sizeof(expr), "%s(a, b)", name);
            else
                snprintf(expr, sizeof(expr), "%s(a, b, a)", name);
            struct program *program = compile(expr, (enum dtype)a, (enum dtype)c);
            if (!program)
                continue; /* a dtype that the operation does not have */
            n_compiled++;
            check_program(program, expr);
            program_free(program);
        }
    return n_compiled;
}

Test(coverage, every_operation_that_compiles_has_its_kernels)
{
    for (int op = 0; op < OP_COUNT; op++)
        cr_assert(gt(u32, check_op((enum op)op), 0), "%s", op_info((enum op)op)->name);
}
