/* Running sums and products over random boxes, axes, orders of walking and memory layouts.
 *
 * Every result must have the bits of one element after the other, in float64 or 64 bits, at all
 * levels; states too, which lie at any strides. A box that is cut in two along the scanned axis
 * must give the same. One result is stored as it is, one in another dtype, over the input where
 * that is possible.
 */
#include "tests/unit/kernels/cpu/check/laid.h"

#include "proto/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 20000
#define ARENA_BYTES  (MAX_ELEMENTS * 8 * 16 + 4096)

enum { INPUT, WIDE, CAST, STATES, N_ARENAS };

struct trial {
    enum op op;
    enum dtype dtype, result, cast;
    struct shape shape;
    int axis;
    bool is_in_place; /* the wide output is the input */
    struct laid laid[N_ARENAS];
    struct built b;
};

static struct trial t;
static char flat[MAX_ELEMENTS * 8];
static union scalar wanted[MAX_ELEMENTS];

static enum dtype result_of(enum dtype dtype)
{
    if (dtype_is_float(dtype))
        return DTYPE_FLOAT64;
    return dtype_is_unsigned(dtype) ? DTYPE_UINT64 : DTYPE_INT64;
}

static void build(void)
{
    struct built *b = &t.b;
    built_init(b);
    built_reduction(b, t.op, t.result, built_input(b, t.dtype));
    built_store(b, (struct operand){.dtype = (uint8_t)t.result});
    built_store(b, (struct operand){.dtype = (uint8_t)t.cast});
    struct pass *pass = &b->program.passes[0];
    pass->ndim = t.shape.ndim;
    pass->scanned_axis = (int8_t)t.axis;
    pass->reduced_axes = 1u << t.axis;
    for (int i = 0; i < t.shape.ndim; i++)
        pass->shape[i] = t.shape.count[i];
}

static void draw(unsigned trial)
{
    static const enum dtype narrow[] = {DTYPE_FLOAT32, DTYPE_INT16, DTYPE_UINT8, DTYPE_INT32};
    shape_draw(&t.shape, trial, MAX_ELEMENTS);
    t.axis = (int)check_below((uint64_t)t.shape.ndim);
    t.result = result_of(t.dtype);
    t.cast = dtype_is_float(t.dtype) ? DTYPE_FLOAT32 : narrow[check_below(4)];
    build();
    t.is_in_place = t.dtype == t.result && check_below(4) == 0;
    laid_draw(&t.laid[INPUT], &t.shape, t.dtype, t.is_in_place);
    laid_draw(&t.laid[WIDE], &t.shape, t.result, true);
    laid_draw(&t.laid[CAST], &t.shape, t.cast, true);
    laid_draw(&t.laid[STATES], &t.shape, t.result, true);
    struct laid *states = &t.laid[STATES];
    states->view.strides[t.axis] = 0;
    states->view.is_swapped = false;
    states->view.base = (char *)states->view.base - states->misalignment;
}

static union scalar next(union scalar state, const char *element)
{
    union scalar x = {.u64 = 0};
    size_t n_bits = 8 * dtype_size(t.dtype);
    memcpy(&x, element, dtype_size(t.dtype));
    if (t.dtype == DTYPE_FLOAT32)
        x.f64 = (double)x.f32;
    if (t.dtype == DTYPE_BOOL)
        x.u64 = x.u64 != 0;
    else if (dtype_is_signed(t.dtype))
        x.i64 = (int64_t)(x.u64 << (64 - n_bits)) >> (64 - n_bits);
    if (dtype_is_float(t.dtype))
        state.f64 = t.op == OP_CUMSUM ? state.f64 + x.f64 : state.f64 * x.f64;
    else
        state.u64 = t.op == OP_CUMSUM ? state.u64 + x.u64 : state.u64 * x.u64;
    return state;
}

static size_t step_along_axis(void)
{
    size_t step = 1;
    for (int i = t.axis + 1; i < t.shape.ndim; i++)
        step *= (size_t)t.shape.count[i];
    return step;
}

static bool is_first_of_row(size_t element)
{
    return element / step_along_axis() % (size_t)t.shape.count[t.axis] == 0;
}

static void scan_one_by_one(void)
{
    size_t item_bytes = dtype_size(t.dtype), step = step_along_axis();
    for (size_t i = 0; i < t.shape.n; i++) {
        union scalar state = {.u64 = t.op == OP_CUMPROD};
        if (dtype_is_float(t.dtype)) /* the first result is the first element */
            state.f64 = t.op == OP_CUMPROD ? 1.0 : -0.0;
        wanted[i] = next(is_first_of_row(i) ? state : wanted[i - step], flat + i * item_bytes);
    }
}

static void report(struct check *c, int level, const char *what, size_t i)
{
    c->n_failed++;
    printf("FAILED %s %s to %s, level %s: %s, element %zu\n    seed %llu, ", op_info(t.op)->name,
           dtype_name(t.dtype), dtype_name(t.cast), cpu_level_name((enum cpu_level)level), what, i,
           (unsigned long long)c->seed);
    shape_print(&t.shape);
    printf(", axis %d%s\n", t.axis, t.is_in_place ? ", in place" : "");
    laid_print("input", &t.laid[INPUT], &t.shape);
    laid_print("output", &t.laid[WIDE], &t.shape);
    laid_print("cast", &t.laid[CAST], &t.shape);
    laid_print("states", &t.laid[STATES], &t.shape);
}

static struct engine_view view_from(unsigned arena, int64_t start)
{
    struct engine_view view = t.laid[arena].view;
    view.base = (char *)view.base + start * view.strides[t.axis];
    return view;
}

/* Elements [start, start + count) along the scanned axis. */
static int run_part(int level, int64_t start, int64_t count)
{
    struct engine_warnings warnings = {0};
    int64_t counts[3], starts[3] = {0};
    memcpy(counts, t.shape.count, sizeof(counts));
    counts[t.axis] = count;
    starts[t.axis] = start;
    struct engine_view input = view_from(INPUT, start), states = t.laid[STATES].view;
    struct engine_view outputs[] = {view_from(t.is_in_place ? INPUT : WIDE, start),
                                    view_from(CAST, start)};
    struct engine_box box = {
        .ndim = t.shape.ndim, .count = counts, .axis_order = t.shape.order, .start = starts};
    return cpu_engine_run(cpu_engine_get((enum cpu_level)level), &t.b.program, 0, &box, &input,
                          outputs, &states, NULL, NULL, &warnings, test_scratch());
}

static void cast_of(union scalar value, void *ret_item)
{
    if (t.result == DTYPE_FLOAT64)
        value.f32 = (float)value.f64;
    else if (t.cast == DTYPE_FLOAT32)
        value.f32 = t.result == DTYPE_INT64 ? (float)value.i64 : (float)value.u64;
    memcpy(ret_item, &value, dtype_size(t.cast));
}

static bool is_right(struct check *c, int level)
{
    const struct laid *wide = &t.laid[t.is_in_place ? INPUT : WIDE], *cast = &t.laid[CAST];
    size_t step = step_along_axis(), n_last = (size_t)t.shape.count[t.axis] - 1;
    for (size_t i = 0; i < t.shape.n; i++) {
        char got[8], wanted_cast[8];
        laid_copy_item(got, laid_item(wide, &t.shape, i), 8, wide->view.is_swapped);
        bool is_same = check_same(got, &wanted[i], t.result);
        cast_of(wanted[i], wanted_cast);
        laid_copy_item(got, laid_item(cast, &t.shape, i), dtype_size(t.cast),
                       cast->view.is_swapped);
        is_same &= check_same(got, wanted_cast, t.cast);
        if (is_first_of_row(i))
            is_same &= check_same(laid_item(&t.laid[STATES], &t.shape, i),
                                  &wanted[i + n_last * step], t.result);
        if (is_same)
            continue;
        report(c, level, "not what one element after the other gives", i);
        return false;
    }
    return true;
}

static bool run_trial(struct check *c, unsigned trial)
{
    draw(trial);
    check_fill(flat, t.dtype, t.shape.n, check_below(3) != 0);
    c->n_run++;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        if (!check_has_level(level))
            continue;
        int64_t length = t.shape.count[t.axis];
        int64_t cut = (int64_t)check_below((uint64_t)length);
        laid_store(&t.laid[INPUT], &t.shape, t.dtype, flat);
        scan_one_by_one();
        int r = cut > 0 ? run_part(level, 0, cut) : 0;
        if (!r)
            r = run_part(level, cut, length - cut);
        if (r) {
            report(c, level, "status", 0);
            return false;
        }
        if (!is_right(c, level))
            return false;
    }
    return true;
}

void check_scans(struct check *c)
{
    static const enum op ops[] = {OP_CUMSUM, OP_CUMPROD};
    for (int i = 0; i < N_ARENAS; i++)
        t.laid[i].arena = aligned_alloc(64, (ARENA_BYTES + 63) & ~63);
    for (size_t i = 0; i < ARRAY_LENGTH(ops); i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            char name[64];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name((enum dtype)d));
            if (c->filter && !strstr(name, c->filter))
                continue;
            t.op = ops[i];
            t.dtype = (enum dtype)d;
            check_restart(c, name, 0);
            for (unsigned k = 0; k < c->n_trials; k++)
                if (!run_trial(c, k))
                    break;
        }
    }
    for (int i = 0; i < N_ARENAS; i++)
        free(t.laid[i].arena);
}
