/* Skinny products in tiles of the level's kernels (slab_kernels.h).
 *
 *     scratch    project: | lanes of ROWS rows | tails of x and operand |
 *                gather:  | v, packed          | tails of x and sums    |
 *
 * Columns beyond the last whole vector are copied to memory that is filled up with zeros, so that
 * they pass the same kernels. Results are done in groups of nearly equal size.
 *
 * Called by the worker, from any thread.
 */
#include "kernels/cpu/slab/skinny.h"
#include "kernels/cpu/run/run.h"
#include "kernels/cpu/slab/slab_kernels.h"
#include "proto/util.h"

#include <string.h>

#define ROWS         32   /* of a projection, whose lanes stay in the first cache */
#define COLUMNS      256  /* of the operand, which stay there too */
#define GATHER_ROWS  1024 /* a slab has no more */
#define TAIL_OFFSET  (GATHER_ROWS * SLAB_MAX_RESULTS * sizeof(double))
#define TAIL_BYTES   (GATHER_ROWS * SLAB_LANES_OF * sizeof(double))
#define OTHER_OFFSET (TAIL_OFFSET + TAIL_BYTES)

_Static_assert(OTHER_OFFSET + SLAB_MAX_RESULTS * SLAB_LANES_OF * sizeof(double) <=
                   CPU_SCRATCH_BYTES,
               "all of it is in the scratch");

static const void *at(const struct cpu_rows *x, int64_t row, int64_t column)
{
    return (const char *)x->base + row * x->line_bytes + column * (int64_t)dtype_size(x->dtype);
}

/* The columns from `first` on, fewer than a vector has, filled up with zeros. */
static const void *copy_tail(const struct cpu_rows *x, int64_t row, int64_t n_rows, int64_t first,
                             char *to)
{
    size_t item_bytes = dtype_size(x->dtype), n_bytes = SLAB_LANES_OF * item_bytes;
    size_t n = (size_t)(x->n_columns - first) * item_bytes;
    for (int64_t i = 0; i < n_rows; i++, to += n_bytes) {
        memcpy(to, at(x, row + i, first), n);
        memset(to + n, 0, n_bytes - n);
    }
    return to - (size_t)n_rows * n_bytes;
}

/* Of n results from `first` on, how many the next group has: groups are as equal as can be. */
static int64_t next_group(const struct slab_kernels *k, int64_t n, int64_t first)
{
    int64_t n_groups = divide_up_i64(n - first, (int64_t)k->n_results);
    return divide_up_i64(n - first, n_groups);
}

static double sum_of_lanes(const double *lanes)
{
    double s[SLAB_LANES_OF];
    memcpy(s, lanes, sizeof(s));
    for (size_t n = SLAB_LANES_OF / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++)
            s[i] += s[i + n];
    return s[0];
}

static void put(void *to, enum dtype dtype, int64_t index, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)to)[index] = (float)value;
    else
        ((double *)to)[index] = value;
}

struct projection {
    const struct cpu_engine *engine;
    const struct cpu_rows *x;
    const double *operand;
    int64_t operand_line, n_results;
    void *to;
    enum dtype dtype;
    char *scratch;
};

static void project_rows(const struct projection *p, int64_t row, int64_t first, int64_t n_results)
{
    const struct slab_kernels *k = p->engine->slabs;
    bool is_f64 = p->x->dtype == DTYPE_FLOAT64;
    int64_t n_rows = min_i64(ROWS, p->x->n_rows - row);
    int64_t whole = p->x->n_columns / SLAB_LANES_OF * SLAB_LANES_OF;
    struct slab_tile t = {.n_rows = (size_t)n_rows,
                          .n_results = (size_t)n_results,
                          .line_bytes = p->x->line_bytes,
                          .operand_line = (size_t)p->operand_line,
                          .lanes = (double *)p->scratch};
    memset(t.lanes, 0, (size_t)(n_rows * n_results) * SLAB_LANES_OF * sizeof(double));
    for (int64_t column = 0; column < whole; column += COLUMNS) {
        t.n_columns = (size_t)min_i64(COLUMNS, whole - column);
        t.x = at(p->x, row, column);
        t.operand = p->operand + first * p->operand_line + column;
        k->project[is_f64](&t);
    }
    if (whole < p->x->n_columns) {
        const struct cpu_rows operand = {p->operand + first * p->operand_line, DTYPE_FLOAT64,
                                         p->operand_line * (int64_t)sizeof(double), n_results,
                                         p->x->n_columns};
        t.n_columns = SLAB_LANES_OF;
        t.x = copy_tail(p->x, row, n_rows, whole, p->scratch + TAIL_OFFSET);
        t.line_bytes = SLAB_LANES_OF * (int64_t)dtype_size(p->x->dtype);
        t.operand = copy_tail(&operand, 0, n_results, whole, p->scratch + OTHER_OFFSET);
        t.operand_line = SLAB_LANES_OF;
        k->project[is_f64](&t);
    }
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n_results; j++)
            put(p->to, p->dtype, (row + i) * p->n_results + first + j,
                sum_of_lanes(t.lanes + (i * n_results + j) * SLAB_LANES_OF));
}

void cpu_slab_project(const struct cpu_engine *engine, const struct cpu_rows *x,
                      const double *operand, int64_t operand_line, int64_t n_results, void *to,
                      enum dtype dtype, void *scratch)
{
    const struct projection p = {engine, x, operand, operand_line, n_results, to, dtype, scratch};
    for (int64_t row = 0; row < x->n_rows; row += ROWS)
        for (int64_t first = 0, n; first < n_results; first += n) {
            n = next_group(engine->slabs, n_results, first);
            project_rows(&p, row, first, n);
        }
}

/* n columns of v from `first` on, as float64, row by row. */
static const double *pack(const struct cpu_rows *v, int64_t first, int64_t n, double *to)
{
    double *packed = to;
    for (int64_t i = 0; i < v->n_rows; i++)
        for (int64_t j = 0; j < n; j++)
            *packed++ = v->dtype == DTYPE_FLOAT32 ? (double)((const float *)at(v, i, first))[j]
                                                  : ((const double *)at(v, i, first))[j];
    return to;
}

/* The last columns, through a copy of the sums. */
static void gather_tail(slab_tile_fn *kernel, const struct cpu_rows *x, const struct slab_tile *t,
                        int64_t first, char *scratch)
{
    struct slab_tile tail = *t;
    double *sums = (double *)(scratch + OTHER_OFFSET);
    size_t n = (size_t)(x->n_columns - first);
    tail.n_columns = SLAB_LANES_OF;
    tail.x = copy_tail(x, 0, x->n_rows, first, scratch + TAIL_OFFSET);
    tail.line_bytes = SLAB_LANES_OF * (int64_t)dtype_size(x->dtype);
    tail.sums = sums;
    tail.sums_line = SLAB_LANES_OF;
    for (size_t j = 0; j < t->n_results && t->is_added; j++)
        for (size_t i = 0; i < SLAB_LANES_OF; i++)
            sums[j * SLAB_LANES_OF + i] = i < n ? t->sums[j * t->sums_line + (size_t)first + i] : 0;
    kernel(&tail);
    for (size_t j = 0; j < t->n_results; j++)
        memcpy(t->sums + j * t->sums_line + first, sums + j * SLAB_LANES_OF, n * sizeof(*sums));
}

void cpu_slab_gather(const struct cpu_engine *engine, const struct cpu_rows *x,
                     const struct cpu_rows *v, double *sums, int64_t sums_line, bool is_added,
                     int64_t skipped, void *scratch)
{
    const struct slab_kernels *k = engine->slabs;
    slab_tile_fn *kernel = k->gather[x->dtype == DTYPE_FLOAT64];
    int64_t whole = x->n_columns / SLAB_LANES_OF * SLAB_LANES_OF;
    for (int64_t first = 0, n; first < v->n_columns; first += n) {
        int64_t begin = skipped == CPU_SLAB_ALL ? 0 : max_i64(first - skipped, 0);
        begin = min_i64(begin / SLAB_LANES_OF * SLAB_LANES_OF, whole);
        n = next_group(k, v->n_columns, first);
        if (skipped != CPU_SLAB_ALL && first - skipped >= x->n_columns)
            return; /* it is all above the diagonal, and so are the lines behind */
        struct slab_tile t = {.n_rows = (size_t)x->n_rows,
                              .n_columns = (size_t)(whole - begin),
                              .n_results = (size_t)n,
                              .x = at(x, 0, begin),
                              .line_bytes = x->line_bytes,
                              .v = pack(v, first, n, scratch),
                              .sums = sums + first * sums_line + begin,
                              .sums_line = (size_t)sums_line,
                              .is_added = is_added};
        kernel(&t);
        t.sums -= begin;
        if (whole < x->n_columns)
            gather_tail(kernel, x, &t, whole, scratch);
    }
}

void cpu_slab_add_parts(const double *parts, int64_t part_apart, unsigned n_parts,
                        int64_t n_elements, void *to, enum dtype dtype)
{
    for (int64_t i = 0; i < n_elements; i++) {
        double sum = parts[i];
        for (unsigned k = 1; k < n_parts; k++)
            sum += parts[k * part_apart + i];
        put(to, dtype, i, sum);
    }
}
