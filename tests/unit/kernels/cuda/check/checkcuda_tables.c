/* Tables on the device, against loops over the whole table: searches from both sides in tables in
 * order, among them equal values, NaN and infinities, in empty ones and in some out of order, where
 * any place in the table may be found; elements by indices, of every dtype, also from outside; and
 * floats as keys of the same order, there and back.
 *
 * The tables are the results of a first pass; the pass that reads them is the second.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 5000
#define MAX_TABLE    3000

struct tables_trial {
    enum op op;
    enum dtype dtype; /* of the table; of keys, the float's */
    int64_t n_table;
    bool is_in_order;
    struct built built;
};

static struct grain grain;
static char values[MAX_ELEMENTS * 8], table[(MAX_TABLE + 1) * 8];

static void report(struct checkcuda *c, const struct tables_trial *t, const char *what, size_t i)
{
    c->check.n_failed++;
    printf("FAILED tables %s %s of %lld: %s, element %zu\n    seed %llu, ", op_info(t->op)->name,
           dtype_name(t->dtype), (long long)t->n_table, what, i, (unsigned long long)c->check.seed);
    shape_print(&grain.shape);
    printf("\n");
    laid_print("input", &grain.inputs[0], &grain.shape);
}

static bool is_key(const struct tables_trial *t)
{
    return t->op == OP_ORDERED_KEY;
}

static enum dtype source_dtype(const struct tables_trial *t)
{
    return t->op == OP_TAKE ? DTYPE_INT64 : t->dtype;
}

static enum dtype result_dtype(const struct tables_trial *t)
{
    if (is_key(t))
        return t->dtype == DTYPE_FLOAT32 ? DTYPE_UINT32 : DTYPE_UINT64;
    return t->op == OP_TAKE ? t->dtype : DTYPE_INT64;
}

/* The table is the first pass's only result. */
static void build_lookup(struct tables_trial *t)
{
    struct built *b = &t->built;
    struct program *p = &b->program;
    struct operand none = {0}, whole = {OPERAND_TABLE, (uint8_t)t->dtype, 0};
    built_reduction(b, OP_MAX, t->dtype, built_input(b, t->dtype));
    struct operand x = built_input(b, source_dtype(t));
    built_store(b, built_insn(b, t->op, source_dtype(t), result_dtype(t), 0, x, whole, none));
    p->n_passes = 2;
    p->passes[1] = p->passes[0];
    p->passes[0].n_insns = p->passes[0].n_stores = 0;
    p->passes[0].reduced_axes = 1;
    p->passes[0].ndim = 2;
    p->passes[0].shape[0] = 1;
    p->passes[0].shape[1] = t->n_table;
    p->passes[1].n_reductions = 0;
    p->passes[1].first_reduction = 1;
    p->passes[1].reduced_axes = 0;
    p->passes[1].tables_used = 1;
    p->outputs[0].pass = 1;
}

/* The key, and the way back from it. */
static void build_keys(struct tables_trial *t)
{
    struct built *b = &t->built;
    struct operand none = {0}, x = built_input(b, t->dtype);
    enum dtype key = result_dtype(t);
    struct operand k = built_insn(b, OP_ORDERED_KEY, t->dtype, key, 0, x, none, none);
    built_store(b, k);
    built_store(b, built_insn(b, OP_FROM_ORDERED_KEY, key, t->dtype, 1, k, none, none));
}

static bool is_less(const char *a, const char *b, enum dtype dtype)
{
    union scalar x = {.u64 = 0}, y = {.u64 = 0};
    memcpy(&x, a, dtype_size(dtype));
    memcpy(&y, b, dtype_size(dtype));
    switch (dtype) {
    case DTYPE_FLOAT32: return x.f32 < y.f32 || (isnan(y.f32) && !isnan(x.f32));
    case DTYPE_FLOAT64: return x.f64 < y.f64 || (isnan(y.f64) && !isnan(x.f64));
    case DTYPE_INT64: return x.i64 < y.i64;
    default: return x.u64 < y.u64;
    }
}

static enum dtype compared;

static int compare_items(const void *a, const void *b)
{
    return is_less(a, b, compared) ? -1 : is_less(b, a, compared);
}

static void draw_table(const struct tables_trial *t)
{
    size_t item_bytes = dtype_size(t->dtype), n = (size_t)t->n_table;
    check_fill(table, t->dtype, n, check_below(2));
    for (size_t i = 0; i < n; i++) /* equal ones */
        if (check_below(4) == 0)
            memcpy(table + i * item_bytes, table + check_below(n) * item_bytes, item_bytes);
    for (size_t i = 0; t->dtype == DTYPE_BOOL && i < n; i++)
        table[i] = table[i] != 0;
    compared = t->dtype;
    if (t->op != OP_TAKE && t->is_in_order)
        qsort(table, n, item_bytes, compare_items);
}

/* Half of what is looked up is in the table. */
static void draw_values(const struct tables_trial *t)
{
    size_t n = grain.shape.n, item_bytes = dtype_size(source_dtype(t));
    check_fill(values, source_dtype(t), n, check_below(2));
    for (size_t i = 0; i < n; i++) {
        int64_t index = (int64_t)check_below((uint64_t)t->n_table + 4) - 2;
        if (t->op == OP_TAKE && check_below(8))
            memcpy(values + i * item_bytes, &index, item_bytes);
        else if (!is_key(t) && t->op != OP_TAKE && t->n_table > 0 && check_below(2))
            memcpy(values + i * item_bytes, table + check_below((uint64_t)t->n_table) * item_bytes,
                   item_bytes);
    }
}

static bool is_place_right(const struct tables_trial *t, const char *item, int64_t got)
{
    int64_t n_below = 0;
    for (int64_t i = 0; i < t->n_table; i++) {
        const char *e = table + (size_t)i * dtype_size(t->dtype);
        bool is_left = t->op == OP_SEARCH_LEFT;
        n_below += is_left ? is_less(e, item, t->dtype) : !is_less(item, e, t->dtype);
    }
    return t->is_in_order ? got == n_below : got >= 0 && got <= t->n_table;
}

static bool is_taken_right(const struct tables_trial *t, const char *item, const char *got)
{
    int64_t index;
    static const char zero[8];
    memcpy(&index, item, sizeof(index));
    index = index < 0 ? 0 : index >= t->n_table ? t->n_table - 1 : index;
    const char *wanted = t->n_table > 0 ? table + (size_t)index * dtype_size(t->dtype) : zero;
    return memcmp(got, wanted, dtype_size(t->dtype)) == 0;
}

static void copy_output(unsigned output, size_t i, enum dtype dtype, char *ret_item)
{
    const struct laid *l = &grain.outputs[output];
    laid_copy_item(ret_item, laid_item(l, &grain.shape, i), dtype_size(dtype), l->view.is_swapped);
}

static uint64_t key_at(const struct tables_trial *t, size_t i)
{
    uint64_t key = 0;
    copy_output(0, i, result_dtype(t), (char *)&key);
    return key;
}

/* Keys are ordered as the floats, and equal where those are; the way back gives the float. */
static bool is_key_right(const struct tables_trial *t, size_t i)
{
    size_t item_bytes = dtype_size(t->dtype), other = check_below(grain.shape.n);
    const char *a = values + i * item_bytes, *b = values + other * item_bytes;
    char back[8], zero[8] = {0};
    copy_output(1, i, t->dtype, back);
    bool is_zero = !is_less(a, zero, t->dtype) && !is_less(zero, a, t->dtype);
    return (key_at(t, i) < key_at(t, other)) == is_less(a, b, t->dtype) &&
           (key_at(t, other) < key_at(t, i)) == is_less(b, a, t->dtype) &&
           check_same(back, is_zero ? zero : a, t->dtype);
}

static bool is_right(const struct tables_trial *t, size_t i)
{
    const char *item = values + i * dtype_size(source_dtype(t));
    char got[8];
    int64_t place;
    if (is_key(t))
        return is_key_right(t, i);
    copy_output(0, i, result_dtype(t), got);
    if (t->op == OP_TAKE)
        return is_taken_right(t, item, got);
    memcpy(&place, got, sizeof(place));
    return is_place_right(t, item, place);
}

static bool run_trial(struct checkcuda *c, struct tables_trial *t, unsigned trial)
{
    struct cuda_tile tile;
    struct engine_view views[GRAIN_MAX_REDUCED] = {{.base = table}};
    unsigned input = is_key(t) ? 0 : 1;
    built_init(&t->built);
    if (is_key(t))
        build_keys(t);
    else
        build_lookup(t);
    memset(&grain, 0, sizeof(grain));
    shape_draw(&grain.shape, trial, MAX_ELEMENTS);
    grain_space(&t->built);
    grain_draw(&grain.inputs[input], &grain.shape, source_dtype(t), false);
    grain_draw(&grain.outputs[0], &grain.shape, result_dtype(t), true);
    if (is_key(t))
        grain_draw(&grain.outputs[1], &grain.shape, t->dtype, true);
    draw_table(t);
    draw_values(t);
    rig_begin(c->rig, &tile, &t->built.program, input, views, &grain, 1);
    grain_place(&grain, &tile);
    laid_store(&grain.inputs[input], &grain.shape, source_dtype(t), values);
    grain_add(&grain, &tile);
    rig_run(c->rig, &tile);
    c->check.n_run++;
    for (size_t i = 0; i < grain.shape.n; i++) {
        if (is_right(t, i))
            continue;
        report(c, t, "another result", i);
        return false;
    }
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, "wrote to its inputs or to the code", 0);
    return false;
}

static void check_op(struct checkcuda *c, enum op op, enum dtype dtype)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 17, 256, 1000, MAX_TABLE};
    static struct tables_trial t;
    char name[64];
    snprintf(name, sizeof(name), "tables %s %s", op_info(op)->name, dtype_name(dtype));
    if (c->check.filter && !strstr(name, c->check.filter))
        return;
    check_restart(&c->check, name, 0);
    for (unsigned i = 0; i < c->check.n_trials; i++) {
        t.op = op;
        t.dtype = dtype;
        t.n_table = lengths[i % 8];
        t.is_in_order = i % 5 != 4;
        if (!run_trial(c, &t, (unsigned)check_below(39)))
            return;
    }
}

void checkcuda_tables(struct checkcuda *c)
{
    static const enum dtype searched[] = {DTYPE_FLOAT64, DTYPE_INT64, DTYPE_UINT64};
    for (unsigned i = 0; i < 3; i++) {
        check_op(c, OP_SEARCH_LEFT, searched[i]);
        check_op(c, OP_SEARCH_RIGHT, searched[i]);
    }
    for (int d = 0; d < DTYPE_COUNT; d++)
        check_op(c, OP_TAKE, (enum dtype)d);
    check_op(c, OP_ORDERED_KEY, DTYPE_FLOAT32);
    check_op(c, OP_ORDERED_KEY, DTYPE_FLOAT64);
}
