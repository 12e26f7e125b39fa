/* Programs run by the plain engine on small arrays: order, registers and passes give the values
 * that the expression has.
 */
#include "kernels/cpu/engine.h"
#include "kernels/reductions/reduce.h"
#include "tests/unit/kernels/expr/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N 12 /* elements of f8: (3, 4) */

static const double values[N] = {0.5, -1.25, 2, 3.75, -4, 5.5, 6.25, -7, 8, 9.5, -10, 11};
static const double row[4] = {1, 10, 100, 1000};
static const double column[3] = {0.25, -0.5, 2};

static struct engine_view view_of(const struct pass *pass, int ndim, const int64_t *shape,
                                  void *base)
{
    struct engine_view view = {.base = base};
    int64_t strides[ARRAY_MAX_NDIM];
    array_c_strides(ndim, shape, 8, strides);
    for (int i = 0; i < ndim; i++)
        view.strides[pass->ndim - ndim + i] = shape[i] == 1 ? 0 : strides[i];
    return view;
}

#define NODE_BYTES 4096

/* The results of a pass's reductions, densely: cells are visited in C order. */
static void keep_results(const struct program *p, const struct pass *pass,
                         const struct reduce_layout *layout, const void *node, char (*ret)[N * 8])
{
    for (unsigned k = 0; k < pass->n_reductions; k++) {
        unsigned r = pass->first_reduction + k;
        memcpy(ret[r], reduce_values(layout, node, k),
               layout->n_cells * dtype_size((enum dtype)p->reductions[r].result));
    }
}

static uint64_t count_cells(const struct program *p, const struct pass *pass)
{
    int64_t shape[ARRAY_MAX_NDIM];
    uint64_t n = 1;
    int ndim =
        pass->n_reductions > 0 ? program_reduction_shape(p, pass->first_reduction, shape) : 0;
    for (int i = 0; i < ndim; i++)
        n *= (uint64_t)shape[i];
    return n;
}

/* All inputs, outputs and results of 8 bytes are read as such. */
static void run(struct fixture *f, double (*ret)[N])
{
    static _Alignas(64) char node[NODE_BYTES];
    static _Alignas(64) char results[PROGRAM_MAX_REDUCTIONS][N * 8];
    static _Alignas(64) char scratch[CPU_SCRATCH_BYTES];
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_PLAIN);
    const struct program *p = f->program;
    struct engine_warnings warnings = {0};
    for (unsigned i = 0; i < p->n_passes; i++) {
        const struct pass *pass = &p->passes[i];
        struct engine_view inputs[4] = {0}, outputs[REQUEST_MAX_OUTPUTS] = {0};
        struct engine_view reduced[PROGRAM_MAX_REDUCTIONS] = {0};
        struct reduce_layout layout;
        int axis_order[2] = {0, 1};
        struct engine_box box = {pass->ndim, pass->shape, axis_order};
        for (unsigned k = 0; k < p->n_inputs; k++) {
            const double *base = p->inputs[k].arg == 10   ? values
                                 : p->inputs[k].arg == 11 ? row
                                                          : column;
            cr_assert(eq(int, (int)p->inputs[k].dtype, DTYPE_FLOAT64));
            if (pass->inputs_used >> k & 1)
                inputs[k] = view_of(pass, p->inputs[k].ndim, p->inputs[k].shape, (void *)base);
        }
        for (unsigned k = 0; k < pass->n_stores; k++) {
            unsigned output = p->stores[pass->first_store + k].output;
            outputs[output] = view_of(pass, pass->ndim, pass->shape, ret[output]);
        }
        for (unsigned k = 0; k < p->n_reductions; k++) {
            int64_t shape[ARRAY_MAX_NDIM];
            int ndim = program_reduction_shape(p, k, shape);
            if (pass->reduced_used >> k & 1)
                reduced[k] = view_of(pass, ndim, shape, results[k]);
        }
        reduce_layout_init(&layout, p, i, count_cells(p, pass));
        cr_assert(le(u64, layout.n_bytes, NODE_BYTES));
        cr_assert(
            eq(int,
               cpu_engine_run(engine, p, i, &box, inputs, outputs, reduced,
                              pass->n_reductions > 0 ? &layout : NULL, node, &warnings, scratch),
               0));
        keep_results(p, pass, &layout, node, results);
    }
}

/* Each expected value is a function of the coordinates. */
static void check(const char *exprs, unsigned n_outputs, double (*expected)(unsigned, unsigned),
                  unsigned n_elements)
{
    struct fixture *f = fixture_new();
    double got[REQUEST_MAX_OUTPUTS][N] = {{0}};
    cr_assert(eq(int, fixture_compile(f, exprs), 0), "%s: %s", exprs, f->error.message);
    run(f, got);
    for (unsigned o = 0; o < n_outputs; o++)
        for (unsigned i = 0; i < n_elements; i++)
            cr_expect(epsilon_eq(dbl, got[o][i], expected(o, i), 1e-9 * fabs(expected(o, i))),
                      "%s: output %u, element %u\n%s", exprs, o, i, f->text);
    fixture_free(f);
}

static double x_of(unsigned i)
{
    return values[i];
}

static double mean_of_values(void)
{
    double sum = 0;
    for (unsigned i = 0; i < N; i++)
        sum += values[i];
    return sum / N;
}

static double deviation(void)
{
    double sum = 0;
    for (unsigned i = 0; i < N; i++)
        sum += (values[i] - mean_of_values()) * (values[i] - mean_of_values());
    return sqrt(sum / N);
}

static double normalised(unsigned output, unsigned i)
{
    return (x_of(i) - mean_of_values()) / deviation();
}

Test(expr_values, normalises_in_three_passes)
{
    check("(f8 - mean(f8)) / sqrt(mean(square(f8 - mean(f8))))", 1, normalised, N);
}

static double mean_of_column(unsigned i)
{
    return (values[i % 4] + values[4 + i % 4] + values[8 + i % 4]) / 3;
}

static double deviation_of_column(unsigned i)
{
    double sum = 0;
    for (unsigned k = 0; k < 3; k++)
        sum += pow(values[k * 4 + i % 4] - mean_of_column(i), 2);
    return sqrt(sum / 3);
}

static double normalised_by_column(unsigned output, unsigned i)
{
    return (x_of(i) - mean_of_column(i)) / deviation_of_column(i);
}

static double below_largest_of_row(unsigned output, unsigned i)
{
    double most = -INFINITY;
    for (unsigned k = 0; k < 4; k++)
        most = fmax(most, values[i / 4 * 4 + k]);
    return most - x_of(i);
}

static double sum_of_column(unsigned output, unsigned i)
{
    return 3 * mean_of_column(i);
}

Test(expr_values, reduces_along_axes_and_reads_the_results_beside_the_source)
{
    check("(f8 - mean(f8, axis=0)) / std(f8, axis=0)", 1, normalised_by_column, N);
    check("(f8 - mean(f8, 0, keepdims=True)) / sqrt(var(f8, axis=-2, where=f8 < 1e9))", 1,
          normalised_by_column, N);
    check("max(f8, axis=1, keepdims=True) - f8", 1, below_largest_of_row, N);
    check("sum(f8, axis=0);nansum(f8, axis=(0,));sum(f8, axis=0, keepdims=True) + 0 * row", 3,
          sum_of_column, 4);
    check("sum(row - f8, axis=0) * -1 + 3 * row", 1, sum_of_column, 4);
}

static double broadcast(unsigned output, unsigned i)
{
    return x_of(i) * row[i % 4] + column[i / 4] - (x_of(i) + column[i / 4]) / row[i % 4];
}

Test(expr_values, broadcasts_rows_and_columns)
{
    check("f8*row + column - (f8 + column)/row", 1, broadcast, N);
}

static double deep(unsigned output, unsigned i)
{
    double x = x_of(i), y = row[i % 4];
    double a = x * y, b = x + y, c = x - y, d = y / 3;
    return ((a + b) * (c - d)) - ((a - c) * (b + d)) + (a * d - b * c) * (a + d);
}

Test(expr_values, keeps_shared_values_until_their_last_use)
{
    check("((f8*row + (f8+row)) * ((f8-row) - row/3)) - ((f8*row - (f8-row)) * ((f8+row) + row/3))"
          " + (f8*row*(row/3) - (f8+row)*(f8-row)) * (f8*row + row/3)",
          1, deep, N);
}

static double several(unsigned output, unsigned i)
{
    double x = x_of(i);
    switch (output) {
    case 0: return x * x;
    case 1: return x * x + mean_of_values();
    default: return (x * x + mean_of_values()) * 2;
    }
}

Test(expr_values, computes_several_outputs_together)
{
    check("f8**2;f8**2 + mean(f8);(f8**2 + mean(f8))*2", 3, several, N);
}

static double scalars(unsigned output, unsigned i)
{
    switch (output) {
    case 0: return mean_of_values() * N;
    case 1: return -10.0;
    case 2: return 11.0;
    default: return (11.0 - -10.0) / 1111.0;
    }
}

Test(expr_values, reduces_to_scalars)
{
    check("sum(f8);min(f8);max(f8);(max(f8) - min(f8)) / sum(row)", 4, scalars, 1);
}

static double many(unsigned output, unsigned i)
{
    double sum = 0, difference = 0;
    for (unsigned k = 1; k <= 20; k++) {
        sum += sin(x_of(i) * k);
        difference -= sin(x_of(i) * k);
    }
    return sum * difference;
}

Test(expr_values, holds_many_values_at_once)
{
    static char text[2048];
    char *at = text + sprintf(text, "(0");
    for (unsigned k = 1; k <= 20; k++)
        at += sprintf(at, "+sin(f8*%u)", k);
    at += sprintf(at, ")*(0");
    for (unsigned k = 20; k >= 1; k--)
        at += sprintf(at, "-sin(f8*%u)", k);
    strcpy(at, ")");
    struct fixture *f = fixture_new();
    double got[REQUEST_MAX_OUTPUTS][N];
    cr_assert(eq(int, fixture_compile(f, text), 0));
    run(f, got);
    for (unsigned i = 0; i < N; i++)
        cr_expect(epsilon_eq(dbl, got[0][i], many(0, i), 1e-9));
    fixture_free(f);
}
