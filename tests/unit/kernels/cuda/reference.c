/* Reductions for the runner of the device's kernels: plain loops, another way than either engine's.
 *
 * Elements lie in C order of the box; cells are numbered in visiting order of the kept axes, as in
 * nodes. Sums are long double ones; squared deviations are taken from the mean in a second loop.
 * What is not finite adds up as IEEE says, whatever the order. Where finite numbers alone overflow,
 * what they give depends on the order, and nothing is asked.
 */
#include "tests/unit/kernels/cuda/reference.h"

#include <math.h>
#include <string.h>

#define EPSILON 0x1p-53L

static long double float_of(const char *item, enum dtype dtype)
{
    float narrow;
    double wide;
    if (dtype == DTYPE_FLOAT32) {
        memcpy(&narrow, item, sizeof(narrow));
        return (long double)narrow;
    }
    memcpy(&wide, item, sizeof(wide));
    return (long double)wide;
}

/* Widened to 64 bits. */
static uint64_t integer_of(const char *item, enum dtype dtype)
{
    uint64_t value = 0;
    unsigned unused = 64 - 8 * (unsigned)dtype_size(dtype);
    memcpy(&value, item, dtype_size(dtype));
    if (dtype == DTYPE_BOOL)
        return value != 0;
    return dtype_is_signed(dtype) ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

/* Whether a comes before b among the smallest: NaN first. */
static bool is_below(const char *a, const char *b, enum dtype dtype, bool is_min)
{
    if (dtype_is_float(dtype)) {
        long double x = float_of(a, dtype), y = float_of(b, dtype);
        if (isnan(x) || isnan(y))
            return isnan(x) && !isnan(y);
        return is_min ? x < y : x > y;
    }
    uint64_t x = integer_of(a, dtype), y = integer_of(b, dtype);
    if (dtype_is_signed(dtype))
        return is_min ? (int64_t)x < (int64_t)y : (int64_t)x > (int64_t)y;
    return is_min ? x < y : x > y;
}

/* Where the element with these coordinates belongs. */
static void locate(const struct reference_box *box, size_t element, uint64_t *ret_cell,
                   int64_t *ret_position)
{
    const struct shape *s = box->shape;
    int64_t at[3], steps[3], n = 1;
    *ret_position = 0;
    for (int i = s->ndim - 1; i >= 0; i--) {
        at[i] = (int64_t)(element % (size_t)s->count[i]);
        element /= (size_t)s->count[i];
    }
    for (int i = box->pass->ndim - 1; i >= 0; i--) {
        bool is_reduced = box->pass->reduced_axes >> i & 1;
        if (is_reduced && i < s->ndim)
            *ret_position += n * (at[i] + (box->start ? box->start[i] : 0));
        n *= is_reduced ? box->pass->shape[i] : 1;
    }
    uint64_t step = 1;
    *ret_cell = 0;
    for (int i = s->ndim - 1; i >= 0; i--) {
        int axis = s->order[i];
        steps[axis] = box->pass->reduced_axes >> axis & 1 ? 0 : (int64_t)step;
        step *= box->pass->reduced_axes >> axis & 1 ? 1 : (uint64_t)s->count[axis];
        *ret_cell += (uint64_t)(at[axis] * steps[axis]);
    }
}

uint64_t reference_n_cells(const struct reference_box *box)
{
    uint64_t n = 1;
    for (int i = 0; i < box->shape->ndim; i++)
        n *= box->pass->reduced_axes >> i & 1 ? 1 : (uint64_t)box->shape->count[i];
    return n;
}

static void take_extremum(const char *item, enum dtype dtype, int64_t position, bool is_min,
                          char *best, int64_t *best_position)
{
    bool is_better = *best_position < 0 || is_below(item, best, dtype, is_min) ||
                     (!is_below(best, item, dtype, is_min) && position < *best_position);
    if (!is_better)
        return;
    memcpy(best, item, dtype_size(dtype));
    *best_position = position;
}

static void take(struct reference_cell *cell, const char *item, enum dtype dtype, int64_t position)
{
    cell->n++;
    take_extremum(item, dtype, position, true, cell->smallest_item, &cell->argmin);
    take_extremum(item, dtype, position, false, cell->largest_item, &cell->argmax);
    if (!dtype_is_float(dtype)) {
        uint64_t value = integer_of(item, dtype);
        cell->sum += value;
        cell->product *= value;
        cell->n_nonzero += value != 0;
        return;
    }
    long double x = float_of(item, dtype);
    cell->has_special |= !isfinite(x);
    cell->n_nonzero += x != 0;
    cell->float_sum += x;
    cell->size += isfinite(x) ? fabsl(x) : 0;
    cell->largest = fmaxl(cell->largest, fabsl(x));
    cell->float_product *= x;
    cell->exponents += x != 0 && isfinite(x) ? fabsl(log2l(fabsl(x))) : 0;
}

void reference_reduce(const struct reference_box *box, enum dtype dtype, const char *values,
                      struct reference_cell *ret_cells)
{
    uint64_t cell;
    int64_t position;
    size_t item_bytes = dtype_size(dtype);
    for (uint64_t i = 0; i < reference_n_cells(box); i++)
        ret_cells[i] =
            (struct reference_cell){.float_product = 1, .product = 1, .argmin = -1, .argmax = -1};
    for (size_t i = 0; i < box->shape->n; i++) {
        locate(box, i, &cell, &position);
        take(&ret_cells[cell], values + i * item_bytes, dtype, position);
    }
    for (size_t i = 0; dtype_is_float(dtype) && i < box->shape->n; i++) {
        locate(box, i, &cell, &position);
        struct reference_cell *c = &ret_cells[cell];
        long double distance =
            float_of(values + i * item_bytes, dtype) - c->float_sum / (long double)c->n;
        c->deviations += distance * distance;
    }
}

static bool is_near(long double got, long double exact, long double tolerance)
{
    return isnan(exact) ? isnan(got) : got == exact || fabsl(got - exact) <= tolerance;
}

static bool is_sum_right(const struct reference_cell *c, double got)
{
    long double tolerance = fabsl(c->float_sum) * 2 * EPSILON + c->size * 0x1p-60L;
    return c->size > 0x1p1023L ||
           is_near((long double)got, c->float_sum, c->has_special ? 0 : tolerance);
}

static bool is_product_right(const struct reference_cell *c, double got)
{
    if (c->exponents > 1000)
        return true;
    return is_near((long double)got, c->float_product,
                   fabsl(c->float_product) * (long double)c->n * 2 * EPSILON);
}

static bool are_deviations_right(const struct reference_cell *c, double got)
{
    long double n = (long double)c->n, blur = n * EPSILON * c->largest;
    if (c->has_special)
        return isnan(got);
    return c->size > 0x1p500L || is_near((long double)got, c->deviations,
                                         4 * sqrtl(n * c->deviations) * blur + 4 * n * blur * blur +
                                             c->deviations * 1e-14L + 0x1p-1000L);
}

static bool is_item(const void *got, const void *wanted, enum dtype dtype)
{
    return check_same(got, wanted, dtype) ||
           (dtype_is_float(dtype) && float_of(got, dtype) == 0 && float_of(wanted, dtype) == 0);
}

static bool is_argument_right(const struct reference_cell *c, bool is_min, const char *item,
                              const char *index, enum dtype dtype)
{
    int64_t got;
    memcpy(&got, index, sizeof(got));
    return got == (is_min ? c->argmin : c->argmax) &&
           check_same(item, is_min ? c->smallest_item : c->largest_item, dtype);
}

bool reference_is_right(const struct reference_cell *cell, const struct reduce_layout *layout,
                        const void *node, unsigned reduction, uint64_t cell_index)
{
    const struct reduction *r = &layout->reductions[reduction];
    enum dtype dtype = (enum dtype)r->src.dtype;
    bool is_float = dtype_is_float(dtype);
    const char *planes[REDUCE_MAX_PLANES] = {NULL};
    uint64_t bits = 0;
    double number;
    for (unsigned i = 0; i < reduce_n_planes(r); i++)
        planes[i] = (const char *)reduce_plane(layout, node, reduction, i) +
                    cell_index * dtype_size(reduce_plane_dtype(r, i));
    memcpy(&bits, planes[0], dtype_size(reduce_plane_dtype(r, 0)));
    memcpy(&number, &bits, sizeof(number));
    switch (r->op) {
    case OP_SUM: return is_float ? is_sum_right(cell, number) : bits == cell->sum;
    case OP_PROD: return is_float ? is_product_right(cell, number) : bits == cell->product;
    case OP_COUNT_NONZERO: return bits == cell->n_nonzero;
    case OP_MIN: return is_item(planes[0], cell->smallest_item, dtype);
    case OP_MAX: return is_item(planes[0], cell->largest_item, dtype);
    case OP_ARGMIN:
    case OP_ARGMAX: return is_argument_right(cell, r->op == OP_ARGMIN, planes[0], planes[1], dtype);
    default:
        memcpy(&bits, planes[1], sizeof(bits));
        memcpy(&number, &bits, sizeof(number));
        return are_deviations_right(cell, number);
    }
}

enum dtype reference_result(enum op op, enum dtype dtype)
{
    switch (op) {
    case OP_SUM:
    case OP_PROD:
        if (dtype_is_float(dtype))
            return DTYPE_FLOAT64;
        return dtype_is_unsigned(dtype) ? DTYPE_UINT64 : DTYPE_INT64;
    case OP_MIN:
    case OP_MAX: return dtype;
    case OP_SQUARED_DEVIATIONS: return DTYPE_FLOAT64;
    default: return DTYPE_INT64;
    }
}
