/* Running sums and products on the device, against one loop along the axis: every dtype, boxes of
 * any shape, any axis and order of walking, in layouts drawn at random. Each is stored as it is and
 * in another dtype; sources are an input and a value computed from it.
 *
 * Integers must be the same to the bit. Floats are of another association, so they must be near:
 * their numbers are such that the largest term says how near. Every grain begins with states drawn
 * at random, or at the axis's beginning, where what lies there is not to be read; the states behind
 * it are those that the last elements have.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 12000
#define N_GRAINS     6
#define SPACE        (1 << 14)

enum { WIDE, CAST, COMPUTED, N_OUTPUTS };

struct scans_trial {
    enum op op;
    enum dtype dtype, result, cast;
    int ndim, axis;
    struct built built;
    int64_t starts[N_GRAINS][3];
};

static struct grain grains[N_GRAINS];
static char values[N_GRAINS][MAX_ELEMENTS * 8];
static union scalar states[N_GRAINS][2][MAX_ELEMENTS]; /* of cells; source, computed */
static union scalar wanted[MAX_ELEMENTS];
static double sizes[MAX_ELEMENTS]; /* of the terms so far */

static void report(struct checkcuda *c, const struct scans_trial *t, unsigned g, const char *what,
                   size_t i)
{
    c->check.n_failed++;
    printf("FAILED scans %s %s to %s, axis %d: %s, element %zu\n    seed %llu, grain %u, ",
           op_info(t->op)->name, dtype_name(t->dtype), dtype_name(t->cast), t->axis, what, i,
           (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("input", &grains[g].inputs[0], &grains[g].shape);
}

static void add_store(struct built *b, enum dtype dtype, uint16_t scan)
{
    built_store(b, (struct operand){.dtype = (uint8_t)dtype});
    b->program.stores[b->program.n_stores - 1].scan = scan;
}

/* The input and twice it; of a bool its opposite, of a float its negative. */
static void build(struct scans_trial *t)
{
    struct built *b = &t->built;
    struct operand none = {0};
    bool is_bool = t->dtype == DTYPE_BOOL, is_float = dtype_is_float(t->dtype);
    enum op op = is_bool ? OP_INVERT : is_float ? OP_NEGATIVE : OP_ADD;
    built_init(b);
    struct operand x = built_input(b, t->dtype);
    struct operand y = built_insn(b, op, t->dtype, t->dtype, 0, x, op == OP_ADD ? x : none, none);
    built_reduction(b, t->op, t->result, x);
    built_reduction(b, t->op, t->result, y);
    add_store(b, t->result, 0);
    add_store(b, t->cast, 0);
    add_store(b, t->result, 1);
    struct pass *pass = &b->program.passes[0];
    pass->ndim = t->ndim;
    pass->reduced_axes = 1u << t->axis;
    pass->scanned_axis = (int8_t)t->axis;
    for (int i = 0; i < t->ndim; i++)
        pass->shape[i] = SPACE;
}

static double drawn_float(const struct scans_trial *t)
{
    double part = (double)check_below(1000000) / 1e6;
    return t->op == OP_CUMSUM ? 2000 * part - 1000 : 1 + (part - 0.5) / 1000;
}

static void draw_values(const struct scans_trial *t, unsigned g)
{
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        double x = drawn_float(t);
        uint64_t bits = check_random();
        if (t->dtype == DTYPE_FLOAT32)
            ((float *)values[g])[i] = (float)x;
        else if (t->dtype == DTYPE_FLOAT64)
            ((double *)values[g])[i] = x;
        else
            memcpy(values[g] + i * dtype_size(t->dtype), &bits, dtype_size(t->dtype));
    }
    for (unsigned k = 0; k < 2; k++) {
        for (size_t i = 0; i < MAX_ELEMENTS; i++) {
            states[g][k][i].u64 = check_random();
            if (dtype_is_float(t->dtype))
                states[g][k][i].f64 = drawn_float(t);
        }
    }
}

static void draw_states(const struct scans_trial *t, unsigned g, unsigned k)
{
    struct laid *l = &grains[g].reduced[k];
    const struct shape *s = &grains[g].shape;
    int64_t stride = 8;
    *l = (struct laid){.arena = l->arena};
    for (int i = s->ndim - 1; i >= 0; i--) {
        int axis = s->order[i];
        if (axis == t->axis)
            continue;
        l->view.strides[axis] = stride;
        stride *= s->count[axis];
    }
    l->n_bytes = (size_t)stride;
}

static void draw_grain(struct scans_trial *t, unsigned g)
{
    struct shape *s = &grains[g].shape;
    do {
        shape_draw(s, (unsigned)t->ndim - 1 + 3 * (unsigned)check_below(13), MAX_ELEMENTS);
    } while (s->ndim != t->ndim);
    for (int i = 0; i < t->ndim; i++)
        t->starts[g][i] = (int64_t)check_below(SPACE - 5000);
    if (check_below(3) == 0)
        t->starts[g][t->axis] = 0;
    grains[g].start = t->starts[g];
    grain_draw(&grains[g].inputs[0], s, t->dtype, false);
    for (unsigned k = 0; k < N_OUTPUTS; k++)
        grain_draw(&grains[g].outputs[k], s, k == CAST ? t->cast : t->result, true);
    draw_states(t, g, 0);
    draw_states(t, g, 1);
    draw_values(t, g);
}

static union scalar widened(const struct scans_trial *t, const char *item, bool is_computed)
{
    union scalar x = {.u64 = 0};
    unsigned n_spare = 64 - 8 * (unsigned)dtype_size(t->dtype);
    memcpy(&x, item, dtype_size(t->dtype));
    if (t->dtype == DTYPE_FLOAT32)
        return (union scalar){.f64 = (double)(is_computed ? -x.f32 : x.f32)};
    if (t->dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = is_computed ? -x.f64 : x.f64};
    if (t->dtype == DTYPE_BOOL)
        return (union scalar){.u64 = is_computed ? x.u64 == 0 : x.u64 != 0};
    x.u64 = (is_computed ? x.u64 * 2 : x.u64) << n_spare;
    if (dtype_is_signed(t->dtype))
        return (union scalar){.i64 = x.i64 >> n_spare};
    return (union scalar){.u64 = x.u64 >> n_spare};
}

static union scalar combined(const struct scans_trial *t, union scalar a, union scalar b)
{
    bool is_sum = t->op == OP_CUMSUM;
    if (dtype_is_float(t->dtype))
        return (union scalar){.f64 = is_sum ? a.f64 + b.f64 : a.f64 * b.f64};
    return (union scalar){.u64 = is_sum ? a.u64 + b.u64 : a.u64 * b.u64};
}

static union scalar identity(const struct scans_trial *t)
{
    if (dtype_is_float(t->dtype))
        return (union scalar){.f64 = t->op == OP_CUMSUM ? -0.0 : 1.0};
    return (union scalar){.u64 = t->op == OP_CUMPROD};
}

/* In visiting order of the kept axes. */
static uint64_t cell_of(const struct scans_trial *t, const struct shape *s, size_t element)
{
    int64_t at[3];
    uint64_t cell = 0, step = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        at[i] = (int64_t)(element % (size_t)s->count[i]);
        element /= (size_t)s->count[i];
    }
    for (int i = s->ndim - 1; i >= 0; i--) {
        if (s->order[i] == t->axis)
            continue;
        cell += step * (uint64_t)at[s->order[i]];
        step *= (uint64_t)s->count[s->order[i]];
    }
    return cell;
}

/* Elements in C order: the one before along the axis is `step` before. */
static void scan(const struct scans_trial *t, unsigned g, bool is_computed)
{
    const struct shape *s = &grains[g].shape;
    size_t step = 1, item_bytes = dtype_size(t->dtype);
    for (int i = t->axis + 1; i < s->ndim; i++)
        step *= (size_t)s->count[i];
    for (size_t i = 0; i < s->n; i++) {
        bool is_first = i / step % (size_t)s->count[t->axis] == 0;
        union scalar before =
            is_first ? states[g][is_computed][cell_of(t, s, i)] : wanted[i - step];
        union scalar x = widened(t, values[g] + i * item_bytes, is_computed);
        if (is_first && t->starts[g][t->axis] == 0)
            before = identity(t);
        wanted[i] = combined(t, before, x);
        sizes[i] = is_first ? fabs(before.f64) + fabs(x.f64) : sizes[i - step] + fabs(x.f64);
    }
}

static bool is_right(const struct scans_trial *t, const char *got, enum dtype dtype, size_t i)
{
    union scalar item = {.u64 = 0}, cast = wanted[i];
    memcpy(&item, got, dtype_size(dtype));
    if (!dtype_is_float(t->dtype)) {
        bool is_signed = t->result == DTYPE_INT64;
        if (dtype == DTYPE_FLOAT64)
            cast.f64 = is_signed ? (double)wanted[i].i64 : (double)wanted[i].u64;
        if (dtype == DTYPE_FLOAT32)
            cast.f32 = is_signed ? (float)wanted[i].i64 : (float)wanted[i].u64;
        return memcmp(&item, &cast, dtype_size(dtype)) == 0;
    }
    double x = dtype == DTYPE_FLOAT32 ? (double)item.f32 : item.f64, last = 0x1p-40;
    double size = t->op == OP_CUMSUM ? sizes[i] : fabs(wanted[i].f64);
    return fabs(x - wanted[i].f64) <= size * (dtype == DTYPE_FLOAT32 ? 0x1p-23 : last);
}

static bool compare_output(struct checkcuda *c, const struct scans_trial *t, unsigned g,
                           unsigned output)
{
    const struct laid *l = &grains[g].outputs[output];
    enum dtype dtype = output == CAST ? t->cast : t->result;
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        char item[8];
        laid_copy_item(item, laid_item(l, &grains[g].shape, i), dtype_size(dtype),
                       l->view.is_swapped);
        if (is_right(t, item, dtype, i))
            continue;
        report(c, t, g,
               output == COMPUTED ? "another result of what is computed" : "another result", i);
        laid_print("output", l, &grains[g].shape);
        check_print("got   ", item, dtype);
        check_print("wanted", &wanted[i], t->result);
        return false;
    }
    return true;
}

/* They are to the bit what was written last. */
static bool compare_states(struct checkcuda *c, const struct scans_trial *t,
                           const struct cuda_tile *tile, unsigned g, unsigned scan)
{
    const struct shape *s = &grains[g].shape;
    const struct laid *l = &grains[g].outputs[scan == 0 ? WIDE : COMPUTED];
    const char *got = cuda_tile_states(tile, g, scan);
    size_t step = 1;
    for (int i = t->axis + 1; i < s->ndim; i++)
        step *= (size_t)s->count[i];
    for (size_t i = 0; i < s->n; i++) {
        char item[8];
        if (i / step % (size_t)s->count[t->axis] != (size_t)s->count[t->axis] - 1)
            continue;
        laid_copy_item(item, laid_item(l, s, i), sizeof(item), l->view.is_swapped);
        if (memcmp(item, got + 8 * cell_of(t, s, i), sizeof(item)) == 0)
            continue;
        report(c, t, g, "another state", i);
        return false;
    }
    return true;
}

static bool compare_grain(struct checkcuda *c, const struct scans_trial *t,
                          const struct cuda_tile *tile, unsigned g)
{
    struct engine_warnings warnings = {0};
    c->check.n_run++;
    if (cuda_tile_result(tile, g, NULL, NULL, &warnings)) {
        report(c, t, g, "another status", 0);
        return false;
    }
    scan(t, g, false);
    if (!compare_output(c, t, g, WIDE) || !compare_output(c, t, g, CAST))
        return false;
    scan(t, g, true);
    return compare_output(c, t, g, COMPUTED) && compare_states(c, t, tile, g, 0) &&
           compare_states(c, t, tile, g, 1);
}

static bool run_trial(struct checkcuda *c, struct scans_trial *t)
{
    struct cuda_tile tile;
    build(t);
    for (unsigned g = 0; g < N_GRAINS; g++)
        draw_grain(t, g);
    rig_begin(c->rig, &tile, &t->built.program, 0, NULL, grains, N_GRAINS);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        grain_place(&grains[g], &tile);
        laid_store(&grains[g].inputs[0], &grains[g].shape, t->dtype, values[g]);
        for (unsigned k = 0; k < 2; k++)
            memcpy(grains[g].reduced[k].view.base, states[g][k], grains[g].reduced[k].n_bytes);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < N_GRAINS; g++)
        if (!compare_grain(c, t, &tile, g))
            return false;
    for (unsigned g = 0; g < N_GRAINS; g++) {
        for (unsigned k = 0; k < N_OUTPUTS; k++) {
            if (grain_is_margin_whole(&grains[g], k, k == CAST ? t->cast : t->result))
                continue;
            report(c, t, g, "wrote beside an output", 0);
            return false;
        }
    }
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, 0, "wrote to its inputs or to the code", 0);
    return false;
}

static void check_dtype(struct checkcuda *c, struct scans_trial *t)
{
    static const enum dtype casts[] = {DTYPE_INT8,   DTYPE_UINT16,  DTYPE_INT32,
                                       DTYPE_UINT64, DTYPE_FLOAT32, DTYPE_FLOAT64};
    bool is_float = dtype_is_float(t->dtype);
    t->result = is_float ? DTYPE_FLOAT64 : dtype_is_unsigned(t->dtype) ? DTYPE_UINT64 : DTYPE_INT64;
    for (unsigned i = 0; i < 3 * c->check.n_trials; i++) {
        t->op = i % 2 ? OP_CUMPROD : OP_CUMSUM;
        t->ndim = 1 + (int)(i / 2 % 3);
        t->axis = (int)check_below((uint64_t)t->ndim);
        t->cast = is_float ? DTYPE_FLOAT32 : casts[check_below(6)];
        if (!run_trial(c, t))
            return;
    }
}

void checkcuda_scans(struct checkcuda *c)
{
    static struct scans_trial t;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        char name[48];
        snprintf(name, sizeof(name), "scans %s", dtype_name((enum dtype)d));
        if (c->check.filter && !strstr(name, c->check.filter))
            continue;
        check_restart(&c->check, name, 0);
        t.dtype = (enum dtype)d;
        check_dtype(c, &t);
    }
}
