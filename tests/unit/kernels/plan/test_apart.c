/* Outputs that read large results of reductions, in jobs with others that reduce all axes: they are
 * done in rounds all the same, in passes of their own. Small results cost no pass. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static const struct plan_limits tiny = {.engine = &plan_cpu,
                                        .pool_bytes = 8 << 20,
                                        .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                        .carry_limit_bytes = 3 << 20,
                                        .n_threads = 2};

/* Of a, float64, with as many outputs as there are expressions. */
static struct plan *plan_of(const char *first, const char *second, int64_t rows, int64_t columns)
{
    struct request_arg arg = {
        .name = "a", .array = {.dtype = DTYPE_FLOAT64, .ndim = 2, .shape = {rows, columns}}};
    struct request_output outputs[2] = {{.expr = first, .n_expr_chars = strlen(first)},
                                        {.expr = second, .n_expr_chars = strlen(second)}};
    struct job_request request = {
        .n_args = 1, .n_outputs = 2, .engine_index = -1, .args = &arg, .outputs = outputs};
    struct gad_error error = {.message = ""};
    struct program *program;
    struct plan *plan = malloc(sizeof(*plan));

    arg.array.at.kind = LOCATION_REGION;
    array_c_strides(2, arg.array.shape, 8, arg.array.strides);
    cr_assert(eq(int, program_compile(&request, &program, &error), 0), "%s", error.message);
    cr_assert(eq(int, plan_make(&request, program, false, &tiny, plan, &error), 0), "%s | %s: %s",
              first, second, error.message);
    program_free(program);
    return plan;
}

Test(apart, outputs_with_large_results_go_in_rounds_beside_any_others)
{
    static const int64_t shapes[][2] = {{4000000, 1}, {2000000, 2}, {500000, 8}};
    static const char *const exprs[] = {"logsumexp(a)", "var(a)", "sum(a - max(a), axis=0)",
                                        "sum(a - min(a, axis=0), axis=0)"};

    for (size_t i = 0; i < 12; i++) {
        const int64_t *shape = shapes[i / 4];
        const char *own = "a - mean(a, axis=1, keepdims=True)";
        struct plan *plan = plan_of(exprs[i % 4], own, shape[0], shape[1]);
        cr_expect(lt(u64, 1, plan->n_rounds));
        cr_expect(le(u64, plan->carry_bytes, tiny.carry_limit_bytes));
        free(plan);
        free(plan_of(own, exprs[i % 4], shape[0], shape[1]));
    }
    free(plan_of("logsumexp(a)", "a - mean(a, axis=0)", 3, 1000000));
}

Test(apart, small_results_need_no_pass_of_their_own)
{
    struct plan *small = plan_of("logsumexp(a)", "a - mean(a, axis=1, keepdims=True)", 1000, 8);
    struct plan *large = plan_of("logsumexp(a)", "a - mean(a, axis=1, keepdims=True)", 500000, 8);
    struct plan *kept = plan_of("std(a, axis=1)", "a - mean(a, axis=1, keepdims=True)", 500000, 8);

    cr_expect(eq(u32, small->n_passes + 1, large->n_passes));
    cr_expect(eq(u32, kept->n_passes, 3)); /* what keeps the same axes is cut with them */
    free(small);
    free(large);
    free(kept);
}
