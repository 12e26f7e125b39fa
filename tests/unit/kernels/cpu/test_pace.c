/* What a running pass asks for in between, and the table of costs that says how often. */
#include "kernels/op_costs.h"
#include "tests/unit/kernels/cpu/check/check.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define N_ELEMENTS 32768

static void has_a_worst_case(struct check *c, const struct check_case *k)
{
    cr_expect(ge(uint, op_worst_ns(k->op, k->compute), 1), "%s", k->name);
    c->n_run++;
}

/* Those are told from the catalogue, not from the table. */
Test(costs, every_op_has_a_line_and_every_instruction_a_worst_case)
{
    static const char *const lines[] = {
#define COST(id, cpu, device, worst_float_ns, worst_integer_ns) #id,
#include "kernels/op_costs.def"
#undef COST
    };
    static const char *const ops[] = {
#define OP(id, name, symbol, alias, n_args, n_results, keywords, rule, doc) #id,
#include "proto/ops.def"
#undef OP
#define INTERNAL(id, name, n_args, doc) #id,
#include "kernels/ops_internal.def"
#undef INTERNAL
    };
    struct check c = {.n_trials = 1, .seed = 1};
    cr_assert(eq(sz, sizeof(lines) / sizeof(lines[0]), (size_t)OP_COUNT));
    for (int i = 0; i < OP_COUNT; i++) {
        cr_expect(eq(str, (char *)lines[i], (char *)ops[i]), "lines are in the order of enum op");
        cr_expect(ge(uint, op_cost((enum op)i)->cpu, 1), "%s", ops[i]);
        cr_expect(ge(uint, op_cost((enum op)i)->device, 1), "%s", ops[i]);
    }
    check_each_case(&c, has_a_worst_case);
    cr_assert(ge(u64, c.n_run, 400));
}

static const enum op internal_ops[] = {
    OP_RANDOM_U32,     OP_RANDOM_U64,     OP_STANDARD_UNIFORM, OP_STANDARD_NORMAL,
    OP_MULTIPLY_HIGH,  OP_RANDOM_POISSON, OP_RANDOM_PERMUTED,  OP_STANDARD_EXPONENTIAL,
    OP_ORDERED_KEY,    OP_SEARCH_LEFT,    OP_SEARCH_RIGHT,     OP_FROM_ORDERED_KEY,
    OP_FREXP_EXPONENT, OP_TAKE,
};

Test(costs, instructions_without_a_name_have_a_worst_case)
{
    for (size_t i = 0; i < sizeof(internal_ops) / sizeof(internal_ops[0]); i++) {
        const struct op_cost *cost = op_cost(internal_ops[i]);
        cr_expect(ge(uint, cost->worst_float_ns + cost->worst_integer_ns, 1), "%s",
                  op_info(internal_ops[i])->name);
    }
}

struct asked {
    unsigned n, n_before_no; /* 0: never */
};

static bool may_go_on(void *argument)
{
    struct asked *asked = argument;
    return ++asked->n != asked->n_before_no;
}

static double source[N_ELEMENTS], result[N_ELEMENTS];

/* n times lgamma, one after the other. */
static int run(unsigned n_insns, struct asked *asked)
{
    static struct built b;
    static const int64_t count = N_ELEMENTS;
    static const int axis = 0;
    const struct operand none = {0};
    const struct engine_pace pace = {may_go_on, asked};
    const struct engine_box box = {
        .ndim = 1, .count = &count, .axis_order = &axis, .pace = asked ? &pace : NULL};
    struct engine_view in = {.base = source, .strides = {8}},
                       out = {.base = result, .strides = {8}};
    struct engine_warnings warnings = {0};
    built_init(&b);
    struct operand x = built_input(&b, DTYPE_FLOAT64);
    for (unsigned i = 0; i < n_insns; i++)
        x = built_insn(&b, OP_LGAMMA, DTYPE_FLOAT64, DTYPE_FLOAT64, 0, x, none, none);
    built_store(&b, x);
    return cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, &in, &out, NULL,
                          NULL, NULL, &warnings, test_scratch());
}

/* Counted, not timed: so much arithmetic at its worst lies between two questions. */
Test(pace, is_asked_for_at_least_once_in_a_bounded_amount_of_work)
{
    for (unsigned n_insns = 1; n_insns <= 16; n_insns *= 4) {
        struct asked asked = {0};
        uint64_t worst_ns = (uint64_t)n_insns * N_ELEMENTS * op_worst_ns(OP_LGAMMA, DTYPE_FLOAT64);
        uint64_t insn_ns = 2048 * (uint64_t)op_worst_ns(OP_LGAMMA, DTYPE_FLOAT64); /* a strip's */
        cr_assert(zero(int, run(n_insns, &asked)));
        cr_assert(ge(u64, asked.n, worst_ns / (ENGINE_PACE_NS + insn_ns)));
        cr_assert(le(u64, asked.n, 2 * worst_ns / ENGINE_PACE_NS + 1));
    }
}

Test(pace, a_box_is_given_up_between_two_instructions)
{
    struct asked asked = {.n_before_no = 3};
    cr_assert(eq(int, run(64, &asked), -ECANCELED));
    cr_assert(eq(uint, asked.n, 3), "nobody is asked again");
}

Test(pace, being_asked_changes_no_bit)
{
    static double alone[N_ELEMENTS];
    struct asked asked = {0};
    for (int i = 0; i < N_ELEMENTS; i++)
        source[i] = 0.37 * i - 77;
    cr_assert(zero(int, run(3, NULL)));
    memcpy(alone, result, sizeof(alone));
    memset(result, 0, sizeof(result));
    cr_assert(zero(int, run(3, &asked)));
    cr_assert(ge(uint, asked.n, 1));
    cr_assert(zero(int, memcmp(alone, result, sizeof(alone))));
}
