/* Every op with every dtype, and random arrays biased towards what goes wrong: zeros of both signs,
 * extremes, NaN, infinities, denormals, small numbers, bools that are neither 0 nor 1. */
#include "tests/unit/kernels/cpu/check.h"

#include "kernels/cpu/run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

uint64_t check_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

uint64_t check_below(uint64_t n)
{
    return (check_random() >> 16) % n;
}

static const double special_floats[] = {
    0.0,      -0.0,      1.0,        -1.0,     0.5,     -0.5,       2.0,      NAN,
    INFINITY, -INFINITY, DBL_MAX,    -DBL_MAX, DBL_MIN, -DBL_MIN,   5e-324,   -5e-324,
    FLT_MAX,  -FLT_MAX,  FLT_MIN,    1e-45,    0x1p31,  -0x1p31,    0x1p32,   0x1p63,
    -0x1p63,  0x1p64,    127.5,      -128.9,   255.99,  65536.0,    -32769.0, 2147483647.5,
    -0.99,    3.0,       -3.0,       10.0,     709.9,   -745.5,     88.8,     -104.0,
    1e22,     -1e22,     3.14159265, 0x1p53,   0x1p52,  4294967295, 9.2e18,   -9.3e18,
};

static double random_float(bool is_moderate)
{
    uint64_t bits = check_random();
    double value;
    if (is_moderate)
        return ((double)(bits >> 11) * 0x1p-53 - 0.5) * 2000;
    switch (check_below(6)) {
    case 0: return special_floats[check_below(sizeof(special_floats) / sizeof(double))];
    case 1: memcpy(&value, &bits, sizeof(value)); return value;
    case 2: return (double)(int64_t)(bits % 41) - 20;
    case 3: return ldexp((double)(int64_t)bits, -(int)check_below(120));
    default: return ((double)(bits >> 11) * 0x1p-53 - 0.5) * 200;
    }
}

static uint64_t random_integer(bool is_moderate)
{
    uint64_t bits = check_random();
    if (is_moderate)
        return bits % 100;
    switch (check_below(6)) {
    case 0: return 0;
    case 1: return (uint64_t)1 << check_below(64);
    case 2: return ((uint64_t)1 << check_below(64)) - 1;
    case 3: return ~(((uint64_t)1 << check_below(64)) - 1);
    case 4: return bits % 41 - 20;
    default: return bits;
    }
}

void check_fill(void *p, enum dtype dtype, size_t n, bool is_moderate)
{
    for (size_t i = 0; i < n; i++) {
        double real = random_float(is_moderate);
        uint64_t whole = random_integer(is_moderate);
        switch (dtype) {
        case DTYPE_BOOL: ((uint8_t *)p)[i] = (uint8_t)(whole & 3 ? whole & 1 : whole); break;
        case DTYPE_FLOAT64: ((double *)p)[i] = real; break;
        case DTYPE_FLOAT32: ((float *)p)[i] = (float)real; break;
        default: memcpy((char *)p + i * dtype_size(dtype), &whole, dtype_size(dtype)); break;
        }
    }
}

bool check_same(const void *a, const void *b, enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT32) {
        float x, y;
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        if (isnan(x) && isnan(y))
            return true;
    } else if (dtype == DTYPE_FLOAT64) {
        double x, y;
        memcpy(&x, a, sizeof(x));
        memcpy(&y, b, sizeof(y));
        if (isnan(x) && isnan(y))
            return true;
    }
    return memcmp(a, b, dtype_size(dtype)) == 0;
}

void check_print(const char *what, const void *p, enum dtype dtype)
{
    uint64_t bits = 0;
    memcpy(&bits, p, dtype_size(dtype));
    double real = 0;
    if (dtype == DTYPE_FLOAT64)
        memcpy(&real, p, sizeof(real));
    if (dtype == DTYPE_FLOAT32) {
        float narrow;
        memcpy(&narrow, p, sizeof(narrow));
        real = (double)narrow;
    }
    if (dtype_is_float(dtype))
        printf("    %s %a (bits %#llx)\n", what, real, (unsigned long long)bits);
    else
        printf("    %s %#llx\n", what, (unsigned long long)bits);
}

static void try_case(struct check *c, struct check_case *k,
                     void (*each)(struct check *, const struct check_case *))
{
    struct insn insn = {.op = (uint16_t)k->op,
                        .compute = (uint8_t)k->compute,
                        .dst = {OPERAND_REGISTER, (uint8_t)k->result, 0}};
    for (unsigned i = 0; i < k->n_src; i++)
        insn.src[i] = (struct operand){OPERAND_INPUT, (uint8_t)k->src[i], (uint16_t)i};
    bool is_exchanged;
    if (!engine_find_kernel(cpu_engine_get(CPU_LEVEL_PLAIN), &insn, &is_exchanged))
        return;
    snprintf(k->name, sizeof(k->name), "%s %s", op_info(k->op)->name, dtype_name(k->src[0]));
    for (unsigned i = 1; i < k->n_src; i++)
        strncat(strncat(k->name, ",", 2), dtype_name(k->src[i]), 12);
    strncat(strncat(k->name, "->", 3), dtype_name(k->result), 12);
    if (!c->filter || strstr(k->name, c->filter))
        each(c, k);
}

static enum dtype result_of(enum op op, enum dtype compute)
{
    enum op_rule rule = op_info(op)->rule;
    return rule == OP_RULE_COMPARE || rule == OP_RULE_PREDICATE ? DTYPE_BOOL : compute;
}

void check_each_case(struct check *c, void (*each)(struct check *, const struct check_case *))
{
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_is_reduction((enum op)op))
            continue;
        for (int d = 0; d < DTYPE_COUNT; d++) {
            struct check_case k = {.op = (enum op)op,
                                   .compute = (enum dtype)d,
                                   .n_src = op_info((enum op)op)->n_args,
                                   .src = {(enum dtype)d, (enum dtype)d, (enum dtype)d}};
            if (op == OP_WHERE)
                k.src[0] = DTYPE_BOOL;
            for (int to = 0; to < DTYPE_COUNT; to++) {
                k.result = (enum dtype)to;
                if (op == OP_CAST || k.result == result_of((enum op)op, k.compute))
                    try_case(c, &k, each);
            }
        }
        if (op_info((enum op)op)->rule != OP_RULE_COMPARE)
            continue;
        for (int i = 0; i < 2; i++) {
            struct check_case k = {
                .op = (enum op)op,
                .compute = DTYPE_INT64,
                .result = DTYPE_BOOL,
                .n_src = 2,
                .src = {i ? DTYPE_UINT64 : DTYPE_INT64, i ? DTYPE_INT64 : DTYPE_UINT64}};
            try_case(c, &k, each);
        }
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
