/* Every reduction of every dtype at every level, over random boxes, axes, orders of walking and
 * memory layouts.
 *
 * What is exact (integers, extremes, positions, counts) must be what one element after the other
 * gives; sums, products and squared deviations of floats must be near what long double gives. All
 * levels must give the bits of the plain level on contiguous elements, whether an instruction or a
 * store stands beside the reduction or not, and so must a box of a single element of the kept axes:
 * the bits of a cell depend on the reduced axes alone.
 */
#include "tests/unit/kernels/cpu/check/laid.h"

#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 20000
#define MAX_CELLS    8192
#define ARENA_BYTES  (MAX_ELEMENTS * 8 * 16 + 4096)

struct trial {
    enum op op;
    enum dtype dtype;
    struct shape shape;
    int64_t start[3];
    size_t n_cells, n_each;
    size_t cell_of[MAX_ELEMENTS]; /* element in C order: its cell in visiting order */
    size_t visit[MAX_ELEMENTS];   /* elements in C order, as they are visited */
    int64_t position[MAX_ELEMENTS];
    struct built b, beside; /* the second has an instruction and a store too */
};

static struct trial t;
static char flat[MAX_ELEMENTS * 8 + 64],
    node[2][64 + 2 * (MAX_CELLS * 8 + 64)] __attribute__((aligned(64)));
static char stored[MAX_ELEMENTS * 8 + 1024] __attribute__((aligned(64)));

static enum dtype result_of(enum op op, enum dtype dtype)
{
    if (op == OP_MIN || op == OP_MAX)
        return dtype;
    if (dtype_is_float(dtype) && (op == OP_SUM || op == OP_PROD || op == OP_SQUARED_DEVIATIONS))
        return DTYPE_FLOAT64;
    return (op == OP_SUM || op == OP_PROD) && dtype_is_unsigned(dtype) ? DTYPE_UINT64 : DTYPE_INT64;
}

static void build(struct built *b, bool is_beside)
{
    built_init(b);
    struct operand x = built_input(b, t.dtype);
    if (is_beside) {
        enum op op = t.dtype == DTYPE_BOOL ? OP_BITWISE_OR : OP_MAXIMUM;
        struct operand none = {0}, same = built_insn(b, op, t.dtype, t.dtype, 0, x, x, none);
        built_reduction(b, t.op, result_of(t.op, t.dtype), same);
        built_store(b, x);
    } else {
        built_reduction(b, t.op, result_of(t.op, t.dtype), x);
    }
}

/* A box in a pass that may be larger; which elements belong to which cell. */
static void draw(unsigned trial)
{
    struct shape *s = &t.shape;
    shape_draw(s, trial, MAX_ELEMENTS);
    uint32_t axes = 1 + (uint32_t)check_below((1u << s->ndim) - 1);
    build(&t.b, false);
    build(&t.beside, true);
    for (struct built *b = &t.b;; b = &t.beside) {
        struct pass *pass = &b->program.passes[0];
        pass->ndim = s->ndim;
        pass->reduced_axes = axes;
        if (b == &t.beside)
            break;
    }
    for (int i = 0; i < s->ndim; i++) {
        t.start[i] = check_below(3) ? 0 : (int64_t)check_below(5);
        int64_t length = s->count[i] + t.start[i] + (check_below(3) ? 0 : (int64_t)check_below(4));
        t.b.program.passes[0].shape[i] = t.beside.program.passes[0].shape[i] = length;
    }
}

static void number_elements(void)
{
    const struct shape *s = &t.shape;
    const struct pass *pass = &t.b.program.passes[0];
    t.n_cells = 1;
    for (int i = 0; i < s->ndim; i++)
        t.n_cells *= pass->reduced_axes >> i & 1 ? 1 : (size_t)s->count[i];
    t.n_each = s->n / t.n_cells;
    for (size_t e = 0; e < s->n; e++) {
        int64_t at[3], position = 0;
        size_t rest = e, cell = 0, visited = 0;
        for (int i = s->ndim - 1; i >= 0; i--) {
            at[i] = (int64_t)(rest % (size_t)s->count[i]);
            rest /= (size_t)s->count[i];
        }
        for (int i = 0; i < s->ndim; i++) {
            int axis = s->order[i];
            visited = visited * (size_t)s->count[axis] + (size_t)at[axis];
            if (!(pass->reduced_axes >> axis & 1))
                cell = cell * (size_t)s->count[axis] + (size_t)at[axis];
            if (pass->reduced_axes >> i & 1)
                position = position * pass->shape[i] + at[i] + t.start[i];
        }
        t.cell_of[e] = cell;
        t.visit[visited] = e;
        t.position[e] = position;
    }
}

static long double value_at(size_t e)
{
    return t.dtype == DTYPE_FLOAT32 ? (long double)((float *)flat)[e]
                                    : (long double)((double *)flat)[e];
}

static int run(const struct built *b, int level, const struct engine_view *view, void *to)
{
    struct reduce_layout layout;
    struct engine_warnings warnings = {0};
    struct engine_box box = {.ndim = t.shape.ndim,
                             .count = t.shape.count,
                             .axis_order = t.shape.order,
                             .start = t.start};
    struct engine_view output = {.base = stored};
    int64_t step = (int64_t)dtype_size(t.dtype);
    for (int i = t.shape.ndim - 1; i >= 0; i--) {
        output.strides[i] = step;
        step *= t.shape.count[i];
    }
    reduce_layout_init(&layout, &b->program, 0, t.n_cells);
    memset(to, 0x5a, layout.n_bytes);
    return cpu_engine_run(cpu_engine_get((enum cpu_level)level), &b->program, 0, &box, view,
                          &output, NULL, &layout, to, &warnings, test_scratch());
}

static const void *plane(const void *from, unsigned i)
{
    struct reduce_layout layout;
    reduce_layout_init(&layout, &t.b.program, 0, t.n_cells);
    return reduce_plane(&layout, from, 0, i);
}

static bool nodes_are_same(const void *a, const void *b)
{
    const struct reduction *reduction = &t.b.program.reductions[0];
    for (unsigned i = 0; i < reduce_n_planes(reduction); i++) {
        enum dtype dtype = reduce_plane_dtype(reduction, i);
        for (size_t k = 0; k < t.n_cells; k++)
            if (!check_same((const char *)plane(a, i) + k * dtype_size(dtype),
                            (const char *)plane(b, i) + k * dtype_size(dtype), dtype))
                return false;
    }
    return true;
}

static void report(struct check *c, int level, const char *what, size_t cell)
{
    c->n_failed++;
    printf("FAILED %s %s, level %s: %s\n    seed %llu, ", op_info(t.op)->name, dtype_name(t.dtype),
           cpu_level_name((enum cpu_level)level), what, (unsigned long long)c->seed);
    shape_print(&t.shape);
    printf(", reduced axes %x, cell %zu of %zu, %zu elements each\n",
           t.b.program.passes[0].reduced_axes, cell, t.n_cells, t.n_each);
}

/* One element after the other, in visiting order. */
static union scalar exact_value(size_t cell, int64_t *ret_position)
{
    union scalar value = {.u64 = t.op == OP_PROD};
    bool is_argument = t.op == OP_ARGMIN || t.op == OP_ARGMAX;
    bool is_min = t.op == OP_MIN || t.op == OP_ARGMIN, is_first = true;
    *ret_position = -1;
    for (size_t k = 0; k < t.shape.n; k++) {
        size_t e = t.visit[k], item_bytes = dtype_size(t.dtype);
        if (t.cell_of[e] != cell)
            continue;
        union scalar x = {.u64 = 0};
        memcpy(&x, flat + e * item_bytes, item_bytes);
        if (t.dtype == DTYPE_BOOL)
            x.u64 = x.u64 != 0;
        else if (dtype_is_signed(t.dtype))
            x.i64 = (int64_t)(x.u64 << (64 - 8 * item_bytes)) >> (64 - 8 * item_bytes);
        if (t.op == OP_SUM) {
            value.u64 += x.u64;
        } else if (t.op == OP_PROD) {
            value.u64 *= x.u64;
        } else if (t.op == OP_COUNT_NONZERO) {
            value.u64 += dtype_is_float(t.dtype) ? value_at(e) != 0 : x.u64 != 0;
        } else {
            bool is_better, is_equal;
            if (dtype_is_float(t.dtype)) {
                double a = (double)value_at(e);
                double v = t.dtype == DTYPE_FLOAT32 ? (double)value.f32 : value.f64;
                is_better = is_min ? a < v : a > v;
                is_better |= isnan(a) && !isnan(v);
                is_equal = a == v || (isnan(a) && isnan(v));
            } else if (dtype_is_signed(t.dtype)) {
                is_better = is_min ? x.i64 < value.i64 : x.i64 > value.i64;
                is_equal = x.i64 == value.i64;
            } else {
                is_better = is_min ? x.u64 < value.u64 : x.u64 > value.u64;
                is_equal = x.u64 == value.u64;
            }
            if (is_first || is_better ||
                (is_argument && is_equal && t.position[e] < *ret_position)) {
                value = x;
                *ret_position = t.position[e];
            }
            is_first = false;
        }
    }
    return value;
}

static bool is_near(double got, long double exact, long double size, long double ulps)
{
    return fabsl((long double)got - exact) <= size * ulps * 0x1p-53L + 0x1p-1000L;
}

/* As accurate as pairwise sums along rows of the fastest axis would be. */
static bool float_is_near(size_t cell)
{
    long double sum = 0, size = 0, product = 1, squares = 0;
    for (size_t e = 0; e < t.shape.n; e++) {
        if (t.cell_of[e] != cell)
            continue;
        sum += value_at(e);
        size += fabsl(value_at(e));
        product *= value_at(e);
    }
    for (size_t e = 0; e < t.shape.n; e++)
        if (t.cell_of[e] == cell)
            squares += (value_at(e) - sum / t.n_each) * (value_at(e) - sum / t.n_each);
    double got = ((const double *)plane(node[0], 0))[cell];
    if (t.op == OP_SUM)
        return is_near(got, sum, size, 90);
    if (t.op == OP_PROD)
        return fabsl(product) > 1e300L || fabsl(product) < 1e-290L ||
               is_near(got, product, fabsl(product), (long double)t.n_each + 1);
    return is_near(got, sum, size, 90 + (long double)t.n_each) &&
           is_near(((const double *)plane(node[0], 1))[cell], squares, squares,
                   200 + 2 * (long double)t.n_each);
}

static bool is_right(struct check *c, bool is_moderate)
{
    const struct reduction *reduction = &t.b.program.reductions[0];
    bool is_exact = !dtype_is_float(t.dtype) ||
                    (t.op != OP_SUM && t.op != OP_PROD && t.op != OP_SQUARED_DEVIATIONS);
    size_t step = t.n_cells > 16 ? t.n_cells / 8 : 1;
    for (size_t cell = 0; cell < t.n_cells; cell += step) {
        if (!is_exact) {
            if (is_moderate && !float_is_near(cell)) {
                report(c, 0, "not near the exact value", cell);
                return false;
            }
            continue;
        }
        int64_t position;
        union scalar wanted = exact_value(cell, &position);
        enum dtype dtype = reduce_plane_dtype(reduction, 0);
        bool is_same =
            check_same((const char *)plane(node[0], 0) + cell * dtype_size(dtype), &wanted, dtype);
        if (reduce_n_planes(reduction) == 2)
            is_same &= ((const int64_t *)plane(node[0], 1))[cell] == position;
        if (!is_same) {
            report(c, 0, "not the value of one element after the other", cell);
            return false;
        }
    }
    return true;
}

/* The kept axes cut down to one element gives the same bits of that cell. */
static bool one_cell_is_same(struct check *c, int level, const struct engine_view *view)
{
    struct shape whole = t.shape;
    int64_t whole_start[3];
    struct engine_view part = *view;
    size_t cell = 0, n_cells = t.n_cells;
    memcpy(whole_start, t.start, sizeof(whole_start));
    for (int i = 0; i < whole.ndim; i++) {
        int axis = whole.order[i];
        if (t.b.program.passes[0].reduced_axes >> axis & 1)
            continue;
        int64_t at = (int64_t)check_below((uint64_t)whole.count[axis]);
        cell = cell * (size_t)whole.count[axis] + (size_t)at;
        part.base = (char *)part.base + at * part.strides[axis];
        t.start[axis] += at;
        t.shape.count[axis] = 1;
    }
    t.n_cells = 1;
    static char one[64 + 2 * 128] __attribute__((aligned(64)));
    int r = run(&t.b, level, &part, one);
    char values[2][8];
    const struct reduction *reduction = &t.b.program.reductions[0];
    for (unsigned i = 0; i < reduce_n_planes(reduction); i++)
        memcpy(values[i], plane(one, i), 8);
    t.n_cells = n_cells;
    t.shape = whole;
    memcpy(t.start, whole_start, sizeof(whole_start));
    bool is_same = r == 0;
    for (unsigned i = 0; i < reduce_n_planes(reduction); i++) {
        enum dtype dtype = reduce_plane_dtype(reduction, i);
        is_same &= check_same((const char *)plane(node[0], i) + cell * dtype_size(dtype), values[i],
                              dtype);
    }
    if (!is_same)
        report(c, level, "other bits where the box has one cell", cell);
    return is_same;
}

static bool run_trial(struct check *c, unsigned trial, struct laid *laid)
{
    do {
        draw(trial);
        number_elements();
    } while (t.n_cells > MAX_CELLS);
    bool is_moderate = check_below(3) != 0;
    laid_draw(laid, &t.shape, t.dtype, false);
    check_fill(flat, t.dtype, t.shape.n, is_moderate);
    laid_store(laid, &t.shape, t.dtype, flat);
    struct engine_view view = {.base = flat};
    int64_t step = (int64_t)dtype_size(t.dtype);
    for (int i = t.shape.ndim - 1; i >= 0; i--) {
        view.strides[i] = step;
        step *= t.shape.count[i];
    }
    c->n_run++;
    if (run(&t.b, CPU_LEVEL_PLAIN, &view, node[0])) {
        report(c, 0, "status", 0);
        return false;
    }
    if (!is_right(c, is_moderate))
        return false;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        if (!check_has_level(level))
            continue;
        static const char *const ways[] = {"contiguous", "laid out", "beside a store"};
        for (int way = 0; way < 3; way++) {
            int r =
                run(way == 2 ? &t.beside : &t.b, level, way == 1 ? &laid->view : &view, node[1]);
            if (!r && nodes_are_same(node[0], node[1]))
                continue;
            report(c, level, ways[way], 0);
            laid_print("input", laid, &t.shape);
            return false;
        }
        if (!one_cell_is_same(c, level, &view))
            return false;
    }
    return true;
}

void check_reductions(struct check *c)
{
    static const enum op ops[] = {OP_SUM,    OP_PROD,   OP_MIN,           OP_MAX,
                                  OP_ARGMIN, OP_ARGMAX, OP_COUNT_NONZERO, OP_SQUARED_DEVIATIONS};
    struct laid laid = {.arena = aligned_alloc(64, (ARENA_BYTES + 63) & ~63)};
    for (size_t i = 0; i < ARRAY_LENGTH(ops); i++) {
        for (int d = 0; d < DTYPE_COUNT; d++) {
            char name[64];
            snprintf(name, sizeof(name), "%s %s", op_info(ops[i])->name, dtype_name((enum dtype)d));
            if (c->filter && !strstr(name, c->filter))
                continue;
            if (ops[i] == OP_SQUARED_DEVIATIONS && !dtype_is_float((enum dtype)d))
                continue;
            t.op = ops[i];
            t.dtype = (enum dtype)d;
            check_restart(c, name, 0);
            for (unsigned k = 0; k < c->n_trials; k++)
                if (!run_trial(c, k, &laid))
                    break;
        }
    }
    free(laid.arena);
}
