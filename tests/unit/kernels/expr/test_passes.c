/* Passes, sharing, order and registers: the shape of programs, compared as text. */
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static unsigned count_insns(struct fixture *f, const char *exprs)
{
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    return f->program->n_insns;
}

Test(expr_passes, is_one_pass_without_reductions)
{
    check_text("sqrt(f4*f4 + f8*f8)", "in0 = argument 9: float32 (3, 4)\n"
                                      "in1 = argument 10: float64 (3, 4)\n"
                                      "pass 0 over (3, 4): 2 registers\n"
                                      "  r0 = multiply.float32 in0 in0\n"
                                      "  r1 = float64.float32 r0\n"
                                      "  r0 = multiply.float64 in1 in1\n"
                                      "  r0 = add.float64 r1 r0\n"
                                      "  r0 = sqrt.float64 r0\n"
                                      "  out0 = r0 (float64)\n");
}

Test(expr_passes, stores_bare_inputs_and_constants)
{
    check_text("f4", "in0 = argument 9: float32 (3, 4)\n"
                     "pass 0 over (3, 4): 0 registers\n"
                     "  out0 = in0 (float32)\n");
    check_text("2.5", "pass 0 over (): 0 registers\n"
                      "  out0 = 2.5 (float64)\n");
}

Test(expr_passes, uses_a_reduction_in_a_later_pass)
{
    check_text("f8 - mean(f8)", "in0 = argument 10: float64 (3, 4)\n"
                                "pass 0 over (3, 4): 0 registers\n"
                                "  red0 = sum.float64 in0 (float64)\n"
                                "pass 1 over (3, 4): 1 register\n"
                                "  r0 = divide.float64 red0 12\n"
                                "  r0 = subtract.float64 in0 r0\n"
                                "  out0 = r0 (float64)\n");
}

Test(expr_passes, computes_with_results_alone_in_a_pass_of_no_shape)
{
    check_text("sum(i8) / 2", "in0 = argument 4: int64 (3, 4)\n"
                              "pass 0 over (3, 4): 0 registers\n"
                              "  red0 = sum.int64 in0 (int64)\n"
                              "pass 1 over (): 1 register\n"
                              "  r0 = float64.int64 red0\n"
                              "  r0 = divide.float64 r0 2\n"
                              "  out0 = r0 (float64)\n");
}

Test(expr_passes, reads_arrays_once_for_reductions_of_one_shape)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "min(f8);max(f8);mean(f8);count_nonzero(isnan(f8))"), 0));
    cr_expect(eq(int, f->program->n_passes, 2));
    cr_expect(eq(int, f->program->passes[0].n_reductions, 4));
    cr_expect(eq(int, f->program->passes[1].n_stores, 4));
    fixture_free(f);
}

Test(expr_passes, separates_reductions_of_different_shapes)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "sum(f8) + sum(row)"), 0));
    cr_expect(eq(int, f->program->n_passes, 3));
    cr_expect(eq(int, f->program->passes[0].ndim, 2));
    cr_expect(eq(int, f->program->passes[1].ndim, 1));
    cr_expect(eq(int, f->program->passes[2].ndim, 0));
    fixture_free(f);
}

Test(expr_passes, separates_outputs_of_different_shapes)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "row*2;f8*2;small"), 0));
    cr_expect(eq(int, f->program->n_passes, 3));
    cr_expect(eq(int, f->program->outputs[1].pass, 0)); /* the largest first */
    fixture_free(f);
}

Test(expr_passes, sums_over_the_operands_own_shape)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8 + sum(row)"), 0));
    cr_expect(eq(int, f->program->passes[0].ndim, 1));
    cr_expect(eq(int, (int)f->program->passes[0].shape[0], 4));
    cr_expect(eq(int, f->program->passes[1].ndim, 2));
    fixture_free(f);
}

Test(expr_passes, computes_equal_subexpressions_once)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(uint, count_insns(f, "(f8*row + 1) / (f8*row + 1)"), 3));
    cr_expect(eq(uint, count_insns(f, "sqrt(f8);sqrt(f8) + 1;exp(sqrt(f8))"), 3));
    cr_expect(eq(uint, count_insns(f, "sum(f8) * sum(f8) - mean(f8)"), 3));
    cr_expect(eq(int, f->program->n_reductions, 1));
    fixture_free(f);
}

Test(expr_passes, folds_constants)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(uint, count_insns(f, "f8 * (2 * pi / 3)"), 1));
    cr_expect(eq(uint, count_insns(f, "f8 * sqrt(2) + float32(1) / 3"), 2));
    cr_expect(eq(uint, count_insns(f, "where(1 < 2, exp(1), 0)"), 0));
    cr_expect(eq(uint, count_insns(f, "int8(100) + int8(100)"), 0));
    cr_expect(eq(int, (int)f->program->consts[0].value.i64, -56));
    cr_expect(eq(uint, count_insns(f, "floor_divide(1, 0)"), 1)); /* the engine counts it */
    fixture_free(f);
}

Test(expr_passes, needs_few_registers_for_wide_and_deep_expressions)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8*1+(f8*2+(f8*3+(f8*4+(f8*5+(f8*6+f8*7)))))"), 0));
    cr_expect(eq(int, f->program->passes[0].n_registers, 2));
    cr_assert(
        eq(int, fixture_compile(f, "((f8*1+f8*2)*(f8*3+f8*4))/((f8*5+f8*6)*(f8*7+f8*8))"), 0));
    cr_expect(eq(int, f->program->passes[0].n_registers, 4));
    cr_assert(eq(int, fixture_compile(f, "sqrt(exp(sin(cos(tanh(f8)))))"), 0));
    cr_expect(eq(int, f->program->passes[0].n_registers, 1));
    fixture_free(f);
}

Test(expr_passes, casts_to_outputs_that_are_there)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8*2"), 0));
    f->outputs[0].has_to = true;
    f->outputs[0].to = (struct array){.dtype = DTYPE_FLOAT32, .ndim = 2, .shape = {3, 4}};
    cr_assert(eq(int, fixture_compile_request(f), 0));
    cr_expect(eq(int, (int)f->program->outputs[0].dtype, DTYPE_FLOAT32));
    f->outputs[0].to.dtype = DTYPE_INT64;
    cr_assert(eq(int, fixture_compile_request(f), GAD_BAD_DTYPE));
    cr_expect(eq(str, f->error.message,
                 (char *)"the result is float64, which cannot be stored as int64"));
    cr_expect(eq(str, f->error.expected, (char *)"float64"));
    cr_expect(eq(str, f->error.found, (char *)"int64"));
    f->outputs[0].to = (struct array){.dtype = DTYPE_FLOAT64, .ndim = 2, .shape = {3, 5}};
    strcpy(f->outputs[0].name, "r");
    cr_assert(eq(int, fixture_compile_request(f), GAD_BAD_SHAPE));
    cr_expect(eq(str, f->error.argument, (char *)"r"));
    cr_expect(eq(str, f->error.message, (char *)"the result has shape (3, 4), the output (3, 5)"));
    f->outputs[0].to.ndim = 1;
    cr_assert(eq(int, fixture_compile_request(f), GAD_BAD_SHAPE));
    fixture_free(f);
}

/* The output may lie over argument `arg`. */
static void put_in_place(struct fixture *f, unsigned output, unsigned arg)
{
    f->args[arg].array.at.kind = LOCATION_REGION;
    f->outputs[output].has_to = true;
    f->outputs[output].to = f->args[arg].array;
}

Test(expr_passes, overwrites_no_array_that_a_later_pass_reads)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8*2;f8 - mean(f8)"), 0));
    cr_expect(eq(int, f->program->outputs[0].pass, 0));
    put_in_place(f, 0, 10);
    cr_assert(eq(int, fixture_compile_request(f), 0));
    cr_expect(eq(int, f->program->outputs[0].pass, 1));
    fixture_free(f);
}

Test(expr_passes, overwrites_a_small_array_after_its_last_broadcast)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "row*2;f8 + row"), 0));
    put_in_place(f, 0, 11);
    cr_assert(eq(int, fixture_compile_request(f), 0));
    cr_expect(eq(int, f->program->outputs[0].pass, 1));
    cr_expect(eq(int, f->program->outputs[1].pass, 0));
    fixture_free(f);
}

Test(expr_passes, copies_bare_inputs_that_another_store_may_overwrite)
{
    struct fixture *f = fixture_new();
    cr_expect(eq(uint, count_insns(f, "f8;i8"), 0));
    put_in_place(f, 0, 4);
    put_in_place(f, 1, 10);
    f->outputs[0].to.dtype = DTYPE_FLOAT64;
    f->outputs[1].to.dtype = DTYPE_INT64;
    cr_assert(eq(int, fixture_compile_request(f), 0));
    cr_expect(eq(int, f->program->stores[0].src.kind, OPERAND_REGISTER));
    cr_expect(eq(int, f->program->stores[1].src.kind, OPERAND_REGISTER));
    fixture_free(f);
}

Test(expr_passes, moves_an_output_to_a_later_pass_that_is_there_anyway)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8*2;f8*sum(row)"), 0));
    cr_expect(eq(int, f->program->n_passes, 2));
    cr_expect(eq(int, f->program->passes[1].n_stores, 2));
    fixture_free(f);
}

Test(expr_passes, lists_used_arguments_only_in_their_order)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "f8 + i1 + k"), 0));
    cr_assert(eq(int, f->program->n_inputs, 2));
    cr_expect(eq(int, f->program->inputs[0].arg, 1));
    cr_expect(eq(int, f->program->inputs[1].arg, 10));
    cr_expect(eq(u64, f->program->passes[0].inputs_used, 3));
    fixture_free(f);
}

Test(expr_passes, prints_into_any_buffer)
{
    struct fixture *f = fixture_new();
    cr_assert(eq(int, fixture_compile(f, "sqrt(f8) + mean(f4)"), 0));
    size_t length = strlen(f->text);
    char buffer[512];
    for (size_t n = 0; n <= length + 1; n++) {
        memset(buffer, 'x', sizeof(buffer));
        program_print(f->program, buffer, n);
        cr_assert(eq(chr, buffer[n], 'x'));
        if (n > 0) {
            cr_assert(eq(sz, strlen(buffer), n - 1));
            cr_assert(eq(int, memcmp(buffer, f->text, n - 1), 0));
        }
    }
    fixture_free(f);
}
