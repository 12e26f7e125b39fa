/* Every op of the catalogue that becomes an instruction, with every dtype that it becomes one for.
 *
 * What there must be is told from the catalogue's rules and from program.h's list of operations
 * that the compiler writes with others, never from the tables of kernels: a missing kernel fails.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <stdio.h>
#include <string.h>

#define BIT(dtype)  (1u << (dtype))
#define FLOATS      (BIT(DTYPE_FLOAT32) | BIT(DTYPE_FLOAT64))
#define ALL         (BIT(DTYPE_COUNT) - 1)
#define INTEGERS    (ALL & ~FLOATS & ~BIT(DTYPE_BOOL))
#define NOT_WRITTEN 0 /* by the compiler */

/* Bit d: the op becomes an instruction that computes in dtype d. */
static unsigned dtypes_of(enum op op)
{
    switch (op) {
    case OP_POSITIVE:
    case OP_FABS:
    case OP_DIVMOD:
    case OP_DEG2RAD:
    case OP_RAD2DEG:
    case OP_SQUARED_DEVIATIONS:
    case OP_KTH:
    case OP_RANDOM_U32: /* what is random has tests of its own */
    case OP_RANDOM_U64:
    case OP_STANDARD_UNIFORM:
    case OP_STANDARD_NORMAL:
    case OP_STANDARD_EXPONENTIAL:
    case OP_MULTIPLY_HIGH:
    case OP_RANDOM_POISSON:
    case OP_RANDOM_PERMUTED:
    case OP_ORDERED_KEY: /* and so have keys and tables */
    case OP_FROM_ORDERED_KEY:
    case OP_SEARCH_LEFT:
    case OP_SEARCH_RIGHT: return NOT_WRITTEN;
    case OP_RECIPROCAL: return INTEGERS;
    case OP_FMIN:
    case OP_FMAX: return FLOATS;
    default: break;
    }
    switch (op_info(op)->rule) {
    case OP_RULE_ARITHMETIC:
    case OP_RULE_POWER:
    case OP_RULE_SAME: return INTEGERS | FLOATS;
    case OP_RULE_COMPARE:
    case OP_RULE_WHERE:
    case OP_RULE_CAST: return ALL;
    case OP_RULE_BITWISE: return INTEGERS | BIT(DTYPE_BOOL);
    case OP_RULE_SHIFT:
    case OP_RULE_BITCOUNT:
    case OP_RULE_INTEGER: return INTEGERS;
    case OP_RULE_DIVIDE:
    case OP_RULE_FLOAT:
    case OP_RULE_FLOOR:
    case OP_RULE_PREDICATE:
    case OP_RULE_LDEXP:
    case OP_RULE_NONE: return FLOATS;
    case OP_RULE_FLOAT64:
    case OP_RULE_LOGICAL:
    case OP_RULE_ROUND:
    case OP_RULE_ITERATE:
    case OP_RULE_SELECT:
    case OP_RULE_CLIP:
    case OP_RULE_ISCLOSE:
    case OP_RULE_NAN_TO_NUM:
    case OP_RULE_SINC:
    case OP_RULE_INDEX:
    case OP_RULE_SUM:
    case OP_RULE_EXTREMUM:
    case OP_RULE_MEAN:
    case OP_RULE_COUNT:
    case OP_RULE_ARGUMENT:
    case OP_RULE_VARIANCE:
    case OP_RULE_TRUTH:
    case OP_RULE_NORM:
    case OP_RULE_LOGSUMEXP:
    case OP_RULE_RANDOM:
    case OP_RULE_RANDOM_INTEGERS:
    case OP_RULE_SCAN:
    case OP_RULE_BINCOUNT:
    case OP_RULE_HISTOGRAM:
    case OP_RULE_TABLE:
    case OP_RULE_QUANTILE:
    case OP_RULE_MATMUL:
    case OP_RULE_TENSORDOT:
    case OP_RULE_QR:
    case OP_RULE_NEAR:
    case OP_RULE_WINDOW: return NOT_WRITTEN;
    }
    return ALL;
}

static bool is_exact(enum op op, enum dtype compute)
{
    switch (op) {
    case OP_SQRT:
    case OP_RINT:
    case OP_HEAVISIDE:
    case OP_COPYSIGN:
    case OP_NEXTAFTER:
    case OP_SPACING:
    case OP_FREXP:
    case OP_MODF: return true;
    case OP_POWER: return !dtype_is_float(compute);
    default: return op_info(op)->rule != OP_RULE_FLOAT;
    }
}

static enum dtype result_of(enum op op, enum dtype compute)
{
    enum op_rule rule = op_info(op)->rule;
    if (rule == OP_RULE_COMPARE || rule == OP_RULE_PREDICATE)
        return DTYPE_BOOL;
    if (rule == OP_RULE_BITCOUNT)
        return DTYPE_UINT8;
    return op == OP_FREXP_EXPONENT ? DTYPE_INT32 : compute;
}

static void set_sources(struct check_case *k)
{
    k->n_src = op_info(k->op)->n_args;
    for (unsigned i = 0; i < k->n_src; i++)
        k->src[i] = k->compute;
    if (k->op == OP_WHERE)
        k->src[0] = DTYPE_BOOL;
    if (k->op == OP_LDEXP)
        k->src[1] = k->compute == DTYPE_FLOAT32 ? DTYPE_INT32 : DTYPE_INT64;
}

kernel_fn *check_kernel(const struct check_case *k, enum cpu_level level, bool *ret_is_exchanged)
{
    struct insn insn = {.op = (uint16_t)k->op,
                        .compute = (uint8_t)k->compute,
                        .dst = {OPERAND_REGISTER, (uint8_t)k->result, 0}};
    for (unsigned i = 0; i < k->n_src; i++)
        insn.src[i] = (struct operand){OPERAND_INPUT, (uint8_t)k->src[i], (uint16_t)i};
    return engine_find_kernel(cpu_engine_get(level), &insn, ret_is_exchanged);
}

bool check_has_level(int level)
{
    return cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level;
}

static void try_case(struct check *c, struct check_case *k,
                     void (*each)(struct check *, const struct check_case *))
{
    bool is_exchanged;
    k->is_exact = is_exact(k->op, k->compute);
    snprintf(k->name, sizeof(k->name), "%s %s", op_info(k->op)->name, dtype_name(k->src[0]));
    for (unsigned i = 1; i < k->n_src; i++)
        strncat(strncat(k->name, ",", 2), dtype_name(k->src[i]), 12);
    strncat(strncat(k->name, "->", 3), dtype_name(k->result), 12);
    if (c->filter && !strstr(k->name, c->filter))
        return;
    if (check_kernel(k, CPU_LEVEL_PLAIN, &is_exchanged)) {
        each(c, k);
    } else {
        c->n_failed++;
        printf("FAILED %s: there is no kernel\n", k->name);
    }
}

static void try_mixed_comparisons(struct check *c, enum op op,
                                  void (*each)(struct check *, const struct check_case *))
{
    for (int i = 0; i < 2; i++) {
        struct check_case k = {
            .op = op,
            .compute = DTYPE_INT64,
            .result = DTYPE_BOOL,
            .n_src = 2,
            .src = {i ? DTYPE_UINT64 : DTYPE_INT64, i ? DTYPE_INT64 : DTYPE_UINT64}};
        try_case(c, &k, each);
    }
}

void check_each_case(struct check *c, void (*each)(struct check *, const struct check_case *))
{
    for (int i = 0; i < OP_COUNT; i++) {
        enum op op = (enum op)i;
        for (int d = 0; d < DTYPE_COUNT; d++) {
            if (!(dtypes_of(op) >> d & 1))
                continue;
            struct check_case k = {.op = op, .compute = (enum dtype)d};
            set_sources(&k);
            for (int to = 0; to < DTYPE_COUNT; to++) {
                k.result = (enum dtype)to;
                if (op == OP_CAST || k.result == result_of(op, k.compute))
                    try_case(c, &k, each);
            }
        }
        if (op_info(op)->rule == OP_RULE_COMPARE)
            try_mixed_comparisons(c, op, each);
    }
}

void check_build(struct built *b, const struct check_case *k)
{
    struct operand src[3] = {{0}};
    built_init(b);
    for (unsigned i = 0; i < k->n_src; i++)
        src[i] = built_input(b, k->src[i]);
    built_store(b, built_insn(b, k->op, k->compute, k->result, 0, src[0], src[1], src[2]));
}
