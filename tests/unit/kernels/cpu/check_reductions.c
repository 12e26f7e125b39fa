/* Every reduction at every level against the plain level: the same bits, whatever the length, the
 * alignment and the strides; and sums against a sum in long double. */
#include "tests/unit/kernels/cpu/check.h"

#include "kernels/cpu/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS 70000

static char values[MAX_ELEMENTS * 8 + 64], strided[MAX_ELEMENTS * 16 + 64];

static int reduce_once(enum cpu_level level, const struct built *b, struct cpu_view *view, size_t n,
                       struct partial *ret)
{
    /* Two axes where the length allows it: rows must not show in the result. */
    int64_t count[2] = {1, (int64_t)n};
    if (n % 5 == 0) {
        count[0] = 5;
        count[1] = (int64_t)n / 5;
    }
    view->strides[0] = view->strides[1] * count[1];
    struct cpu_box box = {.ndim = 2, .count = count, .axis_order = (int[]){0, 1}};
    struct cpu_warnings warnings = {0};
    return cpu_engine_run(cpu_engine_get(level), &b->program, 0, &box, view, NULL, NULL, ret,
                          &warnings, test_scratch());
}

static bool sum_is_accurate(enum dtype dtype, size_t n, double got)
{
    long double exact = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        long double v = dtype == DTYPE_FLOAT32 ? (long double)((float *)values)[i]
                                               : (long double)((double *)values)[i];
        exact += v;
        size += fabsl(v);
    }
    return fabsl((long double)got - exact) <= size * 20 * 0x1p-53L;
}

static void check_one(struct check *c, enum op op, enum dtype dtype, size_t n, bool is_moderate)
{
    enum dtype result = dtype;
    if (op == OP_SUM)
        result = dtype_is_float(dtype)      ? DTYPE_FLOAT64
                 : dtype_is_unsigned(dtype) ? DTYPE_UINT64
                                            : DTYPE_INT64;
    else if (op == OP_COUNT_NONZERO)
        result = DTYPE_INT64;
    static struct built b;
    built_init(&b);
    built_reduction(&b, op, result, built_input(&b, dtype));
    size_t item_bytes = dtype_size(dtype);
    check_fill(values, dtype, n, is_moderate);
    for (size_t i = 0; i < n; i++)
        memcpy(strided + 1 + i * 2 * item_bytes, values + i * item_bytes, item_bytes);

    struct cpu_view flat = {.base = values, .strides = {0, (int64_t)item_bytes}};
    struct cpu_view odd = {.base = strided + 1, .strides = {0, 2 * (int64_t)item_bytes}};
    struct partial wanted, got[2];
    if (reduce_once(CPU_LEVEL_PLAIN, &b, &flat, n, &wanted))
        c->n_failed++;
    if (op == OP_SUM && dtype_is_float(dtype) && is_moderate &&
        !sum_is_accurate(dtype, n, wanted.value.f64)) {
        c->n_failed++;
        printf("FAILED sum of %zu %s: %a\n", n, dtype_name(dtype), wanted.value.f64);
    }
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        int r = reduce_once((enum cpu_level)level, &b, &flat, n, &got[0]);
        r |= reduce_once((enum cpu_level)level, &b, &odd, n, &got[1]);
        c->n_run++;
        if (!r && check_same(&got[0].value, &wanted.value, result) &&
            check_same(&got[1].value, &wanted.value, result))
            continue;
        c->n_failed++;
        printf("FAILED %s of %zu %s, level %s\n", op_info(op)->name, n, dtype_name(dtype),
               cpu_level_name((enum cpu_level)level));
        check_print("wanted    ", &wanted.value, result);
        check_print("contiguous", &got[0].value, result);
        check_print("strided   ", &got[1].value, result);
    }
}

void check_reductions(struct check *c)
{
    static const enum op ops[] = {OP_SUM, OP_MIN, OP_MAX, OP_COUNT_NONZERO};
    static const size_t lengths[] = {1,   2,   5,    15,   63,   64,   65,    100,  127,
                                     128, 500, 1000, 2048, 2049, 4095, 10000, 65537};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            char name[48];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name((enum dtype)d));
            if (c->filter && !strstr(name, c->filter))
                continue;
            for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++)
                for (int is_moderate = 0; is_moderate < 2; is_moderate++)
                    check_one(c, ops[i], (enum dtype)d, lengths[j], is_moderate);
        }
    }
}
