/* Where the next turn with grains of a pass is: found in a few calls, however many turns lie
 * between, and none is missed. */
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* Of float64, with elements that lie on each other: no memory would hold the largest. */
static void set_arg(struct request_arg *arg, const char *name, int64_t rows, int64_t columns)
{
    *arg = (struct request_arg){.array = {.dtype = DTYPE_FLOAT64,
                                          .ndim = 2,
                                          .shape = {rows, columns},
                                          .at.kind = LOCATION_REGION}};
    strcpy(arg->name, name);
}

static struct plan *plan_new(int64_t rows, int64_t depth, int64_t columns, bool has_journal)
{
    static const char expr[] = "a @ b + c";
    struct request_arg args[3];
    struct request_output output = {.expr = expr, .n_expr_chars = strlen(expr), .has_to = true};
    struct job_request request = {
        .n_args = 3, .n_outputs = 1, .args = args, .outputs = &output, .has_journal = has_journal};
    const struct plan_limits limits = {.engine = &plan_cpu,
                                       .pool_bytes = 8 * MIB,
                                       .slot_bytes = GRAIN_MAX_TOTAL_BYTES,
                                       .carry_limit_bytes = 3 * MIB,
                                       .n_threads = 2};
    struct plan *plan = malloc(sizeof(*plan));
    struct program *program;
    struct gad_error error = {.message = ""};

    set_arg(&args[0], "a", rows, depth);
    set_arg(&args[1], "b", depth, columns);
    set_arg(&args[2], "c", rows, columns);
    output.to = args[2].array;
    array_c_strides(2, output.to.shape, 8, output.to.strides);
    cr_assert(eq(int, program_compile(&request, &program, &error), 0), "%s", error.message);
    int r = plan_make(&request, program, has_journal, &limits, plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    program_free(program);
    return plan;
}

static bool is_wanted(const struct plan *plan, uint64_t index, unsigned passes)
{
    struct product_turn turn;

    product_turn(&plan->products[0], index, &turn);
    return turn.n_grains > 0 && (passes >> turn.pass & 1);
}

static void check_all(const struct plan *plan)
{
    for (unsigned passes = 1; passes < 8; passes++) {
        uint64_t seen = 0; /* all below were looked at */
        for (uint64_t i = 0; i < plan->products[0].n_turns; i++) {
            uint64_t next = product_skip(&plan->products[0], i, passes);
            cr_assert(ge(u64, next, i));
            for (seen = max_u64(seen, i); seen < next && seen < plan->products[0].n_turns; seen++)
                cr_assert(not(is_wanted(plan, seen, passes)), "turn %llu",
                          (unsigned long long)seen);
        }
    }
}

Test(product_skip, misses_nothing)
{
    static const int64_t shapes[][3] = {{700, 900, 650}, {3, 5, 4}, {700, 0, 30}, {1, 5000, 900}};

    for (int i = 0; i < 4; i++) {
        struct plan *plan = plan_new(shapes[i][0], shapes[i][1], shapes[i][2], i % 2);
        check_all(plan);
        if (i % 2 == 1 && plan->products[0].n_tiles > 0) {
            product_resume(&plan->products[0], 1, true);
            check_all(plan);
        }
        free(plan);
    }
}

Test(product_skip, needs_few_calls_where_there_are_many_turns)
{
    struct plan *plan = plan_new(500, INT64_C(1) << 42, 500, false);
    uint64_t index = 0;

    cr_assert(lt(u64, UINT64_C(1) << 34, plan->products[0].n_turns));
    for (int i = 0; i < 50 && !is_wanted(plan, index, 1u << PRODUCT_RESULT); i++)
        index = product_skip(&plan->products[0], index + 1, 1u << PRODUCT_RESULT);
    cr_assert(is_wanted(plan, index, 1u << PRODUCT_RESULT));
    free(plan);
}
